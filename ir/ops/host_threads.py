"""Iterations of a loop in the threads of the processor, in chunks of neighbouring ones: helpers of emitted modules.

    count = threads_for(n, 50 * n, d)   the number of chunks of n iterations, given what all of them cost
    in_threads(f, count, 0, x, parts)   f(0, 0, x, parts), f(1, 0, x, parts), ..., each in its thread
    add_parts(dw, parts)                dw += parts[0]; dw += parts[1]; ...
    add_terms(s, terms)                 s + terms[0, 0] + terms[0, 1] + ..., from the left

In plain Python there is one chunk. In Numba the threads are those of `prange`:
`zygote_py.numba_adapter.target.in_threads`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zygote_py.ir.ops.helpers import helper
from zygote_py.ir.ops.table import Cost, Effect, operation


def in_threads(function: Callable[..., None], count: int, seams: int, *args: Any) -> None:
    """Call a function for each number below `count`, and then, one after the other, for as many as there are seams."""
    for number in range(count + seams):
        function(number, seams, *args)


@helper
def threads_for(rounds: int, work: int, elements: int) -> int:
    """Return into how many chunks to divide a loop whose iterations add to so many elements of arrays."""
    return 1


def add_parts(array: Any, parts: Any) -> None:
    """Add each of several arrays to an array."""
    for number in range(len(parts)):
        array += parts[number]


def add_terms(total: Any, terms: Any) -> Any:
    """Return a number to which all elements of an array are added, one after the other."""
    for term in terms.ravel():
        total = total + term
    return total


helper(in_threads, Effect.WRITE)
helper(add_parts, Effect.WRITE)
helper(add_terms, Effect.READ)
operation(threads_for, cost=Cost.CHEAP)
