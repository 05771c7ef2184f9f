"""Sums in forms that the compiler does not know itself, running sums and products, differences, the trapezoidal rule.

np.sum(x, axis=k)          if k == 0: np.sum(x, 0); ...                  np.sum(x, dtype=d)    np.sum(x.astype(d))
np.cumsum(x)               total += x[k]; result[k] = total
np.diff(x)                 x[1:] - x[:-1]
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import dtype_of, is_integer, is_none, is_number, known_int
from zygote_py.library.order import in_c_order
from zygote_py.library.registry import implements
from zygote_py.library.written import checked_axis, choice, indented, tuple_text, written

Implementation = Callable[..., Any] | None


@implements(np.prod)
def prod(a: Any) -> Implementation:
    """The product of a number is that number."""
    return (lambda a: a) if is_number(a) else None


@implements(np.sum)
def sum(a: Any, axis: Any = None, dtype: Any = None) -> Implementation:
    """The sums that are not the compiler's own: with a dtype, or over axes that are no constant."""
    if not isinstance(a, types.Array):
        return _number_sum(a, dtype)
    if not is_none(dtype):
        number = _type_of(dtype)
        return None if number is None else _converted_sum(number, axis)
    if is_none(axis) or known_int(axis) is not None:
        return None
    if isinstance(axis, types.BaseTuple):
        return _sum_over_axes(a, len(axis))
    error = "AxisError('axis is out of bounds')"
    if a.ndim == 1:
        body = [*checked_axis("axis", 1, error), "return np.sum(a)"]
    else:
        cases = [[f"return np.sum(a, {k})"] for k in range(a.ndim)]
        body = [*checked_axis("axis", a.ndim, error), *choice("axis", cases)]
    header = "def sum(a, axis=None, dtype=None):"
    return written([header, *indented(body)], AxisError=np.exceptions.AxisError)


def _number_sum(a: Any, dtype: Any) -> Implementation:
    if not is_number(a):
        return None
    if is_none(dtype):
        return lambda a, axis=None, dtype=None: a
    number = _type_of(dtype)
    return None if number is None else lambda a, axis=None, dtype=None: number(a)


def _converted_sum(number: Any, axis: Any) -> Implementation:
    if is_none(axis):
        return lambda a, axis=None, dtype=None: np.sum(a.astype(number))
    constant = known_int(axis)
    if constant is None:
        return lambda a, axis=None, dtype=None: np.sum(a.astype(number), axis)
    return lambda a, axis=None, dtype=None: np.sum(a.astype(number), constant)


def _type_of(dtype: Any) -> Any:
    """The NumPy scalar type that an argument `dtype` stands for."""
    own = getattr(dtype, "dtype", None)
    return dtype_of(own).type if is_number(own) else None


def _sum_over_axes(a: types.Array, count: int) -> Implementation:
    """The sum over the axes in a tuple, which may be known at run time only."""
    header = "def sum(a, axis=None, dtype=None):"
    error = "AxisError('axis is out of bounds')"
    lines = ["mask = 0"]
    for k in range(count):
        lines += [f"k = axis[{k}]", *checked_axis("k", a.ndim, error)]
        lines += [
            "if mask & (1 << k):",
            "    raise ValueError(\"duplicate value in 'axis'\")",
            "mask = mask | (1 << k)",
        ]
    if count == 0:
        lines = ["return a.copy()"]
    elif count >= a.ndim:
        lines += ["return np.sum(a)"]
    else:
        for axes in itertools.combinations(range(a.ndim), count):
            lines += [f"if mask == {reduce(operator.or_, (1 << k for k in axes))}:", *indented(_loops_over(a, axes))]
        lines += ["raise ValueError('axis is out of bounds')"]
    return written([header, *indented(lines)], AxisError=np.exceptions.AxisError, dtype_=dtype_of(a))


def _loops_over(a: types.Array, axes: Sequence[int]) -> list[str]:
    kept = [axis for axis in range(a.ndim) if axis not in axes]
    lines = [f"result = np.zeros({tuple_text(f'a.shape[{axis}]' for axis in kept)}, dtype_)"]
    nest = range(a.ndim) if a.layout != "F" else range(a.ndim - 1, -1, -1)
    for depth, axis in enumerate(nest):
        lines.append(f"{'    ' * depth}for i{axis} in range(a.shape[{axis}]):")
    place = ", ".join(f"i{axis}" for axis in kept)
    whole = ", ".join(f"i{axis}" for axis in range(a.ndim))
    return [*lines, f"{'    ' * a.ndim}result[{place}] += a[{whole}]", "return result"]


# ------------------------------------------------------------------------------------------- running sums, products


