"""Lists: what is not an `append`, a `pop` of the last or an element, written with those.

    s.extend(t)         for v in t: s.append(v)
    list(x), List(x)    a new list, to which the elements are appended

A method is registered as that of `list`, for lists of `numba.typed` too. Errors are those that Numba's lists raise.
Slices are in `list_slices`, what compares elements in `list_order`, arrays made of lists in `list_arrays`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba import types
from numba.typed import List

from zygote_py.library.arguments import array, is_list, is_none, is_number
from zygote_py.library.registry import Implementation, implements, replaces, text

_ITERABLE = (types.Array, types.UniTuple, types.NamedUniTuple, types.RangeType, types.UnicodeType, types.NumpyFlatType)


def is_iterable(given: object) -> bool:
    """Return whether a loop can go over an argument: a list, an array, a range, or a tuple of values of one type."""
    return is_list(given) or isinstance(types.unliteral(given), (*_ITERABLE, types.EnumerateType, types.ZipType))


@replaces(operator.iadd, s=is_list)
def iadd(s: Any, others: Any) -> Any:
    """`s += others`"""
    s.extend(others)
    return s


@replaces(operator.imul, s=is_list, count=lambda count: isinstance(count, types.Integer))
def imul(s: Any, count: Any) -> Any:
    """`s *= count`, which changes the list itself."""
    n = len(s)
    if count <= 0:
        s.clear()
    for _ in range(count - 1):
        for number in range(n):
            s.append(s[number])
    return s


@implements(list.extend, s=is_list, others=is_iterable)
def extend(s: Any, others: Any) -> Implementation:
    """`s.extend(others)`"""
    if is_list(others):  # not those that are appended to `others` meanwhile, which may be s
        return text(["for number in range(len(others)):", "    s.append(others[number])"])
    return text(["for v in others:", "    s.append(v)"])


@replaces(list.insert, s=is_list)
def insert(s: Any, index: Any, value: Any) -> None:
    """`s.insert(index, value)`"""
    n = len(s)
    at = max(index + n, 0) if index < 0 else min(index, n)
    s.append(value)
    for number in range(n, at, -1):
        s[number] = s[number - 1]
    s[at] = value


@implements(list.pop, s=is_list)
def pop(s: Any, index: Any = None) -> Implementation:
    """`s.pop(index)`; without an index it stays."""
    return None if is_none(index) else _pop


def _pop(s: Any, index: Any) -> Any:
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


@replaces(list.clear, s=is_list)
def clear(s: Any) -> None:
    """`s.clear()`"""
    while len(s) > 0:
        s.pop()


@replaces(list.reverse, s=is_list)
def reverse(s: Any) -> None:
    """`s.reverse()`"""
    n = len(s)
    for number in range(n // 2):
        first, last = s[number], s[n - 1 - number]
        s[number] = last
        s[n - 1 - number] = first


@implements(list.copy, iterable=is_list)
@implements(list, List, iterable=is_iterable)
def new_list(iterable: Any = None) -> Implementation:
    """`s.copy()`, `list(iterable)`, `numba.typed.List(iterable)`; without an argument it stays."""
    return _copy if is_list(iterable) or array(1)(iterable) else _list_of


def _copy(iterable: Any) -> Any:
    return [iterable[number] for number in range(len(iterable))]


def _list_of(iterable: Any) -> Any:
    return [v for v in iterable]  # noqa: C416 (`list(iterable)` is what this is)


@implements(operator.add, s=is_list, t=is_list)
def add(s: Any, t: Any) -> Implementation:
    """`s + t`, of numbers of two types as Numba's numbers of both."""
    if s.dtype == t.dtype or not is_number(s.dtype) or not is_number(t.dtype):
        return text(["made = s.copy()", "for v in t:", "    made.append(v)", "return made"])
    convert = np.result_type(np.dtype(str(s.dtype)), np.dtype(str(t.dtype))).type
    lines = [
        "made = [convert(s[number]) for number in range(len(s))]",
        "for v in t:",
        "    made.append(convert(v))",
        "return made",
    ]
    return text(lines, convert=convert)


@implements(operator.mul)
def mul(s: Any, count: Any) -> Implementation:
    """`s * count`, also `count * s`."""
    if is_list(count):
        return lambda count, s: _repeated(s, count)
    return _repeated if is_list(s) else None


def _repeated(s: Any, count: Any) -> Any:
    made = [s[number] for number in range(0)]
    for _ in range(count):
        for v in s:
            made.append(v)
    return made
