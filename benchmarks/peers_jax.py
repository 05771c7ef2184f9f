"""JAX's gradients of the cases: on one core of the processor, in double precision, compiled.

    gradient, run = made_for(CASES["mixture"](False))

Each function is as a user of JAX would write it: whole arrays, `scan` for steps. Its arguments are JAX's arrays, so
that nothing is converted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.array_programs import DT, SOFTENING
from benchmarks.case import Case


def made_for(case: Case) -> tuple[Callable[..., Any], Callable[[], None]] | None:
    """Return the gradient of a case, and a function without arguments that computes it; None if it is not here."""
    if case.name not in FUNCTIONS:
        return None
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    function, static = FUNCTIONS[case.name]
    wrt = case.wrt if len(case.wrt) > 1 else case.wrt[0]
    compiled = jax.jit(jax.grad(function, argnums=wrt), static_argnums=static)
    given = [each if number in static else jax.numpy.asarray(each) for number, each in enumerate(case.arguments)]

    def gradient(*arguments: Any) -> Any:
        return jax.tree.map(np.asarray, compiled(*arguments))

    def run() -> None:
        jax.block_until_ready(compiled(*given))

    return gradient, run


def _logsumexp(x: Any) -> Any:
    import jax

    return jax.nn.logsumexp(x)


def _rk4(alpha: Any, beta: Any, gamma: Any, delta: Any, u: Any, v: Any, steps: int) -> Any:
    import jax

    h = 0.001

    def slope(u: Any, v: Any) -> Any:
        return (alpha - beta * v) * u, (delta * u - gamma) * v

    def step(state: Any, _: Any) -> Any:
        u, v = state
        du1, dv1 = slope(u, v)
        du2, dv2 = slope(u + 0.5 * h * du1, v + 0.5 * h * dv1)
        du3, dv3 = slope(u + 0.5 * h * du2, v + 0.5 * h * dv2)
        du4, dv4 = slope(u + h * du3, v + h * dv3)
        return (u + h / 6 * (du1 + 2 * (du2 + du3) + du4), v + h / 6 * (dv1 + 2 * (dv2 + dv3) + dv4)), None

    (u, v), _ = jax.lax.scan(step, (u, v), None, length=steps)
    return (u - 1.0) ** 2 + (v - 2.0) ** 2


def _logistic(w: Any, x: Any, y: Any) -> Any:
    import jax.numpy as jnp

    return jnp.mean(jnp.log1p(jnp.exp(-y * (x @ w))))


def _cross_entropy(scores: Any, labels: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return jnp.sum(jax.nn.logsumexp(scores, axis=1) - scores[jnp.arange(len(labels)), labels])


def _perceptron(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, labels: Any) -> Any:
    import jax.numpy as jnp

    return _cross_entropy(jnp.tanh(x @ w1 + b1) @ w2 + b2, labels) / len(labels)


def _nbody(q: Any, v: Any, mass: Any, steps: int) -> Any:
    import jax
    import jax.numpy as jnp

    def accelerations(q: Any) -> Any:
        apart = q[None] - q[:, None]
        square = jnp.sum(apart * apart, axis=2) + SOFTENING
        return jnp.sum((mass[None] / (square * jnp.sqrt(square)))[..., None] * apart, axis=1)

    def step(state: Any, _: Any) -> Any:
        q, v, a = state
        v = v + 0.5 * DT * a
        q = q + DT * v
        a = accelerations(q)
        return (q, v + 0.5 * DT * a, a), None

    (q, v, _), _ = jax.lax.scan(step, (q, v, accelerations(q)), None, length=steps)
    return jnp.sum(q * q) + jnp.sum(v * v)


def _mixture(alphas: Any, means: Any, factors: Any, x: Any, gamma: float, m: int) -> Any:
    import jax
    import jax.numpy as jnp

    n, d = x.shape
    components = len(alphas)
    rows = np.concatenate([np.arange(j + 1, d) for j in range(d)])
    columns = np.concatenate([np.full(d - 1 - j, j) for j in range(d)])
    logs = factors[:, :d]
    lower = jnp.zeros((components, d, d)).at[:, rows, columns].set(factors[:, d:])
    lower = lower.at[:, np.arange(d), np.arange(d)].set(jnp.exp(logs))
    scaled = jnp.einsum("kij,nkj->nki", lower, x[:, None] - means[None])
    terms = alphas + jnp.sum(logs, axis=1) - 0.5 * jnp.sum(scaled**2, axis=2)
    likelihood = jnp.sum(jax.nn.logsumexp(terms, axis=1)) - n * jax.nn.logsumexp(alphas)
    squares = jnp.sum(jnp.exp(2 * logs)) + jnp.sum(factors[:, d:] ** 2)
    return likelihood - 0.5 * n * d * math.log(2 * math.pi) + 0.5 * gamma * gamma * squares - m * jnp.sum(logs)


def _recurrent(wx: Any, wh: Any, wy: Any, bh: Any, by: Any, start: Any, symbols: Any, targets: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def step(h: Any, symbol: Any) -> Any:
        h = jnp.tanh(wh @ h + wx[:, symbol] + bh)
        return h, h

    _, states = jax.lax.scan(step, start, symbols)
    return _cross_entropy(states @ wy.T + by, targets)


def _lstm(wx: Any, wh: Any, b: Any, wy: Any, by: Any, start: Any, cell: Any, symbols: Any, targets: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def step(state: Any, symbol: Any) -> Any:
        h, c = state
        add, keep, show, new = jnp.split(wh @ h + wx[:, symbol] + b, 4)
        c = jax.nn.sigmoid(keep) * c + jax.nn.sigmoid(add) * jnp.tanh(new)
        h = jax.nn.sigmoid(show) * jnp.tanh(c)
        return (h, c), h

    _, states = jax.lax.scan(step, (start, cell), symbols)
    return _cross_entropy(states @ wy.T + by, targets)


def _heat(u: Any, k: Any, target: Any, steps: int, dt: float) -> Any:
    import jax
    import jax.numpy as jnp

    across, down = 0.5 * (k[1:-1, 1:] + k[1:-1, :-1]), 0.5 * (k[1:, 1:-1] + k[:-1, 1:-1])

    def step(u: Any, _: Any) -> Any:
        flow, fall = across * jnp.diff(u[1:-1], axis=1), down * jnp.diff(u[:, 1:-1], axis=0)
        change = jnp.diff(flow, axis=1) + jnp.diff(fall, axis=0)
        return u.at[1:-1, 1:-1].add(dt * change), None

    u, _ = jax.lax.scan(step, u, None, length=steps)
    return jnp.sum((u - target) ** 2)


# With the numbers of the arguments that are constants for JAX.
FUNCTIONS: Mapping[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "logsumexp": (_logsumexp, ()),
    "logsumexp_numpy": (_logsumexp, ()),
    "rk4": (_rk4, (6,)),
    "logistic": (_logistic, ()),
    "perceptron": (_perceptron, ()),
    "nbody": (_nbody, (3,)),
    "mixture": (_mixture, (4, 5)),
    "recurrent": (_recurrent, ()),
    "lstm": (_lstm, ()),
    "heat": (_heat, (3,)),
}
