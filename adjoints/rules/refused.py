"""The scalar operations that Numba compiles and that have no rule, each with the reason and what to do instead.

    REFUSED[np.nextafter]   ("it steps through ...", "add a small number")

A test holds that every other one has a rule.
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
    np.divmod: (_PAIR, "write `np.floor_divide(a, b)` and `np.remainder(a, b)`"),
}
