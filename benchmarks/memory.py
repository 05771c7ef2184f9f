"""The peak memory of a call: arrays, lists and everything else that Numba's runtime allocates.

    peak_in_process("mixture")      # {"gradient": 2_115_480, "hand-written": 21_904}, bytes

Numba's runtime can use CPython's allocator, which `tracemalloc` can trace: the reported number is the maximum of the
memory that is alive, in excess of that before the call. It excludes the arguments and includes the result, and excludes
memory that BLAS and LAPACK allocate. Since this changes the allocator permanently, it runs in a separate process.
"""

from __future__ import annotations

import gc
import multiprocessing
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from numba.core.runtime import _nrt_python

from benchmarks.cases import CASES


def peak(run: Callable[[], object]) -> int:
    """Return the peak of the bytes allocated by a call; afterwards the process continues to use CPython's allocator."""
    for _ in range(3):  # compile, and what else the first calls do
        run()
    _nrt_python.memsys_use_cpython_allocator()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        kept = run()
        most = tracemalloc.get_traced_memory()[1] - before
        del kept
        return most
    finally:
        tracemalloc.stop()


def _peaks(name: str) -> dict[str, int]:
    case = CASES[name](False)
    return {variant: peak(lambda g=g: g(*case.arguments)) for variant, g in case.gradients.items()}  # type: ignore[misc]


def peak_in_process(name: str) -> dict[str, int]:
    """Return the peaks of the gradients of a case."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        return executor.submit(_peaks, name).result()
