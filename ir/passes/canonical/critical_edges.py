"""Insert a block on every edge from a block with several successors to one with several predecessors.

b0:  branch %c, b1, b2      ->      b0:  branch %c, b1, b3
b1:  jump b2                        b1:  jump b2
b2:  return %x                      b3:  jump b2
                                    b2:  return %x
"""

from __future__ import annotations

from zygote_py.ir.building.cfg import order_blocks, split_edge
from zygote_py.ir.core import Function, predecessors


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
