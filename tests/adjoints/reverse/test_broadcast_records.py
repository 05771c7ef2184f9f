"""Gradients of broadcast vectors in the memory of these: which are, which must not be, and that both give the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from zygote_py import gradient

pytestmark = pytest.mark.interpreted

W = np.array([0.5, -0.75])
M = np.array([[1.0, 0.5], [-0.25, 2.0], [0.75, 1.5]])
Y = np.array([1.0, -1.0, 0.5])


def logistic(w, m, y):
    return np.mean(np.log1p(np.exp(-y * (m @ w))))


def squares(w, m, y):
    return np.sum((m @ w - y) ** 2)


def of_a_product(w, m, y):
    """Where the gradients are stored, records are read, and not the vectors."""
    return np.sum(np.exp(m @ w * y)) * np.sum(np.sin(m @ (2.0 * w) - y))


def read_afterwards(w, m, y):
    """The reverse of the second loop reads the vector after that of the first, or before: not both are last."""
    z = m @ w
    return np.sum(np.exp(z * y)) * np.sum(np.sin(z - y))


def in_another_order(w, m, y):
    z = m @ w
    return np.sum(np.exp(z * y) * z[::-1])


def an_element(w, m, y):
    z = m @ w
    return np.sum(np.exp(z * y)) * z[0] ** 2


def of_an_argument(w, m, y):
    return np.sum(np.exp(w * y)) + m[0, 0]


def in_a_loop(w, m, y):
    total = 0.0
    for k in range(3):
        total += np.sum(np.exp(m @ w * y * k))
    return total


def chosen_by_the_user(w, m, y):
    """An index of the same form, of vectors whose lengths do not broadcast."""
    z = m @ w
    is_as_long = m.shape[0] == len(y)
    total = 0.0
    for i in range(len(y)):
        total += np.exp(z[np.where(is_as_long, i, 0)] * y[i])
    return total


# How many arrays fewer the gradient by `w` makes.
FUNCTIONS = {
    logistic: 1,
    squares: 1,
    of_a_product: 0,
    read_afterwards: 0,
    in_another_order: 0,
    an_element: 0,
    of_an_argument: 0,
    in_a_loop: 0,
}


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients(f, monkeypatch):
    w = Y * 0.5 if f is of_an_argument else W
    df = gradient(f, wrt="w")
    text = df.source(w, M, Y)
    check_derivatives(f, w, M, Y, routes=("call", "source", "pullback"))
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "reused-records")
    without = gradient(f, wrt="w")
    np.testing.assert_array_equal(df(w, M, Y), without(w, M, Y))
    assert without.source(w, M, Y).count("np.zeros(") - text.count("np.zeros(") == FUNCTIONS[f]


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_lengths_that_do_not_broadcast(length):
    y = Y[:length]
    z = (M @ W)[np.arange(length) if length == 3 else np.zeros(length, int)]
    rows = M if length == 3 else np.broadcast_to(M[0], (length, 2))
    found = gradient(chosen_by_the_user, wrt="w")(W, M, y)
    np.testing.assert_allclose(found, rows.T @ (y * np.exp(z * y)), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(("rows", "length"), [(3, 3), (1, 3), (3, 1), (1, 1), (1, 0), (0, 1), (0, 0)])
@pytest.mark.parametrize("f", [logistic, squares], ids=lambda f: f.__name__)
def test_lengths(f, rows, length):
    m, y = M[:rows], Y[:length]
    with np.errstate(all="ignore"):
        found = gradient(f, wrt="w")(W, m, y)
    z, count = m @ W, max(rows, length) if min(rows, length) else 0
    dz = -y / (np.exp(y * z) + 1.0) / count if f is logistic and count else 2.0 * (z - y)
    expected = np.broadcast_to(m, (count, 2)).T @ np.broadcast_to(dz, count) if count else np.zeros(2)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
