"""Arrays without axes: Numba makes numbers of them as soon as anything is computed."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.numpy_functions.primals import agree
from zygote_py import gradient, pullback

pytestmark = pytest.mark.interpreted

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
    check_derivatives(FUNCTIONS[name], np.array(1.7), np.array(0.6))


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

    check_derivatives(f, np.array(1.7), np.array(0.6))


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


# What gives an array without axes, and its derivative at 1.7.
RESULTS = {
    "copy": (lambda x: x.copy(), 1.0),
    "itself": (lambda x: x, 1.0),
    "where": (lambda x: np.where(x > 2.0, x, 3.0 * x), 3.0),
    "clip": (lambda x: np.clip(x, 0.0, 3.0), 1.0),
    "clipped": (lambda x: x.clip(0.0, 1.0), 0.0),
    "real": (lambda x: np.real(x), 1.0),
    "round": (lambda x: np.round(x, 1), 0.0),
    "reshape": (lambda x: np.reshape(x, ()), 1.0),
    "reshape a row": (lambda x: x.reshape(1).reshape(()), 1.0),
    "broadcast": (lambda x: np.broadcast_to(x, ()), 1.0),
    "array": (lambda x: np.array(x[()] * x[()]), 3.4),
    "full": (lambda x: np.full((), x[()]), 1.0),
    "nan_to_num": (lambda x: np.nan_to_num(x), 1.0),
    "roll": (lambda x: np.roll(x, 1), 1.0),
    "interp": (lambda x: np.interp(x, np.arange(4.0), np.arange(4.0) ** 2), 3.0),
    "variance": (lambda x: np.cov(np.array([x[()], 0.0])), 1.7),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str):
    function, derivative = RESULTS[name]
    agree(function, np.array(1.7))
    value, back = pullback(function, np.array(1.7))
    assert value.shape == ()
    (dx,) = back(np.array(2.0))
    assert (dx.shape, dx.dtype) == ((), np.dtype(float))
    np.testing.assert_allclose(dx, 2 * derivative, rtol=1e-14)


OTHERS = {
    "ascontiguousarray": lambda x: np.ascontiguousarray(x)[0] * x + np.asfortranarray(x[()])[0] * x,
    "flip": lambda x: np.flip(x) * x,
    "arrays": lambda x: np.array(x[()]) * 2 + np.asarray(x) * x,
    "deviation": lambda x: np.std(np.append(x, x * x)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str):
    agree(OTHERS[name], np.array(1.7))
    check_derivatives(OTHERS[name], np.array(1.7))


def multiply(x, y):
    x[()] *= y


def square(x, y):
    x[...] = y * y * 2.0
    x -= y


def sine(x, y):
    np.multiply(x, 3.0, x)
    x[...] = np.sin(y) * x


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(multiply, (0.6, 1.7)), (square, (0.0, 1.4)), (sine, (3 * np.sin(0.6), 5.1 * np.cos(0.6)))],
)
def test_kernels(kernel, expected):
    x = np.array(1.7)
    value, back = pullback(kernel, x, 0.6)
    assert value is None
    left = np.array(1.7)
    numba.njit(kernel)(left, 0.6)
    assert x == left
    np.testing.assert_allclose(back(x=np.array(1.0)), expected, rtol=1e-14)


def test_a_complex_result():
    z = np.array(1.5 + 0.5j)
    agree(lambda z: (np.conj(z) * np.sin(z), z.copy(), np.round(z), z / 2), z)
    value, back = pullback(lambda z: z.copy(), z)
    assert (value.dtype, value.shape) == (complex, ())
    (dz,) = back(np.array(1 + 2j))
    assert (dz, dz.dtype) == (1 + 2j, complex)
