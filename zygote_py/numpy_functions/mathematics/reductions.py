"""Reductions to one number: `mean var std average max min ptp`, Python's `sum max min`, and those that ignore NaN.

    np.mean(x)    ->    np.sum(x) / x.size              np.max(x)    ->    x[np.argmax(x)]
    np.nansum(x)  ->    for v in x: if not np.isnan(v): total += v

`np.sum` and `np.prod` of whole arrays and over a constant axis are the compiler's own; other forms of them are in
`zygote_py.numpy_functions.mathematics.sums`. The greatest and the least pass their derivative to the first element that
attains them.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.numpy_functions.indexing.selecting import element_at
from zygote_py.numpy_functions.support.argselect import (
    complex_greatest,
    complex_least,
    complex_nan_greatest,
    complex_nan_least,
    greatest,
    least,
    nan_greatest,
    nan_least,
    spelled_out,
)
from zygote_py.numpy_functions.support.overloads import (
    INEXACT,
    Implementation,
    array,
    dtype_of,
    either,
    flattened,
    implements,
    in_c_order,
    in_memory_order,
    is_array,
    is_integer,
    is_list,
    is_none,
    is_number,
    is_row,
    itself,
    known,
    nested,
    optional,
    replaces,
    text,
)


def _is_inexact(a: object) -> bool:
    return isinstance(a, INEXACT)


@implements(np.mean, a=either(_is_inexact, array(of=INEXACT)))
def mean(a: Any) -> Implementation:
    """Return the sum divided by the count; NaN for no elements."""
    number: Any = dtype_of(a).type
    if is_number(a):
        zero = number(0)
        return lambda a: a + zero
    if isinstance(a.dtype, types.Complex):
        nothing = number(complex(np.nan, np.nan))
        return lambda a: nothing if a.size == 0 else number(np.sum(a) / a.size)
    # Without a branch, so that `a` need not be an array.
    return lambda a: number(np.divide(np.sum(a), a.size))


@implements(np.var, a=is_array)
def var(a: Any) -> Implementation:
    """Return the mean of the squared distances from the mean, summed up in double precision as Numba does it."""
    if a.ndim == 0:

        def of_number(a: Any) -> Any:
            difference = a - np.mean(a)
            return np.float64(np.real(difference * np.conj(difference)))

        return of_number
    if isinstance(a.dtype, types.Complex):

        def of_complex(a: Any) -> Any:
            difference = a - np.mean(a)
            return np.sum(np.real(difference * np.conj(difference)).astype(np.float64)) / a.size

        return of_complex
    if a.dtype == types.float64:

        def of_doubles(a: Any) -> Any:
            difference = a - np.mean(a)
            return np.sum(difference * difference) / a.size

        return of_doubles

    def implementation(a: Any) -> Any:
        difference = a - np.mean(a)
        return np.sum((difference * difference).astype(np.float64)) / a.size

    return implementation


@implements(np.std, a=either(_is_inexact, is_array))
def std(a: Any) -> Implementation:
    """Return the root of the variance; 0 or NaN for a number."""
    if isinstance(a, types.Array):
        return lambda a: np.var(a) ** 0.5
    number = dtype_of(getattr(a, "underlying_float", a)).type
    zero, nothing = number(0), number(np.nan)
    return lambda a: zero if np.isfinite(a) else nothing


@implements(np.average, a=is_array, axis=is_none, weights=optional(is_array))
def average(a: Any, axis: Any = None, weights: Any = None) -> Implementation:
    """Return the mean, or the mean with weights. Numba does not support `axis` here."""
    if is_none(weights):
        return lambda a, axis=None, weights=None: np.mean(a)
    may_differ = weights.ndim == 1

    def implementation(a: Any, axis: Any = None, weights: Any = None) -> Any:
        if not may_differ and a.shape != weights.shape:
            raise TypeError("1D weights expected when shapes of a and weights differ.")
        scale = np.sum(weights)
        if scale == 0.0:
            raise ZeroDivisionError("Weights sum to zero, can't be normalized.")
        return np.sum(np.multiply(a, weights)) / scale

    return implementation


# ------------------------------------------------------------------------------------------ the greatest, the least


@implements(np.max, np.amax, a=either(is_number, is_array))
def maximum(a: Any) -> Implementation:
    """Return the first of the greatest elements, or the first NaN."""
    return _extreme(a, np.argmax, complex_greatest, "maximum")


@implements(np.min, np.amin, a=either(is_number, is_array))
def minimum(a: Any) -> Implementation:
    """Return the first of the least elements, or the first NaN."""
    return _extreme(a, np.argmin, complex_least, "minimum")


def _extreme(a: Any, place: Callable[[Any], int], place_of_complex: Callable[[Any], int], name: str) -> Implementation:
    """Return the element at a place, which a function of NumPy or a helper finds."""
    if is_number(a):
        return itself
    error = f"zero-size array to reduction operation {name} which has no identity"
    empty = ["if a.size == 0:", f"    raise ValueError({error!r})"]
    if isinstance(a.dtype, types.Complex):
        lines = [*empty, "values = flat(a)", "return values[place(values)]"]
        return text(lines, flat=in_c_order, place=place_of_complex)
    return text([*empty, "return element(a, int(place(a)))"], element=element_at(a), place=place)


@implements(np.ptp, a=is_row)
def ptp(a: Any) -> Implementation:
    """Return the greatest element minus the least."""
    lines = [
        "values = flat(a)",
        "if values.size == 0:",
        "    raise ValueError('zero-size array reduction not possible')",
    ]
    if dtype_of(a).kind == "c":
        lines += [
            "for value in values:",
            "    if np.isnan(value.real):",
            "        return complex(np.nan, np.nan if np.isnan(value.imag) else 0.0)",
        ]
    last, first = (complex_greatest, complex_least) if dtype_of(a).kind == "c" else (np.argmax, np.argmin)
    lines.append("return values[last(values)] - values[first(values)]")
    return text(lines, flat=flattened(a), last=last, first=first)


@implements(builtins.max)
def builtin_max(*values: Any) -> Implementation:
    """Python's `max` of an array or a list; that of several numbers is the compiler's own."""
    return _builtin_of_array(values, greatest, "max() arg is an empty sequence")


@implements(builtins.min)
def builtin_min(*values: Any) -> Implementation:
    """Python's `min` of an array or a list."""
    return _builtin_of_array(values, least, "min() arg is an empty sequence")


