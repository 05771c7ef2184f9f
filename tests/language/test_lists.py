"""Lists built and read inside of a function: reflected ones and those of numba.typed, of numbers, arrays, tuples."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numba.typed import List

from tests.checking.derivatives import ALL_ROUTES, PRECISELY, check_derivatives
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient

pytestmark = pytest.mark.interpreted

X = np.array([1.5, -0.5, 2.0])


def appended(x, n):
    s = [x, 2.0]
    for i in range(n):
        s.append(s[-1] * x + i)
    s[-1] = 3.0 * s[-2]
    y = s.pop()
    return s[0] * s[-1] + len(s) * y


def typed(x, n):
    s = List()
    s.append(x)
    t = List.empty_list(numba.types.float64)
    t.append(x)
    for i in range(n):
        t.append(x * s[-1] + i)
    return s[0] * t.pop() * t[0]


def comprehension(x, n):
    s = [x * i for i in range(n)]
    t = [v * v for v in s if v > 1.0]
    total = 0.0
    for v, w in zip(s, t):  # noqa: B905
        total += v * w
    for i, v in enumerate(t):
        total += i * v * x
    return total


def grows_while_it_is_read(x, n):
    s = [x]
    total = 0.0
    for v in s:
        total += v * v
        if len(s) < n:
            s.append(v * x + 1.0)
    return total


def a_stack(x, n):
    s = [x]
    total = 1.0
    while s:
        v = s.pop()
        total += v * v
        if v * v > 0.1 and len(s) < n:
            s.append(v * 0.5)
            s.append(v * x * 0.25)
    return total


def of_tuples(x, n):
    s = [(x * i, i, (x, 2.0)) for i in range(n)]
    s.append((x * x, 2, (1.0, x)))
    total = 0.0
    for a, i, (b, c) in s:
        total += a * i + b * c * x
    a, i, (b, c) = s.pop()
    s[0] = (a * a, i + 1, (c, b))
    return total * s[0][0] + s[0][1] * s[0][2][0]


def of_arrays(x, n):
    s = [np.ones(3)]
    for i in range(n):
        s.append(np.zeros(2) + x * i)
    s[1][0] = 5.0 * x
    s[0] = s[-1]
    s[0][1] *= x
    total = 0.0
    for a in s:
        for v in a:
            total += v * v
    last = s.pop()
    last[0] = x * last[1]
    return total * s[0][0] + last[1]


def parameters_in_a_list(a, b):
    s = [a, b]
    s.append(a)
    total = 0.0
    for i in range(3):
        total += s[i][i] * s[(i + 1) % 3][0]
    return total


def of_lists(x, n):
    s = [[x], [x, 2.0]]
    for i in range(n):
        s[i % 2].append(x * i)
        s.append([x * x])
    total = 1.0
    for t in s:
        for v in t:
            total *= 1.0 + 0.1 * v
    t = s.pop()
    t[0] = t[0] * total
    return t[0] * s[0][-1]


def chosen_in_a_branch(x, n):
    if n > 2:
        s = [x]
    else:
        s = [x, x * x]
        s.append(1.0)
    t = s
    t.append(3.0 * x)
    return len(s) * s[-1] * s[0]


def made_in_each_iteration(x, n):
    total = 0.0
    for i in range(n):
        s = [x * i]
        for j in range(i):
            s.append(s[-1] * x + j)
        if i % 2 == 0:
            s.pop() if len(s) > 1 else 0.0
        for v in s:
            total += v * s[0]
    return total


def left_by_break(x, n):
    s = [1.0]
    total = 0.0
    for i in range(n):
        s.append(s[i] * x)
        if s[-1] > 4.0:
            s[0] = s[-1] * x
            break
        total += s[-1]
    return total * s[0] + s[-1]


def dropped(x, n):
    s = [x]
    for i in range(n):
        s.append(x * i)
        s.pop()
    s.append(x * x)
    s.pop()
    return s[0] * len(s)


def to_arrays(x, n):
    s = [x * i for i in range(n)]
    a = np.array(s)
    rows = [[x, 1.0], [2.0, x * x]]
    rows.append([x, x])
    b = np.array(rows)
    total = 0.0
    for v in a:
        total += v * v
    for i in range(3):
        total += b[i, 0] * b[i, 1]
    return total


def passed_to_functions(x, n):
    def fill(s, count):
        for i in range(count):
            s.append(x * i)
        return s

    def product(s):
        p = 1.0
        for v in s:
            p *= v + 1.0
        return p

    s = [x]
    t = fill(s, n)
    return product(s) * t[-1]


def other_methods(x, n):
    s = [x, x * x]
    s.extend([3.0 * x, 1.0])
    s.insert(1, 5.0 * x)
    s.insert(-1, x)
    s.reverse()
    s += [x, 2.0]
    y = s.pop(1) * s.pop(-2)
    t = s.copy()
    t[0] = x
    s.clear()
    s.append(x)
    return y * s[0] + t[0] * t[2] + len(t) * x


def operators(x, n):
    s = [x, 2.0] + [x * x]  # noqa: RUF005
    t = s * n
    t[0] = x * t[1]
    z = [0.0] * n
    for i in range(n):
        z[i] = t[i] * x
    u = t[1:-1]
    v = t[n - 2 : n + 1]
    w = t[::-2]
    total = 0.0
    for a in (s, t, u, v, w, z):
        total += a[0] * a[-1] + len(a)
    return total


def sums(x, n):
    s = [x * i for i in range(n)]
    return sum(s) * max(s) + min(s)


def integers(x, n):
    places = [0, 2]
    places.append(1)
    total = 0.0
    for p in places:
        total += X[p] * x**p
    return total


PROGRAMS = [
    *(appended, typed, comprehension, grows_while_it_is_read, a_stack, of_tuples, of_arrays, of_lists),
    *(chosen_in_a_branch, made_in_each_iteration, left_by_break, dropped, to_arrays, passed_to_functions),
    *(other_methods, operators),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("n", one_in(2, [4, 1]))
def test_programs(program, n):
    if program in (other_methods, operators) and n == 1:
        n = 3
    check_derivatives(program, 1.25, n, routes=ALL_ROUTES)


def test_captured_arrays_are_read_by_a_list_of_places():
    check_derivatives(integers, 1.25, 3, routes=ALL_ROUTES)


def test_parameters_in_a_list():
    check_derivatives(parameters_in_a_list, np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.5]), routes=ALL_ROUTES)


def test_the_adjoint_of_a_list_is_a_list_as_long():
    source = gradient(a_stack, mode="reverse").source(1.25, 3)
    appended, popped = (len(re.findall(rf"\bds\.{name}\(", source)) for name in ("append", "pop"))
    assert appended == popped == 4  # each as often in one sweep as the other in the other


def test_single_precision():
    def f(x):
        s = [x]
        s.append(x * x)
        return s[0] * s.pop()

    found = gradient(f)(np.float32(1.5))
    assert isinstance(found, np.float32 | float)
    assert found == 6.75
    assert "float64" not in gradient(f).source(np.float32(1.5))


def test_errors_of_lists():
    def f(x, n):
        s = [x]
        for _ in range(n):
            s.pop()
        return s[0]

    with pytest.raises(IndexError):
        gradient(f)(1.0, 2)


# ------------------------------------------------------------------------------------------------------ refusals


def refused(function: Callable[..., Any], *args: Any, says: str, hint: str) -> None:
    with pytest.raises(DifferentiationError, match=f"(?is){says}") as caught:
        gradient(function)(*args)
    assert re.search(hint, caught.value.hint or "", re.IGNORECASE), caught.value.hint
    assert caught.value.file == __file__


def test_a_list_as_result():
    refused(lambda x: [x], 2.0, says="the result is of type list", hint="`jvp` and `derivative`")


def test_a_list_that_was_not_made_in_an_iteration():
    def f(x, n):
        y = x
        for i in range(-2, n):
            k = 0
            while True:
                k += 1
                if k > i:
                    break
                s = [y * x]
                s.append(x)
                if y <= 10.0 * k:
                    y = s[0] * s[1]
                    break
        return y

    check_derivatives(f, 1.25, 3, routes=ALL_ROUTES)


def test_the_least_of_a_display():
    def f(x, y, n):
        a = x * 2.0
        kept = [a, y, 3.0, n]
        a = -5.0
        s = min([x, y * y, 3.0 * x, 2]) + max([x]) + max([1, n]) * x
        for i in range(3):
            s += max([s * 0.1, x * i, y])
        both = [x, y]
        s += min(both) * len(both)
        both[0] = y * y
        return s + max(kept) * y + a + max(both)

    check_derivatives(f, 0.7, 0.4, 2, at=[(2.0, -1.0, 7), (-1.0, 0.2, 1)], **PRECISELY)
    without_lists = gradient(lambda x, y: min([x, y]) + max([x, 2.0 * y, 1.0])).source(0.3, 0.4)
    assert "append(" not in without_lists


def test_the_least_of_a_display_of_tuples_and_of_strings():
    def f(x):
        return max([(1.0, 2), (x, 3)])[0] * x * len(max(["ab", "c"]))

    assert gradient(numba.njit(f))(2.0) == 4.0
    assert gradient(numba.njit(f))(0.5) == 1.0
