"""Implicit functions: searches and iterations whose results are differentiated by the implicit function theorem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from tests.checking.slopes import differences
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient, hessian, implicit, jacobian, jvp, pullback, value_and_gradient

pytestmark = pytest.mark.interpreted


def cubic(x, a, b):
    return x**3 + a * x - b


def root_of(a, b):
    """The real root for a > 0, by Cardano's formula."""
    d = math.sqrt(b * b / 4 + a**3 / 27)
    return math.cbrt(b / 2 + d) + math.cbrt(b / 2 - d)


@implicit(cubic)
def bisection(a, b):
    low, high = -10.0, 10.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        if cubic(middle, a, b) > 0.0:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


@implicit(cubic, check=1e-9)
def newton_bisection(a, b):
    low, high, x = -10.0, 10.0, 0.0
    for _ in range(100):
        value = cubic(x, a, b)
        if value > 0.0:
            high = x
        else:
            low = x
        x = x - value / (3.0 * x * x + a)
        if not low < x < high:
            x = 0.5 * (low + high)
    return x


@njit
@implicit(cubic)
def brent(a, b):
    """Inverse quadratic interpolation and secants, with bisection where they leave the bracket."""
    x0, x1 = -10.0, 10.0
    f0, f1 = cubic(x0, a, b), cubic(x1, a, b)
    if abs(f0) < abs(f1):
        x0, x1, f0, f1 = x1, x0, f1, f0
    x2, f2, d, bisected = x0, f0, x0, True
    while f1 != 0.0 and abs(x1 - x0) > 1e-15:
        if f0 != f2 and f1 != f2:
            s = x0 * f1 * f2 / ((f0 - f1) * (f0 - f2)) + x1 * f0 * f2 / ((f1 - f0) * (f1 - f2))
            s += x2 * f0 * f1 / ((f2 - f0) * (f2 - f1))
        else:
            s = x1 - f1 * (x1 - x0) / (f1 - f0)
        step = abs(x1 - x2) if bisected else abs(x2 - d)
        inside = min((3 * x0 + x1) / 4, x1) < s < max((3 * x0 + x1) / 4, x1)
        bisected = not inside or abs(s - x1) >= step / 2 or step < 1e-15
        if bisected:
            s = 0.5 * (x0 + x1)
        fs = cubic(s, a, b)
        d, x2, f2 = x2, x1, f1
        if f0 * fs < 0.0:
            x1, f1 = s, fs
        else:
            x0, f0 = s, fs
        if abs(f0) < abs(f1):
            x0, x1, f0, f1 = x1, x0, f1, f0
    return x1


def well(x, a, b):
    """A function whose minimum is the root of the cubic."""
    return 0.25 * x**4 + 0.5 * a * x * x - b * x


@implicit(minimum_of=well)
@njit
def golden_section(a, b):
    """The difference of two values is computed from that of their places, so that rounding does not hide it."""
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    low, high = -10.0, 10.0
    for _ in range(90):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        middle, square = 0.5 * (left + right), left * left + right * right
        if (right - left) * (0.5 * middle * square + a * middle - b) > 0.0:  # well(right) - well(left)
            high = right
        else:
            low = left
    return 0.5 * (low + high)


@implicit(fixed_point=lambda x, a, b: (b - x**3 + 9.0 * x) / (a + 9.0))
def iteration(a, b):
    x = 1.0
    for _ in range(300):
        x = (b - x**3 + 9.0 * x) / (a + 9.0)
    return x


@pytest.mark.parametrize(
    "solver", one_in(2, [bisection, newton_bisection, brent, golden_section, iteration]), ids=lambda each: each.__name__
)
def test_searches(solver):
    a, b = 2.0, 3.0
    value, (da, db) = value_and_gradient(lambda a, b: solver(a, b) ** 2 * a)(a, b)
    assert value == pytest.approx(root_of(a, b) ** 2 * a, rel=1e-12)
    assert da == pytest.approx(differences(lambda a: root_of(a, b) ** 2 * a, a).item(), rel=1e-8)
    assert db == pytest.approx(differences(lambda b: root_of(a, b) ** 2 * a, b).item(), rel=1e-8)
    x = root_of(a, b)
    slope = 3.0 * x * x + a
    assert jvp(solver, (a, b), (1.0, 0.0))[1] == pytest.approx(-x / slope, rel=1e-10)
    second = hessian(solver, wrt="b")(a, b)
    assert second == pytest.approx(-6.0 * x / slope**3, rel=1e-9)


