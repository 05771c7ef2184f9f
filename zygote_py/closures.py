"""Gradients with respect to what an inner function captures, where it is differentiated in another function.

    def g(y, closure_):                     def g(y, closure_, w):
        return closure_.w * y       ->          return w * y

What it captures of the function around is in its closure, the last parameter. What is asked for by name becomes a
parameter of its own while the gradient is made, and is taken from the closure again in what was made.
"""

from __future__ import annotations

import dataclasses

from zygote_py.frontend import LoweredFunction
from zygote_py.ir import ops
from zygote_py.ir.building.builder import inserting
from zygote_py.ir.core import Const, Function, Instr, Operand, Param, Value
from zygote_py.ir.types import components_of
from zygote_py.ir.walks import replace, replace_uses


def with_fields(lowered: LoweredFunction, names: tuple[str, ...]) -> LoweredFunction:
    """The function with a parameter more for each variable in its closure, which are called `names`."""
    function = lowered.function
    count = lowered.argument_count + len(lowered.hidden)
    if not names or len(function.params) <= count:
        return lowered
    closure = function.params[count]
    params = [Param(kind, name, closure.loc) for name, kind in zip(names, components_of(closure.type), strict=True)]
    taken: dict[Value, Operand] = {}
    for instr in function.instrs():
        match instr:
            case Instr(op=ops.getitem, args=(whole, Const(value=int(number)))) if whole is closure:
                taken[instr] = params[number]
    replace(function, taken)
    function.params += params
    return dataclasses.replace(lowered, fields=names)


def put_fields_back(function: Function, lowered: LoweredFunction) -> None:
    """Let a derivative of such a function take those variables from the closure again, in place."""
    if not lowered.fields:
        return
    count = lowered.argument_count + len(lowered.hidden)
    closure, fields = function.params[count], function.params[count + 1 :]
    with inserting(function.entry, loc=closure.loc) as b:
        made = [b.item(closure, number, field.hint) for number, field in enumerate(fields)]
    replace_uses(function, dict(zip(fields, made, strict=True)))
    function.params = function.params[: count + 1]
