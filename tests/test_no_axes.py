"""Arrays without axes: Numba makes numbers of them as soon as anything is computed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.traps import trap
from zygote_py import gradient, pullback

FUNCTIONS = {
    "elementwise": lambda x, y: np.sin(x) * np.exp(-y) + x / y - x**2,
    "with numbers": lambda x, y: 2.0 * x + (1 - y) ** 3 + np.arctan2(x, 0.5),
    "choices": lambda x, y: np.maximum(x, y) * np.minimum(x, 3.0) + (x > 1.0) * y,
    "reductions": lambda x, y: np.sum(x) * np.prod(y) + x.max() * np.mean(y) + np.var(y),
    "elements": lambda x, y: x[()] * y.item() + x.reshape(1)[0] ** 2,
    "views": lambda x, y: np.ravel(x)[0] * y.reshape(1)[0] + np.sum(np.expand_dims(x, 0) * y),
    "broadcast": lambda x, y: np.sum(x * np.arange(3.0) + y),
    "copies": lambda x, y: np.copy(x) * y + (np.ones_like(x) + x) * np.sum(np.zeros(2) + y),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_of_arrays(name: str):
    trap(FUNCTIONS[name], np.array(1.7), np.array(0.6))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_precision(name: str):
    x, y = np.array(1.7, np.float32), np.array(0.6, np.float32)
    found = gradient(FUNCTIONS[name])(x, y)
    expected = gradient(FUNCTIONS[name])(x.astype(float), y.astype(float))
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == np.float32
        assert one.shape == ()
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_complex_numbers():
    z = np.array(1.5 + 0.5j)
    dz = gradient(lambda z: np.abs(z * z) + (np.exp(z) * z).imag + np.var(z))(z)
    assert dz.dtype == complex
    # |z|^2 grows along 2 z; the imaginary part of a function with derivative w along conj(-i w)
    w = np.exp(z) * (z + 1)
    np.testing.assert_allclose(dz, 2 * z + np.conj(-1j * w))


def test_stores():
    def f(x, y):
        y[()] = x * x
        x[...] = np.sin(y) * x
        y += x
        return x[()] * y

    trap(f, np.array(1.7), np.array(0.6))


def test_a_seed():
    def kernel(x, out):
        out[...] = x * x + 2.0 * out

    x, out = np.array(3.0), np.array(5.0)
    value, back = pullback(kernel, x, out)
    assert value is None
    assert out == 19.0
    dx, dout = back(out=np.array(10.0))
    assert (dx, dout) == (60.0, 20.0)
    assert (dx.shape, dout.shape) == ((), ())
