"""Operations of Numba's lists other than `append` and `pop`: construction, sorting, search, slices, comparison, arrays.

`trap` compares with what Numba computes, and with central differences. Numba itself frees memory too early where a
slice of a list of arrays is made longer, and where a list is sorted by a key; these are compared with the function in
plain Python only.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.typed import List

from tests.checking.derivatives import ALL_ROUTES, check_derivatives
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient, value_and_gradient

pytestmark = pytest.mark.interpreted

X = np.array([1.5, -0.7, 2.3, 0.4])


class Pair(NamedTuple):
    a: float
    b: float


@dataclasses.dataclass(frozen=True)
class Segment:
    a: float
    b: float


def typed_of_anything(x):
    s, t, u = List([x[0], x[1] * x[2]]), List((x[2], x[3])), List(x)
    t[0] = t[0] * s[1]
    u.append(s[0])
    rows = List(x.reshape(2, 2))
    rows[0][1] = x[3] * u[-1]
    total = x[1] + len(List(t))
    for i in List(range(3)):
        total += i * u[i] * s[-1]
    return total * t[0] * rows[0][1] + t[1]


def lists_of_anything(x):
    s, t = list(x), list((x[0], x[1]))  # noqa: C410
    rows = list(x.reshape(2, 2))
    t.append(s[2] * s[3])
    rows[1][0] = 3.0 * t[-1]
    empty = list()  # noqa: C408
    empty.append(x[2] * x[2])
    total = empty[0]
    for i in list(range(3, 0, -1)):
        total += i * x[i]
    for i, v in list(enumerate(t)):
        total += i * v * v
    for v, w in list(zip(x, x[1:])):  # noqa: B905, RUF007
        total += v * w * w
    return total + rows[1][0] * list(List(t))[1]


def types_in_a_list(x):
    s = List.empty_list(numba.float64[::1])
    s.append(x * x)
    return np.sum(s[0] * x)


def in_order(x):
    s, t = [v * v * v for v in x], List([x[0], x[1], x[2] * x[3]])
    s.sort()
    t.sort(reverse=True)
    u = sorted(s, reverse=len(s) > 3)
    a, b, c = sorted((x[2], x[0] * x[0], x[1]))
    total = 0.0
    for i, v in enumerate(sorted(x)):
        total += i * v * v
    for i in sorted([3, 1, 2]):
        total = total * 0.5 + x[i] * x[i]
    return total + s[0] * s[2] + t[0] * t[1] + u[0] * u[3] + a * b + 2.0 * c


def tuples_in_order(x):
    s = [(1, x[0]), (0, x[1]), (1, x[2]), (0, x[3] * x[3])]
    least, greatest = min(s), max(s)
    s.sort(reverse=True)
    t = sorted([Pair(x[2], x[0]), Pair(x[1] * x[1], x[3])])
    total = s[0][1] * s[1][1] * 3.0 + s[2][1] * s[3][1] + least[1] * greatest[1] + t[0].a * t[1].b
    if (x[0], 1) < (x[0], 2) and (x[0], 1) <= (x[0], 1) and not (x[1], 3) > (x[0], 1, 2) and (x[0], 2) >= (x[0], 1):
        total *= x[0]
    return total


def lists_in_order(x):
    s = [[x[2], x[0]], [x[1] * x[1]], [x[2]]]
    s.sort()
    return s[0][0] * s[1][0] + s[2][1] * 2.0


def many_in_order(x):
    s = [x[i % 4] * ((i * 7919) % 101 + 1.0 + 0.001 * i) for i in range(60)]
    s.sort()
    t = sorted(s, reverse=True)
    total = 0.0
    for i in range(60):
        total += s[i] * (i * i % 17) + t[i] * (i % 5)
    return total * 0.01


def searched(x):
    s, t = [v * v for v in x], List([x[0], x[1], x[2]])
    n = s.count(x[1] * x[1]) + t.count(5.0) + s.index(max(s)) + s.index(s[3], 1) + t.index(t[2], 1, 3)
    s.remove(min(s))
    t.remove(x[1])
    total = n * x[2] * x[2]
    for i in range(5):
        if i not in [0, 2, 4]:
            total += x[i] * x[i]
    if s[1] in s and 7.0 not in t and (x[0], 1) in [(x[1], 1), (x[0], 1)] and [x[2]] in [[x[1]], [x[2]]]:
        total *= x[0]
    return total + s[0] * s[2] + t[1] * t[0]


def compared(x):
    s, t, u, w = [x[0], x[1]], [x[0], x[1]], List([x[2]]), List([x[1], x[1]])
    total = x[0] * x[0]
    if s == t and not s != t and s <= t and s >= t:  # noqa: SIM202
        total *= x[1]
    t[1] = x[2]
    if s < t and t > s and [[x[0]]] < [[x[0], x[1]]]:
        total *= x[2]
    if u < w and w > u and u <= w and not u >= w and u != w and u == u.copy():  # the longer one is greater
        total *= x[3]
    return total


def deleted(x):
    s, t, n = [v * v for v in x], List([v * 2.0 for v in x]), 1
    u, w = s.copy(), s
    del s[1]
    del s[len(s) - 2]
    del u[n:3], t[::-2]
    total = s[0] * s[1] + u[0] * u[1] + t[0] * t[1] + len(w)
    del u[1:], s[:]
    s.append(u[0] * x[2])
    return total * w[0]


def assigned(x):
    s, t, n = [v * v for v in x], [x[3], x[2]], 1
    s[0:2] = [x[0], x[1] * x[2]]
    s[n : len(s) - 1] = [x[3] * x[3]]
    s[2:2] = t
    s[-1:] = t[:0]
    s[::2] = [x[2] * s[1], x[0]]
    s[10:] = [s[0] * x[1]]
    s[3:1] = [5.0 * x[1]]
    total = 0.0
    for i, v in enumerate(s):
        total += (i + 1) * v * v
    t[:] = [total]
    return total * len(t) * s[1]


def assigned_typed(x):
    s = List([v * v for v in x])
    s[0:2] = List([x[0] * x[1]])
    s[1:] = s
    s[::3] = List([x[2], x[3] * x[0]])
    s[3:1] = List([x[1]])
    total = 0.0
    for i, v in enumerate(s):
        total += (i + 1) * v * v
    return total


def slices(x):
    s, k = [v * v for v in x], -2
    t, u, w = s[::k], List(s)[::-1], s[3 : len(s) + k - 2 : k]
    z = s[slice(1, 3)]
    s[::k] = [t[1], t[0] * x[1]]
    return s[1] * s[3] + t[0] * u[1] + w[0] * z[1] * z[0]


def in_place(x):
    s = [x[0], x[1]]
    t = s
    s *= 2
    s += [x[2] * x[2]]
    s *= 1
    z = [x[0]]
    z *= -1
    mixed = [1, 2] + [x[3], x[2]]  # noqa: RUF005
    mixed.extend(range(2))
    mixed.extend((x[0], x[1]))
    s.extend(x)
    return s[0] * s[2] * len(t) + t[4] * (len(z) + 1.0) + mixed[2] * mixed[3] * mixed[-1] + s[-2] * s[-1]


def of_arrays(x):
    s = [x * 2.0, x * x, x + 1.0]
    s.reverse()
    s.insert(1, x * 3.0)
    s[0][1] = x[0]
    first = s.pop(2)
    first[0] = x[2]
    s.extend([first, x * x * x])
    del s[1]
    s[1:2] = [x * 5.0, s[0]]
    s *= 2
    total = 0.0
    for a in s[::-1] + s[1:]:
        total = total * 0.5 + np.sum(a * a)
        a[2] *= x[1]
    return total + s[0][2]


def of_structures(x):
    s = [Segment(x[0], x[1]), Segment(x[2], x[3])]
    s[0:1] = [Segment(x[1] * x[1], x[2]), Segment(x[3], x[3])]
    t = List([Pair(x[0], x[1]), Pair(x[2], 2.0)])
    t[0] = Pair(x[2] * t[0].b, x[1])
    t.reverse()
    del s[1]
    total = t.pop(0).a * t[0].a
    for d in s + s[::-1]:
        total = total * 0.5 + d.a * d.b
    return total


def in_a_loop(x):
    s = [x[0], x[1]]
    total = 0.0
    for i in range(5):
        s[i % 2 : i % 3] = [x[2] * s[0], x[3] + s[-1]]
        if len(s) > 4:
            s.sort(reverse=i % 2 == 0)
            del s[1:3]
            s.remove(max(s))
        total = total * 0.5 + s[i % len(s)] * s[0] + sum(s)
    return total


def a_queue(x):
    queue = [(x[0], 0), (x[1], 1), (x[2], 2)]
    total = 0.0
    while queue:
        key, i = min(queue)
        queue.remove((key, i))
        total = total * 0.5 + key * key * (i + 1.0)
        if i < 3 and key < 2.0:
            queue.append((key * 2.0 + 3.0, i + 3))
    return total


def to_arrays(x):
    s, pairs, deep = [v * v for v in x], [(x[0], 1), (x[2], 3)], [[(x[0], x[1]), (1.0, x[2])]]
    s.append(x[0] * x[1])
    pairs.append((x[0] * x[0], 1))
    deep.append([(x[3], x[1] * x[2]), (1.0, x[2])])
    typed = List([x[0], x[3]])
    a, b, c = np.array(s), np.array(pairs), np.array(deep)
    total = np.sum(a * a) + np.sum(b * b) + np.sum(c * c * c) + np.sum(np.asarray(typed) * np.asarray(s)[1:3])
    s.pop()
    d = np.array((s, [x[1], x[1], x[2], x[0] * x[3]]))
    total += d[0, 1] * d[1, 3] + np.sum(np.array([x[0], x[1] * x[2], 1])) * np.asarray([x[3], 2.0])[0]
    return total + np.sum(np.array([1, 2], dtype=np.float64) * x[:2]) + np.sum(np.array(s, dtype=np.float64))


def comprehensions_to_arrays(x):
    s = [x[0], x[1] * x[2]]
    a, b = np.array([v * v for v in x[1:]]), np.array([v * v for v in s])
    c, d = np.array([x[i] * i for i in range(0, 4, 2)]), np.array([v * v for v in (x[0], x[2])])
    e = np.array([row[0] * row[1] for row in x.reshape(2, 2)])
    nested = [[x[i] * x[j] for j in range(2)] for i in range(2)]
    return np.sum(a * a) + b[0] * b[1] + c[1] + d[0] * d[1] + e[0] * e[1] + nested[0][1] * nested[1][0] * nested[1][1]


PROGRAMS = [
    *(typed_of_anything, lists_of_anything, types_in_a_list, in_order, tuples_in_order, lists_in_order, many_in_order),
    *(searched, compared, deleted, assigned, assigned_typed, slices, in_place, of_structures, in_a_loop),
    *(a_queue, to_arrays, comprehensions_to_arrays),
]

TYPED = (compared, assigned_typed)  # in which typed lists do something else than Python's


@pytest.mark.parametrize(
    "program", one_in(3, (each for each in PROGRAMS if each not in TYPED)), ids=lambda each: each.__name__
)
def test_programs(program):
    check_derivatives(program, X.copy())


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.parametrize("program", TYPED)
def test_programs_of_typed_lists(program):
    check_derivatives(program, X.copy(), reference="numba")


# ------------------------------------------------------------------------------- what Numba should not be asked to run


@numba.njit
def square(v):
    return v * v


def test_lists_of_arrays():
    check_derivatives(of_arrays, X.copy(), routes=ALL_ROUTES)


def by_keys(x):
    s, t = [x[0], x[1], x[2]], [(x[0], 2), (x[1], 1), (x[2], 3)]
    s.sort(key=lambda v: -v)
    t.sort(key=lambda pair: pair[1], reverse=True)
    u = sorted(x, key=square)
    return s[0] * s[1] + t[0][0] * t[1][0] * 2.0 + u[0] * u[2]


def test_keys():
    check_derivatives(by_keys, X.copy(), routes=ALL_ROUTES)


@pytest.mark.long
@pytest.mark.compiled
def test_equal_keys_come_in_the_order_of_numba():
    def f(x):
        s = List()
        for i in range(40):
            s.append(((i * 7) % 5, x[i % 4] * (i + 1.0)))
        s.sort(key=lambda pair: pair[0])
        total = 0.0
        for i, pair in enumerate(s):
            total += pair[1] * (i * i % 11)
        return total

    value, found = value_and_gradient(f)(X)
    compiled = numba.njit(f)
    assert value == compiled(X)
    slopes = [4 * (compiled(X + step) - compiled(X - step)) for step in np.eye(4) / 8]  # it is linear
    np.testing.assert_allclose(found, slopes, rtol=1e-12)
    stable = sorted(range(40), key=lambda i: (i * 7) % 5)
    assert abs(value - sum(X[i % 4] * (i + 1.0) * (place**2 % 11) for place, i in enumerate(stable))) > 1.0


# ------------------------------------------------------------------------------------------------------------ errors


def test_errors():
    def missing(x, n):
        s = [x, 2.0]
        return s.index(5.0) * x if n == 0 else x * s.pop(n)

    def removed(x):
        s = [x, 2.0]
        s.remove(7.0)
        return s[0]

    def too_long(x, n):
        s = [x, x, x]
        s[::2] = [x] * n
        return s[0]

    def itself(x):
        s = [x, x, x]
        s[1:2] = s
        return s[0]

    def ragged(x):
        s = [[x], [x, x]]
        s.append([x])
        return np.sum(np.array(s))

    def nothing(x, n):
        s = [x] * n
        return max(s)

    for function, args, error, says in [
        (missing, (1.0, 0), ValueError, "value not in list"),
        (missing, (1.0, 2), IndexError, "pop index out of range"),
        (removed, (1.0,), ValueError, "x not in list"),
        (too_long, (1.0, 3), ValueError, "step != 1"),
        (itself, (1.0,), ValueError, "slice of itself"),
        (ragged, (1.0,), ValueError, "incompatible sequence shape"),
        (nothing, (1.0, 0), ValueError, "empty sequence"),
    ]:
        with pytest.raises(error, match=says):
            gradient(function)(*args)


def refused(function: Callable[..., Any], says: str, hint: str) -> None:
    with pytest.raises(DifferentiationError, match=f"(?is){says}") as caught:
        gradient(function)(X)
    assert re.search(hint, caught.value.hint or ""), caught.value.hint
    assert caught.value.file == __file__


def test_refusals():
    def backwards(x):
        total = 0.0
        for i in reversed(range(3)):
            total = total * x[0] + x[i]
        return total

    def any_of(x):
        return x[0] if any([v > 0.0 for v in x]) else x[1]  # noqa: C419

    def a_tuple(x):
        s = [x[0], x[1]]
        s[0:2] = (x[1], x[0])
        return s[0]

    def in_place(x):
        s = [x[0]]
        s += x
        return s[1]

    def key(x):
        return sorted([x[0], x[1]], key=searched)[0]

    def rows(x):
        return np.sum(np.array([x, x]))

    def stack(x):
        s = [x, x]
        return np.sum(np.stack(s))

    def mean(x):
        s = [x[0], x[1]]
        return np.mean(s)

    refused(backwards, "`reversed`", r"range\(n - 1, -1, -1\)")
    refused(any_of, "`any`", r"np\.any")
    refused(a_tuple, "slice of a list", r"list\(x\)")
    refused(in_place, "iadd", "extend")
    refused(key, "sorted", "lambda")
    refused(rows, "array", "in a loop")
    refused(stack, "stack", "tuple")
    refused(mean, "mean", r"np\.array\(s\)")
