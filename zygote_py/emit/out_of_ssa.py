"""Translation out of SSA form: values become variables, phis become copies on edges, and most copies are coalesced.

    b1:  %r1: f64 = phi b0: 1.0, b2: %r2        r = 1.0
         ...                                    while ...:
    b2:  %r2 = mul %r1, %x : f64                    r *= x

A phi and its operands are merged into one variable if their live ranges do not interfere (after Boissinot et al.,
"Revisiting Out-of-SSA Translation", 2009, but without comparing values: two values that are live together get two
variables even if they are equal). The copies of an edge are parallel: `sequence_copies` orders them, and uses a tuple
assignment for swaps.

`Undef` is never copied. A *slot*, a chain of phis that carries one value past merges, is always a single variable:
copying an unset one would raise UnboundLocalError in plain Python. Variables that may be unset but must be copied, or
saved in a record in any case, are set to zero once, before the branches that set them:

    b1:  branch %c, b2, b3                              t = 0.0
    b2:  %t = sin %x                                    if c:
    b3:  %t1 = phi b1: undef, b2: %t            ->          t = math.sin(x)
         push %records, %t1                             records.append(t)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

from zygote_py.emit.structure import Range
from zygote_py.ir import (
    Block,
    Const,
    Function,
    Instr,
    LoopNest,
    Operand,
    Param,
    Phi,
    Terminator,
    Undef,
    Value,
    grouped,
    liveness,
    ops,
    reach,
)
from zygote_py.ir.lazy_dataclass import dataclass

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Variable:
    """The values that share a variable of the emitted function, in textual order."""

    members: list[Value]
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """A copy `target = source` on an edge."""

    target: Variable
    source: Operand


@dataclass(slots=True, eq=False)
class Variables:
    """The variable of every value, the copies on edges, and the variables that are set to zero before each block."""

    of: dict[Value, Variable]
    copies: dict[tuple[Block, Block], list[Copy]] = field(default_factory=dict)
    zeros: dict[Block, list[Variable]] = field(default_factory=dict)
    unset: set[Operand] = field(default_factory=set)  # the phis that may be unset


def assign_variables(
    function: Function, nest: LoopNest, order: Mapping[Block, Sequence[Instr]], ranges: Mapping[Block, Range]
) -> Variables:
    """Assign a variable to every value; the phis of `ranges` are set by their `for` statements, not by copies."""
    counters = {found.phi for found in ranges.values()}
    webs = _Webs(function, order, ranges)
    phis = [phi for block in function.blocks for phi in block.phis if phi not in counters]
    depth = {phi: nest.depth(block) for block in function.blocks for phi in block.phis}
    for root, members in _slots(phis, counters).items():
        webs.join_slot(root if isinstance(root, Value) else None, members)
    for phi in sorted(phis, key=lambda phi: -depth[phi]):  # copies in inner loops cost most
        for _, operand in sorted(phi.incoming.items(), key=lambda item: -nest.depth(item[0])):
            if isinstance(operand, Value) and operand not in counters and operand.type == phi.type:
                webs.join(phi, operand)
    of = webs.variables()
    variables = Variables(of, unset=_may_be_unset(phis))
    read: list[Operand] = []  # where nothing may have been assigned
    for block in function.blocks:
        for phi in block.phis:
            if phi in counters:
                continue
            for pred, operand in phi.incoming.items():
                if isinstance(operand, Undef) or (isinstance(operand, Value) and of[operand] is of[phi]):
                    continue
                variables.copies.setdefault((pred, block), []).append(Copy(of[phi], operand))
                read.append(operand)
        for instr in block.instrs:
            if instr.op is ops.pack or ops.of(instr.op).role in ops.FILLS:
                read += instr.args
    found = (of[operand] for operand in read if operand in variables.unset and isinstance(operand, Value))
    home = {value: block for block in function.blocks for value in (*block.phis, *block.instrs)}
    for variable in dict.fromkeys(found):
        if not any(isinstance(member, Param) for member in variable.members):  # parameters are always set
            blocks = dict.fromkeys(home[member] for member in variable.members)
            merges = {home[member] for member in variable.members if isinstance(member, Phi)}
            variables.zeros.setdefault(_before(blocks, merges, nest), []).append(variable)
    return variables


def _before(blocks: Collection[Block], merges: Collection[Block], nest: LoopNest) -> Block:
    """Return the nearest block that dominates all `blocks`, and is neither one of the `merges` nor a loop's header."""
    refused = {*merges, *(loop.header for loop in nest.loops)}
    found = nest.tree.nearest(blocks)
    while found in refused and (above := nest.tree.idom[found]) is not None:
        found = above
    return found


