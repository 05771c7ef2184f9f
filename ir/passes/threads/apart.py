"""Loops whose iterations may run at the same time: what they write to is their own, or only added to.

    for i in range(n):
        for j in range(d):
            t = x[i, j] * w[j]      x, w: nothing in the loop writes to them
            dw[j] += t              all iterations add to it, and none reads it
            dx[i, j] = t            each has a row of its own
            du[i - 1, j] += t       and adds to rows that are near, as its neighbours do
            du[i + 1, j] += t
        s += t                      a sum

Where the iterations are reversed one by one, arrays that the loop alone uses are theirs one after the other
(`Function.independent`): each thread can have its own.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.dataflow import reach
from zygote_py.ir.analysis.effects import bases, effect, has_memory, is_fresh, is_view, origins_of, writes
from zygote_py.ir.analysis.loops import CountedLoop, Loop, LoopNest, counted
from zygote_py.ir.analysis.memory import Memory, is_made_after
from zygote_py.ir.analysis.running_sums import running_sum
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Phi, Raise, Return, Routine, Value, predecessors
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Effect, Role
from zygote_py.ir.walks import Use

INDEX = types.int64
_MAKERS = (ops.record, ops.zeros, ops.stack)
_WIDEST = 8  # how far neighbouring iterations add to the same elements
_WRITERS = (Role.STORE, Role.APPEND, Role.POP, Role.CHECK)


class Unfit(Exception):
    """The iterations of a loop do not run at the same time."""


@dataclass(eq=False)
class Sum:
    """A number that the iterations add to: its phis and its additions, in the order in which they may run.

    If they must keep their order, their terms are kept; an addition that an iteration `may_skip` has a term of -0.0
    then, which changes nothing.
    """

    phi: Phi
    members: Mapping[Phi | Instr, None]
    adds: list[Instr]
    in_order: bool
    may_skip: bool = False


@dataclass(frozen=True, eq=False)
class _Access:
    """An access to the memory of an array from outside the loop; `index` is what selects it, if that is known."""

    instr: Instr
    base: Value
    index: Sequence[Operand] | None
    is_write: bool
    adds: bool


class Apart:
    """How the iterations of a loop run at the same time. Raises Unfit if they do not."""

    def __init__(
        self, function: Function, nest: LoopNest, loop: Loop, memory: Memory, used: Mapping[Value, Sequence[Use]]
    ) -> None:
        self.loop, self.function = loop, function
        self._nest, self._memory, self._used = nest, memory, used
        self._any_order = function.allows("reassoc")
        self._home: dict[Value, Block] = {value: block for block in function.blocks for value in block.values}
        self.count = self._counted()
        self.raising = self._raising()
        self.sums = [self._sum(phi) for phi in loop.header.phis if phi is not self.count.phi]
        self._check_values()
        self.private: list[Instr] = []
        self.added: list[Value] = []
        self.shared: list[Value] = []  # other arrays that it writes to
        self.seam = 0  # the number of iterations at the end of a chunk that add to what the next chunk adds to
        self._find_arrays(list(self._accesses()))

    # -------------------------------------------------------------------------------------------------------- control

    def _counted(self) -> CountedLoop:
        loop = self.loop
        found = counted(loop, self.function)
        if found is None or abs(found.step) != 1 or len(loop.entering) != 1 or len(loop.latches) != 1:
            raise Unfit
        if not found.phi.type == found.bound.type == found.start.type == INDEX:
            raise Unfit
        if loop.header.instrs != [found.condition] or loop.header in loop.header.successors:
            raise Unfit
        return found

    def _raising(self) -> list[Block]:
        """Return the blocks outside of the loop in which it ends by an exception."""
        starts = [block for _, block in self.loop.raising_exits]
        found = list(reach(starts, lambda block: block.successors))
        if any(isinstance(block.terminator, Return) or block in self.loop for block in found):
            raise Unfit
        return found

    @property
    def blocks(self) -> list[Block]:
        """Return the blocks that run in a thread."""
        return [*self.loop.order, *self.raising]

    # ----------------------------------------------------------------------------------------------------------- sums

    def _sum(self, phi: Phi) -> Sum:
        """Return the sum that a phi of the header stands for. Raises Unfit for another phi."""
        members = running_sum(self.loop, phi, self._used) if _is_number(phi.type) else None
        if members is None or any(use.block in self.raising for use in self._used[phi]):
            raise Unfit
        adds = [instr for block in self.loop.order for instr in block.instrs if instr in members]
        if isinstance(phi.type, types.Integer) or self._any_order or all(each.origin is not None for each in adds):
            return Sum(phi, members, adds, False)
        homes = [self._home[each] for each in adds]
        if not isinstance(phi.type, types.Float) or any(self._nest.innermost(each) is not self.loop for each in homes):
            raise Unfit
        self._check_that_all_count(phi, members)
        always = all(self._nest.tree.dominates(each, self.loop.latches[0]) for each in homes)
        return Sum(phi, members, adds, True, not always)

    def _check_that_all_count(self, phi: Phi, members: Mapping[Phi | Instr, None]) -> None:
        """Raise Unfit unless every addition that runs is part of the sum: each adds to the one before it."""
        preds = predecessors(self.function)
        at_start: dict[Block, Operand] = {self.loop.header: phi}
        at_end: dict[Block, Operand] = {}
        for block in self.loop.order:
            if block not in at_start:
                merged = [each for each in block.phis if each in members]
                known = [at_end[pred] for pred in preds[block] if pred in at_end]
                at_start[block] = (merged or known)[0]
            current = at_start[block]
            for instr in block.instrs:
                if instr in members:
                    if current not in instr.args:
                        raise Unfit
                    current = instr
            at_end[block] = current
        for block in self.loop.order[1:]:
            start = at_start[block]
            is_merged = isinstance(start, Phi) and start in block.phis
            for pred in preds[block]:
                if at_end[pred] is not (start.incoming[pred] if is_merged and isinstance(start, Phi) else start):
                    raise Unfit
        if phi.incoming[self.loop.latches[0]] is not at_end[self.loop.latches[0]]:
            raise Unfit

    def _check_values(self) -> None:
        """Raise Unfit if a value leaves the loop that is neither the counter nor a sum."""
        around = set(self.raising)
        for block in self.loop.order:
            for value in block.values:
                if block is self.loop.header and isinstance(value, Phi):
                    continue
                if any(use.block not in self.loop and use.block not in around for use in self._used.get(value, ())):
                    raise Unfit
        for block in self.raising:
            if any(use.block not in around for value in block.values for use in self._used.get(value, ())):
                raise Unfit

    # --------------------------------------------------------------------------------------------------------- memory

    def _accesses(self) -> Iterator[_Access]:
        """Yield the accesses to memory from outside the loop. Raises Unfit for other effects."""
        inside: set[Value] = {value for block in self.blocks for value in block.values}
        for block in self.blocks:
            for instr in block.instrs:
                self._check_effect(instr)
                written = writes(instr)
                record = ops.of(instr.op)
                for place, arg in enumerate(instr.args):
                    if not has_memory(arg.type) or not isinstance(arg, Value):
                        continue
                    is_write = any(arg is each for each in written)
                    if not is_write and (is_view(instr) or record.handle_only or record.role is Role.LENGTH):
                        continue
                    if is_write and place and record.role in (Role.STORE, Role.APPEND) and instr.args[0] is not arg:
                        is_write = False
                    yield from self._to(instr, arg, inside, is_write, record.adds and not place)
            end = block.terminator
            if any(has_memory(arg.type) for arg in end.args) or (isinstance(end, Raise) and end.exception is None):
                raise Unfit

    def _check_effect(self, instr: Instr) -> None:
        """Raise Unfit for what must happen in order: prints, draws, and what is not known."""
        record = ops.of(instr.op)
        if isinstance(instr.op, Routine):
            if instr.op.has_side_effects or instr.op.may_alias_after:
                raise Unfit
            return
        if record.draws:
            raise Unfit
        is_known = record.role in _WRITERS or record.adds or instr.op is ops.refuse
        if effect(instr) is Effect.WRITE and not is_known:
            raise Unfit

    def _to(self, instr: Instr, arg: Value, inside: set[Value], is_write: bool, adds: bool) -> Iterator[_Access]:
        """Yield the accesses of an instruction by an argument."""
        index: Sequence[Operand] | None = None
        if ops.of(instr.op).role is Role.READ and isinstance(arg.type, types.Array) and instr.args[0] is arg:
            index = instr.args[1:]
        elif instr.op in (ops.setitem, ops.initialize, ops.accumulate) and is_write:
            index = instr.args[2:]
        while arg in inside and isinstance(arg, Instr) and is_view(arg) and isinstance(arg.args[0], Value):
            index = arg.args[1:] if arg.op is ops.getitem else None
            arg = arg.args[0]
        if arg not in inside:
            yield _Access(instr, arg, index, is_write, adds)
            return
        for base in bases(arg, ()):
            if not isinstance(base, Value):
                raise Unfit
            if base in inside and isinstance(base, Instr) and (is_fresh(base) or base.op is ops.stack):
                continue
            if is_write or isinstance(base, Phi):
                raise Unfit
            yield _Access(instr, base, None, False, False)

    def _find_arrays(self, accesses: list[_Access]) -> None:
        """Find which arrays each thread has of its own, and which it adds to."""
        of: dict[Value, list[_Access]] = {}
        for each in accesses:
            of.setdefault(each.base, []).append(each)
        for base, own in of.items():
            if not any(each.is_write for each in own):
                continue
            views: list[Operand] = [base]
            if any(isinstance(each, Instr) and each.op is ops.spread for each in reach(views, origins_of)):
                raise Unfit  # its elements share memory
            if self._is_private(base):
                assert isinstance(base, Instr)
                self.private.append(base)
                continue
            if any(other is not base and self._may_share(base, other) for other in of):
                raise Unfit
            width, are_sums = self._width(own), all(self._adds_in_any_order(each) for each in own)
            if width == 0 or (width is not None and are_sums):
                self.shared.append(base)
                self.seam = max(self.seam, width)
                continue
            kind: Any = base.type
            is_plain = isinstance(kind, types.Array) and kind.ndim and kind.layout == "C" and kind.aligned
            if not is_plain or not are_sums or not _is_number(kind.dtype):
                raise Unfit
            self.added.append(base)

    def _adds_in_any_order(self, access: _Access) -> bool:
        """Return whether an access adds to elements, and its sum is of the adjoint, or may have another order."""
        kind: Any = access.base.type
        is_exact = isinstance(kind, types.Array) and isinstance(kind.dtype, types.Integer)
        return access.adds and (access.instr.origin is not None or is_exact or self._any_order)

    def _is_private(self, base: Value) -> bool:
        """Return whether an array or a list holds nothing that one iteration leaves for another."""
        if self.count.phi not in self.function.independent or not isinstance(base, Instr) or base.op not in _MAKERS:
            return False
        uses = self._used.get(base, ())
        return all(
            use.block in self.loop or (isinstance(use.user, Instr) and ops.of(use.user.op).role is Role.LENGTH)
            for use in uses
        )

    def _may_share(self, base: Value, other: Value) -> bool:
        """Return whether two values may reach the same memory: not if one is new, and made after the other."""
        if not self._memory.may_share(base, other):
            return False
        home, tree = self._home, self._nest.tree
        return not (is_made_after(base, other, home, tree) or is_made_after(other, base, home, tree))

    def _width(self, accesses: Sequence[_Access]) -> int | None:
        """Return for how many iterations the elements of an iteration are those of later ones too, if few.

        None if the number of the iteration, or one that is near, is not an index of the same axis in all accesses.
        """
        found: dict[int, list[int]] = {}
        for each in accesses:
            if each.index is None or not isinstance(each.base.type, types.Array):
                return None
            for axis, index in enumerate(each.index):
                if not isinstance(index.type, types.Integer | types.SliceType):
                    break
                if isinstance(index.type, types.Integer) and (offset := self.offset(index)) is not None:
                    found.setdefault(axis, []).append(offset)
        widths = [
            max(offsets) - min(offsets)
            for offsets in found.values()
            if len(offsets) == len(accesses) and self._least() + min(offsets) >= 0
        ]
        width = min(widths, default=_WIDEST + 1)
        return width if width <= _WIDEST else None

    def offset(self, index: Operand) -> int | None:
        """Return the distance of an index from the counter, if it is fixed."""
        if index is self.count.phi:
            return 0
        match index:
            case (
                Instr(op=operator.add, args=(one, Const(int(by)))) | Instr(op=operator.add, args=(Const(int(by)), one))
            ):
                pass
            case Instr(op=operator.sub, args=(one, Const(int(by)))):
                by = -by
            case _:
                return None
        before = self.offset(one) if index.type == INDEX else None
        return None if before is None else before + by

    def _least(self) -> float:
        """Return the least number that the counter has, or minus infinity if that is not known."""
        count = self.count
        end = count.start if count.step > 0 else count.bound
        if not isinstance(end, Const) or not isinstance(end.value, int):
            return -float("inf")
        return end.value if count.step > 0 else end.value + 1 + count.comparison.past


def _is_number(kind: Any) -> bool:
    return isinstance(kind, types.Float | types.Integer | types.Complex)
