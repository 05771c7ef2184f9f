"""Functions that order, select and interpolate arrays of complex numbers: Numba's values, and gradients by parts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.numpy_functions.primals import agree
from zygote_py import gradient

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(11)
ROW = RNG.normal(size=6) + 1j * RNG.normal(size=6)
TABLE = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
TIES = np.array([1 + 2j, 1 + 1j, -1 + 3j, 1 + 2j, -1 - 3j])
NAN = complex(np.nan, 1.0)
HALF_NAN = complex(1.0, np.nan)
SPECIAL = np.array([NAN, 1 + 1j, HALF_NAN, complex(np.nan, np.nan), complex(np.inf, -np.inf), 2 - 1j])
ARRAYS = {
    "row": ROW,
    "single": ROW.astype(np.complex64),
    "strided": RNG.normal(size=12)[::2] * (1 - 2j),
    "table": TABLE,
    "fortran": np.asfortranarray(TABLE),
    "ties": TIES,
    "special": SPECIAL,
}
OFTEN = ("fortran", "special")  # of each, several functions are compiled
each_array = pytest.mark.parametrize(
    "z", [pytest.param(z, id=name, marks=() if name in OFTEN else pytest.mark.long) for name, z in ARRAYS.items()]
)


def replaced(z):
    return np.nan_to_num(z), np.nan_to_num(z, nan=2.0, posinf=1e3, neginf=-3.0)


def replaced_in_place(z):
    np.nan_to_num(z, copy=False)
    z.sort()
    return np.sort(z * 1j)


def extremes(z):
    return np.ptp(z), np.nanmax(z), np.nanmin(z)


@each_array
def test_values(z):
    agree(replaced, z)
    agree(replaced_in_place, z)
    agree(extremes, z)
    agree(extremes, z[:1])


def interpolated(x, xp, fp):
    return np.interp(x, xp, fp), np.interp(x[2], xp, fp)


GRID = np.sort(RNG.normal(size=6))


@pytest.mark.compiled
@pytest.mark.parametrize(
    "heights",
    [
        pytest.param(ROW, marks=pytest.mark.long),
        pytest.param(SPECIAL, marks=pytest.mark.long),
        pytest.param(ROW.astype(np.complex64), marks=pytest.mark.long),
    ],
    ids=["plain", "special", "single"],
)
def test_interpolation(heights):
    x = np.concatenate((RNG.normal(size=9) * 2, GRID, np.array([np.nan, 50.0, -50.0, np.inf])))
    agree(interpolated, x, GRID, heights)
    agree(interpolated, x[:4], GRID, heights)
    agree(lambda x, xp, fp: np.interp(x, xp, fp), x[:6].reshape(2, 3), GRID, heights)


@pytest.mark.long
@pytest.mark.compiled
def test_interpolation_with_few_points_or_equal_ones():
    for size in (0, 1, 2):
        agree(interpolated, GRID + 0.1, GRID[:size], ROW[:size])
    agree(interpolated, GRID, GRID, ROW[:2])
    agree(lambda x, xp, fp: np.interp(x, xp, fp), GRID, np.array([0.0, 0.0, 1.0]), ROW[:3])
    agree(lambda x, xp, fp: np.interp(x, xp, fp), np.array([0.5]), np.array([0.0, 0.0, 1.0]), ROW[:3])


@pytest.mark.long
def test_interpolation_in_single_precision():
    agree(interpolated, GRID.astype(np.float32) + 0.1, GRID.astype(np.float32), ROW)


# Functions of the real parts and the imaginary parts, so that differences apply.


def of_interpolation(x, xp, a, b):
    z = np.interp(x, xp, a + 1j * b)
    w = np.interp(x[1], xp, a + 1j * b)
    return np.sum(z.real**2 + z.imag * z.real) + np.abs(w)


def of_order(a, b):
    z = a + 1j * b
    ordered = np.sort(z * (1 - 2j))
    z.sort()
    k = np.arange(1.0, a.size + 1)
    return np.sum((ordered * z).real * k) + np.abs(np.ptp(z)) + (np.nanmax(z) * np.nanmin(z)).imag


def of_choice(a, b):
    z = a + 1j * b
    chosen = np.select([a > 0.5, b > 0.0], [z * z, 2.0 * z], 1j) * np.select((a > 0.0,), (z,), default=2.0)
    return np.sum(chosen.real - 2.0 * chosen.imag)


def of_replacement(a, b):
    z = np.nan_to_num(a + 1j * b) * np.nan_to_num(b * 1j - a, nan=1.0)
    return np.sum(z.real + 2.0 * z.imag)


@pytest.mark.parametrize("function", [of_order, of_choice, of_replacement])
def test_gradients_of_parts(function):
    check_derivatives(function, ROW.real.copy(), ROW.imag.copy(), reference="numba")


def test_gradients_of_interpolation():
    x = RNG.uniform(-2.0, 2.0, 9)
    check_derivatives(of_interpolation, x, GRID, ROW.real.copy(), ROW.imag.copy(), reference="numba")


def test_what_is_replaced_has_no_derivative():
    weights = np.arange(1.0, 7.0)
    dz = gradient(lambda z, w: np.sum((np.nan_to_num(z) * (w + 2j * w)).real), wrt="z")(SPECIAL, weights)
    finite = np.isfinite(SPECIAL.real) + 1j * np.isfinite(SPECIAL.imag)
    np.testing.assert_array_equal(dz, weights * (finite.real - 2j * finite.imag))


def test_selected_real_arrays():
    def f(x, y):
        return np.sum(np.select([x > 0.5, y > 0.0], [x * y, y], default=7.0) * np.select([x > 0.0], [x * x]))

    x, y = ROW.real.copy(), ROW.imag.copy()
    agree(f, x, y)
    check_derivatives(f, x, y, reference="numba")
