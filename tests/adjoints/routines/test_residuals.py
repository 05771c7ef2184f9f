"""The values that a forward function saves: those that the reverse function uses, and that the caller does not have."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from zygote_py import gradient
from zygote_py.frontend import program

pytestmark = pytest.mark.interpreted

A = np.linspace(0.1, 0.9, 4)


@pytest.fixture(autouse=True)
def nothing_is_inlined(monkeypatch):
    """But what is called in one place only."""
    monkeypatch.setattr(program, "_MOST_STATEMENTS", -1)


def shifted(a, x):
    s = x
    for i in range(len(a)):
        s = s * a[i] + math.sin(s)
        if s < 0.0:
            s -= 1.0
    return s


def in_a_loop(a, x):
    y = x
    for _ in range(3):
        y = 0.5 * shifted(a, y) + shifted(a, -0.3 * y)
    return y


def test_a_condition_of_two_equal_ways_is_not_saved():
    check_derivatives(in_a_loop, A, 0.45)
    source = gradient(in_a_loop).source(A, 0.45)
    assert "def shifted_reverse(a, da, s_record, dy):" in source
    assert "c_record" not in source


def of_many(a, b, n, x):
    """A function that saves more than it would return: it has a list of its own."""
    s = t = u = x
    for i in range(n):
        s = math.sin(s) * a[i] + b[i]
        t = math.sin(t) * s
        u = math.sin(u) * t + s * x
    if x > 0.5:
        for i in range(n):
            s = math.exp(-s * s) * b[i]
            t = math.exp(-t * t) * s
    else:
        for i in range(n):
            u = math.exp(-u * u) * a[i]
            s = math.exp(-s * s) * u
    for i in range(n):
        s = math.cos(s * t) * u
        u = math.cos(u * s) + a[i] * b[i]
        t = math.cos(t) * s
    return s * t * u


def many_times(a, b, x):
    y = x
    for k in range(4):
        y = 0.3 * of_many(a, b, k, y) + of_many(a, b, len(b), 0.9 * y)
    return y


def test_a_list_of_records_holds_no_arguments(monkeypatch):
    b = np.linspace(0.5, -0.4, 4)
    for without in ("", "joined-records"):
        monkeypatch.setenv("ZYGOTE_PY_WITHOUT", without)
        for x in (0.3, 0.8):
            check_derivatives(many_times, A, b, x)
    source = gradient(many_times).source(A, b, 0.3)
    assert "def of_many_reverse(records, a, b, n, x, da, db, dy):" in source, source


def overwritten(a, n, x):
    s = x
    for i in range(n):
        s = math.sin(s) * a[i] + s * s * a[n - 1 - i]
    return s


def with_other_arrays(a, x):
    """The arguments are not those of the forward function any more when the reverse function runs."""
    b, y, n = a.copy(), x, 1
    for k in range(4):
        y += overwritten(b, n, y) + 0.1 * overwritten(a, 4 - k, 0.5 * y)
        b[k] = 0.2 * y
        n += k % 2
        if k == 2:
            b = b * 0.5
    return y


def test_arguments_that_change_afterwards():
    check_derivatives(with_other_arrays, A, 0.4)
