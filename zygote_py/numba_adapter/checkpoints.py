"""Functions and loops with checkpoints in code that Numba compiles for itself: as if they had none.

@njit
def f(x, n):
    for i in zg.checkpointed(range(n)):     # range(n)
        x = zg.checkpoint(step)(x)          # step(x)
    return x
"""

from __future__ import annotations

import functools
from typing import Any

import numba
from numba import types
from numba.core import imputils
from numba.extending import lower_builtin, overload, type_callable

from zygote_py.checkpoints import Checkpointed, checkpoint, checkpointed
from zygote_py.numba_adapter.dispatch import is_dispatcher, refresh, register_as_dispatcher


@overload(checkpoint)
def _checkpoint(f: Any) -> Any:
    def same(f: Any) -> Any:
        return f

    return same


@type_callable(checkpointed)
def _type_checkpointed(context: object) -> Any:
    def typer(iterable: Any, segments: Any = None, snapshots: Any = None) -> Any:
        return iterable

    return typer


def _give_first(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return imputils.impl_ret_borrowed(context, builder, signature.return_type, args[0])


for _count in (1, 2, 3):  # An overload could not return an iterator, such as that of a zip.
    lower_builtin(checkpointed, *[types.Any] * _count)(_give_first)


@functools.cache
def _compiled(func: Any) -> Any:
    decorate: Any = numba.njit
    return func if is_dispatcher(func) else decorate(func)


register_as_dispatcher(Checkpointed, lambda value: _compiled(value.func))
refresh()
