"""Transformations that ZYGOTE_PY_WITHOUT leaves out: the emitted function is another one, and its gradient the same."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from tests.adjoints.reverse.test_branches_of_records import terms
from tests.adjoints.reverse.test_shared_fields import FUNCTIONS, called_often
from tests.adjoints.reverse.test_undone_writes import two_halves
from tests.adjoints.routines.test_joined_records import recursive
from zygote_py import gradient
from zygote_py.ir import OPTIONAL

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(11)


def largest(x):
    m = x[0]
    for i in range(1, len(x)):
        m = max(m, x[i])
    return m * x[2]


def network(w, inputs):
    total = 0.0
    state = np.zeros(len(w))
    for t in range(len(inputs)):
        state = np.tanh(np.dot(w, state) + inputs[t])
        total += state[0] * state[1]
    return total


def layers(w, v, x):
    return np.sum(np.dot(v, np.tanh(np.dot(w, x))) ** 2)


def attraction(x):
    t = 0.0
    for i in range(len(x)):
        for j in range(i):
            r = math.sqrt((x[i] - x[j]) ** 2 + 0.1)
            t = math.sin(t) + 1.0 / (r * r * r)
    return t


def sums(x, y):
    t = 0.0
    for i in range(len(x)):
        t += x[i] * y[0]
    return t * t


def smoothed(u, steps):
    for _ in range(steps):
        new = u.copy()
        for i in range(1, len(u)):
            new[i, 0] = u[i, 0] * u[i, 1] + 0.1 * u[i - 1, 0]
        u = new
    return np.sum(u)


def smoothed_in_place(x, v, steps):
    x = x.copy()
    for _ in range(steps):
        x += 0.5 * v
    return np.sum(x * x)


def log_of_sum(x):
    s = 0.0
    for i in range(len(x)):
        s += math.exp(x[i])
    return math.log(s)


def swinging(x, v, steps):
    x, v = x.copy(), v.copy()
    for _ in range(steps):
        for i in range(len(x)):
            x[i] += 0.1 * v[i]
        for i in range(len(x)):
            for j in range(i):
                v[i] -= 0.1 * math.sin(x[i] - x[j])
    return np.sum(x * x)


def stored(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = math.exp(x[i] * x[i])
    return np.sum(y * y) * y[0]


def filled(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = math.exp(x[i] * x[i])
    return np.sum(y * y)


def rows(x, c):
    t = 0.0
    for i in range(len(x)):
        s = 0.0
        for j in range(len(c)):
            s += math.exp(-c[j] * x[i] * x[i])
        t += math.log(s)
    return t


def squares(x):
    t = 0.0
    for i in numba.prange(len(x)):
        t += x[i] * x[i]
    return t


def by_steps(x):
    scratch, total = np.zeros(x.shape), 0.3
    for t in range(x.shape[0]):
        for j in range(x.shape[1]):
            scratch[t, j] = x[t, j] * total
        for j in range(x.shape[1]):
            total += math.sin(scratch[t, j]) * scratch[t, x.shape[1] - 1 - j]
    return total


def iterated(a, x, steps):
    found = np.zeros((len(x), steps))
    found[:, 0] = x
    for t in range(steps - 1):
        for i in range(len(x)):
            for j in range(len(x)):
                found[i, t + 1] += a[i, j] * found[j, t]
    return np.sum(found * found)


PARALLEL = numba.njit(parallel=True)(squares)
W, X, INPUTS = RNG.normal(size=(3, 3)), RNG.normal(size=5), RNG.normal(size=(4, 3))
SQUARES = X * X
PROGRAMS = {
    "accumulated-products": (network, W, INPUTS),
    "direct-divisors": (attraction, X),
    "elements-in-variables": (sums, X, X[1:].copy()),
    "extremes": (largest, X),
    "first-contributions": (layers, W, W, INPUTS.T.copy()),
    "flat-loops": (smoothed_in_place, W, INPUTS[:3].copy(), 2),
    "fused-loops": (filled, X),
    "gathered-products": (network, W, INPUTS),
    "immediate-reversal": (filled, X),
    "invariant-elements": (iterated, W, X[:3].copy(), 4),
    "joined-records": (recursive, X, 3, 0.6),
    "lanes": (rows, X, SQUARES),
    "late-shadows": (smoothed, W, 3),
    "returned-copies": (swinging, X, X, 3),
    "recomputed-branches": (terms, 0.7, 3),
    "reused-records": (log_of_sum, X),
    "rewinding": (swinging, X, X, 3),
    "shared-fields": (called_often(FUNCTIONS["two"]), 0.7, 1.3, 1),
    "slices-of-rounds": (by_steps, W),
    "sums-in-any-order": (sums, X, X[1:].copy()),
    "threads": (PARALLEL, X),
    "triangular-records": (attraction, X),
    "undone-once": (two_halves, X),
    "values-from-arrays": (stored, X),
}
OF_REVERSE_MODE = {"recomputed-branches", "shared-fields"}  # of a function of few numbers, for which that is not chosen
# Tested where they are made, in tests/numba_adapter: test_own_memory.py, test_passes_of_emitted.py,
# test_vector_functions.py.
IN_MACHINE_CODE = {"memory-apart", "predicted-guards", "vector-functions"}


def emitted(df, *args):
    """Return the emitted text, and the one that Numba gets if that is another."""
    made = df._inspect(args).emitted
    return made.source, made.compiled.source if made.compiled else ""


def flat(result):
    return [each for each in (result if isinstance(result, tuple) else (result,)) if each is not None]


def test_each_has_a_program():
    assert set(PROGRAMS) | IN_MACHINE_CODE == set(OPTIONAL)


@pytest.mark.parametrize("step", PROGRAMS)
def test_the_function_is_another_one_and_its_gradient_the_same(step, monkeypatch):
    f, *args = PROGRAMS[step]
    mode = "reverse" if step in OF_REVERSE_MODE else "auto"
    whole = gradient(f, mode=mode)
    text = emitted(whole, *args)
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", step)
    without = gradient(f, mode=mode)
    assert emitted(without, *args) != text
    monkeypatch.delenv("ZYGOTE_PY_WITHOUT")
    assert emitted(gradient(f, mode=mode), *args) == text
    for found, expected in zip(flat(without(*args)), flat(whole(*args)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_unknown_names(monkeypatch):
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "lanes,speed")
    with pytest.raises(ValueError, match="ZYGOTE_PY_WITHOUT: 'speed' is unknown; known: accumulated-products, "):
        gradient(rows)(X, SQUARES)
