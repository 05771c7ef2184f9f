"""Arrays as sets: `unique`, `union1d`, `setdiff1d`, `setxor1d`.

    np.unique(x)          the sorted elements, of equal ones the first
    np.union1d(x, y)      those of both

Which elements are taken has no derivative; those that are taken have that of a copy. Of several that are equal the
derivative belongs to the one that is taken. `np.intersect1d` is not here: what two arrays have in common by being equal
does not stay common when one of them is moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zygote_py.library.arguments import flattened, is_row
from zygote_py.library.registry import Implementation, implements


@implements(np.unique, ar=is_row)
def unique(ar: Any) -> Implementation:
    """Return the sorted elements, each once."""
    flat = flattened(ar)

    def implementation(ar: Any) -> Any:
        row = np.sort(flat(ar))
        keep = np.ones(row.size, np.bool_)
        for i in range(1, row.size):
            same = row[i] == row[i - 1] or (row[i] != row[i] and row[i - 1] != row[i - 1])
            keep[i] = not same
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
