"""`checkpoint`: a function that keeps its arguments only, and runs again in the reverse sweep."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Checkpointed:
    """A function with a checkpoint; in plain Python the function itself.

    Attributes:
        func: the function.
    """

    def __init__(self, func: Callable[..., Any]) -> None:
        functools.update_wrapper(self, func)
        self.func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives."""
        return self.func(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<checkpoint of {getattr(self.func, '__qualname__', self.func)}>"


def checkpoint(f: Callable[..., Any]) -> Checkpointed:
    """The function `f`, of which a derivative keeps the arguments only: it runs again in the reverse sweep.

    It takes less memory, and the time of one more run. In a differentiated function write `checkpoint(f)(x)`, or make a
    variable of it outside.

    Parameters:
        f: a plain Python function, or one decorated with `numba.njit`; in a differentiated function an inner function
            or a lambda too, and what it captures is kept like its arguments. It must not write to its arguments,
            return one of them, or draw random numbers. What it prints, it prints in both sweeps.

    Returns:
        A function of the same arguments.

    Raises:
        DifferentiationError: when a function that calls it is differentiated, for what it must not do.

    Example:
        >>> import math
        >>> import zygote_py as zg
        >>> def step(x):
        ...     for _ in range(100):
        ...         x = math.sin(x) + 0.1 * x
        ...     return x
        >>> def f(x):
        ...     return zg.checkpoint(step)(x) ** 2
        >>> zg.gradient(f)(0.5) == zg.gradient(lambda x: step(x) ** 2)(0.5)
        True
    """
    return Checkpointed(f)
