"""Copying of functions, with maps from the original values and blocks to the copies.

copy = clone(function)          # copy.function, copy.values[old value], copy.blocks[old block]
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from zygote_py.ir.core import Block, Function, Param, Phi, Value, retarget
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.walks import map_operands


@dataclass(frozen=True, eq=False, slots=True)
class Clone:
    """A copied function, with the copy of each value and block of the original."""

    function: Function
    values: dict[Value, Value]
    blocks: dict[Block, Block]


def clone(function: Function) -> Clone:
    """Copy `function`. Alphas and origins still refer to the same values of the primal."""
    params = [Param(param.type, param.hint, param.loc) for param in function.params]
    values: dict[Value, Value] = dict(zip(function.params, params, strict=True))
    blocks = {block: Block(block.loc, block.mirror) for block in function.blocks}
    for block, new in blocks.items():
        new.phis = [Phi(phi.type, phi.hint, phi.loc) for phi in block.phis]
        new.instrs = [instr.copy() for instr in block.instrs]
        values |= zip(block.values, new.values, strict=True)
        new.terminator = copy(block.terminator)
        for successor in block.successors:
            retarget(new, successor, blocks[successor])
    for block, new in blocks.items():
        for phi, new_phi in zip(block.phis, new.phis, strict=True):
            new_phi.incoming = {blocks[pred]: operand for pred, operand in phi.incoming.items()}
    independent = frozenset(each for old in function.independent if isinstance(each := values.get(old), Phi))
    copied = replace(function, params=params, blocks=list(blocks.values()), independent=independent)
    map_operands(copied.blocks, lambda operand, _: values[operand] if isinstance(operand, Value) else operand)
    return Clone(copied, values, blocks)
