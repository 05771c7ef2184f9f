"""Records of loops whose bounds depend on the counter of a loop around them: arrays without a gap.

In each program `x` becomes `sin(x)` in each iteration, so that the derivative is the product of the cosines.
"""

import itertools
import math

import numpy as np
import pytest

from tests.adjoints.stages import stages
from tests.checking.left_out import check_not_made
from tests.modes import one_in
from zygote_py import gradient, value_and_gradient
from zygote_py.ir import ops

pytestmark = pytest.mark.interpreted


def below(x, n, m):
    for i in range(n):
        for _ in range(i):
            x = math.sin(x)
    return x


def below_and_on(x, n, m):
    for i in range(n):
        for _ in range(i + 1):
            x = math.sin(x)
    return x


def above(x, n, m):
    for i in range(n):
        for _ in range(i + 1, n):
            x = math.sin(x)
    return x


def above_of_another_length(x, n, m):
    for i in range(n):
        for _ in range(i + 1, m):
            x = math.sin(x)
    return x


def above_and_on_of_another_length(x, n, m):
    for i in range(n):
        for _ in range(i, m):
            x = math.sin(x)
    return x


def far_above(x, n, m):
    for i in range(n):
        for _ in range(i + 3, n):
            x = math.sin(x)
    return x


def far_below(x, n, m):
    for i in range(n):
        for _ in range(2, i):
            x = math.sin(x)
    return x


def below_by_an_argument(x, n, m):
    for i in range(n):
        for _ in range(m, i + 2):
            x = math.sin(x)
    return x


def downwards(x, n, m):
    for i in range(n):
        for _ in range(n - 1, i, -1):
            x = math.sin(x)
    return x


def rows_downwards(x, n, m):
    for i in range(n - 1, -1, -1):
        for _ in range(i):
            x = math.sin(x)
    return x


def both_downwards(x, n, m):
    for i in range(n, 0, -1):
        for _ in range(m, i - 2, -1):
            x = math.sin(x)
    return x


def later_rows(x, n, m):
    for i in range(m, n):
        for _ in range(i, n + 1):
            x = math.sin(x)
    return x


def more_than_one_bound(x, n, m):
    for i in range(n):
        for _ in range(i - m, i + i):
            x = math.sin(x)
    return x


def within(x, n, m):
    for _ in range(m):
        for i in range(n):
            for _ in range(i + 1, n):
                x = math.sin(x)
    return x


def around(x, n, m):
    for i in range(n):
        for _ in range(i + 1, n):
            for _ in range(m):
                x = math.sin(x)
    return x


def between(x, n, m):
    for i in range(n):
        for _ in range(m):
            for _ in range(i):
                x = math.sin(x)
    return x


def two(x, n, m):
    for i in range(n):
        for j in range(m):
            for _ in range(i):
                for _ in range(j + 1):
                    x = math.sin(x)
    return x


def results_of_inner_loops(x, n, m):
    for i in range(n):
        for _ in range(i, n):
            for _ in range(m):
                x = math.sin(x)
            x = math.sin(x) + 1.0
    return x


def in_branches(x, n, m):
    for i in range(n):
        for j in range(i):
            if (i + j) % 2 == 0:
                x = math.sin(x)
    return x


PROGRAMS = [
    *(below, below_and_on, above, above_of_another_length, above_and_on_of_another_length, far_above, far_below),
    *(below_by_an_argument, downwards, rows_downwards, both_downwards, later_rows, more_than_one_bound, within, around),
    *(between, two, results_of_inner_loops, in_branches),
]
X = 0.7


def derivative_of(f, n, m):
    """Return the derivative by a step along the imaginary axis, which has no error but that of arithmetic."""
    step = 1e-30
    numbers = {"math": type("", (), {"sin": staticmethod(np.sin)}), "range": range}
    complex_f = type(f)(f.__code__, {**numbers, "np": np})
    return complex_f(X + step * 1j, n, m).imag / step


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_derivatives(f):
    df = gradient(f, wrt=0, mode="reverse")
    for n, m in itertools.product((0, 1, 2, 5), (0, 1, 3, 7)):
        assert df(X, n, m) == pytest.approx(derivative_of(f, n, m), rel=1e-12, abs=1e-300)


