"""Functions with checkpoints in code that Numba compiles for itself: the functions themselves.

@njit
def f(x):
    return zg.checkpoint(step)(x)           # step(x)
"""

from __future__ import annotations

import functools
from typing import Any

import numba
from numba.extending import overload

from zygote_py.checkpoints import Checkpointed, checkpoint
from zygote_py.numba_adapter.dispatch import is_dispatcher, register_as_dispatcher


@overload(checkpoint)
def _checkpoint(f: Any) -> Any:
    def same(f: Any) -> Any:
        return f

    return same


@functools.cache
def _compiled(func: Any) -> Any:
    decorate: Any = numba.njit
    return func if is_dispatcher(func) else decorate(func)


register_as_dispatcher(Checkpointed, lambda value: _compiled(value.func))
