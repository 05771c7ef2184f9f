"""Whether the rounds of several loops may run in turn: the first of each loop, then the second of each.

    for i in range(n):                  y[i] is the one of this round: the other rounds do not touch it
        y[i] = a * x[i]
    c = math.sqrt(a)                    may run before: it does not need what the loop has computed
    for i in range(n):
        z[i] = c * y[i] * x[i]          nothing writes to x; only this loop accesses z

What one loop writes to, another may access only in the same round: by the counter, as the index of one axis. If a
loop can be left by an exception of the program's own, the others raise none. Of errors of operations (a division by 0,
lengths that do not fit), it may be another one that is raised, if there is more than one reason for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.dataflow import reach
from zygote_py.ir.analysis.effects import NUMBERS, effect, has_memory, is_fresh, is_view, reads, writes
from zygote_py.ir.analysis.loops import CountedLoop, Loop
from zygote_py.ir.analysis.memory import Memory
from zygote_py.ir.core import Block, Instr, Routine, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Effect, Role
from zygote_py.ir.passes.loops.chains import Chain, index_of, least_of, offset_from


@dataclass(eq=False)
class _Part:
    """A part of a program: what it reads, and what it writes to, by the root of the memory."""

    read: dict[Value, list[Instr]] = field(default_factory=dict)
    written: dict[Value, list[Instr]] = field(default_factory=dict)
    values: set[Value] = field(default_factory=set)
    args: set[Value] = field(default_factory=set)
    raises: bool = False  # an error of an operation
    raises_own: bool = False  # an exception of the program's own, or in a function that it calls
    is_known: bool = True  # what it does, and that this need not be in order

    @property
    def may_end(self) -> bool:
        """Return whether an exception may leave it."""
        return self.raises or self.raises_own


class Rounds:
    """Queries about chains of loops of a function."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def may_run_in_turn(self, chain: Chain, array: Value) -> bool:
        """Return whether the rounds of the loops of a chain may run in turn, and what is between them before.

        All accesses to the `array` are known to be those of the same round.
        """
        parts = [self._part(_blocks_of(loop)) for loop in chain.loops]
        known = self._memory.root(array)
        if not all(part.is_known for part in parts):
            return False
        for number, blocks in enumerate(chain.between, 1):
            between, later, loop = self._part(blocks), parts[number], chain.loops[number]
            later.args |= {each for phi in loop.header.phis for each in phi.args if isinstance(each, Value)}
            for place, earlier in enumerate(parts[:number]):
                if not self._may_come_before(between, earlier, is_loop=False):
                    return False
                if not self._may_come_before(later, earlier, is_loop=True):
                    return False
                counts = chain.counts[place], chain.counts[number]
                shared = _shared(earlier, later) - {known}
                if not all(self._is_of_round(root, (earlier, later), counts) for root in shared):
                    return False
        return True

    def _part(self, blocks: Sequence[Block]) -> _Part:
        part = _Part()
        for block in blocks:
            part.values |= set(block.values)
            for phi in block.phis:
                part.args |= {each for each in phi.args if isinstance(each, Value)}
            for instr in block.instrs:
                self._add(instr, part)
            part.args |= {each for each in block.terminator.args if isinstance(each, Value)}
            part.raises_own |= not block.successors
        return part

    def _add(self, instr: Instr, part: _Part) -> None:
        part.args |= {each for each in instr.args if isinstance(each, Value)}
        for arg, accesses in (
            *((arg, part.read) for arg in reads(instr)),
            *((arg, part.written) for arg in writes(instr)),
        ):
            root = self._memory.root(arg)
            if root is None:
                part.is_known = False
            else:
                accesses.setdefault(root, []).append(instr)
        record = ops.of(instr.op)
        if isinstance(instr.op, Routine):
            part.raises_own = True
            part.is_known &= not instr.op.has_side_effects and not instr.op.may_alias_after
            return
        is_store = record.role is Role.STORE or record.adds
        part.raises |= not _never_raises(instr)
        is_plain = is_store or record.role in (Role.CHECK, Role.APPEND) or effect(instr) is not Effect.WRITE
        part.is_known &= is_plain and not record.draws

    def _may_come_before(self, moved: _Part, earlier: _Part, is_loop: bool) -> bool:
        """Return whether a part may run before another that comes first now, but for the memory of a round."""
        if not moved.is_known or moved.args & earlier.values:
            return False
        if moved.may_end and earlier.may_end and (moved.raises_own or earlier.raises_own):
            return False
        outside = self._memory.outside
        if (moved.may_end and outside & set(earlier.written)) or (earlier.may_end and outside & set(moved.written)):
            return False  # the caller sees what an exception leaves
        return is_loop or not _shared(earlier, moved)

    def _is_of_round(self, root: Value, parts: Iterable[_Part], counts: Iterable[CountedLoop]) -> bool:
        """Return whether what two loops access of memory are elements that only the same round of both accesses."""
        common: set[tuple[int, int]] | None = None
        arrays: set[Value] = set()
        for part, count in zip(parts, counts, strict=True):
            least = least_of(count)
            for instr in (*part.read.get(root, ()), *part.written.get(root, ())):
                index = index_of(instr)
                array = instr.args[0] if instr.args else None
                if index is None or not isinstance(array, Value) or self._memory.root(array) is not root:
                    return False
                if any(has_memory(each.type) for each in instr.args[1:]):
                    return False
                arrays.add(array)
                found = {
                    (axis, offset)
                    for axis, each in enumerate(index)
                    if isinstance(each.type, types.Integer)
                    and all(isinstance(before.type, types.Integer) for before in index[:axis])
                    and (offset := offset_from(each, count.phi)) is not None
                    and least + offset >= 0
                }
                common = found if common is None else common & found
        return bool(common) and len(arrays) == 1 and all(map(_has_distinct_elements, arrays))


def _never_raises(instr: Instr) -> bool:
    """Return whether an instruction cannot raise: access to an element, a view, a length, most functions of numbers."""
    if isinstance(instr.args[0].type if instr.args else None, types.Array):
        return index_of(instr) is not None or is_view(instr) or instr.op is ops.dim
    are_numbers = all(each.type.__class__ in NUMBERS for each in (instr, *instr.args))
    return are_numbers and not ops.of(instr.op).may_raise


def _blocks_of(loop: Loop) -> list[Block]:
    """Return the blocks of a loop, and those in which exceptions leave it."""
    return [*loop.order, *reach((block for _, block in loop.raising_exits), lambda block: block.successors)]


def _shared(earlier: _Part, later: _Part) -> set[Value]:
    """Return the memory that both access, and one writes to."""
    read, written = set(earlier.read), set(earlier.written)
    return (written & (set(later.read) | set(later.written))) | (read & set(later.written))


def _has_distinct_elements(array: Value) -> bool:
    kind = array.type
    assert isinstance(kind, types.Array)
    return kind.layout in "CF" or (isinstance(array, Instr) and is_fresh(array))
