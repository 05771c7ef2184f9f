"""Sums in forms that the compiler does not know itself, running sums and products, differences, the trapezoidal rule.

np.sum(x, axis=k)          if k == 0: np.sum(x, 0); ...                  np.sum(x, dtype=d)    np.sum(x.astype(d))
np.cumsum(x)               total += x[k]; result[k] = total
np.diff(x)                 x[1:] - x[:-1]
np.divmod(x, y)            np.floor_divide(x, y), np.remainder(x, y)
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numba import types

from zygote_py.numpy_functions.support.overloads import (
    Implementation,
    array,
    by_axis,
    checked_axis,
    dtype_of,
    either,
    implements,
    in_c_order,
    indented,
    is_array,
    is_integer,
    is_none,
    is_number,
    itself,
    known_int,
    nested,
    optional,
    text,
    tuple_text,
)

_OUT_OF_BOUNDS = "ValueError('axis is out of bounds')"


implements(np.prod, a=is_number)(lambda a: itself)


@implements(np.divmod, x1=either(is_number, is_array), x2=either(is_number, is_array))
def divmod(x1: Any, x2: Any) -> Implementation:
    """Return the quotients and the remainders."""
    return lambda x1, x2: (np.floor_divide(x1, x2), np.remainder(x1, x2))


def _is_dtype(given: Any) -> bool:
    return is_number(getattr(given, "dtype", None))


@implements(np.sum, a=either(is_number, is_array), dtype=optional(_is_dtype))
def sum(a: Any, axis: Any = None, dtype: Any = None) -> Implementation:
    """Return the sums that the compiler does not know: with a dtype, or over axes that are not constant."""
    if not isinstance(a, types.Array):
        return _number_sum(dtype)
    constant = known_int(axis)
    if not is_none(dtype):
        over = "" if is_none(axis) else ", axis" if constant is None else f", {constant}"
        return text([f"return np.sum(a.astype(number){over})"], number=dtype_of(dtype).type)
    if is_none(axis) or constant is not None:
        return None
    error = "AxisError('axis is out of bounds')"
    if isinstance(axis, types.BaseTuple):
        lines = _sum_over_axes(a, len(axis), error)
    else:
        lines = by_axis(axis, a.ndim, error, lambda k: [f"return np.sum(a{f', {k}' if a.ndim > 1 else ''})"])
    return text(lines, AxisError=np.exceptions.AxisError, dtype_=dtype_of(a))


def _number_sum(dtype: Any) -> Implementation:
    if is_none(dtype):
        return lambda a, axis=None, dtype=None: a
    number = dtype_of(dtype).type
    return lambda a, axis=None, dtype=None: number(a)


def _sum_over_axes(a: types.Array, count: int, error: str) -> list[str]:
    """Return lines for the sum over the axes in a tuple, which may be known at run time only."""
    if count == 0:
        return ["return a.copy()"]
    lines = ["mask = 0"]
    for k in range(count):
        lines += [f"k = axis[{k}]", *checked_axis("k", a.ndim, error)]
        lines += [
            "if mask & (1 << k):",
            "    raise ValueError(\"duplicate value in 'axis'\")",
            "mask = mask | (1 << k)",
        ]
    if count >= a.ndim:
        return [*lines, "return np.sum(a)"]
    for axes in itertools.combinations(range(a.ndim), count):
        lines += [f"if mask == {reduce(operator.or_, (1 << k for k in axes))}:", *indented(_loops_over(a, axes))]
    return [*lines, "raise ValueError('axis is out of bounds')"]


def _loops_over(a: types.Array, axes: Sequence[int]) -> list[str]:
    kept = [axis for axis in range(a.ndim) if axis not in axes]
    order = range(a.ndim) if a.layout != "F" else range(a.ndim - 1, -1, -1)
    place = ", ".join(f"i{axis}" for axis in kept)
    whole = ", ".join(f"i{axis}" for axis in range(a.ndim))
    return [
        f"result = np.zeros({tuple_text(f'a.shape[{axis}]' for axis in kept)}, dtype_)",
        *nested([(f"i{axis}", f"a.shape[{axis}]") for axis in order], [f"result[{place}] += a[{whole}]"]),
        "return result",
    ]


# ------------------------------------------------------------------------------------------- running sums, products


@implements(np.cumsum, a=either(is_number, is_array), dtype=optional(_is_dtype))
def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Implementation:
    """Return the sums of all elements up to each, in a row or along an axis."""
    if not isinstance(a, types.Array):
        return _number_sum(dtype)
    if not is_none(axis) and not is_integer(axis):
        return None
    number = dtype_of(a if is_none(dtype) else dtype).type
    if is_none(axis) or a.ndim <= 1:
        check = [] if is_none(axis) else checked_axis("axis", a.ndim, _OUT_OF_BOUNDS)
        return _running(number, "+", "number(values[i])", check=check, number=number)
    lines = by_axis(axis, a.ndim, _OUT_OF_BOUNDS, lambda k: _along_axis(a.ndim, k))
    return text(lines, number=number, dtype_=np.dtype(number))


def _along_axis(ndim: int, axis: int) -> list[str]:
    """Return lines that sum up along one axis, element by element; the loop over this axis is the innermost."""
    place = ", ".join(f"i{k}" for k in range(ndim))
    total = [f"total += number(a[{place}])", f"result[{place}] = total"]
    line = ["total = number(0)", *nested([(f"i{axis}", f"a.shape[{axis}]")], total)]
    others = [(f"i{k}", f"a.shape[{k}]") for k in range(ndim) if k != axis]
    return ["result = np.empty(a.shape, dtype_)", *nested(others, line), "return result"]


@implements(np.cumprod, a=is_array)
def cumprod(a: Any) -> Implementation:
    """Return the products of all elements up to each, in a row."""
    return _running(dtype_of(a).type, "*", "values[i]")


@implements(np.nancumprod, a=is_array)
def nancumprod(a: Any) -> Implementation:
    """Return the products of all elements up to each that are not NaN."""
    return _running(dtype_of(a).type, "*", "values[i]", skip=True)


@implements(np.nancumsum, a=is_array)
def nancumsum(a: Any) -> Implementation:
    """Return the sums of all elements up to each that are not NaN, in a row."""
    return _running(dtype_of(a).type, "+", "values[i]", skip=True)


def _running(
    kind: Any, sign: str, value: str, *, skip: bool = False, check: Sequence[str] = (), **captured: object
) -> Implementation:
    """Return the sums or products of all elements up to each, in a row; a NaN may be skipped."""
    step = [f"total {sign}= {value}"]
    lines = [
        *check,
        "values = flat(a)",
        "result = np.empty(values.size, dtype_)",
        "total = start",
        "for i in range(values.size):",
        *indented(["if not np.isnan(values[i]):", *indented(step)] if skip else step),
        "    result[i] = total",
        "return result",
    ]
    start = kind(0 if sign == "+" else 1)
    return text(lines, flat=in_c_order, dtype_=np.dtype(kind), start=start, **captured)


# ------------------------------------------------------------------------------------- differences, integrals


@implements(np.diff, a=array(least=1))
def diff(a: Any, n: Any = 1) -> Implementation:
    """Return the differences of neighbours along the last axis, n times over."""
    start = "np.ascontiguousarray(a)" if a.layout == "F" and a.ndim > 1 else "a"
    step = "[..., 1:] - {0}[..., :-1]"
    match known_int(n):
        case 0:
            lines = ["return a.copy()"]
        case 1:
            lines = [f"result = {start}", f"return result{step.format('result')}"]
        case _:
            lines = [
                "if n == 0:",
                "    return a.copy()",
                "if n < 0:",
                "    raise ValueError('diff(): order must be non-negative')",
                f"first = {start}",
                f"result = first{step.format('first')}",
                "for _ in range(n - 1):",
                f"    result = result{step.format('result')}",
                "return result",
            ]
    return text(lines)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0) -> Implementation:
    """Return the integral along the last axis of what is linear between the points."""
    ndim = max(y.ndim, getattr(dx if is_none(x) else x, "ndim", 0))
    between = "dx" if is_none(x) else "np.diff(x)"
    axis = "" if ndim == 1 else f", {ndim - 1}"
    return text([f"return np.sum({between} * ((y[..., 1:] + y[..., :-1]) / 2.0){axis})"])


for _name in ("trapezoid", "trapz"):  # NumPy 2.0 has both, later ones the first only
    if hasattr(np, _name):
        implements(getattr(np, _name), y=array(least=1), x=optional(is_array))(trapezoid)
