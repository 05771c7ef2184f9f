"""Splitting arrays: `split`, `array_split` and the like return views of the parts, in a list.

    np.split(x, 3)[1]                  x[n // 3 : 2 * (n // 3)]
    np.array_split(x, (2, 5))          [x[0:2], x[2:5], x[5:]]

Where the number of parts is known when compiling there is no loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import (
    array,
    flattened,
    is_array,
    is_integer,
    is_list,
    is_sequence,
    is_shape,
    known_int,
)
from zygote_py.library.registry import Implementation, by_axis, implements, text


def _are_sections(given: Any) -> bool:
    """Return whether an argument is a number of parts or the indices between them."""
    return is_shape(given) or ((is_array(given) or is_list(given)) and is_integer(given.dtype))


def _is_split(ary: Any, sections: Any, axis: Any = 0) -> bool:
    """Return whether an argument is an array with axes, or a sequence that becomes a vector, which is then split."""
    return array(least=1)(ary) and _are_sections(sections) if is_array(ary) else is_sequence(ary)


@implements(np.array_split, axis=is_integer, where=_is_split)
def array_split(ary: Any, indices_or_sections: Any, axis: object = 0) -> Implementation:
    """Split an array into parts of about the same length, or at indices."""
    return _along(np.array_split, ary, indices_or_sections, axis, exactly=False)


@implements(np.split, axis=is_integer, where=_is_split)
def split(ary: Any, indices_or_sections: Any, axis: object = 0) -> Implementation:
    """Split an array into parts of the same length, or at indices."""
    return _along(np.split, ary, indices_or_sections, axis, exactly=True)


@implements(np.vsplit, ary=array(least=2), indices_or_sections=_are_sections)
def vsplit(ary: Any, indices_or_sections: Any) -> Implementation:
    """Split an array along its first axis."""
    return text(_parts(ary.ndim, 0, indices_or_sections, exactly=True))


@implements(np.hsplit, ary=array(least=1), indices_or_sections=_are_sections)
def hsplit(ary: Any, indices_or_sections: Any) -> Implementation:
    """Split an array along its second axis, a vector along its only one."""
    return text(_parts(ary.ndim, 1 if ary.ndim > 1 else 0, indices_or_sections, exactly=True))


@implements(np.dsplit, ary=array(least=3), indices_or_sections=_are_sections)
def dsplit(ary: Any, indices_or_sections: Any) -> Implementation:
    """Split an array along its third axis."""
    return text(_parts(ary.ndim, 2, indices_or_sections, exactly=True))


def _along(function: Callable[..., Any], ary: Any, where: Any, axis: object, exactly: bool) -> Implementation:
    if not isinstance(ary, types.Array):
        return text(["return function(flat(ary), indices_or_sections, axis)"], function=function, flat=flattened(ary))
    message = "np.split: Argument axis out of bounds for dimensions of the array"
    error = 'IndexError("tuple index out of range")' if is_integer(where) else f'ValueError("{message}")'
    return text(by_axis(axis, ary.ndim, error, lambda k: _parts(ary.ndim, k, where, exactly)))


def _parts(ndim: int, axis: int, where: Any, exactly: bool) -> list[str]:
    """Return lines that split `ary` along an axis."""

    def part(start: str, stop: str = "") -> str:
        index = [":"] * ndim
        index[axis] = f"{start}:{stop}"
        return f"ary[{', '.join(index)}]"

    if is_integer(where):
        lines = [f"size, rest = divmod(ary.shape[{axis}], indices_or_sections)"]
        if exactly:
            message = "array split does not result in an equal division"
            lines += ["if rest != 0:", f'    raise ValueError("{message}")']
        count = known_int(where)
        if count is not None and count > 0:
            bounds = ["0", *(f"{k} * size + min({k}, rest)" for k in range(1, count))]
            return [*lines, *_listed(part, bounds)]
        return [
            *lines,
            *_appended(part, "indices_or_sections - 1", "start + size + (1 if k < rest else 0)"),
        ]
    if isinstance(where, types.BaseTuple):
        return _listed(part, ["0", *(f"indices_or_sections[{k}]" for k in range(len(where)))])
    return _appended(part, "len(indices_or_sections)", "indices_or_sections[k]")


def _appended(part: Callable[..., str], count: str, stop: str) -> list[str]:
    return [
        "parts = []",
        "start = 0",
        f"for k in range({count}):",
        f"    stop = {stop}",
        f"    parts.append({part('start', 'stop')})",
        "    start = stop",
        f"parts.append({part('start')})",
        "return parts",
    ]


def _listed(part: Callable[..., str], bounds: list[str]) -> list[str]:
    lines = [f"start{k} = {bound}" for k, bound in enumerate(bounds)]
    parts = [part(f"start{k}", f"start{k + 1}" if k + 1 < len(bounds) else "") for k in range(len(bounds))]
    return [*lines, f"return [{', '.join(parts)}]"]
