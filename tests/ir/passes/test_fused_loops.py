"""Loops that hand elements on to each other, as one: where they become one, and where they must not."""

from __future__ import annotations

import math
import re

import numba
import numpy as np
import pytest

from tests.checking.slopes import differences
from zygote_py import gradient, value_and_gradient

pytestmark = pytest.mark.interpreted

X, Y = np.array([0.9, 0.3, -0.4, 1.2]), np.array([0.5, 1.1, 0.8, -0.6])


def in_branches(x, y):
    out = np.empty(len(x))
    for i in range(len(x)):
        if x[i] > 0.5:
            out[i] = math.exp(-x[i])
        else:
            out[i] = x[i] * y[0]
    return np.sum(out)


def squares_of_differences(x, y):
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = math.sin(x[i])
    return np.sum((out - y) ** 2) / len(y)


def added_to(x, y):
    out = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(y)):
            out[i] += math.exp(-((x[i] - y[j]) ** 2))
    s = 0.0
    for k in range(len(out)):
        s += math.log(out[k])
    return s


def set_then_changed(x, y):
    out = np.ones(len(x))
    for i in range(len(x)):
        out[i] *= x[i]
    for i in range(len(x)):
        if y[i] > 0.0:
            out[i] -= y[i]
    return np.sum(out * out)


def one_array_from_another(x, y):
    n = len(x)
    u, v = np.empty(n), np.empty(n)
    for i in range(n):
        u[i] = x[i] * y[i]
    for i in range(n):
        v[i] = u[i] ** 2 + x[i]
    s = 0.0
    for i in range(n):
        s += v[i] * u[i]
    return s


def of_two_axes(x, y):
    out = np.zeros((len(x), len(y)))
    for i in range(len(x)):
        for j in range(len(y)):
            out[i, j] = math.cos(x[i] * y[j])
    s = 0.0
    for k in range(len(x)):
        w = x[k] * 2.0
        for m in range(len(y)):
            s += out[k, m] * w
    return s


def below_the_diagonal(x, y):
    n = len(x)
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            out[i, j] = x[i] * y[j]
    s = 0.0
    for i in range(n):
        for j in range(i):
            s += out[i, j] ** 2
    return s


def of_two_axes_and_others(x, y):
    z = np.outer(y, y)
    out = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        for j in range(len(x)):
            out[i, j] = math.cos(x[i] * x[j])
    return np.sum((out - z) ** 2)


def in_rounds(x, y):
    work = np.empty(len(y))
    s = 0.0
    for t in range(3):
        for j in range(len(y)):
            work[j] = x[t] * y[j]
        for j in range(len(y)):
            s += work[j] ** 2
    return s


def with_neighbours_of_another(x, y):
    n = len(x) - 1
    out = np.empty(n + 1)
    for i in range(1, n):
        out[i - 1] = x[i + 1] - 2.0 * x[i] + x[i - 1]
    s = 0.0
    for k in range(1, n):
        s += out[k - 1] ** 2 * y[k]
    return s


def in_one_loop(x, y):
    out, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[i] += x[i] * y[i]
        if x[i] > 0.4:
            out[i] *= 2.0
        s += out[i]
    return s


def down(x, y):
    out, s = np.empty(len(x)), 0.0
    for i in range(len(x) - 1, -1, -1):
        out[i] = x[i] ** 3
    for i in range(len(x) - 1, -1, -1):
        s += out[i] * y[i]
    return s


def with_a_write_to_another(x, y):
    y = y.copy()
    out = np.empty(len(x))
    for i in range(len(x)):
        out[i] = x[i] * y[i]
    for i in range(len(x)):
        y[i] = out[i] + 1.0
    return y[0] * y[2] + y[1]


def root_of_the_sum(x, y):
    """The adjoint of the sum depends on the sum."""
    out, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[i] = x[i] * y[i]
    for i in range(len(x)):
        s += out[i] ** 2
    return math.sqrt(s)


def half_of_the_sum(x, y):
    out, s = np.zeros(len(x)), 1.0
    for i in range(len(x)):
        out[i] = x[i] * y[i]
    for i in range(len(x)):
        s -= out[i] ** 2
    return 3.0 - np.divide(s, 2.0 * len(x)) * 0.25


def of_integers(x, y):
    out, s = np.zeros(len(x), dtype=np.int64), 0.0
    for i in range(len(x)):
        out[i] = x[i] * 3.0
    for i in range(len(x)):
        s += out[i] * y[i]
    return s


def of_an_expression(x, y):
    out = x * y
    for i in range(len(out)):
        out[i] = math.exp(out[i])
    return np.sum(out)


