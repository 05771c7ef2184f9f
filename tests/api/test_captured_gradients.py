"""Gradients with respect to captured variables: named in `wrt`, or all of them with `closure=True`."""

from __future__ import annotations

import math
import os
import pickle
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from tests.api.captured_modules import module
from tests.checking.reference import central
from tests.checking.slopes import differences
from tests.plain import plain
from zygote_py import DifferentiationError, gradient, value_and_gradient

pytestmark = pytest.mark.interpreted

W = np.array([0.5, -1.5, 2.0])
SCALE = 2.5
POWER = 2
COUNTS = np.array([1, 2, 3])
_hidden = 3.0
RATES = (0.5, 2.0)


def model(x):
    return SCALE * np.sum(W * x) ** POWER + math.sin(W[0]) * COUNTS[1]


def expected(w=W, scale=SCALE, x=1.5):
    """By hand: the gradients of `model` with respect to x, W and SCALE."""
    s = np.sum(w * x)
    dw = np.full(w.shape, 2.0 * scale * s * x)
    dw[0] += 2.0 * math.cos(w[0])
    return 2.0 * scale * s * np.sum(w), dw, s * s


# What is asked for


def test_by_name():
    dx, dw, ds = expected()
    for wrt, right in (("W", dw), ("SCALE", ds), (("x", "W"), (dx, dw)), (("SCALE", 0, "W"), (ds, dx, dw))):
        found = gradient(model, wrt=wrt)(1.5)
        pairs = zip(found, right, strict=True) if isinstance(right, tuple) else [(found, right)]
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=1e-13)
    value, dw_again = value_and_gradient(model, wrt="W")(1.5)
    assert value == pytest.approx(model(1.5))
    np.testing.assert_array_equal(dw_again, gradient(model, wrt="W")(1.5))


def test_all_of_them():
    dx, dw, ds = expected()
    found, captured = gradient(model, closure=True)(1.5)
    assert type(captured).__name__ == "Captured"
    assert set(captured._fields) == {"W", "SCALE"}  # integers have no gradient
    assert found == pytest.approx(dx)
    assert pytest.approx(ds) == captured.SCALE
    np.testing.assert_allclose(captured.W, dw)
    value, (found, captured) = value_and_gradient(model, closure=True)(1.5)
    assert (value, found) == pytest.approx((model(1.5), dx))
    (found,), captured = gradient(model, wrt=("x",), closure=True)(1.5)
    assert found == pytest.approx(dx)
    found, captured = gradient(model, wrt="W", closure=True)(1.5)
    np.testing.assert_allclose(found, captured.W)


def test_as_a_decorator():
    @gradient(wrt=("x", "SCALE"))
    def f(x):
        return SCALE * x

    @value_and_gradient(closure=True)
    def g(x):
        return SCALE * x

    assert f(2.0) == (2.5, 2.0)
    value, (dx, captured) = g(2.0)
    assert (value, dx, captured.SCALE) == (5.0, 2.5, 2.0)


def test_of_a_function_without_parameters():
    def loss():
        return np.sum(W * W) * SCALE

    np.testing.assert_allclose(gradient(loss, wrt="W")(), 5.0 * W)
    none, captured = gradient(loss, closure=True)()
    assert none == ()
    np.testing.assert_allclose(captured.W, 5.0 * W)
    assert pytest.approx(np.sum(W * W)) == captured.SCALE


def test_where_nothing_is_captured():
    dx, captured = gradient(lambda x: x * x, closure=True)(3.0)
    assert (dx, captured) == (6.0, ())
    assert captured._fields == ()


def test_a_captured_variable_that_does_not_matter():
    dx, captured = gradient(lambda x: x * x + 0.0 * len(W), closure=True)(3.0)
    assert dx == 6.0
    np.testing.assert_array_equal(captured.W, np.zeros(3))


def test_what_is_given_can_be_written_to_and_pickled():
    result = gradient(model, closure=True)(1.5)
    result[1].W[0] = 7.0
    again = pickle.loads(pickle.dumps(result))
    assert type(again[1]) is type(result[1])
    assert again[1].W[0] == 7.0
    assert repr(again) == repr(result)
    df = pickle.loads(pickle.dumps(gradient(model, closure=True)))
    np.testing.assert_allclose(df(1.5)[1].W, expected()[1])


