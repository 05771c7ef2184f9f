"""Indices that are the same in all rounds of a loop, though the loop computes them: `t + 1`, of a loop around it."""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir.analysis import Loop, invariant
from zygote_py.ir.core import Block, Instr, Operand

_OPS = (operator.add, operator.sub, operator.mul)
_DEPTH = 4  # operations within operations


def key_of(operand: Operand, loop: Loop, depth: int = _DEPTH) -> object:
    """Return what is equal for two operands that are the same integer in all rounds of a loop; None for others."""
    if invariant(operand, loop):
        return operand
    if not isinstance(operand, Instr) or operand.op not in _OPS or not isinstance(operand.type, types.Integer):
        return None
    keys = [key_of(each, loop, depth - 1) for each in operand.args] if depth else [None]
    return None if None in keys else (operand.op, operand.type, *keys)


def computed_before(operand: Operand, loop: Loop, block: Block) -> Operand:
    """Return such an integer, computed at the end of a block before the loop."""
    if invariant(operand, loop):
        return operand
    assert isinstance(operand, Instr)
    made = operand.copy(tuple(computed_before(each, loop, block) for each in operand.args), with_origin=False)
    block.instrs.append(made)
    return made
