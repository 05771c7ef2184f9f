"""`vectorize` for CUDA, on a device or in the simulator: each item is compared with a derivative in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import config, cuda

import zygote_py as zg
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient, value_and_gradient, vectorize

pytestmark = pytest.mark.skipif(
    not (config.ENABLE_CUDASIM or cuda.is_available()), reason="there is neither a device nor the simulator"
)

rng = np.random.default_rng(5)


def wave(x, p):
    return math.sin(x * p) * x


def of_wave(x, p):
    return np.sin(x * p) + x * p * np.cos(x * p), x * x * np.cos(x * p)


@pytest.mark.parametrize(
    ("x", "p"),
    [
        (rng.normal(size=7), rng.normal(size=7)),
        (rng.normal(size=200), 1.5),
        (0.5, rng.normal(size=7)),
        (rng.normal(size=(4, 1)), rng.normal(size=3)),
        (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
        (rng.normal(size=(4, 6))[:, ::2], rng.normal(size=(3, 4)).T),
        (rng.normal(size=(2, 4, 3)), rng.normal(size=(4, 1))),
        (np.empty(0), 2.0),
    ],
)
def test_it_broadcasts_like_numpy(x, p):
    found = vectorize(gradient(wave), target="cuda")(x, p)
    for each, expected in zip(found, np.broadcast_arrays(*of_wave(np.asarray(x), np.asarray(p))), strict=True):
        np.testing.assert_allclose(each, expected, rtol=1e-13)
        assert (each.shape, each.dtype) == (expected.shape, np.float64)


def test_numbers_give_numbers():
    value, (dx, dp) = vectorize(value_and_gradient(wave), target="cuda")(0.5, 2.0)
    assert (value, dx, dp) == pytest.approx((math.sin(1.0) * 0.5, *of_wave(0.5, 2.0)), rel=1e-13)


def test_arrays_on_the_device_give_arrays_on_the_device():
    x, out = cuda.to_device(rng.normal(size=50)), cuda.device_array(50)
    over = vectorize(gradient(wave, wrt="p"), target="cuda")
    found = over(x, 2.0)
    expected = of_wave(x.copy_to_host(), 2.0)[1]
    np.testing.assert_allclose(found.copy_to_host(), expected, rtol=1e-13)
    assert over(x, 2.0, out=out, stream=cuda.stream()) is out
    np.testing.assert_allclose(out.copy_to_host(), expected, rtol=1e-13)
    host = np.empty(50)
    over(x, 2.0, out=host)
    np.testing.assert_allclose(host, expected, rtol=1e-13)


def test_single_precision():
    x = np.linspace(0.1, 1.0, 9, dtype=np.float32)
    found = vectorize(gradient(wave), target="cuda")(x, 2.0)
    for each, expected in zip(found, of_wave(x, np.float32(2.0)), strict=True):
        assert each.dtype == np.float32
        np.testing.assert_allclose(each, expected, rtol=1e-5)


# The loops that other tools for devices are known to fail at.


def product(x, n):
    r = 1.0
    for _ in range(n):
        r *= x
    return r


def skipping(x, n):
    s = 0.0
    for i in range(n):
        if i % 2 == 1:
            continue
        s += x**i
    return s


def nested(x, n):
    s = 0.0
    for i in range(n):
        r = 1.0
        for _ in range(i):
            r *= x
        s += r
    return s


def until(x, n):
    r, k = x, 0
    while r < 50.0 and k < n:
        r = r * x + 1.0
        k += 1
    return r


def early(x, n):
    r = 1.0
    for i in range(n):
        if r > 20.0:
            return r * i
        r *= x + 1.0
    return r


def of_until(x, n):
    r, dr, k = x, 1.0, 0
    while r < 50.0 and k < n:
        r, dr = r * x + 1.0, dr * x + r
        k += 1
    return dr


def of_early(x, n):
    r, dr = 1.0, 0.0
    for i in range(n):
        if r > 20.0:
            return dr * i
        r, dr = r * (x + 1.0), dr * (x + 1.0) + r
    return dr


LOOPS = {
    "a product over a dynamic loop": (product, lambda x, n: n * x ** (n - 1.0)),
    "continue in a loop": (skipping, lambda x, n: sum(i * x ** (i - 1.0) for i in range(2, n, 2))),
    "nested dynamic loops": (nested, lambda x, n: sum(i * x ** (i - 1.0) for i in range(n))),
    "a loop that does not count": (until, of_until),
    "a return from a loop": (early, of_early),
}


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize(("f", "by_hand"), LOOPS.values(), ids=LOOPS)
def test_loops_of_different_lengths_in_each_thread(f, by_hand, mode):
    x, n = rng.uniform(0.5, 2.0, 150), rng.integers(0, 9, 150)
    found, nothing = vectorize(gradient(f, mode=mode), target="cuda")(x, n)
    assert nothing is None
    np.testing.assert_allclose(found, [by_hand(a, b) for a, b in zip(x, n.tolist(), strict=True)], rtol=1e-12)


def test_the_records_are_as_long_as_the_longest_loop_needs():
    over = vectorize(gradient(product, mode="reverse"), target="cuda")
    n = np.array([2, 7, 3])
    bytes_of_one = over.record_bytes(np.ones(1), 1)
    assert over.record_bytes(np.ones(3), n) == 7 * bytes_of_one > 0
    assert over.record_bytes(np.ones(3), 0 * n) == 0
    for longest in (7, 2, 9):  # the workspace is used again
        np.testing.assert_allclose(over(np.full(3, 2.0), n % longest)[0], (n % longest) * 2.0 ** (n % longest - 1.0))


def test_streams_have_workspaces_of_their_own():
    over = vectorize(gradient(product, wrt="x", mode="reverse"), target="cuda")
    x, streams = (
        cuda.to_device(rng.uniform(0.5, 1.5, 20 if config.ENABLE_CUDASIM else 30_000)),
        [cuda.stream() for _ in range(12)],
    )
    found = [over(x, 40 + number, stream=stream) for number, stream in enumerate(streams)]
    cuda.synchronize()
    for number, each in enumerate(found):
        np.testing.assert_allclose(each.copy_to_host(), (40 + number) * x.copy_to_host() ** (39.0 + number), rtol=1e-11)


def dot(w, t):
    s = 0.0
    for i in range(w.size):
        s += w[i] ** 2 * t
    return s


@pytest.mark.parametrize(
    ("w", "t"),
    [
        (rng.normal(size=(5, 3)), rng.normal(size=5)),
        (rng.normal(size=3), rng.normal(size=5)),
        (rng.normal(size=(2, 5, 3)), rng.normal(size=5)),
        (rng.normal(size=(3, 5)).T, 2.0),
        (rng.normal(size=3), 2.0),
    ],
)
def test_arrays_as_items(w, t):
    dw, dt = vectorize(gradient(dot), target="cuda", signature="(k),()->(k),()")(w, t)
    np.testing.assert_allclose(dw, 2.0 * w * np.asarray(t)[..., None] * np.ones((*np.shape(t), 1)), rtol=1e-14)
    np.testing.assert_allclose(dt, np.broadcast_to(np.sum(w**2, axis=-1), dt.shape), rtol=1e-13)


def layers(w, x):
    s = 0.0
    for i in range(w.shape[0]):
        s = math.tanh(s * w[i, 0] + x * w[i, 1])
    return s


def of_layers(w, x):
    """The value and its derivatives, by the chain rule from the front."""
    s, ds, dx = 0.0, np.zeros_like(w), 0.0
    for i in range(w.shape[0]):
        t = math.tanh(s * w[i, 0] + x * w[i, 1])
        slope = 1.0 - t * t
        ds, dx = slope * w[i, 0] * ds, slope * (w[i, 0] * dx + w[i, 1])
        ds[i] += slope * np.array([s, x])
        s = t
    return s, ds, dx


def test_records_and_arrays_as_items():
    w, x = rng.normal(size=(140, 4, 2)), rng.normal(size=140)
    over = vectorize(value_and_gradient(layers), target="cuda", signature="(k,2),()->(),(k,2),()")
    value, (dw, dx) = over(w, x)
    for number in range(0, 140, 13):
        expected = of_layers(w[number], x[number])
        for found, each in zip((value[number], dw[number], dx[number]), expected, strict=True):
            np.testing.assert_allclose(found, each, rtol=1e-12)


@pytest.mark.parametrize("signature", ["(k),(m)->(m),(k)", "(k),(m)->(4),(m)", "(k),(m)->(m),(m)"])
def test_results_have_the_dimensions_that_the_signature_says(signature):
    def two(w, s):
        r = 0.0
        for i in range(w.shape[0]):
            r += w[i] ** 2
        for i in range(s.shape[0]):
            r += s[i] ** 3
        return r

    with pytest.raises(ValueError, match=r"result 0 of .* has the shape \(2,\) for each item; the signature says"):
        vectorize(gradient(two), target="cuda", signature=signature)(np.ones((3, 2)), np.ones((3, 3)))
    dw, ds = vectorize(gradient(two), target="cuda", signature="(k),(m)->(k),(m)")(np.ones((3, 2)), np.ones((3, 3)))
    np.testing.assert_array_equal(dw, np.full((3, 2), 2.0))
    np.testing.assert_array_equal(ds, np.full((3, 3), 3.0))


def test_whole_numbers_in_functions_of_floats():
    n = np.array([10, 3, 1])

    def powers(x, n):
        return x * (np.float_power(n, 20) + np.fabs(n) ** -1 + np.float_power(n, -n))

    found = vectorize(gradient(powers, wrt="x"), target="cuda")(np.ones(3), n)
    np.testing.assert_allclose(found, n**20.0 + 1.0 / n + np.float_power(n, -n), rtol=1e-14)


class Layer(NamedTuple):
    weights: Any
    bias: Any


def through(layers, x):
    y = x
    for layer in layers:
        total = layer.bias
        for i in range(layer.weights.shape[0]):
            total += layer.weights[i] * y
        y = math.sin(total)
    return y


@pytest.mark.parametrize("target", one_in(2, ["cuda", "cpu"]))
def test_structures_with_arrays_as_items(target):
    u, v, a, b = rng.normal(size=(4, 3)), rng.normal(size=(4, 2)), rng.normal(size=4), 0.3
    over = vectorize(gradient(through), target=target, signature="(k),(),(m),(),()->(k),(),(m),(),()")
    (first, second), dx = over((Layer(u, a), Layer(v, b)), 0.7)
    inner = a + u.sum(1) * 0.7
    y = np.sin(inner)
    outer = np.cos(b + v.sum(1) * y)
    assert type(first) is Layer
    slope = outer * v.sum(1) * np.cos(inner)
    np.testing.assert_allclose(first.bias, slope, rtol=1e-12)
    np.testing.assert_allclose(first.weights, np.repeat(0.7 * slope[:, None], 3, 1), rtol=1e-12)
    np.testing.assert_allclose(second.bias, outer, rtol=1e-12)
    np.testing.assert_allclose(second.weights, np.repeat((y * outer)[:, None], 2, 1), rtol=1e-12)
    np.testing.assert_allclose(dx, slope * u.sum(1), rtol=1e-12)
    with pytest.raises(TypeError, match=r"takes 3 arguments, .* not 2, in which there are 5 numbers and arrays"):
        vectorize(gradient(through), target=target, signature="(k),(),()->()")((Layer(u, a), Layer(v, b)), 0.7)


class Rates(NamedTuple):
    a: float
    b: Any


@dataclass(frozen=True)
class Line:
    slope: float
    start: Rates


def by_rates(p, x):
    return p.a * x + p.b * x * x


def test_named_tuples():
    x = np.linspace(0.0, 1.0, 4)
    dp, dx = vectorize(gradient(by_rates), target="cuda")(Rates(2.0, x + 1.0), x)
    assert type(dp) is Rates
    np.testing.assert_allclose(dp.a, x)
    np.testing.assert_allclose(dp.b, x * x)
    np.testing.assert_allclose(dx, 2.0 + 2.0 * (x + 1.0) * x)


scale = 3.0


def captures(x):
    return scale * x * x


def test_captured_variables_are_read_at_each_call(monkeypatch):
    over = vectorize(gradient(captures), target="cuda")
    np.testing.assert_array_equal(over(np.ones(2)), [6.0, 6.0])
    monkeypatch.setitem(globals(), "scale", 5.0)
    np.testing.assert_array_equal(over(np.ones(2)), [10.0, 10.0])
    monkeypatch.setitem(globals(), "scale", np.float32(2.0))
    np.testing.assert_array_equal(over(np.ones(2)), [4.0, 4.0])


def test_second_derivatives():
    x = np.linspace(0.1, 1.0, 5)
    found = vectorize(zg.hessian(lambda x: x**3 * math.exp(x)), target="cuda")(x)
    np.testing.assert_allclose(found, (6 * x + 6 * x**2 + x**3) * np.exp(x), rtol=1e-12)


def raising(x):
    if x < 0.0:
        raise ValueError("negative")
    return x * x


def allocating(x):
    a = np.empty(int(x) + 3)
    for i in range(len(a)):
        a[i] = x * i
    return np.sum(a[::2])


def solving(a):
    return np.linalg.det(a)


@pytest.mark.parametrize(
    ("f", "signature", "message"),
    [
        (raising, None, "exceptions cannot be raised in a CUDA kernel"),
        (allocating, None, "CUDA kernel"),
        (solving, "(n,n)->(n,n)", "CUDA kernel"),
        (lambda x: x * np.reciprocal(int(x)), None, "reciprocal cannot be called"),
    ],
)
def test_what_a_kernel_cannot_do_is_refused(f, signature, message):
    given = np.ones((2, 2)) if signature else np.ones(3)
    with pytest.raises(DifferentiationError, match=message) as caught:
        vectorize(gradient(f), target="cuda", signature=signature)(given)
    assert caught.value.line is not None
    np.testing.assert_allclose(vectorize(gradient(wave, wrt="x"), target="cuda")(np.ones(2), 1.0), of_wave(1.0, 1.0)[0])
