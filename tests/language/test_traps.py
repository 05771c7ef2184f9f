"""Traps: what other tools are documented to differentiate wrongly, or slowly, or not at all.

Each is a few lines that a user would write. What is expected stands beside it as a formula, or comes from central
differences or the complex step; each runs compiled, compiled a second time, and in plain Python (`tests.checking`).
"""

from __future__ import annotations

import math
import sys

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.counts import allocations
from tests.plain import plain
from zygote_py import gradient

pytestmark = pytest.mark.interpreted

rng = np.random.default_rng(11)

# Loops


def test_a_product_over_a_dynamic_loop():
    def f(x, n):
        r = 1.0
        for i in range(n):
            r *= x[i]
        return r

    x = np.array([1.5, -2.0, 0.5, 3.0])
    check_derivatives(f, x, 3, expected=([-1.0, 0.75, -3.0, 0.0],))
    check_derivatives(
        f, np.array([2.0, 0.0, 3.0]), 3, expected=([0.0, 6.0, 0.0],)
    )  # a product divided by a factor would be NaN
    check_derivatives(f, np.array([0.0, 0.0, 3.0]), 3, expected=([0.0, 0.0, 0.0],))
    check_derivatives(f, x, 0, expected=([0.0, 0.0, 0.0, 0.0],))


def test_a_product_kept_in_an_array():
    def f(x, n):
        r = np.ones(1)
        for i in range(n):
            r[0] = r[0] * x[i]
        return r[0]

    check_derivatives(f, np.array([1.5, -2.0, 0.5]), 3, expected=([-1.0, 0.75, -3.0],))
    check_derivatives(f, np.array([2.0, 0.0, 3.0]), 3, expected=([0.0, 6.0, 0.0],))


def test_an_element_is_added_to_in_a_loop():
    def f(x, n):
        v = np.zeros(3)
        for k in range(n):
            for i in range(3):
                v[i] = v[i] + x * (i + k)
        return v[0] * v[1] * v[2]

    # v = x * (6, 10, 14) after 4 rounds
    check_derivatives(f, 0.5, 4, expected=(3 * 0.5**2 * 6 * 10 * 14,))


def test_an_element_is_squared_in_a_loop():
    def f(v, n):
        for _ in range(n):
            v[0] = v[0] * v[0]
            v[1] += v[0] * v[1]
        return v[0] + v[1]

    check_derivatives(f, np.array([0.9, 0.3]), 4)


def test_a_loop_left_by_break_after_a_write():
    def f(x, limit):
        v = np.zeros(6)
        s = 0.0
        for i in range(6):
            v[i] = x * (i + 1)
            if v[i] > limit:
                break
            v[i] = v[i] * v[i]
            s += v[i]
        return s + v[2] + v[5]

    # rounds 0 and 1 are squared, round 2 is written and left: s = x^2 + 4 x^2, v[2] = 3 x, v[5] = 0
    check_derivatives(f, 0.5, 1.2, expected=(10 * 0.5 + 3.0, 0.0))


def test_a_return_in_a_loop_after_a_write():
    def f(v, n):
        for i in range(len(v)):
            v[i] = v[i] * v[0]
            if i == n:
                return v[i] * v[0]
        return v[0] * v[1]

    check_derivatives(f, np.array([1.5, 2.0, -0.5]), 1)
    check_derivatives(f, np.array([1.5, 2.0, -0.5]), 9)


def test_a_loop_that_the_data_end():
    def f(v, x):
        i = 0
        while v[i % 3] < 10.0:
            v[i % 3] *= x
            v[(i + 1) % 3] += 0.5 * v[i % 3]
            i += 1
        return v[0] + 2.0 * v[1] + 3.0 * v[2]

    check_derivatives(f, np.array([0.5, 0.7, 0.2]), 1.5)


def test_a_recurrence_through_an_array():
    def f(a, b, n):
        v = np.empty(n)
        v[0], v[1] = a, b
        for i in range(2, n):
            v[i] = v[i - 1] * v[i - 2] + math.sin(v[i - 1])
        return v[n - 1]

    check_derivatives(f, 0.4, 0.7, 7)


# Overwriting


