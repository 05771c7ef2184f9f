"""Shadows that begin as the first contribution to them, in place of zeros to which it is added.

    %dt = zeros %n, %m                          in the primal, beside %t
    ...
    %c = dot_left @p, @dy               ->      %dt = dot_left @p, @dy
    accumulate @dt, %c
    ... @dt                                     ... %dt

The array of zeros is then not used, and its lengths, which the reverse sweep no longer asks for, need no record.

It is done where all that uses the zeros comes after the contribution, which comes once for each array of zeros, and is
an array of its own, of the same type. Of the same shape it is by the contract of the rules
(`adjoints/rules/formulas/opaque.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from zygote_py.adjoints.rules.formulas.opaque import is_new_contribution
from zygote_py.ir import (
    Alpha,
    Block,
    Function,
    Instr,
    Operand,
    definitions,
    dominator_tree,
    is_left_out,
    loop_nest,
    map_operands,
    ops,
    reverse_postorder,
    uses,
)


def assign_first_contributions(function: Function) -> None:
    """Let shadows begin as the first contributions to them, in place, in an adjoint or in a joint function.

    The zeros of an adjoint are made by its primal, those of a joint function by itself.
    """
    if is_left_out("first-contributions"):
        return
    blocks = reverse_postorder(function)
    first = {zeros: at for zeros, at in _first_users(blocks).items() if _is_assignable(zeros, *at)}
    if not first:
        return
    primal = function.primal
    maker = function if primal is None else primal
    nest, home, tree, used = loop_nest(maker), definitions(maker), dominator_tree(function), _places(blocks)
    of_primal = {} if primal is None else uses(primal)
    assigned: dict[Operand, Instr] = {}
    for zeros, (added, block) in first.items():
        contribution, of_maker = added.args[1], block if primal is None else block.mirror
        assert isinstance(contribution, Instr)
        assert of_maker is not None
        if (
            zeros not in of_primal
            and len(used[contribution]) == 1
            and nest.innermost(of_maker) is nest.innermost(home[zeros])
            and all(tree.dominates(block, place) for place in used[zeros])
        ):
            assigned[zeros] = contribution
            contribution.hint = contribution.hint or zeros.hint
            block.instrs.remove(added)
    if assigned:
        map_operands(function.blocks, lambda operand, _: assigned.get(_seen_through(operand), operand))


def _first_users(blocks: Sequence[Block]) -> dict[Instr, tuple[Instr, Block]]:
    """Return the first user of each array of zeros, in blocks of which each follows those that dominate it."""
    found: dict[Instr, tuple[Instr, Block]] = {}
    for block in blocks:
        for instr in block.instrs:
            for arg in instr.args:
                zeros = _seen_through(arg)
                if isinstance(zeros, Instr) and zeros.op is ops.zeros:
                    found.setdefault(zeros, (instr, block))
    return found


def _is_assignable(zeros: Instr, user: Instr, block: Block) -> bool:
    """Return whether the first user of zeros adds an array to them that could stand for them."""
    match user:
        case Instr(op=ops.accumulate, args=(total, Instr() as contribution)) if _seen_through(total) is zeros:
            same = contribution.type == zeros.type and contribution in block.instrs
            return same and is_new_contribution(contribution)
    return False


def _places(blocks: Sequence[Block]) -> dict[Operand, list[Block]]:
    """Return the blocks in which each value is used."""
    found: dict[Operand, list[Block]] = {}

    def noted(operand: Operand, block: Block) -> Operand:
        found.setdefault(_seen_through(operand), []).append(block)
        return operand

    map_operands(blocks, noted)
    return found


def _seen_through(operand: Operand) -> Operand:
    return operand.value if isinstance(operand, Alpha) else operand
