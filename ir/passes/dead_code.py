"""Removes what nothing needs: blocks that cannot be reached, and values that no effect and no result depends on.

    b0:                                     b0:
      %a = mul %x, %x : f64                   jump b1
      jump b1                               b1:
    b1:                               ->      %i: i64 = phi b0: 0, b1: %i2
      %i: i64 = phi b0: 0, b1: %i2            ...
      %s: f64 = phi b0: %a, b1: %s2
      %s2 = add %s, %a : f64
      ...

Here %s is used by %s2 and %s2 by %s, and by nothing else. A division that can raise is kept, under Numba's error model
`python`, even if its result is not used. Loops that compute nothing stay: they may not end.
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir.core import CameFrom, Const, Function, Instr, Operand, Phi, Value, operands
from zygote_py.ir.edit import drop_unreachable
from zygote_py.ir.ops import Effect, effect_of, may_raise


def remove_dead_code(function: Function) -> None:
    """Mark from the effects and the terminators, and sweep."""
    drop_unreachable(function)
    python_errors = function.options.get("error_model", "python") == "python"
    needed: set[Value] = set()
    pending: list[Value] = []

    def mark(operand: Operand) -> None:
        if isinstance(operand, Phi | Instr | CameFrom) and operand not in needed:
            needed.add(operand)
            pending.append(operand)

    for block in function.blocks:
        for instr in block.instrs:
            if isinstance(instr, Instr) and _acts(instr, python_errors):
                mark(instr)
        for operand in operands(block.terminator):
            mark(operand)
    while pending:
        for operand in operands(pending.pop()):
            mark(operand)
    for block in function.blocks:
        block.phis = [phi for phi in block.phis if phi in needed]
        block.instrs = [instr for instr in block.instrs if instr in needed]


def _acts(instr: Instr, python_errors: bool) -> bool:
    return effect_of(instr.op) is Effect.WRITE or (python_errors and can_raise(instr))


def can_raise(instr: Instr) -> bool:
    """Whether a pure instruction can raise, under the error model `python`: a scalar division by what may be zero."""
    if not may_raise(instr.op) or not isinstance(instr.type, types.Number | types.BaseTuple):
        return False
    match instr.op, instr.args:
        case (operator.pow, (_, Const(exponent), *_)):
            # Numba raises for 0 ** -1 of integers, and when the exponent only is an integer.
            return not isinstance(exponent, float | int) or exponent < 0
        case (operator.pow, _):
            return not isinstance(instr.args[1].type, types.Float)
        case (_, (_, Const(divisor), *_)):
            return not divisor
        case _:
            return True
