"""Slices of lists: read, written to and deleted.

    s[1:]               a new list, to which the elements are appended
    s[1:3] = t          what follows the slice is moved, then the elements of t are stored one by one
    del s[1:3]          what follows the slice is moved, then the last ones are taken away

They do what Numba's do: for lists of `numba.typed`, and for others. Assigning a list to a slice of itself is an error
where Numba's result differs from Python's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba import types

from zygote_py.library.arguments import either, is_list, is_slice
from zygote_py.library.registry import Implementation, implements, replaces


def places(n: int, index: Any) -> Any:
    """Return the range of the positions of a slice in a list of `n` elements: its start, its stop and its step."""
    start, stop, step = index.start, index.stop, index.step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    lowest, highest = (0, n) if step > 0 else (-1, n - 1)
    start = max(start + n, lowest) if start < 0 else min(start, highest)
    stop = max(stop + n, lowest) if stop < 0 else min(stop, highest)
    return start, stop, step


@replaces(operator.getitem, s=is_list, index=is_slice)
def getitem(s: Any, index: Any) -> Any:
    """`s[a:b:c]`"""
    start, stop, step = places(len(s), index)
    return [s[number] for number in range(start, stop, step)]


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


def _is_stored(s: Any, index: Any, value: Any) -> bool:
    return is_list(value) or (isinstance(value, types.Array | types.UniTuple) and isinstance(s, types.ListType))


@implements(operator.setitem, s=is_list, index=is_slice, where=_is_stored)
def setitem(s: Any, index: Any, value: Any) -> Implementation:
    """`s[a:b] = value`"""
    if not isinstance(s, types.ListType):
        return _store
    return _store_list_in_typed if is_list(value) else _store_in_typed


def _store(s: Any, index: Any, value: Any) -> Any:
    if s is value:
        raise ValueError("a list is assigned to a slice of itself: assign a copy of it")
    start, stop, step = places(len(s), index)
    if step == 1:
        replace(s, start, max(start, stop), value)
    else:
        if len(value) != len(range(start, stop, step)):
            raise ValueError("cannot resize extended list slice with step != 1")
        exchange(s, start, step, value)


def _store_in_typed(s: Any, index: Any, value: Any) -> Any:
    start, stop, step = places(len(s), index)
    if step == 1:
        replace(s, min(start, stop), stop, value)  # not `start`, as Numba has it
    else:
        if len(value) != len(range(start, stop, step)):
            raise ValueError("length mismatch for extended slice and sequence")
        exchange(s, start, step, value)


def _store_list_in_typed(s: Any, index: Any, value: Any) -> Any:
    _store_in_typed(s, index, value.copy())  # which may be the list itself


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


def exchange(s: Any, start: int, step: int, value: Any) -> Any:
    """Store as many elements as there are."""
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
