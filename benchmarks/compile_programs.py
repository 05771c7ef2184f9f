"""Functions whose first derivatives users wait for, with arguments: statistics, physics, finance, NumPy.

    function, arguments = ROWS["kalman"].program()
    gradient(function)(*arguments)

This module does not import zygote_py or compile anything: `benchmarks.compile_time` times what it imports itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from benchmarks import array_programs, eikonal, programs, transits
from benchmarks.second_programs import rosenbrock

Program = tuple[Callable[..., float], tuple[Any, ...]]


@dataclass(frozen=True)
class Row:
    """A function of the table of compile times.

    Attributes
    ----------
    title : str
        What it computes.
    program : callable
        Returns a function that Numba can compile, and its arguments.
    hessian : bool
        Whether the table has its Hessian with respect to the first argument.
    """

    title: str
    program: Callable[[], Program]
    hessian: bool = True


def ode_step(x, v, k, c, h):
    """The energy after a step of a damped pendulum by Heun's method."""
    ax = v
    av = -k * math.sin(x) - c * v
    xs = x + h * ax
    vs = v + h * av
    bx = vs
    bv = -k * math.sin(xs) - c * vs
    x1 = x + 0.5 * h * (ax + bx)
    v1 = v + 0.5 * h * (av + bv)
    return 0.5 * v1 * v1 + k * (1.0 - math.cos(x1))


def network(w, u, x, labels):
    """The cross-entropy of a network with one hidden layer."""
    hidden = np.tanh(x @ w)
    scores = hidden @ u
    e = np.exp(scores - np.max(scores))
    return -np.sum(labels * np.log(e / np.sum(e)))


def statistics(x):
    """Order statistics and variance."""
    y = np.sort(x)
    return np.sum(np.cumsum(y) * y) + np.median(x) * np.var(x)


def kalman(a, q, h, r, ys):
    """The log-likelihood of observations in a linear Gaussian model."""
    n = a.shape[0]
    m = np.zeros(n)
    p = np.eye(n)
    total = 0.0
    for t in range(ys.shape[0]):
        m = a @ m
        p = a @ p @ a.T + q
        s = h @ p @ h.T + r
        e = ys[t] - h @ m
        _, logdet = np.linalg.slogdet(s)
        total -= 0.5 * (logdet + np.dot(e, np.linalg.solve(s, e)))
        gain = p @ h.T @ np.linalg.inv(s)
        m = m + gain @ e
        p = p - gain @ h @ p
    return total


def eight_arrays(a, b, c, d, e, f, g, h):
    """A loop that reads and writes eight arrays."""
    s = 0.0
    for i in range(len(a)):
        a[i] = b[i] * c[i]
        b[i] = c[i] + d[i] * a[i]
        c[i] = d[i] * e[i]
        d[i] = e[i] + f[i] * c[i]
        e[i] = f[i] * g[i]
        f[i] = g[i] + h[i] * e[i]
        g[i] = h[i] * a[i]
        h[i] = a[i] + b[i] * g[i]
        s += h[i] * f[i]
    return s


def of_tuple(values, x):
    """A polynomial with a tuple of coefficients."""
    total = 0.0
    for value in values:
        total = total * x + math.sin(value)
    return total


def egarch(parameters, residuals, backcast, bounds, p, o, q):
    """The negative log-likelihood of residuals under an EGARCH(p, o, q) model (Nelson, 1991).

    The logarithm of the variance is a constant, and terms in the size of the last p shocks, in the last o shocks and in
    the last q logarithms. Variances are kept in bounds.
    """
    n = len(residuals)
    expected = math.sqrt(2.0 / math.pi)
    logs, shocks = np.empty(n), np.empty(n)
    total = 0.0
    for t in range(n):
        place = 0
        logs[t] = parameters[place]
        place += 1
        for j in range(p):
            if t - 1 - j >= 0:
                logs[t] += parameters[place] * (abs(shocks[t - 1 - j]) - expected)
            place += 1
        for j in range(o):
            if t - 1 - j >= 0:
                logs[t] += parameters[place] * shocks[t - 1 - j]
            place += 1
        for j in range(q):
            logs[t] += parameters[place] * (logs[t - 1 - j] if t - 1 - j >= 0 else backcast)
            place += 1
        logs[t] = min(logs[t], 700.0)
        variance = math.exp(logs[t])
        if variance < bounds[t, 0]:
            variance = bounds[t, 0]
            logs[t] = math.log(variance)
        elif variance > bounds[t, 1]:
            variance = bounds[t, 1] + math.log(variance / bounds[t, 1])
            logs[t] = math.log(variance)
        shocks[t] = residuals[t] / math.sqrt(variance)
        total += 0.5 * (math.log(2.0 * math.pi) + logs[t] + shocks[t] ** 2)
    return total


