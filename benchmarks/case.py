"""The description of a benchmark.

    Case("sincos", f, (0.7,), (0,), {"gradient": df, "hand-written": by_hand}, runs)

`benchmarks.measure` checks and times it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One benchmark.

    Attributes
    ----------
    name : str
        The name of the case.
    function : callable
        The primal.
    arguments : tuple
        The arguments of the primal.
    wrt : tuple of int
        The indices of the arguments with a gradient.
    gradients : mapping of str to callable
        Functions that return the gradient for `arguments`, all in the same form.
    runs : mapping of str to callable
        The functions that are timed.
    calls : int
        The number of calls in a run.
    step : float
        The step of the finite differences with which the gradients are checked.
    """

    name: str
    function: Callable[..., float]
    arguments: tuple[object, ...]
    wrt: tuple[int, ...]
    gradients: Mapping[str, Callable[..., object]]
    runs: Mapping[str, Callable[[], object]]
    calls: int = 1
    step: float = 1e-5
