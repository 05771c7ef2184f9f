"""The gradients of other packages that are installed: of each case that they have, on one core, in double precision.

case = with_peers(CASES["mixture"](False))
case.runs["JAX"]()
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


def with_peers(case: Case) -> Case:
    """Return a case with the gradients of the installed packages that have its function."""
    gradients, runs = dict(case.gradients), dict(case.runs)
    for name, (package, made_for) in PEERS.items():
        made = None if importlib.util.find_spec(package) is None else made_for(case)
        if made is not None:
            gradients[name] = made[0]
            if case.calls == 1:  # of a run of many calls, they make one
                runs[name] = made[1]
    return replace(case, gradients=gradients, runs=runs)
