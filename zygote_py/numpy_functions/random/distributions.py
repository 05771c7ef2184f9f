"""Draws whose distribution has parameters, as functions of a draw from a standard distribution (reparametrization).

    np.random.normal(m, s)          m + s * np.random.standard_normal()
    random.expovariate(rate)        -math.log(1.0 - random.random()) / rate
    rng.exponential(scale, n)       a loop over n elements, each scale * rng.standard_exponential()

The draw on the right is made once, and has no derivative; the derivatives with respect to the parameters are those of
the formula (pathwise derivatives). The formulas are the ones that Numba uses for its draws, so that numbers and the
state of the generator are the same. A draw that accepts or rejects, or that counts, is not a differentiable function of
its parameters, and stays a call: it is refused if these have a derivative (`zygote_py.adjoints.rules.refused`).
"""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

import numpy as np
from numba import types

from zygote_py.numpy_functions.support.overloads import (
    implements,
    indented,
    is_none,
    is_shape,
    lengths_of,
    tuple_text,
    type_of,
    written,
)

# By the function of `numpy.random`: parameters, and the lines of the formula. `u`, `z` and `e` in braces are draws from
# the standard uniform, normal and exponential distributions.
_OF_NUMPY = {
    "normal": ("loc=0.0, scale=1.0", "return loc + scale * {z}"),
    "uniform": ("low=0.0, high=1.0", "start = np.float64(low)", "return start + (np.float64(high) - start) * {u}"),
    "exponential": ("scale=1.0", "return {e} * scale"),
    "lognormal": ("mean=0.0, sigma=1.0", "return math.exp(mean + sigma * {z})"),
    "gumbel": ("loc, scale", "return loc - scale * math.log({e})"),
    "logistic": ("loc=0.0, scale=1.0", "u = {u}", "return loc + scale * math.log(u / (1.0 - u))"),
    "laplace": (
        "loc=0.0, scale=1.0",
        "u = {u}",
        "if u < 0.5:",
        "    return loc + scale * math.log(u + u)",
        "return loc - scale * math.log(2.0 - u - u)",
    ),
    "rayleigh": (
        "scale=1.0",
        "if scale <= 0.0:",
        "    raise ValueError('rayleigh(): scale <= 0')",
        "return scale * math.sqrt(2.0 * {e})",
    ),
    "weibull": ("a", "return {e} ** (1.0 / a)"),
    "pareto": ("a", "return 1.0 / (1.0 - {u}) ** (1.0 / a) - 1.0"),
    "power": (
        "a",
        "if a <= 0.0:",
        "    raise ValueError('power(): a <= 0')",
        "return math.pow(1.0 - math.exp(-{e}), 1.0 / a)",
    ),
    "triangular": (
        "left, mode, right",
        *"""\
if right == left:
    return float(left)
u = {u}
c = (mode - left) / (right - left)
if u > c:
    return right + (left - right) * math.sqrt((1.0 - u) * (1.0 - c))
return left + (right - left) * math.sqrt(u * c)""".splitlines(),
    ),
    "gamma": (
        "shape, scale=1.0",
        "if scale <= 0.0:",
        "    raise ValueError('gammavariate: alpha and beta must be > 0.0')",
        "return np.random.standard_gamma(shape) * scale",
    ),
}
_POSITIVE = ("u = {u}", "while u <= 0.0:", "    u = {u}")
_OF_PYTHON = {
    "gauss": ("mu, sigma", "return mu + sigma * {z}"),
    "normalvariate": ("mu, sigma", "return mu + sigma * {n}"),
    "lognormvariate": ("mu, sigma", "return math.exp(mu + sigma * {n})"),
    "uniform": ("a, b", "start = np.float64(a)", "return start + (np.float64(b) - start) * {u}"),
    "expovariate": ("lambd", "return {e} / lambd"),
    "paretovariate": ("alpha", "return 1.0 / (1.0 - {u}) ** (1.0 / alpha)"),
    "weibullvariate": ("alpha, beta", "return alpha * {e} ** (1.0 / beta)"),
}
_OF_GENERATOR = {
    **{name: _OF_NUMPY[name] for name in ("normal", "lognormal", "exponential")},
    "uniform": ("low=0.0, high=1.0", "return low + (high - low) * {u}"),
    "logistic": ("loc=0.0, scale=1.0", *_POSITIVE, "return loc + scale * math.log(u / (1.0 - u))"),
    "laplace": (
        "loc=0.0, scale=1.0",
        *_POSITIVE,
        "if u >= 0.5:",
        "    return loc - scale * math.log(2.0 - u - u)",
        "return loc + scale * math.log(u + u)",
    ),
    "rayleigh": ("scale=1.0", "return scale * math.sqrt(2.0 * {e})"),
    "weibull": ("a", "if a == 0.0:", "    return 0.0", "return {e} ** (1.0 / a)"),
    "pareto": ("a", "return math.expm1({e} / a)"),
    "power": ("a", "return (-math.expm1(-{e})) ** (1.0 / a)"),
    "triangular": (
        "left, mode, right",
        "base = right - left",
        "u = {u}",
        "if u <= (mode - left) / base:",
        "    return left + math.sqrt(u * ((mode - left) * base))",
        "return right - math.sqrt((1.0 - u) * ((right - mode) * base))",
    ),
    "gamma": ("shape, scale=1.0", "return scale * rng.standard_gamma(shape)"),
}


