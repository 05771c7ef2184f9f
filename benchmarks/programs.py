"""The timed functions and their hand-written gradients, side by side.

    sincos, sincos_by_hand        the functions and gradients of `benchmarks.cases`

This module does not import zygote_py or compile anything: `benchmarks.cases` does that, with and without `fastmath`.
The hand-written gradients are reverse sweeps as an expert would write them: they do no unnecessary work, buffers that
the caller may reuse are passed in, and cheap values are recomputed instead of saved.
"""

from __future__ import annotations

import math

import numpy as np


def sincos(x):
    return math.sin(math.cos(x))


def sincos_by_hand(x):
    return -math.cos(math.cos(x)) * math.sin(x)


def power(x, n):
    """Compute the paper's `pow`."""
    r = 1.0
    while n > 0:
        n -= 1
        r *= x
    return r


def power_by_hand(x, n, tape):
    r = 1.0
    for i in range(n):
        tape[i] = r
        r *= x
    dr = 1.0
    dx = 0.0
    for i in range(n - 1, -1, -1):
        dx += dr * tape[i]
        dr *= x
    return dx


def logsumexp(x):
    m = x[0]
    for i in range(1, len(x)):
        m = max(m, x[i])
    s = 0.0
    for i in range(len(x)):
        s += math.exp(x[i] - m)
    return m + math.log(s)


def logsumexp_by_hand(x):
    """Return the softmax; the contributions through the maximum cancel and are omitted."""
    dx = np.empty_like(x)
    m = x[0]
    for i in range(1, len(x)):
        m = max(m, x[i])
    s = 0.0
    for i in range(len(x)):
        dx[i] = math.exp(x[i] - m)
        s += dx[i]
    ds = 1.0 / s
    for i in range(len(x)):
        dx[i] *= ds
    return dx


def rk4(alpha, beta, gamma, delta, u, v, steps):
    """Integrate the Lotka-Volterra equations by the classical Runge-Kutta method; return a loss of the final state."""
    h = 0.001
    for _ in range(steps):
        du1, dv1 = (alpha - beta * v) * u, (delta * u - gamma) * v
        u2, v2 = u + 0.5 * h * du1, v + 0.5 * h * dv1
        du2, dv2 = (alpha - beta * v2) * u2, (delta * u2 - gamma) * v2
        u3, v3 = u + 0.5 * h * du2, v + 0.5 * h * dv2
        du3, dv3 = (alpha - beta * v3) * u3, (delta * u3 - gamma) * v3
        u4, v4 = u + h * du3, v + h * dv3
        du4, dv4 = (alpha - beta * v4) * u4, (delta * u4 - gamma) * v4
        u = u + h / 6.0 * (du1 + 2.0 * (du2 + du3) + du4)
        v = v + h / 6.0 * (dv1 + 2.0 * (dv2 + dv3) + dv4)
    return (u - 1.0) ** 2 + (v - 2.0) ** 2


