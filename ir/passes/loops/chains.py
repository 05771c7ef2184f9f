"""Chains of loops over the same numbers, one after the other, that access one array: they can become one loop.

    for i in range(n):                  level 0: these two loops
        for j in range(m):              level 1: the loops within them, as they are one after the other then
            y[i, j] = ...
    for k in range(n):
        for l in range(m):
            s += y[k, l] * w

Each access to the array is to the element that the counters of the loops around it name, in the same way. Control goes
from one loop to the next without branches.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.effects import effect
from zygote_py.ir.analysis.loops import CountedLoop, Loop, LoopNest, counted
from zygote_py.ir.analysis.running_sums import running_sum
from zygote_py.ir.core import Block, Branch, Const, Function, Instr, Jump, Operand, Phi, Return, Value, predecessors
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Effect, Role
from zygote_py.ir.walks import Use, definitions

SETS = (ops.setitem, ops.initialize)
_SUMS = (operator.add, operator.sub, operator.neg)
_SCALES = (operator.mul, operator.truediv, np.divide, float)
_MAKERS = (ops.record, ops.zeros)


@dataclass(frozen=True, eq=False)
class Array:
    """An array of numbers that a function makes, and that it accesses by elements alone."""

    made: Instr
    home: Block
    accesses: Mapping[Instr, Block]
    lengths: Mapping[Instr, int]  # queries for these, and of which axis


@dataclass(frozen=True, eq=False)
class Chain:
    """Loops that follow one another, how they count, and the blocks after each but the last."""

    loops: Sequence[Loop]
    counts: Sequence[CountedLoop]
    between: Sequence[Sequence[Block]]

    def rounds(self) -> Iterator[Block]:
        """Yield the blocks of the loops in an order in which each round goes through them."""
        for loop in self.loops:
            yield from loop.order

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of the loops, and those between them."""
        yield from self.rounds()
        for between in self.between:
            yield from between


@dataclass(frozen=True)
class Place:
    """The elements that an access is to: for each axis, from the outermost loop on, its number and a fixed offset."""

    axes: tuple[int, ...]
    offsets: tuple[int, ...]


def arrays_of(function: Function, used: Mapping[Value, Sequence[Use]]) -> list[Array]:
    """Return the arrays that the elements of may be variables, as far as their uses tell."""
    made = [
        (block, instr)
        for block in function.blocks
        for instr in block.instrs
        if instr.op in _MAKERS and instr.args and _is_of_numbers(instr)
    ]
    return [found for block, instr in made if (found := _array(instr, block, used.get(instr, ()))) is not None]


def _is_of_numbers(instr: Instr) -> bool:
    kind = instr.type
    return isinstance(kind, types.Array) and isinstance(kind.dtype, types.Number | types.Boolean)


def _array(made: Instr, home: Block, used: Sequence[Use]) -> Array | None:
    accesses: dict[Instr, Block] = {}
    lengths: dict[Instr, int] = {}
    for use in used:
        if not isinstance(use.user, Instr):
            return None
        if _accesses(use.user, made):
            accesses[use.user] = use.block
        elif use.user.op is ops.dim and isinstance(axis := use.user.args[1], Const) and isinstance(axis.value, int):
            lengths[use.user] = axis.value
        else:
            return None
    operations = {instr.op for instr in accesses}
    return Array(made, home, accesses, lengths) if operations - {ops.getitem} and ops.getitem in operations else None


def _accesses(instr: Instr, array: Instr) -> bool:
    """Return whether an instruction reads, sets or adds to one element of an array."""
    kind = array.type
    assert isinstance(kind, types.Array)
    index = index_of(instr)
    return (
        index is not None
        and len(index) == kind.ndim
        and all(isinstance(each.type, types.Integer) for each in index)
        and instr.args[0] is array
        and (instr.op is ops.getitem or instr.args[1].type == kind.dtype)
    )


def index_of(instr: Instr) -> Sequence[Operand] | None:
    """Return the index by which an instruction accesses an array, its first argument; None if it does not."""
    if instr.op is ops.getitem and isinstance(instr.args[0].type, types.Array):
        return instr.args[1:]
    return instr.args[2:] if instr.op in (*SETS, ops.accumulate) else None


def counted_simply(loop: Loop, function: Function) -> CountedLoop | None:
    """Return how a loop counts if its header does nothing else, and it has one entry and one latch."""
    found = counted(loop, function)
    if found is None or len(loop.entering) != 1 or len(loop.latches) != 1 or loop.header.instrs != [found.condition]:
        return None
    return found if isinstance(loop.entering[0].terminator, Jump) and loop.latches[0] is not loop.header else None


