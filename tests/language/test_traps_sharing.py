"""Traps of shared memory: views and bases, arrays by two names, and what is passed in and written to.

As in `tests.language.test_traps`: what is expected stands beside each as a formula, or comes from differences.
"""

from __future__ import annotations

import re

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from zygote_py import DifferentiationError, gradient, value_and_gradient

pytestmark = pytest.mark.interpreted

rng = np.random.default_rng(11)

# Views


def test_a_base_written_through_a_view():
    def f(a):
        view = a[1:4]
        s = a[2] * a[2]
        view[1] = 3.0 * a[0]
        view *= 2.0
        return s + a[1] * a[2] * a[3]

    a = np.array([0.5, 1.5, -2.0, 0.7, 9.0])
    # s = a2^2; then (2 a1) (6 a0) (2 a3)
    expected = [24 * a[1] * a[3], 24 * a[0] * a[3], 2 * a[2], 24 * a[0] * a[1], 0.0]
    check_derivatives(f, a, expected=(expected,))


def test_a_view_written_through_its_base():
    def f(a):
        view = a[::-2]
        s = view[0] * view[1]
        a[4] = a[0] * a[1]
        a[2] += view[2]
        return s + view[0] * view[1] * view[2]

    a = np.array([0.5, 1.5, -2.0, 0.7, 9.0])
    check_derivatives(f, a, method="complex")


def test_the_last_row_may_be_the_first():
    def f(a, order, c):
        a[0] = a[-1][order] * 2.0
        return np.sum(a[0] * c)

    order, c = np.array([2, 0, 1]), np.array([0.3, 0.5, -1.1])
    back = 2.0 * c[np.argsort(order)]
    one, two = np.array([[0.5, 1.5, -2.0]]), np.array([[0.5, 1.5, -2.0], [0.3, -0.7, 1.1]])
    check_derivatives(f, one, order, c, expected=(back[None], 2.0 * one[0][order]))
    check_derivatives(f, two, order, c, expected=(np.array([0 * back, back]), 2.0 * two[1][order]))


def test_views_of_views():
    def f(a, x):
        block = a[1:, ::2]
        column = block[:, 1]
        column[0] = x * a[2, 2]
        a.T[2, 2] *= column[0]
        block[1] = block[0] * x
        flat = a.reshape(12)
        flat[::5] += flat[1] * x
        return np.sum(flat[::3]) * np.sum(column)

    a = rng.normal(size=(3, 4))
    check_derivatives(f, a, 0.7)


def test_rows_written_by_iteration():
    def f(m):
        s = 0.0
        for row in m:
            row *= row[0]
            s += row[0] * row[1]
        return s + m[0, 0] * m[1, 1]

    # row = (a^2, a b)
    m = np.array([[0.5, 1.5], [-0.7, 1.1]])
    (a, b), (c, d) = m
    expected = [[3 * a**2 * b + 2 * a * c * d, a**3], [3 * c**2 * d + a**2 * d, c**3 + a**2 * c]]
    check_derivatives(f, m, expected=(expected,))


def test_a_shift_within_an_array():
    def f(x):
        x[1:] = x[:-1]
        return x[0] + 2.0 * x[1] ** 2 + 3.0 * x[2] ** 3

    x = np.array([0.5, 1.5, -2.0])
    check_derivatives(f, x, expected=([1.0 + 4 * x[0], 9 * x[1] ** 2, 0.0],))


def test_a_shift_the_other_way_and_a_reversal():
    def f(x):
        x[:-1] = x[1:]
        x[:] = x[::-1]
        x[1:] += 2.0 * x[:-1]  # the product is made before the sum is stored
        return np.sum(x * x * x)

    x = np.array([0.5, 1.5, -2.0, 0.3])
    check_derivatives(f, x, method="complex")


