"""Result types of array operations that do not occur as such in the user's code, inferred by Numba.

item_type(f64[:, :], (i64, slice2))            f64[:]       the type of `x[i, a:b]`, of which `x[i, a:b] = v` stores
result_type(operator.add, (f32[:], f64))       f64[:]       what `x + y` computes in `x += y`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numba import types

from zygote_py.ir import Type
from zygote_py.numba_adapter.base import refreshed_context
from zygote_py.numba_adapter.base.internals import (
    errors,
    get_array_index_type,
    global_compiler_lock,
)
from zygote_py.numba_adapter.linking import typed_only
from zygote_py.numba_adapter.target.dispatch import jit_enabled


def item_type(array: Type, index: Sequence[Type]) -> Type | None:
    """The type of `array[index]`; None if Numba has no such index."""
    whole: Type = index[0] if len(index) == 1 else types.BaseTuple.from_types(list(index))
    try:
        found = get_array_index_type(array, whole)
    except errors.NumbaError:
        return None
    return None if found is None else found.result


def result_type(op: Callable[..., object], arguments: Sequence[Type]) -> Type | None:
    """The type that a call of `op` gives for arguments of these types; None if Numba has no such call."""
    context = refreshed_context()
    try:
        with global_compiler_lock, jit_enabled(), typed_only():
            signature = context.resolve_function_type(context.resolve_value_type(op), tuple(arguments), {})
    except errors.NumbaError:
        return None
    return None if signature is None else signature.return_type
