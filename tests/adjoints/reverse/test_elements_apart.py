"""Elements that are read again, since later writes are to others; and loops in which they are not others."""

import math

import numpy as np
import pytest

from tests.checking.slopes import differences
from tests.modes import one_in
from zygote_py import gradient, hessian, pullback, value_and_gradient

pytestmark = pytest.mark.interpreted

N = 5
A = np.random.default_rng(3).normal(size=(N, N)) * 0.2 + 1.5 * np.eye(N)


def factors(a):
    a = a.copy()
    for k in range(N):
        for i in range(k + 1, N):
            a[i, k] /= a[k, k]
            for j in range(k + 1, N):
                a[i, j] -= a[i, k] * a[k, j]
    s = 0.0
    for k in range(N):
        s += math.log(a[k, k])
    return s


def from_the_end(a):
    """Elimination from the last row on: the loops count down."""
    a = a.copy()
    for k in range(N - 1, -1, -1):
        for i in range(k - 1, -1, -1):
            f = a[i, k] / a[k, k]
            for j in range(k, -1, -1):
                a[i, j] -= f * a[k, j]
    return np.sum(a**2)


def cholesky(a):
    c = np.zeros((N, N))
    a = a @ a.T
    for i in range(N):
        for j in range(i + 1):
            t = a[i, j]
            for k in range(j):
                t -= c[i, k] * c[j, k]
            if i == j:
                c[i, j] = math.sqrt(t)
            else:
                c[i, j] = t / c[j, j]
    return np.sum(np.log(np.diag(c)))


def recursion(a):
    x = a[0]
    h = np.zeros(N + 2)
    h[0], h[1] = 0.5, 0.7
    for t in range(N):
        h[t + 2] = math.tanh(h[t + 1] * x[t] + h[t] * h[t + 1])
    return np.sum(h**2)


def rows(a):
    h = np.zeros((N + 1, N))
    h[0] = a[1]
    for t in range(N):
        h[t + 1] = np.tanh(a @ h[t])
    return np.sum(h**2)


def gates(a):
    g = np.zeros((N, 3, N))
    c = np.ones((N + 1, N))
    for t in range(N):
        for i in range(N):
            g[t, 0, i] = math.tanh(a[t, i])
            g[t, 1, i] = math.exp(-a[i, t])
        for i in range(N):
            c[t + 1, i] = g[t, 0, i] * c[t, i] + g[t, 1, i]
            g[t, 2, i] = math.tanh(c[t + 1, i])
            c[t + 1, i] = c[t + 1, i] * g[t, 2, i]
    return np.sum(c)


def every_other(a):
    x = a.copy().ravel()
    for i in range(0, 10, 2):
        x[i + 2] = x[i] * x[i + 1] + x[i + 2] ** 2
    return np.sum(x**2)


# In these an element is written to again.


def wraps_around(a):
    """x[-1] is the last element, which is written to last."""
    x = a[0].copy()
    for i in range(N):
        x[i] = x[i] * x[i - 1] + 0.3 * x[i] ** 2
    return np.sum(x**2)


def writes_wrap_around(a):
    x = a[0].copy()
    for i in range(N):
        s = x[i] * x[i]
        x[i - 2] = s * 0.5
    return np.sum(x**3)


def rows_above(a):
    """Each row changes those above, which have been read."""
    a = a.copy()
    s = 0.0
    for k in range(N):
        for i in range(k + 1):
            s += a[i, k] * a[k, i]
            a[i, k] = 0.5 * s + a[i, k] ** 2
    return s


def again_and_again(a):
    x = a[2].copy()
    for _ in range(3):
        for k in range(N - 1):
            x[k + 1] = x[k + 1] * x[k]
            x[k] = math.sin(x[k]) * x[k]
    return np.sum(x**2)


