"""Memory that the reverse sweep rewinds: each overwritten value is saved, and restored in the reverse sweep.

    for k in range(steps):                          for k in range(steps - 1, -1, -1):
        for i in range(n):                              for i in range(n - 1, -1, -1):      (reads q as it was)
            for j in range(n):                  ->          for j in range(n - 1, -1, -1): ...
                a[i] += pull(q[i], q[j])                for i in range(n - 1, -1, -1):
        for i in range(n):                                  q[i] = q_record[k, i]           (and is rewound)
            q[i] += dt * v[i]

The alternative is to save the values read, here n * n numbers per step. The minimum cut decides which is cheaper (see
`plan.py`), for all writes to a root together. A read may profit if the innermost loop around it does not write to
the same memory: while the reverse of that loop runs, memory has the contents it had while the loop ran.

What is written twice between two such reads is restored once, to what it was before the first write: if both go to the
same elements, the second is not undone.

Only memory with a shadow is rewound: each of its writes has a counterpart in the reverse sweep. Memory visible to the
caller is finally set to the contents at the end of the function again. Rewinding is not needed in an immediate loop
(`fused_reverse.py`): memory that it writes to is private to an iteration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

from numba import types

from zygote_py.ir import (
    Block,
    Const,
    Function,
    Instr,
    Loop,
    LoopNest,
    Memory,
    Operand,
    Value,
    counted,
    definitions,
    grouped,
    is_left_out,
    ops,
    reach,
)
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class Write:
    """A write to an element, its block, and the block of the reverse sweep that undoes it."""

    instr: Instr
    block: Block
    reverse: Block


class Rewinding:
    """The roots of a forward sweep that could be rewound, and those `chosen`."""

    def __init__(
        self,
        forward: Function,
        nest: LoopNest,
        memory: Memory,
        active: Collection[Value],
        mirrors: Mapping[Block, Block],
        immediate: Collection[Loop] = (),
    ) -> None:
        self._forward = forward
        self._home = definitions(forward)
        self._preds = grouped((successor, block) for block in forward.blocks for successor in block.successors)
        self._preds.setdefault(forward.entry, [])
        self._immediate = immediate
        self._nest = nest
        self._memory = memory
        self._undone: dict[Value, list[Write]] = {}
        self.writes: dict[Value, list[Write]] = {}
        self.chosen: set[Value] = set()
        for root in () if is_left_out("rewinding") else active:
            writers = [(writer, self._home[writer]) for writer in memory.writers(root)]
            if all(block in mirrors and _is_of_element(writer) for writer, block in writers):
                # An initialization overwrites nothing that was read.
                found = [Write(each, block, mirrors[block]) for each, block in writers if each.op is not ops.initialize]
                if found:
                    self.writes[root] = found

    def root_of(self, read: Instr, home: Block) -> Value | None:
        """Return the root to rewind so that an element can be read again in the reverse sweep, if that is possible."""
        if read.op is not ops.getitem or not isinstance(read.args[0].type, types.Array):
            return None
        root = self._memory.root(read.args[0])
        loop = self._nest.innermost(home)
        if root is None or root not in self.writes or loop is None:
            return None
        return None if any(write.block in loop for write in self.writes[root]) else root

    def depths(self, root: Value) -> list[int]:
        """Return the loop depth of each value that must be saved to rewind a root."""
        return [self._nest.depth(write.block) for write in self.undone(root)]

    def undone(self, root: Value) -> list[Write]:
        """Return the writes to a root whose overwritten values must be restored."""
        if root not in self._undone:
            found = self.writes[root]
            sweeps = {write: sweep for write in found if (sweep := self._sweep(write)) is not None}
            if len(sweeps) > 1 and not is_left_out("undone-once"):
                found = [write for write in found if write not in sweeps or self._is_read_before(root, write, sweeps)]
            self._undone[root] = found
        return self._undone[root]

    def _sweep(self, write: Write) -> _Sweep | None:
        """Return the loops in each iteration of which a write goes to an element, and to which."""
        array, _, *index = write.instr.args
        loops: list[Loop] = []
        counters: dict[Operand, object] = {}
        counts: list[tuple[object, ...]] = []
        inner = write.block
        for loop in self._nest.around(write.block):
            how = counted(loop, self._forward)
            if how is None or len(loop.latches) != 1 or how.phi not in index:
                break
            if not self._nest.tree.dominates(inner, loop.latches[0]):
                return None
            counters[how.phi] = len(loops)
            counts.append((self._fixed(how.start), self._fixed(how.bound), how.step, how.comparison.op))
            loops.append(loop)
            inner = loop.header
        elements = [(counters[each],) if each in counters else self._fixed(each) for each in index]
        if not loops or None in elements or any(None in each for each in counts):
            return None
        return None if self._fixed(array) is None else _Sweep(loops[-1], (array, *counts, *elements))

    def _fixed(self, operand: Operand) -> object:
        """Return what stands for a number that is the same in all iterations; None if it may not be."""
        if isinstance(operand, Const):
            return ("constant", operand.value)
        home = self._home.get(operand) if isinstance(operand, Value) else None
        if home is None:
            return operand
        is_repeated = self._nest.innermost(home) is not None or any(home in loop for loop in self._immediate)
        return None if is_repeated else operand

    def _is_read_before(self, root: Value, write: Write, sweeps: Mapping[Write, _Sweep]) -> bool:
        """Return whether what a write replaces may be read again before another write, which precedes it, is undone."""
        own, reading = sweeps[write], self._reading.get(root, set())
        alike = {
            each.loop.header
            for each in sweeps.values()
            if each.elements == own.elements
            and (each.loop is own.loop or own.loop.header not in each.loop)
            and reading.isdisjoint(each.loop.order)
        }
        before = reach(own.loop.entering, self._preds.__getitem__, alike)
        return not reading.isdisjoint(own.loop.order) or not reading.isdisjoint(before)

    @cached_property
    def _reading(self) -> dict[Value, set[Block]]:
        """Return the blocks in which elements of each root are read, as they may be again in the reverse sweep."""
        found: dict[Value, set[Block]] = {}
        for block in self._forward.blocks:
            for instr in block.instrs:
                if (root := self.root_of(instr, block)) is not None:
                    found.setdefault(root, set()).add(block)
        return found


@dataclass(frozen=True, eq=False)
class _Sweep:
    """The outermost loop in whose iterations a write goes to elements, and what tells which these are."""

    loop: Loop
    elements: tuple[object, ...]


def _is_of_element(instr: Instr) -> bool:
    kind = instr.args[0].type if ops.of(instr.op).role is ops.Role.STORE else None
    return isinstance(kind, types.Array) and len(instr.args) - 2 == kind.ndim > 0
