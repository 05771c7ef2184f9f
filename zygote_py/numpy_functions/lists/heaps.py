"""Heaps: lists whose element k is not larger than its children, the elements 2 k + 1 and 2 k + 2.

    heappush(heap, item)        append the item, and move it up while its parent is larger
    heappop(heap)               the first element; the last one takes its place, and moves down
    heapify(x)                  move each element that has children down, from the last one to the first
    nsmallest(n, iterable)      sorted(iterable)[:n]

The elements are numbers, or tuples of these. Which of equal elements comes first is as in Numba, since the elements go
the same way: down to a leaf along the smaller children, and up again. Comparing has no derivative; what is moved keeps
its own.
"""

from __future__ import annotations

import heapq
from typing import Any

from numba import types

from zygote_py.numpy_functions.lists.lists import is_iterable
from zygote_py.numpy_functions.support.overloads import is_list, replaces


def _is_of_heap(heap: Any, item: Any) -> bool:
    return is_list(heap) and heap.dtype == types.unliteral(item)


def move_up(heap: Any, start: int, place: int) -> None:
    """Move an element up until its parent is not larger, at most to `start`."""
    item = heap[place]
    while place > start:
        parent = (place - 1) // 2
        above = heap[parent]
        if not item < above:
            break
        heap[place] = above
        place = parent
    heap[place] = item


def move_down(heap: Any, place: int) -> None:
    """Move an element down to where it belongs below `place`."""
    start, end = place, len(heap)
    item = heap[place]
    child = 2 * place + 1
    while child < end:
        other = child + 1
        if other < end and not heap[child] < heap[other]:
            child = other
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = item
    move_up(heap, start, place)


@replaces(heapq.heapify, x=is_list)
def heapify(x: Any) -> None:
    """`heapify(x)`"""
    for place in range(len(x) // 2 - 1, -1, -1):
        move_down(x, place)


@replaces(heapq.heappush, where=_is_of_heap)
def heappush(heap: Any, item: Any) -> None:
    """`heappush(heap, item)`"""
    heap.append(item)
    move_up(heap, 0, len(heap) - 1)


@replaces(heapq.heappop, heap=is_list)
def heappop(heap: Any) -> Any:
    """`heappop(heap)`"""
    last = heap.pop()
    return last if len(heap) == 0 else heapreplace(heap, last)


@replaces(heapq.heapreplace, where=_is_of_heap)
def heapreplace(heap: Any, item: Any) -> Any:
    """`heapreplace(heap, item)`: what `heappop` returns, and then `heappush`."""
    first = heap[0]
    heap[0] = item
    move_down(heap, 0)
    return first


@replaces(heapq.heappushpop, where=_is_of_heap)
def heappushpop(heap: Any, item: Any) -> Any:
    """`heappushpop(heap, item)`: `heappush`, and then what `heappop` returns."""
    if len(heap) == 0 or not heap[0] < item:
        return item
    return heapreplace(heap, item)


@replaces(heapq.nsmallest, iterable=is_iterable)
def nsmallest(n: int, iterable: Any) -> Any:
    """`nsmallest(n, iterable)`"""
    return sorted(iterable)[: max(n, 0)]


@replaces(heapq.nlargest, iterable=is_iterable)
def nlargest(n: int, iterable: Any) -> Any:
    """`nlargest(n, iterable)`"""
    return sorted(iterable, reverse=True)[: max(n, 0)]