@pytest.mark.compiled
def test_an_update_of_what_overlaps():
    """NumPy adds what was there before; Numba goes from element to element, and its function is what counts."""

    def f(x):
        x[1:] += x[:-1]
        return x[0] + x[1] ** 2 + x[2] ** 3

    x = np.array([0.5, 1.5, -2.25])
    assert numba.njit(f)(x.copy()) == 0.5 + 2.0**2 - 0.25**3
    a, c = 2 * 2.0, -0.25
    try:
        value, dx = value_and_gradient(f)(x.copy())
    except DifferentiationError:
        return
    assert value == numba.njit(f)(x.copy())
    np.testing.assert_allclose(dx, [1 + a + 3 * c**2, a + 3 * c**2, 3 * c**2])


def test_a_matrix_and_its_transpose():
    def f(m):
        m[:] = m.T * 2.0
        m[:] = m.T
        m[0] *= m[:, 1] * 1.0
        return np.sum(m * m * m)

    m = rng.normal(size=(3, 3))
    check_derivatives(f, m, method="complex")


def test_indices_changed_through_what_may_be_a_view():
    """On integers these stay calls of NumPy: a view of what is read in each iteration, and written to at its end."""

    def flipped(x):
        indices = np.arange(5)
        s = 0.0
        for k in range(3):
            other = np.flip(indices)
            s += np.sin(x[indices[0]] * x[indices[4]]) * (k + 1)
            other[0] = (other[0] + 2) % 5
            other[4] = (other[4] + 1) % 5
        return np.exp(s)

    def the_array_itself(x):
        indices = np.arange(5)
        same = np.ascontiguousarray(indices)
        s = 1.0
        for k in range(3):
            s *= np.sin(x[indices[1]] * x[indices[0]] + k)
            same[1] = (indices[1] + 1) % 5
        return s

    def half(x):
        indices = np.arange(4)
        low, high = np.split(indices, 2)
        s = 1.0
        for _ in range(3):
            s *= x[indices[0]] + x[indices[3]] ** 2
            low[0] = (low[0] + 1) % 4
            high[1] = (high[1] + 3) % 4
        return s

    x = np.array([0.3, 0.5, 0.7, 0.9, 1.1])
    for f in (flipped, the_array_itself, half):
        check_derivatives(f, x, method="complex")


def test_what_may_be_the_array_itself_is_made_anew():
    """The columns are copied, as they are not contiguous; this is known only at run time."""

    def columns(x):
        r = np.zeros((3, 3))
        s = 0.0
        for i in range(4):
            r[:, :] = x[i]
            for k in range(3):
                r[k, k] *= x[0]
            for k in range(3):
                s += np.dot(x[:3], np.ascontiguousarray(r[:, k])) * (k + 1)
        return s

    x = np.array([0.3, 0.5, 0.7, 0.9])
    check_derivatives(columns, x)


def test_an_array_in_a_list_that_nothing_reads():
    def kept(x):
        a = np.zeros(2)
        a[0] = x[0]
        rows = [a]  # noqa: F841
        return np.dot(a, a)

    def history(x):
        rows = [x]
        s = 0.0
        for i in range(3):
            old = rows[i]
            new = np.empty(2)
            for j in range(2):
                new[j] = old[j] * old[1 - j] + i
            s += np.sum(new * new)
            rows.append(new)
        return s

    x = np.array([1.5, 0.5])
    check_derivatives(kept, x, expected=([3.0, 0.0],))
    check_derivatives(history, x)


def test_parts_and_copies_of_lists():
    def f(x):
        rows = [x * 1.0, x * 2.0, x * 3.0]
        last = rows[1:]
        same = last.copy()
        return last[0][0] * same[1][1]

    check_derivatives(f, np.array([1.5, 0.5]), expected=([3.0, 9.0],))


