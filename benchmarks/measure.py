"""Checks a case, then times its variants turn about.

    case = CASES["loop"](False)
    check(case)
    times = interleaved(case.runs, rounds=15, seconds=0.02)     # {"primal": [...], "gradient": [...], ...}

pyperf times each benchmark in processes of its own, minutes apart; a ratio is spoilt by a machine whose speed drifts.
So the variants of a case take turns here within one process, several processes one after another give
independent samples, and pyperf's file format holds the result (`benchmarks.report`).
"""

from __future__ import annotations

import multiprocessing
import timeit
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from benchmarks.case import Case
from benchmarks.cases import CASES

Times = dict[str, list[float]]


def check(case: Case, directions: int = 3) -> None:
    """Hold the gradients of a case against central differences and against each other. Raises AssertionError."""
    found = {name: _flat(gradient(*case.arguments)) for name, gradient in case.gradients.items()}
    reference = found["by hand"]
    scale = np.abs(reference).max()
    for name, values in found.items():
        error = np.abs(values - reference).max() / scale
        assert error < 1e-8, f"{case.name}: {name} differs from the gradient by hand by {error:.1e}"

    rng = np.random.default_rng(2)
    for _ in range(directions):
        direction = rng.normal(size=reference.size)
        expected = reference @ direction
        tolerance = 1e-6 * np.linalg.norm(reference) * np.linalg.norm(direction)
        error = abs(_slope(case, direction) - expected)
        assert error < tolerance, f"{case.name}: differences give {expected + error}, by hand {expected}"


def _flat(values: object) -> np.ndarray:
    return np.concatenate([np.ravel(value) for value in (values if isinstance(values, tuple) else (values,))])


def _slope(case: Case, direction: np.ndarray) -> float:
    """The derivative of the function along `direction`, by differences of fourth order."""

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
    """Time each run `rounds` times, turn about, for about `seconds` each time. Gives seconds a run."""
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


def time_case(name: str, fastmath: bool, rounds: int, seconds: float) -> tuple[Times, int]:
    """Build, check and time one case in this process: seconds a run, and the calls in a run."""
    case = CASES[name](fastmath)
    check(case)
    return interleaved(case.runs, rounds, seconds), case.calls


def time_in_processes(name: str, fastmath: bool, processes: int, rounds: int, seconds: float) -> Times:
    """As `time_case` in fresh processes, one after another. Gives seconds a call, the processes' samples in a row."""
    pooled: Times = {}
    for _ in range(processes):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
            times, calls = executor.submit(time_case, name, fastmath, rounds, seconds).result()
        for variant, samples in times.items():
            pooled.setdefault(variant, []).extend(sample / calls for sample in samples)
    return pooled


def ratio(times: Times, over: str, under: str, how: Callable[[Sequence[float]], float] = min) -> float:
    """How many times longer one variant takes than another, by their fastest samples unless `how` says otherwise."""
    return how(times[over]) / how(times[under])
