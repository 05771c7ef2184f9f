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

from zygote_py.structures import parts, with_parts


def leaves_of(values: Sequence[Any]) -> list[Any]:
    """The numbers and arrays in values, in structures too."""
    found = []
    for value in values:
        held = None if isinstance(value, np.ndarray) else parts(value)
        found += [value] if held is None else leaves_of(held)
    return found


def with_leaf(args: tuple[Any, ...], number: int, new: Any) -> tuple[Any, ...]:
    """The arguments with another value for one of their leaves."""
    counter = itertools.count()

    def rebuilt(value: Any) -> Any:
        held = None if isinstance(value, np.ndarray) else parts(value)
        if held is not None:
            return with_parts(value, [rebuilt(each) for each in held])
        return new if next(counter) == number else value

    return tuple(rebuilt(arg) for arg in args)


def copied(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments with copies of the arrays, in any structure."""

    def copy(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.copy(order="K")
        held = parts(value)
        return value if held is None else with_parts(value, list(map(copy, held)))

    return tuple(map(copy, args))


def random_seed(value: Any, random: np.random.Generator) -> Any:
    """A random adjoint for a value."""
    held = None if isinstance(value, np.ndarray) else parts(value)
    if held is not None:
        return with_parts(value, [random_seed(each, random) for each in held])
    array = np.asarray(value)
    if array.dtype.kind not in "fc":
        return value
    made = random.uniform(0.5, 1.5, array.shape)
    made = (made + 1j * random.uniform(0.5, 1.5, array.shape)) if array.dtype.kind == "c" else made
    made = np.asarray(made).astype(array.dtype)
    return made if isinstance(value, np.ndarray) else made.item()


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
