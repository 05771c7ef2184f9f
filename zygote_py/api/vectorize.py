"""`vectorize`: a derivative over arrays of inputs.

over = vectorize(gradient(f), target="parallel")
over(x, 2.0)                            # the gradient of f at (x[0], 2.0), (x[1], 2.0), ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from zygote_py.kernels.vectorized import Vectorized
from zygote_py.numba_adapter.cuda import launch
from zygote_py.runtime import DerivativeFunction

__all__ = ["vectorize"]

_TARGETS = ("cpu", "parallel", "cuda")


@overload
def vectorize(df: DerivativeFunction[..., Any], *, target: str = "cpu", signature: str | None = None) -> Vectorized: ...
@overload
def vectorize(
    df: None = None, *, target: str = "cpu", signature: str | None = None
) -> Callable[[DerivativeFunction[..., Any]], Vectorized]: ...
def vectorize(
    df: DerivativeFunction[..., Any] | None = None, *, target: str = "cpu", signature: str | None = None
) -> Any:
    """Return a derivative over arrays of inputs, which broadcasts like a ufunc.

    Parameters
    ----------
    df : DerivativeFunction, optional
        What `gradient`, `value_and_gradient`, `jvp`, `hessian`, ... returned for a function of one item. Without it, a
        decorator is returned.
    target : {"cpu", "parallel", "cuda"}
        One thread, all of Numba's threads (`numba.set_num_threads`), or a device; see docs/vectorize.md.
    signature : str, optional
        The dimensions that items have themselves, as in `numba.guvectorize`: "(k),()->(k),()" for a function of a
        vector and a number whose derivative is a pair of these. The results are counted through structures, without
        those that are None. By default all items are numbers.

    Returns
    -------
    Vectorized
        A function of the same parameters. Each argument is an array of items, or a number, or a structure of these
        (tuple, NamedTuple, frozen dataclass); other values are the same for all items. It returns what `df` does, with
        an array in place of each number, and an array with more dimensions in place of each array. With `out`, a
        structure of arrays like that, the results are stored there.

        Numbers of Python are floats of the precision of the arrays, as in NumPy: of single precision if all floats in
        the arrays are.

    Raises
    ------
    TypeError
        If `df` is not a derivative; at a call, if the signature is for other arguments or results.
    ValueError
        If the target is unknown or the signature malformed; at a call, if shapes do not agree.
    DifferentiationError
        At a call, if the function cannot be differentiated.

    Notes
    -----
    The compiled loops call the derivative for each item. An exception in one ends the call; results of others may have
    been stored. Captured variables are read at each call.

    Examples
    --------
    >>> import numpy as np
    >>> import zygote_py as zg
    >>> over = zg.vectorize(zg.gradient(lambda x, p: p * x**2))
    >>> over(np.array([1.0, 2.0]), 3.0)  # shapes (2,) and ()
    (array([ 6., 12.]), array([1., 4.]))
    >>> rows = zg.vectorize(zg.gradient(lambda w: np.sum(w**2)), signature="(k)->(k)")
    >>> rows(np.array([[1.0, 2.0], [3.0, 4.0]]))  # shape (2, 2)
    array([[2., 4.],
           [6., 8.]])
    """
    if df is None:
        return functools.partial(vectorize, target=target, signature=signature)
    if not isinstance(df, DerivativeFunction):
        raise TypeError(
            f"vectorize takes a derivative, as gradient and hessian return one, not {type(df).__name__}: "
            "numba.vectorize takes functions"
        )
    if target not in _TARGETS:
        raise ValueError(f"the target is one of {', '.join(map(repr, _TARGETS))}, not {target!r}")
    if target == "cuda":
        launch.cuda_module()
    return Vectorized(df, target, signature)
