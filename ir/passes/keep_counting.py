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

Where the flag is False the loop ends, whatever the counter is; so that every iteration may add the step, and the counter
is known from the number of the iteration. The loops are those of `canonicalise_loops`.
"""

from __future__ import annotations

import operator

from numba import types
from zygote_py.ir.core import Block, Branch, Const, Function, Instr, Operand, Phi, operands
from zygote_py.ir.loops import Loop, loop_nest


def keep_counting(function: Function) -> None:
    """Make the counters of loops with a flag independent of the flag, where nothing behind the loop uses them."""
    for loop in loop_nest(function).loops:
        stopping = _stopping(loop)
        if not stopping:
            continue
        (latch,) = loop.latches
        for phi in loop.header.phis:
            step = _step(phi, latch, stopping)
            if step is not None and not _used_behind(phi, loop, function):
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


def _used_behind(phi: Phi, loop: Loop, function: Function) -> bool:
    """Whether anything outside of the loop uses the phi."""
    for block in function.blocks:
        for other in block.phis:
            if any(operand is phi and pred not in loop for pred, operand in other.incoming.items()):
                return True
            if block not in loop and phi in other.incoming.values():
                return True
        if block not in loop and any(phi in operands(node) for node in (*block.instrs, block.terminator)):
            return True
    return False
