"""Privatization: memory that a loop uses for one iteration at a time, in which an iteration reads only its own writes.

    for i in range(n):                      `w` is private to the loop over i, though it is allocated before it:
        for j in range(len(w)):             each iteration first writes to all of its elements
            w[j] = x[i, j] * x[i, j]
        for j in range(len(w)):
            s += math.sin(w[j])

Memory that an iteration allocates and that does not outlive it is private, too. The values of indices are not analyzed:
the first writes must be those of loops that count over the whole array.
"""

from __future__ import annotations

from collections.abc import Iterable

from zygote_py.ir import (
    Block,
    Function,
    Instr,
    Loop,
    LoopNest,
    Memory,
    Value,
    definitions,
    effect,
    grouped,
    ops,
    reach,
    uses,
    writes,
)
from zygote_py.ir.arrays.measures.coverage import visit_of
from zygote_py.ir.arrays.shapes import Shapes
from zygote_py.ir.ops import Effect, Role


class Private:
    """Privatization queries on the loops of one function."""

    def __init__(self, function: Function, nest: LoopNest, memory: Memory) -> None:
        self._nest = nest
        self._memory = memory
        self._uses = uses(function)
        self._home = definitions(function)
        self._shapes = Shapes()
        roots = ((memory.root(value), value) for value in function.values())
        self._members = grouped((root, value) for root, value in roots if root is not None)

    def is_private(self, root: Value, loop: Loop) -> bool:
        """Return whether no iteration reads writes of other iterations to a root, and nothing after the loop does."""
        if root in self._memory.outside:
            return False
        members = self._members.get(root, [])
        if all(member in self._home and self._home[member] in loop for member in members):
            return self._stays_inside(members, loop)
        if len(members) != 1 or not isinstance(members[0], Instr) or ops.of(members[0].op).role is not Role.ALLOCATE:
            return False
        return self._is_written_first(members[0], loop)

    def _stays_inside(self, members: Iterable[Value], loop: Loop) -> bool:
        return all(
            member not in loop.header.phis and all(use.block in loop for use in self._uses.get(member, ()))
            for member in members
        )

    def _is_written_first(self, array: Instr, loop: Loop) -> bool:
        """Return whether each iteration writes all elements of an array from before the loop, before it reads any."""
        reading: list[tuple[Block, Instr]] = []
        stores: list[tuple[Block, Instr]] = []
        for user, block, _ in self._uses.get(array, ()):
            if block not in loop and self._comes_before(block, loop):
                continue
            if block not in loop or not isinstance(user, Instr):
                return False
            sets = user.op is not ops.accumulate and ops.of(user.op).role is Role.STORE
            if sets and user.args[0] is array and array not in user.args[1:]:
                stores.append((block, user))
            elif user.op is not ops.dim:
                reading.append((block, user))
        return any(
            all(self._precedes(store, at, nest, user, block) for block, user in reading)
            for at, store in stores
            if (nest := self._covering(store, at, array, loop)) is not None
        )

    def _comes_before(self, block: Block, loop: Loop) -> bool:
        """Return whether a block outside of the loop is not reached after it."""
        return block not in set(reach((after for _, after in loop.exits), lambda each: each.successors))

    def _covering(self, store: Instr, at: Block, array: Instr, loop: Loop) -> Loop | None:
        """Return the outermost loop of the nest in which a store writes to each element of the array, if any."""
        visit = visit_of(self._nest, self._shapes, store.args[2:], at, self._shapes.of(array), loop)
        return visit.loop if visit is not None and visit.is_whole else None

    def _precedes(self, store: Instr, at: Block, nest: Loop, user: Instr, block: Block) -> bool:
        """Return whether `user` reads written elements only: it follows the nest, or reads the one just stored."""
        tree = self._nest.tree
        ((_, behind),) = nest.exits
        if block not in nest and tree.dominates(behind, block):
            return True
        array, _, *index = store.args
        if block not in nest or not tree.dominates(at, block) or user.op not in (ops.getitem, ops.accumulate):
            return False
        own = user.args[1:] if user.op is ops.getitem else user.args[2:]
        if (
            user.args[0] is not array
            or len(own) != len(index)
            or any(a is not b for a, b in zip(own, index, strict=True))
        ):
            return False
        return at is not block or at.instrs.index(store) < at.instrs.index(user)


def allocated_in(blocks: Iterable[Block], memory: Memory) -> set[Value]:
    """Return the roots of the memory that the blocks allocate."""
    made = (memory.root(i) for block in blocks for i in block.instrs if effect(i) is Effect.ALLOCATE)
    return {root for root in made if root is not None}


def written_in(blocks: Iterable[Block], memory: Memory) -> set[Value]:
    """Return the roots of the memory that the blocks write to; others do at a barrier, where they run them."""
    instrs = (instr for block in blocks for instr in block.instrs if ops.of(instr.op).role is not Role.BARRIER)
    found = (memory.root(target) for instr in instrs for target in writes(instr))
    return {root for root in found if root is not None}
