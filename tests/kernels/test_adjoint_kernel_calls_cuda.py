"""Launches of adjoint kernels, and what is refused, on a device or in the simulator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import config, cuda, float64

import zygote_py as zg
from tests.kernels.adjoint_cases import check
from tests.kernels.test_adjoint_kernel_cuda import elementwise, some, strided
from zygote_py import DifferentiationError, adjoint_kernel

pytestmark = pytest.mark.skipif(
    not (config.ENABLE_CUDASIM or cuda.is_available()), reason="there is neither a device nor the simulator"
)


def test_the_active_arrays_are_named():
    adjoint = adjoint_kernel(strided, active=("x", "out"))
    x, y, out = (cuda.to_device(some(5)) for _ in range(3))
    dx, dout = cuda.to_device(np.zeros(5)), cuda.to_device(np.ones(5))
    adjoint[1, 8](x, dx, y, out, dout)
    np.testing.assert_allclose(dx.copy_to_host(), y.copy_to_host() + 2 * x.copy_to_host(), rtol=1e-13)
    assert not dout.copy_to_host().any()


def test_a_second_launch_adds():
    x, out = cuda.to_device(np.arange(4.0)), cuda.to_device(np.zeros(4))
    dx, dout = cuda.to_device(np.ones(4)), cuda.to_device(np.ones(4))

    def square(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] ** 2

    adjoint = adjoint_kernel(square)
    adjoint[1, 4](x, dx, out, dout)
    dout.copy_to_device(np.full(4, 2.0))
    adjoint[1, 4](x, dx, out, dout)
    np.testing.assert_allclose(dx.copy_to_host(), 1 + 2 * np.arange(4.0) * 3)


def test_what_does_not_fit_is_refused_before_the_launch():
    adjoint = adjoint_kernel(elementwise)
    x, out, short = cuda.to_device(some(4)), cuda.to_device(some(4)), cuda.to_device(some(3))
    dx, dout = cuda.to_device(np.zeros(4)), cuda.to_device(np.ones(4))
    single = cuda.to_device(np.zeros(4, np.float32))
    before = out.copy_to_host()
    with pytest.raises(ValueError, match=r"the shadow of `x` has the shape \(3,\), not \(4,\)"):
        adjoint[1, 4](x, short, out, dout)
    with pytest.raises(TypeError, match=r"the shadow of `x` is of dtype float32, not float64"):
        adjoint[1, 4](x, single, out, dout)
    with pytest.raises(TypeError, match=r"takes \(x, dx, out, dout\): .*; 3 arguments were given"):
        adjoint[1, 4](x, dx, out)
    with pytest.raises(TypeError, match=r"argument 1 .* is an array of the host: copy it with cuda.to_device"):
        adjoint[1, 4](x, np.zeros(4), out, dout)
    with pytest.raises(ValueError, match=r"`dx` and `dout` share memory|`dout` and `dx` share memory"):
        adjoint[1, 4](x, dx, out, dx)
    with pytest.raises(ValueError, match=r"`x` and `out` share memory|`out` and `x` share memory"):
        adjoint[1, 4](x, dx, x, dout)
    with pytest.raises(TypeError, match=r"launch the adjoint of a kernel on a grid: elementwise\[blocks, threads\]"):
        adjoint(x, dx, out, dout)
    with pytest.raises(ValueError, match="positive integer"):
        adjoint[0, 4](x, dx, out, dout)
    np.testing.assert_array_equal(out.copy_to_host(), before)
    assert not dx.copy_to_host().any()
    adjoint[1, 4](x, dx, out, dout)  # the next good call works
    assert dx.copy_to_host().all()


def refused(kernel, *arrays, grid=(1, 4), active=None):
    args = []
    for each in arrays:
        args.append(cuda.to_device(each) if isinstance(each, np.ndarray) else each)
        if isinstance(each, np.ndarray) and each.dtype.kind == "f":
            args.append(cuda.to_device(np.zeros_like(each)))
    with pytest.raises(DifferentiationError) as caught:
        adjoint_kernel(kernel, active=active)[grid](*args)
    return caught.value


def test_what_a_kernel_cannot_do_is_refused_with_its_line():
    def allocates(x, out):
        i = cuda.grid(1)
        y = np.zeros(x.size)
        y[0] = x[i]
        out[i] = y[i] + y[0]

    def raises(x, out):
        i = cuda.grid(1)
        if x[i] < 0.0:
            raise ValueError
        out[i] = x[i] ** 2

    def uses_old(x, out):
        i = cuda.grid(1)
        out[i] = cuda.atomic.add(x, 0, 1.0) * x[i]

    def returns(x, out):
        return x[0]

    def shuffles(x, out):
        i = cuda.grid(1)
        out[i] = cuda.shfl_sync(0xFFFFFFFF, x[i], 0)

    for kernel, line in ((allocates, 2), (raises, 3), (uses_old, 2), (shuffles, 2)):
        found = refused(kernel, some(4), some(4))
        assert found.line == kernel.__code__.co_firstlineno + line, str(found)
    refused(returns, some(4), some(4))
    counts = cuda.to_device(np.arange(4))
    with pytest.raises(TypeError, match=r"`out` is active and of type .*: only arrays of floats have a shadow"):
        adjoint_kernel(elementwise, active="out")[1, 4](cuda.to_device(some(4)), counts, counts)
    with pytest.raises(ValueError, match="elementwise has no parameter `y`: it has x, out"):
        adjoint_kernel(elementwise, active=("x", "y"))
    with pytest.raises(TypeError, match=r"a kernel is a function that cuda.jit decorates, not float"):
        adjoint_kernel(2.0)


def test_an_array_that_is_read_and_then_raised_again_is_refused():
    def twice(x, top, out):
        cuda.atomic.max(top, 0, x[0])
        out[0] = top[0] * top[0]
        cuda.atomic.max(top, 0, x[1])

    assert "that was read before" in str(refused(twice, some(2), some(1), some(1), grid=(1, 1)))


def test_threads_that_meet_add_atomically():
    def by_views(x, z, out):
        i = cuda.grid(1)
        y = x[i:]
        out[i] = z[i + y.shape[0]] ** 2

    def by_wrapping(z, out, m):
        i = cuda.grid(1)
        v = 0.0
        k = m[i] - 1
        while k > -2:
            v += z[i + k * cuda.gridsize(1)] ** 2
            k -= 1
        out[i] = v

    for kernel, types in ((by_views, ["f64[::1]"] * 6), (by_wrapping, ["f64[::1]"] * 4 + ["i64[::1]"])):
        assert "cuda.atomic.add(dz" in adjoint_kernel(kernel).source(", ".join(types))


def counted(bins, x, j):
    cuda.atomic.add(bins, j, x)


def test_sums_of_the_kernel_itself_stay_atomic():
    device = cuda.jit(device=True)(counted)

    def histogram(x, bins):
        i = cuda.grid(1)
        for j in range(1, 4):
            cuda.atomic.add(bins, 0, x[i] * x[i])
            cuda.atomic.add(bins, j, x[i])
            device(bins, x[i], j)

    text = adjoint_kernel(histogram).source("f64[::1], f64[::1], f64[::1], f64[::1]", threads=128)
    assert text.count("    cuda.atomic.add(bins, ") == 3
    assert "bins[0] = " not in text


def test_threads_that_return_between_barriers_are_refused():
    def returns(x, out, n):
        s = cuda.shared.array(4, float64)
        t = cuda.threadIdx.x
        s[t] = x[t] * x[t]
        cuda.syncthreads()
        if t >= n:
            return
        v = s[(t + 1) % 4]
        cuda.syncthreads()
        s[t] = v * x[t]
        cuda.syncthreads()
        out[t] = s[(t + 1) % 4] * v

    found = refused(returns, some(4), some(4), 2)
    assert "a barrier that some threads leave out" in str(found)
    assert found.line == returns.__code__.co_firstlineno + 8


def test_a_barrier_after_loops_that_threads_leave_in_different_rounds_is_refused():
    def leaves(x, m, out):
        s = cuda.shared.array(4, float64)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        k = 0
        while k < m[t]:
            k += 1
        if k > 2:
            s[t] = s[(t + 1) % 4] * x[t]
            cuda.syncthreads()
        out[t] = s[t]

    found = refused(leaves, some(4), np.arange(4), some(4))
    assert "a barrier that some threads leave out" in str(found)
    assert found.line == leaves.__code__.co_firstlineno + 10


def leaves_a_value(x, y, out):
    s = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    if t == 3:
        s[3] = x[3] * 2.0
        return
    s[t] = x[t]
    cuda.syncthreads()
    out[t] = s[3] * s[2 - t]


def leaves_a_sum(x, y, out):
    t = cuda.threadIdx.x
    if t >= 2:
        cuda.atomic.add(y, 0, x[t] * x[t])
        return
    cuda.syncthreads()
    out[t] = y[0] * x[t]


def in_the_other_branch(x, y, out):
    t = cuda.threadIdx.x
    if t == 0:
        y[0] = x[3] * x[3]
    else:
        cuda.syncthreads()
        out[t] = y[0] * x[t]


@pytest.mark.parametrize("kernel", [leaves_a_value, leaves_a_sum, in_the_other_branch])
def test_threads_that_do_something_instead_of_a_barrier_are_refused(kernel):
    assert "a barrier that some threads leave out" in str(refused(kernel, some(4), some(4), some(4)))


@cuda.jit
def pads(x, out, n):
    s = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    if t >= n:
        s[t] = 0.0
        out[cuda.grid(1)] = 3.0 * x[cuda.grid(1)]
        return
    s[t] = x[t]
    cuda.syncthreads()
    out[cuda.grid(1)] = s[t] * s[3 - t]


def pads_model(given):
    x, _, n = given
    padded = np.where(np.arange(4) < n, x, 0.0)
    return [x, np.where(np.arange(4) < n, padded * padded[::-1], 3.0 * x), n]


def test_threads_that_pad_or_write_elements_of_their_own_may_return():
    check(pads, (1, 4), [some(4), some(4), 3], pads_model, rtol=1e-6)


@cuda.jit
def returns_at_the_start(x, out, n):
    i, t = cuda.grid(1), cuda.threadIdx.x
    a = cuda.shared.array(4, float64)
    if i >= n:
        return
    a[t] = math.sin(x[i])
    cuda.syncthreads()
    for _ in range(3):
        v = a[0] * x[i]
        cuda.syncthreads()
        a[t] = v * a[t]
        cuda.syncthreads()
    out[i] = a[t] * a[0]


def returns_at_the_start_model(given):
    x, out, n = given
    out = out.copy()
    for start in range(0, n, 4):
        own = x[start : min(start + 4, n)]
        a = np.sin(own)
        for _ in range(3):
            a = a[0] * own * a
        out[start : start + len(own)] = a * a[0]
    return [x, out, n]


def test_threads_that_return_before_loops_with_barriers():
    check(returns_at_the_start, (2, 4), [some(8), some(8), 6], returns_at_the_start_model, rtol=1e-6)


def with_a_rule(x):
    return x * x


@zg.adjoint(with_a_rule)
def rule_for_it(x):
    return with_a_rule(x), lambda dy: (3.0 * x * dy,)


def test_functions_with_a_rule_of_their_own_are_refused():
    def calls(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = with_a_rule(x[i])

    assert "`with_a_rule`, which has a rule of its own" in str(refused(calls, some(4), some(4)))


def test_a_maximum_of_a_sum_of_threads_is_refused_since_its_bits_vary():
    def largest_sum(x, top):
        s = cuda.shared.array(1, float64)
        if cuda.threadIdx.x == 0:
            s[0] = 0.0
        cuda.syncthreads()
        cuda.atomic.add(s, 0, x[cuda.grid(1)])
        cuda.syncthreads()
        cuda.atomic.max(top, 0, s[0])

    assert "whose last bits vary" in str(refused(largest_sum, some(4), some(1)))


def test_a_maximum_in_single_precision():
    def largest(x, top):
        i = cuda.grid(1)
        if i < x.size:
            cuda.atomic.max(top, 0, x[i] * 0.1 + x[i] * 0.3)  # in double precision, and rounded

    x = cuda.to_device(np.array([1.0, 1.7, 0.3], np.float32))
    dx, top, dtop = (cuda.to_device(np.array(each, np.float32)) for each in (np.zeros(3), [0.0], [1.0]))
    adjoint_kernel(largest)[1, 4](x, dx, top, dtop)
    np.testing.assert_allclose(dx.copy_to_host(), [0.0, 0.4, 0.0], rtol=1e-6)
    assert dtop.copy_to_host()[0] == 0.0


def test_large_arrays_of_a_thread_are_indexed_from_the_end():
    def from_the_end(x, out):
        i = cuda.grid(1)
        kept = cuda.local.array(100, float64)
        if i < x.size:
            for j in range(100):
                kept[j - 100] = j * x[i]
            out[i] = kept[-1] * kept[-2] + kept[3]

    x = some(5)
    values, dx = cuda.to_device(x), cuda.to_device(np.zeros(5))
    out, dout = cuda.to_device(np.zeros(5)), cuda.to_device(np.ones(5))
    adjoint_kernel(from_the_end)[1, 8](values, dx, out, dout)
    np.testing.assert_allclose(out.copy_to_host(), 99 * 98 * x * x + 3 * x, rtol=1e-13)
    np.testing.assert_allclose(dx.copy_to_host(), 2 * 99 * 98 * x + 3, rtol=1e-13)


def test_shared_arrays_that_hold_constants_have_no_shadow():
    def weighted(place, weight, out):
        places, weights = cuda.shared.array(4, float64), cuda.shared.array((4, 1), float64)
        i, t = cuda.grid(1), cuda.threadIdx.x
        places[t] = place[i]
        weights[t, 0] = weight[i]
        cuda.syncthreads()
        out[i] = places[3 - t] * weights[3 - t, 0]

    x, w = some(8), some(8)
    dw, dout = cuda.to_device(np.zeros(8)), cuda.to_device(np.ones(8))
    adjoint = adjoint_kernel(weighted, active=("weight", "out"))
    adjoint[2, 4](cuda.to_device(x), cuda.to_device(w), dw, cuda.to_device(np.zeros(8)), dout)
    np.testing.assert_array_equal(dw.copy_to_host(), x)
    text = adjoint.source("f64[::1], f64[::1], f64[::1], f64[::1], f64[::1]", threads=4)
    assert "dweights" in text
    assert "dplaces" not in text
