"""The loop that runs several iterations of another one side by side (`iterations.py`)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.building.builder import Builder
from zygote_py.ir.core import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    Jump,
    Operand,
    Phi,
    Raise,
    Return,
    Type,
    Undef,
    Value,
    retarget,
    zero,
)
from zygote_py.ir.passes.lanes.conditions import INDEX as _INDEX, conditions, lengths_of
from zygote_py.ir.passes.lanes.varying import Kind, Sum, Varying, array_type
from zygote_py.ir.passes.lanes.worth import FUNCTIONS
from zygote_py.ir.types import Lanes

WIDE, NARROW = 32, 8
_PARTS = 4  # of what all iterations add to in memory
_array_of: Callable[[Type, int, Any], Type] = types.Array
_ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.neg, operator.truediv, np.divide, max, min)
_WHOLE = frozenset((*_ARITHMETIC, *FUNCTIONS, ops.select))


class Widened:
    """A loop whose iterations are to run side by side, and the loop that runs them."""

    def __init__(self, function: Function, found: Varying, width: int) -> None:
        self._function, self._found = function, found
        self._loop, self._count, self._width = found.loop, found.count, width
        self._scalar: dict[Value, Operand] = {}  # uniform values, and the first of those that differ by the lane
        self._wide: dict[Value, Operand] = {}
        self._each: dict[Value, list[Operand]] = {}
        self._arrays: dict[Value, Instr] = {}  # private ones, and parts of sums, with an element for each lane
        self._terms: dict[Sum, Instr] = {}  # those of sums that are kept until all of a block are known
        self._views: dict[tuple[Value, int], Instr] = {}
        loc = self._loop.header.loc
        self._before, self._made, self._after, self._join = (Block(loc) for _ in range(4))
        self._blocks = {block: Block(block.loc) for block in self._loop.order}
        self._sums = {member: each for each in found.sums for member in each.members}
        self._slices = found.read_in_slices()
        self._added_slices = found.added_in_slices()

    def build(self, entering: Block) -> tuple[Block, Block]:
        """Add the loop after a block that precedes the one there is. Return its header, and the block after it."""
        header = self._loop.header
        self._start, self._entering = self._count.phi.incoming[entering], entering
        blocks, stop = self._bounds()
        retarget(entering, header, self._before)
        self._make_arrays()
        self._begin(blocks)
        for block in self._loop.order:
            if block is not header:
                self._copy(block)
        for block in self._loop.order:
            if block is not header:
                self._connect(block)
        self._end(stop)
        self._function.blocks += [self._before, self._made, *self._blocks.values(), self._after, self._join]
        return self._blocks[header], self._join

    # ------------------------------------------------------------------------------------------------- around the loop

    def _bounds(self) -> tuple[Instr, Instr]:
        """Begin with the number of blocks of iterations, unless there are too few; return it, and where they end."""
        b = Builder(self._before, self._loop.header.loc)
        start, width = self._start, Const(self._width, _INDEX)
        length = b.call(operator.sub, self._count.bound, start, type=_INDEX)
        blocks = b.call(operator.floordiv, length, width, type=_INDEX)
        enough = b.call(operator.ge, length, width, type=types.boolean)
        for condition in conditions(b, self._found, length, self._width == WIDE):
            enough = b.call(operator.and_, enough, condition, type=types.boolean)
        b.block.terminator = Branch(enough, self._made, self._join)
        b = Builder(self._made, self._loop.header.loc)
        whole = b.call(operator.mul, blocks, width, type=_INDEX)
        return blocks, b.call(operator.add, start, whole, type=_INDEX)

    def _make_arrays(self) -> None:
        """Make an array with an element for each lane of each private one that differs."""
        b = Builder(self._made, self._loop.header.loc)
        for array in self._found.lanes:
            assert isinstance(array, Instr)
            op = ops.zeros if ops.of(array.op).contents == "zero" else ops.record
            lengths = array.args if array.op in (ops.zeros, ops.record) else lengths_of(b, array)
            self._arrays[array] = b.call(
                op, *lengths, type=self._in_lanes(array, array_type(array).ndim), hint=f"{array.hint}_lanes"
            )
        for op, axes in ((ops.record, self._slices), (ops.zeros, self._added_slices)):
            for array, slices in axes.items():
                lengths = lengths_of(b, array)
                del lengths[slices.axis]
                kind = self._in_lanes(array, array_type(array).ndim - 1)
                self._arrays[array] = b.call(op, *lengths, type=kind, hint=f"{array.hint}_slices")

        for each in self._found.sums:
            if each.counts is not None:
                bounds = [count.bound for count in each.counts]
                kind = _array_of(Lanes(each.phi.type, self._width), len(bounds) + 1, "C")
                number = Const(len(each.adds), _INDEX)
                self._terms[each] = b.call(ops.record, *bounds, number, type=kind, hint=f"{each.phi.hint}_terms")

    def _begin(self, blocks: Instr) -> None:
        """Make the header, which counts the blocks, and what it hands on: the number of the iteration, and sums."""
        loop, header = self._loop, self._blocks[self._loop.header]
        self._made.terminator = Jump(header)
        counter = Phi(_INDEX, "block", loop.header.loc)
        header.phis.append(counter)
        b = Builder(header, loop.header.loc)
        more = b.call(operator.lt, counter, blocks, type=types.boolean)
        end = loop.header.terminator
        assert isinstance(end, Branch)
        first = self._blocks[end.then if end.then in loop else end.orelse]
        self._first = Block(loop.header.loc)
        self._function.blocks.append(self._first)
        header.terminator = Branch(more, self._first, self._after)
        b = Builder(self._first, loop.header.loc)
        done = b.call(operator.mul, counter, Const(self._width, _INDEX), type=_INDEX)
        self._scalar[self._count.phi] = b.call(operator.add, self._start, done, type=_INDEX, hint=self._count.phi.hint)
        for array, slices in self._slices.items():
            self._move(b, ops.copy_slices, array, slices.axis)
        self._first.terminator = Jump(first)
        latch = self._blocks[loop.latches[0]]
        following = Instr(operator.add, (counter, Const(1, _INDEX)), _INDEX, "block", loop.header.loc)
        counter.incoming = {self._made: Const(0, _INDEX), latch: following}
        self._following = following
        for each in self._found.sums:
            made = self._new_phi(each.phi)
            header.phis.append(made)
            made.incoming = {self._made: each.phi.incoming[self._entering] if each.in_order else zero_of(made.type)}

    def _move(self, b: Builder, op: ops.Op, array: Value, axis: int) -> None:
        """Copy the slices of the iterations of a block, or add to them."""
        both = (array, self._arrays[array]) if op is ops.add_to_slices else (self._arrays[array], array)
        numbers = Const(self._width, _INDEX), Const(axis, _INDEX)
        b.call(op, *both, *numbers, self._scalar[self._count.phi], type=types.none)

    def _end(self, stop: Instr) -> None:
        """Add up what the lanes have summed, and go on with the iterations that are left."""
        header, loop = self._loop.header, self._loop
        latch = self._blocks[loop.latches[0]]
        for array, slices in self._added_slices.items():
            self._move(Builder(latch, header.loc), ops.add_to_slices, array, slices.axis)
        latch.instrs.append(self._following)
        b = Builder(self._after, header.loc)
        for array in self._found.added:
            if array in self._arrays and array not in self._added_slices:
                b.call(ops.add_lanes, array, self._arrays[array], Const(_PARTS, _INDEX), type=types.none)
        for phi in header.phis:
            merged = Phi(phi.type, phi.hint, phi.loc)
            self._join.phis.append(merged)
            start = phi.incoming.pop(self._entering)
            phi.incoming[self._join] = merged
            merged.incoming = {self._before: start, self._after: self._after_lanes(b, phi, start, stop, latch)}
        self._after.terminator = Jump(self._join)
        self._join.terminator = Jump(header)

    def _after_lanes(self, b: Builder, phi: Phi, start: Operand, stop: Instr, latch: Block) -> Operand:
        """Return the value of a phi of the header after the blocks of iterations."""
        if phi is self._count.phi:
            return stop
        each = self._sums[phi]
        last = phi.incoming[self._loop.latches[0]]
        assert isinstance(last, Value)
        made = (self._scalar if each.in_order else self._wide)[phi]
        assert isinstance(made, Phi)
        if each.counts is not None:
            at_end, number = Builder(latch, phi.loc), Const(self._width, _INDEX)
            terms = self._terms[each]
            made.incoming[latch] = at_end.call(ops.added_in_order, made, terms, number, type=phi.type, hint=phi.hint)
        else:
            made.incoming[latch] = (self._scalar if each.in_order else self._wide)[last]
        if each.in_order:
            return made
        total = start
        for lane in range(self._width):
            total = b.call(operator.add, total, self._lane(b, made, lane), type=phi.type, hint=phi.hint)
        return total

    # -------------------------------------------------------------------------------------------------- in the loop

    def _new_phi(self, phi: Phi) -> Phi:
        """Return the phi that stands for one of the loop, of a number or of several."""
        each = self._sums.get(phi)
        in_lanes = not each.in_order if each is not None else self._found.kind(phi) is Kind.LANES
        made = Phi(Lanes(phi.type, self._width) if in_lanes else phi.type, phi.hint, phi.loc)
        (self._wide if in_lanes else self._scalar)[phi] = made
        return made

    def _copy(self, block: Block) -> None:
        """Copy the phis and instructions of a block; the operands of the phis are set later."""
        made = self._blocks[block]
        for phi in block.phis:
            if self._is_of_terms(phi):
                continue
            if self._found.kind(phi) is Kind.EACH:
                copies = [Phi(phi.type, phi.hint, phi.loc) for _ in range(self._width)]
                made.phis += copies
                self._each[phi] = list(copies)
            else:
                made.phis.append(self._new_phi(phi))
        b = Builder(made)
        for instr in block.instrs:
            b.loc, b.origin = instr.loc, instr.origin
            self._copy_instr(b, instr)

    def _is_of_terms(self, phi: Phi) -> bool:
        """Return whether a phi is of a sum whose terms are kept."""
        return phi in self._sums and self._sums[phi].counts is not None

    def _copy_instr(self, b: Builder, instr: Instr) -> None:
        found = self._found
        array = instr.args[0] if instr.args else None
        if instr in self._sums:
            self._add(b, instr, self._sums[instr])
        elif instr.op in (ops.setitem, ops.initialize, ops.accumulate):
            self._store(b, instr)
        elif instr.op is ops.dim:
            self._scalar[instr] = b.add(instr.copy())
        elif instr.op is ops.getitem and array in found.lanes and found.is_uniform(instr.args[1:]):
            args = (self._arrays[array], *map(self._scalar_of, instr.args[1:]))
            self._wide[instr] = b.add(self._like(instr, args))
        elif isinstance(array, Value) and instr.op is ops.getitem and self._is_of_slice(array, instr.args[1:]):
            args = (self._arrays[array], *self._in_slice(array, instr.args[1:]))
            self._wide[instr] = b.add(self._like(instr, args))
        elif found.is_uniform(instr.args) or found.kind(instr) is Kind.UNIT:
            self._scalar[instr] = b.add(instr.copy(tuple(map(self._scalar_of, instr.args))))
        elif found.kind(instr) is Kind.LANES and _is_whole(instr) and self._are_wide(instr.args):
            made = b.add(self._like(instr, tuple(map(self._wide_of, instr.args))))
            if instr.op is ops.select and isinstance(made.args[0].type, Lanes):
                made.op = ops.select_lanes
            elif instr.op is ops.select:
                made.args = (made.args[0], *(self._spread(b, each) for each in instr.args[1:]))
            self._wide[instr] = made
        else:
            parts: list[Operand] = []
            for lane in range(self._width):
                parts.append(b.add(instr.copy(tuple(self._lane_of(b, each, lane) for each in instr.args))))
            if found.kind(instr) is Kind.LANES:
                self._wide[instr] = b.call(ops.lanes, *parts, type=Lanes(instr.type, self._width), hint=instr.hint)
            else:
                self._each[instr] = parts

    def _like(self, instr: Instr, args: tuple[Operand, ...]) -> Instr:
        made = instr.copy(args)
        made.type = Lanes(instr.type, self._width)
        return made

    def _are_wide(self, args: Sequence[Operand]) -> bool:
        return all(self._found.kind(each) in (Kind.LANES, Kind.UNIFORM) for each in args)

    def _add(self, b: Builder, instr: Instr, sum: Sum) -> None:
        """Add to a sum: the number of each lane one by one, or to the sum of each lane."""
        (place,) = (place for place, each in enumerate(instr.args) if each in sum.members)
        addend = instr.args[1 - place]
        if sum.counts is not None:
            term = self._spread(b, addend)
            if instr.op is operator.sub:
                term = b.call(operator.neg, term, type=term.type)
            index = [*(self._scalar_of(count.phi) for count in sum.counts), Const(sum.adds.index(instr), _INDEX)]
            b.call(ops.setitem, self._terms[sum], term, *index, type=types.none)
            return
        before = instr.args[place]
        assert isinstance(before, Value)
        if not sum.in_order:
            args = [self._wide[before], self._wide_of(addend)]
            self._wide[instr] = b.add(self._like(instr, tuple(args if place == 0 else args[::-1])))
            return
        total = self._scalar[before]
        for lane in range(self._width):
            both = [total, self._lane_of(b, addend, lane)]
            total = b.add(instr.copy(tuple(both if place == 0 else both[::-1])))
        self._scalar[instr] = total

    def _wide_of(self, operand: Operand, is_sum: bool = False) -> Operand:
        """Return several numbers, or the number that stands for as many equal ones."""
        is_wide = is_sum or self._found.kind(operand) is Kind.LANES
        return self._wide[operand] if is_wide and isinstance(operand, Value) else self._scalar_of(operand)

    def _is_of_slice(self, array: Value, index: Sequence[Operand]) -> bool:
        """Return whether an element is in the slice of its iteration, which is in lanes."""
        slices = self._slices.get(array)
        if slices is None or self._found.along(index) != slices.axis:
            return False
        return index[slices.axis] is self._count.phi

    def _in_slice(self, array: Value, index: Sequence[Operand]) -> list[Operand]:
        axis = (self._slices.get(array) or self._added_slices[array]).axis
        return [self._scalar_of(each) for place, each in enumerate(index) if place != axis]

    def _store(self, b: Builder, instr: Instr) -> None:
        array, value, *index = instr.args
        assert isinstance(array, Value)
        found = self._found
        if array in self._added_slices:
            b.add(instr.copy((self._arrays[array], self._spread(b, value), *self._in_slice(array, index))))
            return
        is_own = array in found.lanes
        if (array in found.private and not is_own) or (is_own and found.is_uniform(index)):
            args = (self._arrays[array], self._spread(b, value)) if is_own else (array, self._scalar_of(value))
            b.add(instr.copy((*args, *map(self._scalar_of, index))))
        elif not is_own and found.is_uniform(index):
            target = array if self._width == NARROW else self._parts_of(array)
            b.add(instr.copy((target, self._folded(b, value), *map(self._scalar_of, index))))
        else:
            for lane in range(self._width):
                target = self._view(array, lane) if is_own else array
                rest = [self._lane_of(b, each, lane) for each in (value, *index)]
                b.add(instr.copy((target, *rest)))

    def _parts_of(self, array: Value) -> Instr:
        """Return the array of the parts of what all iterations add to."""
        if array not in self._arrays:
            b = Builder(self._made, self._loop.header.loc)
            kind = self._in_lanes(array, array_type(array).ndim, _PARTS)
            lengths = lengths_of(b, array)
            self._arrays[array] = b.call(ops.zeros, *lengths, type=kind, hint=f"{array.hint}_parts")
        return self._arrays[array]

    def _folded(self, b: Builder, operand: Operand) -> Operand:
        """Return the sums of the numbers of some lanes each, or of all if these are few."""
        count = 1 if self._width == NARROW else _PARTS
        kind, times = Lanes(operand.type, count), float(self._width // count)
        if self._found.kind(operand) is Kind.LANES:
            made = b.call(ops.folded, self._spread(b, operand), Const(count, _INDEX), type=kind)
            return made if count > 1 else self._lane(b, made, 0)
        if isinstance(operand, Const) and isinstance(operand.value, float):
            return Const(times * operand.value, kind if count > 1 else operand.type)
        product = b.call(operator.mul, self._scalar_of(operand), Const(times, operand.type), type=operand.type)
        return b.call(ops.lanes, *[product] * count, type=kind) if count > 1 else product

    def _view(self, array: Value, lane: int) -> Instr:
        """Return the elements of one lane of a private array."""
        if (array, lane) not in self._views:
            b = Builder(self._made, self._loop.header.loc)
            kind = _array_of(array_type(array).dtype, array_type(array).ndim, "A")
            number = Const(lane, _INDEX)
            self._views[array, lane] = b.call(
                ops.lane_of_array, self._arrays[array], number, type=kind, hint=array.hint
            )
        return self._views[array, lane]

    def _scalar_of(self, operand: Operand) -> Operand:
        return self._scalar.get(operand, operand) if isinstance(operand, Value) else operand

    def _spread(self, b: Builder, operand: Operand) -> Operand:
        """Return several numbers: equal ones, if the operand is a single one."""
        if self._found.kind(operand) is Kind.LANES:
            assert isinstance(operand, Value)
            return self._wide[operand]
        kind = Lanes(operand.type, self._width)
        match operand:
            case Const(value=value):
                return Const(value, kind)
            case Undef():
                return Undef(kind)
            case _:
                return b.call(ops.lanes, *[self._scalar_of(operand)] * self._width, type=kind)

    def _lane_of(self, b: Builder, operand: Operand, lane: int) -> Operand:
        """Return the operand in one of the iterations."""
        if not isinstance(operand, Value):
            return operand
        if operand in self._found.lanes:
            return self._view(operand, lane)
        match self._found.kind(operand):
            case Kind.UNIT if lane:
                first = self._scalar_of(operand)
                return b.call(operator.add, first, Const(lane, _INDEX), type=_INDEX, hint=operand.hint)
            case Kind.LANES:
                return self._lane(b, self._wide[operand], lane)
            case Kind.EACH:
                return self._each[operand][lane]
        return self._scalar_of(operand)

    def _lane(self, b: Builder, several: Operand, lane: int) -> Instr:
        assert isinstance(several.type, Lanes)
        return b.call(ops.lane, several, Const(lane, _INDEX), type=several.type.dtype)

    def _connect(self, block: Block) -> None:
        """Set the operands of the phis of a block, and its terminator."""
        made = self._blocks[block]
        for phi in block.phis:
            for pred, operand in () if self._is_of_terms(phi) else phi.incoming.items():
                at = self._copied(pred)
                b = Builder(at)
                if phi in self._each:
                    for lane, copy in enumerate(self._each[phi]):
                        assert isinstance(copy, Phi)
                        copy.incoming[at] = self._lane_of(b, operand, lane)
                elif phi in self._wide:
                    copy = self._wide[phi]
                    assert isinstance(copy, Phi)
                    is_sum = phi in self._sums
                    copy.incoming[at] = self._wide_of(operand, is_sum) if is_sum else self._spread(b, operand)
                else:
                    copy = self._scalar[phi]
                    assert isinstance(copy, Phi)
                    copy.incoming[at] = self._scalar_of(operand)
        match block.terminator:
            case Jump(target=target):
                made.terminator = Jump(self._blocks.get(target, target))
            case Branch(condition=condition, then=then, orelse=orelse):
                targets = [self._blocks.get(each, each) for each in (then, orelse)]
                made.terminator = Branch(self._scalar_of(condition), *targets)
            case Raise(exception=exception, args=args):
                made.terminator = Raise(exception, tuple(map(self._scalar_of, args)))
            case Return():
                raise AssertionError("a block of a loop returns")

    def _copied(self, block: Block) -> Block:
        """Return the block that stands for one of the loop where it precedes another."""
        return self._first if block is self._loop.header else self._blocks[block]

    def _in_lanes(self, array: Value, ndim: int, count: int | None = None) -> Type:
        """Return the type of an array that has several numbers where another has one."""
        return _array_of(Lanes(array_type(array).dtype, count or self._width), ndim, "C")


def zero_of(kind: Type) -> Const:
    """Return the zero of a number, or of several."""
    return Const(0.0, kind) if isinstance(kind, Lanes) else zero(kind)


def _is_whole(instr: Instr) -> bool:
    """Return whether an operation acts on several numbers at once: of floats of one kind."""
    operands = instr.args[1:] if instr.op is ops.select else instr.args
    kinds = {each.type for each in operands}
    if instr.op is ops.select:
        return kinds == {instr.type}
    if len(kinds) != 1 or not isinstance(operands[0].type, types.Float):
        return False
    if ops.of(instr.op).comparison is not None:
        return True
    return instr.op in _WHOLE and kinds == {instr.type} and (instr.op not in (max, min) or len(operands) == 2)
