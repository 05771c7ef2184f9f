"""Every form of control flow: gradients against the reference, plain and compiled (see `control_flow_programs`)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.checking.derivatives import PRECISELY, check_derivatives
from tests.language.control_flow_programs import CASES, short_circuits
from tests.random_programs.generator import load
from zygote_py import gradient, value_and_gradient

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize(("function", "inputs"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_gradient(function, inputs):
    check_derivatives(function, *inputs[0], at=inputs[1:], **PRECISELY)


def test_a_counter_that_goes_down():
    def f(x, n):
        r = x
        for i in range(n, 0, -1):
            r = math.sin(r * i) + i * x
        return r

    check_derivatives(f, 0.7, 6, at=[(0.7, 0)], **PRECISELY)


def test_an_old_value_outlives_its_name():
    def f(x, n):
        s, total = x, 0.0
        for _ in range(n):
            t = s + 1.0
            s = t * t
            old = s
            s = math.sin(t)
            total += math.cos(old) * s * old
        return total + s

    check_derivatives(f, 0.4, 3, at=[(0.4, 0)], **PRECISELY)


def test_a_guard_keeps_a_division_by_zero_from_happening():
    assert gradient(short_circuits)(0.0, 3.0) == (0.0, 0.0)


def test_trap_a_read_in_a_loop_costs_constant_time():
    def total(a):
        s = 0.0
        for i in range(a.size):
            s += a[i] * a[a.size - 1 - i]
        return s

    a = np.random.default_rng(0).normal(size=400_000)
    np.testing.assert_allclose(gradient(total)(a), 2 * a[::-1])  # with a full zero array a read: a terabyte of zeros


def test_a_long_loop_needs_no_deep_stack():
    def logistic(x, n):
        k = 0
        while k < n:
            x = 0.5 * x * (1.0 - x) + 0.2
            k += 1
        return x

    value, (slope, nothing_for_n) = value_and_gradient(logistic)(0.3, 300_000)
    assert nothing_for_n is None
    assert abs(slope) < 1e-30
    assert 0.0 < value < 1.0


# pytest rewrites the assertions of this file; those of a text stay as they are.
ASSERTIONS = """
def f(x, n):
    assert n > 0
    assert x >= 0.0, "a negative number"
    if n > 1000:
        raise ValueError("too many")
    return x ** n
"""


def test_assertions():
    f = load(ASSERTIONS)
    check_derivatives(f, 0.5, 3, **PRECISELY)
    derivative = gradient(f)
    assert derivative(4.0, 2) == (8.0, None)
    with pytest.raises(AssertionError, match="a negative number"):
        derivative(-1.0, 2)
    with pytest.raises(AssertionError):
        derivative(1.0, 0)
    with pytest.raises(ValueError, match="too many"):
        derivative(1.0, 2000)
    assert derivative(4.0, 2) == (8.0, None)


def test_an_exception_raised_in_a_loop_reaches_the_caller():
    def f(x, n):
        for i in range(n):
            if i == 3:
                raise ValueError("three is too many")
            x = x * x
        return x

    derivative = gradient(f)
    assert derivative(2.0, 2) == (32.0, None)
    with pytest.raises(ValueError, match="three is too many"):
        derivative(2.0, 5)
    assert derivative(2.0, 1) == (4.0, None)


def test_division_by_zero_raises_as_in_the_function():
    derivative = gradient(lambda x, y: x / y)
    assert derivative(1.0, 2.0) == (0.5, -0.25)
    with pytest.raises(ZeroDivisionError):
        derivative(1.0, 0.0)