def test_the_new_array_of_an_iteration_is_overwritten_in_the_next():
    def momentum(x):
        old = np.zeros(2)
        s = 0.0
        for i in range(3):
            new = x * (i + 1.0)
            old *= 0.5
            new += old
            s += np.dot(new, new)
            old = new
        return s

    def in_a_tuple(x):
        pair = (np.zeros(2), 0.0)
        s = 0.0
        for _ in range(3):
            a = np.zeros(2)
            pair[0][0] = 5.0
            a[:] = x
            s += np.dot(a, a)
            pair = (a, s)
        return s

    def in_a_list(x):
        rows = [np.zeros(2)]
        s = 0.0
        for i in range(3):
            a = x * (i + 1.0)
            rows[i][0] = 5.0
            s += np.dot(a, a) ** 2
            rows.append(a)
        return s

    def solved(x):
        before = np.eye(2)
        s = 0.0
        for _ in range(3):
            a = np.eye(2) * x[0]
            before[0, 1] = 5.0
            s += np.linalg.solve(a, x)[1]
            before = a
        return s

    x = np.array([1.5, 0.5])
    # new = x, 5/2 x, 17/4 x
    check_derivatives(momentum, x, expected=(2 * x * (1 + 2.5**2 + 4.25**2),))
    check_derivatives(in_a_tuple, x, expected=(6 * x,))
    check_derivatives(in_a_list, x, expected=(4 * x * np.dot(x, x) * (1 + 16 + 81),))
    check_derivatives(solved, x, expected=([-3 * x[1] / x[0] ** 2, 3 / x[0]],))


def test_an_array_chosen_in_a_branch():
    def f(a, b, x):
        c = a if x > 0.0 else b
        c[0] = c[0] * c[1] * x
        return a[0] + 10.0 * b[0]

    a, b = np.array([0.5, 2.0]), np.array([0.3, 4.0])
    check_derivatives(f, a, b, 1.5, expected=([3.0, 0.75], [10.0, 0.0], 1.0))
    check_derivatives(f, a, b, -1.5, expected=([1.0, 0.0], [-60.0, -4.5], 12.0))


def test_an_array_in_a_tuple():
    def f(a, b):
        pair = (a, b)
        pair[0][0] *= b[1]
        c, d = pair
        d[1] = c[0] * c[0]
        return a[0] * b[1] + b[0]

    # a0 b1, then its cube
    check_derivatives(
        f, np.array([0.5, 2.0]), np.array([0.3, 4.0]), expected=([3 * 0.5**2 * 4.0**3, 0.0], [1.0, 3 * 0.5**3 * 16.0])
    )


def test_a_name_that_is_bound_anew_and_one_that_is_changed():
    def f(a):
        b = a
        a = a * 2.0  # a new array
        b += a[0]  # the argument
        a[1] = b[0] * b[1]
        return a[0] + a[1] + b[1]

    # a' = (2 x, (3 x) (y + 2 x)), b = (3 x, y + 2 x)
    x, y = 0.5, 1.5
    check_derivatives(f, np.array([x, y]), expected=([2 + 3 * y + 12 * x + 2, 3 * x + 1],))


def test_an_array_that_escapes_into_a_list():
    def f(a, n):
        rows = [a]
        for i in range(n):
            rows.append(rows[i] * a)
        rows[0][0] = 5.0
        rows[-1][1] *= rows[1][1]
        s = 0.0
        for row in rows:
            s += np.sum(row)
        return s

    a = np.array([0.5, 1.5])
    check_derivatives(f, a, 2)


# Arguments


def test_a_kernel_that_writes_into_its_argument():
    from zygote_py import pullback

    def kernel(x, out):
        for i in range(len(x)):
            out[i] = x[i] * x[i] + 2.0 * out[i]

    x, out, seed = np.array([0.5, 1.5]), np.array([3.0, 4.0]), np.array([1.0, -2.0])
    value, back = pullback(kernel, x, out)
    assert value is None
    np.testing.assert_array_equal(out, [6.25, 10.25])
    for _ in range(2):
        dx, dout = back(out=seed)
        np.testing.assert_allclose(dx, 2 * x * seed)
        np.testing.assert_allclose(dout, 2 * seed)
    np.testing.assert_array_equal(seed, [1.0, -2.0])
    np.testing.assert_array_equal(out, [6.25, 10.25])


