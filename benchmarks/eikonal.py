"""First arrivals of seismic waves in three dimensions, by fast sweeping, and the misfit of picked times.

    misfit(slowness, spacing, source, receivers, picks, sweeps)

`slowness` is constant in each cell of a grid; times belong to its corners. Gauss-Seidel sweeps in the eight directions
(H. Zhao, "A fast sweeping method for eikonal equations", Mathematics of Computation 74, 2005) take at each corner the
least time of waves along an edge, in a face and in the cell that the sweep comes from. The operators of faces and cells
average the differences along all parallel edges. Near the source they apply to the difference from the times in a
homogeneous medium, whose fronts are spheres: M. Noble, A. Gesret and N. Belayouni, "Accurate 3-D finite difference
computation of traveltimes in strongly heterogeneous media", Geophysical Journal International 199, 2014.

This module does not import zygote_py or compile anything.
"""

from __future__ import annotations

import math

import numba
import numpy as np

FAR = 1e5  # later than any arrival
SPHERICAL = 4  # corners: within this distance from the source, fronts are taken as spheres


@numba.njit
def homogeneous(i, j, k, spacing, at, slow):
    """Return the time at a corner in a homogeneous medium; `at` is the source in units of the grid."""
    x = spacing[0] * (i - at[0])
    y = spacing[1] * (j - at[1])
    z = spacing[2] * (k - at[2])
    return slow * math.sqrt(x * x + y * y + z * z)


@numba.njit
def homogeneous_slopes(i, j, k, spacing, at, slow):
    """Return the derivatives of the time at a corner in a homogeneous medium along the three axes."""
    x = spacing[0] * (i - at[0])
    y = spacing[1] * (j - at[1])
    z = spacing[2] * (k - at[2])
    distance = math.sqrt(x * x + y * y + z * z)
    if distance > 0.0:
        return slow * x / distance, slow * y / distance, slow * z / distance
    return 0.0, 0.0, 0.0


@numba.njit
def later_root(a, b, c):
    """Return the larger root of a t^2 + 2 b t + c, or `FAR` if there is none."""
    square = b * b - a * c
    if square < 0.0:
        return FAR
    return (math.sqrt(square) - b) / a


@numba.njit
def slowness_on_edge(slowness, axis, i, j, k, di, dj, dk):
    """Return the least slowness of the cells around the edge along an axis that ends at a corner."""
    a, b, c = slowness.shape
    first = i - 1 if di > 0 else i
    second = j - 1 if dj > 0 else j
    third = k - 1 if dk > 0 else k
    least = FAR
    for p in range(2):
        for q in range(2):
            if axis == 0:
                u, v, w = first, j - p, k - q
            elif axis == 1:
                u, v, w = i - p, second, k - q
            else:
                u, v, w = i - p, j - q, third
            if 0 <= u < a and 0 <= v < b and 0 <= w < c:
                least = min(least, slowness[u, v, w])
    return least


@numba.njit
def slowness_on_face(slowness, axis, i, j, k, di, dj, dk):
    """Return the least slowness of the two cells at the face that is normal to an axis."""
    a, b, c = slowness.shape
    u = i - 1 if di > 0 else i
    v = j - 1 if dj > 0 else j
    w = k - 1 if dk > 0 else k
    least = FAR
    for p in range(2):
        if axis == 0:
            u = i - p
        elif axis == 1:
            v = j - p
        else:
            w = k - p
        if 0 <= u < a and 0 <= v < b and 0 <= w < c:
            least = min(least, slowness[u, v, w])
    return least


@numba.njit
def in_face(ta, tb, tab, ha, hb, slow):
    """Return the time of a plane wave in a face, for those a step away along each axis and along both."""
    if ta > tb + hb * slow or tb > ta + ha * slow or ta < tab or tb < tab:
        return FAR
    pa = tb - ta - tab
    pb = ta - tb - tab
    wa = 0.25 / (ha * ha)
    wb = 0.25 / (hb * hb)
    a = wa + wb
    b = wa * pa + wb * pb
    c = wa * pa * pa + wb * pb * pb - slow * slow
    found = later_root(a, b, c)
    if found < ta or found < tb:
        return FAR
    return found


