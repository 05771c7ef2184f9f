"""`vectorize`: a derivative over arrays of inputs; `adjoint_kernel`: the adjoint of a whole CUDA kernel.

over = vectorize(gradient(f), target="parallel")
over(x, 2.0)                            # the gradient of f at (x[0], 2.0), (x[1], 2.0), ...

adjoint = adjoint_kernel(kernel)
adjoint[blocks, threads](x, dx, out, dout)      # dx += what dout says
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

from zygote_py.kernels.adjoint_kernels import AdjointKernel
from zygote_py.kernels.vectorized import Vectorized
from zygote_py.numba_adapter.cuda import launch
from zygote_py.runtime import DerivativeFunction

__all__ = ["adjoint_kernel", "vectorize"]

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
        vector and a number whose derivative is a pair of these. Arguments are counted through structures, if any has
        such dimensions, and results are, without those that are None. By default all items are numbers.

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


def adjoint_kernel(
    kernel: Any, *, active: str | Sequence[str] | None = None, deterministic: bool = False
) -> AdjointKernel:
    """Return the adjoint of a kernel: a kernel that runs it and then pulls its outputs back to its inputs.

    Parameters
    ----------
    kernel : kernel
        A function that `numba.cuda.jit` decorates, or a Python function that it could decorate. It may call device
        functions.
    active : str or sequence of str, optional
        The parameters that have a shadow, each an array of floats. By default all arrays of floats.
    deterministic : bool, default False
        Whether gradients have the same bits in each run on the same grid. Elements that all threads add to, such as
        parameters, get a part for each thread, and a second kernel adds the parts; kernels in which threads meet at
        other elements are refused.

    Returns
    -------
    AdjointKernel
        Launched like the kernel, `adjoint[blocks, threads, stream, shared_bytes](...)`, with the arguments of the
        kernel, each active array followed by its shadow: an array on the device of the same shape and dtype. Numbers
        are not active: pass an array of one element for one.

        The launch runs the kernel too, so that arrays are written as it writes them. It adds to the shadow of what the
        kernel reads, and takes the shadow of an element that it overwrites, which is 0 afterwards.

    Raises
    ------
    ImportError
        Without numba-cuda and without the simulator.
    TypeError
        If `kernel` is not a function; at a launch, for too few arguments, or arrays of the host.
    ValueError
        If the kernel has no such parameter; at a launch, if a shadow has another shape, or if arrays share memory and
        one of them is written to.
    MemoryError
        At a launch, if the records of all threads, or shared memory, do not fit.
    DifferentiationError
        At a launch, if the kernel cannot be differentiated.

    Notes
    -----
    An accumulation is atomic, unless no two threads can meet at an element. The order of atomic sums varies from run to
    run, and so do their last bits, unless the adjoint is `deterministic`. What one thread writes and another reads
    without a barrier between is a race in the kernel already, and has no derivative.

    Captured variables are constants, as in all of Numba's kernels: what they are when the adjoint is first launched
    with some types of arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from numba import cuda
    >>> import zygote_py as zg
    >>> def square(x, out):
    ...     i = cuda.grid(1)
    ...     if i < x.size:
    ...         out[i] = x[i] ** 2
    >>> adjoint = zg.adjoint_kernel(square)  # doctest: +SKIP
    >>> x, out = cuda.to_device(np.arange(3.0)), cuda.device_array(3)  # doctest: +SKIP
    >>> dx, dout = cuda.to_device(np.zeros(3)), cuda.to_device(np.ones(3))  # doctest: +SKIP
    >>> adjoint[1, 32](x, dx, out, dout)  # doctest: +SKIP
    >>> dx.copy_to_host()  # doctest: +SKIP
    array([0., 2., 4.])
    """
    launch.cuda_module()
    names = (active,) if isinstance(active, str) else None if active is None else tuple(active)
    return AdjointKernel(kernel, names, deterministic)
