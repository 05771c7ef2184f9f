"""Frozen dataclasses as arguments, results, locals and captured values, with their methods."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import pytest

from tests.checking.derivatives import ALL_ROUTES, check_derivatives
from zygote_py import DifferentiationError, gradient, value_and_gradient

pytestmark = pytest.mark.interpreted


@dataclass(frozen=True)
class Affine:
    w: np.ndarray
    b: float
    n: int = 2

    def __call__(self, x):
        total = self.b
        for i in range(len(x)):
            total += self.w[i] * x[i]
        return total

    def scaled(self, x, factor=3.0):
        return factor * self(x)

    @property
    def size(self):
        return self.b * self.n

    @staticmethod
    def half(x):
        return x / 2.0


@dataclass(frozen=True)
class Model:
    first: Affine
    second: Affine
    rates: tuple

    def __call__(self, x):
        a, b = self.first(x), self.second.scaled(x)
        return a * b * self.rates[0] + self.rates[1]


@dataclass(frozen=True)
class Line:
    slope: float

    def __call__(self, x):
        return self.slope * x + 1.0


@dataclass(frozen=True)
class Parabola:
    a: float
    c: float

    def __call__(self, x):
        return self.a * x * x + self.c


@dataclass(frozen=True)
class Chain:
    layers: tuple

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@dataclass(frozen=True)
class Layer:
    w: float
    activation: Any

    def __call__(self, x):
        return self.activation(self.w * x)


@dataclass(frozen=True)
class Positive:
    scale: float
    name: str = field(default="a", kw_only=True)

    def __post_init__(self):
        if self.scale <= 0:
            raise ValueError("scale must be positive")


@dataclass(frozen=True, slots=True)
class Slotted:
    a: float
    b: tuple


MODEL = Model(Affine(np.array([0.5, -1.0, 2.0]), 0.25), Affine(np.array([1.0, 0.5, -0.75]), -1.5, 5), (0.3, 1.2))
X = np.array([1.0, 2.0, 3.0])


def loss(model, x):
    return model(x) ** 2 + model.first.size


def test_nested_objects_with_methods():
    found = check_derivatives(loss, MODEL, X, routes=ALL_ROUTES)
    assert found[0].first.n is None


@pytest.mark.compiled
def test_every_kind_of_member():
    def f(layer, x):
        later = layer.scaled
        return layer(x) * layer.size + later(x, factor=2.0) + layer.scaled(x) * layer.half(layer.b)

    check_derivatives(f, MODEL.first, X, routes=ALL_ROUTES)


def test_objects_made_inside():
    def moved(layer, by):
        return Affine(layer.w, layer.b + by, n=1)

    def f(layer, x, by):
        made = Model(moved(layer, by), Affine(b=by * by, w=x), (by, 1.0))
        return made(x) + made.first.size + Affine(x, by).n

    check_derivatives(f, MODEL.first, X, 0.5, routes=ALL_ROUTES)


def test_an_object_chosen_in_a_branch_and_replaced_in_a_loop():
    def f(a, b, n):
        layer = a if a.slope > b.slope else Line(b.slope * a.slope)
        x = 1.0
        for _ in range(n):
            x = layer(x)
            layer = Line(layer.slope * b.slope)
        return x

    check_derivatives(f, Line(1.5), Line(0.5), 3, routes=ALL_ROUTES)
    check_derivatives(f, Line(0.25), Line(0.5), 4, routes=ALL_ROUTES)


def test_a_method_chosen_in_a_branch():
    def f(a, b):
        call = a.__call__ if a.slope > b.slope else b.__call__
        return call(2.0) * a.slope

    check_derivatives(f, Line(1.5), Line(0.5), routes=ALL_ROUTES)
    check_derivatives(f, Line(0.5), Line(1.5), routes=ALL_ROUTES)


def test_captured_objects():
    def f(x):
        return loss(MODEL, x)

    check_derivatives(f, X, routes=ALL_ROUTES)


def test_a_captured_object_is_read_at_each_call():
    layer = Line(2.0)

    def f(x):
        return layer(x) * x

    df = gradient(f)
    assert df(3.0) == 13.0
    layer = Line(5.0)
    assert df(3.0) == 31.0


@pytest.mark.parametrize(
    "layers",
    [
        (Line(2.0), Line(3.0), Line(0.5)),
        (Line(2.0), Parabola(0.5, 1.0)),
        (Parabola(0.3, 1.0), Line(2.0), Parabola(0.5, 0.25), Line(-1.0), Line(0.5)),
        (Line(1.5),),
    ],
)
def test_a_loop_over_layers_of_several_classes(layers):
    check_derivatives(lambda model, x: model(x) * model(2.0), Chain(layers), 1.25, routes=("call", "source"))


def test_chains_of_chains():
    inner = Chain((Line(2.0), Parabola(0.5, 1.0)))
    check_derivatives(
        lambda model, x: model(x), Chain((inner, Line(0.5), Chain((Line(3.0),)))), 0.75, routes=ALL_ROUTES
    )


@pytest.mark.compiled
def test_a_training_loop_is_compiled():
    df = value_and_gradient(lambda model, x, y: (model(x) - y) ** 2, wrt="model")

    @numba.njit
    def train(model, x, y, rate, steps):
        value = 0.0
        for _ in range(steps):
            value, d = df(model, x, y)
            model = Affine(model.w - rate * d.w, model.b - rate * d.b, model.n)
        return model, value, model(x)

    model, value, at_end = train(MODEL.first, X, 4.0, 0.01, 200)
    assert type(model) is Affine
    assert value < 1e-6
    assert model(X) == pytest.approx(at_end)
    assert at_end == pytest.approx(4.0, abs=1e-2)


@pytest.mark.compiled
def test_numba_alone_knows_them():
    @numba.njit
    def g(model, x):
        return model, model(x), model.first.scaled(x, factor=2.0), model.second.size, model.first.half(x[0])

    back, value, scaled, size, half = g(MODEL, X)
    assert type(back) is Model
    assert back.first.w is MODEL.first.w
    assert (value, scaled, size, half) == (MODEL(X), MODEL.first.scaled(X, 2.0), MODEL.second.size, 0.5)


def test_functions_in_fields():
    def square(x):
        return x * x

    found = check_derivatives(lambda layer, x: layer(x), Layer(1.5, square), 2.0, routes=ALL_ROUTES)
    assert found[0].activation is None
    back = numba.njit(lambda layer: layer)(Layer(1.5, square))
    assert back == Layer(1.5, square)
    check_derivatives(lambda layer, x: layer(x), Layer(1.5, np.sin), 2.0, routes=ALL_ROUTES)
    check_derivatives(lambda layer, x: layer(x), Layer(1.5, numba.njit(square)), 2.0, routes=ALL_ROUTES)


def test_what_the_class_checks_does_not_hold_of_gradients():
    found = check_derivatives(lambda p: -p.scale * p.scale, Positive(2.0, name="b"), routes=ALL_ROUTES)
    assert found.scale == -4.0


def test_slots():
    check_derivatives(lambda s: s.a * s.b[0] + s.b[1].slope, Slotted(2.0, (3.0, Line(4.0))), routes=ALL_ROUTES)


def test_in_tuples_and_arguments_with_defaults():
    def f(pair, x, layer=Line(2.0)):
        return pair[0](x) * pair[1] + layer(x)

    check_derivatives(lambda pair, x: f(pair, x), (Line(1.5), 2.0), 3.0, routes=ALL_ROUTES)
    found = gradient(f)((Line(1.5), 2.0), 3.0)
    assert found[2] == Line(3.0)


# ------------------------------------------------------------------------------------------------------ refusals


@dataclass
class Open:
    a: float


def refused(function: Callable[..., Any], *args: Any, says: str, hint: str) -> None:
    with pytest.raises(DifferentiationError, match=f"(?is){says}") as caught:
        gradient(function)(*args)
    assert re.search(hint, caught.value.hint or "", re.IGNORECASE), caught.value.hint
    assert caught.value.file == __file__


def test_a_dataclass_that_is_not_frozen():
    refused(lambda m: m.a, Open(1.0), says="`m`.*`Open`.*not frozen", hint=r"frozen=True")


def test_a_captured_dataclass_that_is_not_frozen():
    captured = Open(1.0)
    assert gradient(lambda x: captured.a * x, closure=True)(2.0) == (1.0, (2.0,))
    refused(lambda x: [captured][0].a * x, 2.0, says="list", hint="")


def test_one_that_is_not_frozen_made_inside():
    refused(lambda x: Open(x).a, 2.0, says="`Open`.*not frozen", hint=r"frozen=True")


def test_a_field_that_is_assigned():
    def f(m, x):
        m.slope = x
        return m.slope

    refused(f, Line(1.0), 2.0, says="setting an attribute", hint="new object")


def test_a_field_of_a_type_that_is_not_supported():
    @dataclass(frozen=True)
    class Odd:
        a: float
        table: dict

    refused(lambda m: m.a, Odd(1.0, {}), says="`m`.*field `table`.*dict", hint="NamedTuple")


def test_it_is_no_tuple():
    refused(lambda m: m[0], Line(1.0), says="`Line` is a dataclass and no tuple", hint="names")

    def f(m):
        (a,) = m
        return a

    refused(f, Line(1.0), says="`Line` is a dataclass and no tuple", hint="names")


def test_a_constructor_that_does_more():
    @dataclass(frozen=True)
    class Checked:
        a: float

        def __post_init__(self):
            assert self.a > 0

    refused(lambda x: Checked(x).a, 2.0, says="`Checked`.*__post_init__", hint="outside|argument")


def test_wrong_arguments_of_a_constructor():
    refused(lambda x: Line(x, x).slope, 2.0, says="`Line`.*too many positional", hint="")


def test_dicts_as_arguments():
    refused(lambda m: m["a"], {"a": 1.0}, says="`m`.*dict", hint="NamedTuple or a dataclass")


@dataclass(frozen=True)
class Nothing:
    pass


@dataclass(frozen=True)
class Switch:
    a: float

    def __bool__(self):
        return self.a > 2.0


def test_truth_values():
    """Those of tuples were taken: `Nothing()` was false, `Switch(0.0)` true."""
    assert value_and_gradient(lambda x: x if not Nothing() or not Line(x) else x * x)(1.5) == (2.25, 3.0)
    with pytest.raises(DifferentiationError, match="the truth value of `Switch`, which defines `__bool__`"):
        gradient(lambda x: x * x if Switch(x) else x)(1.5)


def test_comparisons_in_tuples():
    assert gradient(lambda x: x * x if (Line(x), 1) == (Line(x), 1) else x)(1.5) == 3.0
    with pytest.raises(DifferentiationError, match="is a dataclass and no tuple"):
        gradient(lambda x: x * x if (Line(x),) == (Switch(x),) else x)(1.5)
