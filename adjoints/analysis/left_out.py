"""Analysis of values that may be left out: their adjoint may be 0 because a selection chose a different value.

    l = np.log(x)                           %l is left out if x is not positive: its adjoint is 0 then, whatever the
    return l if x > 0 else 0.0              derivative of the logarithm, inf at x = 0
    e = err * err                           an element of %e is left out if it is NaN, and so is the product
    for i in range(n):
        if not np.isnan(e[i]): ...

A value is *kept* if on every path from its definition it is used by a kept value, starting from the result. A selection
(`np.where`, `max`, `np.clip`) keeps none of its operands. A value stored in memory is kept if on every path a kept read
sees it before it is overwritten; a read sees it if it covers the same elements, but not if its index was read from
memory (`a[mask]`, `np.max`). A loop is not a selection: uses in its body count, though it may run zero times. But what
an iteration hands on is left out if the next one may replace it without using it. The operands of a value that may be
left out may be left out, too.

For the elements of memory this cannot always be decided. Hence there are three degrees: `KEPT`; `UNCERTAIN`, where
reads may not cover all elements (`for i in range(1, n)`); `LEFT_OUT`.

It is a backward dataflow problem with two sets at each point: the definitions that are kept from there on, and those
that are lost, because they are overwritten first. The first event on a path decides; at a branch, all successors must
keep the definition; at the header of a loop the body decides, or the exit if the body has no such event. Each round of
sweeps finds more kept definitions, up to the least fixpoint. Routines have summaries of the parameters that they keep
(`Summaries`).
"""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Collection, Iterator, Mapping

from numba import types

