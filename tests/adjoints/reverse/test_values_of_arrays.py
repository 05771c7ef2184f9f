"""Values that an array has are read from it in the reverse sweep, unless it may have changed by then."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.checking.left_out import is_made
from tests.checking.slopes import slopes
from tests.checking.trees import real_parts
from tests.modes import one_in
from tests.plain import plain

RNG = np.random.default_rng(2)
X, W = RNG.normal(size=9), RNG.normal(size=9)


def kept(x, w):
    y = np.zeros(10)
    for i in range(9):
        y[i + 1] = math.tanh(x[i] * w[i] + y[i])
    return np.sum(y)


def scaled(x, w):
    y = np.empty(9)
    for i in range(9):
        y[i] = math.exp(x[i] * w[i])
    for i in range(9):
        y[i] *= 2.0
    return np.sum(y * y)


def in_three_places(x, w):
    y = np.zeros(3)
    s = 0.0
    for i in range(9):
        y[i % 3] = math.exp(x[i] * w[i])
        s += y[i % 3] * y[(i + 1) % 3]
    return s


def in_each_round(x, w):
    y = np.zeros(9)
    s = 0.0
    for k in range(3):
        for i in range(9):
            y[i] = math.tanh(x[i] * w[i] + 0.3 * y[i])
        s += np.sum(y) * y[k]
    return s


def swapped(x, w):
    u = x.copy()
    v = np.zeros(9)
    for _k in range(3):
        for i in range(9):
            v[i] = math.exp(0.3 * u[i] * w[i])
        u, v = v, u
    return np.sum(u * u) + v[0]


def at_places_that_change(x, w):
    y = np.zeros(10)
    idx = np.arange(9)
    for i in range(9):
        y[idx[i]] = math.sin(math.exp(x[i]) * w[i])
        idx[i] = 0
    return np.sum(y * y)


def from_both_ends(x, w):
    y = np.zeros(9)
    for i in range(9):
        y[-1 - i] = math.exp(x[i] * w[i])
        y[i] = math.exp(w[i])
    return np.sum(y * y * y)


def multiplied_in_place(x, w):
    y = np.zeros((9, 2))
    for i in range(9):
        t = math.exp(x[i])
        y[i, 0] = t
        y[i, 1] = t * w[i]
        y[i, 0] = y[i, 0] * t
    return np.sum(y * y)


def through_a_view(x, w):
    y = np.zeros(9)
    for i in range(9):
        t = math.exp(x[i]) if x[i] > 0 else math.sin(w[i])
        y[i] = t * t
        z = y[i:]
        z[0] = math.exp(t)
    y[2:4] = 1.0
    return np.sum(y * x)


@numba.njit
def put(y, i, v):
    y[i] = v


def in_a_called_function(x, w):
    y = np.zeros(9)
    for i in range(9):
        y[i] = math.exp(x[i] * w[i])
    put(y, 3, x[0] * x[0])
    return np.sum(y * y)


def handed_on(x, w):
    y = np.zeros(9)
    s = 1.0
    for i in range(9):
        s = s * math.exp(x[i] * 0.1) + w[i] / (1.0 + s * s)
        y[i] = s
    return np.sum(np.sin(y)) * s


def in_one_place(x, w):
    y = np.zeros(1)
    for i in range(9):
        y[0] = math.exp(x[i] * w[i] * 0.1) + 0.1 * y[0]
    return y[0] ** 2


def beside_others_that_are_rewound(x, w):
    n = len(x)
    q = np.zeros((2, n))
    for i in range(n):
        q[0, i] = x[i]
    a = np.zeros(n)
    for _ in range(3):
        for i in range(n):
            a[i] = 0.0
            for j in range(n):
                d = q[0, i] - q[0, j]
                a[i] += d / (1.0 + d * d) * w[j]
        for i in range(n):
            q[0, i] += 0.1 * a[i]
    for i in range(n):
        q[1, i] = math.exp(q[0, i] * w[i])
    s = 0.0
    for i in range(n):
        s += q[1, i] * q[1, i]
    return s


def in_rows_of_what_is_rewound(x, w):
    n = len(x)
    q = np.zeros((5, n))
    for i in range(n):
        q[0, i] = x[i]
    a = np.zeros(n)
    for k in range(3):
        for i in range(n):
            a[i] = 0.0
            for j in range(n):
                d = q[0, i] - q[0, j]
                a[i] += d / (1.0 + d * d) * w[j]
        for i in range(n):
            v = math.tanh(q[0, i] + a[i])
            q[k + 1, i] = v
            q[0, i] += 0.1 * a[i] * v
    s = 0.0
    for k in range(5):
        for i in range(n):
            s += q[k, i] * q[k, i] * w[i]
    return s


CHANGED = [
    *(scaled, in_three_places, in_each_round, swapped, at_places_that_change, from_both_ends, multiplied_in_place),
    *(through_a_view, in_a_called_function, handed_on, in_one_place),
    *(beside_others_that_are_rewound, in_rows_of_what_is_rewound),
]


def used_before_it_is_stored(x, w):
    x, w = x.copy(), w.copy()
    for i in range(9):
        r = math.tanh(x[i])
        x[i] = math.sin(r)
        w[i] = r
    return np.sum(w) + np.sum(x * x)


def used_before_and_by_what_uses_it(x, w):
    x, w = x.copy(), w.copy()
    for i in range(9):
        r = math.exp(0.3 * x[i])
        t = math.sqrt(r * r + 1.0) * r
        if t > 2.0:
            x[i] = r / (1.0 + t * t)
        w[i] = r
        x[i] *= t
    return np.sum(w) + np.sum(x * x)


BEFORE = [used_before_it_is_stored, used_before_and_by_what_uses_it]


IN_PART = [beside_others_that_are_rewound, in_rows_of_what_is_rewound, used_before_it_is_stored]  # of the arrays


@pytest.mark.interpreted
@pytest.mark.parametrize("f", one_in(2, [kept, *CHANGED, *BEFORE]))
def test_gradients(f):
    assert is_made("values-from-arrays", f, X, W) == (f in (kept, *IN_PART))
    found = plain(zg.gradient(f, mode="reverse").source(X, W))(X.copy(), W.copy())
    by_difference = slopes(f, (X, W), (0, 1), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7


@pytest.mark.interpreted
def test_it_is_not_recorded():
    source = zg.gradient(kept, mode="reverse").source(X, W)
    assert "record" not in source
    assert "record" in zg.gradient(in_each_round, mode="reverse").source(X, W)


@pytest.mark.compiled
def test_pullbacks_whose_arrays_change_before_they_are_called():
    def returned(x, w):
        y = np.empty(9)
        for i in range(9):
            y[i] = math.exp(x[i] * w[i])
        return y

    def written(y, x, w):
        for i in range(9):
            y[i] = math.exp(x[i] * w[i])

    expected = np.exp(X * W)
    y, back = zg.pullback(returned, X, W)
    y[:] = 0.0
    for _ in range(2):
        dx, dw = back(np.ones(9))
        np.testing.assert_allclose(dx, expected * W, rtol=1e-14)
        np.testing.assert_allclose(dw, expected * X, rtol=1e-14)
    given = np.zeros(9)
    _, back = zg.pullback(written, given, X, W)
    np.testing.assert_allclose(given, expected)
    given[:] = 0.0
    _, dx, dw = back(y=np.ones(9))
    np.testing.assert_allclose(dx, expected * W, rtol=1e-14)
    np.testing.assert_allclose(dw, expected * X, rtol=1e-14)
