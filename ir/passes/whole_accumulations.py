"""Writes what is added to a whole array as a sum that is assigned, which `ir.arrays` makes a loop of.

accumulate %x, %v           ->      %t = add %x, %v : f64[:]
                                    setitem %x, %t
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Function, Instr, Operand, Type


def write_out_whole_accumulations(function: Function) -> None:
    """Replace the accumulations without an index."""
    for block in function.blocks:
        instrs: list[Instr] = []
        for instr in block.instrs:
            if instr.op is ops.accumulate and len(instr.args) == 2 and isinstance(instr.args[0].type, types.Array):
                array, value = instr.args
                kind = instr.args[0].type
                if kind.ndim == 0:
                    instrs += _of_one_element(instr, array, value, kind.dtype)
                    continue
                total = Instr(operator.add, (array, value), _contiguous(kind), "", instr.loc)
                instrs += [total, Instr(ops.setitem, (array, total), types.none, "", instr.loc)]
            else:
                instrs.append(instr)
        block.instrs = list(instrs)


def _contiguous(type: Type) -> Type:
    found: Type = type.copy(layout="C") if isinstance(type, types.Array) else type
    return found


def _of_one_element(instr: Instr, array: Operand, value: Operand, kind: Type) -> list[Instr]:
    """The same for an array without axes."""
    made = [read := Instr(ops.getitem, (array,), kind, "", instr.loc)]
    if isinstance(value.type, types.Array):
        made.append(value := Instr(ops.getitem, (value,), kind, "", instr.loc))
    made.append(total := Instr(operator.add, (read, value), kind, "", instr.loc))
    return [*made, Instr(ops.setitem, (array, total), types.none, "", instr.loc)]
