"""Recursive functions that take lists, dicts and objects, and change them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit
from numba.core.errors import NumbaPendingDeprecationWarning

import zygote_py as zg
from tests.api.test_containers import Spring, typed
from tests.api.test_second_order_of_containers import close, inner, like, second, slope_in
from zygote_py import derivative, gradient, hvp

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{NumbaPendingDeprecationWarning.__module__}.NumbaPendingDeprecationWarning"
)


def down(s, n):
    if n == 0:
        return s[0] ** 2
    s[n - 1] = s[n] * s[n - 1]
    return down(s, n - 1) * s[n] + s[0]


def alternate(a, b, n):
    if n == 0:
        return a[-1] * b[-1]
    a.append(b[-1] * a[0])
    b.pop()
    return alternate(b, a, n - 1) + b[0] * a[1]


def memoised(d, n, x):
    if n in d:
        return d[n]
    found = memoised(d, n - 1, x) * x + math.sin(n * x)
    d[n] = found
    if n % 3 == 0:
        del d[n - 2]
    return found


def through_arrays(s, n):
    if n == 0:
        return s[0][0]
    s[n][0] = s[n - 1][0] * s[n][1]
    s[n - 1] = s[n] * 2.0
    return through_arrays(s, n - 1) + s[n][0]


@njit
def of_spring(o, k, y):
    if k == 0:
        return o.a * y
    o.a = o.a * y + o.v[1]
    o.v[0] = o.a
    return o.a * of_spring(o, k - 1, y * o.v[0])


def of_the_list(x):
    s = [x, math.sin(x), x * x]
    first = s[0] * s[2]
    return first * down(s, 2) + s[0] * s[1]


def of_one_list_twice(x):
    s = [x, x * x, x, 2.0 * x, x * 3.0]
    return alternate(s, s, 2)


def of_a_dict(x):
    d = {0: x}
    last = memoised(d, 5, x)
    total = 0.0
    for key, value in d.items():
        total += key * value
    return last * total + memoised(d, 6, x)


def of_arrays_in_a_list(x):
    s = [np.ones(2) * x, np.array([x, x * x]), np.ones(2) * math.sin(x)]
    return through_arrays(s, 2) + s[0][1] * s[1][0] * s[2][1]


def of_an_object_made(x):
    o = Spring(x, 2, np.ones(3) * x)
    return of_spring(o, 2, x) + o.a * o.v[0]


def reassigned(x, n):
    """A dict that is made anew in a loop, in a function that remains a call."""
    if n == 0:
        return x
    d = {"a": x}
    for i in range(n):
        if i > 1:
            break
        d = {"a": d["a"] * x, "b": x}
    return reassigned(math.sin(x), n - 1) * d["a"]


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "function",
    [
        of_the_list,
        lambda x: alternate([x, x * x, x], [2.0 * x, math.sin(x), x + 1.0], 2),
        of_one_list_twice,
        of_a_dict,
        of_arrays_in_a_list,
        lambda x: reassigned(x, 3),
    ],
    ids=["list", "two lists", "one list twice", "dict", "arrays in a list", "made anew"],
)
def test_recursive_functions(function):
    check_recursive(function, 0.9)


def test_an_object_in_recursive_functions():
    check_recursive(of_an_object_made, 0.9, njit(of_an_object_made))


def check_recursive(function, x, compiled=None):
    plain_one = compiled or function
    expected = (plain_one(x + 1e-6) - plain_one(x - 1e-6)) / 2e-6
    assert close(gradient(function)(x), expected)
    assert close(derivative(function)(x), expected)
    bent = (plain_one(x + 1e-4) - 2.0 * plain_one(x) + plain_one(x - 1e-4)) / 1e-8
    assert math.isclose(zg.hessian(function)(x), bent, rel_tol=1e-4)


def of_tree(values, left, right, i):
    if i < 0:
        return 0.0
    return np.tanh(values[i] + of_tree(values, left, right, left[i]) * of_tree(values, left, right, right[i]))


def test_lists_that_are_arguments_of_recursive_functions():
    left, right = [1, -1, 3, -1], [2, -1, -1, -1]
    values = [0.1, 0.2, 0.3, 0.5]
    random = np.random.default_rng(7)
    v, w = like(values, random), like(values, random)

    def f(s, x):
        return of_tree(s, left, right, 0)

    found, *_ = gradient(of_tree)(values, left, right, 0)
    assert close(inner(found, w), slope_in(f, values, w))
    product = hvp(of_tree)(typed(*values), typed(*left), typed(*right), 0, typed(*v))
    assert close(inner(product, w), second(f, values, v, w))
