"""Loops that look for the largest element: their reverse adds to that element, and nothing is recorded."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.checking.left_out import check_not_made
from tests.checking.slopes import slopes
from tests.checking.trees import real_parts
from tests.modes import one_in
from tests.plain import plain

X = np.random.default_rng(4).normal(size=(5, 7))
nan = np.nan


def log_sum_exp(x):
    s = 0.0
    for r in range(x.shape[0]):
        m = x[r, 0]
        for j in range(1, x.shape[1]):
            m = max(m, x[r, j])
        t = 0.0
        for j in range(x.shape[1]):
            t += math.exp(x[r, j] - m)
        s += m * m + math.log(t)
    return s


def least(x):
    m = 1e9
    for i in range(x.shape[0]):
        m = min(x[i, 2], m)
    return m * m * x[0, 0]


def from_a_start_of_its_own(x):
    s = 0.0
    for k in range(3):
        m = x[k, 1] * 3.0
        for i in range(x.shape[1]):
            m = max(m, x[k, i])
        s += m * x[k, 0]
    return s


def none_at_all(x):
    m = x[0, 0]
    for i in range(3, 2):
        m = max(m, x[i, i])
    return m * 2.0


def both_ends(x):
    a = x[0, 0]
    b = x[0, 0]
    for i in range(x.shape[1]):
        a = max(a, x[1, i])
        b = min(b, x[2, i])
    return a * b


def in_one_pass(x):
    m = x[0, 0]
    s = 1.0
    for i in range(1, 7):
        n = max(m, x[0, i])
        s = s * math.exp(m - n) + math.exp(x[0, i] - n)
        m = n
    return m + math.log(s)


def that_change(x):
    y = x[0].copy()
    m = y[0]
    for i in range(7):
        m = max(m, y[i])
        y[(i + 3) % 7] *= 1.5
    return m * m + np.sum(y)


def that_change_later(x):
    y = x[0].copy()
    m = y[0]
    for i in range(7):
        m = max(m, y[i])
    for i in range(7):
        y[i] = y[i] * y[i] * m
    return np.sum(y) + m


def with_a_check(x):
    m = x[0, 0]
    for i in range(1, 7):
        if x[0, i] > 100.0:
            raise ValueError("too large", m)
        m = max(m, x[0, i])
    return m * m


FOUND = [log_sum_exp, least, from_a_start_of_its_own, both_ends, that_change_later]


@pytest.mark.interpreted
@pytest.mark.parametrize("f", [*FOUND, none_at_all, in_one_pass, that_change, with_a_check])
def test_gradients(f):
    source = zg.value_and_gradient(f, mode="reverse").source(X)
    value, found = plain(source)(X.copy())
    assert value == f(X)
    by_difference = slopes(f, (X,), (0,), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7
    assert (" = -1\n" in source) == (f in FOUND)


def first(x):
    m = x[0]
    for i in range(1, len(x)):
        m = max(m, x[i])
    return m * 2.0


def second(x):
    m = x[0]
    for i in range(1, len(x)):
        m = max(x[i], m)
    return m * 2.0


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("x", "of_first", "of_second"),
    [
        ([1.0, 3.0, 3.0], [0, 2, 0], [0, 0, 2]),
        ([2.0, 2.0, 1.0], [2, 0, 0], [0, 2, 0]),
        ([1.0, nan, 3.0], [0, 0, 2], [0, 0, 2]),
        ([nan, 1.0, 2.0], [2, 0, 0], [0, 0, 2]),
        ([1.0, 2.0, nan], [0, 2, 0], [0, 0, 2]),
    ],
)
def test_ties_and_nan(x, of_first, of_second):
    """As `max` in Python: the first of equal arguments, and of those that cannot be compared."""
    x = np.array(x)
    for f, expected in ((first, of_first), (second, of_second)):
        value, found = zg.value_and_gradient(f, mode="reverse")(x)
        np.testing.assert_array_equal(value, numba.njit(f)(x))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.compiled
def test_second_derivatives():
    x = np.array([0.5, 2.0, 1.5])

    def f(x):
        return first(x) ** 3 * x[0]

    expected = np.array([[0.0, 96.0, 0.0], [96.0, 48.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(zg.hessian(f)(x), expected)
    np.testing.assert_allclose(zg.jacobian(zg.gradient(f, mode="reverse"))(x), expected)
    single = x.astype(np.float32)
    found = zg.gradient(f, mode="reverse")(single)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [64.0, 48.0, 0.0])


@pytest.mark.compiled
def test_an_exception_that_shows_the_largest_so_far():
    gradient, x = zg.gradient(with_a_check), X.copy()
    x[0, 1:3] = 7.0, 200.0
    with pytest.raises(ValueError, match="too large") as caught:
        gradient(x)
    assert caught.value.args == ("too large", 7.0)


@pytest.mark.compiled
def test_elements_of_other_types_and_starts_that_are_left_out():
    def scaled(x, a):
        m = 0.5
        for i in range(len(a)):
            m = max(m, a[i])
        return m * x[0]

    def from_a_root(x, w):
        m = math.sqrt(x[0])
        for i in range(len(w)):
            m = max(m, w[i])
        return m * 2.0

    x = np.ones(2)
    for kind in (np.int64, np.uint8, np.float32):
        np.testing.assert_array_equal(zg.gradient(scaled, wrt=0, mode="reverse")(x, np.array([1, 5, 2], kind)), [5, 0])
    found = zg.gradient(scaled, mode="reverse")(x, np.array([1, 5, 2], np.float32))
    np.testing.assert_array_equal(found[1], [0, 1, 0])
    dx, dw = zg.gradient(from_a_root, mode="reverse")(np.array([0.0, 1.0]), np.array([1.0, 3.0]))
    np.testing.assert_array_equal(dx, [0, 0])
    np.testing.assert_array_equal(dw, [0, 2])


def downwards(x):
    m = x[0]
    for i in range(len(x) - 1, 0, -1):
        m = max(m, x[i])
    return m * m * x[1]


def from_the_end_on(x):
    """The index that is kept could be negative."""
    m = x[0]
    for i in range(-3, 3):
        m = max(m, x[i])
    return m * m * x[1]


def of_three(x):
    m = x[0]
    for i in range(1, len(x)):
        m = max(m, x[i], 0.25)
    return m * m * x[1]


def of_multiples(x):
    """Numbers are compared that are not elements."""
    m = x[0]
    for i in range(1, len(x)):
        m = max(m, 2.0 * x[i])
    return m * m * x[1]


def of_some_rounds(x):
    m = x[0]
    for i in range(1, len(x)):
        if i % 2 == 0:
            m = max(m, x[i])
    return m * m * x[1]


def added_up(x):
    """The largest so far is used in each round."""
    m, s = x[0], 0.0
    for i in range(1, len(x)):
        m = max(m, x[i])
        s += m
    return s * x[1]


def overwritten_through_a_view(x):
    y = x.copy()
    z, m = y[1:], y[0]
    for i in range(1, len(x)):
        m = max(m, y[i])
        z[i - 1] *= 0.5
    return m * m * np.sum(y)


OTHERS = [downwards, from_the_end_on, of_three, of_multiples, of_some_rounds, added_up]
OTHERS += [overwritten_through_a_view]


@pytest.mark.interpreted
@pytest.mark.parametrize("f", one_in(3, OTHERS), ids=lambda f: f.__name__)
def test_others_keep_no_index(f):
    check_not_made("extremes", f, X[0])
