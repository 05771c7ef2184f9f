"""Products of arrays that are not sums: `outer`, `kron`, `cross`, and `cross2d` of `numba.np.extensions`.

    np.outer(a, b)        np.ravel(a).reshape((n, 1)) * np.ravel(b).reshape((1, m))
    np.cross(a, b)        three differences of products, each of whole components

Products with sums in them, such as `np.dot`, are linear algebra.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.library.arguments import Given, common_dtype, dtype_of, is_none, is_number
from zygote_py.library.flat import flattened
from zygote_py.library.registry import implements
from zygote_py.library.written import indented, written

Implementation = Callable[..., Any] | None


@implements(np.outer)
def outer(a: Given, b: Given, out: object = None) -> Implementation:
    """Multiply each element of one array by each of the other."""
    if any(isinstance(part, types.Array) and part.ndim > 2 for part in (a, b)):
        return None
    first, second = flattened(a), flattened(b)
    if first is None or second is None:
        return None

    def fresh(a: Any, b: Any, out: Any = None) -> Any:
        column, row = first(a), second(b)
        return column.reshape((column.size, 1)) * row.reshape((1, row.size))

    def into(a: Any, b: Any, out: Any = None) -> Any:
        column, row = first(a), second(b)
        np.multiply(column.reshape((column.size, 1)), row.reshape((1, row.size)), out)
        return out

    return fresh if is_none(out) else into


@implements(np.kron)
def kron(a: Given, b: Given) -> Implementation:
    """Put into the place of each element of one array that element times the other array."""
    for part in (a, b):
        if isinstance(part, types.Array):
            if part.layout not in "CF" or not 1 <= part.ndim <= 2:
                return None
        elif not is_number(part):
            return None
    dtype = dtype_of(a)
    # The rows and columns of each, and how an element of it is read.
    rows_a, columns_a, element_a = _matrix("a", a, "i", "j")
    rows_b, columns_b, element_b = _matrix("b", b, "k", "l")
    match a, b:
        case types.Array(ndim=1), types.Array(ndim=1):
            shape = "(result.size,)"
        case types.Array(), types.Array():
            shape = ""
        case types.Array(), _:
            shape = "a.shape"
        case _, types.Array():
            shape = "b.shape"
        case _:
            shape = "(1,)"
    lines = [
        f"rows, columns = {rows_b}, {columns_b}",
        f"result = np.empty(({rows_a} * rows, {columns_a} * columns), dtype)",
        f"for i in range({rows_a}):",
        "    for k in range(rows):",
        f"        for j in range({columns_a}):",
        "            for l in range(columns):",
        f"                result[i * rows + k, j * columns + l] = {element_a} * {element_b}",
        f"return result{f'.reshape({shape})' if shape else ''}",
    ]
    return written(["def kron(a, b):", *indented(lines)], dtype=dtype)


def _matrix(name: str, part: Given, i: str, j: str) -> tuple[str, str, str]:
    match part:
        case types.Array(ndim=2):
            return f"{name}.shape[0]", f"{name}.shape[1]", f"{name}[{i}, {j}]"
        case types.Array():
            return "1", f"{name}.shape[0]", f"{name}[{j}]"
        case _:
            return "1", "1", name


@implements(np.cross)
def cross(a: Given, b: Given) -> Implementation:
    """Give the vector that is perpendicular to two others; a third component that is missing is zero."""
    one, two = _as_array(a), _as_array(b)
    if one is None or two is None:
        return None
    ndim = max(_ndim(a), _ndim(b))
    of_a, of_b = _component("a", a), _component("b", b)
    place = "result[{}]" if ndim == 1 else "result[..., {}]"
    shape = "3" if ndim == 1 else f"({''.join(f'x.shape[{axis}], ' for axis in range(ndim - 1))}3)"

    def crossed(a2: str, b2: str) -> list[str]:
        return [
            f"a2, b2 = {a2}, {b2}",
            "x = a1 * b2 - a2 * b1",
            "y = a2 * b0 - a0 * b2",
            "z = a0 * b1 - a1 * b0",
            f"result = np.empty({shape}, dtype)",
            *(f"{place.format(k)} = {name}" for k, name in enumerate("xyz")),
            "return result",
        ]

    # Which vectors have a third component is known at run time only.
    lines = [
        "a, b = one(a), two(b)",
        "if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):",
        f"    raise ValueError({_NOT_2_OR_3!r})",
        "if a.shape[-1] == 2 and b.shape[-1] == 2:",
        f"    raise ValueError({_BOTH_2!r})",
        f"a0, a1, b0, b1 = {of_a(0)}, {of_a(1)}, {of_b(0)}, {of_b(1)}",
        "if a.shape[-1] == 2:",
        *indented(crossed("zero_a * a0", of_b(2))),
        "if b.shape[-1] == 2:",
        *indented(crossed(of_a(2), "zero_b * b0")),
        *crossed(of_a(2), of_b(2)),
    ]
    zeros = {"zero_a": dtype_of(a).type(0), "zero_b": dtype_of(b).type(0)}
    return written(["def cross(a, b):", *indented(lines)], one=one, two=two, dtype=common_dtype((a, b)), **zeros)


@implements(numba_adapter.cross2d)
def cross2d(a: Given, b: Given) -> Implementation:
    """Give the third component of the vector that is perpendicular to two others, both in a plane."""
    one, two = _as_array(a), _as_array(b)
    if one is None or two is None:
        return None
    of_a, of_b = _component("a", a), _component("b", b)
    lines = [
        "a, b = one(a), two(b)",
        "if a.shape[-1] != 2 or b.shape[-1] != 2:",
        f"    raise ValueError({_NOT_2!r})",
        f"return np.asarray({of_a(0)} * {of_b(1)} - {of_a(1)} * {of_b(0)})",
    ]
    return written(["def cross2d(a, b):", *indented(lines)], one=one, two=two)


# What Numba says.
_NOT_2_OR_3 = "Incompatible dimensions for cross product\n(dimension must be 2 or 3)"
_NOT_2 = "Incompatible dimensions for 2D cross product\n(dimension must be 2 for both inputs)"
_BOTH_2 = (
    "Dimensions for both inputs is 2.\nPlease replace your numpy.cross(a, b) call with a call to `cross2d(a, b)` "
    "from `numba.np.extensions`."
)


def _component(name: str, part: Given) -> Callable[[int], str]:
    before = "" if _ndim(part) == 1 else "..., "
    return lambda k: f"{name}[{before}{k}]"


def _as_array(a: Given) -> Callable[[Any], Any] | None:
    if isinstance(a, types.Array):
        return _itself if a.ndim else None
    return None if is_number(a) else flattened(a)


def _itself(a: Any) -> Any:
    return a


def _ndim(a: Given) -> int:
    return a.ndim if isinstance(a, types.Array) else 1
