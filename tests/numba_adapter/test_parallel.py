"""`parallel=True`: loops over `prange` run in order, and Numba says nothing about files that the user does not have."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numba import njit, prange

import zygote_py as zg
from zygote_py.frontend import program


@njit(parallel=True)
def total(x):
    s = 0.0
    for i in prange(len(x)):
        s += np.sin(x[i]) * x[i]
    return s


def test_no_warning_about_emitted_files():
    x = np.array([0.5, 1.0, 1.5])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = zg.gradient(total)(x)
        _, back = zg.pullback(total, x)
        again = back()
        zg.gradient(lambda a, b: np.sum(a @ b))(np.ones((4, 4))[::2, ::2], np.ones((2, 2)))
    np.testing.assert_allclose(found, np.sin(x) + x * np.cos(x), rtol=1e-15)
    np.testing.assert_allclose(again[0], found, rtol=1e-15)
    assert not [each for each in caught if "<zygote_py" in f"{each.filename} {each.message}"]


def test_a_parallel_loop_runs_in_order():
    assert "prange" not in zg.gradient(total).source("f64[:]")


@njit(parallel=True)
def ratios_in_threads(x, y):
    s = 0.0
    for i in prange(len(x)):
        if x[i] > 0.0:
            s += x[i] / y[i]
    return s


@njit(parallel=True)
def ratios_in_order(x, y):
    s = np.sum(x * y)
    for i in range(len(x)):
        s += x[i] / y[i]
    return s


def test_divisions_by_zero_raise_where_those_of_the_function_do():
    x, y = np.array([1.0, 2.0, -3.0, 4.0]), np.array([1.0, 0.0, 0.0, 2.0])
    value, (dx, dy) = zg.value_and_gradient(ratios_in_threads)(x, y)
    assert value == ratios_in_threads(x, y) == np.inf
    np.testing.assert_array_equal(dx, [1.0, np.inf, 0.0, 0.5])
    np.testing.assert_array_equal(dy, [-1.0, -np.inf, 0.0, -1.0])
    for run in (ratios_in_order, zg.gradient(ratios_in_order)):
        with pytest.raises(ZeroDivisionError):
            run(x, y)


@njit
def of_a_parallel_one(x, y):
    return 2.0 * ratios_in_threads(x, y)


def of_a_parallel_one_undecorated(x, y):
    return ratios_in_threads(x, y) * 2.0


@njit
def of_one_that_is_called(x, y):
    return ratios_in_threads(x, y) + ratios_in_threads(x, y)


@pytest.mark.parametrize("function", [of_a_parallel_one, of_a_parallel_one_undecorated, of_one_that_is_called])
def test_functions_called_have_loops_over_prange_of_their_own(function, monkeypatch):
    if function is of_one_that_is_called:
        monkeypatch.setattr(program, "_MOST_STATEMENTS", -1)
    x, y = np.array([1.0, 2.0, -3.0, 4.0]), np.array([1.0, 0.0, 0.0, 2.0])
    df = zg.value_and_gradient(function)
    value, (dx, dy) = df(x, y)
    assert value == function(x, y) == np.inf
    np.testing.assert_array_equal(dx, [2.0, np.inf, 0.0, 1.0])
    np.testing.assert_array_equal(dy, [-2.0, -np.inf, 0.0, -2.0])
    assert zg.jvp(function, (x, y), (np.array([0.0, 0.0, 1.0, 1.0]), np.zeros(4)))[1] == 1.0
    assert zg.pullback(function, x, y)[1]()[0].tolist() == dx.tolist()
    assert function is of_one_that_is_called or "in threads" in str(df.plan(x, y))


@njit
def ratios_of_another(x, y):
    s = 0.0
    for i in prange(len(x)):
        s += x[i] / y[i]
    return s


@njit(parallel=True)
def with_another(x, y):
    s = 0.0
    for i in prange(len(x)):
        s += x[i]
    return s + ratios_of_another(x, y)


def test_functions_that_are_not_parallel_raise_also_where_they_are_called_by_one_that_is():
    x, y = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    for run in (with_another, zg.gradient(with_another)):
        with pytest.raises(ZeroDivisionError):
            run(x, y)
    np.testing.assert_array_equal(zg.gradient(with_another)(x, np.full(2, 2.0))[0], [1.5, 1.5])
