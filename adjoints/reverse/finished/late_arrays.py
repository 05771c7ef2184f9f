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

from zygote_py.ir import Block, Function, Instr, LoopNest, Param, Use, loop_nest, ops, uses


def allocate_late(function: Function) -> None:
    """Move what makes arrays to the blocks in which these are first needed, in place."""
    made = [(block, instr) for block in function.blocks for instr in block.instrs if _is_movable(instr)]
    if not made:
        return
    used, nest = uses(function), loop_nest(function)
    for block, instr in made:
        if where := used[instr]:
            target = _where(nest, block, where)
            if target is not block:
                block.instrs.remove(instr)
                users = {use.user for use in where if use.block is target}
                places = [place for place, each in enumerate(target.instrs) if each in users]
                target.instrs.insert(places[0] if places else len(target.instrs), instr)


def _is_movable(instr: Instr) -> bool:
    """Return whether an instruction makes an array, of zeros or without any values, of a shape that is always one."""
    if not isinstance(instr.type, types.Array):
        return False
    if instr.op in (np.zeros_like, np.empty_like):
        return isinstance(instr.args[0], Param)
    is_made = instr.op in (ops.zeros, ops.record)
    return is_made and all(isinstance(each, Instr) and each.op is ops.dim for each in instr.args)


def _where(nest: LoopNest, block: Block, where: list[Use]) -> Block:
    """Return the last block before all uses, in no loop that the array is made outside of."""
    target = nest.tree.nearest(use.at for use in where)
    while nest.innermost(target) is not nest.innermost(block):
        above = nest.tree.idom[target]
        assert above is not None
        target = above
    return target
