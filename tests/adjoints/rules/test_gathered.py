"""Products of vectors that a loop adds to a matrix, gathered: against differences along a direction."""

from __future__ import annotations

import numpy as np
import pytest

import zygote_py as zg
from tests.checking.slopes import slopes
from tests.checking.trees import real_parts
from tests.plain import plain

RNG = np.random.default_rng(11)
W = RNG.normal(size=(50, 48)) / 8.0
V = RNG.normal(size=(48, 50)) / 8.0


def chained(w, v, h, n):
    """One product by a vector on each side in each round."""
    total = 0.0
    for _ in range(n):
        a = np.tanh(w @ h)
        h = np.tanh(a @ v.T)
        total += np.sum(a)
    return total + np.sum(h * h)


def by_rows(w, v, h, n):
    """Rows of a matrix, downwards, and two products with one matrix."""
    states = np.zeros((n + 1, h.shape[0]))
    states[n] = h
    for t in range(n, 0, -1):
        a = w @ states[t]
        states[t - 1] = 0.5 * np.sin(v @ a) + 0.1 * (v @ (a * a))
    return np.sum(states)


def rows_of_a_matrix(w, v, h, n):
    """Vectors that have a gradient as well."""
    x = np.outer(np.sin(np.arange(n + 1.0)), h)
    total = 0.0
    for t in range(n):
        total += np.sum(np.sin(w @ x[t])) * v[0, 0]
    return total


def nested(w, v, h, n):
    total = 0.0
    for k in range(2):
        g = h * (k + 1.0)
        for _ in range(n):
            g = np.tanh(v @ (w @ g))
        total += np.sum(g)
    return total


def until(w, v, h, n):
    """A loop without a count."""
    k = 0
    while k < n and h[0] < 10.0:
        h = np.tanh(v @ np.tanh(w @ h))
        k += 1
    return np.sum(h)


def sometimes(w, v, h, n):
    """Products that some rounds leave out."""
    for t in range(n):
        h = np.tanh(v @ np.tanh(w @ h)) if t % 3 != 1 else h * 0.9
    return np.sum(h)


def changed(w, v, h, n):
    """A matrix that each round changes."""
    m = w.copy()
    for t in range(n):
        h = np.tanh(v @ (m @ h))
        m[t % 5, 0] = h[0]
    return np.sum(h) + np.sum(m)


@pytest.mark.interpreted
@pytest.mark.parametrize("f", [chained, by_rows, rows_of_a_matrix, nested, until, sometimes, changed])
@pytest.mark.parametrize("n", [70, 3, 0])
def test_gradients(f, n):
    h = RNG.normal(size=48)
    source = zg.gradient(f, wrt=(0, 1, 2), mode="reverse").source(W, V, h, n)
    assert ("gather(" in source) == (f not in (sometimes, until))
    by_difference = slopes(f, (W, V, h, n), (0, 1, 2), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(plain(source)(W, V, h, n))) < 1e-7


@pytest.mark.interpreted
def test_small_matrices():
    w, v, h = W[:4, :3].copy(), V[:3, :4].copy(), RNG.normal(size=3)
    found = plain(zg.gradient(chained, wrt=(0, 1, 2), mode="reverse").source(w, v, h, 9))(w, v, h, 9)
    by_difference = slopes(chained, (w, v, h, 9), (0, 1, 2), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7


@pytest.mark.interpreted
def test_matrices_of_few_rows():
    """Whose vectors would take more memory than they do."""

    def f(w, x, n):
        s = 0.1
        for _ in range(n):
            a = np.tanh((w @ x) * s)
            s += a[0] * a[1]
        return s

    w, x = RNG.normal(size=(2, 1500)) / 40.0, RNG.normal(size=1500)
    found = plain(zg.gradient(f, wrt=(0, 1), mode="reverse").source(w, x, 20))(w, x, 20)
    by_difference = slopes(f, (w, x, 20), (0, 1), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7


@pytest.mark.compiled
def test_compiled():
    h = RNG.normal(size=48)
    gradient = zg.gradient(chained, wrt=(0, 1, 2), mode="reverse")
    for n in (130, 64, 2):
        by_difference = slopes(chained, (W, V, h, n), (0, 1, 2), np.random.default_rng(1))
        assert by_difference.off(np.ones(1), real_parts(gradient(W, V, h, n))) < 1e-7
    single = [each.astype(np.float32) for each in (W, V, h)]
    for one, other in zip(gradient(*single, 70), gradient(W, V, h, 70), strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, atol=1e-4)
    _, back = zg.pullback(chained, W, V, h, 70)
    for one, other in zip(back(1.0), gradient(W, V, h, 70), strict=False):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    with pytest.raises(ValueError, match="size"):
        gradient(W, V, h[:-1], 3)
