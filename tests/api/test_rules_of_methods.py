"""Rules of methods, used wherever the method is called, as the gradients show: they are ten times as large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numba import guvectorize, njit

import zygote_py as zg
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient

pytestmark = pytest.mark.interpreted


@dataclass(frozen=True)
class Scale:
    w: float

    def apply(self, x):
        return self.w * x

    def __call__(self, x):
        return self.w * x

    @njit
    def compiled(self, x):
        return self.w * x

    @staticmethod
    def square(x):
        return x * x

    @property
    def half(self):
        return 0.5 * self.w

    def twice(self, x):
        return self.apply(self.apply(x))


class Model:
    """A class that Numba does not know."""

    def __init__(self):
        self.k = 2.0

    def scaled(self, x):
        return self.k * x

    def loss(self, x):
        return self.scaled(x) * x


def tenfold(self, x):
    def back(d):
        return (10.0 * d * x,), 10.0 * d * self.w

    return self.w * x, back


@zg.adjoint(Scale.square)
def _(x):
    def back(d):
        return (20.0 * d * x,)

    return x * x, back


@zg.adjoint(Scale.half.fget)
def _(self):
    def back(d):
        return ((5.0 * d,),)

    return 0.5 * self.w, back


@zg.adjoint(Model.scaled)
def _(self, x):
    def back(d):
        return None, 10.0 * d * self.k

    return self.k * x, back


for method in (Scale.apply, Scale.__call__, Scale.compiled):
    zg.adjoint(method)(tenfold)

CALLS = {
    "a method": (lambda s, x: s.apply(x), 30.0, 20.0),
    "an object": (lambda s, x: s(x), 30.0, 20.0),
    "a decorated method": (lambda s, x: s.compiled(x), 30.0, 20.0),
    "a static method": (lambda s, x: s.square(x), 0.0, 60.0),
    "a property": (lambda s, x: s.half * x, 15.0, 1.0),
    "in a method": (lambda s, x: s.twice(x), 660.0, 400.0),
    "of an object that is made there": (lambda s, x: Scale(s.w).apply(x), 30.0, 20.0),
    "by a keyword": (lambda s, x: s.apply(x=x), 30.0, 20.0),
}


@pytest.mark.parametrize("what", one_in(2, CALLS))
def test_methods_of_dataclasses(what):
    f, dw, dx = CALLS[what]
    assert gradient(f)(Scale(2.0), 3.0) == (Scale(dw), dx)
    assert zg.jvp(f, (Scale(2.0), 3.0), (Scale(1.0), 10.0))[1] == dw + 10.0 * dx
    assert zg.pullback(f, Scale(2.0), 3.0)[1](1.0) == (Scale(dw), dx)


def test_a_method_of_a_captured_object():
    model = Model()
    assert gradient(model.scaled)(3.0) == 20.0
    assert gradient(model.loss)(3.0) == 6.0 + 3.0 * 20.0
    assert gradient(lambda x: model.scaled(x))(3.0) == 20.0


def test_a_rule_that_is_given_later():
    class Later:
        def __init__(self):
            self.k = 2.0

        def scaled(self, x):
            return self.k * x

    it = Later()
    df = gradient(lambda x: it.scaled(x))
    assert df(3.0) == 2.0

    @zg.adjoint(Later.scaled)
    def _(self, x):
        def back(d):
            return None, 77.0 * d

        return self.k * x, back

    assert df(3.0) == 77.0


def fill(x, y):
    y[0] = 2.0 * x[0]


@zg.adjoint(fill)
def _(x, y):
    def back(d):
        return None, None

    return None, back


@guvectorize(["void(f8[:], f8[:])"], "(n)->(n)")
def doubled(x, y):
    y[0] = 2.0 * x[0]


@zg.adjoint(doubled)
def _(x, y):
    def back(d):
        return None, None

    return None, back


@pytest.mark.parametrize("function", [fill, doubled])
def test_a_function_that_writes_to_an_array_without_derivative_is_refused(function):
    def f(x):
        y = np.zeros(2)
        function(x, y)
        return np.sum(y)

    for derivative in (gradient(f), lambda x: zg.jvp(f, (x,), (x,)), lambda x: zg.pullback(f, x)):
        with pytest.raises(DifferentiationError, match="writes to its argument"):
            derivative(np.ones(2))
