"""Derivatives of callables that are not Python functions: methods, partials, objects, ufuncs, functions in C."""

from __future__ import annotations

import functools
import math
import pickle
import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit

from tests.checking.slopes import differences
from zygote_py import (
    DifferentiationError,
    gradient,
    hessian,
    jacobian,
    jvp,
    pullback,
    value_and_gradient,
)

pytestmark = pytest.mark.interpreted


class Spring:
    """An object that Numba has no type for."""

    power = 2

    def __init__(self, k=3.0, rates=(0.5, 2.0)):
        self.k = k
        self.rest = np.array([0.5, -1.0])
        self.rates = rates
        self.steps = 2

    def force(self, x):
        return self.k * x

    def energy(self, x):
        total = 0.0
        for i in range(self.steps):
            total += self.force(x - self.rest[i]) ** self.power * self.rates[i]
        return total

    def __call__(self, x):
        return self.stiffness * x**3

    @property
    def stiffness(self):
        return self.k * self.k

    @staticmethod
    def cube(x):
        return x**3

    def inner(self, x):
        def scaled(y):
            return self.k * y + self(y)

        return scaled(x) * self.cube(x)

    @gradient
    def slope(self, x):
        return self.k * x * x

    def assigning(self, x):
        self.k = x
        return x


class Slotted:
    __slots__ = ("a", "of")

    def __init__(self, a, of):
        self.a = a
        self.of = of

    def value(self, x):
        return self.a * x + self.of.k * self.of.force(x)


def energy_of(k, rest, rates, x):
    return sum(rates[i] * (k * (x - rest[i])) ** 2 for i in range(2))


def test_a_bound_method():
    spring = Spring()
    assert gradient(spring.energy)(1.5) == pytest.approx(
        differences(lambda x: energy_of(3.0, spring.rest, spring.rates, x), 1.5), rel=1e-8
    )
    assert str(gradient(spring.energy)) == "<gradient of Spring.energy>"
    assert gradient(spring.energy).primal == spring.energy


def test_the_numbers_and_arrays_of_self_are_captured():
    spring = Spring()
    own, captured = gradient(spring.energy, closure=True)(1.5)
    assert own == gradient(spring.energy)(1.5)
    assert set(captured._fields) == {"k", "rest", "rates"}
    k, rest, rates = spring.k, spring.rest, spring.rates
    assert captured.k == pytest.approx(differences(lambda k: energy_of(k, rest, rates, 1.5), k), rel=1e-8)
    slopes = [
        differences(lambda r, i=i: energy_of(k, [r if i == j else rest[j] for j in (0, 1)], rates, 1.5), rest[i])
        for i in range(2)
    ]
    np.testing.assert_allclose(captured.rest, np.ravel(slopes), rtol=1e-8)
    np.testing.assert_allclose(captured.rates, [(k * (1.5 - rest[i])) ** 2 for i in range(2)], rtol=1e-14)
    dk, dx = gradient(spring.energy, wrt=("k", "x"))(1.5)
    assert (dx, dk) == (own, captured.k)


def test_they_are_read_at_each_call():
    spring = Spring()
    df = gradient(spring.energy, closure=True)
    df(1.5)
    spring.k = 2.0
    spring.rest = np.array([1.0, 0.0, 0.0])
    assert df(1.5)[0] == pytest.approx(2 * 4.0 * (0.5 * 0.5 + 2.0 * 1.5))
    spring.steps = 1  # a constant of the compiled code
    assert df(1.5)[0] == pytest.approx(2 * 4.0 * 0.5 * 0.5)
    spring.power = 1  # which hides that of the class
    assert df(1.5)[0] == pytest.approx(2.0 * 0.5)


def test_a_method_of_the_class_is_assigned():
    class Changing(Spring):
        pass

    changing = Changing()
    df = gradient(changing.energy)
    df(1.5)
    Changing.force = lambda self, x: x
    assert df(1.5) == pytest.approx(2 * (0.5 * 1.0 + 2.0 * 2.5))
    changing.force = lambda x: 2.0 * x
    assert df(1.5) == pytest.approx(8 * (0.5 * 1.0 + 2.0 * 2.5))


def test_an_object_that_is_called():
    spring = Spring()
    value, (own, captured) = value_and_gradient(spring, closure=True)(2.0)
    assert (value, own, captured.k) == (72.0, 108.0, 48.0)
    assert hessian(spring)(2.0) == 108.0
    assert jvp(spring, (2.0,), (1.0,)) == (72.0, 108.0)
    assert pullback(spring.force, 2.0)[1](2.0) == (6.0,)


def test_calls_of_self_and_inner_functions():
    x = 1.3
    expected = differences(lambda x: (3.0 * x + 9.0 * x**3) * x**3, x)
    assert gradient(Spring().inner)(x) == pytest.approx(expected, rel=1e-8)
    (dk,) = gradient(Spring().inner, closure=True)(x)[1]
    assert dk == pytest.approx((x + 6.0 * x**3) * x**3)


