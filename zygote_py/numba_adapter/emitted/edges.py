"""Blocks on edges, for what is done on one way only with arrays and lists.

    for i in range(n):                          for i in range(n):
        ...                                         ...
    # arrays die here, on this way and others   else:
                                        ->          del a               # a block of its own
                                                    c = a

A loop ends with a branch: into its body, or beyond it. What it hands on to what follows, or what is deleted there,
belongs to the second way alone. Where other ways lead to the same block, too, Numba copies what is handed on before the
branch, in each iteration, and counts the references to it anew; and it deletes in the block beyond what the other ways
may have deleted before, so that the variable must be in memory, with zeros if it has been deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zygote_py.numba_adapter.base import deaths_on_edges
from zygote_py.numba_adapter.base.internals import ir, postproc


def block_between(blocks: dict[int, Any], before: int, after: int) -> Any:
    """Return a new block on one of the two ways of a branch; None if there is none, or no label for it.

    Blocks are lowered in the order of their labels: what is assigned in this one must come before `after`.
    """
    branch, label = blocks[before].terminator, before + 1
    if not isinstance(branch, ir.Branch) or branch.truebr == branch.falsebr or label in blocks or label >= after:
        return None
    between = blocks[label] = ir.Block(blocks[before].scope, branch.loc)
    between.body = [ir.Jump(after, branch.loc)]
    true, false = (label if each == after else each for each in (branch.truebr, branch.falsebr))
    blocks[before].body[-1] = ir.Branch(branch.cond, true, false, branch.loc)
    return between


def separate_deaths(func_ir: Any, counts: Callable[[str], bool]) -> None:
    """Put a block on each edge from a branch to where ways meet if variables die on it that count references.

    It is called within `quick_liveness`.
    """
    if func_ir.is_generator:
        return
    blocks, lifetime = func_ir.blocks, postproc.VariableLifetime(func_ir.blocks)
    edges = [
        (label, after)
        for label, block in blocks.items()
        if isinstance(block.terminator, ir.Branch)
        for after in block.terminator.get_targets()
        if len(list(lifetime.cfg.predecessors(after))) > 1
    ]
    for before, after, names in deaths_on_edges(lifetime, edges) if edges else ():
        if any(map(counts, names)):
            block_between(blocks, before, after)
