"""Stencils in functions that are differentiated: relative indices, neighbourhoods, borders, and what they run over."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit, stencil

import zygote_py as zg
from tests.checking.derivatives import check_derivatives
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient

RATE = 1.5
LINE = np.linspace(0.5, 1.5, 6)
PLANE = np.linspace(0.5, 1.5, 20).reshape(4, 5)
SPACE = np.linspace(-1.0, 1.0, 48).reshape(3, 4, 4)


@stencil
def bent(a):
    return a[-1] * a[1] + RATE * a[0] * a[0]


@stencil(cval=2.0)
def mixed(a, b, c):
    d = a[-1, 0] * b[0, 1]
    if d > 0.5:
        return d + c * a[1, -1]
    return a[0, 0]


@stencil(neighborhood=((-2, 1),), standard_indexing=("weights",))
def weighed(a, weights):
    total = 0.0
    for i in range(-2, 2):
        total += a[i] * weights[i + 2]
    return total


@stencil
def ahead(a):
    return a[2] * a[0]


@stencil(neighborhood=((-1, 1), (0, 1)))
def window(a):
    return np.sum(a[-1:2, 0:2] ** 2)


@stencil("constant", cval=-1)
def laplacian(a):
    return a[0, 0, -1] + a[0, 0, 1] + a[0, -1, 0] * a[0, 1, 0] + a[-1, 0, 0] * a[1, 0, 0]


@njit
def helper(x):
    return math.sin(x) * x


@stencil
def calling(a, b):
    return helper(a[1]) - helper(b[-1])


def test_relative_indices():
    check_derivatives(lambda a: np.sum(bent(a) * a), LINE, reference="numba")
    check_derivatives(lambda a: np.sum(ahead(a) * a), LINE, reference="numba", routes=("source",))


@pytest.mark.parametrize("changed", one_in(2, [LINE[::-1], LINE[:2], LINE[:0], LINE[::2]]))
def test_layouts_and_short_arrays(changed):
    check_derivatives(lambda a: np.sum(bent(a) * a) + np.sum(ahead(a)), changed, reference="numba", routes=("source",))


def test_several_arrays_a_number_and_a_border():
    check_derivatives(lambda a, b, c: np.sum(mixed(a, b, c) * a), PLANE, PLANE + 0.3, 0.7, reference="numba")


@pytest.mark.long
def test_an_array_that_is_larger():
    check_derivatives(
        lambda a, b, c: np.sum(mixed(a, b, c) * a), PLANE, np.ones((5, 6)), 2, reference="numba", routes=("source",)
    )


def test_a_neighbourhood_and_standard_indices():
    check_derivatives(lambda a, w: np.sum(weighed(a, w) * a), LINE, np.array([0.5, -1.0, 2.0, 0.3]), reference="numba")


def test_slices():
    check_derivatives(lambda a: np.sum(window(a) * a), PLANE, reference="numba", routes=("source",))


@pytest.mark.long
def test_three_axes():
    check_derivatives(lambda a: np.sum(laplacian(a) * a), SPACE, reference="numba")


def test_the_array_for_the_result():
    def into(a):
        out = np.full_like(a, 3.0)
        again = bent(a, out=out)
        return np.sum(out * a) + np.sum(again)

    def filled(a, b):
        out = np.full((4, 5), 3.0)
        mixed(a, b, 1.0, out=out)
        return np.sum(out * a)

    check_derivatives(into, LINE, reference="numba")
    check_derivatives(filled, PLANE, PLANE + 0.3, reference="numba", routes=("source",))


def test_steps_in_time():
    def run(a, k):
        for _ in range(3):
            a = a + k * bent(a)
        return np.sum(a * a)

    check_derivatives(run, LINE, 0.1, reference="numba")


def test_integers_and_single_precision():
    check_derivatives(lambda a, b: np.sum(calling(b, a) * a), LINE, np.arange(6), reference="numba", routes=("source",))
    narrow = LINE.astype(np.float32)
    found = gradient(lambda a: np.sum(ahead(a)))(narrow)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.r_[LINE[2:], 0, 0] + np.r_[0, 0, LINE[:-2]], rtol=1e-6)


def test_differentiated_itself_and_with_a_rule():
    value, back = zg.pullback(ahead, LINE)
    np.testing.assert_array_equal(value, ahead(LINE))
    np.testing.assert_allclose(back(np.ones(6))[0], np.r_[LINE[2:], 0, 0] + np.r_[0, 0, LINE[:-2]])
    d = gradient(lambda a: np.sum(bent(a)), wrt="RATE")
    assert d(LINE) == pytest.approx(np.sum(LINE[1:-1] ** 2))

    @stencil
    def known(a):
        return a[0] * a[1]

    @zg.adjoint(known)
    def rule(a):
        return known(a), lambda dy: (10.0 * dy,)

    np.testing.assert_array_equal(gradient(lambda a: np.sum(known(a)))(LINE), np.full(6, 10.0))


def test_what_is_refused():
    with pytest.raises(DifferentiationError, match="1 axes in its neighborhood"):
        gradient(lambda a, w: np.sum(weighed(a, w)))(PLANE, LINE)
    with pytest.raises(DifferentiationError, match="not constant"):
        gradient(lambda a, n: np.sum(stencil_of(a, n)))(LINE, 1)
    with pytest.raises(ValueError, match="dimension smaller"):
        gradient(lambda a, b: np.sum(mixed(a, b, 1.0)))(PLANE, PLANE[:3])


@stencil
def stencil_of(a, n):
    return a[n]
