"""Arrays that the reverse sweep needs whole are copied only if others may not be told from them that are written to."""

from __future__ import annotations

import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from zygote_py import gradient

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(5)
K, Y = RNG.uniform(0.2, 1.0, size=(4, 4)), RNG.uniform(0.5, 1.0, size=4)


def balanced(k, y, n):
    """Sinkhorn's iteration: each array is made after the products in which the other was a factor."""
    u = np.ones(len(y))
    v = u
    for _ in range(n):
        v = y / (k.T @ u)
        u = 1.0 / (k @ v)
    return np.sum(u * v)


def until_finite(k, y, n):
    u, v = np.ones(len(y)), np.ones(len(y))
    for _ in range(n):
        following = y / (k.T @ u)
        if np.any(~np.isfinite(following)):
            break
        u = 1.0 / (k @ following)
        v = following
    return np.sum(u * v)


def overwritten(k, y, n):
    """The factor is written to after the product, in the same round."""
    s = 0.0
    for i in range(n):
        v = y * (i + 1.0)
        s += np.sum(np.sin(k @ v))
        v[0] = s
        s += v[0] * v[1]
    return s


def overwritten_later(k, y, n):
    """The factor is written to in the round that follows."""
    v = y.copy()
    for i in range(n):
        w = np.sin(k @ v) + 0.1 * i
        v[i % 4] = w[0]
        v = w
    return np.sum(v * v)


def exchanged(k, y, n):
    """Two arrays of which each round overwrites the one that the round before has read."""
    a, b = y.copy(), 0.5 * y
    for i in range(n):
        s = np.sum(np.cos(k @ a))
        b[i % 4] = s
        a, b = b, a
    return np.sum(a * b)


def made_before(k, y, n):
    """An array that is made before the product, written to after it, and handed on."""
    v = y.copy()
    for i in range(n):
        w = 0.5 * v
        t = np.tanh(k @ v) + k @ w
        w[i % 4] = t[1]
        v = w
    return np.sum(v * v)


@pytest.mark.parametrize("f", [balanced, until_finite])
def test_without_copies(f):
    check_derivatives(f, K, Y, 4, at=[(K, Y, 0), (K, Y, 1)])
    assert "np.copy(" not in gradient(f).source(K, Y, 4)


@pytest.mark.parametrize("f", [overwritten, overwritten_later, exchanged, made_before])
def test_with_copies(f):
    check_derivatives(f, K, Y, 6, at=[(K, Y, 0), (K, Y, 1)])
    assert "np.copy(" in gradient(f).source(K, Y, 6)


def quotients(y, n):
    """Elements of an array that each round makes, and that the next reads."""
    u = y.copy()
    while n > 0:
        v = np.empty(len(y))
        for j in range(len(y)):
            v[j] = 1.0 / (u[j] + y[0])
        for j in range(1, len(y)):
            u[j] = v[j] * u[j - 1] + y[j]
        u[0] = v[len(y) - 1]
        n -= 1
        if u[0] > 1e6:
            break
    return np.sum(u)


def kept_and_written(y, n):
    """The next round writes to the array from which an element would be read."""
    v, s = y.copy(), 0.0
    while n > 0:
        w = np.empty(len(y))
        for j in range(len(y)):
            w[j] = 1.0 / (v[j] + y[0])
            s += w[j] * w[j]
        v[n % 4] += w[1]
        v = w
        n -= 1
        if s > 1e6:
            break
    return s


def made_outside(y, n):
    """All rounds write to one array."""
    v, w, s = y.copy(), np.empty(len(y)), 0.0
    while n > 0:
        for j in range(len(y)):
            w[j] = 1.0 / (v[j] + y[0])
            s += w[j] * w[j]
        v = w.copy()
        n -= 1
        if s > 1e6:
            break
    return s


@pytest.mark.parametrize("f", [quotients, kept_and_written, made_outside])
def test_elements(f):
    check_derivatives(f, Y, 5, at=[(Y, 0), (Y, 1)])


def result_overwritten(k, y, n):
    """The result that its own adjoint needs is written to, in the round that has made it."""
    s, v = 0.0, y.copy()
    for i in range(n):
        x = np.linalg.solve(k + 3.0 * np.eye(4), v)
        s += np.sum(x * x)
        x[i % 4] = s
        v = x
    return s + np.sum(v)


def test_a_result_that_is_overwritten():
    check_derivatives(result_overwritten, K, Y, 5, at=[(K, Y, 0), (K, Y, 1)])
    assert "np.copy(" in gradient(result_overwritten).source(K, Y, 5)
