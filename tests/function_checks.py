"""Gradients of functions that take functions, against differences: compiled, and the emitted source in plain Python.

    check_functions(apply, math.sin, 1.3)         # differentiated in 1.3; the gradient of a function is None

Arguments that are floats or arrays are differentiated, all others are passed on unchanged. Captured variables are
passed to the emitted source after the arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.modes import is_interpreted
from tests.plain import plain
from tests.reference import central, distance, is_float
from zygote_py import value_and_gradient


def check_functions(
    function: Callable[..., Any], *args: Any, tolerance: float = 1e-7, is_compiled: bool = True
) -> None:
    """Check the value of a function and its gradient in the floats and arrays among the arguments.

    What is not `is_compiled` is checked in plain Python only.
    """
    places = [place for place, arg in enumerate(args) if is_float(arg)]

    def of_numbers(*numbers: Any) -> Any:
        full = list(args)
        for place, number in zip(places, numbers, strict=True):
            full[place] = number
        return function(*full)

    expected = central(of_numbers, *(args[place] for place in places))
    assert expected.doubt is None, expected.doubt
    derivative = value_and_gradient(function)
    if is_compiled:
        found = derivative(*_copies(args))
        _compare(found, expected, places, len(args), tolerance, "called")
        if is_interpreted():
            return
    emitted = plain(derivative.source(*args))
    captured = captured_of(derivative)
    _compare(emitted(*_copies(args), *captured), expected, places, len(args), tolerance, "in plain Python")


def captured_of(derivative: Any) -> list[Any]:
    """Return the implicit arguments that a gradient function currently passes after the arguments."""
    hidden = derivative._hidden if hasattr(derivative, "_hidden") else derivative._now.hidden
    return [capture.read() for capture in hidden]


def _copies(args: tuple[Any, ...]) -> list[Any]:
    return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]


def _compare(found: Any, expected: Any, places: list[int], count: int, tolerance: float, how: str) -> None:
    value, gradient = found
    gradients = gradient if count > 1 else (gradient,)
    assert abs(value - expected.value) <= 1e-9 * max(1.0, abs(expected.value)), f"{how}: the value is {value!r}"
    off = distance([gradients[place] for place in places], expected.gradients)
    assert off <= tolerance, f"{how}: {gradients!r} is not {expected.gradients!r} (off by {off:.1e})"
    for place, each in enumerate(gradients):
        assert place in places or holds_no_number(each), f"{how}: the gradient of argument {place} is {each!r}"


def holds_no_number(gradient: Any) -> bool:
    """Whether a gradient says that there is none."""
    return gradient is None or (isinstance(gradient, tuple) and all(map(holds_no_number, gradient)))
