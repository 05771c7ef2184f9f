"""Helpers that build unions of sets of indices, identified by numbers as in `adjoints.dependence`.

sets = no_sets()
joined(sets, -1, -2)            1: the set of the elements 1 and 2; `sets` is [-1, -2] now
joined(sets, 1, -2)             1

Each array of floats is accompanied by an array of set numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from zygote_py.ir import helper
from zygote_py.ir.ops import Effect

Sets = list[int]
Ids = Any  # arrays of set numbers
F = TypeVar("F", bound=Callable[..., object])


def _acting(function: F) -> F:
    return helper(function, Effect.WRITE)


def _allocating(function: F) -> F:
    return helper(function, Effect.ALLOCATE)


@_allocating
def no_sets() -> Sets:
    """An empty list of unions."""
    sets = [0]  # so that Numba knows of what it is a list
    sets.pop()
    return sets


@_acting
def joined(sets: Sets, first: int, second: int) -> int:
    """The union of two sets. One that is seen to be in the other makes no new one."""
    if first == second or second == 0:
        return first
    if first == 0:
        return second
    if first > 0 and (sets[2 * first - 2] == second or sets[2 * first - 1] == second):
        return first
    if second > 0 and (sets[2 * second - 2] == first or sets[2 * second - 1] == first):
        return second
    sets.append(first)
    sets.append(second)
    return len(sets) // 2


@_acting
def joined_all(sets: Sets, ids: Ids) -> int:
    """The union of all sets in an array."""
    found = 0
    for index in np.ndindex(ids.shape):
        found = joined(sets, found, ids[index])
    return found


@_acting
def joined_rows(sets: Sets, ids: Ids) -> Ids:
    """The union of each row."""
    found = np.zeros(ids.shape[0], np.int64)
    for i in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            found[i] = joined(sets, found[i], ids[i, j])
    return found


@_acting
def joined_columns(sets: Sets, ids: Ids) -> Ids:
    """The union of each column."""
    found = np.zeros(ids.shape[1], np.int64)
    for i in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            found[j] = joined(sets, found[j], ids[i, j])
    return found


@_acting
def joined_outer(sets: Sets, rows: Ids, columns: Ids) -> Ids:
    """The union of each of some sets with each of others."""
    found = np.empty((len(rows), len(columns)), np.int64)
    for i in range(len(rows)):
        for j in range(len(columns)):
            found[i, j] = joined(sets, rows[i], columns[j])
    return found


@_acting
def widen(sets: Sets, ids: Ids, more: int) -> None:
    """Add a set to each in an array."""
    for index in np.ndindex(ids.shape):
        ids[index] = joined(sets, ids[index], more)


@_allocating
def as_array(sets: Sets) -> Ids:
    """The list as an array."""
    found = np.empty(len(sets), np.int64)
    for k in range(len(sets)):
        found[k] = sets[k]
    return found