def test_plain_python():
    df = value_and_gradient(model, closure=True)
    value, (dx, captured) = df(1.5)
    in_python = plain(df.source(1.5))
    order = re.search(r"\(x, (.*)\):", df.source(1.5))[1].split(", ")
    value_, (dx_, captured_) = in_python(1.5, *(globals()[name] for name in order))
    assert (value_, dx_) == pytest.approx((value, dx))
    assert type(captured_) is type(captured)
    np.testing.assert_allclose(captured_.W, captured.W)


# At each call


def test_a_variable_that_is_bound_anew(monkeypatch):
    df = gradient(model, wrt=("W", "SCALE"))
    for weights, scale in (
        (np.ones(5), 1.0),
        (np.array([1.0, -2.0], np.float32), 3.0),
        (np.ones((2, 3))[:, 1], 2.0),
        (W[::-1], np.float32(0.5)),
    ):
        monkeypatch.setitem(globals(), "W", weights)
        monkeypatch.setitem(globals(), "SCALE", scale)
        dw, ds = df(1.5)
        assert (dw.shape, dw.dtype) == (weights.shape, weights.dtype)
        np.testing.assert_allclose(dw, expected(weights, scale)[1], rtol=1e-5)
        np.testing.assert_allclose(ds, expected(weights, scale)[2], rtol=1e-5)
    monkeypatch.setitem(globals(), "SCALE", 3)
    with pytest.raises(DifferentiationError, match=r"no gradient with respect to `SCALE`, a captured int"):
        df(1.5)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    np.testing.assert_allclose(df(1.5)[1], expected(weights, 3.0)[2], rtol=1e-5)


def test_an_array_that_is_written_to():
    weights = np.ones(2)
    df = gradient(lambda x: np.sum(weights * weights) * x, wrt="weights")
    np.testing.assert_array_equal(df(1.0), [2.0, 2.0])
    weights[0] = 5.0
    np.testing.assert_array_equal(df(1.0), [10.0, 2.0])


def test_training_with_no_argument_list():
    rng = np.random.default_rng(1)
    w1, b1, w2, b2 = rng.normal(size=(8, 2)), np.zeros(8), rng.normal(size=8), 0.0
    inputs = rng.normal(size=(20, 2))
    targets = inputs[:, 0] * inputs[:, 1]

    def predict(x):
        return np.dot(w2, np.tanh(np.dot(w1, x) + b1)) + b2

    def loss():
        total = 0.0
        for i in range(len(inputs)):
            total += (predict(inputs[i]) - targets[i]) ** 2
        return total / len(inputs)

    step = value_and_gradient(loss, closure=True)
    values = []
    for _ in range(60):
        value, (_, d) = step()
        values.append(value)
        w1 = w1 - 0.05 * d.w1
        b1 -= 0.05 * d.b1
        w2 = w2 - 0.05 * d.w2
        b2 -= 0.05 * d.b2
    assert values[-1] < 0.5 * values[0]
    assert set(d._fields) == {"w1", "b1", "w2", "b2", "inputs", "targets"}
    _, (_, d) = step()
    at = w1.copy()

    def of_w1(changed):
        nonlocal w1
        w1 = changed
        return loss()

    np.testing.assert_allclose(d.w1, differences(of_w1, at).reshape(at.shape), rtol=1e-6, atol=1e-8)


# What may be captured


class Pair(NamedTuple):
    a: float
    w: np.ndarray


@dataclass(frozen=True)
class Layer:
    w: np.ndarray
    b: float

    def __call__(self, x):
        return np.sum(np.tanh(self.w * x)) + self.b


class Numbers(NamedTuple):
    a: float
    b: float


PAIR = Pair(2.0, np.array([1.0, 3.0]))
LAYER = Layer(np.array([0.5, 1.0]), 2.0)
NUMBERS = Numbers(2.0, 5.0)
NESTED = (np.ones(2), (3.0, LAYER))


def test_structures():
    x = 0.5
    dw = x * (1.0 - np.tanh(LAYER.w * x) ** 2)
    _dx, d = gradient(lambda x: LAYER(x) * PAIR.a + PAIR.w[1] * x, closure=True)(x)
    assert isinstance(d.LAYER, Layer)
    assert isinstance(d.PAIR, Pair)
    np.testing.assert_allclose(d.LAYER.w, 2.0 * dw)
    assert d.LAYER.b == 2.0
    assert d.PAIR.a == pytest.approx(LAYER(x))
    np.testing.assert_array_equal(d.PAIR.w, [0.0, x])
    d = gradient(lambda x: NESTED[1][1](x) * NESTED[1][0] + NESTED[0][1], wrt="NESTED")(x)
    np.testing.assert_array_equal(d[0], [0.0, 1.0])
    assert d[1][0] == pytest.approx(LAYER(x))
    np.testing.assert_allclose(d[1][1].w, 3.0 * dw)


