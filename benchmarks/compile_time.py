"""The time to the first gradient of a function of ten lines, compared with Numba's compilation of the function.

    for name, samples in compile_times(rounds=7).items():
        print(name, min(samples["gradient"]) / min(samples["numba"]))

Both are timed in a warm process, in which Numba and the compiler have compiled other functions before. Every sample
compiles a new function, with a unique constant, so that no cache applies, in memory or on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numba
import numpy as np

from benchmarks.measure import Times
from zygote_py import gradient

STRAIGHT = """
def f(x, y):
    a = math.sin(x) * y
    b = math.exp(-a * a) + UNIQUE
    c = a / (1.0 + b * b)
    d = math.sqrt(c * c + x * x)
    e = d * y - math.log(1.0 + d)
    g = math.atan(e) + a * c
    h = g * g + b * x
    k = math.tanh(h - y)
    return k * e + d
"""
BRANCHES = """
def f(x, n):
    total = 0.0
    for i in range(n):
        if i % 2 == 0:
            total += math.sin(x * i)
        else:
            total *= x
        if total > 1e6:
            break
    return total / UNIQUE
"""
ARRAY = """
def f(x, y):
    total = 0.0
    scale = UNIQUE
    for i in range(len(x)):
        d = x[i] - y
        w = math.exp(-0.5 * d * d)
        total += w * x[i]
        scale += w
    mean = total / scale
    return mean * mean
"""
PROGRAMS = {
    "straight line": (STRAIGHT, (0.3, 0.7)),
    "loop and branches": (BRANCHES, (0.3, 20)),
    "array loop": (ARRAY, (np.linspace(0.0, 1.0, 50), 0.2)),
}


def fresh(source: str) -> Callable[..., float]:
    """Return the function in `source`, with a unique constant."""
    namespace: dict[str, object] = {}
    exec("import math" + source.replace("UNIQUE", f"1.{time.time_ns()}"), namespace)
    return namespace["f"]  # type: ignore[return-value]


def compile_times(rounds: int) -> dict[str, Times]:
    """Return, for each program, the seconds for the first call of the function (`numba`) and of its gradient,
    alternating.
    """
    compilers = {"numba": numba.njit, "gradient": gradient}
    found: dict[str, Times] = {name: {how: [] for how in compilers} for name in PROGRAMS}
    for warming in (True, *[False] * rounds):
        for name, (source, arguments) in PROGRAMS.items():
            for how, compiler in compilers.items():
                function = fresh(source)
                began = time.perf_counter()
                compiler(function)(*arguments)
                if not warming:
                    found[name][how].append(time.perf_counter() - began)
    return found
