"""How much work a function does, counted and not timed: the same on a busy machine."""

from __future__ import annotations

import cProfile
from collections.abc import Callable

from numba.core.runtime import _nrt_python, rtsys


def calls(function: Callable[[], object]) -> int:
    """The calls, of Python's and of built-in functions, that a call of `function` makes."""
    profile = cProfile.Profile()
    profile.runcall(function)
    return sum(entry.callcount for entry in profile.getstats())


def allocations(function: Callable[[], object]) -> int:
    """The blocks that Numba's runtime allocates in a call of `function`; those freed within it count as well."""
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().alloc
        function()
        return rtsys.get_allocation_stats().alloc - before
    finally:
        _nrt_python.memsys_disable_stats()
