"""Masks and arrays of indices that change between two uses, in one block and elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.checking.derivatives import check_derivatives

A = np.array([0.5, -1.5, 2.0, 3.0])
MASK = np.array([True, False, True, False])
PLACES = np.array([0, 2, 3, 1])
PRECISELY_IN_PYTHON: dict[str, Any] = {"method": "precise", "tolerance": 1e-12, "routes": ("source",)}


def test_an_element_of_the_mask_is_written_between():
    def f(a, m):
        c = a[m]
        m[1] = True
        return np.sum(a[m]) + np.sum(c)

    check_derivatives(f, A, MASK, expected=([2.0, 1.0, 2.0, 0.0],), reference="numba")


def test_the_mask_is_written_by_what_it_selects():
    def f(a, m, k):
        m[m] = k
        return np.sum(a[m] * a[m])

    check_derivatives(f, A, MASK, np.array([False, True]), **PRECISELY_IN_PYTHON)
