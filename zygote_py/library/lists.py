"""Lists: what is not an `append`, a `pop` of the last or an element, written with those.

    s.extend(t)         for v in t: s.append(v)
    list(x), List(x)    a new list, to which the elements are appended

A method is registered as that of `list`, for lists of `numba.typed` too. Errors are those that Numba's lists raise.
Slices are in `list_slices`, what compares elements in `list_order`, arrays made of lists in `list_arrays`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.typed import List

from zygote_py.library.arguments import is_none, is_number
from zygote_py.library.registry import implements

Implementation = Callable[..., Any] | None


_ITERABLE = (types.Array, types.UniTuple, types.NamedUniTuple, types.RangeType, types.UnicodeType, types.NumpyFlatType)


def is_iterable(given: object) -> bool:
    """Whether a loop can go over an argument: a list, an array, a range, or a tuple of values of one type."""
    return is_list(given) or isinstance(types.unliteral(given), (*_ITERABLE, types.EnumerateType, types.ZipType))


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


@implements(operator.imul)
def imul(s: Any, count: Any) -> Implementation:
    """`s *= count`, which changes the list itself."""
    if not is_list(s) or not isinstance(count, types.Integer):
        return None

    def implementation(s: Any, count: Any) -> Any:
        n = len(s)
        if count <= 0:
            s.clear()
        for _ in range(count - 1):
            for number in range(n):
                s.append(s[number])
        return s

    return implementation


@implements(list.extend)
def extend(s: Any, others: Any) -> Implementation:
    """`s.extend(others)`"""
    if not is_list(s):
        return None
    if not is_list(others):

        def of_any(s: Any, others: Any) -> Any:
            for v in others:
                s.append(v)

        return of_any if is_iterable(others) else None

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


@implements(list.copy)
def copy(s: Any) -> Implementation:
    """`s.copy()`"""
    return _new_list(s) if is_list(s) else None


@implements(list)
def make(iterable: Any = None) -> Implementation:
    """`list(iterable)`; without an argument it stays."""
    return None if is_none(iterable) else _new_list(iterable)


@implements(List)
def make_typed(iterable: Any = None) -> Implementation:
    """`numba.typed.List(iterable)`; without an argument it stays."""
    return None if is_none(iterable) else _new_list(iterable)


def _new_list(iterable: Any) -> Implementation:
    if is_list(iterable) or (isinstance(iterable, types.Array) and iterable.ndim == 1):

        def by_number(iterable: Any) -> Any:
            return [iterable[number] for number in range(len(iterable))]

        return by_number

    def implementation(iterable: Any) -> Any:
        return [v for v in iterable]  # noqa: C416 (`list(iterable)` is what this is)

    return implementation if is_iterable(iterable) else None


@implements(operator.add)
def add(s: Any, t: Any) -> Implementation:
    """`s + t`, of numbers of two types as Numba's numbers of both."""
    if not (is_list(s) and is_list(t)):
        return None
    if s.dtype != t.dtype and is_number(s.dtype) and is_number(t.dtype):

        def mixed(s: Any, t: Any) -> Any:
            made = [convert(s[number]) for number in range(len(s))]
            for v in t:
                made.append(convert(v))
            return made

        convert = np.result_type(np.dtype(str(s.dtype)), np.dtype(str(t.dtype))).type
        return mixed

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
