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


def lists_by_type(n):
    """Lists whose type an item tells that is not in them: of arrays, of lists, of numbers and of nothing."""
    arrays = [(0.0, np.empty(0), (np.empty((0, 2)), 1))][:0]
    lists = [(0, [(1.0, np.zeros(1))][:0])][:0]
    numbers, nothing, sizes = [0.0][:0], [()][:0], [(np.empty(0), 3)][:0]
    total = 0.0
    for i in range(n):
        arrays.append((i + 0.5, np.full(2, 2.0 * i), (np.ones((i, 2)), i)))
        inner = [(1.0, np.zeros(1))][:0]
        for j in range(i):
            inner.append((j + 0.25, np.full(j, 3.0)))
        lists.append((i, inner))
        numbers.append(i * 1.5)
        nothing.append(())
        total += len(sizes)
    kept = arrays[:0]
    while len(arrays) > 0:
        x, a, (b, k) = arrays.pop()
        number, inner = lists.pop()
        nothing.pop()
        total = 0.9 * total + x * a.sum() + b.sum() - k + number + numbers.pop() + len(kept)
        while len(inner) > number // 2:
            y, c = inner.pop()
            total += y * c.sum() + len(nothing)
    return total


def test_lists_that_are_made_empty():
    f, g = emitted(lists_by_type), numba.njit(lists_by_type)
    for n in (0, 1, 2, 5, 17, 40):
        assert f(n) == g(n)


def items_with_effects(n):
    called_for(n)
    numbers = [numbers_of(n)][:0]
    numbers.append(1.0)
    return numbers[0]


calls = np.zeros(2)


@numba.njit
def numbers_of(n):
    with numba.objmode():
        calls[1] += n
    return 2.0


@numba.njit
def called_for(n):
    with numba.objmode():
        calls[0] += n


def test_what_makes_the_item_is_called_if_it_has_effects():
    f = emitted(items_with_effects)
    calls[:] = 0.0
    assert [f(1), f(2)] == [1.0, 1.0]
    assert calls.tolist() == [3.0, 3.0]


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


FILLING_LISTS = [(records_of, (9, False)), (records_of, (9, True)), (lists_by_type, (30,))]


@pytest.mark.parametrize(("function", "args"), FILLING_LISTS)
def test_arrays_of_records_are_freed(function, args):
    f = emitted(function)
    f(*args)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        f(*args)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc > before.alloc
    assert after.alloc - before.alloc == after.free - before.free
