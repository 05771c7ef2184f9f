"""Adjoints of whole kernels, on a device or in the simulator, against finite differences of the same in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import config, cuda, float64

from tests.kernels.adjoint_cases import check
from tests.modes import one_in
from zygote_py import adjoint_kernel

pytestmark = pytest.mark.skipif(
    not (config.ENABLE_CUDASIM or cuda.is_available()), reason="there is neither a device nor the simulator"
)

rng = np.random.default_rng(11)


def some(*shape):
    return rng.uniform(0.5, 1.5, shape)


@cuda.jit(device=True)
def cube(x):
    return x * x * x


@cuda.jit
def elementwise(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        out[i] = math.sin(x[i]) * cube(x[i])


def elementwise_model(given):
    x, out = given
    out[: len(x)] = np.sin(x) * x**3
    return [x, out]


@pytest.mark.parametrize("grid", [(1, 16), (3, 4), (7, 1), ((2, 1), (4, 1))])
def test_each_thread_its_element(grid):
    check(elementwise, grid, [some(7), some(7)], elementwise_model)


def test_what_is_not_overwritten_keeps_its_shadow():
    check(elementwise, (2, 4), [some(5), some(9)], elementwise_model)


def test_single_precision():
    arrays = [each.astype(np.float32) for each in (some(7), some(7))]
    adjoint = check(elementwise, (2, 4), arrays, elementwise_model, rtol=2e-5)
    assert "np.float64" not in adjoint.source("f32[:], f32[:], f32[:], f32[:]")


@cuda.jit
def strided(x, y, out):
    start = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    step = cuda.blockDim.x * cuda.gridDim.x
    for i in range(start, x.size, step):
        out[i] = x[i] * y[i] + x[i] ** 2


def strided_model(given):
    x, y, out = given
    out[:] = x * y + x**2
    return [x, y, out]


@cuda.jit
def in_place(x, n):
    i = cuda.grid(1)
    while i < x.size:
        for _ in range(n):
            x[i] = math.sin(x[i]) + 0.1 * x[i] * x[i]
        i += cuda.gridsize(1)


def in_place_model(given):
    x, n = given
    for _ in range(n):
        x[:] = np.sin(x) + 0.1 * x * x
    return [x, n]


def test_loops_with_the_step_of_the_grid():
    check(strided, (2, 4), [some(19), some(19), some(19)], strided_model)
    check(in_place, (2, 3), [some(11), 3], in_place_model)


@cuda.jit
def neighbours(x, out):
    i = cuda.grid(1)
    if i == 0 or i >= x.size - 1:
        return
    out[i] += (x[i - 1] - 2.0 * x[i] + x[i + 1]) * x[i]


def neighbours_model(given):
    x, out = given
    out[1:-1] += (x[:-2] - 2 * x[1:-1] + x[2:]) * x[1:-1]
    return [x, out]


def test_threads_that_read_the_same_elements():
    check(neighbours, (3, 4), [some(10), some(10)], neighbours_model)


@cuda.jit
def local(x, out):
    i = cuda.grid(1)
    if i >= x.shape[0]:
        return
    powers = cuda.local.array(4, float64)
    powers[0] = 1.0
    for k in range(1, 4):
        powers[k] = powers[k - 1] * x[i]
    for k in range(4):
        out[i, k] = powers[k] * powers[3 - k] + powers[k]


def local_model(given):
    x, out = given
    powers = x[:, None] ** np.arange(4)
    out[:] = powers * powers[:, ::-1] + powers
    return [x, out]


def test_arrays_of_a_thread():
    check(local, (2, 4), [some(6), some(6, 4)], local_model)


@cuda.jit
def reversed_in_blocks(x, out):
    tile = cuda.shared.array(4, float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    tile[t] = x[i] * x[i]
    cuda.syncthreads()
    out[i] = tile[3 - t] * x[i]


def reversed_model(given):
    x, out = given
    out[:] = (x**2).reshape(-1, 4)[:, ::-1].ravel() * x
    return [x, out]


@cuda.jit
def reversed_with_dynamic_memory(x, out):
    tile = cuda.shared.array(0, float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    tile[t] = x[i] * x[i]
    cuda.syncthreads()
    out[i] = tile[cuda.blockDim.x - 1 - t] * x[i]


def test_shared_memory():
    check(reversed_in_blocks, (3, 4), [some(12), some(12)], reversed_model)
    check(reversed_with_dynamic_memory, (3, 4, 0, 4 * 8), [some(12), some(12)], reversed_model)


TILE = 3


@cuda.jit
def product(a, b, c):
    sa = cuda.shared.array((TILE, TILE), float64)
    sb = cuda.shared.array(shape=(TILE, TILE), dtype=float64)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = 0.0
    for t in range((a.shape[1] + TILE - 1) // TILE):
        sa[tx, ty] = 0.0
        sb[tx, ty] = 0.0
        if x < a.shape[0] and t * TILE + ty < a.shape[1]:
            sa[tx, ty] = a[x, t * TILE + ty]
        if y < b.shape[1] and t * TILE + tx < b.shape[0]:
            sb[tx, ty] = b[t * TILE + tx, y]
        cuda.syncthreads()
        for k in range(TILE):
            total += sa[tx, k] * sb[k, ty]
        cuda.syncthreads()
    if x < c.shape[0] and y < c.shape[1]:
        c[x, y] = total


def product_model(given):
    a, b, _ = given
    return [a, b, a @ b]


def test_tiles_of_a_product_of_matrices():
    check(product, ((2, 2), (TILE, TILE)), [some(5, 4), some(4, 6), some(5, 6)], product_model)


def test_tiles_are_reversed_at_once_if_each_round_fills_them():
    types = ", ".join(["f64[:, ::1]"] * 6)
    text = adjoint_kernel(product).source(types, threads=(TILE, TILE))
    assert "record" not in text
    assert "record" in adjoint_kernel(product).source(types, threads=(TILE, 2))  # some elements are not filled


@cuda.jit
def forces(x, m, out, n):
    sx, sm = cuda.shared.array(4, float64), cuda.shared.array(4, float64)
    i, t = cuda.grid(1), cuda.threadIdx.x
    own = x[i] if i < n else 0.0
    total = 0.0
    for tile in range(cuda.gridDim.x):
        j = tile * cuda.blockDim.x + t
        sx[t] = x[j] if j < n else 0.0
        sm[t] = m[j] if j < n else 0.0
        cuda.syncthreads()
        for k in range(cuda.blockDim.x):
            d = sx[k] - own
            total += sm[k] * d / (d * d + 0.5)
        cuda.syncthreads()
    if i < n:
        out[i] = total


def forces_model(given):
    x, m, out, n = given
    d = x[None, :n] - x[:n, None]
    padding = -x[:n] / (x[:n] ** 2 + 0.5) * 0.0
    out[:n] = (m[None, :n] * d / (d * d + 0.5)).sum(1) + padding
    return [x, m, out, n]


@pytest.mark.parametrize("n", one_in(3, [10, 8, 3]))
def test_forces_between_bodies_in_tiles(n):
    adjoint = check(forces, (3, 4), [some(11), some(11), some(11), n], forces_model)
    text = adjoint.source("f64[::1], f64[::1], f64[::1], f64[::1], f64[::1], f64[::1], i64", threads=4)
    assert "record" not in text
    assert "-1, -1" not in text  # no loop is reversed


@cuda.jit
def passed_between_rounds(x, out):
    s = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    total = 0.0
    for k in range(3):
        before = s[(t + k) % 4]
        cuda.syncthreads()
        s[t] = before * x[t] + s[t]
        cuda.syncthreads()
        total += s[(t + 1) % 4] ** 2
        cuda.syncthreads()
    out[t] = total


def passed_model(given):
    x, out = given
    s, total = x.copy(), 0.0
    for k in range(3):
        s = np.roll(s, -k) * x + s
        total = total + np.roll(s, -1) ** 2
    out[:] = total
    return [x, out]


def test_values_that_rounds_pass_on_in_shared_memory():
    check(passed_between_rounds, (1, 4), [some(4), some(4)], passed_model)


@cuda.jit
def handed_on(x, out):
    i = cuda.grid(1)
    for k in range(3):
        out[i + k] *= x[i] * out[i + k]
        cuda.syncthreads()


def handed_on_model(given):
    x, out = given
    for k in range(3):
        out[k : k + 4] *= x * out[k : k + 4]
    return [x, out]


def test_elements_that_rounds_hand_on_between_barriers():
    check(handed_on, (1, 4), [some(4), some(6)], handed_on_model)


@cuda.jit
def tree(x, out):
    s = cuda.shared.array(8, float64)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    s[t] = x[i] * x[i] if i < x.size else 0.0
    cuda.syncthreads()
    width = 4
    while width > 0:
        if t < width:
            s[t] += s[t + width] * s[t]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


def tree_model(given):
    x, out = given
    s = np.zeros(8 * len(out))
    s[: x.size] = x**2
    s = s.reshape(-1, 8)
    for width in (4, 2, 1):
        s[:, :width] = s[:, :width] + s[:, width : 2 * width] * s[:, :width]
        s = s[:, :width]
    out[:] = s[:, 0]
    return [x, out]


def test_a_reduction_in_blocks():
    check(tree, (2, 8), [some(13), some(2)], tree_model)


@cuda.jit
def histogram(x, where, bins, total):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, where[i], x[i] * x[i])
        cuda.atomic.sub(total, (0, i % 2), math.exp(x[i]))


def histogram_model(given):
    x, where, bins, total = given
    np.add.at(bins, where, x**2)
    np.subtract.at(total, (0, np.arange(x.size) % 2), np.exp(x))
    return [x, where, bins, total]


def test_atomic_sums():
    check(histogram, (3, 4), [some(10), rng.integers(0, 3, 10), some(3), some(1, 2)], histogram_model)


@cuda.jit
def extremes(x, where, highest, lowest):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.max(highest, where[i], x[i] * x[i])
        cuda.atomic.min(lowest, 0, math.sqrt(x[i]))


def extremes_model(given):
    x, where, highest, lowest = given
    np.maximum.at(highest, where, x**2)
    lowest[0] = min(lowest[0], np.sqrt(x).min())
    return [x, where, highest, lowest]


@cuda.jit
def softmax(x, out):
    top = cuda.shared.array(1, float64)
    total = cuda.shared.array(1, float64)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if t == 0:
        top[0] = -1e300
        total[0] = 0.0
    cuda.syncthreads()
    cuda.atomic.max(top, 0, x[i])
    cuda.syncthreads()
    e = math.exp(x[i] - top[0])
    cuda.atomic.add(total, 0, e)
    cuda.syncthreads()
    out[i] = e / total[0] * top[0]


def softmax_model(given):
    x, out = given
    rows = x.reshape(-1, 4)
    top = rows.max(axis=1, keepdims=True)
    e = np.exp(rows - top)
    out[:] = (e / e.sum(axis=1, keepdims=True) * top).ravel()
    return [x, out]


def test_atomic_extremes():
    x = some(10) + np.arange(10.0)
    highest = np.array([0.0, 5.0, 500.0])  # the last one stays
    check(extremes, (3, 4), [x, rng.integers(0, 3, 10), highest, np.full(1, 50.0)], extremes_model, rtol=1e-6)
    check(softmax, (3, 4), [some(12) + np.arange(12.0), some(12)], softmax_model, rtol=1e-6)


@cuda.jit
def plane(x, out, scale):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[j, i] = scale * x[i, j] * x[i, (j + 1) % x.shape[1]]


@cuda.jit
def space(x, out, scale):
    i, j, k = cuda.grid(3)
    si, sj, sk = cuda.gridsize(3)
    for a in range(i, x.shape[0], si):
        for b in range(j, x.shape[1], sj):
            for c in range(k, x.shape[2], sk):
                out[a, b, c] = scale * x[a, b, c] ** 2


def test_grids_of_several_axes():
    def of_plane(given):
        x, _, scale = given
        return [x, (scale * x * np.roll(x, -1, axis=1)).T, scale]

    def of_space(given):
        x, _, scale = given
        return [x, scale * x**2, scale]

    check(plane, ((2, 2), (2, 3)), [some(4, 5), some(5, 4), 1.5], of_plane)
    check(space, ((1, 2, 1), (2, 1, 2)), [some(3, 3, 4), some(3, 3, 4), 2.5], of_space)


@cuda.jit
def newton(x, out, n):
    i = cuda.grid(1)
    if i < x.size:
        guess = 1.0
        for _ in range(n[i]):
            guess = 0.5 * (guess + x[i] / guess)
        steps = 0
        value = x[i]
        while value > 0.1:
            value *= 0.5 + 0.1 * math.sin(value)
            steps += 1
        out[i] = guess + value * steps


def newton_model(given):
    x, out, n = given
    for i in range(x.size):
        guess = 1.0
        for _ in range(n[i]):
            guess = 0.5 * (guess + x[i] / guess)
        steps, value = 0, x[i]
        while value > 0.1:
            value *= 0.5 + 0.1 * np.sin(value)
            steps += 1
        out[i] = guess + value * steps
    return [x, out, n]


def test_records_of_each_thread():
    arrays = [some(6), some(6), np.array([3, 0, 5, 1, 2, 4])]
    adjoint = check(newton, (2, 4), arrays, newton_model, rtol=1e-6)
    x, out, n = map(cuda.to_device, arrays)
    dx, dout = cuda.to_device(np.zeros(6)), cuda.to_device(np.ones(6))
    assert adjoint[2, 4].record_bytes(x, dx, out, dout, n) >= 8 * 8 * 5  # of five rounds, for eight threads


scale, table = 3.0, np.array([1.0, 2.0, 4.0])


@cuda.jit
def with_captured(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = scale * table[i % 3] * x[i] ** 2


@cuda.jit
def with_all(x, out, counts, n):
    i = cuda.grid(1)
    factors = cuda.const.array_like(table)
    kept = cuda.local.array(100, float64)
    if i < x.size:
        value = x[i]
        for k in range(n):
            kept[k] = value
            value = math.sin(value) * factors[k % 3]
            cuda.atomic.max(counts, 0, k)
            cuda.atomic.add(counts, 1, 1)
        out[i] = value * kept[n - 1]


def with_all_model(given):
    x, _, counts, n = given
    value = x
    for k in range(n):
        kept = value
        value = np.sin(value) * table[k % 3]
    return [x, value * kept, np.array([n - 1, counts[1] + n * x.size]), n]


def test_constant_memory_large_arrays_of_a_thread_and_counters():
    check(with_all, (2, 3), [some(5), some(5), np.zeros(2, np.int64), 4], with_all_model)


def test_captured_variables():
    def model(given):
        x, _ = given
        return [x, scale * table[np.arange(x.size) % 3] * x**2]

    check(with_captured, (2, 3), [some(5), some(5)], model)
