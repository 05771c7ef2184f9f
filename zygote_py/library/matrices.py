"""Matrices made of vectors and of parts of matrices: diagonals, triangles, powers.

    np.diag(v)          zeros, and v[i] at each [i, i]
    np.tril(m)          zeros, and of each row what is not right of the diagonal
    np.trace(a)         0 + a[0, 0] + a[1, 1] + ...

All but `fill_diagonal`, which writes to its argument, make new arrays, as Numba's functions do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import Given, dtype_of, is_integer, is_none, is_number
from zygote_py.library.flat import flattened
from zygote_py.library.registry import implements
from zygote_py.library.written import indented, written

Implementation = Callable[..., Any] | None


@implements(np.diag)
def diag(v: Given, k: object = 0) -> Implementation:
    """Make a matrix of its diagonal, or give a copy of the diagonal of a matrix."""
    if not isinstance(v, types.Array) or not is_integer(k):
        return None
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

    return {1: of_vector, 2: of_matrix}.get(v.ndim)


@implements(np.diagflat)
def diagflat(v: Given, k: object = 0) -> Implementation:
    """Make a matrix with all elements of an array on its diagonal."""
    flat = flattened(v)
    if flat is None or not is_integer(k):
        return None

    def implementation(v: Any, k: Any = 0) -> Any:
        return np.diag(flat(v), k)

    return implementation


@implements(np.trace)
def trace(a: Given, offset: object = 0) -> Implementation:
    """Add up a diagonal."""
    if not isinstance(a, types.Array) or a.ndim != 2 or not is_integer(offset):
        return None

    def implementation(a: Any, offset: Any = 0) -> Any:
        row, column = max(-offset, 0), max(offset, 0)
        total = 0  # an integer, so that the sum has the type that Numba gives it
        for i in range(max(min(a.shape[0] - row, a.shape[1] - column), 0)):
            total += a[row + i, column + i]
        return total

    return implementation


@implements(np.tril)
def tril(m: Given, k: object = 0) -> Implementation:
    """Copy a matrix, each matrix of a larger array, or a vector as every row, with zeros right of a diagonal."""
    return _triangle("tril", m, k, "[..., i, :edge]")


@implements(np.triu)
def triu(m: Given, k: object = 0) -> Implementation:
    """Copy a matrix, each matrix of a larger array, or a vector as every row, with zeros left of a diagonal."""
    return _triangle("triu", m, k, "[..., i, edge:]")


def _triangle(name: str, m: Given, k: object, part: str) -> Implementation:
    if not isinstance(m, types.Array) or not m.ndim or not is_integer(k):
        return None
    if m.ndim == 1:
        result = "np.zeros((m.shape[0], m.shape[0]), dtype)"
        part = part.removeprefix("[..., i, ").removesuffix("]")
        left, right = f"[i, {part}]", f"[{part}]"
    else:
        result = "np.zeros_like(m)" if m.ndim > 2 else "np.zeros(m.shape, dtype)"
        left = right = part if m.ndim > 2 else part.replace("..., ", "")
    edge = "i + k + 1" if name == "tril" else "i + k"
    lines = [
        f"result = {result}",
        "rows, columns = result.shape[-2], result.shape[-1]",
        "for i in range(rows):",
        f"    edge = min(max({edge}, 0), columns)",
        f"    result{left} = m{right}",
        "return result",
    ]
    return written([f"def {name}(m, k=0):", *indented(lines)], dtype=dtype_of(m))


@implements(np.vander)
def vander(x: Given, N: object = None, increasing: object = False) -> Implementation:
    """Give the powers of a vector's elements as columns, the highest first unless `increasing`."""
    if isinstance(x, types.Array):
        if x.ndim != 1:
            return None
        dtype = np.promote_types(dtype_of(x), np.int64)
    else:
        dtype = None if is_number(x) or flattened(x) is None else dtype_of(x)  # type: ignore[assignment]
    if dtype is None or not (is_none(N) or is_integer(N)):
        return None
    flat = flattened(x)
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
    return written(
        ["def vander(x, N=None, increasing=False):", *indented(lines)], flat=flat, dtype=dtype, one=dtype.type(1)
    )


@implements(np.fill_diagonal)
def fill_diagonal(a: Given, val: Given, wrap: object = False) -> Implementation:
    """Write a number, or numbers in turn, to the diagonal of an array."""
    if not isinstance(a, types.Array) or a.ndim < 2:
        return None
    flat = flattened(val)
    if flat is None:
        return None
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
    limits = _limits(a)
    return written(["def fill_diagonal(a, val, wrap=False):", *indented(lines)], flat=flat, **limits)


def _limits(a: types.Array) -> dict[str, object]:
    dtype: Any = dtype_of(a)
    if dtype.kind == "f":
        return {"least": np.finfo(dtype).min, "most": np.finfo(dtype).max}
    if dtype.kind in "iu":
        return {"least": int(np.iinfo(dtype).min), "most": int(np.iinfo(dtype).max)}
    return {}


def _checked_values(a: types.Array, val: Given) -> list[str]:
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
