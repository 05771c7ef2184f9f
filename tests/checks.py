"""One function's gradient, checked in every way that costs little.

    check(lambda x, n: x**n, (1.5, 3), (2.0, 0))

For each tuple of arguments: the emitted source in plain Python and the compiled gradient agree with the reference, the
value is bit for bit that of the function, a second call gives the same, and the arguments are as they were. Arguments
at which the reference is in doubt are an error: what holds at kinks is tested with the numbers written down.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from tests.modes import is_interpreted
from tests.plain import plain
from tests.reference import distance, precise


def check(
    function: Callable[..., Any], *inputs: tuple[Any, ...], compiled: bool = True, tolerance: float = 1e-10
) -> None:
    """Check the gradient of `function` of floats, ints and arrays at each of `inputs`."""
    from zygote_py import value_and_gradient

    derivative = value_and_gradient(function)
    python = getattr(function, "py_func", function)
    primal = numba.njit(python) if python is function else function
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        in_python = plain(derivative.source(*inputs[0]))
        for args in inputs:
            expected = precise(function, *args)
            assert expected.doubt is None, f"at {args!r} the reference is in doubt: {expected.doubt}"
            given = tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)
            value, gradient = in_python(*given)
            _near(gradient, expected.gradients, tolerance, "in plain Python", args)
            assert float(value) == float(python(*args)), f"in plain Python the value is {value!r}"
            if compiled and not is_interpreted():
                value, gradient = derivative(*given)
                _near(gradient, expected.gradients, tolerance, "compiled", args)
                assert value == primal(*args), f"the value is {value!r}, not {primal(*args)!r}"
                _near(derivative(*given)[1], expected.gradients, tolerance, "the second time", args)
            for before, after in zip(args, given, strict=True):
                np.testing.assert_array_equal(before, after)


def _near(gradient: Any, expected: tuple[Any, ...], tolerance: float, how: str, args: tuple[Any, ...]) -> None:
    gradients = gradient if len(args) > 1 else (gradient,)
    off = distance(gradients, expected)
    assert off <= tolerance, f"{how}, at {args!r}: {gradients!r} is not {expected!r} (off by {off:.1e})"
