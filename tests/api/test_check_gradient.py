"""`check_gradient`: what it compares, what it finds, and what it says at kinks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import zygote_py as zg
from zygote_py import DifferentiationError, check_gradient
from zygote_py.api.differences import one_sided, slope

pytestmark = pytest.mark.interpreted


class Layer(NamedTuple):
    w: np.ndarray
    b: float


@dataclass(frozen=True)
class Model:
    layer: Layer
    scale: float
    name: str


def of_a_model(model, x, k):
    return model.scale * np.sum(np.tanh(model.layer.w * x) + model.layer.b) * k


def square(x):
    return x * x


@zg.adjoint(square)
def wrong_rule(x):
    return square(x), lambda dy: (3.0 * x * dy,)


def table_of(report):
    return {entry.name: entry for entry in report.entries}


@pytest.mark.compiled
def test_arguments_of_every_kind_and_forward_mode():
    model = Model(Layer(np.array([0.1, 0.2]), 0.3), 2.0, "m")
    x = np.array([1.0, 2.0])
    report = check_gradient(of_a_model, model, x, 3, forward=True)
    names = ["value", "model.layer.w[0]", "model.layer.w[1]", "model.layer.b", "model.scale", "x[0]", "x[1]"]
    assert list(table_of(report)) == [*names, "forward mode"]
    assert report.wrong == ()
    expected = 2.0 * 3 * x / np.cosh(model.layer.w * x) ** 2
    for number in range(2):
        entry = table_of(report)[f"model.layer.w[{number}]"]
        assert entry.ours == pytest.approx(expected[number], rel=1e-14)
        assert entry.differences == pytest.approx(expected[number], rel=1e-9)
        assert 0.0 < entry.allowed < 1e-4
    assert "none is off" in str(report)
    assert repr(report).count("\n") == 9
    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_a_wrong_gradient_is_found_with_its_place():
    def f(x, y):
        s = np.sum(y)
        for i in range(len(x)):
            s += square(x[i]) if i == 2 else x[i]
        return s

    with pytest.raises(DifferentiationError, match="the gradient is off") as caught:
        check_gradient(f, np.array([1.0, 2.0, 3.0]), np.ones(4))
    (entry,) = caught.value.report.wrong
    assert (entry.name, entry.ours) == ("x[2]", 9.0)
    assert entry.differences == pytest.approx(6.0, rel=1e-9)
    assert caught.value.report.worst(1) == [entry]
    assert "x[2]" in str(caught.value)
    assert "wrong" in str(caught.value)
    assert check_gradient(f, np.array([1.0, 2.0, 3.0]), np.ones(4), wrt="y").wrong == ()
    assert check_gradient(f, np.array([1.0, 2.0, 3.0]), np.ones(4), rtol=1.0).wrong == ()  # as far off as is allowed


def test_what_is_written_and_results_that_are_no_number():
    def kernel(z, out):
        for i in range(len(z)):
            out[i] = z[i] * z[i] * 1j + out[i]
        return np.abs(z), 3

    z, out = np.array([1.0 + 2.0j, 3.0]), np.array([1.0j, 2.0])
    report = check_gradient(kernel, z, out)
    assert list(table_of(report)) == ["z[0]", "z[1]", "out[0]", "out[1]"]
    assert max(entry.off for entry in report.entries) < 1e-8
    np.testing.assert_array_equal(out, [1.0j, 2.0])


def test_single_precision_integers_and_samples():
    single = check_gradient(lambda x: np.sum(np.exp(x) * x), np.arange(3, dtype=np.float32))
    assert single.wrong == ()
    assert max(entry.off for entry in single.entries) < 0.01
    assert table_of(check_gradient(lambda x: x**3, 3))["x"].ours == 27.0
    large = check_gradient(lambda x: np.sum(x**3), np.linspace(0.0, 1.0, 1000), most=5)
    assert len(large.entries) == 6
    with_aux = check_gradient(lambda x: (x * x, "more"), 2.0, has_aux=True)
    assert table_of(with_aux)["x"].ours == 4.0


@pytest.mark.compiled
def test_kinks_jumps_and_edges():
    kink = check_gradient(lambda x: np.sum(np.maximum(x, 0.0)) + max(x[0], 0.0), np.array([0.0, 1.0, -1.0]))
    entry = table_of(kink)["x[0]"]
    assert entry.ours == 1.5
    jump = check_gradient(lambda x: math.floor(x) + 2.0 * x, 1.0)
    assert "a jump: the slopes are 2 and " in table_of(jump)["x"].note
    assert "a kink: the slopes are 0 and 3" in table_of(check_gradient(lambda x: max(x, 0.0) * 3.0, 0.0))["x"].note
    assert "not finite" in table_of(check_gradient(lambda x: math.sqrt(x), 0.0))["x"].note


def test_a_gradient_outside_of_the_slopes_of_a_kink_is_wrong():
    with pytest.raises(DifferentiationError, match="a kink"):
        check_gradient(lambda x: 0.1 * abs(x) + square(x + 1.0) - 2.0 * x, 0.0)


def test_what_cannot_be_checked():
    with pytest.raises(DifferentiationError, match="another value each time"):
        check_gradient(lambda x: x * np.random.rand(), 2.0)
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        check_gradient(of_a_model, 1.0)
    with pytest.raises(DifferentiationError, match="not a Python function"):
        check_gradient(math.sin, 1.0)


def test_differences_say_how_far_they_are_off():
    value, error = slope(2.0, (), 1.0, math.sin)
    assert abs(value - math.cos(2.0)) < 1e-9
    assert error < 1e-8
    value, error = slope(0.1, (), 1.0, lambda x: math.sin(1e3 * x) + (x > 0.1001))
    assert abs(value - 1e3 * math.cos(100.0)) < 1.0
    assert one_sided(np.array([1.0, 0.0]), (1,), 1.0, lambda a: abs(a[1]), 1e-3) == (-1.0, 1.0)
