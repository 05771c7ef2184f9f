"""Functions of NumPy that a device does not have, with values at which they are not smooth; NumPy is the reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import config, cuda
from numba.cuda import libdevice
from numba.cuda.libdevice import fast_expf

from tests.modes import one_in
from zygote_py import adjoint_kernel, gradient, value_and_gradient, vectorize

pytestmark = pytest.mark.skipif(
    not (config.ENABLE_CUDASIM or cuda.is_available()), reason="there is neither a device nor the simulator"
)

INF, NAN = math.inf, math.nan
EDGES = np.array(
    [*(0.0, -0.0, 0.2, -0.2, 0.5, -0.5, 1.5, 2.5, -2.5, 7.0, -7.9, 0.49999999999999994), *(4503599627370497.0, 1e30)]
)
INFINITE = np.array([INF, -INF, NAN])


def sum_of_rounded(x, w):
    a = np.floor(x) + 2.0 * np.ceil(x) + 4.0 * np.trunc(x) + 8.0 * np.rint(x)
    return w * (a + 16.0 * np.round(x)) + np.cbrt(x) + np.fmod(x, 2.0) + np.remainder(x, 2.0)


@pytest.mark.parametrize("function", one_in(2, [np.floor, np.ceil, np.trunc, np.rint, np.round]))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding(function, dtype):
    x = np.concatenate([EDGES, INFINITE]).astype(dtype)
    with np.errstate(invalid="ignore"):  # of NaN, in the simulator
        value, slope = vectorize(value_and_gradient(lambda x: function(x) + 0.0 * x), target="cuda")(x[:-3])
        np.testing.assert_array_equal(value, function(x[:-3]))
        np.testing.assert_array_equal(slope, 0.0)
        value, _ = vectorize(value_and_gradient(lambda x: function(x)), target="cuda")(x)
    assert value.dtype == dtype or function is np.round  # which Numba takes to double precision
    np.testing.assert_array_equal(value, function(x))


@pytest.mark.parametrize("function", [np.fmin, np.fmax])
def test_extremes(function):
    x, y = (each.ravel() for each in np.meshgrid(*[np.concatenate([EDGES, INFINITE])] * 2))
    value, _ = vectorize(value_and_gradient(lambda x, y: function(x, y)), target="cuda")(x, y)
    np.testing.assert_array_equal(value, function(x, y))


@pytest.mark.parametrize("function", [np.logaddexp, np.logaddexp2])
def test_sums_of_exponentials(function):
    x, y = (each.ravel() for each in np.meshgrid(EDGES[:-2] * 20, EDGES[:-2]))
    value, _ = vectorize(value_and_gradient(lambda x, y: function(x, y)), target="cuda")(x, y)
    np.testing.assert_allclose(value, function(x, y), rtol=1e-14)
    value, _ = vectorize(value_and_gradient(lambda x: function(x, x)), target="cuda")(np.array([INF, -INF, 1e300]))
    np.testing.assert_array_equal(value, [INF, -INF, 1e300])


def test_cube_roots():
    x = EDGES[2:]
    value, slope = vectorize(value_and_gradient(lambda x: np.cbrt(x)), target="cuda")(x)
    np.testing.assert_allclose(value, np.cbrt(x), rtol=1e-14)
    np.testing.assert_allclose(slope, 1 / (3 * np.cbrt(x) ** 2), rtol=1e-14)


def test_gradients():
    x = np.array([0.3, -1.7, 5.2])
    dx, dw = vectorize(gradient(sum_of_rounded), target="cuda")(x, 2.0)
    np.testing.assert_allclose(dx, 1 / (3 * np.cbrt(x) ** 2) + 2.0, rtol=1e-13)
    weights = np.floor(x) + 2 * np.ceil(x) + 4 * np.trunc(x) + 8 * np.rint(x) + 16 * np.round(x)
    np.testing.assert_allclose(dw, weights, rtol=1e-13)

    def smooth(x, y):
        return np.logaddexp(x, y) + np.fmax(x, y) * np.sinc(x) + np.exp2(y) + np.ldexp(x, 3) + np.fmin(x, 0.5)

    dx, dy = vectorize(gradient(smooth), target="cuda")(x, 0.7)
    weight = 1 / (1 + np.exp(0.7 - x))
    slope = (np.cos(math.pi * x) - np.sinc(x)) / x
    np.testing.assert_allclose(
        dx, weight + (x > 0.7) * np.sinc(x) + np.maximum(x, 0.7) * slope + 8 + (x < 0.5), rtol=1e-12
    )
    np.testing.assert_allclose(dy, 1 - weight + (x < 0.7) * np.sinc(x) + math.log(2) * 2**0.7, rtol=1e-12)


def by_libdevice(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        a, b = x[i], y[i]
        fast = libdevice.fast_sinf(a) + libdevice.fast_cosf(b) * libdevice.fast_tanf(a) + fast_expf(a * b)
        fast += libdevice.fast_exp10f(b) + libdevice.fast_logf(a) * libdevice.fast_log2f(b) + libdevice.fast_log10f(a)
        fast += libdevice.fast_powf(a, b) + libdevice.fast_fdividef(a, b)
        same = cuda.libdevice.rsqrtf(a) + libdevice.hypotf(a, b) + libdevice.fmaf(a, a, b) + libdevice.cbrtf(b)
        out[i] = fast + same * libdevice.fminf(a, b) + libdevice.fdimf(b, a) * libdevice.exp10f(a) + libdevice.erff(b)


def the_same(a, b):
    fast = np.sin(a) + np.cos(b) * np.tan(a) + np.exp(a * b) + 10.0**b + np.log(a) * np.log2(b) + np.log10(a)
    fast += a**b + a / b
    same = 1 / np.sqrt(a) + np.hypot(a, b) + a * a + b + np.cbrt(b)
    erf = np.array([math.erf(each) for each in b])
    return fast + same * np.minimum(a, b) + np.maximum(b - a, 0.0) * 10.0**a + erf


OF_LIBDEVICE = {
    **{f"fast_{name}f": getattr(np, name) for name in ("sin", "cos", "tan", "exp", "log", "log2", "log10")},
    "fast_exp10f": lambda x: np.power(np.float32(10.0), x),
    "fast_powf": np.power,
    "fast_fdividef": np.divide,
    "rsqrtf": lambda x: 1 / np.sqrt(x),
    "hypotf": np.hypot,
    "fmaf": lambda x, y, z: x * y + z,
    "cbrtf": np.cbrt,
    "fminf": np.fmin,
    "fdimf": lambda x, y: max(x - y, np.float32(0.0)),
    "exp10f": lambda x: np.power(np.float32(10.0), x),
    "erff": lambda x: np.float32(math.erf(x)),
}


def test_functions_of_libdevice(monkeypatch):
    if config.ENABLE_CUDASIM:  # which has none of them
        for name, function in OF_LIBDEVICE.items():
            monkeypatch.setattr(libdevice, name, function)
    x, y = np.array([0.4, 0.9, 1.3], np.float32), np.array([0.7, 0.6, 1.4], np.float32)
    pairs = [(x, np.zeros_like(x)), (y, np.zeros_like(y)), (np.zeros_like(x), np.ones_like(x))]
    given = [cuda.to_device(each) for pair in pairs for each in pair]
    adjoint_kernel(by_libdevice)[1, 4](*given)
    x, y = x.astype(np.float64), y.astype(np.float64)
    h = 1e-6
    np.testing.assert_allclose(given[4].copy_to_host(), the_same(x, y), rtol=2e-6)
    np.testing.assert_allclose(given[1].copy_to_host(), (the_same(x + h, y) - the_same(x - h, y)) / (2 * h), rtol=2e-5)
    np.testing.assert_allclose(given[3].copy_to_host(), (the_same(x, y + h) - the_same(x, y - h)) / (2 * h), rtol=2e-5)
