"""Central differences of functions of numbers, arrays and structures, for what compares gradients with them.

slope(x, (3,), 1.0, loss)           (value, error): the derivative of loss in x[3], and how far it may be off

The steps are halved twice and extrapolated twice (Richardson); of several steps, the one whose two extrapolations agree
best is taken, and how well they agree is the error. Nothing of the library's derivatives is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zygote_py.structures import leaves, map_leaves


def leaves_of(values: Sequence[Any]) -> list[Any]:
    """The numbers and arrays in values, in structures too."""
    return [leaf for value in values for _, leaf in leaves("", value)]


def with_leaf(args: tuple[Any, ...], number: int, new: Any) -> tuple[Any, ...]:
    """The arguments with another value for one of their leaves."""
    counter = itertools.count()
    made: tuple[Any, ...] = map_leaves(lambda value: new if next(counter) == number else value, args)
    return made


def copied(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments with copies of the arrays, in any structure."""

    def copy(value: Any) -> Any:
        return value.copy(order="K") if isinstance(value, np.ndarray) else value

    return tuple(map_leaves(copy, arg) for arg in args)


def random_seed(value: Any, random: np.random.Generator) -> Any:
    """A random adjoint for a value."""

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
    """The derivative by the step whose two extrapolations agree best, and by how much they differ."""
    size = abs(np.asarray(leaf)[index])
    best, error = math.nan, math.inf
    for h in sorted(steps_of(np.asarray(leaf).dtype, size), reverse=True):
        found = [_difference(leaf, index, unit * h / 2**k, loss) / (h / 2**k) for k in range(3)]
        first, second = (4 * found[1] - found[0]) / 3, (4 * found[2] - found[1]) / 3
        value = (16 * second - first) / 15
        if abs(second - first) < error:
            best, error = value, abs(second - first)
    return best, error


def steps_of(dtype: Any, size: float) -> set[float]:
    """The steps to try at a number of this size."""
    exact = dtype.itemsize > (8 if dtype.kind == "c" else 4)
    return {s * max(size, scale) for s in ((1e-3, 1e-4) if exact else (1e-2, 5e-2)) for scale in (1.0, 1e-2, 1e-4)}


def one_sided(
    leaf: Any, index: tuple[int, ...], unit: complex, loss: Callable[[Any], float], step: float
) -> tuple[float, float]:
    """The slopes on the two sides of a point, by one step each."""
    here = loss(leaf)
    right = loss(_moved(leaf, index, unit * step)) - here
    return (here - loss(_moved(leaf, index, -unit * step))) / step, right / step


def _difference(leaf: Any, index: tuple[int, ...], step: complex, loss: Callable[[Any], float]) -> float:
    return (loss(_moved(leaf, index, step)) - loss(_moved(leaf, index, -step))) / 2


def _moved(leaf: Any, index: tuple[int, ...], step: complex) -> Any:
    moved = np.array(leaf)
    moved[index] += step if moved.dtype.kind == "c" else complex(step).real
    return moved if isinstance(leaf, np.ndarray) else moved.item()
