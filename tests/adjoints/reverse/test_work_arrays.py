"""Arrays that each round of a loop fills anew: their shadows need be neither zeroed nor reset; and where they must."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.checking.slopes import differences
from zygote_py import gradient, pullback

pytestmark = pytest.mark.interpreted

X, Y = np.array([0.9, 0.3, -0.4, 1.2, 0.7]), np.array([0.5, 1.1, 0.8])


def work_array(x, y):
    w = np.empty(len(y))
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            w[j] = math.sin(x[i] * y[j])
        for j in range(len(y)):
            s += w[j] ** 2
    return s


def two_work_arrays(x, y):
    u, w = np.empty(len(y)), np.zeros(len(y))
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            u[j] = x[i] - y[j]
            w[j] = u[j] * y[j]
        for j in range(len(y)):
            for k in range(j):
                w[j] += u[k] * x[i]
        for j in range(len(y)):
            s += w[j] ** 2
    return s


def in_rounds_of_rounds(x, y):
    w = np.empty(len(y))
    s = 0.0
    for i in range(len(x)):
        for k in range(2):
            for j in range(len(y)):
                w[j] = x[i] * y[j] ** (k + 1)
            for j in range(len(y)):
                s += math.exp(w[j])
    return s


def under_a_condition_each(x, y):
    w = np.empty(len(y))
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            w[j] = math.sin(x[i] * y[j])
        for j in range(len(y)):
            if w[j] > 0.1:
                s += w[j] ** 2
    return s


def with_two_contributions(x, y):
    w = np.empty(len(y))
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            w[j] = math.sin(x[i] * y[j])
        s += np.max(w)
        for j in range(len(y)):
            s += w[j] * w[len(y) - 1 - j]
    return s


WORK = [work_array, two_work_arrays, in_rounds_of_rounds]


@pytest.mark.parametrize("function", WORK, ids=lambda each: each.__name__)
def test_work_arrays_are_neither_zeroed_nor_reset(function, monkeypatch):
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "fused-loops")
    text = gradient(function, mode="reverse").source(X, Y)
    assert "dw = np.empty(" in text
    assert "dw[j] = 0.0" not in text


def reset_in_some_rounds(x, y):
    w = np.zeros(len(y))
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            s += w[j] * x[i]
        if x[i] > 0.5:
            for j in range(len(y)):
                w[j] = x[i] * y[j]
    return s


def kept_from_round_to_round(x, y):
    w = np.zeros(len(y))
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            w[j] = 0.5 * w[j] + x[i] * y[j]
        for j in range(len(y)):
            s += w[j] ** 2
    return s


def used_after_the_rounds(x, y):
    w = np.zeros(len(y))
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            w[j] = x[i] * y[j]
        for j in range(len(y)):
            s += w[j] ** 3
    return s + w[1] * x[0]


def left_in_the_middle(x, y):
    w = np.zeros(len(y))
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            w[j] = x[i] * y[j]
        s += w[0]
        if s > 0.3:
            continue
        for j in range(len(y)):
            s += w[j] ** 2
    return s


def all_but_one(x, y):
    w = np.zeros(len(y))
    s = 0.0
    for i in range(len(x)):
        for j in range(1, len(y)):
            w[j] = x[i] * y[j]
        for j in range(len(y)):
            s += w[j] ** 2 + w[0] * x[i]
        w[0] = x[i]
    return s


def added_to_after_it_was_read_in_each_round(x, y):
    w = np.empty(len(y))
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            w[j] = x[i] * y[j]
        for j in range(len(y)):
            s += w[j] * w[j - 1]
        for j in range(len(y)):
            w[j] += s
    return s


def shorter_sums(x, y):
    w = np.zeros(len(y))
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            w[j] = y[j] * x[i]
        for k in range(i, len(x)):
            for j in range(k):
                s += x[k] * w[k % len(y)] * x[j]
    return s


ROUNDS = [
    *WORK,
    under_a_condition_each,
    with_two_contributions,
    reset_in_some_rounds,
    kept_from_round_to_round,
    used_after_the_rounds,
    left_in_the_middle,
    all_but_one,
    added_to_after_it_was_read_in_each_round,
    shorter_sums,
]


@pytest.mark.parametrize("function", ROUNDS, ids=lambda each: each.__name__)
def test_work_arrays(function):
    (expected,) = differences(function, X, Y)
    np.testing.assert_allclose(np.concatenate(gradient(function, mode="reverse")(X, Y)), expected, atol=1e-7)
    _, back = pullback(function, X, Y)
    np.testing.assert_allclose(np.concatenate(back(1.0)), expected, atol=1e-7)


@pytest.mark.compiled
def test_compiled():
    (expected,) = differences(two_work_arrays, X, Y)
    np.testing.assert_allclose(np.concatenate(gradient(two_work_arrays)(X, Y)), expected, atol=1e-7)
