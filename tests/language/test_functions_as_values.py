"""Functions as values: passed, captured, returned, in tuples and structures; with the gradient of what they do."""

import functools
import math
import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.checking.slopes import differences
from zygote_py import DifferentiationError, adjoint, gradient, ignore, value_and_gradient

pytestmark = pytest.mark.interpreted


def square(v):
    return v * v


@numba.njit
def cube(v):
    return v * v * v


def scaled(v, k=2.0, *, shift=0.5):
    return math.sin(v) * k + shift * v


def apply(f, x):
    return f(x)


def twice(f, x):
    return apply(f, apply(f, x))


def fold(f, start, n):
    s = start
    for i in range(n):
        s = f(s, i)
    return s


def in_turn(fs, x):
    for f in fs:
        x = f(x)
    return x


def first_and_last(fs, x):
    return fs[0](x) * fs[-1](x)


def newton(f, df, x, n):
    for _ in range(n):
        x = x - f(x) / df(x)
    return x


def scaler(a):
    def scale(v):
        return v * a

    return scale


def compose(f, g):
    return lambda v: f(g(v))


def iterate(f, n, x):
    return x if n == 0 else iterate(f, n - 1, f(x))


class Layer(NamedTuple):
    f: object
    w: float


class Bias(NamedTuple):
    b: float


@dataclass(frozen=True)
class Unit:
    w: float
    f: object = math.sin

    def __call__(self, x, k=2.0):
        return self.f(self.w * x) * k

    def both(self, x, *, k):
        return self(x) + self(x, k=k) * self.bare(x)

    @staticmethod
    def bare(x):
        return x * x


PAIR = (square, cube)
LAYER = Layer(square, 2.0)
DOUBLED = functools.partial(scaled, k=2.5)
COMPOSED = compose(square, cube)


@pytest.mark.parametrize(
    "f",
    [
        square,
        cube,
        math.sin,
        np.exp,
        lambda v: v * math.sin(v),
        scaled,
        DOUBLED,
        functools.partial(max, 0.3),
        COMPOSED,
        Unit(0.7).__call__,
        Unit(0.7, cube),
        scaler(3.0),
    ],
)
def test_a_function_is_an_argument(f):
    check_derivatives(twice, f, 1.1) if not isinstance(f, Unit) else None
    df = gradient(apply, wrt="x")
    assert df(f, 1.1) == pytest.approx(differences(f, 1.1).item(), rel=1e-8)


@pytest.mark.parametrize("fs", [(square, square), (square, cube, math.sin), (lambda v: v + 1.0, np.tanh)])
def test_tuples_of_functions(fs):
    check_derivatives(in_turn, fs, 0.7)
    check_derivatives(first_and_last, fs, 0.7)


def test_functions_in_structures():
    def of_layer(layer, x):
        return layer.f(layer.w * x)

    for f in (square, cube, math.cos):
        got, dx = gradient(of_layer)(Layer(f, 0.8), 1.3)
        slope = differences(f, 0.8 * 1.3).item()
        assert got.w == pytest.approx(1.3 * slope, rel=1e-8)
        assert dx == pytest.approx(0.8 * slope, rel=1e-8)

    def of_unit(unit, x):
        return unit.both(x, k=3.0)

    for f in (math.sin, square, cube):
        unit, dx = gradient(of_unit)(Unit(0.8, f), 1.3)
        assert [unit.w, dx] == pytest.approx(
            differences(lambda unit, x: unit.both(x, k=3.0), Unit(0.8, f), 1.3)[0], rel=1e-7
        )


def test_captured_tuples_and_structures_of_functions():
    def f(x):
        return in_turn(PAIR, x) + LAYER.f(x) * LAYER.w + DOUBLED(x) + DOUBLED(x, k=x) + COMPOSED(x)

    check_derivatives(f, 0.9)


def inner_captures(x, w):
    def g(v):
        return v * w + x

    return g(2.0) * g(w)


def inner_is_passed(x, w):
    def g(v):
        return v * w + math.sin(x)

    return apply(g, x) + twice(g, w)


def lambda_is_passed(x, w):
    return fold(lambda s, i: s * w + i, x, 4) + twice(lambda v: v * w, x)


def lambdas_are_passed(x, w):
    return newton(lambda v: v * v - x, lambda v: 2 * v, w, 5)


def functions_are_returned(x, w):
    g = scaler(w)
    h = compose(g, compose(square, scaler(x)))
    return g(x) + h(1.3)


def tuple_of_closures(x, w):
    fs = (lambda v: v * w, lambda v: v + x, square)
    s = x
    for f in fs:
        s = f(s)
    return s * fs[0](w)


