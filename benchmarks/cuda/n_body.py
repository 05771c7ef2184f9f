"""The adjoint of a kernel for the forces between bodies, with tiles in shared memory.

All bodies attract each other, with softened distances. The gradient is that of a weighted sum of the forces, by
positions and masses. Each thread begins with another body of a tile: threads that read the same body at the same time
would add to the same shadow in the adjoint, one after another. The kernel in which they do is timed too ("one order").
Reference: the derivatives of all forces by a sample of the bodies, as a formula, in NumPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda, from_dtype

import zygote_py as zg
from benchmarks.cuda.case import Case, Peers, Runner, gradient_bars
from benchmarks.cuda.device import IS_SIMULATED, wait

SOFTENING = 0.01  # added to the squared distance
TILE = 4 if IS_SIMULATED else 128  # threads of a block


def kernels(dtype: np.dtype) -> tuple[Any, Any, Any]:
    """Return the kernel, the one that reads tiles in one order, and the hand-written gradient.

    Each array in shared memory has a line of its own, by which the simulator tells them apart.
    """
    kind, tile, zero, three, soft = from_dtype(dtype), TILE, dtype.type(0), dtype.type(3), dtype.type(SOFTENING)
    one = dtype.type(1)

    @cuda.jit
    def forces(x, y, z, m, fx, fy, fz):
        sx = cuda.shared.array(tile, kind)
        sy = cuda.shared.array(tile, kind)
        sz = cuda.shared.array(tile, kind)
        sm = cuda.shared.array(tile, kind)
        i, t = cuda.grid(1), cuda.threadIdx.x
        here = i < x.size
        xi, yi, zi = x[i] if here else zero, y[i] if here else zero, z[i] if here else zero
        ax, ay, az = zero, zero, zero
        for block in range(cuda.gridDim.x):
            j = block * tile + t
            there = j < x.size
            sx[t] = x[j] if there else zero
            sy[t] = y[j] if there else zero
            sz[t] = z[j] if there else zero
            sm[t] = m[j] if there else zero
            cuda.syncthreads()
            for step in range(tile):
                k = (step + t) % tile
                dx, dy, dz = sx[k] - xi, sy[k] - yi, sz[k] - zi
                r2 = dx * dx + dy * dy + dz * dz + soft
                w = sm[k] / (r2 * math.sqrt(r2))
                ax += w * dx
                ay += w * dy
                az += w * dz
            cuda.syncthreads()
        if here:
            fx[i], fy[i], fz[i] = ax, ay, az

    @cuda.jit
    def forces_in_one_order(x, y, z, m, fx, fy, fz):
        sx = cuda.shared.array(tile, kind)
        sy = cuda.shared.array(tile, kind)
        sz = cuda.shared.array(tile, kind)
        sm = cuda.shared.array(tile, kind)
        i, t = cuda.grid(1), cuda.threadIdx.x
        here = i < x.size
        xi, yi, zi = x[i] if here else zero, y[i] if here else zero, z[i] if here else zero
        ax, ay, az = zero, zero, zero
        for block in range(cuda.gridDim.x):
            j = block * tile + t
            there = j < x.size
            sx[t] = x[j] if there else zero
            sy[t] = y[j] if there else zero
            sz[t] = z[j] if there else zero
            sm[t] = m[j] if there else zero
            cuda.syncthreads()
            for k in range(tile):
                dx, dy, dz = sx[k] - xi, sy[k] - yi, sz[k] - zi
                r2 = dx * dx + dy * dy + dz * dz + soft
                w = sm[k] / (r2 * math.sqrt(r2))
                ax += w * dx
                ay += w * dy
                az += w * dz
            cuda.syncthreads()
        if here:
            fx[i], fy[i], fz[i] = ax, ay, az

    @cuda.jit
    def gradient(x, y, z, m, u, v, w, gx, gy, gz, gm):
        """Add up, for each body, the derivatives of its own force and of its part of the forces on all others."""
        sx = cuda.shared.array(tile, kind)
        sy = cuda.shared.array(tile, kind)
        sz = cuda.shared.array(tile, kind)
        su = cuda.shared.array(tile, kind)
        sv = cuda.shared.array(tile, kind)
        sw = cuda.shared.array(tile, kind)
        sm = cuda.shared.array(tile, kind)
        i, t = cuda.grid(1), cuda.threadIdx.x
        here = i < x.size
        xi, yi, zi, mi = x[i] if here else zero, y[i] if here else zero, z[i] if here else zero, m[i] if here else zero
        ui, vi, wi = u[i] if here else zero, v[i] if here else zero, w[i] if here else zero
        px, py, pz, pm = zero, zero, zero, zero
        for block in range(cuda.gridDim.x):
            j = block * tile + t
            there = j < x.size
            sx[t], sy[t], sz[t] = x[j] if there else zero, y[j] if there else zero, z[j] if there else zero
            su[t], sv[t], sw[t] = u[j] if there else zero, v[j] if there else zero, w[j] if there else zero
            sm[t] = m[j] if there else zero
            cuda.syncthreads()
            for k in range(tile):
                dx, dy, dz, mj = sx[k] - xi, sy[k] - yi, sz[k] - zi, sm[k]
                r2 = dx * dx + dy * dy + dz * dz + soft
                inverse = one / r2
                cube = inverse * math.sqrt(inverse)
                by_other = su[k] * dx + sv[k] * dy + sw[k] * dz
                along = three * inverse * (mj * (ui * dx + vi * dy + wi * dz) - mi * by_other)
                px += cube * (mi * su[k] - mj * ui + along * dx)
                py += cube * (mi * sv[k] - mj * vi + along * dy)
                pz += cube * (mi * sw[k] - mj * wi + along * dz)
                pm -= cube * by_other
            cuda.syncthreads()
        if here:
            gx[i], gy[i], gz[i], gm[i] = px, py, pz, pm

    return forces, forces_in_one_order, gradient


@cuda.jit
def prepare(u, v, w, dfx, dfy, dfz, dx, dy, dz, dm):
    """Set the shadows: those of the forces to the weights, the others to zero."""
    i = cuda.grid(1)
    if i < u.size:
        dfx[i], dfy[i], dfz[i] = u[i], v[i], w[i]
        dx[i], dy[i], dz[i], dm[i] = 0.0, 0.0, 0.0, 0.0


@dataclass(frozen=True)
class Bodies:
    """Positions and masses, and the weights of the forces."""

    positions: np.ndarray  # (3, n)
    masses: np.ndarray
    weights: np.ndarray  # (3, n)

    @classmethod
    def some(cls, count: int, dtype: np.dtype) -> Bodies:
        """Return bodies in a cube."""
        rng = np.random.default_rng(3)
        positions, masses = rng.uniform(size=(3, count)), rng.uniform(0.5, 1.5, count) / count
        return cls(positions.astype(dtype), masses.astype(dtype), rng.normal(size=(3, count)).astype(dtype))


def reference(bodies: Bodies, sample: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the forces on the bodies of the sample, and the gradient by their positions and masses."""
    r, m, u = (each.astype(np.float64) for each in (bodies.positions, bodies.masses, bodies.weights))
    d = r[:, None, :] - r[:, sample, None]
    r2 = (d * d).sum(0) + SOFTENING
    cube, mi, ui = r2**-1.5, m[sample, None], u[:, sample, None]
    by_self, by_other = (ui * d).sum(0), (u[:, None, :] * d).sum(0)
    own = cube * (3.0 * m * by_self / r2 * d - m * ui)
    others = cube * (mi * u[:, None, :] - 3.0 * mi * by_other / r2 * d)
    return [*(m * cube * d).sum(2)], [*(own + others).sum(2), -(cube * by_other).sum(1)]


