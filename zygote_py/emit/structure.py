"""The control-flow graph of a function as nested regions: ifs, loops and straight lines; each block occurs once.

    b0: branch %c, b1, b2               Straight(b0)
    b1: jump b3                         If(b0, (Straight(b1),), (Straight(b2),))
    b2: jump b3                         Straight(b3)
    b3: return %y                       Leave(b3)

The nesting follows the dominator tree (after Norman Ramsey, "Beyond Relooper", 2022): a block with one predecessor is
part of the arm that leads to it, and a merge follows its immediate dominator, in reverse postorder. Python cannot jump
past a merge: if control may skip one, the merge is put under a guard variable that the jumps to it set. A loop that is
left only by the branch of its header is a `Loop`; any other is an `Endless` loop with breaks.

A `Loop` that counts is printed as `for`, if it is among the `ranges`:

    b1:  %i: i64 = phi b0: 0, b2: %i2           for i in range(0, n):
         %c = lt %i, %n : bool                      ...
         branch %c, b2, b3
    b2:  ...
         %i2 = add %i, 1 : i64

`emit.lower` determines the copies on an edge and the instructions that become statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from numba import types

from zygote_py.ir import (
    Block,
    Branch,
    CountedLoop,
    Function,
    Instr,
    InternalError,
    Jump,
    Loop as NaturalLoop,
    LoopNest,
    Operand,
    Phi,
    Raise,
    Return,
    Use,
    Value,
    counted,
    predecessors,
    uses,
)
from zygote_py.ir.lazy_dataclass import dataclass

# A destination of control: a block, or the next iteration of a loop.
Target = Block | NaturalLoop


@dataclass(frozen=True, slots=True, eq=False)
class Straight:
    """The instructions of `block`, without its terminator."""

    block: Block


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """The copies for the phis of `target` when control arrives from `source`."""

    source: Block
    target: Block


@dataclass(frozen=True, slots=True, eq=False)
class Leave:
    """The `Return` or `Raise` of `block`."""

    block: Block


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """The `Branch` of `block`."""

    block: Block
    then: tuple[Region, ...]
    orelse: tuple[Region, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop that runs the header and, until its branch leaves for the exit, the body."""

    loop: NaturalLoop
    body: tuple[Region, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Endless:
    """A loop that repeats the body, including the header, until a `Break`."""

    body: tuple[Region, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Break:
    """An exit from the innermost loop."""


@dataclass(frozen=True, slots=True, eq=False)
class SetGuard:
    """An assignment of `value` to the guard variable of `target`."""

    target: Target
    value: bool


@dataclass(frozen=True, slots=True, eq=False)
class Guarded:
    """The body, executed if the guard variable of `target` is set."""

    target: Target
    body: tuple[Region, ...]


Region = Straight | Edge | Leave | If | Loop | Endless | Break | SetGuard | Guarded


def walk(regions: Iterable[Region]) -> Iterator[Region]:
    """Yield the regions and the regions inside them, in the order of their text."""
    for region in regions:
        yield region
        match region:
            case If(_, then, orelse):
                yield from walk(then + orelse)
            case Loop() | Endless() | Guarded():
                yield from walk(region.body)


def structure(function: Function, nest: LoopNest) -> tuple[Region, ...]:
    """Return the regions of `function`, whose loops are `nest`. Each block and each edge occurs exactly once."""
    builder = _Builder(function, nest)
    regions, pending = builder.sequence(function.entry, None)
    if pending:
        raise InternalError(f"structure: control runs off the end of {function.name}")
    return _pruned(regions, builder.guarded)


class _Builder:
    """Builds the regions. `home` maps each target to the loop that contains its position."""

    def __init__(self, function: Function, nest: LoopNest) -> None:
        self.tree = nest.tree
        self.loops = {loop.header: loop for loop in nest.loops}
        self.guarded: set[Target] = set()
        self.home: dict[Target, NaturalLoop | None] = {}
        self.breaks: dict[NaturalLoop | None, dict[Target, None]] = {None: {}}  # targets for which a loop is left
        self.merges = {
            block
            for block, preds in predecessors(function).items()
            if sum(not self.tree.dominates(block, pred) for pred in preds) > 1
        }

    def sequence(self, start: Block, around: NaturalLoop | None) -> tuple[list[Region], set[Target]]:
        """Return the regions from `start` on, with all blocks that it dominates, and the targets of control at their
        end.
        """
        regions: list[Region] = []
        waiting = [start]
        pending: set[Target] = {start}
        while waiting:  # iterative, since a sequence can be long
            block = waiting.pop()
            if pending == {block}:
                pending = self.place(block, around, regions, waiting)
                continue
            self.guarded.add(block)
            body, left = self.sequence(block, around)
            regions.append(Guarded(block, tuple(body)))
            pending.discard(block)
            pending |= left
        return regions, pending

    def place(
        self, block: Block, around: NaturalLoop | None, regions: list[Region], waiting: list[Block]
    ) -> set[Target]:
        """Append the regions of `block`, and append to `waiting` the blocks that follow it in the same sequence."""
        loop = self.loops.get(block)
        if loop is not None and loop is not around:
            return self.place_loop(loop, around, regions, waiting)
        merges = [child for child in self.tree.children[block] if child in self.merges and child not in self.home]
        self.expect(merges, around, regions, waiting)
        regions.append(Straight(block))
        match block.terminator:
            case Branch(_, then, orelse) if then is not orelse and (self.ends(then) or self.ends(orelse)):
                # The other arm continues in this sequence, so that a hundred checks with a `raise` do not nest.
                first, other = (then, orelse) if self.ends(then) else (orelse, then)
                arm, _ = self.arm(block, first, around)
                regions.append(If(block, tuple(arm), ()) if first is then else If(block, (), tuple(arm)))
                return self.follow(block, other, around, regions, waiting)
            case Branch(_, then, orelse) if then is not orelse:
                then_regions, then_pending = self.arm(block, then, around)
                else_regions, else_pending = self.arm(block, orelse, around)
                regions.append(If(block, tuple(then_regions), tuple(else_regions)))
                return then_pending | else_pending
            case Jump(target) | Branch(_, target, _):
                return self.follow(block, target, around, regions, waiting)
            case _:
                regions.append(Leave(block))
                return set()

    def place_loop(
        self, loop: NaturalLoop, around: NaturalLoop | None, regions: list[Region], waiting: list[Block]
    ) -> set[Target]:
        header = loop.header
        merges = [child for child in self.tree.children[header] if child in self.merges and child not in loop]
        self.expect(merges, around, regions, waiting)
        self.home[loop] = loop
        self.breaks[loop] = {}
        again: list[Region] = [SetGuard(loop, False)]
        inside = [successor for successor in header.successors if successor in loop]
        outside = [successor for successor in header.successors if successor not in loop]
        if len(inside) == len(outside) == 1:
            body, _ = self.arm(header, inside[0], loop)
            if not self.breaks[loop]:
                regions.append(Loop(loop, tuple(again + body)))
                return self.follow(header, outside[0], around, regions, waiting)
            if outside[0] not in self.home:  # it follows the loop rather than being part of it
                self.expect(outside, around, regions, waiting)
            leave, _ = self.arm(header, outside[0], loop)
            branch = header.terminator
            assert isinstance(branch, Branch)
            arms = (body, leave) if branch.then is inside[0] else (leave, body)
            again += [Straight(header), If(header, tuple(arms[0]), tuple(arms[1]))]
        else:
            body, _ = self.sequence(header, loop)
            again += body
        regions.append(Endless(tuple(again)))
        left = self.breaks[loop]
        here = {target for target in left if self.home[target] is around}
        further = [target for target in left if target not in here]
        if here:
            self.guarded.update(further)
            regions += [Guarded(target, (Break(),)) for target in further]
        elif further:
            regions.append(Break())
        self.breaks[around].update(dict.fromkeys(further))
        return set(here)

    def ends(self, target: Block) -> bool:
        """Return whether `target` is part of the arm that leads to it and leaves the function."""
        return target not in self.home and isinstance(target.terminator, Return | Raise)

    def expect(
        self, merges: Sequence[Block], around: NaturalLoop | None, regions: list[Region], waiting: list[Block]
    ) -> None:
        """Record that `merges` occur in this sequence, in this order."""
        waiting.extend(reversed(merges))
        for merge in merges:
            self.home[merge] = around
            regions.append(SetGuard(merge, False))

    def arm(self, block: Block, target: Block, around: NaturalLoop | None) -> tuple[list[Region], set[Target]]:
        regions: list[Region] = []
        waiting: list[Block] = []
        pending = self.follow(block, target, around, regions, waiting)
        if not waiting:
            return regions, pending
        rest, pending = self.sequence(target, around)
        return regions + rest, pending

    def follow(
        self, block: Block, target: Block, around: NaturalLoop | None, regions: list[Region], waiting: list[Block]
    ) -> set[Target]:
        """Append the jump from `block` to `target`."""
        regions.append(Edge(block, target))
        back = self.tree.dominates(target, block)
        if not back and target not in self.home:
            waiting.append(target)
            return {target}
        goal: Target = self.loops[target] if back else target
        regions.append(SetGuard(goal, True))
        if self.home[goal] is around:
            return {goal}
        self.breaks[around][goal] = None
        regions.append(Break())
        return set()


def _pruned(regions: Sequence[Region], guarded: set[Target]) -> tuple[Region, ...]:
    """Return the regions without the guards that are never tested."""
    kept: list[Region] = []
    for region in regions:
        match region:
            case SetGuard(target, _) if target not in guarded:
                continue
            case If(_, then, orelse):
                kept.append(replace(region, then=_pruned(then, guarded), orelse=_pruned(orelse, guarded)))
            case Loop() | Endless() | Guarded():
                kept.append(replace(region, body=_pruned(region.body, guarded)))
            case _:
                kept.append(region)
    return tuple(kept)


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """The loop `for phi in range(start, bound + past, step)`, which replaces the instructions in `removed`.

    Python's `range` leaves the counter at its last value rather than past it, so neither the counter nor what is added
    to it may be used after the loop. A loop whose counter is not an int64 remains a `while`, since Numba would choose
    the type of the range.
    """

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
    for loop in (region.loop for region in walk(regions) if isinstance(region, Loop)):
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


Uses = Mapping[Value, Sequence[Use]]


def _unused_after(loop: NaturalLoop, found: CountedLoop, used: Uses) -> bool:
    header = loop.header
    if len(used[found.condition]) != 1:
        return False
    own = (found.condition, found.increment)
    for use in (*used.get(found.phi, ()), *used.get(found.increment, ())):
        if use.at not in loop or (use.at is header and use.user not in own):
            return False  # after the loop, or a copy on an exit edge
    return not (found.increment in header.instrs and len(used[found.increment]) > 1)


def _range(loop: NaturalLoop, found: CountedLoop, used: Uses) -> Range:
    alone = len(used[found.increment]) == 1
    removed = (found.condition, found.increment) if alone else (found.condition,)
    return Range(found.phi, found.start, found.bound, found.comparison.past, found.step, loop.entering[0], removed)
