"""Where the rules of linear algebra have no derivative to give, and where they still have one.

A refusal is an error that names the operation and the condition; it is raised only if the adjoint that comes in makes
it matter. What does not depend on the vectors of equal values has a derivative, checked by differences.
"""

from __future__ import annotations

import operator
from pathlib import Path

import numpy as np
import pytest

import zygote_py as zg
from tests.adjoints.rules.opaque_cases import Case, draw
from tests.adjoints.rules.test_opaque import (
    as_result,
    compiled,
    compiled_results_of,
    contributions,
    inner,
    plain,
    results_of,
    rule_of,
)
from zygote_py.adjoints import SAMPLES
from zygote_py.ir import ops

Q = np.linalg.qr(np.random.default_rng(7).standard_normal((4, 4)))[0]
U = np.linalg.qr(draw(np.random.default_rng(8), np.complex128, 4, 4))[0]
TWICE = (Q * [1.0, 2.0, 2.0, 3.0]) @ Q.T
ROUNDED = (Q * [1.0, 2.0, 2.0 + 4e-16, 3.0]) @ Q.T
HERMITIAN_TWICE = (U * [1.0, 2.0, 2.0, 3.0]) @ np.conj(U.T)
FIRST_APART = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 1j], [0.0, -1j, 3.0]])  # two vectors begin with 0
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
DEFECTIVE = Q @ np.array([[1.0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 3, 0], [0, 0, 0, 4]]) @ Q.T
COMPILED = ("pinv, rank", "cond, singular")
PLAIN = pytest.param(plain, id="plain")
BOTH = pytest.mark.parametrize("call", [PLAIN, pytest.param(compiled, id="compiled", marks=pytest.mark.long)])


def symmetric(a):
    return (a + np.conj(a.T)) / 2


def gradient(call, op, arguments, seeds, keywords=None):
    case = Case("", op, None, keywords=keywords or {})
    results = results_of(case, arguments) if call is plain else compiled_results_of(case, arguments)
    given = [as_result(np.zeros_like(y) if seed is None else seed, y) for y, seed in zip(results, seeds, strict=True)]
    return contributions(rule_of(case, arguments), arguments, results, given, call)


