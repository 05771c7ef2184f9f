"""Matrices made of vectors and of parts of matrices: diagonals, triangles, powers.

    np.diag(v)          zeros, and v[i] at each [i, i]
    np.tril(m)          zeros, and of each row what is not right of the diagonal
    np.trace(a)         0 + a[0, 0] + a[1, 1] + ...

All but `fill_diagonal`, which writes to its argument, make new arrays, as Numba's functions do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import (
    array,
    dtype_of,
    either,
    flattened,
    is_array,
    is_integer,
    is_none,
    is_row,
    is_sequence,
    optional,
)
from zygote_py.library.registry import Implementation, implements, replaces, text


@implements(np.diag, v=array(1, 2), k=is_integer)
def diag(v: Any, k: object = 0) -> Implementation:
    """Make a matrix of its diagonal, or give a copy of the diagonal of a matrix."""
    dtype = dtype_of(v)

    def of_vector(v: Any, k: Any = 0) -> Any:
        n = v.shape[0] + abs(k)
        result = np.zeros((n, n), dtype)
        row, column = max(-k, 0), max(k, 0)
        for i in range(v.shape[0]):
            result[row + i, column + i] = v[i]
        return result

    def of_matrix(v: Any, k: Any = 0) -> Any:
        row, column = max(-k, 0), max(k, 0)
        n = max(min(v.shape[0] - row, v.shape[1] - column), 0)
        result = np.empty(n, dtype)
        for i in range(n):
            result[i] = v[row + i, column + i]
        return result

    return of_vector if v.ndim == 1 else of_matrix


@implements(np.diagflat, v=is_row, k=is_integer)
def diagflat(v: Any, k: object = 0) -> Implementation:
    """Make a matrix with all elements of an array on its diagonal."""
    flat = flattened(v)
    return lambda v, k=0: np.diag(flat(v), k)


@replaces(np.trace, a=array(2), offset=is_integer)
def trace(a: Any, offset: Any = 0) -> Any:
    """Add up a diagonal."""
    row, column = max(-offset, 0), max(offset, 0)
    total = 0  # an integer, so that the sum has the type that Numba gives it
    for i in range(max(min(a.shape[0] - row, a.shape[1] - column), 0)):
        total += a[row + i, column + i]
    return total


@implements(np.tril, m=array(least=1), k=is_integer)
def tril(m: Any, k: object = 0) -> Implementation:
    """Copy a matrix, each matrix of a larger array, or a vector as every row, with zeros right of a diagonal."""
    return _triangle(m, "i + k + 1", ":edge")


@implements(np.triu, m=array(least=1), k=is_integer)
def triu(m: Any, k: object = 0) -> Implementation:
    """Copy a matrix, each matrix of a larger array, or a vector as every row, with zeros left of a diagonal."""
    return _triangle(m, "i + k", "edge:")


def _triangle(m: Any, edge: str, part: str) -> Implementation:
    match m.ndim:
        case 1:
            result, left, right = "np.zeros((m.shape[0], m.shape[0]), dtype)", f"[i, {part}]", f"[{part}]"
        case 2:
            result, left, right = "np.zeros(m.shape, dtype)", f"[i, {part}]", f"[i, {part}]"
        case _:
            result, left, right = "np.zeros_like(m)", f"[..., i, {part}]", f"[..., i, {part}]"
    lines = [
        f"result = {result}",
        "rows, columns = result.shape[-2], result.shape[-1]",
        "for i in range(rows):",
        f"    edge = min(max({edge}, 0), columns)",
        f"    result{left} = m{right}",
        "return result",
    ]
    return text(lines, dtype=dtype_of(m))


@implements(np.vander, x=either(array(1), lambda x: is_sequence(x) and not is_array(x)), N=optional(is_integer))
def vander(x: Any, N: object = None, increasing: object = False) -> Implementation:
    """Return the powers of a vector's elements as columns, the highest first unless `increasing`."""
    dtype = np.promote_types(dtype_of(x), np.int64) if isinstance(x, types.Array) else dtype_of(x)
    lines = [
        "row = flat(x)",
        f"count = {'row.size' if is_none(N) else 'N'}",
        "if count < 0:",
        '    raise ValueError("Negative dimensions are not allowed")',
        "result = np.empty((row.size, count), dtype)",
        "for i in range(row.size):",
        "    power = one",
        "    for j in range(count):",
        "        if j > 0:",
        "            power = row[i] * power",
        "        result[i, j if increasing else count - 1 - j] = power",
        "return result",
    ]
    return text(lines, flat=flattened(x), dtype=dtype, one=dtype.type(1))


@implements(np.fill_diagonal, a=array(least=2), val=is_row)
def fill_diagonal(a: Any, val: Any, wrap: object = False) -> Implementation:
    """Write a number, or numbers in turn, to the diagonal of an array."""
    lines = ["values = flat(val)", *_checked_values(a, val)]
    if a.ndim == 2:
        lines += [
            "rows, columns = a.shape",
            "end = rows * columns if wrap else columns * min(rows, columns)",
            "for k in range((end + columns) // (columns + 1)):",
            "    place = k * (columns + 1)",
            "    a[place // columns, place % columns] = values[k % values.size]",
        ]
    else:
        unequal = " or ".join(f"a.shape[{axis}] != a.shape[0]" for axis in range(1, a.ndim))
        lines += [
            f"if {unequal}:",
            '    raise ValueError("All dimensions of input must be of equal length")',
            "for k in range(a.shape[0]):",
            f"    a[{', '.join(['k'] * a.ndim)}] = values[k % values.size]",
        ]
    return text(lines, flat=flattened(val), **_limits(dtype_of(a)))


def _limits(dtype: Any) -> dict[str, object]:
    if dtype.kind == "f":
        return {"least": np.finfo(dtype).min, "most": np.finfo(dtype).max}
    if dtype.kind in "iu":
        return {"least": int(np.iinfo(dtype).min), "most": int(np.iinfo(dtype).max)}
    return {}


def _checked_values(a: types.Array, val: Any) -> list[str]:
    """Raise for a value that the array cannot hold, as Numba does."""
    kind = dtype_of(a).kind
    if kind not in "fiu" or dtype_of(val).kind not in "fiub" or np.can_cast(dtype_of(val), dtype_of(a)):
        return []
    beyond = "(value < least or value > most)"
    return [
        "for value in values:",
        f"    if {beyond if kind != 'f' else f'np.isfinite(value) and {beyond}'}:",
        '        raise ValueError("Unable to safely conform val to a.dtype")',
    ]
