"""Several numbers as one value, such as the tangents in several directions: one operation acts on all of them.

    lanes(t_0, t_1, t_2)            their values as one: `np.array((t_0, t_1, t_2))` in plain Python
    lane(t, 1)                      the second of them
    lanes_at(ta, 3, i, j)           three numbers, at the end of an array with one more axis: `ta[i, j]`
    guarded_lanes(t, u)             `t`, with 0 where `u` is 0: `ops.guarded`
    interleaved(ta_0, ta_1)         one array with one more axis
    lane_of_array(ta, 1)            one of them again, as a view
    add_lanes(a, parts, 3)          a[i, j] += each of the numbers at parts[i, j]
    added_in_order(s, b, 3)         `s` and all numbers of `b`, added up lane by lane
    copy_slices(b, a, 3, 0, i)      the rows i, i + 1 and i + 2 to the lanes of `b`
    add_to_slices(a, b, 3, 0, i)    the lanes of `b` to these rows; `b` is zero then
    select_lanes(c, t, 0.0)         `t if c else 0.0` for each of them
    folded(t, 8)                    of 16 numbers the sums of the first and the ninth, the second and the tenth, ...
    plus(s, t), minus(s, t)         the next sum of one whose terms may be added up in any order

An array of such values is an array of numbers whose last axis counts the lanes. In Numba they are one vector of LLVM's:
`zygote_py.numba_adapter.target.lanes`. Arithmetic is that of plain Python's arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zygote_py.ir.ops.helpers import array_helper, helper
from zygote_py.ir.ops.table import Cost, Effect, operation


@helper
def lanes(*numbers: Any) -> Any:
    """Return several numbers as one value."""
    return np.array(numbers)


@helper
def lane(x: Any, number: int) -> Any:
    """Return one of several numbers."""
    return x[number]


@helper
def lanes_at(array: Any, count: int, *index: int) -> Any:
    """Return the `count` numbers at an index."""
    return array[index].copy()


@helper
def guarded_lanes(x: Any, *factors: Any) -> Any:
    """Return numbers, with 0 in the place of those where all factors are 0."""
    found = np.zeros_like(x)
    for number in range(len(x)):
        for each in factors:
            if each[number] != 0:
                found[number] = x[number]
    return found


@array_helper(*((0, axis) for axis in range(8)))
def interleaved(*arrays: Any) -> Any:
    """Return arrays of the same shape as one array with one more axis, which may be the one that they are views of."""
    found = np.empty((*arrays[0].shape, len(arrays)), arrays[0].dtype)
    for number in range(len(arrays)):
        found[..., number] = arrays[number]
    return found


@helper
def lane_of_array(array: Any, number: int) -> Any:
    """Return a view of one of the arrays that an array is made of."""
    return array[..., number]


def add_lanes(array: Any, parts: Any, count: int) -> None:
    """Add to each element of an array its parts, which are the `count` numbers at the same index of another."""
    for number in range(count):
        array += parts[..., number]


def added_in_order(total: Any, parts: Any, count: int) -> Any:
    """Return a number to which all numbers of an array are added, those of the first of `count` lanes first."""
    for number in range(count):
        for part in parts[..., number].ravel():
            total = total + part
    return total


def copy_slices(parts: Any, array: Any, count: int, axis: int, first: int) -> None:
    """Copy `count` neighbouring slices of an array, one to each lane of another."""
    for number in range(count):
        parts[..., number] = np.moveaxis(array, axis, 0)[first + number]


def add_to_slices(array: Any, parts: Any, count: int, axis: int, first: int) -> None:
    """Add each lane to one of `count` neighbouring slices of an array, and set it to zero."""
    for number in range(count):
        np.moveaxis(array, axis, 0)[first + number] += parts[..., number]
    parts[...] = 0


@helper
def select_lanes(condition: Any, then: Any, orelse: Any) -> Any:
    """Return several numbers, each from one of two values."""
    return np.where(condition, then, orelse)


@helper
def folded(x: Any, count: int) -> Any:
    """Return `count` sums of several numbers: both halves are added until there are no more."""
    while len(x) > count:
        x = x[: len(x) // 2] + x[len(x) // 2 :]
    return x


@helper
def plus(total: Any, term: Any) -> Any:
    """Return a sum to which a term is added, or was added before."""
    return total + term


@helper
def minus(total: Any, term: Any) -> Any:
    """Return a sum from which a term is subtracted, or was subtracted before."""
    return total - term


helper(add_lanes, Effect.WRITE)
helper(added_in_order, Effect.READ)
helper(copy_slices, Effect.WRITE)
helper(add_to_slices, Effect.WRITE)
operation(lanes, lane, guarded_lanes, select_lanes, folded, plus, minus, cost=Cost.CHEAP)
operation(lane_of_array, view=True)
