"""Edges in canonical form: a block on each critical edge, one preheader and one latch for each loop.

b0:  branch %c, b1, b2      ->      b0:  branch %c, b1, b3
b1:  jump b2                        b1:  jump b2
b2:  return %x                      b3:  jump b2
                                    b2:  return %x

b1:  %i: i64 = phi b0: 0, b2: %i2, b3: %i3      b1:  %i: i64 = phi b0: 0, b4: %i1
     ...                                             ...
b2:  jump b1                              ->    b2:  jump b4
b3:  jump b1                                    b3:  jump b4
                                                b4:  %i1: i64 = phi b2: %i2, b3: %i3
                                                     jump b1
"""

from __future__ import annotations

from zygote_py.ir.analysis import loop_nest
from zygote_py.ir.building.cfg import merge_edges, order_blocks, split_edge
from zygote_py.ir.core import Block, Function, Jump, predecessors


def split_critical_edges(function: Function) -> None:
    """Split the critical edges of `function`."""
    preds = predecessors(function)
    critical = [
        (block, successor)
        for block in function.blocks
        if len(block.successors) > 1
        for successor in block.successors
        if len(preds[successor]) > 1
    ]
    for block, successor in critical:
        split_edge(function, block, successor)
    if critical:
        order_blocks(function)


def join_loop_edges(function: Function) -> None:
    """Merge the edges that enter a loop, and its back edges."""
    # An edge to a header either enters the loop or is a back edge: the edits here are independent.
    changed = [
        _join(function, edges, loop.header)
        for loop in loop_nest(function).loops
        for edges in (loop.entering, loop.latches)
    ]
    if any(changed):
        order_blocks(function)


def _join(function: Function, blocks: list[Block], header: Block) -> bool:
    """Merge the edges from `blocks` in one block that leads nowhere else; return whether anything changed."""
    if len(blocks) > 1:
        merge_edges(function, blocks, header)
    elif not isinstance(blocks[0].terminator, Jump):
        split_edge(function, blocks[0], header)
    else:
        return False
    return True
