"""`checkpoint`, `checkpointed`: functions and loops that keep little, and run again in the reverse sweep."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_Elements = TypeVar("_Elements", bound=Iterable[Any])


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
            or a lambda too, and what it captures is kept like its arguments. It must not return one of its arguments,
            or draw random numbers. Arrays that it writes to are copied. What it prints, it prints in both sweeps.

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


def checkpointed(iterable: _Elements, segments: int | None = None, snapshots: int | None = None) -> _Elements:
    """What a loop goes through, `for i in checkpointed(range(n))`: a derivative keeps little of the loop.

    The loop is divided into segments. At the start of each, the variables that it changes are kept, and the arrays that
    it writes to are copied; the reverse sweep runs one segment again at a time, and keeps what it needs of that one
    alone. With the default, about the square root of `n` segments, it keeps as much as for twice the square root of
    `n` iterations, and takes the time of one more run of the loop.

    With `snapshots` it keeps the state of at most so many iterations, and runs parts of the loop again as often as it
    takes: with `s` snapshots, each iteration runs at most `t + 1` times again if `n <= (s + t)! / (s! t!)`. The
    schedule is the binomial one of Griewank and Walther, "Algorithm 799: revolve" (2000).

    Everything else sees the iterable itself, in plain Python and compiled. The loop may be left by `break`. It must not
    draw random numbers or change lists that are made before it. What it prints, it prints in both sweeps.

    Parameters:
        iterable: a range, an array, a zip, or another iterable that Numba can loop over and that has a length.
        segments: how many segments, at least 1; not together with `snapshots`.
        snapshots: how many states to keep at most, at least 1.

    Returns:
        The iterable.

    Raises:
        ValueError: if `segments` or `snapshots` is less than 1, or both are given.
        DifferentiationError: when a function with such a loop is differentiated, for what the loop must not do.

    Example:
        >>> import math
        >>> import zygote_py as zg
        >>> def f(x, n):
        ...     for _ in zg.checkpointed(range(n)):
        ...         x += 0.001 * math.sin(x)
        ...     return x
        >>> zg.gradient(f)(1.0, 0)
        1.0
    """
    if segments is not None and snapshots is not None:
        raise ValueError("checkpointed: give segments or snapshots, not both")
    for name, number in (("segments", segments), ("snapshots", snapshots)):
        if number is not None and number < 1:
            raise ValueError(f"checkpointed: {name} must be at least 1, and is {number}")
    return iterable
