"""Numbers at equal distances between two others: `linspace`, `arange`, `logspace`, `geomspace`.

    np.linspace(a, b, n)        a + i * ((b - a) / (n - 1)), the last one b itself
    np.arange(a, b, step)       a + i * step; how many there are has no derivative

Arrays of constants (`np.eye`, windows such as `np.hanning`) depend on integers only, and need nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import dtype_of, is_integer, is_none, is_number, type_of
from zygote_py.library.registry import implements
from zygote_py.library.written import indented, written

Implementation = Callable[..., Any] | None


@implements(np.linspace)
def linspace(start: object, stop: object, num: object = 50) -> Implementation:
    """Give numbers at equal distances, the first and the last included."""
    if not is_number(type_of(start)) or not is_number(type_of(stop)) or not is_integer(num):
        return None
    dtype = _dtype(start, stop)

    def implementation(start: Any, stop: Any, num: Any = 50) -> Any:
        result = np.empty(num, dtype)
        first, last = start * 1.0, stop * 1.0
        if num == 1:
            result[0] = first
        if num > 1:
            step = (last - first) / (num - 1)
            for i in range(num - 1):
                result[i] = first + i * step
            result[num - 1] = last
        return result

    return implementation


@implements(np.arange)
def arange(start: object, stop: object = None, step: object = None, dtype: object = None) -> Implementation:
    """Give numbers from a first one on, by a step, until before another."""
    given = [type_of(each) for each in (start, stop, step) if not is_none(each)]
    if not all(map(is_number, given)):
        return None
    if not is_none(dtype):
        if not isinstance(dtype, types.DTypeSpec):
            return None
        kind = np.dtype(str(dtype.dtype))
    elif any(isinstance(each, types.Float | types.Complex) for each in given):
        kind = _dtype(*given)
    else:
        kind = np.result_type(np.int64, *map(dtype_of, given))
    is_complex = any(isinstance(each, types.Complex) for each in given)
    lines = [
        f"first, last = {'0, start' if is_none(stop) else 'start, stop'}",
        f"by = {'1' if is_none(step) else 'step'}",
        "if by == 0:",
        '    raise ValueError("Maximum allowed size exceeded")',
        "steps = (last - first) / by",
        f"n = max({'min(ceil(steps.real), ceil(steps.imag))' if is_complex else 'ceil(steps)'}, 0)",
        "result = np.empty(n, dtype_)",
        "for i in range(n):",
        "    result[i] = first + i * by",
        "return result",
    ]
    header = "def arange(start, stop=None, step=None, dtype=None):"
    return written([header, *indented(lines)], dtype_=kind, ceil=_ceil)


def _ceil(x: Any) -> Any:
    return math.ceil(x)


@implements(np.logspace)
def logspace(start: object, stop: object, num: object = 50) -> Implementation:
    """Give the powers of ten of numbers at equal distances."""
    if not is_number(type_of(start)) or not is_number(type_of(stop)) or not is_integer(num):
        return None

    def implementation(start: Any, stop: Any, num: Any = 50) -> Any:
        return np.power(10.0, np.linspace(start, stop, num))

    return implementation


@implements(np.geomspace)
def geomspace(start: object, stop: object, num: object = 50) -> Implementation:
    """Give numbers at equal ratios, the first and the last included."""
    types_ = type_of(start), type_of(stop)
    if not all(map(is_number, types_)) or not is_integer(num):
        return None
    if any(isinstance(each, types.Complex) for each in types_):
        convert = np.result_type(*map(dtype_of, types_)).type
        lines = [
            "first, last = convert(start), convert(stop)",
            "sign = first / abs(first)",  # what np.sign gives, and has its derivative
            "first, last = first / sign, last / sign",
        ]
    else:
        convert = None
        lines = [
            "first, last = start, stop",
            "sign = 1",
            "if np.sign(start) == -1 and np.sign(stop) == -1:",
            "    first, last, sign = -start, -stop, -1",
        ]
    lines = [
        "if start == 0 or stop == 0:",
        '    raise ValueError("Geometric sequence cannot include zero")',
        *lines,
        "result = np.logspace(np.log10(first), np.log10(last), num)",
        "if num > 0:",
        "    result[0] = first",
        "if num > 1:",
        "    result[-1] = last",
        "return sign * result",
    ]
    return written(
        ["def geomspace(start, stop, num=50):", *indented(lines)], **({"convert": convert} if convert else {})
    )


def _dtype(*given: object) -> np.dtype[np.generic]:
    is_complex = any(isinstance(type_of(each), types.Complex) for each in given)
    return np.dtype(np.complex128 if is_complex else np.float64)
