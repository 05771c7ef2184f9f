"""Lowering of alphas to values: every node that the reverse sweep needs is loaded, popped, recomputed or available.

    forward                                     reverse
    for i in range(n):                          for i in range(n - 1, -1, -1):
        r_record[i] = r           # STORE           r = r_record[i]
        t = x[i] - m              # RECOMPUTE       t = x[i] - m
        r = r * math.exp(t)                         ...

A counted loop in a nest of counted loops, with all bounds known before the outermost, has its records in arrays of the
exact size, indexed by the iteration numbers. Any other loop pushes its records on lists at the end of its body, one
value per iteration, and the reverse loop pops them, in reverse order, at the start of its body: they balance by
construction.

A node is materialized in the last block that dominates all its uses in the reverse sweep, no deeper in loops than the
node itself; where that block might run although the primal never computed the value, it is materialized separately for
each use.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import field

from numba import types

from zygote_py.adjoints.reverse.stored.plan import Demand, Plan, Strategy
from zygote_py.adjoints.reverse.stored.trip_counts import INDEX, Trip, cannot_be_negative, hoist
from zygote_py.ir import (
    Block,
    Const,
    DominatorTree,
    Instr,
    InternalError,
    Loop,
    LoopNest,
    Operand,
    Phi,
    Type,
    Value,
    is_zero,
    ops,
)
from zygote_py.ir.lazy_dataclass import dataclass

# The maximum number of values in one record. Python builds a longer literal (more than thirty items) from a list first,
# which Numba compiles incorrectly.
_RECORD = 16

ReadSlot = Callable[[Value, Block], Operand]


@dataclass(eq=False)
class Sweeps:
    """The two halves of a joint function under construction.

    `mirrored` maps each reverse block to its forward block, `home` each value to its forward block, `index` each
    reversed loop to the iteration number in its reverse.
    """

    nest: LoopNest
    trips: Mapping[Loop, Trip]
    home: dict[Value, Block]
    reverse_tree: DominatorTree
    mirrored: Mapping[Block, Block]
    index: Mapping[Loop, Operand]
    read_slot: ReadSlot
    read_at_latch: Callable[[Value, Loop], Operand]
    latch_mirrors: Mapping[Loop, Block] = field(default_factory=dict)
    immediate: Collection[Loop] = ()


class Alphas:
    """Returns the operand of a node in a block of the reverse sweep, once all demands are known."""

    def __init__(self, sweeps: Sweeps, plan: Plan) -> None:
        self._sweeps = sweeps
        self._plan = plan
        self._demands: dict[Demand, list[Block]] = {}
        self._placed: dict[Demand, dict[Block, Operand]] = {}
        self._preludes: dict[Block, list[Instr]] = {}
        self._records: dict[Demand, Instr] = {}
        self._popped: dict[Demand, tuple[list[Demand], Instr]] = {}
        self._sizes: dict[Loop, Operand | None] = {}
        self._order = {block: number for number, block in enumerate(sweeps.nest.tree.order)}

    def demand(self, value: Value, reverse: Block) -> None:
        """Demand `value`, as seen by the forward block of `reverse`, in `reverse`."""
        node = self._plan.node(value, self._sweeps.mirrored[reverse])
        self._demands.setdefault(node, []).append(reverse)

    def rewound(self) -> set[Value]:
        """Decide which memory to rewind."""
        return self._plan.decide_what_to_rewind(self._demands)

    def place(self) -> None:
        """Decide how to obtain every node, and add the instructions that store, load, push, pop and recompute."""
        self._plan.decide(self._demands)
        position = self._positions()
        chosen: list[tuple[Demand, list[Block]]] = []
        by_position = sorted(self._plan.strategies, key=lambda node: position[node.value], reverse=True)
        for node in by_position:  # users before the nodes they are recomputed from
            if node not in self._demands or self._plan.strategies[node] is Strategy.SLOT:
                continue
            blocks = self._placements(node, self._demands[node])
            chosen.append((node, blocks))
            if self._plan.strategies[node] in (Strategy.RECOMPUTE, Strategy.INDEX):
                for arg in self._plan.inputs(node):
                    if isinstance(arg, Demand):
                        self._demands.setdefault(arg, []).extend(blocks)
        self._placed = {node: {} for node, _ in chosen}
        for node, blocks in reversed(chosen):
            for block in blocks:
                self._placed[node][block] = self._have(node, block)
        for block, instrs in self._preludes.items():
            block.instrs[:0] = instrs

    def listed(self) -> set[Demand]:
        """Return the nodes that are recorded in lists."""
        return set(self._popped)

    def preludes(self, block: Block) -> int:
        """Return the number of instructions inserted at the start of a reverse block."""
        return len(self._preludes.get(block, ()))

    def operand(self, value: Value, reverse: Block) -> Operand:
        """Return the operand that represents `value` in `reverse`."""
        return self._resolve(self._plan.node(value, self._sweeps.mirrored[reverse]), reverse)

    def _positions(self) -> dict[Value, tuple[int, int]]:
        found: dict[Value, tuple[int, int]] = {
            value: (number, index)
            for block, number in self._order.items()
            for index, value in enumerate((*block.phis, *block.instrs))
        }
        return {node.value: found.get(node.value, (-1, 0)) for node in self._plan.strategies}

    def _placements(self, node: Demand, uses: list[Block]) -> list[Block]:
        """Return the reverse blocks in which to materialize a node, one of which precedes each use."""
        if node.loop is not None and self._plan.strategies[node] is Strategy.STORE and not self._has_array(node):
            return [self._sweeps.latch_mirrors[node.loop]]
        tree = self._sweeps.reverse_tree
        blocks = list(dict.fromkeys(self._level(node.loop, use) for use in uses))
        common = blocks[0]
        for block in blocks[1:]:
            while not tree.dominates(common, block):
                above = tree.idom[common]
                assert above is not None
                common = above
        common = self._level(node.loop, common)
        if self._sweeps.nest.tree.dominates(self._sweeps.home[node.value], self._sweeps.mirrored[common]):
            return [common]
        return [b for b in blocks if not any(b is not other and tree.dominates(other, b) for other in blocks)]

    def _level(self, loop: Loop | None, block: Block) -> Block:
        """Return the last dominator of `block` in the reverse of `loop`, but not of a loop inside it."""
        sweeps = self._sweeps
        while sweeps.nest.innermost(sweeps.mirrored[block]) is not loop:
            above = sweeps.reverse_tree.idom[block]
            if above is None:
                raise InternalError("alphas: a use outside of its loop")
            block = above
        return block

    def _resolve(self, node: Demand, block: Block) -> Operand:
        if self._plan.strategies[node] is Strategy.SLOT:
            given = self._plan.given.get(node.value)
            return self._sweeps.read_slot(node.value, block) if given is None else given
        tree = self._sweeps.reverse_tree
        for placed, operand in self._placed[node].items():
            if tree.dominates(placed, block):
                return operand
        raise InternalError("alphas: a use comes before its value")

    def _have(self, node: Demand, block: Block) -> Operand:
        """Append the computation of the node to the prelude of `block`."""
        value = node.value
        match self._plan.strategies[node]:
            case Strategy.STORE if self._has_array(node):
                record = self._records.get(node) or self._make_record(node)
                assert node.loop is not None
                index = [self._sweeps.index[loop] for loop in _around(node.loop)]
                array = self._sweeps.read_slot(record, block)
                return self._prelude(block, ops.getitem, (array, *index), value.type, value.hint)
            case Strategy.STORE:
                return self._pop(node, block)
            case Strategy.INDEX:
                assert isinstance(value, Phi)
                return self._counter(node, value, block)
            case _:
                assert isinstance(value, Instr)
                args = tuple(
                    self._resolve(arg, block) if isinstance(arg, Demand) else arg for arg in self._plan.inputs(node)
                )
                copy = self._prelude(block, value.op, args, value.type, value.hint)
                copy.keywords, copy.loc, copy.origin = value.keywords, value.loc, value.origin
                return copy

    def _prelude(self, block: Block, op: ops.Op, args: tuple[Operand, ...], type: Type, hint: str) -> Instr:
        instr = Instr(op, args, type, hint)
        self._preludes.setdefault(block, []).append(instr)
        return instr

    def _counter(self, node: Demand, phi: Phi, block: Block) -> Operand:
        """Return start + step * index."""
        assert node.loop is not None
        (start,) = self._plan.inputs(node)
        first = self._resolve(start, block) if isinstance(start, Demand) else start
        step = self._plan.step(phi)
        offset = self._sweeps.index[node.loop]
        if abs(step) != 1:
            offset = self._prelude(block, operator.mul, (offset, Const(abs(step), INDEX)), INDEX, "")
        if step > 0 and is_zero(first):
            return offset
        return self._prelude(block, operator.add if step > 0 else operator.sub, (first, offset), INDEX, phi.hint)

    def _has_array(self, node: Demand) -> bool:
        """Return whether a node can be recorded in an array: the trip counts are known before the outermost loop."""
        if node in self._records:
            return True
        if not isinstance(node.value.type, types.Number | types.Boolean):
            return False
        outermost, *inner = _around(node.loop)
        is_counted = self._sweeps.trips[outermost].counted is not None
        return is_counted and all(self._size(loop, outermost) is not None for loop in inner)

    def _size(self, loop: Loop, outermost: Loop) -> Operand | None:
        """Return the trip count of a loop as known before the outermost loop around it; None if it is not."""
        if loop not in self._sizes:
            trip = self._sweeps.trips[loop]
            self._sizes[loop] = None if trip.counted is None else hoist(trip.count, outermost)
        return self._sizes[loop]

    def _make_record(self, node: Demand) -> Instr:
        """Allocate the array for a node before the outermost loop, and store the node in each iteration."""
        assert node.loop is not None
        loops = _around(node.loop)
        trips = [self._sweeps.trips[loop] for loop in loops]
        preheader, counts = self._outside(trips[0].preheader, [self._size(loop, loops[0]) for loop in loops])
        sizes = tuple(_not_negative(count, preheader) for count in counts)
        value = node.value
        kind = types.Array(value.type, len(sizes), "C")
        record = Instr(ops.record, sizes, kind, f"{value.hint or 't'}_record")
        preheader.instrs.append(record)
        self._sweeps.home[record] = preheader
        store = Instr(ops.setitem, (record, value, *(trip.index() for trip in trips)), types.none)
        home = self._sweeps.home[value]
        if self._sweeps.nest.innermost(home) is not node.loop:  # the result of an inner loop: where that ends
            _insert(_exit_of(node.loop, home, self._sweeps.nest), None, store)
        elif home is node.loop.header:
            _insert(trips[-1].first, None, store)
        else:
            _insert(home, value, store)
        self._records[node] = record
        return record

    def _outside(self, preheader: Block, counts: list[Operand | None]) -> tuple[Block, list[Operand | None]]:
        """Return where to allocate records: before the surrounding immediate loops, if the sizes are known there."""
        for loop in sorted(self._sweeps.immediate, key=lambda loop: -loop.depth):
            if preheader not in loop:
                continue
            hoisted = [None if count is None else hoist(count, loop) for count in counts]
            if None in hoisted:
                break
            (preheader,), counts = loop.entering, hoisted
        return preheader, counts

    def _pop(self, node: Demand, block: Block) -> Operand:
        """Return the node from the record popped from the loop's stack at the start of `block`."""
        assert node.loop is not None
        if node not in self._popped:
            self._make_stacks(node.loop, block)
        nodes, popped = self._popped[node]
        if len(nodes) == 1:
            return popped
        number = Const(nodes.index(node), INDEX)
        return self._prelude(block, ops.getitem, (popped, number), node.value.type, node.value.hint)

    def _make_stacks(self, loop: Loop, block: Block) -> None:
        """Push records at the end of each iteration, on lists made before the outermost loop; pop them in `block`."""
        nodes = [
            node
            for node, way in self._plan.strategies.items()
            if way is Strategy.STORE and node.loop is loop and node in self._placed and not self._has_array(node)
        ]
        for first in range(0, len(nodes), _RECORD):
            self._make_stack(loop, block, nodes[first : first + _RECORD])

    def _make_stack(self, loop: Loop, block: Block, nodes: list[Demand]) -> None:
        """Make one list of records: of tuples of the recorded values, or of the single one."""
        trip = self._sweeps.trips[loop]
        values = tuple(self._sweeps.read_at_latch(node.value, loop) for node in nodes)
        record, hint = values[0], nodes[0].value.hint or "t"
        kind = nodes[0].value.type
        if len(nodes) > 1:
            kind, hint = types.Tuple(tuple(node.value.type for node in nodes)), "record"
            record = Instr(ops.pack, values, kind, hint)
            trip.latch.instrs.append(record)
        preheader, _ = self._outside(self._sweeps.trips[_around(loop)[0]].preheader, [])
        stack = Instr(ops.stack, (), types.List(kind), f"{hint}_stack" if len(nodes) == 1 else "records")
        preheader.instrs.append(stack)
        self._sweeps.home[stack] = preheader
        trip.latch.instrs.append(Instr(ops.push, (stack, record), types.none))
        popped = self._prelude(block, ops.pop, (self._sweeps.read_slot(stack, block),), kind, hint)
        self._popped.update(dict.fromkeys(nodes, (nodes, popped)))


def _around(loop: Loop | None) -> list[Loop]:
    """Return the loop and the loops around it, the outermost first."""
    found: list[Loop] = []
    while loop is not None:
        found.append(loop)
        loop = loop.parent
    return found[::-1]


def _not_negative(count: Operand | None, block: Block) -> Operand:
    if count is None:
        raise InternalError("alphas: a count that is not known before its loop")
    if cannot_be_negative(count):
        return count
    size = Instr(max, (count, Const(0, INDEX)), INDEX, "n")
    block.instrs.append(size)
    return size


def _exit_of(loop: Loop, block: Block, nest: LoopNest) -> Block:
    """Return the exit, in `loop`, of the loop just inside it that contains `block`."""
    inner = nest.innermost(block)
    while inner is not None and inner.parent is not loop:
        inner = inner.parent
    if inner is None:
        raise InternalError("alphas: a value that is not in the loop")
    ((_, after),) = inner.exits
    return after


def _insert(block: Block, after: Value | None, instr: Instr) -> None:
    """Insert `instr` after the instruction `after` and after its operands, as early in the block as that allows."""
    needed = {after, *instr.args}
    position = max((index + 1 for index, other in enumerate(block.instrs) if other in needed), default=0)
    block.instrs.insert(position, instr)
