"""Implementations of what joins and splits arrays, against Numba's own functions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numpy_functions.compiled import check, samples

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("ndim", [1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_concatenate(ndim):
    x, strided, empty, *fortran = samples(ndim)
    for arrays in ((x, strided, empty), (x,), (empty, empty), tuple(fortran) * 2):
        if arrays:
            check(lambda a, axis: np.concatenate(a, axis), np.concatenate, arrays, 0)
    for axis in range(-ndim - 1, ndim + 1):
        check(lambda a, axis: np.concatenate(a, axis), np.concatenate, (x, strided), axis, runtime=True)
    check(lambda a, axis: np.concatenate(a, axis), np.concatenate, (x, empty), -1)


def test_concatenate_dtypes():
    for one, two in (
        (np.float32, np.int64),
        (np.float32, np.float32),
        (np.complex64, np.float64),
        (np.bool_, np.int32),
    ):
        check(lambda a: np.concatenate(a), np.concatenate, (np.ones(2, one), np.arange(3).astype(two)))


@pytest.mark.parametrize("ndim", [0, 1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_stack(ndim):
    x, *others = samples(ndim)
    check(lambda a: np.stack(a), np.stack, (x, x))
    for axis in range(-ndim - 2, ndim + 2):
        check(lambda a, axis: np.stack(a, axis), np.stack, (x, *others[:1]), axis, runtime=True)
    if ndim:
        check(lambda a: np.stack(a), np.stack, (x, others[1]))
        check(lambda a, axis: np.stack(a, axis), np.stack, (others[-1],) * 2, -1)


@pytest.mark.parametrize("ndim", [0, 1, 2, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("call", [np.hstack, np.vstack, np.dstack, np.row_stack])
def test_stacks(ndim, call):
    x, *others = samples(ndim)
    if call is np.hstack:
        check(lambda a: np.hstack(a), call, (x, *others[:1]))
    elif call is np.vstack:
        check(lambda a: np.vstack(a), call, (x, *others[:1]))
        check(lambda a: np.vstack(a), call, (*others[-1:], *others[-1:]) if others else (x, x, x))
    elif call is np.dstack:
        check(lambda a: np.dstack(a), call, (x, *others[:1]))
    elif ndim == 1:
        check(lambda a: np.row_stack(a), call, (x, *others[:1]))


def test_column_stack():
    x, m = np.arange(3.0), np.arange(6.0).reshape(3, 2)
    check(lambda a: np.column_stack(a), np.column_stack, (x, m, x))
    check(lambda a: np.column_stack(a), np.column_stack, (m.astype(np.float32),))
    check(lambda a: np.column_stack(a), np.column_stack, (x[:2], m))
    check(lambda a: np.column_stack(a), np.column_stack, (np.asfortranarray(m),) * 2)


def test_append():
    x, m = np.arange(3.0), np.arange(6.0).reshape(2, 3)
    check(lambda a, b: np.append(a, b), np.append, x, m[::-1])
    check(lambda a, b: np.append(a, b), np.append, m.T, 2)
    check(lambda a, b: np.append(a, b), np.append, 1.0, (1, 2.0))
    check(lambda a, b, axis: np.append(a, b, axis), np.append, m, m[:1], 0)
    check(lambda a, b, axis: np.append(a, b, axis), np.append, m, m, 1, runtime=True)
    check(lambda a, b, axis: np.append(a, b, axis), np.append, m, m[:1], 1)


@pytest.mark.parametrize("ndim", [pytest.param(1, marks=pytest.mark.long), 3])
def test_split(ndim):
    x, strided, *_ = samples(ndim, lengths=(6, 4, 6))
    for count in (1, 2, 3, 4):
        check(lambda a, n: np.array_split(a, n), np.array_split, x, count, runtime=True)
    check(lambda a, n: np.split(a, n), np.split, strided, 3)
    check(lambda a, n: np.split(a, n), np.split, x, 4)
    check(lambda a, n: np.split(a, n), np.split, x, (1, 4))
    check(lambda a, n: np.split(a, n), np.split, x, np.array([2, 2, 9, -1]))
    check(lambda a, n: np.split(a, n), np.split, x, np.zeros(0, np.int64))
    for axis in (-ndim - 1, -1, 0, ndim):
        check(lambda a, n, axis: np.array_split(a, n, axis), np.array_split, strided, 4, axis, runtime=True)


@pytest.mark.compiled
def test_splits():
    x = samples(3, lengths=(4, 2, 6))[0]
    check(lambda a, n: np.vsplit(a, n), np.vsplit, x, 2)
    check(lambda a, n: np.hsplit(a, n), np.hsplit, x, 2)
    check(lambda a, n: np.dsplit(a, n), np.dsplit, x, np.array([1, 3]))
    check(lambda a, n: np.hsplit(a, n), np.hsplit, x[0, 0], 3)
    check(lambda a, n: np.split(a, n), np.split, (1.0, 2.0, 3.0), 3)