def test_tuples_of_numbers():
    def f(x):
        return RATES[0] * x + NUMBERS.b * RATES[1] ** 2 * NUMBERS.a

    assert gradient(f)(1.0) == 0.5
    d = gradient(f, closure=True)(1.0)[1]
    assert d.RATES == (1.0, 2.0 * 5.0 * 2.0 * 2.0)
    assert Numbers(20.0, 8.0) == d.NUMBERS
    assert gradient(f, wrt="NUMBERS")(1.0) == Numbers(20.0, 8.0)


def test_free_variables_and_inner_functions():
    k, a = 3.0, np.array([1.0, 2.0])

    def inner(x):
        return k * x * a[1]

    def outer(x):
        return inner(x) * k + (lambda y: y * a[0])(x)

    dx, d = gradient(outer, closure=True)(2.0)
    assert dx == 3.0 * 3.0 * 2.0 + 1.0
    assert d.k == 2.0 * 3.0 * 2.0 * 2.0
    np.testing.assert_array_equal(d.a, [2.0, 18.0])


def test_complex_arrays():
    z = np.array([1.0 + 2.0j, 0.5j])
    d = gradient(lambda x: x * np.sum(np.abs(z) ** 2), wrt="z")(1.5)
    np.testing.assert_allclose(d, 3.0 * z)


def test_names_of_fields():
    d = gradient(lambda x: _hidden * x, closure=True)(2.0)[1]
    assert d._fields == ("hidden",)
    assert d.hidden == 2.0
    assert gradient(lambda x: _hidden * x, wrt="_hidden")(2.0) == 2.0


def test_a_recursive_function():
    def power(x, n):
        if n <= 0:
            return W[0]
        return power(x, n - 1) * x + W[n % 3] * SCALE

    def reference(w0, w1, w2, scale):
        w = [w0, w1, w2]

        def run(n):
            return w[0] if n <= 0 else run(n - 1) * 1.25 + w[n % 3] * scale

        return run(7)

    dw, ds = gradient(power, wrt=("W", "SCALE"))(1.25, 7)
    found = central(reference, *W, SCALE)
    np.testing.assert_allclose([*dw, ds], found.gradients, rtol=1e-7)
    (dx, dn), d = gradient(power, closure=True)(1.25, 7)
    np.testing.assert_array_equal(d.W, dw)
    assert dn is None
    assert dx == gradient(power, wrt="x")(1.25, 7)


def test_an_argument_that_is_the_captured_array():
    def f(a):
        return np.sum(a * W)

    da, dw = gradient(f, wrt=("a", "W"))(W)
    np.testing.assert_array_equal(da, W)
    np.testing.assert_array_equal(dw, W)

    def g(a):
        a[0] = 2.0
        return np.sum(a * W)

    with pytest.raises(ValueError, match="share memory"):
        gradient(g, wrt="W")(W)
    np.testing.assert_array_equal(gradient(g, wrt="W")(np.ones(3)), [2.0, 1.0, 1.0])


def test_any_number_of_arguments():
    def f(*xs):
        total = 0.0
        for x in xs:
            total += SCALE * x
        return total

    assert gradient(f, wrt="SCALE")(1.0, 2.0) == 3.0
    dxs, d = gradient(f, closure=True)(1.0, 2.0)
    assert dxs == (2.5, 2.5)
    assert d.SCALE == 3.0


# Several of one name


def test_variables_of_two_modules():
    one, two = module("one", 1.0), module("two", 5.0)
    layer_of_one, layer_of_two = one.layer, two.layer
    layer_of_two.__name__ = "second"

    def f(x):
        return layer_of_one(x) * 10.0 + layer_of_two(x) * SCALE

    _dx, d = gradient(f, closure=True)(2.0)
    assert set(d._fields) == {"layer_w", "second_w", "layer_bias", "second_bias", "SCALE"}
    np.testing.assert_array_equal(d.layer_w, [20.0, 20.0])
    np.testing.assert_array_equal(d.second_w, [5.0, 5.0])
    assert (d.layer_bias, d.second_bias, d.SCALE) == (20.0, 5.0, 24.0)
    with pytest.raises(DifferentiationError, match="may be one of several variables") as caught:
        gradient(f, wrt="w")(2.0)
    assert "name one of `layer_w`, `second_w`" in str(caught.value)
    np.testing.assert_array_equal(gradient(f, wrt="second_w")(2.0), [5.0, 5.0])


