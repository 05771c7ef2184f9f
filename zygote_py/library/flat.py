"""The elements of what is an array or becomes one, in a row, as other implementations use them.

    flattened(f64[:, :])(x)         np.ravel(x), a view if x is in C order
    flattened((f64, f64))(x)        np.ravel(np.asarray(x)), a new array with x[0] and x[1]

Nested lists are not taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir.types import components_of
from zygote_py.library.arguments import Given, dtype_of, is_number


def flattened(a: Given) -> Callable[[Any], Any] | None:
    """The function that gives the elements of a value of this type as an array of one axis; None if there is none."""
    match a:
        case types.Array():
            return _of_array
        case types.List() | types.ListType() if is_number(a.dtype):
            return _of_list(dtype_of(a))
        case types.BaseTuple() if len(a):
            return _of_numbers if _is_nested(a) else None
        case _:
            return _of_numbers if is_number(a) else None


def _is_nested(a: Given) -> bool:
    return all(map(_is_nested, components_of(a))) if isinstance(a, types.BaseTuple) else is_number(a)


def _of_array(a: Any) -> Any:
    return np.ravel(a)


def _of_numbers(a: Any) -> Any:
    return np.ravel(np.asarray(a))


def _of_list(dtype: np.dtype[np.generic]) -> Callable[[Any], Any]:
    def of_list(a: Any) -> Any:
        result = np.empty(len(a), dtype)
        for i in range(len(a)):
            result[i] = a[i]
        return result

    return of_list
