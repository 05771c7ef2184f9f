"""Indexing with boolean arrays, which become arrays of the positions of their true elements.

    %y = getitem %x, %mask : f64[:]         %p = np.flatnonzero %mask : i64[:]
                                            %y = getitem %x, %p : f64[:]

`x[mask] = v` with a scalar needs no positions (see `ir.arrays.kernels`). Slices next to arrays in an index are applied
first, as a view.
"""

from __future__ import annotations

import operator

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import Memory, Order
from zygote_py.ir.arrays.classify import element, in_layout, is_numeric, ndim
from zygote_py.ir.arrays.shapes import Length, full_index, is_whole, whole_slice
from zygote_py.ir.arrays.writer import Writer
from zygote_py.ir.building.loop_nest import INDEX, Nest
from zygote_py.ir.core import Block, Branch, Const, Function, Instr, Jump, Operand, Phi
from zygote_py.ir.types import is_scalar

_PLACES = types.Array(INDEX, 1, "C")


def replace_masks(function: Function) -> None:
    """Rewrite indexing with arrays to use only integers, integer arrays and `:`."""
    memory = Memory(function)
    for block in function.blocks:
        instrs: list[Instr] = []
        known: dict[Operand, tuple[Instr, Instr]] = {}
        with memory.order_of(block) as order:
            for instr in block.instrs:
                first = 1 if instr.op is ops.getitem else 2 if instr.op is ops.setitem else 0
                arrays = [item for item in instr.args[first:] if is_numeric(item.type)] if first else []
                if arrays and is_numeric(instr.args[0].type):
                    instrs += _prepare(instr, first, order, known)
                instrs.append(instr)
        block.instrs = instrs


def _prepare(instr: Instr, first: int, order: Order, known: dict[Operand, tuple[Instr, Instr]]) -> list[Instr]:
    """Return the instructions to insert before one that indexes with arrays.

    `known` maps each mask to the last instruction before which its positions were computed, and to these.
    """
    source, value, index = instr.args[0], instr.args[1:first], instr.args[first:]
    if any(isinstance(item.type, types.NoneType) for item in index):
        return []
    masks = [item for item in index if _is_mask(item)]
    if len(masks) == len(index) == 1 and value and is_scalar(value[0].type):
        return []
    if (
        any(ndim(mask) != 1 for mask in masks)
        or len(masks) > 1
        or (masks and len(masks) < sum(is_numeric(item.type) for item in index))
    ):
        return []
    made: list[Instr] = []
    items = list(full_index(index, ndim(source)))
    for place, item in enumerate(items):
        if _is_mask(item):
            found = known.get(item)
            if found is None or order.writes_since(found[0], instr, item):
                positions = Instr(np.flatnonzero, (item,), _PLACES, "", instr.loc)
                made.append(positions)
                known[item] = found = instr, positions
            items[place] = found[1]
    slices = [isinstance(item.type, types.SliceType) for item in items]
    made += [item for item in items if isinstance(item, Instr) and is_whole(item) and item not in index]
    if any(is_slice and not is_whole(item) for is_slice, item in zip(slices, items, strict=True)):
        whole = whole_slice(instr.loc)
        taken = tuple(item if is_slice else whole for is_slice, item in zip(slices, items, strict=True))
        view = Instr(ops.getitem, (source, *taken), in_layout(source.type, "A"), "", instr.loc)
        made += [whole, view]
        source = view
        items = [whole if is_slice else item for is_slice, item in zip(slices, items, strict=True)]
    instr.args = (source, *value, *items)
    return made


def _is_mask(item: Operand) -> bool:
    return is_numeric(item.type) and element(item) == types.boolean


def find_positions(instr: Instr, length: Length, writer: Writer) -> tuple[list[Block], Instr]:
    """Build the loops of `np.flatnonzero`, one that counts and one that fills; return the new blocks and the array."""
    (array,) = instr.args
    bound = writer.length(length)
    nest = Nest(writer.block, [bound], writer.counters[:1], instr.loc)
    holds = _test(array, nest, nest.bodies[0], instr)
    one = Instr(np.int64, (holds,), INDEX, "", instr.loc)
    total = nest.accumulate(0, Const(0, INDEX), INDEX, "count")
    following = Instr(operator.add, (total.inner, one), INDEX, "count", instr.loc)
    nest.bodies[0].instrs += [one, following]
    nest.set_next(total, following)
    blocks = nest.finish()
    writer.block = nest.after
    found = writer.add(ops.record, total.outer, type=instr.type, hint=instr.hint or "places", loc=instr.loc)

    nest = Nest(writer.block, [bound], writer.counters[:1], instr.loc)
    body = nest.bodies[0]
    holds = _test(array, nest, body, instr)
    then, orelse, end = Block(instr.loc), Block(instr.loc), Block(instr.loc)
    place = nest.accumulate(0, Const(0, INDEX), INDEX, "k")
    then.instrs.append(Instr(ops.initialize, (found, nest.counters[0], place.inner), types.none, "", instr.loc))
    step = Instr(operator.add, (place.inner, Const(1, INDEX)), INDEX, "k", instr.loc)
    then.instrs.append(step)
    body.terminator = Branch(holds, then, orelse)
    then.terminator = orelse.terminator = Jump(end)
    moved = Phi(INDEX, "k", instr.loc, {then: step, orelse: place.inner})
    end.phis.append(moved)
    nest.ends[0] = end
    nest.set_next(place, moved)
    header, _, after = nest.finish()
    writer.block = nest.after
    return [*blocks, header, body, then, orelse, end, after], found


def _test(array: Operand, nest: Nest, block: Block, instr: Instr) -> Operand:
    value = Instr(ops.getitem, (array, nest.counters[0]), element(array), "", instr.loc)
    block.instrs.append(value)
    if isinstance(value.type, types.Boolean):
        return value
    zero = Const(0.0 if isinstance(value.type, types.Float) else 0, value.type)
    test = Instr(operator.ne, (value, zero), types.boolean, "c", instr.loc)
    block.instrs.append(test)
    return test
