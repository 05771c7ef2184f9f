"""Forward edges past blocks that only jump.

    b0:  branch %c, b1, b2              b0:  branch %c, b3, b2
    b1:  jump b3                ->
    b2:  jump b4                        b2:  jump b4

The pass creates critical edges and removes preheaders and latches, so it runs before the passes that establish
canonical form.
"""

from __future__ import annotations

from zygote_py.ir.analysis import reverse_postorder
from zygote_py.ir.building.cfg import drop_unreachable, remove_incoming
from zygote_py.ir.core import Block, Branch, Function, Jump, predecessors, retarget


def forward_jumps(function: Function) -> None:
    """Forward the edges to empty blocks, unless a phi depends on the edge."""
    preds = predecessors(function)
    changed = False
    for block in reversed(reverse_postorder(function)):
        match block.terminator:
            case Jump(target) if not block.phis and not block.instrs and target is not block:
                changed |= _forward(block, target, preds)
    if changed:
        drop_unreachable(function)


def _forward(block: Block, target: Block, preds: dict[Block, list[Block]]) -> bool:
    kept: list[Block] = []
    for pred in preds[block]:
        if pred in preds[target]:
            if any(phi.incoming[pred] != phi.incoming[block] for phi in target.phis):
                kept.append(pred)
                continue
        else:
            preds[target].append(pred)
            for phi in target.phis:
                phi.incoming[pred] = phi.incoming[block]
        retarget(pred, block, target)
        match pred.terminator:
            case Branch(_, then, orelse) if then is orelse:
                pred.terminator = Jump(target)
    changed = len(kept) < len(preds[block])
    preds[block] = kept
    if changed and not kept:
        preds[target].remove(block)
        remove_incoming(target, block)
        block.terminator = Jump(block)  # now unreachable
    return changed
