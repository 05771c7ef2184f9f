"""The description of a benchmark on a device.

    Case("elementwise", "...", {"primal": primal, "gradient": gradient, ...}, peers, references, sample, 1e-10, bars)

`benchmarks.cuda.measure` checks and times it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = Sequence[np.ndarray]


class MissingError(Exception):
    """A library is not installed, or does not see the device."""


@dataclass(frozen=True)
class Runner:
    """A computation that is timed.

    Attributes
    ----------
    run : callable
        Queue the computation once; returns what `wait` takes.
    wait : callable
        Wait for the end of all that is queued.
    result : callable
        Return what the last run has computed, in arrays on the host.
    computes : str
        "primal" or "gradient", which say what `result` is compared with, or "copy".
    has_events : bool
        Whether the computation runs in the stream in which Numba's events are recorded.
    """

    run: Callable[[], Any]
    wait: Callable[[Any], object]
    result: Callable[[], Arrays]
    computes: str = "gradient"
    has_events: bool = True


Peers = Mapping[str, Callable[[], Runner]]


@dataclass(frozen=True)
class Bar:
    """A limit for the ratio of two times.

    Attributes
    ----------
    text : str
        The limit in words.
    over, under : str
        The variants whose fastest times are divided. A name stands for all variants that begin with it and a comma.
    limit : float
        The largest ratio that meets the bar, or the smallest.
    is_least : bool
        Whether it is the smallest.
    by_events : bool
        Whether times on the device are compared; if not, those of whole calls, which all variants have.
    """

    text: str
    over: str
    under: str
    limit: float
    is_least: bool
    by_events: bool

    def is_met(self, ratio: float) -> bool:
        """Return whether a ratio meets the bar."""
        return ratio >= self.limit if self.is_least else ratio <= self.limit


@dataclass(frozen=True)
class Case:
    """A benchmark on a device.

    Attributes
    ----------
    name, title : str
        Its name, and what it computes.
    runners : mapping of str to callable
        Functions that make the runners of this package, of hand-written kernels and of copies.
    peers : mapping of str to callable
        Those of other libraries, any of which may be missing.
    references : mapping of str to arrays
        The values that a runner computes at `sample`, from NumPy and formulas.
    sample : array of int
        The items that are compared with `references`. All items are compared with those of the gradient.
    tolerance : float
        The largest error, relative to the largest value.
    bars : sequence of Bar
        The limits that are reported.
    """

    name: str
    title: str
    runners: Mapping[str, Callable[[], Runner]]
    peers: Peers
    references: Mapping[str, Arrays]
    sample: np.ndarray
    tolerance: float
    bars: Sequence[Bar]


def gradient_bars(copy: float | None = None, peers: float | None = None) -> list[Bar]:
    """Return the bar for the primal, and those for a copy and for other libraries that have a limit."""
    bars = [Bar("at most 4 x the primal kernel", "gradient", "primal", 4.0, is_least=False, by_events=True)]
    if copy is not None:
        bars.append(Bar(f"within {copy} x of a copy", "gradient", "copy", copy, is_least=False, by_events=True))
    if peers is not None:
        how = f"ahead of {{}} by {peers:g} x" if peers != 1.0 else "ahead of {}"
        bars += [
            Bar(how.format(name), name, "gradient", peers, is_least=True, by_events=False)
            for name in ("JAX", "PyTorch")
        ]
    return bars
