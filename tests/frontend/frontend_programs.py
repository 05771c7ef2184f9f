"""Programs for the tests of the front end, each with the arguments that `at` says it is run with.

They stand in a module of their own because pytest rewrites the assertions of test modules.
"""

# ruff: noqa: SIM108, SIM201
from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np
from numba import njit

from tests.frontend.frontend_loops import CASES, A, B, M, at

__all__ = ["CASES"]

SCALE = 2.5
COUNT = 3
FLAG = True
MODE = "double"
PAIR = (2.0, (3, 4.0))


class Point(NamedTuple):
    x: float
    y: float


class Segment(NamedTuple):
    start: Point
    end: Point


def difference_of(a, b):
    return a * a - b


# Branches


@at((2.0, 1.0), (-2.0, 1.0), (0.5, 3.0), (0.0, 0.0))
def branches(x, y):
    if x > 1.0:
        r = x * y
    elif x < 0.0 or (y > 2.0 and not x == y):
        r = x - y * y
    else:
        r = 7
    z = x if 0 < x <= y else -y
    return r * z


@at((2.0,), (-2.0,), (0.0,))
def numbers_as_conditions(x):
    n = int(x)
    s = 0.0
    if n:
        s += 1.0
    if x and not n:
        s += 10.0
    return s if not x else s + (n or 7) + (x and 3.0)


@at((1.0, "sin"), (1.0, "cos"), (1.0, "tan"), (1.0, "other"))
def strings_steer(x, mode):
    if mode == "sin":
        return math.sin(x)
    if mode in ("cos", "tan"):
        return math.cos(x) if mode != "tan" else math.tan(x)
    return x if len(mode) > 4 else -x


@at((1.0, None), (1.0, 2.0))
def none_as_default(x, y=None):
    if y is None:
        y = 1.0
    return x * y


@at((1.0, 5.0), (-1.0, 5.0), (3.0, 5.0), (9.0, 5.0))
def raising(x, limit):
    assert x > 0, "must be positive"
    if x > limit:
        raise ValueError("too large", 7)
    assert x != 3.0
    return x


@at((1.0,), (-1.0,))
def raising_without_arguments(x):
    if x < 0:
        raise ArithmeticError
    return x


@at((2.0,), (-2.0,))
def boolean_values(x):
    a = x > 1.0
    b = not a
    c = a or x < -1.0
    d = (a & c) | b ^ True
    return x * a + b * 2 + c - d


# Tuples


@at((2.0, 3.0))
def packing(x, y):
    t = x, (y, x * y)
    a, (b, c) = t
    x, y = y, x
    u = (a,) + t[1] + (x,)
    (p, _, _), q = (c, b, 4.0), u[1:3]
    return u[0] * u[-1] + len(u) - q[0] * q[1] + p + y


@at(((1.0, 2.0), 3.0), ((-1.0, 0.5), 0.0))
def swaps_in_a_loop(t, x):
    for _ in range(3):
        t = (t[1], t[0] + x)
    a, b = t
    while a < b:
        a, b = b, a
    return a - 2 * b


@at((1.0, 0), (1.0, 2), (1.0, -1), (1.0, -3))
def dynamic_index(x, k):
    t = (x, 2 * x, x * x + 1)
    return t[k]


@at((((1.0, 2), (3.0, (4, 5.0))),))
def nested_parameters(t):
    (a, b), (c, (d, e)) = t
    return a * b + c * d * e + t[1][1][0]


@at((Point(1.0, 2.0), 3.0))
def named_tuples(p, x):
    s = Segment(p, Point(x, y=x * 2))
    q = s.end
    return q.x * p.y + s.start.x - s[1][1] + len(s)


@at((2.0, True), (2.0, False))
def tuples_from_branches(x, flag):
    if flag:
        t = (x, 1)
    else:
        t = (1.0, 2)
    return t[0] * t[1]


@at((2.0, 3.0), (2.0, 2.0))
def comparing_tuples(x, y):
    same = (x, 1) == (y, 1)
    return 1.0 if same or ((x, y) != (y, x) and x in (3.0, y, 2.0)) else x


@at((2.0, 3.0))
def builtins_of_tuples(x, y):
    t = (x, y, 4.0)
    return max(t) + min(t) * sum(t) + max(x, 2) - min(y, 1, 2.5) + sum((1, 2, 3))


