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
from zygote_py.ir.analysis.loops import LoopNest, loop_nest
from zygote_py.ir.core import Block, Function, Instr, Operand, Value
from zygote_py.ir.passes.cleanup.copy_propagation import is_kind_of
from zygote_py.ir.walks import Use, replace, uses


def forward_stacks(function: Function) -> None:
    """Let what is popped be what was pushed, where a stack has one item at a time."""
    stacks = [(block, instr) for block in function.blocks for instr in block.instrs if instr.op is ops.stack]
    if not stacks:
        return
    used, nest = uses(function), loop_nest(function)
    gone: set[Value] = set()
    found: dict[Value, Operand] = {}
    for block, stack in stacks:
        changes = [use for use in used[stack] if _changes(use, stack)]
        pushes = [use for use in changes if isinstance(use.user, Instr) and use.user.op is ops.push]
        pops = [use for use in changes if use not in pushes]
        if len(changes) < len(used[stack]) or not pushes:
            continue
        if pops:
            if len(pushes) > 1 or len(pops) > 1 or len({nest.innermost(each) for each in (block, *_at(changes))}) > 1:
                continue
            ((push,), (pop,)) = ([use.user for use in each] for each in (pushes, pops))
            assert isinstance(push, Instr)
            assert isinstance(pop, Instr)
            if not is_kind_of(push.args[1].type, pop.type) or not _is_before(nest, pushes[0], pops[0]):
                continue
            found[pop] = push.args[1]
        gone.update(use.user for use in changes if isinstance(use.user, Instr))
    if gone:
        for block in function.blocks:
            block.instrs = [instr for instr in block.instrs if instr not in gone]
        replace(function, found)


def _changes(use: Use, stack: Instr) -> bool:
    """Return whether a use pushes to a stack, or pops from it."""
    user = use.user
    return isinstance(user, Instr) and user.op in (ops.push, ops.pop) and stack not in user.args[1:]


def _at(found: Sequence[Use]) -> list[Block]:
    return [use.block for use in found]


def _is_before(nest: LoopNest, push: Use, pop: Use) -> bool:
    if push.block is pop.block:
        instrs: Sequence[object] = push.block.instrs
        return instrs.index(push.user) < instrs.index(pop.user)
    return nest.tree.dominates(push.block, pop.block)
