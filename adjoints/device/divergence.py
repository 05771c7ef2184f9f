"""Barriers that some threads of a block do not reach, since a condition that differs between threads leads past them.

    s[t] = x[t]
    cuda.syncthreads()
    if t >= n:
        return                          these threads would reverse `s[t] = x[t]`
    ...
    cuda.syncthreads()                  before the others have reversed what is after this barrier

A thread that returns before a barrier does not wait for those that go on. In the reverse sweep it would come first to
what it has done before, where it has to be last. That does not matter if it has done nothing that others see.

A value differs between the threads of a block if it is computed from their numbers, from arrays of a thread's own or
from what atomic operations return, or if it is merged after a branch on such a value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from numba import types

from zygote_py.adjoints.device.exclusive import own_arrays
from zygote_py.adjoints.errors import refuse
from zygote_py.ir import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    Loop,
    Memory,
    Operand,
    Param,
    Routine,
    Value,
    loop_nest,
    ops,
    postdominator_tree,
    predecessors,
    reach,
    reads,
    reverse_postorder,
    uses,
    writes,
)

_OF_THREADS = (ops.thread_index, ops.grid, ops.raise_to, ops.lower_to, *ops.ATOMIC.values())


def check_barriers(function: Function, shared: Collection[Param], axes: int) -> None:
    """Refuse barriers that some threads leave out, and do what others see before they do, or instead.

    `shared` are arrays in shared memory. The function has one return; blocks and the grid have threads along the first
    `axes` axes. Raises DifferentiationError.
    """
    barriers: dict[Block, Instr] = {}  # the first of each block
    for block in function.blocks:
        for instr in block.instrs:
            if instr.op is ops.barrier:
                barriers.setdefault(block, instr)
    if not barriers:
        return
    memory = Memory(function, barriers=False)
    common = {memory.root(array) for barrier in barriers.values() for array in barrier.args}
    own = own_arrays(function, axes)

    def is_seen(instr: Instr) -> bool:
        return instr.op is ops.barrier or any(memory.root(each) in common for each in (*reads(instr), *writes(instr)))

    def is_seen_instead(instr: Instr) -> bool:
        is_padding = instr.op is ops.setitem and instr.args[0] in shared and isinstance(instr.args[1], Const)
        return not is_padding and any(memory.root(each) in common - own for each in (*reads(instr), *writes(instr)))

    preceding = predecessors(function)
    leading = set(reach(barriers, preceding.__getitem__))
    for block, region in _divergent_branches(function):
        left_out = [each for each in region if each in barriers]
        before = reach([block], preceding.__getitem__)
        after = set(reach(left_out, _following))
        instead = [each for each in region if each not in after and each not in leading]
        if left_out and (
            any(is_seen(instr) for each in before for instr in each.instrs)
            or any(is_seen_instead(instr) for each in instead for instr in each.instrs)
        ):
            raise refuse(
                "a barrier that some threads leave out, as by an early `return`, after another barrier or besides an "
                "access to what threads write, is not supported",
                barriers[left_out[0]].loc,
                "let all threads of a block reach each barrier, and put conditions around the code between",
            )


def _divergent_branches(function: Function) -> list[tuple[Block, list[Block]]]:
    """Return the blocks that end in a branch that threads take differently, with the blocks that depend on it."""
    after = postdominator_tree(function).idom
    nest = loop_nest(function)
    regions = {
        block: list(reach(block.successors, _following, [join] if (join := after[block]) is not None else []))
        for block in function.blocks
        if isinstance(block.terminator, Branch)
    }
    differs: set[Value] = set()
    found: list[Block] = []
    changed = True
    while changed:
        before = len(differs), len(found)
        for block in function.blocks:
            differs.update(phi for phi in block.phis if any(arg in differs for arg in phi.args))
            differs.update(instr for instr in block.instrs if _differs(instr, differs))
            end = block.terminator
            if isinstance(end, Branch) and end.condition in differs and block not in found:
                found.append(block)
                for each in _joins(function, block, regions[block], after[block]):
                    differs.update(each.phis)
                for loop in nest.around(block):
                    if any(each not in loop for each in block.successors):
                        differs.update(_seen_after(function, loop))
        changed = before != (len(differs), len(found))
    return [(block, regions[block]) for block in found]


def _joins(function: Function, branch: Block, region: Sequence[Block], last: Block | None) -> list[Block]:
    """Return the blocks at which paths meet that part at a branch; `last` is the one at which all of them have met."""
    sides: dict[Block, Block] = {}  # where each block is reached from: a side of the branch, or a block where they met
    found: set[Block] = set()
    inside = {*region, *([] if last is None else [last])}
    before = predecessors(function)
    changed = True
    while changed:
        changed = False
        for block in [each for each in reverse_postorder(function) if each in inside]:
            known = {sides[each] for each in before[block] if each in sides and each is not branch and each is not last}
            known |= {block} if branch in before[block] else set()
            if len(known) > 1:
                found.add(block)
            side = block if block in found else next(iter(known), None)
            if side is not None and sides.get(block) is not side:
                sides[block] = side
                changed = True
    return [each for each in function.blocks if each in found]


def _seen_after(function: Function, loop: Loop) -> set[Value]:
    """Return the values of a loop that are used after it, where threads leave it in different rounds."""
    used = uses(function)
    inside = [value for block in loop.order for value in (*block.phis, *block.instrs)]
    return {value for value in inside if any(use.block not in loop for use in used.get(value, ()))}


def _differs(instr: Instr, known: Collection[Operand]) -> bool:
    """Return whether a value may differ between the threads of a block, given those of which that is known."""
    if instr.op in _OF_THREADS or isinstance(instr.op, Routine) or any(arg in known for arg in instr.args):
        return True
    own = instr.op is ops.getitem and not isinstance(instr.args[0], Param)
    return own and isinstance(instr.args[0].type, types.Array)


def _following(block: Block) -> tuple[Block, ...]:
    return block.successors
