"""Closures of relations, one solver for dataflow problems, and liveness as a problem for it.

    reach([b0], lambda block: block.successors)         # b0 and every block reachable from it

A problem consists of the effect of a block (`transfer`), optionally the effect of an edge, and the meet of the facts
from several edges. Facts are compared with `==`; sets are Python ints used as bit sets, or frozensets:

    defined = solve(function, lambda block, facts: facts | made[block], meet=intersection, start=0, top=0b11)
    defined.before[b1]                  # the values defined on every path to b1

    alive = liveness(function)
    alive.after(b0)                     # the values that are live at the end of b0

The solver iterates to the fixpoint for any graph; a transfer function must be monotone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, Generic, TypeVar

from zygote_py.ir.analysis.dominators import reverse_postorder
from zygote_py.ir.core import Block, Function, Instr, Operand, Terminator, Value, predecessors
from zygote_py.ir.lazy_dataclass import dataclass

T = TypeVar("T")
Facts = TypeVar("Facts")


def reach(starts: Iterable[T], following: Callable[[T], Iterable[T]], stop: Iterable[T] = ()) -> Iterator[T]:
    """Yield the starts and everything that follows from them, once each, except the elements of `stop`.

    The traversal is lazy and depth first: `following` is called when the next element is requested, and the most
    recently visited element is followed first.
    """
    seen = set(stop)
    pending = [iter(starts)]
    while pending:
        for each in pending.pop():
            if each not in seen:
                seen.add(each)
                yield each
                pending.append(iter(following(each)))


@dataclass(frozen=True, slots=True, eq=False)
class Solution(Generic[Facts]):
    """The facts at the beginning (`before`) and at the end (`after`) of each visited block."""

    before: Mapping[Block, Facts]
    after: Mapping[Block, Facts]


def union(block: Block, facts: Sequence[Any]) -> Any:
    """Return the facts that hold on some path."""
    return reduce(or_, facts)


def intersection(block: Block, facts: Sequence[Any]) -> Any:
    """Return the facts that hold on all paths."""
    return reduce(and_, facts)


def solve(
    function: Function,
    transfer: Callable[[Block, Facts], Facts],
    *,
    start: Facts,
    top: Facts,
    meet: Callable[[Block, Sequence[Facts]], Facts] = union,
    forward: bool = True,
    edge: Callable[[Block, Block, Facts], Facts] | None = None,
    order: Sequence[Block] | None = None,
) -> Solution[Facts]:
    """Solve a dataflow problem by iteration over a work list in (reverse) postorder.

    `start` holds at the entry (backward: at the end of blocks without successors); `top` is the assumed result of
    blocks not visited yet: the empty set for a union, everything for an intersection. `edge(pred, successor, facts)`
    transforms the facts at the origin of an edge (backward: at its successor); `meet(block, facts)` combines the facts
    that arrive in a block. If `order`, a reverse postorder, is given, only its blocks are considered.
    """
    blocks = list(reverse_postorder(function) if order is None else order)
    if not forward:
        blocks.reverse()
    number = {block: index for index, block in enumerate(blocks)}
    preds = predecessors(function)
    sources = {block: [b for b in (preds[block] if forward else block.successors) if b in number] for block in blocks}
    followers = {block: [b for b in (block.successors if forward else preds[block]) if b in number] for block in blocks}
    entering: dict[Block, Facts] = {}
    leaving: dict[Block, Facts] = dict.fromkeys(blocks, top)
    dirty = set(blocks)
    while dirty:
        for block in sorted(dirty, key=number.__getitem__) if len(dirty) < len(blocks) else blocks:
            dirty.discard(block)
            arriving = [leaving[source] for source in sources[block]]
            if edge is not None:
                pairs = [(source, block) if forward else (block, source) for source in sources[block]]
                arriving = [edge(*pair, facts) for pair, facts in zip(pairs, arriving, strict=True)]
            entering[block] = facts = meet(block, arriving) if arriving else start
            result = transfer(block, facts)
            if result != leaving[block]:
                leaving[block] = result
                dirty.update(followers[block])
    return Solution(entering, leaving) if forward else Solution(leaving, entering)


@dataclass(frozen=True, slots=True, eq=False)
class Liveness:
    """Live values as bit sets; the bit of a value is its `number`.

    The phis of a block are defined on the edges to it: they are not live before it. The operands of phis are live at
    the end of the predecessor they belong to.
    """

    number: Mapping[Value, int]
    live_in: Mapping[Block, int]
    live_out: Mapping[Block, int]
    values: Mapping[int, Value]  # by number

    def before(self, block: Block) -> list[Value]:
        """Return the values live at the beginning of `block`, apart from its phis."""
        return list(self._members(self.live_in[block]))

    def after(self, block: Block) -> list[Value]:
        """Return the values live at the end of `block`."""
        return list(self._members(self.live_out[block]))

    def _members(self, live: int) -> Iterator[Value]:
        while live:
            lowest = live & -live
            yield self.values[lowest.bit_length() - 1]
            live ^= lowest


def liveness(
    function: Function,
    *,
    number: Mapping[Value, int] | None = None,
    reads: Callable[[Instr | Terminator], Iterable[Operand]] = lambda node: node.args,
    on_edge: Mapping[tuple[Block, Block], Iterable[Operand]] | None = None,
    order: Sequence[Block] | None = None,
) -> Liveness:
    """Return the live values of each reachable block.

    Only the values that have a `number` count, if `number` is given: a phi without one reads nothing. `reads` returns
    the operands that an instruction or a terminator reads, `on_edge` those read on an edge in addition to the operands
    of phis.
    """
    if number is None:
        number = {value: index for index, value in enumerate(function.values())}

    def bits(used: Iterable[Operand]) -> int:
        found = 0
        for operand in used:
            if isinstance(operand, Value) and operand in number:
                found |= 1 << number[operand]
        return found

    gen: dict[Block, int] = {}
    kill: dict[Block, int] = {}
    passed: dict[tuple[Block, Block], int] = {}
    for block in function.blocks:
        used = bits(reads(block.terminator))
        for instr in reversed(block.instrs):
            used = used & ~bits((instr,)) | bits(reads(instr))
        kill[block] = bits(block.values)
        gen[block] = used & ~kill[block]
        for successor in block.successors:
            read = [phi.incoming[block] for phi in successor.phis if phi in number]
            passed[block, successor] = bits((*read, *(on_edge or {}).get((block, successor), ())))
    solution = solve(
        function,
        lambda block, live: gen[block] | live & ~kill[block],
        start=0,
        top=0,
        forward=False,
        edge=lambda pred, block, live: live | passed[pred, block],
        order=order,
    )
    return Liveness(number, solution.before, solution.after, {bit: value for value, bit in number.items()})
