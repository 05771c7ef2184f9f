"""Remove dead code: unreachable blocks, and values that no effect and no result depends on.

    b0:                                     b0:
      %a = mul %x, %x : f64                   jump b1
      jump b1                               b1:
    b1:                               ->      %i: i64 = phi b0: 0, b1: %i2
      %i: i64 = phi b0: 0, b1: %i2            ...
      %s: f64 = phi b0: %a, b1: %s2
      %s2 = add %s, %a : f64
      ...

Here %s is used only by %s2, and %s2 only by %s. A write to memory that the function allocated itself is live only if a
live instruction reads the memory. A division that can raise is kept, under Numba's error model `python`, even if its
result is not used. Loops that compute nothing remain: they may not terminate.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import Memory, may_write, reach, reads
from zygote_py.ir.building.cfg import drop_unreachable
from zygote_py.ir.core import Const, Function, Instr, Operand, Value
from zygote_py.ir.ops import Role


def remove_dead_code(function: Function) -> None:
    """Mark from the effects and the terminators, and sweep."""
    drop_unreachable(function)
    python_errors = function.options.get("error_model", "python") == "python"
    memory = Memory(function)
    visible = set(memory.outside)

    def writers(operands: Iterable[Operand]) -> Iterator[Value]:
        """Yield the instructions that write to memory the operands reach, which is live from now on."""
        for operand in operands:
            root = memory.root(operand)
            if root is not None and root not in visible:
                visible.add(root)
                yield from memory.writers(root)

    def acting() -> Iterator[Operand]:
        for block in function.blocks:
            for instr in block.instrs:
                if _acts(instr, python_errors) and not _is_local(instr, memory, visible):
                    yield instr
            yield from block.terminator.args
            yield from writers(block.terminator.args)

    def following(operand: Operand) -> Iterator[Operand]:
        if isinstance(operand, Value):
            yield from operand.args
        if isinstance(operand, Instr):
            yield from writers(reads(operand))

    needed = set(reach(acting(), following))
    for block in function.blocks:
        block.phis = [phi for phi in block.phis if phi in needed]
        block.instrs = [instr for instr in block.instrs if instr in needed]


def _is_local(instr: Instr, memory: Memory, visible: Collection[Value]) -> bool:
    """Return whether an instruction only writes to memory that nothing is known to read (so far)."""
    if ops.of(instr.op).role not in ops.FILLS:
        return False
    root = memory.root(instr.args[0])
    return root is not None and root not in visible


def _acts(instr: Instr, python_errors: bool) -> bool:
    is_check = ops.of(instr.op).role is Role.CHECK
    return is_check or (python_errors and can_raise(instr)) or may_write(instr)


def can_raise(instr: Instr) -> bool:
    """Return whether a pure instruction can raise, under the error model `python`: a scalar division by zero."""
    record = ops.of(instr.op)
    if record.role is Role.CHECK:
        return True
    if not record.may_raise or not isinstance(instr.type, types.Number | types.BaseTuple):
        return False
    match instr.op, instr.args:
        case (operator.pow, (_, Const(exponent), *_)):
            # Numba raises for 0 ** -1 of integers, and if only the exponent is an integer.
            return not isinstance(exponent, float | int) or exponent < 0
        case (operator.pow, _):
            return not isinstance(instr.args[1].type, types.Float)
        case (_, (_, Const(divisor), *_)):
            return not divisor
        case _:
            return True
