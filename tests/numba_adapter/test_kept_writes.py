"""Writes to arrays that Numba removes, beside comprehensions and inner functions and with `parallel=True`."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from zygote_py import gradient


def rows_of_an_array(x, y):
    s = [v * 2.0 for v in x]
    m = np.zeros((2, 2))
    for row in m:
        row[:] = s[1]
    return np.sum(m) * y[0]  # 8 * x[1] * y[0]


def arrays_in_turn(x, y):
    s = [v * 2.0 for v in x]
    for z in (x, y):
        z[0] = z[0] * s[1]
    return x[0] * y[0]  # 4 * x[0] * y[0] * x[1]**2


def rows_in_place(x, y):
    twice = lambda v: v * 2.0
    m = np.ones((2, 2))
    for row in m:
        row *= twice(x[1])
    return np.sum(m) * y[0]  # 8 * x[1] * y[0]


@pytest.mark.parametrize(
    ("f", "of_x", "of_y"),
    [
        (rows_of_an_array, [0.0, 16.0], [8.0, 0.0]),
        (arrays_in_turn, [8.0, 48.0], [12.0, 0.0]),
        (rows_in_place, [0.0, 16.0], [8.0, 0.0]),
    ],
)
def test_functions_that_numba_reads_without_their_writes(f, of_x, of_y):
    dx, dy = gradient(f)(np.array([3.0, 1.0]), np.array([2.0, 0.5]))
    assert dx.tolist() == of_x
    assert dy.tolist() == of_y


def test_what_numba_makes_of_other_functions_stays():
    """If this fails, Numba has mended it, or what is done about it reaches too far."""
    gradient(rows_of_an_array)(np.array([3.0, 1.0]), np.array([2.0, 0.5]))
    assert njit(rows_of_an_array)(np.array([3.0, 1.0]), np.array([2.0, 0.5])) == 0.0


def chosen(x, a, b):
    t = (a, b)
    total = 0.0
    for k in range(2):
        total += t[k][k] * x * t[k][0]
    return total  # x * (a[0]**2 + b[0] * b[1])


@pytest.mark.parametrize("parallel", [False, True])
def test_adjoints_of_arrays_that_are_chosen(parallel):
    f = njit(parallel=True)(chosen) if parallel else chosen
    dx, da, db = gradient(f)(2.0, np.array([3.0, 1.0]), np.array([2.0, 0.5]))
    assert dx == 10.0
    assert da.tolist() == [12.0, 0.0]
    assert db.tolist() == [1.0, 4.0]
