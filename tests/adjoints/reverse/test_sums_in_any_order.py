"""Sums of the adjoint in loops that may become vectors have any order; those of the function keep theirs."""

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


def in_two_ways(x, a):
    t = 0.0
    for i in range(len(x)):
        if x[i] > 0.0:
            t += math.exp(x[i]) * a * a
        else:
            t += x[i] * a
    return t * t


def around_another_loop(x, a):
    """The adjoint of `a` is a sum of the outer loop, which is reversed as it runs."""
    t = 0.0
    for i in range(len(x)):
        k = 1
        for j in range(i):
            k = (3 * k + j) % 7
        t += x[i] * a * k
    return t


def with_a_function_beside(x, a):
    """The sum itself could become a vector."""
    t, u = 0.0, 0.0
    for i in range(len(x)):
        t += x[i] * a
        u += math.cos(x[i])
    return t * t + u


def of_recurrences(x, a):
    """An inner loop hands on its adjoint."""
    t = 0.0
    for i in range(len(x)):
        y = a
        for _ in range(3):
            y = math.sin(y * x[i])
        t += y
    return t


def without_a_count(x, a):
    t, i = 0.0, 0
    while t < 3.0 and i < len(x):
        t += math.exp(x[i]) * a
        i += 1
    return t * t


def only_of_the_function(x, a):
    """The adjoint of the sum is the same for all elements."""
    t = 0.0
    for i in range(len(x)):
        t += x[i]
    return t * t * a


def at_places(x, a):
    y = np.zeros(2)
    for i in range(len(x)):
        y[i % 2] += x[i]
    return y[0] * y[1] * a


@numba.njit
def powers(x, n):
    return x if n == 0 else x * powers(0.5 * x, n - 1)


def of_calls(x, a):
    t = 0.0
    for i in range(len(x)):
        t += powers(x[i], 2) * a
    return t * t


def of_changing_sign(x, a):
    """The adjoint is subtracted, and not from a sum."""
    for _ in range(4):
        a = 1.5 - a * 0.7
    return a * a * np.sum(x)


def used_in_each_round(x, a):
    """The adjoint of `a` is multiplied between the additions."""
    s = 0.0
    for _ in range(4):
        s += a
        a = 0.5 * a
    return s * s * np.sum(x)


@numba.njit(fastmath={"reassoc"})
def of_the_user(x, a):
    """All sums have any order."""
    t = 0.0
    for i in range(len(x)):
        t += x[i] * a
    return t * t


IN_ORDER = [
    in_two_ways,
    around_another_loop,
    with_a_function_beside,
    of_recurrences,
    without_a_count,
    only_of_the_function,
    at_places,
    of_calls,
]
IN_ORDER += [of_changing_sign, used_in_each_round, of_the_user]


@pytest.mark.interpreted
@pytest.mark.parametrize("f", one_in(3, IN_ORDER), ids=lambda f: f.__name__)
def test_sums_that_keep_their_order(f):
    check_not_made("sums-in-any-order", f, np.linspace(-0.7, 0.9, 5), 0.7)