@implicit(lambda e, m, ecc: e - ecc * math.sin(e) - m)
def anomaly(m, ecc):
    e = m
    for _ in range(30):
        e = e - (e - ecc * math.sin(e) - m) / (1.0 - ecc * math.cos(e))
    return e


def test_kepler():
    m, ecc = 1.2, 0.3
    e = anomaly(m, ecc)
    d, s, c = 1.0 - ecc * math.cos(e), math.sin(e), math.cos(e)
    assert gradient(anomaly)(m, ecc) == pytest.approx((1 / d, s / d))
    (mm, me), (em, ee) = hessian(anomaly, wrt=("m", "ecc"))(m, ecc)
    assert mm == pytest.approx(-ecc * s / d**3)
    assert me == pytest.approx(c / d**2 - ecc * s * s / d**3)
    assert em == pytest.approx(me)
    assert ee == pytest.approx(2 * s * c / d**2 - ecc * s**3 / d**3)
    assert gradient(gradient(gradient(anomaly, wrt="m"), wrt="m"), wrt="m")(m, ecc) == pytest.approx(
        -ecc * c / d**4 + 3 * (ecc * s) ** 2 / d**5
    )


def residual(x, a, b):
    return a @ x + 0.1 * x**3 - b


def solve(a, b, guess, steps):
    x = guess.copy()
    for _ in range(steps):
        x = x - 0.4 * (a @ x + 0.1 * x**3 - b)
    return x


def conjugate_gradient(matvec, b):
    x = np.zeros_like(b)
    r = b - matvec(x)
    p = r.copy()
    for _ in range(50):
        square = np.dot(r, r)
        if square < 1e-30:
            break
        ap = matvec(p)
        step = square / np.dot(p, ap)
        x = x + step * p
        r = r - step * ap
        p = r + np.dot(r, r) / square * p
    return x


A, B, GUESS = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, 2.0]), np.array([0.1, 0.1])


def with_options(**options):
    def solver(a, b, guess, steps):
        return solve(a, b, guess, steps)

    return implicit(lambda x, a, b, guess, steps: residual(x, a, b), **options)(solver)


SOLVERS = {
    "LU": with_options(),
    "matrix-free": with_options(linear_solve=conjugate_gradient),
    "a matrix": with_options(linear_solve=lambda a, b: np.linalg.solve(a, b)),
}


@pytest.mark.parametrize("solver", one_in(2, SOLVERS.values()), ids=SOLVERS)
def test_vectors(solver):
    def loss(a, b, guess):
        return np.sum(solver(a, b, guess, 100) ** 2)

    def of(a=A, b=B):
        return np.sum(solve(a, b, GUESS, 100) ** 2)

    da, db, dguess = gradient(loss)(A, B, GUESS)
    step = 1e-6
    for place in np.ndindex(2, 2):
        moved = np.zeros((2, 2))
        moved[place] = step
        assert da[place] == pytest.approx((of(A + moved) - of(A - moved)) / (2 * step), rel=1e-7)
    for place in range(2):
        moved = np.eye(2)[place] * step
        assert db[place] == pytest.approx((of(b=B + moved) - of(b=B - moved)) / (2 * step), rel=1e-7)
    np.testing.assert_array_equal(dguess, [0.0, 0.0])
    assert jvp(loss, (A, B, GUESS), (A, B, None))[1] == pytest.approx(np.sum(da * A) + np.sum(db * B))


@pytest.mark.parametrize("solver", one_in(2, SOLVERS.values()), ids=SOLVERS)
def test_second_derivatives_of_vectors(solver):
    found = hessian(lambda b: np.sum(solver(A, b, GUESS, 100) ** 2))(B)
    x = solve(A, B, GUESS, 100)
    inverse = np.linalg.inv(A + np.diag(0.3 * x * x))  # dx/db
    w = inverse.T @ (2.0 * x)
    np.testing.assert_allclose(found, inverse.T @ (2.0 * np.eye(2) - np.diag(0.6 * x * w)) @ inverse, rtol=1e-10)


