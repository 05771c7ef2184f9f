"""Derivatives of derivatives that are not gradients, and forms of arguments; the references are hand-written."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

from zygote_py import gradient, pullback, value_and_gradient
from zygote_py.api.directions import derivative, hessian, hvp, jacobian

pytestmark = pytest.mark.interpreted

k = 3.0


def cubic(x):
    return k * x**3


@pytest.mark.parametrize(
    ("inner", "expected"), [(hessian, 6.0 * k), (derivative, 12.0 * k), (jacobian, 12.0 * k), (gradient, 12.0 * k)]
)
def test_gradient_of_a_derivative(inner, expected):
    """It was that of the gradient, whatever the derivative."""
    assert gradient(inner(cubic))(2.0) == expected
    assert value_and_gradient(inner(cubic))(2.0)[1] == expected
    assert pullback(inner(cubic), 2.0)[1](1.0) == (expected,)
    assert gradient(inner(cubic), wrt=("x", "k"))(2.0)[1] == (6.0 * 2.0 if inner is hessian else 3.0 * 2.0**2)
    assert gradient(gradient(inner(cubic)))(2.0) == (0.0 if inner is hessian else 6.0 * k)


def test_gradient_of_a_product():
    """Which takes an argument more than the function."""
    assert gradient(hvp(lambda x: x**3))(2.0, 1.5) == (9.0, 12.0)
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(jacobian(hvp(lambda x: np.sum(x**3)), 0)(x, 2.0 * x), np.diag(12.0 * x))


class Point(NamedTuple):
    a: float
    w: np.ndarray
    n: int


def of_point(p):
    return p.a**p.n * np.sum(p.w**2)


def test_product_of_a_structure_with_an_integer():
    """The None in its gradient was a variable that nothing had assigned to."""
    w = np.array([1.0, 2.0])
    found = hvp(of_point)(Point(2.0, w, 3), Point(1.0, 2.0 * w, None))
    assert found.n is None
    assert found.a == 60.0 + 24.0 * 10.0
    np.testing.assert_array_equal(found.w, 24.0 * w + 32.0 * w)


@pytest.mark.parametrize("f", [lambda b: b[()] ** 3, lambda b: np.sum(b**3)])
def test_arrays_without_axes(f):
    b = np.array(2.0)
    assert hessian(f)(b) == 12.0
    assert hvp(f)(b, np.array(3.0)) == 36.0
    assert hessian(f)(b).shape == ()


@dataclass(frozen=True)
class Checked:
    a: float
    n: int = 2
    w: np.ndarray = field(kw_only=True)

    def __post_init__(self):
        if self.a < -100.0:
            raise ValueError("a is too small")


def test_dataclasses_whose_constructor_does_more():
    w = np.array([1.0, 2.0])
    p = Checked(2.0, 3, w=w)
    found = hessian(of_point)(p)
    assert found.a.a == 60.0
    np.testing.assert_array_equal(found.a.w, 24.0 * w)
    np.testing.assert_array_equal(found.w.w, 16.0 * np.eye(2))
    first = jacobian(of_point)(p)
    assert first.a == 60.0
    np.testing.assert_array_equal(first.w, 16.0 * w)


def test_parameters_with_the_names_of_builtins():
    def f(range, len, float):
        return np.sum(range**2) * len * float

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(hessian(f)(x, 2.0, 3.0), 12.0 * np.eye(3))
    np.testing.assert_array_equal(hvp(f, 0)(x, 2.0, 3.0, x), 12.0 * x)


def test_draws_of_python():
    """They were refused, as methods of an object that Numba does not know."""
    value, slope = value_and_gradient(lambda x: x * random.gauss(0.0, 1.0))(4.0)
    assert value == 4.0 * slope
    assert slope != 0.0

    def weighed(x):
        y = x.copy()
        random.shuffle(y)
        return np.sum(y * np.array([1.0, 2.0, 3.0]))

    value, slope = value_and_gradient(weighed)(np.array([1.0, 10.0, 100.0]))
    assert sorted(slope) == [1.0, 2.0, 3.0]
    assert value == slope @ [1.0, 10.0, 100.0]


def many(x):
    return (
        x,
        1 * x,
        2 * x,
        3 * x,
        4 * x,
        5 * x,
        6 * x,
        7 * x,
        8 * x,
        9 * x,
        10 * x,
        11 * x,
        12 * x,
        13 * x,
        14 * x,
        15 * x,
        16 * x,
        17 * x,
        18 * x,
        19 * x,
        20 * x,
        21 * x,
        22 * x,
        23 * x,
        24 * x,
        25 * x,
        26 * x,
        27 * x,
        28 * x,
        29 * x,
        30 * x,
        31 * x,
        32 * x,
        33 * x,
        34 * x,
        35 * x,
        36 * x,
        37 * x,
        38 * x,
        39 * x,
    )


def test_more_results_than_numba_takes_in_one_tuple():
    """Of more than thirty items in a display Python makes a list first, which Numba cannot have in two assignments."""
    assert derivative(many)(2.0) == (1.0, *map(float, range(1, 40)))
    source = derivative(many).source(2.0)
    assert ") + (" in source
