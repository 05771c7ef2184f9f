"""Methods and operators of lists, written with `append`, `pop` of the last element, and elements.

    s.extend(t)         for v in t: s.append(v)
    list(x), List(x)    a new list, to which the elements are appended
    s[1:]               the same
    s[1:3] = t          the elements after the slice are moved, then those of t are stored one by one
    del s[1:3]          the elements after the slice are moved, then the last ones are removed
    x in s              for v in s: if v == x: return True
    s.sort()            the order of the elements, by comparisons; then the elements are moved

A method is registered as that of `list`, for lists of `numba.typed` too. Errors are those that Numba's lists raise.
Assigning a list to a slice of itself is an error where Numba's result differs from Python's. Comparing has no
derivative: numbers are sorted by a helper (`zygote_py.numpy_functions.support.argselect`), whose source is in the
emitted module, anything else by the same function, inlined. Arrays made of lists are in
`zygote_py.numpy_functions.creation.new_arrays`.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.typed import List

from zygote_py.numpy_functions.support.argselect import in_order, in_order_of_any
from zygote_py.numpy_functions.support.overloads import (
    Implementation,
    array,
    either,
    implements,
    is_list,
    is_none,
    is_number,
    is_slice,
    replaces,
    text,
)

_ITERABLE = (types.Array, types.UniTuple, types.NamedUniTuple, types.RangeType, types.UnicodeType, types.NumpyFlatType)
_ITERATED = (
    *(types.EnumerateType, types.ZipType, types.DictType),
    *(types.DictKeysIterableType, types.DictValuesIterableType, types.DictItemsIterableType),
)


def is_iterable(given: object) -> bool:
    """Return whether a loop can go over an argument: a list, an array, a range, or a tuple of values of one type."""
    return is_list(given) or isinstance(given, _ITERATED) or isinstance(types.unliteral(given), _ITERABLE)


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


def places(n: int, index: Any) -> Any:
    """Return the range of the positions of a slice in a list of `n` elements: its start, its stop and its step."""
    start, stop, step = index.start, index.stop, index.step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    lowest, highest = (0, n) if step > 0 else (-1, n - 1)
    start = max(start + n, lowest) if start < 0 else min(start, highest)
    stop = max(stop + n, lowest) if stop < 0 else min(stop, highest)
    return start, stop, step


@implements(operator.getitem, s=is_list, index=lambda index: is_slice(index) or isinstance(index, slice))
def getitem(s: Any, index: Any) -> Implementation:
    """`s[a:b:c]`; of a slice that is a constant, a function of `s` alone."""
    return _part_of(index) if isinstance(index, slice) else _part


def _part(s: Any, index: Any) -> Any:
    start, stop, step = places(len(s), index)
    return [s[number] for number in range(start, stop, step)]


def _part_of(index: slice) -> Implementation:
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


def _is_stored(s: Any, index: Any, value: Any) -> bool:
    return is_list(value) or (isinstance(value, types.Array | types.UniTuple) and isinstance(s, types.ListType))


@implements(operator.setitem, s=is_list, index=is_slice, where=_is_stored)
def setitem(s: Any, index: Any, value: Any) -> Implementation:
    """`s[a:b] = value`"""
    if not isinstance(s, types.ListType):
        return _store
    if is_list(value):
        return lambda s, index, value: _store_in_typed(s, index, value.copy())  # which may be the list itself
    return _store_in_typed


def _store(s: Any, index: Any, value: Any) -> Any:
    if s is value:
        raise ValueError("a list is assigned to a slice of itself: assign a copy of it")
    start, stop, step = places(len(s), index)
    if step == 1:
        replace(s, start, max(start, stop), value)
    else:
        exchange(s, start, stop, step, value, "cannot resize extended list slice with step != 1")


def _store_in_typed(s: Any, index: Any, value: Any) -> Any:
    start, stop, step = places(len(s), index)
    if step == 1:
        replace(s, min(start, stop), stop, value)  # not `start`, as Numba has it
    else:
        exchange(s, start, stop, step, value, "length mismatch for extended slice and sequence")


def replace(s: Any, start: int, stop: int, value: Any) -> Any:
    """`s[start:stop] = value` for places of the list, in order."""
    n = len(s)
    more = len(value) - (stop - start)
    for _ in range(more):
        s.append(value[0])
    if more > 0:
        for number in range(n - 1, stop - 1, -1):
            s[number + more] = s[number]
    if more < 0:
        for number in range(stop, n):
            s[number + more] = s[number]
        for _ in range(-more):
            s.pop()
    for number in range(len(value)):
        s[start + number] = value[number]


def exchange(s: Any, start: int, stop: int, step: int, value: Any, error: str) -> Any:
    """Store as many elements as there are."""
    if len(value) != len(range(start, stop, step)):
        raise ValueError(error)
    for number in range(len(value)):
        s[start + number * step] = value[number]


@implements(operator.delitem, s=is_list, index=either(is_slice, lambda index: isinstance(index, types.Integer)))
def delitem(s: Any, index: Any) -> Implementation:
    """`del s[index]`, of a number or a slice."""
    if not is_slice(index):
        return _delete
    any_step = isinstance(s, types.ListType)

    def implementation(s: Any, index: Any) -> Any:
        start, stop, step = places(len(s), index)
        if step != 1 and not any_step:
            raise NotImplementedError("unsupported del list[start:stop:step] with step != 1")
        n, kept = len(s), 0
        for number in range(n):
            away = number - start
            gone = (away >= 0 and number < stop) if step > 0 else (away <= 0 and number > stop)
            if not (gone and away % step == 0):
                s[kept] = s[number]
                kept += 1
        for _ in range(n - kept):
            s.pop()

    return implementation


def _delete(s: Any, index: Any) -> None:
    s.pop(index)


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
            _move(s, in_order_of_any([key(s[number]) for number in range(len(s))], reverse != 0))

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
