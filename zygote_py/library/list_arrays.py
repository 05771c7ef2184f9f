"""Arrays made of lists: `np.array(s)` and `np.asarray(s)`.

    np.array(s)         a new array of len(s) numbers, filled in a loop

The items of a list may be numbers, or lists or tuples of them, to any depth. Lists and tuples that are written out in
the call are not here: they are never created (`zygote_py.frontend.displays`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir.types import components_of
from zygote_py.library.arguments import is_list, is_none, is_number
from zygote_py.library.registry import Implementation, implements, indented, text


def _has_list(given: Any) -> bool:
    """Return whether an argument is a list, or a tuple with one in it."""
    return is_list(given) or (isinstance(given, types.BaseTuple) and any(map(_has_list, components_of(given))))


@implements(np.array, object=_has_list)
def array(object: Any, dtype: Any = None) -> Implementation:
    """`np.array(s, dtype)`"""
    return _of_list(object, dtype, "object")


@implements(np.asarray, a=_has_list)
def asarray(a: Any, dtype: Any = None) -> Implementation:
    """`np.asarray(s, dtype)`; what is an array already stays."""
    return _of_list(a, dtype, "a")


def _of_list(given: Any, dtype: Any, name: str) -> Implementation:
    numbers = list(_numbers_in(given))
    if not numbers or not all(map(is_number, numbers)):
        return None
    if is_none(dtype):
        kind = np.result_type(*(np.dtype(str(number)) for number in numbers))
    elif isinstance(dtype, types.DTypeSpec):
        kind = np.dtype(str(dtype.dtype))
    else:
        return None
    lines = [f"n{axis} = {length}" for axis, length in enumerate(_lengths(given, name))]
    lengths = [f"n{axis}" for axis in range(len(lines))]
    lines += [f"made = np.empty(({', '.join(lengths)},), kind)", *_filled(given, name, [], len(lengths))]
    return text([*lines, "return made"], kind=kind)


def _numbers_in(given: Any) -> Iterator[Any]:
    """Return the types of the numbers in a list or a tuple, or of what else is in it."""
    if is_list(given):
        yield from _numbers_in(given.dtype)
    elif isinstance(given, types.BaseTuple):
        for part in components_of(given):
            yield from _numbers_in(part)
    else:
        yield given


def _lengths(given: Any, item: str) -> Iterator[str]:
    """Return the length of each axis, as that of the first item of the one before it."""
    axis = 0
    empty: list[str] = []
    while not is_number(given):
        if is_list(given):
            yield f"len({item}) if {' and '.join(empty)} else 0" if empty else f"len({item})"
            empty.append(f"n{axis} > 0")
            given = given.dtype
        else:
            parts = components_of(given)
            yield str(len(parts))
            given = parts[0]
        item = f"{item}[0]"
        axis += 1


def _filled(given: Any, item: str, place: list[str], ndim: int) -> list[str]:
    """Return the statements that store what is in a list or a tuple."""
    axis = len(place)
    if is_number(given):
        if axis != ndim:
            return ['raise ValueError("incompatible sequence shape")']
        return [f"made[{', '.join(place)}] = {item}"]
    if is_list(given):
        inner = _filled(given.dtype, f"p{axis}", [*place, f"i{axis}"], ndim)
        check = [f"if len({item}) != n{axis}:", '    raise ValueError("incompatible sequence shape")']
        loop = [f"for i{axis} in range(n{axis}):", f"    p{axis} = {item}[i{axis}]", *indented(inner)]
        return [*(check if axis else ()), *loop]
    parts = components_of(given)
    return [
        line
        for number, part in enumerate(parts)
        for line in _filled(part, f"{item}[{number}]", [*place, str(number)], ndim)
    ]
