"""`adjoint_kernel`: the adjoint of a whole CUDA kernel.

adjoint = adjoint_kernel(kernel)
adjoint[blocks, threads](x, dx, out, dout)      # dx += what dout says
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zygote_py.kernels.adjoint_kernels import AdjointKernel
from zygote_py.numba_adapter.cuda import launch

__all__ = ["adjoint_kernel"]


def adjoint_kernel(kernel: Any, *, active: str | Sequence[str] | None = None) -> AdjointKernel:
    """Return the adjoint of a kernel: a kernel that runs it and then pulls its outputs back to its inputs.

    Parameters
    ----------
    kernel : kernel
        A function that `numba.cuda.jit` decorates, or a Python function that it could decorate. It may call device
        functions.
    active : str or sequence of str, optional
        The parameters that have a shadow, each an array of floats. By default all arrays of floats.

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
    run, and so do their last bits. What one thread writes and another reads without a barrier between is a race in the
    kernel already, and has no derivative.

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
    return AdjointKernel(kernel, (active,) if isinstance(active, str) else None if active is None else tuple(active))
