"""The cases: for each function the generated gradient and a hand-written one, compiled and ready to be checked and
timed.

    case = CASES["rk4"](fastmath=True)
    check(case)                               # benchmarks.measure
    interleaved(case.runs, rounds=10)

A run is large enough for the cost of calling compiled code from Python not to matter; small functions are called from a
compiled loop over many inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numba
import numpy as np

from benchmarks import programs
from benchmarks.array_cases import ARRAY_CASES
from benchmarks.case import Case
from benchmarks.step_cases import STEP_CASES
from zygote_py import gradient


def sincos(fastmath: bool) -> Case:
    """The paper's SinCos, over 1000 inputs."""
    jit = numba.njit(fastmath=fastmath)
    f, by_hand = jit(programs.sincos), jit(programs.sincos_by_hand)
    df = gradient(f)
    xs = np.linspace(-3.0, 3.0, 1000)
    runs = {name: partial(_sum_over(g), xs) for name, g in (("primal", f), ("gradient", df), ("hand-written", by_hand))}
    return Case("sincos", f, (0.7,), (0,), {"gradient": df, "hand-written": by_hand}, runs, len(xs))


def loop(fastmath: bool) -> Case:
    """The paper's Loop: `pow` with n = 1000; the tape of the hand-written gradient is allocated once."""
    jit = numba.njit(fastmath=fastmath)
    f, by_hand = jit(programs.power), jit(programs.power_by_hand)
    df = gradient(f, wrt="x")
    xs = np.linspace(0.999, 1.001, 50)
    tape = np.empty(1000)
    runs = {
        "primal": partial(_sum_over_with(f), xs, 1000),
        "gradient": partial(_sum_over_with(df), xs, 1000),
        "hand-written": partial(_sum_over_with_two(by_hand), xs, 1000, tape),
    }
    gradients = {"gradient": df, "hand-written": lambda x, n: by_hand(x, n, tape)}
    return Case("loop", f, (1.001, 1000), (0,), gradients, runs, len(xs))


def logsumexp(fastmath: bool) -> Case:
    """LogSumExp of 10,000 elements by two loops."""
    jit = numba.njit(fastmath=fastmath)
    f, by_hand = jit(programs.logsumexp), jit(programs.logsumexp_by_hand)
    df = gradient(f)
    x = np.random.default_rng(0).normal(size=10_000)
    gradients = {"gradient": df, "hand-written": by_hand}
    runs = {name: partial(g, x) for name, g in (("primal", f), *gradients.items())}
    return Case("logsumexp", f, (x,), (0,), gradients, runs)


def rk4(fastmath: bool) -> Case:
    """10,000 Runge-Kutta steps of Lotka-Volterra equations; the hand-written gradient allocates its buffers once."""
    jit = numba.njit(fastmath=fastmath)
    f, by_hand = jit(programs.rk4), jit(programs.rk4_by_hand)
    df = gradient(f, wrt=("alpha", "beta", "gamma", "delta", "u", "v"))
    arguments = (1.1, 0.4, 0.8, 0.3, 2.0, 1.0, 10_000)
    us, vs = np.empty(10_000), np.empty(10_000)
    runs = {
        "primal": partial(f, *arguments),
        "gradient": partial(df, *arguments),
        "hand-written": partial(by_hand, *arguments, us, vs),
    }
    gradients = {"gradient": df, "hand-written": lambda *arguments: by_hand(*arguments, us, vs)}
    return Case("rk4", f, arguments, tuple(range(6)), gradients, runs)


def evalpoly(fastmath: bool, terms: int = 1000) -> Case:
    """Horner's rule over a coefficient array, with respect to x and the coefficients."""
    jit = numba.njit(fastmath=fastmath)
    f, by_hand, one_pass = map(jit, (programs.evalpoly, programs.evalpoly_by_hand, programs.evalpoly_in_one_pass))
    df = gradient(f)
    c = np.random.default_rng(1).normal(size=terms)
    xs = np.linspace(0.98, 1.0, 50_000 // terms)
    gradients = {"gradient": df, "hand-written": by_hand, "one pass": one_pass}
    runs = {"primal": partial(_sum_over_with(f), xs, c)}
    runs |= {name: partial(_sum_over_pairs(g), xs, c) for name, g in gradients.items()}
    return Case("evalpoly" if terms == 1000 else f"evalpoly{terms}", f, (0.99, c), (0, 1), gradients, runs, len(xs))


def stack(fastmath: bool) -> Case:
    """A record in a list: a while loop of about 10,000 iterations whose trip count depends on the data."""
    jit = numba.njit(fastmath=fastmath)
    f, by_hand, bare = map(jit, (programs.grow, programs.grow_by_hand, programs.grow_without_record))
    df = gradient(f, wrt="x")
    x, limit = 1.001, 1.001**9_999.5
    gradients = {"gradient": df, "hand-written": by_hand}
    runs = {name: partial(g, x, limit) for name, g in (("primal", f), *gradients.items(), ("no record", bare))}
    return Case("stack", f, (x, limit), (0,), gradients, runs, step=5e-9)  # a longer one would change the trip count


STACK_VALUES = 10_000  # the number of iterations of `stack`, and of the values that it records

CASES: Mapping[str, Callable[[bool], Case]] = {
    "sincos": sincos,
    "loop": loop,
    "logsumexp": logsumexp,
    "rk4": rk4,
    "evalpoly": evalpoly,
    "evalpoly16": partial(evalpoly, terms=16),
    "stack": stack,
    **ARRAY_CASES,
    **STEP_CASES,
}


# The sum uses every result; the loops are compiled without fastmath, so that it costs the same in all variants.


def _sum_over(f: Callable[..., float]) -> Callable[..., float]:
    @numba.njit
    def run(xs):
        total = 0.0
        for x in xs:
            total += f(x)
        return total

    return run


def _sum_over_with(f: Callable[..., float]) -> Callable[..., float]:
    @numba.njit
    def run(xs, a):
        total = 0.0
        for x in xs:
            total += f(x, a)
        return total

    return run


def _sum_over_with_two(f: Callable[..., float]) -> Callable[..., float]:
    @numba.njit
    def run(xs, a, b):
        total = 0.0
        for x in xs:
            total += f(x, a, b)
        return total

    return run


def _sum_over_pairs(f: Callable[..., tuple[float, np.ndarray]]) -> Callable[..., float]:
    @numba.njit
    def run(xs, c):
        total = 0.0
        for x in xs:
            dx, dc = f(x, c)
            total += dx + dc[-1]
        return total

    return run