@at((7.5, 2.0), (-7.5, 2.0))
def results_that_are_tuples(x, y):
    q, r = divmod(x, y)
    return q, (r, x), 3


# Arrays


@at((M,), (M.T,))
def reading(x):
    m, n = x.shape
    s = x[0, 0] + x[-1, n - 1] * x[m - 1][0]
    return s + x.size * x.ndim + len(x) + x.shape[1] + x.T[0, -1]


@at((A, 2), (B, -1))
def slices(x, k):
    u = x[1:3]
    v = x[::-1]
    return u[0] * v[k] + x[k:][0] + np.sum(x[:2]) + v.sum() + x[None].shape[1]


@at((np.float32(1.5), np.array([1.0, 2.0], np.float32)))
def single_precision(x, y):
    return x * y[0] + y[1]


@at((np.array([3, 4]), np.array([True, False])))
def arrays_of_other_kinds(k, b):
    s = 0.0
    for i in range(len(k)):
        if b[i]:
            s += k[i] ** 2
    return s


# Numbers


@at((2.7, 3), (-2.7, -2))
def conversions(x, n):
    a = int(x) + float(n) + bool(n) + round(x) + abs(n)
    b = np.float64(n) * np.int64(x) + math.floor(x) + math.ceil(x)
    return a * b + (x > 0) + x.real - x.imag + n // 2 + n % 3 + x // 2 + x % 3 + (n << 2) + (~n & 5)


@at((2.5, 3))
def a_constant_converted_twice(x, n):
    w = 0.3
    s = 0.0
    for _ in range(n):
        s += np.float64(np.float32(w)) * x
    return s


@at((2.5,))
def powers(x):
    return x**2 + x**-1 + x**0.5 + 2**x + pow(x, 3) + math.pow(x, 2)


@at((2.0,), (-2.0,))
def choosing_numbers(x):
    y = np.where(x > 0, x, 3)
    z = y
    for i in range(3):
        z = np.where(i == 1, z * y, z + 1.0)
    return np.where(z > y, z, 2)


@at((np.array(3.0), 2.0))
def arrays_without_dimensions(a, x):
    return a[()] * x


# Captured values and other functions


@at((2.0,))
def captures(x):
    s = x * SCALE + A[0] * COUNT
    if FLAG and MODE == "double":
        s *= 2
    return s + PAIR[0] * PAIR[1][1] + np.pi * math.e - sys.maxsize * 0.0


def square(a):
    return a * a


def limited(a, lo=0.0, hi=SCALE):
    if a < lo:
        return lo
    while a > hi:
        a -= 1
    return a


limited_compiled = njit(limited)


@njit(fastmath=True)
def weighted(v, k):
    s = 0.0
    for e in v:
        s += limited_compiled(e * SCALE, hi=k)
    return s


def swapped(a, b):
    return b, a


def apply(f, x):
    return f(x)


def scaled(x, *, by=2.0):
    return x * by


def checked(x):
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x)


@at((2.0, A), (-1.0, B))
def calls(x, v):
    a, b = swapped(x, 1)
    t = (a, 2.0)
    c, d = swapped(*t)
    s = square(x) + square(3) + weighted(v, x) + limited(lo=1.0, a=square(x))
    for i in range(3):
        s += limited(x * i, hi=2)
    return s + a - b + c * d + scaled(x, by=3) + scaled(x)


@at((2.0,), (-2.0,))
def functions_as_arguments(x):
    return apply(square, x) + apply(math.sin, x) + apply(lambda t: t + 1, x) + apply(checked, x)


@at((2.0,))
def closures(x):
    def inner(y):
        k = y * SCALE + x
        return k * k

    double = lambda z: 2 * inner(z)
    return double(x) + inner(1.0)


def make_closure(c, values, n):
    def closure(x):
        return x * c + values[n]

    return closure


closure_of_a_closure = at((3.0,))(make_closure(4.0, A, 2))


@at((3.0,))
def prints(x):
    print("x is", x)
    return x


@at((2.0, 1.0), (1.0, 3.0))
def starred(x, y):
    pair = (x * y, y)
    return difference_of(*pair) * x


@at((2.0, 1), (2.0, 3), (2.0, 2))
def pairs_in_order(x, n):
    s = x
    if (2, n) <= (2, 2):
        s = s * x
    if (2, n) >= (2, 2):
        s = s + 3.0 * x
    if (1, n) <= (2, 0):
        s = s * 2.0
    return s
