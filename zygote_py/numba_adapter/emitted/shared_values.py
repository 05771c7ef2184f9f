"""Constants, functions and tuples of a block, loaded and made once; long tuples made at once.

    $1 = (i, j)                             $1 = (i, j)
    x = a[$1]                               x = a[$1]
    $2 = (i, j)                 ->
    y = b[$2]                               y = b[$1]

Python loads a constant or a function, and makes an index, each time that it needs it, and each is a statement that
Numba types and lowers: a quarter of those of a Hessian, where five arrays at a time are read at the same index.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Collection, Mapping
from typing import Any

from zygote_py.numba_adapter.base import IRPass
from zygote_py.numba_adapter.base.internals import ir
from zygote_py.numba_adapter.base.ir_walks import used_by
from zygote_py.numba_adapter.emitted.linear_ssa import with_names


class ShareValues(IRPass):
    """The pass; variables are assigned once."""

    def change(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        return join_tuples(state.func_ir.blocks) | share_values(state.func_ir.blocks)


def join_tuples(blocks: Mapping[int, Any]) -> bool:
    """Make each tuple of more than thirty items at once, in place, and not as a sum. Return whether anything changed.

    $1 = (a, b, ..)                         $1 = (a, b, ..)         # which nothing uses
    $2 = (y, z, ..)             ->          $2 = (y, z, ..)
    t = $1 + $2                             t = (a, b, .., y, z, ..)
    """
    is_changed = False
    for block in blocks.values():
        made: dict[str, list[Any]] = {}
        joined: set[str] = set()
        for statement in block.find_insts(ir.Assign):
            value = statement.value
            if not isinstance(value, ir.Expr) or value.op not in ("build_tuple", "binop"):
                continue
            if value.op == "build_tuple":
                made[statement.target.name] = value.items
            elif value.fn is operator.add and {value.lhs.name, value.rhs.name} <= made.keys():
                items = made[statement.target.name] = [*made[value.lhs.name], *made[value.rhs.name]]
                statement.value = ir.Expr.build_tuple(items, value.loc)
                joined |= {value.lhs.name, value.rhs.name}
        if joined:
            is_changed = True
            joined -= {used.name for other in blocks.values() for each in other.body for used in used_by(each)}
            block.body = [
                each for each in block.body if not (isinstance(each, ir.Assign) and each.target.name in joined)
            ]
    return is_changed


def share_values(blocks: Mapping[int, Any]) -> bool:
    """Let each block load and make such values once, in place. Return whether anything was changed."""
    shared: dict[str, Any] = {}
    # Numba assigns to a phi right after the variable that it takes, which therefore must not be made earlier.
    taken = {name for block in blocks.values() for each in block.body if _is_phi(each) for name in _names(each)}
    for block in blocks.values():
        made: dict[tuple[object, ...], Any] = {}
        modules: set[str] = set()
        body = []
        for statement in block.body:
            key = _key(statement.value, shared, modules) if isinstance(statement, ir.Assign) else None
            known = made.setdefault(key, statement.target) if key is not None else None
            if known is not None and known is not statement.target and statement.target.name not in taken:
                shared[statement.target.name] = known
                continue
            if known is not None and isinstance(statement.value, ir.Global) and inspect.ismodule(statement.value.value):
                modules.add(known.name)
            body.append(statement)
        block.body = body
    if shared:
        for block in blocks.values():
            block.body = [
                with_names(each, replaced)
                if (replaced := {name: shared[name] for name in _names(each) if name in shared})
                else each
                for each in block.body
            ]
    return bool(shared)


def _is_phi(statement: Any) -> bool:
    return isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr) and statement.value.op == "phi"


def _names(statement: Any) -> list[str]:
    if _is_phi(statement):
        return [each.name for each in statement.value.incoming_values if each is not ir.UNDEFINED]
    return [each.name for each in used_by(statement)]


def _key(value: Any, shared: Mapping[str, Any], modules: Collection[str]) -> tuple[object, ...] | None:
    """Return what a value is known by if it may take the place of another; None if it may not."""
    match value:
        case ir.Const(value=int() | float() | str() | None as constant):
            return "constant", type(constant), repr(constant), value.use_literal_type
        case ir.Global() | ir.FreeVar():
            return "global", type(value), value.name, id(value.value)
        case ir.Expr(op="getattr"):
            of = shared.get(value.value.name, value.value).name
            return ("attribute", of, value.attr) if of in modules else None
        case ir.Expr(op="build_tuple"):
            return "tuple", *(shared.get(item.name, item).name for item in value.items)
    return None
