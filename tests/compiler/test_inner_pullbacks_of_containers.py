"""`pullback` of functions of lists and dicts, and of functions that capture them, in functions that are differentiated.

Each program changes the list or the dict between the call of `pullback` and that of the pullback. The references are
hand-written derivatives in plain Python, and differences of these.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba.typed import List

from tests.api.test_containers import Spring, typed_dict
from tests.modes import one_in
from zygote_py import DifferentiationError, derivative, gradient, jvp, pullback

DTYPE = np.dtype([("a", "f8"), ("b", "f8")])


def product(s, x):
    return s[0] * s[1] * x


def product_of_arrays(s, x):
    return (s[0] * s[1]).sum() * x


def product_of_lists(s, x):
    return s[0][0] * s[1][0] * s[1][1] * x


def of_a_list(x):
    s = [x, x * x]
    v, back = pullback(product, s, x)
    s[0] = 1.0
    g, h = back()
    return g[0] * g[1] + h * s[0] + v


def of_a_typed_list(x):
    s = List()
    s.append(x)
    s.append(x * x)
    v, back = pullback(product, s, x)
    s.append(3.0)
    s[0] = 1.0
    g, h = back()
    return g[0] * g[1] + h * s[0] + v


def of_a_dict(x):
    s = {0: x, 1: x * x}
    v, back = pullback(product, s, x)
    s[0] = 1.0
    del s[1]
    g, h = back()
    return g[0] * g[1] + h * s[0] + v


def of_numbers_by_hand(x):  # v = x s0 s1
    return (x * x * x) * (x * x) + x**3 * 1.0 + x**4


def of_arrays(x):
    s = [np.array([x, x]), np.array([1.0, x * x])]
    v, back = pullback(product_of_arrays, s, x)
    s[0][0] = 1.0
    g, h = back()
    return (g[0] * g[1]).sum() + h * s[0][0] + v


def of_a_typed_list_of_arrays(x):
    s = List([np.array([x, x]), np.array([1.0, x * x])])
    v, back = pullback(product_of_arrays, s, x)
    s[0][0] = 1.0
    g, h = back()
    return (g[0] * g[1]).sum() + h * s[0][0] + v


def of_a_dict_of_arrays(x):
    s = {0: np.array([x, x]), 1: np.array([1.0, x * x])}
    v, back = pullback(product_of_arrays, s, x)
    s[0][0] = 1.0
    g, h = back()
    return (g[0] * g[1]).sum() + h * s[0][0] + v


def of_arrays_by_hand(x):
    return (x * x**2 + x**3 * x**2) + (x + x**3) * 1.0 + (x + x**3) * x


def of_lists(x):
    s = [[x], [x * x, 2.0]]
    v, back = pullback(product_of_lists, s, x)
    s[0][0] = 1.0
    s[1].pop()
    g, h = back()
    return g[0][0] * g[1][1] + h * s[0][0] + v


def of_lists_by_hand(x):  # v = x s00 s10 s11
    return (x * x * x * 2.0) * (x * x * x * x) + 2.0 * x**3 * 1.0 + 2.0 * x**4


def of_a_tuple(x):
    s = [x, x * x]
    v, back = pullback(lambda t, x: t[0][0] * t[0][1] * t[1] * x, (s, x), x)
    s[0] = 1.0
    g, h = back()
    return g[0][0] * g[0][1] + h * s[0] + v * g[1]


def of_a_tuple_by_hand(x):
    return x**4 * x**3 + x**4 * 1.0 + x**5 * x**4


def with_a_seed(x):
    s = [x, x * x]
    v, back = pullback(lambda s, x: np.array([s[0] * x, s[1] * s[0]]), s, x)
    g, h = back(np.array([x, 2.0]))
    return g[0] * g[1] + h + v[0]


def with_a_seed_by_hand(x):
    return (x * x + 2.0 * x * x) * (2.0 * x) + x * x + x * x


def in_a_loop(x):
    total = 0.0
    s = [x, x * x]
    for _ in range(3):
        v, back = pullback(product, s, x)
        s[0] = v
        for _ in range(2):
            g, h = back()
            total += g[0] * h + g[1]
    return total


def in_a_loop_by_hand(x):
    total = 0.0
    a, b = x, x * x
    for _ in range(3):
        total += 2 * ((b * x) * (a * b) + a * x)
        a = a * b * x
    return total


def of_integers(x):
    s = [1, 2]
    _, back = pullback(product, s, x)
    s[0] = 5
    return back()[1] * x


def of_integers_by_hand(x):
    return 2.0 * x


def of_a_structured_array(x):
    s = np.zeros(1, DTYPE)
    s[0]["a"] = x
    s[0]["b"] = 2.0 * x
    _, back = pullback(lambda s, x: s[0]["a"] * s[0]["b"] * x * x, s, x)
    s[0]["a"] = 3.0
    g, h = back()
    return g[0]["b"] * h


def of_a_structured_array_by_hand(x):
    return (x * x * x) * (2.0 * x * 2.0 * x * x)


def captured(x):
    s = [(x, 1), (2.0 * x, 2)]

    def f(x):
        total = 0.0
        for u, n in s:
            total += u * n * x
        return total

    _, back = pullback(f, x)
    s[0] = (7.0 * x, 3)
    s.append((x, 4))
    return back()[0] * s[0][0]


def captured_by_hand(x):
    return 5.0 * x * 7.0 * x


def captured_dict(x):
    s = {x: np.array([x]), 2.5: np.array([2.0 * x])}

    def f(x):
        total = 0.0
        for key, value in s.items():
            total += key * value[0] * x
        return total

    _, back = pullback(f, x)
    s[2.5][0] = 7.0
    del s[x]
    return back()[0] * s[2.5][0]


def captured_dict_by_hand(x):
    return (x * x + 5.0 * x) * 7.0


def captured_lists(x):
    s = [[x], [2.0 * x, x]]
    _, back = pullback(lambda x: s[0][0] * s[1][0] * x, x)
    s[0][0] = x * x
    s[1].append(2.0)
    return back()[0] * s[0][0]


def captured_lists_by_hand(x):
    return 2.0 * x * x * x * x


def keys_of_a_gradient(d, x):
    def f(d, x):
        total = 0.0
        for key, value in d.items():
            total += key * value * value * x
        return total

    g, _ = gradient(f)(d, x)
    total = 0.0
    for key, value in g.items():
        total += key * value
    return total


CASES = [
    (of_a_list, of_numbers_by_hand),
    (of_a_typed_list, of_numbers_by_hand),
    (of_a_dict, of_numbers_by_hand),
    (of_arrays, of_arrays_by_hand),
    (of_a_typed_list_of_arrays, of_arrays_by_hand),
    (of_a_dict_of_arrays, of_arrays_by_hand),
    (of_lists, of_lists_by_hand),
    (of_a_tuple, of_a_tuple_by_hand),
    (with_a_seed, with_a_seed_by_hand),
    (in_a_loop, in_a_loop_by_hand),
    (of_integers, of_integers_by_hand),
    (of_a_structured_array, of_a_structured_array_by_hand),
    (captured, captured_by_hand),
    (captured_dict, captured_dict_by_hand),
    (captured_lists, captured_lists_by_hand),
]


def slope(function, x, h=1e-5):
    return (function(x + h) - function(x - h)) / (2 * h)


@pytest.mark.interpreted
@pytest.mark.parametrize(("function", "by_hand"), one_in(2, CASES))
def test_pullbacks_do_not_see_what_happens_later(function, by_hand):
    value, tangent = jvp(function, (1.3,), (1.0,))
    assert math.isclose(value, by_hand(1.3), rel_tol=1e-12)
    assert math.isclose(tangent, slope(by_hand, 1.3), rel_tol=1e-7)
    assert math.isclose(gradient(function)(1.3), slope(by_hand, 1.3), rel_tol=1e-7)


@pytest.mark.parametrize(("function", "by_hand"), [CASES[5], CASES[12]])
def test_in_compiled_code(function, by_hand):
    assert math.isclose(gradient(function)(1.3), slope(by_hand, 1.3), rel_tol=1e-7)
    assert math.isclose(
        derivative(derivative(function))(1.3), slope(lambda x: slope(by_hand, x, 1e-4), 1.3, 1e-4), rel_tol=1e-5
    )


@pytest.mark.interpreted
def test_the_floats_in_keys_of_a_gradient_have_adjoints():  # the sum is 2 x (1.5^2 a + 2.5^2 b)
    of_d, of_x = gradient(keys_of_a_gradient)(typed_dict({1.5: 1.3, 2.5: 1.7}), 2.0)
    assert math.isclose(of_x, 2.0 * (1.5**2 * 1.3 + 2.5**2 * 1.7), rel_tol=1e-13)
    assert list(of_d.items()) == [(1.5, 2.0 * 2.0 * 1.5**2), (2.5, 2.0 * 2.0 * 2.5**2)]


def of_an_object(x):
    o = Spring(x, 2, np.ones(2))
    _, back = pullback(lambda o, x: o.a * x, o, x)
    o.a = 5.0
    return back()[1]


def of_an_object_in_a_list(x):
    o = Spring(x, 2, np.ones(2))
    _, back = pullback(lambda s, x: s[0].a * x, [o], x)
    o.a = 5.0
    return back()[1]


def captured_objects(x):
    s = [Spring(x, 2, np.ones(2))]
    _, back = pullback(lambda x: s[0].a * x, x)
    s[0].a = 5.0
    return back()[0]


def of_a_record(x):
    s = np.zeros(1, DTYPE)
    r = s[0]
    r["a"] = x
    _, back = pullback(lambda r, x: r["a"] * x, r, x)
    s["a"][0] = 5.0
    return back()[1]


@pytest.mark.interpreted
@pytest.mark.parametrize("function", [of_an_object, of_an_object_in_a_list, captured_objects, of_a_record])
def test_what_cannot_be_copied_is_refused(function):
    with pytest.raises(DifferentiationError, match=r"takes a record or an object|captures a list or a dict of objects"):
        gradient(function)(1.3)


@pytest.mark.interpreted
def test_a_list_as_the_value_of_an_inner_pullback_is_refused():
    def f(x):
        _, back = pullback(lambda x: [x, x * x], x)
        return back([1.0, 2.0])[0]

    with pytest.raises(DifferentiationError, match="as the result of a pullback's function"):
        gradient(f)(1.3)


# ---------------------------------------------------------------------------------------------- arrays that are shared


def writes_to_the_first(a, b, x):
    a[0] = x * b[1]
    return a[0] * b[0] * a[1]


def one_array_twice(x):
    a = np.array([x, 2.0])
    _, back = pullback(writes_to_the_first, a, a, x)
    return back()[2]


def overlapping_parts(x):
    a = np.array([x, 2.0, x])
    _, back = pullback(writes_to_the_first, a[:2], a[1:], x)
    return back()[2]


def argument_and_captured(x):
    a = np.array([x, 2.0])

    def f(b):
        b[0] = x * x
        return a[0] * b[1]

    _, back = pullback(f, a)
    return back()[0][1]


@pytest.mark.interpreted
@pytest.mark.parametrize("function", [one_array_twice, overlapping_parts, argument_and_captured])
@pytest.mark.parametrize("transform", [gradient, derivative])
def test_arrays_that_share_memory_and_are_written_to(transform, function):  # copies of them would not share it
    with pytest.raises(ValueError, match="share memory, and one is written to"):
        transform(function)(1.3)


def two_arrays(x):
    a, b = np.array([x, 2.0]), np.array([3.0, x])
    v, back = pullback(writes_to_the_first, a, b, x)
    b[0], a[1] = 9.0, 7.0
    g = back()
    return g[2] * g[1][0] + v * a[0]


def two_arrays_by_hand(x):  # v = x b0 b1 a1, and a0 = x b1
    return (6.0 * x) * (2.0 * x * x) + (6.0 * x * x) * (x * x)


@pytest.mark.interpreted
def test_arrays_that_are_written_to():
    assert math.isclose(gradient(two_arrays)(1.3), slope(two_arrays_by_hand, 1.3), rel_tol=1e-7)
    assert math.isclose(derivative(two_arrays)(1.3), slope(two_arrays_by_hand, 1.3), rel_tol=1e-7)
