"""Let the counter of a loop that was left by `break` count on: after the last iteration nobody looks at it.

    b1:  %i0 = phi b0: 0, b8: %i2                       b1:  %i0 = phi b0: 0, b8: %i3
         %go0 = phi b0: True, b8: %go1                       %go0 = phi b0: True, b8: %go1
         %c = lt %i0, %n                                     %c = lt %i0, %n
         %t = and_ %c, %go0                                  %t = and_ %c, %go0
         branch %t, b2, b9                                   branch %t, b2, b9
    ..                                          ->      ..
    b8:  %i2 = phi b6: %i0, b7: %i1                     b8:  %go1 = phi b6: False, b7: True
         %go1 = phi b6: False, b7: True                      %i3 = add %i0, 1
         jump b1                                             jump b1

Where the flag is False the loop ends, whatever the counter is; so that every iteration may add the step, and the
counter is known from the number of the iteration. The loops are those of `canonicalise_loops`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable

from numba import types

from zygote_py.ir.core import Block, Branch, Const, Function, Instr, Operand, Phi, operands
from zygote_py.ir.loops import Loop, loop_nest


def keep_counting(function: Function) -> None:
    """Make the counters of loops with a flag independent of the flag, where nothing behind the loop uses them."""
    stopping = {loop: found for loop in loop_nest(function).loops if (found := _stopping(loop))}
    behind = _used_behind(function, stopping)
    for loop, blocks in stopping.items():
        (latch,) = loop.latches
        for phi in loop.header.phis:
            step = _step(phi, latch, blocks)
            if step is not None and phi not in behind:
                copy = Instr(step.op, step.args, step.type, step.hint, step.loc)
                latch.instrs.append(copy)
                phi.incoming[latch] = copy


def _stopping(loop: Loop) -> set[Block]:
    """The predecessors of the latch that end the loop: those from which its flag is False."""
    branch = loop.header.terminator
    if len(loop.latches) != 1 or not isinstance(branch, Branch) or branch.then not in loop:
        return set()
    (latch,) = loop.latches
    condition = branch.condition
    flags: tuple[Operand, ...] = (condition,)
    if isinstance(condition, Instr) and condition.op is operator.and_:
        flags = condition.args
    stopping: set[Block] = set()
    for flag in flags:
        if isinstance(flag, Phi) and flag in loop.header.phis:
            following = flag.incoming[latch]
            if isinstance(following, Phi) and following in latch.phis:
                stopping |= {pred for pred, operand in following.incoming.items() if _is_false(operand)}
    return stopping


def _is_false(operand: Operand) -> bool:
    return isinstance(operand, Const) and operand.value is False


def _step(phi: Phi, latch: Block, stopping: set[Block]) -> Instr | None:
    """What counts the phi on wherever the loop goes on: itself plus or minus a constant."""
    following = phi.incoming[latch]
    if not isinstance(phi.type, types.Integer) or not isinstance(following, Phi) or following not in latch.phis:
        return None
    steps = {operand for pred, operand in following.incoming.items() if pred not in stopping}
    if len(steps) != 1:
        return None
    (step,) = steps
    if not isinstance(step, Instr) or step.op not in (operator.add, operator.sub):
        return None
    constants = [arg for arg in step.args if isinstance(arg, Const)]
    return step if phi in step.args and len(constants) == 1 else None


def _used_behind(function: Function, loops: Iterable[Loop]) -> set[Operand]:
    """What of the loops' headers is used outside of the loop, itself or through something the header computes."""
    around: dict[Operand, Loop] = {value: loop for loop in loops for value in (*loop.header.phis, *loop.header.instrs)}
    found: set[Operand] = set()

    def note(operand: Operand, block: Block) -> None:
        if operand in around and block not in around[operand]:
            found.add(operand)

    for block in function.blocks:
        for phi in block.phis:
            for pred, operand in phi.incoming.items():
                note(operand, pred)
        for node in (*block.instrs, block.terminator):
            for operand in operands(node):
                note(operand, block)
    for loop in loops:
        for instr in reversed(loop.header.instrs):
            if instr in found:
                found.update(operands(instr))
    return found
