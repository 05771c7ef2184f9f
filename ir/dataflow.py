"""One solver for dataflow problems, and liveness as a problem for it.

A problem is what happens in a block (`transfer`), possibly what happens on an edge, and how facts from several edges
meet. Facts are sets, either Python ints used as bit sets or frozensets:

    defined = solve(function, gen_kill({b0: 0b01, b1: 0b10}, {}), meet=Meet.INTERSECTION, start=0, top=0b11)
    defined.before[b1]                  # what is defined on every path to b1

    alive = liveness(function)
    alive.after(b0)                     # the values that are live at the end of b0

The solver iterates to the fixpoint for any graph; a transfer function must be monotone.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from zygote_py.ir.core import Block, Function, Operand, Value, operands, predecessors
from zygote_py.ir.dominators import reverse_postorder

Facts = TypeVar("Facts", int, frozenset[object])


class Meet(enum.Enum):
    """How the facts of several edges make one."""

    UNION = "on some path"
    INTERSECTION = "on all paths"


@dataclass(frozen=True, slots=True, eq=False)
class Solution(Generic[Facts]):
    """What holds at the beginning (`before`) and at the end (`after`) of each block that can be reached."""

    before: Mapping[Block, Facts]
    after: Mapping[Block, Facts]


def solve(
    function: Function,
    transfer: Callable[[Block, Facts], Facts],
    *,
    start: Facts,
    top: Facts,
    meet: Meet = Meet.UNION,
    forward: bool = True,
    edge: Callable[[Block, Block, Facts], Facts] | None = None,
) -> Solution[Facts]:
    """Solve a dataflow problem by iteration over a work list in (reverse) postorder.

    `start` holds at the entry (backward: at the end of blocks without successors), `top` is what blocks not seen yet
    are taken to give: the empty set for a union, everything for an intersection. `edge(pred, successor, facts)` is what
    an edge makes of the facts at its origin (backward: at its successor).
    """
    order = reverse_postorder(function)
    if not forward:
        order.reverse()
    preds = predecessors(function)
    number = {block: index for index, block in enumerate(order)}
    sources = {block: [b for b in (preds[block] if forward else block.successors) if b in number] for block in order}
    followers = {block: [b for b in (block.successors if forward else preds[block]) if b in number] for block in order}
    entering: dict[Block, Facts] = {}
    leaving: dict[Block, Facts] = dict.fromkeys(order, top)
    dirty = [True] * len(order)
    remaining = len(order)
    while remaining:
        for block in order:
            if not dirty[number[block]]:
                continue
            dirty[number[block]] = False
            remaining -= 1
            arriving = [leaving[source] for source in sources[block]]
            if edge is not None:
                pairs = [(source, block) if forward else (block, source) for source in sources[block]]
                arriving = [edge(*pair, facts) for pair, facts in zip(pairs, arriving, strict=True)]
            facts = arriving[0] if arriving else start
            for other in arriving[1:]:
                facts = facts | other if meet is Meet.UNION else facts & other
            entering[block] = facts
            result = transfer(block, facts)
            if result != leaving[block]:
                leaving[block] = result
                for follower in followers[block]:
                    remaining += not dirty[number[follower]]
                    dirty[number[follower]] = True
    return Solution(entering, leaving) if forward else Solution(leaving, entering)


def gen_kill(gen: Mapping[Block, int], kill: Mapping[Block, int]) -> Callable[[Block, int], int]:
    """The transfer function of blocks that remove the facts `kill` and then add the facts `gen`."""
    return lambda block, facts: gen.get(block, 0) | (facts & ~kill.get(block, 0))


@dataclass(frozen=True, slots=True, eq=False)
class Liveness:
    """The values that are used later: bit `i` of a set stands for `values[i]`.

    The phis of a block are defined on the edges to it: they are not live before it. The operands of phis are live at
    the end of the predecessor they belong to.
    """

    values: tuple[Value, ...]
    number: Mapping[Value, int]
    live_in: Mapping[Block, int]
    live_out: Mapping[Block, int]

    def before(self, block: Block) -> list[Value]:
        """The values that are live at the beginning of `block`, apart from its phis."""
        return self._members(self.live_in[block])

    def after(self, block: Block) -> list[Value]:
        """The values that are live at the end of `block`."""
        return self._members(self.live_out[block])

    def is_live_after(self, value: Value, block: Block) -> bool:
        """Whether `value` is live at the end of `block`."""
        return bool(self.live_out[block] >> self.number[value] & 1)

    def _members(self, bits: int) -> list[Value]:
        found: list[Value] = []
        while bits:
            lowest = bits & -bits
            found.append(self.values[lowest.bit_length() - 1])
            bits ^= lowest
        return found


def liveness(function: Function) -> Liveness:
    """Which values are live where, in the blocks that can be reached."""
    values = tuple(function.values())
    number = {value: index for index, value in enumerate(values)}

    def bits(used: tuple[Operand, ...]) -> int:
        found = 0
        for operand in used:
            if isinstance(operand, Value):
                found |= 1 << number[operand]
        return found

    gen: dict[Block, int] = {}
    kill: dict[Block, int] = {}
    for block in function.blocks:
        used = bits(operands(block.terminator))
        defined = 0
        for instr in reversed(block.instrs):
            defined |= 1 << number[instr]
            used = (used & ~(1 << number[instr])) | bits(operands(instr))
        for phi in block.phis:
            defined |= 1 << number[phi]
        gen[block] = used & ~defined
        kill[block] = defined

    passed = {
        (pred, block): bits(tuple(phi.incoming[pred] for phi in block.phis))
        for block in function.blocks
        if block.phis
        for pred in block.phis[0].incoming
    }

    def edge(pred: Block, successor: Block, live: int) -> int:
        return live | passed.get((pred, successor), 0)

    solution = solve(function, gen_kill(gen, kill), start=0, top=0, forward=False, edge=edge)
    return Liveness(values, number, solution.before, solution.after)
