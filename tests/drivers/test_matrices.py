"""Derivatives in all directions: `jacobian`, `hessian`, `hessian_diagonal`, `value_gradient_hessian`."""

from __future__ import annotations

import math
import pickle
import random
from typing import NamedTuple

import numba
import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der, rosen_hess

from tests.checking.slopes import differences
from tests.checking.trees import copied
from tests.drivers.test_jvp import chain, rosenbrock
from tests.plain import plain
from zygote_py import (
    DifferentiationError,
    adjoint,
    gradient,
    hessian,
    hessian_diagonal,
    jacobian,
    value_and_gradient,
    value_gradient_hessian,
)
from zygote_py.compiler import jvp

pytestmark = pytest.mark.interpreted


class Pair(NamedTuple):
    a: float
    b: np.ndarray
    n: int


def columns(f, args, place):
    """The Jacobian with respect to one argument by differences; the axes of the argument are the last."""
    return differences(f, *args, wrt=(place,)).reshape(np.shape(f(*copied(args))) + np.shape(args[place]))


def table(x, n):
    y = np.empty((n, 2))
    for i in range(n):
        y[i, 0] = np.sum(x**i)
        y[i, 1] = x[0, 0] * x[-1, -1] * i
    return y


def rk4(a, b, c, d):
    x, y, h = 1.0, 0.5, 0.1
    for _ in range(20):
        k1x, k1y = a * x - b * x * y, c * x * y - d * y
        u, v = x + 0.5 * h * k1x, y + 0.5 * h * k1y
        x, y = x + h * (a * u - b * u * v), y + h * (c * u * v - d * v)
    return np.array([x, y])


def mixed(p, y):
    return p.a * p.b[0] * y, Pair(p.a * 2.0, p.b * p.a, 3), (y, y * y)


def blocks(a, x, b):
    return a * a * b * np.sum(x * x) + math.sin(a * b) * x[0, 1]


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_shapes_are_result_and_argument(mode, n):
    x = np.arange(6.0).reshape(2, 3) / 5.0 + 0.3
    found = jacobian(table, mode=mode)(x, n)
    assert found.shape == (n, 2, 2, 3)
    np.testing.assert_allclose(found, columns(table, (x, n), 0), atol=1e-8)


def test_four_rates():
    rates = (1.0, 0.5, 0.3, 0.2)
    found = jacobian(rk4, wrt=(0, 1, 2, 3))(*rates)
    assert len(found) == 4
    for place, column in enumerate(found):
        np.testing.assert_allclose(column, columns(rk4, rates, place), rtol=1e-7)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_structures_in_structures(mode):
    p = Pair(0.5, np.array([1.0, 2.0]), 2)
    (number, pair, two) = jacobian(mixed, wrt=(0, 1), mode=mode)(p, 3.0)
    assert [type(each) for each in (number[0], pair, pair.b[0])] == [Pair] * 3
    assert (number[0].a, number[1], number[0].n) == (3.0, 0.5, None)
    np.testing.assert_array_equal(number[0].b, [1.5, 0.0])
    assert (pair.a[0].a, pair.a[1], pair.n) == (2.0, 0.0, None)
    np.testing.assert_array_equal(pair.b[0].a, p.b)
    np.testing.assert_array_equal(pair.b[0].b, 0.5 * np.eye(2))
    assert (two[0][1], two[1][1]) == (1.0, 6.0)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_functions_that_write_to_their_arguments(mode):
    x = np.array([1.1, 1.2, 1.3])
    before = x.copy()
    found = jacobian(chain, mode=mode)(x)
    np.testing.assert_allclose(found, columns(chain, (before,), 0), rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(x, before)


def test_a_number_is_a_gradient():
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(jacobian(lambda x: np.sum(x**3))(x), 3 * x**2)
    assert jacobian(lambda x: x**3)(2) == 12.0


def test_complex_results():
    x = np.array([0.1, 0.2])
    np.testing.assert_allclose(jacobian(lambda x: np.exp(1j * x))(x), np.diag(1j * np.exp(1j * x)), rtol=1e-15)


def test_single_precision():
    x = np.arange(3, dtype=np.float32)
    assert jacobian(lambda x: x * x)(x).dtype == hessian(lambda x: np.sum(x**3))(x).dtype == np.float32


def test_nothing_at_all():
    empty = np.zeros(0)
    assert jacobian(lambda x: x * 2.0)(empty).shape == hessian(lambda x: np.sum(x * x))(empty).shape == (0, 0)
    assert jacobian(lambda x: x[1:] * x[:-1])(np.ones(1)).shape == (0, 1)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 9])
