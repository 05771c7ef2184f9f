"""Removes what lowering leaves behind: values that nobody uses and phis that select nothing.

    %t0 = dim %x, 1 : i64                 (x.shape, of which the function uses one)
    %r1: f64 = phi b0: %r0, b2: %r0   ->  %r0

It keeps whatever has an effect or may raise. Repeated until nothing changes; no block is added or removed.
"""

from __future__ import annotations

from zygote_py.ir.core import Function, Instr, Operand, Phi, Undef, Value, operands, replace_values
from zygote_py.ir.ops import Effect, effect_of, may_raise


def clean_up(function: Function) -> None:
    """Remove trivial phis and unused values, in place."""
    while _remove_trivial_phis(function):
        pass
    _remove_unused(function)


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


def _is_idle(instr: Value) -> bool:
    return isinstance(instr, Instr) and effect_of(instr.op) is not Effect.WRITE and not may_raise(instr.op)
