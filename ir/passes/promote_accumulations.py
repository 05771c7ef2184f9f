"""Add up in a variable what a loop adds to one element of an array.

    b1: %k: i64 = phi b0: 0, b2: %k2                b1: %k: i64 = phi b0: 0, b2: %k2
        ...                                             %s: f64 = phi b0: 0.0, b2: %s2
        branch %c, b2, b3                   ->          ...
    b2: accumulate %x, %v, %i                       b2: %s2 = add %s, %v : f64
        ...                                             ...
    b3: ...                                         b3: accumulate %x, %s, %i

Only where the element is the same in all iterations and nothing else in the loop touches the array. The sum is added up
in another order than before: this is for adjoints (instructions with an `origin`), which are sums in no particular
order, and not for what the user wrote.
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Function, Instr, Phi, Value, zero
from zygote_py.ir.loops import Loop, invariant, loop_nest
from zygote_py.ir.memory import Memory, reads, writes


def promote_accumulations(function: Function) -> None:
    """Rewrite the loops of a joint function, inner ones first, in place."""
    memory = Memory(function)
    for loop in reversed(loop_nest(function).loops):
        if len(loop.latches) == 1 and len(loop.entering) == 1 and len(loop.exits) == 1 and not loop.raising_exits:
            _promote(loop, function, memory)


def _promote(loop: Loop, function: Function, memory: Memory) -> None:
    ((inside, behind),) = loop.exits
    (latch,), (before,) = loop.latches, loop.entering
    if inside is not loop.header:
        return
    touched: dict[Value, int] = {}
    for block in loop.order:
        for instr in block.instrs:
            if isinstance(instr, Instr):
                roots = {root for each in (*reads(instr), *writes(instr)) if (root := memory.root(each)) is not None}
                for root in roots:
                    touched[root] = touched.get(root, 0) + 1
    tree = loop_nest(function).tree
    for block in loop.order:
        if block is loop.header or not tree.dominates(block, latch):
            continue
        for position, instr in enumerate(block.instrs):
            if not isinstance(instr, Instr) or instr.op is not ops.accumulate or instr.origin is None:
                continue
            array, value, *index = instr.args
            root = memory.root(array)
            if root is None or touched[root] != 1 or not isinstance(array.type, types.Array):
                continue
            if len(index) != array.type.ndim or value.type != array.type.dtype:
                continue
            loop.forget_values()
            if not all(invariant(each, loop) for each in (array, *index)):
                continue
            hint = value.hint if isinstance(value, Value) and value.hint else "d"
            total = Phi(value.type, hint)
            added = Instr(operator.add, (total, value), value.type, hint, instr.loc, (), instr.origin)
            total.incoming = {before: zero(value.type), latch: added}
            loop.header.phis.append(total)
            block.instrs[position] = added
            after = Instr(ops.accumulate, (array, total, *index), types.none, "", instr.loc, (), instr.origin)
            behind.instrs.insert(0, after)
    loop.forget_values()