def sequence_copies(
    copies: Sequence[tuple[T, Operand]], reads: Callable[[Operand], T | None]
) -> list[list[tuple[T, Operand]]]:
    """Order parallel copies so that none overwrites a variable that a later one reads; a cycle forms one group."""
    pending = [copy for copy in copies if reads(copy[1]) != copy[0]]
    groups: list[list[tuple[T, Operand]]] = []
    while pending:
        read = {reads(source) for _, source in pending}
        if free := [copy for copy in pending if copy[0] not in read]:
            groups += [[copy] for copy in free]
            pending = [copy for copy in pending if copy[0] in read]
            continue
        by_target = dict(pending)  # only cycles are left: every target is read by exactly one copy
        first = pending[0][0]
        cycle = [(first, by_target[first])]
        while (following := reads(cycle[-1][1])) != first:
            assert following is not None
            cycle.append((following, by_target[following]))
        groups.append(cycle)
        done = {target for target, _ in cycle}
        pending = [copy for copy in pending if copy[0] not in done]
    return groups


def _slots(phis: Iterable[Phi], counters: set[Phi]) -> dict[Value | Const, list[Phi]]:
    """Return the phis that can only hold a single value or be unset, grouped by that value."""
    carried: dict[Phi, Value | Const | None] = dict.fromkeys(phis)  # None: nothing found yet
    several: set[Phi] = set()
    users = _users(carried)
    work = list(carried)
    while work:
        phi = work.pop()
        if phi in several:
            continue
        found = carried[phi]
        for operand in phi.incoming.values():
            root: Operand | None = operand
            if isinstance(operand, Phi) and operand in carried:
                root = operand if operand in several else carried[operand]
            if root is None or isinstance(root, Undef) or root is phi:
                continue
            assert isinstance(root, Value | Const)
            if found is None:
                found = root
            elif found != root:
                several.add(phi)
        if phi in several or found != carried[phi]:
            carried[phi] = found
            # If a phi turns out not to be a slot of its value, the slots of its users change.
            work += _reset(phi, users, carried, several) if phi in several else users.get(phi, [])
    pairs = ((root, phi) for phi, root in carried.items() if phi not in several and root not in counters)
    slots = grouped((root, phi) for root, phi in pairs if root is not None)
    return {root: members for root, members in slots.items() if any(map(_has_undef, members))}


def _reset(
    phi: Phi, users: Mapping[Operand, Sequence[Phi]], carried: dict[Phi, Value | Const | None], several: set[Phi]
) -> list[Phi]:
    """Discard the conclusions drawn from the value that `phi` carried, and return the phis concerned."""
    reset = list(reach(users.get(phi, ()), lambda user: users.get(user, ()), stop=several))
    carried.update(dict.fromkeys(reset))
    return reset


def _has_undef(phi: Phi) -> bool:
    return any(isinstance(operand, Undef) for operand in phi.incoming.values())


def _may_be_unset(phis: Sequence[Phi]) -> set[Operand]:
    """Return the phis that may be unset."""
    users = _users(phis)
    starts: list[Operand] = [phi for phi in phis if _has_undef(phi)]
    return set(reach(starts, lambda phi: users.get(phi, ())))


def _users(phis: Iterable[Phi]) -> dict[Operand, list[Phi]]:
    """Return those of the phis that read each operand."""
    return grouped((operand, phi) for phi in phis for operand in phi.incoming.values())


