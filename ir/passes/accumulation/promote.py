"""Promote the accumulation of a loop into one array element to a variable.

    b1: %k: i64 = phi b0: 0, b2: %k2                b1: %k: i64 = phi b0: 0, b2: %k2
                                                        %s: f64 = phi b0: 0.0, b2: %s2
        %c = lt %k, %n                                  %c = lt %k, %n
        branch %c, b2, b3                   ->          branch %c, b2, b4
    b2: accumulate %x, %v, %i                       b2: %s2 = add %s, %v : f64
        ...                                             ...
    b3: ...                                         b4: %c2 = lt 0, %n
                                                        branch %c2, b5, b3
                                                    b5: accumulate %x, %s, %i
                                                        jump b3

Only if the element is the same in all iterations, and whatever else in the loop accesses the array is such an
accumulation as well, or accesses other elements, as the indices tell. If the loop makes no iteration there may be no
such element; loops that do not count are unchanged. The order of summation changes: only adjoints (instructions with an
`origin`), which are sums in no particular order, are promoted, not the user's own accumulations.
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import (
    CountedLoop,
    Distances,
    Loop,
    LoopNest,
    Memory,
    counted_exit,
    invariant,
    loop_nest,
    reads,
    writes,
)
from zygote_py.ir.building.cfg import order_blocks, split_edge
from zygote_py.ir.core import Branch, Const, Function, Instr, Operand, Phi, Value, zero
from zygote_py.ir.passes.accumulation.fixed import computed_before, key_of
from zygote_py.ir.walks import definitions, grouped


def promote_accumulations(function: Function) -> None:
    """Rewrite the loops of a joint function in place, inner loops first."""
    memory = Memory(function)
    changed = False
    while _promote_one(function, memory):
        changed = True
    if changed:
        order_blocks(function)


def _promote_one(function: Function, memory: Memory) -> bool:
    nest = loop_nest(function)
    for loop in reversed(nest.loops):
        if (
            len(loop.latches) == len(loop.entering) == len(loop.exits) == 1
            and not loop.raising_exits
            and (counted := counted_exit(loop)) is not None
            and _promote(loop, counted, function, memory, nest)
        ):
            return True
    return False


def _promote(loop: Loop, counted: CountedLoop, function: Function, memory: Memory, nest: LoopNest) -> bool:
    ((inside, _),) = loop.exits
    (latch,), (before,) = loop.latches, loop.entering
    if inside is not loop.header or runs(counted, loop) is False:
        return False
    by_root = touched(loop, memory)
    distances: Distances | None = None
    sums: list[Instr] = []
    for block in loop.order:
        if block is loop.header or not nest.tree.dominates(block, latch):
            continue
        for position, instr in enumerate(block.instrs):
            if not _is_of_adjoint(instr):
                continue
            array, value, *index = instr.args
            root = memory.root(array)
            if root is None or not isinstance(array.type, types.Array):
                continue
            if (len(index), value.type) != (array.type.ndim, array.type.dtype) or not invariant(array, loop):
                continue
            if any(key_of(each, loop) is None for each in index):
                continue
            others = [each for each in by_root[root] if not _is_of_adjoint(each)]
            if others:
                distances = distances or Distances(function, nest, definitions(function))
                if not all(each in distances and distances.are_others(instr, each, loop) for each in others):
                    continue
            index = [computed_before(each, loop, before) for each in index]
            hint = value.hint if isinstance(value, Value) and value.hint else "d"
            total = Phi(value.type, hint)
            added = Instr(operator.add, (total, value), value.type, hint, instr.loc, (), instr.origin)
            total.incoming = {before: zero(value.type), latch: added}
            loop.header.phis.append(total)
            block.instrs[position] = added
            sums.append(Instr(ops.accumulate, (array, total, *index), types.none, "", instr.loc, (), instr.origin))
    if sums:
        put_behind(sums, loop, counted, runs(counted, loop), function)
    return bool(sums)


def _is_of_adjoint(instr: Instr) -> bool:
    """Return whether this adds to an element of an adjoint, a sum in no particular order."""
    return instr.op is ops.accumulate and instr.origin is not None


def touched(loop: Loop, memory: Memory) -> dict[Value | None, list[Instr]]:
    """Return the instructions of a loop that read or write memory, by its roots."""
    return grouped(
        (root, instr)
        for block in loop.order
        for instr in block.instrs
        for root in {memory.root(each) for each in (*reads(instr), *writes(instr))}
    )


def put_behind(stores: list[Instr], loop: Loop, counted: CountedLoop, always: bool | None, function: Function) -> None:
    """Perform stores after a loop: `always`, or if it has made a round."""
    ((_, behind),) = loop.exits
    after = split_edge(function, loop.header, behind)
    added = after
    if not always:
        added = split_edge(function, after, behind)
        for phi in behind.phis:
            phi.incoming[after] = phi.incoming[added]
        condition = Instr(counted.comparison.op, (counted.start, counted.bound), types.boolean, "c")
        after.instrs.append(condition)
        after.terminator = Branch(condition, added, behind)
    added.instrs += stores


def runs(counted: CountedLoop, loop: Loop, distances: Distances | None = None) -> bool | None:
    """Return whether a loop makes a round when it is reached; None if it depends.

    With `distances` of the loop's function, also the bounds of the counters around it are compared.
    """
    if distances is not None:
        least = 0 if counted.comparison.of_equals else 1
        ends = (counted.bound, counted.start) if counted.step > 0 else (counted.start, counted.bound)
        if distances.is_more(*ends, loop.entering[0], least):
            return True
    around = loop.parent
    while around is not None:
        how = counted_exit(around)
        if how is not None and _first(how) == _first(counted):
            return True  # otherwise the loop around it would make none
        around = around.parent
    match counted.start, counted.bound:
        case Const(int(start)), Const(int(bound)):
            return bool(counted.comparison.op(start, bound))
        case _:
            return None


def _first(counted: CountedLoop) -> tuple[object, Operand, Operand]:
    """Return the condition under which a loop makes a round."""
    return counted.comparison.op, counted.start, counted.bound
