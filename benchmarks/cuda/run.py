"""Run the benchmarks on the device: check, time and print case after case.

    times, document = run(quick=False)

In the simulator sizes are tiny, and the times say nothing about a device.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import numba
import numpy as np

from benchmarks.cuda import elementwise, jax_peers, lotka_volterra, n_body, table, torch_peers
from benchmarks.cuda.case import Case
from benchmarks.cuda.device import IS_SIMULATED, device_name
from benchmarks.cuda.measure import Measured, measured
from benchmarks.measure import Times


def run(quick: bool) -> tuple[dict[str, Times], object]:
    """Print the tables; return the seconds of calls by case and variant, and all results for a JSON file."""
    os.environ["ZYGOTE_PY_CACHE"] = "0"  # the first call compiles
    warnings.filterwarnings("ignore", ".*Grid size")
    print(f"{device_name()}; Numba {numba.__version__}{_versions()}")
    print("seconds: of a call, of several that are queued one after another; medians, variants in turn.")
    print("on the device: between two events, without the time of Python.\n")
    if IS_SIMULATED:
        print("The simulator runs kernels in Python: results are checked, times mean nothing.\n")
    rounds, seconds = (1, 1e-4) if IS_SIMULATED else (5, 0.01) if quick else (15, 0.03)
    results: list[Measured] = []
    for case in cases(quick):
        results.append(found := measured(case, rounds, seconds))
        torch_peers.release()
        print(case.title, table.times_table(found), *table.notes(found), sep="\n\n", end="\n\n", flush=True)
    print(table.bars_table(results, is_simulated=IS_SIMULATED), end="\n\n", flush=True)
    return {found.case.name: found.calls for found in results}, {
        "device": device_name(),
        "cases": table.as_json(results),
    }


def cases(quick: bool) -> Iterator[Case]:
    """Yield the cases, each of which takes its memory only when it is made."""
    sets, elements, bodies = (10, 40, 7) if IS_SIMULATED else (10**5, 10**6, 4096) if quick else (10**6, 10**7, 16_384)
    parameters = lotka_volterra.parameters(sets)
    peers = jax_peers.lotka_volterra(parameters), torch_peers.lotka_volterra(parameters)
    yield lotka_volterra.case(sets, {**peers[0], **peers[1]})
    x = elementwise.residuals(elements)
    yield elementwise.case(elements, {**jax_peers.elementwise(x), **torch_peers.elementwise(x)})
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        some = n_body.Bodies.some(bodies, dtype)
        yield n_body.case(bodies, dtype, {**jax_peers.n_body(some), **torch_peers.n_body(some)})


def _versions() -> str:
    found = ""
    for name, package in (("numba-cuda", "numba-cuda"), ("JAX", "jax"), ("PyTorch", "torch")):
        try:
            found += f", {name} {version(package)}"
        except PackageNotFoundError:
            found += f", no {name}"
    return found