@numba.njit
def in_cell(ta, tb, tc, tab, tac, tbc, tabc, spacing, slow):
    """Return the time of a plane wave in a cell; the names of times tell the axes along which they are a step away."""
    if ta >= FAR or tb >= FAR or tc >= FAR or tab >= FAR or tac >= FAR or tbc >= FAR:
        return FAR
    pa = tb + tc + tbc - ta - tab - tac - tabc
    pb = ta + tc + tac - tb - tab - tbc - tabc
    pc = ta + tb + tab - tc - tac - tbc - tabc
    wa = 0.0625 / (spacing[0] * spacing[0])
    wb = 0.0625 / (spacing[1] * spacing[1])
    wc = 0.0625 / (spacing[2] * spacing[2])
    a = wa + wb + wc
    b = wa * pa + wb * pb + wc * pc
    c = wa * pa * pa + wb * pb * pb + wc * pc * pc - slow * slow
    found = later_root(a, b, c)
    if found < ta or found < tb or found < tc:
        return FAR
    return found


@numba.njit
def in_cell_near_source(times, i, j, k, di, dj, dk, spacing, at, slow, slow_there):
    """Return the time in a cell of what is added to that in a homogeneous medium."""
    u, v, w = i - di, j - dj, k - dk
    ta, tb, tc = times[u, j, k], times[i, v, k], times[i, j, w]
    if ta >= FAR or tb >= FAR or tc >= FAR or times[u, v, k] >= FAR or times[u, j, w] >= FAR or times[i, v, w] >= FAR:
        return FAR
    a1 = ta - homogeneous(u, j, k, spacing, at, slow_there)
    b1 = tb - homogeneous(i, v, k, spacing, at, slow_there)
    c1 = tc - homogeneous(i, j, w, spacing, at, slow_there)
    ab = times[u, v, k] - homogeneous(u, v, k, spacing, at, slow_there)
    ac = times[u, j, w] - homogeneous(u, j, w, spacing, at, slow_there)
    bc = times[i, v, w] - homogeneous(i, v, w, spacing, at, slow_there)
    abc = times[u, v, w] - homogeneous(u, v, w, spacing, at, slow_there)
    sa, sb, sc = homogeneous_slopes(i, j, k, spacing, at, slow_there)
    wa, wb, wc = 0.25 / spacing[0], 0.25 / spacing[1], 0.25 / spacing[2]
    pa = wa * (b1 + c1 + bc - a1 - ab - ac - abc) + di * sa
    pb = wb * (a1 + c1 + ac - b1 - ab - bc - abc) + dj * sb
    pc = wc * (a1 + b1 + ab - c1 - ac - bc - abc) + dk * sc
    a = wa * wa + wb * wb + wc * wc
    b = wa * pa + wb * pb + wc * pc
    c = pa * pa + pb * pb + pc * pc - slow * slow
    found = later_root(a, b, c)
    if found >= FAR:
        return FAR
    found += homogeneous(i, j, k, spacing, at, slow_there)
    if found < ta or found < tb or found < tc:
        return FAR
    return found


@numba.njit
def update(times, slowness, i, j, k, di, dj, dk, spacing, at, slow_there):
    """Take the least time at a corner of waves from the side that a sweep comes from."""
    u, v, w = i - di, j - dj, k - dk
    ta, tb, tc = times[u, j, k], times[i, v, k], times[i, j, w]
    tab, tac, tbc, tabc = times[u, v, k], times[u, j, w], times[i, v, w], times[u, v, w]
    ha, hb, hc = spacing[0], spacing[1], spacing[2]

    least = times[i, j, k]
    least = min(least, ta + ha * slowness_on_edge(slowness, 0, i, j, k, di, dj, dk))
    least = min(least, tb + hb * slowness_on_edge(slowness, 1, i, j, k, di, dj, dk))
    least = min(least, tc + hc * slowness_on_edge(slowness, 2, i, j, k, di, dj, dk))

    cell = slowness[i - 1 if di > 0 else i, j - 1 if dj > 0 else j, k - 1 if dk > 0 else k]
    least = min(least, in_face(ta, tb, tab, ha, hb, slowness_on_face(slowness, 2, i, j, k, di, dj, dk)))
    least = min(least, in_face(ta, tc, tac, ha, hc, slowness_on_face(slowness, 1, i, j, k, di, dj, dk)))
    least = min(least, in_face(tb, tc, tbc, hb, hc, slowness_on_face(slowness, 0, i, j, k, di, dj, dk)))
    near = abs(i - at[0]) <= SPHERICAL and abs(j - at[1]) <= SPHERICAL and abs(k - at[2]) <= SPHERICAL
    if near:
        least = min(least, in_cell_near_source(times, i, j, k, di, dj, dk, spacing, at, cell, slow_there))
    else:
        least = min(least, in_cell(ta, tb, tc, tab, tac, tbc, tabc, spacing, cell))
    times[i, j, k] = least


