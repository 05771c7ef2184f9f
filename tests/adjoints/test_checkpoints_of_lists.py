"""Lists and dicts that functions with a checkpoint take or capture, and that change before these run again.

The references are differences of the programs themselves, in plain Python.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba.typed import List

from tests.api.test_containers import Spring
from tests.modes import one_in
from zygote_py import DifferentiationError, checkpoint, derivative, gradient

pytestmark = pytest.mark.interpreted


def product(s, x):
    return s[0] * s[1] * x


def of_a_list(x):
    s = [x, 2 * x]
    y = checkpoint(product)(s, x)
    s[0] = 1.0
    return y + s[0] * s[1]


def of_a_typed_list(x):
    s = List()
    s.append(x)
    s.append(x * x)
    y = checkpoint(product)(s, x)
    s[0] = 1.0
    s.append(x)
    return y * s[0] * x * len(s)


def of_a_dict(x):
    s = {0: x, 1: 2 * x}
    y = checkpoint(product)(s, x)
    s[0] = 1.0
    del s[1]
    return y + s[0]


def of_lists(x):
    s = [[x], [2 * x, x]]
    y = checkpoint(lambda s, x: s[0][0] * s[1][1] * x)(s, x)
    s[0][0] = 1.0
    s[1].pop()
    return y + s[0][0] * s[1][0]


def of_tuples(x):
    s = [(x, 1), (2 * x, 3)]

    def f(s, x):
        total = 0.0
        for u, n in s:
            total += u * u * n * x
        return total

    y = checkpoint(f)(s, x)
    s[0] = (1.0, 2)
    return y + s[0][0] * s[1][0]


def captured(x):
    s = [x, 2 * x]
    y = checkpoint(lambda x: s[0] * s[1] * x)(x)
    s[0] = 1.0
    return y + s[0] * s[1]


def twice(x):
    s = [x, 2 * x]
    y = checkpoint(lambda s, t, x: s[0] * t[1] * x)(s, s, x)
    s[0] = 1.0
    return y * s[0] * x


def in_a_tuple(x):
    t = ([x, 2 * x], x)
    y = checkpoint(lambda t, x: t[0][0] * t[0][1] * t[1] * x)(t, x)
    t[0][0] = 1.0
    return y * t[0][0] * x


def in_a_loop(x):
    s = [0.1 * x, 0.2]
    y = 0.0
    for _ in range(3):
        d = {0: y, 1: x}
        y = checkpoint(lambda s, d, x: s[0] * d[0] + s[1] * d[1] * x)(s, d, x)
        d[0] = 5.0
        s[1] = y
        s.append(y)
    return y * d[0]


def that_changes_a_copy(x):
    s = [x, 2 * x]

    def f(s, x):
        t = s.copy()
        t.append(x)
        d = {1: x}
        for i in range(len(t)):
            d[i] = t[i] * d[1]
        return d[0] * d[2]

    y = checkpoint(f)(s, x)
    s.clear()
    return y * x


CASES = [
    of_a_list, of_a_typed_list, of_a_dict, of_lists, of_tuples,
    captured, twice, in_a_tuple, in_a_loop, that_changes_a_copy,
]  # fmt: skip


@pytest.mark.parametrize("function", one_in(2, CASES))
def test_the_second_run_sees_what_the_first_one_saw(function):
    x, h = 1.3, 1e-4
    up, middle, down = function(x + h), function(x), function(x - h)
    slope, curvature = (up - down) / (2 * h), (up - 2 * middle + down) / h**2
    assert math.isclose(gradient(function)(x), slope, rel_tol=1e-6)
    assert math.isclose(derivative(function)(x), slope, rel_tol=1e-6)
    assert math.isclose(derivative(gradient(function))(x), curvature, rel_tol=1e-5)


@pytest.mark.compiled
def test_in_compiled_code():
    h = 1e-5
    assert math.isclose(gradient(in_a_loop)(1.3), (in_a_loop(1.3 + h) - in_a_loop(1.3 - h)) / (2 * h), rel_tol=1e-8)


def changes_a_list(x):
    s = [x, 2 * x]

    def f(s, x):
        s[0] = x * x
        return s[0] * s[1]

    y = checkpoint(f)(s, x)
    return y * s[0]


def changes_a_captured_dict(x):
    s = {1: x}

    def f(x):
        s[2] = x * x
        return s[1] * s[2]

    y = checkpoint(f)(x)
    return y * len(s)


def changes_a_list_in_a_list(x):
    s = [[x], [2 * x]]

    def f(s, x):
        row = s[0]
        row.append(x * x)
        return row[0] * row[1]

    y = checkpoint(f)(s, x)
    return y * len(s[0])


@pytest.mark.parametrize("function", [changes_a_list, changes_a_captured_dict, changes_a_list_in_a_list])
@pytest.mark.parametrize("transform", [gradient, derivative])
def test_a_change_of_the_list_is_refused(transform, function):
    with pytest.raises(DifferentiationError, match=r"`f` has a checkpoint, and changes .*, a list or a dict"):
        transform(function)(1.3)


def of_arrays(x):
    a = np.array([x, 2 * x])
    s = [a]

    def f(s, a, x):
        a[0] = x * x
        return s[0][0] * x

    return checkpoint(f)(s, a, x) * a[0]


def of_objects(x):
    s = [Spring(x, 2, np.ones(2))]
    y = checkpoint(lambda s, x: s[0].a * x)(s, x)
    s[0].a = 3.0
    return y


@pytest.mark.parametrize(
    ("function", "what"), [(of_arrays, "a list of arrays"), (of_objects, "an object of a jitclass")]
)
def test_what_has_no_copy_is_refused(function, what):
    with pytest.raises(DifferentiationError, match=f"takes or returns {what}"):
        gradient(function)(1.3)