RNG = np.random.default_rng(3)
SEED = RNG.standard_normal((4, 4))
REFUSED = {
    "slogdet, singular": (np.linalg.slogdet, (SINGULAR,), (0.0, 1.0), "np.linalg.slogdet: a singular matrix"),
    "eigh, repeated": (np.linalg.eigh, (symmetric(TWICE),), (None, SEED), "np.linalg.eigh: .* repeated eigenvalue"),
    "eigh, repeated but for rounding": (
        *(np.linalg.eigh, (symmetric(ROUNDED),), (None, SEED), "np.linalg.eigh: .* repeated eigenvalue"),
    ),
    "eigh of float32": (
        *(
            np.linalg.eigh,
            (symmetric(TWICE).astype(np.float32),),
            (None, SEED),
            "np.linalg.eigh: .* repeated eigenvalue",
        ),
    ),
    # A root of a matrix has a derivative here, but the adjoints of w and v do not tell which.
    "eigh, function of a matrix": (np.linalg.eigh, (np.eye(4),), (np.ones(4), symmetric(SEED)), "repeated eigenvalue"),
    # The adjoint of v[0, 0], which is 1 at the identity, the most that it can be, and anything nearby.
    "eigh, at a maximum": (np.linalg.eigh, (np.eye(4),), (None, np.eye(4) * [1, 0, 0, 0]), "repeated eigenvalue"),
    "svd, at a maximum": (np.linalg.svd, (np.eye(4),), (np.eye(4) * [1, 0, 0, 0], None, None), "repeated"),
    "svd, several arbitrary columns": (
        np.linalg.svd,
        (np.eye(4, 2) * [1.0, 2.0],),
        (np.eye(4), None, None),
        "arbitrary",
    ),
    "svd, one column and a zero": (
        *(np.linalg.svd, (np.eye(4, 3) * [2.0, 1.0, 0.0],), (np.eye(4) * [0, 0, 0, 1], None, None), "arbitrary"),
    ),
    "eigh, not symmetric": (np.linalg.eigh, (TWICE + np.triu(SEED, 1),), (np.ones(4), None), "not symmetric"),
    "eigvalsh, not symmetric": (np.linalg.eigvalsh, (TWICE + np.triu(SEED, 1),), (np.ones(4),), "not symmetric"),
    "eigh, phase": (np.linalg.eigh, (FIRST_APART,), (None, 1j * U[:3, :3]), "phase"),
    "svd, repeated": (np.linalg.svd, (TWICE,), (SEED, None, None), "np.linalg.svd: .* repeated singular value"),
    "svd, repeated, of vh": (np.linalg.svd, (TWICE,), (None, None, SEED), "np.linalg.svd: .* repeated singular value"),
    "svd, zero": (
        np.linalg.svd,
        (np.eye(4, 3) * [1.0, 2.0, 0.0], False),
        (SEED[:, :3], None, None),
        "singular value 0",
    ),
    "svd, arbitrary columns": (np.linalg.svd, (SEED[:, :2],), (SEED, None, None), "pass full_matrices=False"),
    "svd, arbitrary rows": (np.linalg.svd, (SEED[:2],), (None, None, SEED), "pass full_matrices=False"),
    "svd, phase": (np.linalg.svd, (U + 2 * np.eye(4) + SEED,), (1j * U, None, None), "np.linalg.svd: .* phase"),
    "qr, dependent columns": (np.linalg.qr, (SINGULAR,), (None, np.ones((2, 2))), "np.linalg.qr: .* dependent"),
    "qr, zero": (np.linalg.qr, (np.zeros((3, 2)),), (np.ones((3, 2)), None), "np.linalg.qr: .* dependent"),
    "pinv, rank": (np.linalg.pinv, (SINGULAR,), (np.ones((2, 2)),), "np.linalg.pinv: .* full rank"),
    "pinv, rank cut off": (np.linalg.pinv, (np.diag([1.0, 0.1]), 0.5), (np.ones((2, 2)),), "np.linalg.pinv: .* rcond"),
    "lstsq, rank": (
        *(np.linalg.lstsq, (SINGULAR, np.ones(2)), (np.ones(2), None, None, None), "np.linalg.lstsq: .* full rank"),
    ),
    "eig, repeated": (np.linalg.eig, (np.eye(3),), (np.ones(3), None), "np.linalg.eig, eigvals: .* not distinct"),
    "eigvals, repeated": (np.linalg.eigvals, (np.eye(3),), (np.ones(3),), "np.linalg.eig, eigvals: .* not distinct"),
    "eigvals, defective": (
        np.linalg.eigvals,
        (DEFECTIVE,),
        (np.arange(4.0),),
        "np.linalg.eig, eigvals: .* not distinct",
    ),
    "cond, singular": (np.linalg.cond, (np.zeros((2, 2)),), (1.0,), "np.linalg.cond: a singular matrix"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    refused(name, plain)


# What raises is in the helpers, which are the same text when they are compiled: a few show that it passes through.
@pytest.mark.parametrize(
    "name", [each if each in COMPILED else pytest.param(each, marks=pytest.mark.long) for each in REFUSED]
)
def test_refusals_of_compiled_helpers(name):
    refused(name, compiled)


def refused(name, call):
    op, arguments, seeds, message = REFUSED[name]
    keywords = {"rcond": -1.0} if op is np.linalg.lstsq else {}
    with pytest.raises(np.linalg.LinAlgError, match=message):
        gradient(call, op, arguments, seeds, keywords)


@BOTH
@pytest.mark.parametrize("name", REFUSED)
def test_nothing_is_refused_where_no_adjoint_comes_in(name, call):
    op, arguments, seeds, _ = REFUSED[name]
    keywords = {"rcond": -1.0} if op is np.linalg.lstsq else {}
    found = gradient(call, op, arguments, [0 * s if isinstance(s, float) else None for s in seeds], keywords)
    assert not any(np.any(contribution) for contribution in found.values())


def slope(function, at, direction):
    """A derivative by differences, extrapolated."""
    rough, fine = ((function(at + h * direction) - function(at - h * direction)) / (2 * h) for h in (2e-3, 1e-3))
    return (4 * fine - rough) / 3


@BOTH
@pytest.mark.parametrize("a", [symmetric(TWICE), symmetric(ROUNDED), symmetric(HERMITIAN_TWICE)])
def test_the_vectors_of_the_other_eigenvalues_have_a_derivative(a, call):
    weights = symmetric(draw(RNG, a.dtype.type, 4, 4))

    def loss(a):
        v = np.linalg.eigh(a)[1]
        return np.real(np.conj(v[:, 0]) @ weights @ v[:, 0] + 2 * np.conj(v[:, 3]) @ weights @ v[:, 3])

    v = np.linalg.eigh(a)[1]
    seed = np.zeros_like(v)
    seed[:, 0] = 2 * weights @ v[:, 0]
    seed[:, 3] = 4 * weights @ v[:, 3]
    found = gradient(call, np.linalg.eigh, (a,), (None, seed))["a"]
    direction = symmetric(draw(RNG, a.dtype.type, 4, 4))
    assert inner([found], [direction]) == pytest.approx(slope(loss, a, direction), rel=1e-6)


@BOTH
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_the_vectors_of_the_other_singular_values_have_a_derivative(dtype, call):
    a = (np.linalg.qr(draw(RNG, dtype, 4, 4))[0] * [1.0, 2.0, 2.0, 3.0]) @ np.linalg.qr(draw(RNG, dtype, 4, 4))[0]
    weights = draw(RNG, dtype, 4, 4)

    def loss(a):
        u, _, vh = np.linalg.svd(a)
        return np.real(np.sum(np.conj(weights) * np.outer(u[:, 3], vh[3])))

    u, _, vh = np.linalg.svd(a)
    du, dvh = np.zeros_like(u), np.zeros_like(vh)
    du[:, 3] = weights @ np.conj(vh[3])
    dvh[3] = np.conj(u[:, 3]) @ weights
    found = gradient(call, np.linalg.svd, (a,), (du, None, dvh))["a"]
    direction = draw(RNG, dtype, 4, 4)
    assert inner([found], [direction]) == pytest.approx(slope(loss, a, direction), rel=1e-6)


@BOTH
def test_what_is_summed_over_equal_singular_values_has_a_derivative(call):
    found = gradient(call, np.linalg.svd, (TWICE,), (None, np.ones(4), None))["a"]
    np.testing.assert_allclose(found, Q @ Q.T, atol=1e-12)  # the derivative of the trace, as TWICE is positive definite


@BOTH
@pytest.mark.parametrize(
    ("a", "cofactors"),
    [
        (np.array([[1.0, 2.0], [2.0, 4.0]]), [[4.0, -2.0], [-2.0, 1.0]]),
        (np.zeros((2, 2)), [[0.0, 0.0], [0.0, 0.0]]),
        (np.zeros((1, 1)), [[1.0]]),
        (np.diag([0.0, 3.0, 5.0]), np.diag([15.0, 0.0, 0.0])),
        (np.diag([1e-200, 2e-200]), np.diag([2e-200, 1e-200])),
        (np.diag([1e-13, 1.0, 1.0]), np.diag([1.0, 1e-13, 1e-13])),
        (np.diag([1e-30, 3.0]).astype(np.float32), np.diag([3.0, 1e-30])),
        (np.array([[0.0, 1j], [0.0, 2.0]]), [[2.0, 0.0], [1j, 0.0]]),
    ],
)
def test_the_gradient_of_a_determinant_is_the_matrix_of_cofactors(a, cofactors, call):
    # (i, 0) is -(i), conjugated.
    found = gradient(call, np.linalg.det, (a,), (1.0,))["a"]
    np.testing.assert_allclose(found, cofactors, rtol=1e-6, atol=1e-15 * np.max(np.abs(cofactors)))


@BOTH
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((np.zeros(3),), np.zeros(3)), ((np.zeros((2, 3)),), np.zeros((2, 3))), ((np.zeros((2, 2)), 2), np.zeros((2, 2)))],
)
def test_norms_at_zero_have_the_gradient_zero(arguments, expected, call):
    np.testing.assert_array_equal(gradient(call, np.linalg.norm, arguments, (1.0,))["x"], expected)