def test_hessian(n):
    x = np.linspace(0.1, 1.0, n)
    found = hessian(rosenbrock)(x)
    np.testing.assert_allclose(found, rosen_hess(x), rtol=1e-12)
    np.testing.assert_array_equal(found, found.T)


def test_blocks():
    a, b = 0.3, 0.7
    x = np.arange(6.0).reshape(2, 3) + 0.3
    found = hessian(blocks, wrt=("a", "x", "b"))(a, x, b)
    names = (0, 1, 2)
    slopes = gradient(blocks)
    for i in names:
        for j in names:
            expected = columns(lambda *args, i=i: slopes(*args)[i], (a, x, b), j)
            np.testing.assert_allclose(found[i][j], expected, rtol=1e-7, atol=1e-7)
            lengths = np.size(found[i][i]) ** 0.5, np.size(found[j][j]) ** 0.5
            one = np.reshape(found[i][j], [round(each) for each in lengths])
            np.testing.assert_array_equal(one, np.reshape(found[j][i], one.T.shape).T)


def test_symmetric_to_the_last_bit():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(7, 7))

    def rough(x):
        return np.sum(np.exp(np.sin(weights @ x)) * np.log1p(x * x)) / (1.0 + np.sum(np.cosh(x)))

    found = hessian(rough)(rng.normal(size=7))
    np.testing.assert_array_equal(found, found.T)


def test_value_gradient_hessian():
    x = np.linspace(0.1, 1.0, 5)
    value, slope, curvature = value_gradient_hessian(rosenbrock)(x)
    assert value == pytest.approx(rosen(x), rel=1e-14)
    np.testing.assert_allclose(slope, rosen_der(x), rtol=1e-12)
    np.testing.assert_array_equal(curvature, hessian(rosenbrock)(x))
    assert value_gradient_hessian(lambda x, y: x * y * y, wrt=(0, 1))(1.0, 2.0) == (
        4.0,
        (4.0, 4.0),
        ((0.0, 4.0), (4.0, 2.0)),
    )


def test_diagonal():
    x = np.linspace(0.1, 1.0, 6)
    np.testing.assert_allclose(hessian_diagonal(rosenbrock)(x), np.diag(rosen_hess(x)), rtol=1e-12)
    y = x.reshape(2, 3)
    diagonal, number = hessian_diagonal(lambda y, a: np.sum(y**3) * a * a, wrt=(0, 1))(y, 2.0)
    np.testing.assert_allclose(diagonal, 24.0 * y, rtol=1e-14)
    assert number == pytest.approx(2.0 * np.sum(y**3))


@pytest.mark.parametrize("most", [0, 800])
def test_directions_of_a_long_function_one_by_one(monkeypatch, most):
    monkeypatch.setattr(jvp, "_LARGE", most)

    def f(x, p):  # the sum of p x_i^2 x_(i+1), and p^3 from what the loop writes
        kept = [x * x]  # a list of arrays, whose tangents are not carried as one value
        y = np.zeros(len(x))
        for i in range(len(x) - 1):
            y[i] = kept[0][i] * x[i + 1]
        return p * np.sum(y) + p**3

    x, p = np.array([0.5, -1.0, 2.0, 0.25, 3.0]), 1.5
    expected = np.diag(np.append(2.0 * p * x[1:], 0.0))
    between = 2.0 * p * x[:-1]
    expected += np.diag(between, 1) + np.diag(between, -1)
    mixed = np.append(2.0 * x[:-1] * x[1:], 0.0) + np.insert(x[:-1] ** 2, 0, 0.0)
    value, (gx, gp), ((xx, xp), (px, pp)) = value_gradient_hessian(f, wrt=("x", "p"))(x, p)
    assert (value, gp) == pytest.approx((f(x, p), np.sum(x[:-1] ** 2 * x[1:]) + 3.0 * p * p), rel=1e-14)
    for found, known in [(gx, p * mixed), (xx, expected), (xp, mixed), (px, mixed), (pp, 6.0 * p)]:
        np.testing.assert_allclose(found, known, rtol=1e-14)
    np.testing.assert_allclose(hessian_diagonal(f)(x, p), np.diag(expected), rtol=1e-14)
    text = hessian(f).source(x, p)
    assert text.count("_pushforward(") == (5 if most == 0 else 2)  # the definition, and a call for each direction


