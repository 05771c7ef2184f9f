"""Arrays for gradients are made where they are needed, not at the start of a function.

    dw = np.zeros_like(w)                       t = x @ w
    t = x @ w                           ->      ...
    ...                                         dw = np.zeros_like(w)
    add_product(dw, x, dt)                      add_product(dw, x, dt)

The gradients by arguments have to exist where the reverse sweep adds to them. What the function needs for itself
before that is free again by then, and the processor still has at hand what was set to zero. An array stays outside of
the loops that it was made outside of.
"""

from __future__ import annotations

import numpy as np
from numba import types

from zygote_py.ir import Function, Instr, Param, loop_nest, ops, place_before, uses


def allocate_late(function: Function) -> None:
    """Move what makes arrays to the blocks in which these are first needed, in place."""
    made = [(block, instr) for block in function.blocks for instr in block.instrs if _is_movable(instr)]
    if not made:
        return
    used, nest = uses(function), loop_nest(function)
    for block, instr in made:
        if where := used[instr]:
            target = nest.nearest((use.at for use in where), nest.innermost(block))
            if target is not block:
                block.instrs.remove(instr)
                place_before(target, instr, where)


def _is_movable(instr: Instr) -> bool:
    """Return whether an instruction makes an array, of zeros or without any values, of a shape that is always one."""
    if not isinstance(instr.type, types.Array):
        return False
    if instr.op in (np.zeros_like, np.empty_like):
        return isinstance(instr.args[0], Param)
    is_made = instr.op in (ops.zeros, ops.record)
    return is_made and all(isinstance(each, Instr) and each.op is ops.dim for each in instr.args)
