"""Programs for the tests of the front end: loops. How to add one is said in `tests.frontend.frontend_programs`."""

# ruff: noqa: B905, SIM201
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
A = np.array([0.5, -1.25, 2.0, 0.75])
B = np.array([1.5, 0.25, -0.5, 3.0, 9.0])
M = np.arange(12.0).reshape(3, 4) - 4.5


def at(*inputs: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.extend((function, args) for args in inputs)
        return function

    return register


@at((2.0, 5), (2.0, 0), (2.0, -3))
def while_loop(x, n):
    r = 1
    while n > 0:
        n -= 1
        r *= x
    return r


@at((2.0, 5), (2.0, 0), (0.1, 7), (-1.0, 9))
def while_with_and(x, n):
    s = 0.0
    i = 0
    while i < n and s < 10.0:
        s += x * i
        i += 1
    return s + i


@at((2.0, 5), (2.0, 0), (0.1, 7), (3.0, 0))
def while_with_or(x, n):
    s = 0.0
    i = 0
    while i < n or s < 10.0:
        s += x
        i += 1
    return s - i


@at((2.0, 5), (2.0, 0), (0.1, 7), (0.1, 77), (0.0, 6))
def while_with_both(x, n):
    s = 0.0
    i = 0
    while (i < n or s < 1.0) and i < 20 and not (n == 77 and i == 3):
        s += x
        i += 1
    return s * i


@at((1.5, 10), (60.0, 10), (1.5, 3), (0.0, 0))
def while_with_continue_break_else(x, n):
    s = 0.0
    i = 0
    while i < n and s < 100.0:
        s += x
        i += 1
        if s > 50:
            continue
        s *= 2.0
        if i == 7:
            break
    else:
        s += 1
    return s


@at((9.0,), (2.0,), (1e6,))
def while_true(x):
    k = 0
    while True:
        x = x / 2 + 1 / x
        k += 1
        if k > 20 or abs(x * x - 2.0) < 1e-12:
            break
    return x


@at((1.0, 2.0), (1.0, -3.0))
def assigned_on_the_way_out_of_a_loop(x, y):
    s = x
    k = 0
    while True:
        k += 1
        if k > 3:
            y = s * 2.0
            break
        s -= y
    return s * y


@at(
    (1.0, A),
)
def a_loop_that_is_always_left(x, a):
    for i, v in enumerate(a):
        x += v * (i + 1)
        if not 3 % 2 == 0:
            break
    for i in range(3):
        x += i
        break
    else:
        x = 0.0
    return x


@at((0.3,), (4.0,))
def while_whose_first_test_is_known(x):
    r = 1.0
    i = 0
    while r > 1e-3:
        r *= 0.5
        i += 1
    return r * x + i


@at((0.5, 4), (0.5, 0))
def while_with_walrus(x, n):
    s = 0.0
    while (k := n) > 0:
        s += x * k
        n -= 1
    return s * k


@at((0.5, 4), (0.5, 0), (3.0, 6))
def nested_while(x, n):
    s = 0.0
    i = 0
    while i < n:
        j = i
        while j < n and s < 50.0:
            s += x * j
            if j % 3 == 2:
                j += 2
                continue
            j += 1
        i += 1
    return s


@at((0.5, 4), (0.5, 0))
def while_over_a_condition_with_work(x, n):
    i = 0
    while math.sin(x) * i + x**2 < n - 1:
        x += 0.25
        i += 2
    return x * i


@at((0.5, 7), (0.5, 0), (0.5, 1), (0.5, -2))
def for_over_ranges(x, n):
    s = 0.0
    for i in range(n):
        s += x * i
    for i in range(2, n):
        s += x * i**2
    for i in range(n, 0, -2):
        s -= i
    for i in range(n - 1, -1, -1):
        s = s * x + i
    return s


@at((0.5, 7, 2), (0.5, 7, -1), (0.5, -7, -3), (0.5, 3, 9), (0.5, 4, 0))
def for_with_a_variable_step(x, n, k):
    s = 0.0
    for i in range(1, n, k):
        s = s * x + i
    return s


@at((0.5, 7), (0.5, 1))
def for_whose_variable_lives_on(x, n):
    for i in range(n):  # noqa: B007
        x = x * 1.5
    return x * i


@at((0.5, 7), (0.5, 1))
def for_whose_variable_is_changed(x, n):
    for i in range(n):
        i = i * i + 1
        x += i
    return x - i


@at((2.0, 7), (2.0, 30), (2.0, 0))
def for_with_continue_break_else(x, n):
    for i in range(n):
        if i % 2:
            continue
        if i > 10:
            break
        x *= i + 1
    else:
        x = -x
    return x


@at((2.0, 7, 5.0), (2.0, 3, 1e9), (2.0, 0, 1.0))
def for_with_early_return(x, n, limit):
    for i in range(n):
        for j in range(i):
            x += j * i
            if x > limit:
                return x * j
    return -x


@at((A,), (B,))
def for_over_an_array(x):
    s = 0.0
    for v in x:
        s += v * v
    return s


@at((M,), (M.T,), (M[:0],), (M[::-1, ::2],))
def for_over_rows(x):
    s = 0.0
    for row in x:
        p = 1.0
        for v in row:
            p *= v
        s += p
    return s


@at((2.0, 3.0), (-1.0, 0.0))
def for_over_tuples(x, y):
    s = 0.0
    for a in (x, y, 2.0):
        for b in (1, 2, 3):
            s += a * b
    for u, v in ((x, 1), (y, 2)):
        s = s * u + v
    return s


@at((A, B), (B, A), (A[:0], B), (A, A))
def zips_and_enumerates(x, y):
    s = 0.0
    for a, b in zip(x, y):
        s += a * b
    for i, a in enumerate(x):
        s += i * a
    for i, (a, b) in enumerate(zip(x, y), 5):
        s = s * 0.5 + i * a - b
    for (i, a), j, t in zip(enumerate(y, 2), range(10, 0, -3), (1.0, 2.0, 3.0)):
        s += i * a * j * t
    for a, i, j in zip(x, range(7), range(1, 8, 2)):
        s -= a * i * j
    return s


@at((A, 3), (A, 0))
def loops_in_loops(x, n):
    s = 0.0
    for i in range(n):
        for j in range(i, n):
            k = 0
            while k < len(x) - j:
                s += x[k] * (i + 1)
                k += j + 1
            if s > 3.0:
                break
        else:
            s -= 1.0
    return s


@at((A, True), (A, False))
def a_range_chosen_at_run_time(x, forward):
    s = 0.0
    for i in range(len(x)) if forward else range(len(x) - 1, -1, -1):
        s = s * 0.5 + x[i]
    return s


@at((3.0, 40))
def a_body_longer_than_a_short_jump(x, n):
    s = 0.0
    for i in range(n):
        if i % 2 == 0:
            s += math.sin(x * i) * math.cos(x + i) + math.exp(-x * i) * math.sqrt(x * x + i * i)
            s += math.sin(x * i) * math.cos(x + i) + math.exp(-x * i) * math.sqrt(x * x + i * i)
            s += math.sin(x * i) * math.cos(x + i) + math.exp(-x * i) * math.sqrt(x * x + i * i)
        elif i % 3 == 0:
            s -= math.sin(x * i) * math.cos(x + i) + math.exp(-x * i) * math.sqrt(x * x + i * i)
            s -= math.sin(x * i) * math.cos(x + i) + math.exp(-x * i) * math.sqrt(x * x + i * i)
            continue
        else:
            s *= math.sin(x * i) * math.cos(x + i) + math.exp(-x * i) * math.sqrt(x * x + i * i)
            s *= math.sin(x * i) * math.cos(x + i) + math.exp(-x * i) * math.sqrt(x * x + i * i)
        s += math.sin(x * i) * math.cos(x + i) + math.exp(-x * i) * math.sqrt(x * x + i * i)
    return s


@at((3.0,))
def nothing_in_the_body(x):
    for _ in range(4):
        pass
    while False:
        x = 1.0
    return x


@at((M[:, :3], 4), (M[:, :3], 0))
def columns_become_rows(x, n):
    b, s = x.T, 0.0
    while n > 0:
        b = b * x
        s += b.T[0, 1]
        n -= 1
    return s, b[2, 1]


@at((M[:, :3], 4))
def any_order_becomes_rows(x, n):
    b, s = x[::-1], 0.0
    while n > 0 and s < 1e9:
        for row in b:
            s += row[0] * row[1]
        b = b * 0.5
        n -= 1
    return s
