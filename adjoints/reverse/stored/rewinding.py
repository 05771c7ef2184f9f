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

Only memory with a shadow is rewound: each of its writes has a counterpart in the reverse sweep. Memory visible to the
caller is finally set to the contents at the end of the function again. Rewinding is not needed in an immediate loop
(`fused_reverse.py`): memory that it writes to is private to an iteration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from numba import types

from zygote_py.ir import Block, Function, Instr, LoopNest, Memory, Value, is_left_out, ops
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
    ) -> None:
        self._nest = nest
        self._memory = memory
        self.writes: dict[Value, list[Write]] = {}
        self.chosen: set[Value] = set()
        home = {instr: block for block in forward.blocks for instr in block.instrs}
        for root in () if is_left_out("rewinding") else active:
            writers = [(writer, home[writer]) for writer in memory.writers(root)]
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
        return [self._nest.depth(write.block) for write in self.writes[root]]


def _is_of_element(instr: Instr) -> bool:
    kind = instr.args[0].type if ops.of(instr.op).role is ops.Role.STORE else None
    return isinstance(kind, types.Array) and len(instr.args) - 2 == kind.ndim > 0
