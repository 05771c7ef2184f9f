"""`map`, `filter` and `reduce`, with functions that capture active variables, wherever they are consumed."""

# ruff: noqa: C417, B905
import functools
import math
from functools import reduce

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient

pytestmark = pytest.mark.interpreted

X = np.array([0.5, 1.5, -2.0, 0.3])


def square(v):
    return v * v


@numba.njit
def cube(v):
    return v * v * v


def in_loops(x, w):
    s = 0.0
    for u in map(lambda v: v * v * w, x):
        s += u * u
    for u in map(square, x):
        s += u * w
    for u in map(cube, map(math.sin, x)):
        s = s * 0.5 + u * w
    for u in map(lambda i: x[i] * w, range(1, 4)):
        s += u * s
    for u in map(lambda a, b, c: a * b * w + c, x, x[1:], (1.0, 2.0, 3.0)):
        s += u
    return s


def filtered(x, w):
    s = 0.0
    for u in filter(lambda v: v * w > 0.2, x):
        s += u * w
    for u in filter(lambda v: v > 0.2, map(lambda v: v * w, x)):
        s += u * u
    for u in map(square, filter(lambda v: v < 1.0, x)):
        s += u * w
    for i in filter(None, range(4)):
        s += x[i] * i
    return s


def nested(x, w):
    s = 0.0
    for i in range(3):
        before = s * i
        for u in map(lambda v: v * w + before, x):
            for t in filter(lambda v: v > 0.0, (u, w, x[i])):
                if t > 2.5:
                    break
                s += t * 0.1
            else:
                s += 0.01 * u
    return s


def with_zip_and_enumerate(x, w):
    s = 0.0
    for i, u in enumerate(map(lambda v: v * w, x)):
        s += u * i
    for i, u in enumerate(map(square, x), 2):
        s += u * i * w
    for a, u in zip(x, map(lambda v: v * w, x[1:])):
        s += u * a
    for i, (a, u) in enumerate(zip(map(square, x), map(lambda v: v * w, x))):
        s += a * u * i
    return s


def to_values(x, w):
    s = sum(map(lambda v: v * w, x))
    s += max(map(lambda v: v * w, x)) * min(map(square, x))
    s += np.sum(np.array(list(map(lambda v: v * w, x))) * x)
    kept = list(filter(lambda v: v > 0.0, x))
    s += kept[0] * kept[-1] * len(kept)
    s += sum([u * w for u in map(square, x)])
    s += sum([u * w for u in filter(lambda v: v > 0.4, x)])
    s += sum(map(square, filter(lambda v: v > 0.4, map(lambda v: v * w, x))))
    s += sorted(map(lambda v: v * w, x))[1]
    return s


def comprehensions(x, w):
    a = np.array([u * w for u in map(square, x)])
    b = np.array([u * w for u in filter(lambda v: v > 0.0, x)])
    return np.sum(a * x) + np.sum(b) * len(b)


def of_tuples_and_lists(x, w):
    items = [w, x[0], x[1] * w]
    s = 0.0
    for u in map(lambda v: v * w, (x[0], w, 2.0)):
        s += u * u
    for u in map(lambda v: v * x[2], items):
        s += u * u
    return s + sum(map(square, items))


def reduced(x, w):
    s = reduce(lambda a, b: a * b * w, x)
    s += functools.reduce(lambda a, b: a * w + b, x, w)
    return s + reduce(max, x) * reduce(lambda a, b: a + b, (w, x[0], 2.0))


def is_lazy(x, w):
    y = x.copy()
    s = 0.0
    for i, u in enumerate(map(lambda v: v * w, y)):
        if i + 1 < len(y):
            y[i + 1] += u * 0.1
        s += u * u
    for u in map(square, y):
        if u > 2.0:
            break
        y[3] = u * w
        s += u
    return s + y[3]


@pytest.mark.parametrize(
    "f",
    one_in(
        2,
        [
            in_loops,
            to_values,
            filtered,
            with_zip_and_enumerate,
            nested,
            comprehensions,
            of_tuples_and_lists,
            reduced,
            is_lazy,
        ],
    ),
)
def test_against_differences(f):
    check_derivatives(f, X, 0.7)
    check_derivatives(f, -X * 0.8 + 0.1, 1.2)


def given_functions(f, p, x):
    s = 0.0
    for u in map(f, x):
        s += u
    for u in filter(p, x):
        s += u * u
    return s + sum(map(f, x)) + reduce(f2, x)


def f2(a, b):
    return a * b


def test_functions_that_are_arguments():
    check_derivatives(given_functions, math.sin, lambda v: v > 0.0, X)
    check_derivatives(given_functions, cube, lambda v: v < 1.0, X)


def twice(x, w):
    m = map(lambda v: v * w, x)
    return sum(m) + sum(m)


def in_a_loop(x, w):
    m = map(lambda v: v * w, x)
    s = 0.0
    for _ in range(2):
        for u in m:
            s += u
    return s


def passed(x, w):
    return consume(map(lambda v: v * w, x))


def consume(m):
    s = 0.0
    for u in m:
        s += u
    return s


def zipped_filter(x, w):
    s = 0.0
    for a, b in zip(x, filter(lambda v: v > 0.0, x)):
        s += a * b * w
    return s


def reads_what_the_loop_changes(x, w):
    s = w
    for u in map(lambda v: v * s, x):
        s += u
    return s


def generated(x, w):
    return sum(v * w for v in x)


def with_next(x, w):
    return next(map(square, x)) * w


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (twice, "this use of `map` is not supported"),
        (in_a_loop, "this use of `map` is not supported"),
        (passed, "this use of `map` is not supported"),
        (zipped_filter, "this use of `filter` is not supported"),
        (reads_what_the_loop_changes, "`s` is assigned after the lambda that uses it was made"),
        (generated, "a generator expression is not supported"),
        (with_next, "this use of `map` is not supported"),
    ],
)
def test_refusals(f, message):
    with pytest.raises(DifferentiationError, match=message):
        gradient(f)(X, 0.7)
