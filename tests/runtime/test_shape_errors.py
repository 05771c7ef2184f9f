"""Shapes that do not fit: the gradient and the pullback raise what the function itself raises in Numba."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from zygote_py import DifferentiationError, gradient, pullback

SQUARE, WIDE, TALL = np.eye(3), np.ones((2, 3)), np.ones((3, 2))
TWO, THREE, NONE = np.ones(2), np.ones(3), np.ones(0)
LinAlgError = np.linalg.LinAlgError


def store(x, y):
    x[:] = y
    return np.sum(x)


def store_column(x, y):
    x[:, 0] = y
    return np.sum(x)


def add_up(a, x):
    s = 0.0
    for i in range(len(a)):
        s += np.dot(a[i], x) * i
    return s


CASES = {
    "addition": (lambda x, y: np.sum(x + y), (THREE, TWO), ValueError),
    "multiplication of matrices": (lambda x, y: np.sum(x * y), (TALL, WIDE), ValueError),
    "maximum": (lambda x, y: np.sum(np.maximum(x, y)), (TALL, THREE), ValueError),
    "where": (lambda x, y: np.sum(np.where(x > 0, x, y)), (THREE, TWO), ValueError),
    "a store": (store, (THREE, TWO), ValueError),
    "a store into a column": (store_column, (TALL, TWO), ValueError),
    "reshape": (lambda x: np.sum(x.reshape(4, 2)), (np.ones(6),), ValueError),
    "broadcast_to": (lambda x: np.sum(np.broadcast_to(x, (2, 2))), (THREE,), ValueError),
    "concatenate": (lambda x, y: np.sum(np.concatenate((x, y))), (TALL, WIDE), ValueError),
    "stack": (lambda x, y: np.sum(np.stack((x, y))), (TWO, THREE), ValueError),
    "split": (lambda x: np.sum(np.split(x, 2)[0]), (THREE,), ValueError),
    "a scalar product": (lambda x, y: np.dot(x, y), (THREE, TWO), ValueError),
    "a scalar product with one number": (lambda x, y: x @ y, (THREE, TWO[:1]), ValueError),
    "vdot": (lambda x, y: np.vdot(x, y), (THREE, TWO), ValueError),
    "scalar products in a loop": (add_up, (TALL, THREE), ValueError),
    "a matrix and a vector": (lambda a, x: np.sum(a @ x), (TALL, THREE), ValueError),
    "matrices": (lambda a, b: np.sum(np.dot(a, b)), (TALL, TALL), ValueError),
    "solve": (lambda a, b: np.sum(np.linalg.solve(a, b)), (SQUARE, TWO), LinAlgError),
    "inv": (lambda a: np.sum(np.linalg.inv(a)), (TALL,), LinAlgError),
    "a singular matrix": (lambda a: np.sum(np.linalg.inv(a)), (0 * SQUARE,), LinAlgError),
    "det": (lambda a: np.linalg.det(a), (TALL,), LinAlgError),
    "cholesky": (lambda a: np.sum(np.linalg.cholesky(a)), (-SQUARE,), LinAlgError),
    "the greatest of none": (lambda x: np.max(x), (NONE,), ValueError),
    "the place of the least of none": (lambda x: x[np.argmin(x)], (NONE,), ValueError),
    "interp": (lambda x, y: np.sum(np.interp(x, x, y)), (THREE, TWO), ValueError),
    "convolve": (lambda x, y: np.sum(np.convolve(x, y)), (NONE, TWO), ValueError),
    "take": (lambda x: np.sum(np.take(x, np.array([5]))), (THREE,), IndexError),
}


# NumPy raises in the emitted source what Numba raises when it is compiled, but for `solve`; one of each kind is.
NATIVE = ("addition", "a store", "a scalar product", "take")
MODES = {"solve": "long"} | dict.fromkeys(NATIVE, "compiled")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=getattr(pytest.mark, MODES.get(each, "interpreted"))) for each in CASES]
)
def test_what_the_primal_raises(name: str):
    function, args, error = CASES[name]
    with pytest.raises(error):
        gradient(function)(*(arg.copy() for arg in args))
    with pytest.raises(error):
        pullback(function, *(arg.copy() for arg in args))


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_numba_raises_that(name: str):
    function, args, error = CASES[name]
    with pytest.raises(error):
        numba.njit(function)(*(arg.copy() for arg in args))


def test_a_vector_times_itself_is_not_checked():
    source = gradient(lambda x: np.dot(x, x)).source(THREE)
    assert "check_lengths" not in source
    np.testing.assert_array_equal(gradient(lambda x: np.dot(x, x))(THREE), 2 * THREE)


def test_a_function_that_raises_for_all_arguments():
    with pytest.raises(DifferentiationError, match=r"never returns.*ValueError.*order must be non-negative") as caught:
        gradient(lambda x: np.sum(np.diff(x, -1)))(THREE)
    assert caught.value.file == __file__
    assert caught.value.hint
