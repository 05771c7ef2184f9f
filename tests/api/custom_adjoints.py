"""Functions with rules for `tests.api.test_custom`, and the same functions without."""

import math
from types import FunctionType
from typing import NamedTuple

import numpy as np

import zygote_py as zg

X = np.array([0.5, 1.2, -0.3, 0.8])


def without_rule(function):
    """The same function as another one, which has no rule."""
    namespace = dict(function.__globals__)
    made = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)
    namespace[function.__name__] = made
    return made


def mul(a, b):
    return a * b


@zg.adjoint(mul)
def rule_of_mul(a, b):
    def back(dy):
        return dy * b, dy * a

    return a * b, back


def norm(x):
    return math.sqrt(np.sum(x * x))


@zg.adjoint(norm)
def rule_of_norm(x):
    y = math.sqrt(np.sum(x * x))

    def back(dy):
        return (dy / y * x,)

    return y, back


def mul_sum(x, w):
    return x * np.sum(w), w * x


@zg.adjoint(mul_sum)
def rule_of_mul_sum(x, w):
    s = np.sum(w)

    def back(dy):
        dz, dv = dy
        return dz * s + np.sum(dv * w), dz * x + dv * x

    return (x * s, w * x), back


class Line(NamedTuple):
    w: np.ndarray
    b: float


def at(line, x):
    return np.dot(line.w, x) + line.b


@zg.adjoint(at)
def rule_of_at(line, x):
    def back(dy):
        return (dy * x, dy), dy * line.w

    return np.dot(line.w, x) + line.b, back


def power(x, n):
    if n == 0:
        return 1.0
    return x * power(x, n - 1)


@zg.adjoint(power)
def rule_of_power(x, n):
    def back(dy):
        return dy * n * power(x, n - 1) if n > 0 else 0.0, None

    return power(x, n), back


# Programs, each as a function of what stands for the functions above: with the rule, and without.


def overwritten(mul):
    def program(x):
        s = 0.0
        y = x.copy()
        for _ in range(4):
            z = mul(y, x)
            s += np.sum(z)
            y[:] = np.sin(z)
            z[0] = 3.0
        return s + np.sum(y)

    return program


def in_loop_and_branch(mul):
    def program(x, n):
        s = 1.0
        for i in range(n):
            s = mul(s, x + i) if i % 2 == 0 else s + mul(x, math.sin(s))
            if s > 20.0:
                break
        return s

    return program


def recursive(mul):
    def program(x, n):
        if n == 0:
            return mul(x, x)
        if x > 1.0:
            return program(mul(x, 0.5), n - 1) + x
        return mul(program(x * 1.2, n - 1), math.sin(x))

    return program


def views(mul):
    def program(x):
        y = mul(x[1:], x[:-1])
        return np.sum(mul(y[::2], y[::2])) + mul(x, x)[0]

    return program


def tuples(mul_sum):
    def program(x, w):
        a, v = mul_sum(x, w)
        b, u = mul_sum(a, v)
        return a * b + np.sum(v * u)

    return program


def squares(norm):
    def program(x):
        s = 0.0
        for i in range(len(x) - 1):
            s += norm(x[i:]) ** 2 * norm(x)
        return s

    return program
