"""Derivatives inside of functions that are differentiated: nested, mixed, of closures; no perturbation is confused."""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import pytest

from tests.checking.slopes import differences
from tests.modes import one_in
from tests.plain import plain
from zygote_py import (
    DifferentiationError,
    derivative,
    gradient,
    hessian,
    hessian_diagonal,
    hvp,
    jacobian,
    jvp,
    pullback,
    value_and_gradient,
)
from zygote_py.numba_adapter import DerivedCall

pytestmark = pytest.mark.interpreted

W = np.array([1.0, 2.0])


def product_of(y, w):
    return math.sin(y * w)


slope = gradient(product_of, wrt="y")


@pytest.mark.parametrize("outer", [gradient, derivative])
@pytest.mark.parametrize("inner", ["gradient", "derivative", "jvp"])
def test_perturbations_are_not_confused(outer, inner):
    programs = {
        "gradient": lambda x: x * gradient(lambda y: x + y)(1.0),
        "derivative": lambda x: x * derivative(lambda y: x + y)(1.0),
        "jvp": lambda x: x * jvp(lambda y: x + y, (1.0,), (1.0,))[1],
    }
    assert outer(programs[inner])(1.0) == 1.0


@pytest.mark.parametrize("outer", [gradient, derivative])
def test_products_of_both_variables(outer):
    def f(x):
        return x * gradient(lambda y: x * y * y)(3.0) + derivative(lambda y: y * x**2)(x)

    assert outer(f)(2.0) == pytest.approx(6.0 * 2 * 2.0 + 2 * 2.0, rel=1e-15)


def test_of_a_gradient_that_was_made_before():
    def f(x):
        return slope(x, 2.0) * x + gradient(product_of)(x, x)[1]

    def by_hand(x):
        return 2 * math.cos(2 * x) * x + x * math.cos(x * x)

    assert gradient(f)(0.7) == pytest.approx(differences(by_hand, 0.7).item(), rel=1e-8)
    assert plain(gradient(f).source(0.7))(0.7) == pytest.approx(gradient(f)(0.7), rel=1e-15)


def test_captured_variables_of_the_inner_function():
    def loss(v):
        return np.sum(np.sin(v * W))

    def f(v):
        s = 0.0
        for i in range(3):
            s += np.sum(gradient(loss)(v * i) ** 2)
        return s

    def by_hand(v, w):
        return sum(np.sum((w * np.cos(w * v * i)) ** 2) for i in range(3))

    v = np.array([0.3, 0.4])
    dv, dw = gradient(f, wrt=("v", "W"))(v)
    for k, unit in enumerate(np.eye(2)):
        assert dv[k] == pytest.approx(differences(lambda t, e=unit: by_hand(v + t * e, W), 0.0).item(), rel=1e-7)
        assert dw[k] == pytest.approx(differences(lambda t, e=unit: by_hand(v, W + t * e), 0.0).item(), rel=1e-7)


def test_passed_on_and_returned():
    def apply(g, x):
        return g(x)

    def steepest(f):
        return gradient(f)

    def f(x):
        return apply(gradient(lambda y: y**3 * x), x) + steepest(lambda y: y * y)(x)

    assert gradient(f)(2.0) == pytest.approx(9 * 4.0 + 2.0)


def test_three_levels():
    def third(x):
        return gradient(gradient(lambda u: math.sin(u) * x * u))(x)

    def by_hand(x):
        return x * (2 * math.cos(x) - x * math.sin(x))

    assert gradient(third)(0.5) == pytest.approx(differences(by_hand, 0.5).item(), rel=1e-9)
    assert derivative(third)(0.5) == pytest.approx(gradient(third)(0.5), rel=1e-14)


def powers(x, n):
    r = 1.0
    for _ in range(n):
        r = r * math.sin(x) * math.exp(x)
    return r


def test_third_derivatives_in_a_loop():
    e, s, c = math.exp(0.5), math.sin(0.5), math.cos(0.5)
    first = gradient(powers, wrt="x")
    second = gradient(first, wrt="x")
    third = gradient(second, wrt="x")
    assert first(0.5, 1) == pytest.approx(e * (s + c), rel=1e-15)
    assert second(0.5, 1) == pytest.approx(2 * e * c, rel=1e-14)
    assert third(0.5, 1) == pytest.approx(2 * e * (c - s), rel=1e-14)
    assert third(0.5, 3) == pytest.approx(differences(lambda x: second(x, 3), 0.5).item(), rel=1e-8)
    assert derivative(derivative(derivative(powers)))(0.5, 3) == pytest.approx(third(0.5, 3), rel=1e-13)


