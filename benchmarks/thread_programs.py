"""Functions with `parallel=True`, as their users write them: sums over paths, points and pairs, and grids."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import prange

Array = Any


def paths(z: Array, start: float, rate: float, volatility: float) -> float:
    """Return the price of an Asian option by simulation."""
    count, steps = z.shape
    total = 0.0
    for i in prange(count):
        s, mean = start, 0.0
        for k in range(steps):
            s *= math.exp((rate - 0.5 * volatility * volatility) / steps + volatility * z[i, k] / math.sqrt(steps))
            mean += s
        mean /= steps
        if mean > start:
            total += mean - start
    return total / count


def mixture(x: Array, means: Array, weights: Array) -> float:
    """Return the log-likelihood of a mixture of normal distributions in one dimension."""
    total = 0.0
    for i in prange(len(x)):
        density = 0.0
        for k in range(len(means)):
            distance = x[i] - means[k]
            density += weights[k] * math.exp(-0.5 * distance * distance)
        total += math.log(density)
    return total


def layer(x: Array, w: Array) -> float:
    """Return the squares of the outputs of a layer of a network, whose rows are written to an array."""
    y = np.empty(x.shape[0])
    for i in prange(x.shape[0]):
        a = 0.0
        for j in range(x.shape[1]):
            a += x[i, j] * w[j]
        y[i] = math.tanh(a)
    return np.sum(y * y)  # type: ignore[no-any-return]


def pairs(p: Array) -> float:
    """Return a potential energy of points in the plane."""
    count = p.shape[0]
    energy = np.zeros(count)
    for i in prange(count):
        for j in range(count):
            if i != j:
                dx, dy = p[i, 0] - p[j, 0], p[i, 1] - p[j, 1]
                energy[i] += 1.0 / math.sqrt(dx * dx + dy * dy + 0.01)
    return energy.sum()  # type: ignore[no-any-return]


def grid(u: Array, rate: float, steps: int) -> float:
    """Return the squares of a field after some steps of a reaction and diffusion equation."""
    rows, columns = u.shape
    for _ in range(steps):
        v = np.zeros_like(u)
        for i in prange(1, rows - 1):
            for j in range(1, columns - 1):
                spread = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                v[i, j] = u[i, j] + rate * spread + 0.01 * u[i, j] * (1.0 - u[i, j])
        u = v
    return np.sum(u * u)  # type: ignore[no-any-return]


def programs(quick: bool) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return the functions with their arguments."""
    rng = np.random.default_rng(0)
    n = 1 if quick else 4
    return {
        "paths": (paths, (rng.normal(size=(5000 * n, 50)), 1.0, 0.02, 0.2)),
        "mixture": (mixture, (rng.normal(size=5000 * n), rng.normal(size=50), rng.random(50))),
        "layer": (layer, (rng.normal(size=(500 * n, 1000)), rng.normal(size=1000) / 30.0)),
        "pairs": (pairs, (rng.normal(size=(350 * n, 2)),)),
        "grid": (grid, (rng.random((100 * n, 300)), 0.1, 20)),
    }
