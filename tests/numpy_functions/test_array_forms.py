"""Forms of calls on arrays: `out`, keywords, methods; rounding and angles of arrays, real and complex."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.numpy_functions.primals import agree
from zygote_py import gradient

pytestmark = pytest.mark.interpreted

ROW = np.array([0.31, -1.26, 2.37, 0.52])
TABLE = np.random.default_rng(3).normal(size=(3, 4))
LAYOUTS = {
    "c": TABLE,
    "fortran": np.asfortranarray(TABLE),
    "strided": np.random.default_rng(4).normal(size=(6, 8))[::2, ::2],
    "single": TABLE.astype(np.float32),
    "no axes": np.array(1.74),
    "empty": np.zeros((3, 0)),
}
OFTEN = ("strided", "single", "no axes")
EACH = [pytest.param(x, id=name, marks=() if name in OFTEN else pytest.mark.long) for name, x in LAYOUTS.items()]
COMPLEX = ROW + 1j * ROW[::-1] ** 2


# -------------------------------------------------------------------------------------------------------- rounding


def rounded(x):
    return np.round(x), np.round(x, 1), np.around(x, decimals=2), np.round(a=x, decimals=-1)


@pytest.mark.parametrize("x", [*EACH, COMPLEX, pytest.param(COMPLEX.astype(np.complex64), marks=pytest.mark.long)])
def test_rounded_values(x):
    agree(rounded, x * 9)


@pytest.mark.long
@pytest.mark.compiled
def test_rounding_into_an_array():
    def f(x, y):
        np.round(x, 1, y)
        np.around(x * 2.0, out=y[1:])

    agree(f, ROW, np.zeros(4, np.float32))
    agree(f, ROW, np.zeros(5))
    agree(lambda x, y: np.round(x * 2.0, 1, out=y), ROW, np.zeros(4, np.float32))
    agree(lambda x, y: np.round(x[:1], 1, y), ROW, np.zeros(4))
    agree(lambda x, k: np.round(x, k), ROW, 1)


def test_rounding_has_no_derivative():
    check_derivatives(lambda x: np.sum(np.round(x, 1) * x + np.around(x)), ROW, expected=([0.3, -1.3, 2.4, 0.5],))

    def into(x):
        y = x * 1.0
        np.round(x, 1, y)
        return np.sum(y * x)

    check_derivatives(into, ROW, expected=([0.3, -1.3, 2.4, 0.5],))


def test_rounding_of_complex_numbers():
    dz = gradient(lambda z: np.sum((np.round(z, 1) * z).real))(COMPLEX)
    np.testing.assert_array_equal(dz, np.conj(np.round(COMPLEX, 1)))


def test_rounding_in_single_precision():
    dx = gradient(lambda x: np.sum(np.round(x, 1) * x))(ROW.astype(np.float32))
    assert dx.dtype == np.float32
    np.testing.assert_array_equal(dx, np.array([0.3, -1.3, 2.4, 0.5], np.float32))


# ---------------------------------------------------------------------------------------------------------- angles


def angles(z):
    return np.angle(z), np.angle(z, True), np.angle(z, deg=True), np.angle(z=z)


@pytest.mark.parametrize(
    "z",
    [*EACH, COMPLEX.reshape(2, 2).T, COMPLEX.astype(np.complex64), np.array(1 - 2j)],
)
def test_values_of_angles(z):
    agree(angles, z)
    agree(lambda z, deg: np.angle(z, deg), z, z.size > 1)


def test_angles():
    # i z / |z|^2: the angle grows when z turns
    turn = 1j * COMPLEX / np.abs(COMPLEX) ** 2
    weights = np.arange(1.0, 5.0)
    np.testing.assert_allclose(gradient(lambda z: np.sum(np.angle(z) * np.arange(1.0, 5.0)))(COMPLEX), weights * turn)
    in_degrees = gradient(lambda z, w: np.sum(np.angle(z, deg=True) * w), wrt="z")(COMPLEX, weights)
    np.testing.assert_allclose(in_degrees, weights * np.degrees(1.0) * turn)
    z = COMPLEX.astype(np.complex64).reshape(2, 2)
    dz = gradient(lambda z: np.sum(np.angle(z)))(z)
    assert dz.dtype == np.complex64
    np.testing.assert_allclose(dz, turn.reshape(2, 2), rtol=1e-5)
    # the number has the angle 0 or pi
    check_derivatives(lambda x: np.sum(np.angle(x) * x), ROW, expected=([0.0, np.pi, 0.0, 0.0],))


def test_phases_without_jumps():
    def f(a, b):
        k = np.arange(1.0, 7.0)
        response = 1.0 / (1.0 + a * np.exp(-1j * k) + b * np.exp(-2j * k))
        return np.sum(np.unwrap(np.angle(response)) * k)

    check_derivatives(f, 1.3, 2.2, reference="numba")


def test_sinc():
    def f(x):
        return np.sinc(x) * x

    for x in (LAYOUTS["strided"], LAYOUTS["single"], COMPLEX, np.array([0.0, 1.0, 2.5])):
        agree(f, x)
    check_derivatives(lambda x: np.sum(np.sinc(x) * x), TABLE)
    z, h = np.array([0.3 + 0.4j, -1.2 + 0.1j]), 1e-6
    slope = (np.sinc(z + h) - np.sinc(z - h)) / (2 * h)
    np.testing.assert_allclose(gradient(lambda z: np.sum(np.sinc(z).real))(z), np.conj(slope), rtol=1e-8)


# -------------------------------------------------------------------------------------------- keywords and methods


def clipped(x, low, high):
    return (
        *(np.clip(x, a_min=low, a_max=high), np.clip(a=x, a_min=low, a_max=high), np.clip(x, low, a_max=high)),
        *(x.clip(low, high), x.clip(a_min=low, a_max=high), x.clip(low), x.clip(a_max=high), x.clip(None, high)),
        *(np.clip(x, None, high), np.clip(x, low, None), np.clip(x, low, high, None)),
    )


@pytest.mark.compiled
@pytest.mark.parametrize(
    "x", [pytest.param(LAYOUTS[name], id=name, marks=() if name == "no axes" else pytest.mark.long) for name in LAYOUTS]
)
def test_values_of_clip(x):
    agree(clipped, x, -0.2, 0.6)
    agree(lambda x, y: (np.clip(x, a_min=y, a_max=0.6), x.clip(a_max=y), x.clip(y, y + y)), x, x * x)


@pytest.mark.long
@pytest.mark.compiled
def test_clip_into_an_array():
    agree(lambda x, y: (np.clip(x, 0.0, 1.0, y), x.clip(0.1, 0.7, out=y[::-1])), ROW, np.zeros(4))
    agree(lambda x, y: x.clip(0.1, 0.7, y), ROW.astype(np.float32), np.zeros(4, np.float32))
    agree(lambda x, y: x[:1].clip(0.0, 1.0, out=y), ROW, np.zeros(4))


@pytest.mark.long
@pytest.mark.compiled
def test_clip():
    def f(x, low, high):
        y = np.clip(x, a_min=low, a_max=high) * x + x.clip(a_max=high) * 2.0 + x.clip(low)
        out = np.empty_like(x)
        np.clip(x, low, high, out=out)
        return np.sum(y * out)

    check_derivatives(f, TABLE, TABLE - 0.1, 0.5, reference="numba")


@pytest.mark.long
@pytest.mark.compiled
def test_where_by_keywords():
    def f(x, y):
        a = np.where(condition=x > 0, x=x, y=y) * np.where(x > y, y=x, x=y)
        b = np.where(x[0] > 0, y=x[0], x=y[0])
        return np.sum(a) * b

    agree(f, ROW, ROW**2)
    check_derivatives(f, ROW, ROW**2 + 0.1, reference="numba")


def test_sums_by_keywords():
    def f(x):
        return np.sum(np.sum(a=x, axis=0) ** 2) * np.prod(a=x) + np.dot(a=x, b=x.T).sum()

    agree(f, TABLE)
    check_derivatives(f, TABLE, reference="numba")


# ---------------------------------------------------------------------------------- comprehensions, as arrays


@numba.njit
def cube(v):
    return v * v * v


def test_comprehensions():
    def f(x):
        squares = [v * v for v in x]
        y = np.array([cube(v) for v in x[::-1]]) + np.array([w * 2.0 for w in squares]) + np.asarray(squares)
        z = np.array([np.sum(x * v) for v in np.sin(x)]) * np.array([k * x[k] for k in range(len(x))])
        return np.sum(y * z) * np.array([v * 2.0 for v in (x[0], x[1], 3.0)])[1]

    agree(f, ROW)
    check_derivatives(f, ROW, reference="numba")


def test_nested_comprehensions_and_conditions():
    def f(x):
        y = np.array([[x[i] * j for i in range(4)] for j in range(3)])
        z = np.array([v * v for v in x if v > 0.4])
        return np.sum(y * x) * np.sum(z)

    agree(f, ROW)
    check_derivatives(f, ROW, reference="numba")


def test_comprehensions_over_rows():
    def f(x):
        y = np.array([row.sum() for row in x])
        return np.sum(y * y)

    for x in (TABLE, np.asfortranarray(TABLE)):
        agree(f, x)
        check_derivatives(f, x, expected=(2 * np.outer(x.sum(axis=1), np.ones(4)),))


def test_the_item_of_a_number():
    assert gradient(lambda a: (a[0] * a[1]).item() * a[1])(np.array([2.0, 3.0])).tolist() == [9.0, 12.0]
