"""Shape analysis: symbolic lengths of the axes of arrays at compile time.

    %y = record %n : f64[:]             (n,)
    %v = getitem %x, 0, None, %s        (1, x.shape[1] - 1)     where %s is `1:`
    %t = add %x, %y : f64[:]            the common length of x.shape[0] and n

Two lengths with the same key are equal in every execution. Lengths with different keys may still be equal. The function
is not changed here: `ir.arrays.writer` computes lengths where necessary.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Hashable, Sequence

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import is_view
from zygote_py.ir.arrays.classify import is_elementwise, ndim, reduced_axes
from zygote_py.ir.core import Const, Instr, Loc, Operand, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.types import itemsize

INDEX = types.int64

# Operations whose result has the shape of an argument, by the number of that.
_LIKE: dict[ops.Op, int] = {
    np.zeros_like: 0,
    np.empty_like: 0,
    np.ones_like: 0,
    np.copy: 0,
    np.sort: 0,
    np.argsort: 0,
    np.linalg.inv: 0,
    np.linalg.cholesky: 0,
    np.linalg.solve: 1,
}


@dataclass(frozen=True, slots=True)
class Length:
    """The length of an axis: `operand`, or that of `axis` of `array`, or the common broadcast length of `parts`."""

    key: Hashable
    operand: Operand | None = None
    array: Value | None = None
    axis: int = 0
    parts: tuple[Length, ...] = ()

    @property
    def is_one(self) -> bool:
        """Return whether it is the constant 1."""
        return isinstance(self.operand, Const) and self.operand.value == 1


Shape = tuple[Length, ...]


def constant_length(value: int) -> Length:
    """Return a length that is a compile-time constant."""
    return Length(("const", value), Const(value, INDEX))


ONE = constant_length(1)


def common(lengths: Sequence[Length]) -> Length:
    """Return the length that axes of these lengths broadcast to."""
    atoms: dict[Hashable, Length] = {}
    for length in lengths:
        for part in length.parts or (length,):
            if not part.is_one:
                atoms.setdefault(part.key, part)
    if not atoms:
        return ONE
    found = tuple(atoms.values())
    return found[0] if len(found) == 1 else Length(frozenset(atoms), parts=found)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that arrays of these shapes broadcast to."""
    rank = max(map(len, shapes), default=0)
    return tuple(
        common([shape[axis - rank + len(shape)] for shape in shapes if axis >= rank - len(shape)])
        for axis in range(rank)
    )


class Shapes:
    """The shapes of the arrays of a function."""

    def __init__(self) -> None:
        self._known: dict[Value, Shape] = {}

    def of(self, operand: Operand) -> Shape:
        """Return the lengths of the axes; none for a scalar."""
        if not isinstance(operand, Value) or not isinstance(operand.type, types.Array):
            return ()
        if operand not in self._known:
            found = self._find(operand)
            asked = self._asked(operand)
            self._known[operand] = asked if found is None or len(found) != len(asked) else found
        return self._known[operand]

    def length(self, operand: Operand) -> Length:
        """Return the length that an integer operand represents."""
        match operand:
            case Const(int(value)) if value >= 0:
                return constant_length(value)
            case Instr(op=ops.dim, args=(Value() as array, Const(int(axis)))):
                return self.of(array)[axis]
            case Instr(op=ops.const, args=(Const() as value,)):
                return self.length(value)
            case _:
                return Length(operand, operand)

    def _asked(self, array: Value) -> Shape:
        return tuple(Length(("dim", array, axis), array=array, axis=axis) for axis in range(ndim(array)))

    def _find(self, array: Value) -> Shape | None:
        if not isinstance(array, Instr):
            return None
        args = array.args
        if ops.of(array.op).role is ops.Role.ALLOCATE:
            return self._given(array, args)
        if array.op is np.reshape:
            return self._given(array, args[1:])
        if array.op is np.transpose and len(args) == 1:
            return self.of(args[0])[::-1]
        if array.op is ops.view:
            same = itemsize(array.type) == itemsize(args[0].type)
            return self.of(args[0]) if same else (*self.of(args[0])[:-1], *self._asked(array)[-1:])
        if array.op is np.expand_dims and len(args) == 2 and isinstance(args[1], Const):
            return _with_new_axis(self.of(args[0]), args[1].value, ndim(array))
        if array.op is ops.getitem:
            index = array.args[1:]
            return self._view(array, args[0], index) if is_view(array) else gathered(self, args[0], index)
        if is_elementwise(array):
            return broadcast([self.of(arg) for arg in args])
        if array.op in _LIKE and len(args) > _LIKE[array.op] and ndim(args[_LIKE[array.op]]) == ndim(array):
            return self.of(args[_LIKE[array.op]])
        if array.op in (np.dot, operator.matmul) and len(args) == 2:
            return (*self.of(args[0])[:-1], *self.of(args[1])[1:]) if max(map(ndim, args)) <= 2 else None
        if lengths := ops.of(array.op).lengths:
            return tuple(self.of(args[number])[axis] for number, axis in lengths[: ndim(array)])
        if array.op is np.sum and (axes := reduced_axes(array)) is not None:
            return tuple(length for axis, length in enumerate(self.of(args[0])) if axis not in axes)
        return None

    def _given(self, array: Instr, lengths: tuple[Operand, ...]) -> Shape:
        """Return the lengths passed to an allocation; `reshape` accepts -1 for one of them."""
        asked = self._asked(array)
        if len(asked) != len(lengths):
            return asked
        trusted = array.op is not np.reshape
        return tuple(
            self.length(operand) if operand.type == INDEX and (trusted or _is_length(operand)) else own
            for operand, own in zip(lengths, asked, strict=True)
        )

    def _view(self, array: Instr, base: Operand, index: tuple[Operand, ...]) -> Shape:
        source = self.of(base)
        asked = self._asked(array)
        found: list[Length] = []
        axis = 0
        for item in full_index(index, len(source)):
            match item.type:
                case types.NoneType():
                    found.append(ONE)
                    continue
                case types.SliceType():
                    found.append(self._slice(item, source[axis], asked[len(found)]))
                case types.Integer():
                    pass
                case _:
                    return asked
            axis += 1
        return tuple(found) + source[axis:]

    def _slice(self, item: Operand, whole: Length, own: Length) -> Length:
        bounds = slice_bounds(item)
        if bounds is None:
            return own
        start, stop, step = (self._bound(bound) for bound in bounds)
        if step in (None, 1, -1) and start is None and stop is None:
            return whole
        if step in (None, 1) and (start is None or _whole(start) >= 0) and (stop is None or _whole(stop, 1) < 0):
            # max(n - left_out, 0)
            left_out = (_whole(start) if start is not None else 0) - (_whole(stop) if stop is not None else 0)
            return Length(("without", whole.key, left_out), array=own.array, axis=own.axis) if left_out else whole
        return Length(("slice", whole.key, start, stop, step), array=own.array, axis=own.axis)

    def _bound(self, operand: Operand) -> Hashable:
        if isinstance(operand, Const):
            return operand.value if isinstance(operand.value, int) else None
        return self.length(operand).key


