"""Variables of emitted functions that count no references, and lists of numbers: no leak, and no use after a free."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from zygote_py.numba_adapter.emitted.pipeline import EmittedPipeline

pytestmark = pytest.mark.compiled


def both(f):
    return numba.njit(f), numba.njit(f, pipeline_class=EmittedPipeline)


def left(run):
    """How many arrays and lists a call leaves, besides its result, which is dropped."""
    _nrt_python.memsys_enable_stats()
    try:
        run()
        before = rtsys.get_allocation_stats()
        for _ in range(3):
            run()
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    return after.alloc - before.alloc - (after.free - before.free)


def itself(a, n):
    return a


def copied(a, n):
    b = a
    c = b
    return c if n > 0 else b


def a_row(a, n):
    row = a[n]
    again = row
    return again if n >= 0 else row


def rows_in_a_loop(a, n):
    total = 0.0
    for i in range(len(a)):
        row = a[i - 1]
        part = row[1:]
        total += row[0] * part[n] - part[-1]
    return total


def a_part_of_a_part(a, n):
    b = a[1:, ::-1]
    c = b[n]
    return c[1:], b, c


def kept_in_a_tuple(a, n):
    row = a[n]
    pair = row, a
    return pair[0], pair


def kept_in_a_list(a, n):
    rows = [a[0]]
    for i in range(len(a)):
        row = a[i]
        rows.append(row)
    rows.pop()
    return rows[n + 1]


def assigned_anew(a, n):
    a = a[1:]
    row = a[0]
    if n > 0:
        row = np.zeros(4)
        row[0] = a[0, 1]
    return row


def handed_from_round_to_round(a, n):
    before = a[0]
    for i in range(1, len(a)):
        now = a[i]
        now, before = before, now
    return before if n else now


@numba.njit
def first(a):
    return a[0]


def passed_on(a, n):
    row = first(a[n:])
    return first(np.array([[1.0, 2.0]])) + row[:2]


def written_to(a, n):
    row = a[n]
    for i in range(len(row)):
        row[i] += i
    return row.copy()


def parts_of_what_is_made(a, n):
    made = np.zeros((3, 4)) + a[0, 1]
    first = made[0]
    part = first[1:]
    other = np.full((3, 4), 7.0)
    for i in range(2):
        part[i] += other[i, n]
    return first, other[2]


def a_part_of_a_part_of_what_is_made(a, n):
    made = np.zeros((3, 4)) + a[0, 1]
    first = made[n]
    part = first[1:]
    last = part[1:]
    other = np.full((3, 4), 7.0)
    for i in range(2):
        last[i] += other[i, n]
    return last + other[0, 0]


def columns_of_what_is_made(a, n):
    made = np.zeros((3, 4))
    first = made[:, 0]
    second = made[:, 1]
    for i in range(2):
        first[i] = 1.0
        other = np.full((3, 4), 7.0)
        second[i + n] += other[n, 1] + first[1 - i]
    return first + second


def made_in_each_round(a, n):
    total = np.zeros(2)
    for i in range(4):
        made = np.zeros((2, 2)) + i
        row = made[n]
        if i == 2:
            continue
        made = np.ones((2, 2))
        total += row * made[1]
    return total


def deleted_on_one_way(a, n):
    made = np.zeros((2, 2)) + 1.5
    row = made[1]
    other = np.full((2, 2), 7.0)
    if n > 0:
        return row + other[0]
    return row * made[0]


OF_ARGUMENTS = [
    parts_of_what_is_made,
    a_part_of_a_part_of_what_is_made,
    columns_of_what_is_made,
    made_in_each_round,
    deleted_on_one_way,
    itself,
    copied,
    a_row,
    rows_in_a_loop,
    a_part_of_a_part,
    kept_in_a_tuple,
    kept_in_a_list,
    assigned_anew,
    handed_from_round_to_round,
    passed_on,
    written_to,
]


def leaves(value):
    return [each for item in value for each in leaves(item)] if isinstance(value, tuple) else [value]


def check(f):
    expected, ours = both(f)
    for n in (0, 1):
        given = [np.arange(12.0).reshape(3, 4) for _ in range(2)]
        found = leaves(ours(given[0], n))
        for one, other in zip(found, leaves(expected(given[1], n)), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(*given)
        del found
        assert sys.getrefcount(given[0]) == sys.getrefcount(given[1])
        assert left(lambda: ours(given[0], n)) == 0


def test_arguments_and_views():
    """In a process whose C library overwrites memory that is freed."""
    environment = {**os.environ, "MALLOC_PERTURB_": "85"}
    subprocess.run([sys.executable, __file__], env=environment, check=True)


def test_a_view_outlives_the_array_that_it_is_of():
    ours = both(a_row)[1]
    found = ours(np.arange(12.0).reshape(3, 4), 1)
    np.full(12, 7.0), np.full(4, 7.0)
    np.testing.assert_array_equal(found, [4.0, 5.0, 6.0, 7.0])


def test_bounds_of_views():
    f = numba.njit(lambda a, n: a[n], pipeline_class=EmittedPipeline, boundscheck=True)
    np.testing.assert_array_equal(f(np.eye(3), -1), [0.0, 0.0, 1.0])
    with pytest.raises(IndexError, match="out of bounds"):
        f(np.eye(3), 3)


def of_numbers(n, x):
    kept = [x for _ in range(0)]
    total = 0.0
    for k in range(n):
        for i in range(k):
            kept.append(x + i)
        for i in range(k - k // 3):
            total = 0.5 * total + kept.pop() * i
    return total, len(kept)


def of_tuples(n, x):
    kept = [(x, 1, True) for _ in range(0)]
    for i in range(n):
        kept.append((x * i, i, i % 3 == 0))
    total = 0.0
    while len(kept) > 1:
        a, b, c = kept.pop()
        total += a * b if c else -a
    return total, kept[0][1] if kept else -1


def of_truth_values(n, x):
    kept = [True for _ in range(0)]
    for i in range(n):
        kept.append(x * i > 3.0)
    count = 0
    for _ in range(n):
        count = 2 * count % 1001 + kept.pop()
    return count, len(kept)


def of_complex_numbers(n, x):
    kept = [1j for _ in range(0)]
    for i in range(n):
        kept.append(complex(x, i))
    total = 0j
    for _ in range(n):
        total = total * 0.5j + kept.pop()
    return total.real, total.imag


def of_two_names(n, x):
    kept = [x]
    other = kept
    for i in range(n):
        kept.append(x * i)
        other.append(x - i)
    kept.pop()
    total = 0.0
    for each in other:
        total = 0.9 * total + each
    return total, len(kept)


def of_methods(n, x):
    kept = [x]
    put, take = kept.append, kept.pop
    for i in range(n):
        put(x * i)
    return take() if n > 2 else x, len(kept)


OF_LISTS = [of_numbers, of_tuples, of_truth_values, of_complex_numbers, of_two_names, of_methods]


@pytest.mark.parametrize("f", OF_LISTS, ids=lambda f: f.__name__)
def test_lists_of_numbers(f):
    expected, ours = both(f)
    for n in (0, 1, 2, 15, 16, 17, 40, 41, 300):
        assert ours(n, 1.25) == expected(n, 1.25)
    assert left(lambda: ours(300, 1.25)) == 0


def test_a_list_that_is_returned():
    def f(n):
        kept = [1.0]
        for i in range(n):
            kept.append(i * 0.5)
        kept.pop()
        return kept

    ours = both(f)[1]
    assert ours(40) == f(40)
    assert left(lambda: ours(40)) == 0


def test_a_list_of_pythons():
    def f(kept, x):
        kept.append(x)
        kept.append(2.0 * x)
        return kept.pop()

    kept = [1.0]
    with pytest.warns(numba.NumbaPendingDeprecationWarning):
        assert both(f)[1](kept, 3.0) == 6.0
    assert kept == [1.0, 3.0]


def test_an_empty_list():
    def f(n):
        kept = [1.0]
        for _ in range(n):
            kept.pop()
        return len(kept)

    ours = both(f)[1]
    assert ours(1) == 0
    with pytest.raises(IndexError, match="pop from empty list"):
        ours(2)


if __name__ == "__main__":
    for function in OF_ARGUMENTS:
        check(function)
