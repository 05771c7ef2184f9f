"""Implementations of matrices, products, creation, selection and sets, against Numba's own functions."""

from __future__ import annotations

import numpy as np
import pytest
from numba.np.extensions import cross2d

from tests.numpy_functions import compiled
from tests.numpy_functions.compiled import check, with_samples

pytestmark = pytest.mark.interpreted


@pytest.mark.long
@pytest.mark.compiled
@with_samples
def test_diag(samples):
    v, m = samples(1), samples(2)
    for k in (0, 1, -2, 9):
        for x in v:
            check(lambda v, k: np.diag(v, k), np.diag, x, k, runtime=True)
            check(lambda v, k: np.diagflat(v, k), np.diagflat, x, k, runtime=True)
        for x in m:
            check(lambda v, k: np.diag(v, k), np.diag, x, k, runtime=True)
            check(lambda v, k: np.trace(v, k), np.trace, x, k, runtime=True)
    check(lambda v: np.diagflat(v), np.diagflat, m[-1])
    check(lambda v: np.diagflat(v), np.diagflat, 2.0)
    for dtype in (np.float32, np.complex64):
        check(lambda v: np.trace(v), np.trace, samples(2, dtype)[0])
        check(lambda v: np.diag(v), np.diag, samples(1, dtype)[0])


@pytest.mark.parametrize("ndim", [1, 2, 3])
@with_samples
def test_triangles(samples, ndim):
    for x in samples(ndim):
        for k in (0, 1, -2, 9, -9):
            check(lambda m, k: np.tril(m, k), np.tril, x, k, runtime=True)
            check(lambda m, k: np.triu(m, k), np.triu, x, k, runtime=True)
    x = samples(ndim, np.complex64)[0]
    check(lambda m: np.tril(m), np.tril, x)
    check(lambda m: np.triu(m), np.triu, x)


@with_samples
def test_vander(samples):
    for dtype in (np.float64, np.float32, np.int64, np.complex64):
        for x in samples(1, dtype):
            for n in (0, 1, 4, -1):
                check(lambda x, n, up: np.vander(x, n, up), np.vander, x, n, n > 1, runtime=True)
    check(lambda x: np.vander(x), np.vander, x)
    check(lambda x: np.vander(x), np.vander, (1.0, 2.5))


@pytest.mark.long
@pytest.mark.compiled
def test_fill_diagonal():
    for shape in ((3, 3), (2, 4), (7, 3), (0, 2), (3, 3, 3), (2, 2, 2, 2)):
        for wrap in (True, False):
            check(lambda a, v, w: np.fill_diagonal(a, v, w), np.fill_diagonal, np.ones(shape), 2.5, wrap, runtime=True)
            values = np.arange(2.0)
            check(
                lambda a, v, w: np.fill_diagonal(a, v, w), np.fill_diagonal, np.ones(shape), values, wrap, runtime=True
            )
    check(lambda a, v: np.fill_diagonal(a, v), np.fill_diagonal, np.ones((2, 3, 2)), 2.5)
    check(lambda a, v: np.fill_diagonal(a, v), np.fill_diagonal, np.ones((2, 2), np.float32), 1e300)
    check(lambda a, v: np.fill_diagonal(a, v), np.fill_diagonal, np.ones((2, 2), np.float32), np.inf)
    check(lambda a, v: np.fill_diagonal(a, v), np.fill_diagonal, np.ones((4, 4)).T[::2, ::2], (1, 2.0))


@pytest.mark.long
@pytest.mark.compiled
def test_outer_and_kron():
    x, m = np.arange(3.0), compiled.samples(2)[0]
    check(lambda a, b: np.outer(a, b), np.outer, x, m.T)
    check(lambda a, b: np.outer(a, b), np.outer, x[::2], 2.0)
    check(lambda a, b: np.outer(a, b), np.outer, (1, 2), x.astype(np.float32))
    check(lambda a, b, out: np.outer(a, b, out), np.outer, x, x[:2], np.zeros((3, 2)))
    for a, b in ((x, x[:2].copy()), (m, x), (x, m), (m, np.asfortranarray(m)), (2.0, m), (x, 2.0), (2.0, 3.0)):
        check(lambda a, b: np.kron(a, b), np.kron, a, b)
    check(lambda a, b: np.kron(a, b), np.kron, m.astype(np.complex64), x.astype(np.complex64))


@pytest.mark.long
@pytest.mark.compiled
def test_cross():
    rng = np.random.default_rng(0)
    a3, b3, a2 = rng.normal(size=3), rng.normal(size=3), rng.normal(size=2)
    for a, b in ((a3, b3), (a2, b3), (a3, a2), (a2, a2), (a3, rng.normal(size=4))):
        check(lambda a, b: np.cross(a, b), np.cross, a, b)
    m, n = rng.normal(size=(2, 4, 3)), rng.normal(size=(4, 3))
    for a, b in ((m, n), (m[..., :2], n), (n, a3), (a2, n), (m.astype(np.float32), a3), (m, n[:, ::-1][:3])):
        check(lambda a, b: np.cross(a, b), np.cross, a, b)
    check(lambda a, b: np.cross(a, b), np.cross, (1.0, 2.0, 3.0), b3)
    for a, b in ((a2, a2[::-1]), (n[:, :2], a2), (a3, a2)):
        check(lambda a, b: cross2d(a, b), cross2d, a, b)


