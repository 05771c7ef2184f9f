"""Walks over a function: definitions and uses of values, and their replacement.

    uses(function)[x]                     # [Use(user=%t, block=b1, at=b1), ...]
    replace(function, {x: Const(0.0, f64)})

`core` has the walks over phis, instructions and terminators: `Function.instrs()` and its like.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeVar

from zygote_py.ir.core import Block, Function, Instr, Operand, Phi, Terminator, Value

K = TypeVar("K")
V = TypeVar("V")


class Use(NamedTuple):
    """An operand of `user`, a node of `block`, which is read in the block `at`: a phi reads it in a predecessor."""

    user: Phi | Instr | Terminator
    block: Block
    at: Block


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the second items of pairs by their first items, in order."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def uses(function: Function) -> defaultdict[Value, list[Use]]:
    """Return the uses of each value in text order, one for each operand."""
    found: defaultdict[Value, list[Use]] = defaultdict(list)
    for block in function.blocks:
        for phi in block.phis:
            for pred, operand in phi.incoming.items():
                if isinstance(operand, Value):
                    found[operand].append(Use(phi, block, pred))
        for node in (*block.instrs, block.terminator):
            for operand in node.args:
                if isinstance(operand, Value):
                    found[operand].append(Use(node, block, block))
    return found


def definitions(function: Function) -> dict[Value, Block]:
    """Return the block of each phi and of each instruction, in text order."""
    return {value: block for block in function.blocks for value in block.values}


def map_operands(blocks: Iterable[Block], change: Callable[[Operand, Block], Operand]) -> None:
    """Replace each operand by `change(operand, at)`, where `at` is the block in which it is read (see `Use`)."""
    for block in blocks:
        for phi in block.phis:
            phi.incoming = {pred: change(operand, pred) for pred, operand in phi.incoming.items()}
        for node in (*block.instrs, block.terminator):
            if node.args:
                node.args = tuple(change(operand, block) for operand in node.args)


def resolved(operand: Operand, replacement: Mapping[Value, Operand]) -> Operand:
    """Return the end of the chain of replacements that begins with `operand`. The chain must end."""
    while isinstance(operand, Value) and operand in replacement:
        operand = replacement[operand]
    return operand


def replace_uses(function: Function, replacement: Mapping[Value, Operand]) -> None:
    """Replace every use of the mapped values, following chains of replacements; their definitions remain.

    A chain must end: `replacement` has no cycle. An `Alpha` of a mapped value is not touched.
    """
    if replacement:
        map_operands(function.blocks, lambda operand, _: resolved(operand, replacement))


def remove(function: Function, values: Collection[Value]) -> None:
    """Remove the definitions of phis and instructions."""
    if values:
        for block in function.blocks:
            block.phis = [phi for phi in block.phis if phi not in values]
            block.instrs = [instr for instr in block.instrs if instr not in values]


def replace(function: Function, replacement: Mapping[Value, Operand]) -> None:
    """Replace every use of the mapped values, following chains, and remove their definitions."""
    replace_uses(function, replacement)
    remove(function, replacement)
