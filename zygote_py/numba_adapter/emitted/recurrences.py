"""Guards in recurrences of adjoints as branches that the processor predicts.

    dy = phi(seed, dx)                          # from round to round
    p = dy * factor
    dx = p if dy != 0.0 else 0.0                # zero times infinity is zero

As a selection, each round waits for the comparison and the choice, which takes longer than the product. But an adjoint
that is handed on from round to round is hardly ever zero in one round and not in the next. So where the zero is taken
is said to be unlikely: LLVM makes a branch of it, and the next round begins with the product. Elsewhere an adjoint may
be zero at random, such as that of `max(x, 0.0)`, and selections stay.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zygote_py.ir import is_left_out
from zygote_py.numba_adapter.base import IRPass
from zygote_py.numba_adapter.base.internals import ir
from zygote_py.numba_adapter.base.ir_walks import used_by
from zygote_py.numba_adapter.emitted.lowering.selection import mostly, select


class PredictGuards(IRPass):
    """The pass; variables are assigned once."""

    def change(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        if is_left_out("predicted-guards"):
            return False
        blocks = state.func_ir.blocks.values()
        assigned = [each for block in blocks for each in block.body if isinstance(each, ir.Assign)]
        values = {each.target.name: each.value for each in assigned}
        guards = {name: compared for name, value in values.items() if (compared := _guarded_by(value, values))}
        if not guards:
            return False
        number = _recurrences({each.target.name: [used.name for used in used_by(each)] for each in assigned})
        chosen = {name for name, compared in guards.items() if number.get(name, -1) == number.get(compared, -2)}
        for block in blocks:
            block.body = [new for each in block.body for new in _predicted(each, chosen)]
        return bool(chosen)


def _guarded_by(value: Any, values: Mapping[str, Any]) -> str | None:
    """Return the variable that is compared with zero if this selects something or zero by it."""
    if not isinstance(value, ir.Expr) or value.op != "call" or not _is_global(values.get(value.func.name), select):
        return None
    condition, _, otherwise = value.args
    return _compared(condition, values) if _is_zero(values.get(otherwise.name)) else None


def _compared(condition: Any, values: Mapping[str, Any]) -> str | None:
    """Return the variable that is compared with zero; None if this is another condition."""
    match values.get(condition.name):
        case ir.Var() as same:
            return _compared(same, values)
        case ir.Expr(op="call") as call if _is_global(values.get(call.func.name), bool):
            return _compared(call.args[0], values)
        case ir.Expr(op="binop") as compared if compared.fn is operator.ne and _is_zero(values.get(compared.rhs.name)):
            return str(compared.lhs.name)
        case _:
            return None


def _is_global(value: Any, known: object) -> bool:
    return isinstance(value, ir.Global) and value.value is known


def _is_zero(value: Any) -> bool:
    return isinstance(value, ir.Const) and type(value.value) is float and value.value == 0.0


def _predicted(statement: Any, chosen: set[str]) -> Iterator[Any]:
    """Yield a statement, with `mostly` in place of `select` if it is one of those chosen."""
    if not isinstance(statement, ir.Assign) or statement.target.name not in chosen:
        yield statement
        return
    target: Any = statement.target
    call: Any = statement.value
    function = target.scope.redefine("$mostly", statement.loc)
    yield ir.Assign(ir.Global("mostly", mostly, statement.loc), function, statement.loc)
    yield ir.Assign(ir.Expr.call(function, call.args, (), statement.loc), target, statement.loc)


def _recurrences(used: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Number the variables: those that depend on each other, in a loop, have the same number (Tarjan, 1972)."""
    order: dict[str, int] = {}  # when a variable was reached
    lowest: dict[str, int] = {}  # the first that is reached from it, of those without a number
    found: dict[str, int] = {}
    held: list[str] = []
    for root in used:
        if root in order:
            continue
        work = [(root, iter(used[root]))]
        order[root] = lowest[root] = len(order)
        held.append(root)
        while work:
            name, rest = work[-1]
            for each in rest:
                if each not in used:
                    continue
                if each not in order:
                    order[each] = lowest[each] = len(order)
                    held.append(each)
                    work.append((each, iter(used[each])))
                    break
                if each not in found:
                    lowest[name] = min(lowest[name], order[each])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                if lowest[name] == order[name]:
                    number = len(found)
                    while held and order[held[-1]] >= order[name]:
                        found[held.pop()] = number
    return found
