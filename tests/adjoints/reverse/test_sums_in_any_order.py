"""Sums of the adjoint in loops that may become vectors have any order; those of the function keep theirs."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.checking.slopes import slopes
from tests.checking.trees import real_parts
from tests.plain import plain

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=101), RNG.normal(size=101)


def fitted(x, y, a, b, c):
    total = 0.0
    for i in range(len(x)):
        r = (a * x[i] + b) * x[i] + c - y[i]
        total += r * r
    return total


def guarded(x, y, a, b, c):
    """A selection, a difference and a root."""
    total = 0.0
    for i in range(len(x)):
        r = math.sqrt(x[i] * x[i] + a * a) - b * y[i]
        total -= max(r, c * y[i])
    return total


@pytest.mark.parametrize("f", [fitted, guarded])
@pytest.mark.parametrize("fastmath", [False, {"contract"}])
def test_gradients(f, fastmath):
    compiled = numba.njit(fastmath=fastmath)(f)
    gradient = zg.value_and_gradient(compiled, mode="reverse")
    for count in (101, 7, 1, 0):
        args = (X[:count], Y[:count], 0.7, 0.3, 0.1)
        value, found = gradient(*args)
        assert value == compiled(*args)
        by_difference = slopes(f, args, (0, 1, 2, 3, 4), np.random.default_rng(1))
        assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7
    text = gradient.inspect_llvm(*args)
    assert ("reassoc contract" in text) if fastmath else ("reassoc" in text and "contract" not in text)
    text = gradient.source(*args)
    assert "plus(" not in text
    np.testing.assert_allclose(plain(text)(X, Y, 0.7, 0.3, 0.1)[1][2:], gradient(X, Y, 0.7, 0.3, 0.1)[1][2:])


def test_single_precision():
    args = tuple(np.float32(each) for each in (0.7, 0.3, 0.1))
    found = zg.gradient(fitted, mode="reverse")(X.astype(np.float32), Y.astype(np.float32), *args)
    (expected,) = slopes(fitted, (X, Y, 0.7, 0.3, 0.1), (0, 1, 2, 3, 4)).products
    np.testing.assert_allclose(np.concatenate([each.ravel() for each in map(np.asarray, found)]), expected, rtol=1e-3)


def chained(x, y, a, b, c):
    """Its adjoint is handed on, not added up."""
    s = c
    for i in range(len(x)):
        s = a * s + b * x[i] * y[i]
    return s


def subtracted(x, y, a, b, c):
    """A sum that each round reads, and subtracts from another number."""
    s = c
    for i in range(len(x)):
        s = x[i] * a - s
        s += b * y[i] * s
    return s


def exponentials(x, y, a, b, c):
    """A loop that does not become vectors."""
    total = 0.0
    for i in range(len(x)):
        total += math.exp(a * x[i]) * y[i] * b + c
    return total


@pytest.mark.parametrize("f", [chained, subtracted, exponentials])
def test_other_loops(f):
    args = (X * 0.1, Y, 0.7, 0.3, 0.1)
    gradient = zg.gradient(f, mode="reverse")
    by_difference = slopes(f, args, (0, 1, 2, 3, 4), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(gradient(*args))) < 1e-7
    if f is exponentials:
        assert "reassoc" not in gradient.inspect_llvm(*args)


def test_sums_of_the_function_keep_their_order():
    x = RNG.normal(size=1003) * 10.0 ** RNG.integers(-9, 9, size=1003)

    def f(x, a):
        total = a
        for i in range(len(x)):
            total += x[i] * a
        return total * total

    value, _ = zg.value_and_gradient(f, mode="reverse")(x, 0.7)
    assert value == numba.njit(f)(x, 0.7)
