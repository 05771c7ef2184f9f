"""Functions that `vectorize`, `guvectorize` and `cfunc` make, and C functions, called in what is differentiated."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest
from numba import cfunc, float32, float64, guvectorize, njit, vectorize

import zygote_py as zg
from tests.checking.derivatives import check_derivatives
from tests.plain import plain
from zygote_py import DifferentiationError, gradient, value_and_gradient

pytestmark = pytest.mark.interpreted

RATE = 0.7
ROW = np.linspace(0.2, 1.4, 4)
COLUMN = np.array([[0.3], [1.1], [0.6]])
GRID = np.linspace(0.5, 1.5, 12).reshape(3, 4)


@vectorize
def soft(x, y):
    if x > 0.5:
        return RATE * x * y + math.exp(-x)
    return x - y * y


@vectorize([float32(float32, float32), float64(float64, float64)])
def ratio(x, y):
    return x * y / (x + y)


@vectorize(["i8(i8, i8)", "f8(f8, f8)"], fastmath=False)
def halved(x, n):
    return x // 2 * n + x


# vectorize


def test_numbers_and_arrays():
    check_derivatives(lambda x, y: soft(x, 2.0) * soft(0.1, y), 1.5, 0.8, reference="numba", routes=("source", "call"))
    check_derivatives(lambda a, y: np.sum(soft(a, y) * a), ROW, 0.8, reference="numba", routes=("source", "call"))


@pytest.mark.parametrize(
    "args",
    [(ROW, COLUMN), (COLUMN, ROW), (GRID, ROW), (ROW, GRID), (GRID, GRID[:1]), (GRID[:, :1], GRID), (1.5, GRID)],
)
def test_broadcasting(args):
    check_derivatives(lambda x, y: np.sum(ratio(x, y) * ratio(y, x)), *args, reference="numba", routes=("source",))


@pytest.mark.compiled
def test_broadcasting_compiled():
    check_derivatives(
        lambda x, y, n: np.sum(ratio(x, y) * ratio(n, ratio(y, x))),
        ROW,
        COLUMN,
        3,
        reference="numba",
        routes=("source", "call"),
    )


def test_dimensions_that_do_not_fit():
    with pytest.raises(ValueError, match="unable to broadcast argument 1"):
        gradient(lambda x, y: np.sum(ratio(x, y)))(ROW, ROW[:3])


@pytest.mark.compiled
@pytest.mark.parametrize("changed", [np.asfortranarray(GRID), GRID[::-1, ::2], GRID[:0], GRID[1, 2] + np.zeros(())])
def test_layouts(changed):
    check_derivatives(lambda x: np.sum(np.exp(ratio(x, 2.0))), changed, reference="numba", routes=("source",))


def test_the_loop_is_the_one_that_numba_takes():
    check_derivatives(
        lambda x, n: halved(x, n) * halved(n, n) + halved(n, 2.0) * x,
        3.5,
        3,
        reference="numba",
        routes=("source", "call"),
    )
    check_derivatives(lambda x, n: np.sum(halved(x, np.arange(4)) * n), ROW, 5, reference="numba", routes=("source",))
    check_derivatives(lambda x, k: np.sum(halved(k, 2) * x), ROW, np.arange(4), reference="numba", routes=("source",))
    narrow = value_and_gradient(lambda x, y: np.sum(ratio(x, y)))(ROW.astype(np.float32), np.float32(2.0))
    assert narrow[1][0].dtype == np.float32
    np.testing.assert_allclose(narrow[1][0], 4.0 / (ROW + 2.0) ** 2, rtol=1e-6)
    with pytest.raises(DifferentiationError, match="`ratio` was compiled for"):
        gradient(lambda x: ratio(x, 1j).real)(1.0)


def test_the_array_for_the_result():
    def into(x, y):
        out = np.full((3, 4), 7.0)
        again = ratio(x, y, out)
        return np.sum(out * again)

    check_derivatives(into, ROW, COLUMN, reference="numba", routes=("source", "call"))


def test_divisions_by_zero_are_those_of_numpy():
    value, (dx, dy) = value_and_gradient(lambda x, y: np.sum(ratio(x, y)))(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    assert math.isnan(value)
    assert (dx[0], dy[0]) == pytest.approx((4 / 9, 1 / 9))
    assert math.isnan(dx[1])

    @vectorize
    def floored(x):
        return x // 0.4 * x

    check_derivatives(lambda x: np.sum(floored(x)), ROW, reference="numba", routes=("source",))


@pytest.mark.compiled
def test_what_a_kernel_captures_and_calls():
    @njit("f8(f8)")
    def inner(x):
        return x * x

    @vectorize
    def outer(x, y):
        return inner(x) * y + soft(x, y)

    check_derivatives(lambda x, y: np.sum(outer(x, y)), ROW, 1.5, reference="numba", routes=("source",))
    d = gradient(lambda x: soft(x, 2.0), wrt=(0, "RATE"))
    np.testing.assert_allclose(d(1.5), (RATE * 2.0 - math.exp(-1.5), 3.0), rtol=1e-14)


def test_differentiated_itself_and_again():
    assert gradient(ratio)(1.0, 3.0) == pytest.approx((9 / 16, 1 / 16))
    again = plain(zg.hessian(lambda a: np.sum(ratio(a, 2.0))).source(ROW))
    np.testing.assert_allclose(np.diag(again(ROW)), -8.0 / (ROW + 2.0) ** 3, rtol=1e-13)
    value, back = zg.pullback(ratio, ROW, 2.0)
    np.testing.assert_array_equal(value, ratio(ROW, 2.0))
    np.testing.assert_allclose(back(np.ones(4))[0], 4.0 / (ROW + 2.0) ** 2, rtol=1e-14)
    assert gradient(lambda f, x: f(x, 2.0))(ratio, 2.0) == (None, pytest.approx(0.25))


def test_a_rule_wins_over_the_source():
    @vectorize(["f8(f8)"])
    def known(x):
        return x * x

    @zg.adjoint(known)
    def rule(x):
        return known(x), lambda dy: (10.0 * dy,)

    assert gradient(lambda x: known(x) * 2.0)(3.0) == 20.0
    ignored = zg.ignore(ratio)
    assert gradient(lambda x: ignored(x, 1.0) * x)(1.0) == 0.5


def test_methods_of_a_ufunc_are_refused():
    with pytest.raises(DifferentiationError, match="the method `reduce` of the ufunc `ratio`"):
        gradient(lambda x: ratio.reduce(x))(ROW)
    with pytest.raises(DifferentiationError, match=r"Numba does not know `np\.maximum\.reduce`") as caught:
        gradient(lambda x: np.maximum.reduce(x))(ROW)
    assert caught.value.hint == "use `np.max`"
    with pytest.raises(DifferentiationError, match=r"Numba does not know `np\.add\.at`") as caught:
        gradient(lambda x: np.add.at(x, 0, 1.0))(ROW)
    assert "loop" in caught.value.hint


# guvectorize


@guvectorize(["(f8[:], f8, f8[:])"], "(n),()->(n)")
def saturated(x, k, out):
    for i in range(len(x)):
        out[i] = x[i] * k / (1.0 + x[i])


@guvectorize("(n),(n)->()")
def inner_product(x, y, out):
    out[0] = 0.0
    for i in range(len(x)):
        out[0] += x[i] * y[i]


@guvectorize([(float64[:, :], float64[:, :], float64[:, :])], "(m,n),(n,p)->(m,p)")
def product(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = np.sum(a[i] * b[:, j])


@guvectorize([(float64[:], float64[:], float64[:])], "(n),()->(n)")
def scaled(x, k, out):
    for i in range(len(x)):
        out[i] = x[i] * k[0] ** 2


@pytest.mark.parametrize("k", [3.0, np.array(3.0), np.array([2.0, 3.0, 4.0]), np.array([2.0, 9.0, 3.0, 9.0, 4.0])[::2]])
def test_a_kernel_that_takes_a_number_as_an_array(k):
    out, seed = np.zeros((3, 4)), np.linspace(-1.0, 2.0, 12).reshape(3, 4)
    _, back = zg.pullback(scaled, GRID, k, out)
    column = np.broadcast_to(np.asarray(k)[..., None], (3, 1))
    np.testing.assert_allclose(out, GRID * column**2)
    dx, dk, _ = back(out=seed)
    np.testing.assert_allclose(dx, seed * column**2)
    dk_expected = np.sum(seed * GRID * 2.0 * column, axis=1)
    np.testing.assert_allclose(dk, dk_expected if np.ndim(k) else np.sum(dk_expected))


def run_saturated(x, k):
    out = np.empty_like(x)
    saturated(x, k, out)
    return np.sum(out * x)


def run_inner_product(x, y):
    out = np.empty(x.shape[:-1])
    inner_product(x, y, out)
    return np.sum(out * out)


@pytest.mark.parametrize("args", [(ROW, 2.0), (ROW, 3), (GRID, 2.0), (GRID, GRID[:, 0].copy()), (GRID[:, ::2], 0.5)])
def test_loops_around_a_kernel(args):
    check_derivatives(
        run_saturated,
        *args,
        reference="numba",
        routes=("source", "call") if args[0] is GRID and isinstance(args[1], float) else ("source",),
    )


def test_results_that_are_numbers():
    check_derivatives(run_inner_product, GRID, GRID + 1.0, reference="numba", routes=("source", "call"))
    check_derivatives(run_inner_product, GRID, ROW, reference="numba", routes=("source",))


def test_several_core_dimensions():
    def run(a, b):
        out = np.empty((2, a.shape[1], b.shape[2]))
        product(a, b, out)
        return np.sum(out * out)

    check_derivatives(
        run,
        np.linspace(0, 1, 12).reshape(2, 2, 3),
        np.linspace(1, 2, 12).reshape(2, 3, 2),
        reference="numba",
        routes=("source",),
    )


def test_arguments_that_do_not_fit_a_kernel():
    with pytest.raises(ValueError, match="core dimensions"):
        gradient(run_inner_product)(GRID, GRID[:, :3])
    with pytest.raises(ValueError, match="Loop and array shapes"):
        gradient(run_saturated)(GRID, ROW)
    with pytest.raises(DifferentiationError, match="too few dimensions"):
        gradient(lambda x, out: saturated(x, 1.0, out))(1.0, ROW)
    with pytest.raises(DifferentiationError, match="`saturated` was compiled for"):
        gradient(run_saturated)(ROW.astype(np.float32), 1.0)


# cfunc


@cfunc("f8(f8, i8)")
def callback(x, n):
    return x * x * n


def test_c_callbacks_with_a_source():
    check_derivatives(
        lambda x, n: callback(x, n) + callback(n, n) * x, 1.5, 3, reference="numba", routes=("source", "call")
    )
    assert gradient(callback)(2.0, 3) == (12.0, None)
    with pytest.raises(DifferentiationError, match="wrong arguments for `callback`"):
        gradient(lambda x: callback(x))(1.0)
    with pytest.raises(DifferentiationError, match="`callback` was compiled for"):
        gradient(lambda x: callback(x, 2))(ROW)


# C functions


def c_function(name):
    library = ctypes.CDLL(None)
    found = library[name]
    found.argtypes, found.restype = [ctypes.c_double], ctypes.c_double
    return found


c_erf, c_cos = c_function("erf"), c_function("cos")


def test_a_c_function_has_no_source():
    with pytest.raises(DifferentiationError, match="`erf` is a C function: there is no Python source") as caught:
        gradient(lambda x: c_erf(x) * x)(0.5)
    assert "@zg.adjoint(erf)" in str(caught.value)
    assert value_and_gradient(lambda x: c_cos(0.0) * x)(0.5) == (0.5, 1.0)  # no derivative is asked for


def test_a_rule_for_a_c_function():
    @zg.adjoint(c_cos)
    def rule(x):
        return c_cos(x), lambda dy: (-math.sin(x) * dy,)

    x = 0.5
    slope = math.cos(x) - x * math.sin(x)
    assert value_and_gradient(lambda x: c_cos(x) * x)(x) == (math.cos(x) * x, pytest.approx(slope, rel=1e-14))
    ignored = zg.ignore(c_erf)
    assert gradient(lambda x: ignored(x) * x)(x) == math.erf(x)


# The cache


def test_fingerprints_tell_them_apart():
    from zygote_py.cache.fingerprint import Fingerprint

    def source(x):
        return x * x

    made = [
        vectorize(source),
        vectorize(["f8(f8)"])(source),
        vectorize(["f8(f8)"], fastmath=True)(source),
        vectorize(["f4(f4)"])(source),
        guvectorize(["(f8[:], f8[:])"], "(n)->(n)")(lambda x, y: None),
        cfunc("f8(f8)")(source),
        cfunc("f8(i8)")(source),
    ]
    digests = set()
    for each in made:
        found = Fingerprint()
        found.value(each)
        digests.add(found.digest)
    assert len(digests) == len(made)
