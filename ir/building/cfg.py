"""Edits of the control-flow graph that keep the phis consistent. The passes are built from these.

    split_edge(function, b0, b3)        # b0: branch %c, b1, b3     becomes     b0: branch %c, b1, b4     b4: jump b3

New blocks are appended at the end of the function; `order_blocks` moves them to where a reader expects them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from zygote_py.ir.analysis import loop_nest, reverse_postorder
from zygote_py.ir.core import Block, Function, Instr, Jump, Operand, Phi, Type, predecessors, retarget
from zygote_py.ir.types import common_type
from zygote_py.ir.walks import Use


def rename_incoming(block: Block, old: Block, new: Block) -> None:
    """Rename the predecessor of an edge from `old` to `new` in the phis of `block`."""
    for phi in block.phis:
        phi.incoming = {new if pred is old else pred: operand for pred, operand in phi.incoming.items()}


def remove_incoming(block: Block, pred: Block) -> None:
    """Remove the operands of the edge from `pred`, which is gone."""
    for phi in block.phis:
        del phi.incoming[pred]


def split_edge(function: Function, pred: Block, successor: Block) -> Block:
    """Insert an empty block on an edge and return it."""
    block = Block(loc=successor.loc)
    block.terminator = Jump(successor)
    function.blocks.append(block)
    retarget(pred, successor, block)
    rename_incoming(successor, pred, block)
    return block


def merge_edges(function: Function, preds: Sequence[Block], successor: Block) -> Block:
    """Merge the edges from `preds` to `successor` in a new block, with the phis this requires, and return it."""
    block = Block(loc=successor.loc)
    block.terminator = Jump(successor)
    function.blocks.append(block)
    for pred in preds:
        retarget(pred, successor, block)
    for phi in successor.phis:
        phi.incoming[block] = joined(block, {pred: phi.incoming.pop(pred) for pred in preds}, phi.type, phi.hint)
    return block


def joined(block: Block, incoming: Mapping[Block, Operand], type: Type, hint: str = "") -> Operand:
    """Return the value that arrives in `block` from its predecessors: the common operand, or else a new phi there.

    It has the given type, or an array type of any order where the operands differ in order.
    """
    operands = list(incoming.values())
    if all(operand == operands[0] for operand in operands):
        return operands[0]
    phi = Phi(reduce(common_type, (operand.type for operand in operands), type), hint, incoming=incoming)
    block.phis.append(phi)
    return phi


def place_before(block: Block, instr: Instr, where: Sequence[Use]) -> None:
    """Insert an instruction in a block that dominates all uses of its value, before the first of them."""
    users = {use.user for use in where}
    places = (place for place, each in enumerate(block.instrs) if each in users)
    block.instrs.insert(next(places, len(block.instrs)), instr)


def drop_unreachable(function: Function) -> None:
    """Remove the unreachable blocks, and the edges from them."""
    reachable = set(reverse_postorder(function))
    if len(reachable) == len(function.blocks):
        return
    for block in function.blocks:
        if block not in reachable:
            for successor in block.successors:
                if successor in reachable:
                    remove_incoming(successor, block)
    function.blocks = [block for block in function.blocks if block in reachable]


def order_blocks(function: Function) -> None:
    """Sort the blocks, and the operands of phis, in a reverse postorder that keeps each loop contiguous.

    Unreachable blocks are removed.
    """
    drop_unreachable(function)
    nest = loop_nest(function)
    # The block finished first comes last: the exit of a loop, and of two equivalent successors, `orelse`.
    function.blocks = reverse_postorder(function, lambda block: sorted(block.successors, key=nest.depth, reverse=True))
    for block, preds in predecessors(function).items():
        for phi in block.phis:
            phi.incoming = {pred: phi.incoming[pred] for pred in preds}
