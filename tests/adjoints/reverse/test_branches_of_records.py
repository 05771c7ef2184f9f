"""Values of branches in records: those that are cheap are computed anew, the others have one placeholder."""

from __future__ import annotations

import collections
import math
import re

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.checking.left_out import check_not_made, is_made
from tests.modes import one_in
from zygote_py import gradient, hessian
from zygote_py.frontend import program

# ----------------------------------------------------------------------------------------------- computed anew


@numba.njit
def terms(x, n):
    """A product of polynomials, roots and exponentials by recursion."""
    if n == 0:
        return x
    if x < 0.8:
        t = x * x
        u = 3.0 + t * (2.0 + t * (1.5 + t * (0.7 + t)))
        return u * terms(0.5 * x + 0.3, n - 1)
    if x > 3.0:
        return math.exp(-x) + terms(1.0 / x, n - 1)
    y = x
    for k in range(n):
        y = y * x - 0.1 * k
    z = y * y
    return (z + 2.0 * y) * terms(0.3 * x, n - 1)


@pytest.mark.optimised
@pytest.mark.parametrize("x", [0.2, 0.9, 2.5, 3.7])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_by_recursion(x, n):
    check_derivatives(terms, x, n, routes=("source",))


def test_polynomials_leave_no_trace_in_a_record():
    text = gradient(terms, wrt=0).source(numba.float64, numba.int64)
    (kept,) = re.findall(r"records\.append\(\((.*)\)\)\n", text)
    assert kept.count(",") == 5, kept  # `x`, `n`, what the loop recorded and its result, and two values of each way
    assert text.index("elif x_1 < 0.8") < text.index("= x_1 * x_1")


@numba.njit
def chosen(x, y, n):
    """A value of one branch that two others use, of which one is in a loop."""
    if n == 0:
        return x * y
    s, t = 0.0, 0.0
    if x > y:
        t = (x - y) * (x + y)
    if x > 2.0 * y:
        s = t * t
    else:
        for k in range(3):
            s += t * t * k + y
    return s + chosen(y, 0.7 * x, n - 1)


@pytest.mark.optimised
@pytest.mark.parametrize("args", [(1.0, 2.0), (2.0, 1.2), (3.0, 1.0)])
def test_that_several_branches_use(args):
    check_derivatives(chosen, *args, 2, routes=("source",))


@numba.njit
def taken_over(x, a, b, n):
    """A value `v` of a branch, taken over by a variable that is not assigned on each way on which `v` is computed."""
    if n == 0:
        return x
    s = 0.0
    if a:
        v = math.sin(x)
        w = v * v
        s = w * w * w
    if b and a:
        t = v
    else:
        q = math.cos(3.0 * x)
    if b and a:
        s += t * t * t
    else:
        s += q * q * q
    return s + 0.5 * taken_over(0.7 * x, b, a, n - 1)


@pytest.mark.parametrize("a", [False, True])
@pytest.mark.parametrize("b", [False, True])
def test_that_another_variable_takes_over(a, b):
    for n in (1, 3):
        check_derivatives(taken_over, 0.3, a, b, n, routes=("source",))


@pytest.mark.interpreted
def test_second_derivatives():
    for x in (0.2, 0.9, 2.5, 3.7):
        slope = gradient(terms, wrt=0)
        expected = (slope(x + 1e-6, 3) - slope(x - 1e-6, 3)) / 2e-6
        np.testing.assert_allclose(hessian(terms, wrt=0)(x, 3), expected, rtol=1e-7)


# ----------------------------------------------------------------------------------------------- placeholders


def stepped(x, n):
    """A loop of an unknown number of rounds, which end in one of several ways."""
    s = 0.0
    while abs(s) < n:
        s += 0.6
        if x > 2.0:
            x = math.sqrt(x) + 0.1
            if x > 1.5:
                x = math.log(x) + 0.9
                s += math.sin(x)
                continue
            s += math.cos(x)
        elif x < 0.7:
            x = math.exp(x)
            if s > 0.3:
                s = math.tanh(s * x)
        else:
            x = math.sinh(x)
            s -= x
    return s


def test_a_number_has_one_placeholder():
    text = gradient(stepped, wrt=0).source(numba.float64, numba.int64)
    forward = text[: text.index(".pop()")]
    zeros = collections.Counter(re.findall(r"^ +(\w+) = (?:0\.0|False|0)$", forward, re.MULTILINE))
    inside = forward[forward.index("while") :]
    assert sum(f"{name} = " in inside for name in zeros) >= 3
    assert max(zeros.values()) == 1, text


@pytest.mark.parametrize("x", [0.3, 0.9, 1.7, 2.5, 30.0])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_of_a_loop(x, n):
    check_derivatives(stepped, x, n)


# ---------------------------------------------------------------------------------------- recorded, all the same


def cheap(x, y):
    s = x
    if x < 0.8:
        t = x * y
        s = t * t * t
    return s * s


def of_a_loop(x, y):
    s = x
    if x < 0.8:
        for _ in range(3):
            s = s * y + 0.1 * s * s
    return s * y


def of_a_loop_without_a_count(x, y):
    s = x
    if x < 0.8:
        while s < 2.0:
            s = s * s + 1.0 + y * y
    return s * s


def of_both_ways(x, y):
    t = x * y if x < 0.8 else x + y * y
    return t * t * t


def of_one_way_and_before(x, y):
    t = 0.3
    if x < 0.8:
        t = x * y
    return t * t * y


def that_no_adjoint_needs(x, y):
    s = y
    if x < 0.8:
        s = 2.0 * x - y
    return s + x


def constants(x, y):
    t = 2.0
    if x < 0.8:
        t = 0.5
    return t * x * y * x


def of_a_function_that_is_not_cheap(x, y):
    s = x
    if x < 0.8:
        s = math.sqrt(x * x + 1.0) * y
    return s


def of_a_function_of_two(x, y):
    s = y
    if x < 0.8:
        s = math.atan2(x, y)
    return s * x


def behind_an_exception(x, y):
    s = x
    if x < 0.8:
        if y > 100.0:
            raise ValueError("too large")
        s = math.exp(y)
    return s * s


def in_rounds(x, y):
    """A record of its own holds what the rounds compute."""
    s = x
    for _ in range(3):
        if s < 0.8:
            t = s * y
            s = t * t * t + 0.5
    return s


RECORDED = [of_a_loop, of_a_loop_without_a_count, of_both_ways, of_one_way_and_before, that_no_adjoint_needs, constants]
RECORDED += [of_a_function_that_is_not_cheap, of_a_function_of_two, behind_an_exception, in_rounds]


@pytest.fixture
def called(monkeypatch):
    """Call a function in several places, without its being inlined."""
    monkeypatch.setattr(program, "_MOST_STATEMENTS", -1)
    return lambda g: lambda x, y: 1.5 * g(x, y) + g(y, x) * g(x + y, y)


@pytest.mark.interpreted
def test_cheap_values(called):
    assert is_made("recomputed-branches", called(cheap), 0.7, 0.9)


@pytest.mark.interpreted
@pytest.mark.parametrize("g", one_in(3, RECORDED), ids=lambda g: g.__name__)
def test_others_are_recorded(g, called):
    check_not_made("recomputed-branches", called(g), 0.7, 0.9)
