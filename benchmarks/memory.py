"""The most memory that a call takes at any time: arrays, lists and what else the run time of Numba allocates.

    peak_in_process("mixture")      # {"gradient": 2_115_480, "by hand": 21_904}, bytes

Numba's run time can allocate by CPython's allocator, and then `tracemalloc` follows it: what is reported is the highest
sum of what lives, beyond what lived before the call, so the arguments do not count and the result does. What BLAS and
LAPACK allocate for themselves does not count. As this changes the allocator for good, it happens in a process of its
own.
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
    """Bytes that a call has allocated at its most; a process that called this goes on with CPython's allocator."""
    run()  # compile
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
    """The peaks of the gradients of a case."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        return executor.submit(_peaks, name).result()
