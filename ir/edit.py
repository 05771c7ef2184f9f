"""Edits of the control-flow graph that keep the phis right. The passes are made of these.

    split_edge(function, b0, b3)        # b0: branch %c, b1, b3     becomes     b0: branch %c, b1, b4     b4: jump b3

They append new blocks at the end of the function; `order_blocks` puts them where a reader expects them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from zygote_py.ir.core import Block, Function, Jump, Operand, Phi, Type, predecessors, retarget
from zygote_py.ir.dominators import reverse_postorder
from zygote_py.ir.loops import loop_nest
from zygote_py.ir.types import common_type


def rename_incoming(block: Block, old: Block, new: Block) -> None:
    """The edge that came from `old` comes from `new` now."""
    for phi in block.phis:
        phi.incoming = {new if pred is old else pred: operand for pred, operand in phi.incoming.items()}


def remove_incoming(block: Block, pred: Block) -> None:
    """The edge from `pred` is gone."""
    for phi in block.phis:
        del phi.incoming[pred]


def split_edge(function: Function, pred: Block, successor: Block) -> Block:
    """Put a new, empty block on an edge."""
    block = Block(loc=successor.loc)
    block.terminator = Jump(successor)
    function.blocks.append(block)
    retarget(pred, successor, block)
    rename_incoming(successor, pred, block)
    return block


def merge_edges(function: Function, preds: Sequence[Block], successor: Block) -> Block:
    """Lead the edges from `preds` to `successor` together in a new block, which has the phis that this takes."""
    block = Block(loc=successor.loc)
    block.terminator = Jump(successor)
    function.blocks.append(block)
    for pred in preds:
        retarget(pred, successor, block)
    for phi in successor.phis:
        phi.incoming[block] = joined(block, {pred: phi.incoming.pop(pred) for pred in preds}, phi.type, phi.hint)
    return block


def joined(block: Block, incoming: Mapping[Block, Operand], type: Type, hint: str = "") -> Operand:
    """What arrives in `block` from its predecessors: the operand, if they agree on one, or else a new phi there.

    It is of the type given, or of arrays in any order where those that arrive differ in it.
    """
    operands = list(incoming.values())
    if all(operand == operands[0] for operand in operands):
        return operands[0]
    phi = Phi(reduce(common_type, (operand.type for operand in operands), type), hint, incoming=incoming)
    block.phis.append(phi)
    return phi


def drop_unreachable(function: Function) -> None:
    """Remove the blocks that cannot be reached, and the edges from them."""
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
    """Put the blocks, and the operands of phis, into a reverse postorder in which loops are not torn apart.

    Blocks that cannot be reached are removed.
    """
    drop_unreachable(function)
    nest = loop_nest(function)
    # What is finished first comes last: the way out of a loop, and of two ways alike, `orelse`.
    function.blocks = reverse_postorder(function, lambda block: sorted(block.successors, key=nest.depth, reverse=True))
    for block, preds in predecessors(function).items():
        for phi in block.phis:
            phi.incoming = {pred: phi.incoming[pred] for pred in preds}
