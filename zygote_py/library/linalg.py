"""What of linear algebra is loops and products: norms, condition numbers, powers of matrices, products with `out`.

    np.linalg.norm(x, 1)             abs(x[0]) + abs(x[1]) + ...
    np.linalg.cond(x, 1)             np.linalg.norm(x, 1) * np.linalg.norm(np.linalg.inv(x), 1)
    np.linalg.matrix_power(a, 5)     p = np.dot(a, a); p = np.dot(p, p); np.dot(a, p)

Factorisations, and what is computed from singular values, stay calls (`adjoints/rules/spectra.py` and `linalg.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import Given, dtype_of, is_integer, is_none, is_number, known, known_int
from zygote_py.library.registry import implements
from zygote_py.library.written import written

Implementation = Callable[..., Any] | None


@implements(np.linalg.norm)
def norm(x: Given, ord: object = None) -> Implementation:
    """The norms of vectors and matrices but the root of the sum of squares and singular values, which stay calls."""
    if not isinstance(x, types.Array) or x.ndim not in (1, 2) or not _is_inexact(x):
        return None
    if is_none(ord) or known(ord) == 2 or (x.ndim == 2 and known(ord) == -2):
        return None
    if not (is_number(ord) or isinstance(known(ord), int | float)):
        return None
    dtype: Any = dtype_of(x)
    return _vector_norm if x.ndim == 1 else _matrix_norm(float(np.finfo(dtype).max))


def _vector_norm(x: Any, ord: Any = None) -> Any:
    n = x.shape[0]
    if n == 0:
        return 0.0
    if ord == 2:
        return np.linalg.norm(x)
    if ord == np.inf:
        result = abs(x[0])
        for k in range(1, n):
            value = abs(x[k])
            if value > result:
                result = value
        return result
    if ord == -np.inf:
        result = abs(x[0])
        for k in range(1, n):
            value = abs(x[k])
            if value < result:
                result = value
        return result
    total = 0.0
    if ord == 0:
        for k in range(n):
            if x[k] != 0.0:
                total += 1.0
        return total
    if ord == 1:
        for k in range(n):
            total += abs(x[k])
        return total
    for k in range(n):
        total += abs(x[k]) ** ord
    if total == 0.0 and ord > 0:
        return 0.0  # the power below has no derivative there; this way the gradient is 0
    return total ** (1.0 / ord)


def _matrix_norm(most: float) -> Callable[..., Any]:
    def implementation(x: Any, ord: Any = None) -> Any:
        m, n = x.shape
        if x.size == 0:
            return 0.0
        if ord == 2:
            return np.linalg.norm(x, 2)
        if ord == -2:
            return np.linalg.norm(x, -2)
        if ord == np.inf:
            result = 0.0
            for i in range(m):
                total = 0.0
                for j in range(n):
                    total += abs(x[i, j])
                if total > result:
                    result = total
            return result
        if ord == -np.inf:
            result = most
            for i in range(m):
                total = 0.0
                for j in range(n):
                    total += abs(x[i, j])
                if total < result:
                    result = total
            return result
        if ord == 1:
            result = 0.0
            for j in range(n):
                total = 0.0
                for i in range(m):
                    total += abs(x[i, j])
                if total > result:
                    result = total
            return result
        if ord == -1:
            result = most
            for j in range(n):
                total = 0.0
                for i in range(m):
                    total += abs(x[i, j])
                if total < result:
                    result = total
            return result
        raise ValueError("Invalid norm order for matrices.")

    return implementation


@implements(np.linalg.cond)
def cond(x: Given, p: object = None) -> Implementation:
    """The norm of a matrix times that of its inverse; the quotient of singular values stays a call."""
    if not isinstance(x, types.Array) or x.ndim != 2 or not _is_inexact(x):
        return None
    if is_none(p) or known(p) in (2, -2) or not (is_number(p) or isinstance(known(p), int | float)):
        return None

    def implementation(x: Any, p: Any = None) -> Any:
        if p == 2:
            return np.linalg.cond(x, 2)
        if p == -2:
            return np.linalg.cond(x, -2)
        result = np.linalg.norm(x, p) * np.linalg.norm(np.linalg.inv(x), p)
        return np.inf if np.isnan(result) else result

    return implementation


@implements(np.linalg.matrix_power)
def matrix_power(a: Given, n: Given) -> Implementation:
    """A power of a matrix, by squaring in the order of Numba."""
    if not isinstance(a, types.Array) or a.ndim != 2 or not _is_inexact(a) or not is_integer(n):
        return None
    power = known_int(n)
    dtype = dtype_of(a)
    return _any_power(dtype) if power is None else _known_power(power, dtype)


def _known_power(n: int, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """Without loops: the products that are needed, and one that is not needed is not computed."""
    lines = ["def matrix_power(a, n):"]
    if n == 0:
        lines += [
            "    result = np.zeros(a.shape, dtype)",
            "    for k in range(a.shape[0]):",
            "        result[k, k] = 1.0",
        ]
        return written([*lines, "    return result"], dtype=dtype)
    lines += ["    if a.shape[0] != a.shape[1]:", "        raise ValueError('input must be a square array')"]
    if n == 1 or n == -1:
        return written([*lines, f"    return {'a' if n == 1 else 'np.linalg.inv(a)'}.copy()"])
    lines += ["    if a.shape[0] == 0:", "        return np.zeros(a.shape, dtype)"]
    lines += [f"    power = {'np.ascontiguousarray(a)' if n > 0 else 'np.linalg.inv(a).copy()'}"]
    count = abs(n)
    if count == 3:
        return written([*lines, "    return np.dot(np.dot(power, power), power)"], dtype=dtype)
    started = False
    while count:
        if count & 1:
            lines += ["    result = np.dot(result, power)" if started else "    result = power"]
            started = True
        count >>= 1
        if count:
            lines += ["    power = np.dot(power, power)"]
    return written([*lines, "    return result"], dtype=dtype)


def _any_power(dtype: np.dtype[Any]) -> Callable[..., Any]:
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


@implements(np.dot)
def dot(a: Given, b: Given, out: object = None) -> Implementation:
    """A product that is stored into an array; one without `out` stays a call."""
    if is_none(out) or not isinstance(out, types.Array):
        return None

    def implementation(a: Any, b: Any, out: Any = None) -> Any:
        product = np.dot(a, b)
        if product.shape != out.shape:
            raise ValueError("incompatible output array size for np.dot(a, b)")
        out[...] = product
        return out

    return implementation


def _is_inexact(x: types.Array) -> bool:
    return isinstance(x.dtype, types.Float | types.Complex)
