"""Sorting, order statistics and set operations: `sort partition median percentile quantile unique union1d ...`.

    np.sort(x)            x[np.argsort(x)]
    np.median(x)          k, l = middle_places(x); (x[k] + x[l]) / 2.0
    np.unique(x)          the sorted elements, of equal ones the first
    np.union1d(x, y)      those of both

The index of each result is found by comparisons, which have no derivative; the elements are then read. Of several equal
elements, the derivative belongs to the one that is taken. `np.intersect1d` has no implementation here: elements that
two arrays have in common do not remain common when one of them is changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from zygote_py.numpy_functions.support.argselect import middle_places
from zygote_py.numpy_functions.support.overloads import (
    INEXACT,
    Implementation,
    array,
    flattened,
    implements,
    in_memory_order,
    indented,
    is_number,
    is_row,
    known,
    nested,
    one_of,
    replaces,
    text,
)


@implements(np.sort, a=array(least=1, of=INEXACT))
def sort(a: Any) -> Implementation:
    """Return a copy, sorted along its last axis."""
    return text(["result = a.copy()", *_ordered_rows("result", a.ndim, "np.argsort(row)"), "return result"])


@implements(np.ndarray.sort, a=array(least=1, of=INEXACT), kind=one_of("quicksort", "mergesort", "stable"))
def sort_in_place(a: Any, kind: Any = "quicksort") -> Implementation:
    """Sort an array in place along its last axis."""
    how = "" if known(kind) == "quicksort" else ", kind='mergesort'"
    return text(_ordered_rows("a", a.ndim, f"np.argsort(row{how})"))


@implements(np.partition, a=array(least=1, of=types.Float))
def partition(a: Any, kth: Any) -> Implementation:
    """Return a copy, in whose last axis the elements before the `kth` are not greater, those after it not less."""
    rows = _ordered_rows("result", a.ndim, "np.argpartition(row, kth)")
    return text(["result = a.copy()", "if a.size:", *indented(rows), "return result"])


def _ordered_rows(array: str, ndim: int, places: str) -> list[str]:
    """Put each row of the last axis in the order of these places."""
    prefix = "".join(f"i{axis}, " for axis in range(ndim - 1))
    body = [
        f"row = {array}[{prefix}:].copy()",
        f"order = {places}",
        "for k in range(row.size):",
        f"    {array}[{prefix}k] = row[order[k]]",
    ]
    return nested([(f"i{axis}", f"a.shape[{axis}]") for axis in range(ndim - 1)], body)


@replaces(np.median, a=array(of=types.Float))
def median(a: Any) -> Any:
    """Return the middle element, or the mean of the two in the middle."""
    values = np.ravel(a)
    if values.size == 0:
        return np.nan
    places = middle_places(values)
    return (values[places[0]] + values[places[1]]) / 2 if values.size & 1 == 0 else values[places[0]]


@implements(np.nanmedian, a=array(of=types.Float))
def nanmedian(a: Any) -> Implementation:
    """Return the median of the elements that are not NaN."""
    flat = in_memory_order(a)

    def implementation(a: Any) -> Any:
        values = flat(a)
        count = values.size - np.sum(np.isnan(values))
        if count == 0:
            return np.nan
        order = np.argsort(values)  # NaN comes last
        half = count >> 1
        return (values[order[half - 1]] + values[order[half]]) / 2 if count & 1 == 0 else values[order[half]]

    return implementation


# -------------------------------------------------------------------------------------------------------- percentiles


def _is_row_of_reals(given: Any) -> bool:
    return is_row(given) and not isinstance(getattr(given, "dtype", given), types.Complex)


@implements(np.percentile, a=_is_row_of_reals, q=is_row)
def percentile(a: Any, q: Any) -> Implementation:
    """Return the value below which `q` percent of the elements are, linear between two of them; NaN if one is."""
    return _percentiles(a, q, 1.0, skip=False)


@implements(np.nanpercentile, a=_is_row_of_reals, q=is_row)
def nanpercentile(a: Any, q: Any) -> Implementation:
    """Return the percentiles of the elements that are not NaN."""
    return _percentiles(a, q, 1.0, skip=True)


@implements(np.quantile, a=_is_row_of_reals, q=is_row)
def quantile(a: Any, q: Any) -> Implementation:
    """Return percentiles for `q` given as fractions of one."""
    return _percentiles(a, q, 100.0, skip=False)


@implements(np.nanquantile, a=_is_row_of_reals, q=is_row)
def nanquantile(a: Any, q: Any) -> Implementation:
    """Return the quantiles of the elements that are not NaN."""
    return _percentiles(a, q, 100.0, skip=True)


def _percentiles(a: Any, q: Any, factor: float, skip: bool) -> Implementation:
    flat, flat_q = flattened(a), flattened(q)
    greatest = 100.0 / factor
    scaled = factor != 1.0

    def one(values: Any, order: Any, count: int, q: Any) -> Any:
        fraction = np.float64(q)
        if not 0.0 <= fraction <= greatest:
            raise ValueError("Percentiles must be in the range [0, 100], quantiles in the range [0, 1]")
        return _percentile(values, order, count, fraction * factor if scaled else fraction)

    def of_number(a: Any, q: Any) -> Any:
        values = flat(a)
        return one(values, np.argsort(values), _count(values, skip), flat_q(q)[0])

    def implementation(a: Any, q: Any) -> Any:
        values = flat(a)
        fractions = flat_q(q)
        order = np.argsort(values)
        count = _count(values, skip)
        result = np.empty(fractions.size, np.float64)
        for i in range(fractions.size):
            result[i] = one(values, order, count, fractions[i])
        return result

    return of_number if is_number(q) or getattr(q, "ndim", 1) == 0 else implementation


def _count(values: Any, skip: bool) -> Any:
    """Return the number of elements that count, which `argsort` has put first; 0 if NaN is the answer."""
    nans = np.sum(np.isnan(values))
    return 0 if nans and not skip else values.size - nans


def _percentile(values: Any, order: Any, count: int, percentile: float) -> Any:
    """Return one percentile of the elements `values[order[:count]]`, which are sorted."""
    if count == 0:
        return np.nan
    least = np.float64(values[order[0]])
    greatest = np.float64(values[order[count - 1]])
    if count == 1:
        return least if np.isfinite(least) else np.nan
    if percentile == 100:
        return greatest if np.isfinite(greatest) else np.nan
    if percentile == 0:
        positive = np.sum(values == np.inf)
        negative = np.sum(values == -np.inf)
        finite = count - positive - negative
        undefined = (
            (finite == 0)
            or (positive == 1 and count == 2)
            or (negative > 1)
            or (finite == 1 and positive > 1 and negative != 1)
        )
        return np.nan if undefined else least
    rank = 1 + (count - 1) * np.true_divide(percentile, 100.0)
    below = int(np.floor(rank))
    weight = rank - np.floor(rank)
    lower = np.float64(values[order[below - 1]])
    upper = np.float64(values[order[min(below, count - 1)]])
    return lower * (1 - weight) + upper * weight


@implements(np.unique, ar=is_row)
def unique(ar: Any) -> Implementation:
    """Return the sorted elements, each once."""
    flat = flattened(ar)

    def implementation(ar: Any) -> Any:
        row = np.sort(flat(ar))
        keep = np.ones(row.size, np.bool_)
        for i in range(1, row.size):
            keep[i] = not (row[i] == row[i - 1] or (row[i] != row[i] and row[i - 1] != row[i - 1]))
        return row[keep]

    return implementation


@implements(np.union1d, ar1=is_row, ar2=is_row)
def union1d(ar1: Any, ar2: Any) -> Implementation:
    """Return the sorted elements of two arrays, each once."""
    first, second = flattened(ar1), flattened(ar2)
    return lambda ar1, ar2: np.unique(np.concatenate((first(ar1), second(ar2))))


@implements(np.setdiff1d, ar1=is_row, ar2=is_row)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: object = False) -> Implementation:
    """Return the elements of one array that another does not have."""
    first, second = flattened(ar1), flattened(ar2)

    def implementation(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
        row, others = first(ar1), second(ar2)
        if not assume_unique:
            row, others = np.unique(row), np.unique(others)
        return row[np.isin(row, others, True, True)]

    return implementation


@implements(np.setxor1d, ar1=is_row, ar2=is_row)
def setxor1d(ar1: Any, ar2: Any, assume_unique: object = False) -> Implementation:
    """Return the sorted elements that only one of two arrays has."""
    first, second = flattened(ar1), flattened(ar2)

    def implementation(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
        row, others = first(ar1), second(ar2)
        if not assume_unique:
            row, others = np.unique(row), np.unique(others)
        both = np.sort(np.concatenate((row, others)))
        keep = np.ones(both.size, np.bool_)
        for i in range(1, both.size):
            if both[i] == both[i - 1]:
                keep[i - 1] = False
                keep[i] = False
        return both[keep]

    return implementation
