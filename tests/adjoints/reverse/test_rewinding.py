"""Memory that is rewound in the reverse sweep, and memory for which that would be wrong."""

import math

import numpy as np
import pytest

from tests.adjoints.stages import stages
from tests.checking.left_out import check_not_made
from tests.checking.slopes import differences
from tests.modes import one_in
from zygote_py import gradient, value_and_gradient

pytestmark = pytest.mark.interpreted

Q = np.array([0.9, -0.7, 0.4, 1.2, 0.3])


def pairs(q):
    """Each step reads all pairs, and writes each element once."""
    n = len(q)
    q = q.copy()
    a = np.zeros(n)
    for _ in range(3):
        for i in range(n):
            a[i] = 0.0
        for i in range(n):
            for j in range(n):
                a[i] += q[i] * (q[i] - q[j]) * q[j]
        for i in range(n):
            q[i] += 0.1 * a[i]
    s = 0.0
    for i in range(n):
        s += q[i] * q[i]
    return s


def in_the_argument(q):
    n = len(q)
    for _ in range(3):
        t = 0.0
        for i in range(n):
            for j in range(n):
                t += math.exp(-((q[i] - q[j]) ** 2))
        for i in range(n):
            q[i] = q[i] * (0.5 + 0.1 * t)
    s = 0.0
    for i in range(n):
        s += q[i] ** 3
    return s


def under_a_condition(q):
    n = len(q)
    q = q.copy()
    for k in range(4):
        t = 0.0
        for i in range(n):
            for j in range(n):
                t += q[i] * q[i] * q[j]
        if k % 2 == 0:
            for i in range(n):
                q[i] = math.sin(q[i] + 0.01 * t)
        else:
            q[k] = t * 0.1
            q[k] = q[k] * q[k] + q[0]
    s = 0.0
    for i in range(n):
        s += q[i] * q[n - 1 - i]
    return s


def through_a_view(q):
    n = len(q)
    q = q.copy()
    tail = q[1:]
    for _ in range(3):
        t = 0.0
        for i in range(n):
            for j in range(n):
                t += math.cos(q[i] * q[j])
        for i in range(n - 1):
            tail[i] = tail[i] * q[i] + 0.01 * t
    s = 0.0
    for i in range(n):
        s += q[i] ** 2
    return s


def swapped(q):
    n = len(q)
    a, b = q.copy(), np.zeros(n)
    for _ in range(3):
        for i in range(n):
            t = 0.0
            for j in range(n):
                t += math.sin(a[i] * a[j])
            b[i] = a[i] + 0.1 * t
        a, b = b, a
    s = 0.0
    for i in range(n):
        s += a[i] ** 2 + b[i] * a[0]
    return s


def read_in_the_loop_that_writes(q):
    n = len(q)
    q = q.copy()
    for _ in range(3):
        for i in range(n):
            for j in range(n):
                q[i] = q[i] + 0.1 * math.sin(q[j] * q[i])
    s = 0.0
    for i in range(n):
        s += q[i] * q[i]
    return s


def product_after_a_write(q):
    """The reverse of the product needs what was written just before it."""
    n = len(q)
    p = q * q
    s = 0.0
    for _ in range(3):
        for j in range(n):
            s += math.sin(p[j])
    p[1] = 2.0
    s += np.dot(q, p)
    if s > 0.0:
        p[2] = s
        p[3] = 0.5
        s += np.dot(p, q) * np.dot(p, p)
    return s


FUNCTIONS = [pairs, in_the_argument, under_a_condition, through_a_view, swapped, read_in_the_loop_that_writes]
FUNCTIONS += [product_after_a_write]


@pytest.mark.parametrize("func", one_in(4, FUNCTIONS, "compiled"))
def test_gradient(func):
    expected = differences(func, Q)[0]
    for _ in range(2):
        given, left = Q.copy(), Q.copy()
        value = func(left)
        found, slope = value_and_gradient(func)(given)
        assert found == pytest.approx(value, rel=1e-14)
        np.testing.assert_allclose(slope, expected, rtol=2e-9, atol=1e-9)
        np.testing.assert_array_equal(given, left)


