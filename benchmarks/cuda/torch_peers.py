"""The benchmarks on a device, as users of PyTorch write them: tensors in float64, autograd, and `torch.compile`.

Each function returns makers of runners, which raise MissingError where PyTorch is not installed or does not see the
device. In the simulator they run on the processor, without `torch.compile`, which takes minutes there.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cuda.case import MissingError, Peers, Runner
from benchmarks.cuda.device import IS_SIMULATED
from benchmarks.cuda.elementwise import C
from benchmarks.cuda.lotka_volterra import END_X, END_Y, STEP, STEPS, X, Y, rates
from benchmarks.cuda.n_body import SOFTENING, Bodies

ROWS = 1024  # of the matrix of pairs that a block has
STEPS_AT_ONCE = 10  # that are compiled as one function
BYTES_OF_STEP = 500  # that autograd keeps of a step for a parameter set, roughly


def lotka_volterra(sets: Sequence[np.ndarray]) -> Peers:
    """Return the peers. The sets are taken in as many parts as autograd's records need to fit into memory."""

    def steps(x: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        for _ in range(STEPS_AT_ONCE):
            p1, q1 = rates(x, y, a, b, c, d)
            p2, q2 = rates(x + 0.5 * STEP * p1, y + 0.5 * STEP * q1, a, b, c, d)
            p3, q3 = rates(x + 0.5 * STEP * p2, y + 0.5 * STEP * q2, a, b, c, d)
            p4, q4 = rates(x + STEP * p3, y + STEP * q3, a, b, c, d)
            x = x + STEP / 6.0 * (p1 + 2.0 * p2 + 2.0 * p3 + p4)
            y = y + STEP / 6.0 * (q1 + 2.0 * q2 + 2.0 * q3 + q4)
        return x, y

    def make(compiled: bool) -> Runner:
        torch = _torch()
        some_steps = torch.compile(steps) if compiled else steps
        parts = _parts(torch, sets[0].size * STEPS * BYTES_OF_STEP)
        given = [[each.requires_grad_() for each in _tensors(torch, part)] for part in _split(sets, parts)]

        def gradient(parameters: Sequence[Any]) -> Any:
            x, y = torch.full_like(parameters[0], X), torch.full_like(parameters[0], Y)
            for _ in range(STEPS // STEPS_AT_ONCE):
                x, y = some_steps(x, y, *parameters)
            loss = (x - END_X) ** 2 + (y - END_Y) ** 2
            return torch.autograd.grad(loss.sum(), parameters)

        def run() -> Any:
            found = [gradient(each) for each in given]
            return [torch.cat([part[number] for part in found]) for number in range(4)]

        return _runner(torch, run)

    return _peers(make)


def elementwise(x: np.ndarray) -> Peers:
    """Return the peers."""

    def make(compiled: bool) -> Runner:
        torch = _torch()

        def total(x: Any) -> Any:
            return (C * C * (torch.sqrt(1.0 + (x / C) ** 2) - 1.0)).sum()

        if compiled:
            total = torch.compile(total)
        (given,) = _tensors(torch, [x])
        given.requires_grad_()
        return _runner(torch, lambda: torch.autograd.grad(total(given), [given]))

    return _peers(make)


def n_body(bodies: Bodies) -> Peers:
    """Return the peers, with blocks of rows of the matrix of pairs: their gradients add up."""

    def make(compiled: bool) -> Runner:
        torch = _torch()

        def weighted(own: Any, u: Any, r: Any, m: Any) -> Any:
            d = r[:, None, :] - own[:, :, None]
            r2 = (d * d).sum(0) + SOFTENING
            return (u * (m / (r2 * torch.sqrt(r2)) * d).sum(2)).sum()

        if compiled:
            weighted = torch.compile(weighted)
        r, m, u = _tensors(torch, [bodies.positions, bodies.masses, bodies.weights])
        r.requires_grad_()
        m.requires_grad_()

        def run() -> Any:
            dr, dm = torch.zeros_like(r), torch.zeros_like(m)
            for start in range(0, len(m), ROWS):
                own = r[:, start : start + ROWS]
                by = torch.autograd.grad(weighted(own, u[:, start : start + ROWS], r, m), [r, m])
                dr += by[0]
                dm += by[1]
            return [*dr, dm]

        return _runner(torch, run)

    return _peers(make)


def _peers(make: Callable[[bool], Runner]) -> Peers:
    found: dict[str, Callable[[], Runner]] = {"PyTorch": partial(make, False)}
    if not IS_SIMULATED:
        found["PyTorch, compiled"] = partial(make, True)
    return found


def _torch() -> Any:
    if importlib.util.find_spec("torch") is None:
        raise MissingError("not installed")
    import torch

    if not IS_SIMULATED and not torch.cuda.is_available():
        raise MissingError("does not see the device")
    return torch


def release() -> None:
    """Return the memory that PyTorch keeps to the device."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _parts(torch: Any, needed: int) -> int:
    """Return in how many parts the records take at most a third of the free memory."""
    free = 1 << 30 if IS_SIMULATED else torch.cuda.mem_get_info()[0]
    return max(1, -(-needed * 3 // int(free)))


def _split(arrays: Sequence[np.ndarray], parts: int) -> list[list[np.ndarray]]:
    split = [np.array_split(each, parts) for each in arrays]
    return [list(each) for each in zip(*split, strict=True)]


def _tensors(torch: Any, arrays: Sequence[np.ndarray]) -> list[Any]:
    return [torch.tensor(each, device="cpu" if IS_SIMULATED else "cuda") for each in arrays]


def _runner(torch: Any, function: Callable[[], Any]) -> Runner:
    last: list[Any] = []

    def run() -> Any:
        last[:] = [function()]
        return last[0]

    def wait(_: Any) -> None:
        if not IS_SIMULATED:
            torch.cuda.synchronize()

    return Runner(run, wait, lambda: [each.detach().cpu().numpy() for each in last[0]], has_events=False)