class _Webs:
    """A union-find structure that merges values into variables. Sets of values are ints with one bit per value.

    `after[v]` contains the values other than `v` that are live immediately after the definition of `v`.
    """

    def __init__(
        self, function: Function, order: Mapping[Block, Sequence[Instr]], ranges: Mapping[Block, Range]
    ) -> None:
        self.values = list(function.values())
        self.order = order
        self.hints = [value.hint for value in self.values]
        self.number = {value: index for index, value in enumerate(self.values)}
        self.parent = list(range(len(self.values)))
        self.members = [1 << index for index in self.parent]
        self.after = [0] * len(self.values)
        self._live_after_definitions(function, ranges)

    def _live_after_definitions(self, function: Function, ranges: Mapping[Block, Range]) -> None:
        number = self.number
        removed = {instr for found in ranges.values() for instr in found.removed}
        leaving = live_out(function, number, ranges, removed)
        entry = 0
        for block in function.blocks:
            live = leaving[block] | _bits(block.terminator.args, number)
            for instr in reversed(self.order[block]):
                live &= ~(1 << number[instr])
                self.after[number[instr]] = live
                if instr not in removed:
                    live |= _bits(instr.args, number)
            together = live | _bits(block.phis, number)
            for phi in block.phis:
                self.after[number[phi]] = together & ~(1 << number[phi])
                if block in ranges:
                    # The copies on the edge into the loop precede the creation of the `range`.
                    found = ranges[block]
                    reads = {found.start, found.bound} - {phi.incoming[found.entering]}
                    self.after[number[phi]] |= _bits(reads, number)
            if block is function.entry:
                entry = live
        entry |= _bits(function.params, number)
        for param in function.params:
            self.after[number[param]] = entry & ~(1 << number[param])

    def find(self, index: int) -> int:
        while self.parent[index] != index:
            self.parent[index] = self.parent[self.parent[index]]
            index = self.parent[index]
        return index

    def join(self, a: Value, b: Value) -> None:
        """Merge the variables of `a` and `b`, unless they interfere or have different names in the source."""
        first, second = self.find(self.number[a]), self.find(self.number[b])
        if first == second or (self.hints[first] and self.hints[second] and self.hints[first] != self.hints[second]):
            return
        if self.after[first] & self.members[second] or self.after[second] & self.members[first]:
            return
        self._unite(first, second)

    def join_slot(self, root: Value | None, members: Sequence[Phi]) -> None:
        """Merge `root` with the phis that carry it, except those that are live where `root` is recomputed."""
        kept = set(members)
        if root is not None:
            kept = {
                phi
                for phi in members
                if phi.type == root.type and not self.after[self.number[root]] >> self.number[phi] & 1
            }
        # A phi that reads an excluded phi may hold an earlier value of `root`.
        stale: set[Phi] | None = None
        while stale is None or stale:
            stale = {
                phi
                for phi in kept
                if any(
                    isinstance(operand, Value) and operand is not root and operand not in kept
                    for operand in phi.incoming.values()
                )
            }
            kept -= stale
        indices = [self.number[phi] for phi in members if phi in kept] + ([] if root is None else [self.number[root]])
        for index in indices[1:]:
            self._unite(self.find(indices[0]), self.find(index))

    def _unite(self, first: int, second: int) -> None:
        if first == second:
            return
        first, second = min(first, second), max(first, second)
        self.parent[second] = first
        self.members[first] |= self.members[second]
        self.after[first] |= self.after[second]
        self.hints[first] = self.hints[first] or self.hints[second]

    def variables(self) -> dict[Value, Variable]:
        by_root: dict[int, Variable] = {}
        of: dict[Value, Variable] = {}
        for index, value in enumerate(self.values):
            variable = by_root.setdefault(self.find(index), Variable([]))
            variable.members.append(value)
            of[value] = variable
        return of


def _bits(operands: Iterable[Operand], number: Mapping[Value, int]) -> int:
    """Return the values among the operands, as bits numbered by `number`."""
    bits = 0
    for operand in operands:
        if isinstance(operand, Value):
            bits |= 1 << number[operand]
    return bits


def live_out(
    function: Function, number: Mapping[Value, int], ranges: Mapping[Block, Range], removed: Collection[Value]
) -> Mapping[Block, int]:
    """Return the values that are live at the end of every block, as bits numbered by `number`.

    A value is live there if it is used later, or by a phi on an edge from the block. The bounds of `ranges` are read
    only where their loops start.
    """
    starting = {(found.entering, header): (found.start, found.bound) for header, found in ranges.items()}

    def reads(node: Instr | Terminator) -> tuple[Operand, ...]:
        return () if node in removed else node.args

    return liveness(function, number=number, reads=reads, on_edge=starting).live_out
