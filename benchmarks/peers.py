"""The gradients of other packages that are installed: on one core, in double precision.

    case = with_peer(CASES["mixture"](False), "JAX")
    case.runs["JAX"]()

Each package is measured in processes without the others, whose threads and settings it would share.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks import peers_jax, peers_torch
from benchmarks.case import Case

Peer = Callable[[Case], tuple[Callable[..., object], Callable[[], object]] | None]

PEERS: Mapping[str, tuple[str, Peer]] = {
    "JAX": ("jax", peers_jax.made_for),
    "PyTorch": ("torch", peers_torch.made_for),
}


def installed() -> list[str]:
    """Return the names of the packages that are installed."""
    return [name for name, (package, _) in PEERS.items() if importlib.util.find_spec(package) is not None]


def with_peer(case: Case, name: str) -> Case:
    """Return a case with the gradient of a package, if that has its function."""
    made = PEERS[name][1](case)
    if made is None:
        return case
    gradient, run = made
    runs = {name: run} if case.calls == 1 else {}  # of a run of many calls, it makes one
    return replace(case, gradients={**case.gradients, name: gradient}, runs={**case.runs, **runs})
