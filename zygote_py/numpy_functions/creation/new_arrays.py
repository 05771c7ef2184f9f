"""New arrays and copies of arrays: `empty`, `zeros`, `ones`, `full` and their `_like`, `copy`, `array`, `asarray`.

    np.ones((n, 3))              %t = record %n, 3 : f64[:, :]
                                 setitem %t, 1.0
    x.astype(np.float32)         np.copy %x : f32[:]
    np.array([a, b])             record and `initialize` of each
    np.array(s)                  a new array of len(s) elements, filled in a loop

The element type and the layout are those of Numba's result. The items of a list may be numbers, or lists or tuples of
them, to any depth. A list display in the call is never created (`zygote_py.frontend.expressions.displays`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.frontend.expressions.arrays import fill, is_array, lengths
from zygote_py.frontend.values import (
    INT,
    Emitter,
    LoweredValue,
    bundles as values,
    components,
    constant,
    lowers,
    plain,
    shape_of,
)
from zygote_py.ir import Const, Operand, Type, components_of, is_scalar, ops
from zygote_py.numpy_functions.support.overloads import (
    Implementation,
    implements,
    indented,
    is_list,
    is_none,
    is_number,
    text,
)


def new_array(
    at: Emitter, op: ops.Op, shape: Sequence[Operand], type_: Type, value: LoweredValue | None = None
) -> LoweredValue | None:
    """Return a new array of numbers, whose elements are all set to `value`, if there is one."""
    if not isinstance(type_, types.Array) or not is_scalar(type_.dtype):
        return None
    made = at.emit(op, shape, type_)
    if value is not None:
        fill(at, made, value)
    return LoweredValue(type_, (made,))


def _one(type_: Type) -> LoweredValue:
    dtype = getattr(type_, "dtype", types.float64)
    return LoweredValue(dtype, (constant(1, dtype),))


def _lower_allocation(
    function: Callable[..., object],
    like: Callable[..., object],
    op: ops.Op,
    value: Callable[[Type], LoweredValue | None] = lambda type_: None,
) -> None:
    """Register a function of a shape, and that of an array whose shape is taken."""

    @lowers(function)
    def of_shape(
        at: Emitter, type_: Type, shape: LoweredValue, dtype: LoweredValue | None = None
    ) -> LoweredValue | None:
        return new_array(at, op, lengths(at, shape), type_, value(type_))

    @lowers(like)
    def of_array(
        at: Emitter, type_: Type, array: LoweredValue, dtype: LoweredValue | None = None
    ) -> LoweredValue | None:
        return new_array(at, op, shape_of(at, array.leaves[0]), type_, value(type_))


_lower_allocation(np.empty, np.empty_like, ops.record)
_lower_allocation(np.zeros, np.zeros_like, ops.zeros)
_lower_allocation(np.ones, np.ones_like, ops.record, _one)


@lowers(numba_adapter.empty_inferred)
def empty_inferred(at: Emitter, type_: Type, shape: LoweredValue) -> LoweredValue | None:
    """`np.empty(shape)` whose element type Numba inferred from what is stored to it."""
    return new_array(at, ops.record, lengths(at, shape), type_)


@lowers(np.full)
def full(
    at: Emitter, type_: Type, shape: LoweredValue, fill_value: LoweredValue, dtype: LoweredValue | None = None
) -> LoweredValue | None:
    """`np.full(shape, fill_value)`"""
    return new_array(at, ops.record, lengths(at, shape), type_, fill_value)


@lowers(np.full_like)
def full_like(
    at: Emitter, type_: Type, array: LoweredValue, fill_value: LoweredValue, dtype: LoweredValue | None = None
) -> LoweredValue | None:
    """`np.full_like(array, fill_value)`"""
    return new_array(at, ops.record, shape_of(at, array.leaves[0]), type_, fill_value)


@lowers(np.copy, np.astype)
def copy(at: Emitter, type_: Type, array: LoweredValue, dtype: LoweredValue | None = None) -> LoweredValue | None:
    """Return a new array of the elements of one, converted to the type of the result."""
    if not is_array(array.type):
        return array_of(at, type_, array)
    if not is_scalar(plain(array.type).dtype):  # type: ignore[attr-defined]
        return None
    return LoweredValue(type_, (at.emit(np.copy, array.leaves, type_),))


@lowers(np.asarray)
def asarray(at: Emitter, type_: Type, array: LoweredValue, dtype: LoweredValue | None = None) -> LoweredValue | None:
    """Return an array itself, if it has the type of the result."""
    if is_array(array.type) and getattr(plain(array.type), "dtype", None) == getattr(type_, "dtype", None):
        return LoweredValue(type_, array.leaves)
    return copy(at, type_, array)


@lowers(np.ascontiguousarray, np.asfortranarray)
def contiguous(at: Emitter, type_: Type, array: LoweredValue) -> LoweredValue | None:
    """Return an array itself, if it has the layout of the result."""
    own = plain(array.type)
    assert isinstance(type_, types.Array)
    if is_scalar(own):
        alone = array_of(at, types.Array(own, 0, "C"), array)
        return None if alone is None else contiguous(at, type_, alone)
    if not isinstance(own, types.Array):
        return None
    if own.ndim == 0:  # one axis is added
        return LoweredValue(type_, (at.emit(np.reshape, (*array.leaves, Const(1, INT)), type_),))
    if own.layout == type_.layout or (own.ndim == 1 and own.layout != "A"):
        return LoweredValue(type_, array.leaves)
    made = at.emit(np.copy, array.leaves, type_)
    if own.layout == "A":
        at.copied_if_needed.append((made, at.loc))
    return LoweredValue(type_, (made,))


@lowers(np.array)
def array_of(at: Emitter, type_: Type, items: LoweredValue, dtype: LoweredValue | None = None) -> LoweredValue | None:
    """Return an array of a number, or of nested tuples of numbers."""
    if not isinstance(type_, types.Array):
        return None
    shape: list[int] = []
    nested = items
    while values.is_tuple(nested.type):
        parts = components(nested)
        shape.append(len(parts))
        if not parts:
            break
        nested = parts[0]
    if len(shape) != type_.ndim or not _is_regular(items, shape):
        return None
    made = at.emit(ops.record, [Const(length, INT) for length in shape], type_)
    for place, leaf in zip(np.ndindex(*shape), items.leaves, strict=True):
        index = [Const(number, INT) for number in place]
        at.emit(ops.initialize, (made, at.cast(leaf, type_.dtype), *index), types.none)
    return LoweredValue(type_, (made,))


def _is_regular(items: LoweredValue, shape: list[int]) -> bool:
    if not shape:
        return is_scalar(plain(items.type))
    parts = components(items) if values.is_tuple(items.type) else ()
    return len(parts) == shape[0] and all(_is_regular(part, shape[1:]) for part in parts)


@lowers(np.ndarray.fill)
def fill_array(at: Emitter, type_: Type, array: LoweredValue, value: LoweredValue) -> LoweredValue:
    """`array.fill(value)`"""
    fill(at, array.leaves[0], value)
    return LoweredValue(type_, (Const(None, types.none),))


def _has_list(given: Any) -> bool:
    """Return whether an argument is a list, or a tuple with one in it."""
    return is_list(given) or (isinstance(given, types.BaseTuple) and any(map(_has_list, components_of(given))))


@implements(np.array, object=_has_list)
def array_of_list(object: Any, dtype: Any = None) -> Implementation:
    """`np.array(s, dtype)`"""
    return _of_list(object, dtype, "object")


@implements(np.asarray, a=_has_list)
def asarray_of_list(a: Any, dtype: Any = None) -> Implementation:
    """`np.asarray(s, dtype)`; what is an array already stays."""
    return _of_list(a, dtype, "a")


def _of_list(given: Any, dtype: Any, name: str) -> Implementation:
    numbers = list(_numbers_in(given))
    if not numbers or not all(map(is_number, numbers)):
        return None
    if is_none(dtype):
        kind = np.result_type(*(np.dtype(str(types.unliteral(number))) for number in numbers))
    elif isinstance(dtype, types.DTypeSpec):
        kind = np.dtype(str(dtype.dtype))
    else:
        return None
    lines = [f"n{axis} = {length}" for axis, length in enumerate(_lengths(given, name))]
    lengths = [f"n{axis}" for axis in range(len(lines))]
    lines += [f"made = np.empty(({', '.join(lengths)},), kind)", *_filled(given, name, [], len(lengths))]
    return text([*lines, "return made"], kind=kind)


def _numbers_in(given: Any) -> Iterator[Any]:
    """Return the types of the numbers in a list or a tuple, or of what else is in it."""
    if is_list(given):
        yield from _numbers_in(given.dtype)
    elif isinstance(given, types.BaseTuple):
        for part in components_of(given):
            yield from _numbers_in(part)
    else:
        yield given


def _lengths(given: Any, item: str) -> Iterator[str]:
    """Return the length of each axis, as that of the first item of the one before it."""
    axis = 0
    empty: list[str] = []
    while not is_number(given):
        if is_list(given):
            yield f"len({item}) if {' and '.join(empty)} else 0" if empty else f"len({item})"
            empty.append(f"n{axis} > 0")
            given = given.dtype
        else:
            parts = components_of(given)
            yield str(len(parts))
            given = parts[0]
        item = f"{item}[0]"
        axis += 1


def _filled(given: Any, item: str, place: list[str], ndim: int) -> list[str]:
    """Return the statements that store what is in a list or a tuple."""
    axis = len(place)
    if is_number(given):
        if axis != ndim:
            return ['raise ValueError("incompatible sequence shape")']
        return [f"made[{', '.join(place)}] = {item}"]
    if is_list(given):
        inner = _filled(given.dtype, f"p{axis}", [*place, f"i{axis}"], ndim)
        check = [f"if len({item}) != n{axis}:", '    raise ValueError("incompatible sequence shape")']
        loop = [f"for i{axis} in range(n{axis}):", f"    p{axis} = {item}[i{axis}]", *indented(inner)]
        return [*(check if axis else ()), *loop]
    parts = components_of(given)
    return [
        line
        for number, part in enumerate(parts)
        for line in _filled(part, f"{item}[{number}]", [*place, str(number)], ndim)
    ]
