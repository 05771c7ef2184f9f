"""`checkpoint`: what it computes is that of the function, what is kept are the arguments."""

import math

import numpy as np
import pytest
from numba import njit

import zygote_py as zg
from tests.plain import plain
from tests.reference import central, distance
from tests.test_recursion import check, normal
from zygote_py import DifferentiationError


def steps(x, n):
    for _ in range(n):
        x = math.sin(x) + 0.3 * x
    return x


def twice(x, n):
    return zg.checkpoint(steps)(x, n) ** 2 + zg.checkpoint(steps)(x * x, 2)


kept_short = zg.checkpoint(steps)


def in_a_loop(x, n):
    for _ in range(3):
        x = 1.1 * kept_short(x, n)
    return x


def layer(w, x):
    h = np.tanh(w @ x)
    return np.tanh(w @ h) + x


def layers(w, x):
    y = x * 1.0
    for _ in range(3):
        y = zg.checkpoint(layer)(w, y)
    return np.sum(y * y)


def neighbours(a):
    b = np.empty(len(a))
    for i in range(len(a)):
        b[i] = a[i] * a[i - 1]
    return b


def overwritten_after(x):
    y = x * 1.0
    s = 0.0
    for k in range(3):
        z = zg.checkpoint(neighbours)(y)
        y[0] += z[0] * 0.1
        y[k] *= 2.0
        s += z[1] * z[0]
    return s


def depth(x, n):
    return x if n == 0 else math.sin(depth(1.1 * x, n - 1)) + x


def of_a_recursion(x, n):
    return zg.checkpoint(depth)(x, n) * x


def pair(x, y):
    return x * y, math.sin(x) + y


def of_a_pair(x, y):
    a, b = zg.checkpoint(pair)(x, y)
    return a * b


def smooth(a, b, w):
    for i in range(1, len(a) - 1):
        a[i] += 0.1 * w * (a[i - 1] - 2.0 * a[i] + a[i + 1] * a[i])
    b[:] = 2.0 * a
    b[0] = w
    return b[1]


def of_one_that_writes(x, w):
    a, b = x * 1.0, np.zeros(len(x))
    s = 0.0
    for k in range(3):
        s += zg.checkpoint(smooth)(a, b, w)
        a[2] *= 1.1
        s += b[2] * k
        b[3] = 1.0
    return s * a[1]


def to_the_argument(x, w):
    b = np.empty(len(x))
    return zg.checkpoint(smooth)(x, b, w) + x[1] * b[2]


def of_a_lambda(x):
    return zg.checkpoint(lambda t: t * t * math.exp(t))(x)


def outer(x):
    return zg.checkpoint(steps)(x, 3) * x


def nested(x):
    return zg.checkpoint(outer)(x) + zg.checkpoint(outer)(2.0 * x)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (twice, (0.4, 3)),
        (in_a_loop, (0.4, 3)),
        (layers, (normal(2, 2), normal(2))),
        (overwritten_after, (normal(4),)),
        (of_a_recursion, (0.3, 3)),
        (of_one_that_writes, (normal(5), 0.7)),
        (of_a_pair, (0.3, 0.4)),
        (of_a_lambda, (0.4,)),
        (nested, (0.3,)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_gradients(function, args):
    check(function, args)


def test_an_argument_holds_what_the_first_run_wrote():
    """The second run is on a copy."""
    x, w = normal(5), 0.7
    expected = central(lambda *args: to_the_argument(*map(np.copy, args)), x, w)
    for run in (zg.value_and_gradient(to_the_argument), plain(zg.value_and_gradient(to_the_argument).source(x, w))):
        given = x.copy()
        value, gradient = run(given, w)
        there = x.copy()
        assert value == pytest.approx(to_the_argument(there, w), rel=1e-14)
        np.testing.assert_allclose(given, there, rtol=1e-14)
        assert distance(gradient, expected.gradients) < 1e-6


def test_nothing_is_kept_of_the_loop():
    """Its records are made in the reverse sweep, in a call there, and no other function sees them."""
    source = zg.value_and_gradient(lambda x: zg.checkpoint(steps)(x, 1000) + x).source(0.3)
    texts = {text.split("(")[0]: text for text in source.split("def ")[1:]}
    *_, main = texts.values()
    assert "record" not in main
    assert "steps_checkpoint(x, 1000)" in main
    assert "record" not in texts["steps_checkpoint"]
    assert "steps_forward(x, n)" in texts["steps_again"]
    assert "record" in texts["steps_forward"]


def test_in_compiled_code():
    compiled = njit(steps)

    @njit
    def f(x):
        return zg.checkpoint(compiled)(x, 3) + kept_short(x, 2)

    assert f(0.4) == steps(0.4, 3) + steps(0.4, 2)
    slope = (f(0.4 + 1e-6) - f(0.4 - 1e-6)) / 2e-6
    assert zg.gradient(f)(0.4) == pytest.approx(slope, rel=1e-8)


def test_in_plain_python():
    assert zg.checkpoint(steps)(0.4, n=3) == steps(0.4, 3)


def gives_back(a):
    return a


def draws(x):
    return x * np.random.rand()


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: zg.checkpoint(gives_back)(x)[0], "may return one of its arguments"),
        (lambda x: zg.checkpoint(draws)(x[0]), "draws random numbers"),
    ],
)
def test_refused(function, says):
    with pytest.raises(DifferentiationError, match=says):
        zg.gradient(function)(np.array([1.0, 3.0]))


def test_a_function_that_captures_is_refused():
    def f(x):
        w = 2.0 * x
        return zg.checkpoint(lambda t: t * w)(x)

    with pytest.raises(DifferentiationError, match="captures variables"):
        zg.gradient(f)(1.0)
