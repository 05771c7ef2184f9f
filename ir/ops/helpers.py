"""Helpers: Python functions whose source is emitted along with a function that calls them.

    @helper
    def digamma(x): ...                 np.sin(digamma(x))   ->   the emitted module contains `def digamma(x)`

A helper is self-contained, in the subset that Numba compiles, and refers to `np` and other helpers only. IR text shows
its bare name. An emitted module compiles it like its other functions.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import TypeVar

from zygote_py.ir.ops.primitives import check_lengths, common_length, fitting_length, spread
from zygote_py.ir.ops.table import Effect, Op, operation

F = TypeVar("F", bound=Callable[..., object])

HELPERS: dict[str, Op] = {op.__name__: op for op in (common_length, fitting_length, check_lengths, spread)}


def helper(function: F, effect: Effect = Effect.PURE, fresh: bool = False) -> F:
    """Register a function as a helper under its name; a `fresh` one returns an array that is new."""
    HELPERS[function.__name__] = function
    operation(function, name=function.__name__, effect=effect, fresh=fresh)
    return function


def fresh_helper(function: F) -> F:
    """Register a function that returns a new array as a helper."""
    return helper(function, fresh=True)


def array_helper(*lengths: tuple[int, int]) -> Callable[[F], F]:
    """Register a function that returns a new array as a helper; `lengths` are the axes of arguments that it has."""

    def register(function: F) -> F:
        fresh_helper(function)
        operation(function, lengths=lengths)
        return function

    return register


def is_helper(op: Op) -> bool:
    """Return whether a callable is a helper."""
    return HELPERS.get(getattr(op, "__name__", "")) is op


@functools.cache
def source(op: Op) -> str:
    """Return a helper's source without decorator and annotations, for a module that imports `numpy as np`."""
    text = textwrap.dedent(inspect.getsource(op))
    (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef)
    names = [argument.arg for argument in definition.args.args]
    if definition.args.vararg is not None:
        names.append(f"*{definition.args.vararg.arg}")
    return "\n".join(
        [f"def {definition.name}({', '.join(names)}):", *text.splitlines()[definition.body[0].lineno - 1 :]]
    )


def called_by(op: Op) -> tuple[Op, ...]:
    """Return the other helpers that a helper calls."""
    names = getattr(op, "__code__").co_names  # noqa: B009 (an `Op` is any callable)
    return tuple(HELPERS[name] for name in names if name in HELPERS and HELPERS[name] is not op)