def once_more_from_the_start(a):
    """The outer loop begins again with the first elements."""
    x = a[2].copy()
    for _ in range(3):
        for k in range(N - 1):
            x[k + 1] = x[k + 1] * x[k]
    return np.sum(x**2)


def through_a_view(a):
    x = a[3].copy()
    y = x[1:]
    for k in range(N - 1):
        y[k] = y[k] * x[k] + x[k] ** 2
    return np.sum(x**2)


def through_overlapping_views(a):
    """The index is the same in different views."""
    x = a.copy().ravel()
    for t in range(4):
        y = x[t:]
        for k in range(3):
            y[k + 1] = y[k] * y[k + 1]
            y[0] = y[k] ** 2
    return np.sum(x**2)


def views_that_move(a):
    x = a.copy().ravel()
    y = x
    for _ in range(6):
        y[1] = y[0] * y[1]
        y = y[1:]
        y[1] = y[0] * 0.5 + y[1]
    return np.sum(x**2)


def at_stored_places(a):
    places = np.array([3, 0, 3, 1, 0])
    x = a[1].copy()
    for k in range(N):
        x[places[k]] = x[k] * x[places[k]] + x[k] ** 2
    return np.sum(x**2)


def after_the_loop(a):
    x = a[1].copy()
    s = 0.0
    for k in range(N - 1):
        s += x[k] * x[k + 1]
        x[k + 1] = math.sin(x[k + 1]) * x[k]
    x[2] = s
    x[0] = x[2] * x[0]
    return np.sum(x**2) + s


def in_another_loop(a):
    x = a[1].copy()
    s = 0.0
    for k in range(N):
        s += x[k] ** 3
    for k in range(N):
        x[N - 1 - k] = s * x[k]
    return np.sum(x**2)


def exchanged(a):
    """Two arrays that change places, so that an index is one of either."""
    x, y = a[0].copy(), a[1].copy()
    for k in range(N - 1):
        y[k + 1] = x[k] * y[k + 1]
        y[k] = x[k + 1] ** 2
        x, y = y, x
    return np.sum(x**2) + np.sum(y**3)


def with_a_counter_of_its_own(a):
    x = a[0].copy()
    k = 0
    while k < N - 1:
        x[k + 1] = x[k] * x[k + 1]
        if x[k] > 0.0:
            x[k] = x[k] ** 2
        k += 1
    return np.sum(x**2)


def backwards(a):
    x = a[0].copy()
    for k in range(N - 1, 0, -1):
        x[k - 1] = x[k] * x[k - 1]
        x[k] = x[k - 1] ** 2 + x[k]
    return np.sum(x**2)


def transposed(a):
    a = a.copy()
    b = a.T
    for k in range(N - 1):
        for i in range(k + 1, N):
            b[k, i] = a[k, i] * a[i, k]
            a[k + 1, k] = b[k, k + 1] ** 2
    return np.sum(a**2)


def triangles_that_meet(a):
    """i is larger than k only sometimes."""
    a = a.copy()
    for k in range(N):
        for i in range(k, N):
            for j in range(k, N):
                a[i, j] -= 0.1 * a[i, k] * a[k, j]
    return np.sum(a**2)


def a_row_in_parts(a):
    a = a.copy()
    for t in range(N - 1):
        row = a[t]
        for i in range(N):
            a[t + 1, i] += row[i] * row[i - 1]
            row[i] = row[i] ** 2
    return np.sum(a**2)


def jumps(a):
    x = a.copy().ravel()
    for i in range(0, 9, 3):
        for j in range(4):
            x[i + j + 1] = math.sin(x[i] * x[i + j]) + 0.5 * x[i + j + 1]
    return np.sum(x**2)


def scratch_of_each_point(a):
    """The same array for all points, whose rounds are reversed as they run; it is read back within a point."""
    h = np.zeros(N + 2) * a[0, 0]
    s = 0.0
    for i in range(N):
        h[0] = a[0, 1]
        h[1] = a[1, 0]
        for t in range(N):
            h[t + 2] = math.sin(h[t + 1] * a[i, t]) * a[2, 2] + h[t] * h[t + 1]
        for t in range(N):
            s += h[t + 2] * h[t] * h[t + 1]
    return s


