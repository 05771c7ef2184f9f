"""Calls in emitted functions, and lists of records: values, errors and references as with Numba's own lowering."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from zygote_py.numba_adapter.emitted.pipeline import EmittedPipeline

pytestmark = pytest.mark.compiled


def emitted(f):
    return numba.njit(f, pipeline_class=EmittedPipeline)


def fails_within(a, n):
    if n < 0:
        raise ValueError("negative")
    return np.sqrt(a[n]), a[:n].copy()


def calls_what_may_fail(a, n):
    total = 0.0
    for i in range(n, -1, -1):
        root, part = called(a, i - 1)
        total += root + part.sum()
    return total


called = numba.njit(fails_within)


def test_errors_of_callees():
    f, g = emitted(calls_what_may_fail), numba.njit(calls_what_may_fail)
    for n in (0, 1, 3):
        for each in (f, g):
            with pytest.raises(ValueError, match="negative"):
                each(np.ones(4), n)


def optional(n):
    return None if n < 1 else n + 0.5


def calls_what_may_be_none(n):
    total = 0.0
    for i in range(n):
        found = numba_optional(i)
        if found is not None:
            total += found
    return total


numba_optional = numba.njit(optional)


def test_callees_that_return_none():
    assert emitted(calls_what_may_be_none)(4) == 1.5 + 2.5 + 3.5


def handles_errors_of_callees(a, n):
    total = 0.0
    for i in range(n):
        try:
            total += called(a, i - 1)[0]
        except Exception:
            total += 100.0
    return total


def test_errors_that_are_handled():
    assert emitted(handles_errors_of_callees)(np.full(4, 4.0), 3) == 104.0


def records_of(n, many):
    records = []
    total = 0.0
    for i in range(n):
        a, b = np.full(2, i + 0.5), np.full((1, 2), 2.0 * i)
        records.append((a, i % 2 == 0, b, (a[1:], 1.5)))
        if many and i % 3 == 2:
            records.append((b[0], False, b, (a, i + 0.25)))
    if many:
        a, flag, b, (c, d) = records[1]
        total += a[0] + b[0, 1] + len(c) + d + len(records)
        del records[0]
    while len(records) > n // 4:
        a, flag, b, (c, d) = records.pop()
        if flag:
            a[0] += 1.0
        total = 0.5 * total + a.sum() + b.sum() - c[0] * d
    return total


def test_lists_of_records():
    f, g = emitted(records_of), numba.njit(records_of)
    for n, many in itertools.product((0, 1, 2, 7, 60), (False, True)):
        if not (many and n < 2):
            assert f(n, many) == g(n, many)


def popped_too_often(n):
    records = []
    for i in range(n):
        records.append((np.ones(1), i))
    total = 0
    for _ in range(n + 1):
        total += records.pop()[1]
    return total


def test_an_empty_list():
    with pytest.raises(IndexError, match="pop from empty list"):
        emitted(popped_too_often)(3)


def of_the_transposed(a):
    b = a.T
    b[0, 1] += 1.0
    return (b.T @ b)[0, 0] + b.shape[0] + a.T[-1, 0]


@pytest.mark.parametrize("order", "CF")
def test_exchanged_axes(order):
    a, b = (np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], order=order) for _ in range(2))
    assert emitted(of_the_transposed)(a) == of_the_transposed(b)
    assert (a == b).all()
    assert emitted(of_the_transposed)(a[::2]) == of_the_transposed(b[::2])


@pytest.mark.parametrize("many", [False, True])
def test_arrays_of_records_are_freed(many):
    f = emitted(records_of)
    f(9, many)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        f(9, many)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc > before.alloc
    assert after.alloc - before.alloc == after.free - before.free
