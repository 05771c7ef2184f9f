"""Elements by their number: `take`, in its form without an axis and along one, and `select`.

np.take(x, k)                 x.reshape(x.size)[k]
np.take(x, indices, axis=1)   result[:, i] = x[:, indices[i]]
np.select(conditions, xs, d)  np.where(conditions[0], xs[0], np.where(conditions[1], xs[1], d))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import dtype_of, is_integer, is_none, known_int
from zygote_py.library.flat import flattened
from zygote_py.library.order import element_at, in_c_order
from zygote_py.library.registry import implements
from zygote_py.library.written import checked_axis, choice, indented, written

Implementation = Callable[..., Any] | None


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None) -> Implementation:
    """The elements with these numbers; along an axis, the slices."""
    if not isinstance(a, types.Array):
        return None
    if not is_none(axis):
        return _along_axis(a, indices, axis) if is_integer(axis) else None
    if is_integer(indices):
        element = element_at(a)

        def one(a: Any, indices: Any, axis: Any = None) -> Any:
            if indices > a.size - 1 or indices < -a.size:
                raise IndexError("Index out of bounds")
            return element(a, indices + a.size if indices < 0 else indices)

        return one
    flat, flat_indices = in_c_order, flattened(indices)
    if flat_indices is None:
        return None
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
    single = is_integer(indices)
    if not single and not (isinstance(indices, types.Array | types.List | types.BaseTuple)):
        return None
    flat_indices = None if single else flattened(indices)
    if not single and (flat_indices is None or getattr(indices, "ndim", 1) != 1):
        return None
    cases = [_slice_of(a.ndim, k) if single else _slices_of(a.ndim, k) for k in range(a.ndim)]
    constant = known_int(axis)
    if constant is not None and -a.ndim <= constant < a.ndim:
        lines = cases[constant]
    else:
        lines = [*checked_axis("axis", a.ndim, "ValueError('axis is out of bounds')"), *choice("axis", cases)]
    header = "def take(a, indices, axis=None):"
    return written([header, *indented(lines)], flat_indices=flat_indices, dtype_=dtype_of(a))


def _place(ndim: int, axis: int, index: str) -> str:
    return ", ".join(index if k == axis else ":" for k in range(ndim))


def _slice_of(ndim: int, axis: int) -> list[str]:
    if ndim == 1:
        return ["return a[indices]"]
    return [f"return a[{_place(ndim, axis, 'indices')}].copy()"]


def _slices_of(ndim: int, axis: int) -> list[str]:
    shape = ", ".join("places.size" if k == axis else f"a.shape[{k}]" for k in range(ndim))
    return [
        "places = flat_indices(indices)",
        f"result = np.empty(({shape},), dtype_)",
        "for i in range(places.size):",
        f"    result[{_place(ndim, axis, 'i')}] = a[{_place(ndim, axis, 'places[i]')}]",
        "return result",
    ]


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Implementation:
    """From each array what its condition chooses, the first that holds; elsewhere `default`."""
    given = (condlist, choicelist)
    if not all(isinstance(each, types.UniTuple | types.List) for each in given):
        return None
    if not all(isinstance(each, types.UniTuple) for each in given):
        return _select_of_lists(dtype_of(choicelist.dtype))
    if len(condlist) != len(choicelist):
        return None
    lines = ["result = default * np.ones(choicelist[0].shape, dtype_)"]
    lines += [f"result = np.where(condlist[{k}], choicelist[{k}], result)" for k in range(len(condlist) - 1, -1, -1)]
    header = "def select(condlist, choicelist, default=0):"
    return written([header, *indented([*lines, "return result"])], dtype_=dtype_of(choicelist.dtype))


def _select_of_lists(dtype: np.dtype[np.generic]) -> Implementation:
    def implementation(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
        if len(condlist) != len(choicelist):
            raise ValueError("list of cases must be same length as list of conditions")
        result = default * np.ones(choicelist[0].shape, dtype)
        for k in range(len(condlist) - 1, -1, -1):
            result = np.where(condlist[k], choicelist[k], result)
        return result

    return implementation
