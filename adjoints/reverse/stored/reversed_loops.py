"""Loops of the reverse sweep, each the reverse of one of the forward sweep.

b1':  %k = phi b3': %last, b2': %k2         the header, which `before` enters
      %t = ge %k, 0
      branch %t, b2', b0'                   `after` is b0'
b2':  %k2 = sub %k, 1                       the latch
      jump b1'
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from zygote_py.ir import Block, Branch, Function, InternalError, Loop, LoopNest, predecessors
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class ReversedLoop:
    """The blocks of a reversed loop; `is_left_here` if one comes to `after` from no other block."""

    header: Block
    latch: Block
    before: Block
    after: Block
    is_left_here: bool


def reversed_loops(
    joint: Function, nest: LoopNest, mirrored: Mapping[Block, Block], headers: Collection[Block]
) -> dict[Loop, ReversedLoop]:
    """Return the reverse of the loops whose reverse has one of the `headers`, by the loop."""
    found: dict[Loop, ReversedLoop] = {}
    preds = predecessors(joint)
    for header in headers:
        loop, end = nest.innermost(mirrored[header]), header.terminator
        if loop is None or not isinstance(end, Branch):
            raise InternalError("reversed loops: a header without a loop")
        (latch,) = (pred for pred in preds[header] if mirrored[pred] in loop)
        (before,) = (pred for pred in preds[header] if pred is not latch)
        found[loop] = ReversedLoop(header, latch, before, end.orelse, len(preds[end.orelse]) == 1)
    return found
