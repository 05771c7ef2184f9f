"""Lowering of alphas to values: every node that the reverse sweep needs is loaded, popped, recomputed or available.

    forward                                     reverse
    for i in range(n):                          for i in range(n - 1, -1, -1):
        r_record[i] = r           # STORE           r = r_record[i]
        t = x[i] - m              # RECOMPUTE       t = x[i] - m
        r = r * math.exp(t)                         ...

A counted loop in a nest of counted loops, with all bounds known before the outermost, has its records in arrays of the
exact size, indexed by the iteration numbers (`record_axes.py`, also for triangles). Any other loop pushes its records
on lists at the end of its body, one value per iteration, and the reverse loop pops them, in reverse order, at the start
of its body: they balance by construction.

A node is materialized in the last block that dominates all its uses in the reverse sweep, no deeper in loops than the
node itself; where that block might run although the primal never computed the value, it is materialized separately for
each use.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from functools import partial

from numba import types

from zygote_py.adjoints.reverse.stored.plan import Demand, Plan, Strategy
from zygote_py.adjoints.reverse.stored.record_axes import Axis, Triangle, axes_of
from zygote_py.adjoints.reverse.stored.trip_counts import INDEX, Trip, append, operation
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
        self._axes: dict[Loop, tuple[Axis, ...] | None] = {}
        self._places: dict[tuple[Loop, Block], Operand] = {}  # and rows, of the iterations of triangles
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
                index = self._index_to_read(node.loop, block)
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
        """Return whether a node can be recorded in an array: its iterations are known before the outermost loop."""
        if node in self._records:
            return True
        is_number = isinstance(node.value.type, types.Number | types.Boolean)
        return is_number and node.loop is not None and self._axes_of(node.loop) is not None

    def _axes_of(self, loop: Loop) -> tuple[Axis, ...] | None:
        if loop not in self._axes:
            around = () if loop.parent is None else self._axes_of(loop.parent)
            self._axes[loop] = (
                None if around is None else axes_of(loop, around, self._sweeps.trips, self._sweeps.nest.tree)
            )
        return self._axes[loop]

    def _make_record(self, node: Demand) -> Instr:
        """Allocate the array for a node before the outermost loop, and store the node in each iteration."""
        assert node.loop is not None
        preheader, sizes = self._outside(node.loop, self._axes_of(node.loop) or ())
        value = node.value
        kind = types.Array(value.type, len(sizes), "C")
        record = Instr(ops.record, sizes, kind, f"{value.hint or 't'}_record")
        preheader.instrs.append(record)
        self._sweeps.home[record] = preheader
        store = Instr(ops.setitem, (record, value, *self._index_to_store(node.loop)), types.none)
        home = self._sweeps.home[value]
        if self._sweeps.nest.innermost(home) is not node.loop:  # the result of an inner loop: where that ends
            _insert(_exit_of(node.loop, home, self._sweeps.nest), None, store)
        elif home is node.loop.header:
            _insert(self._sweeps.trips[node.loop].first, None, store)
        else:
            _insert(home, value, store)
        self._records[node] = record
        return record

    def _index_to_store(self, loop: Loop) -> list[Operand]:
        """Return the index of an iteration in the records of a loop, in the forward sweep."""
        return [self._place_to_store(axis) for axis in self._axes_of(loop) or ()]

    def _place_to_store(self, axis: Axis) -> Operand:
        trip, triangle = self._sweeps.trips[axis.loop], axis.count
        if not isinstance(triangle, Triangle):
            return trip.index()
        key = axis.loop, trip.first
        if key not in self._places:
            before = partial(append, trip.preheader)
            row = triangle.row(self._sweeps.trips[triangle.outer].index(), before)
            place = Instr(operator.add, (row, trip.index()), INDEX, "place")
            _insert(trip.first, None, place)
            self._places[key] = place
        return self._places[key]

    def _index_to_read(self, loop: Loop, block: Block) -> list[Operand]:
        """Return the index of an iteration in the records of a loop, in the reverse sweep."""
        return [self._place_to_read(axis, block) for axis in self._axes_of(loop) or ()]

    def _place_to_read(self, axis: Axis, block: Block) -> Operand:
        index, triangle = self._sweeps.index, axis.count
        if not isinstance(triangle, Triangle):
            return index[axis.loop]
        if (axis.loop, block) not in self._places:
            row = self._row_to_read(axis.loop, triangle, self._level(triangle.outer, block))
            place = self._prelude(block, operator.add, (row, index[axis.loop]), INDEX, "place")
            self._places[axis.loop, block] = place
        return self._places[axis.loop, block]

    def _row_to_read(self, loop: Loop, triangle: Triangle, block: Block) -> Operand:
        """Return the number of iterations of a triangle before a row, in a block of the reverse sweep."""
        if (loop, block) not in self._places:
            if isinstance(triangle.first, Instr):
                self._sweeps.home.setdefault(triangle.first, self._sweeps.trips[_around(loop)[0]].preheader)

            def compute(op: ops.Op, *args: Operand) -> Operand:
                result = operation(op, *args)
                if isinstance(result, Instr):
                    self._preludes.setdefault(block, []).append(result)
                return result

            index = self._sweeps.index[triangle.outer]
            self._places[loop, block] = triangle.row(index, compute, lambda value: self._sweeps.read_slot(value, block))
        return self._places[loop, block]

    def _outside(self, loop: Loop, axes: tuple[Axis, ...]) -> tuple[Block, tuple[Operand, ...]]:
        """Return where to allocate records: before the surrounding immediate loops, if the sizes are known there."""
        preheader = self._sweeps.trips[_around(loop)[0]].preheader
        for immediate in sorted(self._sweeps.immediate, key=lambda each: -each.depth):
            if preheader not in immediate:
                continue
            hoisted = [axis.hoisted(immediate) for axis in axes]
            if None in hoisted:
                break
            (preheader,), axes = immediate.entering, tuple(each for each in hoisted if each is not None)
        return preheader, tuple(axis.size(partial(append, preheader)) for axis in axes)

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
        preheader, _ = self._outside(loop, ())
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
