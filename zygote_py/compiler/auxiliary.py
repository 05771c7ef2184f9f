"""Functions that return a loss and auxiliary output: `has_aux=True`.

    primal f(%x: f64) -> (f64, f64[:])              b3:  return %whole
    ->  primal f(%x: f64) -> f64                    b3:  %copied = copy %pred
                                                         return %loss, %copied

Only the first value that a primal returns is differentiated; the joint function passes the second on. Its arrays are
copied, since the reverse sweep may rewind what the function has written.
"""

from __future__ import annotations

from dataclasses import replace

from numba import types

from zygote_py.adjoints import refuse
from zygote_py.compiler.request import Request, refuse_aux
from zygote_py.frontend import LoweredFunction
from zygote_py.ir import Builder, Function, Operand, Type, at_exit, components_of


def split_auxiliary(request: Request, lowered: LoweredFunction) -> LoweredFunction:
    """Let a primal in canonical form return the loss, then the rest, in place. Raises DifferentiationError."""
    kind = lowered.result_type
    parts = components_of(kind) if isinstance(kind, types.BaseTuple) else ()
    if len(parts) != 2:
        raise refuse_aux(kind, request.loc)
    if _holds_list(parts[1]):
        raise refuse("with `has_aux=True` the function returns a list", request.loc, hint="return an array or a tuple")
    b, end = at_exit(lowered.function)
    loss, aux = b.items(end.args[0])
    end.args = (loss, copied(b, aux))
    return replace(lowered, result_type=parts[0])


def with_auxiliary(joint: Function, with_value: bool) -> None:
    """Let a joint function return one value: `(gradient, aux)`, or `((value, aux), gradient)`; in place."""
    b, end = at_exit(joint)
    result, aux = end.args
    if with_value:
        value, gradient = b.items(result)
        end.args = (b.pack([b.pack([value, aux]), gradient]),)
    else:
        end.args = (b.pack([result, aux]),)


def copied(b: Builder, value: Operand) -> Operand:
    """Return a value with copies of the arrays in it."""
    kind = value.type
    if isinstance(kind, types.Array):
        return b.copy(value, getattr(value, "hint", ""))
    if isinstance(kind, types.BaseTuple) and not isinstance(kind, types.Callable):
        return b.pack([copied(b, item) for item in b.items(value)], kind)
    return value


def _holds_list(kind: Type) -> bool:
    if isinstance(kind, types.BaseTuple) and not isinstance(kind, types.Callable):
        return any(map(_holds_list, components_of(kind)))
    return isinstance(kind, types.List | types.ListType)
