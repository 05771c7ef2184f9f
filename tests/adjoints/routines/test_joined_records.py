"""The records of a called function: those of one length are rows of one array; shadows of branches are made late."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.checking.left_out import check_not_made
from tests.modes import one_in
from zygote_py import gradient, hessian, pullback
from zygote_py.frontend import program

pytestmark = pytest.mark.interpreted

A = np.linspace(0.1, 0.9, 5)


@pytest.fixture(autouse=True)
def nothing_is_inlined(monkeypatch):
    """But what is called in one place only."""
    monkeypatch.setattr(program, "_MOST_STATEMENTS", -1)


def smoothed(y, first, last, x):
    """Weights that are overwritten twice, in a branch, in branches of that."""
    h = last - first
    if h <= 0:
        return x
    m = last - first + 1
    w = np.zeros(m)
    total = 0.0
    for j in range(m):
        w[j] = math.exp(-x * (j - 1.5) ** 2)
        total += w[j]
    if total > 1.0:
        for j in range(m):
            w[j] = w[j] / total
        if x > 0.4:
            mean = 0.0
            for j in range(m):
                mean += w[j] * j
            for j in range(m):
                w[j] = w[j] * (1.0 + 0.1 * x * (j - mean))
    s = 0.0
    for j in range(m):
        s += w[j] * y[first + j]
    return s


def many_times(y, x):
    s = x
    for k in range(1, 5):
        s = math.sin(3.0 * smoothed(y, 0, k, s)) + 0.3 * smoothed(y, k // 2, 4, 0.9 * s) * s
        s += 0.1 * smoothed(y, 3, 3, s)
    return s


@pytest.mark.parametrize("x", [0.3, 0.7])
def test_records_in_branches(x):
    check_derivatives(many_times, A, x)
    source = gradient(many_times).source(A, x)
    forward = source[source.index("def smoothed_forward") :].partition("\ndef ")[0]
    assert forward.count(" = np.empty((") == 2  # one of them has no elements
    assert "_record" not in forward.replace("_records.py", "")
    reverse = source[source.index("def smoothed_reverse") :].partition("\ndef ")[0]
    assert "dw = np." in reverse
    assert "dw = np." not in forward


def test_second_derivatives():
    h = 1e-3
    differences = (many_times(A, 0.6 + h) - 2.0 * many_times(A, 0.6) + many_times(A, 0.6 - h)) / h**2
    np.testing.assert_allclose(hessian(many_times, wrt="x")(A, 0.6), differences, rtol=1e-5)


def of_several_types(a, n, x):
    """Records of numbers, conditions and positions; of two lengths."""
    s, k = x, 0
    for _ in range(n):
        s = math.sin(s) + a[k] * s
        if s > 0.3:
            k = (k + 2) % 4
            s = s * s
        s = math.cos(s * a[k])
    for i in range(len(a)):
        s = math.sin(s) * a[i]
        s = math.exp(-s * s) + a[i] * s
    return s


def with_several_types(a, x):
    y = x
    for n in range(4):
        y = of_several_types(a, n, y) + 0.2 * of_several_types(a, -n, 0.4 * y)
    return y


def test_records_of_several_types():
    check_derivatives(with_several_types, A, 0.45)


def in_either_branch(a, n, x):
    """No record is made whenever the other is; no record is joined with one of another length."""
    s = x
    if x > 0.5:
        for i in range(n):
            s = math.sin(s) * a[i]
            s = s * s + 0.1 * s
    else:
        for i in range(n):
            s = math.cos(s) * a[i]
            s = s * s + 0.5 * s
        for i in range(n + 1):
            s = math.exp(-s * a[i])
    return s


def with_branches(a, x):
    y = x
    for n in range(1, 4):
        y = in_either_branch(a, n, y) + 0.5 * in_either_branch(a, n + 1, 0.35 + y)
    return y


@pytest.mark.parametrize("x", [0.2, 0.8])
def test_records_of_two_ways(x):
    check_derivatives(with_branches, A, x)


def handed_on(a, flag, x):
    """The shadow of a branch is that of what is handed on in one of two ways, and of views of it."""
    w = np.ones(3)
    if flag > 0:
        v = np.zeros(3)
        v[0] = x * a[0]
        v[1:] = a[1:3] * x
        w = v
    s = 0.0
    for i in range(3):
        s += w[i] * math.sin(x * (i + 1))
    u = w[flag:]
    u[0] = s * x
    return s * w[0] + np.sum(u)


def in_turn(a, x):
    y = x
    for k in range(4):
        y = 0.3 * handed_on(a, k % 2, y) + 0.1 * handed_on(a, (k + 1) % 2, 0.5 * y)
    return y


def test_shadows_that_are_handed_on():
    check_derivatives(in_turn, A, 0.7)


def with_places(a, n, x):
    """The shadow of an array of a branch is reached by views at places that the reverse half does not know."""
    s = x
    if n > 1:
        w = np.zeros(6)
        k = int(3.0 * abs(math.sin(x)))
        part = w[k : k + 3]
        for i in range(3):
            part[i] = a[i] * s + w[i]
            s = math.sin(s) + part[i]
        for i in range(5):
            s = s + w[i] * w[i + 1] * x
    return s


def at_places(a, x):
    y = x
    for n in range(1, 4):
        y = 0.5 * with_places(a, n, y) + 0.2 * with_places(a, 4 - n, y - 0.4)
    return y


def test_views_of_shadows():
    check_derivatives(at_places, A, 0.7)


def recursive(a, n, x):
    if n == 0:
        return x
    s = x
    for i in range(n):
        s = math.sin(s) * a[i]
        s = s * s + a[i] * s
    for i in range(n):
        s = math.cos(s) + s * a[i]
    return recursive(a, n - 1, s) + s


def test_recursion():
    check_derivatives(recursive, A, 4, 0.6)


def only_if_few(a, n, x):
    """An array that some calls do not make, of a length that they could not make it with."""
    if n < 10:
        w = np.zeros(n)
    s = math.sin(x)
    if n < 10:
        w[0] = a[0] * s
    s = math.sin(s)
    if n < 10:
        s += w[0] * w[0]
    return s


def few_and_many(a, x):
    return only_if_few(a, 3, x) + 2.0 * only_if_few(a, 10**15, x)


def only_if_six(v, x):
    """A view that some calls do not take, of a shape that does not fit there."""
    if v.size == 6:
        m = v.reshape(2, 3)
    s = math.sin(x)
    if v.size == 6:
        s += math.sin(m[1, 0] * s)
    s = math.sin(s)
    if v.size == 6:
        s += m[0, 0] * x
    else:
        s += only_if_six(v[1:], s)
    return s


def test_what_is_not_made_is_not_made_again():
    check_derivatives(few_and_many, A, 0.7)
    check_derivatives(only_if_six, np.linspace(0.1, 0.9, 8), 0.7)


def only_if_some(a, n, x):
    if n > 0:
        w = np.zeros(n)
    s = math.sin(x)
    if n > 0:
        w[0] = a[0] * s
    s = math.sin(s)
    if n > 0:
        s += w[0] * w[0]
    return s


def test_what_is_not_made_is_not_made_again_in_pullbacks():
    value, back = pullback(only_if_some, A, -3, 0.7)
    assert value == only_if_some(A, -3, 0.7)
    da, _, dx = back(1.0)
    np.testing.assert_array_equal(da, np.zeros(5))
    np.testing.assert_allclose(dx, math.cos(math.sin(0.7)) * math.cos(0.7), rtol=1e-14)


# ------------------------------------------------------------------------------- records of their own


def of_one_record(a, n, x):
    s = x
    for i in range(n):
        s = s * s * a[i]
    return s


def of_two_lengths(a, n, x):
    s = x
    for i in range(n):
        s = s * s + a[i]
    for i in range(n + 1):
        s = s * s * a[i]
    return s


def of_a_number_and_an_array(a, n, x):
    """The lengths are known in two ways, and may be equal."""
    s = x
    for i in range(len(a)):
        s = s * s + a[i]
    for i in range(n):
        s = s * s * a[i]
    return s


def of_two_types(a, n, x):
    """Numbers, and positions."""
    s, k = x, 0
    for _ in range(n):
        s = s * s * a[k] + 0.5
        k = (3 * k + 1) % 5 if a[k] > 0.2 else k + 1
    return s


def of_numbers_and_complex_ones(a, n, x):
    s, z = x, complex(x, 1.0)
    for i in range(n):
        s = s * s + a[i]
        z = z * z * 0.5 + a[i]
    return s * abs(z)


def of_two_ways(a, n, x):
    """Neither is made before the other."""
    s = x
    if x > 0.3:
        for i in range(n):
            s = s * s + a[i]
    else:
        for i in range(n):
            s = s * s * a[i] + 0.2
    return s


def of_a_way_and_afterwards(a, n, x):
    """The first is not made in each run."""
    s = x
    if x > 0.3:
        for i in range(n):
            s = s * s + a[i]
    for i in range(n):
        s = s * s * a[i] + 0.2
    return s


def of_two_axes(a, n, x):
    s = x
    for i in range(n):
        for j in range(n):
            s = math.sin(s) + a[i]
            s = s * s * 0.3 + a[j] * s
    return s


def without_a_count(a, n, x):
    """Lists in the place of records."""
    s = x
    while s < 2.0 + a[0]:
        s = s * s + 1.0
    while s > 0.5 + a[n]:
        s = 0.9 * math.sin(s)
    return s


def of_the_function_itself(a, n, x):
    """Arrays of the function, not records."""
    u, v, s = np.zeros(n), np.zeros(n), x
    for i in range(n):
        u[i] = a[i] * x
        v[i] = u[i] + x
    for i in range(n):
        s += u[i] * v[n - 1 - i]
    return s


OF_THEIR_OWN = [of_one_record, of_two_lengths, of_a_number_and_an_array, of_two_types, of_numbers_and_complex_ones]
OF_THEIR_OWN += [of_two_ways, of_a_way_and_afterwards, of_two_axes, without_a_count, of_the_function_itself]


@pytest.mark.parametrize("g", one_in(3, OF_THEIR_OWN), ids=lambda g: g.__name__)
def test_records_that_are_not_joined(g):
    def f(a, x):
        return g(a, 3, x) + g(a, 2, 0.5 * x) * x

    check_not_made("joined-records", f, A + 0.2, 0.7)
