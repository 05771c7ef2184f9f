"""The functions whose second derivatives and Jacobians are timed, and hand-written versions of these, side by side.

    rosenbrock, rosenbrock_hessian_by_hand        of `benchmarks.second`

This module does not import zygote_py or compile anything. A hand-written Hessian only stores its nonzero entries; the
Jacobian of an integrator propagates the sensitivities of its state.
"""

from __future__ import annotations

import numpy as np


def rosenbrock(x):
    s = 0.0
    for i in range(len(x) - 1):
        s += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return s


def rosenbrock_hessian_by_hand(x):
    n = len(x)
    h = np.zeros((n, n))
    for i in range(n - 1):
        h[i, i] += 1200.0 * x[i] * x[i] - 400.0 * x[i + 1] + 2.0
        h[i + 1, i + 1] += 200.0
        h[i, i + 1] = h[i + 1, i] = -400.0 * x[i]
    return h


def rosenbrock_hvp_by_hand(x, v):
    p = np.zeros_like(x)
    for i in range(len(x) - 1):
        cross = -400.0 * x[i]
        p[i] += (1200.0 * x[i] * x[i] - 400.0 * x[i + 1] + 2.0) * v[i] + cross * v[i + 1]
        p[i + 1] += 200.0 * v[i + 1] + cross * v[i]
    return p


def final_state(alpha, beta, gamma, delta, u, v, steps):
    """The Lotka-Volterra equations by the classical Runge-Kutta method."""
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
    return u, v


def final_state_by_hand(alpha, beta, gamma, delta, u, v, steps):
    """The Jacobian with respect to the four rates: a row for `u` and a row for `v`. Each rate changes one term of the
    equations.
    """
    h = 0.001
    half, sixth = 0.5 * h, h / 6.0
    a_u = b_u = g_u = d_u = 0.0  # the derivatives of `u` with respect to the rates
    a_v = b_v = g_v = d_v = 0.0
    for _ in range(steps):
        f1, g1 = alpha - beta * v, delta * u - gamma
        u2, v2 = u + half * (f1 * u), v + half * (g1 * v)
        f2, g2 = alpha - beta * v2, delta * u2 - gamma
        u3, v3 = u + half * (f2 * u2), v + half * (g2 * v2)
        f3, g3 = alpha - beta * v3, delta * u3 - gamma
        u4, v4 = u + h * (f3 * u3), v + h * (g3 * v3)
        f4, g4 = alpha - beta * v4, delta * u4 - gamma
        bu1, bu2, bu3, bu4 = beta * u, beta * u2, beta * u3, beta * u4
        dv1, dv2, dv3, dv4 = delta * v, delta * v2, delta * v3, delta * v4

        p1, q1 = f1 * a_u - bu1 * a_v + u, dv1 * a_u + g1 * a_v
        x, y = a_u + half * p1, a_v + half * q1
        p2, q2 = f2 * x - bu2 * y + u2, dv2 * x + g2 * y
        x, y = a_u + half * p2, a_v + half * q2
        p3, q3 = f3 * x - bu3 * y + u3, dv3 * x + g3 * y
        x, y = a_u + h * p3, a_v + h * q3
        p4, q4 = f4 * x - bu4 * y + u4, dv4 * x + g4 * y
        a_u += sixth * (p1 + 2.0 * (p2 + p3) + p4)
        a_v += sixth * (q1 + 2.0 * (q2 + q3) + q4)

        p1, q1 = f1 * b_u - bu1 * b_v - u * v, dv1 * b_u + g1 * b_v
        x, y = b_u + half * p1, b_v + half * q1
        p2, q2 = f2 * x - bu2 * y - u2 * v2, dv2 * x + g2 * y
        x, y = b_u + half * p2, b_v + half * q2
        p3, q3 = f3 * x - bu3 * y - u3 * v3, dv3 * x + g3 * y
        x, y = b_u + h * p3, b_v + h * q3
        p4, q4 = f4 * x - bu4 * y - u4 * v4, dv4 * x + g4 * y
        b_u += sixth * (p1 + 2.0 * (p2 + p3) + p4)
        b_v += sixth * (q1 + 2.0 * (q2 + q3) + q4)

        p1, q1 = f1 * g_u - bu1 * g_v, dv1 * g_u + g1 * g_v - v
        x, y = g_u + half * p1, g_v + half * q1
        p2, q2 = f2 * x - bu2 * y, dv2 * x + g2 * y - v2
        x, y = g_u + half * p2, g_v + half * q2
        p3, q3 = f3 * x - bu3 * y, dv3 * x + g3 * y - v3
        x, y = g_u + h * p3, g_v + h * q3
        p4, q4 = f4 * x - bu4 * y, dv4 * x + g4 * y - v4
        g_u += sixth * (p1 + 2.0 * (p2 + p3) + p4)
        g_v += sixth * (q1 + 2.0 * (q2 + q3) + q4)

        p1, q1 = f1 * d_u - bu1 * d_v, dv1 * d_u + g1 * d_v + u * v
        x, y = d_u + half * p1, d_v + half * q1
        p2, q2 = f2 * x - bu2 * y, dv2 * x + g2 * y + u2 * v2
        x, y = d_u + half * p2, d_v + half * q2
        p3, q3 = f3 * x - bu3 * y, dv3 * x + g3 * y + u3 * v3
        x, y = d_u + h * p3, d_v + h * q3
        p4, q4 = f4 * x - bu4 * y, dv4 * x + g4 * y + u4 * v4
        d_u += sixth * (p1 + 2.0 * (p2 + p3) + p4)
        d_v += sixth * (q1 + 2.0 * (q2 + q3) + q4)

        u += sixth * (f1 * u + 2.0 * (f2 * u2 + f3 * u3) + f4 * u4)
        v += sixth * (g1 * v + 2.0 * (g2 * v2 + g3 * v3) + g4 * v4)
    return (a_u, b_u, g_u, d_u), (a_v, b_v, g_v, d_v)
