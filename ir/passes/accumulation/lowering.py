"""Lower guarded products to selections, as the last step: selections would hide them from differentiation.

%g = guarded %t, %dy        ->      %c = ne %dy, 0.0 : bool
                                    %g = select %c, %t, 0.0 : f64

The accumulation into a whole array becomes the assignment of a sum, which `ir.arrays` expands into a loop:

accumulate %x, %v           ->      %t = add %x, %v : f64[:]
                                    setitem %x, %t
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.building.builder import Builder, rewrite
from zygote_py.ir.core import Const, Function, Instr, Operand, zero
from zygote_py.ir.types import Lanes


def write_out_guards(function: Function) -> bool:
    """Replace guarded products in place; return whether there were any."""
    found = any(instr.op is ops.guarded for instr in function.instrs())
    if found:
        rewrite(function, _write_out_guard)
    return found


def _write_out_guard(b: Builder, instr: Instr) -> None:
    if instr.op is ops.guarded:
        value, *factors = instr.args
        if isinstance(value.type, Lanes):
            count = value.type.count
            spread = [
                each if isinstance(each.type, Lanes) else b.call(ops.lanes, *(each,) * count, type=value.type)
                for each in factors
            ]
            instr.op, instr.args = ops.guarded_lanes, (value, *spread)
            b.add(instr)
            return
        matters: Operand = Const(True, types.boolean)
        for number, factor in enumerate(factors):
            test = b.call(operator.ne, factor, zero(factor.type), type=types.boolean)
            matters = b.call(operator.or_, matters, test, type=types.boolean) if number else test
        instr.op, instr.args = ops.select, (matters, value, zero(instr.type))
    b.add(instr)


def write_out_whole_accumulations(function: Function) -> None:
    """Replace the accumulations without an index."""
    rewrite(function, _write_out_accumulation)


def _write_out_accumulation(b: Builder, instr: Instr) -> None:
    array, *rest = instr.args or (instr,)
    kind = array.type
    if instr.op is not ops.accumulate or len(rest) != 1 or not isinstance(kind, types.Array):
        b.add(instr)
        return
    b.loc = instr.loc
    if kind.ndim:
        total = b.call(operator.add, array, *rest, type=kind.copy(layout="C"))
    else:
        both = [
            b.call(ops.getitem, each, type=kind.dtype) if isinstance(each.type, types.Array) else each
            for each in (array, *rest)
        ]
        total = b.call(operator.add, *both, type=kind.dtype)
    b.call(ops.setitem, array, total, type=types.none)
