"""Arrays for gradients are made where they are first needed, and outside of loops that they are not made in."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from zygote_py import gradient

pytestmark = pytest.mark.interpreted

X = np.array([0.5, -0.6, 0.8])
W = np.array([[0.5, -0.6, 0.8], [0.75, 0.3, -0.6]])


def recurrence(x, w):
    h = 0.3
    for i in range(len(x)):
        h = math.sin(h * x[i]) + w[0, i] * h
    return h


def on_one_way(x, w):
    h = 0.3
    for i in range(len(x)):
        h = h * h + x[i]
    if h > 100.0:
        for i in range(w.shape[0]):
            h += w[i, 0] * h
    return h


def in_inner_loops(x, w):
    """The gradients are added to in loops within loops, and stay outside of all."""
    h = 0.3
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            h = h * x[j] + math.cos(w[i, j] * h)
    return h


def of_each_round(x, w):
    """A round's own array is made anew in each, before its inner loops."""
    h = 0.3
    for i in range(w.shape[0]):
        r = np.zeros(len(x))
        for j in range(len(x)):
            r[j] = x[j] * w[i, j] + h
        for j in range(len(x)):
            h += r[j] * r[len(x) - 1 - j]
    return h


FUNCTIONS = [recurrence, on_one_way, in_inner_loops, of_each_round]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients(f):
    check_derivatives(f, X, W, routes=("call", "source", "pullback"))


@pytest.mark.parametrize("f", [recurrence, on_one_way, of_each_round])
def test_gradients_are_made_after_the_forward_sweep(f):
    lines = gradient(f, wrt=(0, 1), mode="reverse").source(X, W).splitlines()
    made = next(place for place, line in enumerate(lines) if re.search(r"np.(zeros|empty)_like\(w\)", line))
    loops = [place for place, line in enumerate(lines) if line.startswith("    for ")]
    assert loops[0] < made < loops[-1]
    assert lines[made].startswith("    dw = ")  # in no loop
