"""Replace phis that record the direction of a branch by the condition of the branch.

    b1:  branch %c, b2, b3              b1:  branch %c, b2, b3
    b2:  jump b4                        b2:  jump b4
    b3:  jump b4                ->      b3:  jump b4
    b4:  %go = phi b2: False, b3: True  b4:  %go = not_ %c

Only phis of two constants are considered, and only if each side of the branch above reaches the merge by one edge.
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir.analysis import DominatorTree, dominator_tree
from zygote_py.ir.core import Block, Branch, Const, Function, Instr, Operand, Phi, Value
from zygote_py.ir.walks import replace_uses


def replace_boolean_phis(function: Function) -> None:
    """Replace phis of True and False by the condition that decides between them, or its negation."""
    tree = dominator_tree(function)
    replacement: dict[Value, Operand] = {}
    for block in function.blocks:
        for phi in [phi for phi in block.phis if isinstance(phi.type, types.Boolean) and len(phi.incoming) == 2]:
            if (condition := _condition(phi, block, tree)) is not None:
                block.phis.remove(phi)
                replacement[phi] = condition
    replace_uses(function, replacement)


def _condition(phi: Phi, block: Block, tree: DominatorTree) -> Operand | None:
    above = tree.idom[block]
    if above is None or not isinstance(above.terminator, Branch):
        return None
    branch = above.terminator
    (first, one), (second, other) = phi.incoming.items()
    if not isinstance(one, Const) or not isinstance(other, Const) or one.value is other.value:
        return None
    true, false = (first, second) if one.value else (second, first)
    if _leads(branch.then, above, true, block, tree) and _leads(branch.orelse, above, false, block, tree):
        return branch.condition
    if _leads(branch.then, above, false, block, tree) and _leads(branch.orelse, above, true, block, tree):
        negation = Instr(operator.not_, (branch.condition,), types.boolean, phi.hint, phi.loc)
        block.instrs.insert(0, negation)
        return negation
    return None


def _leads(side: Block, above: Block, pred: Block, block: Block, tree: DominatorTree) -> bool:
    """Return whether control enters `block` from `pred` exactly if it leaves `above` for `side`."""
    if side is block:
        return pred is above
    return pred is not above and tree.idom[side] is above and tree.dominates(side, pred)