def test_several_parameters_and_values():
    def f(x, y):
        value, (a, b) = value_and_gradient(lambda u, v: u * v * v * x)(y, x)
        return value * a + b

    def by_hand(x, y):
        return (y * x * x * x) * (x * x * x) + 2 * y * x * x

    dx, dy = gradient(f)(1.3, 0.7)
    assert dx == pytest.approx(differences(lambda x: by_hand(x, 0.7), 1.3).item(), rel=1e-8)
    assert dy == pytest.approx(differences(lambda y: by_hand(1.3, y), 0.7).item(), rel=1e-8)


def test_hessians_and_jacobians_inside():
    def f(x):
        h = hessian(lambda y: np.sum(y**3) * x[0])(x)
        j = jacobian(lambda y: y * y[0])(x)
        return np.sum(h * h) + np.sum(j)

    def by_hand(x):
        h = np.diag(6 * x * x[0])
        j = np.eye(2) * x[0]
        j[:, 0] += x
        return np.sum(h * h) + np.sum(j)

    x = np.array([0.7, -0.4])
    expected = [differences(lambda t, e=e: by_hand(x + t * e), 0.0).item() for e in np.eye(2)]
    np.testing.assert_allclose(gradient(f)(x), expected, rtol=1e-7)


def test_a_function_that_takes_its_own_derivative_is_refused():
    def f(x, n):
        return x if n == 0 else gradient(f, wrt="x")(x, n - 1)

    with pytest.raises(DifferentiationError, match="takes a derivative of itself"):
        gradient(f, wrt="x")(1.0, 2)


def summed_squares(y):
    return np.sum(y * y)


