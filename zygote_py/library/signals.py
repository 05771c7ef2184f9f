"""Functions of one variable on a grid: `interp correlate convolve unwrap`.

    np.interp(x, xp, fp)     j = the interval of x;  fp[j] + (fp[j + 1] - fp[j]) / (xp[j + 1] - xp[j]) * (x - xp[j])

At a grid point the derivative of `interp` with respect to `x` is the slope to its right, at the last one that to its
left, and outside it is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import (
    array,
    common_dtype,
    dtype_of,
    flattened,
    is_none,
    is_number,
    is_row,
    known,
    one_of,
    type_of,
)
from zygote_py.library.registry import Implementation, implements, nested, text


@implements(np.interp, x=is_row, xp=is_row, fp=is_row)
def interp(x: Any, xp: Any, fp: Any) -> Implementation:
    """Return the values at `x` of the piecewise linear function through `(xp, fp)`, with increasing `xp`."""
    flat_x, flat_xp, flat_fp = map(flattened, (x, xp, fp))
    if dtype_of(fp).kind == "c":
        return _interp_of_complex(x, flat_x, flat_xp, flat_fp)

    def of_number(x: Any, xp: Any, fp: Any) -> Any:
        points, values = flat_xp(xp), flat_fp(fp)
        _check_points(points, values)
        number = np.float64(x)
        return _between(number, points, values, _interval(number, points))

    if is_number(x):
        return of_number
    shaped = isinstance(x, types.Array) and x.ndim != 1

    def implementation(x: Any, xp: Any, fp: Any) -> Any:
        numbers, points, values = flat_x(x), flat_xp(xp), flat_fp(fp)
        _check_points(points, values)
        result = np.empty(numbers.size, np.float64)
        for i in range(numbers.size):
            number = np.float64(numbers[i])
            result[i] = _between(number, points, values, _interval(number, points))
        return result.reshape(x.shape) if shaped else result

    return implementation


def _check_points(points: Any, values: Any) -> None:
    if points.size == 0:
        raise ValueError("array of sample points is empty")
    if points.size != values.size:
        raise ValueError("fp and xp are not of the same size.")


def _interval(x: Any, points: Any) -> Any:
    """Return the number of the last point that is not greater than `x`; -1 if there is none."""
    return np.searchsorted(points, x, side="right") - 1


def _between(x: Any, points: Any, values: Any, j: int) -> Any:
    last = points.size - 1
    if last == 0:
        return np.float64(values[0])
    if np.isnan(x):
        return x
    if j < 0:
        return np.float64(values[0])
    if x > points[last]:
        return np.float64(values[last])
    k = min(j, last - 1)
    left, right = np.float64(points[k]), np.float64(points[k + 1])
    lower, upper = np.float64(values[k]), np.float64(values[k + 1])
    slope = np.divide(upper - lower, right - left)
    if x in (left, right) and not np.isfinite(slope):
        return lower if x == left else upper
    if j == last:
        return slope * (x - right) + upper
    result = slope * (x - left) + lower
    if np.isnan(result):
        result = slope * (x - right) + upper
        if np.isnan(result) and lower == upper:
            result = lower
    return result


def _interp_of_complex(x: Any, flat_x: Any, flat_xp: Any, flat_fp: Any) -> Implementation:
    """Interpolate complex values, whose parts are computed separately."""

    def of_array(x: Any, xp: Any, fp: Any) -> Any:
        numbers, points, values = flat_x(x), flat_xp(xp), flat_fp(fp)
        _check_points(points, values)
        if 1 < points.size <= numbers.size:
            for j in range(points.size - 1):
                if points[j] == points[j + 1]:
                    raise ZeroDivisionError("division by zero")
        result = np.empty(numbers.size, np.complex128)
        for i in range(numbers.size):
            result[i] = _complex_between(numbers[i], points, values, _interval(numbers[i], points))
        return result

    if is_number(x):
        return lambda x, xp, fp: of_array(x, xp, fp)[0]
    shaped = isinstance(x, types.Array) and x.ndim != 1
    return (lambda x, xp, fp: of_array(x, xp, fp).reshape(x.shape)) if shaped else of_array


def _complex_between(x: Any, points: Any, values: Any, j: int) -> Any:
    last = points.size - 1
    if last == 0:
        return np.complex128(values[0])
    if np.isnan(x):
        return x + 1j * 0.0
    if j < 0:
        return np.complex128(values[0])
    if j == last or points[j] == x:
        return np.complex128(values[j])
    left, right = points[j], points[j + 1]
    lower, upper = values[j], values[j + 1]
    scale = 1 / (right - left)
    slope = (upper.real - lower.real) * scale + 1j * ((upper.imag - lower.imag) * scale)
    real = slope.real * (x - left) + lower.real
    if np.isnan(real):
        real = slope.real * (x - right) + upper.real
        if np.isnan(real) and lower.real == upper.real:
            real = np.float64(lower.real)
    imag = slope.imag * (x - left) + lower.imag
    if np.isnan(imag):
        imag = slope.imag * (x - right) + upper.imag
        if np.isnan(imag) and lower.imag == upper.imag:
            imag = np.float64(lower.imag)
    return real + 1j * imag


# ------------------------------------------------------------------------------------------ sliding products of two


@implements(np.correlate, a=array(1), v=array(1), mode=one_of("valid", "same", "full"))
def correlate(a: Any, v: Any, mode: Any = "valid") -> Implementation:
    """Return the products of one array with the other, shifted along it."""
    return _slid(a, v, mode, "slide(np.conj(v), a, how)[::-1].copy()", "slide(a, np.conj(v), how)")


@implements(np.convolve, a=array(1), v=array(1), mode=one_of("valid", "same", "full"))
def convolve(a: Any, v: Any, mode: Any = "full") -> Implementation:
    """Return the products of one array with the other reversed, shifted along it."""
    return _slid(a, v, mode, "slide(v, a[::-1], how)", "slide(a, v[::-1], how)")


def _slid(a: types.Array, v: types.Array, mode: Any, of_shorter: str, of_longer: str) -> Implementation:
    lines = [
        "if len(a) == 0:",
        "    raise ValueError(\"'a' cannot be empty\")",
        "if len(v) == 0:",
        "    raise ValueError(\"'v' cannot be empty\")",
        "if len(a) < len(v):",
        f"    return {of_shorter}",
        f"return {of_longer}",
    ]
    return text(lines, slide=_sliding(a, v), how=known(mode))


def _sliding(a: types.Array, v: types.Array) -> Callable[[Any, Any, Any], Any]:
    number: Any = common_dtype([a, v]).type
    dtype = np.dtype(number)

    def slide(longer: Any, shorter: Any, mode: str) -> Any:
        size, width = len(longer), len(shorter)
        if mode == "valid":
            left, right = 0, 0
        elif mode == "full":
            left, right = width - 1, width - 1
        else:
            left, right = width // 2, width - width // 2 - 1
        result = np.empty(size - width + 1 + left + right, dtype)
        for i in range(result.size):
            start = i - left  # of the shorter one, in the longer one
            total = number(0)
            for j in range(max(0, -start), min(width, size - start)):
                total += number(longer[start + j]) * number(shorter[j])
            result[i] = total
        return result

    return slide


# --------------------------------------------------------------------------------------------------------- angles


@implements(np.unwrap, p=array(least=1, of=types.Float), axis=one_of(-1))
def unwrap(p: Any, discont: Any = None, axis: Any = -1, period: Any = 6.283185307179586) -> Implementation:
    """Return angles without the jumps by whole periods, along the last axis."""
    dtype = np.result_type(dtype_of(p), dtype_of(type_of(period)))
    variables = [f"i{k}" for k in range(p.ndim)]
    place, last = ", ".join(variables), variables[-1]
    body = [
        f"value = number(p[{place}])",
        f"if {last} == 0:",
        "    correction = number(0)",
        "else:",
        f"    difference = value - number(p[{place} - 1])",
        "    if not abs(difference) < limit:",
        "        wrapped = np.mod(difference + half, period) - half",
        "        if wrapped == -half and difference > 0:",
        "            wrapped = half",
        "        correction += wrapped - difference",
        f"result[{place}] = value + correction",
    ]
    lines = [
        "half = period / 2",
        f"limit = {'half' if is_none(discont) else 'discont'}",
        "result = np.empty(p.shape, dtype_)",
        "correction = number(0)",
        *nested([(variable, f"p.shape[{k}]") for k, variable in enumerate(variables)], body),
        "return result",
    ]
    return text(lines, number=dtype.type, dtype_=dtype)
