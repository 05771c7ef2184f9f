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
from numba.extending import lower_builtin, overload

from zygote_py.checkpoints import Checkpointed, checkpoint, checkpointed
from zygote_py.numba_adapter.callees import fold
from zygote_py.numba_adapter.dispatch import is_dispatcher, refresh, register_as_dispatcher
from zygote_py.numba_adapter.internals import AbstractTemplate, Signature, imputils, infer_global


@overload(checkpoint)
def _checkpoint(f: Any) -> Any:
    def same(f: Any) -> Any:
        return f

    return same


@infer_global(checkpointed)
class _OfCheckpointed(AbstractTemplate):
    """Types the calls of `checkpointed`. An overload could not return an iterator, such as that of a zip."""

    key = checkpointed

    def generic(self, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        pysig, folded = fold(checkpointed, args, kws, {})
        return Signature(folded[0], folded, None, pysig)


@lower_builtin(checkpointed, types.Any, types.Any, types.Any)  # type: ignore[untyped-decorator]
def _give_first(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return imputils.impl_ret_borrowed(context, builder, signature.return_type, args[0])


@functools.cache
def _compiled(func: Any) -> Any:
    decorate: Any = numba.njit
    return func if is_dispatcher(func) else decorate(func)


register_as_dispatcher(Checkpointed, lambda value: _compiled(value.func))
refresh()
