"""Sparsity patterns and their colorings, which determine the columns that are computed in the same direction.

    rows_of(sets, unions, n)                the rows of the pattern, from sets as numbered in
                                            `zygote_py.adjoints.forward.dependence`
    colour_columns(pattern, dense)          columns of one color do not share a row that is not dense
    colour_symmetric(pattern)               for a symmetric matrix; its densest columns have a color each

Columns are colored greedily in their order, with the smallest color that no column with a common row has: a banded
matrix gets as many colors as its band is wide. See Curtis, Powell and Reid, "On the estimation of sparse Jacobian
matrices" (1974), and for symmetric matrices Powell and Toint, "On the estimation of sparse Hessian matrices" (1979).
This module does not involve functions or derivatives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from zygote_py import numba_adapter
from zygote_py.cache import code_of_helper
from zygote_py.ir.lazy_dataclass import dataclass

Ints = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F) -> F:
    """Return the function compiled, its code kept in the cache, or in plain Python while Numba is disabled."""
    settings: Any = numba.config

    @functools.cache
    def compiled() -> Any:
        return numba_adapter.make_dispatcher(
            function, lambda given: function, {}, lambda given: code_of_helper(function)
        )

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return (function if settings.DISABLE_JIT else compiled())(*args)

    return cast(F, call)


@dataclass(frozen=True, eq=False)
class Pattern:
    """A sparsity pattern: the entries of row `i` are in the columns `columns[starts[i] : starts[i + 1]]`, in order."""

    shape: tuple[int, int]
    starts: Ints
    columns: Ints

    @property
    def rows(self) -> Ints:
        """The row of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.starts))

    def symmetric(self) -> Pattern:
        """Return the smallest symmetric pattern with these entries, of a square matrix."""
        rows, columns = self.rows, self.columns
        return pattern_of(self.shape, np.concatenate((rows, columns)), np.concatenate((columns, rows)))


def pattern_of(shape: tuple[int, int], rows: Ints, columns: Ints) -> Pattern:
    """Return the pattern with these entries, which may be unordered and repeated."""
    order = np.lexsort((columns, rows))
    rows, columns = rows[order].astype(np.int64), columns[order].astype(np.int64)
    first = np.ones(len(rows), np.bool_)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    starts = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.bincount(rows[first], minlength=shape[0]), out=starts[1:])
    return Pattern(shape, starts, columns[first])


def rows_of(sets: Ints, unions: Ints, n: int) -> Pattern:
    """Return the pattern of a matrix with `n` columns whose rows are sets of columns.

    Parameters
    ----------
    sets : array of int, shape (m,)
        The number of the set of each row.
    unions : array of int
        The two operands of each union; sets with positive numbers are unions.
    n : int
        The number of columns.

    Returns
    -------
    Pattern
    """
    from scipy.sparse import csr_array

    starts, columns = _rows_of(sets, unions, n)
    rows = csr_array((np.ones(len(columns), np.bool_), columns, starts), shape=(len(sets), n))
    rows.sort_indices()
    return Pattern((len(sets), n), starts, rows.indices.astype(np.int64))


