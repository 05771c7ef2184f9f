"""The cost of five gradients as a function of the size of the input, over three decades.

    size_times(rounds=10, seconds=0.02)["heat"][100]     # {"primal": [...], "gradient": [...], "hand-written": [...]}

Each is compiled once, and timed for all sizes as the cases are. A gradient whose time for an element grows with the
number of elements would do more work than the function in a way that a single size does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numba
import numpy as np

from benchmarks import programs, step_programs
from benchmarks.measure import Times, interleaved
from zygote_py import gradient

Arguments = tuple[Any, ...]
Variants = dict[str, Callable[..., Any]]


def _elements(size: int) -> tuple[int, Arguments, Arguments]:
    return size, (np.random.default_rng(0).normal(size=size),), ()


def _coefficients(size: int) -> tuple[int, Arguments, Arguments]:
    return size, (0.99, np.random.default_rng(1).normal(size=size)), ()


def _steps(size: int) -> tuple[int, Arguments, Arguments]:
    return size, (1.1, 0.4, 0.8, 0.3, 2.0, 1.0, size), (np.empty(size), np.empty(size))


def _grid(size: int) -> tuple[int, Arguments, Arguments]:
    rng, shape, steps = np.random.default_rng(6), (size, size), 20
    state, conductivity, target = rng.normal(size=shape), rng.uniform(0.5, 1.5, shape), rng.normal(size=shape)
    return steps * (size - 2) ** 2, (state, conductivity, target, steps, 0.1), ()


def _matrix(size: int) -> tuple[int, Arguments, Arguments]:
    a = np.random.default_rng(7).normal(size=(size, size)) + size * np.eye(size)
    return size**3 // 3, (a,), ()


# The function, its hand-written gradient, by what it is differentiated, the sizes; and for a size the number of
# elements or of steps in inner loops, the arguments, and buffers of the hand-written gradient.
_Row = tuple[Callable[..., Any], Callable[..., Any], tuple[str, ...], tuple[int, ...], Callable[[int], Any]]
_POWERS = (100, 1_000, 10_000, 100_000)
SIZED: dict[str, _Row] = {
    "logsumexp": (programs.logsumexp, programs.logsumexp_by_hand, ("x",), _POWERS, _elements),
    "evalpoly": (programs.evalpoly, programs.evalpoly_by_hand, ("x", "c"), _POWERS, _coefficients),
    "rk4": (programs.rk4, programs.rk4_by_hand, ("alpha", "beta", "gamma", "delta", "u", "v"), _POWERS, _steps),
    "heat": (step_programs.heat, step_programs.heat_by_hand, ("u", "k"), (12, 34, 102, 318), _grid),
    "elimination": (step_programs.elimination, step_programs.elimination_by_hand, ("a",), (30, 65, 140, 300), _matrix),
}


def size_times(
    rounds: int, seconds: float, names: Collection[str] = tuple(SIZED), largest: int = 4
) -> dict[str, dict[int, Times]]:
    """Return the seconds for an element of each variant, by case and by the number of elements, for the first sizes.

    The gradients are compared with the hand-written ones first. Raises AssertionError.
    """
    found: dict[str, dict[int, Times]] = {}
    for name in names:
        function, by_hand, wrt, sizes, make = SIZED[name]
        primal = numba.njit(function)
        variants: Variants = {"primal": primal, "gradient": gradient(primal, wrt=wrt)}
        written = numba.njit(by_hand)
        found[name] = {}
        for size in sizes[:largest]:
            count, arguments, buffers = make(size)
            runs = {variant: partial(each, *arguments) for variant, each in variants.items()}
            runs["hand-written"] = partial(written, *arguments, *buffers)
            for made, expected in zip(_parts(runs["gradient"]()), _parts(runs["hand-written"]()), strict=True):
                np.testing.assert_allclose(made, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
            times = interleaved(runs, rounds, seconds)
            found[name][count] = {variant: [each / count for each in samples] for variant, samples in times.items()}
    return found


def _parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
