"""Positions of results in an array: functions that return the index from which a result is then read.

    np.max(x)    ->    x[np.argmax(x)]          np.nanmax(x)    ->    x[nan_greatest(x)]

They compare numbers and give integers, so nothing is differentiated in them. They are helpers: an emitted module has
their source. Each goes through the array as Numba's function does, and so answers alike where there are NaNs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zygote_py.ir.ops.helpers import helper


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
def split_at_pivot(x: Any, order: Any, low: int, high: int) -> int:
    """Move the places in `order[low:high + 1]` of what is less than a pivot before its place, the others after it."""
    middle = (low + high) >> 1
    for upper, lower in ((middle, low), (high, middle), (middle, low)):
        if x[order[upper]] < x[order[lower]]:
            order[upper], order[lower] = order[lower], order[upper]
    pivot = x[order[middle]]
    order[middle], order[high] = order[high], order[middle]
    i = low
    j = high - 1
    while True:
        while i < high and x[order[i]] < pivot:
            i += 1
        while j >= low and pivot < x[order[j]]:
            j -= 1
        if i >= j:
            break
        order[i], order[j] = order[j], order[i]
        i += 1
        j -= 1
    order[i], order[high] = order[high], order[i]
    return i


@helper
def middle_places(x: Any) -> Any:
    """Return the places of the two middle numbers of an array, of the same one twice if their count is odd."""
    order = np.arange(len(x))
    low, high = 0, len(x) - 1
    last = len(x) >> 1
    first = last - 1 + (len(x) & 1)
    k = first
    while first < last:  # until one of the two is found; then the other is on one side of it
        i = split_at_pivot(x, order, low, high)
        if i in (first, last):
            k = first + last - i
            low, high = (i + 1, high) if i == first else (low, i - 1)
            break
        if i < first:
            low = i + 1
        else:
            high = i - 1
    while True:
        i = split_at_pivot(x, order, low, high)
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
