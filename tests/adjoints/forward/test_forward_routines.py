"""Checkpoints, reversible loops, recursion and arrays that do not change, in forward mode and to second order."""

import math

import numpy as np
import pytest

import zygote_py as zg
from tests.checking.derivatives import check_derivatives
from tests.checking.second import push
from tests.plain import plain

pytestmark = pytest.mark.interpreted

X = np.array([0.5, 1.2, -0.3, 0.8])
V = np.array([1.0, -0.5, 0.3, 2.0])


def inner(x):
    for _ in range(5):
        x = math.sin(x) + 0.1 * x * x
    return x


def test_a_checkpoint():
    check_derivatives(
        lambda x: zg.checkpoint(inner)(x * x) ** 2, 0.5, direction=1.0, reference=lambda x: inner(x * x) ** 2
    )
    assert push(lambda x: zg.checkpoint(inner)(x), (0.5,), (2.0,)) == push(inner, (0.5,), (2.0,))


def in_segments(x):
    a = np.zeros(3)
    for i in zg.checkpointed(range(7)):
        x += 0.1 * math.sin(x)
        a[i % 3] += x
    return a[0] * a[1] + a[2]


def by_snapshots(x):
    a = np.zeros(3)
    for i in zg.checkpointed(range(7), snapshots=2):
        x += 0.1 * math.sin(x)
        a[i % 3] += x
    return a[0] * a[1] + a[2]


def kept_whole(x):
    a = np.zeros(3)
    for i in range(7):
        x += 0.1 * math.sin(x)
        a[i % 3] += x
    return a[0] * a[1] + a[2]


@pytest.mark.parametrize("loop", [in_segments, by_snapshots])
def test_loops_with_checkpoints(loop):
    check_derivatives(loop, 0.5, direction=1.0, reference=kept_whole)


def leap(s, h):
    q, p = s
    p = p - h * np.sin(q)
    return q + h * p, p


def undone(s, h):
    q, p = s
    q = q - h * p
    return q, p + h * np.sin(q)


def test_reversible_loops_of_arrays():
    """The tangents of the state, which is an array, are arrays that do not change when it is a gradient of tangents."""
    step = _copy(leap)
    zg.inverse(step)(undone)

    def f(x):
        q, p = x.copy(), x * 0.5
        for _ in range(3):
            q, p = step((q, p), 0.2)
        return np.sum(q * p)

    def kept(x):
        q, p = x.copy(), x * 0.5
        for _ in range(3):
            q, p = leap((q, p), 0.2)
        return np.sum(q * p)

    check_derivatives(f, X, direction=V, reference=kept)


def _copy(function):
    return type(function)(function.__code__, function.__globals__, function.__name__)


def even(x, a, n):
    if n == 0:
        return x
    a[n] = x * a[n - 1]
    return odd(x * a[n], a, n - 1)


def odd(x, a, n):
    if n == 0:
        return x * x
    a[n - 1] += x
    return even(math.sin(x) + a[n], a, n - 1)


def test_recursion():
    def f(x):
        a = x.copy()
        return even(x[0], a, 3) + np.sum(a * a)

    check_derivatives(f, X, direction=V, reference=f)


def grown(x, a, n):
    b = a[:]
    for _ in range(n):
        b = b[::-1] * x
    if n > 2:
        return grown(x, b, n - 2)
    return np.sum(b)


def test_an_array_that_carries_a_derivative_from_the_inside_only():
    """The argument of a recursive function is active in some of its calls, and in the first, of ones, it is not."""

    def f(x):
        return grown(x, np.ones(2), 4) * x

    assert plain(zg.gradient(f).source(2.0))(2.0) == 14 * 2.0**6
    assert push(f, (2.0,), (1.0,))[1] == 14 * 2.0**6


def chosen(x, a):
    b = a if x > 0 else a * x
    return np.sum(b) * x


def part(x, t):
    b = t[0]
    for _ in range(2):
        b = b * x
    return np.sum(b)


def spread(x, a):
    b = np.broadcast_to(a, (3, 2)).T
    for _ in range(2):
        b = b * x
    return np.sum(b)


ONES = np.ones(2)


@pytest.mark.parametrize(
    ("f", "x", "other", "expected"),
    [(chosen, 2.0, ONES, 2), (chosen, -2.0, ONES, -8), (part, 2.0, (ONES, 1.0), 8), (spread, 2.0, ONES, 24)],
)
def test_arrays_that_do_not_change_and_may_be_ones_that_do(f, x, other, expected):
    assert push(f, (x, other), (1.0, None))[1] == expected
