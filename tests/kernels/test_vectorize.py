"""Derivatives over arrays of inputs: each item is compared with a derivative in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit

import zygote_py as zg
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient, value_and_gradient, vectorize

rng = np.random.default_rng(3)


def wave(x, p):
    return math.sin(x * p) * x


def of_wave(x, p):
    return np.sin(x * p) + x * p * np.cos(x * p), x * x * np.cos(x * p)


@pytest.mark.parametrize("target", ["cpu", "parallel"])
@pytest.mark.parametrize(
    ("x", "p"),
    [
        (rng.normal(size=7), rng.normal(size=7)),
        (rng.normal(size=7), 1.5),
        (0.5, rng.normal(size=7)),
        (rng.normal(size=(4, 1)), rng.normal(size=3)),
        (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
        (rng.normal(size=(4, 6))[:, ::2], rng.normal(size=(3, 4)).T),
        (rng.normal(size=(2, 4, 3)), rng.normal(size=(4, 1))),
        (np.asfortranarray(rng.normal(size=(4, 3))), np.float64(0.3)),
        (np.empty(0), 2.0),
        (np.empty((0, 3)), np.ones(3)),
        (np.ones((1, 1)), 2.0),
        ([0.5, 0.7], [[1.0], [2.0]]),
    ],
)
def test_it_broadcasts_like_numpy(x, p, target):
    found = vectorize(gradient(wave), target=target)(x, p)
    for each, expected in zip(found, np.broadcast_arrays(*of_wave(np.asarray(x), np.asarray(p))), strict=True):
        np.testing.assert_allclose(each, expected, rtol=1e-14)
        assert each.shape == expected.shape
        assert each.dtype == np.float64


def test_numbers_give_numbers():
    value, (dx, dp) = vectorize(value_and_gradient(wave))(0.5, 2.0)
    assert isinstance(value, np.float64)
    assert (value, dx, dp) == pytest.approx((math.sin(1.0) * 0.5, *of_wave(0.5, 2.0)), rel=1e-14)


def test_one_parameter_gives_one_array():
    x = np.linspace(0.1, 1.0, 5)
    np.testing.assert_allclose(vectorize(gradient(wave, wrt="p"))(x, 2.0), of_wave(x, 2.0)[1], rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_numbers_of_python_are_as_precise_as_the_arrays(dtype):
    x = np.linspace(0.1, 1.0, 5, dtype=np.float32)

    def f(x, p):
        return (x * p).real ** 2

    found = vectorize(gradient(f, wrt="x"))(x, 2.0 if dtype == "float32" else 2.0 + 0j)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 8.0 * x, rtol=1e-6)
    both = vectorize(gradient(f, wrt="x"))(x, np.float64(2.0))
    np.testing.assert_allclose(both, 8.0 * x, rtol=1e-6)


def test_integers_and_truth_values_are_passed():
    def f(x, n, squared):
        r = 1.0
        for _ in range(n):
            r *= x
        return r * r if squared else r

    n = np.array([0, 1, 3])
    squared = np.array([[False], [True]])
    found = vectorize(gradient(f))(2.0, n, squared)
    assert found[1:] == (None, None)
    power = np.where(squared, 2 * n, n)
    np.testing.assert_allclose(found[0], power * 2.0 ** (power - 1.0), rtol=1e-14)


def dot(w, t):
    s = 0.0
    for i in range(w.size):
        s += w[i] ** 2 * t
    return s


@pytest.mark.parametrize("target", ["cpu", "parallel"])
@pytest.mark.parametrize(
    ("w", "t"),
    one_in(
        2,
        [
            (rng.normal(size=(5, 3)), rng.normal(size=5)),
            (rng.normal(size=(5, 3)), 2.0),
            (rng.normal(size=3), rng.normal(size=5)),
            (rng.normal(size=(2, 5, 3)), rng.normal(size=5)),
            (rng.normal(size=(3, 5)).T, rng.normal(size=(2, 5))),
            (rng.normal(size=(5, 1, 3)), rng.normal(size=(1, 2))),
            (rng.normal(size=(0, 3)), 2.0),
            (rng.normal(size=(4, 0)), 2.0),
        ],
    ),
)
def test_arrays_as_items(w, t, target):
    dw, dt = vectorize(gradient(dot), target=target, signature="(k),()->(k),()")(w, t)
    np.testing.assert_allclose(dw, 2.0 * w * np.asarray(t)[..., None] * np.ones((*np.shape(t), 1)), rtol=1e-14)
    np.testing.assert_allclose(dt, np.broadcast_to(np.sum(w**2, axis=-1), dt.shape), rtol=1e-13)


def test_hessians_and_fixed_dimensions():
    def f(w):
        return w[0] ** 3 * w[1]

    w = rng.normal(size=(4, 2))
    found = vectorize(zg.hessian(f), signature="(2)->(2,2)")(w)
    x, y = w.T
    expected = np.stack([np.stack([6 * x * y, 3 * x**2], axis=-1), np.stack([3 * x**2, 0 * x], axis=-1)], axis=-2)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


class Rates(NamedTuple):
    a: float
    b: Any


@dataclass(frozen=True)
class Line:
    slope: float
    start: Rates


def line(p, x):
    return p.slope * x + p.start.a * p.start.b * x * x


@pytest.mark.parametrize("b", [np.arange(4.0), 2.0])
def test_structures(b):
    x = np.linspace(0.0, 1.0, 4)
    dp, dx = vectorize(gradient(line))(Line(1.0, Rates(x + 1.0, b)), x)
    assert type(dp) is Line
    assert type(dp.start) is Rates
    np.testing.assert_allclose(dp.slope, x)
    np.testing.assert_allclose(dp.start.a, b * x * x)
    np.testing.assert_allclose(dp.start.b, (x + 1.0) * x * x)
    np.testing.assert_allclose(dx, 1.0 + 2.0 * (x + 1.0) * b * x)


def test_results_are_stored_where_they_are_wanted():
    x = np.linspace(0.1, 1.0, 6).reshape(2, 3)
    out = np.zeros((2, 3)), np.zeros((3, 2)).T
    over = vectorize(gradient(wave))
    assert over(x, 2.0, out=out) is out
    for each, expected in zip(out, of_wave(x, 2.0), strict=True):
        np.testing.assert_allclose(each, expected, rtol=1e-14)
    same = x.copy()
    over(same, 2.0, out=(same, out[1]))
    np.testing.assert_allclose(same, of_wave(x, 2.0)[0], rtol=1e-14)
    line = np.linspace(0.1, 1.0, 6)
    over(line[:-1], 2.0, out=(line[1:], np.empty(5)))
    np.testing.assert_allclose(line[1:], of_wave(np.linspace(0.1, 1.0, 6)[:-1], 2.0)[0], rtol=1e-14)
    one = np.zeros(3)
    assert vectorize(gradient(wave, wrt=0))(x[0], 2.0, out=one) is one
    np.testing.assert_allclose(one, of_wave(x[0], 2.0)[0], rtol=1e-14)


scale = 3.0
table = np.array([1.0, 2.0])


def captures(x):
    return scale * x * table[1]


def test_captured_variables_are_read_at_each_call(monkeypatch):
    over = vectorize(gradient(captures))
    x = np.ones(2)
    np.testing.assert_array_equal(over(x), [6.0, 6.0])
    monkeypatch.setitem(globals(), "scale", 5.0)
    np.testing.assert_array_equal(over(x), [10.0, 10.0])
    monkeypatch.setitem(globals(), "scale", np.float32(2.0))
    np.testing.assert_array_equal(over(x), [4.0, 4.0])
    table[1] = 7.0
    try:
        np.testing.assert_array_equal(over(x), [14.0, 14.0])
    finally:
        table[1] = 2.0


def test_results_may_be_stored_in_a_captured_array():
    held = np.array([1.0, 2.0, 3.0])

    def f(x):
        return x * (held[0] + held[1] + held[2])

    np.testing.assert_array_equal(vectorize(gradient(f))(np.ones(3), out=held), [6.0, 6.0, 6.0])


def test_functions_of_any_number_of_arguments_and_defaults():
    def total(*values):
        s = 0.0
        for value in values:
            s += value * value
        return s

    x = np.arange(3.0)
    found = vectorize(gradient(total))(x, 2.0)
    np.testing.assert_allclose(found[0][0] if isinstance(found[0], tuple) else found[0], 2.0 * x)

    def scaled(x, k=3.0):
        return x * x * k

    over = vectorize(gradient(scaled, wrt="x"))
    np.testing.assert_allclose(over(x), 6.0 * x)
    np.testing.assert_allclose(over(x, k=1.0), 2.0 * x)


def test_as_decorator_and_text():
    @vectorize(target="parallel", signature="(k),()->(k),()")
    @gradient
    def over(w, t):
        return np.sum(w) * t

    np.testing.assert_allclose(over(np.ones((2, 3)), 2.0)[0], 2.0 * np.ones((2, 3)))
    assert repr(vectorize(gradient(wave))) == "vectorize(<gradient of wave>, target='cpu')"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: vectorize(wave), TypeError, "takes a derivative"),
        (lambda: vectorize(gradient(wave), target="gpu"), ValueError, "the target is one of 'cpu', 'parallel', 'cuda'"),
        (lambda: vectorize(gradient(wave), signature="(k)->k"), ValueError, "not a signature"),
        (lambda: vectorize(gradient(wave), signature="(k)->(n)"), ValueError, "the dimension `n` of an output"),
        (lambda: vectorize(gradient(wave))(np.ones(2), np.ones(3)), ValueError, r"do not broadcast: `x` \(2,\), `p`"),
        (lambda: vectorize(gradient(wave))(np.ones(2)), TypeError, "missing|1 argument|`p`"),
        (lambda: vectorize(gradient(wave))(np.ones(2), 1.0, 2.0), TypeError, "wave"),
        (lambda: vectorize(gradient(dot), signature="(k),()->(k),()")(2.0, 1.0), ValueError, "`w` has 0 dimensions"),
        (lambda: vectorize(gradient(dot), signature="(k)->(k),()")(np.ones(2), 1.0), TypeError, "takes 1 arguments"),
        (lambda: vectorize(gradient(dot), signature="(k),()->(k)")(np.ones(2), 1.0), TypeError, "returns 2 numbers"),
        (lambda: vectorize(gradient(dot), signature="(k),()->(),()")(np.ones(2), 1.0), TypeError, "result 0 of"),
        (
            lambda: vectorize(gradient(dot), signature="(2),()->(2),()")(np.ones(3), 1.0),
            ValueError,
            "`w` is 3, where 2",
        ),
        (lambda: vectorize(gradient(wave))(np.ones(2), 1.0, out=np.ones(2)), TypeError, "`out` has 1 arrays, where 2"),
        (
            lambda: vectorize(gradient(wave, wrt="x"))(np.ones(2), 1.0, out=np.ones(3)),
            ValueError,
            r"array 0 of `out` is float64 of shape \(3,\), where float64 of shape \(2,\)",
        ),
        (lambda: vectorize(gradient(wave))(np.ones(2), 1.0, out=[np.ones(2)] * 2), TypeError, "not a list"),
        (lambda: vectorize(gradient(wave))(np.ones(2), 1.0, stream=3), TypeError, "takes no stream"),
        (lambda: vectorize(gradient(lambda x, stream: x * stream))(1.0, 2.0), TypeError, "has a parameter `stream`"),
        (lambda: vectorize(gradient(wave))(np.ma.array([1.0, 2.0]), 1.0), TypeError, "masked arrays"),
        (lambda: vectorize(gradient(lambda x: np.nextafter(x, 1.0)))(np.ones(2)), DifferentiationError, "nextafter"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_two_inputs_with_one_dimension_must_agree():
    def f(a, b):
        return np.sum(a * b)

    over = vectorize(gradient(f), signature="(k),(k)->(k),(k)")
    with pytest.raises(
        ValueError, match=r"the dimension `k` of the argument `b` is 3, where 2 is expected, as `a` has"
    ):
        over(np.ones((4, 2)), np.ones(3))
    da, db = over(np.ones((4, 2)), np.arange(2.0))
    np.testing.assert_array_equal(da, np.tile([0.0, 1.0], (4, 1)))
    np.testing.assert_array_equal(db, np.ones((4, 2)))


def test_arrays_without_a_signature_are_refused():
    def f(x):
        return np.array([x, x * x])

    with pytest.raises(TypeError, match="name their dimensions"):
        vectorize(zg.derivative(f))(np.ones(2))


@pytest.mark.parametrize("target", ["cpu", "parallel"])
@pytest.mark.parametrize("last", [0, 3, -1])
def test_an_exception_in_an_item_ends_the_call(target, last):
    def f(x):
        if x > 2.0:
            raise ValueError("too large")
        return x * x

    over = vectorize(gradient(f), target=target)
    x = np.ones(1000)
    x[last] = 3.0
    with pytest.raises(ValueError, match="too large"):
        over(x)
    np.testing.assert_array_equal(over(np.arange(2.0)), [0.0, 2.0])


def test_no_thread_writes_to_what_others_read():
    def f(w, x):
        w[0] = w[0] + x
        return w[0] * w[0] * x

    w, x = np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    with pytest.raises(Exception, match=r"(?i)read-?only"):
        vectorize(gradient(f, wrt="x"), target="parallel", signature="(k),()->()")(w, x)
    np.testing.assert_array_equal(w, [1.0, 2.0])


def test_results_have_the_dimensions_that_the_signature_says():
    def f(w, s):
        return np.sum(w**2) + np.sum(s**3)

    over = vectorize(gradient(f), signature="(k),(m)->(k),(k)")
    with pytest.raises(ValueError, match="result 1 of an item has other dimensions than the signature says"):
        over(np.ones((2, 3)), np.ones((2, 1)))


def test_results_may_be_stored_in_an_array_of_a_captured_tuple():
    held = (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))

    def f(x):
        return x * x * held[0][0]

    np.testing.assert_array_equal(vectorize(gradient(f))(np.full(3, 2.0), out=held[0]), [4.0, 4.0, 4.0])


def test_constants_in_auxiliary_output():
    value = vectorize(value_and_gradient(lambda a: (a * a, 3), has_aux=True))(np.arange(3.0))
    np.testing.assert_array_equal(value[0][0], [0.0, 1.0, 4.0])
    np.testing.assert_array_equal(value[0][1], [3, 3, 3])
    np.testing.assert_array_equal(value[1][0] if isinstance(value[1], tuple) else value[1], [0.0, 2.0, 4.0])


@njit("f8(f8[:], f8)")
def for_some_types(w, t):
    return np.sum((w - t) ** 2)


def test_an_item_that_is_broadcast_is_the_same_for_all():
    def squared(w, t):
        w[0] = w[0] * t
        return w[0] * w[0]

    over = zg.vectorize(zg.gradient(squared, wrt="t"), signature="(k),()->()")
    w, t = np.array([3.0, 1.0]), np.array([1.0, 2.0, 4.0])
    for given in (w, w[None], np.stack((w, w))[:, None]):
        kept = given.copy()
        expected = np.broadcast_to(2.0 * 9.0 * t, (*given.shape[:-1][:1], 3) if given.ndim == 3 else (3,))
        np.testing.assert_array_equal(over(given, t), expected)
        np.testing.assert_array_equal(given, kept)
    rows = np.stack((w, w, w))  # one for each: the function writes to it
    np.testing.assert_array_equal(over(rows, t), 18.0 * t)
    np.testing.assert_array_equal(rows[:, 0], 3.0 * t)
    dw, dt = zg.vectorize(zg.gradient(lambda w, t: for_some_types(w, t)), signature="(k),()->(k),()")(w, t)
    np.testing.assert_array_equal(dw, 2.0 * (w - t[:, None]))
    np.testing.assert_array_equal(dt, -2.0 * np.sum(w - t[:, None], axis=1))


def test_results_that_would_overwrite_each_other_are_refused():
    over = zg.vectorize(zg.gradient(lambda x, p: p * x * x))
    x, place = np.array([1.0, 2.0]), np.empty((2, 2))
    with pytest.raises(ValueError, match="the arrays 0 and 1 of `out` share memory"):
        over(x, 3.0, out=(place[0], place[0]))
    with pytest.raises(ValueError, match="several elements at the same place"):
        over(x, 3.0, out=(place[0], np.lib.stride_tricks.as_strided(place[1], (2,), (0,))))
    over(x, 3.0, out=(place[:, 0], place[:, 1]))
    np.testing.assert_array_equal(place, [[6.0, 1.0], [12.0, 4.0]])
