"""The elements of an array one after another, in the order in which Numba goes through them.

    in_memory_order(f64[:, :]F)     x.T.reshape(x.size)                   as np.nditer does, a view if there can be one
    element_at(f64[:, :])           x.reshape(x.size)[k]                  the element of which np.argmax gives the place

`in_c_order` is used as it is; what tuples and lists have in them, `zygote_py.library.flat` puts in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.written import written


def in_memory_order(a: types.Array) -> Callable[[Any], Any]:
    """The function that gives the elements of such an array as an array of one axis, in the order of `np.nditer`."""
    if a.ndim == 1:
        return _itself
    return {"C": _as_view, "F": _as_transposed_view}.get(a.layout, _as_copy)


def in_c_order(a: Any) -> Any:
    """The elements of an array as an array of one axis, in C order: a view if there can be one."""
    return np.ravel(a)


def element_at(a: types.Array) -> Callable[[Any, int], Any]:
    """The function that gives the k-th element in C order."""
    if a.ndim == 1:
        return _element
    if a.layout == "C":
        return _element_of_view
    places = [f"i{axis}" for axis in range(a.ndim)]
    lines = ["def element_at(a, k):"]
    for axis in range(a.ndim - 1, 0, -1):
        lines += [f"    i{axis} = k % a.shape[{axis}]", f"    k = k // a.shape[{axis}]"]
    return written([*lines, "    i0 = k", f"    return a[{', '.join(places)}]"])


def _itself(a: Any) -> Any:
    return a


def _as_view(a: Any) -> Any:
    return a.reshape(a.size)


def _as_transposed_view(a: Any) -> Any:
    return a.T.reshape(a.size)


def _as_copy(a: Any) -> Any:
    return a.copy().reshape(a.size)


def _element(a: Any, k: int) -> Any:
    return a[k]


def _element_of_view(a: Any, k: int) -> Any:
    return a.reshape(a.size)[k]
