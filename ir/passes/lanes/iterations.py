"""Iterations of independent loops side by side: 32 of them at a time, in one iteration of a new loop.

    for i in range(n):                          for block in range(n // 32):
        for j in range(d):                          i = 32 * block
            w[j] = x[i, j] - m[j]                   for j in range(d):
        for j in range(d):                 ->           w[j] = lanes(x[i, j], ..., x[i + 31, j]) - m[j]
            dm[j] += w[j]                           for j in range(d):
                                                        dm_parts[j] += folded(w[j], 4)      # four sums of eight
                                                dm += the sums of the parts
                                                for i in range(n // 32 * 32, n): ...

32 numbers are four to eight vectors of the processor's, so that what a loop does besides counts little. Of what all
iterations add to there are four parts, which is less to go through in memory than 32. Of the iterations that are left,
eight run at a time, whose sums are added at once; those that remain then, fewer than eight, one by one.

An inner loop does not become vectors of the processor's where its iterations depend on each other, or are few. Those of
the loop around it are independent if each is reversed as soon as it has run (`Function.independent`). What the
iterations pass on are sums then, which may be added up in any order, or are added up in the old one.

The text of a function does not show any of this: it is done to what is compiled (`zygote_py.emit.target`).
"""

from __future__ import annotations

import operator

from zygote_py.ir import ops
from zygote_py.ir.analysis.dominators import reverse_postorder
from zygote_py.ir.analysis.effects import is_fresh
from zygote_py.ir.analysis.loops import CountedLoop, Loop, counted, loop_nest
from zygote_py.ir.analysis.memory import Memory
from zygote_py.ir.checks.debug import is_left_out
from zygote_py.ir.core import (
    Block,
    Function,
    Instr,
    Loc,
)
from zygote_py.ir.passes.lanes.conditions import INDEX as _INDEX
from zygote_py.ir.passes.lanes.varying import Unfit, Varying
from zygote_py.ir.passes.lanes.widened import NARROW, WIDE, Widened
from zygote_py.ir.passes.lanes.worth import is_worth_it

_AT_A_TIME = 16  # iterations for which the operations are counted


def iterations_in_lanes(function: Function) -> list[Loc | None]:
    """Let the iterations of independent loops run side by side where that pays, in place. Return where these are."""
    if not function.independent or is_left_out("lanes"):
        return []
    places: list[Loc | None] = []
    done: set[Block] = set()
    while (found := _next(function, done)) is not None:
        places.append(found.loop.loc)
        done.add(found.loop.header)
        (entering,) = found.loop.entering
        for width in (WIDE, NARROW):
            header, entering = Widened(function, found, width).build(entering)
            done.add(header)
        function.blocks = reverse_postorder(function)
    return places


def _next(function: Function, done: set[Block]) -> Varying | None:
    """Return the next loop that is to run in lanes: an outer one before those in it."""
    nest = loop_nest(function)
    memory: Memory | None = None
    inside: set[Loop | None] = set()
    for loop in nest.loops:
        if loop.parent in inside or loop.header in done:
            inside.add(loop)
            continue
        count = _count_of(function, loop) if loop.children else None
        if count is None:
            continue
        try:
            found = Varying(function, nest, loop, count)
        except Unfit:
            continue
        if is_worth_it(found, nest, _AT_A_TIME):
            memory = memory or Memory(function)
            if _is_apart(found, memory):
                return found
    return None


def _count_of(function: Function, loop: Loop) -> CountedLoop | None:
    """Return how a loop counts, if it is independent, and counts up by one in the simplest form."""
    if len(loop.entering) != 1 or len(loop.latches) != 1 or function.independent.isdisjoint(loop.header.phis):
        return None
    found = counted(loop, function)
    is_plain = (
        found is not None
        and found.phi in function.independent
        and found.step == 1
        and found.phi.type == found.bound.type == _INDEX
        and found.condition.op is operator.lt
        and found.condition.args[0] is found.phi
        and loop.header.instrs == [found.condition]
    )
    return found if is_plain else None


def _is_apart(found: Varying, memory: Memory) -> bool:
    """Return whether the arrays that iterations add to are new ones, which the loop does not read."""
    roots = {memory.root(array) for array in found.added}
    if None in roots or not roots.isdisjoint(memory.outside):
        return False
    stores = any(each.op is not ops.accumulate for adds in found.added.values() for each in adds)
    are_new = all(isinstance(each, Instr) and is_fresh(each) for each in found.added)
    if stores and len(roots) < len(found.added) and not are_new:
        return False  # two views of the same memory, which is not only added to
    others = {memory.root(array) for array in found.arrays if array not in found.added and array not in found.private}
    return roots.isdisjoint(others)
