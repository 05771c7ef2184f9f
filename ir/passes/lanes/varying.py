"""Values that differ between neighbouring iterations of a loop, and values that are the same in all of them.

    for i in range(n):                  UNIT        i, and what differs from it by the same number in all iterations
        for j in range(d):              UNIFORM     j, d, w[j]
            t = x[i, j] * w[j]          LANES       x[i, j], t: floats and booleans
            s += t                      EACH        integers that are neither

An array that the function makes for the loop alone is private to an iteration. It has an element for each lane if it
differs between iterations, as what is stored in it does. To other arrays the iterations may only add.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.effects import effect
from zygote_py.ir.analysis.loops import CountedLoop, Loop, LoopNest, counted
from zygote_py.ir.analysis.running_sums import running_sum
from zygote_py.ir.core import Block, Branch, Const, Function, Instr, Operand, Phi, Raise, Routine, Type, Undef, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Effect, Role
from zygote_py.ir.walks import uses


class Kind(enum.IntEnum):
    """How the values of neighbouring iterations are related."""

    UNIFORM = 0
    UNIT = 1
    LANES = 2
    EACH = 3


class Unfit(Exception):
    """The iterations of a loop do not run side by side."""


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices of an array, one for each iteration: along an axis, with the lengths that loops count on the others."""

    axis: int
    bounds: Mapping[int, Operand]


@dataclass(eq=False)
class Sum:
    """A number that the iterations add to: its phis, its additions, and whether these must keep their order.

    If they must, and are several, or in inner loops, which are `counts`, the terms are kept, and added up after all of
    a block.
    """

    phi: Phi
    members: dict[Phi | Instr, None]
    in_order: bool
    counts: tuple[CountedLoop, ...] | None = None

    @property
    def adds(self) -> list[Instr]:
        """Return the additions; in order, if they are in one block."""
        return [each for each in self.members if isinstance(each, Instr)]


_MAKERS = (ops.record, ops.zeros, np.zeros_like, np.empty_like)
_STORES = (ops.setitem, ops.initialize)
_ADDS = (operator.add, operator.sub)


