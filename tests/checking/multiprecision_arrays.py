"""NumPy's functions on arrays of numbers of 50 digits: object arrays, with the elementwise functions of the scalars.

    zeros = table(SCALARS, number)["zeros"]
    a = zeros(3)                    # an object array of numbers of 50 digits
    a[1:] += number(0.5)            # slices, views, broadcasting and updates in place are NumPy's own
    table(SCALARS, number)["sin"](a)        # element by element

An array that is made empty is full of NaN. It knows the functions that the random programs and the tests call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]


def _elementwise(function: Function) -> Function:
    """The function of numbers, of arrays that are broadcast."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        if not any(isinstance(arg, np.ndarray) for arg in args):
            return function(*args)
        operands = np.broadcast_arrays(
            *(np.asarray(arg, None if isinstance(arg, np.ndarray) else object) for arg in args)
        )
        found = np.empty(operands[0].shape, object)
        for index in np.ndindex(found.shape):
            found[index] = function(*(operand[index] for operand in operands))
        return found if found.ndim else found[()]

    return run


def table(scalars: dict[str, Function], number: Function) -> dict[str, Function]:
    """NumPy's functions, given those of scalars: elementwise functions, and what makes and reduces arrays."""

    def filled(shape: Any, value: Any) -> Any:
        made = np.empty(shape, object)
        made[...] = value
        return made

    def like(value: float) -> Function:
        return lambda a: np.full_like(a, value) if a.dtype.kind in "bi" else filled(np.shape(a), number(value))

    elementwise = {name: _elementwise(function) for name, function in scalars.items()}
    kinds = {elementwise["int64"]: np.int64, elementwise["bool_"]: np.bool_}  # what a program's `np.int64` is here

    def of(value: float) -> Function:
        def made(shape: Any, dtype: Any = None) -> Any:
            dtype = kinds.get(dtype, dtype)
            return filled(shape, number(value)) if _is_float(dtype) else np.full(shape, value, dtype)

        return made

    def array(items: Any, dtype: Any = None) -> Any:
        found = np.array(items)
        if dtype is None and found.dtype.kind in "bi":
            return found
        return np.array(items, object if _is_float(dtype) else kinds.get(dtype, dtype))

    def reduced(function: Function) -> Function:
        return lambda a: functools.reduce(function, list(np.ravel(a)))

    def mean(a: Any) -> Any:
        return sum(np.ravel(a)) / np.size(a)

    return {
        **elementwise,
        "zeros": of(0.0),
        "ones": of(1.0),
        "empty": of(float("nan")),
        "full": lambda shape, value: filled(shape, value),
        "zeros_like": like(0.0),
        "ones_like": like(1.0),
        "empty_like": like(float("nan")),
        "copy": lambda a: a.copy(),
        "array": array,
        "sum": lambda a: sum(np.ravel(a)),
        "prod": lambda a: functools.reduce(lambda x, y: x * y, list(np.ravel(a)), number(1.0)),
        "mean": mean,
        "max": reduced(scalars["maximum"]),
        "min": reduced(scalars["minimum"]),
        "dot": np.dot,
        "arange": np.arange,
    }


def _is_float(dtype: Any) -> bool:
    return dtype is None or np.dtype(dtype).kind == "f"
