"""Gradients of functions with `parallel=True`: one thread, and all of Numba's.

    times = thread_times(rounds=15, seconds=0.02, quick=False)      # {"paths": {"function": [...], ...}, ...}

"in order" is the gradient of the same function without `parallel=True`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.measure import Times, interleaved
from benchmarks.thread_programs import programs
from zygote_py import gradient


def thread_times(rounds: int, seconds: float, quick: bool) -> dict[str, Times]:
    """Return the seconds per call of functions and gradients. Raises AssertionError if gradients differ."""
    found = {}
    for name, (function, args) in programs(quick).items():
        parallel, in_order = numba.njit(parallel=True)(function), numba.njit(function)
        wrt = tuple(number for number, arg in enumerate(args) if not isinstance(arg, int))
        ours, theirs = (gradient(each, wrt=wrt, mode="reverse") for each in (parallel, in_order))
        for one, other in zip(ours(*args), theirs(*args), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
        found[name] = interleaved(
            {
                "function": _call(in_order, args),
                "function, threads": _call(parallel, args),
                "in order": _call(theirs, args),
                "one thread": _call(ours, args, 1),
                "threads": _call(ours, args),
            },
            rounds,
            seconds,
        )
    return found


def _call(function: Callable[..., object], args: tuple[Any, ...], threads: int | None = None) -> Callable[[], object]:
    def run() -> object:
        if threads is None:
            return function(*args)
        before = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            return function(*args)
        finally:
            numba.set_num_threads(before)

    return run