@pytest.mark.compiled
@pytest.mark.parametrize("f", one_in(4, PROGRAMS), ids=lambda f: f.__name__)
def test_compiled(f):
    df = value_and_gradient(f, wrt=0, mode="reverse")
    for n, m in itertools.product((0, 1, 2, 5), (0, 1, 3, 7)):
        value, found = df(X, n, m)
        assert value == f(X, n, m)
        assert found == pytest.approx(derivative_of(f, n, m), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_they_have_no_lists(f):
    found = stages(f, X, 3, 2)
    assert found.records > 0
    assert found.stacks == 0


def iterations(f, n, m):
    """Return how often `sin` is called."""
    count = itertools.count()
    numbers = {"math": type("", (), {"sin": staticmethod(lambda x: next(count))}), "range": range}
    type(f)(f.__code__, numbers)(X, n, m)
    return next(count)


@pytest.mark.parametrize("f", [each for each in PROGRAMS[:17] if each is not two], ids=lambda f: f.__name__)
def test_their_lengths_are_exact(f):
    df = gradient(f, wrt=0, mode="reverse")
    for n, m in ((1, 0), (2, 1), (5, 3), (4, 7), (6, 2)):
        kept = sum(each.bytes for each in df.plan(X, n, m).allocations)
        assert kept == 8 * iterations(f, n, m)


def other_steps(x, n, m):
    for i in range(n):
        for _ in range(0, i, m):
            x = math.sin(x)
    return x


def rows_in_steps_of_two(x, n, m):
    for i in range(0, n, 2):
        for _ in range(i):
            x = math.sin(x)
    return x


def three_deep(x, n, m):
    for i in range(n):
        for j in range(i):
            for _ in range(j):
                x = math.sin(x)
    return x


def bands(x, n, m):
    for i in range(n):
        for _ in range(max(0, i - m), i):
            x = math.sin(x)
    return x


def of_a_number_that_changes(x, n, m):
    for i in range(n):
        m += i
        for _ in range(i, m):
            x = math.sin(x)
    return x


def as_often_as_numbers_say(x, n, m):
    often = np.array([2, 0, 1, 3])
    for i in range(n):
        for _ in range(often[i]):
            x = math.sin(x)
    return x


def twice_as_many_each_time(x, n, m):
    for i in range(n):
        for _ in range(i + i):
            x = math.sin(x)
    return x


def squares(x, n, m):
    for i in range(n):
        for _ in range(i * i):
            x = math.sin(x)
    return x


def while_it_is_less(x, n, m):
    for i in range(n):
        j = 0
        while j < i and x > 0.0:
            x = math.sin(x)
            j += 1
    return x


def with_an_end(x, n, m):
    for i in range(n):
        for j in range(i, n):
            if x < 0.1 * j:
                break
            x = math.sin(x)
    return x


def only_for_some_rows(x, n, m):
    """Of which there may be few, so that room for all would be too much."""
    for i in range(n):
        if i % 2 == 1:
            for _ in range(i + 1, n):
                x = math.sin(x)
    return x


OTHERS = [
    only_for_some_rows,
    other_steps,
    rows_in_steps_of_two,
    three_deep,
    bands,
    of_a_number_that_changes,
    with_an_end,
]
OTHERS += [as_often_as_numbers_say, twice_as_many_each_time, squares, while_it_is_less]


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_others_have_lists(f):
    assert stages(f, X, 4, 2).stacks > 0
    if f not in (with_an_end, while_it_is_less):  # which compare `x`
        df = gradient(f, wrt=0, mode="reverse")
        for n, m in itertools.product((0, 1, 4), (1, 3)):
            assert df(X, n, m) == pytest.approx(derivative_of(f, n, m), rel=1e-12)


@pytest.mark.parametrize("f", one_in(3, OTHERS), ids=lambda f: f.__name__)
def test_others_are_as_without_it(f):
    check_not_made("triangular-records", f, X, 4, 2)


def test_rows_are_not_kept_where_nothing_is():
    def f(x, n):
        s = 0.0
        for i in range(n):
            for j in range(i):
                s += x[i] * x[j]
        return s

    found = stages(f, np.ones(3), 3)
    assert (found.records, found.stacks) == (0, 0)
    assert not [i for b in found.joint.blocks for i in b.instrs if i.op is ops.record]
