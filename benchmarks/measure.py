"""Check a case, then time its variants in alternation.

    case = CASES["loop"](False)
    check(case)
    times = interleaved(case.runs, rounds=15, seconds=0.02)     # {"primal": [...], "gradient": [...], ...}

pyperf times each benchmark in separate processes, minutes apart; on a machine whose speed drifts this spoils a ratio.
Here the variants of a case alternate within one process, and several consecutive processes provide independent samples.
The result is stored in pyperf's file format (`benchmarks.report`).
"""

from __future__ import annotations

import multiprocessing
import timeit
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from benchmarks.case import Case
from benchmarks.cases import CASES
from benchmarks.peers import installed, with_peer

Times = dict[str, list[float]]


def check(case: Case, directions: int = 3) -> None:
    """Compare the gradients of a case with finite differences and with each other. Raises AssertionError."""
    found = {name: _flat(gradient(*case.arguments)) for name, gradient in case.gradients.items()}
    reference = found["hand-written"]
    scale = np.abs(reference).max()
    for name, values in found.items():
        error = np.abs(values - reference).max() / scale
        assert error < 1e-8, f"{case.name}: {name} differs from the hand-written gradient by {error:.1e}"

    rng = np.random.default_rng(2)
    for _ in range(directions):
        direction = rng.normal(size=reference.size)
        expected = reference @ direction
        tolerance = 1e-6 * np.linalg.norm(reference) * np.linalg.norm(direction)
        error = abs(_slope(case, direction) - expected)
        assert error < tolerance, f"{case.name}: finite differences give {expected + error}, expected {expected}"


def _flat(values: object) -> np.ndarray:
    return np.concatenate([np.ravel(value) for value in (values if isinstance(values, tuple) else (values,))])


def _slope(case: Case, direction: np.ndarray) -> float:
    """Return the derivative of the function along `direction`, by finite differences of fourth order."""

    def along(t: float) -> float:
        arguments, used = list(case.arguments), 0
        for index in case.wrt:
            value = np.asarray(arguments[index], dtype=float)
            moved = value + t * direction[used : used + value.size].reshape(value.shape)
            arguments[index] = moved if value.ndim else float(moved)
            used += value.size
        return case.function(*arguments)

    h = case.step
    return (8.0 * (along(h) - along(-h)) - (along(2.0 * h) - along(-2.0 * h))) / (12.0 * h)


def interleaved(runs: Mapping[str, Callable[[], object]], rounds: int, seconds: float) -> Times:
    """Time each run `rounds` times, alternating, for about `seconds` each time; return the seconds per run."""
    timers = {name: timeit.Timer(run) for name, run in runs.items()}
    numbers = {}
    for name, timer in timers.items():
        number, took = timer.autorange()
        numbers[name] = max(1, round(number * seconds / took))
    times: Times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, timer in timers.items():
            times[name].append(timer.timeit(numbers[name]) / numbers[name])
    return times


def time_case(name: str, fastmath: bool, rounds: int, seconds: float, peer: str | None = None) -> tuple[Times, int]:
    """Build, check and time one case in this process; return the seconds per run, and the calls in a run.

    With a `peer`, another package, its gradient is timed in turn with the others.
    """
    case = CASES[name](fastmath)
    case = case if peer is None else with_peer(case, peer)
    check(case)
    return interleaved(case.runs, rounds, seconds), case.calls


def time_in_processes(name: str, fastmath: bool, processes: int, rounds: int, seconds: float) -> Times:
    """Time a case in fresh processes, one after another, and as many for each other package that is installed.

    Return the seconds per call, with the samples of all processes.
    """
    pooled: Times = {}
    for peer in [peer for peer in installed() or [None] for _ in range(processes)]:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
            times, calls = executor.submit(time_case, name, fastmath, rounds, seconds, peer).result()
        for variant, samples in times.items():
            pooled.setdefault(variant, []).extend(sample / calls for sample in samples)
    return pooled


def ratio(times: Times, over: str, under: str, how: Callable[[Sequence[float]], float] = min) -> float:
    """Return the ratio of the times of two variants: of the fastest samples, unless `how` selects another statistic."""
    return how(times[over]) / how(times[under])
