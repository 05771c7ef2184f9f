"""Helpers of the rules of SciPy's functions that SciPy lacks: differences and densities that do not cancel.

    erfc_moment(n, x, y)        (-1)^n / (2^n n!) times the n-th derivative of y = erfcx(x)
    digamma_gap(a, b)           digamma(a) - digamma(a + b)
    gamma_density(a, x)         x^(a-1) e^-x / gamma(a)
    beta_density(a, b, x)       x^(a-1) (1-x)^(b-1) / beta(a, b)
    bessel_far(n, sign, v, x)   the n-th derivative of ive (sign -1) or kve (sign 1) of order v, for large x
    dawsn_far(n, x)             the n-th derivative of dawsn, for large |x|
    exp_moment(n, x)            the integral of t^n e^(x t) from 0 to 1: the n-th derivative of exprel

They stand by themselves, as those of `special` do, and have rules too. The densities are computed as in C. Loader,
"Fast and accurate computation of binomial probabilities" (2000); the moments by Gautschi's continued fraction; Bessel's
functions and Dawson's integral by their asymptotic series.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from zygote_py.adjoints.rules.helpers.special import digamma
from zygote_py.ir import helper


@helper
def erfc_moment(n: int, x: float, y: float) -> float:
    """The integral of t^n exp(-t^2 - 2 x t) from 0 to inf, times 2 / (sqrt(pi) n!); that of n = 0 is y = erfcx(x)."""
    if x != x:
        return float(x)
    now = float(y)
    if x < 1.5:
        last = 1.1283791670955126
        for k in range(1, n + 1):
            last, now = now, (0.5 * last - x * now) / k
        return now
    # The ratio of one to the one before it is 1 / (2 x + 2 (k + 1) times the next ratio).
    ratio = 0.0
    product = 1.0
    for k in range(n + 12 + int(170.0 / (x * x)), 0, -1):
        ratio = 1.0 / (2.0 * x + 2.0 * (k + 1) * ratio)
        if k <= n:
            product *= ratio
    return now * product


@helper
def digamma_gap(a: float, b: float) -> float:
    """The difference digamma(a) - digamma(a + b), which does not cancel where both arguments are positive."""
    far = a + b
    if not (a > 0.0 and far > 0.0):
        return float(digamma(a) - digamma(far))
    total = 0.0
    while a < 15.0 or far < 15.0:
        total -= b / a / far
        a += 1.0
        far += 1.0
    # digamma(x) is log(x) - 1/(2x) - the sum of B(2k) / (2k x^2k), a polynomial in 1/x^2.
    near_square, far_square = 1.0 / (a * a), 1.0 / (far * far)
    value = 0.0
    slope = 0.0  # the divided difference
    for c in (
        0.08333333333333333,
        -0.021092796092796094,
        0.007575757575757576,
        -0.004166666666666667,
        0.003968253968253968,
        -0.008333333333333333,
        0.08333333333333333,
        0.0,
    ):
        slope = slope * far_square + value
        value = value * near_square + c
    return float(total - np.log1p(b / a) - b / a / far * (0.5 + slope * (1.0 / a + 1.0 / far)))


@helper
def stirling_error(n: float) -> float:
    """The logarithm of gamma(n + 1) over Stirling's formula for it, n > 0."""
    total = 0.0
    while n < 16.0:
        total += (n + 0.5) * np.log1p(1.0 / n) - 1.0
        n += 1.0
    square = 1.0 / (n * n)
    series = 0.0
    for c in (
        -0.001917526917526918,
        0.0008417508417508417,
        -0.0005952380952380953,
        0.0007936507936507937,
        -0.002777777777777778,
        0.08333333333333333,
    ):
        series = series * square + c
    return float(total + series / n)


@helper
def deviance(x: float, mean: float) -> float:
    """The deviance x log(x / mean) + mean - x, for x and mean greater than 0."""
    if abs(x - mean) >= 0.1 * (x + mean):
        return float(x * np.log(x / mean) + mean - x)
    v = (x - mean) / (x + mean)
    total = (x - mean) * v
    term = 2.0 * x * v
    v *= v
    k = 1
    while True:
        term *= v
        following = total + term / (2 * k + 1)
        if following == total:
            return total
        total = following
        k += 1


