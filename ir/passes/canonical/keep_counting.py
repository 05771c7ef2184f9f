"""Advance the counter of a loop with `break` in every iteration: its value is not used after the last one.

    b1:  %i0 = phi b0: 0, b8: %i2                       b1:  %i0 = phi b0: 0, b8: %i3
         %go0 = phi b0: True, b8: %go1                       %go0 = phi b0: True, b8: %go1
         %c = lt %i0, %n                                     %c = lt %i0, %n
         %t = and_ %c, %go0                                  %t = and_ %c, %go0
         branch %t, b2, b9                                   branch %t, b2, b9
    ..                                          ->      ..
    b8:  %i2 = phi b6: %i0, b7: %i1                     b8:  %go1 = phi b6: False, b7: True
         %go1 = phi b6: False, b7: True                      %i3 = add %i0, 1
         jump b1                                             jump b1

Where the flag is False the loop ends, whatever the counter is; so every iteration may add the step, and the counter is
a function of the iteration number. The loops are those of `canonicalise_loops`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable

from numba import types

from zygote_py.ir.analysis import Loop, loop_nest
from zygote_py.ir.core import Block, Branch, Const, Function, Instr, Operand, Phi
from zygote_py.ir.walks import uses

_FALSE = Const(False, types.boolean)


def keep_counting(function: Function) -> None:
    """Make the counters of loops with a flag independent of the flag, if they are not used after the loop."""
    stopping = {loop: found for loop in loop_nest(function).loops if (found := _stopping(loop))}
    after = _used_after(function, stopping)
    for loop, blocks in stopping.items():
        (latch,) = loop.latches
        for phi in loop.header.phis:
            step = _step(phi, latch, blocks)
            if step is not None and phi not in after:
                phi.incoming[latch] = copy = step.copy(with_origin=False)
                latch.instrs.append(copy)


def _stopping(loop: Loop) -> set[Block]:
    """Return the predecessors of the latch that end the loop: those from which its flag is False."""
    branch = loop.header.terminator
    if len(loop.latches) != 1 or not isinstance(branch, Branch) or branch.then not in loop:
        return set()
    (latch,) = loop.latches
    condition = branch.condition
    flags = condition.args if isinstance(condition, Instr) and condition.op is operator.and_ else (condition,)
    following = [flag.incoming[latch] for flag in flags if isinstance(flag, Phi) and flag in loop.header.phis]
    return {
        pred
        for phi in following
        if isinstance(phi, Phi) and phi in latch.phis
        for pred, operand in phi.incoming.items()
        if operand == _FALSE
    }


def _step(phi: Phi, latch: Block, stopping: set[Block]) -> Instr | None:
    """Return the increment of a phi wherever the loop continues: itself plus or minus a constant."""
    following = phi.incoming[latch]
    if not isinstance(phi.type, types.Integer) or not isinstance(following, Phi) or following not in latch.phis:
        return None
    steps = {operand for pred, operand in following.incoming.items() if pred not in stopping}
    match list(steps):
        case [Instr(op=operator.add | operator.sub, args=(a, b)) as step] if phi in step.args and isinstance(
            a, Const
        ) != isinstance(b, Const):
            return step
    return None


def _used_after(function: Function, loops: Iterable[Loop]) -> set[Operand]:
    """Return the header values used outside of the loop, directly or through another header value."""
    used = uses(function)
    found: set[Operand] = set()
    for loop in loops:
        found |= {value for value in loop.header.values if any(use.block not in loop for use in used[value])}
        for instr in reversed(loop.header.instrs):
            if instr in found:
                found.update(instr.args)
    return found
