"""The cases that go forward step by step, which `benchmarks.cases` includes with the others.

case = STEP_CASES["lstm"](fastmath=True)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np

from benchmarks import step_programs
from benchmarks.array_cases import array_case
from benchmarks.case import Case


def _network(fastmath: bool, name: str, gates: int) -> Case:
    jit: Any = numba.njit(fastmath=fastmath)
    rng = np.random.default_rng(5)
    units, letters, steps = 100, 65, 25
    wx, wh = 0.1 * rng.normal(size=(gates * units, letters)), 0.1 * rng.normal(size=(gates * units, units))
    wy, b, by = (0.1 * rng.normal(size=size) for size in ((letters, units), gates * units, letters))
    symbols = rng.integers(0, letters, steps), rng.integers(0, letters, steps)
    weights = (wx, wh, wy, b, by) if gates == 1 else (wx, wh, b, wy, by)
    states = (np.zeros(units),) if gates == 1 else (np.zeros(units), np.zeros(units))
    by_hand = getattr(step_programs, f"{name}_by_hand")
    softmax = jit(step_programs.softmax)
    return array_case(name, jit(getattr(step_programs, name)), jit(by_hand(softmax)), (*weights, *states, *symbols), 5)


def recurrent(fastmath: bool) -> Case:
    """A recurrent network of 100 units over 25 of 65 letters, with respect to its weights."""
    return _network(fastmath, "recurrent", 1)


def lstm(fastmath: bool) -> Case:
    """An LSTM of 100 units over 25 of 65 letters, with respect to its weights."""
    return _network(fastmath, "lstm", 4)


def heat(fastmath: bool) -> Case:
    """200 steps of a heat equation on 64 x 64 places, with respect to the first state and the conductivities."""
    jit = numba.njit(fastmath=fastmath)
    rng = np.random.default_rng(6)
    arguments = (rng.normal(size=(64, 64)), rng.uniform(0.5, 1.5, (64, 64)), rng.normal(size=(64, 64)), 200, 0.1)
    return array_case("heat", jit(step_programs.heat), jit(step_programs.heat_by_hand), arguments, 2)


def elimination(fastmath: bool) -> Case:
    """Elimination in a 100 x 100 matrix in place, with respect to the matrix."""
    jit = numba.njit(fastmath=fastmath)
    a = np.random.default_rng(7).normal(size=(100, 100)) + 100.0 * np.eye(100)
    return array_case("elimination", jit(step_programs.elimination), jit(step_programs.elimination_by_hand), (a,), 1)


STEP_CASES: Mapping[str, Callable[[bool], Case]] = {
    "recurrent": recurrent,
    "lstm": lstm,
    "heat": heat,
    "elimination": elimination,
}
