"""The benchmarks on a device, as users of JAX write them: `jit`, `vmap` and `grad` in float64.

Each function returns makers of runners, which raise MissingError where JAX is not installed or does not see the device.
In the simulator they run on the processor, so that their results are checked without a device.
"""

from __future__ import annotations

import importlib.util
import os
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


def lotka_volterra(sets: Sequence[np.ndarray]) -> Peers:
    """Return the peers: with all that the steps compute recorded, and with the states alone."""

    def make(only_states: bool) -> Runner:
        jax = _jax()

        def loss(a: Any, b: Any, c: Any, d: Any) -> Any:
            def step(state: Any, _: Any) -> Any:
                x, y = state
                p1, q1 = rates(x, y, a, b, c, d)
                p2, q2 = rates(x + 0.5 * STEP * p1, y + 0.5 * STEP * q1, a, b, c, d)
                p3, q3 = rates(x + 0.5 * STEP * p2, y + 0.5 * STEP * q2, a, b, c, d)
                p4, q4 = rates(x + STEP * p3, y + STEP * q3, a, b, c, d)
                x += STEP / 6.0 * (p1 + 2.0 * p2 + 2.0 * p3 + p4)
                y += STEP / 6.0 * (q1 + 2.0 * q2 + 2.0 * q3 + q4)
                return (x, y), None

            start = (jax.numpy.asarray(X), jax.numpy.asarray(Y))
            (x, y), _ = jax.lax.scan(jax.checkpoint(step) if only_states else step, start, length=STEPS)
            return (x - END_X) ** 2 + (y - END_Y) ** 2

        return _runner(jax, jax.vmap(jax.grad(loss, argnums=(0, 1, 2, 3))), sets)

    return {"JAX": partial(make, only_states=False), "JAX, checkpoints": partial(make, only_states=True)}


def elementwise(x: np.ndarray) -> Peers:
    """Return the peer."""

    def make() -> Runner:
        jax = _jax()

        def loss(x: Any) -> Any:
            return C * C * (jax.numpy.sqrt(1.0 + (x / C) ** 2) - 1.0)

        return _runner(jax, jax.vmap(jax.grad(loss)), [x])

    return {"JAX": make}


def n_body(bodies: Bodies) -> Peers:
    """Return the peers: with the matrix of all pairs, and with blocks of its rows, which are computed again."""

    def make(blocks: bool) -> Runner:
        jax = _jax()
        jnp = jax.numpy

        def weighted(own: Any, u: Any, r: Any, m: Any) -> Any:
            """Return the weighted sum of the forces on some bodies."""
            d = r[:, None, :] - own[:, :, None]
            r2 = (d * d).sum(0) + SOFTENING
            return jnp.sum(u * (m / (r2 * jnp.sqrt(r2)) * d).sum(2))

        def loss(r: Any, m: Any, u: Any) -> Any:
            count = m.size
            rows = min(ROWS, count)
            if not blocks or count % rows:
                return weighted(r, u, r, m)
            parts = [each.reshape(3, count // rows, rows).swapaxes(0, 1) for each in (r, u)]
            one = jax.checkpoint(lambda part: weighted(*part, r, m))
            return jax.lax.map(one, tuple(parts)).sum()

        runner = _runner(jax, jax.grad(loss, argnums=(0, 1)), [bodies.positions, bodies.masses, bodies.weights])
        return Runner(runner.run, runner.wait, lambda: _split(runner.result()), has_events=False)

    return {"JAX": partial(make, blocks=False), "JAX, in blocks": partial(make, blocks=True)}


def _split(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    positions, masses = arrays
    return [*positions, masses]


def _jax() -> Any:
    if importlib.util.find_spec("jax") is None:
        raise MissingError("not installed")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others need memory, too
    import jax

    jax.config.update("jax_enable_x64", True)
    if not IS_SIMULATED:
        try:
            jax.devices("gpu")
        except RuntimeError:
            raise MissingError("does not see the device") from None
    return jax


def _runner(jax: Any, function: Callable[..., Any], arguments: Sequence[np.ndarray]) -> Runner:
    compiled = jax.jit(function)
    given = [jax.device_put(each, jax.devices("cpu" if IS_SIMULATED else "gpu")[0]) for each in arguments]
    last: list[Any] = []

    def run() -> Any:
        last[:] = [compiled(*given)]
        return last[0]

    def result() -> list[np.ndarray]:
        return [np.asarray(each) for each in jax.tree_util.tree_leaves(last[0])]

    return Runner(run, jax.block_until_ready, result, has_events=False)
