"""Elements by index: `take`, without an axis and along one, and `select`.

np.take(x, k)                 x.reshape(x.size)[k]
np.take(x, indices, axis=1)   result[:, i] = x[:, indices[i]]
np.select(conditions, xs, d)  np.where(conditions[0], xs[0], np.where(conditions[1], xs[1], d))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import (
    dtype_of,
    either,
    flattened,
    in_c_order,
    is_array,
    is_integer,
    is_none,
    is_row,
    optional,
)
from zygote_py.library.registry import Implementation, by_axis, implements, text, written


@implements(np.take, a=is_array, indices=either(is_integer, is_row), axis=optional(is_integer))
def take(a: Any, indices: Any, axis: Any = None) -> Implementation:
    """Return the elements with these numbers; along an axis, the slices."""
    if not is_none(axis):
        return _along_axis(a, indices, axis)
    if is_integer(indices):
        element = element_at(a)

        def one(a: Any, indices: Any, axis: Any = None) -> Any:
            if indices > a.size - 1 or indices < -a.size:
                raise IndexError("Index out of bounds")
            return element(a, indices + a.size if indices < 0 else indices)

        return one
    flat, flat_indices = in_c_order, flattened(indices)
    shaped = isinstance(indices, types.Array) and indices.ndim != 1
    dtype = dtype_of(a)

    def several(a: Any, indices: Any, axis: Any = None) -> Any:
        values = flat(a)
        places = flat_indices(indices)
        result = np.empty(places.size, dtype)
        for i in range(places.size):
            place = places[i]
            if place > a.size - 1 or place < -a.size:
                raise IndexError("Index out of bounds")
            result[i] = values[place + a.size if place < 0 else place]
        return result.reshape(indices.shape) if shaped else result

    return several


def _along_axis(a: types.Array, indices: Any, axis: Any) -> Implementation:
    error = "ValueError('axis is out of bounds')"
    if is_integer(indices):
        return text(by_axis(axis, a.ndim, error, lambda k: [_slice_of(a.ndim, k)]))
    if not isinstance(indices, types.Array | types.List | types.BaseTuple) or getattr(indices, "ndim", 1) != 1:
        return None
    lines = by_axis(axis, a.ndim, error, lambda k: _slices_of(a.ndim, k))
    return text(lines, flat_indices=flattened(indices), dtype_=dtype_of(a))


def _place(ndim: int, axis: int, index: str) -> str:
    return ", ".join(index if k == axis else ":" for k in range(ndim))


def _slice_of(ndim: int, axis: int) -> str:
    return f"return a[{_place(ndim, axis, 'indices')}]{'' if ndim == 1 else '.copy()'}"


def _slices_of(ndim: int, axis: int) -> list[str]:
    shape = ", ".join("places.size" if k == axis else f"a.shape[{k}]" for k in range(ndim))
    return [
        "places = flat_indices(indices)",
        f"result = np.empty(({shape},), dtype_)",
        "for i in range(places.size):",
        f"    result[{_place(ndim, axis, 'i')}] = a[{_place(ndim, axis, 'places[i]')}]",
        "return result",
    ]


def element_at(a: types.Array) -> Callable[[Any, int], Any]:
    """Return the function that reads the k-th element of such an array in C order."""
    if a.ndim == 1:
        return _element
    if a.layout == "C":
        return _element_of_view
    places = [f"i{axis}" for axis in range(a.ndim)]
    lines = ["def element_at(a, k):"]
    for axis in range(a.ndim - 1, 0, -1):
        lines += [f"    i{axis} = k % a.shape[{axis}]", f"    k = k // a.shape[{axis}]"]
    return written([*lines, "    i0 = k", f"    return a[{', '.join(places)}]"])


def _element(a: Any, k: int) -> Any:
    return a[k]


def _element_of_view(a: Any, k: int) -> Any:
    return a.reshape(a.size)[k]


def _is_list_or_tuple(given: object) -> bool:
    return isinstance(given, types.UniTuple | types.List)


@implements(np.select, condlist=_is_list_or_tuple, choicelist=_is_list_or_tuple)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Implementation:
    """Select the elements of the array whose condition holds first; elsewhere `default`."""
    dtype = dtype_of(choicelist.dtype)
    if isinstance(condlist, types.List) or isinstance(choicelist, types.List):
        lines = [
            "if len(condlist) != len(choicelist):",
            '    raise ValueError("list of cases must be same length as list of conditions")',
            "result = default * np.ones(choicelist[0].shape, dtype_)",
            "for k in range(len(condlist) - 1, -1, -1):",
            "    result = np.where(condlist[k], choicelist[k], result)",
            "return result",
        ]
        return text(lines, dtype_=dtype)
    if len(condlist) != len(choicelist):
        return None
    lines = ["result = default * np.ones(choicelist[0].shape, dtype_)"]
    lines += [f"result = np.where(condlist[{k}], choicelist[{k}], result)" for k in range(len(condlist) - 1, -1, -1)]
    return text([*lines, "return result"], dtype_=dtype)
