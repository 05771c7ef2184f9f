"""Split merges of more than two predecessors, other than loop headers, into merges of two.

    b4:                                            b5:
      %r: f64 = phi b1: %x, b2: %y, b3: %z           %r1: f64 = phi b2: %y, b3: %z
                                          ->         jump b4
                                                   b4:
                                                     %r2: f64 = phi b1: %x, b5: %r1

Paths that diverge last merge first, so that the arms of an inner `if` merge before they meet those of the outer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from zygote_py.ir.analysis import DominatorTree, dominator_tree
from zygote_py.ir.building.cfg import merge_edges, order_blocks
from zygote_py.ir.core import Block, Function, predecessors


def make_merges_binary(function: Function) -> None:
    """Limit all blocks except loop headers to two predecessors. There must be no critical edges."""
    preds = predecessors(function)
    tree = dominator_tree(function)
    wide = [
        block
        for block in function.blocks
        if len(preds[block]) > 2 and not any(tree.dominates(block, pred) for pred in preds[block])
    ]
    if not wide:
        return
    rank: dict[Block, int] = {}
    depth: dict[Block, int] = {}
    for block in tree.preorder():
        idom = tree.idom[block]
        rank[block] = len(rank)
        depth[block] = 0 if idom is None else depth[idom] + 1
    for block in wide:
        _merge_in_pairs(function, block, sorted(preds[block], key=rank.__getitem__), tree, depth)
    order_blocks(function)


def _merge_in_pairs(
    function: Function, block: Block, order: Sequence[Block], tree: DominatorTree, depth: dict[Block, int]
) -> None:
    """Merge neighbours in the order of the dominator tree, those with the deepest common dominator first."""
    # A stack of merged edges, each with the depth at which it diverged from the one below; that depth only grows.
    stack: list[tuple[Block, int]] = []
    for pred, parted in zip(order, [-1, *_parted(order, tree, depth)], strict=True):
        while len(stack) > 1 and stack[-1][1] >= parted:
            _merge_top(function, block, stack)
        stack.append((pred, parted))
    while len(stack) > 2:
        _merge_top(function, block, stack)


def _merge_top(function: Function, block: Block, stack: list[tuple[Block, int]]) -> None:
    second, _ = stack.pop()
    first, parted = stack.pop()
    stack.append((merge_edges(function, [first, second], block), parted))


def _parted(order: Sequence[Block], tree: DominatorTree, depth: dict[Block, int]) -> list[int]:
    """Return the depth of the nearest common dominator of each block and the one before it."""
    found: list[int] = []
    for before, block in pairwise(order):
        common: Block = before
        while not tree.dominates(common, block):
            parent = tree.idom[common]
            assert parent is not None
            common = parent
        found.append(depth[common])
    return found
