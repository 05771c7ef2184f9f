"""Loops over matrices that are one loop for Numba: which are, which are not, and that both give the same numbers."""

from __future__ import annotations

import math
import re

import numba
import numpy as np
import pytest

from tests.checking.slopes import chosen_of, slopes
from tests.checking.trees import real_parts
from zygote_py import gradient

pytestmark = pytest.mark.compiled

RNG = np.random.default_rng(7)


def drawn(*shape):
    return RNG.normal(size=shape)


def flat_loops(df, *args):
    """Return how many loops of a gradient are flat, by the accesses in Numba's text to elements of a first row."""
    made = df._inspect(args).emitted
    return 0 if made.compiled is None else len(re.findall(r"\[(?:\w+, )?0, k", made.compiled.source))


def steps(v, a, n):
    """Arrays that may have to be broadcast, forward and back."""
    v = v.copy()
    for _ in range(n):
        v += 0.5 * a
        v *= a
    return np.sum(v * v)


def loops(x, n):
    x = x.copy()
    y = np.zeros_like(x)
    for _ in range(n):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = math.sin(x[i, j]) * 0.5
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                x[i, j] += y[i, j]
    return np.sum(x * x)


def planes(x, n):
    """Planes of an array with three axes, and of records of them."""
    x = x.copy()
    for t in range(n):
        before = t - 1
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                x[t, i, j] += x[before, i, j] * x[t, i, j]
    return np.sum(x)


def masked(x, n):
    x = x.copy()
    for _ in range(n):
        x = np.where(x > 0.2, x * 0.5, x * x)
    return np.sum(x)


def by_row(x, w, n):
    """A factor for each row."""
    x = x.copy()
    for _ in range(n):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                x[i, j] *= w[i]
    return np.sum(x)


def by_counter(x, n):
    x = x.copy()
    for _ in range(n):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                x[i, j] *= j + 0.5
    return np.sum(x)


def neighbours(x, n):
    x = x.copy()
    for _ in range(n):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                x[i, j] += 0.1 * x[i, j - 1]
    return np.sum(x)


def part(x, n):
    x = x.copy()
    for _ in range(n):
        for i in range(x.shape[0]):
            for j in range(x.shape[1] - 1):
                x[i, j] *= 0.5
    return np.sum(x)


def transposed(x, n):
    x = x.copy()
    for _ in range(n):
        for i in range(x.shape[1]):
            for j in range(x.shape[0]):
                x[j, i] *= 0.5
    return np.sum(x)


def columns(x, n):
    y = x[:, ::2]
    t = 0.0
    for _ in range(n):
        for i in range(y.shape[0]):
            for j in range(y.shape[1]):
                t += y[i, j] * y[i, j]
    return t


def left_early(x, n):
    x = x.copy()
    for _ in range(n):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                if x[i, j] > 2.0:
                    break
                x[i, j] *= 1.1
    return np.sum(x)


def after_a_row(x, n):
    """Something is done at the end of each row."""
    x = x.copy()
    for _ in range(n):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                x[i, j] *= 0.5
            x[i, 0] = 3.0 * x[i, 0]
    return np.sum(x * x)


def before_a_row(x, n):
    """Something is computed for each row of what the loops write to."""
    y = np.ones_like(x)
    r, q = y[0], np.ones(x.shape[1])
    for _ in range(n):
        for i in range(x.shape[0]):
            s = np.dot(r, q)
            for j in range(x.shape[1]):
                y[i, j] = s * 1.5
    return np.sum(x * y)


def that_raises(x, c, n):
    """For no rows there is no division."""
    x = x.copy()
    for t in range(n):
        for i in range(x.shape[0]):
            s = 1.0 / (c - t)
            for j in range(x.shape[1]):
                x[i, j] *= s
    return np.sum(x)


def once(x, y):
    """Not within another loop."""
    return np.sum(np.exp(x * y))


FLAT = {
    steps: [(drawn(4, 3), drawn(4, 3), 2), (drawn(4, 3), drawn(1, 3), 2), (drawn(4, 3), drawn(4, 1), 2)],
    loops: [(drawn(5, 3), 3), (drawn(0, 3), 2), (drawn(3, 0), 2), (drawn(1, 7), 2), (drawn(9, 1), 2)],
    planes: [(drawn(3, 4, 3), 3)],
    masked: [(drawn(4, 3), 2)],
}
NOT_FLAT = {
    by_row: (drawn(4, 3), drawn(4), 2),
    by_counter: (drawn(4, 3), 2),
    neighbours: (drawn(4, 3), 2),
    part: (drawn(4, 3), 2),
    transposed: (drawn(4, 3), 2),
    columns: (drawn(4, 6), 2),
    left_early: (drawn(4, 3), 2),
    once: (drawn(4, 3), drawn(4, 3)),
    after_a_row: (drawn(4, 3), 2),
    before_a_row: (drawn(4, 3), 2),
    that_raises: (drawn(0, 3), 1.0, 2),
    steps: (drawn(4, 3), np.asfortranarray(drawn(4, 3)), 2),
}


def check_same(f, args, monkeypatch):
    whole = gradient(f)
    found = whole(*args)
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "flat-loops")
    without = gradient(f)
    assert flat_loops(without, *args) == 0
    for one, other in zip(found, without(*args), strict=True):
        np.testing.assert_array_equal(one, other)
    monkeypatch.delenv("ZYGOTE_PY_WITHOUT")
    return whole


@pytest.mark.parametrize("f", FLAT, ids=lambda f: f.__name__)
def test_flat(f, monkeypatch):
    for args in FLAT[f]:
        whole = check_same(f, args, monkeypatch)
        assert flat_loops(whole, *args) > 0


@pytest.mark.parametrize("f", NOT_FLAT, ids=lambda f: f.__name__)
def test_not_flat(f, monkeypatch):
    args = NOT_FLAT[f]
    df = check_same(f, args, monkeypatch)
    assert flat_loops(df, *args) == 0
    found = [each for each in df(*args) if each is not None]
    expected = slopes(f, args, chosen_of(args), RNG)
    assert expected.off(np.ones(1), real_parts(found)) < 1e-7


def test_single_precision(monkeypatch):
    args = drawn(5, 3).astype(np.float32), 3
    assert flat_loops(check_same(loops, args, monkeypatch), *args) > 0


def test_the_text_that_is_shown_has_two_loops():
    df = gradient(loops)
    assert "[0, k" not in df.source(drawn(4, 3), 2)


def test_indices_that_are_checked_stay():
    df = gradient(numba.njit(boundscheck=True)(loops))
    assert flat_loops(df, drawn(4, 3), 2) == 0
    df(drawn(4, 3), 2)
