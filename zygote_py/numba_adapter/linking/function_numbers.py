"""The names of the functions that Numba compiles, of which each symbol in machine code has one.

If two functions of a process have one name, LLVM takes the first. Machine code that is kept on disk therefore needs
numbers that no other process has, from the first function on that Numba compiles after this package was imported.

The functions that make Python's objects of the values in an exception have no number: Numba names them by the types of
these values. But each reads what belongs to the function that it was made for, so it is made private to it.
"""

from __future__ import annotations

import functools
import itertools
import os
import secrets
from typing import Any

from zygote_py.numba_adapter.base.internals import CPUCallConv, FunctionIdentity

SMALLEST_NUMBER = 1 << 100
EMITTED = "<zygote_py "  # how the names of emitted files start


def number_functions() -> None:
    """Let Numba number the functions that it compiles from now on as no other process does."""
    FunctionIdentity._unique_ids = itertools.count(SMALLEST_NUMBER + (secrets.randbits(64) << 32))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=number_functions)


_emit: Any = CPUCallConv.emit_unwrap_dynamic_exception_fn


@functools.wraps(_emit)
def _emit_privately(self: Any, module: Any, st_type: Any, nb_types: Any) -> Any:
    made = _emit(self, module, st_type, nb_types)
    made.linkage = "internal"
    return made


CPUCallConv.emit_unwrap_dynamic_exception_fn = _emit_privately  # type: ignore[method-assign]
