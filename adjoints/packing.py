"""Many values as one: tuples, of tuples if there are more than a tuple can hold.

pack_all(block, (a, b, c))          %t = pack %a, %b, %c : (f64, f64, f64[:])
"""

from __future__ import annotations

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Block, Const, Instr, Operand, Type, Value
from zygote_py.ir.types import components_of

# The most items in one tuple. Python writes a tuple of more than thirty as a list first, which Numba gets wrong.
LARGEST = 16


def pack_all(block: Block, items: tuple[Operand, ...]) -> Operand:
    """One value of many, at the end of a block: a tuple, of tuples if there are more than `LARGEST`."""
    if len(items) > LARGEST:
        parts = [items[start : start + LARGEST] for start in range(0, len(items), LARGEST)]
        items = tuple(pack_all(block, part) for part in parts)
        return pack_all(block, items)
    kind = types.Tuple(tuple(item.type for item in items))
    instr = Instr(ops.pack, items, kind)
    block.instrs.append(instr)
    return instr


def packed_type(kinds: tuple[Type, ...]) -> Type:
    """The type of what `pack_all` gives."""
    if len(kinds) > LARGEST:
        parts = [kinds[start : start + LARGEST] for start in range(0, len(kinds), LARGEST)]
        return packed_type(tuple(map(packed_type, parts)))
    made: Type = types.Tuple(kinds)
    return made


def unpack_all(whole: Value, count: int) -> tuple[list[Instr], list[Instr]]:
    """The instructions that take apart what `pack_all` made of `count` items, and those of them that give the items."""
    if not count:
        return [], []
    if count > LARGEST:
        sizes = [min(LARGEST, count - start) for start in range(0, count, LARGEST)]
        made, parts = unpack_all(whole, len(sizes))
        items: list[Instr] = []
        for part, size in zip(parts, sizes, strict=True):
            inner, found = unpack_all(part, size)
            made += inner
            items += found
        return made, items
    taken = [
        Instr(ops.getitem, (whole, Const(number, types.int64)), kind)
        for number, kind in enumerate(components_of(whole.type))
    ]
    return list(taken), taken
