"""Products whose sums may have any order: equal to those of `np.dot` whether or not they are small, in any layout."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest

from zygote_py import gradient
from zygote_py.ir import matrix_product, matrix_vector_product

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
