"""Gradients of the Lotka-Volterra equations, 100 steps of Runge-Kutta, for many sets of parameters.

The function is the squared distance of the end from a measured one. Reference: the tangents of all steps, in NumPy.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

import zygote_py as zg
from benchmarks.cuda.case import Case, Peers, Runner, gradient_bars
from benchmarks.cuda.device import launch_size, wait

STEPS = 100
STEP = 0.05
X, Y = 1.0, 0.5
END_X, END_Y = 0.9, 1.2
MOST_LANES = 1 << 17


def rates(x, y, a, b, c, d):
    return x * (a - b * y), y * (d * x - c)


def loss_with(rates):
    """Return the loss as a function of four numbers: of Python, or on the device if `rates` is there."""

    def loss(a, b, c, d):
        x, y = X, Y
        for _ in range(STEPS):
            p1, q1 = rates(x, y, a, b, c, d)
            p2, q2 = rates(x + 0.5 * STEP * p1, y + 0.5 * STEP * q1, a, b, c, d)
            p3, q3 = rates(x + 0.5 * STEP * p2, y + 0.5 * STEP * q2, a, b, c, d)
            p4, q4 = rates(x + STEP * p3, y + STEP * q3, a, b, c, d)
            x += STEP / 6.0 * (p1 + 2.0 * p2 + 2.0 * p3 + p4)
            y += STEP / 6.0 * (q1 + 2.0 * q2 + 2.0 * q3 + q4)
        return (x - END_X) ** 2 + (y - END_Y) ** 2

    return loss


on_device = cuda.jit(device=True)(rates)
loss_on_device = cuda.jit(device=True)(loss_with(on_device))


@cuda.jit
def primal(a, b, c, d, out):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        out[i] = loss_on_device(a[i], b[i], c[i], d[i])


@cuda.jit(device=True)
def pulled(x, y, u, v, a, b, c, d):
    """Return the cotangents of a state, from those of its rates."""
    return (a - b * y) * u + d * y * v, (d * x - c) * v - b * x * u


@cuda.jit
def gradient(a_, b_, c_, d_, record, da, db, dc, dd):
    """Store the gradients: the states of all steps are recorded, and each step is repeated before it is reversed."""
    lane = cuda.grid(1)
    for i in range(lane, a_.size, cuda.gridsize(1)):
        a, b, c, d = a_[i], b_[i], c_[i], d_[i]
        x, y = X, Y
        for step in range(STEPS):
            record[step, 0, lane] = x
            record[step, 1, lane] = y
            p1, q1 = on_device(x, y, a, b, c, d)
            p2, q2 = on_device(x + 0.5 * STEP * p1, y + 0.5 * STEP * q1, a, b, c, d)
            p3, q3 = on_device(x + 0.5 * STEP * p2, y + 0.5 * STEP * q2, a, b, c, d)
            p4, q4 = on_device(x + STEP * p3, y + STEP * q3, a, b, c, d)
            x += STEP / 6.0 * (p1 + 2.0 * p2 + 2.0 * p3 + p4)
            y += STEP / 6.0 * (q1 + 2.0 * q2 + 2.0 * q3 + q4)
        u, v = 2.0 * (x - END_X), 2.0 * (y - END_Y)
        ga, gb, gc, gd = 0.0, 0.0, 0.0, 0.0
        for back in range(STEPS):
            x, y = record[STEPS - 1 - back, 0, lane], record[STEPS - 1 - back, 1, lane]
            p, q = on_device(x, y, a, b, c, d)
            x2, y2 = x + 0.5 * STEP * p, y + 0.5 * STEP * q
            p, q = on_device(x2, y2, a, b, c, d)
            x3, y3 = x + 0.5 * STEP * p, y + 0.5 * STEP * q
            p, q = on_device(x3, y3, a, b, c, d)
            x4, y4 = x + STEP * p, y + STEP * q
            p4, q4 = STEP / 6.0 * u, STEP / 6.0 * v
            u4, v4 = pulled(x4, y4, p4, q4, a, b, c, d)
            p3, q3 = 2.0 * p4 + STEP * u4, 2.0 * q4 + STEP * v4
            u3, v3 = pulled(x3, y3, p3, q3, a, b, c, d)
            p2, q2 = 2.0 * p4 + 0.5 * STEP * u3, 2.0 * q4 + 0.5 * STEP * v3
            u2, v2 = pulled(x2, y2, p2, q2, a, b, c, d)
            p1, q1 = p4 + 0.5 * STEP * u2, q4 + 0.5 * STEP * v2
            u1, v1 = pulled(x, y, p1, q1, a, b, c, d)
            u += u1 + u2 + u3 + u4
            v += v1 + v2 + v3 + v4
            ga += x * p1 + x2 * p2 + x3 * p3 + x4 * p4
            gb -= x * y * p1 + x2 * y2 * p2 + x3 * y3 * p3 + x4 * y4 * p4
            gc -= y * q1 + y2 * q2 + y3 * q3 + y4 * q4
            gd += x * y * q1 + x2 * y2 * q2 + x3 * y3 * q3 + x4 * y4 * q4
        da[i], db[i], dc[i], dd[i] = ga, gb, gc, gd


def parameters(count: int) -> list[np.ndarray]:
    """Return `count` values of each of the four parameters."""
    rng = np.random.default_rng(1)
    return [centre * rng.uniform(0.8, 1.2, count) for centre in (1.1, 0.8, 0.9, 0.7)]


def reference(sets: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the loss and its derivatives, from the derivative of each step by each parameter."""
    a, b, c, d = sets
    state = np.broadcast_to(np.array([X, Y])[:, None], (2, a.size))
    tangents = np.zeros((4, 2, a.size))

    def slopes(s: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (x, y), dx, dy = s, t[:, 0], t[:, 1]
        dp, dq = dx * (a - b * y) - x * b * dy, dy * (d * x - c) + y * d * dx
        dp[0] += x
        dp[1] -= x * y
        dq[2] -= y
        dq[3] += x * y
        return np.stack([x * (a - b * y), y * (d * x - c)]), np.stack([dp, dq], axis=1)

    for _ in range(STEPS):
        k1, t1 = slopes(state, tangents)
        k2, t2 = slopes(state + STEP / 2 * k1, tangents + STEP / 2 * t1)
        k3, t3 = slopes(state + STEP / 2 * k2, tangents + STEP / 2 * t2)
        k4, t4 = slopes(state + STEP * k3, tangents + STEP * t3)
        state = state + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        tangents = tangents + STEP / 6 * (t1 + 2 * t2 + 2 * t3 + t4)
    x, y = state[0] - END_X, state[1] - END_Y
    return x**2 + y**2, [2 * x * t[0] + 2 * y * t[1] for t in tangents]


class _Runners:
    """The runners of this package and of hand-written kernels, for some sets of parameters."""

    def __init__(self, sets: list[np.ndarray]) -> None:
        self.count = sets[0].size
        self.lanes = launch_size(self.count, MOST_LANES)
        self.sets = [cuda.to_device(each) for each in sets]

    def generated(self) -> Runner:
        over = zg.vectorize(zg.gradient(loss_with(rates)), target="cuda")
        out = tuple(cuda.device_array(self.count) for _ in range(4))
        return Runner(lambda: over(*self.sets, out=out), wait, lambda: [each.copy_to_host() for each in out])

    def hand_written(self) -> Runner:
        blocks, threads = self.lanes
        record = cuda.device_array((STEPS, 2, blocks * threads))
        out = [cuda.device_array(self.count) for _ in range(4)]
        launch = gradient[blocks, threads]
        return Runner(lambda: launch(*self.sets, record, *out), wait, lambda: [each.copy_to_host() for each in out])

    def primal(self) -> Runner:
        out = cuda.device_array(self.count)
        launch = primal[launch_size(self.count)]
        return Runner(lambda: launch(*self.sets, out), wait, lambda: [out.copy_to_host()], "primal")


def case(count: int, peers: Peers) -> Case:
    """Return the case for `count` sets of parameters."""
    sets = parameters(count)
    sample = np.unique(np.linspace(0, count - 1, min(count, 500)).astype(np.int64))
    value, gradient = reference([each[sample] for each in sets])
    made = _Runners(sets)
    return Case(
        "Lotka-Volterra",
        f"gradients by 4 parameters of {STEPS} Runge-Kutta steps, {count:,} parameter sets, float64",
        {"primal": made.primal, "gradient": made.generated, "hand-written": made.hand_written},
        peers,
        {"primal": [value], "gradient": gradient},
        sample,
        1e-9,
        gradient_bars(peers=5.0),
    )