def test_a_kernel_that_returns_and_writes():
    from zygote_py import pullback

    def kernel(x, out):
        out[:] = x * x
        return out[0] * x[1]

    x, out = np.array([0.5, 1.5]), np.array([3.0, 4.0])
    value, back = pullback(kernel, x, out)
    assert value == 0.375
    dx, dout = back(2.0, out=np.array([10.0, 100.0]))
    np.testing.assert_allclose(dx, [2 * 2 * 0.5 * 1.5 + 20 * 0.5, 2 * 0.25 + 200 * 1.5])
    np.testing.assert_allclose(dout, [0.0, 0.0])
    dx, dout = back(1.0)
    np.testing.assert_allclose(dx, [1.5, 0.25])


def test_an_argument_is_left_as_the_function_leaves_it():
    def f(x, scratch):
        scratch[:] = x * 2.0
        x[0] = scratch[1] * x[0]
        scratch[1] = -1.0
        return x[0] * x[1]

    a, b = 0.5, 1.5
    x, scratch = np.array([a, b]), np.array([7.0, 8.0])
    dx, dscratch = gradient(f)(x, scratch)
    np.testing.assert_allclose(dx, [2 * b * b, 4 * a * b])  # of 2 b a b
    np.testing.assert_array_equal(dscratch, [0.0, 0.0])
    np.testing.assert_array_equal(x, [2 * a * b, b])
    np.testing.assert_array_equal(scratch, [1.0, -1.0])
    check_derivatives(f, np.array([a, b]), np.array([7.0, 8.0]), expected=([2 * b * b, 4 * a * b], [0.0, 0.0]))


def right_or_refused(f, base, first, second, expected):
    """The gradients of two parameters that share memory add up to that of the memory, or both are named."""
    a, b = first(base), second(base)
    before = base.copy()
    try:
        da, db = gradient(f)(a, b)
    except (DifferentiationError, ValueError) as error:
        refused = str(error)
    else:
        refused = None
    if refused is not None:
        assert re.search(r"\ba\b", refused.replace(" a ", " ")), refused
        assert re.search(r"\bb\b", refused), refused
        np.testing.assert_array_equal(base, before)
        return
    total = np.zeros_like(base)
    first(total)[...] += da
    second(total)[...] += db
    np.testing.assert_allclose(total, expected)


def test_the_same_array_for_two_parameters():
    def f(a, b):
        a[0] = a[0] * b[1]
        b[0] += 1.0
        return a[0] * b[0] * a[1]

    # both: x = x y + 1, and then x^2 y
    x, y = 0.5, 1.5
    z = x * y + 1
    right_or_refused(f, np.array([x, y]), lambda v: v, lambda v: v, [2 * z * y * y, 2 * z * x * y + z * z])
    a, b = np.array([x, y]), np.array([2.0, 3.0])
    check_derivatives(f, a, b, expected=([3.0 * 3.0 * y, x * 3.0 * 3.0], [x * 3.0 * y, x * 3.0 * y]))


def test_overlapping_views_for_two_parameters():
    def f(a, b):
        for i in range(len(a)):
            a[i] = a[i] * b[i]
        return a[0] + a[1] * b[0]

    # over v: v0 v1, v1 v2; the result v0 v1 + (v1 v2)^2
    v = np.array([0.5, 1.5, 2.0])
    expected = [v[1], v[0] + 2 * v[1] * v[2] ** 2, 2 * v[1] ** 2 * v[2]]
    right_or_refused(f, v.copy(), lambda w: w[:2], lambda w: w[1:], expected)


