"""Hessians with a known band: columns that have no row in common are computed together."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy.optimize import rosen_hess

from tests.adjoints.analysis.test_bandwidth import BANDED, DENSE, latent_states, neighbours, squares
from tests.modes import one_in
from zygote_py import gradient, hessian, hessian_diagonal, jacobian, value_gradient_hessian

pytestmark = pytest.mark.interpreted


def second_differences(f, x):
    """The matrix of second differences of a function of a vector, exact to 1e-6."""
    h, n = 1e-4, len(x)
    steps = h * np.eye(n)
    found = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            a, b = steps[i], steps[j]
            found[i, j] = f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b)
    return found / (4.0 * h * h)


def point(n):
    return np.sin(np.arange(n) * 1.7 + 0.4) + 0.1 * np.arange(n), np.cos(np.arange(n)) * 2.5 + 2.6


@pytest.mark.parametrize("function", one_in(2, BANDED), ids=lambda each: each.__name__)
def test_hessian(function):
    x, y = point(7)
    x, y = np.append(x, -0.3), np.append(y, 1.2)
    expected = second_differences(lambda x: function(x, y, 0.8), x)
    found = hessian(function, wrt=0)(x, y, 0.8)
    np.testing.assert_allclose(found, expected, atol=2e-6 * (1.0 + np.abs(expected).max()))
    assert np.array_equal(found, found.T)
    assert np.array_equal(hessian_diagonal(function, wrt=0)(x, y, 0.8), np.diag(found))
    value, slope, whole = value_gradient_hessian(function, wrt=0)(x, y, 0.8)
    assert np.array_equal(whole, found)
    assert value == pytest.approx(function(x, y, 0.8), rel=1e-14)
    np.testing.assert_allclose(slope, gradient(function, wrt=0)(x, y, 0.8), rtol=1e-14)


@pytest.mark.parametrize("function", one_in(2, DENSE), ids=lambda each: each.__name__)
def test_hessian_without_a_band(function):
    x, y = point(7)
    expected = second_differences(lambda x: function(x, y, 2.0), x)
    found = hessian(function, wrt=0)(x, y, 2.0)
    np.testing.assert_allclose(found, expected, atol=2e-6 * (1.0 + np.abs(expected).max()))


def rosenbrock(x):
    return 2.0 * neighbours(x, x, 0.0) - x[0] ** 2


@pytest.mark.compiled
def test_compiled():
    x = point(23)[0]
    found = hessian(rosenbrock)(x)
    np.testing.assert_allclose(found, rosen_hess(x), rtol=1e-13)
    every_second = np.repeat(x, 2)[::2]
    assert np.array_equal(hessian(rosenbrock)(every_second), found)

    @numba.njit
    def trace(x):
        return np.sum(hessian_diagonal(rosenbrock)(x))

    assert trace(x) == pytest.approx(np.trace(found))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_short_vectors(n):
    x = point(n)[0]
    np.testing.assert_allclose(hessian(rosenbrock)(x), rosen_hess(x), rtol=1e-13)
    assert np.array_equal(hessian(rosenbrock)(x[:1]), [[0.0]])


def far(x):
    s = 0.0
    for i in range(len(x) - 5):
        s += x[i] ** 2 * x[i + 5]
    return s


@pytest.mark.parametrize("n", [0, 1, 5, 6, 11, 12, 40])
def test_more_groups_than_directions(n):
    x = np.linspace(-1.0, 2.0, n)
    expected = np.zeros((n, n))
    for i in range(n - 5):
        expected[i, i] = 2.0 * x[i + 5]
        expected[i, i + 5] = expected[i + 5, i] = 2.0 * x[i]
    np.testing.assert_allclose(hessian(far)(x), expected, rtol=1e-14)
    np.testing.assert_allclose(hessian_diagonal(far)(x), np.diag(expected), rtol=1e-14)


def test_precision_and_integers():
    x = np.array([1, 2, 3])
    found = hessian(rosenbrock)(x.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, rosen_hess(x.astype(float)), rtol=1e-5)


def test_a_derivative_of_the_hessian():
    x, y = point(6)
    found = jacobian(lambda x: hessian(squares, wrt=0)(x, y, 1.0) * x)(x)
    expected = np.zeros((6, 6, 6))
    for i in range(6):
        expected[i, i, i] = 2.0 * y[i]
    np.testing.assert_allclose(found, expected, atol=1e-14)
    slope = gradient(lambda k: np.sum(hessian(latent_states, wrt=0)(x, y, k)))(0.8)
    # x[t] ** 2 has the factor k ** 2, but for the first, whose is added to it, and the last; x[t] * x[t - 1] has k
    assert slope == pytest.approx(5 * -2.0 * 0.8 + 2.0 * 0.8 + 2 * 5.0)


def test_work_does_not_grow_with_the_vector():
    text = hessian(rosenbrock).source(point(4)[0])
    pushed = text.partition("def rosenbrock_hessian")[2]
    assert pushed.count("rosenbrock_gradient_pushforward(") == 1
    before, _, _ = pushed.partition("rosenbrock_gradient_pushforward(")
    assert before.rstrip().splitlines()[-1].startswith("    t")  # in no loop
