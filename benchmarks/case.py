"""What a case is.

    Case("sincos", f, (0.7,), (0,), {"gradient": df, "by hand": by_hand}, runs)

A case does not check or time itself: `benchmarks.measure` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One benchmark.

    `function(*arguments)` is the primal, `gradients` give its gradient for the arguments numbered `wrt` in the same
    form each; `runs` are what is timed, `calls` calls at a time; `step` is that of the differences it is checked by.
    """

    name: str
    function: Callable[..., float]
    arguments: tuple[object, ...]
    wrt: tuple[int, ...]
    gradients: Mapping[str, Callable[..., object]]
    runs: Mapping[str, Callable[[], object]]
    calls: int = 1
    step: float = 1e-5
