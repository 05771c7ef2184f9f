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
from zygote_py.library.arguments import (
    array,
    common_dtype,
    dtype_of,
    flattened,
    is_array,
    is_none,
    is_number,
    is_row,
    is_sequence,
    itself,
)
from zygote_py.library.registry import Implementation, implements, indented, text


def _is_small_row(given: Any) -> bool:
    return array(0, 1, 2)(given) if is_array(given) else is_row(given)


@implements(np.outer, a=_is_small_row, b=_is_small_row)
def outer(a: Any, b: Any, out: object = None) -> Implementation:
    """Multiply each element of one array by each of the other."""
    first, second = flattened(a), flattened(b)

    def fresh(a: Any, b: Any, out: Any = None) -> Any:
        column, row = first(a), second(b)
        return column.reshape((column.size, 1)) * row.reshape((1, row.size))

    def into(a: Any, b: Any, out: Any = None) -> Any:
        column, row = first(a), second(b)
        np.multiply(column.reshape((column.size, 1)), row.reshape((1, row.size)), out)
        return out

    return fresh if is_none(out) else into


def _is_block(given: Any) -> bool:
    return is_number(given) or (array(1, 2)(given) and given.layout in "CF")


@implements(np.kron, a=_is_block, b=_is_block)
def kron(a: Any, b: Any) -> Implementation:
    """Put into the place of each element of one array that element times the other array."""
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
    return text(lines, dtype=dtype_of(a))


def _matrix(name: str, part: Any, i: str, j: str) -> tuple[str, str, str]:
    match part:
        case types.Array(ndim=2):
            return f"{name}.shape[0]", f"{name}.shape[1]", f"{name}[{i}, {j}]"
        case types.Array():
            return "1", f"{name}.shape[0]", f"{name}[{j}]"
        case _:
            return "1", "1", name


def _is_vectors(given: Any) -> bool:
    return array(least=1)(given) if is_array(given) else is_sequence(given)


@implements(np.cross, a=_is_vectors, b=_is_vectors)
def cross(a: Any, b: Any) -> Implementation:
    """Return the vector that is perpendicular to two others; a third component that is missing is zero."""
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
    return text(lines, one=_as_array(a), two=_as_array(b), dtype=common_dtype((a, b)), **zeros)


@implements(numba_adapter.cross2d, a=_is_vectors, b=_is_vectors)
def cross2d(a: Any, b: Any) -> Implementation:
    """Return the third component of the vector that is perpendicular to two others, both in a plane."""
    of_a, of_b = _component("a", a), _component("b", b)
    lines = [
        "a, b = one(a), two(b)",
        "if a.shape[-1] != 2 or b.shape[-1] != 2:",
        f"    raise ValueError({_NOT_2!r})",
        f"return np.asarray({of_a(0)} * {of_b(1)} - {of_a(1)} * {of_b(0)})",
    ]
    return text(lines, one=_as_array(a), two=_as_array(b))


# What Numba says.
_NOT_2_OR_3 = "Incompatible dimensions for cross product\n(dimension must be 2 or 3)"
_NOT_2 = "Incompatible dimensions for 2D cross product\n(dimension must be 2 for both inputs)"
_BOTH_2 = (
    "Dimensions for both inputs is 2.\nPlease replace your numpy.cross(a, b) call with a call to `cross2d(a, b)` "
    "from `numba.np.extensions`."
)


def _component(name: str, part: Any) -> Callable[[int], str]:
    before = "" if _ndim(part) == 1 else "..., "
    return lambda k: f"{name}[{before}{k}]"


def _as_array(a: Any) -> Callable[[Any], Any]:
    return itself if is_array(a) else flattened(a)


def _ndim(a: Any) -> int:
    return a.ndim if isinstance(a, types.Array) else 1