def test_a_jacobian_of_a_solution():
    x = solve(A, B, GUESS, 100)
    found = jacobian(SOLVERS["LU"], wrt="b")(A, B, GUESS, 100)
    np.testing.assert_allclose(found, np.linalg.inv(A + np.diag(0.3 * x * x)), rtol=1e-12)


class State(NamedTuple):
    x: float
    y: np.ndarray


@dataclass(frozen=True)
class Spot:
    u: float
    v: float


@implicit(lambda s, a: State(s.x**3 - a * s.y[0], s.y - a * s.x))
def of_a_named_tuple(a):
    x = 2.0
    for _ in range(60):
        x = x - (x**3 - a * a * x) / (3 * x * x - a * a)
    return State(x, np.array([a * x, a * x]))


@implicit(fixed_point=lambda s, a: Spot(0.5 * math.cos(a * s.v), 0.5 * math.sin(a * s.u)))
def of_a_dataclass(a):
    u, v = 0.1, 0.1
    for _ in range(200):
        u, v = 0.5 * math.cos(a * v), 0.5 * math.sin(a * u)
    return Spot(u, v)


def test_structures():
    # x^2 = a^2 and y = a x = a^2
    assert gradient(lambda a: of_a_named_tuple(a).x * of_a_named_tuple(a).y[1])(1.5) == pytest.approx(3 * 1.5**2)

    def product(a):
        spot = of_a_dataclass(a)
        return spot.u * spot.v

    assert gradient(product)(0.9) == pytest.approx(differences(product, 0.9).item(), rel=1e-8)
    assert jvp(product, (0.9,), (1.0,))[1] == pytest.approx(gradient(product)(0.9))


@implicit(minimum_of=lambda x, a: np.sum((x - a) ** 2) + 0.1 * np.sum(x) ** 2)
def of_a_matrix(a):
    return a - 0.1 * np.sum(a) / (1.0 + 0.1 * a.size)


def test_a_matrix():
    a = np.arange(6.0).reshape(2, 3)
    weights = np.array([[1.0, -2.0, 0.5], [3.0, 0.0, 1.0]])
    found = gradient(lambda a: np.sum(weights * of_a_matrix(a)))(a)
    np.testing.assert_allclose(found, weights - 0.1 * np.sum(weights) / 1.6, rtol=1e-12)


@pytest.mark.compiled
def test_in_compiled_code():
    slope = gradient(anomaly, wrt="m")

    @njit
    def called(m):
        value, back = pullback(anomaly, m, 0.3)
        return slope(m, 0.3), back(2.0)[0], value

    e = anomaly(1.2, 0.3)
    d = 1.0 - 0.3 * math.cos(e)
    assert called(1.2) == pytest.approx((1 / d, 2 / d, e))


@implicit(lambda x, product, g_0: x**3 + product * x - g_0, linear_solve=lambda a, b: np.linalg.solve(a, b))
def of_a_number(product, g_0):
    x = 1.0
    for _ in range(50):
        x = x - (x**3 + product * x - g_0) / (3 * x * x + product)
    return x


@implicit(lambda x, product, u: x * product - u, linear_solve=lambda matvec, b: b / matvec(np.ones_like(b)))
def quotient(product, u):
    return u / product


def test_numbers_and_names_of_parameters_with_a_linear_solver():
    x = root_of(2.0, 3.0)
    slope = 3 * x * x + 2.0
    assert gradient(of_a_number)(2.0, 3.0) == pytest.approx((-x / slope, 1 / slope))
    assert hessian(of_a_number, wrt=1)(2.0, 3.0) == pytest.approx(-6 * x / slope**3)
    p, q = np.array([2.0, 4.0]), np.array([1.0, 3.0])
    for found, expected in zip(gradient(lambda p, q: np.sum(quotient(p, q)))(p, q), (-q / p**2, 1 / p), strict=True):
        np.testing.assert_allclose(found, expected)


