"""Remove what lowering leaves over: unused values and redundant phis.

    %t0 = dim %x, 1 : i64                 (x.shape, of which the function uses one)
    %r1: f64 = phi b0: %r0, b2: %r0   ->  %r0

Whatever has an effect or may raise is kept. No block is added or removed, but the blocks are put into an order that
does not depend on how a version of Python lays out its bytecode: a branch's `then` first, and what follows a loop after
it.
"""

from __future__ import annotations

from zygote_py.ir import Block, Function, Operand, Value, remove_redundant_phis
from zygote_py.ir.analysis import effect, loop_nest, reach, reverse_postorder
from zygote_py.ir.ops import Effect, of


def clean_up(function: Function) -> None:
    """Remove redundant phis and unused values, and order the blocks, in place."""
    remove_redundant_phis(function)
    _remove_unused(function)
    _order_blocks(function)


def _remove_unused(function: Function) -> None:
    starts: list[Operand] = []
    for block in function.blocks:
        acting = (instr for instr in block.instrs if effect(instr) is Effect.WRITE or of(instr.op).may_raise)
        starts += (*block.terminator.args, *acting)
    used = set(reach(starts, lambda operand: operand.args if isinstance(operand, Value) else ()))
    for block in function.blocks:
        block.phis = [phi for phi in block.phis if phi in used]
        block.instrs = [instr for instr in block.instrs if instr in used]


def _order_blocks(function: Function) -> None:
    """Put the blocks into the reverse postorder of a walk that takes the ways out of loops first: they come last."""
    nest = loop_nest(function)

    def ways(block: Block) -> list[Block]:
        def loops_left(to: Block) -> int:
            return sum(to not in loop for loop in nest.around(block))

        return sorted(block.successors, key=loops_left)

    function.blocks = reverse_postorder(function, ways)
