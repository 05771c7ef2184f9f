"""The second pass of sums over the threads of a grid: the parts of all threads, added in the order of their numbers.

    add_parts(parts, lanes, total, stream)      # total[0] += parts[0] + parts[1] + ... + parts[lanes - 1], and so on

A block adds the parts of an element: each of its threads every so many of them, and then halves of the threads the sums
of the other halves. The order depends on the number of parts alone.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import types

from zygote_py.base import define
from zygote_py.numba_adapter.cuda import launch

_THREADS = 256
_MOST_BLOCKS = 4096


def add_parts(parts: Any, lanes: int, total: Any, stream: Any) -> None:
    """Add to each element of `total` its `lanes` parts, which are neighbours in `parts`."""
    if not total.size:
        return
    threads = min(_THREADS, 1 << (lanes - 1).bit_length())
    launch.start(
        _kernel(total.ndim, str(total.dtype)), (min(total.size, _MOST_BLOCKS), threads, stream), (parts, lanes, total)
    )


@functools.cache
def _kernel(ndim: int, dtype: str) -> Any:
    """Return the kernel for arrays of a number of axes."""
    index = ["        at = place"]
    for axis in reversed(range(ndim)):
        index += [f"        i_{axis} = at % total.shape[{axis}]", f"        at = at // total.shape[{axis}]"]
    text = f"""\
def sum_of_parts(parts, lanes, total):
    sums = cuda.shared.array({_THREADS}, dtype)
    thread = cuda.threadIdx.x
    for place in range(cuda.blockIdx.x, total.size, cuda.gridDim.x):
        found = zero
        for lane in range(thread, lanes, cuda.blockDim.x):
            found += parts[place * lanes + lane]
        sums[thread] = found
        cuda.syncthreads()
        half = cuda.blockDim.x // 2
        while half > 0:
            if thread < half:
                sums[thread] += sums[thread + half]
            cuda.syncthreads()
            half //= 2
{chr(10).join(index)}
        if thread == 0:
            total[{", ".join(f"i_{axis}" for axis in range(ndim))}] += sums[0]
        cuda.syncthreads()
"""
    kind = np.dtype(dtype).type
    namespace = {"cuda": launch.cuda_module(), "dtype": getattr(types, dtype), "zero": kind(0.0)}
    return launch.compiled(define(text, "sum_of_parts", namespace, filename="<zygote_py sums>"), {})
