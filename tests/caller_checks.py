"""A function that calls what Numba compiles in ways of its own, checked against the compiled function.

    check_caller(lambda x, n: eager(x, n), 1.5, 3)

The reference is the function compiled by Numba: its value, and differences of it. The emitted source runs in plain
Python; with `compiled` the gradient is compiled too, and its value is bit for bit that of the function.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from tests.function_checks import captured_of
from tests.plain import plain
from tests.reference import central, distance
from zygote_py import value_and_gradient


def check_caller(function: Callable[..., Any], *args: Any, compiled: bool = True, tolerance: float = 1e-7) -> None:
    """Check the value of a function and its gradient in the floats and arrays of floats among the arguments."""
    primal = function if hasattr(function, "py_func") else numba.njit(function)
    expected = central(primal, *args)
    assert expected.doubt is None, expected.doubt
    derivative = value_and_gradient(function)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        emitted = plain(derivative.source(*args))
        found = emitted(*_copies(args), *captured_of(derivative))
        _compare(found, expected, len(args), tolerance, "in plain Python")
        if compiled:
            found = derivative(*_copies(args))
            _compare(found, expected, len(args), tolerance, "compiled")
            assert found[0] == primal(*_copies(args)), f"the value is {found[0]!r}, not {primal(*args)!r}"


def _copies(args: tuple[Any, ...]) -> list[Any]:
    return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]


def _compare(found: Any, expected: Any, count: int, tolerance: float, how: str) -> None:
    value, gradient = found
    gradients = gradient if count > 1 else (gradient,)
    assert abs(value - expected.value) <= 1e-9 * max(1.0, abs(expected.value)), f"{how}: the value is {value!r}"
    off = distance(gradients, expected.gradients)
    assert off <= tolerance, f"{how}: {gradients!r} is not {expected.gradients!r} (off by {off:.1e})"
