"""Arrays put together: `concatenate`, `stack` and their like, `append`.

    np.concatenate((a, b))      result = np.empty((n0 + n1,) + ..., dtype); result[:n0] = a; result[n0:] = b

Each array is stored into its part of a new array, so that the derivative is read from the same parts. The arrays come
as a tuple; Numba does not take a list. The axis may be known at run time only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir.types import components_of
from zygote_py.library.arguments import Given, common_dtype, is_integer, is_none, known_int, layout_of_all
from zygote_py.library.flat import flattened
from zygote_py.library.registry import implements
from zygote_py.library.written import checked_axis, choice, indented, tuple_text, written

Implementation = Callable[..., Any] | None


@implements(np.concatenate)
def concatenate(arrays: Given, axis: object = 0) -> Implementation:
    """Join arrays along an axis that they have."""
    if not _is_tuple_of_arrays(arrays) or not is_integer(axis):
        return None
    ndim = arrays[0].ndim
    return _along("def concatenate(arrays, axis=0):", arrays, axis, ndim, "np.concatenate", _concatenated)


@implements(np.stack)
def stack(arrays: Given, axis: object = 0) -> Implementation:
    """Join arrays of one shape along a new axis."""
    if not _is_tuple_of_arrays(arrays) or not is_integer(axis):
        return None
    return _along("def stack(arrays, axis=0):", arrays, axis, arrays[0].ndim + 1, "np.stack", _stacked)


@implements(np.hstack)
def hstack(tup: Given) -> Implementation:
    """Join arrays side by side: vectors and numbers end to end, all others along their second axis."""
    if not _is_tuple_of_arrays(tup):
        return None
    match tup[0].ndim:
        case 0:
            return _written("def hstack(tup):", tup, _stacked(tup, 0))
        case 1:
            return _written("def hstack(tup):", tup, _concatenated(tup, 0))
        case _:
            return _written("def hstack(tup):", tup, _concatenated(tup, 1))


@implements(np.vstack, np.row_stack)
def vstack(tup: Given) -> Implementation:
    """Join arrays one above the other: vectors become rows."""
    if not _is_tuple_of_arrays(tup):
        return None
    match tup[0].ndim:
        case 0:
            return _written("def vstack(tup):", tup, _placed(tup, [len(tup), 1], "{}, 0"))
        case 1:
            return _written("def vstack(tup):", tup, _stacked(tup, 0))
        case _:
            return _written("def vstack(tup):", tup, _concatenated(tup, 0))


@implements(np.dstack)
def dstack(tup: Given) -> Implementation:
    """Join arrays along the third axis."""
    if not _is_tuple_of_arrays(tup):
        return None
    match tup[0].ndim:
        case 0:
            body = _placed(tup, [1, 1, len(tup)], "0, 0, {}")
        case 1:
            body = _placed(tup, [1, "a0.shape[0]", len(tup)], "0, :, {}")
        case 2:
            body = _stacked(tup, 2)
        case _:
            body = _concatenated(tup, 2)
    return _written("def dstack(tup):", tup, body)


@implements(np.column_stack)
def column_stack(tup: Given) -> Implementation:
    """Join vectors, as columns, and matrices."""
    if not _is_tuple_of_arrays(tup, one_ndim=False) or any(array.ndim not in (1, 2) for array in tup):
        return None
    return _written("def column_stack(tup):", tup, _concatenated(tup, 1, ndim=2))


@implements(np.append)
def append(arr: Given, values: Given, axis: object = None) -> Implementation:
    """Join two arrays along an axis, or all their elements in a row."""
    if not is_none(axis):

        def joined(arr: Any, values: Any, axis: Any = None) -> Any:
            return np.concatenate((arr, values), axis)

        return joined
    first, second = flattened(arr), flattened(values)
    if first is None or second is None:
        return None

    def implementation(arr: Any, values: Any, axis: Any = None) -> Any:
        return np.concatenate((first(arr), second(values)))

    return implementation


def _is_tuple_of_arrays(arrays: Given, one_ndim: bool = True) -> bool:
    if not isinstance(arrays, types.BaseTuple) or not len(arrays):
        return False
    parts: tuple[Given, ...] = components_of(arrays)
    if not all(isinstance(part, types.Array) for part in parts):
        return False
    return not one_ndim or len({part.ndim for part in parts}) == 1


def _written(header: str, arrays: Given, body: list[str], *checks: str) -> Callable[..., Any]:
    """The function with this header whose last lines are `body`; its first parameter is the tuple."""
    name = header.partition("(")[2].partition(",")[0].rstrip("):")
    unpacked = f"{', '.join(f'a{j}' for j in range(len(arrays)))}, = {name}"
    return written([header, *indented([unpacked, *checks, *body])], dtype=common_dtype(arrays))


def _along(
    header: str, arrays: Given, axis: object, ndim: int, name: str, body: Callable[[Given, int], list[str]]
) -> Callable[..., Any]:
    """The function for an axis, one of `ndim`, that is known now or at run time."""
    error = f'IndexError("{name}(): axis out of bounds")'
    constant = known_int(axis)
    if constant is None or not -ndim <= constant < ndim:
        cases = [body(arrays, k) for k in range(ndim)]
        return _written(header, arrays, choice("axis", cases), *checked_axis("axis", ndim, error))
    return _written(header, arrays, body(arrays, constant % ndim))


def _concatenated(arrays: Given, axis: int, ndim: int = 0) -> list[str]:
    """Lines that join `a0, a1, ...` along `axis`; vectors are taken as columns where `ndim` is 2."""
    ndim = ndim or arrays[0].ndim
    lengths = [f"a{j}.shape[{axis}]" if axis < array.ndim else "1" for j, array in enumerate(arrays)]
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
    for j, array in enumerate(arrays):
        start = f"n{j - 1}" if j else "0"
        lines.append(f"result[{before}{start if array.ndim < ndim else f'{start}:n{j}'}] = a{j}")
    return [*lines, "return result"]


def _stacked(arrays: Given, axis: int) -> list[str]:
    """Lines that join `a0, a1, ...`, all of one shape, along a new axis."""
    dims: list[object] = [f"a0.shape[{dim}]" for dim in range(arrays[0].ndim)]
    dims.insert(axis, len(arrays))
    return _placed(arrays, dims, ":, " * axis + "{}")


def _placed(arrays: Given, dims: list[object], index: str) -> list[str]:
    """Lines that store each of `a0, a1, ...` at an index with its number in it."""
    lines = []
    others = [f"a{j}.shape[{dim}] != a0.shape[{dim}]" for j in range(1, len(arrays)) for dim in range(arrays[0].ndim)]
    if others:
        message = "np.stack(): all input arrays must have the same shape"
        lines += [f"if {' or '.join(others)}:", f'    raise ValueError("{message}")']
    lines.append(_allocation(arrays, dims))
    for j, array in enumerate(arrays):
        lines.append(f"result[{index.format(j)}] = a{j}{'' if array.ndim else '[()]'}")
    return [*lines, "return result"]


def _allocation(arrays: Given, dims: list[Any]) -> str:
    if layout_of_all(arrays) == "F" and len(dims) > 1:
        return f"result = np.empty({tuple_text(dims[::-1])}, dtype).T"
    return f"result = np.empty({tuple_text(dims)}, dtype)"
