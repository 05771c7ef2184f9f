"""Inner functions whose captured variables have two types, and functions and their derivatives in one variable."""

import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from zygote_py import DifferentiationError, checkpoint, gradient, value_and_gradient

pytestmark = pytest.mark.interpreted


def apply(f, x):
    return f(x)


def in_turn(fs, x):
    for f in fs:
        x = f(x)
    return x


def square(v):
    return v * v


def square_times(w):
    def g(v):
        return v * v * w

    return g


def sum_from_an_integer(x, n):
    s = 0
    for i in range(n):
        s += x * i
    h = lambda q: q * s
    return x + h(x)


def passed_on(x, n):
    s = 0
    for i in range(n):
        s = x + i
    return x + apply(lambda q: q * q * s, x)


def in_a_loop(x, n):
    s = 0
    for _ in range(n):
        x += apply(lambda q: q * s, x)
        s = x
    return x


def in_a_tuple(x, n):
    s, t = 0, True
    for i in range(n):
        s, t = s + x, i + 2
    return in_turn((lambda q: q * s * t, lambda q: q + s), x)


def made_of_two_types(x, n):
    h = square_times(2) if n > 2 else square_times(x)
    return h(x)


def complex_later(x, n):
    w = 1
    if n > 1:
        w = 1 + x * 1j
    h = lambda q: abs(q * w) ** 2
    return h(x)


def tuple_of_two_types(x, n):
    pair = (0, x)
    if n > 1:
        pair = (x, x)
    h = lambda q: pair[0] * q + pair[1]
    return h(x)


def closure_of_two_types(x, n):
    w = square_times(x) if n > 1 else square_times(square_times(2)(x))
    h = lambda q: w(q) * q
    return h(x)


def array_of_two_layouts(x, n):
    w = np.array([x, 2.0])
    if n > 1:
        w = np.array([x, 3.0, x])[::2]
    h = lambda q: np.sum(w * q)
    return h(x)


@pytest.mark.parametrize(
    "f",
    [
        sum_from_an_integer,
        passed_on,
        in_a_loop,
        in_a_tuple,
        made_of_two_types,
        complex_later,
        tuple_of_two_types,
        closure_of_two_types,
        array_of_two_layouts,
    ],
)
@pytest.mark.parametrize("n", [0, 3])
def test_a_captured_variable_of_two_types(f, n):
    check_derivatives(f, 1.3, n)


def assigned_on_another_path(x, n):
    k, y = 0.0, x
    g = lambda v: v * y
    k += g(1.0)
    y = 3.0 * x  # Numba puts `g` into the place of its calls, and drops this
    k += g(1.0)
    if n > 5:
        x = 2.0 * x
    else:
        for _ in range(n):
            h = lambda q: q * x
            k += apply(h, 2.0)
    return k


def test_an_assignment_on_a_path_without_the_function():
    """It was refused as one that comes after the function was made."""
    check_derivatives(assigned_on_another_path, 1.3, 3)


def recursion_without_captures(x, n):
    def power(v, m):
        return v if m <= 0 else v * power(v, m - 1)

    def product(v, m):
        if m <= 0:
            return v
        return v * product(v, m - 1)

    return power(x, n) + product(x, n)


def derivatives_in_a_tuple(x, n):
    def make(w):
        return lambda v: v * v if w is None else v * w

    h = gradient(make(None))
    return in_turn((h, h), x)


def derivative_of_two_types(x, n):
    s = 0
    for _ in range(n):
        s = x
    return gradient(lambda q: q * q * s)(x)


def derivatives_in_a_loop(x, n):
    s = 0
    for _ in range(n):
        d = gradient(lambda q: q * q * s)
        x += d(x)
        s = x
    return x


def derivatives_of_derivatives(x, n):
    s = 0
    for _ in range(n):
        s = x
    return gradient(gradient(lambda q: q * q * q * s))(x)


def function_and_derivative(x, n):
    h = square_times(x)
    return in_turn((h, gradient(h)), x)


@pytest.mark.parametrize(
    ("f", "value", "slope"),
    [
        (derivative_of_two_types, 2 * 1.3**2, 4 * 1.3),  # 2 x^2
        (derivatives_in_a_loop, 1.3 + 2 * 1.3**2, 1 + 4 * 1.3),  # x + 2 x^2
        (derivatives_of_derivatives, 6 * 1.3**2, 12 * 1.3),  # 6 x^2
        (recursion_without_captures, 2 * 1.3**3, 6 * 1.3**2),  # x^3 twice
        (derivatives_in_a_tuple, 4 * 1.3, 4.0),  # 2 (2 x)
        (function_and_derivative, 2 * 1.3**4, 8 * 1.3**3),  # h(x) = x^3, its derivative there 2 x^3 x
    ],
)
def test_derivatives_stay_derivatives(f, value, slope):
    found, (gradient_found, _) = value_and_gradient(f)(1.3, 2)
    assert found == pytest.approx(value, rel=1e-14)
    assert gradient_found == pytest.approx(slope, rel=1e-14)


def function_or_derivative(x, n):
    h = square_times(x) if n > 1 else gradient(square_times(x))
    return h(x)


def derivative_of_optional(x, n):
    s = None
    for _ in range(n):
        s = x
    return gradient(lambda q: q * q if s is None else q * q * s)(x)


def checkpoint_of_derivative(x, n):
    return checkpoint(gradient(square_times(x)))(x)


def holds_the_last(x, n):
    h = None
    for _ in range(n):
        g = h
        h = lambda q: q if g is None else 2.0 * q
    return x


def holds_the_last_in_a_tuple(x, n):
    def make(w):
        return lambda q: q if w is None else 2.0 * q

    h = make(None)
    for _ in range(n):
        h = make((h, 1))
    return h(x)


def lists_of_two_types(x, n):
    def make(w):
        return lambda q: q * w[0]

    h = make([1, 2]) if n > 2 else make([x, 2.0])
    return h(x)


def a_list_of_two_types(x, n):
    fs = [square_times(2), square_times(x)]
    if n > 1:
        fs = [square_times(1), square_times(3)]
    return fs[n % 2](x)


@pytest.mark.parametrize("f", [holds_the_last, holds_the_last_in_a_tuple, lists_of_two_types, a_list_of_two_types])
def test_types_without_one_for_both(f):
    with pytest.raises(DifferentiationError, match="in one place"):
        gradient(f)(1.3, 3)


def truth_of_a_function(x, n):
    def power(v, m):
        return v if m <= 0 else v * power(v, m - 1)

    d = gradient(square)
    if not d:
        return x
    return power(x, n) * d(x) if power else x


def test_a_function_is_true():
    """One that holds nothing was false."""
    value, (slope, _) = value_and_gradient(truth_of_a_function)(1.3, 1)
    assert value == pytest.approx(2 * 1.3**3, rel=1e-14)  # x^2 (2 x)
    assert slope == pytest.approx(6 * 1.3**2, rel=1e-14)


def test_functions_are_not_compared():
    f = lambda x, n: x if square_times(2) == square_times(2) else 3.0 * x
    with pytest.raises(DifferentiationError, match="this operation on a function is not supported"):
        gradient(f)(1.3, 2)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (
            function_or_derivative,
            r"g\(float64,\) in one place and `gradient` of the function square_times",
        ),
        (derivative_of_optional, "a value that may be `None`, is not supported"),
        (checkpoint_of_derivative, "`checkpoint` of a `gradient` is not supported: pass a function that calls it"),
    ],
)
def test_refusals(f, message):
    """Each gave the value of the function itself."""
    with pytest.raises(DifferentiationError, match=message):
        gradient(f)(1.3, 2)