from zygote_py.adjoints.analysis.activity import Activity, find_active
from zygote_py.adjoints.analysis.flows import through
from zygote_py.adjoints.analysis.kinds import can_have_adjoint, is_number
from zygote_py.adjoints.analysis.visibility import Definition, Read, Visibility
from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.adjoints.rules import rule_for
from zygote_py.adjoints.rules.formulas.opaque import opaque_for
from zygote_py.adjoints.rules.formulas.terms import leaves_out
from zygote_py.ir import (
    Accesses,
    Block,
    Branch,
    Function,
    Instr,
    Loop,
    Memory,
    Operand,
    Param,
    Phi,
    Return,
    Routine,
    Value,
    grouped,
    has_memory,
    is_view,
    loop_nest,
    ops,
    postdominator_tree,
    reverse_postorder,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Role

_EVENTS = 16  # that are passed over together where they touch nothing that has changed
_REPLACE = (Role.STORE, Role.APPEND)  # what was there before


class Degree(enum.IntEnum):
    """The possibility that a value is left out."""

    KEPT = 0
    UNCERTAIN = 1
    LEFT_OUT = 2


Degrees = Mapping[Value, Degree]


class Summaries:
    """The parameters of routines that are kept if the results are, cached."""

    def __init__(self) -> None:
        self._found: dict[Routine, tuple[Degree, ...]] = {}

    def of(self, routine: Routine) -> tuple[Degree, ...]:
        """Return the degree of each parameter; for a recursive routine, the least fixpoint."""
        if routine not in self._found:
            self._found[routine] = (Degree.KEPT,) * len(routine.function.params)
            while not routine.is_custom:
                found = tuple(map(max, self._parameters(routine), self._found[routine]))
                if found == self._found[routine]:
                    break
                self._found[routine] = found
        return self._found[routine]

    def _parameters(self, routine: Routine) -> tuple[Degree, ...]:
        function = routine.function
        wrt = [param for param in function.params if can_have_adjoint(param.type)]
        written = [function.params[number] for number in sorted(routine.writes)]
        try:
            activity = find_active(function, wrt, results=written)
        except DifferentiationError:  # of parameters that may not have been requested
            return (Degree.UNCERTAIN,) * len(function.params)
        found = find_left_out(function, activity, self, written=written)
        return tuple(found.get(param, Degree.KEPT) for param in function.params)


def find_left_out(
    function: Function,
    activity: Activity,
    summaries: Summaries,
    degree: Degree = Degree.KEPT,
    written: Collection[Param] = (),
) -> Degrees:
    """Return the values of a function in canonical form that may be left out, if its results are so to a degree.

    `written` are parameters whose final contents are results.
    """
    problem = _Problem(function, activity, summaries, written)
    found = dict.fromkeys(problem.bits, Degree.LEFT_OUT)
    if degree < Degree.LEFT_OUT:
        found |= dict.fromkeys(problem.kept(Degree.LEFT_OUT), Degree.UNCERTAIN)
    if degree < Degree.UNCERTAIN:
        for value in problem.kept(Degree.UNCERTAIN):
            del found[value]
    return found


@dataclass(eq=False, slots=True)
class _Event:
    """An event at one point: if one of the `results` is kept, so are the values it `uses`.

    `defines` are the results that do not exist before it; a store has none. `replaces` are the definitions of memory
    that it overwrites. An event `elsewhere` counts here, though it may not occur in all iterations.
    """

    results: int
    uses: int
    defines: int = 0
    replaces: int = 0
    elsewhere: bool = False
    touched: int = 0  # all of these

    def __post_init__(self) -> None:
        self.touched = self.results | self.uses | self.defines | self.replaces


_Events = tuple[int, list[_Event]]  # that follow each other, after what they touch


def _in_groups(events: list[_Event]) -> list[_Events]:
    groups = (events[at : at + _EVENTS] for at in range(0, len(events), _EVENTS))
    return [(functools.reduce(operator.or_, (each.touched for each in group)), group) for group in groups]


class _Problem:
    """The dataflow problem of one function. A definition is a bit: a number, or a value put into memory."""

    def __init__(
        self, function: Function, activity: Activity, summaries: Summaries, written: Collection[Param]
    ) -> None:
        self._function = function
        self._activity = activity
        self._summaries = summaries
        self._written = tuple(written)
        self._nest = loop_nest(function)
        self._accesses = Accesses(function, self._nest)
        self._postdominators = postdominator_tree(function)
        self._order = [block for block in reversed(reverse_postorder(function)) if block in self._postdominators]
        self._home: dict[Value, Block] = {
            value: block for block in function.blocks for value in (*block.phis, *block.instrs)
        }
        self._headers: dict[Block, Loop] = {loop.header: loop for loop in self._nest.loops}
        self._branches: dict[Block, list[tuple[Block, frozenset[Loop]]]] = {}
        self.bits: dict[Value, int] = {}
        for value in (*function.params, *(v for block in self._order for v in (*block.phis, *block.instrs))):
            if self._is_definition(value):
                self.bits[value] = 1 << len(self.bits)
        self._visibility = Visibility(Memory(function), self._accesses, self._nest)
        self._find_accesses()

    def _is_definition(self, value: Value) -> bool:
        match value:
            case Instr(op=op) if ops.of(op).role in ops.FILLS:
                return value.args[0] in self._activity
            case Instr(op=Routine()):
                return any(arg in self._activity for arg in value.args)
            case Instr(op=op) if op is ops.pack or ops.of(op).contents or is_view(value):
                return False
            case Phi():
                return value in self._activity and is_number(value.type)
            case _:
                return value in self._activity

    # ------------------------------------------------------------------------------------------------------ memory

    def _find_accesses(self) -> None:
        """Record the definitions and reads of memory."""
        function, entry = self._function, self._function.entry
        for param in function.params:
            if param in self.bits:
                self._define(param, param, entry)
        for block in self._order:
            for instr in block.instrs:
                if instr in self.bits:
                    self._find_access(instr, block)
            if isinstance(block.terminator, Return):
                for operand in self._results(block.terminator):
                    if has_memory(operand.type):
                        self._visibility.reads(Read(block.terminator, operand, None, whole=True))

    def _find_access(self, instr: Instr, block: Block) -> None:
        op, args = instr.op, instr.args
        role = ops.of(op).role
        if role is Role.STORE:
            access = self._accesses.of(args[0], args[2:], block) if len(args) > 2 else None
            self._visibility.defines(
                Definition(instr, args[0], block, access, args[2:], replaces=op is not ops.accumulate)
            )
        elif role is Role.APPEND:
            self._visibility.defines(Definition(instr, args[0], block, None))
        elif role in (Role.READ, Role.POP) and is_number(instr.type):
            if _is_read(args[0]):
                self._visibility.reads(Read(instr, args[0], self._accesses.of(args[0], args[1:], block)))
        else:
            degrees = self._summaries.of(op) if isinstance(op, Routine) else ()
            for number, arg in enumerate(args):
                if arg in self._activity and _is_read(arg):
                    if isinstance(op, Routine) and number in op.writes:
                        self._visibility.defines(Definition(instr, arg, block, None))
                    access = self._accesses.of(arg, (), block)
                    degree = degrees[number] if degrees else 0
                    self._visibility.reads(Read(instr, arg, access, degree, whole=access is None))
            if _is_read(instr):
                self._define(instr, instr, block)

    def _define(self, value: Value, array: Value, block: Block) -> None:
        if _is_read(array):
            self._visibility.defines(Definition(value, array, block, self._accesses.of(array, (), block)))

    # ------------------------------------------------------------------------------------------------------ events

    def _events(self, below: Degree) -> dict[Block, list[_Event]]:
        """Return the events of each block, last event first."""
        lenient = below is Degree.LEFT_OUT
        seen = {reader: self._bits_of(values) for reader, values in self._visibility.seen(below, lenient).items()}
        found: dict[Block, list[_Event]] = {block: [] for block in self._order}
        elsewhere: dict[Block, list[_Event]] = {}
        for block in self._order:
            if isinstance(block.terminator, Return):
                uses = seen.get(block.terminator, 0)
                for operand in self._results(block.terminator):
                    uses |= self.bits.get(operand, 0)
                found[block].append(_Event(0, uses))
            for instr in reversed(block.instrs):
                bit = self.bits.get(instr, 0)
                if not bit:
                    continue
                used = list(self._used(instr, below))
                uses = self._bits_of(used) | seen.get(instr, 0)
                is_store = ops.of(instr.op).role in ops.FILLS
                replaced = self._visibility.replaced(instr, lenient) if ops.of(instr.op).role in _REPLACE else ()
                found[block].append(_Event(bit, uses, 0 if is_store else bit, self._bits_of(replaced)))
                for above, loops in self._deciding(block) if uses else ():
                    outside = uses & self._outside(loops)
                    if not lenient and self._selects(instr, block) & loops:
                        outside &= ~seen.get(instr, 0)  # each iteration reads different elements
                    if outside:
                        elsewhere.setdefault(above, []).append(_Event(bit, outside, elsewhere=True))
        for block, events in elsewhere.items():
            found[block][:0] = events
        return found

    def _used(self, instr: Instr, below: Degree) -> Iterator[Value]:
        """Yield the numbers to which an instruction always propagates its adjoint."""
        op, args = instr.op, instr.args
        role = ops.of(op).role
        keeps: list[Operand]
        if role in (Role.CHOOSE, Role.GUARD, Role.EXTREME):
            keeps = []
        elif role in ops.FILLS:
            keeps = [args[1]]
        elif isinstance(op, Routine):
            degrees = self._summaries.of(op)
            keeps = [args[number] for number in through(instr) if degrees[number] < below]
        elif op is ops.getitem or opaque_for(instr) is not None or (rule := rule_for(instr)) is None:
            keeps = list(args)
        else:
            texts = zip(args, rule.adjoints, strict=True)
            keeps = [arg for arg, text in texts if text is not None and not leaves_out(text)]
        for operand in keeps:
            if isinstance(operand, Value) and operand in self.bits and not _is_read(operand):
                yield operand

    def _deciding(self, block: Block) -> list[tuple[Block, frozenset[Loop]]]:
        """Return the branches that decide by counters alone whether a block is reached, with the loops that count."""
        if block in self._branches:
            return self._branches[block]
        found: list[tuple[Block, frozenset[Loop]]] = []
        self._branches[block] = found
        target, above = block, self._nest.tree.idom[block]
        while above is not None:
            branch, loop = above.terminator, self._headers.get(above)
            if isinstance(branch, Branch) and not self._postdominators.dominates(target, above):
                if loop is None or target not in loop:
                    origin = self._accesses.origin(branch.condition, above)
                    bounds = {how.bound for each in origin.loops if (how := self._accesses.counts(each)) is not None}
                    if origin.found or not origin.loops or not origin.params <= bounds:
                        break
                    found.append((above, origin.loops))
                target = above
            above = self._nest.tree.idom[above]
        return found

    def _selects(self, read: Instr, block: Block) -> frozenset[Loop]:
        """Return the loops whose counters select the elements of a read, directly or through views."""
        found: frozenset[Loop] = frozenset()
        array: Operand = read
        while isinstance(array, Instr) and array.args and (array is read or is_view(array)):
            for index in array.args[1:]:
                if isinstance(index.type, types.Integer):
                    found |= self._accesses.origin(index, self._home.get(array, block)).loops
            array = array.args[0]
        return found

    def _outside(self, loops: Collection[Loop]) -> int:
        """Return the values defined outside of one of these loops, which several iterations may use."""
        return self._bits_of(
            value for value in self.bits if any(self._home.get(value) not in loop.blocks for loop in loops)
        )

    def _results(self, end: Return) -> Iterator[Value]:
        pending: list[Operand] = [*end.args, *self._written]
        while pending:
            operand = pending.pop()
            if isinstance(operand, Instr) and operand.op is ops.pack:
                pending += operand.args
            elif isinstance(operand, Value):
                yield operand

    def _bits_of(self, values: Iterator[Value] | Collection[Value]) -> int:
        found = 0
        for value in values:
            found |= self.bits.get(value, 0)
        return found

    # ---------------------------------------------------------------------------------------------------- solution

    def kept(self, below: Degree) -> list[Value]:
        """Return the definitions that are left out to a degree below `below`."""
        edges = self._edges()
        events = {block: _in_groups(each) for block, each in self._events(below).items()}
        found, supposed = self._least(events, edges, -1), -1
        while found != supposed:
            found, supposed = self._least(events, edges, found), found
        return [value for value, bit in self.bits.items() if found & bit]

    def _least(
        self, events: Mapping[Block, list[_Events]], edges: Mapping[Block, list[tuple[int, int]]], supposed: int
    ) -> int:
        """Return the least set of kept definitions, given which to suppose in a loop that hands on a variable."""
        found, before = 0, -1
        while found != before:
            before = found
            found = self._round(events, edges, found, supposed)
        return found

    def _round(
        self,
        events: Mapping[Block, list[_Events]],
        edges: Mapping[Block, list[tuple[int, int]]],
        found: int,
        supposed: int,
    ) -> int:
        """Extend the set of kept definitions. Each round starts afresh, since fewer are lost if more are kept.

        An iteration that does not use a variable of its loop loses it. Uses by definitions that are `supposed` to be
        kept count: a sum is kept if the sum of the next iteration is.
        """
        kept_at: dict[Block, int] = {}
        lost_at = {block: self._bits_of(block.phis) for block in self._headers}
        handed_on = functools.reduce(operator.or_, lost_at.values(), 0)
        seen: dict[Block, tuple[int, int, int]] = {}  # what the last sweep has begun a block with
        using: set[_Event] = set()  # those of the last sweep whose uses counted
        changed = True
        while changed:
            changed = False
            for block in self._order:
                begun = (*self._at_end(block, kept_at, lost_at), found)
                if block not in seen:
                    other = -1
                elif not (other := functools.reduce(operator.or_, map(operator.xor, begun, seen[block]))):
                    continue
                seen[block] = begun
                kept, lost, _ = begun
                # Of definitions that are not in `other`, all is as in the last sweep, and is not found out again.
                for phi, operand in edges.get(block, ()):
                    if found & phi:
                        kept, lost, other = kept | operand, lost & ~operand, other | operand
                    elif supposed & phi:
                        lost, other = lost & ~(operand & handed_on), other | (operand & handed_on)
                for touched, group in events[block]:
                    for event in group if touched & other else ():
                        if not event.touched & other:
                            continue
                        if kept & event.results & other and not event.elsewhere:
                            found, other = found | event.results, other | event.results
                        kept &= ~(event.defines | event.replaces)
                        lost |= event.replaces
                        if not event.results or found & event.results:
                            kept, lost = kept | event.uses, lost & ~event.uses
                            other = other & ~event.uses if event in using else other | event.uses
                            using.add(event)
                        elif supposed & event.results:
                            lost, other = lost & ~(event.uses & handed_on), other | (event.uses & handed_on)
                for phi_value in block.phis:
                    bit = self.bits.get(phi_value, 0)
                    found |= kept & bit & other
                    kept, lost = kept & ~bit, lost | (bit & handed_on)
                kept = (kept & other) | (kept_at.get(block, 0) & ~other)
                lost = (lost & other) | (lost_at.get(block, 0) & ~other)
                if kept_at.get(block) != kept or lost_at.get(block) != lost:
                    kept_at[block], lost_at[block] = kept, lost
                    changed = True
        return found | (kept_at.get(self._function.entry, 0) & self._bits_of(self._function.params))

    def _edges(self) -> dict[Block, list[tuple[int, int]]]:
        """Return the phis that have an operand from a block, with that operand."""
        phis = (phi for block in self._order for phi in block.phis if phi in self.bits)
        return grouped(
            (pred, (self.bits[phi], self.bits[operand]))
            for phi in phis
            for pred, operand in phi.incoming.items()
            if isinstance(operand, Value) and operand in self.bits
        )

    def _at_end(self, block: Block, kept_at: Mapping[Block, int], lost_at: Mapping[Block, int]) -> tuple[int, int]:
        """Return the kept and the lost definitions at the end of a block."""
        after = [(kept_at.get(b, 0), lost_at.get(b, 0), b) for b in block.successors if b in self._postdominators]
        if not after:
            return 0, 0
        loop = self._headers.get(block)
        if loop is not None and len(after) == 2 and (after[0][2] in loop) != (after[1][2] in loop):
            after.sort(key=lambda each: each[2] not in loop)
            (kept, lost, _), (later, gone, _) = after
            return kept | (later & ~lost), lost | (gone & ~kept)
        kept, lost, _ = after[0]
        for later, gone, _ in after[1:]:
            kept, lost = kept & later, lost | gone
        return kept & ~lost, lost


def _is_read(operand: Operand) -> bool:
    """Return whether a value represents memory that is read: an array or a list, not a tuple of them."""
    return has_memory(operand.type) and not isinstance(operand.type, types.BaseTuple)
