"""Iterables of loops as counters: `for i, v in enumerate(x)` counts `k` from 0 to `len(x)`.

An `Iteration` is made where the iterator is made (`getiter`), before the loop. It says from where to where the loop
counts and, given the counter, what the element is; ranges count by their own step. The instructions go where the
`Emitter` stands at that time: the length before the loop, the element at the start of its body.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from numba import types

from zygote_py.frontend.values.bundles import LoweredValue, components, leaves_of
from zygote_py.frontend.values.emitter import Counter, Emitter, Iteration
from zygote_py.ir import Const, Operand, Type, components_of, ops
from zygote_py.ir.lazy_dataclass import dataclass

INT = types.int64
ZERO = Const(0, INT)
ONE = Const(1, INT)


def counter_of(iteration: Iteration, emit: Emitter) -> Counter:
    """Return how a loop counts: a range with a constant step by its elements, everything else by position."""
    if isinstance(iteration, OverCheckpointed):
        counter = counter_of(iteration.part, emit)
        return replace(counter, stop=iteration.marked(counter.stop, emit))
    if isinstance(iteration, OverRange) and iteration.constant_step:
        kind = INT if iteration.type == types.int32 else iteration.type  # loops that count so have a known length
        bounds = emit.cast(iteration.start, kind), emit.cast(iteration.stop, kind)
        return Counter(*bounds, iteration.constant_step, kind)
    return Counter(ZERO, iteration.length(emit), 1, INT)


def element_of(iteration: Iteration, counter: Operand, emit: Emitter) -> LoweredValue:
    """Return the element for a value of the counter."""
    if isinstance(iteration, OverCheckpointed):
        return element_of(iteration.part, counter, emit)
    if isinstance(iteration, OverRange) and iteration.constant_step:
        return LoweredValue(iteration.type, (emit.cast(counter, iteration.type),))
    return iteration.at(counter, emit)


@dataclass(frozen=True, slots=True, eq=False)
class OverRange(Iteration):
    """`range(start, stop, step)`"""

    start: Operand
    stop: Operand
    step: Operand
    type: Type

    def length(self, emit: Emitter) -> Operand:
        """Return the number of elements."""
        if self.start == Const(0, self.start.type) and self.constant_step == 1:
            # Only ever compared with a counter from 0 or with another length, so a negative one need not be made 0.
            return emit.cast(self.stop, INT)
        return emit.emit(ops.range_length, (self.start, self.stop, self.step), INT)

    def at(self, k: Operand, emit: Emitter) -> LoweredValue:
        """Return element number `k`."""
        offset = emit.cast(k, self.type)
        if self.constant_step != 1:
            offset = emit.emit(operator.mul, (offset, self.step), self.type)
        if self.start == Const(0, self.start.type):
            return LoweredValue(self.type, (offset,))
        return LoweredValue(self.type, (emit.emit(operator.add, (self.start, offset), self.type),))

    @property
    def constant_step(self) -> int:
        """Return the step if it is a constant, else 0."""
        return self.step.value if isinstance(self.step, Const) and isinstance(self.step.value, int) else 0


@dataclass(frozen=True, slots=True, eq=False)
class OverArray(Iteration):
    """The elements of a one-dimensional array, the rows of one of more dimensions, or the characters of a string."""

    array: Operand
    element_type: Type

    def length(self, emit: Emitter) -> Operand:
        """Return the number of elements."""
        if isinstance(self.array.type, types.Array):
            return dim(emit, self.array, 0)
        return emit.emit(builtins.len, (self.array,), INT)

    def at(self, k: Operand, emit: Emitter) -> LoweredValue:
        """Return element number `k`."""
        return LoweredValue(self.element_type, (emit.emit(ops.getitem, (self.array, k), self.element_type),))


@dataclass(frozen=True, slots=True, eq=False)
class OverTuple(Iteration):
    """The components of a tuple whose components have one type."""

    whole: LoweredValue
    arrays: tuple[Operand, ...] = ()  # which hold the same numbers, one for each leaf of a component

    def length(self, emit: Emitter) -> Operand:
        """Return the number of elements."""
        return Const(len(components_of(self.whole.type)), INT)

    def at(self, k: Operand, emit: Emitter) -> LoweredValue:
        """Return element number `k`."""
        if not self.arrays:
            return pick(self.whole, k, emit)
        type_ = components_of(self.whole.type)[0]
        pairs = zip(self.arrays, leaves_of(type_), strict=True)
        return LoweredValue(type_, tuple(emit.emit(ops.getitem, (array, k), leaf) for array, leaf in pairs))


def dim(emit: Emitter, array: Operand, axis: int) -> Operand:
    """Return the extent of an array along an axis."""
    return emit.emit(ops.dim, (array, Const(axis, INT)), INT)


def pick(bundle: LoweredValue, index: Operand, emit: Emitter, type: Type | None = None) -> LoweredValue:
    """Return the component of a tuple with a number known only at run time, which has this type, if one is given."""
    parts = components(bundle)
    if type is not None:
        # Numba takes a variable for what it holds at any time: an integer in the tuple may count as a float.
        converted = [_converted(part, type, emit) for part in parts]
        possible = [part for part in converted if part is not None]
        if len(possible) == 1:
            return possible[0]
        if possible:
            parts = tuple(possible[0] if part is None else part for part in converted)
    if not parts:
        return bundle  # the loop over it runs no iteration
    leaves: list[Operand] = []
    for leaf, *choices in zip(leaves_of(parts[0].type), *(part.leaves for part in parts), strict=True):
        picked = emit.emit(ops.pick, (index, *choices), leaf)
        leaves.append(choices[0] if isinstance(leaf, types.NoneType) else picked)  # no variable holds `None`
    return LoweredValue(parts[0].type, tuple(leaves))


def _converted(part: LoweredValue, type: Type, emit: Emitter) -> LoweredValue | None:
    """Return a component of a tuple as one of this type; None if it cannot be one."""
    if part.type == type:
        return part
    own = types.unliteral(part.type)
    if own == type:
        return LoweredValue(type, part.leaves)
    is_wider = isinstance(type, types.Number) and (own == types.boolean or isinstance(own, types.Number))
    if not is_wider or _RANK.index(_kind(own)) > _RANK.index(_kind(type)) or len(part.leaves) != 1:
        return None
    return LoweredValue(type, (emit.cast(part.leaves[0], type),))


_RANK = (types.Boolean, types.Integer, types.Float, types.Complex)


def _kind(type: Type) -> Any:
    return next(kind for kind in _RANK if isinstance(type, kind))


@dataclass(frozen=True, slots=True, eq=False)
class OverZip(Iteration):
    """`zip(*parts)`"""

    parts: tuple[Iteration, ...]
    element_type: Type

    def length(self, emit: Emitter) -> Operand:
        """Return the number of elements."""
        lengths = list(dict.fromkeys(part.length(emit) for part in self.parts))
        known = [length for length in lengths if isinstance(length, Const)]
        if len(known) > 1:
            least = min(known, key=lambda length: length.value)  # type: ignore[return-value,arg-type]
            lengths = [length for length in lengths if length is least or length not in known]
        return lengths[0] if len(lengths) == 1 else emit.emit(builtins.min, tuple(lengths), INT)

    def at(self, k: Operand, emit: Emitter) -> LoweredValue:
        """Return element number `k`."""
        return LoweredValue(self.element_type, tuple(leaf for part in self.parts for leaf in part.at(k, emit).leaves))


@dataclass(frozen=True, slots=True, eq=False)
class OverEnumerate(Iteration):
    """`enumerate(part, start)`"""

    part: Iteration
    start: Operand
    element_type: Type

    def length(self, emit: Emitter) -> Operand:
        """Return the number of elements."""
        return self.part.length(emit)

    def at(self, k: Operand, emit: Emitter) -> LoweredValue:
        """Return element number `k`."""
        number = k if self.start == ZERO else emit.emit(operator.add, (k, self.start), INT)
        return LoweredValue(self.element_type, (number, *self.part.at(k, emit).leaves))


@dataclass(frozen=True, slots=True, eq=False)
class OverCheckpointed(Iteration):
    """`checkpointed(part, segments, snapshots)`, 0 if not given: where the loop stops counting is marked with them."""

    part: Iteration
    segments: Operand
    snapshots: Operand

    def marked(self, stop: Operand, emit: Emitter) -> Operand:
        """Return the bound of the counter, marked with the segments and snapshots."""
        return emit.emit(ops.checkpointed, (stop, self.segments, self.snapshots), stop.type, "stop")

    def length(self, emit: Emitter) -> Operand:
        """Return the number of elements."""
        return self.marked(self.part.length(emit), emit)

    def at(self, k: Operand, emit: Emitter) -> LoweredValue:
        """Return element number `k`."""
        return self.part.at(k, emit)


@dataclass(frozen=True, slots=True, eq=False)
class OverIndices(Iteration):
    """`np.ndindex(lengths)`: tuples of integers, the last changing fastest; `np.ndenumerate(array)` and `array.flat`.

    With an array, the element is returned too, after the tuple or, if `bare`, without it.
    """

    lengths: tuple[Operand, ...]
    element_type: Type
    array: Operand | None = None
    bare: bool = False

    def begin(self, emit: Emitter) -> Iteration:
        """Return the iteration of a loop; `array.flat` asks for the lengths where the loop begins."""
        return self if self.lengths or self.array is None else replace(self, lengths=shape_of(emit, self.array))

    def length(self, emit: Emitter) -> Operand:
        """Return the number of elements."""
        return product(emit, self.lengths)

    def at(self, k: Operand, emit: Emitter) -> LoweredValue:
        """Return element number `k`."""
        index = unravel(k, self.lengths, emit)
        if self.array is None:
            return LoweredValue(self.element_type, index)
        assert isinstance(self.array.type, types.Array)
        element = emit.emit(ops.getitem, (self.array, *index), self.array.type.dtype)
        return LoweredValue(self.element_type, (element,) if self.bare else (*index, element))


def is_used_up(over: Iteration) -> bool:
    """Return whether a loop exhausts what it iterates over: iterators are used up, the underlying objects are not."""
    if isinstance(over, OverCheckpointed):
        return is_used_up(over.part)
    return isinstance(over, OverZip | OverEnumerate | OverIndices)


def shape_of(emit: Emitter, array: Operand) -> tuple[Operand, ...]:
    """Return the lengths of all axes of an array; none of a number."""
    return tuple(dim(emit, array, axis) for axis in range(getattr(array.type, "ndim", 0)))


def product(emit: Emitter, lengths: Sequence[Operand]) -> Operand:
    """Return the product of lengths, 1 if there are none."""
    return reduce(lambda a, b: emit.emit(operator.mul, (a, b), INT), lengths) if lengths else ONE


def unravel(k: Operand, lengths: tuple[Operand, ...], emit: Emitter) -> tuple[Operand, ...]:
    """Return the indices of element number `k` of an array of these lengths, in C order."""
    index: list[Operand] = []
    for length in lengths[:0:-1]:
        index.insert(0, emit.emit(operator.mod, (k, length), INT))
        k = emit.emit(operator.floordiv, (k, length), INT)
    return (k, *index) if lengths else ()
