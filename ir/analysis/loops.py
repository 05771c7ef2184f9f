"""Natural loops, the loop nest, and counted loops.

A loop is a header and the blocks from which control can return to it. In

    b1:  %i: i64 = phi b0: 0, b2: %i2       # the header; b0 enters
         %c = lt %i, %n : bool
         branch %c, b2, b3                  # the exit edge is b1 -> b3
    b2:  %i2 = add %i, 1 : i64              # the latch
         jump b1

`loop_nest` finds the loop {b1, b2}, and `counted` that %i goes from 0 by 1 while it is `lt` %n.

A block from which no `Return` can be reached is not a proper exit of a loop: edges to such blocks are listed
separately, in `raising_exits`. The nest describes the function at the time of its construction; a pass that changes the
graph builds a new one. Irreducible graphs, which Python programs never produce, are an `InternalError`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.dataflow import reach
from zygote_py.ir.analysis.dominators import DominatorTree, dominator_tree
from zygote_py.ir.core import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    InternalError,
    Loc,
    Operand,
    Phi,
    Value,
    predecessors,
)
from zygote_py.ir.lazy_dataclass import dataclass

Edge = tuple[Block, Block]


@dataclass(eq=False)
class Loop:
    """A natural loop.

    `order` lists the blocks in reverse postorder, including those of inner loops; the outermost loops have depth 1.
    `entering` are the predecessors of the header outside of the loop, `latches` those inside. `exits` are the edges
    that leave it for blocks that reach a `Return`, `raising_exits` all others.
    """

    header: Block
    parent: Loop | None = None
    depth: int = 1
    order: list[Block] = field(default_factory=list)
    blocks: set[Block] = field(default_factory=set)
    children: list[Loop] = field(default_factory=list)
    entering: list[Block] = field(default_factory=list)
    latches: list[Block] = field(default_factory=list)
    exits: list[Edge] = field(default_factory=list)
    raising_exits: list[Edge] = field(default_factory=list)

    def __contains__(self, block: Block) -> bool:
        return block in self.blocks

    @property
    def loc(self) -> Loc | None:
        """The location of its statement. That of its header may be one from which control comes there."""
        end = self.header.terminator
        condition = end.condition if isinstance(end, Branch) else None
        own = condition.loc if isinstance(condition, Instr | Phi) else None
        return own or self.header.loc

    @cached_property
    def values(self) -> frozenset[Value]:
        """Return the values that the blocks of the loop define."""
        return frozenset(value for block in self.order for value in block.values)

    def forget_values(self) -> None:
        """Discard the cached `values`, after the blocks have changed."""
        self.__dict__.pop("values", None)


@dataclass(frozen=True, eq=False)
class LoopNest:
    """The loops of a function, each after its enclosing loops, and the dominator tree used to find them."""

    loops: tuple[Loop, ...]
    tree: DominatorTree
    _innermost: Mapping[Block, Loop]

    def innermost(self, block: Block) -> Loop | None:
        """Return the innermost loop that contains `block`, or None."""
        return self._innermost.get(block)

    def depth(self, block: Block) -> int:
        """Return the number of loops that contain `block`."""
        loop = self._innermost.get(block)
        return 0 if loop is None else loop.depth

    def around(self, block: Block) -> Iterator[Loop]:
        """Yield the loops that contain `block`, starting with the innermost."""
        loop = self._innermost.get(block)
        while loop is not None:
            yield loop
            loop = loop.parent

    def nearest(self, blocks: Iterable[Block], loop: Loop | None) -> Block:
        """Return the nearest block in `loop`, and in no loop within it, that dominates all of `blocks`."""
        found = self.tree.nearest(blocks)
        while self.innermost(found) is not loop:
            above = self.tree.idom[found]
            assert above is not None
            found = above
        return found


@dataclass(frozen=True, slots=True, eq=False)
class CountedLoop:
    """A loop whose body runs while `phi comparison bound`; `phi` goes from `start` by `step` to its next value."""

    phi: Phi
    start: Operand
    step: int
    bound: Operand
    comparison: ops.Comparison
    condition: Instr
    increment: Instr


def loop_nest(function: Function) -> LoopNest:
    """Find the loops of `function`. Raises InternalError if a loop has a second entry (an irreducible graph)."""
    preds = predecessors(function)
    tree = dominator_tree(function)
    index = {block: number for number, block in enumerate(tree.order)}
    innermost: dict[Block, Loop] = {}
    found: list[Loop] = []
    for header in reversed(tree.order):  # inner loops first
        retreating = [pred for pred in preds[header] if pred in index and index[pred] >= index[header]]
        if not retreating:
            continue
        if not all(tree.dominates(header, latch) for latch in retreating):
            raise InternalError(f"loops: the control flow of {function.name} is irreducible")
        loop = Loop(header, latches=retreating)
        loop.entering = [pred for pred in preds[header] if pred in index and index[pred] < index[header]]
        found.append(loop)
        _claim_blocks(loop, preds, innermost)
    found.reverse()
    for loop in found:
        if loop.parent is not None:
            loop.depth = loop.parent.depth + 1
            loop.parent.children.append(loop)
    returning = returning_blocks(function)
    for block in tree.order:
        around = innermost.get(block)
        while around is not None:
            around.order.append(block)
            around.blocks.add(block)
            around = around.parent
    for loop in found:
        for block in loop.order:
            for successor in block.successors:
                if successor not in loop.blocks:
                    (loop.exits if successor in returning else loop.raising_exits).append((block, successor))
    return LoopNest(tuple(found), tree, innermost)


def _claim_blocks(loop: Loop, preds: Mapping[Block, Sequence[Block]], innermost: dict[Block, Loop]) -> None:
    """Walk back from the latches to the header; blocks already claimed by an inner loop are skipped as one."""
    innermost[loop.header] = loop
    pending = list(loop.latches)
    outermost: dict[Loop, Loop] = {}
    while pending:
        block = pending.pop()
        inner = innermost.get(block)
        if inner is None:
            innermost[block] = loop
            pending += preds[block]
            continue
        top = outermost.get(inner, inner)
        while top.parent is not None:
            top = top.parent
        outermost[inner] = top
        if top is not loop:
            top.parent = loop
            pending += top.entering


def returning_blocks(function: Function) -> set[Block]:
    """Return the blocks from which a `Return` can be reached."""
    return set(reach((block for block, _ in function.returns()), predecessors(function).__getitem__))


def invariant(operand: Operand, loop: Loop) -> bool:
    """Return whether `operand` is defined outside of `loop`, so that it is the same in every iteration."""
    return not isinstance(operand, Value) or operand not in loop.values


def counted(loop: Loop, function: Function) -> CountedLoop | None:
    """Return how `loop` counts, if its only exit is in its header and is taken when a counter reaches a fixed bound."""
    return counted_exit(loop) if len(loop.exits) == 1 and loop.exits[0][0] is loop.header else None


def counted_exit(loop: Loop) -> CountedLoop | None:
    """Return how the header exit of `loop` counts; other exits may leave the loop before the bound is reached."""
    branch = loop.header.terminator
    if not isinstance(branch, Branch) or (branch.then in loop) == (branch.orelse in loop):
        return None
    return _counted_by(loop, branch.condition, branch.then in loop)


def counter_within(loop: Loop) -> CountedLoop | None:
    """Return how a counter runs in the body of `loop`, which may end before the bound is reached: `(i < n) & go`."""
    found = counted_exit(loop)
    branch = loop.header.terminator
    if found is None and isinstance(branch, Branch) and branch.then in loop and branch.orelse not in loop:
        match branch.condition:
            case Instr(op=operator.and_, args=conditions):
                both = (_counted_by(loop, each, True) for each in conditions)
                return next((each for each in both if each is not None), None)
    return found


def _counted_by(loop: Loop, condition: Operand, holds_inside: bool) -> CountedLoop | None:
    """Return how `loop` counts if a condition in its header is a comparison of a counter with a fixed bound."""
    if not isinstance(condition, Instr) or condition not in loop.values:
        return None
    order = ops.of(condition.op).comparison
    if order is None or not order.direction:
        return None
    left, right = condition.args
    if not invariant(right, loop):
        left, right, order = right, left, order.mirrored
    if not holds_inside:
        order = order.negated
    if not isinstance(left, Phi) or left not in loop.header.phis or not invariant(right, loop):
        return None
    if not isinstance(left.type, types.Integer) or not isinstance(right.type, types.Integer):
        return None
    starts = {left.incoming[pred] for pred in loop.entering}
    nexts = {left.incoming[pred] for pred in loop.latches}
    if len(starts) != 1 or len(nexts) != 1:
        return None
    (start,), (increment,) = starts, nexts
    step = step_of(increment, left)
    if step == 0 or (step > 0) != (order.direction > 0) or not isinstance(increment, Instr):
        return None
    return CountedLoop(left, start, step, right, order, condition, increment)


def step_of(increment: Operand, phi: Phi) -> int:
    """Return the nonzero constant that `increment` adds to `phi`, or 0 for anything else."""
    match increment:
        case (
            Instr(op=operator.add, args=(left, Const(int(step))))
            | Instr(op=operator.add, args=(Const(int(step)), left))
        ) if left is phi:
            return step
        case Instr(op=operator.sub, args=(left, Const(int(step)))) if left is phi:
            return -step
    return 0


def add_counter(loop: Loop, hint: str, loc: Loc | None = None) -> Phi:
    """Append a phi to the header that counts the iterations from 0. `loop.values` stays unchanged."""
    (entering,), (latch,) = loop.entering, loop.latches
    counter = Phi(types.int64, hint, loc)
    increment = Instr(operator.add, (counter, Const(1, types.int64)), types.int64, hint, loc)
    counter.incoming = {entering: Const(0, types.int64), latch: increment}
    loop.header.phis.append(counter)
    latch.instrs.append(increment)
    return counter