def test_exceptions_of_derivatives_inside_are_caught():
    def f(x, v):
        try:
            _, change = jvp(summed_squares, (x,), (v,))
        except Exception:
            change = np.sum(x)
        return change

    x = np.arange(3.0)
    np.testing.assert_array_equal(gradient(f, wrt="x")(x, np.ones(3)), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(gradient(f, wrt="x")(x, np.ones(2)), [1.0, 1.0, 1.0])  # the shapes differ


def test_drivers_are_not_typed_by_numba(monkeypatch):
    def written(self, function, argument_types):
        raise AssertionError(f"{self.name} is written as a text")

    monkeypatch.setattr(DerivedCall, "written", written)
    x = np.arange(3.0)
    np.testing.assert_array_equal(hessian(summed_squares)(x), 2.0 * np.eye(3))
    np.testing.assert_array_equal(hessian_diagonal(summed_squares)(x), 2.0 * np.ones(3))
    np.testing.assert_array_equal(jacobian(lambda x: x * x, mode="forward")(x), 2.0 * np.diag(x))
    np.testing.assert_array_equal(hvp(summed_squares)(x, x), 2.0 * x)
    np.testing.assert_array_equal(jvp(summed_squares, (x,), (x,))[1], 10.0)
    np.testing.assert_array_equal(derivative(lambda t: t * x)(2.0), x)
    np.testing.assert_array_equal(gradient(lambda x: np.trace(hessian(summed_squares)(x)))(x), np.zeros(3))


def test_refusals_name_the_line():
    def f(x):
        return gradient(x)(x)

    with pytest.raises(DifferentiationError, match=r"test_inner_derivatives.py:\d+"):
        gradient(f)(1.0)


def cubed(x):
    return x**3


def test_pullbacks_inside():
    def f(x):
        value, back = pullback(cubed, x)
        (slope,) = back()
        return slope + back(value)[0]

    assert gradient(f)(2.0) == pytest.approx(6 * 2.0 + 15 * 2.0**4)
    assert hessian(f)(2.0) == pytest.approx(6.0 + 60 * 2.0**3)
    assert jvp(f, (2.0,), (1.0,)) == pytest.approx((12.0 + 3 * 2.0**5, 252.0))


def test_a_pullback_of_structures_inside():
    def f(x, w):
        (u, v), back = pullback(lambda p, n: (np.sum(p * w) ** n, p * w), x, 2)
        dx, _ = back((u, v))
        return np.sum(dx) + np.sum(back((None, x))[0])

    def by_hand(x, w):
        s = np.sum(x * w)
        return np.sum(s**2 * 2 * s * w + x * w * w) + np.sum(x * w)

    x, w = np.array([0.5, -1.2]), np.array([1.5, 0.7])
    for number, found in enumerate(gradient(f)(x, w)):
        for place in range(2):
            step = np.zeros((2, 2))
            step[number, place] = 1e-6
            up, down = by_hand(x + step[0], w + step[1]), by_hand(x - step[0], w - step[1])
            assert found[place] == pytest.approx((up - down) / 2e-6, rel=1e-7)


def test_a_pullback_inside_keeps_its_arguments():
    def f(x):
        y = x.copy()
        _, back = pullback(lambda p: np.sum(p**2), y)
        y[0] = 100.0
        return back()[0][0] * back()[0][1]

    np.testing.assert_allclose(gradient(f)(np.array([1.0, 2.0])), [8.0, 4.0])


def test_a_pullback_inside_keeps_what_its_function_captures():
    """It ran again with arrays that had been overwritten meanwhile, by others or by the function itself."""

    def overwritten(x):
        w = np.ones((2, 3)) * x
        part = w[:, 1]
        _, back = pullback(lambda p: np.sum(p * part) * w[0, 0], np.ones(2))
        w[:] = 100.0
        return back()[0][0]

    def written(x):
        w = np.ones(1) * x

        def g(p):
            w[0] = w[0] * p
            return w[0]

        _, back = pullback(g, 2.0)
        return back()[0] * w[0] + back()[0]

    assert value_and_gradient(overwritten)(3.0) == (9.0, 6.0)
    assert value_and_gradient(written)(3.0) == (3.0 * 6.0 + 3.0, 13.0)


def test_a_jacobian_of_a_derivative_with_respect_to_something_else():
    slope = gradient(lambda x, s: np.sum(x * x) * s, wrt="s")
    np.testing.assert_array_equal(jacobian(slope)(np.arange(3.0), 2.0), [0.0, 2.0, 4.0])
    # One row and many columns: the reverse path is there, unlike where it would never be taken.
    one_row = jacobian(slope).source(np.arange(3.0), 2.0)
    square = jacobian(gradient(lambda x: np.sum(x**3))).source(np.arange(3.0))
    assert ["component_0_gradient(" in text for text in (one_row, square)] == [True, False]


def test_pullbacks_inside_that_are_refused():
    def writes(x, out):
        out[0] = x
        return x * x

    def by_name(x):
        return pullback(writes, x, np.zeros(1))[1](out=np.ones(1))[0]

    def draws(x):
        return pullback(lambda y: y * np.random.random(), x)[1]()[0]

    for f, says in ((by_name, "unexpected keyword argument 'out'"), (draws, "draws random numbers")):
        with pytest.raises(DifferentiationError, match=says):
            gradient(f)(1.0)


def test_third_jacobians():
    """Their routines return more arrays than one tuple takes, and were flattened for one caller only."""
    x = np.array([1.0, 2.0])
    third = jacobian(jacobian(jacobian(lambda v: v**3 * v[0], mode="forward"), mode="forward"))(x)
    expected = np.zeros((2, 2, 2, 2))
    expected[0, 0, 0, 0] = 24.0 * x[0]
    expected[1, 1, 1, 1] = 6.0 * x[0]
    for place in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        expected[(1, *place)] = 6.0 * x[1]
    np.testing.assert_allclose(third, expected)


# ------------------------------------------------------------------------------- two games of Siskind and Pearlmutter
# Their programs of 2008, with the answers that all of their systems give.


def magnitude(v):
    return math.sqrt(np.sum(v * v))


def descend_reverse(f, x):
    return descend(value_and_gradient(f), x)


def descend_forward(f, x):
    def both(y):
        value, first = jvp(f, (y,), (np.array([1.0, 0.0]),))
        _, second = jvp(f, (y,), (np.array([0.0, 1.0]),))
        return value, np.array([first, second])

    return descend(both, x)


def descend(both, x):
    fx, gx = both(x)
    rate = 1e-5
    count = 0
    while True:
        if magnitude(gx) <= 1e-5:
            return x
        if count == 10:
            rate *= 2.0
            count = 0
        else:
            there = x - rate * gx
            if magnitude(x - there) <= 1e-5:
                return x
            f_there, g_there = both(there)
            if f_there < fx:
                x = there
                fx = f_there
                gx = g_there
                count += 1
            else:
                rate /= 2.0
                count = 0


def payoff(p, q):
    return p[0] ** 2 + p[1] ** 2 - (q[0] ** 2 + q[1] ** 2)


def answered_reverse(p):
    return payoff(p, descend_reverse(lambda q: -payoff(p, q), np.array([1.0, 1.0])))


def answered_forward(p):
    return payoff(p, descend_forward(lambda q: -payoff(p, q), np.array([1.0, 1.0])))


@pytest.mark.parametrize("outer", [descend_forward, descend_reverse])
@pytest.mark.parametrize("inner", [answered_forward, answered_reverse])
def test_saddle(outer, inner):
    np.testing.assert_allclose(outer(inner, np.array([1.0, 1.0])), [8.246324826140356e-06] * 2, rtol=1e-9)


def landing(w, forward):
    x, velocity, dt = np.array([0.0, 8.0]), np.array([0.75, 0.0]), 1e-1

    def potential(z):
        first = 1.0 / math.sqrt((z[0] - 10.0) ** 2 + (z[1] - (10.0 - w)) ** 2)
        return first + 1.0 / math.sqrt((z[0] - 10.0) ** 2 + z[1] ** 2)

    while True:
        force = jacobian(potential, mode="forward")(x) if forward else gradient(potential)(x)
        there = x + dt * velocity
        if there[1] <= 0.0:
            return (x + velocity * (-x[1] / velocity[1]))[0] ** 2
        velocity = velocity - dt * force
        x = there


@pytest.mark.parametrize(("outer", "inner"), one_in(3, itertools.product(("forward", "reverse"), (True, False))))
def test_particle(outer, inner):
    def both(w):
        if outer == "forward":
            value, change = jvp(landing, (float(w[0]), inner), (1.0, None))
            return value, np.array([change])
        value, change = _reverse(float(w[0]), inner)
        return value, np.array([change])

    assert descend(both, np.array([0.0]))[0] == pytest.approx(0.20719187464861194, rel=1e-9)


_reverse = value_and_gradient(landing, wrt="w")


def only_small(y):
    if y[0] > 100.0:
        raise ValueError("too large")
    return y * y[0]


def only_small_sum(y):
    return np.sum(only_small(y))


INNER = [
    lambda y: jacobian(only_small)(y)[0, 0],
    lambda y: jvp(only_small_sum, (y,), (y,))[1],
    lambda y: gradient(only_small_sum)(y)[0],
    lambda y: hessian(only_small_sum)(y)[0, 0],
]


@pytest.mark.parametrize("inner", INNER, ids=["jacobian", "jvp", "gradient", "hessian"])
def test_exceptions_of_routines_of_derivatives_are_not_missed_by_handlers(inner):
    def f(x):
        try:
            found = inner(x)
        except Exception:
            found = 0.0
        return found

    with pytest.raises(DifferentiationError, match="in `try` may raise an exception by itself"):
        gradient(f)(np.full(2, 1000.0))


def test_directions_with_captured_variables_of_any_name():
    @numba.njit
    def f(x, args):
        tangents = x * 2.0
        return jvp(lambda y: np.sum(y * y * tangents) * args, (x,), (x,))[1]

    x = np.arange(3.0)
    assert f(x, 0.5) == gradient(f, wrt="args")(x, 0.5) * 0.5 == 2.0 * np.sum(x**3)


@pytest.mark.long
def test_records_of_jacobians_are_in_the_order_of_their_types():
    """A gradient of a pullback of a Jacobian keeps arrays in any order, also where Numba knows a better one."""

    def squares(x):
        found = jacobian(lambda y: y * y)(x)
        return np.sum(found * found)

    def along(x, v):
        _, back = pullback(squares, x)
        return np.sum(back(1.0)[0] * v)

    x, v = np.array([0.9, -0.6, 1.3]), np.array([1.0, 0.5, -0.3])
    np.testing.assert_allclose(gradient(along, wrt="x")(x, v), 8.0 * v, rtol=1e-14)


@numba.njit
def products(x, i, factor):
    if i == len(x):
        return factor
    total = 0.0
    for _ in range(i, len(x)):
        x[i] *= 1.1
        total += products(x, i + 1, factor * x[i])
    return total


@numba.njit
def appended(x, i, past):
    if i == len(x):
        return 0.0
    x[i] *= x[0]
    past.append(x)
    past.append(x * x)
    return appended(x, i + 1, past) * x[i] + x[i - 1]


def of_appended(x):
    past = [x * 1.0]
    total = appended(x.copy(), 0, past)
    for each in past:
        total += each[0] * each[1]
    return total


@pytest.mark.parametrize("f", [lambda x: products(x.copy(), 0, 0.3), of_appended], ids=["products", "appended"])
def test_recursion_in_reverse_mode_twice(f):
    """The records of a call have the array that the next one writes to."""
    x, v, first = np.array([0.9, -0.6, 1.3]), np.array([1.0, 0.5, -0.3]), gradient(f, mode="reverse")
    (expected,) = differences(lambda x: np.sum(first(x) * v), x)
    found = gradient(lambda x: np.sum(first(x) * v), mode="reverse")(x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
