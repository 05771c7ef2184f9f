"""Two arrays of a program made to share memory: the gradient must be right, or both parameters be named in a refusal.

    check_shared(f, value_and_gradient(f), (x, a, b))     # a and b become one array, or overlap

The gradients of two parameters that share memory add up to the gradient for that memory.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.checking.reference import distance, is_float, precise
from tests.checking.trees import copied


class Failure(Exception):
    """Something that must hold does not."""


def check_shared(function: Callable[..., Any], derivative: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Call the derivative with the first two arrays that can share memory; raises Failure."""
    arrays = [k for k, arg in enumerate(args) if is_float(arg) and np.size(arg) and np.asarray(arg).flags.c_contiguous]
    arrays = [k for k in arrays if isinstance(args[k], np.ndarray)]
    pairs = ((i, k) for i, k in itertools.combinations(arrays, 2) if args[i].ndim == args[k].ndim)
    for i, k in pairs:
        if args[i].shape == args[k].shape or args[i].ndim == 1:
            _check_pair(function, derivative, args, i, k)
            return


def _check_pair(
    function: Callable[..., Any], derivative: Callable[..., Any], args: tuple[Any, ...], first: int, second: int
) -> None:
    one, other = args[first], args[second]
    cuts: tuple[slice, slice] = (slice(None), slice(None))
    memory = one
    if one.shape != other.shape:
        memory = np.concatenate([one, other[1:]])
        cuts = (slice(0, len(one)), slice(len(one) - 1, len(memory)))

    def placed(memory: Any, given: Any) -> list[Any]:
        changed = list(given)
        changed[first], changed[second] = memory[cuts[0]], memory[cuts[1]]
        return changed

    def of_memory(memory: Any, *given: Any) -> Any:
        return function(*placed(memory, given))

    expected = precise(of_memory, memory, *args, wrt=(0,))
    if expected.doubt is not None:
        return
    try:
        _, gradients = derivative(*placed(memory.copy(), copied(args)))
    except ValueError as error:
        names = list(inspect.signature(function).parameters)
        missing = [name for name in (names[first], names[second]) if not re.search(rf"\b{name}\b", str(error))]
        if missing:
            raise Failure(f"a refusal of shared memory does not name {missing}: {error}") from error
        return
    total = np.zeros_like(memory)
    for cut, position in zip(cuts, (first, second), strict=True):
        total[cut] += gradients[position]
    if distance((total,), expected.gradients[:1]) > 1e-8:
        raise Failure(f"shared memory: {total!r} is not {expected.gradients[0]!r}")
