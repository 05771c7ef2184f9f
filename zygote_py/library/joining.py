"""Joining arrays: `concatenate`, `stack` and their like, `append`.

    np.concatenate((a, b))      result = np.empty((n0 + n1,) + ..., dtype); result[:n0] = a; result[n0:] = b

Each array is stored into its part of a new array, so that the derivative is read from the same parts. The arrays come
as a tuple; Numba does not take a list. The axis may be known at run time only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from zygote_py.ir.types import components_of
from zygote_py.library.arguments import array, common_dtype, flattened, is_integer, is_none, is_row, layout_of_all
from zygote_py.library.registry import Implementation, by_axis, implements, text, tuple_text


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