@_compiled
def _rows_of(sets: Ints, unions: Ints, n: int) -> tuple[Ints, Ints]:
    starts = np.zeros(len(sets) + 1, np.int64)
    columns = np.empty(max(4 * len(sets), 16), np.int64)
    found = np.zeros(n, np.int64)  # the last row, counted from 1, that had a column
    seen = np.zeros(len(unions) // 2 + 1, np.int64)  # the same for a union
    first = np.zeros(len(unions) // 2 + 1, np.int64)  # the first row that was a union
    pending = np.empty(len(unions) // 2 + 2, np.int64)
    end = 0
    for row in range(len(sets)):
        if end + n > len(columns):
            larger = np.empty(2 * len(columns) + n, np.int64)
            for at in range(end):
                larger[at] = columns[at]
            columns = larger
        given = sets[row]
        if given > 0 and first[given] > 0:
            other = first[given] - 1
            for at in range(starts[other], starts[other + 1]):
                columns[end] = columns[at]
                end += 1
        elif given < 0:
            columns[end] = -given - 1
            end += 1
        elif given > 0:
            first[given] = row + 1
            pending[0] = given
            waiting = 1
            while waiting:
                waiting -= 1
                union = pending[waiting]
                for k in range(2 * union - 2, 2 * union):
                    part = unions[k]
                    if part > 0:
                        if seen[part] != row + 1:
                            seen[part] = row + 1
                            pending[waiting] = part
                            waiting += 1
                    elif part < 0 and found[-part - 1] != row + 1:
                        found[-part - 1] = row + 1
                        columns[end] = -part - 1
                        end += 1
        starts[row + 1] = end
    return starts, columns[:end]


def colour_columns(pattern: Pattern, dense: Mask) -> tuple[Ints, int]:
    """Color columns so that those of one color do not share a row, except `dense` rows.

    Parameters
    ----------
    pattern : Pattern
        The pattern of the matrix.
    dense : array of bool, shape (m,)
        Whether each row may be shared.

    Returns
    -------
    colors : array of int, shape (n,)
        The color of each column, -1 if all its entries are in dense rows.
    count : int
        The number of colors.
    """
    return _coloured(pattern, dense, np.full(pattern.shape[1], -1), 0)


def colour_symmetric(pattern: Pattern) -> tuple[Ints, int, Mask]:
    """Color the columns of a symmetric pattern so that each entry, or its mirror image, can be read off.

    The densest columns, as many as reduce the total, get a color each: they yield all their entries and the mirror
    images of these. Of the other columns, those of one color do not share any other row.

    Parameters
    ----------
    pattern : Pattern
        A symmetric pattern.

    Returns
    -------
    colors : array of int, shape (n,)
        The color of each column, -1 if all its entries are in the rows of the densest columns.
    count : int
        The number of colors.
    densest : array of bool, shape (n,)
        Whether each column is one of the densest.
    """
    dense = dense_rows(pattern, 1, 0)
    colours = np.full(pattern.shape[1], -1)
    count = int(np.count_nonzero(dense))
    colours[dense] = np.arange(count)
    return *_coloured(pattern, dense, colours, count), dense


def dense_rows(pattern: Pattern, price: int, gain: int) -> Mask:
    """Return the rows without which fewer directions are needed, at least as many as their longest row has entries.

    Parameters
    ----------
    pattern : Pattern
        The pattern of the matrix.
    price : int
        The cost of computing such a row by itself, in directions.
    gain : int
        The minimal number of directions to be saved.

    Returns
    -------
    array of bool, shape (m,)
    """
    lengths = np.diff(pattern.starts)
    order = np.argsort(-lengths, kind="stable")
    cost = price * np.arange(len(order) + 1) + np.append(lengths[order], 0)
    count = int(np.argmin(cost))
    dense = np.zeros(pattern.shape[0], np.bool_)
    if cost[0] - cost[count] > gain:
        dense[order[:count]] = True
    return dense


def _coloured(pattern: Pattern, dense: Mask, colours: Ints, taken: int) -> tuple[Ints, int]:
    by_column = np.argsort(pattern.columns, kind="stable")
    starts = np.zeros(pattern.shape[1] + 1, np.int64)
    np.cumsum(np.bincount(pattern.columns, minlength=pattern.shape[1]), out=starts[1:])
    rows = pattern.rows[by_column]
    count = _colour(pattern.starts, pattern.columns, starts, rows, dense, colours, taken)
    return colours, int(count)


@_compiled
def _colour(
    row_starts: Ints, columns: Ints, column_starts: Ints, rows: Ints, dense: Mask, colours: Ints, taken: int
) -> int:
    """Color the columns without a color, starting with color `taken`; return the number of colors."""
    n = len(column_starts) - 1
    refused = np.full(n + taken + 1, -1)  # by which column last
    count = taken
    for column in range(n):
        if colours[column] >= 0:
            continue
        matters = False
        for at in range(column_starts[column], column_starts[column + 1]):
            row = rows[at]
            if not dense[row]:
                matters = True
                for other in range(row_starts[row], row_starts[row + 1]):
                    colour = colours[columns[other]]
                    if colour >= 0:
                        refused[colour] = column
        if not matters:
            continue
        colour = taken
        while refused[colour] == column:
            colour += 1
        colours[column] = colour
        count = max(count, colour + 1)
    return count