def test_functions_of_one_name_too():
    one, two = module("one", 1.0), module("two", 5.0)
    a, b = one.layer, two.layer
    _dx, d = gradient(lambda x: a(x) + 3.0 * b(x), closure=True)(2.0)
    assert sorted(d._fields) == ["layer_bias_0", "layer_bias_1", "layer_w_0", "layer_w_1"]
    np.testing.assert_array_equal(d.layer_w_0, [2.0, 2.0])
    np.testing.assert_array_equal(d.layer_w_1, [6.0, 6.0])
    np.testing.assert_array_equal(gradient(lambda x: a(x) + 3.0 * b(x), wrt="layer_w_1")(2.0), [6.0, 6.0])


def test_a_parameter_goes_before_a_captured_variable_of_its_name():
    one = module("one", 4.0)
    layer = one.layer

    def f(w):
        return layer(w) * w

    assert gradient(f, wrt="w")(2.0) == gradient(f, wrt=0)(2.0) == 2 * 2.0 * (4.0 + 2.0 + 4.0)
    _dw, d = gradient(f, closure=True)(2.0)
    np.testing.assert_array_equal(d.w, [4.0, 4.0])


def test_attributes_of_modules():
    settings = module("settings", 4.0)
    d = gradient(lambda x: settings.bias * x * settings.w[1], closure=True)(3.0)[1]
    assert d.settings_bias == 6.0
    np.testing.assert_array_equal(d.settings_w, [0.0, 12.0])
    assert gradient(lambda x: settings.bias * x, wrt="settings_bias")(3.0) == 3.0
    settings.bias = 7.0
    assert gradient(lambda x: settings.bias**2 * x, wrt="settings_bias")(3.0) == 42.0


# What is refused


@pytest.mark.parametrize(
    ("wrt", "message"),
    [
        ("unknown", r"wrt='unknown' is neither a parameter nor a captured variable"),
        ("POWER", r"no gradient with respect to `POWER`, a captured int"),
        ("COUNTS", r"no gradient with respect to `COUNTS`, a captured ndarray"),
        ("np", "no gradient with respect to `np`, a captured module"),
        (("x", "missing"), r"wrt='missing' is neither a parameter"),
    ],
)
def test_refused(wrt, message):
    df = gradient(model, wrt=wrt)
    for _ in range(2):
        with pytest.raises(DifferentiationError, match=message):
            df(1.5)


def test_the_refusal_says_what_there_is():
    with pytest.raises(DifferentiationError) as caught:
        gradient(model, wrt="weights")(1.5)
    assert re.search(r"name one of x; captured variables: (SCALE, W|W, SCALE)$", str(caught.value))
    with pytest.raises(DifferentiationError, match="it has no parameters"):
        gradient(lambda: 1.0, wrt="x")()


# In compiled code and without compilation


def test_in_compiled_code():
    df = gradient(model, wrt=("x", "W"))
    dg = value_and_gradient(model, closure=True)

    @njit
    def both(x):
        dx, dw = df(x)
        value, (_dx_again, captured) = dg(x)
        return dx, dw, value, captured.SCALE, captured.W, captured

    dx, dw, value, ds, dw_again, captured = both(1.5)
    right = expected()
    assert (dx, value, ds) == pytest.approx((right[0], model(1.5), right[2]))
    np.testing.assert_allclose(dw, right[1])
    np.testing.assert_allclose(dw_again, right[1])
    assert type(captured) is type(dg(1.5)[1][1])


@pytest.mark.long
def test_with_compilation_disabled():
    program = """\
        import numpy as np
        from zygote_py import gradient, value_and_gradient
        w, b = np.array([1.0, 2.0]), 0.5
        rates = (1.0, 3.0)
        def f(x):
            s = b
            for v in w:
                s = s * v + x * rates[1]
            return s
        print(*map(float, gradient(f, wrt=("x", "b"))(1.5)), gradient(f, wrt="w")(1.5))
        value, (dx, d) = value_and_gradient(f, closure=True)(1.5)
        print(float(value), float(dx), d.w, float(d.b), [float(rate) for rate in d.rates])
        w = np.array([2.0, 0.5, 1.0])
        print(gradient(f, wrt="w")(1.5))
    """
    outs = []
    for disabled in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
        command = [sys.executable, "-c", textwrap.dedent(program)]
        out = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert out.returncode == 0, out.stderr
        outs.append(out.stdout)
    assert outs[0] == outs[1]
    assert outs[0].splitlines()[0] == "9.0 2.0 [1. 5.]"
