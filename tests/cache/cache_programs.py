"""Functions whose twos become threes, for tests of the cache; `ALL` has their gradients before and after."""

from __future__ import annotations

import builtins
import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import callee
import numpy as np
import scipy.constants
from numba import njit

import zygote_py as zg

builtins.extra = 2
np.extra = 2.0
scipy.constants.extra = 2.0
ODD = 2.0


@dataclass(frozen=True)
class Square:
    r: float

    def a(self):
        return self.r * 2.0

    @property
    def b(self):
        return self.r * 2.0


class Pair(NamedTuple):
    u: float
    k: float = 2.0


def with_default(x, k=2):
    return x


@functools.wraps(with_default)
def wrapped(x, k):
    return x * k


def like_numpy(x):
    return x * 2.0


like_numpy.__module__ = "numpy"
np.like_numpy = like_numpy


@njit
def key(v):
    return abs(v - 2.0 * ODD)


def ruled(x):
    return x


@zg.adjoint(ruled)
def rule(x):
    def back(dy):
        return (dy * 2.0,)

    return x, back


def kept(x):
    return x * x


@zg.adjoint(kept)
def rule_with_constant(x):
    def back(dy):
        return (dy * COUNT,)

    return x * x, back


COUNT = 2


@zg.ignore
def ignored(x):
    return 2.0 * ODD


def seen(g):
    return 2.0 * g


def again(x):
    return x * COUNT


checkpointed = zg.checkpoint(again)


def power(n):
    return lambda x: x**n


cube = power(COUNT + 1)
scaled = functools.partial(lambda k, x: k * x, 2)
FUNCTIONS = (lambda x: 2.0 * x, math.sin)


def first(x):
    values = [x, 2.0 * x, 4.0 * x, 6.0 * x]
    values.sort(key=key)
    return values[0]


def apply(f, x):
    return f(x)


def default(x, *, k=2.0):
    return k * x


class Power:
    def __init__(self):
        self.n = COUNT
        self.k = 2.0

    def __call__(self, x):
        return x**self.n

    def scaled(self, x):
        return self.k * x

    @property
    def twice(self):
        return 2.0 * ODD

    def odd(self, x):
        return x * self.twice


power_of = Power()


ALL = [
    (lambda x: Square(x).a(), 2.0, 3.0),
    (lambda x: Square(x).b, 2.0, 3.0),
    (lambda x: Pair(x).u * Pair(x).k, 2.0, 3.0),
    (lambda x: x * extra, 2.0, 3.0),  # noqa: F821
    (lambda x: x * np.extra, 2.0, 3.0),
    (lambda x: x * scipy.constants.extra, 2.0, 3.0),
    (lambda x: wrapped(x), 2.0, 3.0),
    (lambda x: like_numpy(x), 2.0, 3.0),
    (first, 4.0, 6.0),
    (lambda x: ruled(x), 2.0, 3.0),
    (lambda x: kept(x), 2.0, 3.0),
    (lambda x: x * ignored(x), 4.0, 9.0),
    (lambda x: zg.hook(x, seen), 2.0, 3.0),
    (lambda x: checkpointed(x), 2.0, 3.0),
    (lambda x: zg.checkpoint(again)(x), 2.0, 3.0),
    (lambda x: cube(x), 3.0, 4.0),
    (lambda x: scaled(x), 2.0, 3.0),
    (lambda x: FUNCTIONS[0](x), 2.0, 3.0),
    (lambda x: default(x), 2.0, 3.0),
    (lambda x: callee.outer(x), 2.0, 3.0),
    (power_of, 2.0, 3.0),
    (power_of.scaled, 2.0, 3.0),
    (lambda x: power_of.odd(x), 4.0, 9.0),
    (functools.partial(default, k=2.0), 2.0, 3.0),
]


def gradients():
    found = [zg.gradient(f)(1.0) for f, _, _ in ALL]
    return [*found, zg.gradient(apply, wrt="x")(again, 1.0)]
