"""Slices of shadows that a round makes for itself: where it does, where it must not, and that both are right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.checking.left_out import check_not_made
from zygote_py.adjoints.reverse.finished import slices_of_rounds

pytestmark = pytest.mark.interpreted

W = np.array([0.5, -0.6, 0.8])
X = np.array([[0.5, -0.6, 0.8], [0.75, 0.3, -0.6], [0.9, 0.25, -0.5], [0.2, 0.4, 0.9]])


def steps(x, w):
    """Each step stores what it reads itself."""
    n, m = x.shape
    g = np.empty((n, 2, m))
    h = 0.3
    for t in range(n):
        for j in range(m):
            g[t, 0, j] = math.sin(x[t, j] * w[j] + h)
            g[t, 1, j] = w[j] * h
        for j in range(m):
            h += g[t, 0, j] * g[t, 1, m - 1 - j]
    return h


def on_the_last_axis(x, w):
    n, m = x.shape
    g = np.zeros((m, n))
    h = 0.3
    for t in range(1, n):
        for j in range(m):
            g[j, t] = x[t, j] * w[j] * h
        for j in range(m):
            h += math.sin(g[j, t]) * g[m - 1 - j, t]
    return h


def under_a_condition(x, w):
    n, m = x.shape
    g = np.zeros((n, m))
    h = 0.3
    for t in range(n):
        if x[t, 0] > 0.4:
            for j in range(m):
                g[t, j] = x[t, j] * w[j] * h
        for j in range(m):
            h += math.sin(g[t, j]) * g[t, m - 1 - j]
    return h


def with_its_length_later(x, w):
    n, m = x.shape
    g = np.zeros((n, m))
    h = 0.3
    for t in range(n):
        for j in range(m):
            g[t, j] = x[t, j] * w[j]
        h += g[t, 0] * g[t, 1]
    for t in range(len(g)):
        h *= x[t, 1]
    return h


def within_a_loop(x, w):
    """The array is made in each round of a loop around it."""
    n, m = x.shape
    h = 0.3
    for k in range(3):
        g = np.zeros((n, m))
        for t in range(n):
            for j in range(m):
                g[t, j] = x[t, j] * w[k] * h
            for j in range(m):
                h += math.sin(g[t, j]) * g[t, m - 1 - j]
    return h


def of_the_step_before(x, w):
    n, m = x.shape
    g = np.zeros((n + 1, m))
    h = 0.3
    for t in range(n):
        for j in range(m):
            g[t + 1, j] = x[t, j] * w[j] * h + g[t, j]
        for j in range(m):
            h += math.sin(g[t, j]) * g[t + 1, m - 1 - j]
    return h


def of_the_end(x, w):
    """A negative number counts from the end of an axis: another round uses the same slice."""
    n, m = x.shape
    g = np.zeros((n, m))
    h = 0.3
    for t in range(-n, n):
        for j in range(m):
            g[t, j] += x[t, j] * w[j] * h
        for j in range(m):
            h += math.sin(g[t, j]) * g[t, m - 1 - j]
    return h


def of_all_rounds_of_another(x, w):
    """The array is made before both loops: the next round of the outer one finds what this one has stored."""
    n, m = x.shape
    g = np.zeros((n, m))
    h = 0.3
    for k in range(3):
        for t in range(n):
            for j in range(m):
                g[t, j] += x[t, j] * w[k] * h
            for j in range(m):
                h += math.sin(g[t, j]) * g[t, m - 1 - j]
    return h


def of_two_loops(x, w):
    n, m = x.shape
    g = np.zeros((n, m))
    h = 0.3
    for t in range(n):
        for j in range(m):
            g[t, j] = x[t, j] * w[j] * h
        h += math.sin(g[t, 0]) * g[t, m - 1]
    for t in range(n):
        for j in range(m):
            h += g[t, j] * g[t, j]
    return h


def as_a_whole(x, w):
    n, m = x.shape
    g = np.zeros((n, m))
    h = 0.3
    for t in range(n):
        for j in range(m):
            g[t, j] = x[t, j] * w[j] * h
        h += math.sin(g[t, 0]) * g[t, m - 1]
    return h + np.sum(g)


def as_rows(x, w):
    """Statements of whole rows are loops over their elements."""
    n, m = x.shape
    g = np.zeros((n, m))
    h = 0.3
    for t in range(n):
        g[t] = x[t] * w * h
        for j in range(m):
            h += math.sin(g[t, j]) * g[t, m - 1 - j]
    return h


def in_another_order(x, w):
    n, m = x.shape
    order = np.array([2, 0, 2, 1])
    g = np.zeros((n, m))
    h = 0.3
    for t in range(n):
        for j in range(m):
            g[order[t], j] += x[t, j] * w[j] * h
        for j in range(m):
            h += math.sin(g[order[t], j]) * g[order[t], m - 1 - j]
    return h


def at_both_axes(x, w):
    """One access has the number of the round on an axis, another on another."""
    m = x.shape[1]
    g = np.zeros((m, m))
    h = 0.3
    for t in range(m):
        for j in range(m):
            g[t, j] += x[t, j] * w[j] * h
        for j in range(m):
            h += math.sin(g[j, t]) * g[t, m - 1 - j]
    return h


def under_another_name(x, w):
    n, m = x.shape
    g, other = np.zeros((n, m)), np.zeros((n, m))
    h = 0.3
    for t in range(n):
        here = g if t % 2 else other
        for j in range(m):
            here[t, j] = x[t, j] * w[j] * h
        for j in range(m):
            h += math.sin(g[t, j]) * g[t, m - 1 - j] + other[t, j]
    return h


def vectors(x, w):
    """Of a vector, a round would have one number: a variable."""
    n = x.shape[0]
    g = np.zeros(n)
    h = 0.3
    for t in range(n):
        g[t] = x[t, 0] * w[0] * h
        h += math.sin(g[t]) * g[t]
    return h


APART = [steps, on_the_last_axis, under_a_condition, with_its_length_later, within_a_loop, as_rows]
TOGETHER = [
    *(of_the_step_before, of_the_end, of_all_rounds_of_another, of_two_loops, as_a_whole, in_another_order),
    *(at_both_axes, under_another_name, vectors),
]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the arrays whose slices are made in rounds."""
    found: list[str] = []
    narrow = slices_of_rounds._narrow

    def watched(*args: Any) -> None:
        found.append(args[2].hint)
        narrow(*args)

    monkeypatch.setattr(slices_of_rounds, "_narrow", watched)
    return found


