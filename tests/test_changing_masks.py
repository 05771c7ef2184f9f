"""Masks and arrays of indices that change between two uses, in one block and elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.plain import plain
from tests.reference import distance, precise
from tests.traps import trap
from zygote_py import value_and_gradient

A = np.array([0.5, -1.5, 2.0, 3.0])
MASK = np.array([True, False, True, False])
PLACES = np.array([0, 2, 3, 1])


def check(function: Any, *args: Any) -> None:
    """The emitted source in plain Python against the function itself and against differences."""

    def copies() -> tuple[Any, ...]:
        return tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)

    given, left = copies(), copies()
    value, gradients = plain(value_and_gradient(function).source(*args))(*given)
    expected = precise(function, *copies())
    assert expected.doubt is None
    assert value == pytest.approx(function(*left), rel=1e-12)
    assert distance(gradients, expected.gradients) < 1e-12
    for ours, theirs in zip(given, left, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_element_of_the_mask_is_written_between():
    def f(a, m):
        c = a[m]
        m[1] = True
        return np.sum(a[m]) + np.sum(c)

    trap(f, A, MASK, expected=([2.0, 1.0, 2.0, 0.0],))


def test_the_mask_is_written_by_what_it_selects():
    def f(a, m, k):
        m[m] = k
        return np.sum(a[m] * a[m])

    check(f, A, MASK, np.array([False, True]))