def test_a_singular_residual():
    @implicit(lambda x, a: (x - a) * 0.0)
    def number(a):
        return a

    @implicit(lambda x, a: np.array([x[0] - a, 2.0 * (x[0] - a)]))
    def vector(a):
        return np.array([a, a])

    for f in (number, lambda a: np.sum(vector(a))):
        with pytest.raises(np.linalg.LinAlgError):
            gradient(f)(2.0)
    assert gradient(bisection)(2.0, 3.0)[1] == pytest.approx(1 / (3 * root_of(2.0, 3.0) ** 2 + 2.0))


def test_a_solution_that_does_not_satisfy_it():
    @implicit(lambda x, a: x * x - a, check=1e-6)
    def rough(a):
        return 0.5 * (1.0 + a)

    @implicit(lambda x, a: x - a - 1.0, check=1e-3)
    def P(a):
        return a

    with pytest.raises(ValueError, match=r"the solution of `P` does not satisfy its residual to 0\.001"):
        gradient(P)(1.0)
    with pytest.raises(ValueError, match="the solution of `rough` does not satisfy its residual to 1e-06"):
        gradient(rough)(2.0)
    assert gradient(rough)(1.0) == 0.5


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: implicit(), "was given 0"),
        (lambda: implicit(cubic, fixed_point=cubic), "was given 2"),
        (lambda: implicit(lambda x: x)(lambda a: a), r"takes \(x\), and `<lambda>` takes \(a\)"),
        (lambda: implicit(lambda x, *args: x)(lambda a: a), r"has the parameter `\*args`"),
        (lambda: implicit(3)(lambda a: a), "is not a Python function"),
    ],
)
def test_wrong_decorators(make, says):
    with pytest.raises(DifferentiationError, match=says):
        make()


def plain_bisection(a, scale, n):
    low, high = 0.0, 10.0
    for _ in range(n):
        middle = 0.5 * (low + high)
        if middle * middle > a:
            high = middle
        else:
            low = middle
    return scale * middle


NOTE = "zero gradient, since nothing differentiable depends on it: "


def test_an_argument_on_which_only_decisions_depend(monkeypatch):
    df = gradient(plain_bisection)
    assert df(2.0, 1.0, 50)[:2] == pytest.approx((0.0, math.sqrt(2.0)))
    assert df.source(2.0, 1.0, 50).count(NOTE) == 1
    assert f"# {NOTE}a (see docs/implicit.md)" in df.source(2.0, 1.0, 50)
    monkeypatch.setenv("ZYGOTE_PY_WARN", "1")
    with pytest.warns(UserWarning, match=f"plain_bisection: {NOTE}a"):
        gradient(plain_bisection)(2.0, 1.0, 40)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, a: x * x,  # not used
        lambda x, a: x * len(a),  # only its shape
        lambda x, a: x * a[0] if a[1] > 0.0 else x,
        lambda x, a: np.sum(a) if x > 0.0 else x,
    ],
)
def test_arguments_that_have_a_derivative_or_are_not_read(f):
    assert NOTE not in gradient(f).source(1.0, np.ones(2))


def test_decisions_on_parts_of_structures():
    assert f"{NOTE}p" in gradient(lambda x, p: x if p[0] > 0.0 else 2.0 * x).source(1.0, (1.0, 2.0))
    assert NOTE not in gradient(lambda x, p: p[1] if p[0] > 0.0 else x).source(1.0, (1.0, 2.0))


def test_wrong_types():
    @implicit(lambda x, a: (x, a))
    def pair(a):
        return a

    @implicit(lambda x, a: x - a)
    def integer(a):
        return round(a)

    for f, says in ((pair, "returns a value of type"), (integer, "solution of type int64")):
        with pytest.raises(DifferentiationError, match=says):
            gradient(f)(1.0)


def test_in_a_function_is_refused():
    def outer(a, c):
        @implicit(lambda x, a: x * x - a)
        def root(a):
            return math.sqrt(a)

        return root(a) * c

    with pytest.raises(DifferentiationError, match="`implicit` in a function that is differentiated is not supported"):
        gradient(outer)(2.0, 3.0)
