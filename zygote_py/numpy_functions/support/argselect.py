"""Helpers that return indices of elements: of extremes, of the middle ones, of all in order; and counts.

    greatest(x)                 the index of the first of the greatest elements: np.max(x) becomes x[np.argmax(x)],
                                np.nanmax(x) becomes x[nan_greatest(x)]
    in_order(x, False)          [2, 0, 1]: x[2] is the least element of x, x[1] the greatest
    in_order_of_any(s, True)    the same for any sequence, in descending order

They compare numbers and return integers, so no derivative passes through them. An emitted module contains their source.
Each traverses the array as Numba's function does, and so agrees with it where there are NaNs and equal elements.

`in_order` sorts as Numba sorts lists: parts of up to 15 elements by insertion, longer ones are split at a pivot first,
the median of three. `in_order_of_any` is the same function, inlined rather than called.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from zygote_py.ir import helper


@helper
def comes_before(x: Any, one: int, other: int, backwards: bool) -> bool:
    """Whether the element at one place is less than that at another; greater, if the order is to be backwards."""
    return x[one] > x[other] if backwards else x[one] < x[other]  # type: ignore[no-any-return]


@helper
def split_in_order(x: Any, order: Any, low: int, high: int, backwards: bool) -> int:
    """Move the places in `order[low:high + 1]` of what comes before a pivot before its place, the others after it."""
    middle = (low + high) >> 1
    for upper, lower in ((middle, low), (high, middle), (middle, low)):
        if comes_before(x, order[upper], order[lower], backwards):
            order[lower], order[upper] = order[upper], order[lower]
    pivot = order[middle]
    order[middle], order[high] = order[high], pivot
    i = low
    j = high - 1
    while True:
        while i < high and comes_before(x, order[i], pivot, backwards):
            i += 1
        while j >= low and comes_before(x, pivot, order[j], backwards):
            j -= 1
        if i >= j:
            break
        order[i], order[j] = order[j], order[i]
        i += 1
        j -= 1
    order[high], order[i] = order[i], pivot
    return i


@helper
def in_order(x: Any, backwards: bool) -> Any:
    """Return the places of the elements of a sequence in order."""
    order = np.arange(len(x))
    lows = np.empty(100, np.int64)  # parts that are still to be sorted; the longer one always waits
    highs = np.empty(100, np.int64)
    lows[0] = 0
    highs[0] = len(x) - 1
    waiting = 1
    while waiting > 0:
        waiting -= 1
        low, high = lows[waiting], highs[waiting]
        while high - low >= 15:
            i = split_in_order(x, order, low, high, backwards)
            if high - i > i - low:
                lows[waiting], highs[waiting] = i + 1, high
                high = i - 1
            else:
                lows[waiting], highs[waiting] = low, i - 1
                low = i + 1
            waiting += 1
        for i in range(low + 1, high + 1):
            place = order[i]
            j = i
            while j > low and comes_before(x, place, order[j - 1], backwards):
                order[j] = order[j - 1]
                j -= 1
            order[j] = place
    return order


def spelled_out(*functions: Any) -> Callable[..., Any]:
    """Return the last of some helpers, which call each other, as functions that are not registered as helpers."""
    scope = dict(functions[-1].__globals__)
    for function in functions:
        scope[function.__name__] = made = FunctionType(function.__code__, scope, function.__name__)
        made.__module__ = function.__module__
    return made


in_order_of_any = spelled_out(comes_before, split_in_order, in_order)


@helper
def greatest(x: Any) -> int:
    """Return the place of the first of the greatest, as Python's `max` finds it."""
    place = 0
    for i in range(1, len(x)):
        if x[i] > x[place]:
            place = i
    return place


@helper
def least(x: Any) -> int:
    """Return the place of the first of the least, as Python's `min` finds it."""
    place = 0
    for i in range(1, len(x)):
        if x[i] < x[place]:
            place = i
    return place


@helper
def complex_greatest(x: Any) -> int:
    """Return the place of the first of the greatest complex numbers: those of the greatest real part come first."""
    place = 0
    for i in range(1, len(x)):
        if x[i].real > x[place].real or (x[i].real == x[place].real and x[i].imag > x[place].imag):
            place = i
    return place


@helper
def complex_least(x: Any) -> int:
    """Return the place of the first of the least complex numbers: those of the least real part come first."""
    place = 0
    for i in range(1, len(x)):
        if x[i].real < x[place].real or (x[i].real == x[place].real and x[i].imag < x[place].imag):
            place = i
    return place


@helper
def nan_greatest(x: Any) -> int:
    """Return the place of the first of the greatest numbers that are not NaN; 0 if all are."""
    place = 0
    for i in range(1, len(x)):
        if x[i] > x[place] or (np.isnan(x[place]) and not np.isnan(x[i])):
            place = i
    return place


@helper
def nan_least(x: Any) -> int:
    """Return the place of the first of the least numbers that are not NaN; 0 if all are."""
    place = 0
    for i in range(1, len(x)):
        if x[i] < x[place] or (np.isnan(x[place]) and not np.isnan(x[i])):
            place = i
    return place


@helper
def complex_nan_greatest(x: Any) -> int:
    """Return the place of the first of the greatest complex numbers whose real part is a number; 0 if there is none."""
    place = 0
    for i in range(1, len(x)):
        before = x[i].real > x[place].real or (x[i].real == x[place].real and x[i].imag > x[place].imag)
        if before or (np.isnan(x[place].real) and not np.isnan(x[i].real)):
            place = i
    return place


@helper
def complex_nan_least(x: Any) -> int:
    """Return the place of the first of the least complex numbers whose real part is a number; 0 if there is none."""
    place = 0
    for i in range(1, len(x)):
        before = x[i].real < x[place].real or (x[i].real == x[place].real and x[i].imag < x[place].imag)
        if before or (np.isnan(x[place].real) and not np.isnan(x[i].real)):
            place = i
    return place


@helper
def middle_places(x: Any) -> Any:
    """Return the places of the two middle numbers of an array, of the same one twice if their count is odd."""
    order = np.arange(len(x))
    low, high = 0, len(x) - 1
    last = len(x) >> 1
    first = last - 1 + (len(x) & 1)
    k = first
    while first < last:  # until one of the two is found; then the other is on one side of it
        i = split_in_order(x, order, low, high, False)
        if i in (first, last):
            k = first + last - i
            low, high = (i + 1, high) if i == first else (low, i - 1)
            break
        if i < first:
            low = i + 1
        else:
            high = i - 1
    while True:
        i = split_in_order(x, order, low, high, False)
        if i == k:
            break
        if i < k:
            low = i + 1
        else:
            high = i - 1
    places = np.empty(2, np.int64)
    places[0] = order[first]
    places[1] = order[last]
    return places


@helper
def counts(x: Any, bins: int, least: float, greatest: float) -> Any:
    """Return the numbers of elements in bins of equal width."""
    return np.histogram(x, bins, (least, greatest))[0]


@helper
def counts_between(x: Any, edges: Any) -> Any:
    """Return the numbers of elements between neighbouring edges."""
    return np.histogram(x, edges)[0]