class _Library(NamedTuple):
    """Functions that draw: where they are, their formulas, the standard draws, and what they are called with."""

    owner: Any
    formulas: dict[str, tuple[str, ...]]
    draws: dict[str, str]
    first: str = ""
    size: str = ", size=None"


_LIBRARIES = (
    _Library(
        np.random,
        _OF_NUMPY,
        {"u": "np.random.random()", "z": "np.random.standard_normal()", "e": "np.random.standard_exponential()"},
    ),
    # Integers are not differentiated, so that `random.gauss(0, 1)` stays a call.
    _Library(
        random,
        _OF_PYTHON,
        {
            "u": "random.random()",
            "z": "random.gauss(0, 1)",
            "n": "random.normalvariate(0, 1)",
            "e": "(-math.log(1.0 - random.random()))",
        },
        size="",
    ),
    _Library(
        np.random.Generator,
        _OF_GENERATOR,
        {"u": "rng.random()", "z": "rng.standard_normal()", "e": "rng.standard_exponential()"},
        first="rng, ",
    ),
)


def _register(library: _Library, name: str) -> None:
    """Let a formula take the place of calls with a float among the parameters."""
    parameters, *formula = library.formulas[name]
    names = [each.partition("=")[0] for each in parameters.split(", ")]
    passed = library.first + ", ".join(names)
    header = f"{library.first}{parameters}{library.size}"
    lines = [line.format(**library.draws) for line in formula]
    one = written([f"def {name}({passed}):", *indented(lines)], math=math, random=random)

    def accepts(*given: Any) -> bool:
        values = given[1:] if library.first else given
        kinds = [type_of(each) for each in values[: len(names)]]
        is_real = all(isinstance(kind, types.Integer | types.Float) for kind in kinds)
        is_known = not library.size or is_none(given[-1]) or is_shape(given[-1]) or _is_empty(given[-1])
        return is_known and is_real and any(isinstance(kind, types.Float) for kind in kinds)

    def implementation(size: Any) -> Any:
        lines = [f"return one({passed})"]
        if _is_empty(size):
            lines = [f"return np.array(one({passed}))"]
        elif not is_none(size):
            lines = _array(f"one({passed})", lengths_of("size", size))
        return written([f"def {name}({header}):", *indented(lines)], one=one)

    lines = [f"def {name}({header}):", f"    return implementation({'size' if library.size else None})"]
    template = written(lines, implementation=implementation)
    template.__module__ = __name__
    implements(getattr(library.owner, name), where=accepts)(template)


def _is_empty(size: Any) -> bool:
    return isinstance(size, types.BaseTuple) and not len(size)


def _array(drawn: str, lengths: list[str]) -> list[str]:
    """Return the lines that fill an array with draws."""
    return [
        f"n = {' * '.join(lengths)}",
        "result = np.empty(n)",
        "for i in range(n):",
        f"    result[i] = {drawn}",
        f"return result.reshape({tuple_text(lengths)})",
    ]


for _library in _LIBRARIES:
    for _name in _library.formulas:
        _register(_library, _name)
