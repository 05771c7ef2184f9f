"""Comparisons of the elements of lists: searching, the order of lists, sorting.

    x in s              for v in s: if v == x: return True
    s.sort()            the order of the elements, by comparisons; then the elements are moved
    sorted(x)           a new list, sorted

Comparing has no derivative. Numbers are sorted by a helper (`zygote_py.library.ordering`), whose source is in the
emitted module; anything else by the same function, inlined.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import is_list, is_none
from zygote_py.library.lists import is_iterable
from zygote_py.library.ordering import in_order, in_order_of_any
from zygote_py.library.registry import Implementation, implements, replaces, text

_MOST = types.intp.maxval


def _searches(s: Any, value: Any, *_: Any) -> bool:
    """Return whether a list can be searched for a value; typed lists search for an integer in place of a float."""
    if not is_list(s):
        return False
    return not (isinstance(s, types.ListType) and isinstance(s.dtype, types.Integer) and isinstance(value, types.Float))


@replaces(operator.contains, where=_searches)
def contains(s: Any, value: Any) -> Any:
    """`value in s`"""
    for number in range(len(s)):  # noqa: SIM110 (Numba has no `any`)
        if s[number] == value:
            return True
    return False


@replaces(list.count, where=_searches)
def count(s: Any, value: Any) -> Any:
    """`s.count(value)`"""
    found = 0
    for number in range(len(s)):
        if s[number] == value:
            found += 1
    return found


@implements(list.index, where=_searches)
def index(s: Any, value: Any, start: Any = 0, stop: Any = _MOST) -> Implementation:
    """`s.index(value, start, stop)`"""
    message = "item not in list" if isinstance(s, types.ListType) else "value not in list"

    def implementation(s: Any, value: Any, start: Any = 0, stop: Any = _MOST) -> Any:
        n = len(s)
        first = max(start + n, 0) if start < 0 else start
        last = stop + n if stop < 0 else min(stop, n)
        for number in range(first, last):
            if s[number] == value:
                return number
        raise ValueError(message)

    return implementation


@replaces(list.remove, where=_searches)
def remove(s: Any, value: Any) -> Any:
    """`s.remove(value)`"""
    for number in range(len(s)):
        if s[number] == value:
            s.pop(number)
            return
    raise ValueError("list.remove(x): x not in list")


# ------------------------------------------------------------------------------------------------- lists in order


def _are_comparable(s: Any, t: Any) -> bool:
    """Return whether both are lists, or both lists of `numba.typed`."""
    return any(isinstance(s, kind) and isinstance(t, kind) for kind in (types.List, types.ListType))


@replaces(operator.eq, where=_are_comparable)
def eq(s: Any, t: Any) -> Any:
    """`s == t`"""
    if len(s) != len(t):
        return False
    for number in range(len(s)):  # noqa: SIM110 (Numba has no `all`)
        if s[number] != t[number]:
            return False
    return True


@replaces(operator.ne, where=_are_comparable)
def ne(s: Any, t: Any) -> Any:
    """`s != t`"""
    return not eq(s, t)


def _implement_order(function: Callable[[Any, Any], Any], sign: str) -> None:
    """Register `s < t`, or the same with another sign; of typed lists, Numba compares the lengths first."""
    one, other = ("s", "t") if sign[0] == "<" else ("t", "s")

    @implements(function, where=_are_comparable)
    def compare(s: Any, t: Any) -> Implementation:
        if isinstance(s, types.ListType):
            return text([f"return order(s, t) {sign} 0"], order=_order_of_typed)
        lines = [
            "for number in range(min(len(s), len(t))):",
            f"    if {one}[number] < {other}[number]:",
            "        return True",
            f"    if {one}[number] > {other}[number]:",
            "        return False",
            f"return len(s) {sign} len(t)",
        ]
        return text(lines)


for _function, _sign in ((operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">=")):
    _implement_order(_function, _sign)


def _order_of_typed(s: Any, t: Any) -> Any:
    """Return -1, 0 or 1; the shorter list comes first."""
    if len(s) != len(t):
        return -1 if len(s) < len(t) else 1
    for number in range(len(s)):
        if s[number] != t[number]:
            return -1 if s[number] < t[number] else 1
    return 0


# ------------------------------------------------------------------------------------------------------- sorting


@implements(list.sort, s=is_list)
def sort(s: Any, key: Any = None, reverse: Any = False) -> Implementation:
    """`s.sort(key=key, reverse=reverse)`; equal elements come in the order in which Numba has them."""
    if not is_none(key):

        def by_key(s: Any, key: Any = None, reverse: Any = False) -> Any:
            keys = [key(s[number]) for number in range(len(s))]
            _move(s, in_order_of_any(keys, reverse != 0))

        return by_key
    order = _order_of(s)
    return lambda s, key=None, reverse=False: _move(s, order(s, reverse != 0))


def _move(s: Any, order: Any) -> Any:
    """Put the elements of a list in this order."""
    old = s.copy()
    for number in range(len(s)):
        s[number] = old[order[number]]


def _order_of(s: Any) -> Callable[..., Any]:
    """Return the function that computes the sorted order of the indices of such a list."""
    if not isinstance(s.dtype, types.Float | types.Integer | types.Boolean):
        return in_order_of_any
    kind = np.dtype(str(s.dtype))

    def order(s: Any, backwards: Any) -> Any:
        numbers = np.empty(len(s), kind)
        for number in range(len(s)):
            numbers[number] = s[number]
        return in_order(numbers, backwards)

    return order


@replaces(builtins.sorted, iterable=is_iterable)
def sorted(iterable: Any, key: Any = None, reverse: Any = False) -> Any:
    """`sorted(iterable, key=key, reverse=reverse)`"""
    made = list(iterable)
    made.sort(key=key, reverse=reverse)
    return made