def _builtin_of_array(values: tuple[Any, ...], place: Callable[[Any], int], error: str) -> Implementation:
    match values:
        case (types.Array(ndim=1) | types.List() | types.ListType() as kind,) if isinstance(kind.dtype, types.Float):
            pass
        case (types.List() | types.ListType() as kind,) if isinstance(kind.dtype, types.BaseTuple):
            place = spelled_out(place)
        case _:
            return None

    def implementation(iterable: Any) -> Any:
        if len(iterable) == 0:
            raise ValueError(error)
        return iterable[place(iterable)]

    return implementation


@replaces(builtins.sum, iterable=either(is_array, is_list))
def builtin_sum(iterable: Any, start: Any = 0) -> Any:
    """Python's `sum` of an array or a list: one after another, from `start`."""
    total = start
    for i in range(len(iterable)):
        total = total + iterable[i]
    return total


# -------------------------------------------------------------------------------------------- NaN is left out


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
        return np.nan if count <= ddof else np.divide(total, count - ddof)

    return implementation


@replaces(np.nanstd, a=is_array, axis=is_none, dtype=is_none, out=is_none, ddof=is_integer)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0) -> Any:
    """Return the standard deviation of the elements that are not NaN."""
    return np.nanvar(a, ddof=ddof) ** 0.5


@implements(np.nanmax, a=either(is_number, array(of=INEXACT)))
def nanmax(a: Any) -> Implementation:
    """Return the first of the greatest elements that are not NaN."""
    return _nan_extreme(a, nan_greatest, complex_nan_greatest)


@implements(np.nanmin, a=either(is_number, array(of=INEXACT)))
def nanmin(a: Any) -> Implementation:
    """Return the first of the least elements that are not NaN."""
    return _nan_extreme(a, nan_least, complex_nan_least)


def _nan_extreme(a: Any, place: Callable[[Any], int], place_of_complex: Callable[[Any], int]) -> Implementation:
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
