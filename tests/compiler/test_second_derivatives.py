"""Second derivatives where they are easily lost: adjoints that are zero by chance, captured variables, and stacks.

Each case was wrong, refused or without end once. Known values, or differences of gradients that are not nested.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.checking.slopes import differences
from tests.plain import plain
from zygote_py import gradient, value_and_gradient
from zygote_py.adjoints import DifferentiationError
from zygote_py.api.directions import derivative, hessian, hvp, jvp

pytestmark = pytest.mark.interpreted


def at(derived, *args):
    """Return the result of a derivative, whose emitted source is run in plain Python."""
    return plain(derived.source(*args))(*args)


def hessians(f, x, y):
    """The Hessian in x by forward over reverse and by reverse over reverse."""
    along = gradient(lambda x, y, v: np.sum(gradient(f, wrt=0)(x, y) * v), wrt=0)
    forward, reverse = plain(hvp(f, wrt=0).source(x, y, x)), plain(along.source(x, y, x))
    basis = np.eye(x.size).reshape(x.size, *x.shape)
    return (np.array([way(x.copy(), y, v).ravel() for v in basis]) for way in (forward, reverse))


def by_differences(f, x, y):
    """The Hessian in x as differences of gradients."""
    first = plain(gradient(f, wrt=0).source(x, y))
    return differences(first, x, y, wrt=(0,)).T


# What is zero by chance has a derivative.


def test_a_tangent_that_is_zero_has_a_derivative():
    assert at(derivative(derivative(lambda x: math.log(1 + x * x))), 0.0) == 2.0
    for make in (gradient, derivative):
        assert at(make(lambda v, x: jvp(lambda z: math.log(z), (x,), (v,))[1], wrt="v"), 0.0, 2.0) in (0.5, (0.5,))


def test_an_adjoint_that_is_zero_has_a_derivative():
    def f(x, w):
        return np.where(x > 0, math.log(x), 0.0) * w

    def g(a, w):
        b = a.copy()
        b[0] = np.log(a)[0] * w
        return np.sum(b)

    assert at(gradient(lambda x, w: gradient(f, wrt="x")(x, w), wrt="w"), 2.0, 0.0) == 0.5
    a = np.array([2.0, 3.0])
    assert at(gradient(lambda a, w: gradient(g, wrt="a")(a, w)[0], wrt="w"), a, 0.0) == 0.5
    assert at(hvp(g, wrt=("a", "w")), a, 0.0, (np.zeros(2), 1.0))[0].tolist() == [0.5, 0.0]


def test_what_is_not_taken_contributes_nothing():
    def f(x):
        return np.where(x > 0, math.sqrt(abs(x)) + abs(x) ** 1.5, 0.0) * x + x * x

    for second in (derivative(derivative(f)), gradient(gradient(f)), derivative(gradient(f)), gradient(derivative(f))):
        assert at(second, 0.0) == 2.0


S = np.array([[2.0, 0.3, -0.4], [0.3, 1.0, 0.2], [-0.4, 0.2, -0.7]])
T = np.array([[0.4, -1.2, 0.7], [0.9, 0.1, -0.3], [-0.5, 0.8, 1.1], [0.2, 0.6, -0.9]])


@pytest.mark.parametrize(
    ("operation", "x"),
    [
        (lambda x: np.log(np.where(x > 0, x, 1.0)), np.array([0.3, 2.0])),
        (lambda a: np.linalg.eigvalsh(0.5 * (a + a.T)), S),
        pytest.param(lambda a: np.linalg.eigh(0.5 * (a + a.T))[0], S, marks=pytest.mark.long),
        (lambda a: np.linalg.pinv(a), T),
        pytest.param(lambda a: np.linalg.qr(a)[1], T, marks=pytest.mark.long),
        pytest.param(lambda a: np.linalg.svd(a, False)[1], T, marks=pytest.mark.long),
        pytest.param(lambda a: np.linalg.norm(a, 2), T, marks=pytest.mark.long),
        pytest.param(lambda a: np.linalg.cond(a), T, marks=pytest.mark.long),
        pytest.param(lambda a: np.linalg.slogdet(a)[1], T[:3], marks=pytest.mark.long),
        pytest.param(lambda a: np.linalg.lstsq(a, a[:, 0] * a[:, 1])[0], T, marks=pytest.mark.long),
    ],
)
def test_the_hessian_at_a_perfect_fit(operation, x):
    def f(x, y):
        return np.sum((operation(x) - y) ** 2)

    y = np.array(operation(x))  # so that all adjoints are zero
    expected = by_differences(f, x, y)
    assert np.max(np.abs(expected)) > 0.01
    for found in hessians(f, x, y):
        assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x, y: np.logaddexp(x[0], x[1]) + np.logaddexp2(x[1], x[2]), np.ones(3)),
        (lambda x, y: x[0] ** x[1], np.array([2.0, 0.0])),
        (lambda a, y: np.linalg.det(a), np.zeros((2, 2))),
        (lambda a, y: np.linalg.det(a), np.array([[1.0, 2.0, -1.0], [2.0, 4.0, -2.0], [3.0, 6.0, -3.0]])),
        (lambda x, y: np.prod(x), np.array([2.0, 0.0, 0.0, 3.0])),
        (lambda x, y: np.sum(np.sinc(x)), np.array([0.0, 0.2, 0.29999])),
    ],
)
def test_points_at_which_a_rule_takes_another_form(f, x):
    for found in hessians(f, x, 0.0):
        assert np.allclose(found, by_differences(f, x, 0.0), rtol=1e-5, atol=1e-5)


# Derivatives of derivatives, made in Python


def test_the_gradient_of_another_derivative():
    f, x = (lambda x: math.sin(x) * math.exp(x)), 0.7
    second, third = 2 * math.exp(x) * math.cos(x), 2 * math.exp(x) * (math.cos(x) - math.sin(x))
    assert at(gradient(hessian(f)), x) == pytest.approx(third, rel=1e-14)
    assert at(value_and_gradient(hessian(f)), x) == pytest.approx((second, third), rel=1e-14)
    assert at(gradient(hvp(f)), x, 2.0) == pytest.approx((2 * third, second), rel=1e-14)
    assert at(gradient(hvp(f), wrt="v"), x, 2.0) == pytest.approx(second, rel=1e-14)
    assert gradient(hessian(f))(x) == pytest.approx(third, rel=1e-14)


def test_arguments_without_numbers():
    def f(x, how, rest):
        return x**3 if how == "cube" else x

    assert hessian(f)(2.0, "cube", ()) == 12.0
    assert hvp(f, wrt="x")(2.0, "cube", (), 2.0) == 24.0


# Captured variables of inner functions


def test_gradients_with_respect_to_what_an_inner_function_captures():
    def number(x):
        w = x * x

        def g(y):
            return w * w * y * y

        by_y, by_w = gradient(g, wrt=("y", "w"))(3.0)  # 2 w^2 y, 2 w y^2
        return by_y + by_w + gradient(g, wrt="w")(x)

    def array(a):
        w = a * 2.0

        def g(y):
            return np.sum(w * w) * y

        by_y, captured = gradient(g, closure=True)(a[0])
        return by_y + np.sum(captured.w)

    def pair(x):
        w = (x, x * x)
        by_first, by_second = gradient(lambda y: w[0] * w[1] * y, wrt="w")(3.0)
        return by_first + 2 * by_second

    for make in (gradient, derivative):
        assert at(make(number), 2.0) == pytest.approx(6 * 4 * 8 + 18 * 4 + 8 * 8)
        assert at(make(pair), 2.0) == 18.0
    assert at(gradient(array), np.array([1.0, 2.0])).tolist() == [24.0, 20.0]
    assert gradient(number)(2.0) == pytest.approx(6 * 4 * 8 + 18 * 4 + 8 * 8)


def test_what_an_inner_function_does_not_capture():
    def f(x):
        n = 2

        def g(y):
            return x * y**n

        return gradient(g, wrt="n")(3.0)

    def g(x):
        return gradient(lambda y: x * y, wrt="z")(3.0)

    with pytest.raises(DifferentiationError, match="`n`, a captured int"):
        gradient(f).source(2.0)
    with pytest.raises(DifferentiationError, match="captured variables: x"):
        gradient(g).source(2.0)


def test_an_inner_function_that_captures_one_that_captures_nothing():
    def f(x, y):
        h = lambda q: q * q
        return derivative(lambda q: q * gradient(h)(q * y))(x)

    assert at(gradient(f), 2.0, 3.0) == (12.0, 8.0)


def ruled(x, y):
    return x * x if y > 0 else x * y


@zg.adjoint(ruled)
def rule_of_ruled(x, y):
    if y > 0:
        return x * x, lambda d: (d * 2 * x, 0.0)
    return x * y, lambda d: (d * y, d * x)


def test_a_derivative_beside_the_call_of_a_function_with_a_rule():
    def f(x, y):
        return gradient(lambda q: q * q * x)(y) * ruled(x, y)

    assert at(gradient(f), 2.0, 3.0) == (3 * 4 * 2 * 3.0, 2 * 2 * 4.0)


# Records of while loops are stacks of tuples


def test_a_loop_on_one_path_that_records_several_values():
    def f(x, n):
        s = x
        if n > 2:
            while s < 20.0:
                t = math.sin(s)
                s = s * x + t * x
        return s

    first, step = plain(gradient(f, wrt="x").source(1.7, 4)), 1e-6
    expected = (first(1.7 + step, 4) - first(1.7 - step, 4)) / (2 * step)
    for second in (gradient(gradient(f, wrt="x"), wrt="x"), derivative(gradient(f, wrt="x"))):
        assert at(second, 1.7, 4) == pytest.approx(expected, rel=1e-7)


# Functions that take any number of arguments


def scaled(w, *xs):
    total = 0.0
    for x in xs:
        total += x * x * w
    return total


def test_gradients_inside_of_functions_that_take_any_number_of_arguments():
    def f(x):
        by_all = gradient(scaled)(x, x, 2.0)  # x^2 + 4, 2 x^2, 4 x
        by_rest = gradient(scaled, wrt="xs")(x, x, 2.0)
        value, by_w = value_and_gradient(scaled, wrt="w")(x, x, 2.0)
        return by_all[0] + by_all[1] + by_rest[1] + value + by_w

    def g(x):
        def h(*xs):
            return xs[0] * xs[1] * x

        pair = (x, 2.0)
        return gradient(h)(*pair)[1]

    for make in (gradient, derivative):
        assert at(make(f), 3.0) == pytest.approx(8 * 3.0 + 8 + 3 * 9.0)
        assert at(make(g), 3.0) == 6.0


def test_defaults_that_an_inner_function_captures():
    def f(x):
        def g(y, w=x * x):
            return y * y * w

        return g(3.0) + gradient(g, wrt="y")(x, 2.0) + derivative(g)(x)  # 9 x^2 + 4 x + 2 x^3

    assert at(gradient(f), 2.0) == 36.0 + 4.0 + 24.0


def test_a_captured_array_may_be_the_argument_where_neither_is_written_to():
    def f(a):
        return np.sum((np.linalg.pinv(a) - np.linalg.pinv(T)) ** 2)

    forward = plain(hvp(f).source(T, T))
    assert np.array_equal(forward(T, np.ones(T.shape), T), forward(T, np.ones(T.shape), T.copy()))


def halved(x, n):
    if n == 0:
        return x
    while x * x > 1.0:
        x = 0.7 * x * math.sin(x)
    return halved(2.0 * x, n - 1) * x


def test_a_recursion_whose_records_hold_stacks():
    def slope(x, h=1e-4):
        return (8.0 * (halved(x + h, 3) - halved(x - h, 3)) - halved(x + 2 * h, 3) + halved(x - 2 * h, 3)) / (12 * h)

    expected = (slope(1.3 + 1e-4) - slope(1.3 - 1e-4)) / 2e-4
    assert at(gradient(gradient(lambda x: halved(x, 3))), 1.3) == pytest.approx(expected, rel=1e-5)
    assert at(hessian(lambda x: halved(x, 3)), 1.3) == pytest.approx(expected, rel=1e-5)


def test_a_gradient_of_a_hessian_differentiated_again():
    """The residuals of the forward function are more than one tuple holds; they used to be lost silently."""

    def total(x):  # 6 x y + 6 x^2
        return np.sum(hessian(lambda y: y[0] ** 3 * y[1])(x))

    x = np.array([0.7, 1.3])
    np.testing.assert_allclose(at(gradient(lambda x: gradient(total)(x)[0]), x), [12.0, 6.0], rtol=1e-14)


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_part_of_an_array_and_the_array_in_both_halves(start):
    """The shadow was made again in the reverse half, and its part was one of the first shadow."""

    def f(x, start):  # x^2 for each element that is not overwritten, x for the others
        w = np.empty(2)
        w[:] = x
        w[start % 3 :] = 1.0
        return np.sum(x * w)

    along = gradient(lambda x, start, v: gradient(f, wrt="x")(x, start) * v, wrt="x")
    assert at(along, 0.3, start, 0.5) == start


def powers(t):
    s = [t]
    for i in range(3):
        s.append(s[i] * t)
    s[0] = s[1] * s[3]
    return s[0] * s[2]  # t^9


def falling(x, n):
    if n <= 0:
        return math.sin(x)
    return falling(x, n - 1) * x  # x^n sin(x)


def test_lists_that_a_routine_keeps_have_shadows():
    """They were made anew where the routine is called, and what the routine put into the first ones was lost."""
    assert at(gradient(gradient(lambda x: derivative(powers)(x))), 1.1) == pytest.approx(504 * 1.1**6, rel=1e-14)

    third = gradient(gradient(lambda x: derivative(lambda q: falling(q, 2))(x)))
    expected = 6.0 * math.cos(1.1) - 6.0 * 1.1 * math.sin(1.1) - 1.1**2 * math.cos(1.1)
    assert at(third, 1.1) == pytest.approx(expected, rel=1e-14)


def test_arrays_that_are_written_out_are_no_lists():
    source = gradient(lambda x: np.sum(np.array([x, x**3]))).source(0.7)
    assert "append" not in source
    twice = gradient(gradient(lambda x: np.sum(derivative(lambda t: np.array([t, t**3]))(x))))
    assert at(twice, 0.7) == 6.0


@zg.checkpoint
def growing(x):
    s = x
    while s < 2.0:
        t = math.sin(s) + 1.1
        s = s * t + math.exp(t) * x
    return s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, 2.0 * s


def test_a_stack_among_many_results():
    """A tuple of tuples with a stack of tuples in it was an internal error."""

    def f(x):
        grown = growing(x)
        return grown[0] * grown[15]

    slope = plain(gradient(f).source(0.7))
    expected = (slope(0.7 + 1e-4) - slope(0.7 - 1e-4)) / 2e-4
    assert at(hessian(f), 0.7) == pytest.approx(expected, rel=1e-6)
    assert at(gradient(gradient(f)), 0.7) == pytest.approx(expected, rel=1e-6)


@numba.njit("float64[:](float64[:])", fastmath=True)
def quaternion(x):
    q = np.zeros(4)
    if x[0] < 1e-9:
        q[0] = np.sqrt(x[0])
    if x[1] < 1e-9:
        q[1] = 0.0
    elif x[2] > x[3]:
        q[1] = -np.sqrt(x[1])
    if x[2] < 1e-9:
        q[2] = 0.0
    elif x[3] < x[0]:
        q[2] = -0.5 * np.sqrt(x[2])
    if x[3] > 1e-9:
        q[3] = 0.5 * np.sqrt(x[3])
    return q / np.sqrt(np.sum(np.square(q)))


@numba.njit
def doubled(q):
    return q * 2.0


def test_an_array_that_is_returned_as_one_of_any_layout():
    """A signature says less of the memory of a result than is known of it: an internal error."""

    def f(x):
        r = doubled(quaternion(x))
        return r[1] * r[2] + r[3]

    x, v = np.array([0.3, 0.6, 0.7, 0.1]), np.array([0.3, -0.2, 0.5, 1.0])
    slope = plain(gradient(f).source(x))
    expected = (slope(x + 1e-6 * v) - slope(x - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(at(hvp(f), x, v), expected, rtol=1e-7)


def counted_under_two_conditions(x, n):
    k = 0
    while k < min(5, n % 6) and (n < 1.5 or (x if x else x) < math.atan(0.1 * x)):  # noqa: RUF034 (one block more)
        k += 2
    if k:
        r = x
    else:
        t = 1.0
        t += x
        s = np.tanh(0.5 * t)
    return r if k else s


@pytest.mark.parametrize("n", [3, 1, 0])
def test_a_counter_that_is_used_after_a_loop_with_two_conditions(n):
    """It counted on where the second condition ended the loop: another branch was taken."""
    x, y = 0.658, math.tanh(0.5 * 1.658)
    expected = 0.0 if n == 1 else -0.5 * y * (1.0 - y * y)
    assert at(hessian(counted_under_two_conditions, wrt=0), x, n) == pytest.approx(expected, rel=1e-12)
    slope = derivative(lambda z: counted_under_two_conditions(z, n))
    assert at(derivative(lambda z: slope(z)), x) == pytest.approx(expected, rel=1e-12)
