"""Removes what lowering leaves behind: values that nobody uses and phis that select nothing.

    %t0 = dim %x, 1 : i64                 (x.shape, of which the function uses one)
    %r1: f64 = phi b0: %r0, b2: %r0   ->  %r0

It keeps whatever has an effect or may raise. No block is added or removed, but they are put into an order that does not
depend on how a version of Python lays out its bytecode: a branch's `then` first, and what follows a loop after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from zygote_py.ir.core import Block, Function, Instr, Operand, Phi, Undef, Value, operands, replace_values
from zygote_py.ir.loops import loop_nest
from zygote_py.ir.memory import effect
from zygote_py.ir.ops import Effect, may_raise


def clean_up(function: Function) -> None:
    """Remove trivial phis and unused values, and order the blocks, in place."""
    while _remove_trivial_phis(function):
        pass
    _remove_unused(function)
    _order_blocks(function)


def _remove_trivial_phis(function: Function) -> bool:
    replacement: dict[Value, Operand] = {}
    for block in function.blocks:
        for phi in block.phis:
            others = {operand for operand in phi.incoming.values() if operand is not phi}
            if len(others) == 1:
                (operand,) = others
                if operand.type == phi.type and not _leads_to(operand, phi, replacement):
                    replacement[phi] = operand
            elif not others:
                replacement[phi] = Undef(phi.type)
    for block in function.blocks:
        block.phis = [phi for phi in block.phis if phi not in replacement]
    replace_values(function, replacement)
    return bool(replacement)


def _leads_to(operand: Operand, phi: Phi, replacement: dict[Value, Operand]) -> bool:
    while isinstance(operand, Value) and operand in replacement:
        operand = replacement[operand]
    return operand is phi


def _remove_unused(function: Function) -> None:
    used: set[Value] = set()
    pending: list[Operand] = []
    for block in function.blocks:
        pending += operands(block.terminator)
        for instr in block.instrs:
            if not _is_idle(instr):
                pending.append(instr)
    while pending:
        operand = pending.pop()
        if isinstance(operand, Value) and operand not in used:
            used.add(operand)
            pending += operands(operand)
    for block in function.blocks:
        block.phis = [phi for phi in block.phis if phi in used]
        block.instrs = [instr for instr in block.instrs if instr in used]


def _order_blocks(function: Function) -> None:
    """Put the blocks into the reverse postorder of a walk that takes the ways out of loops first: they come last."""
    nest = loop_nest(function)

    def ways(block: Block) -> Iterator[Block]:
        def loops_left(to: Block) -> int:
            count, loop = 0, nest.innermost(block)
            while loop is not None and to not in loop:
                count, loop = count + 1, loop.parent
            return count

        there = list(block.successors)
        there.reverse()
        there.sort(key=lambda to: -loops_left(to))
        return iter(there)

    order: list[Block] = []
    seen = {function.entry}
    stack = [(function.entry, ways(function.entry))]
    while stack:
        block, rest = stack[-1]
        following = next((to for to in rest if to not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, ways(following)))
    function.blocks = order[::-1]


def _is_idle(instr: Value) -> bool:
    return isinstance(instr, Instr) and effect(instr) is not Effect.WRITE and not may_raise(instr.op)
