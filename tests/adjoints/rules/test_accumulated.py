"""Products that are added to an array without an array of their own: which are, and which are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.checking.left_out import check_not_made, is_made
from tests.modes import one_in

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(5)
W, V = RNG.normal(size=(2, 3, 3))
X, H = RNG.normal(size=(4, 3)), RNG.normal(size=3)


def added(w, x):
    total = 0.0
    for t in range(len(x)):
        total += np.sum(np.sin(w @ x[t]))
    return total


def of_the_vector(h):
    """The matrix has no gradient."""
    total = 0.0
    for k in range(3):
        total += np.sum(np.sin(W @ (h * k)))
    return total


def in_loops(w, x):
    """The product is written as sums of numbers."""
    total = 0.0
    for t in range(x.shape[0]):
        for i in range(w.shape[0]):
            y = 0.0
            for j in range(w.shape[1]):
                y += w[i, j] * x[t, j]
            total += math.sin(y)
    return total


def by_elements(w, v):
    return np.sum(np.sin(w * v)) + np.sum(w * w)


def of_column_and_row(x, y):
    """The contributions are products of a matrix and a vector, which are vectors."""
    return np.sum(np.sin(np.outer(x, y))) + np.sum(np.outer(x, x) ** 2)


def of_a_sum(u, v):
    """One product is added to two arrays."""
    return np.sum(np.sin((u + v) @ W))


def of_an_inverse(a):
    return np.sum(np.linalg.inv(a) ** 2) + np.sum(np.linalg.solve(a, W))


def of_an_array_that_is_used_once(a):
    """The product is the shadow."""
    b = np.exp(a)
    return np.sum(b @ W)


def of_chosen_rows(a):
    """The rows of the product are added in several places."""
    return np.sum(np.sin(a[np.array([0, 2, 1, 1])] @ W))


def of_a_selection(a, v):
    """The product is the shadow of a new array."""
    return np.sum(np.sin(np.where(a > 0.0, a, 0.1 * a) @ v[0]))


def of_rows_that_change(u):
    """Each product is taken of a row, and the matrix has no gradient."""
    u = u.copy()
    for _ in range(2):
        u[1] = np.sin(u[0] @ W)
        u[0] = u[1] * 0.5
    return np.sum(u)


APART = {
    of_the_vector: (H,),
    in_loops: (W, X),
    by_elements: (W, V),
    of_column_and_row: (H, H[::-1].copy()),
    of_a_sum: (V, W),
    of_an_inverse: (V,),
    of_an_array_that_is_used_once: (V,),
    of_chosen_rows: (V,),
    of_a_selection: (V, W),
    of_rows_that_change: (V,),
}


def test_added():
    assert is_made("accumulated-products", added, W, X)


@pytest.mark.parametrize("f", one_in(3, APART), ids=lambda f: f.__name__)
def test_not_added(f):
    check_not_made("accumulated-products", f, *APART[f])
