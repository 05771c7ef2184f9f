"""Central differences of functions of numbers, arrays and structures, as a reference for gradients.

slope(x, (3,), 1.0, loss)           (value, error): the derivative of loss with respect to x[3], and its error

The step is halved twice and the result extrapolated twice (Richardson). Of several initial steps, the one whose two
extrapolations agree best is chosen, and their difference is the error estimate. No derivative of this package is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zygote_py.base import leaves, map_leaves


def leaves_of(values: Sequence[Any]) -> list[Any]:
    """Return the numbers and arrays in values, including those in structures."""
    return [leaf for value in values for _, leaf in leaves("", value)]


def with_leaf(args: tuple[Any, ...], number: int, new: Any) -> tuple[Any, ...]:
    """Return the arguments with another value for one of their leaves."""
    counter = itertools.count()
    made: tuple[Any, ...] = map_leaves(lambda value: new if next(counter) == number else value, args)
    return made


def copied(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments with copies of all arrays, in any structure."""

    def copy(value: Any) -> Any:
        return value.copy(order="K") if isinstance(value, np.ndarray) else value

    return tuple(map_leaves(copy, arg) for arg in args)


def random_seed(value: Any, random: np.random.Generator) -> Any:
    """Return a random cotangent for a value."""

    def seed(leaf: Any) -> Any:
        array = np.asarray(leaf)
        if array.dtype.kind not in "fc":
            return leaf
        made = random.uniform(0.5, 1.5, array.shape)
        made = (made + 1j * random.uniform(0.5, 1.5, array.shape)) if array.dtype.kind == "c" else made
        made = np.asarray(made).astype(array.dtype)
        return made if isinstance(leaf, np.ndarray) else made.item()

    return map_leaves(seed, value)


def slope(leaf: Any, index: tuple[int, ...], unit: complex, loss: Callable[[Any], float]) -> tuple[float, float]:
    """Return the derivative for the step whose two extrapolations agree best, and their difference."""
    size = abs(np.asarray(leaf)[index])
    best, error = math.nan, math.inf
    for h in sorted(steps_of(np.asarray(leaf).dtype, size), reverse=True):
        found = [_difference(leaf, index, unit * h / 2**k, loss) / (h / 2**k) for k in range(3)]
        first, second = (4 * found[1] - found[0]) / 3, (4 * found[2] - found[1]) / 3
        value = (16 * second - first) / 15
        if abs(second - first) < error:
            best, error = value, abs(second - first)
    return best, error


def both_parts(leaf: Any, place: tuple[int, ...], loss: Callable[[Any], float]) -> tuple[complex, float]:
    """Return the derivative of an entry and its error; for a complex number, of both parts."""
    value, error = slope(leaf, place, 1.0, loss)
    if np.asarray(leaf).dtype.kind != "c":
        return value, error
    imaginary, other = slope(leaf, place, 1j, loss)
    return complex(value, imaginary), error + other


def weighted(weights: Sequence[Any], values: Sequence[Any]) -> float:
    """Return the sum of the products of floats with their weights, of which the conjugates are taken."""
    pairs = zip(map(np.asarray, weights), map(np.asarray, values), strict=True)
    return float(sum(np.sum((np.conj(w) * v).real) for w, v in pairs if v.dtype.kind in "fc"))


def steps_of(dtype: Any, size: float) -> set[float]:
    """Return the steps to try for a number of this size."""
    exact = dtype.itemsize > (8 if dtype.kind == "c" else 4)
    return {s * max(size, scale) for s in ((1e-3, 1e-4) if exact else (1e-2, 5e-2)) for scale in (1.0, 1e-2, 1e-4)}


def one_sided(
    leaf: Any, index: tuple[int, ...], unit: complex, loss: Callable[[Any], float], step: float
) -> tuple[float, float]:
    """Return the slopes on both sides of a point, from one step each."""
    here = loss(leaf)
    right = loss(_moved(leaf, index, unit * step)) - here
    return (here - loss(_moved(leaf, index, -unit * step))) / step, right / step


def _difference(leaf: Any, index: tuple[int, ...], step: complex, loss: Callable[[Any], float]) -> float:
    return (loss(_moved(leaf, index, step)) - loss(_moved(leaf, index, -step))) / 2


def _moved(leaf: Any, index: tuple[int, ...], step: complex) -> Any:
    moved = np.array(leaf)
    moved[index] += step if moved.dtype.kind == "c" else complex(step).real
    return moved if isinstance(leaf, np.ndarray) else moved.item()