def set_to_what_it_is(x, y):
    n = len(x)
    out, s = np.zeros(n), 0.0
    for i in range(n):
        for j in range(3):
            if j == 1:
                out[i] += x[i]
        out[i] = out[i]
    for i in range(n):
        for _ in range(2):
            s += out[i] * out[i]
    return s


FUSED = [
    in_branches,
    added_to,
    set_then_changed,
    one_array_from_another,
    of_two_axes,
    below_the_diagonal,
    in_rounds,
    with_neighbours_of_another,
    in_one_loop,
    down,
    of_integers,
    half_of_the_sum,
    set_to_what_it_is,
    of_an_expression,
]


def of_other_numbers(x, y):
    out, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[i] = x[i] * y[i]
    for i in range(1, len(x)):
        s += out[i] * y[i - 1]
    return s


def turned_around(x, y):
    out, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[i] = x[i] * y[i]
    for i in range(len(x)):
        s += out[len(x) - 1 - i] * y[i]
    return s


def transposed(x, y):
    n, s = len(x), 0.0
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            out[i, j] = x[i] * y[j] ** 2
    for i in range(n):
        for j in range(n):
            s += out[j, i] * x[i]
    return s


def of_the_row_before(x, y):
    n, s = len(x), 0.0
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            out[i, j] = x[i] * y[j] ** 2
    for i in range(n):
        for j in range(n):
            s += out[i - 1, j] * x[i]
    return s


def with_the_sum_of_it(x, y):
    out, s, t = np.zeros(len(x)), 0.0, 0.0
    for i in range(len(x)):
        out[i] = x[i] * y[i]
        t += out[i]
    for i in range(len(x)):
        s += (out[i] - t) ** 2
    return s


def with_what_the_first_overwrites(x, y):
    x, out, s = x.copy(), np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[i] = x[i] * y[i]
        x[i] = y[i] * 2.0
    for i in range(len(x)):
        s += out[i] * x[len(x) - 1 - i]
    return s


def that_overwrites_what_the_first_reads(x, y):
    x, out = x.copy(), np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i] * x[max(i - 1, 0)] * x[min(i + 1, len(x) - 1)]
    for i in range(len(x)):
        x[i] = out[i] * y[i]
    return np.sum(x * y)


def with_a_write_between(x, y):
    x, out, s = x.copy(), np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[i] = x[i] * y[i]
    x[1] = 3.0 * y[0]
    for i in range(len(x)):
        s += out[i] * x[i]
    return s


def returned_in_part(x, y):
    out, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[i] = x[i] * y[i]
    for i in range(len(x)):
        s += out[i] ** 2
    return s + out[2]


def of_which_a_view_is_left(x, y):
    out, s = np.zeros(len(x)), 0.0
    tail = out[1:]
    for i in range(len(x)):
        out[i] = x[i] * y[i]
    for i in range(len(x)):
        s += out[i] ** 2
    return s * tail[0]


def kept_from_round_to_round(x, y):
    out, s = np.zeros(len(x)), 0.0
    for t in range(3):
        for i in range(len(x)):
            if y[i] > 0.45 * t:
                out[i] = x[i] * y[t]
        for i in range(len(x)):
            s += out[i] ** 2
    return s


def under_a_condition(x, y):
    out, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[i] = x[i] * y[i]
    if x[0] > 0.5:
        for i in range(len(x)):
            s += out[i] ** 2
    return s


def of_recurrences(x, y):
    out, s, v = np.zeros(len(x)), 0.0, 0.3
    for i in range(len(x)):
        v = v * y[i] + x[i]
        out[i] = v
    for i in range(len(x)):
        s += out[i] ** 2
    return s


def left_early(x, y):
    out, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[i] = x[i] * y[i]
        if x[i] < 0.0:
            break
    for i in range(len(x)):
        s += out[i] ** 2
    return s


def counts_from_the_end(x, y):
    out, s = np.zeros(len(x)), 0.0
    for i in range(-2, len(x) - 2):
        out[i] += x[i] * y[i]
    for i in range(-2, len(x) - 2):
        s += out[i] ** 2
    return s


APART = [
    with_a_write_to_another,
    root_of_the_sum,
    squares_of_differences,
    of_two_axes_and_others,
    of_other_numbers,
    turned_around,
    transposed,
    of_the_row_before,
    with_the_sum_of_it,
    with_what_the_first_overwrites,
    that_overwrites_what_the_first_reads,
    with_a_write_between,
    returned_in_part,
    of_which_a_view_is_left,
    kept_from_round_to_round,
    under_a_condition,
    of_recurrences,
    left_early,
    counts_from_the_end,
]


