"""PyTorch's gradients of the cases: on one core of the processor, in double precision, operation by operation.

    gradient, run = made_for(CASES["mixture"](False))

Each function is as a user of PyTorch would write it: whole tensors, Python's loops for steps. Those of ten thousand
steps take seconds, and are left out. Its arguments are tensors, so that nothing is converted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.array_programs import DT, SOFTENING
from benchmarks.case import Case


def made_for(case: Case) -> tuple[Callable[..., Any], Callable[[], None]] | None:
    """Return the gradient of a case, and a function without arguments that computes it; None if it is not here."""
    if case.name not in FUNCTIONS:
        return None
    import torch

    torch.set_num_threads(1)
    function = FUNCTIONS[case.name]

    def tensors(arguments: tuple[Any, ...]) -> list[Any]:
        given = [torch.tensor(each) if isinstance(each, np.ndarray) else each for each in arguments]
        return [each.requires_grad_() if number in case.wrt else each for number, each in enumerate(given)]

    def slopes(given: list[Any]) -> tuple[Any, ...]:
        found: tuple[Any, ...] = torch.autograd.grad(function(*given), [given[number] for number in case.wrt])
        return found

    def gradient(*arguments: Any) -> Any:
        found = tuple(each.numpy() for each in slopes(tensors(arguments)))
        return found if len(found) > 1 else found[0]

    given = tensors(case.arguments)

    def run() -> None:
        slopes(given)

    return gradient, run


def _logsumexp(x: Any) -> Any:
    return x.logsumexp(0)


def _logistic(w: Any, x: Any, y: Any) -> Any:
    return (-y * (x @ w)).exp().log1p().mean()


def _cross_entropy(scores: Any, labels: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(scores, labels, reduction="sum")


def _perceptron(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, labels: Any) -> Any:
    return _cross_entropy((x @ w1 + b1).tanh() @ w2 + b2, labels) / len(labels)


def _nbody(q: Any, v: Any, mass: Any, steps: int) -> Any:
    def accelerations(q: Any) -> Any:
        apart = q[None] - q[:, None]
        square = (apart * apart).sum(2) + SOFTENING
        return ((mass[None] / (square * square.sqrt()))[..., None] * apart).sum(1)

    a = accelerations(q)
    for _ in range(steps):
        v = v + 0.5 * DT * a
        q = q + DT * v
        a = accelerations(q)
        v = v + 0.5 * DT * a
    return (q * q).sum() + (v * v).sum()


def _mixture(alphas: Any, means: Any, factors: Any, x: Any, gamma: Any, m: int) -> Any:
    import torch

    n, d = x.shape
    rows = np.concatenate([np.arange(j + 1, d) for j in range(d)])
    columns = np.concatenate([np.full(d - 1 - j, j) for j in range(d)])
    logs = factors[:, :d]
    places = (torch.arange(len(alphas))[:, None], torch.tensor(rows), torch.tensor(columns))
    lower = logs.exp().diag_embed().index_put(places, factors[:, d:])
    scaled = torch.einsum("kij,nkj->nki", lower, x[:, None] - means[None])
    terms = alphas + logs.sum(1) - 0.5 * (scaled**2).sum(2)
    likelihood = terms.logsumexp(1).sum() - n * alphas.logsumexp(0)
    squares = (2 * logs).exp().sum() + (factors[:, d:] ** 2).sum()
    return likelihood - 0.5 * n * d * math.log(2 * math.pi) + 0.5 * gamma * gamma * squares - m * logs.sum()


def _recurrent(wx: Any, wh: Any, wy: Any, bh: Any, by: Any, start: Any, symbols: Any, targets: Any) -> Any:
    import torch

    h, states = start, []
    for symbol in symbols.tolist():
        h = (wh @ h + wx[:, symbol] + bh).tanh()
        states.append(h)
    return _cross_entropy(torch.stack(states) @ wy.T + by, targets)


def _lstm(wx: Any, wh: Any, b: Any, wy: Any, by: Any, start: Any, cell: Any, symbols: Any, targets: Any) -> Any:
    import torch

    h, c, states = start, cell, []
    for symbol in symbols.tolist():
        add, keep, show, new = (wh @ h + wx[:, symbol] + b).chunk(4)
        c = keep.sigmoid() * c + add.sigmoid() * new.tanh()
        h = show.sigmoid() * c.tanh()
        states.append(h)
    return _cross_entropy(torch.stack(states) @ wy.T + by, targets)


def _heat(u: Any, k: Any, target: Any, steps: int, dt: float) -> Any:
    import torch

    across, down = 0.5 * (k[1:-1, 1:] + k[1:-1, :-1]), 0.5 * (k[1:, 1:-1] + k[:-1, 1:-1])
    for _ in range(steps):
        flow, fall = across * u[1:-1].diff(dim=1), down * u[:, 1:-1].diff(dim=0)
        u = u + torch.nn.functional.pad(dt * (flow.diff(dim=1) + fall.diff(dim=0)), (1, 1, 1, 1))
    return ((u - target) ** 2).sum()


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "logsumexp": _logsumexp,
    "logsumexp_numpy": _logsumexp,
    "logistic": _logistic,
    "perceptron": _perceptron,
    "nbody": _nbody,
    "mixture": _mixture,
    "recurrent": _recurrent,
    "lstm": _lstm,
    "heat": _heat,
}
