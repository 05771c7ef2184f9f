"""Special functions that rules need and neither Numba nor NumPy has.

    polygamma(0, x)    digamma, the logarithmic derivative of the gamma function
    polygamma(1, x)    its derivative, trigamma, and so on

Each is written in the subset that Numba compiles, over `np` alone, and computes in float64. An emitted module includes
the source text of those it uses.
"""

from __future__ import annotations

from collections.abc import Callable

HELPERS: dict[str, Callable[..., float]] = {}
