"""A pass in Numba's pipeline: loops over tuples whose components have several types become `literal_unroll`.

    for layer in layers: ...        ->        for layer in literal_unroll(layers): ...

Which loops these are only type inference knows, which fails on them; so they are given by the lines of those failures
(`line_to_unroll`), and the function is read anew. It does not unroll `zip` and `enumerate` of such tuples.
"""

from __future__ import annotations

import re
from types import CodeType
from typing import Any

from numba import literal_unroll

from zygote_py.numba_adapter.internals import FunctionPass, build_definitions, ir, register_pass
from zygote_py.numba_adapter.messages import place_of

_FAILURE = re.compile(r"Invalid use of getiter with parameters \(Tuple\(")


def line_to_unroll(error: Exception, code: CodeType) -> int | None:
    """The line of the loop over a tuple that type inference failed on; None if it failed for another reason."""
    if not _FAILURE.search(str(error)):
        return None
    place = place_of(error, code)
    return None if place is None else place.line


@register_pass(mutates_CFG=False, analysis_only=False)
class UnrollTuples(FunctionPass):
    """Stands before Numba's own pass for `literal_unroll`; `state.unrolled` are the lines of the loops."""

    _name = "zygote_py_unroll_tuples"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        changed = False
        for block in state.func_ir.blocks.values():
            body = []
            for statement in block.body:
                match statement:
                    case ir.Assign(value=ir.Expr(op="getiter") as expr) if statement.loc.line in state.unrolled:
                        function = ir.Var(block.scope, f"{statement.target.name}.unroll", statement.loc)
                        items = ir.Var(block.scope, f"{statement.target.name}.items", statement.loc)
                        body.append(
                            ir.Assign(ir.Global("literal_unroll", literal_unroll, expr.loc), function, statement.loc)
                        )
                        call = ir.Expr.call(function, (expr.value,), (), expr.loc)
                        body.append(ir.Assign(call, items, statement.loc))
                        expr.value = items
                        changed = True
                body.append(statement)
            block.body = body
        if changed:
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return changed
