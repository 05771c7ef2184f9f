"""Stacks of one item at a time are values, and stacks that nothing is taken from vanish.

    %s = stack : list(f64)
    ...
    push %s, %x                         ->
    ...
    %a = pop %s                                 (%a is %x)

So it is with the records of a function, once its two halves have been written out in one place. The three instructions
are in the same loops, and the item is pushed wherever it is popped: then that is so in each round.
"""

from __future__ import annotations

from collections.abc import Sequence

from zygote_py.ir import ops
from zygote_py.ir.analysis.loops import loop_nest
from zygote_py.ir.core import Block, Function, Instr, Operand, Value
from zygote_py.ir.passes.cleanup.copy_propagation import is_kind_of
from zygote_py.ir.walks import Use, replace, uses


def forward_stacks(function: Function) -> None:
    """Let what is popped be what was pushed, where a stack has one item at a time."""
    stacks = [(block, instr) for block in function.blocks for instr in block.instrs if instr.op is ops.stack]
    if not stacks:
        return
    used, nest = uses(function), loop_nest(function)
    places = {instr: place for block in function.blocks for place, instr in enumerate(block.instrs)}
    gone: set[Instr] = set()
    found: dict[Value, Operand] = {}
    for block, stack in stacks:
        changes = _changes(used[stack], stack)
        if not changes:
            continue
        pops = [each for each in changes if each[0].op is ops.pop]
        if pops:
            if len(changes) > 2 or len(pops) > 1:
                continue
            (push, at), (pop, later) = sorted(changes, key=lambda each: each[0].op is ops.pop)
            is_before = places[push] < places[pop] if at is later else nest.tree.dominates(at, later)
            loops = {nest.innermost(each) for each in (block, at, later)}
            if not is_before or len(loops) > 1 or not is_kind_of(push.args[1].type, pop.type):
                continue
            found[pop] = push.args[1]
        gone.update(instr for instr, _ in changes)
    if gone:
        for block in function.blocks:
            block.instrs = [instr for instr in block.instrs if instr not in gone]
        replace(function, found)


def _changes(where: Sequence[Use], stack: Instr) -> list[tuple[Instr, Block]]:
    """Return what pushes to a stack and pops from it, with the blocks; nothing if it has no pushes, or other uses."""
    found = []
    for use in where:
        user = use.user
        if not isinstance(user, Instr) or user.op not in (ops.push, ops.pop) or stack in user.args[1:]:
            return []
        found.append((user, use.block))
    return found if any(user.op is ops.push for user, _ in found) else []
