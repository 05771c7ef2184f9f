"""Gradients of structures: tuples, NamedTuples and dataclasses of numbers and arrays, nested at will.

    check_structures(lambda model, x: model(x), Dense(W, b), x)

The function, in plain Python, is differentiated by central differences of each number in its arguments; the compiled
gradient, the emitted source in plain Python and a call from compiled code must agree with them, give the value that the
function gives, have the classes that the arguments have, and None where there is no derivative.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np

from tests.plain import plain
from zygote_py import value_and_gradient


def check_structures(
    function: Callable[..., Any],
    *args: Any,
    captured: tuple[Any, ...] = (),
    tolerance: float = 1e-7,
    step: float = 1e-3,
    from_compiled: bool = True,
) -> Any:
    """Check the gradient of `function`, which reads the `captured` values too, at `args`; gives it."""
    derivative = value_and_gradient(function)
    python = getattr(function, "py_func", function)
    value = python(*map(copied, args))
    expected = differences(python, args, step)
    found = {"compiled": derivative(*map(copied, args)), "a second time": derivative(*map(copied, args))}
    found["in plain Python"] = plain(derivative.source(*args))(*map(copied, args), *captured)
    if from_compiled:
        scope: dict[str, Any] = {"derivative": derivative}
        names = ", ".join(f"a{number}" for number in range(len(args)))
        exec(f"def call({names}): return derivative({names})", scope)
        found["from compiled code"] = numba.njit(scope["call"])(*map(copied, args))
    for how, (got, gradients) in found.items():
        np.testing.assert_allclose(got, value, rtol=1e-12, err_msg=how)
        for arg, gradient in zip(args, gradients if len(args) > 1 else (gradients,), strict=True):
            same_form(arg, gradient, how)
        off = np.array(list(numbers(gradients))) - expected
        assert np.abs(off).max(initial=0.0) <= tolerance * (1 + np.abs(expected).max(initial=0.0)), (how, off)
    return found["compiled"][1]


def differences(function: Callable[..., Any], args: tuple[Any, ...], step: float) -> np.ndarray:
    """The derivative with respect to each number, by central differences of two steps, extrapolated."""
    center = np.array(list(numbers(args)))

    def at(index: int, by: float) -> float:
        moved = center.copy()
        moved[index] += by
        return float(function(*with_numbers(args, iter(moved))))

    def slope(index: int, by: float) -> float:
        return (at(index, by) - at(index, -by)) / (2 * by)

    return np.array([(4 * slope(k, step / 2) - slope(k, step)) / 3 for k in range(len(center))])


def numbers(tree: Any) -> Iterator[float]:
    """The floating-point numbers in a structure."""
    match tree:
        case float() | np.floating():
            yield float(tree)
        case np.ndarray():
            if tree.dtype.kind == "f":
                yield from tree.ravel().tolist()
        case tuple():
            for item in tree:
                yield from numbers(item)
        case _ if dataclasses.is_dataclass(tree):
            for field in dataclasses.fields(tree):
                yield from numbers(getattr(tree, field.name))


def with_numbers(tree: Any, new: Iterator[float]) -> Any:
    """The same structure with other numbers."""
    match tree:
        case float() | np.floating():
            return next(new)
        case np.ndarray() if tree.dtype.kind == "f":
            return np.array([next(new) for _ in range(tree.size)], tree.dtype).reshape(tree.shape)
        case tuple():
            items = [with_numbers(item, new) for item in tree]
            return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)
        case _ if dataclasses.is_dataclass(tree):
            made = object.__new__(type(tree))
            for field in dataclasses.fields(tree):
                object.__setattr__(made, field.name, with_numbers(getattr(tree, field.name), new))
            return made
        case _:
            return tree


def copied(tree: Any) -> Any:
    """A structure with arrays of its own."""
    return with_numbers(tree, numbers(tree))


def same_form(arg: Any, gradient: Any, where: str) -> None:
    """A gradient has the form of its argument, None in the places of what has no derivative."""
    if not list(numbers(arg)) and not (isinstance(arg, np.ndarray) and arg.dtype.kind == "f"):
        assert gradient is None, (where, gradient)
        return
    match arg:
        case float() | np.floating():
            assert isinstance(gradient, float | np.floating), (where, gradient)
        case np.ndarray():
            assert (gradient.shape, gradient.dtype) == (arg.shape, arg.dtype), (where, gradient)
        case tuple():
            assert type(gradient) is type(arg), (where, gradient)
            for one, other in zip(arg, gradient, strict=True):
                same_form(one, other, where)
        case _:
            assert type(gradient) is type(arg), (where, gradient)
            for field in dataclasses.fields(arg):
                same_form(getattr(arg, field.name), getattr(gradient, field.name), f"{where}, {field.name}")
