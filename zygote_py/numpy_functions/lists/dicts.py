"""Methods and operators of dicts, written with `d[k]`, `in`, `del`, and loops.

    d.get(k, x)         d[k] if k in d else x
    d.pop(k)            v = d[k], and then del d[k]
    d.update(e)         for k, v in e.items(): d[k] = v

A method is registered as that of `dict`, for dicts of `numba.typed` too.
"""

from __future__ import annotations

import operator
from typing import Any

from numba import types
from numba.typed import Dict

from zygote_py.numpy_functions.support.overloads import Implementation, implements, is_none, replaces


def is_dict(given: object) -> bool:
    """Return whether an argument is a dict."""
    return isinstance(given, types.DictType)


@implements(dict.get, d=is_dict)
def get(d: Any, key: Any, default: Any = None) -> Implementation:
    """`d.get(key, default)`"""

    def or_none(d: Any, key: Any, default: Any = None) -> Any:
        if key in d:
            return d[key]
        return None

    def or_default(d: Any, key: Any, default: Any = None) -> Any:
        if key in d:
            return d[key]
        return default

    return or_none if is_none(default) else or_default


@implements(dict.pop, d=is_dict)
def pop(d: Any, key: Any, default: Any = None) -> Implementation:
    """`d.pop(key, default)`; Numba does not distinguish a default of None from no default."""

    def implementation(d: Any, key: Any, default: Any = None) -> Any:
        found = d[key]
        del d[key]
        return found

    def or_default(d: Any, key: Any, default: Any = None) -> Any:
        if key in d:
            found = d[key]
            del d[key]
            return found
        return default

    return implementation if is_none(default) else or_default


@implements(dict.popitem, d=is_dict)
def popitem(d: Any) -> Implementation:
    """`d.popitem()`"""

    def implementation(d: Any) -> Any:
        if len(d) == 0:
            raise KeyError("popitem(): dictionary is empty")
        last = list(d)[-1]
        found = d[last]
        del d[last]
        return last, found

    return implementation


@replaces(dict.setdefault, d=is_dict)
def setdefault(d: Any, key: Any, default: Any = None) -> Any:
    """`d.setdefault(key, default)`"""
    if key not in d:
        d[key] = default
    return d[key]


@replaces(dict.update, d=is_dict, other=is_dict)
def update(d: Any, other: Any) -> None:
    """`d.update(other)`"""
    for key, value in other.items():
        d[key] = value


@replaces(dict.clear, d=is_dict)
def clear(d: Any) -> None:
    """`d.clear()`"""
    for key in list(d):  # not in `d`, since entries are removed
        del d[key]


@implements(dict.copy, d=is_dict)
def copy(d: Any) -> Implementation:
    """`d.copy()`"""
    key_type, value_type = d.key_type, d.value_type

    def implementation(d: Any) -> Any:
        made = Dict.empty(key_type, value_type)
        for key, value in d.items():
            made[key] = value
        return made

    return implementation


@replaces(operator.eq, d=is_dict, other=is_dict)
def eq(d: Any, other: Any) -> Any:
    """`d == other`"""
    if len(d) != len(other):
        return False
    for key, value in d.items():  # noqa: SIM110 (Numba has no `all`)
        if key not in other or other[key] != value:
            return False
    return True


@replaces(operator.ne, d=is_dict, other=is_dict)
def ne(d: Any, other: Any) -> Any:
    """`d != other`"""
    return not eq(d, other)
