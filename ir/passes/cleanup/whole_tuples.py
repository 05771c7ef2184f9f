"""Copy a tuple to an array as a whole, where its items are stored one by one.

    %v0 = getitem %values, 0
    %v1 = getitem %values, 1
    %a  = record 2 : f64[:]                 ->      %a = array %values : f64[:]
    initialize %a, %v0, 0
    initialize %a, %v1, 1

The items are left for `remove_dead_code`. An array that is so made cannot be differentiated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Const, Function, Instr, Operand, Value


def store_whole_tuples(function: Function) -> None:
    """Replace each array of which all elements are first set to the items of one tuple, in order."""
    for block in function.blocks:
        for number, made in enumerate(block.instrs):
            if made.op is ops.record and (found := _stored(made, block.instrs[number + 1 :])) is not None:
                made.op, made.args = np.array, (found[0],)
                block.instrs[number + 1 :] = found[1]


def _stored(array: Instr, following: Sequence[Instr]) -> tuple[Value, list[Instr]] | None:
    """Return the tuple that is stored in an array, and the instructions that follow, without the stores."""
    match array.args:
        case (Const(int(count)),):
            place, whole = 0, None
            others: list[Instr] = []
        case _:
            return None
    for number, instr in enumerate(following):
        if place == count:
            others += following[number:]
            break
        if array not in instr.args:
            others.append(instr)
            continue
        item_of = _item_stored(instr, array, place)
        if item_of is None or whole not in (None, item_of):
            return None
        whole, place = item_of, place + 1
    if whole is None or place < count:
        return None
    kind = whole.type
    of: Any = array.type
    is_like = isinstance(kind, types.UniTuple) and len(kind) == count and kind.dtype == of.dtype
    return (whole, others) if is_like else None


def _item_stored(store: Instr, array: Instr, place: int) -> Value | None:
    """Return the tuple of which an instruction sets element number `place` to item number `place`."""
    match store.op, store.args:
        case ops.initialize, (target, Instr(op=ops.getitem, args=(Value() as whole, item)), index):
            return whole if target is array and _is(item, place) and _is(index, place) else None
    return None


def _is(operand: Operand, place: int) -> bool:
    return isinstance(operand, Const) and operand.value == place
