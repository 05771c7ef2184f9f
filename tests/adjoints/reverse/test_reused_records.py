"""Gradients in the memory of records: which are, which must not be, and that both give the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.modes import one_in
from zygote_py import gradient

pytestmark = pytest.mark.interpreted

X = np.array([0.5, -1.5, 2.0, 0.75])
Y = np.array([1.5, 0.25, -0.5, 0.3])
M = np.array([[0.5, -1.5, 2.0], [0.25, 1.0, -0.5]])


def log_sum(x):
    s = 0.0
    for i in range(len(x)):
        s += math.exp(x[i])
    return math.log(s)


def of_matrix(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += math.exp(a[i, j])
    return math.log(s)


def two_arrays(x, y):
    s, t = 0.0, 0.0
    for i in range(len(x)):
        s += math.exp(x[i])
    for i in range(len(y)):
        t += math.exp(0.5 * y[i])
    return math.log(s) * math.log(t)


def two_gradients_of_one_record(x, y):
    """One of the gradients may be stored where the record was, if that is read for both before."""
    s = 0.0
    for i in range(min(len(x), len(y))):
        s += math.exp(x[i] * y[i])
    return math.log(s)


def read_again(x):
    """The record of a round is used by the reverse of two loops."""
    r = np.empty(len(x))
    for i in range(len(x)):
        r[i] = math.exp(x[i])
    s = 0.0
    for i in range(len(x)):
        s += r[i] * r[i] * r[i]
    t = 0.0
    for i in range(len(x)):
        t += math.sin(r[i]) * s
    return t


def neighbours(x):
    """The record of the round before matters, too."""
    s, last = 0.0, 1.0
    for i in range(len(x)):
        e = math.exp(x[i])
        s += e * last
        last = e
    return math.log(s)


def with_a_view(x, w):
    """Part of what is overwritten would be read later, by another name."""
    y = np.empty(len(x))
    for i in range(len(x)):
        y[i] = math.exp(x[i])
    part = y[1:]
    z = np.empty(len(x))
    for i in range(len(x)):
        z[i] = y[i] * 2.0
    return np.sum(z * w) + np.sum(part * part * part) * z[0]


def not_all(x):
    s = 0.0
    for i in range(1, len(x)):
        s += math.exp(x[i])
    return math.log(s)


def used_for_the_value(x):
    y = np.exp(x)
    s = np.sum(y)
    return math.log(s) + y[0] * y[1]


def in_each_round(x, n):
    t = 0.0
    for _ in range(n):
        s = 0.0
        for i in range(len(x)):
            s += math.exp(x[i] + t)
        t = math.log(s)
    return t


def of_single_precision(x):
    s = 0.0
    for i in range(len(x)):
        s += math.exp(np.float64(x[i]))
    return math.log(s)


def in_one_case(x, flag):
    s = 0.0
    if flag > 0:
        for i in range(len(x)):
            s += math.exp(x[i])
        s = math.log(s)
    return s + x[0]


# Each with the number of gradients that take a record's place.
FUNCTIONS = {
    log_sum: (1, X),
    of_matrix: (1, M),
    two_arrays: (2, X, Y),
    read_again: (1, X),
    neighbours: (1, X),
    used_for_the_value: (1, X),
    two_gradients_of_one_record: (0, X, Y),
    with_a_view: (0, X, Y),
    not_all: (0, X),
    in_each_round: (0, X, 3),
    in_one_case: (0, X, 1),
}


def arrays_made(text):
    return text.count("np.empty") + text.count("np.zeros")


@pytest.mark.parametrize("f", one_in(2, FUNCTIONS), ids=lambda f: f.__name__)
def test_gradients(f, monkeypatch):
    count, *args = FUNCTIONS[f]
    text = gradient(f).source(*args)
    check_derivatives(f, *args, routes=("call", "source", "pullback"), layouts="CFA")
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "reused-records")
    without = gradient(f)
    assert arrays_made(without.source(*args)) - arrays_made(text) == count


def test_types_that_differ():
    x = X.astype(np.float32)
    df = gradient(of_single_precision)
    assert df(x).dtype == np.float32
    np.testing.assert_allclose(df(x), np.exp(x) / np.sum(np.exp(x)), rtol=1e-6)


def test_each_call_has_its_own_array():
    df = gradient(log_sum)
    first, second = df(X), df(X)
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(first, X)
