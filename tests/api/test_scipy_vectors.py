"""Residuals, constraints, equations and differential equations for SciPy, against SciPy itself.

References are hand-written derivatives, and SciPy's results with these or without any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import scipy.optimize as optimize
from scipy.integrate import solve_ivp

import zygote_py as zg

pytestmark = pytest.mark.interpreted


class Pair(NamedTuple):
    product: float
    squares: np.ndarray
    number: int


@dataclass(frozen=True)
class Point:
    a: float
    w: np.ndarray
    s: np.ndarray
    rest: tuple[float, np.ndarray]
    name: str


# Residuals


class Oscillation(NamedTuple):
    amplitude: float
    decay: float
    frequency: float
    phase: float


def test_least_squares():
    true = Oscillation(2.0, 0.3, 1.7, 0.4)
    t = np.linspace(0.0, 8.0, 40)
    y = true.amplitude * np.exp(-true.decay * t) * np.cos(true.frequency * t + true.phase)
    y += 0.01 * np.random.default_rng(2).normal(size=40)

    def misfit(p, t, y):
        return p.amplitude * np.exp(-p.decay * t) * np.cos(p.frequency * t + p.phase) - y

    residuals = zg.scipy_residuals(misfit, Oscillation(1.5, 0.2, 1.5, 0.0))
    x = residuals.x0
    a, d, w, phi = x
    e, c, s = np.exp(-d * t), np.cos(w * t + phi), np.sin(w * t + phi)
    by_hand = np.column_stack([e * c, -a * t * e * c, -a * t * e * s, -a * e * s])
    np.testing.assert_allclose(residuals.jac(x, t, y), by_hand, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(residuals(x, t, y), a * e * c - y, rtol=1e-12, atol=1e-12)
    for method in ("trf", "lm", "dogbox"):
        found = optimize.least_squares(residuals, x, jac=residuals.jac, args=(t, y), method=method)
        plain = optimize.least_squares(lambda x: misfit(Oscillation(*x), t, y), x, method=method, jac="3-point")
        np.testing.assert_allclose(found.x, plain.x, rtol=1e-5)
        np.testing.assert_allclose(residuals.unflatten(found.x), true, atol=0.05)


def both(x, n):
    return Pair(x[0] * x[1], np.array([[x[0] ** 2, 1.0], [x[1] ** 2, x[1]]]), n)


@pytest.mark.parametrize(
    ("f", "value", "jacobian"),
    [
        (lambda x: x[0] * x[1], [6.0], [[3.0, 2.0]]),
        (lambda x: (x[0] ** 2, 7, x), [4.0, 7.0, 2.0, 3.0], [[4.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        (lambda x: [x[0] ** 2, 7, x[1] * x[0]], [4.0, 7.0, 6.0], [[4.0, 0.0], [0.0, 0.0], [3.0, 2.0]]),
        (lambda x: np.outer(x, x).T, [4.0, 6.0, 6.0, 9.0], [[4.0, 0.0], [3.0, 2.0], [3.0, 2.0], [0.0, 6.0]]),
        (lambda x: x[::-1], [3.0, 2.0], [[0.0, 1.0], [1.0, 0.0]]),
    ],
)
def test_forms_of_results(f, value, jacobian):
    residuals = zg.scipy_residuals(f)
    x = np.array([2.0, 3.0])
    assert residuals.fun(x).dtype == np.float64
    np.testing.assert_array_equal(residuals.fun(x), value)
    np.testing.assert_array_equal(residuals.jac(x), jacobian)


def test_structures_on_both_sides():
    pair = (2.0, np.array([[3.0]]))
    residuals = zg.scipy_residuals(lambda p, n: both((p[0], p[1][0, 0]), n), pair)
    np.testing.assert_array_equal(residuals(residuals.x0, 5), [6.0, 4.0, 1.0, 9.0, 3.0, 5.0])
    expected = [[3.0, 2.0], [4.0, 0.0], [0.0, 0.0], [0.0, 6.0], [0.0, 1.0], [0.0, 0.0]]
    np.testing.assert_array_equal(residuals.jac(residuals.x0, 5), expected)


def test_what_is_returned_is_no_part_of_the_arguments():
    data = np.ones(2)
    found = zg.scipy_residuals(lambda x, data: data)(np.ones(2), data)
    found[0] = 5.0
    np.testing.assert_array_equal(data, np.ones(2))


def test_constraints():
    constraint = zg.scipy_residuals(lambda x: (x[0] ** 2 + x[1] ** 2, x[0] * x[1]))
    x, v = np.array([2.0, 3.0]), np.array([1.0, 10.0])
    np.testing.assert_array_equal(constraint.hess(x, v), [[2.0, 10.0], [10.0, 2.0]])
    objective = zg.scipy_objective(lambda x: x[0] + x[1])
    bounds = optimize.NonlinearConstraint(constraint, [0.0, -1.0], [1.0, 2.0], jac=constraint.jac, hess=constraint.hess)
    second = {"hess": objective.hess, "method": "trust-constr"}
    inside = {"type": "ineq", "fun": lambda x: 1.0 - constraint(x)[0], "jac": lambda x: -constraint.jac(x)[0]}
    for constraints, more in ((bounds, second), (inside, {"method": "SLSQP"})):
        found = optimize.minimize(objective, [-0.9, 0.1], jac=True, constraints=constraints, **more)
        np.testing.assert_allclose(found.x, -np.sqrt([0.5, 0.5]), atol=1e-4)
    with pytest.raises(ValueError, match="one weight for each component"):
        constraint.hess(x, np.ones(3))


# Equations


def test_root():
    def equations(x):
        return [x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]]

    ours = zg.scipy_root(equations)
    x = np.array([0.3, -0.4])
    d = 1.5 * (x[0] - x[1]) ** 2
    by_hand = [[1.0 + d, -d], [-d, 1.0 + d]]
    np.testing.assert_allclose(ours.jac(x), by_hand, rtol=1e-14)
    expected = optimize.root(equations, x)
    for fun, jac in ((ours, True), (ours.fun, ours.jac)):
        for method in ("hybr", "lm"):
            found = optimize.root(fun, x, jac=jac, method=method)
            assert found.success
            np.testing.assert_allclose(found.x, expected.x, atol=1e-8)
        assert optimize.root(fun, x, jac=jac).nfev <= expected.nfev
    np.testing.assert_allclose(optimize.fsolve(ours.fun, x, fprime=ours.jac), expected.x, atol=1e-8)


def test_root_of_a_structure():
    point = Point(1.0, np.array([2.0]), np.array(1.0), (1.0, np.zeros(0)), "start")

    def equations(p, c):
        return (p.a * p.w[0] - c, np.array([p.a - p.s[()], p.s[()] ** 2 - 4.0])), p.rest[0] - p.w[0]

    ours = zg.scipy_root(equations, point)
    found = ours.unflatten(optimize.root(ours.fun, ours.x0, jac=ours.jac, args=(6.0,)).x)
    np.testing.assert_allclose([found.a, *found.w, found.s, found.rest[0]], [2, 3, 2, 3])


# Differential equations


def van_der_pol(t, y, mu):
    return [y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]]


def counted(f, calls):
    """The same function, which notes when it is called."""

    def noting(t, *args):
        calls.append(t)
        return f(t, *args)

    return noting


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_stiff_equation(method):
    ode = zg.scipy_ode(van_der_pol)
    y = np.array([1.2, -0.7])
    by_hand = [[0.0, 1.0], [-2.0 * 1000.0 * y[0] * y[1] - 1.0, 1000.0 * (1.0 - y[0] ** 2)]]
    np.testing.assert_allclose(ode.jac(0.0, y, 1000.0), by_hand, rtol=1e-14)
    np.testing.assert_allclose(ode(0.0, y, 1000.0), van_der_pol(0.0, y, 1000.0), rtol=1e-14)
    options = {"args": (1000.0,), "method": method, "rtol": 1e-7, "atol": 1e-9}
    span, y0 = (0.0, 1200.0), [2.0, 0.0]
    ours = solve_ivp(ode, span, y0, jac=ode.jac, **options)
    calls = []
    plain = solve_ivp(counted(van_der_pol, calls), span, y0, **options)
    exact = solve_ivp(van_der_pol, span, y0, jac=lambda t, y, mu: _van_der_pol_jacobian(y, mu), **options)
    assert ours.success
    assert ours.nfev < len(calls)  # SciPy does not count those for its differences
    found, expected = (ours.nfev, ours.njev), (exact.nfev, exact.njev)
    np.testing.assert_allclose(found, expected, rtol=1e-3)  # of thousands; compiled products are rounded once
    np.testing.assert_allclose(ours.y[:, -1], exact.y[:, -1], rtol=1e-9)
    np.testing.assert_allclose(ours.y[:, -1], plain.y[:, -1], rtol=1e-3)


def _van_der_pol_jacobian(y, mu):
    return np.array([[0.0, 1.0], [-2.0 * mu * y[0] * y[1] - 1.0, mu * (1.0 - y[0] ** 2)]])


class Concentrations(NamedTuple):
    a: float
    b: float
    c: float


def test_structure_as_a_state():
    def robertson(t, y, k):
        slow, fast, middle = k[0] * y.a, k[1] * y.b**2, k[2] * y.b * y.c
        return Concentrations(-slow + middle, slow - middle - fast, fast)

    k = (0.04, 3e7, 1e4)
    ode = zg.scipy_ode(robertson, Concentrations(1, 0.0, 0.0)._replace(a=1.0), constants={"k": k})
    options = {"method": "Radau", "rtol": 1e-8, "atol": 1e-12}
    ours = solve_ivp(ode, (0.0, 1e4), ode.y0, jac=ode.jac, **options)
    calls = []
    in_python = counted(lambda t, y: robertson(t, Concentrations(*y), k), calls)
    plain = solve_ivp(in_python, (0.0, 1e4), ode.y0, **options)
    assert ours.nfev < len(calls)
    np.testing.assert_allclose(ours.y[:, -1], plain.y[:, -1], rtol=1e-6)
    end = ode.unflatten(ours.y[:, -1])
    assert end.a + end.b + end.c == pytest.approx(1.0, rel=1e-9)


# What is refused


def test_the_jacobian_is_that_of_the_value_though_an_argument_is_written_to():
    def scaled(x, count):
        count[0] += 1.0
        return x * count[0]

    value, jacobian = zg.scipy_root(scaled)(np.array([2.0, 3.0]), np.zeros(1))
    np.testing.assert_array_equal(value, [2.0, 3.0])
    np.testing.assert_array_equal(jacobian, np.eye(2))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: zg.scipy_residuals(lambda x: x * 1j)(np.ones(2)), "complex"),
        (lambda: zg.scipy_residuals(lambda x: None)(np.ones(2)), "of type none"),
        (lambda: zg.scipy_residuals(lambda x: (x, "a")).jac(np.ones(2)), "str"),
        (lambda: zg.scipy_root(lambda x: x[1:]).fun(np.ones(2)), "1 components, and 2 variables"),
        (lambda: zg.scipy_root(lambda x: x[1:]).jac(np.ones(2)), "1 components, and 2 variables"),
        (lambda: zg.scipy_ode(lambda t, y: y[1:])(0.0, np.ones(2)), "1 components, and 2 variables"),
        (lambda: zg.scipy_ode(lambda t: t), "`1` is not a parameter"),
    ],
)
def test_refused(wrong, message):
    with pytest.raises(zg.DifferentiationError, match=message) as caught:
        wrong()
    assert caught.value.file == __file__
    assert caught.value.hint
