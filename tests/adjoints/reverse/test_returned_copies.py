"""Gradients that are returned themselves and not as copies: which are, and which must not be."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.modes import one_in
from zygote_py import gradient, pullback

pytestmark = pytest.mark.interpreted

X = np.array([0.5, -1.5, 2.0, 0.75])
M = np.array([[0.5, -1.5, 2.0], [0.25, 1.0, -0.5], [1.5, 0.1, 0.3]])


def recurrence(x):
    x = x.copy()
    for i in range(1, len(x)):
        x[i] += x[i - 1] * x[i]
    return np.sum(x)


def matrix(a, n):
    a = a.copy()
    for k in range(n):
        for i in range(a.shape[0]):
            for j in range(1, a.shape[1]):
                a[i, j] *= math.sin(a[i, j - 1]) + k
    return np.sum(a * a)


def both(x, v, n):
    x, v = x.copy(), v.copy()
    for _ in range(n):
        for i in range(len(x)):
            x[i] += 0.1 * v[i]
        for i in range(len(x)):
            v[i] -= 0.1 * math.sin(x[i])
    return np.sum(x * x)


def by_loop(x):
    y = np.empty(len(x))
    for i in range(len(x)):
        y[i] = x[i]
    for i in range(1, len(y)):
        y[i] += y[i - 1] * y[i]
    return y[-1]


def used_before(x):
    t = np.sum(x * x)
    x = x.copy()
    for i in range(1, len(x)):
        x[i] += x[i - 1] * t
    return np.sum(x)


def copied_twice(x):
    y, z = x.copy(), x.copy()
    for i in range(1, len(x)):
        y[i] *= y[i - 1]
        z[i] += z[i - 1] * y[i]
    return np.sum(z)


def in_one_case(x, n):
    if n > 1:
        x = x.copy()
        for i in range(1, len(x)):
            x[i] += x[i - 1] * x[i]
    return np.sum(x * x)


def in_a_loop(x, n):
    t = 0.0
    for _ in range(n):
        y = x.copy()
        for i in range(1, len(y)):
            y[i] += y[i - 1] * y[i]
        t += y[-1]
    return t


def part(x):
    y = x[1:].copy()
    for i in range(1, len(y)):
        y[i] += y[i - 1] * y[i]
    return np.sum(y)


def transposed(a):
    a = a.T.copy()
    for i in range(1, len(a)):
        for j in range(a.shape[1]):
            a[i, j] += a[i - 1, j] * a[i, j]
    return a[1, 2] + a[2, 0]


def turned(x):
    y = np.empty(len(x))
    for i in range(len(x)):
        y[i] = x[len(x) - 1 - i]
    for i in range(1, len(y)):
        y[i] += y[i - 1] * y[i]
    return y[-1]


def not_all(x):
    y = np.zeros(len(x))
    for i in range(1, len(x)):
        y[i] = x[i]
    for i in range(1, len(y)):
        y[i] += y[i - 1] * y[i] + 0.5
    return y[-1]


def of_a_diagonal(a):
    y = np.zeros_like(a)
    for i in range(len(a)):
        y[i, i] = a[i, i]
    for i in range(1, len(a)):
        y[i, i] += y[i - 1, i - 1] * y[i, i]
    return np.sum(y * y)


@numba.njit
def overwrite(a, n):
    """Write to an array, and return nothing that depends on it; a routine, since it calls itself."""
    if n > 0:
        a *= 2.0
        return overwrite(a, n - 1)
    if n < 0:
        raise ValueError("negative")
    return 0.0


def passed_on(x):
    """The copy is written to by another function, and the original is read afterwards."""
    w = np.array([1.0, 2.0, -3.0, 1.0])
    overwrite(w.copy(), 2)
    return np.sum(np.maximum(w, x))


def written_through_a_view(x):
    w = np.zeros(len(x))
    for i in range(1, len(x)):
        w[i] = w[i - 1] + x[i]
    y = w.copy()
    h = y[:2]
    h += 1.0
    return np.sum(w * y)


def swapped(x):
    w = np.zeros(len(x))
    for i in range(1, len(x)):
        w[i] = w[i - 1] + x[i]
    y, z = w.copy(), w * 2.0
    for i in range(len(x)):
        y, z = z, y
        y[i] += z[i] * w[i]
    return np.sum(w * y)


def made_by_a_call(x):
    y = np.sort(x)
    for i in range(1, len(y)):
        y[i] += y[i - 1] * y[i]
    return np.sum(y)


THEMSELVES = {
    recurrence: (X,),
    matrix: (M, 2),
    both: (X, X[::-1].copy(), 3),
    by_loop: (X,),
}
COPIES = {
    used_before: (X,),
    copied_twice: (X,),
    in_one_case: (X, 2),
    in_a_loop: (X, 2),
    part: (X,),
    transposed: (M,),
    turned: (X,),
    not_all: (X,),
    of_a_diagonal: (M,),
    made_by_a_call: (X,),
    passed_on: (X,),
    written_through_a_view: (X,),
    swapped: (X,),
}


def without(f, *args):
    return "np.empty_like" not in (text := gradient(f).source(*args)) and "np.zeros_like" not in text


@pytest.mark.parametrize("f", one_in(2, [*THEMSELVES, *COPIES]), ids=lambda f: f.__name__)
def test_gradients(f):
    args = THEMSELVES.get(f) or COPIES[f]
    assert without(f, *args) == (f in THEMSELVES)
    check_derivatives(f, *args, routes=("call", "source", "pullback"), layouts="CFA")


def test_two_results_are_two_arrays():
    dx, dv, _ = gradient(both)(X, X, 2)
    assert not np.shares_memory(dx, dv)
    _, back = pullback(recurrence, X)
    (first,), (second,) = back(1.0), back(1.0)
    np.testing.assert_array_equal(first, second)
    assert not np.shares_memory(first, second)
    first[:] = 7.0
    np.testing.assert_array_equal(back(1.0)[0], second)
