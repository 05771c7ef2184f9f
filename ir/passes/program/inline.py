"""Inlining of calls of routines.

b0: %y = f %x               b0: jump b1
    return %y       ->      b1: ... the blocks of f, with %x for its parameter ...
                            b2: %y = phi ...      the result of f
                                return %y
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from zygote_py.ir.analysis import Memory
from zygote_py.ir.building.cfg import drop_unreachable, joined, rename_incoming
from zygote_py.ir.building.clone import clone
from zygote_py.ir.checks.debug import check_after
from zygote_py.ir.core import Block, Function, Instr, Jump, Operand, Routine, Value
from zygote_py.ir.walks import replace_uses


def inline_calls(function: Function, chosen: Callable[[Instr], bool]) -> None:
    """Inline the calls that are `chosen`, but not the calls inside the inlined functions."""
    calls = [(call, routine) for call, routine in function.calls() if chosen(call)]
    for call, routine in calls:
        _inline(function, call, routine)
    if calls:
        drop_unreachable(function)
        check_after("inline_calls", function)


def shares_what_it_writes(memory: Memory, call: Instr) -> bool:
    """Return whether two arguments of a call may share memory of which the routine writes to one."""
    assert isinstance(call.op, Routine)
    writes = call.op.writes
    return any(
        (a in writes or b in writes) and memory.may_share(call.args[a], call.args[b])
        for a, b in combinations(range(len(call.args)), 2)
    )


def _inline(function: Function, call: Instr, routine: Routine) -> None:
    block = next(block for block in function.blocks if call in block.instrs)
    place = block.instrs.index(call)
    rest = Block(block.loc)
    rest.instrs, rest.terminator = block.instrs[place + 1 :], block.terminator
    for successor in rest.successors:
        rename_incoming(successor, block, rest)
    copied = clone(routine.function).function
    replacement: dict[Value, Operand] = dict(zip(copied.params, call.args, strict=True))
    replace_uses(copied, replacement)
    block.instrs, block.terminator = block.instrs[:place], Jump(copied.entry)
    returned: dict[Block, Operand] = {}
    for each, end in copied.returns():
        (returned[each],) = end.args
        each.terminator = Jump(rest)
    at = function.blocks.index(block) + 1
    function.blocks[at:at] = [*copied.blocks, rest]
    if returned:
        replace_uses(function, {call: joined(rest, returned, call.type, call.hint)})
