"""A copy of a function's blocks, with the maps from old to new.

copy = clone(function)          # copy.function, copy.values[old value], copy.blocks[old block]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from zygote_py.ir.core import (
    Block,
    Branch,
    CameFrom,
    Function,
    Instr,
    Jump,
    Operand,
    Param,
    Phi,
    Raise,
    Return,
    Terminator,
    Value,
)

Mapped = Callable[[Operand], Operand]


@dataclass(frozen=True, eq=False, slots=True)
class Clone:
    """The copy, and what each value and block of the original has become."""

    function: Function
    values: dict[Value, Value]
    blocks: dict[Block, Block]


def clone(function: Function) -> Clone:
    """Copy `function`. Alphas and origins still refer to the values of the primal that they referred to."""
    values: dict[Value, Value] = {}
    blocks = {block: Block(block.loc, block.mirror) for block in function.blocks}
    for param in function.params:
        values[param] = Param(param.type, param.hint, param.loc)
    for block, copy in blocks.items():
        for phi in block.phis:
            values[phi] = new = Phi(phi.type, phi.hint, phi.loc)
            copy.phis.append(new)
        for instr in block.instrs:
            if isinstance(instr, CameFrom):
                replica: Instr | CameFrom = CameFrom(instr.block, instr.pred)
            else:
                replica = Instr(instr.op, instr.args, instr.type, instr.hint, instr.loc, instr.keywords, instr.origin)
            values[instr] = replica
            copy.instrs.append(replica)

    def mapped(operand: Operand) -> Operand:
        return values[operand] if isinstance(operand, Value) else operand

    for block, copy in blocks.items():
        for phi, new_phi in zip(block.phis, copy.phis, strict=True):
            new_phi.incoming = {blocks[pred]: mapped(operand) for pred, operand in phi.incoming.items()}
        for instr in copy.instrs:
            if isinstance(instr, Instr):
                instr.args = tuple(map(mapped, instr.args))
        copy.terminator = _clone_terminator(block.terminator, blocks, mapped)
    params = [param_copy for param in function.params if isinstance(param_copy := values[param], Param)]
    copied = Function(
        function.name, params, list(blocks.values()), function.kind, function.primal, function.loc, function.options
    )
    return Clone(copied, values, blocks)


def _clone_terminator(terminator: Terminator, blocks: dict[Block, Block], mapped: Mapped) -> Terminator:
    match terminator:
        case Jump(target):
            return Jump(blocks[target])
        case Branch(condition, then, orelse):
            return Branch(mapped(condition), blocks[then], blocks[orelse])
        case Return(values):
            return Return(tuple(map(mapped, values)))
        case Raise(exception, args):
            return Raise(exception, tuple(map(mapped, args)))
