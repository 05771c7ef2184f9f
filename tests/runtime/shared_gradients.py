"""Functions and gradients that other processes import, and what runs in them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from zygote_py import gradient, pullback, value_and_gradient

WEIGHTS = np.array([1.0, 2.0, 3.0])


def curve(x: Any) -> Any:
    return math.sin(x) * x


def weighed(x, n=2):
    return np.sum(WEIGHTS * x**n)


@gradient
def decorated(x, y):
    return x * y * y


@value_and_gradient(wrt="y")
@njit(fastmath=True)
def decorated_twice(x, y):
    return x * y * y


class Holder:
    @staticmethod
    @gradient
    def held(x):
        return x * x * x


undecorated = decorated.primal
d_curve = gradient(curve)
d_weighed = gradient(weighed, wrt="x")
of_decorated = value_and_gradient(decorated.primal, wrt=0)


def scaled(k):
    def f(x):
        return k * x * x

    return f


def call(function, *args):
    return function(*args)


def pulled(x):
    _, back = pullback(curve, x)
    return back
