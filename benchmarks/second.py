"""Second derivatives and Jacobians, compared with hand-written ones, where these are practical, and with a gradient.

    case = SECOND["rosenbrock_hvp"]()
    check_second(case)
    interleaved(case.runs, rounds=15, seconds=0.02)     # {"primal": ..., "gradient": ..., "second": ..., ...}

Compile time is measured too: that of the second derivative relative to the first, for fresh functions.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import FunctionType

import numba
import numpy as np

from benchmarks import array_programs, programs, second_programs
from benchmarks.array_cases import ARRAY_CASES
from benchmarks.measure import Times
from zygote_py import gradient, hessian, hvp, jacobian


@dataclass(frozen=True)
class Second:
    """One benchmark: the timed functions, and the expected result of the function "second" among them."""

    name: str
    runs: Mapping[str, Callable[[], object]]
    expected: Callable[[], object]


def rosenbrock_hessian() -> Second:
    """The Hessian of a Rosenbrock function of 20 variables."""
    jit = numba.njit
    f, by_hand = jit(second_programs.rosenbrock), jit(second_programs.rosenbrock_hessian_by_hand)
    x = np.linspace(-1.0, 1.5, 20)
    runs = {"primal": f, "gradient": gradient(f), "second": hessian(f), "hand-written": by_hand}
    return Second("rosenbrock_hessian", {name: partial(run, x) for name, run in runs.items()}, partial(by_hand, x))


def rosenbrock_hvp() -> Second:
    """The product of the Hessian of a Rosenbrock function of 1000 variables with a vector."""
    jit = numba.njit
    f, by_hand = jit(second_programs.rosenbrock), jit(second_programs.rosenbrock_hvp_by_hand)
    x, v = np.linspace(-1.0, 1.5, 1000), np.cos(np.arange(1000.0))
    runs = {
        "primal": partial(f, x),
        "gradient": partial(gradient(f), x),
        "second": partial(hvp(f), x, v),
        "hand-written": partial(by_hand, x, v),
    }
    return Second("rosenbrock_hvp", runs, partial(by_hand, x, v))


def mixture_hessian() -> Second:
    """The Hessian of the log-likelihood of a mixture of 5 Gaussians in 4 dimensions with respect to the means."""
    case = ARRAY_CASES["mixture"](False)
    f = case.function
    alphas, means, factors, x, gamma, m = case.arguments
    means = np.ascontiguousarray(means[:5, :4])  # type: ignore[index]
    factors = np.ascontiguousarray(factors[:5, :10])  # type: ignore[index]
    args = (alphas[:5].copy(), means, factors, x[:200, :4].copy(), gamma, m)  # type: ignore[index]
    slope = gradient(f, wrt="means")
    runs = {"primal": f, "gradient": slope, "second": hessian(f, wrt="means")}

    def expected() -> object:
        found = np.empty(means.shape * 2)
        for index in np.ndindex(means.shape):
            step = np.zeros_like(means)
            step[index] = 1e-5
            ahead, back = (slope(args[0], means + sign * step, *args[2:]) for sign in (1, -1))
            found[..., *index] = (np.asarray(ahead) - np.asarray(back)) / 2e-5
        return found

    return Second("mixture_hessian", {name: partial(run, *args) for name, run in runs.items()}, expected)


def rk4_jacobian() -> Second:
    """The Jacobian of the final state of a Runge-Kutta method with respect to the four rates of its equations."""
    jit = numba.njit
    f, by_hand = jit(second_programs.final_state), jit(second_programs.final_state_by_hand)
    args = (1.5, 1.0, 3.0, 1.0, 1.0, 1.0, 1000)
    runs = {
        "primal": f,
        "gradient": gradient(jit(programs.rk4), wrt=(0, 1, 2, 3)),
        "second": jacobian(f, wrt=(0, 1, 2, 3)),
        "hand-written": by_hand,
    }
    return Second("rk4_jacobian", {name: partial(run, *args) for name, run in runs.items()}, partial(by_hand, *args))


SECOND: dict[str, Callable[[], Second]] = {
    each.__name__: each for each in (rosenbrock_hessian, rosenbrock_hvp, mixture_hessian, rk4_jacobian)
}


def check_second(case: Second) -> None:
    """Compare the generated second derivative with the expected one. Raises AssertionError."""
    found, expected = (np.asarray(run()) for run in (case.runs["second"], case.expected))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.max(np.abs(expected)))


COMPILED: dict[str, tuple[Callable[..., float], tuple[object, ...], Mapping[str, Callable[..., object]]]] = {
    "rosenbrock": (
        second_programs.rosenbrock,
        (np.linspace(0.0, 1.0, 20),),
        {"gradient": gradient, "hvp": hvp, "hessian": hessian},
    ),
    "rk4": (
        programs.rk4,
        (1.5, 1.0, 3.0, 1.0, 1.0, 1.0, 10),
        {"gradient": partial(gradient, wrt="alpha"), "hvp": hvp, "hessian": hessian},
    ),
    "logsumexp": (
        array_programs.logsumexp,
        (np.linspace(0.0, 1.0, 20),),
        {"gradient": gradient, "hvp": hvp, "hessian": hessian},
    ),
}


def compile_second(rounds: int) -> dict[str, Times]:
    """Return, for each program, the seconds to the first result of the gradient and of second derivatives, alternating.

    Every sample compiles a copy of the function that no cache contains.
    """
    found: dict[str, Times] = {name: {how: [] for how in makers} for name, (_, _, makers) in COMPILED.items()}
    for warming in (True, *[False] * rounds):
        for name, (function, args, makers) in COMPILED.items():
            for how, make in makers.items():
                given = (*args, args[0]) if how == "hvp" else args
                derivative = make(_copy(function))
                gc.collect()  # so that no sample pays for the garbage of others
                began = time.perf_counter()
                derivative(*given)  # type: ignore[operator]
                if not warming:
                    found[name][how].append(time.perf_counter() - began)
    return found


def _copy(function: Callable[..., float]) -> FunctionType:
    """Return a copy of a function whose code has a unique constant, so that no cache contains it."""
    assert isinstance(function, FunctionType)
    code = function.__code__
    unique = code.replace(co_consts=(*code.co_consts, time.time_ns()))
    return FunctionType(unique, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
