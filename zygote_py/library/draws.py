"""Random numbers: an array in a random order is a copy with known derivatives once the order is drawn; draws have none.

    np.random.shuffle(x)            each exchange of two elements, with the numbers that Numba would draw
    np.random.choice(x)             x[j], with j drawn
    np.random.normal(m, s)          a draw: refused, if m or s has a derivative

A draw is made once, in the order of the program, and never again in the reverse sweep. For the derivative with respect
to a parameter of a distribution, draw from the standard one: `m + s * np.random.standard_normal()`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from zygote_py.library.arguments import array, dtype_of, is_array, is_none, is_shape, lengths_of, optional
from zygote_py.library.registry import Implementation, implements, replaces, text, tuple_text


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
