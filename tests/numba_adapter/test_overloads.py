"""Implementations that packages registered with Numba by `overload` and similar, called in differentiated functions."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, types
from numba.extending import intrinsic, overload, overload_attribute, overload_method, register_jitable

import zygote_py as zg
from tests.checking.derivatives import check_derivatives
from zygote_py import DifferentiationError, gradient, value_and_gradient

LINE = np.linspace(0.5, 1.5, 4)
RATE = 1.5


def clamp(x, high, factor=2.0):
    return min(x * x * factor, high)


@overload(clamp)
def _clamp(x, high, factor=2.0):
    if isinstance(x, types.Integer):
        return lambda x, high, factor=2.0: 5.0 * x
    if isinstance(x, types.Float):

        def implementation(x, high, factor=2.0):
            return min(x * x * factor * RATE, high)

        return implementation
    return None


@overload(clamp)
def _clamp_of_arrays(x, high, factor=2.0):
    if isinstance(x, types.Array):
        return lambda x, high, factor=2.0: np.sum(x * x) * factor
    return None


@register_jitable
def cube(x):
    return x * x * x


@overload_method(types.Array, "power_sum")
def _power_sum(a, p=2.0):
    return lambda a, p=2.0: np.sum(a**p)


@overload_attribute(types.Array, "energy")
def _energy(a):
    return lambda a: 0.5 * np.sum(a * a)


@intrinsic
def halved(typingctx, x):
    return types.float64(types.float64), lambda context, builder, signature, args: builder.fmul(
        args[0], args[0].type(0.5)
    )


def half(x):
    return 0.5 * x


@overload(half)
def _half(x):
    return lambda x: halved(x) * x


def test_the_implementation_is_the_one_that_numba_takes():
    def f(x, n, a):
        return clamp(x, 50.0) * clamp(n, 1.0) + clamp(x, high=60.0, factor=x) + clamp(a, x)

    check_derivatives(f, 1.5, 3, LINE, reference="numba")


def times(x, n):
    raise NotImplementedError


@overload(times, prefer_literal=True)
def _times(x, n):
    if isinstance(n, types.Literal):
        value = 100 * n.literal_value
        return lambda x, n: value * x
    return lambda x, n: n * x


def reduced(a, mode):
    raise NotImplementedError


@overload(reduced)
def _reduced(a, mode):
    if isinstance(mode, types.StringLiteral):
        if mode.literal_value == "sum":
            return lambda a, mode: np.sum(a)
        return lambda a, mode: np.sum(a * a)
    return None


def test_an_implementation_for_a_constant():
    def f(x, n, a):
        return times(x, 3) * times(x, n=4) + times(x, n) + reduced(a, "sum") * reduced(a, "squares")

    check_derivatives(f, 1.5, 3, LINE, reference="numba", routes=("source",))


def test_a_captured_variable_of_an_implementation():
    assert gradient(lambda x: clamp(x, 50.0), wrt=(0, "RATE"))(2.0) == (12.0, 8.0)


def test_functions_that_are_registered_as_they_are():
    check_derivatives(lambda x, n: cube(x) * cube(n), 1.5, 3, reference="numba", routes=("source",))


def test_methods_and_attributes():
    check_derivatives(lambda a: a.power_sum() + a.power_sum(3.0) * a.energy, LINE, reference="numba")


def test_a_rule_wins():
    @register_jitable
    def known(x):
        return x * x

    @zg.adjoint(known)
    def rule(x):
        return known(x), lambda dy: (10.0 * dy,)

    assert gradient(lambda x: known(x) * 2.0)(3.0) == 20.0


def test_what_is_refused():
    with pytest.raises(DifferentiationError, match="there is no implementation for"):
        gradient(lambda x: clamp((x, x), 1.0))(1.0)
    with pytest.raises(DifferentiationError, match="halved"):  # an intrinsic has no source
        gradient(lambda x: half(x))(1.0)
    assert value_and_gradient(lambda x, n: half(n) * x)(2.0, 4) == (16.0, (8.0, None))
    assert njit(lambda x: half(x))(4.0) == 8.0


def named_otherwise(first, second=2.0):
    raise NotImplementedError


@overload(named_otherwise)
def implement_named_otherwise(x, n=2.0):
    return lambda x, n=2.0: x * x * n


def test_an_implementation_may_have_other_names_for_its_parameters():
    assert zg.gradient(lambda x: named_otherwise(x, 3.0))(2.0) == 12.0


def each():
    """Called with what its implementations take, whatever it says itself."""


@overload(each, strict=False)
def _each(*args):
    if len(args) == 2:
        return lambda f, xs: (f(xs[0]), f(xs[1]))
    if len(args) == 3:
        return lambda f, xs, factor: (f(xs[0]) * factor, f(xs[1]))
    return None


def product(*args):
    raise NotImplementedError


@overload(product)
def _product_of_two(x, y, scale=3.0):
    return lambda x, y, scale=3.0: x * y * scale


@overload(product)
def _product_of_one(x):
    return lambda x: x * x


@overload(product)
def _product_of_many(a, b, c, d, *rest):
    return lambda a, b, c, d, *rest: a * b * c * d * rest[0]


def misnamed(x, y):
    raise NotImplementedError


@overload(misnamed)
def _misnamed(a, b=2.0):
    return lambda a, b=2.0: a * a * b


def test_the_parameters_are_those_of_the_implementations():
    def f(x, y):
        a, b = each(cube, (x, y)), each(cube, (x, y), x)
        s = product(x) + product(x, y) + product(x, y, 1.5) + product(x, y, x, y, x)
        return a[0] * a[1] + b[0] * b[1] + s + misnamed(x) + misnamed(b=y, a=x)

    check_derivatives(f, 1.3, 0.7, reference="numba")
    for wrong in (lambda x: product(), lambda x: each(cube, x, x, x)):
        with pytest.raises(DifferentiationError, match="there is no implementation for"):
            gradient(wrong)(1.0)
    with pytest.raises(DifferentiationError, match="missing a required argument: 'a'"):
        gradient(lambda x: misnamed(b=x))(1.0)
    with pytest.raises(DifferentiationError, match="without names"):
        gradient(lambda x: product(x, y=x))(1.0)
