"""Linear algebra by loops and products: norms, condition numbers, powers of matrices, products.

    np.linalg.norm(x, 1)             abs(x[0]) + abs(x[1]) + ...
    np.linalg.cond(x, 1)             np.linalg.norm(x, 1) * np.linalg.norm(np.linalg.inv(x), 1)
    np.linalg.matrix_power(a, 5)     p = np.dot(a, a); p = np.dot(p, p); np.dot(a, p)
    np.outer(a, b)                   np.ravel(a).reshape((n, 1)) * np.ravel(b).reshape((1, m))
    np.cross(a, b)                   three differences of products, each of whole components

Factorisations, results computed from singular values, and products without an output array remain calls
(`adjoints/rules/arrays/`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.numpy_functions.support.overloads import (
    INEXACT,
    Implementation,
    array,
    common_dtype,
    dtype_of,
    flattened,
    implements,
    indented,
    is_array,
    is_integer,
    is_none,
    is_number,
    is_row,
    is_sequence,
    itself,
    known,
    known_int,
    replaces,
    text,
)


def _is_order(given: object) -> bool:
    """Return whether an argument is a number other than 2, for which the norm stays a call."""
    return (is_number(given) or isinstance(known(given), int | float)) and known(given) != 2


@implements(np.linalg.norm, x=array(1, 2, of=INEXACT), ord=_is_order)
def norm(x: Any, ord: object = None) -> Implementation:
    """Return a norm, except the root of the sum of squares and those from singular values, which stay calls."""
    if x.ndim == 1:
        return text(_VECTOR_NORM)
    if known(ord) == -2:
        return None
    lines = ["if x.size == 0:", "    return 0.0"]
    for order in ("2", "-2"):
        lines += [f"if ord == {order}:", f"    return np.linalg.norm(x, {order})"]
    for order, start, sign, axis in _SUMS:
        other = 1 - axis
        lines += [
            f"if ord == {order}:",
            f"    result = {start}",
            f"    for i{axis} in range(x.shape[{axis}]):",
            "        total = 0.0",
            f"        for i{other} in range(x.shape[{other}]):",
            "            total += abs(x[i0, i1])",
            f"        if total {sign} result:",
            "            result = total",
            "    return result",
        ]
    lines += ['raise ValueError("Invalid norm order for matrices.")']
    return text(lines, most=float(np.finfo(dtype_of(x)).max))  # type: ignore[type-var]


# The greatest or least sum of absolute values of a row or a column: from what it starts, and along which axis they are.
_SUMS = (("np.inf", "0.0", ">", 0), ("-np.inf", "most", "<", 0), ("1", "0.0", ">", 1), ("-1", "most", "<", 1))


_VECTOR_NORM = [
    "n = x.shape[0]",
    "if n == 0:",
    "    return 0.0",
    "if ord == 2:",
    "    return np.linalg.norm(x)",
    *(
        line
        for order, sign in (("np.inf", ">"), ("-np.inf", "<"))
        for line in (
            f"if ord == {order}:",
            "    result = abs(x[0])",
            "    for k in range(1, n):",
            "        value = abs(x[k])",
            f"        if value {sign} result:",
            "            result = value",
            "    return result",
        )
    ),
    "total = 0.0",
    "if ord == 0:",
    "    for k in range(n):",
    "        if x[k] != 0.0:",
    "            total += 1.0",
    "    return total",
    "if ord == 1:",
    "    for k in range(n):",
    "        total += abs(x[k])",
    "    return total",
    "for k in range(n):",
    "    total += abs(x[k]) ** ord",
    "if total == 0.0 and ord > 0:",
    "    return 0.0",  # the power below has no derivative there; this way the gradient is 0
    "return total ** (1.0 / ord)",
]


@replaces(np.linalg.cond, x=array(2, of=INEXACT), p=lambda p: _is_order(p) and known(p) != -2)
def cond(x: Any, p: Any = None) -> Any:
    """Return the norm of a matrix times that of its inverse; the quotient of singular values stays a call."""
    if p == 2:
        return np.linalg.cond(x, 2)
    if p == -2:
        return np.linalg.cond(x, -2)
    result = np.linalg.norm(x, p) * np.linalg.norm(np.linalg.inv(x), p)
    return np.inf if np.isnan(result) else result


@implements(np.linalg.matrix_power, a=array(2, of=INEXACT), n=is_integer)
def matrix_power(a: Any, n: Any) -> Implementation:
    """Return a power of a matrix, by squaring in the order of Numba."""
    power = known_int(n)
    dtype = dtype_of(a)
    return _any_power(dtype) if power is None else text(_known_power(power), dtype=dtype)


def _known_power(n: int) -> list[str]:
    """Without loops: the products that are needed, and one that is not needed is not computed."""
    if n == 0:
        return [
            "result = np.zeros(a.shape, dtype)",
            "for k in range(a.shape[0]):",
            "    result[k, k] = 1.0",
            "return result",
        ]
    lines = ["if a.shape[0] != a.shape[1]:", "    raise ValueError('input must be a square array')"]
    if n == 1 or n == -1:
        return [*lines, f"return {'a' if n == 1 else 'np.linalg.inv(a)'}.copy()"]
    lines += ["if a.shape[0] == 0:", "    return np.zeros(a.shape, dtype)"]
    lines += [f"power = {'np.ascontiguousarray(a)' if n > 0 else 'np.linalg.inv(a).copy()'}"]
    count = abs(n)
    if count == 3:
        return [*lines, "return np.dot(np.dot(power, power), power)"]
    started = False
    while count:
        if count & 1:
            lines += ["result = np.dot(result, power)" if started else "result = power"]
            started = True
        count >>= 1
        if count:
            lines += ["power = np.dot(power, power)"]
    return [*lines, "return result"]


def _any_power(dtype: np.dtype[Any]) -> Implementation:
    def matrix_power(a: Any, n: Any) -> Any:
        result = np.zeros(a.shape, dtype)
        if n == 0:
            for k in range(a.shape[0]):
                result[k, k] = 1.0
            return result
        if a.shape[0] != a.shape[1]:
            raise ValueError("input must be a square array")
        if a.shape[0] == 0:
            return result
        if n < 0:
            result[:, :] = np.linalg.inv(a)
        else:
            result[:, :] = a
        count = abs(n)
        if count == 3:
            return np.dot(np.dot(result, result), result)
        power = result.copy()
        started = False
        while count > 0:
            if count & 1:
                if started:
                    result = np.dot(result, power)
                else:
                    result = power
                    started = True
            count >>= 1
            if count > 0:
                power = np.dot(power, power)
        return result

    return matrix_power


@replaces(np.dot, out=is_array)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Return a product that is stored into an array; one without `out` stays a call."""
    product = np.dot(a, b)
    if product.shape != out.shape:
        raise ValueError("incompatible output array size for np.dot(a, b)")
    out[...] = product
    return out


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
