"""The scalar operations that Numba compiles and that have no rule, each with the reason and what to do instead.

    REFUSED[np.nextafter]   ("it is a property of the number format, ...", "use the number itself, ...")

A test holds that every other one has a rule. Draws of random numbers are here too, for parameters that are active.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np

_STEPS = "it is a property of the number format, not a function of a real variable"
_DRAWN = "a draw has no derivative with respect to the parameters of its distribution"
_PAIR = "its result is a pair, which has no rule"

REFUSED: dict[Callable[..., object], tuple[str, str]] = {
    math.nextafter: (_STEPS, "use the number itself, or add a small constant to it"),
    np.nextafter: (_STEPS, "use the number itself, or add a small constant to it"),
    np.spacing: (_STEPS, "use a constant, or np.abs(x) times the machine epsilon"),
    math.frexp: (_PAIR, "write `e = math.frexp(x)[1]` and `m = math.ldexp(x, -e)`"),
    divmod: (_PAIR, "write `a // b` and `a % b`"),
}

_STANDARD = {
    "normal": "write `m + s * np.random.standard_normal()`",
    "uniform": "write `a + (b - a) * np.random.random()`",
    "exponential": "write `s * np.random.standard_exponential()`",
    "gamma": "write `s * np.random.standard_gamma(k)`, with a constant `k`",
    "lognormal": "write `np.exp(m + s * np.random.standard_normal())`",
    "rayleigh": "write `s * np.random.rayleigh()`",
    "weibull": "write `np.random.standard_exponential() ** (1 / a)`",
    **dict.fromkeys(("laplace", "logistic", "gumbel"), "write `m + s * d`, with a draw `d` at 0 and 1"),
}
_PYTHON = {
    **dict.fromkeys(("gauss", "normalvariate"), "write `m + s * random.gauss(0.0, 1.0)`"),
    "lognormvariate": "write `math.exp(m + s * random.gauss(0.0, 1.0))`",
    "uniform": "write `a + (b - a) * random.random()`",
    "expovariate": "write `random.expovariate(1.0) / rate`",
}
_OTHER = "make its parameters constants, or draw from a standard distribution and transform what was drawn"
_WITH_PARAMETERS = (
    *("beta", "binomial", "chisquare", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel", "laplace"),
    *("logistic", "lognormal", "logseries", "multinomial", "negative_binomial", "noncentral_chisquare", "normal"),
    *("pareto", "poisson", "power", "rayleigh", "standard_gamma", "standard_t", "triangular", "uniform", "vonmises"),
    *("wald", "weibull", "zipf"),
)
_VARIATES = (
    *("betavariate", "expovariate", "gammavariate", "gauss", "lognormvariate", "normalvariate", "paretovariate"),
    *("triangular", "uniform", "vonmisesvariate", "weibullvariate"),
)
REFUSED |= {getattr(np.random, name): (_DRAWN, _STANDARD.get(name, _OTHER)) for name in _WITH_PARAMETERS}
REFUSED |= {getattr(random, name): (_DRAWN, _PYTHON.get(name, _OTHER)) for name in _VARIATES}
