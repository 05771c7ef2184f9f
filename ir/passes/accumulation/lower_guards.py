"""Lower guarded products to selections, as the last step: selections would hide them from differentiation.

%g = guarded %t, %dy        ->      %c = ne %dy, 0.0 : bool
                                    %g = select %c, %t, 0.0 : f64
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.building.builder import Builder, rewrite
from zygote_py.ir.core import Const, Function, Instr, Operand, zero


def write_out_guards(function: Function) -> bool:
    """Replace guarded products in place; return whether there were any."""
    found = any(instr.op is ops.guarded for instr in function.instrs())
    if found:
        rewrite(function, _write_out)
    return found


def _write_out(b: Builder, instr: Instr) -> None:
    if instr.op is ops.guarded:
        value, *factors = instr.args
        matters: Operand = Const(True, types.boolean)
        for number, factor in enumerate(factors):
            test = b.call(operator.ne, factor, zero(factor.type), type=types.boolean)
            matters = b.call(operator.or_, matters, test, type=types.boolean) if number else test
        instr.op, instr.args = ops.select, (matters, value, zero(instr.type))
    b.add(instr)
