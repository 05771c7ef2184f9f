"""The device, and the times of what runs there.

    number = calls(run, wait, seconds=0.02)
    of_calls(runner, number)        # seconds of a whole call, of several that are queued one after another
    by_events(runner)               # seconds on the device alone

Before the first event, the device is given a kernel that only takes time: what follows is queued meanwhile, so that the
device never waits for Python between the two events. JAX runs in streams of its own, in which no event of Numba is
recorded; its times are those of calls.
"""

from __future__ import annotations

import functools
import importlib.util
import time
from typing import Any

from numba import config, cuda

from benchmarks.cuda.case import Runner

IS_SIMULATED = bool(config.ENABLE_CUDASIM)  # type: ignore[attr-defined]


def missing() -> str | None:
    """Return why nothing can run here, in one line, or None."""
    advice = "on a machine with a GPU; NUMBA_ENABLE_CUDASIM=1 runs tiny sizes in Python"
    if IS_SIMULATED:
        return None
    if importlib.util.find_spec("numba_cuda") is None:
        return f"no numba-cuda: install zygote-py[cuda] {advice}"
    if not cuda.is_available():
        return f"no CUDA device is available: run this {advice}"
    return None


def device_name() -> str:
    """Return the name of the device."""
    if IS_SIMULATED:
        return "the simulator"
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def launch_size(count: int, most: int | None = None) -> tuple[int, int]:
    """Return blocks and threads with a thread for each of `count` items, or for at most about `most` of them."""
    threads = 8 if IS_SIMULATED else 128
    blocks = -(-count // threads)
    return (blocks if most is None else max(1, min(blocks, most // threads))), threads


def wait(_: object = None) -> None:
    """Wait for all that Numba has queued."""
    cuda.synchronize()


def calls(runner: Runner, seconds: float, most: int = 200) -> int:
    """Return how many calls take about `seconds`."""
    number = 1
    if IS_SIMULATED:
        return number
    while (took := of_calls(runner, number) * number) < seconds / 4.0 and number < most:
        number *= 2
    return max(1, min(most, round(number * seconds / took)))


def of_calls(runner: Runner, number: int) -> float:
    """Return the seconds of a call, of `number` that are queued before the end of the last is waited for."""
    cuda.synchronize()
    start = time.perf_counter()
    for _ in range(number):
        last = runner.run()
    runner.wait(last)
    return (time.perf_counter() - start) / number


def by_events(runner: Runner, queueing: float, number: int) -> float:
    """Return the seconds of a run on the device, given how long Python takes to queue one."""
    start, stop = cuda.event(), cuda.event()
    _delay(1.5 * queueing * number + 1e-3)
    start.record()
    for _ in range(number):
        runner.run()
    stop.record()
    stop.synchronize()
    if IS_SIMULATED:  # its events measure nothing
        return queueing
    return float(start.elapsed_time(stop)) / 1e3 / number


def queueing_seconds(runner: Runner) -> float:
    """Return how long Python takes to queue a run, the longest of three."""
    longest = 0.0
    for _ in range(1 if IS_SIMULATED else 3):
        cuda.synchronize()
        start = time.perf_counter()
        last = runner.run()
        longest = max(longest, time.perf_counter() - start)
        runner.wait(last)
    return longest


@cuda.jit
def _idle(rounds, factor, out):
    value = 1.0
    for _ in range(rounds):
        value = value * factor + 1e-9
    out[0] = value


@functools.cache
def _delays() -> tuple[Any, float]:
    """Return an array for the delay's result, and its rounds in a second."""
    out = cuda.device_array(1)
    rounds = 10 if IS_SIMULATED else 1_000_000
    for _ in range(2):
        cuda.synchronize()
        start = time.perf_counter()
        _idle[1, 1](rounds, 0.5, out)
        cuda.synchronize()
        took = time.perf_counter() - start
    return out, rounds / took


def _delay(seconds: float) -> None:
    out, rate = _delays()
    _idle[1, 1](1 if IS_SIMULATED else int(seconds * rate), 0.5, out)
