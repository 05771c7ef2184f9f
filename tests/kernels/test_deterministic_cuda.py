"""`adjoint_kernel(..., deterministic=True)`, on a device or in the simulator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import config, cuda, float64

from tests.modes import one_in
from zygote_py import DifferentiationError, adjoint_kernel

pytestmark = pytest.mark.skipif(
    not (config.ENABLE_CUDASIM or cuda.is_available()), reason="there is neither a device nor the simulator"
)

rng = np.random.default_rng(11)


def launched(kernel, grid, arrays, shadows, **options):
    """Return the shadows after a launch, and the adjoint."""
    adjoint = adjoint_kernel(kernel, deterministic=True, **options)
    pairs = [(cuda.to_device(array), cuda.to_device(shadow)) for array, shadow in zip(arrays, shadows, strict=True)]
    adjoint[grid](*(each for pair in pairs for each in pair))
    return [shadow.copy_to_host() for _, shadow in pairs], adjoint


def polynomial(x, p, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        value = 0.0
        for j in range(p.size):
            value = value * x[i] + math.sin(p[j])
        out[i] = value + x[i] * p[-1]


@pytest.mark.parametrize("grid", one_in(4, [((1, 1),), ((1, 32),), ((3, 8),), ((3, 7),)]))
def test_parameters_get_the_sum_over_all_threads(grid):
    x, p, dout = rng.normal(size=37), rng.normal(size=4), rng.normal(size=37)
    given = [np.ones(37), np.ones(4), dout]
    (dx, dp, left), adjoint = launched(polynomial, grid, (x, p, np.zeros(37)), given)
    powers = x[:, None] ** np.arange(3, -1, -1)
    np.testing.assert_allclose(dp, 1 + np.cos(p) * (dout @ powers) + [0, 0, 0, dout @ x], rtol=1e-12)
    slopes = np.arange(3, 0, -1) * x[:, None] ** np.arange(2, -1, -1)
    np.testing.assert_allclose(dx, 1 + dout * (slopes @ np.sin(p[:3]) + p[-1]), rtol=1e-12)
    assert not left.any()
    again, _ = launched(polynomial, grid, (x, p, np.zeros(37)), given)
    np.testing.assert_array_equal(again[1], dp)
    assert "atomic" not in adjoint.source("f64[::1], " * 5 + "f64[::1]")


def bilinear(a, x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        total = 0.0
        for j in range(a.shape[0]):
            for k in range(a.shape[1]):
                total += a[j, k] * x[i, j] * x[i, k]
        out[i] = total


@pytest.mark.parametrize("step", one_in(2, [2, 1]))
def test_matrices_of_parameters(step):
    a, x, dout = rng.normal(size=(3, 3)), rng.normal(size=(10, 3)), rng.normal(size=10)
    matrix = cuda.to_device(np.zeros((3, 3 * step)))
    values = [cuda.to_device(each) for each in (x, np.zeros((10, 3)), np.zeros(10), dout)]
    adjoint_kernel(bilinear, deterministic=True)[3, 4](cuda.to_device(a), matrix[:, ::step], *values)
    found = matrix.copy_to_host()
    np.testing.assert_allclose(found[:, ::step], np.einsum("i,ij,ik->jk", dout, x, x), rtol=1e-12)
    assert np.count_nonzero(found) == 9
    np.testing.assert_allclose(values[1].copy_to_host(), dout[:, None] * (x @ (a + a.T)), rtol=1e-12)


def summed(x, scale, total):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(total, 0, scale[0] * x[i] ** 2)


def test_sums_of_the_kernel_stay_as_they_are():
    x, dtotal = rng.normal(size=9).astype(np.float32), np.array([0.5], np.float32)
    given = [np.zeros(9, np.float32), np.zeros(1, np.float32), dtotal]
    arrays = (x, np.array([2.0], np.float32), np.zeros(1, np.float32))
    (dx, dscale, dtotal), _ = launched(summed, (2, 8), arrays, given)
    np.testing.assert_allclose(dx, 2 * x, rtol=1e-6)
    np.testing.assert_allclose(dscale, [0.5 * np.sum(x * x)], rtol=1e-6)
    assert dtotal == 0.5  # an element that is added to passes its shadow on, and keeps it


def gathered(x, places, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[places[i]] ** 2


def neighbours(x, out):
    i = cuda.grid(1)
    if i + 1 < x.size:
        out[i] = x[i] * x[i + 1]


def tiled(x, out):
    tile = cuda.shared.array(8, float64)
    thread = cuda.threadIdx.x
    tile[thread] = x[cuda.grid(1)]
    cuda.syncthreads()
    total = 0.0
    for j in range(8):
        total += tile[j] ** 2
    out[cuda.grid(1)] = total


def passed_on(x, p, out):
    p[0] = p[0] * x[0]
    out[cuda.grid(1)] = p[0] * x[cuda.grid(1)]


def reads_a_sum(x, total, p, out):
    i = cuda.grid(1)
    cuda.atomic.add(total, 0, x[i])
    cuda.syncthreads()
    out[i] = p[0] * total[0]


def without_axes(x, p, out):
    i = cuda.grid(1)
    out[i] = x[i] * p[()]


@pytest.mark.parametrize(
    ("kernel", "types", "message"),
    [
        (gathered, "f64[::1], f64[::1], i64[::1], f64[::1], f64[::1]", "elements of `dx`"),
        (neighbours, "f64[::1], f64[::1], f64[::1], f64[::1]", "elements of `dx`"),
        (tiled, "f64[::1], f64[::1], f64[::1], f64[::1]", "elements of `dtile`"),
        (reads_a_sum, "f64[::1], " * 7 + "f64[::1]", "whose last bits vary"),
        (
            without_axes,
            "f64[::1], f64[::1], array(float64, 0d, C), array(float64, 0d, C), f64[::1], f64[::1]",
            "without axes",
        ),
        (passed_on, "f64[::1], f64[::1], f64[::1], f64[::1], f64[::1], f64[::1]", "`dp`.* comes too late"),
    ],
)
def test_what_has_no_fixed_order_is_refused(kernel, types, message):
    with pytest.raises(DifferentiationError, match=message) as caught:
        adjoint_kernel(kernel, deterministic=True).source(types, threads=8)
    assert caught.value.line is not None
