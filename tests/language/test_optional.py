"""Variables that are `None` on one path and hold a value on another."""

import math

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.plain import plain
from zygote_py import DifferentiationError, gradient, pullback

pytestmark = pytest.mark.interpreted

X = np.array([0.5, 1.2, -0.3, 0.8])


def previous(x, n):
    last = None
    s = 0.0
    for i in range(n):
        v = math.sin(x * i)
        if last is not None:
            s += last * v
        last = v
    return s


def largest(x, n):
    best = None
    for i in range(n):
        v = math.sin(x * (i + 1))
        if best is None or v > best:
            best = v
    return best if best is not None else x


def on_one_path(x, y):
    z = None
    if x > 0.0:
        z = x * y
    if z is None:
        return -x * y
    return z * x


def previous_array(a, n):
    last = None
    s = 0.0
    for i in range(n):
        b = np.sin(a * (i + 1))
        if last is not None:
            s += np.sum(last * b) + last[1]
        last = b[::-1] if i % 2 == 0 else a[::-1]
    return s


def found(x):
    if x > 0.0:
        return x * x
    return None


def in_a_callee(x, y):
    r = found(x)
    t = found(y)
    s = 0.0
    if r != None:  # noqa: E711
        s += r * x
    if t == None:  # noqa: E711
        s *= y
    else:
        s += t * y
    return s + x


def passed_on(last, v):
    return v if last is None else last * v + v


def through_calls(x, n):
    last = None
    for i in range(n):
        last = passed_on(last, x * (i + 1))
    return last * 1.0 if last is not None else x


def reset(x, n):
    kept = None
    s = x
    for i in range(n):
        if i % 3 == 0:
            kept = None
        elif kept is None:
            kept = s
        else:
            kept = kept * x
            s += kept
    return s


def whole_numbers(x, n):
    first = None
    for i in range(n):
        if i * x > 1.0 and first is None:
            first = i
    return x * first if first is not None else x * x


def in_a_tuple(x, n):
    pair = (x, None if n > 2 else x * x)
    first, second = pair
    return first if second is None else first * second


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (previous, (0.7, 4)),
        (previous, (0.7, 1)),
        (largest, (0.7, 5)),
        (largest, (0.7, 0)),
        (on_one_path, (0.7, 1.3)),
        (on_one_path, (-0.7, 1.3)),
        (previous_array, (X, 4)),
        (previous_array, (X, 1)),
        (in_a_callee, (0.7, -1.3)),
        (in_a_callee, (-0.7, 1.3)),
        (through_calls, (0.7, 4)),
        (through_calls, (0.7, 0)),
        (reset, (0.7, 8)),
        (whole_numbers, (0.7, 5)),
        (whole_numbers, (0.7, 1)),
        (in_a_tuple, (0.7, 1)),
        (in_a_tuple, (0.7, 5)),
    ],
)
def test_gradients(function, args):
    check_derivatives(function, *args)


def must_be_there(x, n):
    last = None
    for i in range(n):
        last = x * i
    return last + x


def gives_it(x, n):
    last = None
    for i in range(n):
        last = x * i
    return last


@pytest.mark.parametrize("function", [must_be_there, gives_it])
def test_a_value_that_is_not_there(function):
    derivative = gradient(function, wrt="x")
    assert derivative(2.0, 3) == 2.0 + (function is must_be_there)
    with pytest.raises(TypeError, match="expected float64, got None"):
        derivative(2.0, 0)
    assert pullback(function, 2.0, 3)[1](1.0)[0] == derivative(2.0, 3)


def test_none_as_the_result_is_refused():
    with pytest.raises(DifferentiationError, match="returns a value on one path and `None` on another"):
        gradient(found)(1.0)


def product_or_none(x, y):
    if y > 0.0:
        return x * y
    return None


def test_what_another_function_returned_is_the_result_where_it_is_there():
    def f(x, y):
        v = product_or_none(x, y)
        if v is None:
            return x
        return v

    derivative = gradient(f)
    assert derivative(2.0, 3.0) == (3.0, 2.0)
    assert derivative(2.0, -3.0) == (1.0, 0.0)
    assert plain(derivative.source(2.0, 3.0))(2.0, -3.0) == (1.0, 0.0)


@numba.njit
def cubed(x):
    return x**3


@numba.njit
def solved(x, f, slope=None, other=None):
    if slope is None:
        return f(x)
    if other is not None:
        return other(x)
    return f(x) * slope(x)


def test_functions_that_may_be_none():
    def both(x):
        return solved(x, cubed, slope=cubed) + 10.0 * solved(x, f=cubed) + 100.0 * solved(x, cubed, cubed, other=cubed)

    def given(x, pair):
        return x if pair is None else x * pair[0]

    assert gradient(given, wrt=0)(2.0, (3.0, 1)) == 3.0
    assert gradient(both)(2.0) == 6 * 2.0**5 + 30 * 2.0**2 + 300 * 2.0**2


def test_the_identity_of_two_values_that_may_be_none_is_refused():
    def f(x):
        one = x if x > 1.0 else None
        other = x if x > 2.0 else None
        return x if one is other else 2.0 * x

    with pytest.raises(DifferentiationError, match="`is` with a value that may be `None` is not supported"):
        gradient(f)(2.5)
