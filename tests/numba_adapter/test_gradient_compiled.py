"""`gradient` and `value_and_gradient` inside functions that Numba compiles; each program runs in Python, too."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit

import zygote_py
import zygote_py as zg
from tests.numba_adapter.test_pullback_compiled import both, refused
from zygote_py import gradient, value_and_gradient

WEIGHTS = np.array([1.0, 2.0])
FACTOR = 3.0
WRT = "x"


def square(x):
    return x * x


compiled_square = njit(square)
slope_of_square = gradient(square)


@both
def test_globals(decorate):
    @decorate
    def step(x):
        alias = zg.gradient
        first = (gradient(square)(x), zygote_py.gradient(square)(x), alias(square)(x), gradient(f=square)(x=x))
        return first, gradient(compiled_square)(x), slope_of_square(x), value_and_gradient(square)(x)

    assert step(3.0) == ((6.0, 6.0, 6.0, 6.0), 6.0, 6.0, (9.0, 6.0))


@both
def test_wrt_and_closure(decorate):
    def f(x, y, n):
        return x * y**n * FACTOR

    @decorate
    def step(x, y):
        all_of_it, last = gradient(f)(x, y, 2), gradient(f, wrt="n")(x, y, 2.0)
        some = gradient(f, wrt=("y", "x"))(x, y, 2), gradient(f, wrt=WRT)(x, y, 2), gradient(f, wrt=-2)(x, y, 2)
        return all_of_it, last, some, gradient(f, wrt="x", closure=True)(x, y, 2), gradient(f, wrt=["FACTOR"])(x, y, 2)

    all_of_it, last, some, (dx, captured), (factor,) = step(2.0, 5.0)
    assert all_of_it == (75.0, 60.0, None)
    assert last == pytest.approx(150.0 * math.log(5.0))
    assert some == ((60.0, 75.0), 75.0, 60.0)
    assert (dx, captured.FACTOR, factor) == (75.0, 50.0, 50.0)


@both
def test_lambdas_that_capture_locals(decorate):
    @decorate
    def fit(x, y):
        w = 0.0
        for _ in range(60):
            error, dw = value_and_gradient(lambda w: (w * x - y) ** 2)(w)
            if error < 1e-20:
                break
            w -= 0.1 * dw
        return w, gradient(lambda v: np.sum(v * WEIGHTS) * w)(WEIGHTS * x)

    w, dv = fit(2.0, 3.0)
    assert w == pytest.approx(1.5)
    np.testing.assert_allclose(dv, WEIGHTS * 1.5)


@both
def test_inner_functions(decorate):
    @decorate
    def step(x, w, n):
        def model(v):
            return w[0] * v + x

        def loss(v, power=2):
            return model(v) ** power * FACTOR

        derivative = gradient(loss, wrt=("v", "w"))
        found = derivative(1.0)
        numbers = gradient(lambda m: m * x)(n), gradient(lambda v, m: x * v**m)(2.0, n)
        w[0] = 3.0
        return found, numbers, gradient(model)(x), loss(1.0), derivative(1.0), derivative(1.0, power=1)

    found, numbers, slope, value, later, other = step(2.0, np.array([5.0, 0.0]), 3)
    assert found[0] == 6.0 * 7.0 * 5.0
    np.testing.assert_allclose(found[1], [6.0 * 7.0, 0.0])
    assert numbers == (2.0, (24.0, None))
    assert (slope, value) == (3.0, 75.0)
    assert later[0] == 6.0 * 5.0 * 3.0
    assert other[0] == 9.0


@both
def test_read_where_the_gradient_is_made(decorate):
    @decorate
    def step(x, n):
        total = 0.0
        for i in range(n):
            x = x + i

            def f(v):
                return v * v * x * i

            total += gradient(f)(1.0)
        return total, [gradient(lambda t, y=2.0: t * t * z * y)(1.0)[0] for z in (x, 2.0 * x)]

    total, found = step(1.0, 4)
    assert total == 2 * (1 * 2 + 2 * 4 + 3 * 7)
    assert list(found) == [28.0, 56.0]


@both
def test_captured_variables_are_read_at_each_call(decorate):
    @decorate
    def step(x):
        f = gradient(lambda v: v * v * x)
        g = f
        first = f(1.0)
        x = x + 1.0
        second = g(1.0)
        for _ in range(3):
            x = f(1.0) + x
        if x > 100.0:
            x = 0.5

        def h(v):
            return v * x

        x = x * 2.0
        return first, second, x, f(1.0), gradient(h)(1.0), zg.pullback(h, 1.0)[1](1.0), g(1.0)

    first, second, x, *others = step(2.0)
    assert (first, second, x) == (4.0, 6.0, 162.0)
    assert others == [324.0, 162.0, (162.0,), 324.0]


@both
def test_a_gradient_is_a_value(decorate):
    @decorate
    def apply(f, x):
        return f(x)

    @decorate
    def slope(f, x):
        return gradient(f)(x)

    @decorate
    def step(x):
        held = (gradient(lambda v: v * v * x), gradient(lambda v: v * x))
        first = apply(held[0], 3.0), held[1](3.0)
        return first, apply(gradient(square), x), slope(lambda v: v * v * v, x), slope(compiled_square, x)

    assert step(2.0) == ((12.0, 2.0), 4.0, 12.0, 4.0)
    assert slope(compiled_square, 5.0) == 10.0


@both
def test_any_number_of_arguments(decorate):
    def product(*xs):
        result = 1.0
        for x in xs:
            result = result * x
        return result

    def weighed(first, second=2.0, *others):
        return first * second * others[0]

    of_product = gradient(product)

    @decorate
    def step(x, xs):
        one = of_product(x, 3.0), of_product(*xs), gradient(product)(x, *xs), gradient(product, wrt="xs")(x, x)
        return one, gradient(weighed)(x, 3.0, x), gradient(lambda *vs: vs[0] * vs[1] * x)(3.0, 4.0)

    one, two, three = step(2.0, (3.0, 5.0))
    assert one == ((3.0, 2.0), (5.0, 3.0), (15.0, 10.0, 6.0), (2.0, 2.0))
    assert two == (6.0, 4.0, 6.0)
    assert three == (8.0, 6.0)


@both
def test_keywords_and_defaults(decorate):
    def f(x, n=3, *, scale=2.0):
        return x**n * scale

    def g(x, n=3):
        return f(x, n)

    @decorate
    def step(x):
        d = gradient(g, wrt="x")
        return d(x), d(x, 2), d(n=1, x=x), gradient(g)(x, n=2)

    assert step(2.0) == (24.0, 8.0, 2.0, (8.0, None))


@both
def test_functions_among_the_arguments(decorate):
    def apply(f, x):
        return f(x) * 2.0

    @decorate
    def step(x, xs):
        d = gradient(apply, wrt="x")
        captures = gradient(lambda v: apply(lambda t: t * t * x, v))(5.0)
        return d(square, x), d(compiled_square, x), d(lambda t: t * 4.0, x), d(math.exp, 0.0), d(square, *xs), captures

    assert step(3.0, (4.0,)) == (12.0, 12.0, 8.0, 2.0, 16.0, 60.0)


@dataclass(frozen=True)
class Model:
    w: float

    def __call__(self, x: float) -> float:
        return self.w * x

    def improved(self, x: float, y: float) -> Model:
        return Model(self.w - 0.1 * gradient(lambda w: (w * x - y) ** 2)(self.w))


@both
def test_in_methods_and_of_models(decorate):
    @decorate
    def step(model, x):
        return model.improved(x, 1.0), gradient(lambda m: m(x) ** 2)(model)

    improved, d = step(Model(2.0), 3.0)
    assert improved.w == pytest.approx(2.0 - 0.1 * 30.0)
    assert d == Model(36.0)


def test_in_parallel_loops_and_ufuncs():
    @njit(parallel=True)
    def slopes(xs, scale):
        found = np.empty(len(xs))
        for i in numba.prange(len(xs)):
            found[i] = gradient(lambda x: x * x * scale)(xs[i])
        return found

    @numba.vectorize
    def ufunc(x):
        return gradient(square)(x)

    @njit(inline="always")
    def inlined(x):
        return gradient(square)(x)

    @njit("float64(float64)")
    def declared(x):
        return inlined(x) + 1.0

    xs = np.arange(4.0)
    np.testing.assert_array_equal(slopes(xs, 3.0), 6.0 * xs)
    np.testing.assert_array_equal(ufunc(xs), 2.0 * xs)
    assert declared(3.0) == 7.0


# What is refused


def test_captured_variables_that_are_assigned_later():
    def held(x):
        fs = (gradient(lambda v: v * x), gradient(square))
        x = x + 1.0
        return fs[0](2.0)

    def passed(x):
        f = gradient(lambda v: v * x)
        for _ in range(3):
            x = applied(f, x)
        return x

    def one_of_two(x):
        f = gradient(lambda v: v * x)
        if x > 3.0:
            f = gradient(lambda v: 2.0 * v * x)
        x = x + 1.0
        return f(2.0)

    def dropped(x):
        def helper(t):
            return t * 2.0

        y = x
        f = gradient(lambda v: v * y)
        r = f(1.0) + helper(x)
        y = 7.0
        return r + f(1.0)

    def dropped_in_what_is_inlined(x):
        def helper(t):
            y = t
            f = gradient(lambda v: v * y)
            r = f(1.0)
            y = 7.0
            return r + f(1.0)

        return helper(x)

    for program in (dropped, dropped_in_what_is_inlined):
        assert "`y` is assigned after the function that captures it was made" in refused(program, 2.0)
    for program in (held, passed, one_of_two):
        assert "`x` is assigned after the function that captures it was differentiated" in refused(program, 2.0)


@njit
def applied(f, x):
    return f(x)


def test_what_is_not_known_while_compiling():
    def which(x):
        f = square if x > 1.0 else slope_of_square
        return gradient(f)(x)

    def option(x, name):
        return gradient(square, wrt=name)(x)

    def unknown_option(x):
        return gradient(square, of="x")(x)

    def nothing(x):
        return gradient(wrt="x")(x)

    def closure(x):
        return gradient(lambda v: v * x, closure=True)(x)

    def capturing_argument(x):
        return gradient(lambda f, v: f(v), wrt="v")(lambda t: t * x, x)

    def number(x):
        return gradient(x)(x)

    def too_few(x):
        return gradient(lambda v, w: v * w * x)(x)

    assert "which function this is the `gradient` of is not known" in refused(which, 2.0)
    assert "`wrt` of `gradient` is not known while compiling" in refused(option, 2.0, "x")
    assert "`gradient` has no option `of`" in refused(unknown_option, 2.0)
    assert "`gradient` without the function" in refused(nothing, 2.0)
    assert "`closure=True` of a function that captures" in refused(closure, 2.0)
    assert "captures variables and is an argument" in refused(capturing_argument, 2.0)
    assert "`gradient` of float64 in compiled code" in refused(number, 2.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'w'"):
        numba.njit(too_few)(2.0)


def test_errors_are_those_of_a_call_from_python():
    def bad(x):
        return open(x)

    def step(x):
        return gradient(bad)(x)

    def text(call: Callable[..., Any]) -> str:
        with pytest.raises(zg.DifferentiationError) as caught:
            call(2.0)
        return str(caught.value)

    assert text(njit(step)) == text(gradient(bad))


def test_programs_without_gradients_are_left_alone():
    def helper(x):
        return x

    with pytest.raises(numba.TypingError, match="Untyped global name 'helper'"):
        njit(lambda x: helper(x))(1.0)