def test_creation():
    for num in (-1, 0, 1, 2, 7):
        check(lambda a, b, n: np.linspace(a, b, n), np.linspace, 0.3, 2, num, runtime=True)
        check(lambda a, b, n: np.linspace(a, b, n), np.linspace, 0.3 + 1j, 2.0, num, runtime=True)
        check(lambda a, b, n: np.logspace(a, b, n), np.logspace, np.float32(0.3), 2.0, num, runtime=True)
        check(lambda a, b, n: np.geomspace(a, b, n), np.geomspace, 0.3, 2.0, num, runtime=True)
        check(lambda a, b, n: np.geomspace(a, b, n), np.geomspace, -0.3, -2.0, num, runtime=True)
    check(lambda a, b: np.geomspace(a, b), np.geomspace, 0.3, 0.0)
    check(lambda a, b: np.linspace(a, b), np.linspace, 0.3, 2.0)
    check(lambda a: np.arange(a), np.arange, 3.5)
    check(lambda a, b: np.arange(a, b), np.arange, 1, 3.5)
    check(lambda a, b, s: np.arange(a, b, s), np.arange, 1.0, 3.5, 0.3)
    check(lambda a, b, s: np.arange(a, b, s), np.arange, 1.0, 3.5, 0.0)
    check(lambda a, b, s: np.arange(a, b, s), np.arange, 1.0, -3.5, -0.5)
    check(lambda a, b, s: np.arange(a, b, s), np.arange, np.float32(1.0), 3, 2)
    check(lambda a, b, s: np.arange(a, b, s), np.arange, 1.0, 3.0 + 2j, 0.3 + 0.1j)


@pytest.mark.long
@pytest.mark.compiled
@with_samples
def test_delete_and_insert(samples):
    for x in (*samples(1), *samples(2)):
        for place in (0, 2, -1, 99):
            check(lambda x, i: np.delete(x, i), np.delete, x, place, runtime=True)
            check(lambda x, i, v: np.insert(x, i, v), np.insert, x, place, 2.5, runtime=True)
            check(lambda x, i, v: np.insert(x, i, v), np.insert, x, place, np.ones(2, np.float32), runtime=True)
    x = np.arange(5.0)
    check(lambda x, i: np.delete(x, i), np.delete, x, np.array([1, 3, -1]))
    check(lambda x, i: np.delete(x, i), np.delete, x, slice(1, 4, 2))
    for places in (
        np.array([1, 4, 1]),
        np.array([-1, 5, 0]),
        np.array([2]),
        np.zeros(0, np.int64),
        np.array([1, 6, 0]),
    ):
        for values in (np.array([1.5, 2.5, 3.5]), 7.0, np.ones(2)):
            check(lambda x, i, v: np.insert(x, i, v), np.insert, x, places, values)


@pytest.mark.compiled
@with_samples
def test_extract(samples):
    for x in (*samples(1), *samples(2)):
        check(lambda c, x: np.extract(c, x), np.extract, np.ravel(x) > 0, x)
    x = np.arange(3.0)
    check(lambda c, x: np.extract(c, x), np.extract, np.array([True, False]), x)
    check(lambda c, x: np.extract(c, x), np.extract, np.array([True, False, True, True]), x)
    check(lambda c, x: np.extract(c, x), np.extract, np.array([True, False, True, False]), x)


def test_take_along_axis():
    x = compiled.samples(3)[1]
    index = np.array([[[0, 2], [1, 0], [1, 1], [-1, 0]]])
    check(lambda x, i: np.take_along_axis(x, i, 0), np.take_along_axis, x, index, constants=(0,))
    check(lambda x, i: np.take_along_axis(x, i, 1), np.take_along_axis, x, index[:, :3, :1], constants=(1,))
    check(lambda x, i: np.take_along_axis(x, i, 2), np.take_along_axis, x[:1], index[:, :1], constants=(2,))
    check(lambda x, i: np.take_along_axis(x, i, None), np.take_along_axis, x, np.array([3, 5]), constants=(None,))
    check(lambda x, i: np.take_along_axis(x, i, 1), np.take_along_axis, x, index[:, :, [0, 1, 1]], constants=(1,))


@with_samples
def test_others(samples):
    x = np.array([0.0, 0.0, 2.0, 1.0, 0.0])
    for sides in ("fb", "f", "B"):
        check(eval(f"lambda x: np.trim_zeros(x, {sides!r})"), np.trim_zeros, x, constants=(sides,))
    check(lambda x: np.trim_zeros(x), np.trim_zeros, np.zeros(3))
    for y in (*samples(1), *samples(2)):
        check(lambda y: np.ediff1d(y), np.ediff1d, y)
        check(lambda y, end: np.ediff1d(y, end), np.ediff1d, y, np.ones(2))
        check(lambda y, end, start: np.ediff1d(y, end, start), np.ediff1d, y, 2.0, (1.0, 3.0))
        check(lambda y: np.asarray_chkfinite(y), np.asarray_chkfinite, y)
    check(lambda y: np.asarray_chkfinite(y), np.asarray_chkfinite, np.array([1.0, np.nan]))


@pytest.mark.parametrize("layout", ["C", pytest.param("F", marks=pytest.mark.long)])
def test_sets(layout):
    x, y = np.array([3.0, 1.0, 3.0, np.nan, 2.0, 1.0, np.nan]), np.array([[1.0, 5.0], [2.0, 5.0]], order=layout)
    for a in (x, y, np.zeros(0)):
        check(lambda a: np.unique(a), np.unique, a)
        check(lambda a, b: np.union1d(a, b), np.union1d, a, y)
        check(lambda a, b: np.setdiff1d(a, b), np.setdiff1d, a, y)
        check(lambda a, b: np.setxor1d(a, b), np.setxor1d, a, y)
    check(lambda a, b, u: np.setdiff1d(a, b, u), np.setdiff1d, y, x, True, runtime=True)
