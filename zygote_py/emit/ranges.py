"""Detection of loops that can be printed as `for i in range(a, b, s)`.

    b1:  %i: i64 = phi b0: 0, b2: %i2           for i in range(0, n):
         %c = lt %i, %n : bool                      ...
         branch %c, b2, b3
    b2:  ...
         %i2 = add %i, 1 : i64

Python's `range` leaves the counter at its last value rather than past it, so neither `%i` nor `%i2` may be used after
the loop. A loop whose counter is not an int64 remains a `while`, since Numba would choose the type of the range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from numba import types

from zygote_py.emit.structure import Endless, Guarded, If, Loop, Region
from zygote_py.ir.analysis.loops import CountedLoop, LoopNest, counted
from zygote_py.ir.analysis.loops import Loop as NaturalLoop
from zygote_py.ir.core import Block, Function, Instr, Operand, Phi, Value
from zygote_py.ir.walks import Use, uses


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """The loop `for phi in range(start, bound + past, step)`, which replaces the instructions in `removed`."""

    phi: Phi
    start: Operand
    bound: Operand
    past: int
    step: int
    entering: Block
    removed: tuple[Instr, ...]


def ranges(function: Function, nest: LoopNest, regions: Sequence[Region]) -> dict[Block, Range]:
    """Return the loops in `regions` that can be printed as `for`, by their headers."""
    candidates: dict[Value, tuple[NaturalLoop, CountedLoop]] = {}
    for loop in _loops(regions):
        found = counted(loop, function)
        if found is None or len(loop.entering) != 1 or len(loop.latches) != 1:
            continue
        alone = {found.condition, found.increment} >= set(loop.header.instrs)
        if alone and all(operand.type == types.int64 for operand in (found.phi, found.start, found.bound)):
            candidates[found.phi] = (loop, found)
    used = uses(function)
    return {
        loop.header: _range(loop, found, used)
        for loop, found in candidates.values()
        if _unused_after(loop, found, used)
    }


def _loops(regions: Iterable[Region]) -> Iterable[NaturalLoop]:
    for region in regions:
        match region:
            case If(_, then, orelse):
                yield from _loops(then)
                yield from _loops(orelse)
            case Loop(loop, body):
                yield loop
                yield from _loops(body)
            case Endless(body) | Guarded(_, body):
                yield from _loops(body)
            case _:
                pass


Uses = Mapping[Value, Sequence[Use]]


def _unused_after(loop: NaturalLoop, found: CountedLoop, used: Uses) -> bool:
    header = loop.header
    if len(used[found.condition]) != 1:
        return False
    for value in (found.phi, found.increment):
        for use in used.get(value, ()):
            if use.at not in loop:
                return False
            if use.at is header and use.user not in (found.condition, found.increment):
                return False  # a copy on an exit edge
    return not (found.increment in header.instrs and len(used[found.increment]) > 1)


def _range(loop: NaturalLoop, found: CountedLoop, used: Uses) -> Range:
    removed = [found.condition]
    if len(used[found.increment]) == 1:
        removed.append(found.increment)
    return Range(
        found.phi, found.start, found.bound, found.comparison.past, found.step, loop.entering[0], tuple(removed)
    )
