"""The example of the paper: layers are objects, a network is an object that holds layers, the gradient is a network.

"Don't Unroll Adjoint" takes the gradient of `Chain(Dense(...), Dense(...))` with respect to the network. Here all types
are known before anything runs: the gradient is compiled for each shape of network, and a training loop with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import pytest

from tests.checking.derivatives import ALL_ROUTES, check_derivatives
from zygote_py import gradient, value_and_gradient

pytestmark = pytest.mark.interpreted


@dataclass(frozen=True)
class Dense:
    W: np.ndarray
    b: np.ndarray

    def __call__(self, x):
        return np.tanh(self.W @ x + self.b)


@dataclass(frozen=True)
class Scale:
    factor: float

    def __call__(self, x):
        return self.factor * x


@dataclass(frozen=True)
class Pair:
    first: Dense
    second: Dense

    def __call__(self, x):
        return self.second(self.first(x))


@dataclass(frozen=True)
class Chain:
    layers: tuple

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


RNG = np.random.default_rng(5)


def dense(outputs: int, inputs: int) -> Dense:
    return Dense(RNG.normal(size=(outputs, inputs)), RNG.normal(size=outputs))


X, Y = RNG.normal(size=3), RNG.normal(size=2)


def loss(model, x, y):
    return np.sum((model(x) - y) ** 2)


def test_two_layers_by_name():
    found = check_derivatives(loss, Pair(dense(4, 3), dense(2, 4)), X, Y, routes=ALL_ROUTES)
    assert type(found[0]) is Pair
    assert type(found[0].second) is Dense


def test_a_chain():
    check_derivatives(loss, Chain((dense(4, 3), dense(4, 4), dense(2, 4))), X, Y, routes=ALL_ROUTES)


def test_a_chain_of_layers_of_several_classes():
    model = Chain((dense(4, 3), Scale(0.5), Chain((dense(3, 4), Scale(2.0))), dense(2, 3)))
    found = check_derivatives(loss, model, X, Y, routes=ALL_ROUTES)
    assert [type(layer) for layer in found[0].layers] == [Dense, Scale, Chain, Dense]


@pytest.mark.compiled
def test_the_types_of_the_gradient_are_static():
    model = Pair(dense(4, 3), dense(2, 4))
    df = gradient(loss, wrt="model")

    @numba.njit
    def first_of(model, x, y):
        return df(model, x, y).first

    found = first_of(model, X, Y)
    assert first_of.nopython_signatures[0].return_type == numba.typeof(model.first)
    np.testing.assert_array_equal(found.W, df(model, X, Y).first.W)


def test_training_in_compiled_code():
    df = value_and_gradient(loss, wrt="model")

    @numba.njit
    def down(layer, d, rate):
        return Dense(layer.W - rate * d.W, layer.b - rate * d.b)

    @numba.njit
    def train(model, x, y, rate, steps):
        first = 0.0
        value = 0.0
        for step in range(steps):
            value, d = df(model, x, y)
            if step == 0:
                first = value
            model = Pair(down(model.first, d.first, rate), down(model.second, d.second, rate))
        return model, first, value

    goal = np.array([0.3, -0.4])
    start = Pair(dense(4, 3), dense(2, 4))
    model, first, value = train(start, X, goal, 0.05, 300)
    assert first == df(start, X, goal)[0]
    assert value < 1e-4 < first
    np.testing.assert_allclose(model(X), goal, atol=2e-2)