@pytest.mark.parametrize("f", APART)
def test_rounds_make_their_slices(f, made):
    check_derivatives(f, X, W, routes=("call", "pullback"))
    assert "dg" in made


@pytest.mark.parametrize("f", TOGETHER)
def test_slices_that_others_use_stay(f, made):
    check_derivatives(f, X, W, routes=("call", "pullback"))
    assert "dg" not in made


def of_the_round_before(x, w):
    """The first index is less than the number of the round."""
    n, m = x.shape
    g = np.zeros((n, m))
    h = 0.3
    for t in range(1, n):
        for j in range(m):
            g[t - 1, j] = x[t, j] * w[j] * h
        for j in range(m):
            h += math.sin(g[t - 1, j]) * g[t - 1, m - 1 - j]
    return h


def through_a_view(x, w):
    n, m = x.shape
    g = np.zeros((n, m))
    turned = g[:, ::-1]
    h = 0.3
    for t in range(n):
        for j in range(m):
            g[t, j] = x[t, j] * w[j] * h
        for j in range(m):
            h += math.sin(g[t, j]) * turned[t, j]
    return h


@pytest.mark.parametrize("f", [of_the_round_before, through_a_view], ids=lambda f: f.__name__)
def test_slices_of_other_indices_stay(f):
    check_not_made("slices-of-rounds", f, X, W)
