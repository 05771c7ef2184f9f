"""Loops over the rows and columns of matrices as one loop over their elements, in the order in which these lie.

    for i in range(n):                      if c and d:                     where `a` has the shape of `v`
        r = i if c else 0                       for k in range(n * m):
        for j in range(m):          ->              v[0, k] += t * a[0, k]
            v[i, j] += t * a[r, j if d else 0]  else:
                                                    ...                     as before

A loop over three columns costs more than its rounds: LLVM asks whether to make vectors of it, and makes none. As one
loop it has them. An index beyond the first row is that of an element in another one, since rows lie one after another:
this is for a compiler only that does not check indices.

It is done for matrices in the order of C, of which both loops visit all elements, upwards or downwards; elements are
then accessed in the same order as before, so that it makes no difference what shares memory. And only within another
loop, which makes it worth a second version.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.dominators import reverse_postorder
from zygote_py.ir.analysis.effects import effect
from zygote_py.ir.analysis.loops import CountedLoop, Loop, LoopNest, counted, loop_nest
from zygote_py.ir.arrays.shapes import Length, Shapes
from zygote_py.ir.building.builder import Builder
from zygote_py.ir.building.cfg import rename_incoming
from zygote_py.ir.checks.debug import check_after, is_left_out
from zygote_py.ir.core import Block, Branch, Const, Function, Instr, Jump, Operand, Phi, Value, retarget
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Effect
from zygote_py.ir.types import is_scalar
from zygote_py.ir.walks import Use, uses

_INDEX = types.int64
_ZERO, _ONE = Const(0, _INDEX), Const(1, _INDEX)
_OF_COUNTERS = (ops.select, ops.const, operator.add, operator.sub, operator.mul)
_ACCESSES = (ops.getitem, ops.setitem, ops.initialize, ops.accumulate)


def flatten_loops(function: Function) -> bool:
    """Make one loop of two over matrices where that is possible, in place. Return whether there are any."""
    if is_left_out("flat-loops"):
        return False
    nest, shapes = loop_nest(function), Shapes()
    found = [flat for loop in nest.loops if (flat := _flat(function, nest, loop, shapes)) is not None]
    for flat in found:
        _rewrite(function, flat)
    if found:
        function.blocks = reverse_postorder(function)
        check_after("flatten_loops", function)
    return bool(found)


@dataclass(frozen=True, eq=False)
class _Flat:
    """Two loops, how they count and how far, and the conditions under which no array in them is broadcast."""

    outer: Loop
    counts: tuple[CountedLoop, CountedLoop]
    lengths: tuple[Operand, Operand]
    before: Block
    body: Block
    conditions: tuple[Operand, ...]


def _flat(function: Function, nest: LoopNest, outer: Loop, shapes: Shapes) -> _Flat | None:
    """Return a loop and the one in it, if they can be one."""
    if outer.parent is None or len(outer.children) != 1 or len(outer.entering) != 1 or len(outer.order) != 5:
        return None
    if outer.entering[0].successors != (outer.header,):  # it may be the header of another loop, which is rewritten
        return None
    (inner,) = outer.children
    first, second = counted(outer, function), counted(inner, function)
    if first is None or second is None or first.step != second.step or inner.children or len(inner.order) != 2:
        return None
    rows, columns = _length(first), _length(second)
    if rows is None or columns is None or not _is_bare(outer, first) or not _is_bare(inner, second):
        return None
    if isinstance(columns, Const) or rows in outer.values or columns in outer.values:  # LLVM writes short loops out
        return None
    (before,) = (block for block in outer.header.successors if block in outer)
    (body,) = (block for block in inner.order if block is not inner.header)
    (latch,) = outer.latches
    goes_on = before.successors == (inner.header,) and inner.exits == [(inner.header, latch)]
    if not goes_on or latch.instrs != [first.increment] or not all(map(_is_of_counters, before.instrs)):
        return None
    accesses = _Accesses(outer, (first, second), (rows, columns), shapes)
    if not accesses.take([*before.instrs, *body.instrs]) or _is_used_outside(outer, uses(function)):
        return None
    return _Flat(outer, (first, second), (rows, columns), before, body, tuple(accesses.conditions))


def _length(count: CountedLoop) -> Operand | None:
    """Return n if a loop counts from 0 to n - 1, or from n - 1 to 0."""
    op = count.comparison.op
    if count.step == 1 and _is(count.start, 0) and op is operator.lt:
        return count.bound
    if count.step == -1 and _is(count.bound, 0) and op is operator.ge:
        match count.start:
            case Instr(op=operator.sub, args=(n, one)) if _is(one, 1):
                return n
    return None


def _is(operand: Operand, value: int) -> bool:
    return isinstance(operand, Const) and operand.value == value


def _is_bare(loop: Loop, count: CountedLoop) -> bool:
    """Return whether nothing but its counter goes from round to round of a loop, and no round ends it early."""
    is_counter = loop.header.phis == [count.phi] and loop.header.instrs == [count.condition]
    (latch, *others) = loop.latches
    return is_counter and count.increment in latch.instrs and not others and not loop.raising_exits


def _is_of_counters(instr: Instr) -> bool:
    """Return whether an instruction before an inner loop computes an index or a bound, which may be computed once."""
    return instr.op in _OF_COUNTERS and isinstance(instr.type, types.Integer)


def _is_used_outside(loop: Loop, used: Mapping[Value, Sequence[Use]]) -> bool:
    return any(use.block not in loop for value in loop.values for use in used.get(value, ()))


class _Accesses:
    """The accesses to arrays in two loops, and the `conditions` under which all are to elements at both counters."""

    def __init__(self, outer: Loop, counts: Sequence[CountedLoop], lengths: Sequence[Operand], shapes: Shapes) -> None:
        self._outer = outer
        self._shapes = shapes
        self._keys = [self._key(each) for each in lengths]
        self._axis: dict[Operand, int] = {count.phi: axis for axis, count in enumerate(counts)}
        self._own = {count.increment for count in counts}
        self._chosen: dict[Operand, Operand] = {}  # counters or zero: by which condition
        self.conditions: dict[Operand, None] = {}

    def take(self, instrs: Sequence[Instr]) -> bool:
        """Return whether these instructions, of a round, do nothing else with the counters than access elements."""
        for instr in instrs:
            match instr:
                case Instr(op=ops.select, args=(condition, Phi() as counter, zero)) if counter in self._axis:
                    if not _is(zero, 0) or condition in self._outer.values:
                        return False
                    self._axis[instr], self._chosen[instr] = self._axis[counter], condition
        rest = [instr for instr in instrs if instr not in self._own and instr not in self._axis]
        operands = [self._other_operands(instr) for instr in rest]
        is_fit = all(each is not None and self._axis.keys().isdisjoint(each) for each in operands)
        return is_fit and any(instr.op in _ACCESSES for instr in rest)

    def _other_operands(self, instr: Instr) -> Sequence[Operand] | None:
        """Return the operands that must not be counters; None if the instruction may not be in a flat loop."""
        if instr.op in _ACCESSES and isinstance(instr.args[0].type, types.Array):
            index = _index_of(instr)
            if not self._is_at_counters(instr.args[0], index):
                return None
            self.conditions |= {self._chosen[each]: None for each in index if each in self._chosen}
            return instr.args[: len(instr.args) - 2]
        return instr.args if effect(instr) is Effect.PURE and is_scalar(instr.type) else None

    def _is_at_counters(self, array: Operand, index: Sequence[Operand]) -> bool:
        """Return whether an index is that of an element at both counters, of an array of that shape."""
        kind: Any = array.type
        if kind.layout != "C" or len(index) != kind.ndim or kind.ndim < 2 or array in self._outer.values:
            return False
        if any(each in self._outer.values for each in index[:-2]) or not is_scalar(kind.dtype):
            return False
        lengths = self._shapes.of(array)[-2:]
        return all(
            self._axis.get(each) == axis and self._is_as_long(length, axis, self._chosen.get(each))
            for axis, (each, length) in enumerate(zip(index[-2:], lengths, strict=True))
        )

    def _is_as_long(self, length: Length, axis: int, condition: Operand | None) -> bool:
        """Return whether an axis has as many elements as a loop has rounds, under a condition if there is one."""
        if condition is None:
            return length.key == self._keys[axis]
        match condition:
            case Instr(op=operator.eq, args=(one, other)):
                return {self._key(one), self._key(other)} == {length.key, self._keys[axis]}
        return False

    def _key(self, length: Operand) -> Hashable:
        while isinstance(length, Instr) and length.op is ops.fitting_length:
            length = length.args[0]  # or an error has been raised
        return self._shapes.length(length).key


def _index_of(access: Instr) -> tuple[Operand, ...]:
    """Return the index at which an instruction reads an element of an array, or stores one."""
    return access.args[1 if access.op is ops.getitem else 2 :]


def _rewrite(function: Function, flat: _Flat) -> None:
    """Put one loop in the place of two, or beside them."""
    header, step, loc = flat.outer.header, flat.counts[0].step, flat.outer.header.loc
    (before,) = flat.outer.entering
    ((_, after),) = flat.outer.exits
    start, top, body = Block(loc), Block(loc), Block(loc)
    b = Builder(start, loc)
    total = b.call(operator.mul, *flat.lengths, type=_INDEX, hint="size")
    counter = Phi(_INDEX, "k", loc)
    counter.incoming[start] = b.call(operator.sub, total, _ONE, type=_INDEX, hint="k") if step < 0 else _ZERO
    start.terminator = Jump(top)
    top.phis.append(counter)
    b = Builder(top, loc)
    order, bound = (operator.ge, _ZERO) if step < 0 else (operator.lt, total)
    top.terminator = Branch(b.call(order, counter, bound, type=types.boolean, hint="c"), body, after)
    _fill(start, body, flat, counter)
    counter.incoming[body] = Builder(body, loc).call(
        operator.sub if step < 0 else operator.add, counter, _ONE, type=_INDEX, hint="k"
    )
    body.terminator = Jump(top)
    for phi in after.phis:
        phi.incoming[top] = phi.incoming[header]
    if flat.conditions:
        choice = Block(loc)
        b = Builder(choice, loc)
        condition = flat.conditions[0]
        for other in flat.conditions[1:]:
            condition = b.call(operator.and_, condition, other, type=types.boolean, hint="c")
        choice.terminator = Branch(condition, start, header)
        retarget(before, header, choice)
        rename_incoming(header, before, choice)
        function.blocks += [choice, start, top, body]
    else:
        retarget(before, header, start)
        for phi in after.phis:
            del phi.incoming[header]
        gone = set(flat.outer.order)
        function.blocks = [*(block for block in function.blocks if block not in gone), start, top, body]


def _fill(start: Block, body: Block, flat: _Flat, counter: Phi) -> None:
    """Copy what the loops do, with the elements at one counter; what is the same in all rounds before the loop."""
    counters = {count.phi for count in flat.counts} | {count.increment for count in flat.counts}
    copies: dict[Operand, Operand] = {}
    for source, target in ((flat.before, start), (flat.body, body)):
        for instr in source.instrs:
            if instr in counters or (instr.op is ops.select and instr.args[1] in counters):
                continue
            args = tuple(copies.get(arg, arg) for arg in instr.args)
            if instr.op in _ACCESSES and isinstance(instr.args[0].type, types.Array):
                args = (*args[:-2], _ZERO, counter)
            copies[instr] = made = instr.copy(args)
            target.instrs.append(made)
