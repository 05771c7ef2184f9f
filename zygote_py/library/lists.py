"""Lists: what is not an `append`, a `pop` of the last or an element, written with those.

    s.extend(t)         for v in t: s.append(v)
    s[1:]               a new list, to which the elements are appended
    np.array(s)         a new array, filled in a loop

A method is registered as that of `list`, for lists of `numba.typed` too. Errors are those that Numba's lists raise.
Sorting and searching a list is not here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import is_none
from zygote_py.library.registry import implements

Implementation = Callable[..., Any] | None


def is_list(given: object) -> bool:
    """Whether an argument is a list."""
    return isinstance(given, types.List | types.ListType)


@implements(operator.iadd)
def iadd(s: Any, others: Any) -> Implementation:
    """`s += others`"""
    if not is_list(s):
        return None

    def implementation(s: Any, others: Any) -> Any:
        s.extend(others)
        return s

    return implementation


@implements(list.extend)
def extend(s: Any, others: Any) -> Implementation:
    """`s.extend(others)`"""
    if not is_list(s):
        return None

    def implementation(s: Any, others: Any) -> Any:
        for number in range(len(others)):  # not those that are appended to `others` meanwhile, which may be s
            s.append(others[number])

    return implementation


@implements(list.insert)
def insert(s: Any, index: Any, value: Any) -> Implementation:
    """`s.insert(index, value)`"""
    if not is_list(s):
        return None

    def implementation(s: Any, index: Any, value: Any) -> Any:
        n = len(s)
        at = max(index + n, 0) if index < 0 else min(index, n)
        s.append(value)
        for number in range(n, at, -1):
            s[number] = s[number - 1]
        s[at] = value

    return implementation


@implements(list.pop)
def pop(s: Any, index: Any = None) -> Implementation:
    """`s.pop(index)`; without an index it stays."""
    if not is_list(s) or is_none(index):
        return None

    def implementation(s: Any, index: Any) -> Any:
        n = len(s)
        if n == 0:
            raise IndexError("pop from empty list")
        at = index + n if index < 0 else index
        if at < 0 or at >= n:
            raise IndexError("pop index out of range")
        found = s[at]
        for number in range(at, n - 1):
            s[number] = s[number + 1]
        s.pop()
        return found

    return implementation


@implements(list.clear)
def clear(s: Any) -> Implementation:
    """`s.clear()`"""
    if not is_list(s):
        return None

    def implementation(s: Any) -> Any:
        while len(s) > 0:
            s.pop()

    return implementation


@implements(list.reverse)
def reverse(s: Any) -> Implementation:
    """`s.reverse()`"""
    if not is_list(s):
        return None

    def implementation(s: Any) -> Any:
        n = len(s)
        for number in range(n // 2):
            first, last = s[number], s[n - 1 - number]
            s[number] = last
            s[n - 1 - number] = first

    return implementation


@implements(list.copy, list)
def copy(s: Any) -> Implementation:
    """`s.copy()`, also `list(s)`."""
    if not (is_list(s) or (isinstance(s, types.Array) and s.ndim == 1)):
        return None

    def implementation(s: Any) -> Any:
        return [s[number] for number in range(len(s))]

    return implementation


@implements(operator.add)
def add(s: Any, t: Any) -> Implementation:
    """`s + t`"""
    if not (is_list(s) and is_list(t)):
        return None

    def implementation(s: Any, t: Any) -> Any:
        made = s.copy()
        for v in t:
            made.append(v)
        return made

    return implementation


@implements(operator.mul)
def mul(s: Any, count: Any) -> Implementation:
    """`s * count`, also `count * s`."""
    if is_list(count):

        def swapped(count: Any, s: Any) -> Any:
            made = [s[number] for number in range(0)]
            for _ in range(count):
                for v in s:
                    made.append(v)
            return made

        return swapped
    if not is_list(s):
        return None

    def implementation(s: Any, count: Any) -> Any:
        made = [s[number] for number in range(0)]
        for _ in range(count):
            for v in s:
                made.append(v)
        return made

    return implementation


@implements(operator.getitem)
def getitem(s: Any, index: Any) -> Implementation:
    """`s[a:b]`; with a step it stays."""
    if not is_list(s) or not isinstance(index, types.SliceType) or index.has_step:
        return None

    def implementation(s: Any, index: Any) -> Any:
        n, start, stop = len(s), index.start, index.stop
        start = max(start + n, 0) if start < 0 else min(start, n)
        stop = max(stop + n, 0) if stop < 0 else min(stop, n)
        return [s[number] for number in range(start, stop)]

    return implementation


def part_of(index: slice) -> Callable[..., Any]:
    """`s[index]` of an index that is a constant, as a function of `s`."""
    no_start, no_stop = index.start is None, index.stop is None
    first, last, step = index.start or 0, index.stop or 0, 1 if index.step is None else index.step

    def implementation(s: Any) -> Any:
        n = len(s)
        lowest, highest = (0, n) if step > 0 else (-1, n - 1)
        start = max(first + n, lowest) if first < 0 else min(first, highest)
        stop = max(last + n, lowest) if last < 0 else min(last, highest)
        if no_start:
            start = lowest if step > 0 else highest
        if no_stop:
            stop = highest if step > 0 else lowest
        return [s[number] for number in range(start, stop, step)]

    return implementation


@implements(np.array)
def array(object: Any, dtype: Any = None) -> Implementation:
    """`np.array(s)`, of a list of numbers or of lists of numbers."""
    if not is_list(object) or not is_none(dtype):
        return None
    if isinstance(object.dtype, types.Number):

        def implementation(object: Any, dtype: Any = None) -> Any:
            made = np.empty(len(object), kind)
            for number in range(len(object)):
                made[number] = object[number]
            return made

        kind = np.dtype(str(object.dtype))
        return implementation
    if not (is_list(object.dtype) and isinstance(object.dtype.dtype, types.Number)):
        return None
    inner = np.dtype(str(object.dtype.dtype))

    def nested(object: Any, dtype: Any = None) -> Any:
        columns = len(object[0]) if len(object) > 0 else 0
        made = np.empty((len(object), columns), inner)
        for row in range(len(object)):
            if len(object[row]) != columns:
                raise ValueError("cannot create array from sequences of different lengths")
            for column in range(columns):
                made[row, column] = object[row][column]
        return made

    return nested
