"""Products whose sums may have any order: equal to those of `np.dot` whether or not they are small, in any layout."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.modes import one_in
from zygote_py import gradient
from zygote_py.ir import add_large_product, add_product, matrix_product, matrix_vector_product
from zygote_py.numba_adapter.target.native_helpers import native as native_helper

LENGTHS = (0, 1, 2, 5, 6)
LAYOUTS = {"C": np.ascontiguousarray, "F": np.asfortranarray}


def drawn(dtype, *shape):
    rng = np.random.default_rng(sum(shape))
    values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else 0.0)
    return values.astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "native"),
    [(np.float64, False), (np.float32, False), (np.complex128, False), (np.float64, True), (np.complex128, True)],
)
def test_they_are_those_of_numpy(dtype, native):
    of_matrices, of_vector = matrix_product, matrix_vector_product
    if native:
        of_matrices, of_vector = numba.njit(of_matrices), numba.njit(of_vector)
    close = 1e-5 if dtype is np.float32 else 1e-13
    for rows, terms, columns in itertools.product(LENGTHS, repeat=3):
        for of_a, of_b in itertools.product(LAYOUTS.values(), repeat=2):
            a, b = of_a(drawn(dtype, rows, terms)), of_b(drawn(dtype, terms, columns))
            found = of_matrices(a, b)
            np.testing.assert_allclose(found, a @ b, rtol=close, atol=close)
            assert (found.dtype, found.shape) == (dtype, (rows, columns))
        found = of_vector(a, x := drawn(dtype, terms))
        np.testing.assert_allclose(found, a @ x, rtol=close, atol=close)
        assert (found.dtype, found.shape) == (dtype, (rows,))


def every_second(x):
    """Return the same values in an array that is not contiguous."""
    return np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2]


@pytest.mark.filterwarnings("ignore:np.dot")
@pytest.mark.parametrize(
    ("dtype", "native"), [("d", False), ("D", False), *one_in(2, [("d", True), ("f", True), ("F", True), ("D", True)])]
)
def test_products_that_are_added(dtype, native):
    """In compiled code, the products of matrices that are not small are BLAS's, which adds them in place."""
    in_place = native_helper(add_large_product)

    def add(total, a, b):
        in_place(total, a, b)

    add = numba.njit(add) if native else add_product
    orders = list(itertools.product([*LAYOUTS.values(), every_second], repeat=3))
    orders = orders[:: 4 if dtype == "d" else 13]
    close = 1e-5 if dtype in "fF" else 1e-13
    for rows, terms, columns in [(0, 2, 3), (2, 0, 3), (2, 2, 3), (6, 7, 8), (1, 5, 30), (30, 5, 1)]:
        first, a, b = drawn(dtype, rows, columns), drawn(dtype, rows, terms), drawn(dtype, terms, columns)
        for of_total, of_a, of_b in orders:
            total = of_total(first.copy())
            add(total, of_a(a), of_b(b))
            np.testing.assert_allclose(total, first + a @ b, rtol=close, atol=close)


@pytest.mark.parametrize("shape", [(3, 4), (2, 5), (1, 4)])
def test_shapes_to_which_products_do_not_fit(shape):
    a, b = np.ones((2, 9)), np.ones((9, 4))
    with pytest.raises(ValueError, match="do not fit"):
        add_product(np.zeros(shape), a, b)
    with pytest.raises(ValueError, match="do not fit"):
        add_product(np.zeros((2, 4)), a, b[1:])


@pytest.mark.parametrize("product", [matrix_product, matrix_vector_product])
def test_lengths_that_do_not_fit_are_errors(product):
    with pytest.raises(ValueError, match="not aligned"):
        product(np.ones((2, 3)), np.ones((2, 2)) if product is matrix_product else np.ones(2))


@pytest.mark.parametrize("n", [2, pytest.param(6, marks=pytest.mark.long)])
def test_the_value_is_that_of_blas_and_the_adjoint_that_of_loops(n):
    a, b, w = drawn(float, n, n), drawn(float, n, n), drawn(float, n, n)

    def f(a, b):
        return np.sum((a @ b @ b) * w)

    df = gradient(f)
    da, db = df(a, b)
    np.testing.assert_allclose(da, w @ b.T @ b.T, rtol=1e-12)
    np.testing.assert_allclose(db, a.T @ w @ b.T + (a @ b).T @ w, rtol=1e-12)
    text = df.source(a, b)
    assert "def matrix_product(a, b):" in text
    assert "matrix_product" not in text.partition("def f_gradient(")[2]


def test_what_is_infinite_stays_out_where_nothing_depends_on_it():
    a, b = np.array([[1.0, np.inf], [2.0, 3.0]]), np.array([[1.0], [0.5]])

    def f(a, b):
        return (a @ b)[1, 0]

    da, db = gradient(f)(a, b)
    assert da.tolist() == [[0.0, 0.0], [1.0, 0.5]]
    assert db.tolist() == [[2.0], [3.0]]


def test_adjoints_of_factors_in_any_layout_are_added_in_place():
    """Of a matrix that is used twice, whose second contribution is added, and of views of one."""
    rng = np.random.default_rng(3)
    w, x = rng.normal(size=(12, 12)), rng.normal(size=(12, 9))

    def f(w, x):
        return np.sum(np.sin(w @ x) + np.cos(w.T @ x[:, :9]) * np.exp(0.1 * (w[:, ::2] @ x[::2])))

    check_derivatives(f, w, x)
    assert "add_product(total, a.T, dy)" in gradient(f).source(w, x)


def test_complex_adjoints_are_added_in_place():
    def f(w, x):
        z = w @ x @ w
        return np.sum(z.real**2) + np.sum(z.imag)

    check_derivatives(f, drawn("D", 7, 7), drawn("D", 7, 7))


def test_no_array_is_made_for_a_product_that_is_added():
    def f(w, x):
        for _ in range(3):
            x = w @ x * 0.1
        return np.sum(x)

    n = 40
    made = gradient(f).plan(np.ones((n, n)), np.ones((n, 1)))
    assert [each.bytes for each in made.allocations].count(8 * n * n) == 1  # the gradient itself
