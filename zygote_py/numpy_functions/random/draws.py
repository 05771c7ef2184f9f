"""Arrays in a random order: copies with known derivatives once the order is drawn.

    np.random.shuffle(x)            each exchange of two elements, with the numbers that Numba would draw
    np.random.choice(x)             x[j], with j drawn
    rng.permutation(x)              x[rng.permutation(len(x))]

A draw is made once, in the order of the program, and never again in the reverse sweep.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from zygote_py.numpy_functions.support.overloads import (
    Implementation,
    array,
    dtype_of,
    implements,
    is_array,
    is_none,
    is_shape,
    known_int,
    lengths_of,
    optional,
    replaces,
    text,
    tuple_text,
)


@implements(np.random.shuffle, x=array(least=1))
def shuffle(x: Any) -> Implementation:
    """Put the elements of an array, or its rows, into a random order."""
    return _shuffle(x, np.random.randint)


@implements(random.shuffle, x=array(least=1))
def shuffle_of_python(x: Any) -> Implementation:
    """Put the elements of an array, or its rows, into a random order."""
    return _shuffle(x, random.randrange)


def _shuffle(x: Any, draw: Callable[[int], int]) -> Implementation:
    copied = ".copy()" if x.ndim > 1 else ""
    lines = [
        "for i in range(x.shape[0] - 1, 0, -1):",
        "    j = draw(i + 1)",
        f"    held = x[i]{copied}",
        f"    x[i] = x[j]{copied}",
        "    x[j] = held",
    ]
    return text(lines, draw=draw)


@replaces(np.random.permutation, x=is_array)
def permutation(x: Any) -> Any:
    """Return the elements of an array, or its rows, in a random order."""
    result = x.copy()
    np.random.shuffle(result)
    return result


def _is_first(axis: object) -> bool:
    return known_int(axis) == 0


@replaces(np.random.Generator.permutation, x=is_array, axis=_is_first)
def permutation_of_generator(rng: Any, x: Any, axis: int = 0) -> Any:
    """Return the elements of an array, or its rows, in a random order."""
    return x[rng.permutation(x.shape[0])]


@replaces(np.random.Generator.shuffle, x=is_array, axis=_is_first)
def shuffle_of_generator(rng: Any, x: Any, axis: int = 0) -> None:
    """Put the elements of an array, or its rows, into a random order."""
    x[:] = x[rng.permutation(x.shape[0])]


@implements(np.random.choice, a=array(1), size=optional(is_shape))
def choice(a: Any, size: Any = None, replace: object = True) -> Implementation:
    """Return one or several elements of a vector at random, more than once each unless not `replace`."""
    if is_none(size):
        return lambda a, size=None, replace=True: a[np.random.randint(0, len(a))]
    lengths = lengths_of("size", size)
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
    return text(lines, dtype=dtype_of(a))