def test_a_norm_neither_overflows_nor_underflows():
    for size in (1e-300, 1e300):
        x = np.array([3.0, 4.0]) * size
        np.testing.assert_allclose(gradient(compiled, np.linalg.norm, (x,), (1.0,))["x"], [0.6, 0.8], rtol=1e-14)


@BOTH
@pytest.mark.parametrize(
    ("op", "arguments", "seeds"),
    [
        (np.linalg.svd, (SEED,), (np.full((4, 4), np.nan), None, None)),
        (np.linalg.svd, (SEED,), (None, np.full(4, np.nan), None)),
        (np.linalg.eigh, (symmetric(SEED),), (None, np.full((4, 4), np.nan))),
        (np.linalg.eigh, (symmetric(SEED),), (np.full(4, np.nan), None)),
        (np.linalg.eigvalsh, (symmetric(SEED),), (np.full(4, np.nan),)),
        (np.linalg.eig, (symmetric(SEED),), (None, np.full((4, 4), np.nan))),
        (np.linalg.norm, (SEED,), (np.nan,)),
        (np.linalg.cond, (SEED,), (np.nan,)),
        (np.linalg.det, (SEED,), (np.nan,)),
        (np.linalg.slogdet, (SEED,), (None, np.nan)),
    ],
)
def test_an_adjoint_of_nan_is_not_lost(op, arguments, seeds, call):
    found = next(iter(gradient(call, op, arguments, seeds).values()))
    assert np.all(np.isnan(found[np.tril_indices(4)]))


