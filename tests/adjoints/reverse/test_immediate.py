"""Loops whose iterations are reversed as they come, and loops for which that would be wrong."""

import math

import numpy as np
import pytest

from tests.adjoints.stages import stages
from tests.checking.derivatives import PRECISELY, check_derivatives
from tests.checking.left_out import is_made
from zygote_py import gradient

pytestmark = pytest.mark.interpreted

X = np.array([0.9, 1.7, 0.4, 1.2, 0.8])


def loops_of(func):
    """How many loops the gradient has."""
    return sum(line.strip().startswith(("for ", "while ")) for line in gradient(func).source(X).splitlines())


def a_sum(x):
    s = 0.0
    for v in x:
        s += math.exp(v)
    return 2.0 * s


def sums_within_sums(x):
    s, w = 0.0, x[0] * x[1]
    for i in range(len(x)):
        for j in range(len(x)):
            s -= math.sin(x[i] * x[j]) * w
    return s * x[0]


def scratch(x):
    s = 0.0
    w = np.empty(3)
    for i in range(len(x)):
        for j in range(3):
            w[j] = x[i] * x[j]
        t = 0.0
        for j in range(3):
            w[j] += math.sin(x[i])
            t += w[j] * w[j]
        s += math.exp(-t)
    return s


def new_array_each_time(x):
    s = 0.0
    for i in range(len(x)):
        w = np.zeros(3)
        for j in range(3):
            w[j] = x[i] * x[i] * (j + 1)
        for j in range(3):
            s += math.sin(w[j]) * w[j]
    return s


def left_early(x):
    s = 0.0
    for i in range(len(x)):
        t = x[i] * x[i]
        if t > 2.5:
            break
        if x[i] < 0.5:
            continue
        s += t * math.cos(x[i])
    return s


@pytest.mark.parametrize("func", [a_sum, scratch, new_array_each_time, left_early])
def test_one_sweep(func):
    check_derivatives(func, X, **PRECISELY)
    assert loops_of(func) == {a_sum: 1, scratch: 5, new_array_each_time: 2, left_early: 1}[func]
    if func in (a_sum, left_early):
        assert stages(func, X).records == 0


@pytest.mark.parametrize(("func", "loops"), [(new_array_each_time, 4)])
def test_one_sweep_with_an_array_for_each_round(func, loops, monkeypatch):
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "fused-loops")
    assert loops_of(func) == loops


# In these the factor, or the order of the iterations, is known at the end only.


def a_factor_known_later(x):
    s = 0.0
    for v in x:
        s += math.exp(v)
    return math.log(s)


def partial_sums(x):
    p, s, w = 0.0, 0.0, x[0]
    for i in range(len(x)):
        p += s * x[i]
        s += w
    return p


def the_last_value(x):
    s, t = 0.0, 1.0
    for i in range(len(x)):
        t = x[i] * x[i]
        s += math.sin(t)
    return s * t


def a_product(x):
    p = 1.0
    for v in x:
        p *= v
    return p


def scratch_with_a_memory(x):
    s = 0.0
    w = np.zeros(3)
    for i in range(len(x)):
        w[i % 3] += x[i]
        s += w[0] * w[1]
    return s


def scratch_not_filled(x):
    s = 0.0
    w = np.zeros(3)
    for i in range(len(x)):
        for j in range(2):
            w[j] = x[i] * x[j]
        if x[i] > 1.0:
            w[2] = x[i]
        for j in range(3):
            s += w[j] ** 2
    return s


def scratch_filled_under_a_condition(x):
    s = 0.0
    w = np.zeros(3)
    for i in range(len(x)):
        for j in range(3):
            if x[j] < x[i]:
                w[j] = x[i] * x[j]
        for j in range(3):
            s += w[j] ** 2
    return s


def scratch_read_after(x):
    s = 0.0
    w = np.zeros(3)
    for i in range(len(x)):
        for j in range(3):
            w[j] = x[i] * x[j]
        for j in range(3):
            s += w[j] ** 2
    return s + w[1] * w[2]


def scratch_read_before_it_is_filled(x):
    s = 0.0
    w = np.ones(3)
    for i in range(len(x)):
        s += w[i % 3] ** 2
        for j in range(3):
            w[j] = x[i] * x[j]
    return s


def scratch_read_while_it_is_filled(x):
    s = 0.0
    w = np.ones(3)
    for i in range(len(x)):
        for j in range(3):
            w[j] = x[i] * w[2 - j]
        s += w[0]
    return s


def scratch_read_before_its_element_is_written(x):
    s = 0.0
    w = np.zeros(3)
    for i in range(len(x)):
        for j in range(3):
            s += math.sin(w[j]) * x[i]
            w[j] = x[i] * x[i] + j
    return s


def written_later(x):
    s = 0.0
    y = np.zeros(5)
    for j in range(5):
        y[j] = x[j] ** 2
    for i in range(5):
        s += y[i] * y[4 - i]
    for i in range(5):
        y[i] = y[i] * 3.0
    for i in range(5):
        s += y[i] * y[i]
    return s


def written_in_the_next_round(x):
    s = 0.0
    y = np.zeros(5)
    for _ in range(3):
        for i in range(5):
            s += y[i] * y[i]
        for i in range(5):
            y[i] = y[i] * 0.5 + x[i]
    return s


WAITING = [
    *(a_factor_known_later, partial_sums, the_last_value, a_product, scratch_with_a_memory, scratch_not_filled),
    *(scratch_filled_under_a_condition, scratch_read_after, scratch_read_before_it_is_filled),
    *(scratch_read_while_it_is_filled, scratch_read_before_its_element_is_written, written_in_the_next_round),
]


@pytest.mark.parametrize("func", [*WAITING, written_later, sums_within_sums])
def test_what_must_wait(func):
    check_derivatives(func, X, **PRECISELY)
    assert is_made("immediate-reversal", func, X) == (func not in WAITING)


@pytest.mark.compiled
def test_a_parameter_summed_over_several_loops():
    def f(x, w):
        s = 0.0
        for v in x:
            s += v * w
        t = 1.0
        for v in x:
            t *= v * w
        for v in x:
            s += w / v
        return s + t * w

    check_derivatives(f, X, 0.7, **PRECISELY)


# A sum that control may not reach is read in the reverse sweep under the same condition.


def a_sum_under_a_condition(x, w):
    s = 0.0
    if w > 0.0:
        for v in x:
            s += v * w
    return s


def sums_of_some_iterations(x, w):
    s = 0.0
    for i in range(len(x)):
        if i == 1:
            for v in x:
                s += v * w
        elif x[i] > 0.5:
            s += np.sum(x * w * x[i])
    return s


@pytest.mark.parametrize("func", [a_sum_under_a_condition, sums_of_some_iterations])
def test_a_sum_that_control_may_not_come_to(func):
    check_derivatives(func, X, 0.7, **PRECISELY)
    check_derivatives(func, X, -0.7, **PRECISELY)
    assert ".append" not in gradient(func).source(X, 0.7)
