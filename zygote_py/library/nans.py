"""Reductions that ignore NaN: `nansum nanprod nanmean nanvar nanstd nanmax nanmin`; `nan_to_num`.

np.nansum(x)    ->    for v in x: if not np.isnan(v): total += v
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import (
    INEXACT,
    array,
    dtype_of,
    either,
    in_c_order,
    in_memory_order,
    is_array,
    is_integer,
    is_none,
    is_number,
    itself,
    known,
)
from zygote_py.library.places import complex_nan_greatest, complex_nan_least, nan_greatest, nan_least
from zygote_py.library.registry import Implementation, implements, nested, replaces, text


@implements(np.nansum, a=is_array)
def nansum(a: Any) -> Implementation:
    """Return the sum of the elements that are not NaN."""
    return _over_numbers(a, "+", 0)


@implements(np.nanprod, a=is_array)
def nanprod(a: Any) -> Implementation:
    """Return the product of the elements that are not NaN."""
    return _over_numbers(a, "*", 1)


def _over_numbers(a: types.Array, sign: str, start: int) -> Implementation:
    lines = [
        "values = flat(a)",
        "total = start",
        "for i in range(values.size):",
        "    if not np.isnan(values[i]):",
        f"        total {sign}= values[i]",
        "return total",
    ]
    return text(lines, flat=in_memory_order(a), start=dtype_of(a).type(start))


@implements(np.nanmean, a=is_array)
def nanmean(a: Any) -> Implementation:
    """Return the mean of the elements that are not NaN, summed in double precision; NaN if there are none."""
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


@implements(np.nanvar, a=is_array, axis=is_none, dtype=is_none, out=is_none, ddof=is_integer)
def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0) -> Implementation:
    """Return the variance of the elements that are not NaN."""
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


@replaces(np.nanstd, a=is_array, axis=is_none, dtype=is_none, out=is_none, ddof=is_integer)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0) -> Any:
    """Return the standard deviation of the elements that are not NaN."""
    return np.nanvar(a, ddof=ddof) ** 0.5


@implements(np.nanmax, a=either(is_number, array(of=INEXACT)))
def nanmax(a: Any) -> Implementation:
    """Return the first of the greatest elements that are not NaN."""
    return _extreme(a, nan_greatest, complex_nan_greatest)


@implements(np.nanmin, a=either(is_number, array(of=INEXACT)))
def nanmin(a: Any) -> Implementation:
    """Return the first of the least elements that are not NaN."""
    return _extreme(a, nan_least, complex_nan_least)


def _extreme(a: Any, place: Callable[[Any], int], place_of_complex: Callable[[Any], int]) -> Implementation:
    if is_number(a):
        return itself
    flat: Callable[[Any], Any] = in_c_order
    if isinstance(a.dtype, types.Complex):
        flat, place = in_memory_order(a), place_of_complex

    def implementation(a: Any) -> Any:
        values = flat(a)
        if values.size == 0:
            raise ValueError("zero-size array to reduction operation not possible")
        return values[place(values)]

    return implementation


@implements(np.nan_to_num, x=array(of=INEXACT), copy=lambda copy: isinstance(known(copy), bool))
def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Implementation:
    """Replace NaN and the infinities by numbers, through which no derivative flows."""
    result = f"result = {'np.copy(x)' if known(copy) else 'x'}"
    if isinstance(x.dtype, types.Complex):
        given = "copy=False, nan=nan, posinf=posinf, neginf=neginf"
        parts = [f"np.nan_to_num(result.{part}, {given})" for part in ("real", "imag")]
        return text([result, *parts, "return result"])
    number: Any = dtype_of(x).type
    limits = np.finfo(number)
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
    loops = nested([(f"i{axis}", f"x.shape[{axis}]") for axis in range(x.ndim)], body)
    return text([result, *loops, "return result"], greatest=number(limits.max), least=number(limits.min))