@pytest.mark.interpreted
@pytest.mark.parametrize("op", [np.linalg.eig, np.linalg.eigh])
def test_the_phase_that_lapack_has_chosen(op):
    """The largest component of a vector of `eig` is real, and the first of one of `eigh`."""
    a, b, w = (draw(np.random.default_rng(3 + k), np.complex128, 4, 4) for k in range(3))
    if op is np.linalg.eigh:
        a, b = symmetric(a), symmetric(b)

    def f(t, a, b, w):
        values, vectors = op(a + t * b)
        return np.sum((vectors * w).real) + np.sum((vectors * vectors * w).imag) + np.sum(values.real**2)

    def invariant(t, a, b, w):
        values, vectors = op(a + t * b)
        return np.sum(np.abs(vectors[0] * vectors[2]) ** 2 * values.real)

    h, rest = 1e-5, (a, b, w)
    for each in (f, invariant):
        slope = zg.gradient(each, wrt="t", mode="reverse")
        expected = (each(0.3 + h, *rest) - each(0.3 - h, *rest)) / (2 * h)
        np.testing.assert_allclose(slope(0.3, *rest), expected, rtol=1e-7)
        np.testing.assert_allclose(zg.jvp(each, (0.3, *rest), (1.0, None, None, None))[1], expected, rtol=1e-7)
        expected = (slope(0.3 + h, *rest) - slope(0.3 - h, *rest)) / (2 * h)
        np.testing.assert_allclose(zg.hvp(each, wrt="t")(0.3, *rest, 1.0), expected, rtol=1e-6)


@pytest.mark.interpreted
def test_phases_of_a_complex_matrix_that_is_real_at_the_point():
    def f(t):
        a = np.diag(np.array([1.0, 2.0, 4.0])) + 0j
        a[1, 0], a[2, 1], a[2, 0] = 0.3 + 1j * t[0], 0.4 + 1j * t[1], 0.2 + t[1]
        _, v = np.linalg.eigh(a + np.conj(a.T))
        return np.imag(v[1, 1]) * (1.0 + np.real(v[2, 1]))

    t, d, h = np.zeros(2), np.array([1.0, 0.5]), 1e-6
    slope = zg.gradient(f, mode="reverse")
    expected = (f(t + h * d) - f(t - h * d)) / (2 * h)
    np.testing.assert_allclose([slope(t) @ d, zg.jvp(f, (t,), (d,))[1]], expected, rtol=1e-7)
    expected = (slope(t + h * d) - slope(t - h * d)) / (2 * h)
    np.testing.assert_allclose(zg.hvp(f)(t, d), expected, rtol=1e-6)
    np.testing.assert_allclose(zg.hessian(f)(t) @ d, expected, rtol=1e-6)


@pytest.mark.interpreted
@pytest.mark.parametrize("op", [np.linalg.eigh, np.linalg.svd])
def test_phases_that_are_not_known_are_refused_in_forward_mode_also_where_a_matrix_is_real(op):
    def f(t):
        a = np.diag(np.array([1.0, 2.0, 4.0])) + 0j
        a[2, 1], a[1, 2] = 0.4 + 1j * t, 0.4 - 1j * t
        return np.imag(op(a)[-1][1, 1])

    with pytest.raises(np.linalg.LinAlgError, match="phase"):
        zg.jvp(f, 0.0, 1.0)


def cubes_of_eigenvalues(t, a, b):
    return np.sum(np.linalg.eigh(a + t * b)[0] ** 3)


def cubes_of_singular_values(t, a, b):
    return np.sum(np.linalg.svd(a + t * b)[1] ** 3)


def of_eigenvectors(t, a, b):
    return np.sum(np.abs(np.linalg.eigh(a + t * b)[1]) ** 4)


def of_singular_vectors(t, a, b):
    return np.sum(np.abs(np.linalg.svd(a + t * b)[0]) ** 4)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("f", "of_vectors"), [(cubes_of_eigenvalues, of_eigenvectors), (cubes_of_singular_values, of_singular_vectors)]
)
def test_values_have_no_phase(f, of_vectors):
    a, b, h = FIRST_APART, symmetric(SEED[:3, :3]) + 0j, 1e-6
    expected = (f(h, a, b) - f(-h, a, b)) / (2 * h)
    found = [zg.jvp(f, (0.0, a, b), (1.0, None, None))[1], zg.gradient(f, wrt="t")(0.0, a, b)]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    expected = (of_vectors(h, a, b) - of_vectors(-h, a, b)) / (2 * h)
    np.testing.assert_allclose(zg.gradient(of_vectors, wrt="t")(0.0, a, b), expected, rtol=1e-7, atol=1e-8)


def test_the_page_has_every_operation_with_its_condition():
    page = (Path(__file__).resolve().parents[3] / "docs" / "linear-algebra.md").read_text("utf-8")
    for op, rule in SAMPLES.items():
        name = "@" if op is operator.matmul else ops.name_of(op)
        assert f"| `{name}` | {rule.condition or 'everywhere'} |" in page
