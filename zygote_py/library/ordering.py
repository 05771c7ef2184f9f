"""The places of the elements of a sequence in order, as Numba's sorting of lists finds them.

    in_order(x, False)          [2, 0, 1]: x[2] is the least element of x, x[1] the greatest
    in_order_of_any(s, True)    the same for any sequence, backwards

Equal elements come in the order that the algorithm leaves them in: parts of up to 15 are sorted by insertion, longer
ones are split at a pivot first, the median of three. `in_order` is a helper: it takes an array of numbers, and an
emitted module has its source. `in_order_of_any` is the same function, to be put in the place of its call.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from zygote_py.ir.ops.helpers import helper


@helper
def comes_before(x: Any, one: int, other: int, backwards: bool) -> bool:
    """Whether the element at one place is less than that at another; greater, if the order is to be backwards."""
    if backwards:
        return x[one] > x[other]  # type: ignore[no-any-return]
    return x[one] < x[other]  # type: ignore[no-any-return]


@helper
def split_in_order(x: Any, order: Any, low: int, high: int, backwards: bool) -> int:
    """Move the places in `order[low:high + 1]` of what comes before a pivot before its place, the others after it."""
    middle = (low + high) >> 1
    if comes_before(x, order[middle], order[low], backwards):
        order[low], order[middle] = order[middle], order[low]
    if comes_before(x, order[high], order[middle], backwards):
        order[high], order[middle] = order[middle], order[high]
    if comes_before(x, order[middle], order[low], backwards):
        order[low], order[middle] = order[middle], order[low]
    pivot = order[middle]
    order[middle] = order[high]
    order[high] = pivot
    i = low
    j = high - 1
    while True:
        while i < high and comes_before(x, order[i], pivot, backwards):
            i += 1
        while j >= low and comes_before(x, pivot, order[j], backwards):
            j -= 1
        if i >= j:
            break
        order[i], order[j] = order[j], order[i]
        i += 1
        j -= 1
    order[high] = order[i]
    order[i] = pivot
    return i


@helper
def in_order(x: Any, backwards: bool) -> Any:
    """Return the places of the elements of a sequence in order."""
    order = np.arange(len(x))
    lows = np.empty(100, np.int64)  # parts that are still to be sorted; the longer one always waits
    highs = np.empty(100, np.int64)
    lows[0] = 0
    highs[0] = len(x) - 1
    waiting = 1
    while waiting > 0:
        waiting -= 1
        low, high = lows[waiting], highs[waiting]
        while high - low >= 15:
            i = split_in_order(x, order, low, high, backwards)
            if high - i > i - low:
                lows[waiting], highs[waiting] = i + 1, high
                high = i - 1
            else:
                lows[waiting], highs[waiting] = low, i - 1
                low = i + 1
            waiting += 1
        for i in range(low + 1, high + 1):
            place = order[i]
            j = i
            while j > low and comes_before(x, place, order[j - 1], backwards):
                order[j] = order[j - 1]
                j -= 1
            order[j] = place
    return order


def spelled_out(*functions: Any) -> Callable[..., Any]:
    """Return the last of some helpers, which call each other, as functions that are not registered as helpers."""
    scope = dict(functions[-1].__globals__)
    for function in functions:
        scope[function.__name__] = made = FunctionType(function.__code__, scope, function.__name__)
        made.__module__ = function.__module__
    return made


in_order_of_any = spelled_out(comes_before, split_in_order, in_order)
