"""`checkpoint` and `checkpointed`: functions and loops that store little and are rerun in the reverse sweep."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_Elements = TypeVar("_Elements", bound=Iterable[Any])


class Checkpointed:
    """A function with a checkpoint. Outside differentiation, it is the function itself.

    Attributes
    ----------
    func : callable
        The function.
    """

    def __init__(self, func: Callable[..., Any]) -> None:
        functools.update_wrapper(self, func)
        self.func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.func(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<checkpoint of {getattr(self.func, '__qualname__', self.func)}>"


def checkpoint(f: Callable[..., Any]) -> Checkpointed:
    """Return `f` with a checkpoint: derivatives store its arguments only and rerun it in the reverse sweep.

    Parameters
    ----------
    f : callable
        A Python function, plain or decorated with `numba.njit`; in a differentiated function also an inner function or
        a lambda, whose captured variables are stored like its arguments. It must not return one of its arguments or
        draw random numbers. Arrays that it writes to are copied. It prints in both sweeps.

    Returns
    -------
    callable
        A function of the same parameters.

    Raises
    ------
    DifferentiationError
        When a function that calls it is differentiated, if it breaks one of these conditions.

    Notes ----- A checkpoint saves memory and takes the time of one more run. In a differentiated function, write
    `checkpoint(f)(x)`, or assign `checkpoint(f)` to a variable outside the function.

    Examples
    --------
    >>> import math
    >>> import zygote_py as zg
    >>> def step(x):
    ...     for _ in range(100):
    ...         x = math.sin(x) + 0.1 * x
    ...     return x
    >>> def f(x):
    ...     return zg.checkpoint(step)(x) ** 2
    >>> print(math.isclose(zg.gradient(f)(0.5), zg.gradient(lambda x: step(x) ** 2)(0.5)))
    True
    """
    return Checkpointed(f)


def checkpointed(iterable: _Elements, segments: int | None = None, snapshots: int | None = None) -> _Elements:
    """Return the iterable of a loop that stores little: `for i in checkpointed(range(n))`.

    Parameters
    ----------
    iterable : iterable
        A range, an array, a zip, or another iterable that Numba can loop over and that has a length.
    segments : int, optional
        The number of segments, at least 1. It cannot be combined with `snapshots`. The default is about the square root
        of the length.
    snapshots : int, optional
        The maximal number of stored states, at least 1.

    Returns
    -------
    iterable
        The iterable. Outside differentiation, `checkpointed` is a no-op, in plain Python and in compiled code.

    Raises
    ------
    ValueError
        If `segments` or `snapshots` is less than 1, or if both are passed.
    DifferentiationError
        When a function with such a loop is differentiated, if the loop does what is not supported (see Notes).

    Notes ----- The loop is divided into segments. At the start of each segment, the variables that the loop changes are
    stored, and the arrays that it writes to are copied. The reverse sweep reruns one segment at a time and records what
    it needs of that one only. The default takes the memory of about twice the square root of `n` iterations, and the
    time of one more run.

    With `snapshots`, the states of at most that many iterations are stored, and parts of the loop are rerun as often as
    necessary: with `s` snapshots, each iteration is rerun at most `t + 1` times if `n <= (s + t)! / (s! t!)`. The
    schedule is the binomial one of Griewank and Walther, "Algorithm 799: revolve" (2000).

    The loop may be left by `break`. It must not draw random numbers or change lists that exist before the loop. It
    prints in both sweeps.

    Examples
    --------
    >>> import math
    >>> import zygote_py as zg
    >>> def f(x, n):
    ...     for _ in zg.checkpointed(range(n)):
    ...         x += 0.001 * math.sin(x)
    ...     return x
    >>> zg.gradient(f, wrt="x")(1.0, 0)
    1.0
    """
    if segments is not None and snapshots is not None:
        raise ValueError("checkpointed: give segments or snapshots, not both")
    for name, number in (("segments", segments), ("snapshots", snapshots)):
        if number is not None and number < 1:
            raise ValueError(f"checkpointed: {name} must be at least 1, and is {number}")
    return iterable
