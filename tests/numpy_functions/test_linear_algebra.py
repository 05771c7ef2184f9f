"""Gradients of functions with linear algebra in them: products, factorisations, norms; in loops and branches."""

from __future__ import annotations

import numpy as np
import pytest

import zygote_py as zg
from tests.checking.derivatives import ARRAYS, check_derivatives
from tests.modes import one_in

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(5)
A = RNG.normal(size=(4, 4)) + 3 * np.eye(4)
B = RNG.normal(size=(4, 3))
V = RNG.normal(size=4)
W = RNG.normal(size=3)
C = A + 1j * RNG.normal(size=(4, 4))
D = B + 1j * RNG.normal(size=(4, 3))
Z = V + 1j * RNG.normal(size=4)
IN_ONE_LAYOUT = ARRAYS | {"layouts": "C", "float32": False}
QUICK = IN_ONE_LAYOUT | {"routes": ("pullback",)}  # the source of the other route runs in plain Python


def products(a, b, v):
    return a @ b, np.dot(a, v), v @ b, v @ v, a.T @ a, np.dot(b.T, v)


def dots_of_vectors(v, w):
    return np.dot(v, w), np.vdot(w, v), (v + v) @ w


def made_by_method(a, b):
    return a.dot(b)


def into(a, b):
    out = np.empty((a.shape[0], b.shape[1]), a.dtype)
    np.dot(a, b, out)
    return out * out


def systems(a, b, v):
    return np.linalg.solve(a, b), np.linalg.solve(a, v), np.linalg.inv(a)


def determinants(a):
    return np.linalg.det(a), np.linalg.slogdet(a)[1]


def triangular(a):
    return np.linalg.cholesky(a @ a.T)


def orthogonal(b):
    q, r = np.linalg.qr(b)
    return np.abs(q), r * r


def spectra(a):
    w, v = np.linalg.eigh(a + a.T)
    return w, v[0] * v[0], np.linalg.eigvalsh(a @ a.T)


def singular_values(b):
    u, s, vt = np.linalg.svd(b, False)
    return s, np.abs(u), np.abs(vt)


def only_values(b):
    _, s, _ = np.linalg.svd(b)
    return s[0] / s[1]


def least_squares(b, v):
    x, residual, rank, s = np.linalg.lstsq(b, v)
    return x * rank, residual, s, np.linalg.pinv(b)


def powers(a):
    p = np.linalg.matrix_power(a, 5)
    q = p
    return q * p, np.linalg.matrix_power(a, -3) @ a, np.linalg.matrix_power(a, 0) * 2.0, np.linalg.matrix_power(a, 3)[0]


def power_at_run_time(a, n):
    power = np.linalg.matrix_power(a, n)
    return power[0] * power[1]


def norms_of_vectors(v):
    return (
        np.linalg.norm(v),
        np.linalg.norm(v, 1),
        np.linalg.norm(v, 2),
        np.linalg.norm(v, 2.5),
        np.linalg.norm(v, np.inf),
    )


def other_norms_of_vectors(v):
    return np.linalg.norm(v, -np.inf), np.linalg.norm(v, 0), np.linalg.norm(v, -1), np.linalg.norm(v - 1.0)


def norms_of_matrices(b):
    return np.linalg.norm(b), np.linalg.norm(b, 1), np.linalg.norm(b, -1), np.linalg.norm(b, 2), np.linalg.norm(b, -2)


def other_norms_of_matrices(b):
    return np.linalg.norm(b, np.inf), np.linalg.norm(b, -np.inf)


def norm_at_run_time(b, p):
    return np.linalg.norm(b, p)


def conditions(a):
    return np.linalg.cond(a), np.linalg.cond(a, -2), np.linalg.cond(a, 1)


def rank(a):
    return np.linalg.matrix_rank(a) * a[0, 0]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (dots_of_vectors, (V, V + 1.0)),
        pytest.param(products, (A, B, V), marks=pytest.mark.long),
        pytest.param(into, (A, B), marks=pytest.mark.long),
        pytest.param(systems, (A, B, V), marks=pytest.mark.long),
        pytest.param(determinants, (A,), marks=pytest.mark.long),
    ],
)
def test_in_all_layouts_and_in_single_precision(function, arguments):
    check_derivatives(function, *arguments, **ARRAYS)