def test_added_to_what_an_element_was_before_it_was_overwritten():
    def f(x, k):
        t = x[0]
        x[k] = 3.0 * x[1]
        x[0] = t + x[1]
        return x[k] * x[k]

    check_derivatives(f, np.array([0.5, 1.5]), 0, expected=([2 * 2.0, 2 * 2.0],))
    check_derivatives(f, np.array([0.5, 1.5]), 1, expected=([0.0, 2 * 4.5 * 3.0],))


def test_what_was_read_before_a_store_is_used_in_the_next_iteration():
    def f(x, n):
        before, s = 1.0, 0.0
        for i in range(n):
            t = before
            before = x[i]
            x[i] = 2.0 * i
            s += t * t
        return s + before

    check_derivatives(f, np.array([0.5, 1.5, 2.5]), 3, expected=([1.0, 3.0, 1.0],))


def test_multiplied_and_divided_in_place_after_it_was_read():
    def f(a, x):
        b = a * a
        a *= x
        s = a[0] * a[1]
        a /= b
        return s + a[0] + 2.0 * a[1]

    a, x = np.array([2.0, -0.5]), 3.0
    # s = x^2 a0 a1, then a = x / a0 of the start
    expected = [x**2 * a[1] - x / a[0] ** 2, x**2 * a[0] - 2 * x / a[1] ** 2]
    check_derivatives(f, a, x, expected=(expected, 2 * x * a[0] * a[1] + 1 / a[0] + 2 / a[1]))


def test_a_slice_multiplied_by_another_of_the_same_array():
    def f(a):
        a[:3] *= 1.0 * a[2:]
        a[1:4] /= a[2]
        a[2:] -= a[:3] * a[0]
        return np.sum(a * a)

    a = np.array([1.1, -0.7, 0.9, 1.3, 0.4])
    check_derivatives(f, a, method="complex")


def test_overwritten_after_it_was_read():
    def f(v):
        s = 0.0
        for i in range(len(v)):
            s += math.sin(v[i])
            v[i] = 100.0
        return s

    v = np.array([0.3, 1.2, -0.7])
    check_derivatives(f, v, expected=(np.cos(v),))


def test_the_whole_array_overwritten_after_it_was_read():
    def f(v):
        w = np.exp(v)
        s = np.sum(w * v)
        v[:] = 0.0
        w[:] = -1.0
        return s + np.sum(w)

    v = np.array([0.3, 1.2, -0.7])
    check_derivatives(f, v, expected=(np.exp(v) * (1 + v),))


def test_overwritten_before_it_is_read():
    def f(v, x):
        v[0] = x
        v[1] = 2.0
        return v[0] * v[1] * v[2]

    check_derivatives(f, np.array([5.0, 6.0, 7.0]), 3.0, expected=([0.0, 0.0, 6.0], 14.0))


def test_an_element_stored_to_itself():
    def f(v):
        for i in range(3):
            v[i] = v[i]
        v[:] = v
        v[0] = v[1]
        return v[0] * v[1] * v[2]

    check_derivatives(f, np.array([5.0, 6.0, 7.0]), expected=([0.0, 84.0, 36.0],))


def test_elements_swapped():
    def f(v, n):
        for i in range(n):
            v[i], v[i + 1] = v[i + 1], v[i]
        return v[0] + v[1] ** 2 + v[2] ** 3 + v[3] ** 4

    a, b, c, d = 1.5, -0.5, 0.8, 1.1
    check_derivatives(f, np.array([a, b, c, d]), 3, expected=([4 * a**3, 1.0, 2 * c, 3 * d**2],))


def test_a_scratch_array_reused_in_each_iteration():
    def f(x):
        scratch = np.empty(2)
        s = 0.0
        for i in range(len(x)):
            scratch[0] = x[i] * x[i]
            scratch[1] = math.sin(scratch[0])
            scratch[0] *= scratch[1]
            s += scratch[0] * scratch[1]
        return s

    x = np.array([0.3, 1.2, -0.7])
    q = x * x
    expected = 2 * x * (np.sin(q) ** 2 + 2 * q * np.sin(q) * np.cos(q))  # of x^2 sin(x^2)^2
    check_derivatives(f, x, expected=(expected,))


