"""Statistics of several variables, and counts: `cov corrcoef histogram bincount`.

np.cov(m)    ->    d = m - (the mean of each row);  np.dot(d, np.conj(d.T)) * (1 / (n - 1))
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import (
    array,
    dtype_of,
    either,
    in_memory_order,
    is_array,
    is_integer,
    is_none,
    known,
    one_of,
    optional,
)
from zygote_py.library.places import counts, counts_between
from zygote_py.library.registry import Implementation, implements, replaces, text


@implements(np.cov, m=array(1, 2), y=optional(array(1, 2)), rowvar=one_of(True, False))
def cov(m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None) -> Implementation:
    """Return the covariances of the rows, or of the columns, of one or two arrays."""
    dtype = np.result_type(dtype_of(m), np.float64 if is_none(y) else dtype_of(y), np.float64)
    lines = _table(m, y, bool(known(rowvar)))
    if is_none(ddof):
        lines += ["fewer = 0 if bias else 1"]
    else:
        lines += ["fewer = ddof"]
        if isinstance(ddof, types.Float):
            lines += [
                "if not np.isfinite(ddof):",
                "    raise ValueError('Cannot convert non-finite ddof to integer')",
                "if ddof - int(ddof) != 0:",
                "    raise ValueError('ddof must be integral value')",
            ]
    lines += [
        "rows, columns = table.shape",
        "difference = np.empty((rows, columns), dtype_)",
        "for i in range(rows):",
        "    difference[i] = table[i] - np.sum(table[i]) / columns",
        "scale = np.true_divide(1, max(columns - fewer, 0.0))",
    ]
    if m.ndim == 1 and is_none(y):
        lines += [
            "if columns == 0:",
            "    variance = dtype_.type(np.nan)",
            "else:",
            "    variance = np.dot(difference[0], np.conj(difference[0])) * scale",
            "return np.array(variance)",
        ]
    else:
        lines += [
            "if rows == 0 or columns == 0:",
            "    return np.full((rows, rows), np.nan, dtype_)",
            "return np.dot(difference, np.conj(difference.T)) * scale",
        ]
    return text(lines, dtype_=dtype)


def _table(m: types.Array, y: Any, rowvar: bool) -> list[str]:
    """Make `table`, which has a row for each variable."""
    lines = []
    if m.ndim == 2:
        message = "2D array containing a single row is unsupported: pass the row as a 1D array, i.e. m[0]."
        lines += ["if m.shape[0] == 1:", f"    raise RuntimeError('{message}')"]
    turned = "" if rowvar or m.ndim == 1 else ".T"
    first = "m.reshape((1, m.size))" if m.ndim == 1 and m.layout == "C" else "m.copy().reshape((1, m.size))"
    lines += [f"first = {first if m.ndim == 1 else f'm{turned}'}"]
    if is_none(y):
        return [*lines, "table = first.astype(dtype_)"]
    if y.ndim == 1:
        second = "y.reshape((1, y.size))" if y.layout == "C" else "y.copy().reshape((1, y.size))"
    else:
        second = "y" if rowvar else "(y if y.shape[0] == 1 else y.T)"
    return [
        *lines,
        f"second = {second}",
        "if first.shape[1] != second.shape[1]:",
        "    raise ValueError('m and y have incompatible dimensions')",
        "table = np.empty((first.shape[0] + second.shape[0], first.shape[1]), dtype_)",
        "table[: first.shape[0]] = first",
        "table[first.shape[0] :] = second",
    ]


def _is_real_table(given: Any) -> bool:
    return array(1, 2)(given) and not isinstance(given.dtype, types.Complex)


@implements(np.corrcoef, x=_is_real_table, y=optional(_is_real_table), rowvar=one_of(True, False))
def corrcoef(x: Any, y: Any = None, rowvar: Any = True) -> Implementation:
    """Return the covariances divided by the standard deviations."""
    by_rows = bool(known(rowvar))
    if x.ndim == 1 and is_none(y):
        return text(["covariance = np.cov(x, y, by_rows)", "return covariance / covariance"], by_rows=by_rows)

    def implementation(x: Any, y: Any = None, rowvar: Any = True) -> Any:
        covariance = np.cov(x, y, by_rows)
        size = len(covariance)
        deviation = np.empty(size, np.float64)
        for i in range(size):
            deviation[i] = np.sqrt(covariance[i, i])
        result = np.empty((size, size), np.float64)
        for i in range(size):
            for j in range(size):
                first, second = max(i, j), min(i, j)
                value = np.divide(np.divide(covariance[i, j], deviation[first]), deviation[second])
                result[i, j] = np.sign(value) if abs(value) > 1 else value
        return result

    return implementation


@implements(np.histogram, a=array(of=types.Float), bins=either(is_array, is_integer))
def histogram(a: Any, bins: Any = 10, range: Any = None) -> Implementation:
    """Return the counts, which have no derivative, and the edges of the bins, which follow the extreme elements."""
    flat = in_memory_order(a)
    if isinstance(bins, types.Array):
        return lambda a, bins=10, range=None: (counts_between(flat(a), bins), bins)
    if is_none(range):

        def whole(a: Any, bins: Any = 10, range: Any = None) -> Any:
            least, greatest = np.nanmin(a), np.nanmax(a)
            return counts(flat(a), bins, least, greatest), np.linspace(least, greatest, bins + 1)

        return whole

    def implementation(a: Any, bins: Any = 10, range: Any = None) -> Any:
        return counts(flat(a), bins, range[0], range[1]), np.linspace(range[0], range[1], bins + 1)

    return implementation


@replaces(np.bincount, a=is_array, weights=is_array)
def bincount(a: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """Return the sum of the weights in each bin."""
    if len(a) != len(weights):
        raise ValueError("bincount(): weights and list don't have the same length")
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    if len(a) and np.min(a) < 0:
        raise ValueError("bincount(): first argument must be non-negative")
    result = np.zeros(max(np.max(a) + 1 if len(a) else 0, minlength), np.float64)
    for i in range(len(a)):
        result[a[i]] += weights[i]
    return result