def test_old_values_are_kept_rather_than_pairs():
    source = gradient(pairs).source(Q)
    assert "_old_record" in source
    assert ".append(" not in source
    assert not [line for line in source.splitlines() if "_record" in line and "np.empty((3, n, n)" in line]


def test_what_is_not_needed_is_not_kept():
    def linear(q):
        n = len(q)
        a = np.zeros(n)
        for k in range(3):
            for i in range(n):
                a[i] += q[i] * (k + 1)
            for i in range(n):
                q[i] = 0.5 * a[i]
        s = 0.0
        for i in range(n):
            s += q[i]
        return s

    found = stages(linear, Q)
    assert found.records == 0
    assert found.stacks == 0


def read_once(q):
    """As much would be kept of what is overwritten as of what is read."""
    n = len(q)
    q = q.copy()
    for _ in range(3):
        t = 0.0
        for i in range(n):
            t += q[i] * q[i]
        for i in range(n):
            q[i] = q[i] * q[i] + 0.1 * t
    return np.sum(q)


def not_needed(q):
    """The pairs are added up, which needs no values."""
    n = len(q)
    q = q.copy()
    for _ in range(3):
        t = 0.0
        for i in range(n):
            for j in range(n):
                t += q[i] - 0.5 * q[j] * j
        for i in range(n):
            q[i] += 0.1 * t
    return np.sum(q * q)


def never_overwritten(q):
    t = 0.5
    for _ in range(3):
        for i in range(len(q)):
            for j in range(len(q)):
                t += 0.01 * math.sin(q[i] * q[j] * t)
    return t


def of_integers(q):
    """Which have no shadow."""
    n, s = len(q), 1.0
    k = np.arange(n)
    for _ in range(3):
        t = 0.0
        for i in range(n):
            for j in range(n):
                t += 0.01 * q[i] * q[j] * k[i] * k[j] * s
        s = math.sin(t) + 1.0
        for i in range(n):
            k[i] = (k[i] + 1) % n
    return s


def made_anew(q):
    n = len(q)
    for _ in range(3):
        t = 0.0
        for i in range(n):
            for j in range(n):
                t += math.sin(q[i] * q[j])
        new = np.empty(n)
        for i in range(n):
            new[i] = q[i] + 0.1 * t
        q = new
    return np.sum(q * q)


def overwrite(q, k, t):
    if k > 0:
        q[k - 1] = q[k - 1] * q[k - 1] + 0.1 * t
        overwrite(q, k - 1, t)


def by_a_call(q):
    """A called function overwrites the elements."""
    n = len(q)
    q = q.copy()
    for _ in range(2):
        t = 0.0
        for i in range(n):
            for j in range(n):
                t += math.sin(q[i] * q[j])
        overwrite(q, n, 0.1 * t)
    return np.sum(q * q)


def in_no_loop(q):
    q = q.copy()
    s = math.sin(q[0] * q[1]) * q[2]
    q[0] = s * q[1]
    q[1] = q[0] * q[2]
    s += math.sin(q[0] * q[1])
    q[0] = s
    return s * q[0] * q[1]


def reversed_at_once(q):
    """Each round fills the array anew."""
    s, w = 0.0, np.zeros(3)
    for i in range(len(q)):
        for j in range(3):
            w[j] = q[i] * q[j]
        for j in range(3):
            for k in range(3):
                s += math.sin(w[j] * w[k])
    return s


RECORDED = [read_in_the_loop_that_writes, read_once, not_needed, never_overwritten, of_integers, made_anew]
RECORDED += [by_a_call, in_no_loop, reversed_at_once]


@pytest.mark.parametrize("func", one_in(3, RECORDED), ids=lambda func: func.__name__)
def test_memory_that_is_not_rewound(func):
    check_not_made("rewinding", func, Q)
