"""`compile`: what a first call would wait for, ahead of it. `njit`: Numba's, with functions of vectors.

df = gradient(loss)
compile(df, "f64[:], f64")      # at import, in a build, in a thread that has nothing better to do

@njit(fastmath=True)
def loss(w): ...                # exp, tanh, ... of four numbers at once
"""

from __future__ import annotations

from typing import Any

from zygote_py import numba_adapter
from zygote_py.runtime import DerivativeFunction


def compile(df: DerivativeFunction[..., Any], /, *args: Any) -> None:
    """Compile a derivative for a signature ahead of its first call.

    What is compiled is kept on disk as after a call, so that other processes find it. Nothing of the function runs, and
    what has been compiled before is not compiled again. Threads may call it at any time.

    Parameters
    ----------
    df : DerivativeFunction
        What `gradient`, `value_and_gradient`, `jacobian`, `hessian`, `hvp`, `derivative`, `pushforward`, ... returned
        for a function.
    *args : object
        A value or its Numba type for each argument of `df`, arguments with defaults optional; or all types in one
        string, as in `df.source`. A type stands for an array with its number of dimensions and layout: `f64[:]` is
        strided, `f64[::1]` contiguous.

    Raises
    ------
    TypeError
        If `df` is not a derivative.
    ValueError
        If a string does not name types.
    DifferentiationError
        If the function cannot be differentiated for these types.

    Examples
    --------
    >>> import zygote_py as zg
    >>> square = zg.gradient(lambda x: x * x)
    >>> zg.compile(square, "f64")
    >>> square(3.0)
    6.0
    """
    if not isinstance(df, DerivativeFunction):
        raise TypeError(
            f"compile takes a derivative, as gradient and hessian return one, not {type(df).__name__}: "
            "for anything else, call it once"
        )
    df.compile(*args)


def njit(*args: Any, **options: Any) -> Any:
    """Compile a function with Numba, with functions of vectors in its vectorised loops.

    It is `numba.njit` but for one thing: where `fastmath` allows approximations (`True`, or a set with "afn"), loops
    that LLVM vectorises call the functions of the C library for two to eight numbers at a time, where there are some
    (glibc on x86-64): exp, log, sin, cos, tanh, pow and others, with an error of at most four units in the last place.
    Gradients of functions with such flags have them in any case, also if `numba.njit` compiled the function.

    Parameters
    ----------
    *args, **options : object
        As for `numba.njit`: a function, or signatures; `fastmath`, `cache`, `parallel` and so on.

    Returns
    -------
    Dispatcher or callable
        The compiled function; without a function a decorator.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> import zygote_py as zg
    >>> @zg.njit(fastmath=True)
    ... def total(x):
    ...     s = 0.0
    ...     for i in range(len(x)):
    ...         s += math.exp(x[i])
    ...     return s
    >>> total(np.zeros(1000))
    1000.0
    """
    return numba_adapter.vector_njit(*args, **options)
