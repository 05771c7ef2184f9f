"""Leads all returns to one block.

    b1:  return %x                      b1:  jump b3
    b2:  return 0.0             ->      b2:  jump b3
                                        b3:  %t: f64 = phi b1: %x, b2: 0.0
                                             return %t

Blocks that raise stay as they are.
"""

from __future__ import annotations

from zygote_py.ir.core import Block, Function, Jump, Operand, Return, Value
from zygote_py.ir.edit import joined, order_blocks


def merge_returns(function: Function) -> None:
    """Give `function` one `Return`, with phis for the values where they differ."""
    returns = {block: block.terminator for block in function.blocks if isinstance(block.terminator, Return)}
    if len(returns) < 2:
        return
    first = next(iter(returns.values()))
    merged = Block(loc=next(iter(returns)).loc)
    values: list[Operand] = []
    for index, operand in enumerate(first.values):
        incoming = {block: leave.values[index] for block, leave in returns.items()}
        hints = {value.hint if isinstance(value, Value) else "" for value in incoming.values()}
        values.append(joined(merged, incoming, operand.type, hints.pop() if len(hints) == 1 else ""))
    merged.terminator = Return(tuple(values))
    for block in returns:
        block.terminator = Jump(merged)
    function.blocks.append(merged)
    order_blocks(function)
