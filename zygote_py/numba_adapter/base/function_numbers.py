"""Numba's numbers of the functions that it compiles, which are a part of the name of each symbol.

If two functions of a process have one name, LLVM takes the first. Machine code that is kept on disk therefore needs
numbers that no other process has, from the first function on that Numba compiles after this package was imported.
"""

from __future__ import annotations

import itertools
import os
import secrets

from zygote_py.numba_adapter.base.internals import FunctionIdentity

SMALLEST_NUMBER = 1 << 100


def number_functions() -> None:
    """Let Numba number the functions that it compiles from now on as no other process does."""
    FunctionIdentity._unique_ids = itertools.count(SMALLEST_NUMBER + (secrets.randbits(64) << 32))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=number_functions)
