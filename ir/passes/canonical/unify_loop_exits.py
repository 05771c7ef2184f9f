"""Establish one preheader, one latch and one exit per loop, with the exit in the header.

A `break`, and a `return` in a loop, becomes a flag: `go` is True if there is a further iteration. A loop with a simple
test in its header keeps it there. Before and after:

    b1:  %i: i64 = phi b0: 0, b3: %i2                     b1:  %go1: bool = phi b0: True, b4: %go2
         %c = lt %i, %n : bool                                 %i1: i64 = phi b0: 0, b4: %i2
         branch %c, b2, b5                                     %c = lt %i1, %n : bool
    b2:  %y = getitem %x, %i : f64                             %t = and_ %c, %go1 : bool
         %b = gt %y, 1.0 : bool                                branch %t, b2, b5
         branch %b, b4, b3                    ->          b2:  %y = getitem %x, %i1 : f64
    b3:  %i2 = add %i, 1 : i64                                 %b = gt %y, 1.0 : bool
         jump b1                                               branch %b, b4, b3
    b4:  jump b5                                          b3:  %i3 = add %i1, 1 : i64
    b5:  return %i                                             jump b4
                                                          b4:  %go2: bool = phi b2: False, b3: True
                                                               %i2: i64 = phi b2: %i1, b3: %i3
                                                               jump b1
                                                          b5:  return %i1

Any other loop gets a new header that contains only the flag: `branch %go, b1, b5`; so does a loop whose only exit is
that of its header, if the header does part of the work of an iteration, such as a loop with its test at the end. If
exits have different targets, the block after the loop determines which exit was taken: `go` identifies that of the
header, a number the others.

Exits to blocks that lead only to a `Raise` are unchanged, and so are loops without other exits.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import DominatorTree, Edge, Loop, dominator_tree, effect, loop_nest, returning_blocks
from zygote_py.ir.building.cfg import joined, order_blocks, rename_incoming
from zygote_py.ir.building.ssa import SSABuilder
from zygote_py.ir.core import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    Jump,
    Operand,
    Phi,
    Type,
    Undef,
    Value,
    predecessors,
    retarget,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.passes.canonical.edges import join_loop_edges
from zygote_py.ir.walks import map_operands

_FEW = 4  # numbers cheaper to compute twice than to carry a flag for
_EXACT = (types.Integer, types.Boolean)


def canonicalise_loops(function: Function) -> None:
    """Bring every loop of `function` into canonical form, inner loops first."""
    join_loop_edges(function)
    # Loops of one depth have no common blocks: one analysis of the function serves them all.
    for depth in range(max((loop.depth for loop in loop_nest(function).loops), default=0), 0, -1):
        _give_one_exit(function, depth)
    order_blocks(function)


def _give_one_exit(function: Function, depth: int) -> None:
    """Change the loops of one depth that have exits other than a single one in the header."""
    nest = loop_nest(function)
    loops = [loop for loop in nest.loops if loop.depth == depth and loop.exits]
    working = _working_headers(function, {loop.header for loop in loops})
    loops = [loop for loop in loops if [block for block, _ in loop.exits] != [loop.header] or loop.header in working]
    if not loops:
        return
    home: dict[Value, Block] = {value: block for block in nest.tree.order for value in block.values}
    around = {block: loop for loop in loops for block in loop.order}
    escaping: dict[Loop, dict[Value, None]] = {loop: {} for loop in loops}
    into_raising: set[Value] = set()
    returning = returning_blocks(function)

    def note(operand: Operand, location: Block) -> Operand:
        if isinstance(operand, Value) and operand in home:
            loop = around.get(home[operand])
            if loop is not None and location not in loop:
                if location in returning:
                    escaping[loop][operand] = None
                else:
                    into_raising.add(operand)
        return operand

    map_operands(function.blocks, note)
    carried: dict[Value, Operand] = {}
    for loop in loops:
        carried |= _OneExit(function, loop, nest.tree, home, escaping[loop], into_raising).make()
    returning = returning_blocks(function)

    def carry(operand: Operand, location: Block) -> Operand:
        if isinstance(operand, Value) and operand in carried and location in returning:
            return operand if location in around[home[operand]] else carried[operand]
        return operand

    map_operands(function.blocks, carry)
    if into_raising:
        _restore_dominance(function, into_raising, home)


def _working_headers(function: Function, headers: Collection[Block]) -> set[Block]:
    """Return the headers that do part of the work of an iteration, as in a loop with its test at the end.

    A header runs once more than the rest of the loop. Computations for the test alone may be repeated; effects, and
    more than a few numbers used elsewhere, may not.
    """
    home = {instr: block for block in headers for instr in block.instrs if not isinstance(instr.type, _EXACT)}
    wanted: set[Operand] = set()

    def note(operand: Operand, location: Block) -> Operand:
        if isinstance(operand, Instr) and home.get(operand, location) is not location:
            wanted.add(operand)
        return operand

    map_operands(function.blocks, note)
    found: set[Block] = set()
    for block in headers:
        numbers = 0
        for instr in reversed(block.instrs):
            if effect(instr) in (ops.Effect.WRITE, ops.Effect.ALLOCATE):
                found.add(block)
            if instr in wanted:
                numbers += 1
                wanted.update(instr.args)
        if numbers > _FEW:
            found.add(block)
    return found


def _restore_dominance(function: Function, values: Collection[Value], home: Mapping[Value, Block]) -> None:
    """Add phis for the uses of `values` that are reached through the one exit of a loop or directly from within."""
    tree = dominator_tree(function)
    ssa = SSABuilder(function)
    for block, preds in predecessors(function).items():
        ssa.seal(block, preds)
    for value in values:
        ssa.declare(value, value.type, value.hint)
        ssa.write(value, home[value], value)

    def reach(operand: Operand, location: Block) -> Operand:
        if not isinstance(operand, Value) or operand not in values or tree.dominates(home[operand], location):
            return operand
        return ssa.read(operand, location)

    map_operands(function.blocks, reach)
    ssa.finish()


@dataclass(eq=False)
class _Carried:
    """A result that the exits pass to the code after the loop: a value, or a phi there with different operands."""

    type: Type
    hint: str
    at: dict[Block, Operand]  # at the exits that have it
    value: Value | None = None
    phis: list[tuple[Phi, Block]] = field(default_factory=list)  # phis that will receive the result, each with its edge
    result: Operand | None = None


class _OneExit:
    """The change of one loop, which has a preheader and a latch already."""

    def __init__(
        self,
        function: Function,
        loop: Loop,
        tree: DominatorTree,
        home: Mapping[Value, Block],
        escaping: Iterable[Value],
        into_raising: Iterable[Value],
    ) -> None:
        self.function = function
        self.loop = loop
        self.tree = tree
        self.home = home
        self.preheader = loop.entering[0]
        self.latch = loop.latches[0]
        self.again = self.new_block(inside=True)  # the new latch
        self.after = self.new_block()
        self.test = _kept_test(loop)
        self.header = loop.header if self.test is not None else self.new_header()
        self.escaping = dict.fromkeys(escaping)
        self.carried: dict[Value, _Carried] = {}
        self.others: list[_Carried] = []
        # Values of the header that are used after the loop.
        self.needed = {value for value in into_raising if self.is_at_hand(value)}

    def make(self) -> dict[Value, Operand]:
        """Change the loop; return the replacements of its values after it."""
        loop, again = self.loop, self.again
        header_exit = next(edge for edge in loop.exits if edge[0] is loop.header) if self.test is not None else None
        breaks = [edge for edge in loop.exits if edge is not header_exit]
        targets = list(dict.fromkeys(target for _, target in breaks))
        arrivals = [self.after if header_exit is None else self.new_block()]
        arrivals += [self.new_block() for _ in targets[2:]]
        arms = [self.new_block() for _ in targets] if len(targets) > 1 else arrivals
        retarget(self.latch, loop.header, again)
        again.terminator = Jump(self.header)
        ends = {edge: self.leave(edge) for edge in breaks}
        self.collect(breaks, ends, dict(zip(targets, arms, strict=True)))
        own = list(self.header.phis)
        self.choose_phis(own, header_exit)
        self.fill_phis(own, ends)

        go = self.flag({self.latch: True} | dict.fromkeys(ends.values(), False), types.boolean, "go", True)
        if len(targets) > 1:
            numbers = {end: targets.index(target) for (_, target), end in ends.items()}
            self.dispatch(self.flag(numbers, types.int64, "exit", None), arrivals, arms)
        for arm, target in zip(arms, targets, strict=True):
            arm.terminator = Jump(target)
        self.set_header(go, header_exit, arrivals[0])
        for carried in (*self.carried.values(), *self.others):
            assert carried.result is not None
            for phi, arm in carried.phis:
                phi.incoming[arm] = carried.result
        return {value: carried.result for value, carried in self.carried.items() if carried.result is not None}

    def new_block(self, inside: bool = False) -> Block:
        block = Block(loc=None)
        self.function.blocks.append(block)
        if inside:
            self.loop.blocks.add(block)
        return block

    def new_header(self) -> Block:
        old = self.loop.header
        new = self.new_block(inside=True)
        new.loc = old.loc
        new.phis, old.phis = old.phis, []
        retarget(self.preheader, old, new)
        return new

    def leave(self, edge: Edge) -> Block:
        """Redirect an exit to the new latch, through a block on the edge, in which exits of outer loops continue."""
        end = self.new_block(inside=True)
        end.terminator = Jump(self.again)
        retarget(*edge, end)
        return end

    def collect(self, breaks: list[Edge], ends: Mapping[Edge, Block], arms: Mapping[Block, Block]) -> None:
        """Collect the values the exits must pass on: values used after the loop, and operands of phis there."""
        for value in self.escaping:
            self.carry(value, breaks, ends)
        for target, arm in arms.items():
            edges = [edge for edge in breaks if edge[1] is target]
            for phi in target.phis:
                arriving = {ends[edge]: phi.incoming.pop(edge[0]) for edge in edges}
                first = next(iter(arriving.values()))
                if any(operand != first for operand in arriving.values()):
                    self.others.append(_Carried(phi.type, phi.hint, arriving, phis=[(phi, arm)]))
                elif (
                    not isinstance(first, Value)
                    or self.home.get(first) not in self.loop.blocks
                    or (carried := self.carry(first, breaks, ends)) is None
                ):
                    phi.incoming[arm] = first
                else:
                    carried.phis.append((phi, arm))

    def carry(self, value: Value, breaks: list[Edge], ends: Mapping[Edge, Block]) -> _Carried | None:
        """Pass on a value of the loop, unless the header defines it, so that it is available after the loop anyway."""
        if self.is_at_hand(value):
            self.needed.add(value)
            return None
        if value not in self.carried:
            at = {ends[edge]: value for edge in breaks if self.tree.dominates(self.home[value], edge[0])}
            self.carried[value] = _Carried(value.type, value.hint, dict(at), value)
        return self.carried[value]

    def is_at_hand(self, value: Value) -> bool:
        """Return whether the header defines a value, so that it is available after the loop."""
        return value in self.header.phis or self.home[value] is self.header

    def choose_phis(self, own: list[Phi], header_exit: Edge | None) -> None:
        """Reuse phis of the header that are not used after the loop for passing results on, where they fit."""
        free = [phi for phi in own if phi not in self.needed]
        self.tested: set[Operand] = set()
        if self.test is not None:
            # The header runs once more: its values must be computable then, and unchanged where they are used.
            self.tested = {operand for instr in self.header.instrs for operand in instr.args}
            if any(instr in self.needed for instr in self.header.instrs):
                free = [phi for phi in free if phi not in self.tested]
        for carried in (*self.carried.values(), *self.others):
            fitness = [self.fitness(phi, carried, header_exit) for phi in free]
            if max(fitness, default=0) > 0:
                carried.result = free.pop(fitness.index(max(fitness)))

    def fitness(self, phi: Phi, carried: _Carried, header_exit: Edge | None) -> int:
        """Return how well a phi of the header can carry a result; 0: not at all."""
        if phi.type != carried.type:
            return 0
        if header_exit is not None and any(
            after.incoming.get(header_exit[0]) is phi for after, _ in carried.phis if after in header_exit[1].phis
        ):
            return 4  # the header's exit passes on this phi
        if carried.value is not None and phi.incoming[self.latch] is carried.value:
            return 3
        if phi.hint and phi.hint == carried.hint:
            return 2
        return int(any(operand in (phi, phi.incoming[self.latch]) for operand in carried.at.values()))

    def fill_phis(self, own: list[Phi], ends: Mapping[Edge, Block]) -> None:
        """Set the operands of the header's phis for the new latch, and add the missing phis."""
        taken = {carried.result: carried for carried in (*self.carried.values(), *self.others)}
        for phi in own:
            following = phi.incoming.pop(self.latch)
            kept: Operand | None = phi if phi in self.needed or phi in self.tested else None
            at = taken[phi].at if phi in taken else {}
            incoming = {self.latch: following} | {
                end: at.get(end) or kept or self.anything(following, block) for (block, _), end in ends.items()
            }
            phi.incoming[self.again] = joined(self.again, incoming, phi.type, phi.hint)
        for carried in (*self.carried.values(), *self.others):
            if carried.result is None:
                undef = Undef(carried.type)
                incoming = {self.latch: undef if carried.value is None else self.anything(carried.value, self.latch)}
                incoming |= {end: carried.at.get(end, undef) for end in ends.values()}
                carried.result = phi = Phi(carried.type, carried.hint)
                phi.incoming = {
                    self.preheader: undef,
                    self.again: joined(self.again, incoming, carried.type, carried.hint),
                }
                self.header.phis.append(phi)

    def anything(self, operand: Operand, block: Block) -> Operand:
        """Return the operand if it is available, where any value is allowed; this may save a phi."""
        home = self.home.get(operand) if isinstance(operand, Value) else None
        if home is None or home not in self.loop.blocks or self.tree.dominates(home, block):
            return operand
        return Undef(operand.type)

    def flag(self, values: Mapping[Block, object], type: Type, hint: str, start: object) -> Phi:
        """Add a phi to the header for a constant that depends on the path to the new latch."""
        incoming: dict[Block, Operand] = {self.latch: Undef(type)}
        incoming |= {block: Const(value, type) for block, value in values.items()}
        phi = Phi(type, hint)
        phi.incoming = {
            self.preheader: Undef(type) if start is None else Const(start, type),
            self.again: joined(self.again, incoming, type, hint),
        }
        self.header.phis.append(phi)
        return phi

    def set_header(self, go: Phi, header_exit: Edge | None, broken: Block) -> None:
        """Set the header's branch; after it, distinguish its own exit from the others."""
        header = self.header
        if header_exit is None or self.test is None:
            header.terminator = Branch(go, self.loop.header, self.after)
            return
        branch = header.terminator
        assert isinstance(branch, Branch)
        target = header_exit[1]
        body = branch.orelse if branch.then is target else branch.then
        test = self.test
        if branch.then is target:
            order = ops.of(test.op).comparison
            assert order is not None
            test = Instr(order.negated.op, test.args, test.type, test.hint, test.loc)
            header.instrs.append(test)
        both = Instr(operator.and_, (test, go), types.boolean)
        header.instrs.append(both)
        header.terminator = Branch(both, body, self.after)
        done = self.new_block()
        done.terminator = Jump(target)
        rename_incoming(target, header, done)
        self.after.terminator = Branch(go, done, broken)

    def dispatch(self, which: Phi, arrivals: list[Block], arms: list[Block]) -> None:
        """Branch to the arm with the number `which`."""
        for number, arrival in enumerate(arrivals):
            test = Instr(operator.eq, (which, Const(number, types.int64)), types.boolean)
            arrival.instrs.append(test)
            rest = arrivals[number + 1] if number + 1 < len(arrivals) else arms[-1]
            arrival.terminator = Branch(test, arms[number], rest)


def _kept_test(loop: Loop) -> Instr | None:
    """Return the condition of the header, if it is an exit and everything the header does may be repeated."""
    branch = loop.header.terminator
    if not isinstance(branch, Branch) or not isinstance(branch.condition, Instr):
        return None
    if all(block is not loop.header for block, _ in loop.exits) or (branch.then in loop) == (branch.orelse in loop):
        return None
    if any(
        effect(instr) is not ops.Effect.PURE or ops.of(instr.op).may_raise or not isinstance(instr.type, _EXACT)
        for instr in loop.header.instrs
    ):
        return None
    test = branch.condition
    integers = all(isinstance(operand.type, types.Integer) for operand in test.args)
    return test if test in loop.header.instrs and ops.of(test.op).comparison and integers else None
