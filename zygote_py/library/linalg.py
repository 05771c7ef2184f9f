"""Linear algebra by loops and products: norms, condition numbers, powers of matrices, products with `out`.

    np.linalg.norm(x, 1)             abs(x[0]) + abs(x[1]) + ...
    np.linalg.cond(x, 1)             np.linalg.norm(x, 1) * np.linalg.norm(np.linalg.inv(x), 1)
    np.linalg.matrix_power(a, 5)     p = np.dot(a, a); p = np.dot(p, p); np.dot(a, p)

Factorisations, and what is computed from singular values, stay calls (`adjoints/rules/arrays/spectra.py` and
`linalg.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zygote_py.library.arguments import INEXACT, array, dtype_of, is_array, is_integer, is_number, known, known_int
from zygote_py.library.registry import Implementation, implements, replaces, text


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