def test_rows_written_out_as_lists():
    def f(x, n):
        a = np.zeros((2, 3))
        s = 0.0
        for i in range(len(x) - 1):
            a[0, :n] = [x[i] * x[i + 1], 2.0]
            a[1] = [a[0, 1], x[i], a[1, 1] * a[0, 0]]
            a[0, n:] = [x[i]]
            s += np.dot(a[0], a[1]) * (i + 1)
        return s

    check_derivatives(f, rng.normal(size=4), 2)
    with pytest.raises(ValueError, match="does not have the shape"):
        plain(gradient(f).source(np.ones(3), 2))(np.ones(3), 1)


def test_a_scratch_array_made_anew_in_each_iteration():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            scratch = np.zeros(3)
            for k in range(3):
                scratch[k] += x[i] * (k + 1)
            scratch[1] *= scratch[0]
            s += scratch[1] * scratch[2]
        return s

    x = np.array([0.3, 1.2, -0.7])
    check_derivatives(f, x, expected=(18 * x**2,))  # x * 2 x * 3 x


def test_a_scratch_array_that_keeps_what_the_last_iteration_left():
    def f(x, n):
        scratch = np.zeros(2)
        s = 0.0
        for _ in range(n):
            s += scratch[0] * scratch[1]
            scratch[0] += x
            scratch[1] = scratch[0] * x
        return s

    # in round k: k x * k x^2
    check_derivatives(f, 0.7, 4, expected=(3 * 0.7**2 * (1 + 4 + 9),))


def test_a_mixture_model_with_scratch_arrays_filled_anew():
    def f(points, means, weights):
        total = 0.0
        for i in range(points.shape[0]):
            terms = np.empty(means.shape[0])
            difference = np.empty(points.shape[1])
            for k in range(means.shape[0]):
                for d in range(points.shape[1]):
                    difference[d] = points[i, d] - means[k, d]
                terms[k] = weights[k] - 0.5 * np.sum(difference * difference)
            largest = np.max(terms)
            total += largest + math.log(np.sum(np.exp(terms - largest)))
        return total

    points, means, weights = rng.normal(size=(5, 2)), rng.normal(size=(3, 2)), rng.normal(size=3)
    difference = points[:, None] - means[None]
    p = np.exp(weights - 0.5 * np.sum(difference**2, axis=2))
    p /= p.sum(axis=1, keepdims=True)
    flow = p[:, :, None] * difference
    check_derivatives(f, points, means, weights, expected=(-flow.sum(axis=1), flow.sum(axis=0), p.sum(axis=0)))


def test_ping_pong_buffers():
    def f(x, c, n):
        a, b = x.copy(), np.empty_like(x)
        for _ in range(n):
            for i in range(1, len(a) - 1):
                b[i] = a[i] + c * (a[i - 1] - 2.0 * a[i] + a[i + 1]) * a[i]
            b[0], b[-1] = a[0], a[-1]
            a, b = b, a
        return np.sum(a * a)

    x = np.array([1.0, 0.3, -0.4, 0.8, 0.1])
    for n in (0, 1, 4, 5):
        check_derivatives(f, x, 0.2, n)


def test_ping_pong_between_arguments():
    def f(a, b, n):
        for _ in range(n):
            for i in range(len(a)):
                b[i] = a[i] * a[i] + b[i]
            a, b = b, a
        return a[0] + 2.0 * b[1]

    for n in (0, 1, 2, 3):
        check_derivatives(f, np.array([0.5, 0.7]), np.array([-0.3, 0.2]), n)


# Dead branches, lists


def test_where_with_an_infinite_dead_branch():
    def f(x):
        return np.sum(np.where(x > 0.0, np.log(x), x))

    def g(x):
        return np.sum(np.where(x > 0.0, np.sqrt(x) * 2.0, 0.0))

    def h(x):
        return np.sum(np.where(x == 0.0, 1.0, np.sin(x) / x))

    x = np.array([0.0, 4.0, -1.0])
    check_derivatives(f, x, expected=([1.0, 0.25, 1.0],))
    check_derivatives(g, x, expected=([0.0, 0.5, 0.0],))
    check_derivatives(h, x[:2], expected=([0.0, (4 * math.cos(4.0) - math.sin(4.0)) / 16],))


