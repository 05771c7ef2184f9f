"""Values of several numbers in compiled code: put together, taken apart, and in memory."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from zygote_py.ir import ops
from zygote_py.numba_adapter.target.lanes import NATIVE

pytestmark = pytest.mark.compiled

lanes, lane, lanes_at, guarded_lanes, interleaved, lane_of_array = (
    NATIVE[op] for op in (ops.lanes, ops.lane, ops.lanes_at, ops.guarded_lanes, ops.interleaved, ops.lane_of_array)
)


@numba.njit
def together(a, b, c):
    return interleaved(a, b, c)


@numba.njit
def views(x):
    return lane_of_array(x, 0), lane_of_array(x, 1), lane_of_array(x, 2)


@pytest.mark.parametrize("shape", [(5,), (3, 2), (0,), (1,), (2, 0), (1, 1)])
def test_views_of_one_array_are_that_array(shape):
    x = np.arange(3.0 * np.prod(shape)).reshape((*shape, 3))
    parts = views(x)
    for number, part in enumerate(parts):
        assert np.array_equal(part, x[..., number])
    whole = together(*parts)
    assert np.array_equal(whole, x)
    assert np.shares_memory(whole, x) or x.size == 0
    del x, parts
    assert whole.shape == (*shape, 3)


def test_other_arrays_are_copied():
    x = np.arange(12.0).reshape((4, 3))
    a, b, c = views(x)
    others = [(b, a, c), (a, b, b), (a.copy(), b, c), (a[::-1], b[::-1], c[::-1]), (a[:2], b[:2], c[1:3])]
    for given in others:
        whole = together(*given)
        assert np.array_equal(whole, np.stack(given, axis=-1))
        assert not np.shares_memory(whole, x)
    every_other = x[::2]
    parts = views(every_other)
    whole = together(*parts)
    assert np.array_equal(whole, every_other)
    assert not np.shares_memory(whole, x)  # it is not in C order


def test_the_part_of_an_array_that_views_leave_out_does_not_count():
    x = np.arange(12.0).reshape((3, 4))
    whole = together(x[:, 0], x[:, 1], x[:, 2])
    assert np.array_equal(whole, x[:, :3])
    assert not np.shares_memory(whole, x)


def test_any_order():
    x = np.arange(6.0).reshape((2, 3))
    given = (x, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2])
    assert np.array_equal(together(*given), np.stack(given, axis=-1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers(dtype):
    @numba.njit
    def second(a, b, c):
        return lane(lanes(a, b, c), 1)

    found = second(dtype(1.5), dtype(2.5), dtype(3.5))
    assert found == 2.5

    @numba.njit
    def last(x, i, j):
        return lane(lanes_at(x, 4, i, j), 3)

    x = np.arange(24).astype(dtype).reshape((2, 3, 4))
    assert last(x, 1, -2) == x[1, -2, 3]
    assert last(x[:, ::2], -1, 1) == x[-1, 2, 3]


def test_guards():
    @numba.njit
    def kept(a, b, c, d):
        found = guarded_lanes(lanes(a, b), lanes(c, d))
        return lane(found, 0), lane(found, 1)

    assert kept(np.inf, 2.0, 0.0, -1.0) == (0.0, 2.0)
    assert np.isnan(kept(np.nan, 2.0, np.nan, 0.0)[0])
    assert kept(5.0, np.nan, 1.0, -0.0) == (5.0, 0.0)


def test_lists_of_them():
    @numba.njit
    def reversed_twice(x):
        kept = []
        for i in range(len(x)):
            kept.append(lanes_at(x, 3, i))
        total = 0.0
        while len(kept) > 0:
            last = kept.pop()
            total = 0.5 * total + lane(last, 0) - 2.0 * lane(last, 2)
        return total

    x = np.sin(np.arange(60.0)).reshape((20, 3))
    expected = 0.0
    for row in x[::-1]:
        expected = 0.5 * expected + row[0] - 2.0 * row[2]
    assert reversed_twice(x) == expected