FUNCTIONS = [
    (made_by_method, (A, B)),
    (into, (A, B)),
    (products, (A, B, V)),
    (norms_of_matrices, (B,)),
    (systems, (A, B, V)),
    (other_norms_of_vectors, (V,)),
    (determinants, (A,)),
    (triangular, (A,)),
    (orthogonal, (B,)),
    (other_norms_of_matrices, (B,)),
    (spectra, (A,)),
    (only_values, (B,)),
    (singular_values, (B,)),
    (singular_values, (D,)),
    (least_squares, (B, V)),
    (powers, (A,)),
    (norms_of_vectors, (V,)),
    (conditions, (A,)),
    (rank, (A,)),
    (systems, (C, D, Z)),
    (products, (C, D, Z)),
    (dots_of_vectors, (Z, Z + 1.0)),
]


@pytest.mark.parametrize(("function", "arguments"), one_in(2, FUNCTIONS))
def test_gradients(function, arguments):
    check_derivatives(function, *arguments, **QUICK)


@pytest.mark.long
@pytest.mark.parametrize(("function", "arguments"), FUNCTIONS)
def test_gradients_both_ways(function, arguments):
    check_derivatives(function, *arguments, thorough=True, **IN_ONE_LAYOUT)


@pytest.mark.parametrize("n", [0, 6, -3])
def test_a_power_known_at_run_time_only(n):
    check_derivatives(power_at_run_time, A, n, **QUICK)


@pytest.mark.parametrize("p", [1, -2])
def test_a_norm_known_at_run_time_only(p):
    check_derivatives(norm_at_run_time, A, p, **QUICK)


def test_products_in_a_loop():
    def power_iteration(a, v):
        for _ in range(5):
            v = a @ v
            v = v / np.linalg.norm(v)
        return v @ (a @ v)

    check_derivatives(power_iteration, A, V, **QUICK)


def test_what_is_overwritten_after_the_product_is_kept():
    def overwritten(a, v):
        w = v.copy()
        total = 0.0
        for i in range(3):
            y = np.linalg.solve(a, w)
            total += y @ w
            w[:] = y * (i + 1.0)
        return total

    check_derivatives(overwritten, A, V, **QUICK)


def test_a_branch_takes_one_of_two_factorisations():
    def solved(a, v):
        x = np.linalg.solve(a, v) if a[0, 0] > 0.0 else np.linalg.lstsq(a, v)[0]
        return np.sum(x * x)

    check_derivatives(solved, A, V, **QUICK)
    check_derivatives(solved, -A, V, **QUICK)


def test_products_of_length_zero():
    gradient = zg.gradient(lambda a, b: np.sum(a @ b))
    da, db = gradient(np.zeros((2, 0)), np.zeros((0, 3)))
    assert da.shape == (2, 0)
    assert db.shape == (0, 3)


def test_a_refusal_at_run_time_names_the_operation():
    gradient = zg.gradient(lambda a: np.sum(np.linalg.eigh(a)[1] * a))
    with pytest.raises(np.linalg.LinAlgError, match=r"np.linalg.eigh: no derivative of the vectors of a repeated"):
        gradient(np.eye(3))
    values = zg.gradient(lambda a: np.sum(np.linalg.eigh(a)[0]))
    np.testing.assert_allclose(values(np.eye(3)), np.eye(3), atol=1e-12)


@pytest.mark.compiled
def test_shapes_that_do_not_fit_raise_what_the_function_raises():
    gradient = zg.gradient(lambda a, b: np.sum(a @ b))
    with pytest.raises(ValueError, match="incompatible array sizes"):
        gradient(np.ones((2, 3)), np.ones((2, 3)))


@pytest.mark.long
@pytest.mark.compiled
def test_second_derivatives_of_least_squares_with_a_vector():
    """The tangent of the vector as a matrix of one column may have any layout, and was reshaped."""

    def f(a, b):
        return np.sum(np.linalg.lstsq(a, b)[0] ** 2)

    a, b, v = np.arange(12.0).reshape(4, 3) ** 1.5, np.ones(4), np.sin(np.arange(12.0)).reshape(4, 3)
    slope = zg.gradient(f, wrt="a")
    expected = (slope(a + 1e-6 * v, b) - slope(a - 1e-6 * v, b)) / 2e-6
    np.testing.assert_allclose(zg.hvp(f, wrt="a")(a, b, v), expected, rtol=1e-5, atol=1e-6)
