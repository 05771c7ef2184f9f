"""Parameters that are `None` or hold a value: of functions that are inlined, and of those that stay functions."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import zygote_py as zg
from tests.checking.derivatives import check_derivatives
from tests.modes import one_in
from tests.plain import plain
from zygote_py import DifferentiationError, gradient

pytestmark = pytest.mark.interpreted

X = np.array([0.5, 1.2, -0.3, 0.8])


def recursive(x, n, last=None):
    if n == 0:
        return x if last is None else x * last
    return recursive(x * 1.1, n - 1, x if n % 2 == 0 else last) + (0.0 if last is None else last)


def recursive_array(x, n, last=None):
    if n == 0:
        return np.sum(x) if last is None else np.sum(x * last)
    return recursive_array(np.sin(x), n - 1, x if n % 2 else None) + (0.0 if last is None else last[0])


def returns_one(x, n):
    if n == 0:
        return None
    y = returns_one(x * 1.1, n - 1)
    return x if y is None else x * y


def result(x, n):
    y = returns_one(x, n)
    return 1.0 * x if y is None else y * x


def result_array(x, n):
    y = returns_one(x, n)
    return np.sum(x) if y is None else np.sum(y * x)


def even(x, n, p):
    if n == 0:
        return x if p is None else x * p
    return odd(x * 1.1, n - 1, None if n == 3 else x)


def odd(x, n, p):
    if n == 0:
        return x * x if p is None else x - p
    return even(math.sin(x), n - 1, p)


def each_other(x, n):
    return even(x, n, None) + even(x, n, 2.0 * x)


def holds_pair(x, n, last):
    if n == 0:
        if last is None:
            return x
        a, b = last
        return a * b
    return holds_pair(x * 1.3, n - 1, (x, x * x) if n % 2 == 0 else None) + (0.0 if last is None else last[1])


def pair(x, n):
    return holds_pair(x, n, None)


def in_pair(x, n, both):
    a, b = both
    if n == 0:
        return a if b is None else a * b
    return in_pair(x, n - 1, (x * a, b if n % 2 == 0 else None))


def in_a_pair(x, n):
    return in_pair(x, n, (x, x if n > 2 else None))


def whole_number(x, n, k):
    if n == 0:
        return x if k is None else x**k
    return whole_number(x * 1.2, n - 1, n if k is None or n % 2 == 0 else k)


def power(x, n):
    return whole_number(x, n, None)


@zg.checkpoint
def again(x, w):
    return np.sum(x * x) if w is None else np.sum(x * w)


def checkpoints(x, n):
    last, s = None, 0.0
    for i in range(n):
        s += again(x, last)
        last = np.sin(x * i)
    return s


def writes(x, w, n):
    if w is not None:
        w[n] += x * w[0]
    if n == 0:
        return x
    return writes(x * 1.1, w if n % 2 == 0 else None, n - 1) * (1.0 if w is None else w[1])


def written(x, w, n):
    w = w.copy()
    return writes(x, w, n) + w[0] * w[1]


def scaled(x, p=None, q=None):
    p = 1.5 if p is None else p
    if q is not None:
        p *= q
    return x * x * p


def down(x, p, q):
    return scaled(x, p) + scaled(x, q=q) + scaled(x, q=p, p=q)


def levels(x, p=None, q=None):
    return down(x, p, q) * 2.0


def levels_in_a_loop(x, n):
    last, s = None, 0.0
    for i in range(n):
        s += levels(x, last) + levels(x, x, last)
        last = x * i
    return s


def weighted(x, w=None):
    if w is None:
        w = np.ones_like(x)
    return np.sum(x * x * w)


def times(x, p):
    return x * p


def only_where_it_is_there(x, n):
    last, s = None, 0.0
    for i in range(n):
        if last is not None:
            s += times(x, last)
        last = x * i
    return s


def captured_later(x, n):
    p = None
    for i in range(n):
        p = x * i

    def g(y):
        return y if p is None else y * p

    return g(x) + g(2 * x)


@dataclass(frozen=True)
class Layer:
    W: np.ndarray
    b: np.ndarray | None = None

    def __call__(self, x, scale=None):
        y = self.W * x
        if self.b is not None:
            y = y + self.b
        return np.sum(y if scale is None else y * scale)


def fields(W, x):
    return Layer(W)(x) + Layer(W, x)(x) + Layer(W, x)(x, 2.0)


def stopped(x, n):
    p = None
    for _ in range(n):
        p = 2.0
    q = zg.stop_gradient(p)
    return x if q is None else x * q


@pytest.mark.parametrize(
    ("function", "args", "is_compiled"),
    [
        (fields, (X, X + 1.0), False),
        *one_in(
            2,
            [
                (recursive, (0.7, 4), True),
                (recursive, (0.7, 3), False),
                (recursive, (0.7, 4, 1.3), False),
                (recursive, (0.7, 4, None), False),
                (recursive_array, (X, 3, X), False),
                (recursive_array, (X, 4), True),
                (result, (0.7, 3), True),
                (result, (0.7, 0), False),
                (result_array, (X, 3), False),
                (result_array, (X, 0), False),
                (each_other, (0.7, 4), False),
                (each_other, (0.7, 5), False),
                (pair, (0.7, 3), False),
                (pair, (0.7, 4), False),
                (in_a_pair, (0.7, 3), False),
                (in_a_pair, (0.7, 2), False),
                (power, (0.7, 3), False),
                (power, (0.7, 0), False),
                (checkpoints, (X, 3), True),
                (written, (0.7, X, 2), False),
                (written, (0.7, X, 3), False),
                (levels, (0.7, None, None), False),
                (levels, (0.7, 1.3, None), False),
                (levels, (0.7, None, 1.3), False),
                (levels_in_a_loop, (0.7, 3), False),
                (levels, (0.7, 1.3, 1.7), False),
                (weighted, (X, None), False),
                (weighted, (X, X[::-1]), False),
                (only_where_it_is_there, (0.7, 3), False),
                (captured_later, (0.7, 0), False),
                (captured_later, (0.7, 3), False),
                (stopped, (0.7, 0), False),
                (stopped, (0.7, 2), False),
            ],
        ),
    ],
)
@pytest.mark.compiled
def test_gradients(function, args, is_compiled):
    check_derivatives(function, *args, routes=("call",) if is_compiled else ("source",))


@pytest.mark.compiled
@pytest.mark.parametrize("p", [None, 1.3])
def test_every_kind_of_derivative(p):
    """Of x * x * p, or x * x * 1.5."""
    x, factor = 0.7, 1.5 if p is None else p
    assert gradient(scaled, wrt="x")(x, p) == pytest.approx(2 * x * factor)
    assert zg.hessian(scaled, wrt="x")(x, p) == pytest.approx(2 * factor)
    value, back = zg.pullback(scaled, x, p)
    assert value == pytest.approx(x * x * factor)
    dx, dp, *_ = back(2.0)
    assert dx == pytest.approx(4 * x * factor)
    assert dp is None if p is None else dp == pytest.approx(2 * x * x)
    tangent = zg.jvp(lambda x: scaled(x, p), (x,), (2.0,))[1]
    assert tangent == pytest.approx(4 * x * factor)


def test_second_derivatives_through_routines():
    def slope(x):
        return gradient(recursive, wrt="x")(x, 3)

    step = 1e-5
    expected = (slope(0.7 + step) - slope(0.7 - step)) / (2 * step)
    assert zg.hessian(recursive, wrt="x")(0.7, 3) == pytest.approx(expected, rel=1e-8)


def product(x, p):
    return x * x if p is None else x * x * p


@zg.adjoint(product)
def rule(x, p):
    def back(dy):
        if p is None:
            return dy * 2 * x, None
        return dy * 2 * x * p, dy * 3 * x * x  # three times what it is, so that it is seen to be taken

    return product(x, p), back


def maybe(x, n):
    return x * x if n > 0 else None


@zg.adjoint(maybe)
def rule_of_maybe(x, n):
    y = x * x if n > 0 else None

    def back(dy):
        return 3 * dy * x, None

    return y, back


def product_in_a_loop(x, n):
    p = None
    for i in range(n):
        p = x * i
    return product(x, p)


def result_of_maybe(x, n):
    y = maybe(x, n)
    return x if y is None else y * x


@pytest.mark.compiled
def test_rules_of_users():
    """The gradient of p is 3 x^2, that of `maybe` 3 x, where there are any."""
    x = 0.7
    for function, n, expected in (
        (product_in_a_loop, 0, 2 * x),
        (product_in_a_loop, 3, 2 * x * 2 * x + 3 * x * x * 2),
        (result_of_maybe, 0, 1.0),
        (result_of_maybe, 1, x * x + 3 * x * x),
    ):
        derivative = gradient(function, wrt="x")
        assert plain(derivative.source(x, n))(x, n) == pytest.approx(expected)
    assert derivative(x, 1) == pytest.approx(expected)
    assert gradient(lambda x: product(x, None))(x) == pytest.approx(2 * x)
    assert gradient(lambda x, p: product(x, p))(x, 1.3) == pytest.approx((2 * x * 1.3, 3 * x * x))


def maybe_array(x, n):
    return x * x if n > 0 else None


@zg.adjoint(maybe_array)
def rule_of_array(x, n):
    def back(dy):
        return dy * x, None

    return maybe_array(x, n), back


def result_of_maybe_array(x, n):
    y = maybe_array(x, n)
    return np.sum(x) if y is None else np.sum(y)


def derivative_of_one(x, n):
    p = None
    for i in range(n):
        p = x * i
    return gradient(product, wrt="x")(x, p)


@pytest.mark.parametrize(
    ("function", "x", "says"),
    [
        (
            result_of_maybe_array,
            X,
            "`maybe_array`, which has the rule .*, returns a value of type .*, `None` on another",
        ),
        (
            derivative_of_one,
            0.7,
            "the argument `p` of a derivative is a value that may be `None`.*\n.*\n.*\n.*`1 \\* p`",
        ),
    ],
)
def test_refused(function, x, says):
    with pytest.raises(DifferentiationError, match=says):
        gradient(function, wrt="x").source(x, 2)


def fails(x, n):
    last = None
    for i in range(n):
        last = x * i
        last = times(last, "a")
    return times(x, last)


def never_there(x):
    return times(x, None)


@pytest.mark.parametrize(("function", "args"), [(fails, (0.7, 3)), (never_there, (0.7,))])
def test_what_is_wrong_in_a_function_is_said(function, args):
    with pytest.raises(DifferentiationError, match=r"Numba has no `mul\(float64, (str|none)\)`") as error:
        gradient(function).source(*args)
    assert "return x * p" in str(error.value)
    assert f"{function.__name__} (test_optional_arguments.py:" in str(error.value)