def inner_of_inner(x, w):
    def g(v):
        def h(u):
            return u * w + v

        return apply(h, x) * h(v)

    return g(x) + apply(g, 2.0)


def defaults(x, w):
    def g(v, k=3.0, a=w):
        return v * k * a

    h = lambda v, k=x: v * k
    return g(x) + g(x, k=2.0) * g(x, a=1.5, k=w) + apply(g, w) + h(w) + h(w, 2.0) + apply(h, x)


def made_in_a_loop(x, w):
    s = 0.0
    for i in range(4):
        a = w * i
        g = lambda v: v * a + i * x
        s += apply(g, s + x)
    return s


def made_in_branches(x, w):
    if x > 1.0:
        g = lambda v: v * w
        s = apply(g, x)
    else:
        h = lambda v: v + w
        s = apply(h, x)
    return s * s


def recursive_inner(x, w):
    def power(n):
        return w if n == 0 else power(n - 1) * x

    return power(3) + apply(power, 2)


def read_when_called(x, w):
    a = w
    g = lambda v: v * a
    a = x * x
    return g(2.0)


def changes_what_it_captures(x, w):
    total = 0.0

    def add(v):
        nonlocal total
        total += v * x

    add(w)
    add(x)
    return total


def captured_integers(x, w):
    n = 3
    g = lambda v: v**n + (x, w, 2.0)[n - 2]
    return apply(g, x)


@pytest.mark.parametrize(
    "f",
    [
        inner_captures,
        inner_is_passed,
        lambda_is_passed,
        lambdas_are_passed,
        functions_are_returned,
        tuple_of_closures,
        inner_of_inner,
        defaults,
        made_in_a_loop,
        made_in_branches,
        recursive_inner,
        read_when_called,
        changes_what_it_captures,
        captured_integers,
    ],
)
def test_inner_functions(f):
    check_derivatives(f, 1.3, 0.7)
    check_derivatives(f, 0.8, 1.2)


def test_a_variable_that_is_assigned_by_the_call_of_what_captures_it():
    def f(x):
        g = lambda v: v * x
        for _ in range(3):
            x = g(2.0)
        return x

    check_derivatives(f, 1.3)
    assert gradient(f)(1.3) == 8.0


def test_closures_over_arrays_and_lists():
    def f(x, w):
        def item(i):
            return x[i] * w

        def put(i, v):
            out[i] = v * item(i)

        out = np.zeros(len(x))
        kept = [w]
        keep = lambda v: kept.append(v * w)
        for i in range(len(x)):
            put(i, x[i])
            keep(out[i])
        return np.sum(out) + kept[1] * kept[2] + apply(lambda v: np.sum(v * out), x)

    with pytest.raises(DifferentiationError, match="`out` is assigned after the inner function `put`"):
        gradient(f)(np.array([0.5, 1.5]), 0.7)

    def g(x, w):
        out = np.zeros(len(x))
        kept = [w]

        def item(i):
            return x[i] * w

        def put(i, v):
            out[i] = v * item(i)

        keep = lambda v: kept.append(v * w)
        for i in range(len(x)):
            put(i, x[i])
            keep(out[i])
        return np.sum(out) + kept[1] * kept[2] + apply(lambda v: np.sum(v * out), x)

    check_derivatives(g, np.array([0.5, 1.5, -0.3]), 0.7)


def test_functions_with_recursion():
    def f(x, w):
        return iterate(lambda v: v * w + x, 4, x) + iterate(cube, 2, w)

    check_derivatives(f, 0.9, 0.7)
    check_derivatives(iterate, square, 3, 0.9)


def test_another_function_at_each_call():
    df = gradient(apply, wrt="x")
    for k in range(4):
        assert df(lambda v: v**3 * float(k), 2.0) == pytest.approx(12.0 * k)
    made = [(lambda v: v * v), (lambda v: v * v * v), (lambda v: 5.0 * v)]
    for _ in range(2):
        assert [df(f, 2.0) for f in made] == [4.0, 12.0, 5.0]
    for scale in (2.0, 3.0, 2.0):
        assert df(lambda v: v * scale, 2.0) == scale
        assert df(functools.partial(scaled, 1.0), 2.0) == pytest.approx(math.sin(1.0))
        assert df(functools.partial(scaled, k=scale), 0.0) == pytest.approx(scale + 0.5)


def test_a_function_of_the_same_code_is_compiled_once():
    df = gradient(apply, wrt="x")
    for _ in range(5):
        assert df(lambda v: v * v, 3.0) == 6.0
    compiled = df._compiled if hasattr(df, "_compiled") else df._now.compiled
    assert len(compiled) == 1