def rk4_by_hand(alpha, beta, gamma, delta, u, v, steps, us, vs):
    """Differentiate `rk4`; `us` and `vs` store the state of each step, the stages are recomputed; `f`, `g`: growth
    rates.
    """
    h = 0.001
    half, third, sixth = 0.5 * h, h / 3.0, h / 6.0
    for i in range(steps):
        us[i], vs[i] = u, v
        du1, dv1 = (alpha - beta * v) * u, (delta * u - gamma) * v
        u2, v2 = u + half * du1, v + half * dv1
        du2, dv2 = (alpha - beta * v2) * u2, (delta * u2 - gamma) * v2
        u3, v3 = u + half * du2, v + half * dv2
        du3, dv3 = (alpha - beta * v3) * u3, (delta * u3 - gamma) * v3
        u4, v4 = u + h * du3, v + h * dv3
        du4, dv4 = (alpha - beta * v4) * u4, (delta * u4 - gamma) * v4
        u += sixth * (du1 + 2.0 * (du2 + du3) + du4)
        v += sixth * (dv1 + 2.0 * (dv2 + dv3) + dv4)
    du, dv = 2.0 * (u - 1.0), 2.0 * (v - 2.0)
    dalpha = dbeta = dgamma = ddelta = 0.0
    for i in range(steps - 1, -1, -1):
        u1, v1 = us[i], vs[i]
        f1, g1 = alpha - beta * v1, delta * u1 - gamma
        u2, v2 = u1 + half * (f1 * u1), v1 + half * (g1 * v1)
        f2, g2 = alpha - beta * v2, delta * u2 - gamma
        u3, v3 = u1 + half * (f2 * u2), v1 + half * (g2 * v2)
        f3, g3 = alpha - beta * v3, delta * u3 - gamma
        u4, v4 = u1 + h * (f3 * u3), v1 + h * (g3 * v3)
        f4, g4 = alpha - beta * v4, delta * u4 - gamma
        # p and q are the adjoints of a stage's derivatives, pu and qv those of its growth rates.
        p, q = sixth * du, sixth * dv
        pu4, qv4 = p * u4, q * v4
        su4, sv4 = p * f4 + delta * qv4, q * g4 - beta * pu4
        p, q = third * du + h * su4, third * dv + h * sv4
        pu3, qv3 = p * u3, q * v3
        su3, sv3 = p * f3 + delta * qv3, q * g3 - beta * pu3
        p, q = third * du + half * su3, third * dv + half * sv3
        pu2, qv2 = p * u2, q * v2
        su2, sv2 = p * f2 + delta * qv2, q * g2 - beta * pu2
        p, q = sixth * du + half * su2, sixth * dv + half * sv2
        pu1, qv1 = p * u1, q * v1
        su1, sv1 = p * f1 + delta * qv1, q * g1 - beta * pu1
        dalpha += pu1 + pu2 + pu3 + pu4
        dbeta -= pu1 * v1 + pu2 * v2 + pu3 * v3 + pu4 * v4
        dgamma -= qv1 + qv2 + qv3 + qv4
        ddelta += qv1 * u1 + qv2 * u2 + qv3 * u3 + qv4 * u4
        du += su1 + su2 + su3 + su4
        dv += sv1 + sv2 + sv3 + sv4
    return dalpha, dbeta, dgamma, ddelta, du, dv


def evalpoly(x, c):
    """Evaluate a polynomial by Horner's rule; `c` starts with the constant term."""
    r = c[len(c) - 1]
    for i in range(len(c) - 2, -1, -1):
        r = r * x + c[i]
    return r


def evalpoly_by_hand(x, c):
    """Differentiate `evalpoly` by a reverse sweep; the array of the result holds the record."""
    last = len(c) - 1
    dc = np.empty_like(c)
    r = c[last]
    for i in range(last - 1, -1, -1):
        dc[i] = r
        r = r * x + c[i]
    dr = 1.0
    dx = 0.0
    for i in range(last):
        dx += dr * dc[i]
        dc[i] = dr
        dr *= x
    dc[last] = dr
    return dx, dc


def evalpoly_in_one_pass(x, c):
    """Differentiate `evalpoly` in one loop: a forward derivative for x, and powers of x for the coefficients."""
    last = len(c) - 1
    dc = np.empty_like(c)
    r = c[last]
    dx = 0.0
    power_of_x = 1.0
    for i in range(last):
        dx = dx * x + r
        r = r * x + c[last - 1 - i]
        dc[i] = power_of_x
        power_of_x *= x
    dc[last] = power_of_x
    return dx, dc


def grow(x, limit):
    """Run a loop whose trip count depends on the data: `r` needs a growing record."""
    r = 1.0
    while r < limit:
        r *= x
    return r


def grow_by_hand(x, limit):
    """Differentiate `grow` with a plain list as the record."""
    r = 1.0
    record = [0.0 for _ in range(0)]
    while r < limit:
        record.append(r)
        r *= x
    dr = 1.0
    dx = 0.0
    for _ in range(len(record)):
        dx += dr * record.pop()
        dr *= x
    return dx


def grow_without_record(x, limit):
    """Run the two loops of the gradient without a record, with a wrong result: its cost without recording."""
    r = 1.0
    n = 0
    while r < limit:
        n += 1
        r *= x
    dr = 1.0
    dx = 0.0
    for _ in range(n):
        dx += dr * limit
        dr *= x
    return dx + r