@numba.njit
def sweep(times, slowness, spacing, at, slow_there):
    """Sweep over the grid in the eight directions."""
    a, b, c = times.shape
    for direction in range(8):
        di = 1 if direction & 1 == 0 else -1
        dj = 1 if direction & 2 == 0 else -1
        dk = 1 if direction & 4 == 0 else -1
        for p in range(1, a):
            i = p if di > 0 else a - 1 - p
            for q in range(1, b):
                j = q if dj > 0 else b - 1 - q
                for r in range(1, c):
                    k = r if dk > 0 else c - 1 - r
                    update(times, slowness, i, j, k, di, dj, dk, spacing, at, slow_there)


@numba.njit
def start(times, spacing, at, cell, slow_there):
    """Set the times at the corners of the cell with the source."""
    for p in range(2):
        for q in range(2):
            for r in range(2):
                i, j, k = cell[0] + p, cell[1] + q, cell[2] + r
                times[i, j, k] = homogeneous(i, j, k, spacing, at, slow_there)


@numba.njit
def cell_of(position, spacing, count):
    """Return the number of the cell at a position along an axis."""
    number = int(position / spacing)
    if number < 0 or position > spacing * count:
        raise ValueError("a source or a receiver is not in the grid")
    return min(number, count - 1)


@numba.njit
def arrivals(slowness, spacing, source, sweeps):
    """Return the times of first arrivals at all corners."""
    a, b, c = slowness.shape
    cell = (
        cell_of(source[0], spacing[0], a),
        cell_of(source[1], spacing[1], b),
        cell_of(source[2], spacing[2], c),
    )
    at = (source[0] / spacing[0], source[1] / spacing[1], source[2] / spacing[2])
    slow_there = slowness[cell[0], cell[1], cell[2]]
    times = np.full((a + 1, b + 1, c + 1), FAR)
    start(times, spacing, at, cell, slow_there)
    for _ in range(sweeps):
        sweep(times, slowness, spacing, at, slow_there)
    return times


@numba.njit
def interpolated(times, spacing, place):
    """Return the time at a place in a cell, by linear interpolation along the three axes."""
    a, b, c = times.shape
    i = cell_of(place[0], spacing[0], a - 1)
    j = cell_of(place[1], spacing[1], b - 1)
    k = cell_of(place[2], spacing[2], c - 1)
    x = place[0] / spacing[0] - i
    y = place[1] / spacing[1] - j
    z = place[2] / spacing[2] - k
    total = 0.0
    for p in range(2):
        for q in range(2):
            for r in range(2):
                weight = (x if p == 1 else 1.0 - x) * (y if q == 1 else 1.0 - y) * (z if r == 1 else 1.0 - z)
                total += weight * times[i + p, j + q, k + r]
    return total


def misfit(slowness, spacing, source, receivers, picks, sweeps):
    """Return half the sum of the squared differences of times at the receivers from the picked ones."""
    times = arrivals(slowness, spacing, source, sweeps)
    total = 0.0
    for n in range(len(receivers)):
        residual = interpolated(times, spacing, receivers[n]) - picks[n]
        total += 0.5 * residual * residual
    return total


def example():
    """Return a medium that gets faster with depth, a source at depth, receivers at the surface and picked times."""
    rng = np.random.default_rng(6)
    slowness = (0.5 - 0.02 * np.arange(7))[:, None, None] + 0.02 * rng.uniform(size=(7, 8, 6))
    receivers = np.column_stack((np.zeros(9), rng.uniform(0.1, 0.7, 9), rng.uniform(0.1, 0.5, 9)))
    return slowness, (0.1, 0.1, 0.1), (0.43, 0.37, 0.22), receivers, rng.uniform(0.1, 0.3, 9), 2
