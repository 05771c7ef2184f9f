"""The joint function against the adjoint run on the primal's trace: the records give every alpha what it held."""

import math

import numpy as np
import pytest

from tests.adjoints.stages import stages
from tests.checking.slopes import differences
from tests.checking.trees import real_parts
from zygote_py.ir import Trace, interpret, interpret_adjoint

X = np.array([0.5, 1.5, -2.5, 0.25])
A = np.array([[1.0, 2.0, 0.5], [0.25, -1.0, 3.0]])


def counting(x, n):
    r = 1.0
    while n > 0:
        n -= 1
        r *= x
    return r


def left_by_break(x, n):
    s = 0.0
    for i in range(100):
        if s > n:
            break
        s += x * math.sin(x + i) + 1.0
    return s * x


def early_return_from_two_loops(x, n):
    s = 0.0
    for i in range(n):
        for j in range(i):
            s += x * j
            if s > 6.0:
                return s * x
        s *= x
    return s


def endless_with_continue(x):
    k = 0
    while True:
        x = x * x + 0.3
        k += 1
        if x > 0.9 or k > 10:
            break
        if k == 3:
            continue
        x = math.cos(x)
    return x


def swapped(a, b, n):
    for _ in range(n):
        a, b = b, a * 0.5 + math.sin(b)
    return a * b


def inner_loop_of_unknown_length(x, n):
    s = x
    for i in range(n):
        k = 0
        while s < i and k < 5:
            s = s + x * s + 0.1
            k += 1
        s = s * 0.5 * (k + x)
    return s


def short_circuits(x, y, n):
    s = 0.0
    for i in range(n):
        if (x > 0.1 and y * x * i > 0.5) or (i == 0 and x < 1.0):
            s += x * y
        elif not (x < y or s > 2.0):
            s -= x
        else:
            s = s * x + y
    return s


def set_in_one_branch(x, n):
    s = x
    for i in range(n):
        t = 1.0
        if i % 2 == 0:
            t = math.sin(s)
            u = t * s
        if i % 2 == 0:
            s = s * u + t
        s = s * t
    return s


def work_in_the_condition(x):
    s = 0.0
    y = x
    while y * y < 4.0:
        s += y * y * x
        y = y * y + 1.1 * y
    return s + y


def rows_and_elements(x, a):
    s = 0.0
    for row in a:
        for v, w in zip(row, x):  # noqa: B905
            s += v * w * w
    return s * x[-1]


def chosen_array(x, a, n):
    s = 1.0
    for i in range(n):
        row = a[0] if i % 2 == 0 else a[1]
        s = s * row[i % 3] + x[i]
    return s


def tuple_components(t, n):
    a, b = t
    s = a
    for _ in range(n):
        for v in t:
            s = s * v + b
    return s


def growing_inner_loop(x, n):
    for i in range(n):
        for _ in range(i):
            x = math.sin(x) * x + 0.1
    return x


def steps_of_three(x, n):
    s = x
    for i in range(n, 0, -3):
        s = s * math.cos(x * i)
    for i in range(1, n, 2):
        s = s + s * x / i
    return s


def for_with_else(x, n):
    s = x
    for _ in range(n):
        if s > 3.0:
            break
        s = s * 1.5
    else:
        s = s * s
    return s * x


PROGRAMS = [
    (counting, [(1.5, 4), (1.5, 0), (0.0, 3), (2.0, -1)]),
    (left_by_break, [(1.3, 4), (1.3, -1)]),
    (early_return_from_two_loops, [(1.3, 4), (0.1, 4), (1.3, 0)]),
    (endless_with_continue, [(0.7,), (0.1,)]),
    (swapped, [(2.0, 3.0, 5), (2.0, 3.0, 0)]),
    (inner_loop_of_unknown_length, [(0.4, 6), (0.4, 0)]),
    (short_circuits, [(0.4, 2.0, 5), (3.0, 2.0, 4), (0.05, 0.01, 3)]),
    (set_in_one_branch, [(0.4, 5), (0.4, 0)]),
    (work_in_the_condition, [(0.5,), (3.0,)]),
    (rows_and_elements, [(X[:3], A)]),
    (chosen_array, [(X, A, 4), (X, A, 0)]),
    (tuple_components, [((0.5, 1.5), 3)]),
    (growing_inner_loop, [(0.4, 4), (0.4, 0)]),
    (steps_of_three, [(0.4, 8), (0.4, 0)]),
    (for_with_else, [(0.4, 3), (0.4, 9), (0.4, 0)]),
]
CASES = [pytest.param(f, args, id=f"{f.__name__}-{i}") for f, lists in PROGRAMS for i, args in enumerate(lists)]


@pytest.mark.parametrize(("func", "args"), CASES)
def test_the_joint_function_is_the_adjoint_of_the_trace(func, args):
    found = stages(func, *args)
    trace = Trace()
    value = interpret(found.primal, *args, trace=trace)
    assert value == func(*args)
    expected = interpret_adjoint(found.adjoint, trace, 1.0)
    actual = interpret(found.joint, *args)
    assert len(actual) == len(expected)
    for got, wanted in zip(actual, expected, strict=True):
        if wanted is None:
            assert got is None
        else:
            np.testing.assert_allclose(np.asarray(got, float), np.asarray(wanted, float), rtol=1e-14)


@pytest.mark.parametrize(("func", "args"), CASES)
def test_the_adjoint_agrees_with_differences(func, args):
    found = stages(func, *args)
    gradients = interpret(found.joint, *args)
    for arg, gradient in zip(args, gradients, strict=True):
        assert (gradient is None) == isinstance(arg, int)
    np.testing.assert_allclose(real_parts(gradients), differences(func, *args)[0], rtol=1e-7, atol=1e-8)
