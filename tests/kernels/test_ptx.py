"""Derivatives in kernels, compiled without a device: figures of the assembler where it is installed."""

from __future__ import annotations

import math
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from numba import config, types

import zygote_py as zg
from zygote_py import DifferentiationError
from zygote_py.kernels import sums

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
if config.ENABLE_CUDASIM:
    pytest.skip("the simulator does not compile", allow_module_level=True)

from numba import cuda
from numba.cuda import dispatcher


@contextmanager
def without_device(capability):
    known = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    try:
        yield
    finally:
        dispatcher.get_current_device = known


def ptx(kernel, kinds, capability=(9, 0)):
    with without_device(capability):
        return cuda.compile_ptx(kernel.py_func, kinds, cc=capability)[0]


def wave(x, p):
    return math.sin(x * p) * x


def powers(x):
    r = 1.0
    for _ in range(5):
        r = r * x + x
    return r


def product(x, n):
    r = 1.0
    for _ in range(n):
        r *= x
    return r


weights = np.array([1.0, 2.0])
scale = 3.0


def captures(x):
    return x * x * weights[1] * scale


of_wave, both, of_powers, of_captures = map(zg.gradient, (wave, wave, powers, captures))
value, second, of_product = zg.value_and_gradient(wave), zg.hessian(powers), zg.gradient(product, mode="reverse")


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)])
@pytest.mark.parametrize("kind", [types.float32, types.float64])
def test_derivatives_are_device_functions(kind, capability):
    @cuda.jit
    def kernel(x, p, out):
        i = cuda.grid(1)
        if i < x.size:
            dx, dp = of_wave(x[i], p)
            v, (_, again) = value(x[i], p=p)
            out[i] = dx + dp + v + again + of_powers(x[i]) + second(x[i]) + of_captures(x[i])

    made = ptx(kernel, (kind[::1], kind, kind[::1]), capability)
    assert f".target sm_{capability[0]}{capability[1]}" in made
    assert "NRT" not in made  # nothing is allocated by Numba's runtime
    assert "malloc" not in made


rates = zg.gradient(lambda a, b, c, d, e, n: sum_of_rates(a, b, c, d, e, n))


def sum_of_rates(a, b, c, d, e, n):
    x = 1.0
    for _ in range(n):
        x = math.sin(a * x + b) * c + d * x * e
    return x


def test_loops_of_unknown_length_in_forward_mode():
    @cuda.jit
    def kernel(x, n, out):
        da, db, dc, dd, de, _ = rates(x[0], x[1], x[2], x[3], x[4], n)
        out[0] = da + db + dc + dd + de

    assert "NRT" not in ptx(kernel, (types.float32[::1], types.int64, types.float32[::1]))


def test_records_of_unknown_length_are_refused():
    @cuda.jit
    def kernel(x, n, out):
        out[0] = of_product(x[0], n)[0]

    with pytest.raises(DifferentiationError, match=r"records values of its loops .*how many is not known") as caught:
        ptx(kernel, (types.float64[::1], types.int64, types.float64[::1]))
    assert caught.value.line == product.__code__.co_firstlineno
    assert zg.gradient(wave)(0.0, 1.0) == (0.0, 0.0)  # the next good call works


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)])
def test_the_kernels_of_vectorized_derivatives(capability):
    over = zg.vectorize(of_product, target="cuda")
    made = over.inspect_ptx(np.ones(3, np.float32), np.arange(3), capability=capability)
    assert f".target sm_{capability[0]}{capability[1]}" in made
    assert "NRT" not in made
    assert "EXIT" in over.inspect_sass(np.ones(3), 2, capability=capability)
    text = over.source(np.ones(3), 2)
    assert "def product_gradient(x, n, r_record, lane, lanes):" in text
    assert "def product_gradient_lengths(x, n):" in text
    assert "for i in range(lane, count, lanes):" in text


def test_without_records_a_thread_has_one_item_and_no_loop():
    over = zg.vectorize(zg.gradient(wave), target="cuda")
    text = over.source(np.ones(3), 2.0)
    assert "    if i < count:" in text
    assert "range" not in text
    assert "nctaid" not in over.inspect_ptx(np.ones(3), 2.0)


def rounding(x, y):
    a = np.floor(x) + np.ceil(x) + np.trunc(x) + np.rint(x) + np.round(x) + np.fmod(x, y) + np.remainder(x, y)
    b = np.cbrt(x) + np.sinc(x) + np.logaddexp(x, y) + np.logaddexp2(x, y) + np.exp2(x) + np.ldexp(x, 3)
    return (a * b + np.fmin(x, y)) * np.fmax(x, y) + (x if np.signbit(y) else y) + round(x) * y + math.trunc(x) * y


def rate(x, p, n):
    for _ in range(n):
        x += math.sin(x * p)
    return x


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_functions_that_are_written_out_and_hessians_of_loops(kind):
    x = np.ones(3, kind)
    assert "NRT" not in zg.vectorize(zg.gradient(rounding), target="cuda").inspect_ptx(x, x)
    assert "NRT" not in zg.vectorize(zg.hessian(rate, wrt=(0, 1)), target="cuda").inspect_ptx(x, x, 5)


def shared_by_all(x, p, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = p[0, 0] * x[i] + p[0, 1]


@pytest.mark.parametrize("kind", [types.float32, types.float64])
def test_sums_in_a_fixed_order(kind):
    adjoint = zg.adjoint_kernel(shared_by_all, deterministic=True)
    kinds = (kind[::1], kind[::1], kind[:, ::1], kind[:, ::1], kind[::1], kind[::1])
    made = adjoint.inspect_ptx(*kinds)
    assert "atom" not in made
    assert "red." not in made
    parts = sums._kernel(2, str(kind))
    assert "bar.sync" in ptx(parts, (kind[::1], types.int64, kind[:, ::1]))
