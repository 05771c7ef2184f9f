"""Merge all returns into one block.

    b1:  return %x                      b1:  jump b3
    b2:  return 0.0             ->      b2:  jump b3
                                        b3:  %t: f64 = phi b1: %x, b2: 0.0
                                             return %t

Blocks that raise are unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

from zygote_py.ir import ops
from zygote_py.ir.building.cfg import joined, order_blocks
from zygote_py.ir.core import Block, Function, Instr, Jump, Operand, Return, Type, Value
from zygote_py.ir.types import with_components


def merge_returns(function: Function) -> None:
    """Merge the returns of `function`, with phis for the values where they differ."""
    returns = dict(function.returns())
    if len(returns) < 2:
        return
    first = next(iter(returns.values()))
    merged = Block(loc=next(iter(returns)).loc)
    merged.terminator = Return(
        tuple(
            _merged(merged, {block: leave.args[index] for block, leave in returns.items()}, operand.type)
            for index, operand in enumerate(first.args)
        )
    )
    for block in returns:
        block.terminator = Jump(merged)
    function.blocks.append(merged)
    order_blocks(function)


def _merged(block: Block, incoming: Mapping[Block, Operand], type: Type) -> Operand:
    """Return the merged result of the predecessors of a block; tuples that all of them pack are merged item by item."""
    made = [value for value in incoming.values() if isinstance(value, Instr) and value.op is ops.pack]
    if len(made) == len(incoming) and len({len(pack.args) for pack in made}) == 1:
        items = tuple(
            _merged(block, {pred: pack.args[number] for pred, pack in zip(incoming, made, strict=True)}, item.type)
            for number, item in enumerate(made[0].args)
        )
        kind = with_components(type, tuple(item.type for item in items))  # arrays may differ in order
        whole = Instr(ops.pack, items, kind, "", block.loc)
        block.instrs.append(whole)
        return whole
    hints = {value.hint if isinstance(value, Value) else "" for value in incoming.values()}
    return joined(block, incoming, type, hints.pop() if len(hints) == 1 else "")