@helper
def gamma_density(a: float, x: float) -> float:
    """The density of the gamma distribution of shape a; that of shape 0 is taken to be 0."""
    if not (a >= 0.0 and x >= 0.0):
        return float(np.nan)
    if x == 0.0:
        return 1.0 if a == 1.0 else (0.0 if a > 1.0 or a == 0.0 else np.inf)
    if a == 0.0 or x == np.inf:
        return 0.0
    n = a if a < 1.0 else a - 1.0
    if n == 0.0:
        return float(np.exp(-x))
    density = np.exp(-stirling_error(n) - deviance(n, x)) / np.sqrt(2.0 * np.pi * n)
    return float(density * n / x if a < 1.0 else density)


@helper
def beta_density(a: float, b: float, x: float) -> float:
    """The density of the beta distribution; that of a shape 0 is taken to be 0."""
    if not (a >= 0.0 and b >= 0.0 and 0.0 <= x <= 1.0):
        return float(np.nan)
    if a == 0.0 or b == 0.0:
        return 0.0
    if x == 0.0:
        return b if a == 1.0 else (0.0 if a > 1.0 else np.inf)
    if x == 1.0:
        return a if b == 1.0 else (0.0 if b > 1.0 else np.inf)
    # The probability of k of n, at x, and a factor.
    k = a if a < 1.0 else a - 1.0
    rest = b if b < 1.0 else b - 1.0
    n = k + rest
    if a < 1.0 and b < 1.0:
        factor = a * b / (a + b) / (x * (1.0 - x))
    elif a < 1.0:
        factor = a / x
    elif b < 1.0:
        factor = b / (1.0 - x)
    else:
        factor = a + b - 1.0
    if k == 0.0:
        return float(factor * np.exp(rest * np.log1p(-x)))
    if rest == 0.0:
        return float(factor * np.exp(k * np.log(x)))
    error = stirling_error(n) - stirling_error(k) - stirling_error(rest)
    found = np.exp(error - deviance(k, n * x) - deviance(rest, n * (1.0 - x)))
    return float(factor * found * np.sqrt(n / (2.0 * np.pi * k * rest)))


@helper
def bessel_far(n: int, sign: int, v: float, x: float) -> float:
    """The n-th derivative of exp(-x) I_v(x) for the sign -1, of exp(x) K_v(x) for 1; for x >= 30 + v^2."""
    if not x >= 30.0:
        return float(np.nan)
    total = 0.0
    term = 1.0  # of the function itself: a product of (4 v^2 - (2j-1)^2) / (8 j x)
    for j in range(1, n + 1):
        term *= -(j - 0.5) / x
    for k in range(1, 60):
        total += term
        # Of the term in x^-(k+1/2), the derivative has the factor (k+1/2) ... (k+n-1/2).
        odd = 2.0 * k - 1.0
        following = term * sign * (4.0 * v * v - odd * odd) / (8.0 * k * x) * (k + n - 0.5) / (k - 0.5)
        is_past = odd > 2.0 * abs(v) + 2.0 * n  # the first terms may grow
        if abs(following) <= 1e-18 * abs(total) or (is_past and abs(following) > abs(term)):
            break
        term = following
    half = np.pi / 2.0 if sign > 0 else 0.5 / np.pi
    return float(total * np.sqrt(half / x))


@helper
def dawsn_far(n: int, x: float) -> float:
    """The n-th derivative of Dawson's integral, for |x| >= 10."""
    if not abs(x) >= 10.0:
        return float(np.nan)
    total = 0.0
    term = 0.5 / x
    for j in range(1, n + 1):
        term *= -j / x
    for k in range(1, 60):
        total += term
        # Of the term in x^-(2k+1), the derivative has the factor (2k+1) ... (2k+n).
        following = term * (2.0 * k - 1.0) / (2.0 * x * x)
        following *= (2.0 * k + n) * (2.0 * k + n - 1.0) / (2.0 * k * (2.0 * k - 1.0))
        if abs(following) <= 1e-18 * abs(total):
            break
        term = following
    return float(total)


@helper
def exp_moment(n: int, x: float) -> float:
    """The integral of t^n e^(x t) for t from 0 to 1."""
    if x != x:
        return float(x)
    if abs(x) > 20.0 + n:
        now = (np.exp(x) - 1.0) / x
        for k in range(1, n + 1):
            now = (np.exp(x) - k * now) / x
        return float(now)
    term = 1.0 if x > 0.0 else np.exp(x)
    total = 0.0
    k = 0
    while True:
        following = total + (term / (n + 1 + k) if x > 0.0 else term / (n + 1))
        if following == total:
            return float(total)
        total = following
        k += 1
        term *= x / k if x > 0.0 else -x / (n + 1 + k)


HELPERS: dict[str, Callable[..., float]] = {
    each.__name__: each
    for each in (erfc_moment, digamma_gap, gamma_density, beta_density, bessel_far, dawsn_far, exp_moment)
}
