"""Leave in the header of a loop only what its condition needs: numbers that are used elsewhere are computed elsewhere.

    b1:  %y1: f64 = phi b0: %y, b2: %y2         b1:  %y1: f64 = phi b0: %y, b2: %y2
         %t = mul %y1, %y1 : f64                     %t = mul %y1, %y1 : f64
         %c = lt %t, 4.0 : bool                      %c = lt %t, 4.0 : bool
         branch %c, b2, b3                  ->       branch %c, b2, b3
    b2:  %y2 = add %t, 1.0 : f64                b2:  %t1 = mul %y1, %y1 : f64
         jump b1                                     %y2 = add %t1, 1.0 : f64
    b3:  return %t                                   jump b1
                                                b3:  %t2 = mul %y1, %y1 : f64
                                                     return %t2

A header runs once more than the body, so that its numbers belong to no iteration; afterwards those of the body do. The
loops are in canonical form. Integers and truth values stay, and so does what has effects.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Block, Branch, Function, Instr, Operand, Raise, Return, Value, operands
from zygote_py.ir.loops import Loop, loop_nest
from zygote_py.ir.memory import effect


def bare_headers(function: Function) -> None:
    """Move the uses of a header's numbers to copies of them in the body and behind the loop."""
    nest = loop_nest(function)
    for loop in nest.loops:
        branch = loop.header.terminator
        if not isinstance(branch, Branch):
            continue
        inside, outside = (branch.then, branch.orelse) if branch.then in loop else (branch.orelse, branch.then)
        wanted = _used_elsewhere(function, loop)
        if wanted:
            in_body, behind = _copy(wanted, inside), _copy(wanted, outside)

            def moved(
                operand: Operand,
                block: Block,
                inside: Block = inside,
                in_body: dict[Value, Instr] = in_body,
                behind: dict[Value, Instr] = behind,
            ) -> Operand:
                copies = in_body if nest.tree.dominates(inside, block) else behind
                return copies.get(operand, operand) if isinstance(operand, Value) else operand

            _move_uses(function, loop.header, {*in_body.values(), *behind.values()}, moved)


def _used_elsewhere(function: Function, loop: Loop) -> list[Instr]:
    """The header's numbers that are used outside of it, and those that they are computed from."""
    movable = [
        instr
        for instr in loop.header.instrs
        if isinstance(instr, Instr)
        and effect(instr) in (ops.Effect.PURE, ops.Effect.READ)
        and not isinstance(instr.type, types.Integer | types.Boolean)
    ]
    if not movable:
        return []
    candidates: set[Value] = set(movable)
    wanted: set[Operand] = set()
    for block in function.blocks:
        for phi in block.phis:
            wanted.update(operand for pred, operand in phi.incoming.items() if pred is not loop.header)
        if block is not loop.header:
            for node in (*block.instrs, block.terminator):
                wanted.update(operands(node))
    wanted &= candidates
    for instr in reversed(movable):
        if instr in wanted:
            wanted.update(arg for arg in instr.args if arg in candidates)
    return [instr for instr in movable if instr in wanted]


def _copy(wanted: list[Instr], block: Block) -> dict[Value, Instr]:
    copies: dict[Value, Instr] = {}
    for instr in wanted:
        args = tuple(copies.get(arg, arg) if isinstance(arg, Value) else arg for arg in instr.args)
        copies[instr] = Instr(instr.op, args, instr.type, instr.hint, instr.loc, instr.keywords, instr.origin)
    block.instrs[:0] = copies.values()
    return copies


def _move_uses(function: Function, header: Block, made: set[Instr], moved: Callable[[Operand, Block], Operand]) -> None:
    """Replace the operands outside of the header; those of a phi are used at the end of the predecessor."""
    for block in function.blocks:
        for phi in block.phis:
            phi.incoming = {
                pred: operand if pred is header else moved(operand, pred) for pred, operand in phi.incoming.items()
            }
        if block is header:
            continue
        for instr in block.instrs:
            if isinstance(instr, Instr) and instr not in made:
                instr.args = tuple(moved(arg, block) for arg in instr.args)
        match block.terminator:
            case Branch() as branch:
                branch.condition = moved(branch.condition, block)
            case Return() as leave:
                leave.values = tuple(moved(value, block) for value in leave.values)
            case Raise() as leave:
                leave.args = tuple(moved(arg, block) for arg in leave.args)
            case _:
                pass