def test_a_long_function_that_draws_or_prints_runs_once(monkeypatch, capsys):
    monkeypatch.setattr(jvp, "_LARGE", 0)

    def f(x, y):
        print("called")
        return x * x * y * np.random.normal(2.0, 0.0)

    (xx, xy), (yx, yy) = hessian(f, wrt=("x", "y"))(3.0, 5.0)
    assert (xx, xy, yx, yy) == pytest.approx((20.0, 12.0, 12.0, 0.0))
    assert capsys.readouterr().out == "called\n"

    def cube(x):
        return x**3

    @adjoint(cube)
    def rule(x):
        noise = np.random.normal(1.0, 0.0)

        def back(dy):
            return (3.0 * x * x * dy * noise,)

        return cube(x), back

    found = hessian(lambda x, y: cube(x) * y, wrt=("x", "y"))(2.0, 5.0)
    np.testing.assert_allclose(found, [[60.0, 12.0], [12.0, 0.0]])


def test_names_that_the_drivers_use():
    def f(a, k, t_0, e_0, push, np_):
        return a * k[0] * t_0 * e_0 * push * np_

    k = np.array([2.0, 3.0])
    (whole,) = hessian(f, wrt=("k",))(1.0, k, 2.0, 3.0, 4.0, 5.0)
    np.testing.assert_array_equal(whole[0], np.zeros((2, 2)))
    (mixed_block, _) = hessian(f, wrt=("a", "k"))(1.0, k, 2.0, 3.0, 4.0, 5.0)
    np.testing.assert_array_equal(mixed_block[1], [120.0, 0.0])
    assert jacobian(f, wrt="a")(a=1.0, k=k, t_0=2.0, e_0=3.0, push=4.0, np_=5.0) == 240.0


def test_in_plain_python():
    x = np.linspace(0.1, 1.0, 5)
    h = hessian(rosenbrock)
    np.testing.assert_allclose(plain(h.source(x))(x), h(x), rtol=1e-13)
    y = x[:4].reshape(2, 2)
    for mode in ("forward", "reverse"):
        j = jacobian(table, mode=mode)
        np.testing.assert_allclose(plain(j.source(y, 3))(y, 3), j(y, 3), rtol=1e-13)


def test_newton_in_compiled_code():
    @numba.njit
    def minimum(x):
        for _ in range(20):
            _, slope, curvature = value_gradient_hessian(rosenbrock_)(x)
            x = x - np.linalg.solve(curvature, slope)
        return x

    np.testing.assert_allclose(minimum(np.array([-1.2, 1.0, 1.0])), np.ones(3), rtol=1e-12)


rosenbrock_ = numba.njit(rosenbrock)


def test_functions_among_the_arguments():
    def f(g, x):
        return g(x) * x

    assert hessian(f, wrt="x")(math.sin, 1.0) == pytest.approx(2 * math.cos(1.0) - math.sin(1.0), rel=1e-14)
    assert jacobian(f, wrt=1)(lambda x: x * x, 2.0) == 12.0


def test_they_are_differentiated_again():
    x = np.array([0.3, 0.4, 0.5])

    def laplacian(x):
        return np.trace(hessian(rosenbrock)(x))

    def energy(x):
        return np.sum(jacobian(lambda y: np.sin(y) * x[0])(x) ** 2)

    def energy_by_hand(x):
        return np.sum((np.cos(x) * x[0]) ** 2)

    np.testing.assert_allclose(gradient(laplacian)(x), columns(lambda x: np.trace(rosen_hess(x)), (x,), 0), rtol=1e-7)
    np.testing.assert_allclose(gradient(energy)(x), columns(energy_by_hand, (x,), 0), rtol=1e-7)
    np.testing.assert_allclose(jacobian(gradient(rosenbrock))(x), rosen_hess(x), rtol=1e-12)
    third = jacobian(hessian(rosenbrock))(x)
    np.testing.assert_allclose(third, columns(rosen_hess, (x,), 0), atol=1e-6)


def test_pickles():
    h = pickle.loads(pickle.dumps(hessian(rosenbrock, wrt="x")))
    np.testing.assert_allclose(h(np.ones(3)), rosen_hess(np.ones(3)))