def test_objects_in_objects():
    slotted = Slotted(2.0, Spring())
    own, captured = gradient(slotted.value, closure=True)(1.5)
    assert own == 2.0 + 9.0
    assert captured == (1.5, 9.0)
    slotted.of = Spring(1.0)
    assert gradient(slotted.value)(1.5) == 3.0
    df = gradient(slotted.value)
    assert df(1.5) == 3.0
    slotted.of = Spring(2.0)
    assert df(1.5) == 6.0


def test_objects_that_are_global():
    one, two = Spring(2.0), SimpleNamespace(k=5.0)
    own, captured = gradient(lambda x: one.k * two.k * one.force(x), closure=True)(1.5)
    assert own == 20.0
    assert captured == (30.0, 6.0)
    assert captured._fields == ("one_k", "two_k")
    assert gradient(lambda x: one.k * two.k * one.force(x), wrt="two_k")(1.5) == 6.0


def test_a_decorated_method():
    one, two = Spring(), Spring(5.0)
    assert (one.slope(2.0), two.slope(2.0)) == (12.0, 20.0)
    one.k = 1.0
    assert (one.slope(2.0), two.slope(2.0)) == (4.0, 20.0)
    assert one.slope is one.slope


class Equal(Spring):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


def test_a_decorated_method_of_objects_that_are_equal():
    assert [Equal(k).slope(1.0) for k in (2.0, 5.0)] == [4.0, 10.0]


def test_the_type_of_an_attribute_changes():
    spring = Spring()
    df = gradient(spring.force)
    for k in (3.0, 2, 2.5, True, np.float32(1.5)):
        spring.k = k
        assert df(1.0) == k


def test_an_object_as_an_argument():
    def apply(f, x):
        return f(x) * x

    df = gradient(apply, wrt="x")
    assert df(Spring(), 2.0) == 4 * 9.0 * 8.0
    assert df(Spring(1.0), 2.0) == 32.0
    assert df(math.sin, 2.0) == pytest.approx(math.sin(2.0) + 2.0 * math.cos(2.0))


@dataclass(frozen=True)
class Line:
    slope: float
    offset: float

    def at(self, x):
        return self.slope * x + self.offset


@dataclass
class Open:
    slope: float

    def at(self, x):
        return self.slope * x


def test_methods_of_dataclasses():
    assert gradient(Line(2.0, 1.0).at, closure=True)(3.0) == (2.0, (Line(3.0, 1.0),))
    assert gradient(Line(2.0, 1.0).at, wrt="self")(3.0) == Line(3.0, 1.0)
    line = Open(2.0)
    df = gradient(line.at, wrt=("x", "slope"))
    assert df(3.0) == (2.0, 3.0)
    line.slope = 4.0
    assert df(3.0) == (4.0, 3.0)


def weighted(x, w, n):
    return x**n * w


def summed(x, *rest):
    total = x * x
    for each in rest:
        total += each * x
    return total


def test_partials():
    partial = functools.partial
    df = gradient(partial(weighted, n=2, w=3.0), closure=True)
    assert df(2.0) == (12.0, (4.0,))
    assert gradient(partial(weighted, n=2, w=3.0), wrt="w")(2.0) == 4.0
    assert gradient(partial(weighted, 2.0), closure=True)(3.0, 2) == ((4.0, None), (12.0,))
    assert gradient(partial(summed, 2.0, 5.0), closure=True)(7.0) == (2.0, (16.0, 2.0))
    assert gradient(partial(summed, 2.0))(7.0, 1.0) == (2.0, 2.0)
    w = np.array([1.0, 2.0])
    own, (dw,) = gradient(partial(lambda w, x: np.sum(w * x * x), w), closure=True)(3.0)
    assert own == 18.0
    np.testing.assert_array_equal(dw, [9.0, 9.0])
    assert gradient(partial(Spring().force))(2.0) == 3.0
    assert gradient(partial(partial(weighted, n=2), w=3.0))(2.0) == 12.0
    with pytest.raises(TypeError, match="unexpected keyword argument 'w'"):
        gradient(partial(weighted, n=2, w=3.0))(2.0, w=1.0)


