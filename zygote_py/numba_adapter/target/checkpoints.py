"""Functions and loops with checkpoints in code that Numba compiles for itself: as if they had none.

@njit
def f(x, n):
    for i in zg.checkpointed(range(n)):     # range(n)
        x = zg.checkpoint(step)(x)          # step(x)
    return x
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from numba import types
from numba.extending import lower_builtin, overload

from zygote_py.base import Checkpointed, checkpoint as checkpoint, checkpointed as checkpointed
from zygote_py.numba_adapter.base import refresh
from zygote_py.numba_adapter.base.internals import AbstractTemplate, Signature, imputils, infer_global
from zygote_py.numba_adapter.target.dispatch import is_dispatcher, register_as_dispatcher
from zygote_py.numba_adapter.target.njit import decorated
from zygote_py.numba_adapter.types import fold

overload(checkpoint)(lambda f: lambda f: f)


@infer_global(checkpointed)
class _OfCheckpointed(AbstractTemplate):
    """Types the calls of `checkpointed`. An overload could not return an iterator, such as that of a zip."""

    key = checkpointed

    def generic(self, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        pysig = inspect.signature(checkpointed)
        folded = fold(pysig, checkpointed, args, kws)
        return Signature(folded[0], folded, None, pysig)


@lower_builtin(checkpointed, types.Any, types.Any, types.Any)  # type: ignore[untyped-decorator]
def _give_first(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return imputils.impl_ret_borrowed(context, builder, signature.return_type, args[0])


@functools.cache
def _compiled(func: Any) -> Any:
    return func if is_dispatcher(func) else decorated(func, {})


register_as_dispatcher(Checkpointed, lambda value: _compiled(value.func))
refresh()
