"""Guards with and without `fastmath`, and in second derivatives: what was not selected is 0, also at a pole."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from tests.checking.slopes import differences
from zygote_py import gradient, hessian, hvp

pytestmark = pytest.mark.compiled

X = np.array([0.0, 1.0, 2.0, 0.5])


def masked(x):
    return np.sum(np.where(x > 0.7, x * x * x, 0.0) * x)


def masked_root(x):
    return np.sum(np.where(x > 0.7, np.sqrt(x), 0.0))


def masked_power(x):
    """The second derivative has a pole, where its factor, an adjoint, was selected to be 0."""
    return np.sum(np.where(x > 0.7, np.sqrt(x) * x, 0.0))


FAST = {function: numba.njit(fastmath=True)(function) for function in (masked, masked_root, masked_power)}


def test_a_factor_that_is_infinite_where_it_is_not_selected():
    def f(x, w):
        return np.sum(np.where(x > 0.0, np.log(x) * w, 0.0))

    for function in (f, numba.njit(fastmath=True)(f)):
        np.testing.assert_array_equal(gradient(function, wrt=1)(X, X + 1.0), [0.0, 0.0, np.log(2.0), np.log(0.5)])


@pytest.mark.parametrize("function", list(FAST))
def test_derivatives(function):
    check(function)
    check(FAST[function])


def check(function):
    expected = differences(function, X + 0.1).ravel()
    np.testing.assert_allclose(gradient(function)(X + 0.1), expected, rtol=1e-6, atol=1e-8)
    assert gradient(function)(X)[0] == 0.0
    second = hessian(function)(X)
    assert np.isfinite(second).all()
    np.testing.assert_allclose(hvp(function)(X, np.ones(4)), second.sum(1), rtol=1e-12)
    np.testing.assert_allclose(gradient(lambda x: np.sum(gradient(function)(x)))(X), second.sum(1), rtol=1e-12)
