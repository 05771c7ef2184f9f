"""Merge blocks in straight lines, and remove branches without effect.

    b0:                             b0:                 b0:                             b0:
      %a = mul %x, %x : f64           %a = mul ...        branch %c, b1, b2               jump b3
      jump b1                         %b = add ...      b1:  jump b3
    b1:                       ->      ...               b2:  jump b3              ->
      %b = add %a, %x : f64                             b3:                             b3:
      ...                                                 %t: bool = phi b1: True,        ... %c for %t
                                                                     b2: False
The pass preserves canonical form: no critical edges appear, and preheaders, latches and binary merges remain.
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir.building.cfg import remove_incoming, rename_incoming
from zygote_py.ir.core import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    Jump,
    Operand,
    Value,
    predecessors,
)
from zygote_py.ir.walks import replace_uses, resolved


def merge_blocks(function: Function) -> None:
    """Merge straight lines of blocks, and remove branches with empty arms."""
    merger = _Merger(function)
    pending = list(reversed(function.blocks))
    while pending:
        block = pending.pop()
        if block not in merger.removed and (merger.absorb_successor(block) or merger.remove_branch(block)):
            pending += [*merger.preds[block], block]
    if merger.removed or merger.replaced:
        function.blocks = [block for block in function.blocks if block not in merger.removed]
        replace_uses(function, merger.replaced)


class _Merger:
    def __init__(self, function: Function) -> None:
        self.entry = function.entry
        self.preds = predecessors(function)
        self.removed: set[Block] = set()
        self.replaced: dict[Value, Operand] = {}

    def absorb_successor(self, block: Block) -> bool:
        """Append the only successor of a block, if the block is its only predecessor."""
        match block.terminator:
            case Jump(successor) if successor is not block and self.preds[successor] == [block]:
                pass
            case _:
                return False
        self.replaced |= {phi: phi.incoming[block] for phi in successor.phis}
        if not block.instrs and not block.phis and block.loc is None:
            block.loc = successor.loc
        block.instrs += successor.instrs
        block.terminator = successor.terminator
        for after in block.successors:
            self.preds[after] = [block if pred is successor else pred for pred in self.preds[after]]
            rename_incoming(after, successor, block)
        self.removed.add(successor)
        return True

    def remove_branch(self, block: Block) -> bool:
        """Replace a branch by a jump to where its arms meet, if these are empty and the phis there do not need it."""
        match block.terminator:
            case Branch(condition, then, orelse):
                pass
            case _:
                return False
        if then is orelse:
            block.terminator = Jump(then)
            return True
        ways = (self.way(block, then), self.way(block, orelse))
        merge = ways[0] or then
        if merge is not (ways[1] or orelse) or merge is block:
            return False
        edges = [block if way is None else arm for way, arm in zip(ways, (then, orelse), strict=True)]
        arriving: list[Operand] = []
        for phi in merge.phis:
            operand = self.chosen(block, condition, phi.incoming[edges[0]], phi.incoming[edges[1]])
            if operand is None:
                return False
            arriving.append(operand)
        for edge in edges:
            remove_incoming(merge, edge)
            self.preds[merge].remove(edge)
            if edge is not block:
                self.removed.add(edge)
        for phi, operand in zip(merge.phis, arriving, strict=True):
            phi.incoming[block] = operand
        self.preds[merge].append(block)
        block.terminator = Jump(merge)
        return True

    def way(self, block: Block, arm: Block) -> Block | None:
        """Return the target of an empty arm of a branch, or None if the arm is not empty."""
        match arm.terminator:
            case Jump(target) if not arm.phis and not arm.instrs and self.preds[arm] == [block]:
                return target
            case _:
                return None

    def chosen(self, block: Block, condition: Operand, then: Operand, orelse: Operand) -> Operand | None:
        """Return the value of a phi of the two arms, if it can be expressed without the branch."""
        if resolved(then, self.replaced) == resolved(orelse, self.replaced):
            return then
        match then, orelse:
            case Const(True, types.boolean), Const(False, types.boolean):
                return condition
            case Const(False, types.boolean), Const(True, types.boolean):
                negated = Instr(operator.not_, (condition,), types.boolean)
                block.instrs.append(negated)
                return negated
            case _:
                return None