def _normal(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=shape) for shape in shapes)


def _network() -> Program:
    return network, (*_normal((4, 5), (5, 3), (6, 4)), np.ones((6, 3)) / 3)


def _kalman() -> Program:
    h, ys = _normal((2, 3), (4, 2))
    return kalman, (0.9 * np.eye(3), 0.1 * np.eye(3), h, np.eye(2), ys)


def _tuple() -> Program:
    (values,) = _normal((80,))
    return of_tuple, (tuple(values.tolist()), 0.5)


def _egarch() -> Program:
    bounds = np.array([[1e-6, 1e6]] * 20)
    return egarch, (np.array([0.1, 0.2, -0.1, 0.8]), *_normal((20,)), 0.1, bounds, 1, 1, 1)


def _logistic() -> Program:
    x, w, y = _normal((50, 10), (10,), (50,))
    return array_programs.logistic, (w, x, np.sign(y))


def _perceptron() -> Program:
    return array_programs.perceptron, (*_normal((7, 4), (4,), (4, 3), (3,), (6, 7)), np.arange(6) % 3)


def _nbody() -> Program:
    function = array_programs.nbody_with(numba.njit(array_programs.accelerate))
    return function, (*_normal((3, 3), (3, 3)), np.ones(3), 5)


def _mixture() -> Program:
    return array_programs.mixture, (*_normal((3,), (3, 2), (3, 3), (5, 2)), 1.0, 0)


ROWS: Mapping[str, Row] = {
    "ode": Row("step of an ODE, 10 lines", lambda: (ode_step, (0.3, 0.7, 1.2, 0.1, 0.01))),
    "network": Row("network with softmax, 5 lines of NumPy calls", _network),
    "statistics": Row("sort, cumsum, median, var", lambda: (statistics, _normal((9,)))),
    "kalman": Row("Kalman likelihood, 20 lines with `inv`, `solve`, `slogdet`", _kalman),
    "eight": Row("eight arrays written in one loop", lambda: (eight_arrays, _normal(*[(5,)] * 8))),
    "tuple": Row("tuple of 80 items, loop over it", _tuple, hessian=False),
    "egarch": Row("EGARCH likelihood, 35 lines", _egarch),
    "qpower2": Row("transit light curve, 180 lines", lambda: (transits.log_likelihood, transits.example())),
    "eikonal": Row("eikonal solver in 3-D, 280 lines", lambda: (eikonal.misfit, eikonal.example()), hessian=False),
    "sincos": Row("`sin(cos(x))`", lambda: (programs.sincos, (0.7,))),
    "pow": Row("`pow`", lambda: (programs.power, (1.001, 20))),
    "logsumexp": Row("LogSumExp by loop", lambda: (programs.logsumexp, _normal((9,)))),
    "rk4": Row("Lotka-Volterra by Runge-Kutta", lambda: (programs.rk4, (1.1, 0.4, 0.8, 0.3, 2.0, 1.0, 9))),
    "evalpoly": Row("Horner's rule", lambda: (programs.evalpoly, (0.99, *_normal((9,))))),
    "stack": Row("`while` loop ended by the data", lambda: (programs.grow, (1.01, 2.0))),
    "logsumexp_numpy": Row("LogSumExp by NumPy calls", lambda: (array_programs.logsumexp, _normal((9,)))),
    "logistic": Row("logistic regression", _logistic),
    "perceptron": Row("perceptron", _perceptron),
    "nbody": Row("leapfrog of bodies in arrays", _nbody),
    "mixture": Row("Gaussian mixture of ADBench", _mixture),
    "rosenbrock": Row("Rosenbrock's function", lambda: (rosenbrock, _normal((9,)))),
}
