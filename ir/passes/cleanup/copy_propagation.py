"""Replace copies by their sources.

    %a = float %x : f64             # %x is f64 already
    %b = pos %a : f64               ->
    %c = select %p, %b, %b : f64
    return %c                               return %x

    %t = pack %x, %y : (f64, f64)
    return getitem %t, 1                    return %y

A component of a tuple that can only be None is None. Redundant phis count as copies. Copies of arrays do not: `pos` of
an array allocates a new array.
"""

from __future__ import annotations

import builtins
import operator

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Const, Function, Instr, Operand, Type, Value
from zygote_py.ir.passes.cleanup.redundant_phis import remove_redundant_phis
from zygote_py.ir.walks import replace


def propagate_copies(function: Function) -> None:
    """Replace redundant casts, `pos`, selections between equal operands, items of packed tuples and redundant phis."""
    remove_redundant_phis(function)
    copies: dict[Value, Operand] = {}
    for instr in function.instrs():
        if (source := copied(instr)) is not None:
            copies[instr] = source
            if isinstance(source, Instr) and not source.hint:
                source.hint = instr.hint  # prefer a name from the user's source to none
    replace(function, copies)


def copied(instr: Instr) -> Operand | None:
    """Return the operand that an instruction returns unchanged, or the constant None it returns, if there is one."""
    if instr.op is ops.getitem:
        if isinstance(instr.type, types.NoneType) and isinstance(instr.args[0].type, types.BaseTuple):
            return Const(None, types.none)
        item = _item(instr)
        return item if item is not None and is_kind_of(item.type, instr.type) else None
    if not isinstance(instr.type, types.Number | types.Boolean):
        return None
    match instr.args:
        case (source,) if source.type == instr.type:
            if instr.op is builtins.round:  # of an integer; a float stays a float only with a number of digits
                return source if isinstance(instr.type, types.Integer) else None
            if ops.of(instr.op).family is ops.Family.CAST or (
                instr.op is operator.pos and isinstance(instr.type, types.Number)
            ):
                return source
        case (_, then, orelse) if instr.op is ops.select and then == orelse and then.type == instr.type:
            return then
    return None


def is_kind_of(found: Type, asked: Type) -> bool:
    """Return whether a type is the one that is asked for, or that of arrays of whose memory more is known."""
    if isinstance(found, types.Array) and isinstance(asked, types.Array) and asked.layout == "A":
        found = found.copy(layout="A")
    return found == asked


def _item(read: Instr) -> Operand | None:
    """Return the packed operand where a component of a tuple is read; None if it is not known."""
    match read.args:
        case (Instr() as whole, Const(value=int() as number)):
            if whole.op is ops.getitem:
                inner = _item(whole)
                whole = inner if isinstance(inner, Instr) else whole
            return whole.args[number] if whole.op is ops.pack else None
    return None