def test_refusals():
    with pytest.raises(DifferentiationError, match="mode='sideways'"):
        jacobian(rosenbrock, mode="sideways")
    with pytest.raises(DifferentiationError, match="complex result in reverse mode"):
        jacobian(lambda x: np.exp(1j * x), mode="reverse")(np.ones(2))
    with pytest.raises(DifferentiationError, match="no jacobian with respect to `n`"):
        jacobian(lambda x, n: x, wrt="n")(1.0, "a")
    with pytest.raises(DifferentiationError, match="the result is of type array"):
        hessian(lambda x: x * x)(np.ones(2))
    with pytest.raises(DifferentiationError, match="the result is of type int64"):
        jacobian(lambda x: len(x))(np.ones(2))
    with pytest.raises(DifferentiationError, match="with respect to `z`, which is not a parameter"):
        hessian(rosenbrock, wrt="z")(np.ones(2))


def test_the_value_is_that_of_the_gradient():
    x = np.linspace(0.1, 1.0, 5)
    value, slope = value_and_gradient(rosenbrock)(x)
    again, slope_again, _ = value_gradient_hessian(rosenbrock)(x)
    assert value == again
    np.testing.assert_array_equal(slope, slope_again)


def noisy(x):
    return np.sum(x**2) * random.gauss(0.0, 1.0) * np.random.standard_normal()


def ruled(x):
    return x * x


@adjoint(ruled)
def noisy_rule(x):
    return x * x, lambda dy: (dy * np.random.rand(),)


@pytest.mark.parametrize(
    "derivative",
    [
        jacobian(lambda x: x * np.random.rand()),
        jacobian(lambda x: x * random.random(), mode="reverse"),
        hessian(noisy),
        hessian_diagonal(noisy),
        value_gradient_hessian(noisy),
        hessian(noisy, sparsity="detect"),
        jacobian(lambda x: x * np.random.rand(), sparsity=np.eye(3)),
        jacobian(lambda x: np.full(2, ruled(np.sum(x))), mode="forward"),
        jacobian(lambda x: np.full(2, ruled(np.sum(x))), mode="reverse"),
    ],
)
def test_draws_that_would_be_others_for_other_columns_are_refused(derivative):
    with pytest.raises(DifferentiationError, match="draws random numbers") as caught:
        derivative(np.ones(3))
    assert "or ask for the gradient, `jvp` or `hvp`" in str(caught.value)


def test_one_run_may_draw():
    def scaled(x, y):
        z = random.gauss(0.0, 1.0)
        return x * z, y * z

    (dx, zero), (_, dy) = jacobian(scaled, wrt=(0, 1))(2.0, 3.0)
    assert dx == dy
    assert dx != 0.0
    assert zero == 0.0


def of_many(p, q, n):
    s, y = 1.0, 0.5
    for k in range(n):
        y = np.sin(y * p[k % 17]) + q * p[(3 * k) % 17]
        s += y * y * p[16 - k % 17]
    return s


def separately(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q, r):
    return of_many((a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q, r), 0.25, 20)


NUMBERS = tuple(np.linspace(0.4, 1.2, 17).tolist())


def by_differences(of):
    """Return the Hessian of a function of a vector, by second differences."""
    x, h = np.array(NUMBERS), 1e-4
    unit = h * np.eye(len(x))
    rows = [[of(x + u + v) - of(x + u - v) - of(x - u + v) + of(x - u - v) for v in unit] for u in unit]
    return np.array(rows) / (4.0 * h * h)


def test_a_hessian_by_many_numbers():
    expected = by_differences(lambda x: separately(*x))
    together = hessian(of_many, wrt="p")(NUMBERS, 0.25, 20)
    np.testing.assert_allclose(together, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(together, np.transpose(together))
    apart = hessian(separately, wrt=None)(*NUMBERS)
    np.testing.assert_allclose(apart, together, rtol=1e-12)
    value, slope, again = value_gradient_hessian(of_many, wrt=("p", "q"))(NUMBERS, 0.25, 20)
    assert value == pytest.approx(separately(*NUMBERS))
    np.testing.assert_allclose(slope[0], gradient(of_many, wrt="p")(NUMBERS, 0.25, 20), rtol=1e-12)
    rows, last = again
    np.testing.assert_allclose([by_p for by_p, _ in rows], together, rtol=1e-12)
    np.testing.assert_array_equal([by_q for _, by_q in rows], last[0])
