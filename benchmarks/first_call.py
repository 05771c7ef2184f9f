"""The time to the first call in a fresh process, of a function that Numba compiles and of its gradient.

    for name, seconds in first_calls().items():
        print(name, seconds["numba"], seconds["gradient"])

Times are in seconds on one core, after everything has been imported, without the cache on disk. They include the work
that a process does only once: Numba reads its type tables, and compiles the NumPy functions that it implements in
Python.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from zygote_py import gradient

Program = tuple[Callable[..., Any], tuple[Any, ...]]


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


def _programs() -> dict[str, Program]:
    rng = np.random.default_rng(0)
    three = np.eye(3)
    return {
        "step of an ODE, 10 lines": (ode_step, (0.3, 0.7, 1.2, 0.1, 0.01)),
        "network with softmax, 5 lines of NumPy calls": (
            network,
            (rng.normal(size=(4, 5)), rng.normal(size=(5, 3)), rng.normal(size=(6, 4)), np.ones((6, 3)) / 3),
        ),
        "sort, cumsum, median, var": (statistics, (rng.normal(size=9),)),
        "Kalman likelihood, 20 lines with `inv`, `solve`, `slogdet`": (
            kalman,
            (0.9 * three, 0.1 * three, rng.normal(size=(2, 3)), np.eye(2), rng.normal(size=(4, 2))),
        ),
        "eight arrays written in one loop": (eight_arrays, tuple(rng.normal(size=5) for _ in range(8))),
    }


def first_calls() -> dict[str, dict[str, float]]:
    """Return, for each program, the seconds of the first call of the function (`numba`) and of its gradient."""
    return {name: {how: _in_a_process(name, how) for how in ("numba", "gradient")} for name in _programs()}


def _in_a_process(name: str, how: str) -> float:
    program = f"from benchmarks.first_call import seconds\nprint(seconds({name!r}, {how!r}))"
    environment = {**os.environ, "ZYGOTE_PY_CACHE": "0", "ZYGOTE_PY_VERIFY": ""}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def seconds(name: str, how: str) -> float:
    """Return the seconds that the first call takes in this process."""
    function, arguments = _programs()[name]
    compiler: Any = {"numba": numba.njit, "gradient": gradient}[how]
    began = time.process_time()
    compiler(function)(*arguments)
    return time.process_time() - began
