"""Arrays taken apart: `split`, `array_split` and their like give views of the parts, in a list.

    np.split(x, 3)[1]                  x[n // 3 : 2 * (n // 3)]
    np.array_split(x, (2, 5))          [x[0:2], x[2:5], x[5:]]

Where the number of parts is known when compiling there is no loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir.types import components_of
from zygote_py.library.arguments import Given, is_integer, is_number, known_int
from zygote_py.library.flat import flattened
from zygote_py.library.registry import implements
from zygote_py.library.written import checked_axis, choice, indented, written

Implementation = Callable[..., Any] | None


@implements(np.array_split)
def array_split(ary: Given, indices_or_sections: object, axis: object = 0) -> Implementation:
    """Split an array into parts of about the same length, or at indices."""
    return _along(np.array_split, ary, indices_or_sections, axis, exactly=False)


@implements(np.split)
def split(ary: Given, indices_or_sections: object, axis: object = 0) -> Implementation:
    """Split an array into parts of the same length, or at indices."""
    return _along(np.split, ary, indices_or_sections, axis, exactly=True)


@implements(np.vsplit)
def vsplit(ary: Given, indices_or_sections: object) -> Implementation:
    """Split an array along its first axis."""
    return _along_fixed("vsplit", ary, indices_or_sections, 0, least=2)


@implements(np.hsplit)
def hsplit(ary: Given, indices_or_sections: object) -> Implementation:
    """Split an array along its second axis, a vector along its only one."""
    axis = 1 if isinstance(ary, types.Array) and ary.ndim > 1 else 0
    return _along_fixed("hsplit", ary, indices_or_sections, axis, least=1)


@implements(np.dsplit)
def dsplit(ary: Given, indices_or_sections: object) -> Implementation:
    """Split an array along its third axis."""
    return _along_fixed("dsplit", ary, indices_or_sections, 2, least=3)


def _along(function: Callable[..., Any], ary: Given, where: Given, axis: object, exactly: bool) -> Implementation:
    if not is_integer(axis):
        return None
    header = f"def {function.__name__}(ary, indices_or_sections, axis=0):"
    if not isinstance(ary, types.Array):
        flat = flattened(ary)
        if flat is None or is_number(ary):
            return None
        lines = [header, "    return function(flat(ary), indices_or_sections, axis)"]
        return written(lines, function=function, flat=flat)
    constant = known_int(axis)
    if constant is not None and -ary.ndim <= constant < ary.ndim:
        body = _parts(ary.ndim, constant % ary.ndim, where, exactly)
        return None if body is None else written([header, *indented(body)])
    cases = [_parts(ary.ndim, k, where, exactly) for k in range(ary.ndim)]
    if not cases or None in cases:
        return None
    message = "np.split: Argument axis out of bounds for dimensions of the array"
    error = 'IndexError("tuple index out of range")' if is_integer(where) else f'ValueError("{message}")'
    checks = checked_axis("axis", ary.ndim, error)
    return written([header, *indented([*checks, *choice("axis", cases)])])  # type: ignore[arg-type]


def _along_fixed(name: str, ary: Given, where: Given, axis: int, least: int) -> Implementation:
    if not isinstance(ary, types.Array) or ary.ndim < least:
        return None
    body = _parts(ary.ndim, axis, where, exactly=True)
    return None if body is None else written([f"def {name}(ary, indices_or_sections):", *indented(body)])


def _parts(ndim: int, axis: int, where: Given, exactly: bool) -> list[str] | None:
    """Lines that split `ary` along an axis."""

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
            "parts = []",
            "start = 0",
            "for k in range(indices_or_sections - 1):",
            "    stop = start + size + (1 if k < rest else 0)",
            f"    parts.append({part('start', 'stop')})",
            "    start = stop",
            f"parts.append({part('start')})",
            "return parts",
        ]
    if isinstance(where, types.BaseTuple) and len(where) and all(map(is_integer, components_of(where))):
        return _listed(part, ["0", *(f"indices_or_sections[{k}]" for k in range(len(where)))])
    if isinstance(where, types.Array | types.List | types.ListType) and is_integer(where.dtype):
        return [
            "parts = []",
            "start = 0",
            "for k in range(len(indices_or_sections)):",
            "    stop = indices_or_sections[k]",
            f"    parts.append({part('start', 'stop')})",
            "    start = stop",
            f"parts.append({part('start')})",
            "return parts",
        ]
    return None


def _listed(part: Callable[..., str], bounds: list[str]) -> list[str]:
    lines = [f"start{k} = {bound}" for k, bound in enumerate(bounds)]
    parts = [part(f"start{k}", f"start{k + 1}" if k + 1 < len(bounds) else "") for k in range(len(bounds))]
    return [*lines, f"return [{', '.join(parts)}]"]
