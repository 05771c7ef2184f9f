"""Functions that return what is differentiated and something else beside it: `has_aux=True`.

    primal f(%x: f64) -> (f64, f64[:])              b3:  return %whole
    ->  primal f(%x: f64) -> f64                    b3:  %copied = copy %pred
                                                         return %loss, %copied

Only the first value that a primal returns is differentiated; the joint function passes the second on. Arrays in it are
copies, since the reverse sweep may rewind what the function has written.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import types

from zygote_py.adjoints.errors import refuse
from zygote_py.frontend import LoweredFunction
from zygote_py.ir import ops
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Type
from zygote_py.ir.types import components_of, copied_type, with_components
from zygote_py.requests import Request, refuse_aux


def split_auxiliary(request: Request, lowered: LoweredFunction) -> LoweredFunction:
    """Let a primal in canonical form return the loss, and behind it the rest, in place. Raises DifferentiationError."""
    kind = lowered.result_type
    parts = components_of(kind) if isinstance(kind, types.BaseTuple) else ()
    if len(parts) != 2:
        raise refuse_aux(kind, request.loc)
    block, end = lowered.function.exit()
    (whole,) = end.args
    loss, aux = _items(block, whole, parts)
    end.args = (loss, _copied(block, aux, parts[1], request))
    return replace(lowered, result_type=parts[0])


def with_auxiliary(joint: Function, with_value: bool) -> None:
    """Let a joint function return one value: `(gradient, aux)`, or `((value, aux), gradient)`; in place."""
    block, end = joint.exit()
    result, aux = end.args
    if with_value:
        assert isinstance(result, Instr)
        value, gradient = result.args
        end.args = (_pack(block, (_pack(block, (value, aux)), gradient)),)
    else:
        end.args = (_pack(block, (result, aux)),)


def _items(block: Block, whole: Operand, kinds: tuple[Type, ...]) -> tuple[Operand, ...]:
    if isinstance(whole, Instr) and whole.op is ops.pack:
        return whole.args
    taken = [Instr(ops.getitem, (whole, Const(number, types.int64)), kind) for number, kind in enumerate(kinds)]
    block.instrs += taken
    return tuple(taken)


def _copied(block: Block, value: Operand, kind: Type, request: Request) -> Operand:
    """The same with copies of the arrays in it."""
    if isinstance(kind, types.Array):
        copy = Instr(np.copy, (value,), copied_type(value.type), getattr(value, "hint", ""))
        block.instrs.append(copy)
        return copy
    if isinstance(kind, types.BaseTuple) and not isinstance(kind, types.Callable):
        parts = components_of(kind)
        items = [_copied(block, *each, request) for each in zip(_items(block, value, parts), parts, strict=True)]
        return _pack(block, tuple(items), kind)
    if isinstance(kind, types.List | types.ListType):
        raise refuse("with `has_aux=True` the function returns a list", request.loc, hint="return an array or a tuple")
    return value


def _pack(block: Block, items: tuple[Operand, ...], like: Type | None = None) -> Instr:
    kinds = tuple(item.type for item in items)
    made = Instr(ops.pack, items, types.Tuple(kinds) if like is None else with_components(like, kinds))
    block.instrs.append(made)
    return made
