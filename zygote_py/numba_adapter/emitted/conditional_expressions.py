"""Conditional expressions of emitted functions without branches: both values are computed, and one is selected.

    b0:                                         b0:
      branch %c, b1, b2                           %a = call np.divide(%x, %y)
    b1:                                           %b = const 0.0
      %a = call np.divide(%x, %y)                 %r = call select(%c, %a, %b)
      %r = %a                           ->        ...
      jump b3
    b2:
      %b = const 0.0
      %r = %b
      jump b3
    b3:
      ...

Each such branch costs Numba four blocks, which its passes go through one by one: a fifth of the compile time of a
Hessian. Only arithmetic that cannot fail is computed in advance; LLVM does the same in simple cases.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base import IRPass
from zygote_py.numba_adapter.base.internals import ir
from zygote_py.numba_adapter.emitted.lowering.selection import select

_HARMLESS = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor, operator.neg),
        *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.not_),
    }
)
_IDENTITIES = (operator.is_, operator.is_not)
_PHI = "$phi"  # how the names of variables start that hold what Python has on its stack


class JoinBranches(IRPass):
    """Selects in place of branches that only compute the value of a conditional expression."""

    def change(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        blocks = state.func_ir.blocks
        entries = _entries(blocks)
        changed = False
        for label in sorted(blocks, reverse=True):  # the inner expressions come later
            while label in blocks and (found := _diamond(blocks, entries, label)) is not None:
                _join(blocks, entries, found)
                changed = True
        return changed


def _entries(blocks: Any) -> dict[int, int]:
    """Return how many ways lead to each block."""
    entries = dict.fromkeys(blocks, 0)
    entries[min(blocks)] += 1
    for block in blocks.values():
        for target in block.terminator.get_targets():
            entries[target] += 1
    return entries


@dataclass(frozen=True, slots=True)
class _Diamond:
    """A branch, its two ways, and where they meet: labels of blocks."""

    head: int
    then: int
    orelse: int
    meet: int


def _diamond(blocks: Any, entries: dict[int, int], label: int) -> _Diamond | None:
    """Return the conditional expression that ends in a block, if both of its values may be computed."""
    branch = blocks[label].terminator
    if not isinstance(branch, ir.Branch) or branch.truebr == branch.falsebr:
        return None
    ways = [blocks[each] for each in (branch.truebr, branch.falsebr)]
    ends = [way.terminator for way in ways]
    if any(entries[each] != 1 for each in (branch.truebr, branch.falsebr)):
        return None
    if not all(isinstance(end, ir.Jump) for end in ends) or ends[0].target != ends[1].target:
        return None
    results = [set(_results(way)) for way in ways]
    if results[0] != results[1] or not all(map(_is_harmless, ways)) or _asks_for_none(blocks[label]):
        return None
    return _Diamond(label, branch.truebr, branch.falsebr, ends[0].target)


def _asks_for_none(head: Any) -> bool:
    """Return whether a branch asks if something is None: Numba then drops one of the ways, which may have no types."""
    match _last_value(head, head.terminator.cond):
        case ir.Expr(op="call") as call if len(call.args) == 1:
            compared = _last_value(head, call.args[0])
            return isinstance(compared, ir.Expr) and compared.op == "binop" and compared.fn in _IDENTITIES
        case _:
            return False


def _last_value(block: Any, variable: Any) -> Any:
    assigned = (each for each in reversed(block.body) if isinstance(each, ir.Assign))
    return next((each.value for each in assigned if each.target.name == variable.name), None)


def _results(way: Any) -> Iterator[str]:
    """Yield the variables that a way assigns and that others may use."""
    for statement in way.body[:-1]:
        if isinstance(statement, ir.Assign) and not _is_temporary(statement.target.name):
            yield statement.target.name


def _is_temporary(name: str) -> bool:
    return name.startswith("$") and not name.startswith(_PHI)


def _is_harmless(way: Any) -> bool:
    """Return whether a way only computes, cannot raise an exception, and takes little time."""
    known: dict[str, Any] = {}  # what variables hold that are loaded in it
    for statement in way.body[:-1]:
        if not isinstance(statement, ir.Assign):
            return False
        name, value = statement.target.name, statement.value
        if not (name.startswith("$")):
            return False
        match value:
            case ir.Const() | ir.Var():
                pass
            case ir.Global() | ir.FreeVar():
                known[name] = value.value
            case ir.Expr(op="getattr") if known.get(value.value.name) is np and value.attr == "divide":
                known[name] = np.divide
            case ir.Expr(op="binop" | "unary") if value.fn in _HARMLESS:
                pass
            case ir.Expr(op="call") if _is_known_call(value, known.get(value.func.name)):
                pass
            case _:
                return False
    return True


def _is_known_call(call: Any, function: Any) -> bool:
    is_plain = not call.kws and call.vararg is None and call.varkwarg is None
    return is_plain and (function is select or function is bool or (function is np.divide and len(call.args) == 2))


def _join(blocks: Any, entries: dict[int, int], found: _Diamond) -> None:
    """Compute both ways in the head, and select the results; what follows is part of it if nothing else leads there."""
    head, branch = blocks[found.head], blocks[found.head].terminator
    ways = [blocks.pop(each) for each in (found.then, found.orelse)]
    names = list(dict.fromkeys(_results(ways[0])))
    scope, loc = head.scope, branch.loc
    body = head.body[:-1]
    values: list[dict[str, Any]] = []
    for way in ways:
        last: dict[str, Any] = {}
        for statement in way.body[:-1]:
            if statement.target.name in names:
                source = statement.value
                if not isinstance(source, ir.Var):
                    source = scope.redefine("$value", loc)
                    body.append(ir.Assign(statement.value, source, statement.loc))
                last[statement.target.name] = source
            else:
                body.append(statement)
        values.append(last)
    chosen = None
    for name in names:
        first, second = (last[name] for last in values)
        made: Any = first
        if first.name != second.name:
            if chosen is None:
                chosen = scope.redefine("$select", loc)
                body.append(ir.Assign(ir.Global("select", select, loc), chosen, loc))
            made = ir.Expr.call(chosen, (branch.cond, first, second), (), loc)
        body.append(ir.Assign(made, ir.Var(scope, name, loc), loc))
    entries[found.meet] -= 1
    if entries[found.meet] == 1:
        body += blocks.pop(found.meet).body
    else:
        body.append(ir.Jump(found.meet, loc))
    head.body = body
