"""The gradient of an elementwise loss: each element is read once, and a derivative is stored, as in a copy.

The loss is c**2 * (sqrt(1 + (x / c)**2) - 1), between a square and an absolute value. Reference: its derivative as a
formula, in NumPy.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda

import zygote_py as zg
from benchmarks.cuda.case import Case, Peers, Runner, gradient_bars
from benchmarks.cuda.device import launch_size, wait

C = 1.5


def loss(x, c):
    return c * c * (math.sqrt(1.0 + (x / c) ** 2) - 1.0)


loss_on_device = cuda.jit(device=True)(loss)


@cuda.jit
def primal(x, c, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = loss_on_device(x[i], c)


@cuda.jit
def gradient(x, c, out):
    i = cuda.grid(1)
    if i < x.size:
        ratio = x[i] / c
        out[i] = x[i] / math.sqrt(1.0 + ratio * ratio)


def residuals(count: int) -> np.ndarray:
    """Return the elements."""
    return 2.0 * np.random.default_rng(2).normal(size=count)


class _Runners:
    """The runners of this package and of hand-written kernels, for an array."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = cuda.to_device(x)
        self.size = launch_size(x.size)

    def generated(self) -> Runner:
        over = zg.vectorize(zg.gradient(loss, wrt="x"), target="cuda")
        out = cuda.device_array(self.x.size)
        return Runner(lambda: over(self.x, C, out=out), wait, lambda: [out.copy_to_host()])

    def hand_written(self) -> Runner:
        out = cuda.device_array(self.x.size)
        launch = gradient[self.size]
        return Runner(lambda: launch(self.x, C, out), wait, lambda: [out.copy_to_host()])

    def primal(self) -> Runner:
        out = cuda.device_array(self.x.size)
        launch = primal[self.size]
        return Runner(lambda: launch(self.x, C, out), wait, lambda: [out.copy_to_host()], "primal")

    def copy(self) -> Runner:
        out = cuda.device_array(self.x.size)
        return Runner(lambda: out.copy_to_device(self.x), wait, lambda: [out.copy_to_host()], "copy")


def case(count: int, peers: Peers) -> Case:
    """Return the case for `count` elements."""
    x = residuals(count)
    root = np.sqrt(1.0 + (x / C) ** 2)
    made = _Runners(x)
    return Case(
        "elementwise",
        f"gradient of an elementwise loss, {count:,} elements, float64",
        {"primal": made.primal, "gradient": made.generated, "hand-written": made.hand_written, "copy": made.copy},
        peers,
        {"primal": [C * C * (root - 1.0)], "gradient": [x / root], "copy": [x]},
        np.arange(count),
        1e-12,
        gradient_bars(copy=1.3),
    )