def carried_from_point_to_point(a):
    h = a[0].copy()
    s = 0.0
    for i in range(N):
        for t in range(2):
            h[t + 1] = math.sin(h[t + 1] * h[t]) + a[i, t]
        s += h[0] * h[1] * h[2]
        h[0] = h[2] * 0.5
    return s


def in_a_ring(a):
    """A row is written to again three rounds later."""
    b = np.zeros((3, N))
    b[0] = a[0]
    s = 0.0
    for t in range(7):
        for i in range(N):
            b[(t + 1) % 3, i] = math.sin(b[t % 3, i] * a[1, i]) + b[(t + 2) % 3, i] * a[2, i]
        s += np.sum(b[(t + 1) % 3] * b[t % 3])
    return s


def a_window_that_moves(a):
    x = a.copy().ravel()[:9]
    for t in range(2, 8):
        v = x[t - 2 : t + 1]
        x[t + 1] = np.sum(v * v) * 0.1 + a[3, 3] * x[t]
        v[0] = v[1] * a[4, 4]
    return np.sum(x**3)


def until_a_pivot_is_small(a):
    a = a.copy()
    n = N
    for k in range(n - 1):
        scale = 1.0 + np.sum(a[k, k + 1 : n] ** 2)
        if scale <= 1.2:
            n = k + 1
            break
        for i in range(k + 1, n):
            a[i, k] /= scale
            for j in range(k + 1, n):
                a[i, j] += a[i, k] * a[k, j]
    return np.sum(a[: n + 1] ** 2)


def until_a_pivot_is_small_with_steps_back(a):
    """The counter of the loop that ends early is not the index."""
    a = a.copy()
    k = 0
    for t in range(2 * N):
        if a[k, k] < -3.0:
            break
        for i in range(k, N):
            for j in range(k, N):
                a[i, j] -= 0.1 * a[i, k] * a[k, j]
        k = (k + 1) % N if t % 3 else 0
    return np.sum(a**2)


def as_long_as_it_is_large(a):
    x = a[0].copy()
    k = 0
    while k < N - 1 and x[k] ** 2 < 30.0:
        x[k + 1] = x[k] * x[k + 1] + x[k - 1]
        k += 1
    return np.sum(x**2) + k


HERE = [value for value in list(globals().values()) if getattr(value, "__module__", "") == __name__]
PROGRAMS = [value for value in HERE if callable(value)]


@pytest.mark.parametrize("f", one_in(2, PROGRAMS))
def test_gradients(f):
    expected = differences(f, A)[0]
    given = A.copy()
    value, slope = value_and_gradient(f, mode="reverse")(given)
    assert value == pytest.approx(f(A.copy()), rel=1e-14)
    np.testing.assert_allclose(slope.ravel(), expected, rtol=2e-8, atol=1e-8)
    np.testing.assert_array_equal(given, A)
    value, back = pullback(f, A.copy())
    np.testing.assert_allclose(np.ravel(back(1.0)), expected, rtol=2e-8, atol=1e-8)


@pytest.mark.parametrize("f", [factors, gates, wraps_around, once_more_from_the_start])
def test_hessians(f):
    slope = gradient(f, mode="reverse")
    expected = differences(lambda a: slope(a).ravel(), A)
    np.testing.assert_allclose(hessian(f)(A).reshape(N * N, N * N), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("f", [factors, recursion, until_a_pivot_is_small])
def test_nothing_is_kept_of_elements_that_are_not_written_to_again(f):
    kept = [value for value in gradient(f, mode="reverse").plan(A).values if "kept" in value.way]
    assert not [value for value in kept if "[" in value.name]
