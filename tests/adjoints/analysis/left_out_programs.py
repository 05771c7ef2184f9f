"""Values that a selection discards have the gradient 0, whatever was computed before: NaN, infinities, poles.

The programs are typical for padded data. The expected value is that of the same formula for the remaining entries, as a
closed form.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

nan, inf = np.nan, np.inf
PADDED = np.array([1.0, nan, 2.0, inf, -3.0])
SQUARES = np.array([2.0, 0.0, 4.0, 0.0, -6.0])  # the gradient of the sum of the squares that are finite
POLES = np.array([0.0, 4.0, -1.0, 0.25])


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    expected: Any
    compiled: bool


PROGRAMS: list[Program] = []


def program(*arguments: Any, expected: Any, compiled: bool = False) -> Callable[[Any], Any]:
    def note(function: Any) -> Any:
        PROGRAMS.append(Program(function, arguments, expected, compiled))
        return function

    return note


# The NaN-reductions.


@program(np.array([1.0, nan, 2.0]), expected=[2.0, 0.0, 4.0], compiled=True)
def nansum_of_squares(err):
    return np.nansum(err * err)


@program(np.array([[1.0, nan], [nan, -2.0]]), expected=[[2.0, 0.0], [0.0, -4.0]])
def nansum_of_a_matrix(err):
    return np.nansum(err * err)


@program(
    np.array([1.0, 5.0, 4.0]), np.array([0.5, nan, 2.0]), expected=([1.0, 0.0, 4.0], [-1.0, 0.0, -4.0]), compiled=True
)
def nansum_of_differences(model, data):
    err = model - data
    return np.nansum(err**2)


@program(np.array([1.0, nan, 3.0]), expected=[1.0, 0.0, 3.0])
def nanmean_of_squares(x):
    return np.nanmean(x * x)


@program(np.array([1.0, nan, 3.0]), expected=[-4.0 * 2.0, 0.0, 4.0 * 6.0])
def nanvar_of_squares(x):  # (1, 9): the derivative of the variance is (-4, 4)
    return np.nanvar(x * x)


@program(np.array([1.0, nan, 3.0]), expected=[-1.0, 0.0, 3.0])
def nanstd_of_squares(x):  # of (1, 9) it is half of the difference
    return np.nanstd(x * x)


@program(np.array([1.0, nan, -3.0]), expected=[0.0, 0.0, -6.0])
def nanmax_of_squares(x):
    return np.nanmax(x * x)


@program(np.array([1.0, nan, -3.0]), expected=[2.0, 0.0, 0.0])
def nanmin_of_squares(x):
    return np.nanmin(x * x)


@program(np.array([2.0, nan, 3.0]), expected=[36.0, 0.0, 24.0])
def nanprod_of_squares(x):
    return np.nanprod(x * x)


@program(np.array([1.0, nan, 3.0, 2.0]), expected=[0.0, 0.0, 0.0, 4.0])
def nanmedian_of_squares(x):
    return np.nanmedian(x * x)


@program(PADDED, expected=SQUARES)
def nan_to_num_of_squares(x):
    y = np.nan_to_num(x * x, nan=0.0, posinf=0.0)
    return np.sum(y)


@program(np.array([[1.0, nan, 2.0], [nan, nan, 3.0]]), expected=[[1.0, 0.0, 2.0], [0.0, 0.0, 6.0]])
def nanmean_of_rows(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += np.nanmean(x[i] * x[i])
    return total


# Masks.


@program(PADDED, expected=SQUARES, compiled=True)
def squares_by_a_mask(x):
    e = x * x
    return np.sum(e[np.isfinite(e)])


@program(PADDED, expected=SQUARES)
def elements_by_a_mask(x):
    y = x[~np.isnan(x) & (x < 1e300)]
    return np.sum(y * y)


@program(PADDED, expected=SQUARES)
def squares_masked_by_a_store(x):
    e = x * x
    e[~np.isfinite(e)] = 0.0
    return np.sum(e)


@program(PADDED, expected=SQUARES)
def squares_masked_by_a_loop(x):
    e = x * x
    for i in range(e.size):
        if not np.isfinite(e[i]):
            e[i] = 0.0
    return np.sum(e)


@program(PADDED, np.array([0, 2, 4]), expected=(SQUARES,))
def squares_by_an_index(x, at):
    return np.sum((x * x)[at])


@program(PADDED, np.array([True, False, True, False, True]), expected=(SQUARES,))
def squares_by_a_given_mask(x, mask):
    total = 0.0
    e = x * x
    for i in range(x.size):
        if mask[i]:
            total += e[i]
    return total


@program(PADDED, expected=SQUARES)
def squares_where_finite(x):
    return np.sum(np.where(np.isfinite(x), x * x, 0.0))


@program(np.array([[1.0, nan], [2.0, inf]]), np.array([1, 1]), expected=([[2.0, 0.0], [4.0, 0.0]],))
def rows_of_given_lengths(x, lengths):
    e = x * x
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(lengths[i]):
            total += e[i, j]
    return total


@program(np.array([1.0, 2.0, nan, inf]), 2, expected=([2.0, 4.0, 0.0, 0.0],))
def the_first_of_a_slice(x, n):
    return np.sum((x * x)[:n])


@program(np.array([1.0, nan, 2.0]), expected=[2.0, 0.0, 4.0])
def two_elements(x):
    y = x * x
    return y[0] + y[2]


@program(PADDED, expected=SQUARES)
def a_mask_kept_in_a_list(x):
    found = [0.0]
    for i in range(x.size):
        e = x[i] * x[i]
        if np.isfinite(e):
            found.append(e)
    total = 0.0
    for e in found:
        total += e
    return total


# np.where, max, clip.


@program(POLES, expected=[0.0, 0.25, 0.0, 4.0], compiled=True)
def where_and_log(x):
    return np.sum(np.where(x > 0.0, np.log(x), 0.0))


@program(POLES, expected=[0.0, 0.25, 0.0, 1.0])
def where_and_sqrt(x):
    return np.sum(np.where(x > 0.0, np.sqrt(x), 0.0))


@program(np.array([0.0, 2.0]), np.array([0.0, 3.0]), expected=([0.0, 1 / 3], [0.0, -2 / 9]))
def where_and_division(a, b):
    return np.sum(np.where(b != 0.0, a / b, 0.0))


@program(np.array([0.0, 4.0]), expected=[0.0, 0.25])
def maximum_of_sqrt(x):
    return np.sum(np.maximum(np.sqrt(x), 0.5))


@program(0.0, expected=0.0)
def max_of_sqrt(x):
    return max(math.sqrt(x), 1.0)


@program(np.array([0.0, 4.0]), expected=[0.0, 0.25])
def clip_of_log(x):
    return np.sum(np.clip(np.log(x), -1.0, 5.0))


@program(np.array([0.0, 4.0, 9.0]), expected=[0.0, 0.0, 1 / 6])
def max_of_an_array(x):
    return np.max(np.sqrt(x))


@program(0.0, expected=0.0)
def a_value_before_a_condition(x):
    l = np.log(x)  # noqa: E741
    return l if x > 0.0 else 0.0


@program(POLES, expected=[0.0, 0.25, 0.0, 4.0])
def a_value_before_a_branch(x):
    total = 0.0
    for i in range(x.size):
        l = np.log(x[i])  # noqa: E741
        if x[i] > 0.0:
            total += l
    return total


@program(np.array([1.0, nan, 2.0]), expected=[2.0, 0.0, 4.0])
def a_loop_written_by_hand(err):
    total = 0.0
    for i in range(err.size):
        e = err[i] * err[i]
        if not np.isnan(e):
            total += e
    return total


@program(np.array([1.0, nan, 2.0]), expected=[2.0, 0.0, 4.0])
def a_loop_that_goes_on(err):
    total = 0.0
    for i in range(err.size):
        e = err[i] * err[i]
        if np.isnan(e):
            continue
        total += e
    return total


@program(np.array([1.0, 3.0, nan, 2.0]), expected=[2.0, 6.0, 0.0, 0.0])
def a_loop_that_is_left(err):
    e = err * err
    total = 0.0
    for i in range(e.size):
        if np.isnan(e[i]):
            break
        total += e[i]
    return total


# Chains: everything before is left out too.


@program(np.array([0.0, 4.0]), np.array([inf, 3.0]), expected=([0.0, 1 / 16], [0.0, 1 / 6]), compiled=True)
def a_chain(x, w):
    return np.sum(np.where(x > 0.0, 0.5 * np.log(np.sqrt(x) * w), 0.0))


@program(np.array([1.0, nan, 2.0]), 3.0, expected=([18.0, 0.0, 36.0], 30.0))
def a_factor_that_all_share(x, s):
    y = x * s
    z = y * y
    return np.nansum(z)


@program(np.array([1.0, nan, 2.0]), expected=[4.0, 0.0, 32.0])
def through_an_array_in_a_loop(x):
    work = np.empty(2)
    total = 0.0
    for i in range(x.size):
        for k in range(2):
            work[k] = x[i] * x[i]
        p = work[0] * work[1]
        if not np.isnan(p):
            total += p
    return total


@program(np.array([[1.0, nan], [2.0, 3.0]]), np.array([1.0, 2.0]), expected=([[0.0, 0.0], [16.0, 32.0]], [32.0, 48.0]))
def through_a_product_with_a_vector(a, v):  # (nan, 8)
    y = a @ v
    return np.nansum(y * y)


@program(
    np.array([[1.0, 2.0], [nan, nan], [inf, 0.0]]),
    np.array([[1.0], [3.0]]),
    expected=([[14.0, 42.0], [0.0, 0.0], [0.0, 0.0]], [[14.0], [28.0]]),
    compiled=True,
)
def through_a_product_of_matrices(x, w):
    y = x @ w  # 7
    e = y * y
    return np.sum(np.where(np.isfinite(e), e, 0.0))


@program(np.array([1.0, nan, 2.0]), np.array([3.0, 4.0, 5.0]), expected=([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
def through_a_scalar_product(x, w):
    s = np.dot(x, w)
    return s * s if not np.isnan(s) else 0.0


@program(np.array([[nan, 1.0], [1.0, 1.0]]), 2.0, expected=([[0.0, 0.0], [0.0, 0.0]], 4.0))
def through_an_inverse(a, x):
    d = np.linalg.det(a)
    return x * x + (d if d > 0.0 else 0.0)


# In other functions than the product.


@numba.njit
def finite_sum(e):
    total = 0.0
    for i in range(e.size):
        if not np.isnan(e[i]):
            total += e[i]
    return total


def _long(x):
    """Large, so that calls of it in two places are not inlined."""
    y = x
    for _ in range(2):
        y = y + 0.1 * math.sin(y) - 0.1 * math.sin(y)
        y = y + 0.1 * math.cos(y) - 0.1 * math.cos(y)
        y = y + 0.1 * math.tanh(y) - 0.1 * math.tanh(y)
        y = y + 0.1 * math.atan(y) - 0.1 * math.atan(y)
        y = y + 0.1 * math.exp(-y) - 0.1 * math.exp(-y)
        y = y + 0.2 * math.sin(y) - 0.2 * math.sin(y)
        y = y + 0.2 * math.cos(y) - 0.2 * math.cos(y)
        y = y + 0.2 * math.tanh(y) - 0.2 * math.tanh(y)
    return y * y


@program(np.array([1.0, nan, 2.0]), expected=[2.0, 0.0, 4.0])
def a_selection_in_a_callee(x):
    return finite_sum(x * x)


@program(np.array([1.0, nan, 2.0]), expected=[12.0, 0.0, 24.0])
def a_product_in_a_routine(x):
    total = 0.0
    for i in range(x.size):
        e = 2.0 * _long(x[i]) + 4.0 * _long(x[i])
        if not np.isnan(e):
            total += e
    return total


def _power(x, n):
    return 1.0 if n == 0 else x * _power(x, n - 1)


@program(np.array([1.0, nan, 2.0]), expected=[3.0, 0.0, 12.0], compiled=True)
def a_product_in_a_recursion(x):
    total = 0.0
    for i in range(x.size):
        e = _power(x[i], 3)
        if not np.isnan(e):
            total += e
    return total


def _clean(e, n):
    """A selection in a recursion."""
    if n > 0:
        return _clean(e, n - 1)
    return 0.0 if np.isnan(e) else e


@program(np.array([1.0, nan, 2.0]), expected=[2.0, 0.0, 4.0])
def a_selection_in_a_recursion(x):
    total = 0.0
    for i in range(x.size):
        total += _clean(x[i] * x[i], 2)
    return total


Pair = namedtuple("Pair", "square cube")


def _pair(x):
    return Pair(x * x, x * x * x)


@program(np.array([1.0, nan, 2.0]), expected=[5.0, 0.0, 16.0])
def through_a_named_tuple(x):
    total = 0.0
    for i in range(x.size):
        p = _pair(x[i])
        if not np.isnan(p.square):
            total += p.square + p.cube
    return total


@program((np.array([1.0, nan]), 3.0), expected=([6.0, 0.0], 1.0))
def through_a_tuple(p):
    x, s = p
    return np.nansum(x * x * s)


# Other numbers.


@program(np.array([1.0, nan, 2.0], np.float32), expected=[2.0, 0.0, 4.0])
def single_precision(err):
    return np.nansum(err * err)


@program(np.array([1.0 + 2.0j, nan + 0j, 2.0j]), expected=[2.0 + 4.0j, 0.0, 4.0j])
def complex_numbers(z):
    e = (z * np.conj(z)).real
    return np.nansum(e)


@program(np.array([0j, 3.0 + 4.0j]), expected=[0.0, np.conj(1.0 / (3.0 + 4.0j))])
def a_complex_logarithm(z):
    return np.sum(np.where(np.abs(z) > 0.0, np.log(z), 0.0).real)


# What is not left out stays what it is.


@program(np.array([1.0, nan, 2.0]), expected=[2.0, nan, 4.0])
def a_nan_that_counts(x):
    return np.sum(x * x)


@program(np.array([0.0, 4.0]), expected=[inf, 0.25])
def a_pole_that_counts(x):
    return np.sum(np.sqrt(x))


@program(np.array([0.0, 4.0]), np.array([0.0, 1.0]), expected=([nan, 0.25], [0.0, 2.0]))
def a_zero_factor(x, w):
    return np.sum(np.sqrt(x) * w)


@program(np.array([0.0, 4.0]), np.array([0.0, 1.0]), expected=([nan, 0.25], [0.0, 2.0]))
def a_zero_factor_in_memory(x, w):
    y = np.empty(x.size)
    for i in range(x.size):
        y[i] = np.sqrt(x[i])
    total = 0.0
    for i in range(x.size):
        total += y[i] * w[i]
    return total


@program(np.array([0.0, 4.0]), np.array([0.0, 1.0]), expected=([nan, 0.25], [0.0, 2.0]))
def a_zero_factor_that_is_selected(x, w):  # the selected value is not the selection's zero
    return np.sum(np.where(w >= 0.0, np.sqrt(x) * w, 0.0))


@program(np.array([-1.0, 0.0]), np.array([nan, 3.0]), expected=([nan, 0.0], [-1.0, 0.0]))
def a_nan_beside_a_selection(x, w):
    y = x * w
    return np.sum(np.where(x < 0.0, y, 0.0)) + 0.0 * np.sum(y)


@program(0.0, 0.0, expected=(nan, 0.0))
def a_branch_that_both_ways_use(x, w):
    y = math.sqrt(x) * w
    return 2.0 * y if x < 1.0 else 3.0 * y


@program(np.array([2.0, 3.0]), np.array([0.0, 0.0]), expected=([0.0, 0.0], [0.0, 0.0]))
def a_zero_times_a_zero(x, w):
    return np.nansum(x * w * w)


# Variables of loops that an iteration replaces.


@program(np.array([0.0, 2.0, 9.0, 1.0]), expected=[0.0, 0.0, 1 / 6, 0.0], compiled=True)
def the_largest_root_so_far(x):
    best = math.sqrt(x[0])
    for i in range(1, len(x)):
        root = math.sqrt(x[i])
        if root > best:
            best = root
    return best


@program(np.array([0.0, 0.0, 4.0]), expected=[0.0, 0.0, 0.25])
def the_last_root(x):
    root = 0.0
    for i in range(len(x)):
        root = math.sqrt(x[i])
    return root


@program(np.array([0.0, 2.0, 5.0, 4.0]), 0.0, expected=([0.0, 0.0, -1 / 25, -1 / 16], 1.0))
def a_sum_that_begins_anew(w, start):
    total = start
    for i in range(len(w)):
        total = total + np.divide(1.0, w[i]) if i != 1 else start
    return total


@program(np.array([inf, 2.0, 0.5, 3.0, 2.0]), 1.0, expected=([0.0, 0.0, 0.0, 1.0, 1.5], 6.0))
def a_product_that_begins_anew(w, x):
    y = 1.0
    for i in range(len(w)):
        y = y * w[i] * x if w[i] != 0.5 else 0.5
    return y


@program(np.array([0.0, 1.0, 2.0]), expected=[0.0, -2.0, -0.5])
def inverses_of_which_one_is_overwritten(w):
    a, b, c = np.reciprocal(w), 1.0 / w, w**-1.0
    a[0] = b[0] = c[0] = 0.0
    return np.sum(a * 0.5) + np.sum(b) + np.sum(c) * 0.5
