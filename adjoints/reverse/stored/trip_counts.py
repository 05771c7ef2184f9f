"""Trip counts and iteration numbers of loops, as values of the forward sweep.

    for i in range(a, b):               the count is b - a, the index of an iteration i - a
    while err > tol:                    a counter is added: %k = phi .. : 0, .. : %k2;  %k2 = add %k, 1

The reverse of every loop then counts down from the count less one to zero. The functions here add instructions to their
argument, which must be in canonical form.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from types import MappingProxyType

from numba import types

from zygote_py.ir import (
    Block,
    Branch,
    Const,
    CountedLoop,
    Function,
    Instr,
    InternalError,
    Loop,
    Operand,
    Phi,
    Value,
    add_counter,
    counted,
    invariant,
    is_view,
    is_zero,
    ops,
)
from zygote_py.ir.lazy_dataclass import dataclass

INDEX = types.int64


@dataclass(eq=False)
class Trip:
    """A loop of the forward sweep. `count` is known before the loop if it is a `counted` one, and after it if not."""

    loop: Loop
    counted: CountedLoop | None
    count: Operand
    _index: Operand | None = None

    @property
    def preheader(self) -> Block:
        """Return the one block that enters the loop."""
        (block,) = self.loop.entering
        return block

    @property
    def latch(self) -> Block:
        """Return the one block that jumps back to the header."""
        (block,) = self.loop.latches
        return block

    @property
    def first(self) -> Block:
        """Return the first block of the body, the header's successor inside the loop."""
        branch = self.loop.header.terminator
        if not isinstance(branch, Branch):
            raise InternalError("trips: a loop's header has no exit")
        return branch.then if branch.then in self.loop else branch.orelse

    @property
    def index_hint(self) -> str:
        """Return the name of the iteration number: that of the loop's counter, if it counts from 0 by 1."""
        how = self.counted
        if how is None:
            return self.count.hint if isinstance(self.count, Phi) and self.count.hint else "k"
        return how.phi.hint if how.phi.hint and how.step == 1 and is_zero(how.start) else "k"

    def index(self) -> Operand:
        """Return the iteration number, from 0, in the blocks of the body."""
        if self._index is None:
            self._index = self._make_index()
        return self._index

    def _make_index(self) -> Operand:
        if self.counted is None:
            return self.count
        phi, start, step = self.counted.phi, self.counted.start, self.counted.step
        if step == 1 and is_zero(start):
            return phi
        if abs(step) != 1:
            return add_counter(self.loop, "k")
        index = Instr(operator.sub, (phi, start) if step == 1 else (start, phi), INDEX, "k")
        self.first.instrs.insert(0, index)
        return index


def trip_of(loop: Loop, function: Function) -> Trip:
    """Return the trip of a loop; its count is added to the function."""
    how = counted(loop, function)
    if how is not None and how.phi.type == INDEX and how.bound.type == INDEX and how.start.type == INDEX:
        (preheader,) = loop.entering
        return Trip(loop, how, _count(how, preheader))
    return Trip(loop, None, _counter(loop) or add_counter(loop, "k"))


def _counter(loop: Loop) -> Phi | None:
    """Return a phi of the header that counts the iterations from 0, if there is one."""
    (preheader,), (latch,) = loop.entering, loop.latches
    for phi in loop.header.phis:
        match phi.incoming[latch]:
            case Instr(op=operator.add, args=(Phi() as same, Const(value=1))) if (
                same is phi and phi.type == INDEX and is_zero(phi.incoming[preheader])
            ):
                return phi
    return None


def _count(how: CountedLoop, preheader: Block) -> Operand:
    """Return the trip count of a counted loop; that of a loop that does not run may be negative."""
    start, stop, step = how.start, how.bound, how.step
    if how.comparison.past:
        stop = _count_of(preheader, operator.add, stop, Const(how.comparison.past, INDEX))
    if step == 1:
        return stop if is_zero(start) else _count_of(preheader, operator.sub, stop, start)
    if step == -1:
        return start if is_zero(stop) else _count_of(preheader, operator.sub, start, stop)
    return _count_of(preheader, ops.range_length, start, stop, Const(step, INDEX))


def _count_of(block: Block, op: ops.Op, *args: Operand) -> Operand:
    return named(append(block, op, *args), "n")


def append(block: Block, op: ops.Op, *args: Operand) -> Operand:
    """Append an operation on integers to a block, and return its result."""
    result = operation(op, *args)
    if isinstance(result, Instr):
        block.instrs.append(result)
    return result


def operation(op: ops.Op, *args: Operand) -> Operand:
    """Return an operation on integers; of constants, its result."""
    if all(isinstance(arg, Const) for arg in args):
        return Const(op(*(arg.value for arg in args if isinstance(arg, Const))), INDEX)
    return Instr(op, args, INDEX, "")


def named(operand: Operand, hint: str) -> Operand:
    """Return an operand, with a name if it is an operation that has none."""
    if isinstance(operand, Instr) and not operand.hint:
        operand.hint = hint
    return operand


def hoist(operand: Operand, loop: Loop, known: Mapping[Value, Operand] = MappingProxyType({})) -> Operand | None:
    """Return the same integer, computed before `loop`; None if it may differ between the loop's iterations.

    It is the same if the loop computes it at all: checks of lengths, which may raise, remain in the loop. Values that
    are `known` are replaced.
    """
    return _hoisted(operand, loop, dict(known))


def _hoisted(operand: Operand, loop: Loop, made: dict[Value, Operand | None]) -> Operand | None:
    if invariant(operand, loop) or not isinstance(operand, Value):
        return operand
    if operand not in made:
        made[operand] = _copied(operand, loop, made) if isinstance(operand, Instr) else None
    return made[operand]


def _copied(instr: Instr, loop: Loop, made: dict[Value, Operand | None]) -> Operand | None:
    """Return the result of a copy of an instruction before `loop`; None if there cannot be one."""
    record = ops.of(instr.op)
    if not record.hoistable and record.role is not ops.Role.CHECK and not is_view(instr):
        return None
    args = []
    for arg in instr.args:
        hoisted = _hoisted(arg, loop, made)
        if hoisted is None:
            return None
        args.append(hoisted)
    (preheader,) = loop.entering
    if instr.op is ops.fitting_length:
        return args[0]
    if instr.op is ops.common_length:
        first, second = args
        return _common_length(first, second, preheader)
    if instr.op in (operator.add, operator.sub) and all(each.type == INDEX for each in (instr, *instr.args)):
        return _count_of(preheader, instr.op, *args)
    copy = instr.copy(tuple(args), with_origin=False)
    preheader.instrs.append(copy)
    return copy


def _common_length(first: Operand, second: Operand, block: Block) -> Operand:
    """Return the length that axes of these lengths broadcast to, if they do."""
    is_one = Instr(operator.eq, (first, Const(1, INDEX)), types.boolean, "c")
    common = Instr(ops.select, (is_one, second, first), INDEX, "n")
    block.instrs += [is_one, common]
    return common


def cannot_be_negative(operand: Operand) -> bool:
    """Return whether a count is certainly nonnegative."""
    if isinstance(operand, Const):
        return isinstance(operand.value, int) and operand.value >= 0
    if isinstance(operand, Instr) and ops.of(operand.op).role is ops.Role.CHECK:
        return all(map(cannot_be_negative, operand.args))
    return isinstance(operand, Instr) and ops.of(operand.op).nonnegative
