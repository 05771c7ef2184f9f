"""A pass in Numba's pipeline: loops over tuples whose components have several types become `literal_unroll`.

    for layer in layers: ...        ->        for layer in literal_unroll(layers): ...

Which loops these are only type inference knows, which fails on them; so they are given by the lines of those failures
(`line_to_unroll`), and the function is read anew. It does not unroll `zip` and `enumerate` of such tuples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import CodeType
from typing import Any

from numba import literal_unroll

from zygote_py.numba_adapter.internals import ir
from zygote_py.numba_adapter.messages import place_of
from zygote_py.numba_adapter.numba_ir import IRPass, assigned, rewrite

_FAILURE = re.compile(r"Invalid use of getiter with parameters \(Tuple\(")


def line_to_unroll(error: Exception, code: CodeType) -> int | None:
    """The line of the loop over a tuple that type inference failed on; None if it failed for another reason."""
    if not _FAILURE.search(str(error)):
        return None
    place = place_of(error, code)
    return None if place is None else place.line


class UnrollTuples(IRPass):
    """Stands before Numba's own pass for `literal_unroll`; `state.unrolled` are the lines of the loops."""

    def change(self, state: Any) -> bool:
        """Let the loops go over the result of `literal_unroll`."""

        def unrolled(block: Any, statement: Any) -> Iterable[Any] | None:
            match statement:
                case ir.Assign(value=ir.Expr(op="getiter") as expr) if statement.loc.line in state.unrolled:
                    unroll = ir.Global("literal_unroll", literal_unroll, expr.loc)
                    function = assigned(block.scope, f"{statement.target.name}.unroll", unroll, statement.loc)
                    call = ir.Expr.call(function.target, (expr.value,), (), expr.loc)
                    items = assigned(block.scope, f"{statement.target.name}.items", call, statement.loc)
                    expr.value = items.target
                    return function, items, statement
            return None

        return rewrite(state.func_ir, unrolled)
