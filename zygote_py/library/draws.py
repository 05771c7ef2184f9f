"""Random numbers: an array in a random order is a copy with known derivatives once the order is drawn; draws have none.

    np.random.shuffle(x)            each exchange of two elements, with the numbers that Numba would draw
    np.random.choice(x)             x[j], with j drawn
    np.random.normal(m, s)          a draw: refused, if m or s has a derivative

A draw is made once, in the order of the program, and never again in the reverse sweep. `DRAWS` are those of NumPy's
that Numba compiles. For the derivative with respect to a parameter of a distribution, draw from the standard one:
`m + s * np.random.standard_normal()`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir.types import components_of
from zygote_py.library.arguments import Given, dtype_of, is_integer, is_none
from zygote_py.library.registry import implements
from zygote_py.library.written import indented, tuple_text, written

Implementation = Callable[..., Any] | None

# By name, as those of an older NumPy may be missing.
DRAWS: tuple[Callable[..., object], ...] = tuple(
    getattr(np.random, name)
    for name in (
        *("beta", "binomial", "chisquare", "choice", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel"),
        *("hypergeometric", "laplace", "logistic", "lognormal", "logseries", "multinomial", "negative_binomial"),
        *("noncentral_chisquare", "normal", "pareto", "permutation", "poisson", "power", "rand", "randint", "randn"),
        *("random", "random_sample", "ranf", "rayleigh", "sample", "seed", "shuffle", "standard_cauchy"),
        *("standard_exponential", "standard_gamma", "standard_normal", "standard_t", "triangular", "uniform"),
        *("vonmises", "wald", "weibull", "zipf"),
    )
    if hasattr(np.random, name)
)
PYTHON_DRAWS: tuple[Callable[..., object], ...] = (
    *(random.betavariate, random.expovariate, random.gammavariate, random.gauss, random.getrandbits),
    *(random.lognormvariate, random.normalvariate, random.paretovariate, random.randint, random.random),
    *(random.randrange, random.seed, random.shuffle, random.triangular, random.uniform, random.vonmisesvariate),
    random.weibullvariate,
)


@implements(np.random.shuffle)
def shuffle(x: Given) -> Implementation:
    """Put the elements of an array, or its rows, into a random order."""
    return _shuffle(x, np.random.randint)


@implements(random.shuffle)
def shuffle_of_python(x: Given) -> Implementation:
    """Put the elements of an array, or its rows, into a random order."""
    return _shuffle(x, random.randrange)


def _shuffle(x: Given, draw: Callable[[int], int]) -> Implementation:
    if not isinstance(x, types.Array) or not x.ndim:
        return None
    if x.ndim == 1:

        def of_elements(x: Any) -> None:
            for i in range(x.shape[0] - 1, 0, -1):
                j = draw(i + 1)
                held = x[i]
                x[i] = x[j]
                x[j] = held

        return of_elements

    def of_rows(x: Any) -> None:
        for i in range(x.shape[0] - 1, 0, -1):
            j = draw(i + 1)
            held = x[i].copy()
            x[i] = x[j].copy()
            x[j] = held

    return of_rows


@implements(np.random.permutation)
def permutation(x: Given) -> Implementation:
    """Give the elements of an array, or its rows, in a random order."""
    if not isinstance(x, types.Array):
        return None

    def implementation(x: Any) -> Any:
        result = x.copy()
        np.random.shuffle(result)
        return result

    return implementation


@implements(np.random.choice)
def choice(a: Given, size: Given = None, replace: object = True) -> Implementation:
    """Give one or several elements of a vector at random, more than once each unless not `replace`."""
    if not isinstance(a, types.Array) or a.ndim != 1:
        return None
    if is_none(size):

        def alone(a: Any, size: Any = None, replace: Any = True) -> Any:
            return a[np.random.randint(0, len(a))]

        return alone
    if is_integer(size):
        lengths = ["size"]
    elif isinstance(size, types.BaseTuple) and len(size) and all(map(is_integer, components_of(size))):
        lengths = [f"size[{axis}]" for axis in range(len(size))]
    else:
        return None
    lines = [
        f"n = {' * '.join(lengths)}",
        "result = np.empty(n, dtype)",
        "if replace:",
        "    for i in range(n):",
        "        result[i] = a[np.random.randint(0, len(a))]",
        "else:",
        "    if n > len(a):",
        "        raise ValueError(\"Cannot take a larger sample than population when 'replace=False'\")",
        "    result[:] = np.random.permutation(a)[:n]",
        f"return result.reshape({tuple_text(lengths)})",
    ]
    return written(["def choice(a, size=None, replace=True):", *indented(lines)], dtype=dtype_of(a))
