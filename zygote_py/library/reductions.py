"""Reductions to one number: `mean var std average max min ptp`, and Python's own `sum max min` of an array.

    np.mean(x)    ->    np.sum(x) / x.size              np.max(x)    ->    x[np.argmax(x)]

`np.sum` and `np.prod` of whole arrays and over a constant axis are the compiler's own; other forms of them are in
`zygote_py.library.sums`. The greatest and the least pass their derivative to the first element that attains them.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import (
    INEXACT,
    array,
    dtype_of,
    either,
    flattened,
    in_c_order,
    is_array,
    is_list,
    is_none,
    is_number,
    is_row,
    itself,
    optional,
)
from zygote_py.library.gathering import element_at
from zygote_py.library.ordering import spelled_out
from zygote_py.library.places import complex_greatest, complex_least, greatest, least
from zygote_py.library.registry import Implementation, implements, replaces


def _is_inexact(a: object) -> bool:
    return isinstance(a, INEXACT)


@implements(np.mean, a=either(_is_inexact, array(of=INEXACT)))
def mean(a: Any) -> Implementation:
    """Return the sum divided by the count; NaN for no elements."""
    number: Any = dtype_of(a).type
    if is_number(a):
        return _plus(number(0))
    if isinstance(a.dtype, types.Complex):
        nothing = number(complex(np.nan, np.nan))

        def of_complex(a: Any) -> Any:
            if a.size == 0:
                return nothing
            return number(np.sum(a) / a.size)

        return of_complex
    # Without a branch, so that `a` need not be an array.
    return lambda a: number(np.divide(np.sum(a), a.size))


def _plus(zero: Any) -> Callable[[Any], Any]:
    return lambda a: a + zero


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
    if isinstance(a.dtype, types.Complex):
        flat = in_c_order

        def of_complex(a: Any) -> Any:
            if a.size == 0:
                raise ValueError(error)
            values = flat(a)
            return values[place_of_complex(values)]

        return of_complex
    element = element_at(a)

    def implementation(a: Any) -> Any:
        if a.size == 0:
            raise ValueError(error)
        return element(a, int(place(a)))

    return implementation


@implements(np.ptp, a=is_row)
def ptp(a: Any) -> Implementation:
    """Return the greatest element minus the least."""
    flat = flattened(a)
    if dtype_of(a).kind == "c":
        return _ptp_of_complex(flat)

    def implementation(a: Any) -> Any:
        values = flat(a)
        if values.size == 0:
            raise ValueError("zero-size array reduction not possible")
        return values[np.argmax(values)] - values[np.argmin(values)]

    return implementation


def _ptp_of_complex(flat: Callable[[Any], Any]) -> Implementation:
    def implementation(a: Any) -> Any:
        values = flat(a)
        if values.size == 0:
            raise ValueError("zero-size array reduction not possible")
        for value in values:
            if np.isnan(value.real):
                return complex(np.nan, np.nan if np.isnan(value.imag) else 0.0)
        return values[complex_greatest(values)] - values[complex_least(values)]

    return implementation


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
        case (types.Array(ndim=1, dtype=types.Float()),):
            pass
        case (types.List(dtype=types.Float()) | types.ListType(dtype=types.Float()),):
            pass
        case (types.List(dtype=types.BaseTuple()) | types.ListType(dtype=types.BaseTuple()),):
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
