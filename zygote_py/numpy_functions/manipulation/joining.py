"""Joining arrays (`concatenate`, `stack` and their like, `append`) and splitting them (`split`, `array_split`, ...).

    np.concatenate((a, b))      result = np.empty((n0 + n1,) + ..., dtype); result[:n0] = a; result[n0:] = b
    np.split(x, 3)[1]           x[n // 3 : 2 * (n // 3)]
    np.array_split(x, (2, 5))   [x[0:2], x[2:5], x[5:]]

Arrays to be joined come as a tuple; Numba does not take a list. Each is stored to its part of a new array, so that the
derivative is read from the same parts. The parts of a split array are views, in a list; if the number of parts is a
constant, they are made without a loop. The axis may be known at run time only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import components_of
from zygote_py.numpy_functions.support.overloads import (
    Implementation,
    array,
    by_axis,
    common_dtype,
    flattened,
    implements,
    is_array,
    is_integer,
    is_list,
    is_none,
    is_row,
    is_sequence,
    is_shape,
    known_int,
    layout_of_all,
    text,
    tuple_text,
)


def _are_columns(given: Any) -> bool:
    """Return whether an argument is a tuple of vectors and matrices."""
    return isinstance(given, types.BaseTuple) and len(given) > 0 and all(map(array(1, 2), components_of(given)))


def _are_alike(given: Any) -> bool:
    """Return whether an argument is a tuple of arrays of one number of axes."""
    if not isinstance(given, types.BaseTuple) or not len(given):
        return False
    first, *_ = parts = components_of(given)
    return isinstance(first, types.Array) and all(map(array(first.ndim), parts))


@implements(np.concatenate, arrays=_are_alike, axis=is_integer)
def concatenate(arrays: Any, axis: object = 0) -> Implementation:
    """Join arrays along an axis that they have."""
    error = 'IndexError("np.concatenate(): axis out of bounds")'
    return _text("arrays", arrays, by_axis(axis, arrays[0].ndim, error, lambda k: _concatenated(arrays, k)))


@implements(np.stack, arrays=_are_alike, axis=is_integer)
def stack(arrays: Any, axis: object = 0) -> Implementation:
    """Join arrays of one shape along a new axis."""
    error = 'IndexError("np.stack(): axis out of bounds")'
    return _text("arrays", arrays, by_axis(axis, arrays[0].ndim + 1, error, lambda k: _stacked(arrays, k)))


@implements(np.hstack, tup=_are_alike)
def hstack(tup: Any) -> Implementation:
    """Join arrays side by side: vectors and numbers end to end, all others along their second axis."""
    match tup[0].ndim:
        case 0:
            return _text("tup", tup, _stacked(tup, 0))
        case 1:
            return _text("tup", tup, _concatenated(tup, 0))
        case _:
            return _text("tup", tup, _concatenated(tup, 1))


@implements(np.vstack, np.row_stack, tup=_are_alike)
def vstack(tup: Any) -> Implementation:
    """Join arrays one above the other: vectors become rows."""
    match tup[0].ndim:
        case 0:
            return _text("tup", tup, _placed(tup, [len(tup), 1], "{}, 0"))
        case 1:
            return _text("tup", tup, _stacked(tup, 0))
        case _:
            return _text("tup", tup, _concatenated(tup, 0))


@implements(np.dstack, tup=_are_alike)
def dstack(tup: Any) -> Implementation:
    """Join arrays along the third axis."""
    match tup[0].ndim:
        case 0:
            return _text("tup", tup, _placed(tup, [1, 1, len(tup)], "0, 0, {}"))
        case 1:
            return _text("tup", tup, _placed(tup, [1, "a0.shape[0]", len(tup)], "0, :, {}"))
        case 2:
            return _text("tup", tup, _stacked(tup, 2))
        case _:
            return _text("tup", tup, _concatenated(tup, 2))


@implements(np.column_stack, tup=_are_columns)
def column_stack(tup: Any) -> Implementation:
    """Join vectors, as columns, and matrices."""
    return _text("tup", tup, _concatenated(tup, 1, ndim=2))


@implements(np.append)
def append(arr: Any, values: Any, axis: object = None) -> Implementation:
    """Join two arrays along an axis, or all their elements in a row."""
    if not is_none(axis):
        return lambda arr, values, axis=None: np.concatenate((arr, values), axis)
    if not is_row(arr) or not is_row(values):
        return None
    first, second = flattened(arr), flattened(values)
    return lambda arr, values, axis=None: np.concatenate((first(arr), second(values)))


def _text(name: str, arrays: Any, body: list[str]) -> Implementation:
    """Return the implementation with these lines, for which the tuple is unpacked."""
    return text([f"{', '.join(f'a{j}' for j in range(len(arrays)))}, = {name}", *body], dtype=common_dtype(arrays))


def _concatenated(arrays: Any, axis: int, ndim: int = 0) -> list[str]:
    """Return lines that join `a0, a1, ...` along `axis`; vectors are taken as columns where `ndim` is 2."""
    ndim = ndim or arrays[0].ndim
    lengths = [f"a{j}.shape[{axis}]" if axis < part.ndim else "1" for j, part in enumerate(arrays)]
    lines = []
    for dim in range(ndim):
        if dim != axis and len(arrays) > 1:
            differ = " or ".join(f"a{j}.shape[{dim}] != a0.shape[{dim}]" for j in range(1, len(arrays)))
            message = f"np.concatenate(): input sizes over dimension {dim} do not match"
            lines += [f"if {differ}:", f'    raise ValueError("{message}")']
    lines += [f"n{j} = {f'n{j - 1} + ' if j else ''}{length}" for j, length in enumerate(lengths)]
    dims = [f"n{len(arrays) - 1}" if dim == axis else f"a0.shape[{dim}]" for dim in range(ndim)]
    lines.append(_allocation(arrays, dims))
    before = ":, " * axis
    for j, part in enumerate(arrays):
        start = f"n{j - 1}" if j else "0"
        lines.append(f"result[{before}{start if part.ndim < ndim else f'{start}:n{j}'}] = a{j}")
    return [*lines, "return result"]


def _stacked(arrays: Any, axis: int) -> list[str]:
    """Return lines that join `a0, a1, ...`, all of one shape, along a new axis."""
    dims: list[object] = [f"a0.shape[{dim}]" for dim in range(arrays[0].ndim)]
    dims.insert(axis, len(arrays))
    return _placed(arrays, dims, ":, " * axis + "{}")


def _placed(arrays: Any, dims: list[object], index: str) -> list[str]:
    """Return lines that store each of `a0, a1, ...` at an index with its number in it."""
    lines = []
    others = [f"a{j}.shape[{dim}] != a0.shape[{dim}]" for j in range(1, len(arrays)) for dim in range(arrays[0].ndim)]
    if others:
        message = "np.stack(): all input arrays must have the same shape"
        lines += [f"if {' or '.join(others)}:", f'    raise ValueError("{message}")']
    lines.append(_allocation(arrays, dims))
    for j, part in enumerate(arrays):
        lines.append(f"result[{index.format(j)}] = a{j}{'' if part.ndim else '[()]'}")
    return [*lines, "return result"]


def _allocation(arrays: Any, dims: list[Any]) -> str:
    if layout_of_all(arrays) == "F" and len(dims) > 1:
        return f"result = np.empty({tuple_text(dims[::-1])}, dtype).T"
    return f"result = np.empty({tuple_text(dims)}, dtype)"


def _are_sections(given: Any) -> bool:
    """Return whether an argument is a number of parts or the indices between them."""
    return is_shape(given) or ((is_array(given) or is_list(given)) and is_integer(given.dtype))


def _is_split(ary: Any, sections: Any, axis: Any = 0) -> bool:
    """Return whether an argument is an array with axes, or a sequence that becomes a vector, which is then split."""
    return array(least=1)(ary) and _are_sections(sections) if is_array(ary) else is_sequence(ary)


@implements(np.array_split, axis=is_integer, where=_is_split)
def array_split(ary: Any, indices_or_sections: Any, axis: object = 0) -> Implementation:
    """Split an array into parts of about the same length, or at indices."""
    return _along(np.array_split, ary, indices_or_sections, axis, exactly=False)


@implements(np.split, axis=is_integer, where=_is_split)
def split(ary: Any, indices_or_sections: Any, axis: object = 0) -> Implementation:
    """Split an array into parts of the same length, or at indices."""
    return _along(np.split, ary, indices_or_sections, axis, exactly=True)


@implements(np.vsplit, ary=array(least=2), indices_or_sections=_are_sections)
def vsplit(ary: Any, indices_or_sections: Any) -> Implementation:
    """Split an array along its first axis."""
    return text(_parts(ary.ndim, 0, indices_or_sections, exactly=True))


@implements(np.hsplit, ary=array(least=1), indices_or_sections=_are_sections)
def hsplit(ary: Any, indices_or_sections: Any) -> Implementation:
    """Split an array along its second axis, a vector along its only one."""
    return text(_parts(ary.ndim, 1 if ary.ndim > 1 else 0, indices_or_sections, exactly=True))


@implements(np.dsplit, ary=array(least=3), indices_or_sections=_are_sections)
def dsplit(ary: Any, indices_or_sections: Any) -> Implementation:
    """Split an array along its third axis."""
    return text(_parts(ary.ndim, 2, indices_or_sections, exactly=True))


def _along(function: Callable[..., Any], ary: Any, where: Any, axis: object, exactly: bool) -> Implementation:
    if not isinstance(ary, types.Array):
        return text(["return function(flat(ary), indices_or_sections, axis)"], function=function, flat=flattened(ary))
    message = "np.split: Argument axis out of bounds for dimensions of the array"
    error = 'IndexError("tuple index out of range")' if is_integer(where) else f'ValueError("{message}")'
    return text(by_axis(axis, ary.ndim, error, lambda k: _parts(ary.ndim, k, where, exactly)))


def _parts(ndim: int, axis: int, where: Any, exactly: bool) -> list[str]:
    """Return lines that split `ary` along an axis."""

    def part(start: str, stop: str = "") -> str:
        index = [":"] * ndim
        index[axis] = f"{start}:{stop}"
        return f"ary[{', '.join(index)}]"

    if is_integer(where):
        lines = [f"size, rest = divmod(ary.shape[{axis}], indices_or_sections)"]
        if exactly:
            message = "array split does not result in an equal division"
            lines += ["if rest != 0:", f'    raise ValueError("{message}")']
        count = known_int(where)
        if count is not None and count > 0:
            bounds = ["0", *(f"{k} * size + min({k}, rest)" for k in range(1, count))]
            return [*lines, *_listed(part, bounds)]
        return [
            *lines,
            *_appended(part, "indices_or_sections - 1", "start + size + (1 if k < rest else 0)"),
        ]
    if isinstance(where, types.BaseTuple):
        return _listed(part, ["0", *(f"indices_or_sections[{k}]" for k in range(len(where)))])
    return _appended(part, "len(indices_or_sections)", "indices_or_sections[k]")


def _appended(part: Callable[..., str], count: str, stop: str) -> list[str]:
    return [
        "parts = []",
        "start = 0",
        f"for k in range({count}):",
        f"    stop = {stop}",
        f"    parts.append({part('start', 'stop')})",
        "    start = stop",
        f"parts.append({part('start')})",
        "return parts",
    ]


def _listed(part: Callable[..., str], bounds: list[str]) -> list[str]:
    lines = [f"start{k} = {bound}" for k, bound in enumerate(bounds)]
    parts = [part(f"start{k}", f"start{k + 1}" if k + 1 < len(bounds) else "") for k in range(len(bounds))]
    return [*lines, f"return [{', '.join(parts)}]"]
