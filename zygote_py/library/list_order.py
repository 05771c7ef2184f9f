"""What compares the elements of lists: searching, the order of lists, sorting.

    x in s              for v in s: if v == x: return True
    s.sort()            the places of the elements in order, by comparing; then the elements are moved to theirs
    sorted(x)           a new list, sorted

Comparing has no derivative. Numbers are put in order by a helper (`zygote_py.library.ordering`), of which the emitted
module has the source; anything else by the same function, put in the place of the call.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import is_none
from zygote_py.library.lists import is_iterable, is_list
from zygote_py.library.ordering import in_order, in_order_of_any
from zygote_py.library.registry import implements

Implementation = Callable[..., Any] | None
_MOST = types.intp.maxval


def _searches(s: Any, value: Any) -> bool:
    """Whether a value can be looked for in a list; Numba's typed lists look for an integer in the place of a float."""
    if not is_list(s):
        return False
    return not (isinstance(s, types.ListType) and isinstance(s.dtype, types.Integer) and isinstance(value, types.Float))


@implements(operator.contains)
def contains(s: Any, value: Any) -> Implementation:
    """`value in s`"""
    if not _searches(s, value):
        return None

    def implementation(s: Any, value: Any) -> Any:
        for number in range(len(s)):  # noqa: SIM110 (Numba has no `any`)
            if s[number] == value:
                return True
        return False

    return implementation


@implements(list.count)
def count(s: Any, value: Any) -> Implementation:
    """`s.count(value)`"""
    if not _searches(s, value):
        return None

    def implementation(s: Any, value: Any) -> Any:
        found = 0
        for number in range(len(s)):
            if s[number] == value:
                found += 1
        return found

    return implementation


@implements(list.index)
def index(s: Any, value: Any, start: Any = 0, stop: Any = _MOST) -> Implementation:
    """`s.index(value, start, stop)`"""
    if not _searches(s, value):
        return None
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


@implements(list.remove)
def remove(s: Any, value: Any) -> Implementation:
    """`s.remove(value)`"""
    if not _searches(s, value):
        return None

    def implementation(s: Any, value: Any) -> Any:
        for number in range(len(s)):
            if s[number] == value:
                s.pop(number)
                return
        raise ValueError("list.remove(x): x not in list")

    return implementation


# ------------------------------------------------------------------------------------------------- lists in order


def _of_two(s: Any, t: Any, reflected: Implementation, typed: Implementation) -> Implementation:
    """The comparison for lists, or for lists of `numba.typed`, of which Numba asks for the lengths first."""
    if isinstance(s, types.List) and isinstance(t, types.List):
        return reflected
    if isinstance(s, types.ListType) and isinstance(t, types.ListType):
        return typed
    return None


@implements(operator.eq)
def eq(s: Any, t: Any) -> Implementation:
    """`s == t`"""
    return _of_two(s, t, _equal, _equal)


@implements(operator.ne)
def ne(s: Any, t: Any) -> Implementation:
    """`s != t`"""

    def implementation(s: Any, t: Any) -> Any:
        return not _equal(s, t)

    return _of_two(s, t, implementation, implementation)


def _equal(s: Any, t: Any) -> Any:
    if len(s) != len(t):
        return False
    for number in range(len(s)):  # noqa: SIM110 (Numba has no `all`)
        if s[number] != t[number]:
            return False
    return True


@implements(operator.lt)
def lt(s: Any, t: Any) -> Implementation:
    """`s < t`"""

    def typed(s: Any, t: Any) -> Any:
        return _order_of_typed(s, t) < 0

    return _of_two(s, t, _less, typed)


@implements(operator.le)
def le(s: Any, t: Any) -> Implementation:
    """`s <= t`"""

    def typed(s: Any, t: Any) -> Any:
        return _order_of_typed(s, t) <= 0

    return _of_two(s, t, _not_greater, typed)


@implements(operator.gt)
def gt(s: Any, t: Any) -> Implementation:
    """`s > t`"""

    def implementation(s: Any, t: Any) -> Any:
        return _less(t, s)

    def typed(s: Any, t: Any) -> Any:
        return _order_of_typed(s, t) > 0

    return _of_two(s, t, implementation, typed)


@implements(operator.ge)
def ge(s: Any, t: Any) -> Implementation:
    """`s >= t`"""

    def implementation(s: Any, t: Any) -> Any:
        return _not_greater(t, s)

    def typed(s: Any, t: Any) -> Any:
        return _order_of_typed(s, t) >= 0

    return _of_two(s, t, implementation, typed)


def _less(s: Any, t: Any) -> Any:
    for number in range(min(len(s), len(t))):
        if s[number] < t[number]:
            return True
        if s[number] > t[number]:
            return False
    return len(s) < len(t)


def _not_greater(s: Any, t: Any) -> Any:
    for number in range(min(len(s), len(t))):
        if s[number] < t[number]:
            return True
        if s[number] > t[number]:
            return False
    return len(s) <= len(t)


def _order_of_typed(s: Any, t: Any) -> Any:
    """Give -1, 0 or 1; the shorter list comes first."""
    if len(s) != len(t):
        return -1 if len(s) < len(t) else 1
    for number in range(len(s)):
        if s[number] != t[number]:
            return -1 if s[number] < t[number] else 1
    return 0


# ------------------------------------------------------------------------------------------------------- sorting


@implements(list.sort)
def sort(s: Any, key: Any = None, reverse: Any = False) -> Implementation:
    """`s.sort(key=key, reverse=reverse)`; equal elements come in the order in which Numba has them."""
    if not is_list(s):
        return None
    if not is_none(key):

        def by_key(s: Any, key: Any = None, reverse: Any = False) -> Any:
            keys = [key(s[number]) for number in range(len(s))]
            _move(s, in_order_of_any(keys, reverse != 0))

        return by_key
    order = _order_of(s)

    def implementation(s: Any, key: Any = None, reverse: Any = False) -> Any:
        _move(s, order(s, reverse != 0))

    return implementation


def _move(s: Any, order: Any) -> Any:
    """Put the elements of a list in this order."""
    old = s.copy()
    for number in range(len(s)):
        s[number] = old[order[number]]


def _order_of(s: Any) -> Callable[..., Any]:
    """The function that gives the places of the elements of such a list in order."""
    if not isinstance(s.dtype, types.Float | types.Integer | types.Boolean):
        return in_order_of_any
    kind = np.dtype(str(s.dtype))

    def order(s: Any, backwards: Any) -> Any:
        numbers = np.empty(len(s), kind)
        for number in range(len(s)):
            numbers[number] = s[number]
        return in_order(numbers, backwards)

    return order


@implements(builtins.sorted)
def sorted(iterable: Any, key: Any = None, reverse: Any = False) -> Implementation:
    """`sorted(iterable, key=key, reverse=reverse)`"""
    if not is_iterable(iterable):
        return None

    def implementation(iterable: Any, key: Any = None, reverse: Any = False) -> Any:
        made = list(iterable)
        made.sort(key=key, reverse=reverse)
        return made

    return implementation
