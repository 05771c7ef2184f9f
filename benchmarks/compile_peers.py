"""The first derivatives of the Kalman likelihood with helpers that an unrelated program has left, and JAX's.

    found = warm_times(rounds=3)
    found["hessian"]["zygote_py"]           # [Sample(cpu=5.9, peak=310 MB), ...]

The cache of each process holds what another program, a Bayesian regression, needed of NumPy and linear algebra, and no
derivative. JAX is measured the same way, from after its import to the end of the first call; it is left out if it is
not installed.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compile_time import Samples, in_a_process, print_sample

ORDERS = ("gradient", "hessian")


def evidence(w, x, noise, ys):
    """The evidence of a linear model whose weights drift, with blocks of observations."""
    count = w.shape[0]
    mean = np.zeros(count)
    cov = np.eye(count)
    total = 0.0
    for block in range(ys.shape[0]):
        f = w @ mean
        c = w @ cov @ w.T + noise
        s = x @ c @ x.T + np.eye(x.shape[0])
        residual = ys[block] - x @ f
        _, logarithm = np.linalg.slogdet(s)
        total += logarithm + np.dot(residual, np.linalg.solve(s, residual))
        gain = c @ x.T @ np.linalg.inv(s)
        mean = f + gain @ residual
        cov = c - gain @ x @ c
    return total


def warm_times(rounds: int) -> Samples:
    """Return the samples of gradient and Hessian, by who computes them."""
    found: Samples = {}
    with tempfile.TemporaryDirectory() as folder:
        bytecode, helpers = Path(folder) / "bytecode", Path(folder) / "helpers"
        for order in ORDERS:
            in_a_process(f"fill({order!r})", bytecode, helpers, module="benchmarks.compile_peers")
        for path in helpers.iterdir():
            if path.suffix != ".helper":
                path.unlink()
        for order in ORDERS:
            found[order] = {}
            for number in range(rounds):
                cache = Path(folder) / f"{order} {number}"
                shutil.copytree(helpers, cache)
                sample = in_a_process(f"measure('kalman', {order!r})", bytecode, cache)
                found[order].setdefault("zygote_py", []).append(sample)
                if importlib.util.find_spec("jax") is not None:
                    sample = in_a_process(
                        f"measure_jax({order!r})", bytecode, cache, module="benchmarks.compile_peers", first="jax"
                    )
                    found[order].setdefault("JAX", []).append(sample)
    return found


def fill(order: str) -> None:
    """Compile a derivative of the other program, and print the sample."""
    rng = np.random.default_rng(1)
    arguments = (0.8 * np.eye(3), rng.normal(size=(2, 3)), 0.3 * np.eye(3), rng.normal(size=(3, 2)))

    def run() -> None:
        import zygote_py

        getattr(zygote_py, order)(evidence)(*arguments)

    print_sample(run)


def measure_jax(order: str) -> None:
    """Print the sample of JAX, which has been imported."""
    import jax

    from benchmarks.compile_programs import ROWS

    _, arguments = ROWS["kalman"].program()

    def run() -> None:
        jax.config.update("jax_enable_x64", True)
        derivative = {"gradient": jax.grad, "hessian": jax.hessian}[order]
        jax.jit(derivative(_kalman))(*arguments).block_until_ready()

    print_sample(run)


def _kalman(a: Any, q: Any, h: Any, r: Any, ys: Any) -> Any:
    """The likelihood of `compile_programs.kalman`, as JAX has it."""
    import jax
    import jax.numpy as jnp

    def step(carry: Any, y: Any) -> Any:
        m, p, total = carry
        m = a @ m
        p = a @ p @ a.T + q
        s = h @ p @ h.T + r
        e = y - h @ m
        _, logdet = jnp.linalg.slogdet(s)
        total = total - 0.5 * (logdet + jnp.dot(e, jnp.linalg.solve(s, e)))
        gain = p @ h.T @ jnp.linalg.inv(s)
        return (m + gain @ e, p - gain @ h @ p, total), None

    n = a.shape[0]
    (_, _, total), _ = jax.lax.scan(step, (jnp.zeros(n), jnp.eye(n), 0.0), ys)
    return total