class Varying:
    """The kinds of the values of a loop, its private arrays, and its sums. Raises Unfit for a loop not for lanes."""

    def __init__(self, function: Function, nest: LoopNest, loop: Loop, count: CountedLoop) -> None:
        self.loop, self.count = loop, count
        self.function, self._nest = function, nest
        self._uses = uses(function)
        self._lengths = self._counters()
        self._home = {value: block for block in loop.order for value in block.values}
        self._depths = {instr: nest.depth(block) for block in loop.order for instr in block.instrs}
        self._any_order = function.allows("reassoc")
        self.kinds: dict[Value, Kind] = dict.fromkeys(loop.values, Kind.UNIFORM)
        self.kinds[count.phi] = Kind.UNIT
        self.arrays = self._arrays()
        self.private = {array: None for array in self.arrays if self._is_private(array)}
        self.lanes: dict[Value, None] = {}  # the private arrays that differ
        self.added: dict[Value, list[Instr]] = {}  # other arrays, with what adds to them
        self.sums = [self._sum(phi) for phi in loop.header.phis if phi is not count.phi]
        self._summed = {member for each in self.sums for member in each.members}
        while self._changes():
            pass
        self._check()

    def kind(self, operand: Operand) -> Kind:
        """Return the kind of an operand."""
        return self.kinds.get(operand, Kind.UNIFORM) if isinstance(operand, Value) else Kind.UNIFORM

    def is_uniform(self, operands: Iterable[Operand]) -> bool:
        """Return whether all operands are the same in all iterations, and no private arrays that differ."""
        return all(self.kind(each) is Kind.UNIFORM and each not in self.lanes for each in operands)

    def adds_up(self, loop: Loop) -> bool:
        """Return whether the floats that the iterations of an inner loop hand on are sums."""
        return all(
            running_sum(loop, phi, self._uses) is not None
            for phi in loop.header.phis
            if isinstance(phi.type, types.Float)
        )

    def along(self, index: Iterable[Operand]) -> int | None:
        """Return the axis along which neighbouring iterations access neighbouring elements; None if there is none."""
        kinds = [self.kind(each) for each in index]
        return kinds.index(Kind.UNIT) if sum(kinds) == Kind.UNIT else None

    def read_in_slices(self) -> dict[Value, Slices]:
        """Return the arrays of which iterations read slices of their own, element by element."""
        found: dict[Value, Slices] = {}
        for block in self.loop.order:
            for instr in block.instrs:
                if instr.op is ops.getitem and instr.args[0] in self.arrays and instr.args[0] not in self.private:
                    array, *index = instr.args
                    slices = self._slices(index)
                    if slices is not None and _is_in_lanes(array_type(array).dtype) and isinstance(array, Value):
                        found.setdefault(array, slices)
        return found

    def added_in_slices(self) -> dict[Value, Slices]:
        """Return the arrays to which iterations add in slices of their own, several times to each element."""
        found: dict[Value, Slices] = {}
        for array, adds in self.added.items():
            slices = [self._slices(each.args[2:]) for each in adds]
            first, axes = slices[0], {None if each is None else each.axis for each in slices}
            deep = max(self._depths[each] for each in adds) > self.loop.depth + array_type(array).ndim - 1
            are_sums = all(each.op is ops.accumulate for each in adds)
            if first is not None and axes == {first.axis} and deep and are_sums:
                found[array] = first
        return found

    def added_in_parts(self) -> list[Value]:
        """Return the arrays to which iterations add at the same places."""
        slices = self.added_in_slices()
        return [
            array
            for array, adds in self.added.items()
            if array not in slices and any(self.is_uniform(each.args[2:]) for each in adds)
        ]

    def _slices(self, index: Sequence[Operand]) -> Slices | None:
        """Return which slices an index is in, if it is the number of the iteration and inner loops count the others."""
        axis = self.along(index)
        start = self.count.start
        if axis is None or index[axis] is not self.count.phi or len(index) < 2:
            return None
        if not isinstance(start, Const) or not isinstance(start.value, int) or start.value < 0:
            return None
        bounds: dict[int, Operand] = {}
        for place, each in enumerate(index):
            bound = self._lengths.get(each) if isinstance(each, Phi) else None
            if place != axis and bound is None:
                return None
            if place != axis and bound is not None:
                bounds[place] = bound
        return Slices(axis, bounds)

    def _counters(self) -> dict[Phi, Operand]:
        """Return the counters of inner loops that count to a length, or from it to zero, with the length."""
        found: dict[Phi, Operand] = {}
        pending = list(self.loop.children)
        while pending:
            inner = pending.pop()
            pending += inner.children
            count = counted(inner, self.function)
            if count is None or count.phi.type != types.int64:
                continue
            length: Operand | None = None
            if count.step == 1 and count.start == Const(0, types.int64) and count.condition.op is operator.lt:
                length = count.bound
            elif count.step == -1 and count.bound == Const(0, types.int64) and count.condition.op is operator.ge:
                match count.start:
                    case Instr(op=operator.sub, args=(whole, Const(value=1))):
                        length = whole
            if length is not None and length not in self.loop.values:
                found[count.phi] = length
        return found

    # -------------------------------------------------------------------------------------------------------- arrays

    def _arrays(self) -> dict[Value, None]:
        """Return the arrays that the loop accesses."""
        operands = (arg for block in self.loop.order for instr in block.instrs for arg in instr.args)
        return {each: None for each in operands if isinstance(each, Value) and isinstance(each.type, types.Array)}

    def _is_private(self, array: Value) -> bool:
        """Return whether an array is made by the function for this loop, and accessed by its elements or as a whole."""
        if not isinstance(array, Instr) or array.op not in _MAKERS or array in self.loop.values:
            return False
        if not (array_type(array).aligned and array_type(array).layout == "C" and array_type(array).ndim):
            return False
        for use in self._uses.get(array, ()):
            user = use.user
            if isinstance(user, Instr) and (user.op in (ops.dim, *_MAKERS)):
                continue
            if use.block not in self.loop or not isinstance(user, Instr):
                return False
            if user.op in (*_STORES, ops.accumulate):
                if user.args[1] is array or len(user.args) - 2 != array_type(array).ndim:
                    return False
            elif user.op is ops.getitem:
                if len(user.args) - 1 != array_type(array).ndim:
                    return False
            elif not _reads_whole(user):
                return False
        return True

    # ---------------------------------------------------------------------------------------------------------- sums

    def _sum(self, phi: Phi) -> Sum:
        """Return the sum that a phi of the header stands for. Raises Unfit for another phi."""
        members = running_sum(self.loop, phi, self._uses) if isinstance(phi.type, types.Float) else None
        if members is None:
            raise Unfit
        found = Sum(phi, members, False)
        if self._any_order or all(each.origin is not None for each in found.adds):
            return found
        found.in_order = True
        if len(found.adds) != 1 or len(members) != 2:
            found.counts = self._counts_around(found)
        return found

    def _counts_around(self, sum: Sum) -> tuple[CountedLoop, ...]:
        """Return how the loops around the additions to a sum count. Raises Unfit if terms cannot be kept for each."""
        block, *others = {self._home[each] for each in sum.adds}
        innermost = self._nest.innermost(block)
        if others or innermost is None or not self._nest.tree.dominates(block, innermost.latches[0]):
            raise Unfit
        counts: list[CountedLoop] = []
        while innermost is not self.loop:
            assert innermost is not None
            count = counted(innermost, self.function)
            if count is None or count.step != 1 or count.start != Const(0, count.phi.type):
                raise Unfit
            is_plain = count.comparison is ops.of(operator.lt).comparison and count.phi.type == types.int64
            if not is_plain or count.bound in self.loop.values:
                raise Unfit
            counts.insert(0, count)
            innermost = innermost.parent
        phis = [each for each in sum.members if isinstance(each, Phi)]
        headers = [self.loop.header, *(self._home[count.phi] for count in counts)]
        if len(phis) != len(headers) or {self._home[each] for each in phis} != set(headers):
            raise Unfit
        sum.members = dict.fromkeys(sorted(sum.members, key=lambda each: self._place(each, block)))
        return tuple(counts)

    def _place(self, member: Phi | Instr, block: Block) -> int:
        """Return the place of an addition in its block."""
        return block.instrs.index(member) if isinstance(member, Instr) else -1

    # --------------------------------------------------------------------------------------------------------- kinds

    def _changes(self) -> bool:
        """Find the kinds of all values anew, from what is known so far. Return whether anything has changed."""
        before = dict(self.kinds), len(self.lanes)
        for block in self.loop.order:
            for phi in block.phis:
                if phi not in self._summed and phi is not self.count.phi:
                    self._raise_to(phi, max(map(self.kind, phi.args)))
            for instr in block.instrs:
                if instr not in self._summed:
                    self._find(instr)
        return before != (self.kinds, len(self.lanes))

    def _raise_to(self, value: Value, found: Kind) -> None:
        if found is Kind.UNIFORM:
            return
        if _is_in_lanes(value.type):
            kind = Kind.LANES
        elif isinstance(value.type, types.Integer):
            kind = Kind.UNIT if found is Kind.UNIT and isinstance(value, Instr) else Kind.EACH
        else:
            raise Unfit
        self.kinds[value] = max(kind, self.kinds[value])

    def _find(self, instr: Instr) -> None:
        """Find the kind of an instruction, and which arrays it makes differ."""
        if instr.op in (*_STORES, ops.accumulate):
            array, *others = instr.args
            if array in self.private and not self.is_uniform(others):
                if not _is_in_lanes(array_type(array).dtype):
                    raise Unfit
                assert isinstance(array, Value)
                self.lanes[array] = None
            return
        if instr.op is ops.dim or self.is_uniform(instr.args):
            return
        found = Kind.EACH
        kinds = sorted(map(self.kind, instr.args))
        if instr.op in _ADDS and kinds == [Kind.UNIFORM, Kind.UNIT]:
            is_unit = instr.op is operator.add or self.kind(instr.args[0]) is Kind.UNIT
            found = Kind.UNIT if is_unit and instr.type == self.count.phi.type else Kind.EACH
        self._raise_to(instr, found)

    # -------------------------------------------------------------------------------------------------------- checks

    def _check(self) -> None:
        """Raise Unfit unless everything in the loop can be done for several iterations at a time."""
        blocks, may_raise = self.loop.order, False
        for block in blocks:
            if any(not _is_number(phi.type) for phi in block.phis):
                raise Unfit
            if block is not self.loop.header and any(each.phis for each in block.successors if each not in self.loop):
                raise Unfit
            may_raise = may_raise or any(not self.is_uniform(each.args) and _may_raise(each) for each in block.instrs)
            for instr in block.instrs if block is not self.loop.header else ():
                self._check_instr(instr)
            leaves = any(use.block not in self.loop for value in block.values for use in self._uses.get(value, ()))
            if leaves and block is not self.loop.header:
                raise Unfit
            match block.terminator:
                case Branch(condition=condition) if block is not self.loop.header and not self.is_uniform([condition]):
                    raise Unfit
                case Raise(args=args) if not self.is_uniform(args):
                    raise Unfit
        checks = any(instr.op is ops.refuse for block in blocks for instr in block.instrs)
        if may_raise and (checks or any(each not in self.loop for block in blocks[1:] for each in block.successors)):
            raise Unfit  # which is raised first depends on the order
        for array, adds in self.added.items():
            self._check_added(array, adds)

    def _check_instr(self, instr: Instr) -> None:
        if isinstance(instr.op, Routine):
            raise Unfit
        if instr.op is ops.dim:
            if instr.args[0] in self.loop.values:
                raise Unfit
            return
        if instr.op in (*_STORES, ops.accumulate):
            array, value, *index = instr.args
            is_of_element = isinstance(array.type, types.Array) and len(index) == array_type(array).ndim
            if not is_of_element:
                raise Unfit
            is_alike = array in self.private and array not in self.lanes
            if not is_alike and (not _is_in_lanes(array_type(array).dtype) or value.type != array_type(array).dtype):
                raise Unfit
            if array not in self.private:
                assert isinstance(array, Value)
                self.added.setdefault(array, []).append(instr)
            return
        if instr.op is ops.getitem and self.is_uniform(instr.args):
            return
        what = effect(instr)
        if instr.op is ops.refuse:
            if not self.is_uniform(instr.args):
                raise Unfit
        elif what not in (Effect.PURE, Effect.READ) or ops.of(instr.op).draws:
            raise Unfit
        if not _is_number(instr.type):
            raise Unfit
        if instr.op is ops.getitem and not all(isinstance(each.type, types.Integer) for each in instr.args[1:]):
            raise Unfit
        if any(each in self.lanes for each in instr.args) and instr.op not in (ops.getitem, ops.dim):
            if not _reads_whole(instr) or any(each in self.lanes for each in instr.args[1:]):
                raise Unfit
        elif not self.is_uniform(instr.args) and instr.op is not ops.getitem and not all(map(_is_scalar, instr.args)):
            raise Unfit

    def _check_added(self, array: Value, adds: list[Instr]) -> None:
        """Check what is stored in an array of others: sums, or elements of an iteration's own."""
        if array in self.loop.values or not array_type(array).aligned or not array_type(array).ndim:
            raise Unfit
        if not self._any_order and any(each.op is ops.accumulate and each.origin is None for each in adds):
            raise Unfit
        for use in self._uses.get(array, ()):
            reads = use.block in self.loop and use.user not in adds
            if reads and not (isinstance(use.user, Instr) and use.user.op is ops.dim):
                raise Unfit
        if any(each.op in _STORES for each in adds):
            axes = {self.along(each.args[2:]) for each in adds}
            if axes == {None} or len(axes) != 1:
                raise Unfit
            (axis,) = axes
            assert axis is not None
            if any(each.args[2 + axis] is not self.count.phi for each in adds):
                raise Unfit


def array_type(array: Operand) -> Any:
    """Return the type of an array."""
    assert isinstance(array.type, types.Array)
    return array.type


def _reads_whole(instr: Instr) -> bool:
    """Return whether an instruction computes a number from all elements of its first argument alone."""
    if ops.of(instr.op).role is Role.STORE or effect(instr) is not Effect.READ or not _is_number(instr.type):
        return False
    return instr.op is not ops.getitem and all(isinstance(each, Const) for each in instr.args[1:])


def _may_raise(instr: Instr) -> bool:
    record = ops.of(instr.op)
    return record.raises or record.raises_for_zero


def _is_number(kind: Type) -> bool:
    return isinstance(kind, types.Float | types.Integer | types.Boolean | types.NoneType)


def _is_in_lanes(kind: Type) -> bool:
    return kind in (types.float64, types.float32, types.boolean)


def _is_scalar(operand: Operand) -> bool:
    return isinstance(operand, Const | Undef) or _is_number(operand.type)
