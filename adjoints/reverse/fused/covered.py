"""Arrays in shared memory that a loop fills anew in each round, before it reads them.

    for tile in range(tiles):
        s[t] = x[tile * B + t]          each thread of the block stores its own element: together all of them
        cuda.syncthreads()
        for k in range(B):
            total += s[k]               reads what was stored in this round
        cuda.syncthreads()

Nothing is passed from one round to another by such an array, so that a round can be reversed as soon as it has run (see
`fused_reverse.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from zygote_py.ir import Block, Function, Instr, Loop, LoopNest, Memory, Value, ops, reads, writes


class Covered:
    """Queries on the arrays of a function, with the stores that cover one."""

    def __init__(self, function: Function, nest: LoopNest, memory: Memory, covering: Mapping[Instr, Value]) -> None:
        self._nest = nest
        self._roots = {memory.root(array) for array in covering.values()}
        self._covering = covering
        self._accesses: dict[tuple[Value, Block], list[Instr]] = {}
        for block in function.blocks if covering else ():
            for instr in block.instrs:
                if instr.op is not ops.barrier:
                    for root in {memory.root(each) for each in (*reads(instr), *writes(instr))} & self._roots:
                        assert root is not None
                        self._accesses.setdefault((root, block), []).append(instr)

    def is_private(self, root: Value, loop: Loop) -> bool:
        """Return whether each round of a loop sets all elements of an array first, and nothing reads them after it."""
        if root not in self._roots:
            return False
        (latch,) = loop.latches
        tree = self._nest.tree
        first = [block for block in loop.order if self._is_set_first(root, block) and tree.dominates(block, latch)]
        if not first:
            return False
        inside = [block for block in loop.order if (root, block) in self._accesses]
        if not all(tree.dominates(first[0], block) for block in inside):
            return False
        return not self._is_read_from(root, [after for _, after in loop.exits])

    def _is_set_first(self, root: Value, block: Block) -> bool:
        accesses = self._accesses.get((root, block), [])
        return bool(accesses) and accesses[0] in self._covering

    def _is_read_from(self, root: Value, starts: list[Block]) -> bool:
        """Return whether an array may be read after some blocks have been entered, before it is set again."""
        seen: set[Block] = set()
        pending = list(starts)
        while pending:
            block = pending.pop()
            if block in seen:
                continue
            seen.add(block)
            if (root, block) in self._accesses:
                if self._is_set_first(root, block):
                    continue
                return True
            pending += block.successors
        return False
