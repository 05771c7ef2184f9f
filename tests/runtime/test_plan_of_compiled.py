"""A plan says how loops run in what Numba compiles."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from zygote_py import gradient

pytestmark = pytest.mark.compiled


def paths(x, w, s):
    total = 0.0
    for i in range(x.shape[0]):
        value = s
        for t in range(x.shape[1]):
            value *= math.exp(0.2 * x[i, t] * w[t] - 0.02 * w[t] * w[t])
        total += max(value - 0.75, 0.0)
    return total


def paths_in_threads(x, w, s):
    total = 0.0
    for i in numba.prange(x.shape[0]):
        value = s
        for t in range(x.shape[1]):
            value *= math.exp(0.2 * x[i, t] * w[t] - 0.02 * w[t] * w[t])
        total += max(value - 0.75, 0.0)
    return total


@pytest.mark.parametrize(
    ("function", "options", "together"),
    [
        (paths, {}, "several rounds at a time"),
        (paths, {"boundscheck": True}, ""),
        (paths_in_threads, {"parallel": True}, "in threads"),
    ],
)
def test_rounds_side_by_side(function, options, together):
    first = function.__code__.co_firstlineno
    plan = gradient(numba.njit(**options)(function)).plan(np.ones((40, 5)), np.ones(5), 0.7)
    assert [(loop.line - first, loop.together) for loop in plan.loops] == [(2, together), (4, "")]
    assert ("no record, " + together in str(plan)) == bool(together)
