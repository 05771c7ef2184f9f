"""Differences of functions that owe nothing to the library: any results, along any directions, whose steps must agree.

    found = slopes(lambda x, w: x * w, (np.ones(3), 2.0), (0, 1))
    found.directions        # one for each float in the chosen arguments, or two random ones
    found.products          # for each result the derivative along each direction
    found.doubt             # None, or a reason why the differences cannot be trusted

A complex number counts as two real ones, in arguments and results, so the gradient of a real function is the direction
of steepest ascent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.checking.reference import precise
from tests.checking.trees import copied, is_active, real_parts, with_parts

STEP = 1e-3  # the largest step, relative to the size of each argument


@dataclass(frozen=True)
class Slopes:
    """Products of the Jacobian of all results, (results, directions), and the directions, (directions, entries)."""

    products: np.ndarray
    directions: np.ndarray
    doubt: str | None = None

    def off(self, seed: np.ndarray, gradient: np.ndarray) -> float:
        """The largest difference of a seed's gradient from these products, relative to their scale."""
        expected, found = seed @ self.products, self.directions @ gradient
        scale = np.maximum(np.max(np.abs(expected), initial=1e-4), self._cancelled(gradient))
        return float(np.max(np.abs(found - expected) / scale, initial=0.0))

    def _cancelled(self, gradient: np.ndarray) -> Any:
        """The size of the terms in the products along directions; for single entries there is one term in each."""
        is_whole = len(self.directions) == self.directions.shape[1]
        return 0.0 if is_whole else np.abs(self.directions) @ np.abs(gradient)


def chosen_of(args: Sequence[Any]) -> tuple[int, ...]:
    """The positions of the arguments that have a derivative."""
    return tuple(position for position, arg in enumerate(args) if is_active(arg))


def slopes(
    function: Callable[..., Any], args: Sequence[Any], chosen: Sequence[int], rng: np.random.Generator | None = None
) -> Slopes:
    """Central differences with Richardson's extrapolation, of each entry or, given `rng`, along two random directions.

    Doubts arise where two steps disagree, and where the differences of one side say something else: at kinks.
    """
    center = real_parts(tuple(args[position] for position in chosen))
    scales = np.maximum(1.0, np.abs(center))
    if rng is None:
        directions = np.eye(center.size)
    else:
        directions = rng.uniform(0.5, 1.0, (2, center.size)) * rng.choice((-1, 1), (2, center.size)) * scales

    def at(moved: np.ndarray) -> np.ndarray:
        given = list(args)
        parts = iter(moved)
        for position in chosen:
            given[position] = with_parts(given[position], parts)
        return flat(function(*copied(tuple(given))))

    middle = at(center)
    columns, doubt, largest, error = [np.zeros((middle.size, 0))], None, STEP, 0.0
    for direction in directions:
        h = STEP * (scales[np.argmax(direction)] if rng is None else 1.0)
        steps = h, h / 2, h / 4
        up, down = ([at(center + sign * step * direction) for step in steps] for sign in (1, -1))
        coarse, half, fine = ((a - b) / (2 * step) for a, b, step in zip(up, down, steps, strict=True))
        first, second = (4 * half - coarse) / 3, (4 * fine - half) / 3
        found = (16 * second - first) / 15
        columns.append(found[:, None])
        size = float(np.max(np.abs(found), initial=STEP))
        largest, error = max(largest, size), max(error, float(np.max(np.abs(second - first), initial=0.0)))
        for sign, side in ((1, up), (-1, down)):
            one, two, three = ((value - middle) / (sign * step) for value, step in zip(side, steps, strict=True))
            bend = float(np.max(np.abs((8 * three - 6 * two + one) / 3 - found), initial=0.0))
            if not bend <= 1e-4 * size:
                doubt = doubt or f"the differences of one side are off by {bend:.1e} of {size:.1e}: a kink"
    if not error <= 1e-6 * largest:
        doubt = f"two steps of the differences disagree by {error:.1e} of {largest:.1e}"
    return Slopes(np.concatenate(columns, axis=1), directions, doubt)


def precise_slopes(function: Callable[..., Any], args: Sequence[Any], chosen: Sequence[int]) -> Slopes:
    """Differences at 50 digits, of a function of floats and arrays of floats with a real result."""
    found = precise(function, *args, wrt=chosen)
    row = real_parts(tuple(gradient for gradient in found.gradients if gradient is not None))
    return Slopes(row[None], np.eye(row.size), found.doubt)


def complex_slopes(function: Callable[..., Any], args: Sequence[Any], chosen: Sequence[int]) -> Slopes:
    """The complex step, exact to rounding, for an analytic function of floats and arrays of floats."""
    row = []
    for position in chosen:
        for index in np.ndindex(np.shape(args[position])):
            given = [np.array(arg, complex) for arg in args]
            given[position][index] += 1e-200j
            row.append(float(np.imag(function(*given))) / 1e-200)
    return Slopes(np.array(row)[None], np.eye(len(row)))


def flat(results: Any) -> np.ndarray:
    """The floats of all results in a row; an integer or a truth value that is the only result counts as a float."""
    return np.array([float(results)]) if isinstance(results, int | np.integer | np.bool_) else real_parts(results)


def differences(function: Callable[..., Any], *args: Any, wrt: Sequence[int] | None = None) -> np.ndarray:
    """The matrix of the derivatives of all results in all floats of some arguments, (results, entries)."""
    found = slopes(function, args, chosen_of(args) if wrt is None else wrt)
    assert found.doubt is None, found.doubt
    return found.products
