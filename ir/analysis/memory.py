"""Memory: the effects of instructions on it, and which values may alias.

    %row = getitem %x, %i : f64[:]          a view of %x: it has the root of %x
    %y = record %n : f64[:]                 a new array: a root
    %b = phi b0: %y, b1: %x                 either of them: they share a root from here on

A root represents all memory that a value may reach: arrays, and the items of tuples and lists. Parameters, and the
items of tuple parameters, are assumed not to share memory (the caller ensures it, where it matters). Single elements
are not distinguished.

    memory = Memory(function)
    memory.may_be_written_after(%s, (%x,))
    with memory.order_of(b0) as order:          # b0 must not change in this context
        order.writes_between(%row, %s, %x)

A `Memory` is a snapshot: at construction it records the position of each value and the successors of each block, and
never mixes these with later changes of the function. Values created later are unknown to it: a query about one raises
an InternalError, and so does the order of a block that has changed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.dataflow import reach
from zygote_py.ir.analysis.distances import Distances
from zygote_py.ir.analysis.dominators import DominatorTree
from zygote_py.ir.analysis.effects import (
    NUMBERS,
    bases,
    has_memory,
    is_fresh,
    is_view,
    kinds_of,
    origins_of,
    reads,
    writes,
)
from zygote_py.ir.analysis.loops import Loop, LoopNest, loop_nest
from zygote_py.ir.core import Block, Const, Function, Instr, InternalError, Operand, Param, Phi, Routine, Value
from zygote_py.ir.ops import Role


def is_made_after(made: Value, other: Value, home: Mapping[Value, Block], tree: DominatorTree) -> bool:
    """Return whether an array is new, and made after another value is known, whose memory it cannot share then.

    `home` has the block of each value but the parameters. A list may have got the array since.
    """
    if not isinstance(made, Instr) or not is_fresh(made) or not isinstance(other.type, types.Array):
        return False
    there, here = home.get(other), home[made]
    if there is here:
        return here.values.index(other) < here.values.index(made)
    return there is None or tree.dominates(there, here)


_Target = tuple[int, Instr, frozenset[object]]  # which of the writers to a root, and to which kinds of memory it writes


class _Targets(NamedTuple):
    """The writes to a root: by what they may be to, those that may be to any parameter, and the kinds of these."""

    of_base: dict[Operand, list[_Target]]
    of_any: list[_Target]
    kinds: set[object]


_NO_TARGETS = _Targets({}, [], set())


class Memory:
    """The roots of a function and the writes to them, as the function was at construction.

    At a barrier other threads may write; where only the writes of the code itself matter, `barriers` is false. A `nest`
    of the function's loops is not needed; with one, indices are compared in it, even if the loops change afterwards.
    """

    def __init__(self, function: Function, *, barriers: bool = True, nest: LoopNest | None = None) -> None:
        self._parent: dict[Value, Value] = {}
        self._parts: dict[tuple[Value, object], Value] = {}  # the items of tuple parameters, by index
        self._same_part: dict[Value, Value] = {}
        self._values: dict[Block, tuple[Value, ...]] = {}
        self._successors: dict[Block, tuple[Block, ...]] = {}
        self._place: dict[Value, tuple[Block | None, int]] = dict.fromkeys(function.params, (None, 0))
        self._writers: dict[Value, list[Instr]] = {}
        self._written: dict[Value, dict[Block, list[int]]] = {}  # by root: the positions of its writers, in order
        self.outside: set[Value] = {param for param in function.params if has_memory(param.type)}
        for block in function.blocks:
            self._values[block] = block.values
            self._successors[block] = block.successors
            for index, value in enumerate(self._values[block]):
                self._place[value] = block, index
                if value.type.__class__ in NUMBERS and not isinstance(getattr(value, "op", None), Routine):
                    continue
                shared = list(_shares(value)) if not self._is_part(value) else []
                for other in shared:  # a push has no memory itself
                    self._union(value if has_memory(value.type) else shared[0], other)
                if isinstance(value, Instr) and isinstance(value.op, Routine) and value.op.may_alias_after:
                    mixed = [value.args[n] for n in sorted(value.op.may_alias_after) if n < len(value.args)]
                    for other_arg in mixed:
                        if isinstance(other_arg, Value) and isinstance(mixed[0], Value):
                            self._union(mixed[0], other_arg)
                    if mixed and has_memory(value.type) and isinstance(mixed[0], Value):
                        self._union(mixed[0], value)
        self._given = [
            value for value in function.values() if value in self.outside and isinstance(value.type, types.Array)
        ]
        self.outside = {self._find(value) for value in self.outside}
        # The roots of memory that may be carried from one iteration to the next: in a phi, a list, a tuple.
        self._kept = {
            self._find(value) for value in function.values() if has_memory(value.type) and not _is_one_array(value)
        }
        for block, values in self._values.items():
            for index, instr in enumerate(values):
                if isinstance(instr, Instr) and (barriers or ops.of(instr.op).role is not Role.BARRIER):
                    for target in writes(instr):
                        if isinstance(target, Value):
                            root = self._find(target)
                            self._writers.setdefault(root, []).append(instr)
                            self._written.setdefault(root, {}).setdefault(block, []).append(index)
        handed_on = (value for value in self._place if isinstance(value, Phi) and has_memory(value.type))
        if any(self._find(value) in self._written for value in handed_on):
            nest = nest or loop_nest(function)
            self._nest: LoopNest | None = nest
        else:
            self._nest = None
        self._function = function
        self._distances = None if nest is None else self._make_distances(nest)
        self._has_threads: bool | None = None
        self._apart: dict[tuple[Instr, Operand, Instr, frozenset[Block]], bool] = {}

    def root(self, operand: Operand) -> Value | None:
        """Return the root of the memory that a value may reach; None if it has no memory."""
        if not isinstance(operand, Value) or not has_memory(operand.type):
            return None
        self._where(operand)
        return self._find(operand)

    def seen_outside(self, root: Value) -> list[Value]:
        """Return the arrays with this root that the caller sees: parameters, and items of tuple parameters."""
        return [value for value in self._given if self._find(value) is root]

    def may_share(self, a: Operand, b: Operand) -> bool:
        """Return whether two values may reach the same memory."""
        root = self.root(a)
        return root is not None and root is self.root(b)

    def writers(self, operand: Operand) -> list[Instr]:
        """Return the instructions that may write to memory that a value may reach."""
        root = self.root(operand)
        return [] if root is None else self._writers.get(root, [])

    def writers_to(self, given: Value) -> list[Instr]:
        """Return the instructions that may write to a parameter, not only to other memory with its root: new arrays.

        Of a tuple that is given, an item may be asked for.
        """
        known, kinds = self._targets_of(given), kinds_of(given.type)
        writes_to = (*known.of_base.get(given, ()), *known.of_any)
        found = {place: writer for place, writer, of in writes_to if not kinds.isdisjoint(of)}
        return [found[place] for place in sorted(found)]

    def is_written_to(self, given: Value) -> bool:
        """Return whether there are such instructions."""
        known, kinds = self._targets_of(given), kinds_of(given.type)
        return not kinds.isdisjoint(known.kinds) or any(
            not kinds.isdisjoint(of) for _, _, of in known.of_base.get(given, ())
        )

    def _targets_of(self, given: Value) -> _Targets:
        root = self.root(given)
        return _NO_TARGETS if root is None else self._targets.get(root, _NO_TARGETS)

    @cached_property
    def _targets(self) -> Mapping[Value, _Targets]:
        """The writes to each root."""

        def is_any(base: Operand, writer: Instr) -> bool:
            if not isinstance(base, Param | Instr):
                return True
            if isinstance(base, Param):
                return isinstance(base.type, types.BaseTuple)
            if is_fresh(base):
                return False
            return base.op is not ops.stack or ops.of(writer.op).role not in (Role.STORE, Role.APPEND, Role.POP)

        found: dict[Value, _Targets] = {}
        known: dict[Operand, set[Operand]] = {}
        writers = {writer for each in self._writers.values() for writer in each}
        in_order = (each for values in self._values.values() for each in values if each in writers)
        for place, writer in enumerate(in_order):
            assert isinstance(writer, Instr)
            for target in writes(writer):
                root = self.root(target)
                if root is None:
                    continue
                targets = found.setdefault(root, _Targets({}, [], set()))
                if target not in known:
                    known[target] = bases(target)
                written = place, writer, kinds_of(target.type)
                if any(is_any(base, writer) for base in known[target]):
                    targets.of_any.append(written)
                    targets.kinds.update(written[2])
                for base in known[target]:
                    targets.of_base.setdefault(base, []).append(written)
        return found

    def is_written(self, operand: Operand) -> bool:
        """Return whether any instruction writes to memory that a value may reach."""
        return bool(self.writers(operand))

    def may_be_written_after(
        self, instr: Instr, targets: tuple[Operand, ...] | None = None, before: Collection[Block] = ()
    ) -> bool:
        """Return whether the memory `instr` reads (or `targets` reach) may be overwritten after it, in the same object.

        A loop that allocates a new array in each iteration writes to a different array each time, and never to one that
        an earlier iteration has handed on. Writes after control has reached one of the blocks in `before` do not count.
        """
        return any(
            self._written_after(instr, target, before) for target in (reads(instr) if targets is None else targets)
        )

    def is_of_its_round(self, loop: Loop, array: Operand) -> bool:
        """Return whether an array, or what it is a view of, has been made in the same round of a loop."""
        return all(isinstance(base, Instr) and is_fresh(base) for base in self._bases_in(loop, array))

    def is_made_after(self, array: Operand, write: Instr, earlier: Value) -> bool:
        """Return whether the array that `write` writes to is always made after `earlier` was computed."""
        if self._nest is None:
            return False
        block, place = self._where(write)
        there = self._where(earlier)
        assert block is not None
        return any(
            self.is_of_its_round(loop, array)
            and (
                not self._is_in_its_round(loop, block, place, *there)
                or not self._is_after_any(loop, there, self._bases_in(loop, array))
            )
            for loop in self._nest.around(block)
        )

    def _is_after_any(self, loop: Loop, there: tuple[Block | None, int], values: Collection[Operand | None]) -> bool:
        """Return whether a round of a loop may reach a place once it has computed one of the values, perhaps there."""
        block, place = there
        known = [self._where(each) for each in values if isinstance(each, Value)]
        return block is not None and any(
            each == there or self._is_in_its_round(loop, block, place, *each) for each in known
        )

    def _is_in_its_round(self, loop: Loop, block: Block, place: int, first: Block | None, start: int) -> bool:
        """Return whether a round of a loop may go on from one point to another, which is in the loop."""
        if first is None or first not in loop:
            return False
        if first is block and start < place:
            return True

        def onward(block: Block) -> list[Block]:
            return [each for each in self._successors[block] if each in loop and each is not loop.header]

        return block in reach(onward(first), onward)

    @contextmanager
    def order_of(self, block: Block) -> Iterator[Order]:
        """Return the instruction order of a block, which must not have changed and must not change in the context.

        The cost is one pass over the block. Raises InternalError if the block has changed.
        """
        self._check_unchanged(block)
        yield Order(self, block, self._place, self._written)
        self._check_unchanged(block)

    def _check_unchanged(self, block: Block) -> None:
        if self._values.get(block) != (*block.phis, *block.instrs):
            raise InternalError("memory: a block has changed since the memory was analyzed")

    def _where(self, value: Value) -> tuple[Block | None, int]:
        found = self._place.get(value)
        if found is None:
            raise InternalError(f"memory: `{value.hint}` was created after the memory was analyzed")
        return found

    def _is_part(self, value: Value) -> bool:
        """Return whether a value is an item of a tuple parameter: the items share no memory."""
        match value:
            case Instr(op=ops.getitem, args=(Value() as whole, Const(value=number))) if has_memory(value.type):
                base = whole if isinstance(whole, Param) else self._same_part.get(whole)
                if base is None or not isinstance(whole.type, types.BaseTuple):
                    return False
                same = self._same_part[value] = self._parts.setdefault((base, number), value)
                if same is not value:
                    self._union(same, value)
                self.outside.add(value)
                return True
        return False

    def _written_after(self, instr: Instr, target: Operand, before: Collection[Block]) -> bool:
        root = self.root(target)
        written = {} if root is None else self._written.get(root, {})
        if not written:
            return False
        fresh = self._fresh(target)
        home, made = (None, 0) if fresh is None else self._where(fresh)
        block, start = self._where(instr)
        assert block is not None
        loops = self._older_than_a_round(block, target)
        pending, seen = [(block, start)], set(before)
        while pending:
            block, start = pending.pop()
            places = written.get(block, ())
            if loops and places and root is not None:
                places = [place for place in places if not self._is_of_its_round(block, place, root, loops)]
            if places and self._nest is not None:
                places = [place for place in places if not self._is_to_later_arrays(block, place, target, instr)]
            if places:
                places = [place for place in places if not self._is_apart(instr, target, block, place, before)]
            first = bisect_right(places, start)
            remade = block is home and made > start
            if first < len(places) and not (remade and made < places[first]):
                return True
            if not remade:
                following = [each for each in self._successors[block] if each not in seen]
                seen.update(following)
                pending += [(each, -1) for each in following]
        return False

    def _is_to_later_arrays(self, block: Block, place: int, target: Operand, read: Instr) -> bool:
        """Return whether an instruction writes only to arrays that are made after another one has read."""
        writer = self._values[block][place]
        assert isinstance(writer, Instr)
        written = [each for each in writes(writer) if self.may_share(each, target)]
        return all(self.is_made_after(each, writer, read) for each in written)

    def _is_apart(self, read: Instr, target: Operand, block: Block, place: int, before: Collection[Block]) -> bool:
        """Return whether a write is never one to the elements that an instruction has read before it."""
        write = self._values[block][place]
        assert isinstance(write, Instr)
        if ops.of(write.op).role is not Role.STORE:
            return False
        key = read, target, write, frozenset(before)
        if key not in self._apart:
            self._apart[key] = self._find_apart(read, target, write, before)
        return self._apart[key]

    def _make_distances(self, nest: LoopNest) -> Distances:
        home = {value: block for value, (block, _) in self._place.items() if block is not None}
        return Distances(self._function, nest, home)

    def _find_apart(self, read: Instr, target: Operand, write: Instr, before: Collection[Block]) -> bool:
        if self._has_threads is None:
            values = (value for found in self._values.values() for value in found)
            self._has_threads = any(isinstance(value, Instr) and ops.is_of_threads(value.op) for value in values)
        if self._has_threads:
            return False  # what others write, their indices say
        if self._distances is None:
            if any(each.successors != found for each, found in self._successors.items()):
                return False  # the function has changed
            self._distances = self._make_distances(loop_nest(self._function))
        block, place = self._where(write)
        start, first = self._where(read)
        assert block is not None
        assert start is not None
        innermost = next((loop for loop in reversed(self._distances.around(start)) if block in loop), None)
        follows = self._follows(innermost, start, first, block, place)
        loops = [] if self._nest is None else self._nest.around(block)
        # Later rounds write to other arrays.
        new = {loop.header for loop in loops if self.is_of_its_round(loop, write.args[0])}
        return self._distances.are_apart(read, target, write, follows, {*before, *new})

    def _follows(self, loop: Loop | None, first: Block, start: int, block: Block, place: int) -> bool:
        """Return whether control may reach one point from another within a round of a loop, or at all."""
        if loop is not None:
            return self._is_in_its_round(loop, block, place, first, start)
        return (first is block and start < place) or block in reach(
            self._successors[first], lambda each: self._successors[each]
        )

    def _older_than_a_round(self, block: Block, target: Operand) -> list[Loop]:
        """Return the loops around a block of which each round finds the array made that `target` is then."""
        if self._nest is None:
            return []
        return [loop for loop in self._nest.around(block) if self._bases_in(loop, target) == {None}]

    def _is_of_its_round(self, block: Block, place: int, root: Value, loops: Sequence[Loop]) -> bool:
        """Return whether an instruction writes only to arrays that the round of one of the loops it is in has made."""
        writer = self._values[block][place]
        assert isinstance(writer, Instr)
        written = [target for target in writes(writer) if self.root(target) is root]
        return any(block in loop and all(self.is_of_its_round(loop, target) for target in written) for loop in loops)

    def _bases_in(self, loop: Loop, target: Operand) -> set[Operand | None]:
        """Return what an array may be, or be a view of, as a round of a loop makes it; None stands for what it finds
        made: outside of the loop or in a round before.
        """

        def is_found(each: Operand) -> bool:
            block = self._where(each)[0] if isinstance(each, Value) else None
            return block is None or block not in loop or (isinstance(each, Phi) and block is loop.header)

        def origins(each: Operand) -> tuple[Operand, ...]:
            return () if is_found(each) else origins_of(each)

        return {None if is_found(each) else each for each in reach([target], origins) if not origins(each)}

    def _fresh(self, target: Operand) -> Value | None:
        """Return the instruction that created `target`, if its root stands only for the latest result of that."""
        while isinstance(target, Instr) and is_view(target):
            target = target.args[0]
        if not isinstance(target, Instr) or not is_fresh(target) or self._find(target) in self._kept:
            return None
        return target

    def _find(self, value: Value) -> Value:
        root = value
        while (above := self._parent.get(root)) is not None:
            root = above
        while value is not root:  # path compression: the next look-up takes one step
            self._parent[value], value = root, self._parent[value]
        return root

    def _union(self, a: Value, b: Value) -> None:
        a, b = self._find(a), self._find(b)
        if a is not b:
            if isinstance(b, Param):
                a, b = b, a
            self._parent[b] = a


class Order:
    """The writes of one block's instructions, in order: see `Memory.order_of`."""

    def __init__(
        self,
        memory: Memory,
        block: Block,
        place: Mapping[Value, tuple[Block | None, int]],
        written: Mapping[Value, Mapping[Block, Sequence[int]]],
    ) -> None:
        self._memory = memory
        self._block = block
        self._place = place
        self._written = written

    def __contains__(self, value: Value) -> bool:
        """Return whether the block defines a value."""
        return value in self._place and self._place[value][0] is self._block

    def writes_between(self, first: Instr, last: Instr, target: Operand) -> bool:
        """Return whether an instruction strictly between two others may write to memory that `target` may reach."""
        return self._writes(self._index(first) + 1, last, target)

    def writes_since(self, first: Instr, last: Instr, target: Operand) -> bool:
        """As `writes_between`, but including `first`: whether a read just before it is stale just before `last`."""
        return self._writes(self._index(first), last, target)

    def _writes(self, start: int, last: Instr, target: Operand) -> bool:
        root = self._memory.root(target)
        places = () if root is None else self._written.get(root, {}).get(self._block, ())
        found = bisect_left(places, start)
        return found < len(places) and places[found] < self._index(last)

    def _index(self, instr: Instr) -> int:
        if instr not in self:
            raise InternalError(f"memory: `{instr.hint}` is not in the block whose order is queried")
        return self._place[instr][1]


def _is_one_array(value: Value) -> bool:
    """Return whether a value is a newly created array or a view."""
    return isinstance(value, Instr) and (is_fresh(value) or is_view(value))


def _shares(value: Value) -> Iterator[Value]:
    """Yield the operands that `value` may share memory with by its definition; items put into a list share with it."""
    found: tuple[Operand, ...] = ()
    match value:
        case Phi():
            found = tuple(value.incoming.values())
        case Instr(op=ops.push | ops.setitem, args=(container, item, *_)) if not isinstance(
            container.type, types.Array
        ):
            found = (container, item) if has_memory(item.type) else ()
        case Instr(op=Routine() as routine) if has_memory(value.type):
            found = tuple(arg for number, arg in enumerate(value.args) if number in routine.shares)
        case Instr() if has_memory(value.type) and not isinstance(value.op, Routine):
            found = () if is_fresh(value) or value.op is np.zeros_like else value.args
        case _:
            return
    for operand in found:
        if isinstance(operand, Value) and operand is not value and has_memory(operand.type):
            yield operand
