"""`compile`: what the first call of a derivative would wait for, ahead of it.

df = gradient(loss)
compile(df, "f64[:], f64")      # at import, in a build, in a thread that has nothing better to do
"""

from __future__ import annotations

from typing import Any

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
