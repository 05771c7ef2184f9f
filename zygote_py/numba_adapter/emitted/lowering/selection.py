"""The functions that conditional expressions without branches call (`conditional_expressions.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from zygote_py.numba_adapter.base.internals import impl_ret_borrowed, signature

_MOSTLY = 2000  # to one: LLVM makes branches of selections above a hundred


@intrinsic
def select(context: Any, condition: Any, then: Any, orelse: Any) -> Any:
    """Return one of two values."""
    return _selection(context, then, orelse, {})


@intrinsic
def mostly(context: Any, condition: Any, then: Any, orelse: Any) -> Any:
    """Return one of two values, the first in nearly all cases."""
    integer = ir.IntType(32)
    return _selection(context, then, orelse, {"prof": ["branch_weights", integer(_MOSTLY), integer(1)]})


def _selection(context: Any, then: Any, orelse: Any, notes: Mapping[str, list[Any]]) -> Any:
    kind = context.unify_types(types.unliteral(then), types.unliteral(orelse))

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, second = (context.cast(builder, args[place], sig.args[place], kind) for place in (1, 2))
        made = builder.select(args[0], first, second)
        for name, note in notes.items():
            made.set_metadata(name, builder.module.add_metadata(note))
        return impl_ret_borrowed(context, builder, kind, made)

    return (signature(kind, types.boolean, then, orelse), lowered) if kind is not None else None
