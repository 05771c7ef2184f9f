"""Numbers at equal distances between two others: `linspace`, `arange`, `logspace`, `geomspace`.

    np.linspace(a, b, n)        a + i * ((b - a) / (n - 1)), the last one b itself
    np.arange(a, b, step)       a + i * step; how many there are has no derivative

Arrays of constants (`np.eye`, windows such as `np.hanning`) depend on integers only, and need nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import INEXACT, dtype_of, is_integer, is_none, is_number, optional, type_of
from zygote_py.library.registry import Implementation, implements, replaces, text


def _is_number_or_default(given: object) -> bool:
    return is_number(type_of(given))


@implements(np.linspace, start=_is_number_or_default, stop=_is_number_or_default, num=is_integer)
def linspace(start: object, stop: object, num: object = 50) -> Implementation:
    """Return numbers at equal distances, the first and the last included."""
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


@implements(
    np.arange,
    start=_is_number_or_default,
    stop=optional(_is_number_or_default),
    step=optional(_is_number_or_default),
    dtype=optional(lambda dtype: isinstance(dtype, types.DTypeSpec)),
)
def arange(start: object, stop: object = None, step: object = None, dtype: Any = None) -> Implementation:
    """Return numbers from a first one up to, but excluding, another, in equal steps."""
    given = [type_of(each) for each in (start, stop, step) if not is_none(each)]
    is_complex = any(isinstance(each, types.Complex) for each in given)
    if not is_none(dtype):
        kind = np.dtype(str(dtype.dtype))
    elif any(isinstance(each, INEXACT) for each in given):
        kind = _dtype(*given)
    else:
        kind = np.result_type(np.int64, *map(dtype_of, given))
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
    return text(lines, dtype_=kind, ceil=_ceil)


def _ceil(x: Any) -> Any:
    return math.ceil(x)


@replaces(np.logspace, start=_is_number_or_default, stop=_is_number_or_default, num=is_integer)
def logspace(start: Any, stop: Any, num: Any = 50) -> Any:
    """Return the powers of ten of numbers at equal distances."""
    return np.power(10.0, np.linspace(start, stop, num))


@implements(np.geomspace, start=_is_number_or_default, stop=_is_number_or_default, num=is_integer)
def geomspace(start: object, stop: object, num: object = 50) -> Implementation:
    """Return numbers at equal ratios, the first and the last included."""
    types_ = type_of(start), type_of(stop)
    captured: dict[str, object] = {}
    if any(isinstance(each, types.Complex) for each in types_):
        captured["convert"] = np.result_type(*map(dtype_of, types_)).type
        lines = [
            "first, last = convert(start), convert(stop)",
            "sign = first / abs(first)",  # equal to np.sign, with its derivative
            "first, last = first / sign, last / sign",
        ]
    else:
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
    return text(lines, **captured)


def _dtype(*given: object) -> np.dtype[np.generic]:
    is_complex = any(isinstance(type_of(each), types.Complex) for each in given)
    return np.dtype(np.complex128 if is_complex else np.float64)