def check(function, x, y):
    value, found = value_and_gradient(function, wrt=(0, 1))(x, y)
    np.testing.assert_allclose(value, function(x, y), rtol=1e-14)
    expected = differences(function, x, y).ravel()
    np.testing.assert_allclose(np.concatenate([np.ravel(each) for each in found]), expected, rtol=1e-6, atol=1e-8)


def arrays(function, x=X, y=Y):
    """Return the names of the arrays that the function makes, as it is differentiated."""
    text = gradient(function, wrt=(0, 1), mode="reverse").primal_ir(x, y)
    return {name for name in re.findall(r"%([a-z_]+)\d* = (?:record|zeros) ", text) if not name.startswith("d")}


@pytest.mark.parametrize("function", FUSED, ids=lambda each: each.__name__)
def test_fused(function):
    check(function, X, Y)
    assert not arrays(function) & {"out", "u", "v", "work"}


@pytest.mark.parametrize("function", APART, ids=lambda each: each.__name__)
def test_apart(function):
    check(function, X, Y)
    assert "out" in arrays(function)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("function", [squares_of_differences, one_array_from_another, of_two_axes, in_one_loop])
def test_short_arrays(function, n):
    if n or function is not squares_of_differences:
        check(function, X[:n].copy(), Y[:n].copy())


@pytest.mark.parametrize("lengths", [(1, 4), (4, 1), (1, 1)])
@pytest.mark.parametrize("function", [squares_of_differences, of_two_axes_and_others])
def test_repeated_axes(function, lengths):
    n, m = lengths
    check(function, X[:n].copy(), Y[:m].copy())


def test_lengths_that_do_not_fit():
    with pytest.raises(ValueError, match="broadcast"):
        gradient(squares_of_differences)(X, Y[:3].copy())


@pytest.mark.parametrize("function", [in_branches, of_two_axes], ids=lambda each: each.__name__)
@pytest.mark.compiled
def test_compiled(function):
    check(function, X, Y)


def raises_of_its_own(x, y):
    out, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        if x[i] > 1.0:
            raise ValueError("x is too large")
        out[i] = x[i]
    for i in range(len(x)):
        s += 1.0 / out[i]
    return s


def test_the_exception_is_that_of_the_first_loop():
    with pytest.raises(ValueError, match="too large"):
        gradient(raises_of_its_own)(np.array([0.0, 0.5, 2.0]), Y)


def writes_to_its_argument(x, y):
    out, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[i] = x[i]
        y[i] = x[i]
    for i in range(len(x)):
        if out[i] == 0.5:
            raise ValueError("a half")
        s += out[i]
    return s


def test_what_an_exception_leaves_is_the_same():
    y = np.zeros(3)
    with pytest.raises(ValueError, match="half"):
        gradient(writes_to_its_argument)(np.array([0.0, 0.5, 2.0]), y)
    np.testing.assert_array_equal(y, [0.0, 0.5, 2.0])


@numba.njit(boundscheck=True)
def too_short(x, y):
    out, s = np.zeros(3), 0.0
    for i in range(len(x)):
        out[i] = x[i] * y[i]
    for i in range(len(x)):
        s += out[i]
    return s


@pytest.mark.compiled
def test_indices_are_checked_where_they_are_to_be():
    with pytest.raises(IndexError):
        gradient(too_short)(X, Y)


def to_the_last(x, start):
    out, i = np.zeros(len(x)), start
    while i < len(x):
        out[i] = math.sin(x[i])
        i += 1
    return out, i


def and_how_many(x, y):
    out, count = to_the_last(x, 0)
    return np.sum((out - y) ** 2) * count


@pytest.mark.parametrize("lengths", [(4, 4), (1, 4), (4, 1)])
def test_a_counter_that_is_used_after_the_loop(lengths):
    n, m = lengths
    check(and_how_many, X[:n].copy(), Y[:m].copy())


@numba.njit
def reciprocals(x, y):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = 1.0 / x[i]
    return np.sum((out - y) ** 2)


@pytest.mark.compiled
def test_an_error_is_raised_though_nothing_is_repeated():
    for function in (reciprocals, value_and_gradient(reciprocals)):
        with pytest.raises(ZeroDivisionError):
            function(np.zeros(1), np.zeros(0))


def stores_in_a_list(x, y):
    out, found = np.zeros(len(x)), [0.0, 0.0]
    for i in range(len(x)):
        if x[i] > 1.0:
            raise ValueError("x is too large")
        out[i] = x[i] * y[i]
    for i in range(len(x)):
        found[i + 1] = out[i] * 3.0
    return found[0] + found[1]


def test_an_index_beyond_a_list_comes_after_the_exception_of_the_first_loop():
    with pytest.raises(ValueError, match="too large"):
        gradient(stores_in_a_list)(np.array([0.5, 0.7, 2.0]), Y)
