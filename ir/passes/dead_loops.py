"""Remove loops that count and do nothing else.

    b0:  jump b1                                b0:  jump b3
    b1:  %i = phi b0: 0, b2: %i2
         %c = lt %i, %n                 ->
         branch %c, b2, b3
    b2:  %i2 = add %i, 1
         jump b1
    b3:  ...                                    b3:  ...

Such loops remain where what they computed turned out to be unused. A loop that does not count may not end, and stays.
"""

from __future__ import annotations

from zygote_py.ir import ops
from zygote_py.ir.core import Function, Instr, Jump, Value, operands
from zygote_py.ir.edit import drop_unreachable
from zygote_py.ir.loops import Loop, counted, loop_nest
from zygote_py.ir.passes.dead_code import can_raise


def remove_dead_loops(function: Function) -> None:
    """Lead control past every loop that counts, has no effect, and defines nothing that is used behind it."""
    candidates = [loop for loop in loop_nest(function).loops if _does_nothing(loop, function)]
    if not candidates:
        return
    used_in: dict[Value, set[object]] = {}
    for block in function.blocks:
        for phi in block.phis:
            for pred, operand in phi.incoming.items():
                if isinstance(operand, Value):
                    used_in.setdefault(operand, set()).update((pred, block))
        for node in (*block.instrs, block.terminator):
            for operand in operands(node):
                if isinstance(operand, Value):
                    used_in.setdefault(operand, set()).add(block)
    for loop in candidates:
        if all(used_in.get(value, set()) <= loop.blocks for value in loop.values):
            ((_, behind),) = loop.exits
            loop.header.terminator = Jump(behind)
    drop_unreachable(function)


def _does_nothing(loop: Loop, function: Function) -> bool:
    if loop.raising_exits or counted(loop, function) is None:
        return False
    if any(counted(inner, function) is None for inner in _inside(loop)):
        return False
    python_errors = function.options.get("error_model", "python") == "python"
    return all(
        isinstance(instr, Instr)
        and ops.effect_of(instr.op) is not ops.Effect.WRITE
        and not (python_errors and can_raise(instr))
        for block in loop.order
        for instr in block.instrs
    )


def _inside(loop: Loop) -> list[Loop]:
    return [found for child in loop.children for found in (child, *_inside(child))]
