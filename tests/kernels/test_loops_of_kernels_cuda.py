"""Kernels whose gradients other tools for GPUs document as wrong, or as not supported, against differences.

Their reverse loops repeat a round with what the variables are at the end, or with what an array holds by then: so the
limits that NVIDIA's Warp lists for loops whose number of rounds is known at run time only, and for arrays that are
overwritten.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import config, cuda, float64

from tests.kernels.adjoint_cases import check
from tests.modes import one_in

pytestmark = pytest.mark.skipif(
    not (config.ENABLE_CUDASIM or cuda.is_available()), reason="there is neither a device nor the simulator"
)

rng = np.random.default_rng(5)


def some(*shape):
    return rng.uniform(0.5, 1.5, shape)


@cuda.jit
def product(x, out, n):
    i = cuda.grid(1)
    if i < x.shape[0]:
        total = 1.0
        for k in range(n):
            total *= x[i, k]
        out[i] = total


@cuda.jit
def product_in_memory(x, out, n):
    i = cuda.grid(1)
    if i < x.shape[0]:
        for k in range(n):
            out[i] *= x[i, k]


def product_model(given):
    x, _, n = given
    return [x, x[:, :n].prod(axis=1), n]


def product_in_memory_model(given):
    x, out, n = given
    return [x, out * x[:, :n].prod(axis=1), n]


@pytest.mark.parametrize("n", one_in(2, [0, 1, 5]))
def test_a_product_over_a_loop_of_unknown_length(n):
    check(product, (2, 3), [some(5, 5), some(5), n], product_model)
    check(product_in_memory, (2, 3), [some(5, 5), some(5), n], product_in_memory_model)


def test_a_product_with_a_zero_in_it():
    x = some(5, 4)
    x[1, 2] = x[3, 0] = x[3, 1] = 0.0
    check(product, (2, 3), [x, some(5), 4], product_model)


@cuda.jit
def with_continue(x, out, n):
    i = cuda.grid(1)
    if i < x.shape[0]:
        value = 1.0
        for k in range(n[i]):
            if k % 2 == i % 2:
                continue
            value = math.sin(value * x[i, k]) + value
            if x[i, k] > 1.0:
                continue
            value *= x[i, k]
            if k == 4:
                break
        out[i] = value


def with_continue_model(given):
    x, out, n = given
    for i in range(len(x)):
        value = 1.0
        for k in range(n[i]):
            if k % 2 != i % 2:
                value = np.sin(value * x[i, k]) + value
                if x[i, k] <= 1.0:
                    value *= x[i, k]
                    if k == 4:
                        break
        out[i] = value
    return [x, out, n]


def test_continue_and_break_in_a_loop():
    check(with_continue, (2, 3), [some(5, 6), some(5), np.array([6, 0, 5, 1, 6])], with_continue_model)


@cuda.jit
def nested(x, out, n, m):
    i = cuda.grid(1)
    if i < x.shape[0]:
        value = 1.0
        for k in range(n):
            inner = value
            for j in range(m[k]):
                inner *= x[i, j] + 0.1 * inner
            left = m[k]
            while left > k:
                value += math.sin(inner * value)
                left -= 1
            value = inner + 0.5 * value
        out[i] = value


def nested_model(given):
    x, _, n, m = given
    value = np.ones(len(x))
    for k in range(n):
        inner = value
        for j in range(m[k]):
            inner = inner * (x[:, j] + 0.1 * inner)
        for _ in range(m[k], k, -1):
            value = value + np.sin(inner * value)
        value = inner + 0.5 * value
    return [x, value, n, m]


def test_nested_loops_of_unknown_length():
    check(nested, (2, 3), [0.4 * some(5, 4), some(5), 3, np.array([2, 0, 4])], nested_model)


@cuda.jit
def overwritten(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        value = x[i] * y[i]
        x[i] = math.sin(y[i])
        y[i] = x[i] * value
        out[i] = value * x[i] * y[i]
        x[i] = 0.0


def overwritten_model(given):
    x, y, _ = given
    value = x * y
    last = np.sin(y) * value
    return [0.0 * x, last, value * np.sin(y) * last]


@cuda.jit
def overwritten_in_a_loop(x, out, n):
    i = cuda.grid(1)
    if i < x.size:
        for k in range(n):
            out[i] += x[i] * x[i] * k
            x[i] = math.cos(x[i]) * out[i]


def overwritten_in_a_loop_model(given):
    x, out, n = given
    for k in range(n):
        out = out + x * x * k
        x = np.cos(x) * out
    return [x, out, n]


@cuda.jit
def by_another_thread(x, out):
    i = cuda.grid(1)
    n = x.size
    value = x[(i + 1) % n] ** 2
    cuda.syncthreads()
    x[i] = 2.0 * value
    cuda.syncthreads()
    out[i] = x[(i + 2) % n] * value


def by_another_thread_model(given):
    x, _ = given
    value = np.roll(x, -1) ** 2
    return [2.0 * value, 2.0 * np.roll(value, -2) * value]


def test_arrays_that_are_overwritten_after_they_were_read():
    check(overwritten, (2, 3), [some(5), some(5), some(5)], overwritten_model)
    check(overwritten_in_a_loop, (2, 3), [some(5), some(5), 4], overwritten_in_a_loop_model, rtol=1e-6)
    check(by_another_thread, (1, 5), [some(5), some(5)], by_another_thread_model)


@cuda.jit
def parts(x, out, n):
    i = cuda.grid(1)
    state = cuda.local.array(3, float64)
    if i < x.size:
        for k in range(3):
            state[k] = x[i] * (k + 1)
        for k in range(n):
            state[k % 3] = state[(k + 1) % 3] * state[k % 3] + 0.1
        out[i] = state[0] + state[1] * state[2]


def parts_model(given):
    x, _, n = given
    state = [x, 2.0 * x, 3.0 * x]
    for k in range(n):
        state[k % 3] = state[(k + 1) % 3] * state[k % 3] + 0.1
    return [x, state[0] + state[1] * state[2], n]


def test_parts_of_an_array_of_a_thread_that_a_loop_updates():
    check(parts, (2, 3), [0.3 * some(5), some(5), 5], parts_model, rtol=1e-6)
