"""Writes guarded products as selections, at the end: before that their derivatives would not be known.

%g = guarded %t, %dy        ->      %c = ne %dy, 0.0 : bool
                                    %g = select %c, %t, 0.0 : f64
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Function, Instr, zero


def write_out_guards(function: Function) -> bool:
    """Replace guarded products, in place; say whether there were any."""
    found = False
    for block in function.blocks:
        instrs: list[Instr] = []
        for instr in block.instrs:
            if instr.op is ops.guarded:
                found = True
                value, *factors = instr.args
                matters: Instr | None = None
                for factor in factors:
                    instrs.append(test := Instr(operator.ne, (factor, zero(factor.type)), types.boolean))
                    if matters is not None:
                        instrs.append(test := Instr(operator.or_, (matters, test), types.boolean))
                    matters = test
                assert matters is not None
                instr.op, instr.args = ops.select, (matters, value, zero(instr.type))
            instrs.append(instr)
        block.instrs = list(instrs)
    return found