def test_views_that_do_not_overlap():
    def f(a, b):
        a[:] = a * b
        return np.sum(a)

    v = np.array([0.5, 2.0, 1.5, 3.0])
    da, db = gradient(f)(v[:2], v[2:])
    np.testing.assert_array_equal(da, [1.5, 3.0])
    np.testing.assert_array_equal(db, [0.5, 2.0])
    np.testing.assert_array_equal(v, [0.75, 6.0, 1.5, 3.0])
    v = np.array([0.5, 1.5, 2.0, 3.0])  # these interleave
    right_or_refused(f, v, lambda w: w[::2], lambda w: w[1::2], [1.5, 0.5, 3.0, 2.0])


def test_zero_length_arrays():
    def f(x, a, m):
        s = x
        for i in range(len(a)):
            a[i] *= x
            s *= a[i]
        m[:] = x
        a[:] = a * 2.0
        return s + np.sum(a) + np.sum(m * m)

    check_derivatives(f, 3.0, np.zeros(0), np.zeros((0, 3)), expected=(1.0, np.zeros(0), np.zeros((0, 3))))
    check_derivatives(f, 3.0, np.zeros(0), np.zeros((3, 0)), expected=(1.0, np.zeros(0), np.zeros((3, 0))))
    check_derivatives(
        f, 3.0, np.array([0.5]), np.zeros((1, 2)), expected=(0.5 * 2 * 3 + 1.0 + 12.0, [9.0 + 6.0], np.zeros((1, 2)))
    )


def test_the_gradient_called_twice():
    def f(x):
        w = np.zeros(3)
        w += x
        w[0] *= w[1]
        return w[0] * w[2]

    df = gradient(f)
    x = np.array([0.5, 1.5, 2.0])
    first = df(x)
    kept = first.copy()
    second = df(x)
    np.testing.assert_array_equal(first, kept)  # the second call has arrays of its own
    np.testing.assert_array_equal(second, [3.0, 1.0, 0.75])
    first[:] = np.nan
    np.testing.assert_array_equal(df(x), [3.0, 1.0, 0.75])
    np.testing.assert_array_equal(df(2 * x), [12.0, 4.0, 3.0])


def an_index(z):
    k = np.array([1, 2, 0])
    k[k] = np.array([0, 1, 2])
    return z * k[1]


def a_view_of_an_index(z):
    k = np.array([1, 2, 0])
    k[k[::-1]] = 1
    return z * k[1]


def a_mask(z):
    k = np.array([True, True, True])
    k[k[::-1]] = False  # nothing is left in NumPy, the last one in Numba
    return z * k[2]


def a_mask_of_rows(z):
    k = np.zeros((2, 2), np.bool_)
    k[k[::-1, 0]] = True
    return z * k[0, 1]


def a_row(z):
    k = np.array([[1, 2, 0], [0, 0, 0]])
    for i in range(4):
        k[i % 2][k[i // 2]] = 1
    return z * k[0, 1]


@pytest.mark.parametrize("f", [an_index, a_view_of_an_index, a_mask, a_mask_of_rows, a_row])
def test_an_index_that_is_written_to_as_it_is_read(f):
    with pytest.raises(DifferentiationError, match="writes to an array by an index that is a part of it"):
        gradient(f)(1.5)


def test_an_index_that_is_another_part_of_the_array():
    def f(z, p, m):
        p[1, p[0]] = np.array([0, 1, 2])
        p[2][p[1]] += 1
        p[p[:, 0], 1] = 2
        a, b = p[0], p[2]
        b[a] = 1
        m[3:][m[:3]] = True
        m[~m[::-1]] = True
        m[m] = m[::-1][m]
        for i in range(1, 3):
            p[i][p[i - 1]] = np.array([2, 0, 1])
        return z * np.sum(p * np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]])) + 100.0 * z * np.sum(m * np.arange(6))

    p, m = np.array([[0, 1, 2], [0, 0, 0], [0, 0, 0]]), np.array([True, False, True, False, False, False])
    given = p.copy(), m.copy()
    expected = f(1.0, *given)
    value, (found, *_) = value_and_gradient(f)(1.5, p, m)
    assert (value, found) == (1.5 * expected, expected)
    assert all(map(np.array_equal, (p, m), given))
