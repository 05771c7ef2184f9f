"""How a trap is tested: `trap(function, *args, expected=(...))`, compiled, a second time, and in plain Python.

Where nothing is compiled (see `tests.modes`), in plain Python only.

    def f(x):
        x *= 2.0
        return x[0] * x[1]

    trap(f, np.array([2.0, 3.0]), expected=([12.0, 8.0],))

What is expected is written down, or found by central differences of the function in plain Python, or by the complex
step (`steepest`). Beside the gradients it checks that the value and the arguments are what the function leaves.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np

from tests.array_trees import copied, is_active, same
from tests.modes import is_interpreted
from tests.plain import plain
from tests.reference import central
from zygote_py import value_and_gradient


def trap(
    function: Callable[..., Any], *args: Any, expected: Sequence[Any] | None = None, tolerance: float | None = None
) -> None:
    """Check the gradients for all parameters that are floats or arrays of floats."""
    if expected is None:
        found = central(lambda *given: function(*copied(given)), *args)
        assert found.doubt is None, found.doubt
        expected = [gradient for gradient in found.gradients if gradient is not None]
        tolerance = tolerance or 1e-7
    left = copied(args)
    with quiet():
        value = numba.njit(function)(*left)
    for how, result, gradients, given in ways(function, *args):
        assert len(gradients) == len(expected), how
        for gradient, right in zip(gradients, expected, strict=True):
            assert np.shape(gradient) == np.shape(right), f"{how}: shape {np.shape(gradient)}"
            np.testing.assert_allclose(gradient, right, rtol=tolerance or 1e-11, atol=tolerance or 1e-11, err_msg=how)
        exact = how != "in plain Python" and not is_interpreted()
        same(result, value, f"{how}: the value", exact)
        same(given, left, f"{how}: the arguments are not left as the function leaves them", exact)


def ways(function: Callable[..., Any], *args: Any) -> Iterator[tuple[str, Any, tuple[Any, ...], tuple[Any, ...]]]:
    """Each way to a gradient with the value, the gradients, and the arguments as they are left."""
    names = list(inspect.signature(function).parameters)
    wrt = tuple(name for name, arg in zip(names, args, strict=True) if is_active(arg))
    derivative = value_and_gradient(function, wrt=wrt)
    with quiet():
        found = [("called", derivative), ("a second time", derivative)]
        if not is_interpreted():
            found.append(("in plain Python", plain(derivative.source(*args))))
        for how, run in found:
            given = copied(args)
            value, gradients = run(*given)
            yield how, value, gradients, given


def steepest(function: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    """The gradient for each array of floats by the complex step, for a function that is analytic."""
    found = []
    for position, arg in enumerate(args):
        slopes = np.zeros(np.shape(arg))
        for index in np.ndindex(np.shape(arg)):
            given = [np.array(other, complex) for other in args]
            given[position][index] += 1e-200j
            slopes[index] = np.imag(function(*given)) / 1e-200
        found.append(slopes)
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings, neither Python's nor NumPy's."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
