"""The scalar operations that Numba compiles and that have no rule, each with the reason and what to do instead.

    REFUSED[np.nextafter]   ("it is a property of the number format, ...", "use the number itself, ...")

A test holds that every other one has a rule. `DRAWN` is the reason for draws of random numbers with active parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_STEPS = "it is a property of the number format, not a function of a real variable"
_PAIR = "its result is a pair, which has no rule"

REFUSED: dict[Callable[..., object], tuple[str, str]] = {
    math.nextafter: (_STEPS, "use the number itself, or add a small constant to it"),
    np.nextafter: (_STEPS, "use the number itself, or add a small constant to it"),
    np.spacing: (_STEPS, "use a constant, or np.abs(x) times the machine epsilon"),
    math.frexp: (_PAIR, "write `e = math.frexp(x)[1]` and `m = math.ldexp(x, -e)`"),
    divmod: (_PAIR, "write `a // b` and `a % b`"),
}

# For draws that are not a function of their parameters and a standard draw, as others are (see
# `zygote_py.numpy_functions.random.distributions`).
DRAWN = (
    "this draw is not a differentiable function of the parameters of its distribution",
    "hold its parameters constant with `zygote_py.stop_gradient`; for the gradient of an expectation, add the score "
    "function: the derivative of the logarithm of the density, times the value",
)
