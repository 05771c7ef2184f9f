"""Writes to the same elements with nothing to be read again between them: the later one is not undone."""

import math

import numpy as np
import pytest

from tests.checking.left_out import check_not_made
from tests.checking.slopes import differences
from tests.modes import one_in
from zygote_py import gradient, hessian, value_and_gradient

pytestmark = pytest.mark.interpreted

Q = np.array([0.9, -0.7, 0.4, 1.2, 0.3])


def attraction(q, i):
    t = 0.0
    for j in range(len(q)):
        t += q[i] * q[j] * math.sin(q[i] - q[j])
    return t


def two_halves(q):
    """The second half of a step and the first half of the next one are undone together."""
    n = len(q)
    q, v = q.copy(), 0.1 * q
    for _ in range(3):
        for i in range(n):
            q[i] += 0.5 * v[i]
        for i in range(n):
            v[i] += 0.1 * attraction(q, i)
        for i in range(n):
            q[i] += 0.5 * v[i]
    return np.sum(q * q)


def two_halves_of_the_argument(q):
    """Which are read before the steps, and seen by the caller after them."""
    n = len(q)
    v = 0.1 * q
    for i in range(n):
        v[i] += attraction(q, i)
    for _ in range(3):
        for i in range(n):
            q[i] += 0.5 * v[i]
        for i in range(n):
            v[i] += 0.1 * attraction(q, i)
        for i in range(n):
            q[i] += 0.5 * v[i]
    return np.sum(q * q) + np.sum(v)


def read_between(q):
    n = len(q)
    q, v, s = q.copy(), 0.1 * q, 0.0
    for _ in range(3):
        for i in range(n):
            q[i] += 0.5 * v[i]
        for i in range(n):
            v[i] += 0.1 * attraction(q, i)
        for i in range(n):
            q[i] += 0.5 * v[i]
        for i in range(n):
            s += attraction(q, i)
    return np.sum(q * q) + s


def fewer_elements_first(q):
    """The second write of a step changes an element that the first one of the next step does not."""
    n = len(q)
    q, v = q.copy(), 0.1 * q
    for _ in range(3):
        for i in range(1, n):
            q[i] += 0.5 * v[i]
        for i in range(n):
            v[i] += 0.1 * attraction(q, i)
        for i in range(n):
            q[i] += 0.5 * v[i]
    return np.sum(q * q)


def more_elements_first(q):
    n = len(q)
    q, v = q.copy(), 0.1 * q
    for _ in range(3):
        for i in range(n):
            q[i] += 0.5 * v[i]
        for i in range(n):
            v[i] += 0.1 * attraction(q, i)
        for i in range(1, n):
            q[i] += 0.5 * v[i]
    return np.sum(q * q)


def under_a_condition(q):
    n = len(q)
    q, v = q.copy(), 0.1 * q
    for k in range(4):
        for i in range(n):
            q[i] += 0.5 * v[i]
        for i in range(n):
            v[i] += 0.1 * attraction(q, i)
        if k % 2 == 0:
            for i in range(n):
                q[i] += 0.5 * v[i]
    return np.sum(q * q)


def under_a_condition_in_the_loop(q):
    n = len(q)
    q, v = q.copy(), 0.1 * q
    for k in range(4):
        for i in range(n):
            q[i] += 0.5 * v[i]
        for i in range(n):
            v[i] += 0.1 * attraction(q, i)
        for i in range(n):
            if (i + k) % 2 == 0:
                q[i] += 0.5 * v[i]
    return np.sum(q * q)


def after_a_write_to_one_element(q):
    n = len(q)
    q, v = q.copy(), 0.1 * q
    for k in range(3):
        for i in range(n):
            q[i] += 0.5 * v[i]
        for i in range(n):
            v[i] += 0.1 * attraction(q, i)
        for i in range(n):
            q[i] += 0.5 * v[i]
        q[k] = q[k] * v[0]
    return np.sum(q * q)


def within_the_loop_that_writes_the_same(q):
    """The inner loop runs as often as the outer one, but between two writes of the outer one."""
    n = len(q)
    q, s = q.copy(), 0.0
    for _ in range(2):
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    s += 0.1 * q[i] * q[j] * math.sin(q[i] - q[k])
        for i in range(n):
            q[i] = q[i] * (1.0 + 0.1 * s)
            for j in range(n):
                q[j] += 0.1 * s
    return np.sum(q * q) + s


