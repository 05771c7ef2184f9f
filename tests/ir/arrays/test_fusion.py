"""Chains of elementwise operations make no temporary arrays, and what is linear keeps nothing: allocations are counted.

The measure is a compiled function that allocates the gradients, and only them.
"""

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.counts import allocations
from tests.modes import one_in
from zygote_py import gradient

pytestmark = pytest.mark.interpreted

X, Y = np.linspace(0.1, 0.9, 90), np.linspace(0.5, 0.2, 90)


def to_a_sum(x, y):
    return np.sum(np.exp(-x * y) * np.sin(x) + y / 2.0 - np.maximum(x, y))


def to_a_mean_by_names(x, y):
    z = np.clip(x * y, -1.0, 1.0)
    w = np.where(x > y, x, y) ** 2
    return np.mean(z * w)


def over_pairs(x, y):
    return np.sum(np.sqrt((x[:, None] - y[None, :]) ** 2 + 1.0))


def a_linear_update(x, y):
    x *= 2.0
    x += y * 3.0
    x[1:] -= y[:-1]
    x[::2] = -x[::2]
    return np.sum(x)


def linear_in_a_loop(x, y):
    for k in range(10):
        for i in range(1, len(x)):
            x[i] += 0.5 * x[i - 1] - y[i] * k
    return np.sum(x)


@numba.njit
def gradients_only(x, y):
    return np.zeros_like(x), np.zeros_like(y)


def arrays_made(function):
    """How many arrays a call allocates, once it is compiled."""
    function(X.copy(), Y.copy())
    given = X.copy(), Y.copy()
    return allocations(lambda: function(*given))


@pytest.mark.optimised
@pytest.mark.parametrize("f", one_in(2, [to_a_sum, to_a_mean_by_names, over_pairs, a_linear_update, linear_in_a_loop]))
def test_nothing_but_the_gradients_is_allocated(f):
    derivative = gradient(f)
    in_lanes = int(f is over_pairs)  # the sums of the iterations that run side by side
    assert arrays_made(derivative) == arrays_made(gradients_only) + in_lanes
    assert "record" not in derivative.source(X, Y)
    check_derivatives(f, X[:5].copy(), Y[:5].copy(), method="complex", reference="numba")


def test_a_chain_that_is_stored_keeps_its_numbers_and_no_arrays_between():
    def squashed(x, y):
        x[:] = np.tanh(x * y) + x * x - 1.0
        return np.sum(x)

    source = gradient(squashed).source(X, Y)
    # The old elements and the hyperbolic tangents, one number each an element.
    assert source.count("np.empty(") == 2
    assert source.count("np.zeros") == 1
    check_derivatives(squashed, X[:5].copy(), Y[:5].copy(), method="complex")


@pytest.mark.optimised
def test_what_a_factor_known_later_multiplies_is_one_array():
    def softmax_loss(x, y):
        return np.log(np.sum(np.exp(x - np.max(x)))) + np.max(x) - np.sum(x * y)

    derivative = gradient(softmax_loss)
    assert arrays_made(derivative) == arrays_made(gradients_only) + 1  # the exponentials
    assert derivative.source(X, Y).count("= np.exp(") == 1  # once, and never again
    check_derivatives(softmax_loss, X[:5].copy(), Y[:5].copy(), method="complex", reference="numba")


def test_an_array_that_the_function_makes_and_its_shadow():
    def energy(x, y):
        out = np.empty_like(x)
        out[:] = np.exp(-x) * y + np.cos(y)
        return np.sum(out * out)

    assert arrays_made(gradient(energy)) <= 2 * arrays_made(gradients_only)
    check_derivatives(energy, X[:5].copy(), Y[:5].copy(), method="complex")
