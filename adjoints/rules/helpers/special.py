"""Special functions that rules need and neither Numba nor NumPy has.

    digamma(x)         the logarithmic derivative of the gamma function
    polygamma(n, x)    its n-th derivative, n >= 1

Each stands by itself in the subset that Numba compiles, needs only `np`, and computes in float64. A module that uses
one includes its `source`. They have rules themselves, so that derivatives of any order close.

They are not meant for n above 20 or so, nor for complex numbers.

The method is that of Abramowitz and Stegun, 6.3 and 6.4: the asymptotic series for large x, the recurrence to get
there, reflection for x < 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from zygote_py.ir import helper


@helper
def digamma(x: float) -> float:
    """The digamma function. At 0 it is -inf (inf from below), at the negative integers nan, as in SciPy."""
    reflected = 0.0
    if x <= 0.0:
        if x == 0.0:
            return float(-np.copysign(np.inf, x))
        fraction = x - np.rint(x)
        if fraction == 0.0 or x == -np.inf:
            return float(np.nan)
        # psi(x) = psi(1 - x) - pi / tan(pi x)
        reflected = np.pi / np.tan(np.pi * fraction)
        x = 1.0 - x
    # The Taylor series at the positive root, whose next digits are 9.55e-17.
    distance = x - 1.4616321449683622 - 9.5499954299656977e-17
    if abs(distance) < 0.25:
        total = 0.0
        for c in (
            -0.0003454680251063077,
            0.000504953265834602,
            -0.0007380709389960052,
            0.0010788252019162967,
            -0.0015769367714301972,
            0.002305126326734928,
            -0.003369801655439328,
            0.004926781395729853,
            -0.007204534386356869,
            0.010538791611612175,
            -0.01542476590494896,
            0.022597648232218104,
            -0.03316112647484736,
            0.04880428816414311,
            -0.07219956125645471,
            0.10782405069126237,
            -0.16394270544240652,
            0.258499760955651,
            -0.4427631689835921,
            0.9676722454476212,
        ):
            total = (total + c) * distance
        return float(total - reflected)
    shift = 0.0
    while x < 10.0:
        shift += 1.0 / x
        x += 1.0
    # The terms are B(2k) / (2k x^2k).
    square = 1.0 / (x * x)
    total = 0.0
    for c in (
        0.08333333333333333,
        -0.021092796092796094,
        0.007575757575757576,
        -0.004166666666666667,
        0.003968253968253968,
        -0.008333333333333333,
        0.08333333333333333,
    ):
        total = (total + c) * square
    return float(np.log(x) - 0.5 / x - total - shift - reflected)


@helper
def polygamma(n: int, x: float) -> float:
    """The n-th derivative of the digamma function, n >= 1. At 0 and the negative integers: inf for odd n, else nan."""
    sign = 1.0 if n % 2 == 1 else -1.0
    factorial = 1.0
    for k in range(2, n + 1):
        factorial *= k
    reflected = 0.0
    outer = sign
    if x <= 0.0:
        fraction = x - np.rint(x)
        if x == -np.inf or (fraction == 0.0 and sign < 0.0):
            return float(np.nan)
        if fraction == 0.0:
            return np.inf
        # psi_n(x) = (-1)^n psi_n(1 - x) - pi^(n+1) P_n(cot(pi x)), P_0(c) = c, P_(n+1)(c) = -(1 + c^2) P_n'(c)
        coefficients = np.zeros(n + 2)
        coefficients[1] = 1.0
        for order in range(n):
            slopes = np.zeros(n + 3)
            for k in range(1, order + 2):
                slopes[k - 1] -= k * coefficients[k]
                slopes[k + 1] -= k * coefficients[k]
            coefficients[:] = slopes[: n + 2]
        cotangent = 1.0 / np.tan(np.pi * fraction)
        for k in range(n + 1, -1, -1):
            reflected = reflected * cotangent + coefficients[k]
        reflected *= np.pi ** (n + 1)
        x = 1.0 - x
        outer = -1.0
    total = 0.0
    while x < 15.0 + n:
        total += x ** -(n + 1.0)
        x += 1.0
    total *= factorial
    # (n-1)!/x^n + n!/(2 x^(n+1)) + sum of B(2k) (2k+n-1)! / ((2k)! x^(2k+n))
    term = factorial / n * x ** -float(n)
    total += term + 0.5 * n * term / x
    k = 2
    for bernoulli in (
        0.16666666666666666,
        -0.03333333333333333,
        0.023809523809523808,
        -0.03333333333333333,
        0.07575757575757576,
        -0.2531135531135531,
        1.1666666666666667,
        -7.092156862745098,
        54.971177944862156,
        -529.1242424242424,
    ):
        # term is (2k+n-1)! / ((2k)! x^(2k+n)), here with 2k in k.
        term *= (k + n - 2.0) * (k + n - 1.0) / ((k - 1.0) * k * x * x)
        total += bernoulli * term
        k += 2
    return float(outer * total - reflected)


HELPERS: dict[str, Callable[..., float]] = {"digamma": digamma, "polygamma": polygamma}