def _whole(value: Hashable, other: int = -1) -> int:
    """Return a bound that is known, or the other value."""
    return value if isinstance(value, int) else other


def _is_length(operand: Operand) -> bool:
    """Return whether an operand is certainly nonnegative."""
    if isinstance(operand, Const):
        return isinstance(operand.value, int) and operand.value >= 0
    return isinstance(operand, Instr) and operand.op is ops.dim


def _with_new_axis(shape: Shape, axis: object, rank: int) -> Shape:
    assert isinstance(axis, int)
    axis %= rank
    return (*shape[:axis], ONE, *shape[axis:])


def slice_bounds(item: Operand) -> tuple[Operand, Operand, Operand] | None:
    """Return the start, stop and step of a slice constructed in the function."""
    nothing = Const(None, types.none)
    match item:
        case Instr(op=builtins.slice, args=(stop,)):
            return nothing, stop, nothing
        case Instr(op=builtins.slice, args=(start, stop)):
            return start, stop, nothing
        case Instr(op=builtins.slice, args=(start, stop, step)):
            return start, stop, step
        case _:
            return None


def full_index(index: Sequence[Operand], rank: int) -> tuple[Operand, ...]:
    """Return an index with an item per axis: an ellipsis, and axes omitted at the end, become `:`."""
    taken = sum(not isinstance(item.type, types.NoneType | types.EllipsisType) for item in index)
    missing = (whole_slice(),) * (rank - taken)
    for place, item in enumerate(index):
        if isinstance(item.type, types.EllipsisType):
            return (*index[:place], *missing, *index[place + 1 :])
    return (*index, *missing)


def whole_slice(loc: Loc | None = None) -> Instr:
    """Return the slice `:`."""
    nothing = Const(None, types.none)
    return Instr(builtins.slice, (nothing, nothing), types.slice2_type, "", loc)


def is_whole(item: Operand) -> bool:
    """Return whether this is the slice `:`."""
    bounds = slice_bounds(item)
    return bounds is not None and all(isinstance(bound, Const) and bound.value is None for bound in bounds)


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """An index with integer arrays: its items, one per axis, and the position of their axes in the result."""

    items: tuple[Operand, ...]
    place: int
    arrays: tuple[Operand, ...]


def gathering(source: Operand, index: Sequence[Operand]) -> Gathered | None:
    """Analyze an index with integer arrays; None if it contains anything but these, integers and `:`."""
    items = full_index(index, ndim(source))
    arrays = tuple(item for item in items if isinstance(item.type, types.Array))
    advanced = []
    for axis, item in enumerate(items):
        match item.type:
            case types.Array(dtype=types.Integer()) | types.Integer():
                advanced.append(axis)
            case types.SliceType() if is_whole(item):
                pass
            case _:
                return None
    if not arrays or len(items) != ndim(source):
        return None
    # As in NumPy: if the integers and arrays are adjacent, their axes replace them, else they come first.
    together = advanced[-1] - advanced[0] + 1 == len(advanced)
    return Gathered(items, advanced[0] if together else 0, arrays)


def gathered(shapes: Shapes, source: Operand, index: Sequence[Operand]) -> Shape | None:
    """Return the shape of `x[index]` with integer arrays in the index."""
    how = gathering(source, index)
    if how is None:
        return None
    kept = [length for item, length in zip(how.items, shapes.of(source), strict=True) if is_whole(item)]
    inner = broadcast([shapes.of(array) for array in how.arrays])
    return (*kept[: how.place], *inner, *kept[how.place :])