def test_what_a_passed_function_captures_is_read_at_each_call():
    scale = 2.0
    table = np.array([1.0, 2.0])

    def f(v):
        return v * scale + np.sum(table) * v

    df = gradient(apply, wrt="x")
    assert df(f, 1.0) == 5.0
    scale = 4.0
    table[0] = 2.0
    assert df(f, 1.0) == 8.0


def test_a_captured_integer_that_changes():
    n = 2

    def f(v):
        return v**n

    df = gradient(apply, wrt="x")
    assert df(f, 3.0) == 6.0
    n = 3
    assert df(f, 3.0) == 27.0


def test_from_compiled_code():
    df = gradient(apply)

    @numba.njit
    def run(x):
        return df(cube, x)[1]

    assert run(2.0) == 12.0


@pytest.mark.long
def test_where_numba_is_disabled():
    code = (
        "from tests.language.test_functions_as_values import *\n"
        "assert gradient(apply)(square, 3.0) == (None, 6.0)\n"
        "assert gradient(in_turn, wrt='x')((square, cube), 1.0) == 6.0\n"
        "assert gradient(defaults)(1.3, 0.7) == value_and_gradient(defaults)(1.3, 0.7)[1]\n"
        "check_derivatives(functions_are_returned, 1.3, 0.7)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**__import__("os").environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def choice(x):
    f = square if x > 1.0 else cube
    return f(x)


def assigned_later(x):
    def g(v):
        return v * w

    w = 2 * x
    return g(x)


def escapes_and_is_assigned(x):
    w = x
    g = lambda v: v * w
    s = apply(g, x)
    w = 2 * x
    return s + apply(g, x)


def assigned_by_the_call(x):
    g = lambda v: v * x
    for _ in range(3):
        x = g(v=2.0)
    return x


def assigned_by_a_call_that_takes_it(x):
    g = lambda v: v * x
    for _ in range(3):
        x = apply(g, 2.0)
    return x


def assigned_where_numba_drops_it(x):
    w = x
    g = lambda v: v * w
    s = apply(g, 1.0) + len([2 * i for i in range(2)])  # inlined, and Numba drops what nothing else reads
    w = 3.0 * x
    return s + apply(g, 1.0)


def escapes_by_another(x):
    w = x
    g = lambda v: v * w
    h = compose(g, g)
    w = 2 * x
    return h(w)


fast_square, fast_cube = (numba.njit(fastmath=True)(each) for each in (square, cube.py_func))


def choice_of_decorated(x):
    f = fast_square if x > 1.0 else fast_cube
    return f(x)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (choice_of_decorated, "function square in one place and the function cube in another"),
        (choice, "function square in one place and the function cube in another"),
        (assigned_later, "`w` is assigned after the inner function `g` that uses it was made"),
        (escapes_and_is_assigned, "`w` is assigned after the lambda that uses it was made"),
        (assigned_by_the_call, "`x` is assigned after the lambda that uses it was made"),
        (assigned_by_a_call_that_takes_it, "`x` is assigned after the lambda that uses it was made"),
        (assigned_where_numba_drops_it, "`w` is assigned after the lambda that uses it was made"),
        (escapes_by_another, "`w` is assigned after the lambda that uses it was made"),
    ],
)
def test_refusals(f, message):
    with pytest.raises(DifferentiationError, match=message):
        gradient(f)(1.3)
    assert value_and_gradient(apply)(square, 2.0) == (4.0, (None, 4.0))


def named_as_a_global(x):
    def square(v):  # not the function of the module
        return v * x

    return apply(square, x) + square(x)


def test_an_inner_function_with_the_name_of_a_global():
    derivative = gradient(named_as_a_global)
    assert derivative(1.5) == 6.0
    assert not derivative._now.is_outdated()  # else it would be compiled again at each call


def test_no_gradient_with_respect_to_a_function():
    with pytest.raises(DifferentiationError, match="no gradient with respect to `f`"):
        gradient(apply, wrt="f")(square, 1.0)


def test_a_function_with_a_rule_is_an_argument():
    def own(v):
        return v * v

    def like_it(v):
        return v * v

    @adjoint(own)
    def rule(v):
        def back(dy):
            return (dy * 100.0,)

        return v * v, back

    df = gradient(apply, wrt="x")
    assert df(own, 3.0) == 100.0
    assert df(like_it, 3.0) == 6.0
    assert gradient(in_turn, wrt="x")((cube, own), 2.0) == 1200.0
    assert gradient(lambda unit, x: unit.f(x), wrt="x")(Unit(1.0, own), 3.0) == 100.0
    assert gradient(lambda x: apply(own, x))(3.0) == 100.0
    assert df(ignore(like_it), 3.0) == 0.0
