"""`vectorize` for CUDA of functions that record or allocate: each item is compared with a derivative in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import config, cuda

import zygote_py as zg
from zygote_py import gradient, vectorize

pytestmark = pytest.mark.skipif(
    not (config.ENABLE_CUDASIM or cuda.is_available()), reason="there is neither a device nor the simulator"
)

A = np.linspace(0.4, 1.6, 7)


def series(a, b, n):
    """b^2 (1 + a + ... + a^(n - 1))."""
    total = 0.0
    for _ in range(n):
        total = total * a + b * b
    return total


def powers(a, n):
    """The sums of a^k, k a^(k - 1) and k (k - 1) a^(k - 2) for k < n."""
    k = np.arange(n)[:, None]
    return (
        (a**k).sum(0),
        (k[1:] * a ** (k[1:] - 1)).sum(0),
        (k[2:] * (k[2:] - 1) * a ** (k[2:] - 2)).sum(0),
    )


def test_hessian_of_a_loop():
    (aa, ab), (ba, bb) = vectorize(zg.hessian(series, wrt=(0, 1)), target="cuda")(A, 0.7, 9)
    zeroth, first, second = powers(A, 9)
    np.testing.assert_allclose(aa, 0.49 * second, rtol=1e-12)
    np.testing.assert_allclose(ab, 1.4 * first, rtol=1e-12)
    np.testing.assert_allclose(ba, 1.4 * first, rtol=1e-12)
    np.testing.assert_allclose(bb, 2.0 * zeroth, rtol=1e-12)


def test_hessian_of_loops_of_different_lengths():
    n = np.arange(7)
    (aa, _), (_, bb) = vectorize(zg.hessian(series, wrt=(0, 1)), target="cuda")(A, 0.7, n)
    for number in range(7):
        zeroth, _, second = powers(A[number : number + 1], number)
        np.testing.assert_allclose(aa[number], 0.49 * second[0], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(bb[number], 2.0 * zeroth[0], rtol=1e-12, atol=1e-15)


def until(a, b):
    """a^k b for the first k for which it is at least 100, in a loop ended by the data."""
    x = b
    while x < 100.0:
        x = x * a
    return x


def test_hessian_of_a_loop_ended_by_the_data():
    a, b = np.array([1.5, 2.0, 3.0]), 0.7
    (aa, ab), (_, bb) = vectorize(zg.hessian(until, wrt=(0, 1)), target="cuda")(a, b)
    k = np.ceil(np.log(100.0 / b) / np.log(a))
    np.testing.assert_allclose(aa, k * (k - 1) * a ** (k - 2) * b, rtol=1e-12)
    np.testing.assert_allclose(ab, k * a ** (k - 1), rtol=1e-12)
    np.testing.assert_array_equal(bb, 0.0)


def power(a, n):
    x = 1.0
    for _ in range(n):
        x *= a
    return x


def by_routine(a, n, m):
    """a^(n (n - 1) / 2) m times, by a function with a loop in a loop."""
    total = 0.0
    for _ in range(m):
        product = 1.0
        for i in range(n):
            product *= power(a, i)
        total += product
    return total


def test_functions_with_loops_called_in_loops():
    found = vectorize(gradient(by_routine, wrt="a"), target="cuda")(A, 5, 3)
    np.testing.assert_allclose(found, 3 * 10 * A**9, rtol=1e-12)


def slope_squared(a, n):
    return gradient(power, wrt="a")(a, n) ** 2


def test_gradient_of_a_gradient():
    found = vectorize(gradient(slope_squared, wrt="a"), target="cuda")(A, 6)
    np.testing.assert_allclose(found, 36 * 10 * A**9, rtol=1e-12)


def with_scratch(x, n):
    """The sum of sin(j x) for j < n, through memory of the function's own."""
    parts = np.zeros(n)
    for j in range(n):
        parts[j] += math.sin(j * x)
    total = 0.0
    for j in range(n):
        total += parts[j - n]
    return total


def test_scratch_memory():
    n = np.array([1, 4, 7, 2, 0, 3, 8])
    found = vectorize(gradient(with_scratch, wrt="x"), target="cuda")(A, n)
    by_hand = [sum(j * math.cos(j * x) for j in range(m)) for x, m in zip(A, n, strict=True)]
    np.testing.assert_allclose(found, by_hand, rtol=1e-12, atol=1e-14)


def table(w, t):
    total = 0.0
    for i in range(w.shape[0]):
        total += math.exp(w[i] * t)
    return total


def test_second_derivative_beside_arrays():
    w = np.linspace(-1.0, 1.0, 12).reshape(4, 3)
    found = vectorize(zg.hessian(table, wrt="t"), target="cuda", signature="(k),()->()")(w, 0.3)
    np.testing.assert_allclose(found, (w * w * np.exp(0.3 * w)).sum(1), rtol=1e-12)
    with pytest.raises(zg.DifferentiationError, match="CUDA kernel"):  # blocks of a matrix that is computed as a whole
        vectorize(zg.hessian(table, wrt="w"), target="cuda", signature="(k),()->(k,k)")(w, 0.3)
