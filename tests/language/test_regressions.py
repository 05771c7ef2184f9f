"""The smallest programs that once went wrong."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from tests.checking.derivatives import PRECISELY, check_derivatives
from tests.checking.slopes import differences
from tests.random_programs.generator import load
from zygote_py import DifferentiationError, checkpoint, gradient, hessian, hvp, value_and_gradient

pytestmark = pytest.mark.interpreted

X = np.array([0.3, 1.2, -0.7, 2.1])
Y = np.array([1.1, -0.4, 0.8, 0.5])


def chosen_in_a_branch_of_a_loop(x, y):
    s = 1.0
    for i in range(len(x)):
        if x[i] > 0.0:
            a = x if y[i] > 0.0 else y
            s = s * a[i] + a[1] * a[2]
    return s


def test_an_array_chosen_in_a_branch_of_a_loop():
    check_derivatives(chosen_in_a_branch_of_a_loop, X, Y, **PRECISELY)


def test_arrays_of_different_orders_merge():
    check_derivatives(chosen_in_a_branch_of_a_loop, X[::-1], Y, **PRECISELY)


def chosen_rows(x, n):
    s = 1.0
    k = 0
    while k < n:
        i = 0
        while i < n:
            if x[i, 0] > 0.0:
                a = x if x[i, 1] > 0.0 else x[::-1]
                for row in a:
                    s = 0.5 * s + row[i % 2] * s
            i += 1
            if s > 50.0:
                break
        k += 1
    return s


def test_rows_of_a_view_chosen_in_a_branch_of_nested_loops():
    check_derivatives(chosen_rows, np.outer(X, [1.0, -0.5]) + 0.1, 3, **PRECISELY)


def test_branches_that_nest_too_deeply_for_python_are_refused():
    cases = "".join(f"    elif k == {i}:\n        return x * {i}.0\n" for i in range(1, 105))
    chain = load(f"def f(x, k):\n    if k == 0:\n        return x\n{cases}    return x * x\n")
    with pytest.raises(DifferentiationError, match="nest too deeply"):
        gradient(chain)(0.5, 3)


def steered_by_text(x, text):
    s = x
    for letter in text:
        if letter.isupper() and not text.startswith("z"):
            s = s * math.sin(s)
        s = s * x
    return s


def test_methods_of_strings():
    for text in ("aBc", "zBc", ""):
        check_derivatives(steered_by_text, 0.7, text, **PRECISELY)


def loop_that_never_runs(x):
    s = x
    k = 0
    while k < 0:
        k += 1
        for _ in range(k % 7):
            s = min(0.5, math.sin(s))
    return s * x


def test_a_loop_that_never_runs():
    check_derivatives(loop_that_never_runs, 0.5, **PRECISELY)


def test_an_iteration_that_keeps_more_values_than_numba_takes_in_a_tuple():
    count = range(40)
    lines = [f"        a{i} = math.sin(s + {i}.5)" for i in count]
    total = " + ".join(f"a{i} * a{i} * x" for i in count)
    source = "\n".join(
        [
            "import math",
            "def f(x):",
            "    s = x",
            "    while s < 20.0:",
            *lines,
            f"        s = s + 1.0 + 0.01 * ({total})",
            "    return s",
        ]
    )
    check_derivatives(load(source), 0.5, **PRECISELY)


def always_left(x, mark):
    total = 0.0
    k = 0
    while k < 4:
        k += 1
        for i in range(k - 2):  # the header of `while` leads here alone, as no way leads back
            if mark is None:
                return total * x * (i + 10)
        total += x
    return total


def always_left_from_its_start(x, n):
    total = 0.0
    k = 0
    while k < 4:
        k += 1
        for i in range(k, n, 2):
            if 2 % 2 == 0:
                return total * x * i
        total += x
    return total


def test_a_loop_in_a_loop_that_is_always_left_begins_anew():  # with the third round of `while`
    value, slope = value_and_gradient(always_left, wrt=0)(1.3, None)
    assert math.isclose(value, 20 * 1.3**2, rel_tol=1e-14)
    assert math.isclose(slope, 40 * 1.3, rel_tol=1e-14)
    assert value_and_gradient(always_left_from_its_start, wrt=0)(1.3, 3) == (0.0, 0.0)
    assert gradient(always_left_from_its_start, wrt=0)(1.3, 1) == 4.0


def checkpoint_in_a_branch_of_a_loop(x, y, a):
    for _ in range(2):
        if x < 0.0:

            def second(q):  # has a copy of `a` among its residuals
                return a[1] * 0.5 + y * q

            a[1] = checkpoint(second)(1.5)
    return np.sum(a) ** 2


def test_residuals_of_a_call_in_a_branch_of_a_loop_are_kept_one_by_one():
    expected = 2.0 * (2.0 + 0.25 + 2.25)  # (a0 + a2 + a1 / 4 + 9 / 4 y)^2
    of_x, of_y, of_a = hvp(checkpoint_in_a_branch_of_a_loop, wrt=None)(-1.5, 0.7, np.ones(3), (1.0, 1.0, np.ones(3)))
    assert of_x == 0.0
    assert np.allclose([of_y, *of_a], expected * np.array([2.25, 1.0, 0.25, 1.0]), rtol=1e-13)


def pairs_of_integers(x, n):
    places = np.array([(i, j) for i in range(n) for j in range(3)])
    flags = [(True, n > 3)]
    flags.append((n > 1, False))
    marks = np.array(flags)
    return x * places[4, 0] + 100 * x * places[4, 1] + places.shape[0] + x * (10 * marks[1, 0] + marks[0, 1])


def test_arrays_of_lists_of_tuples_of_integers():
    check_derivatives(pairs_of_integers, 1.5, 2, **PRECISELY)


WEIGHTS = np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
FIRST, NONE, LARGE = np.array([3, 5]), np.zeros((0, 2)), np.ones(1000)


@numba.njit
def weighted(x, weights=WEIGHTS.T, first=FIRST, none=NONE):
    return x * weights[2, 1] + x * x * first[1] + len(none)


def test_arrays_that_are_defaults_of_called_functions():
    def f(x):
        return weighted(x) + weighted(x, first=np.array([1, 1]))

    assert value_and_gradient(f)(2.0) == (64.0 + 20.0 + 64.0 + 4.0, 64.0 + 20.0 + 4.0)


def test_large_arrays_that_are_defaults_of_called_functions():
    @numba.njit
    def called(x, table=LARGE):
        return x * table[3]

    assert gradient(lambda x: called(x))(1.0) == LARGE[3]
    assert gradient(lambda x, table: called(x, table), wrt=0)(1.0, np.ones(1000)) == 1.0


@numba.njit
def multiplied_again(w, n):
    if n > 0:
        w[0] *= w[1]
        multiplied_again(w, n - 1)


def calls_that_write(a):
    s = 0.0
    w = np.full(2, a)
    for _ in range(2):
        multiplied_again(w, 1)
        s += w[0]
    return s


def test_second_derivatives_of_recursive_functions_that_write():
    expected = 2 + 6 * 0.7  # of a^2 + a^3
    found = (gradient(gradient(calls_that_write))(0.7), hessian(calls_that_write)(0.7), hvp(calls_that_write)(0.7, 1.0))
    assert np.allclose(found, expected, rtol=1e-14)


@numba.njit
def stored_in_a_list(held, w, n):
    if n > 0:
        held[0] = w
        stored_in_a_list(held, w, n - 1)


def seen_through_the_list(a):
    w = np.full(2, 1.0)
    held = [np.zeros(2)]
    stored_in_a_list(held, w, 1)
    w[0] = a
    return held[0][0] * 3.0


def changed_through_the_list(a):
    w = np.full(2, a)
    held = [np.zeros(2)]
    s = 0.0
    stored_in_a_list(held, w, 1)
    for _ in range(3):
        s += w[0]
        held[0][0] *= a
    return s


def test_arrays_that_a_recursive_function_stores_in_a_list():
    assert value_and_gradient(seen_through_the_list)(0.5) == (1.5, 3.0)
    assert value_and_gradient(changed_through_the_list)(0.5) == (0.875, 2.75)  # a + a^2 + a^3


def changed_until_it_raises(x, n):
    for j in range(1, len(x)):
        x[0] += x[j] * (10 // (n - j))
    return x[0]


def test_what_an_exception_leaves_in_arguments():
    x = np.ones(6)
    with pytest.raises(ZeroDivisionError):
        value_and_gradient(changed_until_it_raises, wrt="x")(x, 3)
    assert x[0] == 1.0 + 5.0 + 10.0


def columns_in_a_while_loop(m):
    b, total, n = m.T, 0.0, 0
    while n < 3:
        b = b * m
        total += b.T[0, 1]
        n += 1
    return total  # m01 m10 + m01 m10^2 + m01 m10^3


def any_order_in_a_while_loop(m):
    a, b, n = m[::-1], m * m, 0
    while n < 2:
        a, b = b, a * b
        n += 1
    total = 0.0
    for row in b:
        total += row[0] * row[1]
    return total


@pytest.mark.compiled
def test_arrays_in_several_orders_in_a_while_loop():
    m = np.array([[1.5, 2.0], [0.5, -1.0]])
    value, dm = value_and_gradient(columns_in_a_while_loop)(m)
    assert value == pytest.approx(2.0 * (0.5 + 0.25 + 0.125))
    np.testing.assert_allclose(dm, [[0.0, 0.875], [2.0 * (1 + 2 * 0.5 + 3 * 0.25), 0.0]])
    (expected,) = differences(any_order_in_a_while_loop, m)
    np.testing.assert_allclose(gradient(any_order_in_a_while_loop)(m).ravel(), expected, atol=1e-6)


def test_second_derivatives_of_a_broadcast_row():
    def f(m):
        return np.sum(np.broadcast_to(m[0], (2, 2)) ** 2 * m)

    m, v = np.array([[1.5, 2.0], [0.5, -1.0]]), np.array([[0.5, 0.0], [1.0, 2.0]])
    both = 2.0 * m[0] * v[0]
    np.testing.assert_allclose(hvp(f)(m, v), [2.0 * (v[0] * m.sum(0) + m[0] * v.sum(0)) + both, both])


def columns_of_rows(m):
    a, n = m * 0.5, 0
    while n < 2:
        n += 1
        a = np.asfortranarray(a)
    return a[0, 1]


def test_a_copy_of_an_array_that_a_loop_hands_on():
    """The array was another value once the loop had been put in order."""
    m = np.array([[1.5, 2.0], [0.5, -1.0]])
    assert value_and_gradient(columns_of_rows)(m)[0] == 1.0
    np.testing.assert_array_equal(gradient(columns_of_rows)(m), [[0.0, 0.5], [0.0, 0.0]])


@numba.njit
def cubed(frequency, x):
    return (frequency * 1e9) ** 3 * x


@pytest.mark.compiled
def test_the_last_bit_of_a_power_of_constants():
    """Python rounds `353000000000.0 ** 3` otherwise than Numba, which multiplies."""
    f = numba.njit(lambda x: cubed(353.0, x))
    assert value_and_gradient(f)(0.7) == (f(0.7), (353e9 * 353e9) * 353e9)


@pytest.mark.compiled
def test_one_of_several_views_of_an_argument_in_any_order():
    def f(x):
        total = 0.0
        for view in (x, x.T):
            total += view[0, 1] ** 2
        return total

    x = np.zeros((4, 4))[::2, ::2]
    x[...] = [[1.0, 2.0], [3.0, 4.0]]
    value, dx = value_and_gradient(f)(x)
    assert value == 4.0 + 9.0
    np.testing.assert_array_equal(dx, [[0.0, 4.0], [6.0, 0.0]])


def of_an_array_that_is_not_made(x, c):
    """A way that ends in an error: Python has no array there."""
    s = x
    if c:
        w = np.ones((3, 2)) * x
        s += w[0, 0] * x
    elif x > 5.0:
        s += len(w) + w.shape[1] + np.sum(w) + np.sum(w * x)
    return s


def test_arrays_that_are_not_made():
    df = gradient(of_an_array_that_is_not_made)
    assert df(2.0, True) == (5.0, None)
    assert df(2.0, False) == (1.0, None)


def read_by_a_mask(x, mask):
    a = np.array([0.99, 0.72, 0.09]) * x
    b = np.array([1.1])
    c = a[np.array([1])]
    b[mask] = b[::1][mask]
    return np.sum(b) + np.sum(c[mask])


def test_a_sum_that_waits_for_an_array_that_is_made_later():
    """The array was made in one loop with the first sum, the second sum before that: an internal error."""
    value, (slope, _) = value_and_gradient(read_by_a_mask)(2.0, np.array([True]))
    assert value == pytest.approx(1.1 + 0.72 * 2.0, rel=1e-15)
    assert slope == 0.72
