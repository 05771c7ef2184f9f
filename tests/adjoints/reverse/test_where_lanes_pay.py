"""Whether the iterations of a loop run side by side: where that costs less than what the loop takes one by one."""

from __future__ import annotations

import numba
import pytest

import zygote_py as zg
from tests.adjoints.reverse.test_iterations_in_lanes import W, X, doubled, watched


def variances(x, w):
    """A recursion for each row."""
    total = 0.0
    for i in range(x.shape[0]):
        h = 0.5
        for j in range(x.shape[1]):
            h = w[0] * w[0] + w[1] * x[i, j] * x[i, j] + 0.1 * h
            total += x[i, j] * x[i, j] / h
    return total


def elementwise(x, w):
    """A loop that the processor's vectors suit as it is."""
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j] * w[j]
    return total


def distances(x, w):
    """Sums of inner loops, which become vectors if they may have any order."""
    total = 0.0
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(len(w)):
            d = x[i, 0] - w[j]
            s += d * d * d / (1.0 + d * d)
        total += s * s
    return total


def few_distances(x, w):
    total = 0.0
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(3):
            d = x[i, 0] - w[j]
            s += d * d * d / (1.0 + d * d)
        total += s * s
    return total


quickly = numba.njit(fastmath=True)
COSTS = [
    (variances, True),
    (elementwise, False),
    (doubled, False),
    (distances, True),
    (quickly(distances), False),
    (quickly(few_distances), True),
]


@pytest.mark.interpreted
@pytest.mark.parametrize(("f", "pays"), COSTS)
def test_where_it_pays(f, pays, monkeypatch):
    found = watched(monkeypatch)
    zg.gradient(f, mode="reverse").source(X, W)
    assert found == [pays]