def test_where_with_a_mask_and_an_infinite_dead_branch():
    def f(x, mask):
        return np.sum(np.where(mask, np.log(x), x * x)) + np.sum(np.where(mask, 1.0, 1.0 / (x - 0.5)))

    x, mask = np.array([0.0, 4.0, 0.5]), np.array([False, True, True])
    # dead: log and its slope at 0, and 1 / 0 at 0.5
    check_derivatives(f, x, mask, expected=([-1 / 0.25, 0.25, 2.0],))


def test_a_dead_branch_kept_in_an_array():
    def f(x):
        logs = np.log(x)
        chosen = np.where(x > 0.0, logs, x)
        return np.sum(chosen)

    def g(x):
        return np.where(x > 0.0, math.sqrt(abs(x)), 0.0) + x

    check_derivatives(f, np.array([0.0, 4.0]), expected=([1.0, 0.25],))
    check_derivatives(g, 0.0, expected=(1.0,))


def test_a_dropped_append():
    def f(x, n):
        kept = [x]
        for i in range(n):
            if i % 3 != 1:
                kept.append(kept[-1] * x)
        dropped = [x * x]
        dropped.append(x)
        dropped.pop()
        s = 0.0
        for v in kept:
            s += v
        return s + dropped[0] * len(dropped)

    # rounds 0, 2, 3, 5 append: x + ... + x^5, and x^2
    x = 0.7
    check_derivatives(f, x, 6, expected=(1 + 2 * x + 3 * x**2 + 4 * x**3 + 5 * x**4 + 2 * x,))


# Costs


def many_reads(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[len(x) - 1 - i]
    return s


def many_writes(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = x[i] * x[i]
        y[i // 2] += y[i] * x[0]
    return y[0] + y[len(x) - 1]


@pytest.mark.parametrize("f", [many_reads, many_writes])
def test_an_element_read_costs_the_same_in_an_array_of_any_length(f):
    """Lines run and bytes allocated in plain Python are linear in n; the allocations of compiled code are constant."""
    emitted = plain(gradient(f).source(np.zeros(1)))
    lines = allocated = 0

    def count(frame, event, arg):
        nonlocal lines
        lines += event == "line"
        return count

    class Counting:
        def __getattr__(self, name):
            return getattr(np, name)

    def counted(name):
        def make(*args, **keywords):
            nonlocal allocated
            made = getattr(np, name)(*args, **keywords)
            allocated += made.nbytes
            return made

        return staticmethod(make)

    for name in ("empty", "zeros", "empty_like", "zeros_like", "full", "ones"):
        setattr(Counting, name, counted(name))
    emitted.__globals__["np"] = Counting()
    costs = []
    for n in (500, 1000):
        lines = allocated = 0
        traced = sys.gettrace()
        sys.settrace(count)
        try:
            emitted(np.full(n, 0.5))
        finally:
            sys.settrace(traced)
        costs.append((lines, allocated))
    assert costs[1][0] <= 2.1 * costs[0][0]
    assert costs[0][1] > 0
    assert costs[1][1] <= 2.1 * costs[0][1]

    df = gradient(f)
    df(np.full(10, 0.5))
    counts = [allocations(lambda: df(np.full(n, 0.5))) for n in (10_000, 100_000)]
    assert counts[0] == counts[1] < 20


def test_the_gradient_of_many_reads_is_right_at_length():
    x = rng.normal(size=100_000)
    np.testing.assert_allclose(gradient(many_reads)(x), 2 * x[::-1])
    assert gradient(many_reads)(x).dtype == np.float64


def test_an_element_that_only_a_loop_without_iterations_reads():
    def f(x):
        s = 0.0
        for j in range(len(x) - 5):
            s += x[j] * x[99]
        for i in range(len(x)):
            s += x[i] * x[i]
        return np.log(s)

    x = np.array([0.5, 1.5, -2.0])
    check_derivatives(f, x, expected=(2 * x / np.sum(x * x),))
    large = np.linspace(0.5, 1.5, 120)
    value = np.sum(large[:115]) * large[99] + np.sum(large**2)
    expected = 2 * large + np.where(np.arange(120) < 115, large[99], 0.0)
    expected[99] += np.sum(large[:115])
    check_derivatives(f, large, expected=(expected / value,))


def test_a_primal_that_numba_can_compile():
    """The functions above are Numba's own language: the traps are not what it refuses."""
    assert numba.njit(many_writes)(np.ones(3)) == pytest.approx(many_writes(np.ones(3)))
