"""`map`, `filter` and `functools.reduce` where a loop does not take their place: as lists, and as loops.

    sum(map(f, x))     ->    sum(map_1(f, x))

Where they are consumed by a `for`, the front end applies the function in the loop instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def map_1(f: Any, a: Any) -> Any:
    """`list(map(f, a))`"""
    return [f(u) for u in a]


def map_2(f: Any, a: Any, b: Any) -> Any:
    """`list(map(f, a, b))`"""
    return [f(u, v) for u, v in zip(a, b)]  # noqa: B905 (Numba knows no `strict`)


def map_3(f: Any, a: Any, b: Any, c: Any) -> Any:
    """`list(map(f, a, b, c))`"""
    return [f(u, v, w) for u, v, w in zip(a, b, c)]  # noqa: B905


def filter_2(f: Any, a: Any) -> Any:
    """`list(filter(f, a))`"""
    return [u for u in a if f(u)]


def filter_true(f: None, a: Any) -> Any:
    """`list(filter(None, a))`"""
    return [u for u in a if u]


def reduce_2(f: Any, a: Any) -> Any:
    """`reduce(f, a)`"""
    if len(a) == 0:
        raise TypeError("reduce() of empty iterable with no initial value")
    s = a[0]
    for i in range(1, len(a)):
        s = f(s, a[i])
    return s


def reduce_3(f: Any, a: Any, start: Any) -> Any:
    """`reduce(f, a, start)`"""
    s = start
    for u in a:
        s = f(s, u)
    return s


MAPS: dict[int, Callable[..., Any]] = {2: map_1, 3: map_2, 4: map_3}
REDUCES: dict[int, Callable[..., Any]] = {2: reduce_2, 3: reduce_3}
