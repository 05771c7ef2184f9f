"""Loops that look for the largest element: the reverse sweep needs to know which one it is, and nothing of the others.

    m = x[0]                            m, k = x[0], -1
    for i in range(1, n):               for i in range(1, n):
        m = max(m, x[i])        ->          k = i if x[i] > m else k
                                            m = max(m, x[i])
                                        m = x[k] if k >= 0 else x[0]

The value is the same, and its adjoint that of one element: the loop itself needs no reverse, nor what was decided in
each iteration. It is done before a primal is differentiated, where nothing else in the loop uses the number so far.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from numba import types

from zygote_py.ir import (
    Block,
    Branch,
    Builder,
    Const,
    CountedLoop,
    Function,
    Instr,
    Jump,
    Loop,
    Memory,
    Operand,
    Phi,
    counted,
    is_left_out,
    loop_nest,
    map_operands,
    ops,
    retarget,
    uses,
)

_INDEX = types.int64
_AHEAD: dict[Callable[..., object], ops.Op] = {max: operator.gt, min: operator.lt}


def keep_index_of_extremes(primal: Function) -> None:
    """Replace the results of such loops by elements that they have found, in place."""
    if is_left_out("extremes") or not any(instr.op in _AHEAD for instr in primal.instrs()):
        return
    memory: Memory | None = None
    found: list[tuple[Loop, Phi, Instr, Instr, int]] = []
    used = uses(primal)
    nest = loop_nest(primal)
    for loop in nest.loops:
        count = counted(loop, primal)
        if count is None or len(loop.latches) != 1 or len(loop.entering) != 1 or not _is_upward(count):
            continue
        for phi in loop.header.phis:
            chosen = phi.incoming[loop.latches[0]]
            if not isinstance(chosen, Instr) or chosen.op not in _AHEAD or not isinstance(phi.type, types.Float):
                continue
            inside = [use.user for value in (phi, chosen) for use in used[value] if use.block in loop]
            element = next((arg for arg in chosen.args if arg is not phi), None)
            if len(chosen.args) != 2 or phi not in chosen.args or inside != [chosen, phi]:
                continue
            after = loop.exits[0][1]
            is_asked_before = any(
                use.block not in loop and use.block is not after and not nest.tree.dominates(after, use.block)
                for use in used[phi]
            )
            if is_asked_before or any(use.block not in loop for use in used[chosen]) or not isinstance(element, Instr):
                continue
            memory = memory or Memory(primal)
            axis = _axis(loop, count, element, memory)
            if axis is not None:
                found.append((loop, phi, chosen, element, axis))
    for each in found:
        _keep_index(primal, *each)


def _is_upward(count: CountedLoop) -> bool:
    start = count.start
    is_known = isinstance(start, Const) and isinstance(start.value, int) and start.value >= 0
    return is_known and count.step > 0 and count.phi.type == _INDEX


def _axis(loop: Loop, count: CountedLoop, element: Instr, memory: Memory) -> int | None:
    """Return the axis along which the loop goes through the elements of an array that it does not write to."""
    array, *index = element.args
    if element.op is not ops.getitem or element not in loop.values or not isinstance(array.type, types.Array):
        return None
    if array in loop.values or any(writer in loop.values for writer in memory.writers(array)):
        return None
    moving = [axis for axis, each in enumerate(index) if each in loop.values]
    if len(moving) != 1 or index[moving[0]] is not count.phi:
        return None
    return moving[0]


def _keep_index(primal: Function, loop: Loop, phi: Phi, chosen: Instr, element: Instr, axis: int) -> None:
    """Note the index of the element that is chosen, and let what follows the loop read it."""
    (entering,), (latch,), header = loop.entering, loop.latches, loop.header
    block = next(block for block in loop.order if chosen in block.instrs)
    array, *index = element.args
    place = index[axis]
    b = Builder(Block(), chosen.loc)
    ahead = _AHEAD[chosen.op]
    other = chosen.args[1]
    is_other = b.call(ahead, other, chosen.args[0], type=types.boolean)
    old = Phi(_INDEX, "k", chosen.loc)
    both = (old, place) if other is phi else (place, old)  # the second is chosen only if it is ahead
    kept = b.call(ops.select, is_other, *both, type=_INDEX, hint="k")
    old.incoming = {entering: Const(-1, _INDEX), latch: kept}
    header.phis.append(old)
    at = block.instrs.index(chosen)
    block.instrs[at:at] = b.block.instrs

    end = header.terminator
    assert isinstance(end, Branch)
    after = end.orelse if end.then in loop else end.then
    asked, found, not_found, merged = (Block(header.loc) for _ in range(4))
    is_found = Builder(asked, chosen.loc).call(operator.ge, old, Const(0, _INDEX), type=types.boolean)
    asked.terminator = Branch(is_found, found, not_found)
    at_index: list[Operand] = [old if number == axis else each for number, each in enumerate(index)]
    read = Builder(found, chosen.loc).call(ops.getitem, array, *at_index, type=phi.type, hint=phi.hint)
    found.terminator, not_found.terminator = Jump(merged), Jump(merged)
    result = Phi(phi.type, phi.hint, chosen.loc)
    outside = [each for each in primal.blocks if each not in loop]
    map_operands(outside, lambda operand, _: result if operand is phi else operand)
    merged.phis.append(result)
    result.incoming = {found: read, not_found: phi.incoming[entering]}
    merged.terminator = Jump(after)
    retarget(header, after, asked)
    for each_phi in after.phis:
        each_phi.incoming[merged] = each_phi.incoming.pop(header)
    primal.blocks[primal.blocks.index(after) : primal.blocks.index(after)] = [asked, found, not_found, merged]
