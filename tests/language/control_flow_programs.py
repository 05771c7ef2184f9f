"""Functions with every form of control flow: `CASES` has each with the arguments that it is checked at.

The named traps are what other systems document as wrong in themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

CASES: list[tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = []
A = np.array([0.5, -1.25, 2.0, 0.75])
B = np.array([1.5, 0.25, -0.5, 3.0, 9.0])


def at(*inputs: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((function, inputs))
        return function

    return register


# Branches


@at((2.0, 1.0), (-2.0, 1.0), (0.5, 3.0), (0.1, 0.2))
def if_elif_else(x, y):
    if x > 1.0:
        r = x * y
    elif x < 0.0:
        r = x - y * y
    elif y > 1.0:
        r = y / x
    else:
        r = 7.0
    return r * x


@at((2.0, 1.0), (-2.0, 1.0))
def if_without_else(x, y):
    if x > 0.0:
        y = y * x
    return y * y


@at((2.0, 3.0), (4.0, -3.0), (-1.0, 0.5), (-0.2, 0.5))
def short_circuits(x, y):
    if x != 0.0 and y / x > 1.0:
        return y * x
    if x > 3.0 or not (y > 0.0 and x < -0.5):
        return x * x
    return x + y * y


@at((0.5, 2.0), (1.5, 2.0), (2.5, 2.0), (-1.0, 2.0))
def chained_comparison(x, y):
    return x * y if 0.0 < x < 1.0 else y if 1.0 <= x <= 2.0 < y + 1.0 else x * x * y


@at((2.0, 1.0), (-2.0, 1.0))
def value_of_and_or(x, y):
    c = x > 0.0 and y > 0.0
    d = c or x < -1.0
    return (x if c else y) * (y * x if d else 1.0)


@at((2.0, 3), (2.0, 4), (2.0, 0))
def nested_conditional_expressions(x, n):
    return (x if n > 3 else x * x) * (1.0 if n == 0 else (x + n if n % 2 else x - n))


@at((2.0, 1.0), (-2.0, 1.0))
def assigned_in_one_branch(x, y):
    flag = x > 0.0
    if flag:
        w = x * y
    y = y + 1.0
    if flag:
        y = y * w
    return y * x


@at((2.0, True), (2.0, False))
def a_bool_parameter(x, flag):
    return x * x if flag else x


@at((2.0, 1.0), (-2.0, 1.0))
def a_bool_is_a_number(x, y):
    return y * (x > 0.0) + (x > 1.0) * x


@at((2.0, 1), (3.0, 2), (4.0, 5))
def returns_in_all_arms(x, n):
    if n == 1:
        return x
    if n == 2:
        return x * x
    return 1.0 / x


@at((2.0, 1), (2.0, 5))
def an_int_is_returned_on_one_path(x, n):
    if n > 3:
        return 0
    return x * x


@at((2.0, 1), (2.0, 5))
def a_variable_is_an_int_or_a_float(x, n):
    r = 0
    if n > 3:
        r = x
    return r * x


# Loops


@at((2.0, 0), (2.0, 1), (-1.5, 5))
def while_loop(x, n):
    r = 1.0
    while n > 0:
        n -= 1
        r *= x
    return r


@at((2.0, 0), (2.0, 1), (-1.5, 5))
def for_range(x, n):
    r = x
    for i in range(n):
        r = math.sin(r) * x + i
    return r


@at((2.0, 0, 0), (2.0, 1, 4), (0.5, 3, 1))
def for_range_from(x, a, b):
    r = 1.0
    for i in range(a, b):
        r += r * x * i
    return r


@at((2.0, 0, 7, 2), (0.5, 7, 0, -3), (0.5, 3, 3, 1), (0.5, 0, 5, -1), (0.9, -4, 5, 4))
def for_range_with_any_step(x, a, b, s):
    r = x
    for i in range(a, b, s):
        r = math.sin(r * x) + i * x
    return r


@at((0.7, 6))
def for_range_backwards(x, n):
    r = x
    for i in range(n - 1, -1, -1):
        r = r * x + i
    return r


@at((0.7, 0), (0.7, 5))
def zero_trips_leave_the_first_value(x, n):
    r = x * x
    i = 17
    for i in range(n):  # noqa: B007
        r = r * 0.5 + x
    return r * i


@at((0.9, 3), (0.9, 0))
def nested_triangular(x, n):
    s = 0.0
    for i in range(n):
        for j in range(i):
            s += x**j
            for k in range(j, i):
                s = s * x + k
    return s


@at((0.9, 1), (0.9, 2))
def six_deep(x, n):
    s = x
    for a in range(n):
        for b in range(n):
            for c in range(a, n):
                for d in range(n):
                    for e in range(d + 1):
                        for f in range(n):
                            s = math.sin(s) + x * (a + b + c + d + e + f)
    return s


@at((3.7,), (0.2,), (1.5,))
def bounds_from_floats(x):
    s = 0.0
    for i in range(int(x)):
        for _ in range(int(x * i)):
            s += x * x
    return s + x


@at((2.0,), (30.0,))
def newton_until_it_settles(x):
    r = x
    while abs(r * r - x) > 1e-3:
        r = 0.5 * (r + x / r)
    return r


@at((0.3, 5), (0.9, 5), (0.9, 0))
def break_out(x, n):
    r = x
    for i in range(n):
        r = r * 1.5
        if r > 2.0:
            break
        r = r + 0.1 * i
    return r * r


@at((0.3, 5), (0.9, 5))
def break_before_anything(x, n):
    r = x
    for i in range(n):
        if r > 1.0:
            break
        r = r * 1.5 + i * 0.01
    return r


@at((0.3, 6), (0.9, 1))
def continue_on(x, n):
    s = 0.0
    for i in range(n):
        if i % 2 == 1:
            continue
        s += x**i
        if s > 3.0:
            continue
        s = s * x
    return s


@at((0.3, 5), (1.4, 5), (1.4, 0))
def for_else(x, n):
    r = x
    for _ in range(n):
        r = r * r
        if r > 2.0:
            r = r + x
            break
    else:
        r = r * 3.0 * x
    return r


@at((0.3, 5), (1.4, 5))
def while_else(x, n):
    r = x
    while n > 0:
        n -= 1
        r = r * r
        if r > 2.0:
            break
    else:
        return r * x
    return r + x


@at((0.3, 5), (1.4, 5), (1.4, 0))
def early_return_from_nested_loops(x, n):
    r = x
    for i in range(n):
        for j in range(i):
            r = r * 1.2 + x * j
            if r > 3.0:
                return r * x
        if i == 3:
            return r + x
    return r


@at((0.3,), (2.5,))
def endless_loop_left_by_return(x):
    k = 0
    r = x
    while True:
        k += 1
        r = r * x + 0.5
        if k > 4:
            return r
        if r > 5.0:
            return r * k


@at((0.3, 3), (2.5, 4))
def several_ways_out(x, n):
    r = x
    k = 0
    while k < 10:
        k += 1
        if k == n:
            break
        for j in range(k):
            if r > 3.0:
                break
            if j == 2:
                r = r - 0.5
                continue
            r = r + x * x * 0.3
        else:
            r = r * 1.1
        if r > 4.0:
            return r * x
    return r


@at((0.4, 4), (1.2, 0))
def the_loop_variable_afterwards(x, n):
    i = -1
    for i in range(n):  # noqa: B007
        x = x * 1.1
    return x * i


@at((0.4, 6))
def the_loop_variable_is_overwritten(x, n):
    s = 0.0
    for i in range(n):
        s += x * i
        i = i * i
        s += x**i * 0.01
    return s


@at((0.4, 3))
def the_bound_is_overwritten(x, n):
    s = x
    for i in range(n):
        n = n + i
        s = s * x + n
    return s * n


@at((0.5, 1.5))
def for_over_a_tuple(x, y):
    s = 1.0
    for v in (x, y, x * y, 2.0):
        s = s * v + x
    return s


@at((0.5, A), (0.5, np.zeros(0)))
def for_over_an_array(x, a):
    s = x
    for v in a:
        s = s * v + x
    return s


@at((0.5, A, B))
def zipped(x, a, b):
    s = x
    for u, v in zip(a, b):  # noqa: B905
        s = s * u + v * x
    return s


@at((0.5, A, B))
def zipped_with_a_range(x, a, b):
    s = x
    for u, i, v in zip(a, range(3), b):  # noqa: B905
        s = s * u + v * i
    return s


@at((0.5, A))
def enumerated(x, a):
    s = x
    for i, v in enumerate(a):
        s = s * v + i * x
    for i, v in enumerate(a, 3):
        s = s * 0.5 + v * i
    return s


@at((0.5, A, B))
def enumerated_zip(x, a, b):
    s = x
    for i, (u, v) in enumerate(zip(a, b)):  # noqa: B905
        s = s * u + v * i
    return s


@at((0.5, A, B))
def nested_loops_over_arrays(x, a, b):
    s = 0.0
    for u in a:
        if u < -1.0:
            continue
        for v in b:
            if v > 5.0:
                break
            s = s * x + u * v
    return s


# Tuples and names


@at((0.5, 1.5))
def packing_and_unpacking(x, y):
    t = (x * y, x, 3.0)
    a, b, c = t
    (d, e), f = (a * b, c), t[-1]
    return a * b + c * d - e * f + t[0] * len(t)


@at((0.5, 1.5, 0), (0.5, 1.5, 2), (0.5, 1.5, -1))
def tuple_by_a_dynamic_index(x, y, i):
    t = (x, y * y, x * y)
    return t[i] * x


@at((0.5, 1.5, 0), (0.5, 1.5, 4))
def a_tuple_carried_by_a_loop(x, y, n):
    t = (x, y)
    for _ in range(n):
        t = (t[1] * x, t[0] + t[1])
    return t[0] * t[1]


@at((0.5, 1.5, 0), (0.5, 1.5, 3), (0.5, 1.5, 4))
def trap_swap_in_a_loop(x, y, n):
    for i in range(n):
        x, y = y, x
        x = x * 1.5 + i
    return x * x + y


@at((0.5, 1.5, 1), (0.5, 1.5, 5))
def trap_rotation_in_a_loop(x, y, n):
    z = x * y
    for _ in range(n):
        x, y, z = y, z, x * 0.5
    return x * x + y * z


@at((0.5, 1.5))
def one_name_for_many_values(x, y):
    x = x * y
    x = x + 1.0
    y = x = x * x
    x *= y
    x /= 3.0
    x -= y
    x **= 2
    x += 1.0
    return x


@at((0.5, 1.5))
def overwritten_before_it_is_read(x, y):
    r = math.sin(x)
    r = y * y
    return r  # noqa: RET504


@at((0.5, 3))
def nothing(x, n):
    for _ in range(n):
        pass
    while n > 0:
        n -= 1
    return x


# Traps: what other systems document as wrong in themselves


@at((0.5, A), (0.5, np.array([0.0, 2.0, 3.0])), (0.5, np.zeros(0)))
def trap_product_over_a_dynamic_loop(x, a):
    r = x
    for i in range(len(a)):
        r = r * a[i]
    return r


@at((0.5, 4), (0.5, 0))
def trap_scalar_overwritten_in_a_loop(x, n):
    v = x
    for _ in range(n):
        v = v + x
        v *= v
        v = math.tanh(v)
    return v


@at((0.9, 5))
def trap_in_place_operators_in_a_loop(x, n):
    s = 1.0
    p = x
    for i in range(n):
        s += p
        p *= x
        s -= 0.1 * p
        p /= 1.0 + i
    return s * p


@at((0.2, A), (1.0, A), (9.0, A))
def trap_loop_left_by_break(x, a):
    s = 0.0
    for v in a:
        if v > x:
            break
        s += v * x
    return s + x


@at((0.8, 3), (0.8, 0))
def the_inner_loop_starts_anew(x, n):
    total = 0.0
    for i in range(n):
        r = 1.0
        for _ in range(i + 1):
            r = r * x
        total += r * r
    return total


@at((0.8, 7))
def a_value_used_in_a_later_iteration_only(x, n):
    last = 0.0
    s = 0.0
    for i in range(n):
        s += last * x
        if i % 3 == 0:
            last = math.exp(-x * i)
    return s