def through_a_view(q):
    n = len(q)
    q, v = q.copy(), 0.1 * q
    tail = q[1:]
    for _ in range(3):
        for i in range(n - 1):
            tail[i] += 0.5 * v[i]
        for i in range(n):
            v[i] += 0.1 * attraction(q, i)
        for i in range(n - 1):
            q[i] += 0.5 * v[i]
    return np.sum(q * q)


def three_in_a_row(q):
    n = len(q)
    q, s = q.copy(), 0.0
    for k in range(3):
        for i in range(n):
            s += attraction(q, i)
        for i in range(n):
            q[i] += 0.1 * s
        for i in range(n):
            q[i] = q[i] * (1.0 + 0.1 * k)
        for i in range(n):
            q[i] -= 0.1 * s * s
    return np.sum(q * q) + s


def of_a_number_that_grows(q):
    n = len(q)
    q, v, m = q.copy(), 0.1 * q, 2
    for _ in range(3):
        for i in range(m):
            q[i] += 0.5 * v[i]
        for i in range(n):
            v[i] += 0.1 * attraction(q, i)
        for i in range(m):
            q[i] += 0.5 * v[i]
        m += 1
    return np.sum(q * q)


def matrices(q):
    n = len(q)
    p, v = np.empty((n, 2)), np.empty((n, 2))
    for i in range(n):
        for c in range(2):
            p[i, c], v[i, c] = q[i] + c, 0.1 * q[i] * c
    for _ in range(3):
        for i in range(n):
            for c in range(2):
                p[i, c] += 0.5 * v[i, c]
        for i in range(n):
            for j in range(i + 1, n):
                x, y = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1]
                f = 0.1 / (1.0 + x * x + y * y)
                v[i, 0] += f * x
                v[i, 1] += f * y
                v[j, 0] -= f * x
                v[j, 1] -= f * y
        for i in range(n):
            for c in range(2):
                p[i, c] += 0.5 * v[i, c]
    return np.sum(p * p)


def columns_and_rows(q):
    """The same elements in another order: both are undone."""
    n = len(q)
    p, s = np.empty((n, n)), 0.0
    for i in range(n):
        for j in range(n):
            p[i, j] = q[i] * q[j]
    for _ in range(2):
        for i in range(n):
            for j in range(n):
                p[i, j] += 0.1 * s
        for j in range(n):
            for i in range(n):
                p[i, j] += 0.2 * s * q[j]
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    s += math.sin(p[i, j] * p[j, k]) * 0.1
    return np.sum(p * p) + s


def once_in_a_step(q):
    n = len(q)
    q, v = q.copy(), 0.1 * q
    for _ in range(3):
        for i in range(n):
            q[i] += v[i]
        for i in range(n):
            v[i] += 0.1 * attraction(q, i)
    return np.sum(q * q) + np.sum(v)


ONCE = {two_halves: 1, two_halves_of_the_argument: 2, three_in_a_row: 1, matrices: 1, after_a_write_to_one_element: 1}
OTHERS = [read_between, fewer_elements_first, more_elements_first, under_a_condition, under_a_condition_in_the_loop]
OTHERS += [through_a_view, within_the_loop_that_writes_the_same, of_a_number_that_grows, columns_and_rows]
OTHERS += [once_in_a_step]


@pytest.mark.parametrize("f", [*ONCE, *OTHERS], ids=lambda f: f.__name__)
def test_gradients(f):
    expected = differences(f, Q)[0]
    given, left = Q.copy(), Q.copy()
    value = f(left)
    found, slope = value_and_gradient(f)(given)
    assert found == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(slope, expected, rtol=2e-8, atol=1e-9)
    np.testing.assert_array_equal(given, left)


@pytest.mark.compiled
@pytest.mark.parametrize("f", one_in(5, [*ONCE, *OTHERS]), ids=lambda f: f.__name__)
def test_compiled(f):
    np.testing.assert_allclose(gradient(f)(Q.copy()), differences(f, Q)[0], rtol=2e-8, atol=1e-9)


@pytest.mark.parametrize("f", one_in(3, OTHERS), ids=lambda f: f.__name__)
def test_others(f):
    check_not_made("undone-once", f, Q)


def test_a_hessian():
    expected = differences(lambda q: differences(two_halves, q)[0].sum(), Q)[0]
    np.testing.assert_allclose(hessian(two_halves)(Q).sum(axis=0), expected, rtol=1e-4)


@pytest.mark.parametrize("f", ONCE, ids=lambda f: f.__name__)
def test_what_is_kept(f):
    made = [line for line in gradient(f).source(Q).splitlines() if "_old_record" in line and "np.empty" in line]
    assert len(made) == ONCE[f]
