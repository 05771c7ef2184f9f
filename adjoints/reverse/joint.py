"""The joint function: the forward sweep with its records, followed by the reverse sweep.

    joint pow(%x: f64, %n: i64) -> f64
    b0:  %r_record = record %n
    b1:  ...                                    the primal; each iteration does setitem %r_record, %r1, %i
    b3:  jump b4
    b4:  %k0 = sub %n, 1                        the adjoint; a reversed loop counts down
    b5:  %k = phi b4: %k0, b6: %k1
         %t = ge %k, 0
         branch %t, b6, b7
    b6:  %r = getitem %r_record, %k             in place of @r1 in the adjoint

Loops whose iterations can be reversed immediately are fused (see `fused_reverse.py`): their values are available
then. The two original functions are not changed. Not done here: simplification (`ir.passes.CLEAN_UP`).
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.reverse.fused.fused_reverse import Given, ImmediateLoops, without
from zygote_py.adjoints.reverse.split import Halves, split
from zygote_py.adjoints.reverse.stored.alphas import Alphas, Sweeps
from zygote_py.adjoints.reverse.stored.forward_values import ForwardValues
from zygote_py.adjoints.reverse.stored.late_shadows import LateShadow, LateShadows
from zygote_py.adjoints.reverse.stored.notes import note, rounds_of
from zygote_py.adjoints.reverse.stored.plan import Plan
from zygote_py.adjoints.reverse.stored.reversed_loops import reversed_loops
from zygote_py.adjoints.reverse.stored.rewinding import Rewinding, Write
from zygote_py.adjoints.reverse.stored.trip_counts import INDEX, Trip, trip_of
from zygote_py.ir import (
    NONE,
    Alpha,
    Block,
    Branch,
    CameFrom,
    Clone,
    Const,
    Function,
    Instr,
    InternalError,
    Jump,
    Loop,
    Memory,
    Operand,
    Param,
    Phi,
    Return,
    SSABuilder,
    Undef,
    Value,
    at_exit,
    check_after,
    clone,
    definitions,
    dominator_tree,
    grouped,
    is_left_out,
    loop_nest,
    map_operands,
    nothing,
    ops,
    predecessors,
    replace_uses,
    reverse_postorder,
    writes,
)


def join(
    adjoint: Function,
    shadows: Mapping[Value, Value],
    wrt: Collection[int],
    *,
    unwrap_single: bool,
    with_value: bool,
    seeded: bool = False,
) -> Function:
    """Make the joint function of an adjoint and its primal.

    It returns the gradients of the parameters numbered in `wrt`: a single one if `unwrap_single`, else a tuple;
    preceded by the value if `with_value`; and, as further values, the primal's aux outputs. The adjoint of the result
    is 1, or, if `seeded`, a further argument, as are those of the other results.
    """
    made = _Join(adjoint, shadows)
    value, _ = made.build()
    made.give(value, list(wrt), unwrap_single, with_value, seeded)
    check_after("join", made.joint)
    return made.joint


def join_halves(adjoint: Function, shadows: Mapping[Value, Value], wrt: Collection[int]) -> tuple[Halves, Operand]:
    """Return the two halves of the joint function of an adjoint and its primal, and the result of the primal.

    The reverse half returns the adjoints of the parameters numbered in `wrt`, individually.
    """
    made = _Join(adjoint, shadows, together=False)
    value, last = made.build()
    _, end = made.reverse.function.exit()
    end.args = tuple(end.args[number] for number in wrt)
    made.ssa.finish()
    reverse = made.reverse.function
    return split(made.joint, last, reverse.entry, reverse.params, made.mirrored), value


def join_kernel(adjoint: Function, shadows: Mapping[Value, Value], covering: Mapping[Instr, Value]) -> Function:
    """Make the joint function of the threads of a device, which add to shadows that they are given; it returns nothing.

    Other threads see the memory that is given, so that the reverse sweep rewinds none of it. `covering` are stores by
    which the threads of a block, each by its own, set all elements of an array.
    """
    made = _Join(adjoint, shadows, covering=covering)
    made.build()
    for _, end in made.reverse.function.returns():
        end.args = (NONE,)
    made.ssa.finish()
    check_after("join", made.joint)
    return made.joint


class _Join:
    def __init__(
        self,
        adjoint: Function,
        shadows: Mapping[Value, Value],
        together: bool = True,
        covering: Mapping[Instr, Value] | None = None,
    ) -> None:
        if adjoint.primal is None:
            raise InternalError("joint: an adjoint without its primal")
        primal = adjoint.primal
        self.together = together  # so that loops may be reversed during the forward sweep
        self.covering = covering  # of the threads of a device; None for a function
        self.shadows = shadows
        self.forward: Clone = clone(primal)
        self.reverse: Clone = clone(adjoint)
        self.values = ForwardValues(self.forward, self.reverse.function)
        self.lifted = self.values.lifted
        self.mirrored = {
            block: self.forward.blocks[block.mirror] for block in self.reverse.function.blocks if block.mirror
        }
        self.reverse_tree = dominator_tree(self.reverse.function)
        self.joint = Function(primal.name, self.forward.function.params, [], "joint", None, primal.loc, primal.options)

    def build(self) -> tuple[Operand, Block]:
        """Make the joint function without its return; return the primal's result and the last block of its sweep."""
        forward, reverse = self.forward.function, self.reverse.function
        self.values.let_stored_be_read()
        self.values.lift()
        self.nest = loop_nest(forward)
        rounds = rounds_of(forward, self.nest.loops)
        # No other thread writes later.
        self.memory = Memory(forward, barriers=False, nest=self.nest)
        self.values.keep_overwritten(self.memory)
        immediate = self._find_immediate()
        questions = self._questions()
        asked_loops = {
            self.nest.innermost(self.forward.blocks[question.block])
            for question in questions.values()
            if self._is_latch(question)
        }
        # Inner loops first: code added for them must be seen as part of the outer ones.
        self.trips = {loop: trip_of(loop, forward) for loop in reversed(self.nest.loops) if loop in asked_loops}
        answers = self._answers(questions)
        self.home = definitions(forward)
        last, returned = forward.exit()
        value, *self.passed_on = returned.args
        last.terminator = Jump(reverse.entry)
        totals = {total: each.loop.header for each in self.immediate for total in self.finder.reverse_at_once(each)}
        self.joint.blocks = [*forward.blocks, *reverse.blocks]
        if immediate:
            self.joint.blocks = reverse_postorder(self.joint)
        headers = [header for header, question in questions.items() if self._is_latch(question)]
        self.reversed = reversed_loops(self.joint, self.nest, self.mirrored, headers)
        self._make_late()
        self._start_slots(last)
        self._read_totals(totals)
        index = self._count_down(questions)
        mirrors = {block: reverse for reverse, block in self.mirrored.items()}
        own = [root for root in self.active if self.covering is None or not self.memory.seen_outside(root)]
        self.rewinding = Rewinding(forward, self.nest, self.memory, own, mirrors, immediate)
        plan = Plan(
            self.nest, self.home, frozenset(self.lifted.values()), self.memory, immediate, self.rewinding, self.late
        )
        sweeps = Sweeps(
            self.nest,
            self.trips,
            self.home,
            self.reverse_tree,
            self.mirrored,
            index,
            self._read_slot,
            self._read_at_latch,
            {loop: mirrors[trip.latch] for loop, trip in self.trips.items()},
            immediate,
        )
        self.alphas = Alphas(sweeps, plan)
        self._demand(answers)
        olds = self._keep_old(plan, self.alphas.rewound())
        self.alphas.place()
        self._substitute(answers)
        self._hand_on_late()
        self._put_back(olds)
        note(self.joint.name, rounds, immediate, plan, self.late, self.alphas.listed())
        return value, last

    def _find_immediate(self) -> set[Loop]:
        """Find the loops whose iterations can be reversed immediately, and remove them from the nest."""
        shadowed = (self.memory.root(self.forward.values[value]) for value in self.shadows)
        self.active = {root: None for root in shadowed if root is not None}
        self.finder = ImmediateLoops(
            self.forward.function,
            self.reverse.function,
            self.nest,
            self.mirrored,
            set(self.active),
            self.forward.values,
            self.lifted,
            self.memory,
            self._given(),
        )
        self.immediate = self.finder.find() if self.together and not is_left_out("immediate-reversal") else []
        self.joint.independent = self.finder.independent(self.immediate)
        for loop in self.nest.loops:
            loop.forget_values()  # the trip counts will add some
        loops = {each.loop for each in self.immediate}
        self.nest = without(self.nest, loops) if loops else self.nest
        return loops

    def _given(self) -> Given | None:
        """Return what is known of shadows that are given."""
        if self.covering is None:
            return None
        shadows = {
            root: self.forward.values[shadow]
            for value, shadow in self.shadows.items()
            if isinstance(value, Param) and (root := self.memory.root(self.forward.values[value])) is not None
        }
        covering = {self.forward.values[store]: self.forward.values[array] for store, array in self.covering.items()}
        return Given(shadows, covering)  # type: ignore[arg-type]

    def _questions(self) -> dict[Block, CameFrom]:
        """Return the query of each reverse block that branches."""
        immediate = {each.header for each in self.immediate}
        blocks = (block for block in self.reverse.function.blocks if block not in immediate)
        return {block: instr for block in blocks for instr in block.instrs if isinstance(instr, CameFrom)}

    def _is_latch(self, question: CameFrom) -> bool:
        block, pred = self.forward.blocks[question.block], self.forward.blocks[question.pred]
        return self.nest.tree.dominates(block, pred)

    def _answers(self, questions: Mapping[Block, CameFrom]) -> dict[Block, tuple[Operand, bool]]:
        """Return the forward value, and whether it is negated, that answers the query of each reverse block.

        The value is the condition of the branch above the merge, if each of its two sides leads to the merge by one
        edge; else a phi that records it.
        """
        preds = predecessors(self.forward.function)
        answers: dict[Block, tuple[Operand, bool]] = {}
        for reverse, question in questions.items():
            if self._is_latch(question):
                continue
            block, chosen = self.forward.blocks[question.block], self.forward.blocks[question.pred]
            (other,) = (pred for pred in preds[block] if pred is not chosen)
            above = self.nest.tree.idom[block]
            assert above is not None
            if isinstance(above.terminator, Branch):
                branch, dominates = above.terminator, self.nest.tree.dominates
                if dominates(branch.then, chosen) and dominates(branch.orelse, other):
                    answers[reverse] = (branch.condition, False)
                    continue
                if dominates(branch.then, other) and dominates(branch.orelse, chosen):
                    answers[reverse] = (branch.condition, True)
                    continue
            flag = Phi(types.boolean, "e", block.loc)
            flag.incoming = {chosen: Const(True, types.boolean), other: Const(False, types.boolean)}
            block.phis.append(flag)
            answers[reverse] = (flag, False)
        return answers

    def _make_late(self) -> None:
        """Find the shadows that the reverse sweep makes."""
        self.late: dict[Value, LateShadow] = {}
        if self.covering is not None or is_left_out("late-shadows"):
            return  # the threads of a device are given their shadows
        shadows = {self.forward.values[array]: self.forward.values[shadow] for array, shadow in self.shadows.items()}
        finder = LateShadows(self.joint.blocks, self.mirrored, self.nest, self.memory, shadows)
        self.late = finder.find([self.trips[loop] for loop, reverse in self.reversed.items() if reverse.is_left_here])
        for late in self.late.values():
            for made, block in ((late.begun, late.trip.first), (late.end, late.after)):
                self.home |= dict.fromkeys([made, *(each for each in made.args if isinstance(each, Value))], block)

    def _hand_on_late(self) -> None:
        """Hand late shadows from round to round of the reversed loops, and add up what is left of the first round."""
        for late in self.late.values():
            reverse = self.reversed[late.trip.loop]
            handed_on = ((late.begun, reverse.latch), (late.end, reverse.before))
            late.taken.incoming = {block: self._value(made, block) for made, block in handed_on}
            reverse.header.phis.append(late.taken)
            added = Instr(ops.accumulate, (self._value(late.start, reverse.after), late.taken), types.none)
            reverse.after.instrs.insert(self.alphas.preludes(reverse.after), added)

    def _start_slots(self, last: Block) -> None:
        """Start the SSA construction that passes final values of the forward sweep to the reverse sweep."""
        self.ssa = SSABuilder(self.joint)
        self.declared: set[object] = set()
        self.last = last
        preds = predecessors(self.joint)
        for block in self.joint.blocks:
            self.ssa.seal(block, preds[block])

    def _read_slot(self, value: Value, block: Block) -> Operand:
        """Return the last value of `value` in the forward sweep."""
        home = self.home.get(value)
        if home is None or self.nest.tree.dominates(home, self.last):
            return value
        if value not in self.declared:
            self.declared.add(value)
            self.ssa.declare(value, value.type, value.hint)
            for each in self.immediate:
                if home in each.loop:  # each round reads what it has computed itself
                    self.ssa.write(value, each.loop.header, Undef(value.type))
            self.ssa.write(value, home, value)
        return self.ssa.read(value, block)

    def _read_totals(self, totals: Mapping[Phi, Block]) -> None:
        """Make the reverse sweep read the sums of loops that may not have run like other values."""
        if all(self.nest.tree.dominates(header, self.last) for header in totals.values()):
            return
        tree = dominator_tree(self.joint)

        def read(operand: Operand, block: Block) -> Operand:
            if not isinstance(operand, Phi) or operand not in totals or tree.dominates(totals[operand], block):
                return operand
            self.home[operand] = totals[operand]
            return self._read_slot(operand, block)

        map_operands(self.reverse.function.blocks, read)

    def _read_at_latch(self, value: Value, loop: Loop) -> Operand:
        """Return `value` at the end of an iteration; undefined, or an empty array, if that did not compute it."""
        trip = self.trips[loop]
        home = self.home[value]
        if self.nest.tree.dominates(home, trip.latch):
            return value
        key = (value, loop)
        if key not in self.declared:
            self.declared.add(key)
            self.ssa.declare(key, value.type, value.hint)
            self.ssa.write(key, trip.first, self._nothing(value, trip))
            self.ssa.write(key, home, value)
        return self.ssa.read(key, trip.latch)

    def _nothing(self, value: Value, trip: Trip) -> Operand:
        """Return what stands in a record for a value that the iteration did not compute."""
        if isinstance(value.type, types.Number | types.Boolean):
            return Undef(value.type)
        made = nothing(value.type, value.hint, trip.preheader)
        if isinstance(made, Value):
            self.home[made] = trip.preheader
        return made

    def _count_down(self, questions: Mapping[Block, CameFrom]) -> dict[Loop, Operand]:
        """Add the counter of each reversed loop; the block before it will set it to the trip count less one."""
        self.starts: list[tuple[Phi, Block, Trip]] = []
        index: dict[Loop, Operand] = {}
        for loop, reverse in self.reversed.items():
            trip, header, branch = self.trips[loop], reverse.header, reverse.header.terminator
            counter = Phi(INDEX, trip.index_hint)
            down = Instr(operator.sub, (counter, Const(1, INDEX)), INDEX, counter.hint)
            reverse.latch.instrs.append(down)
            counter.incoming = {reverse.latch: down}
            header.phis.append(counter)
            goes_on = Instr(operator.ge, (counter, Const(0, INDEX)), types.boolean, "c")
            header.instrs[header.instrs.index(questions[header])] = goes_on
            assert isinstance(branch, Branch)
            branch.condition = goes_on
            self.starts.append((counter, reverse.before, trip))
            index[loop] = counter
        return index

    def _demand(self, answers: Mapping[Block, tuple[Operand, bool]]) -> None:
        """Demand the values of the forward sweep in the blocks where the reverse sweep needs them."""
        for block in self.reverse.function.blocks:
            for instr in block.instrs:
                self._demand_all(instr.args, block)
            for phi in block.phis:
                for pred, operand in phi.incoming.items():
                    self._demand_all((operand,), pred)
            if isinstance(block.terminator, Return):
                self._demand_all(block.terminator.args, block)
        for block, (condition, _) in answers.items():
            self._demand_one(condition, block)
        for _, before, trip in self.starts:
            self._demand_one(trip.count, before)
        for late in self.late.values():
            loop = self.reversed[late.trip.loop]
            for operand, block in ((late.begun, loop.latch), (late.end, loop.before), (late.start, loop.after)):
                self._demand_one(operand, block)

    def _demand_all(self, operands: tuple[Operand, ...], block: Block) -> None:
        for operand in operands:
            if isinstance(operand, Alpha) or operand in self.lifted:
                self._demand_one(self.values.of(operand), block)

    def _demand_one(self, operand: Operand, block: Block) -> None:
        if isinstance(operand, Value) and operand in self.home:
            self.alphas.demand(operand, block)

    def _keep_old(self, plan: Plan, roots: Collection[Value]) -> list[tuple[Write, Instr]]:
        """Save the values overwritten in memory that will be rewound."""
        olds: list[tuple[Write, Instr]] = []
        for write in (write for root in self.active if root in roots for write in self.rewinding.undone(root)):
            array, _, *index = write.instr.args
            assert isinstance(array.type, types.Array)
            old = self._just_read(write, (array, *index))
            if old is None:
                old = Instr(
                    ops.getitem,
                    (array, *index),
                    array.type.dtype,
                    f"{array.hint if isinstance(array, Value) else ''}_old",
                    write.instr.loc,
                )
                write.block.instrs.insert(write.block.instrs.index(write.instr), old)
                self.home[old] = write.block
            plan.olds.add(old)
            olds.append((write, old))
            for operand in (old, array, *index):
                self._demand_one(operand, write.reverse)
        return olds

    def _just_read(self, write: Write, args: tuple[Operand, ...]) -> Instr | None:
        """Return the overwritten value, if it was already read in the same block."""
        for instr in reversed(write.block.instrs[: write.block.instrs.index(write.instr)]):
            if instr.op is ops.getitem and instr.args == args:
                return instr
            if any(self.memory.may_share(each, args[0]) for each in writes(instr)):
                return None
        return None

    def _put_back(self, olds: list[tuple[Write, Instr]]) -> None:
        """Restore overwritten values, last writes first, and finally the contents that the caller must see."""
        for block, group in grouped((write.reverse, (write, old)) for write, old in olds).items():
            self._put_back_in(block, group)
        if not self.together:
            return  # the reverse half works on copies of the caller's arrays
        returning, _ = self.reverse.function.exit()
        for root in (root for root in self.active if root in self.rewinding.chosen):
            for seen in self.memory.seen_outside(root):
                assert isinstance(seen.type, types.Array)
                kind = seen.type.copy(layout="C", readonly=False)
                final = Instr(np.copy, (seen,), kind, f"{seen.hint}_after")
                self.last.instrs.append(final)
                returning.instrs.append(Instr(ops.setitem, (seen, final), types.none))

    def _put_back_in(self, block: Block, group: Sequence[tuple[Write, Instr]]) -> None:
        """Restore the values that a block has overwritten, each before the reverse of the code preceding the write.

        Code after the write is reversed with the memory that it saw, and the loads of the block precede the restores.
        """
        places: dict[Value, int] = {instr: place for place, instr in enumerate(group[0][0].block.instrs)}
        pending = sorted(group, key=lambda each: places[each[0].instr])

        def put_back() -> Instr:
            write, old = pending.pop()
            array, _, *index = write.instr.args
            args = tuple(self._value(operand, block) for operand in (array, old, *index))
            return Instr(ops.setitem, args, types.none)

        start = self.alphas.preludes(block)
        instrs = block.instrs[:start]
        for instr in block.instrs[start:]:
            origin = None if instr.origin is None else places.get(self.forward.values[instr.origin])
            while origin is not None and pending and places[pending[-1][0].instr] >= origin:
                instrs.append(put_back())
            instrs.append(instr)
        while pending:
            instrs.append(put_back())
        block.instrs = instrs

    def _substitute(self, answers: Mapping[Block, tuple[Operand, bool]]) -> None:
        """Replace the alphas and the queries by values."""
        map_operands(self.reverse.function.blocks, self._operand)
        for block, (condition, negated) in answers.items():
            branch = block.terminator
            assert isinstance(branch, Branch)
            block.instrs = [instr for instr in block.instrs if not isinstance(instr, CameFrom)]
            branch.condition = self._value(condition, block)
            if negated:
                branch.then, branch.orelse = branch.orelse, branch.then
        for counter, before, trip in self.starts:
            count = self._value(trip.count, before)
            start = Instr(operator.sub, (count, Const(1, INDEX)), INDEX, counter.hint)
            before.instrs.append(start)
            counter.incoming[before] = start

    def _operand(self, operand: Operand, block: Block) -> Operand:
        if isinstance(operand, Alpha) or operand in self.lifted:
            return self._value(self.values.of(operand), block)
        return operand

    def _value(self, operand: Operand, block: Block) -> Operand:
        if isinstance(operand, Value) and operand in self.home:
            return self.alphas.operand(operand, block)
        return operand

    def give(self, value: Operand, wrt: list[int], unwrap_single: bool, with_value: bool, seeded: bool) -> None:
        """Replace the seed by 1, or make it a parameter, and return the requested values."""
        reverse = self.reverse.function
        b, end = at_exit(reverse)
        gradients = [end.args[number] for number in wrt]
        result = gradients[0] if unwrap_single else b.pack(gradients)
        if with_value:
            result = b.pack([value, result])
        end.args = (result, *self.passed_on)
        if seeded:
            self.joint.params += reverse.params
        else:
            replace_uses(self.joint, {seed: Const(1.0, seed.type) for seed in reverse.params})
        self.ssa.finish()
