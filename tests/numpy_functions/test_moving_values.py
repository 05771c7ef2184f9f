"""Implementations of what moves elements, against Numba's own functions."""

from __future__ import annotations

import numpy as np
import pytest

import zygote_py.numpy_functions.manipulation.rearranging  # noqa: F401
from tests.numpy_functions.compiled import check, samples, with_samples

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("ndim", [1, 3])
@with_samples
def test_flip(samples, ndim):
    for x in samples(ndim):
        check(lambda a: np.flip(a), np.flip, x)
        check(lambda a: np.flipud(a), np.flipud, x)


@pytest.mark.parametrize("ndim", [2, 3])
@with_samples
def test_turn(samples, ndim):
    for x in samples(ndim):
        check(lambda a: np.fliplr(a), np.fliplr, x)
        check(lambda a: np.rot90(a), np.rot90, x)
        for k in (0, 2, 3):
            check(lambda a, k: np.rot90(a, k), np.rot90, x, k)
    for k in (0, 1, 2, 3, -5):
        check(lambda a, k: np.rot90(a, k), np.rot90, x, k, runtime=True)


@pytest.mark.parametrize("ndim", [2, 4])
def test_axes(ndim):
    x = samples(ndim)[1]
    check(lambda a, i, j: np.swapaxes(a, i, j), np.swapaxes, x, 0, -1)
    check(lambda a, i, j: np.moveaxis(a, i, j), np.moveaxis, x, 0, -1)
    for i in range(-ndim - 1, ndim + 1):
        for j in range(ndim):
            check(lambda a, i, j: np.swapaxes(a, i, j), np.swapaxes, x, i, j, runtime=True)
            check(lambda a, i, j: np.moveaxis(a, i, j), np.moveaxis, x, i, j, runtime=True)


def test_axes_in_tuples():
    x = samples(4)[0]
    check(lambda a, i, j: np.moveaxis(a, i, j), np.moveaxis, x, (0, 1), (-1, 0))
    check(lambda a, i, j: np.moveaxis(a, i, j), np.moveaxis, x, (2, 0, 3), (0, 1, 2))


@pytest.mark.parametrize("ndim", [0, 1, 2, 3])
@with_samples
def test_at_least(samples, ndim):
    for x in samples(ndim):
        check(lambda a: np.atleast_1d(a), np.atleast_1d, x)
        check(lambda a: np.atleast_2d(a), np.atleast_2d, x)
        check(lambda a: np.atleast_3d(a), np.atleast_3d, x)
        check(lambda a, b: np.atleast_2d(a, b), np.atleast_2d, x, np.ones(2))


def test_broadcast_arrays():
    x, y, z = np.arange(3.0), np.arange(8.0).reshape(4, 1, 2)[:, :, ::2], np.arange(12.0).reshape(4, 3)
    check(lambda a, b: np.broadcast_arrays(a, b), np.broadcast_arrays, x, z)
    check(lambda a, b, c: np.broadcast_arrays(a, b, c), np.broadcast_arrays, x, y, z[:1])
    check(lambda a, b: np.broadcast_arrays(a, b), np.broadcast_arrays, z, 2.0)
    check(lambda a, b: np.broadcast_arrays(a, b), np.broadcast_arrays, x, x[:2])


@pytest.mark.parametrize("ndim", [0, 1, 3])
@with_samples
def test_roll(samples, ndim):
    for x in samples(ndim):
        for shift in (0, 1, -2, 100):
            check(lambda a, shift: np.roll(a, shift), np.roll, x, shift, runtime=True)


def test_roll_of_other_types():
    check(lambda a, shift: np.roll(a, shift), np.roll, np.arange(4, dtype=np.int32), 1, runtime=True)
    check(lambda a, shift: np.roll(a, shift), np.roll, np.arange(4, dtype=np.complex64), True)
    check(lambda a, shift: np.roll(a, shift), np.roll, (1.0, 2.0, 3.0), 1)
    check(lambda a, shift: np.roll(a, shift), np.roll, 2.0, 1)


@pytest.mark.parametrize(
    ("ndim", "dtype"), [(0, np.float64), (1, np.float32), (1, np.complex128), (2, np.float64), (3, np.int64)]
)
@with_samples
def test_repeat(samples, ndim, dtype):
    for x in samples(ndim, dtype):
        for repeats in (0, 1, 3):
            check(lambda a, repeats: np.repeat(a, repeats), np.repeat, x, repeats, runtime=True)
        counts = np.arange(x.size) % 3
        check(lambda a, repeats: np.repeat(a, repeats), np.repeat, x, counts)
        check(lambda a, repeats: np.repeat(a, repeats), np.repeat, x, np.array([2]))


def test_repeat_refuses_what_numba_refuses():
    x = np.arange(3.0)
    check(lambda a, repeats: np.repeat(a, repeats), np.repeat, x, -1)
    check(lambda a, repeats: np.repeat(a, repeats), np.repeat, x, np.array([1, -1, 1]))
    check(lambda a, repeats: np.repeat(a, repeats), np.repeat, x, np.array([1, 1]))
    check(lambda a, repeats: np.repeat(a, repeats), np.repeat, (1.0, 2.0), 2)
    check(lambda a, repeats: np.repeat(a, repeats), np.repeat, 2.5, 2)
    check(lambda a, repeats: np.repeat(a, repeats), np.repeat, True, 2, runtime=True)


@pytest.mark.parametrize("ndim", [0, 2])
@with_samples
def test_resize(samples, ndim):
    for x in samples(ndim):
        for shape in (0, 2, 7, (2, 1), (3, 5), (0, 3), (-1, 2), -3):
            check(lambda a, shape: np.resize(a, shape), np.resize, x, shape, runtime=True)
