"""Check all runners of a case, then time them in alternation.

found = measured(case, rounds=15, seconds=0.02)
found.calls["gradient"]         # [0.00213, ...], seconds of a call
found.device["gradient"]        # [0.00208, ...], seconds on the device
found.first["gradient"]         # 1.8, seconds of the first call, which compiles
found.errors["gradient"]        # 3e-16, the largest difference from the reference
found.missing["JAX"]            # why it has no times
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from benchmarks.cuda.case import Arrays, Bar, Case, MissingError, Runner
from benchmarks.cuda.device import by_events, calls, of_calls, queueing_seconds
from benchmarks.measure import Times

SECONDS = 60.0  # after which a case has no more rounds, once it has had
LEAST_ROUNDS = 3


@dataclass
class Measured:
    """The times of a case, by the name of the variant."""

    case: Case
    calls: Times = field(default_factory=dict)
    device: Times = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def ratio(self, bar: Bar) -> float | None:
        """Return the ratio that a bar limits, of medians; None if one of the times is missing."""
        times = self.device if bar.by_events else self.calls
        over, under = fastest(times, bar.over), fastest(times, bar.under)
        return None if over is None or under is None else over / under


def fastest(times: Times, name: str) -> float | None:
    """Return the smallest median of the variants that a name stands for."""
    found = [median(each) for variant, each in times.items() if variant == name or variant.startswith(f"{name},")]
    return min(found, default=None)


def measured(case: Case, rounds: int, seconds: float) -> Measured:
    """Return the times of a case whose results have all been checked.

    Raises AssertionError if a runner computes something else. A library that is missing, or that fails, as for want of
    memory, has no times.
    """
    found = Measured(case)
    runners: dict[str, Runner] = {}
    expected: dict[str, Arrays] = {}
    for name, make in {**case.runners, **case.peers}.items():
        print(f"{case.name}: {name} ...", file=sys.stderr, flush=True)
        start = time.perf_counter()
        try:
            runner = make()
            runner.wait(runner.run())
        except MissingError as error:
            found.missing[name] = str(error)
            continue
        except Exception as error:
            if name in case.runners:
                raise
            found.missing[name] = _in_a_line(error)
            continue
        found.first[name] = time.perf_counter() - start
        results = runner.result()
        found.errors[name] = check(case, name, runner.computes, results, expected)
        runners[name] = runner
    _time(found, runners, rounds, seconds)
    runners.clear()
    gc.collect()
    return found


def check(case: Case, name: str, computes: str, results: Arrays, expected: dict[str, Arrays]) -> float:
    """Return the error of results at the sample, after comparing all of them with the first of this kind.

    Raises AssertionError if an error is not below the tolerance.
    """
    error = _error(f"{case.name}: {name}", [each[case.sample] for each in results], case.references[computes])
    assert error < case.tolerance, f"{case.name}: {name} differs from the reference by {error:.1e}"
    first = expected.setdefault(computes, [each.copy() for each in results])
    between = _error(f"{case.name}: {name}", results, first)
    assert between < 2.0 * case.tolerance, f"{case.name}: {name} differs from the first variant by {between:.1e}"
    return error


def _error(text: str, results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    assert len(results) == len(expected), f"{text} has {len(results)} results, not {len(expected)}"
    for number, (each, other) in enumerate(zip(results, expected, strict=True)):
        assert each.shape == other.shape, f"{text}: result {number} has the shape {each.shape}, not {other.shape}"
        assert np.isfinite(each).all(), f"{text}: result {number} is not finite"
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(results, expected, strict=True))


def _time(found: Measured, runners: dict[str, Runner], rounds: int, seconds: float) -> None:
    numbers: dict[str, int] = {}
    queueing: dict[str, float] = {}
    start = time.perf_counter()
    for done in range(rounds):
        if done >= LEAST_ROUNDS and time.perf_counter() - start > SECONDS:
            break
        for name, runner in list(runners.items()):
            try:
                if not done:
                    numbers[name] = calls(runner, seconds)
                    queueing[name] = queueing_seconds(runner) if runner.has_events else 0.0
                found.calls.setdefault(name, []).append(of_calls(runner, numbers[name]))
            except Exception as error:
                if name in found.case.runners:
                    raise
                found.missing[name] = _in_a_line(error)
                found.calls.pop(name, None)
                del runners[name]
                continue
            if runner.has_events:
                number = min(numbers[name], 5)
                found.device.setdefault(name, []).append(by_events(runner, queueing[name], number))


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:100]}"
