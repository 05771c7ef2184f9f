"""Reduce the header of a loop to the computation of its condition: numbers used elsewhere are computed elsewhere.

    b1:  %y1: f64 = phi b0: %y, b2: %y2         b1:  %y1: f64 = phi b0: %y, b2: %y2
         %t = mul %y1, %y1 : f64                     %t = mul %y1, %y1 : f64
         %c = lt %t, 4.0 : bool                      %c = lt %t, 4.0 : bool
         branch %c, b2, b3                  ->       branch %c, b2, b3
    b2:  %y2 = add %t, 1.0 : f64                b2:  %t1 = mul %y1, %y1 : f64
         jump b1                                     %y2 = add %t1, 1.0 : f64
    b3:  return %t                                   jump b1
                                                b3:  %t2 = mul %y1, %y1 : f64
                                                     return %t2

A header runs once more than the body, so its numbers belong to no iteration; after this pass those of the body do. The
loops are in canonical form. Integers and booleans remain, and so do instructions with effects, and what is used where
both the body and the header lead to: that can only be the way to an exception.
"""

from __future__ import annotations

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import Loop, effect, loop_nest
from zygote_py.ir.core import Block, Branch, Function, Instr, Operand
from zygote_py.ir.walks import map_operands, uses


def bare_headers(function: Function) -> None:
    """Redirect the uses of a header's numbers to copies of them in the body and after the loop."""
    nest = loop_nest(function)
    for loop in nest.loops:
        branch = loop.header.terminator
        if not isinstance(branch, Branch):
            continue
        inside, outside = (branch.then, branch.orelse) if branch.then in loop else (branch.orelse, branch.then)
        if wanted := _used_elsewhere(function, loop):
            in_body, after = _copies(wanted), _copies(wanted)

            def moved(
                operand: Operand,
                block: Block,
                header: Block = loop.header,
                copies: tuple[tuple[Block, dict[Operand, Instr]], ...] = ((inside, in_body), (outside, after)),
            ) -> Operand:
                if block is not header:
                    for start, of in copies:
                        if nest.tree.dominates(start, block):
                            return of.get(operand, operand)
                return operand

            map_operands(function.blocks, moved)
            inside.instrs[:0] = in_body.values()
            outside.instrs[:0] = after.values()


def _used_elsewhere(function: Function, loop: Loop) -> list[Instr]:
    """Return the header's numbers that are used outside of it, and those that they are computed from."""
    movable = [
        instr
        for instr in loop.header.instrs
        if effect(instr) in (ops.Effect.PURE, ops.Effect.READ)
        and not isinstance(instr.type, types.Integer | types.Boolean)
    ]
    if not movable:
        return []
    used = uses(function)
    wanted: set[Operand] = {instr for instr in movable if any(use.at is not loop.header for use in used[instr])}
    for instr in reversed(movable):
        if instr in wanted:
            wanted.update(arg for arg in instr.args if arg in movable)
    return [instr for instr in movable if instr in wanted]


def _copies(wanted: list[Instr]) -> dict[Operand, Instr]:
    copies: dict[Operand, Instr] = {}
    for instr in wanted:
        copies[instr] = instr.copy(tuple(copies.get(arg, arg) for arg in instr.args))
    return copies
