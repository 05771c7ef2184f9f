"""Merge the read of an element, an addition to it and its write-back into one operation.

    %t = getitem %x, %i : f64
    %u = add %t, %v : f64               ->      accumulate %x, %v, %i
    setitem %x, %u, %i

Only if neither intermediate value has other uses, and nothing writes to the array in between. For `sub` the negative is
added, with an identical result.
"""

from __future__ import annotations

import operator
from collections import Counter

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import Memory, Order
from zygote_py.ir.core import Block, Const, Function, Instr, Operand


def recognise_accumulations(function: Function) -> None:
    """Replace the triples of instructions, in place."""
    memory = Memory(function)
    uses = Counter(operand for node in function.nodes() for operand in node.args)
    for block in function.blocks:
        with memory.order_of(block) as order:
            instrs = _rewritten(block, order, uses)
        block.instrs = instrs


def _rewritten(block: Block, order: Order, uses: Counter[Operand]) -> list[Instr]:
    """Return the rewritten instructions of a block."""
    instrs: list[Instr] = []
    removed: set[Instr] = set()
    for instr in block.instrs:
        match _matched(instr, uses):
            case read, total, value if (
                read in order and total in order and not order.writes_between(read, instr, instr.args[0])
            ):
                removed |= {read, total}
                if total.op is operator.sub:
                    instrs.append(value := Instr(operator.neg, (value,), total.type, "", total.loc))
                array, _, *index = instr.args
                instrs.append(Instr(ops.accumulate, (array, value, *index), types.none, instr.hint, instr.loc))
            case _:
                instrs.append(instr)
    return [instr for instr in instrs if instr not in removed]


def _matched(store: Instr, uses: Counter[Operand]) -> tuple[Instr, Instr, Operand] | None:
    """Return the read, the sum and the other summand if the store writes back an element after an addition to it."""
    if store.op is not ops.setitem or not isinstance(store.args[0].type, types.Array):
        return None
    array, total, *index = store.args
    if (
        not isinstance(total, Instr)
        or total.op not in (operator.add, operator.sub)
        or uses[total] != 1
        or total.type != getattr(array.type, "dtype", None)
        or not isinstance(total.type, types.Float | types.Complex)
    ):
        return None
    left, right = total.args
    for read, value in ((left, right), (right, left)) if total.op is operator.add else ((left, right),):
        if not isinstance(read, Instr) or read.op is not ops.getitem or uses[read] != 1 or read is value:
            continue
        if _same(read.args, (array, *index)) and read.type == total.type and value.type == total.type:
            return read, total, value
    return None


def _same(a: tuple[Operand, ...], b: tuple[Operand, ...]) -> bool:
    return len(a) == len(b) and all(
        left is right or (isinstance(left, Const) and left == right) for left, right in zip(a, b, strict=True)
    )