def offset_from(index: Operand, counter: Phi) -> int | None:
    """Return the fixed distance of an index from a counter; None if there is none."""
    if index is counter:
        return 0
    match index:
        case Instr(op=operator.add, args=(one, Const(int(by)))) | Instr(op=operator.add, args=(Const(int(by)), one)):
            pass
        case Instr(op=operator.sub, args=(one, Const(int(by)))):
            by = -by
        case _:
            return None
    return by if one is counter and index.type == counter.type else None


def least_of(count: CountedLoop) -> float:
    """Return the least number that a counter has, or minus infinity if that is not known."""
    end = count.start if count.step > 0 else count.bound
    if not isinstance(end, Const) or not isinstance(end.value, int):
        return -float("inf")
    return end.value if count.step > 0 else end.value + 1 + count.comparison.past


class Chains:
    """Finds the chains of a function."""

    def __init__(self, function: Function, nest: LoopNest, used: Mapping[Value, Sequence[Use]]) -> None:
        self._function, self._nest, self._used = function, nest, used
        self._preds = predecessors(function)
        self._home = definitions(function)
        self._headers = {loop.header: loop for loop in nest.loops}
        self._counts: dict[Loop, CountedLoop | None] = {}

    def of(self, array: Array) -> list[Chain] | None:
        """Return the chains in which all accesses to an array are, the outermost first; None if there are none."""
        places: set[Place] = set()
        levels: list[set[Loop]] = []
        for instr, block in array.accesses.items():
            found = self._place(block, instr)
            if found is None:
                return None
            place, loops = found
            places.add(place)
            levels = levels or [set() for _ in loops]
            for level, loop in zip(levels, loops, strict=True):
                level.add(loop)
        parents = {loop.parent for loop in levels[0]}
        if len(places) != 1 or len(parents) != 1:
            return None
        chains: list[Chain] = []
        for level in levels:
            chain = self._chain(level, chains[-1] if chains else None)
            if chain is None:
                return None
            chains.append(chain)
        if not all(map(self._only_adds_up, chains[0].loops)) or not self._sums_are_linear(chains[0].loops):
            return None
        around = self._nest.innermost(array.home)
        return chains if around in parents or self._is_stored_first(array, chains) else None

    def _place(self, block: Block, instr: Instr) -> tuple[Place, list[Loop]] | None:
        """Return to which elements an access is, and the loops that its indices count, the outermost first."""
        index = index_of(instr)
        assert index is not None
        found: list[tuple[Loop, int, int]] = []
        for axis, each in enumerate(index):
            for loop in self._nest.around(block):
                count = self._count(loop)
                offset = None if count is None else offset_from(each, count.phi)
                if count is not None and offset is not None and least_of(count) + offset >= 0:
                    found.append((loop, axis, offset))
                    break
            else:
                return None
        found.sort(key=lambda each: each[0].depth)
        loops = [loop for loop, _, _ in found]
        if any(inner.parent is not outer for outer, inner in pairwise(loops)):
            return None
        return Place(tuple(axis for _, axis, _ in found), tuple(offset for _, _, offset in found)), loops

    def _count(self, loop: Loop) -> CountedLoop | None:
        if loop not in self._counts:
            self._counts[loop] = counted_simply(loop, self._function)
        return self._counts[loop]

    def _chain(self, wanted: set[Loop], above: Chain | None) -> Chain | None:
        """Return the chain of some loops, and of those between them; within the loops of the chain above."""
        missing = set(wanted)
        loop: Loop | None = next(each for each in self._nest.loops if each in wanted)
        loops: list[Loop] = []
        between: list[list[Block]] = []
        while loop is not None:
            loops.append(loop)
            missing.discard(loop)
            if not missing:
                break
            blocks, loop = self._next(loop, above)
            between.append(blocks)
        counts = [count for each in loops if (count := self._count(each)) is not None]
        parents = above.loops if above else (loops[0].parent,)
        if loop is None or len(counts) != len(loops) or loop.parent not in parents:
            return None
        renamed = {} if above is None else {count.phi: above.counts[0].phi for count in above.counts}
        return Chain(loops, counts, between) if all(_alike(counts[0], each, renamed) for each in counts) else None

    def _next(self, loop: Loop, above: Chain | None) -> tuple[list[Block], Loop | None]:
        """Return the blocks after a loop, and the loop that they lead to, without a branch.

        Within the loops of the chain `above`, the end of the one and the beginning of the next are among them.
        """
        ((_, block),) = loop.exits
        blocks: list[Block] = []
        while not block.phis and isinstance(block.terminator, Jump) and len(self._preds[block]) == 1:
            blocks.append(block)
            target = block.terminator.target
            around = loop.parent
            if above is not None and around in above.loops and around is not None and target is around.header:
                place = above.loops.index(around) + 1
                if place == len(above.loops):
                    break
                block = inside(above.loops[place])
                if block.phis or len(self._preds[block]) != 1:
                    break
                loop = above.loops[place]  # the blocks that follow are in it
                continue
            if target in self._headers:
                return blocks, self._headers[target]
            block = target
        return blocks, None

    def _only_adds_up(self, loop: Loop) -> bool:
        """Return whether all that the rounds of a loop hand on are sums."""
        count = self._count(loop)
        others = [phi for phi in loop.header.phis if count is None or phi is not count.phi]
        return all(running_sum(loop, phi, self._used) is not None for phi in others)

    def _sums_are_linear(self, loops: Sequence[Loop]) -> bool:
        """Return whether loops have sums, and the function returns sums and multiples of these: others do not matter.

        Then it is known before the loops what the result depends on them by, and they are reversed as they run.
        """
        counters = {count.phi for loop in loops if (count := self._count(loop)) is not None}
        sums = [phi for loop in loops for phi in loop.header.phis if phi not in counters]
        first = loops[0].header

        def is_known(operand: Operand) -> bool:
            if not isinstance(operand, Instr | Phi) or self._nest.tree.dominates(self._home[operand], first):
                return True
            if not isinstance(operand, Instr) or effect(operand) is not Effect.PURE or ops.of(operand.op).may_raise:
                return False
            return all(map(is_known, operand.args))

        found: set[Operand] = set(sums)
        pending: list[Value] = list(sums)
        while pending:
            for use in self._used.get(pending.pop(), ()):
                user = use.user
                if isinstance(user, Return):
                    continue
                if isinstance(user, Instr):
                    others = [each for each in user.args if each not in found]
                    is_scaled = user.op in _SCALES and len(others) == len(user.args) - 1
                    if user.op not in _SUMS and not (is_scaled and all(map(is_known, others))):
                        return False
                    if user.op in (operator.truediv, np.divide) and user.args[0] not in found:
                        return False
                elif not isinstance(user, Phi):
                    return False
                if user not in found:
                    found.add(user)
                    pending.append(user)
        return bool(sums)

    def _is_stored_first(self, array: Array, chains: Sequence[Chain]) -> bool:
        """Return whether each round begins by setting the element that it accesses."""
        first = chains[-1].loops[0]
        dominates = self._nest.tree.dominates
        inner = [(block, instr) for instr, block in array.accesses.items() if block in first]
        for block, instr in inner:
            if instr.op not in SETS or self._nest.innermost(block) is not first:
                continue
            if dominates(block, first.latches[0]) and all(
                other is instr
                or (block is not there and dominates(block, there))
                or (block is there and block.instrs.index(instr) < block.instrs.index(other))
                for there, other in inner
            ):
                return self._always_run(chains)
        return False

    def _always_run(self, chains: Sequence[Chain]) -> bool:
        """Return whether each round of the first loops runs those within: no round after it reads what is older."""
        dominates = self._nest.tree.dominates
        return all(dominates(inner.loops[0].header, outer.loops[0].latches[0]) for outer, inner in pairwise(chains))


