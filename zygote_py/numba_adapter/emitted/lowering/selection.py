"""The function that conditional expressions without branches call (`conditional_expressions.py`)."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from zygote_py.numba_adapter.base.internals import impl_ret_borrowed, signature


@intrinsic
def select(context: Any, condition: Any, then: Any, orelse: Any) -> Any:
    """Return one of two values."""
    kind = context.unify_types(types.unliteral(then), types.unliteral(orelse))

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, second = (context.cast(builder, args[place], sig.args[place], kind) for place in (1, 2))
        return impl_ret_borrowed(context, builder, kind, builder.select(args[0], first, second))

    return (signature(kind, types.boolean, then, orelse), lowered) if kind is not None else None