class _Runners:
    """The runners of this package and of hand-written kernels, for some bodies."""

    def __init__(self, bodies: Bodies) -> None:
        self.count, dtype = bodies.masses.size, bodies.masses.dtype
        self.grid = -(-self.count // TILE), TILE
        self.kernel, self.in_one_order, self.gradient = kernels(dtype)
        self.dtype = dtype
        self.bodies = [cuda.to_device(each) for each in (*bodies.positions, bodies.masses)]
        self.weights = [cuda.to_device(each) for each in bodies.weights]

    def _new(self, number: int) -> list[Any]:
        return [cuda.device_array(self.count, self.dtype) for _ in range(number)]

    def primal(self, kernel: Any) -> Runner:
        out = self._new(3)
        launch = kernel[self.grid]
        return Runner(lambda: launch(*self.bodies, *out), wait, lambda: [each.copy_to_host() for each in out], "primal")

    def generated(self, kernel: Any) -> Runner:
        out, shadows, of_out = self._new(3), self._new(4), self._new(3)
        arguments = [each for pair in zip(self.bodies, shadows, strict=True) for each in pair]
        arguments += [each for pair in zip(out, of_out, strict=True) for each in pair]
        launch, first = zg.adjoint_kernel(kernel)[self.grid], prepare[self.grid]

        def run() -> None:
            first(*self.weights, *of_out, *shadows)
            launch(*arguments)

        return Runner(run, wait, lambda: [each.copy_to_host() for each in shadows])

    def hand_written(self) -> Runner:
        out = self._new(4)
        launch = self.gradient[self.grid]
        return Runner(
            lambda: launch(*self.bodies, *self.weights, *out), wait, lambda: [each.copy_to_host() for each in out]
        )


def case(count: int, dtype: np.dtype, peers: Peers) -> Case:
    """Return the case for `count` bodies and a precision."""
    bodies = Bodies.some(count, dtype)
    made = _Runners(bodies)
    sample = np.unique(np.linspace(0, count - 1, min(count, 100)).astype(np.int64))
    forces, gradient = reference(bodies, sample)
    return Case(
        f"N-body, {dtype}",
        f"gradient of the forces between {count:,} bodies, tiles of {TILE} in shared memory, {dtype}",
        {
            "primal": lambda: made.primal(made.kernel),
            "gradient": lambda: made.generated(made.kernel),
            "primal, one order": lambda: made.primal(made.in_one_order),
            "gradient, one order": lambda: made.generated(made.in_one_order),
            "hand-written": made.hand_written,
        },
        peers,
        {"primal": forces, "gradient": gradient},
        sample,
        1e-9 if dtype == np.float64 else 1e-3,
        gradient_bars(peers=1.0),
    )
