"""Reductions that leave out what is not a number: `nansum nanprod nanmean nanvar nanstd nanmax nanmin`; `nan_to_num`.

np.nansum(x)    ->    for v in x: if not np.isnan(v): total += v
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import dtype_of, is_integer, is_none, is_number, known
from zygote_py.library.order import in_c_order, in_memory_order
from zygote_py.library.places import complex_nan_greatest, complex_nan_least, nan_greatest, nan_least
from zygote_py.library.registry import implements
from zygote_py.library.written import indented, written

Implementation = Callable[..., Any] | None


@implements(np.nansum)
def nansum(a: Any) -> Implementation:
    """The sum of what is a number."""
    if not isinstance(a, types.Array):
        return None
    flat, zero = in_memory_order(a), dtype_of(a).type(0)

    def implementation(a: Any) -> Any:
        values = flat(a)
        total = zero
        for i in range(values.size):
            if not np.isnan(values[i]):
                total += values[i]
        return total

    return implementation


@implements(np.nanprod)
def nanprod(a: Any) -> Implementation:
    """The product of what is a number."""
    if not isinstance(a, types.Array):
        return None
    flat, one = in_memory_order(a), dtype_of(a).type(1)

    def implementation(a: Any) -> Any:
        values = flat(a)
        product = one
        for i in range(values.size):
            if not np.isnan(values[i]):
                product *= values[i]
        return product

    return implementation


@implements(np.nanmean)
def nanmean(a: Any) -> Implementation:
    """The mean of what is a number, summed up in double precision; of none it is NaN."""
    if not isinstance(a, types.Array):
        return None
    flat = in_memory_order(a)

    def implementation(a: Any) -> Any:
        values = flat(a)
        total = 0.0
        count = 0
        for i in range(values.size):
            if not np.isnan(values[i]):
                total += values[i]
                count += 1
        return np.divide(total, count)

    return implementation


@implements(np.nanvar)
def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0) -> Implementation:
    """The variance of what is a number."""
    if not isinstance(a, types.Array) or not all(map(is_none, (axis, dtype, out))) or not is_integer(ddof):
        return None
    flat = in_memory_order(a)

    def implementation(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0) -> Any:
        mean = np.nanmean(a)
        values = flat(a)
        total = 0.0
        count = 0
        for i in range(values.size):
            if not np.isnan(values[i]):
                difference = values[i] - mean
                total += np.real(difference * np.conj(difference))
                count += 1
        if count <= ddof:
            return np.nan
        return np.divide(total, count - ddof)

    return implementation


@implements(np.nanstd)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0) -> Implementation:
    """The root of the variance of what is a number."""
    if nanvar(a, axis, dtype, out, ddof) is None:
        return None
    return lambda a, axis=None, dtype=None, out=None, ddof=0: np.nanvar(a, ddof=ddof) ** 0.5


@implements(np.nanmax)
def nanmax(a: Any) -> Implementation:
    """The first of the greatest that are numbers."""
    return _extreme(a, nan_greatest, complex_nan_greatest)


@implements(np.nanmin)
def nanmin(a: Any) -> Implementation:
    """The first of the least that are numbers."""
    return _extreme(a, nan_least, complex_nan_least)


def _extreme(a: Any, place: Callable[[Any], int], place_of_complex: Callable[[Any], int]) -> Implementation:
    if is_number(a):
        return lambda a: a
    if not isinstance(a, types.Array) or not isinstance(a.dtype, types.Float | types.Complex):
        return None
    flat: Callable[[Any], Any] = in_c_order
    if isinstance(a.dtype, types.Complex):
        flat, place = in_memory_order(a), place_of_complex

    def implementation(a: Any) -> Any:
        values = flat(a)
        if values.size == 0:
            raise ValueError("zero-size array to reduction operation not possible")
        return values[place(values)]

    return implementation


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Implementation:
    """Numbers in the place of NaN and the infinities, which pass no derivative."""
    copied = known(copy)
    if not isinstance(x, types.Array) or not isinstance(copied, bool):
        return None
    if isinstance(x.dtype, types.Complex):
        return _nan_to_num_of_parts(copied)
    if not isinstance(x.dtype, types.Float):
        return None
    number: Any = dtype_of(x).type
    limits = np.finfo(number)
    loops = [f"{'    ' * axis}for i{axis} in range(x.shape[{axis}]):" for axis in range(x.ndim)]
    place = ", ".join(f"i{axis}" for axis in range(x.ndim)) or "()"
    body = [
        f"value = result[{place}]",
        "if np.isnan(value):",
        f"    result[{place}] = nan",
        "elif value == np.inf:",
        f"    result[{place}] = {'greatest' if is_none(posinf) else 'posinf'}",
        "elif value == -np.inf:",
        f"    result[{place}] = {'least' if is_none(neginf) else 'neginf'}",
    ]
    lines = [
        f"result = {'np.copy(x)' if copied else 'x'}",
        *loops,
        *(f"{'    ' * x.ndim}{line}" for line in body),
        "return result",
    ]
    header = "def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):"
    return written([header, *indented(lines)], greatest=number(limits.max), least=number(limits.min))


def _nan_to_num_of_parts(copied: bool) -> Implementation:
    """The same of the real parts and of the imaginary parts."""
    given = "copy=False, nan=nan, posinf=posinf, neginf=neginf"
    lines = [
        f"result = {'np.copy(x)' if copied else 'x'}",
        f"np.nan_to_num(result.real, {given})",
        f"np.nan_to_num(result.imag, {given})",
        "return result",
    ]
    return written(["def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):", *indented(lines)])