@pytest.mark.parametrize(
    ("f", "args", "expected"),
    [
        (np.sin, (3.0,), math.cos(3.0)),
        (np.hypot, (3.0, 4.0), (0.6, 0.8)),
        (math.exp, (1.0,), math.e),
        (math.log, (2.0,), 0.5),
        (math.pow, (2.0, 3.0), (12.0, 8.0 * math.log(2.0))),
        (abs, (-2.0,), -1.0),
        (np.sum, (np.ones(2),), [1.0, 1.0]),
        (np.dot, (np.array([1.0, 2.0]), np.array([3.0, 4.0])), ([3.0, 4.0], [1.0, 2.0])),
        (np.linalg.det, (np.array([[2.0, 1.0], [0.0, 3.0]]),), [[3.0, 0.0], [-1.0, 2.0]]),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_ufuncs_and_functions_in_c(f, args, expected):
    found = gradient(f)(*args)
    for one, other in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)
    assert repr(gradient(f)) == f"<gradient of {f.__name__}>"


def test_a_ufunc_of_an_array():
    x = np.array([0.0, 1.0])
    np.testing.assert_allclose(jacobian(np.exp)(x), np.diag(np.exp(x)), rtol=1e-15)
    assert gradient(np.power, wrt="x1")(3.0, 2.0) == 6.0


@pytest.mark.compiled
def test_in_compiled_functions_and_in_differentiated_ones():
    spring = Spring()
    df = gradient(spring.energy)

    @njit
    def called(x):
        return df(x) + gradient(np.sin)(x)

    assert called(1.5) == pytest.approx(df(1.5) + math.cos(1.5))
    second = gradient(lambda x: df(x) + gradient(math.exp)(x))(1.5)
    assert second == pytest.approx(2 * 9.0 * 2.5 + math.exp(1.5))
    assert gradient(gradient(spring))(2.0) == 108.0


def test_pickled():
    made = pickle.loads(pickle.dumps(gradient(Spring(2.0).energy, wrt="k")))
    assert made(1.5) == gradient(Spring(2.0).energy, wrt="k")(1.5)
    assert pickle.loads(pickle.dumps(gradient(np.sin)))(0.0) == 1.0
    assert pickle.loads(pickle.dumps(gradient(functools.partial(weighted, n=2), wrt="x")))(2.0, 3.0) == 12.0


# What is refused


def refusal(f, *args):
    with pytest.raises(DifferentiationError) as raised:
        gradient(f)(*args)
    return str(raised.value)


def test_what_is_refused():
    spring = Spring()
    said = refusal(spring.assigning, 1.0)
    assert re.search(r"test_callables.py:\d+: `self.k`, a captured variable, is assigned to", said)
    assert "has no attribute `mass`" in refusal(lambda x: spring.mass * x, 1.0)
    said = refusal(lambda x: np.sum(spring) * x, 1.0)
    assert "`sum(object of Spring)`" in said
    assert "attributes and methods" in said
    one, two = Spring(), Spring(5.0)

    def either(x):
        chosen = one
        if x > 1.0:
            chosen = two
        return chosen.k * x

    assert "`chosen` is object of Spring in one place" in refusal(either, 1.0)
    for wrong in (SimpleNamespace(), "sin", 3.0, Spring):
        assert "is not a Python function" in refusal(wrong, 1.0)


class Scaled:
    def __init__(self, k):
        self.k = k

    def step(self, x):
        return x * x * self.k

    def __call__(self, x):
        return self.k * x

    @property
    def triple(self):
        return 3.0 * self.k

    def again(self, x, n):
        return x * x * self.triple if n == 0 else self.again(x, n - 1)


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def both(self, x):
        return self.a.step(x) + 10.0 * self.b.step(x)


def test_methods_of_two_objects_of_a_class():
    a, b = Scaled(1.0), Scaled(2.0)
    for f, scale in [
        (lambda x: a.step(x) + 10.0 * b.step(x), 21.0),
        (lambda x: a.again(x, 2) + 10.0 * b.again(x, 2), 63.0),
        (Pair(a, b).both, 21.0),
    ]:
        assert value_and_gradient(f)(1.5) == (2.25 * scale, 3.0 * scale)
        assert hessian(f)(1.5) == 2.0 * scale
        assert jvp(f, (1.5,), (1.0,)) == (2.25 * scale, 3.0 * scale)
        assert pullback(f, 1.5)[1]() == (3.0 * scale,)
    own, captured = gradient(lambda x: a.step(x) + 10.0 * b.step(x), closure=True)(1.5)
    assert (own, tuple(captured)) == (63.0, (2.25, 22.5))


def test_the_class_of_an_object_changes():
    class Other(Scaled):
        def __call__(self, x):
            return 5.0 * self.k * x

    scaled = Scaled(2.0)
    df = gradient(scaled)
    assert df(1.0) == 2.0
    scaled.__class__ = Other
    assert df(1.0) == 10.0
    Other.__call__ = lambda self, x: 7.0 * self.k * x
    assert df(1.0) == 14.0
    scaled.k = 1.0
    assert df(1.0) == 7.0


def test_the_keywords_of_a_partial_change():
    partial = functools.partial(lambda a, b, x: a * b * x, 2.0, b=3.0)
    df = gradient(partial)
    assert df(x=1.0) == 6.0
    partial.keywords["b"] = 10.0
    assert df(x=1.0) == 20.0
    partial.keywords.clear()
    assert df(1.0, 2.0) == (4.0, 2.0)