def inside(loop: Loop) -> Block:
    """Return the block of a loop to which its header branches."""
    branch = loop.header.terminator
    assert isinstance(branch, Branch)
    return branch.then if branch.then in loop else branch.orelse


def _alike(one: CountedLoop, other: CountedLoop, renamed: Mapping[Phi, Phi]) -> bool:
    """Return whether two loops count over the same numbers."""
    return (
        one.phi.type == other.phi.type
        and one.step == other.step
        and one.comparison is other.comparison
        and _same(one.start, other.start, renamed)
        and _same(one.bound, other.bound, renamed)
        and not (isinstance(one.bound, Instr) and one.bound.op is ops.checkpointed)
    )


def _length(operand: Operand) -> Operand:
    """Return the number that a length was made from, if it is that of an array that the function has made."""
    match operand:
        case Instr(op=ops.dim, args=(Instr(op=ops.record | ops.zeros, args=lengths), Const(int(axis)))):
            return lengths[axis]
    return operand


def _same(one: Operand, other: Operand, renamed: Mapping[Phi, Phi]) -> bool:
    """Return whether two numbers are computed alike, where some phis are the same."""
    one, other = (_length(renamed.get(each, each) if isinstance(each, Phi) else each) for each in (one, other))
    if one == other:
        return True
    if not isinstance(one, Instr) or not isinstance(other, Instr) or one.op != other.op or one.type != other.type:
        return False
    if effect(one) is not Effect.PURE or ops.of(one.op).role is Role.READ or len(one.args) != len(other.args):
        return False
    return all(_same(a, b, renamed) for a, b in zip(one.args, other.args, strict=True))
