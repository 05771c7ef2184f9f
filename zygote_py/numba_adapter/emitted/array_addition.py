"""`x += y` of arrays is a call: Numba would write a loop with the broadcasting of all shapes at each such statement.

    $1 = inplace_binop(x, y)        ->      $0 = call add_to_matrix(x, y); $1 = x

The loops here are for arrays of one shape, as the adjoints of a value are, and compiled once for each combination of
types. For other shapes they leave it to Numba, which broadcasts or raises. The sums are the same.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numba
import numpy as np
from numba import types

from zygote_py.numba_adapter.base import IRPass, link_only
from zygote_py.numba_adapter.base.internals import ir


def _add_to_vector(target: Any, change: Any) -> None:
    if target.shape[0] != change.shape[0]:
        np.add(target, change, target)
    else:
        for i in range(target.shape[0]):
            target[i] += change[i]


def _add_to_matrix(target: Any, change: Any) -> None:
    if target.shape != change.shape:
        np.add(target, change, target)
    else:
        for i in range(target.shape[0]):
            for j in range(target.shape[1]):
                target[i, j] += change[i, j]


class AddArrays(IRPass):
    """The pass, over typed IR."""

    def change(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        if state.flags.auto_parallel.enabled:  # which makes parallel loops of such statements
            return False
        changed = False
        for block in state.func_ir.blocks.values():
            body = []
            for statement in block.body:
                called = self._called(state, statement)
                body += [statement] if called is None else called
                changed |= called is not None
            block.body = body
        return changed

    def _called(self, state: Any, statement: Any) -> list[Any] | None:
        """Return the statements that take the place of one; None if it stays."""
        value = statement.value if isinstance(statement, ir.Assign) else None
        if not (isinstance(value, ir.Expr) and value.op == "inplace_binop" and value.fn is operator.iadd):
            return None
        typed = state.typemap
        target, change = typed[value.lhs.name], typed[value.rhs.name]
        if not (isinstance(target, types.Array) and isinstance(change, types.Array)):
            return None
        function = _BY_DIMENSION.get(target.ndim)
        is_plain = (
            target.ndim == change.ndim and target.dtype == change.dtype and typed[statement.target.name] == target
        )
        if function is None or not (is_plain and isinstance(target.dtype, types.Float | types.Complex)):
            return None
        scope, loc = statement.target.scope, statement.loc
        called, nothing = (ir.Var(scope, f"{statement.target.name}.{name}", loc) for name in ("added", "nothing"))
        helper = _helper(function)
        dispatcher_type = types.Dispatcher(helper)
        call = ir.Expr.call(called, [value.lhs, value.rhs], (), loc)
        typed[called.name], typed[nothing.name] = dispatcher_type, types.none
        state.calltypes[call] = dispatcher_type.get_call_type(state.typingctx, (target, change), {})
        return [
            ir.Assign(ir.Global(function.__name__, helper, loc), called, loc),
            ir.Assign(call, nothing, loc),
            ir.Assign(value.lhs, statement.target, loc),
        ]


# None is inherited from the first caller: other callers may have others.
_OPTIONS: dict[str, Any] = {"fastmath": False, "boundscheck": False, "error_model": "numpy"}


@functools.cache
def _helper(function: Any) -> Any:
    made: Any = numba.njit(**_OPTIONS)(function)
    link_only(made, is_helper=True)
    return made


_BY_DIMENSION = {1: _add_to_vector, 2: _add_to_matrix}
