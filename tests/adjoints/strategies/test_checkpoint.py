"""`checkpoint`: what it computes is that of the function, what is kept are the arguments."""

import math
import random

import numpy as np
import pytest
from numba import njit

import zygote_py as zg
from tests.adjoints.routines.test_recursion import BY_ROUTES, normal
from tests.checking.derivatives import check_derivatives
from tests.checking.reference import central, distance
from tests.plain import plain
from zygote_py import DifferentiationError

pytestmark = pytest.mark.interpreted


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


def reads_both(x):
    y, z = zg.checkpoint(twice_the_same)(x)
    return np.sum(y * y) * z[0]


def writes_to_both(x):
    y, z = zg.checkpoint(lambda t: (np.tanh(t), np.cos(t[1:])))(x)
    y[1:] *= z
    z[:] = y[1:] * x[0]
    return np.sum(y * y) * z[0]


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


def writes_to_captured(x):
    y = x * 1.0

    def inner(t):
        y[0] = t
        return y[1]

    return zg.checkpoint(inner)(x[0]) + y[0]


def to_the_argument(x, w):
    b = np.empty(len(x))
    return zg.checkpoint(smooth)(x, b, w) + x[1] * b[2]


def of_a_lambda(x):
    return zg.checkpoint(lambda t: t * t * math.exp(t))(x)


def outer(x):
    return zg.checkpoint(steps)(x, 3) * x


def nested(x):
    return zg.checkpoint(outer)(x) + zg.checkpoint(outer)(2.0 * x)


# Functions that capture variables, of which the gradient flows to these too.


def captures_a_number(w, x):
    return zg.checkpoint(lambda t: w * t * math.sin(w))(x) * w


def captures_an_array(w, x):
    u = w * 2.0
    weighted = zg.checkpoint(lambda t: np.tanh(u * t))
    y = weighted(x)
    s = 0.0
    for _ in range(2):
        y = weighted(y) + np.sum(u)
        s += y[0] * y[1]
    return s


def captured_and_overwritten_after(w, x):
    u = w * 1.0
    s = 0.0
    for k in range(3):
        s += zg.checkpoint(lambda t: np.sum(np.sin(u) * t))(x) * u[0]
        u[k] *= s
    return s + np.sum(u)


def in_a_loop_with_its_variables(w, x):
    s = w
    for i in range(3):
        c = s * i
        s = s + zg.checkpoint(lambda t, k=2.0: t * c * k + s)(x)
    return s


def through(f, x):
    return zg.checkpoint(f)(x) + f(x)


def passed_on(w, x):
    return through(lambda t: math.sin(t * w), x) + through(steps_of_two, w)


def steps_of_two(x):
    return steps(x, 2)


def apply(f, x):
    return f(x) * f(2.0 * x)


def passed_on_with_its_checkpoint(w, x):
    functions = (zg.checkpoint(lambda t: t * t * w), zg.checkpoint(steps_of_two))
    return apply(zg.checkpoint(lambda t: math.sin(t * w)), x) + functions[0](x) * functions[1](w)


def captures_functions(w, x):
    def inner(t):
        return t * w

    def outer(t):
        return inner(t) * inner(w) + zg.checkpoint(inner)(t)

    return zg.checkpoint(outer)(x)


def calls_itself(w, x):
    u = w * 2.0

    def power(n):
        return u if n == 0 else power(n - 1) * x + u

    return zg.checkpoint(power)(4)


def twice_over(w, x):
    once = zg.checkpoint(lambda t: t * t * w)
    return zg.checkpoint(once)(x)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (captures_a_number, (0.4, 0.7)),
        (captures_an_array, (normal(3), normal(3))),
        (captured_and_overwritten_after, (normal(3), normal(3))),
        (in_a_loop_with_its_variables, (0.4, 0.7)),
        (passed_on, (0.4, 0.7)),
        (passed_on_with_its_checkpoint, (0.4, 0.7)),
        (captures_functions, (0.4, 0.7)),
        (calls_itself, (0.4, 0.7)),
        (twice_over, (0.4, 0.7)),
        (twice, (0.4, 3)),
        (in_a_loop, (0.4, 3)),
        (layers, (normal(2, 2), normal(2))),
        (overwritten_after, (normal(4),)),
        (of_a_recursion, (0.3, 3)),
        (of_one_that_writes, (normal(5), 0.7)),
        (writes_to_captured, (normal(2),)),
        (reads_both, (normal(3),)),
        (writes_to_both, (normal(3),)),
        (of_a_pair, (0.3, 0.4)),
        (of_a_lambda, (0.4,)),
        (nested, (0.3,)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_gradients(function, args):
    check_derivatives(function, *args, **BY_ROUTES)


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


def twice_the_same(a):
    b = a * 2.0
    return b, b[1:]


def writes_to_one_of_them(x):
    y, z = zg.checkpoint(twice_the_same)(x)
    z[0] *= 2.0
    return np.sum(y * y) * z[0]


def draws(x):
    return x * np.random.rand()


def draws_as_python_does(x):
    return x * random.random()


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: zg.checkpoint(gives_back)(x)[0], "may return one of its arguments"),
        (writes_to_one_of_them, "may return arrays that share memory"),
        (lambda x: zg.checkpoint(draws)(x[0]), "draws random numbers"),
        (lambda x: zg.checkpoint(draws_as_python_does)(x[0]), "draws random numbers"),
        (lambda x: zg.checkpoint(math.sin)(x[0]), "`checkpoint` of a value of type .* is not supported"),
        (lambda x: zg.checkpoint(x)(x[0]), "`checkpoint` of a value of type .* is not supported"),
    ],
)
def test_refused(function, says):
    with pytest.raises(DifferentiationError, match=says):
        zg.gradient(function)(np.array([1.0, 3.0]))


def test_captured_from_outside():
    w = np.array([0.5, 2.0])
    scale = 3.0

    def f(x):
        return zg.checkpoint(lambda t: np.sum(t * w) * scale)(x) * scale

    derivative = zg.gradient(f, closure=True)
    for _ in range(2):
        dx, captured = derivative(np.array([1.0, 4.0]))
        np.testing.assert_allclose(dx, w * scale**2)
        np.testing.assert_allclose(captured.w, np.array([1.0, 4.0]) * scale**2)
        assert captured.scale == pytest.approx(2.0 * scale * (w[0] + 4.0 * w[1]))
        w[0], scale = 1.5, 2.0  # read at each call


def powers(x, n):
    return x if n == 0 else zg.checkpoint(powers)(x * x, n - 1) + x


def test_of_itself_is_refused():
    with pytest.raises(DifferentiationError, match="`powers` calls itself through `checkpoint`"):
        zg.gradient(powers, wrt="x")(0.5, 3)
    assert zg.jvp(lambda x: powers(x, 3), (0.5,), (1.0,))[1] == sum(2**k * 0.5 ** (2**k - 1) for k in range(4))


def test_in_a_try_is_refused():
    def f(x):
        try:
            y = zg.checkpoint(square_of_half)(x)
        except Exception:
            y = 3.0 * x
        return y

    with pytest.raises(DifferentiationError, match=r"`checkpoint` in `try` may raise"):
        zg.gradient(f)(2.0)


def square_of_half(x):
    return 0.25 * x * x
