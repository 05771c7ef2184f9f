"""Statements that become others once their types are known: additions to arrays, and lists that are made empty.

`x += y` of arrays is a call, where Numba would write a loop with the broadcasting of all shapes:

    $1 = inplace_binop(x, y)        ->      $0 = call add_to_rows(x, y); $1 = x

The loops here are compiled once for each combination of types, and kept on disk. The sums are the same.

An empty list has the type of an item in the text, `[(0.0, np.empty(0))][:0]`, and is made without that item:

    $3 = build_list([$2]); $4 = static_getitem($3, :0)      ->      $4 = build_list([])
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from typing import Any

import numba
import numpy as np
from numba import types

from zygote_py.numba_adapter.base import IRPass
from zygote_py.numba_adapter.base.internals import ir
from zygote_py.numba_adapter.base.ir_walks import used_by
from zygote_py.numba_adapter.linking import link_only


def _add_to_vector(target: Any, change: Any) -> None:
    n = len(change)
    if n not in (1, len(target)):
        raise ValueError("an array is added to one of another shape")
    for i in range(len(target)):
        target[i] += change[i if n > 1 else 0]


def _add_to_rows(target: Any, change: Any) -> None:
    n, m = change.shape
    if n not in (1, target.shape[0]) or m not in (1, target.shape[1]):
        raise ValueError("an array is added to one of another shape")
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] += change[i if n > 1 else 0, j if m > 1 else 0]


def _add_to_columns(target: Any, change: Any) -> None:
    n, m = change.shape
    if n not in (1, target.shape[0]) or m not in (1, target.shape[1]):
        raise ValueError("an array is added to one of another shape")
    for j in range(target.shape[1]):
        for i in range(target.shape[0]):
            target[i, j] += change[i if n > 1 else 0, j if m > 1 else 0]


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
        function = _BY_LAYOUT.get((target.ndim, target.layout))
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


class EmptyLists(IRPass):
    """The pass, over typed IR."""

    def change(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        blocks = state.func_ir.blocks.values()
        assigned = Counter(each.target.name for block in blocks for each in block.find_insts(ir.Assign))
        made = {
            each.target.name: each.value
            for block in blocks
            for each in block.find_insts(ir.Assign)
            if assigned[each.target.name] == 1
        }
        emptied = [
            each
            for block in blocks
            for each in block.find_insts(ir.Assign)
            if _is_nothing_of(each.value, made) and type(state.typemap[each.target.name]) is types.List
        ]
        if not emptied:
            return False
        used = Counter(var.name for block in blocks for each in block.body for var in used_by(each))
        unused = []
        for statement in emptied:
            unused += _dropped(used_by(statement), used)
            statement.value = ir.Expr.build_list([], statement.loc)
        dead: set[str] = set()
        while unused:
            name = unused.pop()
            value = made.get(name)
            if value is not None and _has_no_effect(value, state.typemap):
                dead.add(name)
                unused += _dropped(value.list_vars() if isinstance(value, ir.Expr) else [value], used)
        for block in blocks:
            block.body = [each for each in block.body if not (isinstance(each, ir.Assign) and each.target.name in dead)]
        return True


def _is_nothing_of(value: Any, made: dict[str, Any]) -> bool:
    """Return whether a value is `[item][:0]`."""
    if not (isinstance(value, ir.Expr) and value.op == "static_getitem" and value.index == slice(None, 0)):
        return False
    whole = made.get(value.value.name)
    return isinstance(whole, ir.Expr) and whole.op == "build_list"


def _dropped(variables: Any, used: Counter[str]) -> list[str]:
    """Count one use less of each of some variables. Return the names of those that are no longer used."""
    names = [each.name for each in variables if isinstance(each, ir.Var)]
    used.subtract(names)
    return [name for name in dict.fromkeys(names) if not used[name]]


def _has_no_effect(value: Any, typemap: Any) -> bool:
    if isinstance(value, ir.Var | ir.Const | ir.Global | ir.FreeVar):
        return True
    if not isinstance(value, ir.Expr):
        return False
    if value.op == "call":
        return getattr(typemap[value.func.name], "typing_key", None) is np.empty
    return value.op in ("build_list", "build_tuple", "static_getitem", "getattr")


# None is inherited from the first caller: other callers may have others.
_OPTIONS: dict[str, Any] = {"fastmath": False, "boundscheck": False, "error_model": "numpy"}


@functools.cache
def _helper(function: Any) -> Any:
    made: Any = numba.njit(**_OPTIONS)(function)
    link_only(made, is_helper=True)
    return made


_BY_LAYOUT = {
    (1, "C"): _add_to_vector,
    (1, "A"): _add_to_vector,
    (2, "C"): _add_to_rows,
    (2, "A"): _add_to_rows,
    (2, "F"): _add_to_columns,
}