@implements(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Implementation:
    """The sums of all elements up to each, in a row or along an axis."""
    if not isinstance(a, types.Array) or not (is_none(axis) or is_integer(axis)):
        return _number_sum(a, dtype)
    number = dtype_of(a).type if is_none(dtype) else _type_of(dtype)
    if number is None:
        return None
    header = "def cumsum(a, axis=None, dtype=None):"
    error = "ValueError('axis is out of bounds')"
    captured = {"number": number, "dtype_": np.dtype(number)}
    if is_none(axis) or a.ndim <= 1:
        check = [] if is_none(axis) else checked_axis("axis", a.ndim, error)
        lines = [
            *check,
            "values = flat(a)",
            "result = np.empty(values.size, dtype_)",
            "total = number(0)",
            "for i in range(values.size):",
            "    total += number(values[i])",
            "    result[i] = total",
            "return result",
        ]
        return written([header, *indented(lines)], flat=in_c_order, **captured)
    cases = [_along_axis(a.ndim, k) for k in range(a.ndim)]
    constant = known_int(axis)
    if constant is not None and -a.ndim <= constant < a.ndim:
        lines = cases[constant]
    else:
        lines = [*checked_axis("axis", a.ndim, error), *choice("axis", cases)]
    return written([header, *indented(lines)], **captured)


def _along_axis(ndim: int, axis: int) -> list[str]:
    """Element by element along one axis, whose loop is the innermost."""
    loops = [k for k in range(ndim) if k != axis] + [axis]
    lines = ["result = np.empty(a.shape, dtype_)"]
    for depth, k in enumerate(loops):
        if k == axis:
            lines.append(f"{'    ' * depth}total = number(0)")
        lines.append(f"{'    ' * depth}for i{k} in range(a.shape[{k}]):")
    place = ", ".join(f"i{k}" for k in range(ndim))
    body = [f"total += number(a[{place}])", f"result[{place}] = total"]
    return [*lines, *(f"{'    ' * ndim}{line}" for line in body), "return result"]


@implements(np.cumprod)
def cumprod(a: Any) -> Implementation:
    """The products of all elements up to each, in a row."""
    return _running_product(a, skip=False) if isinstance(a, types.Array) else None


@implements(np.nancumprod)
def nancumprod(a: Any) -> Implementation:
    """The products of all elements up to each that are not NaN."""
    return _running_product(a, skip=True) if isinstance(a, types.Array) else None


def _running_product(a: types.Array, skip: bool) -> Implementation:
    flat, dtype = in_c_order, dtype_of(a)
    one = dtype.type(1)

    def implementation(a: Any) -> Any:
        values = flat(a)
        result = np.empty(values.size, dtype)
        product = one
        for i in range(values.size):
            if not skip or not np.isnan(values[i]):
                product *= values[i]
            result[i] = product
        return result

    return implementation


@implements(np.nancumsum)
def nancumsum(a: Any) -> Implementation:
    """The sums of all elements up to each that are not NaN, in a row."""
    if not isinstance(a, types.Array):
        return None
    flat, dtype = in_c_order, dtype_of(a)
    zero = dtype.type(0)

    def implementation(a: Any) -> Any:
        values = flat(a)
        result = np.empty(values.size, dtype)
        total = zero
        for i in range(values.size):
            if not np.isnan(values[i]):
                total += values[i]
            result[i] = total
        return result

    return implementation


# ------------------------------------------------------------------------------------- differences, integrals


@implements(np.diff)
def diff(a: Any, n: Any = 1) -> Implementation:
    """The differences of neighbours along the last axis, n times over."""
    if not isinstance(a, types.Array) or a.ndim == 0:
        return None
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
    return written(["def diff(a, n=1):", *indented(lines)])


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0) -> Implementation:
    """The integral along the last axis of what is linear between the points."""
    if not isinstance(y, types.Array) or y.ndim == 0:
        return None
    if not is_none(x) and not isinstance(x, types.Array):
        return None
    step = dx if is_none(x) else x
    ndim = max(y.ndim, getattr(step, "ndim", 0))
    last = ndim - 1
    total: Callable[[Any], Any] = np.sum if ndim == 1 else lambda a: np.sum(a, last)
    if is_none(x):

        def evenly(y: Any, x: Any = None, dx: Any = 1.0) -> Any:
            return total(dx * ((y[..., 1:] + y[..., :-1]) / 2.0))

        return evenly

    def implementation(y: Any, x: Any = None, dx: Any = 1.0) -> Any:
        return total(np.diff(x) * ((y[..., 1:] + y[..., :-1]) / 2.0))

    return implementation


for _name in ("trapezoid", "trapz"):  # NumPy 2.0 has both, later ones the first only
    if hasattr(np, _name):
        implements(getattr(np, _name))(trapezoid)
