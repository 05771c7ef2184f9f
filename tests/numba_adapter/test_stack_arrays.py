"""Small arrays of emitted functions are on the stack, unless something may keep them: the results are Numba's."""

from __future__ import annotations

import functools
import re

import numba
import numpy as np
import pytest

from tests.counts import allocations
from zygote_py.numba_adapter.emitted.pipeline import EmittedPipeline

pytestmark = pytest.mark.compiled


@functools.cache
def both(f):
    return numba.njit(f), numba.njit(pipeline_class=EmittedPipeline)(f)


def of_lengths(n, m):
    a, b = np.zeros(n), np.empty((n, m), np.int32)
    c, d = np.zeros_like(b), np.empty_like(a)
    for i in range(n):
        d[i] = a[i] + i
        for j in range(m):
            b[i, j] = i - j
            c[i, j] += b[i - n, j]
    total = 0.0
    for i in range(n):
        total = total * 0.5 + d[i] + len(d)
        for j in range(m):
            total = total * 0.9 + c[i, j] + b.shape[1]
    return total


@pytest.mark.parametrize(
    "shape", [(0, 0), (1, 1), (3, 2), (64, 1), (65, 1), (8, 8), (9, 8), (8, 16), (9, 16), (16, 16)]
)
def test_lengths(shape):
    expected, f = both(of_lengths)
    assert f(*shape) == expected(*shape)
    arrays = [8 * shape[0], 4 * shape[0] * shape[1]]
    assert allocations(lambda: f(*shape)) == 2 * sum(size > 512 for size in arrays)


def of_constant_lengths(x):
    a, b, c = np.zeros(3), np.empty((2, 2)), np.empty(65)
    for i in range(3):
        a[i] += i * x
    b[0, 1] = a[2]
    c[64] = b[0, 1]
    return c[64] + a[1]


def test_constant_lengths():
    expected, f = both(of_constant_lengths)
    assert f(1.5) == expected(1.5)
    assert allocations(lambda: f(1.5)) == 1


@pytest.mark.parametrize("shape", [(-1, 1), (1, -1), (-1, -1), (-(2**62), 4), (2**62, 4)])
def test_lengths_that_do_not_exist(shape):
    expected, f = both(of_lengths)
    with pytest.raises(ValueError, match=r"negative dimensions|too big") as raised:
        expected(*shape)
    with pytest.raises(ValueError, match=re.escape(str(raised.value))):
        f(*shape)


def test_an_array_with_one_length_of_zero():
    def f(n):
        return np.zeros((n, 0)).shape[0] + np.empty((0, n)).shape[1]

    assert both(f)[1](10**6) == 2 * 10**6


def made_in_rounds(n):
    total = 0.0
    for i in range(n):
        a = np.zeros(2)
        b = a
        b[i % 2] += i
        total = total * 2.0 + a[0] - a[1]
        if i == 4:
            continue
        c = a.copy()
        a[0] = 7.0
        total += c[0]
    return total


def test_arrays_that_are_made_in_a_loop():
    expected, f = both(made_in_rounds)
    assert f(9) == expected(9)
    assert allocations(lambda: f(9)) == 8


def returned(n):
    a = np.zeros(3)
    a[n] = 1.0
    return a


def returned_in_a_tuple(n):
    a = np.zeros(3)
    a[n] = 1.0
    return n, (a, n)


def returned_as_a_view(n):
    a = np.zeros((3, 3))
    a[n, 1] = 1.0
    return a[n]


def returned_transposed(n):
    a = np.zeros((2, 3))
    a[n, 1] = 1.0
    return a.T


def returned_in_another_shape(n):
    a = np.zeros(4)
    a[n] = 1.0
    return a.reshape(2, 2)


def kept_in_a_list(n):
    kept = []
    for i in range(5):
        a = np.zeros(2)
        a[0] = i + n
        kept.append(a)
    return kept[0] + kept[4]


def exchanged(n):
    a, b = np.zeros(2), np.zeros(2)
    for i in range(n + 2):
        a[0] += i
        a, b = b, a
    return a[0] - 3.0 * b[0]


def of_the_last_round(n):
    before = np.zeros(2)
    for i in range(n + 3):
        now = np.zeros(2)
        now[0] = before[0] * 2.0 + i
        now[1] = before[1] - now[0]
        before = now
    return before[0] * before[1]


def of_a_condition(n):
    a = np.zeros(2) if n > 1 else np.zeros(3)
    a[1] = n
    return a[1] + len(a)


@numba.njit
def same(a):
    return a


def passed_on(n):
    kept = [same(np.zeros(1))]
    for i in range(4):
        a = np.zeros(2)
        a[0] = i + n
        kept.append(same(a))
    return kept[1][0] * kept[3][0]


def iterated(n):
    a = np.zeros(3)
    a[n] = 2.0
    total = 0.0
    for each in a:
        total += each
    return total


def assigned_as_a_whole(n):
    a, b = np.zeros(3), np.zeros(3)
    a[n] = 2.0
    b[:] = a
    return b[n] + a.sum()


ESCAPING = [
    returned,
    returned_in_a_tuple,
    returned_as_a_view,
    returned_transposed,
    returned_in_another_shape,
    kept_in_a_list,
    exchanged,
    of_the_last_round,
    of_a_condition,
    passed_on,
    iterated,
    assigned_as_a_whole,
]


def leaves(value):
    return [each for item in value for each in leaves(item)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("f", ESCAPING, ids=lambda f: f.__name__)
def test_arrays_that_may_be_kept_are_not_on_the_stack(f):
    expected, ours = both(f)
    found = [leaves(ours(n)) for n in (0, 1)]
    np.full(3, 5.0), leaves(ours(1))  # what is on the stack is overwritten
    for n, each in zip((0, 1), found, strict=True):
        for one, other in zip(each, leaves(expected(n)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_deep_recursion():
    def f(n):
        a = np.zeros(64)
        a[n % 64] = n
        return 0.0 if n == 0 else f(n - 1) + a[n % 64]

    f = numba.njit(pipeline_class=EmittedPipeline)(f)
    assert f(10_000) == 10_000 * 10_001 / 2


THREE_IN_TURN = """
def first(n):
    a = np.zeros(64)
    a[n % 64] = n
    return a[n % 64] + (second(n - 1) if n > 0 else 0.0)

def second(n):
    return third(n)

def third(n):
    a = np.zeros(64)
    a[n % 64] = 1.0
    return a[n % 64] + (first(n - 1) if n > 0 else 0.0)
"""


def test_a_recursion_of_several():
    namespace = {"np": np}
    exec(THREE_IN_TURN, namespace)
    for name in ("first", "second", "third"):
        namespace[name] = numba.njit(namespace[name], pipeline_class=EmittedPipeline)
    assert namespace["first"](2) == 2.0 + 1.0 + 0.0
    assert allocations(lambda: namespace["first"](100)) == 101


def test_arrays_are_on_the_stack_up_to_a_size_of_all():
    lines = [f"    a{k} = np.zeros(n)\n    a{k}[i] = a{k - 1}[i] + {k}" for k in range(1, 12)]
    text = "\n".join(["def f(n, i):", "    a0 = np.zeros(n)", *lines, "    return a11[i]"])
    namespace = {"np": np}
    exec(text, namespace)
    f = numba.njit(pipeline_class=EmittedPipeline)(namespace["f"])
    assert f(3, 2) == 66.0
    assert allocations(lambda: f(3, 2)) == 4
