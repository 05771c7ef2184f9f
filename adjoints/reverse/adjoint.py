"""The adjoint of a primal: its control-flow graph inverted, and in each block the pullbacks in reverse order.

    primal: b0 -> b1 <-> b2, b1 -> b3           adjoint: b3' -> b1' <-> b2', b1' -> b0'
    b2:  %r2 = mul %r1, %x                      b2':  %dr2 = mul %dr1, @x
                                                      %t   = mul %dr1, @r1
                                                      %dx2 = add %dx1, %t

`@v` is an alpha, the value of `%v` in the matching execution of its block; `came_from @b1, b2` is true if the primal
entered b1 from b2. How either is obtained is decided elsewhere (see `joint.py`).

Adjoints are variables that start at zero: a use of a value adds to its adjoint, its definition consumes the adjoint and
resets it to zero, and SSA construction over the inverted graph inserts the phis. At the end of a block the adjoint of a
value can differ from zero only if the value is live there, so it is read only then. Arrays have no such variable: their
adjoint is their shadow. The read of an element adds to the shadow, a write to an element consumes from it:

    %v = getitem %a, %i                         accumulate @da, %dv, @i
    setitem %a, %v, %i                          %d = getitem @da, @i
                                                setitem @da, 0.0, @i
                                                %dv2 = add %dv1, %d

The memory of the primal is not modified: where the contents of a whole array are needed and may have been overwritten
since, the primal saves a copy (`snapshots`).

M. Innes, "Don't Unroll Adjoint: Differentiating SSA-Form Programs", 2018.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import (
    Activity,
    Degree,
    Degrees,
    carries_adjoint,
    element_of,
    has_shadow,
    is_array,
    is_number,
    live_at_ends,
    rank_of,
    reachable,
)
from zygote_py.adjoints.reverse.calls import Call
from zygote_py.adjoints.reverse.divisors import direct_contributions
from zygote_py.adjoints.reverse.guards import Guards
from zygote_py.adjoints.rules import expand, rule_for
from zygote_py.adjoints.rules.formulas.expand import CASTS
from zygote_py.adjoints.rules.formulas.opaque import OpaqueRule, opaque_for
from zygote_py.ir import (
    NONE,
    Alpha,
    Block,
    Branch,
    Builder,
    CameFrom,
    Const,
    Function,
    Instr,
    InternalError,
    Jump,
    Operand,
    Param,
    Return,
    SSABuilder,
    Type,
    Value,
    components_of,
    dominator_tree,
    is_zero,
    items_of,
    items_read,
    ops,
    passes,
    postdominator_tree,
    predecessors,
    reach,
    reverse_postorder,
    with_components,
    zero,
)
from zygote_py.ir.lazy_dataclass import dataclass

_STRUCTURAL = (ops.Role.READ, ops.Role.CHOOSE, ops.Role.GUARD)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A primal in canonical form with everything required to build its adjoint.

    `shadows` are those of `add_shadows`, `parts` those of `expose_leaves`, `kept` the copies of `keep_contents`. The
    final contents of the parameters `seeded` are results too, with their own adjoints. `calls` are those of forward
    functions. The adjoint of a routine takes the adjoints of the numbers that it returns, individually. `left_out` are
    the values that need guards. `finals` are arrays that hold what others, raised or lowered by several threads, are at
    the end, and `latched` the values that these operations took.
    """

    primal: Function
    activity: Activity
    shadows: Mapping[Value, Value]
    parts: Mapping[Value, tuple[Instr, ...]]
    kept: Mapping[tuple[Value, Value], Value]
    seeded: tuple[Param, ...] = ()
    calls: Mapping[Instr, Call] = field(default_factory=dict)
    routine: bool = False
    left_out: Degrees = field(default_factory=dict)
    finals: Mapping[Value, Value] = field(default_factory=dict)
    latched: Mapping[Instr, Instr] = field(default_factory=dict)


def make_adjoint(prepared: Prepared) -> Function:
    """Return the adjoint of a primal: a function from the adjoints of its results to those of its parameters.

    The adjoint is None for parameters that were not requested and for those that cannot have one.
    """
    return _Builder(prepared).build()


class _Builder:
    """Fills the blocks of the adjoint in an order in which each follows its predecessors."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.primal = primal = prepared.primal
        self.activity = activity = prepared.activity
        self.shadows = prepared.shadows
        self.parts = parts = prepared.parts
        self.leaves: set[Value] = {part for whole in parts.values() for part in whole}
        self.tree = dominator_tree(primal)
        self.preds = predecessors(primal)
        order = postdominator_tree(primal).order
        self.carried = live_at_ends(
            self.primal, order, activity, prepared.calls, list(reachable(prepared.seeded, parts))
        )
        self.back = {block: self._back_edges(block) for block in order}
        after: dict[Block, list[Block]] = {order[0]: []}
        for block in order:  # each after its predecessors, except along the back edges of loops
            if block in after:
                for target in self.back[block]:
                    after.setdefault(target, []).append(block)
        self.order = [block for block in order if block in after]
        self.after = after
        self.mirror = {block: Block(block.loc, block) for block in self.order}
        self.adjoint = Function(
            primal.name, [], list(self.mirror.values()), "adjoint", primal, primal.loc, primal.options
        )
        self.ssa = SSABuilder(self.adjoint)
        self.from_phis: dict[Block, list[tuple[Operand, Operand]]] = {}
        # Of the current block:
        self.block = self.order[0]
        self.written: dict[Value, None] = {}
        self.origin: Value | None = None
        self.guards = Guards(primal, prepared.left_out, self._emit)
        self.direct = direct_contributions(primal, activity)

    def build(self) -> Function:
        for value in self.activity.values:
            if is_number(value.type):
                self.ssa.declare(value, value.type, f"d{value.hint or 't'}", zero(value.type))
        position = {block: number for number, block in enumerate(self.order)}
        for number, block in enumerate(self.order):
            mirrors = [self.mirror[after] for after in self.after[block]]
            is_header = any(position[after] > number for after in self.after[block])
            if not is_header:
                self.ssa.seal(self.mirror[block], mirrors)
            self._fill(block)
            for target in self.back[block]:
                if position[target] <= number:  # the last block of a reversed loop
                    self.ssa.seal(self.mirror[target], [self.mirror[after] for after in self.after[target]])
        self.ssa.finish()
        self.adjoint.blocks = reverse_postorder(self.adjoint)
        passes.remove_constant_phis(self.adjoint)  # those that are 0 in each of several loops, one in another
        return self.adjoint

    def _fill(self, block: Block) -> None:
        self.block, self.written = block, {}
        self.guards.begin_block()
        mirror = self.mirror[block]
        if isinstance(block.terminator, Return):
            self._seed(block.terminator.args[:1])
        for operand, d in self.from_phis.pop(block, ()):
            self._add(operand, d)
        for instr in reversed(block.instrs):
            if self._works(instr):
                self._pull_back(instr)
        self._pull_back_phis(block)
        for value in tuple(self.written):
            self._settle(value)
        match self.back[block]:
            case []:
                mirror.terminator = Return(tuple(self._gradient(param) for param in self.primal.params))
            case [only]:
                mirror.terminator = Jump(self.mirror[only])
            case [chosen, other]:
                question = CameFrom(block, chosen)
                mirror.instrs.append(question)
                mirror.terminator = Branch(question, self.mirror[chosen], self.mirror[other])

    def _seed(self, results: tuple[Operand, ...]) -> None:
        """Initialize the adjoints of the results from the adjoint's parameters."""
        if self.prepared.routine:
            results = tuple(item for item in items_of(results[0]) if is_number(item.type))
        seeded = [(result, "dy") for result in results if carries_adjoint(result.type)]
        for result, hint in (*seeded, *((param, f"d{param.hint}_seed") for param in self.prepared.seeded)):
            seed = Param(result.type, hint)
            self.adjoint.params.append(seed)
            self._add_seed(result, seed)

    def _add_seed(self, result: Operand, seed: Operand) -> None:
        """Add a seed, or its items, to the adjoint of a result."""
        items: Sequence[Operand] | None = self.parts.get(result) if isinstance(result, Value) else None
        if isinstance(result, Instr) and result.op is ops.pack:
            items = result.args
        if items is not None:
            for number, item in enumerate(items):
                if carries_adjoint(item.type):
                    self._add_seed(item, self._emit(ops.getitem, (seed, Const(number, types.int64)), item.type))
        elif is_array(result.type):
            if isinstance(result, Value) and result in self.shadows:
                if rank_of(result.type) == 0:
                    seed = self._emit(ops.getitem, (seed,), element_of(result.type))
                self._emit(ops.accumulate, (Alpha(self.shadows[result]), seed), types.none)
        else:
            self._add(result, seed)

    def _works(self, instr: Instr) -> bool:
        """Return whether an instruction requires code in the reverse sweep."""
        if ops.of(instr.op).role is ops.Role.BARRIER:
            return any(arg in self.activity for arg in instr.args)
        if ops.of(instr.op).role in (*ops.FILLS, ops.Role.POP):
            return instr.args[0] in self.activity and is_number(element_of(instr.args[0].type))
        if instr not in self.activity or instr in self.leaves or instr.op is ops.pack:
            return instr in self.prepared.calls
        return instr in self.prepared.calls or is_number(instr.type) or opaque_for(instr) is not None

    def _back_edges(self, block: Block) -> list[Block]:
        """Return the successors of the adjoint of a block: its predecessors, for a loop header the latch first.

        If no path there has anything to pull back, the result is the dominator of the block instead.
        """
        preds = self.preds[block]
        dominator = self.tree.idom[block]
        if len(preds) < 2 or dominator is None:
            return preds
        if not self._has_active_phi(block) and not self._active_between(dominator, preds):
            return [dominator]
        return sorted(preds, key=lambda pred: not self.tree.dominates(block, pred))

    def _active_between(self, dominator: Block, preds: list[Block]) -> bool:
        """Return whether a path from the common dominator of `preds` to them has anything to pull back."""
        return any(
            self._has_active_phi(block) or any(map(self._works, block.instrs))
            for block in reach(preds, self.preds.__getitem__, [dominator])
        )

    def _has_active_phi(self, block: Block) -> bool:
        return any(phi in self.activity and is_number(phi.type) for phi in block.phis)

    def _pull_back_phis(self, block: Block) -> None:
        """Pass the adjoint of each phi to the operand of the edge taken, in the block that the edge is reversed to."""
        phis = [phi for phi in block.phis if phi in self.activity and is_number(phi.type)]
        adjoints = [self._current(phi) for phi in phis]  # all of them are read before any is passed on
        for phi in phis:
            self._write(phi, zero(phi.type))
        preds = self.preds[block]
        if len(preds) > 2 or (phis and len(preds) < 2):
            raise InternalError(f"adjoint: a block of {self.primal.name} is not in canonical form")
        for pred in preds if phis else ():
            if len(pred.successors) > 1:
                raise InternalError(f"adjoint: {self.primal.name} has a critical edge")
            self.from_phis[pred] = [(phi.incoming[pred], d) for phi, d in zip(phis, adjoints, strict=True)]

    def _pull_back(self, instr: Instr) -> None:
        """Emit the pullback of an instruction: contributions of its adjoint to the adjoints of its arguments."""
        self.origin = instr
        if ops.of(instr.op).role is ops.Role.STORE:
            self._take(instr)
        elif ops.of(instr.op).role is ops.Role.BARRIER:
            self._wait(instr)
        elif ops.of(instr.op).role is ops.Role.EXTREME:
            self._take_extreme(instr)
        elif instr.op is ops.push:
            self._take_pushed(instr)
        elif instr.op is ops.pop:
            self._give_back(instr)
        elif instr in self.prepared.calls:
            self._call(self.prepared.calls[instr])
        elif (rule := opaque_for(instr)) is not None:
            self._apply(instr, rule)
        elif not _is_item(instr):  # the adjoints of a tuple's items are read where the tuple was created
            self._pull_back_number(instr)
        self.origin = None

    def _pull_back_number(self, instr: Instr) -> None:
        dy = self._unsettled(instr)
        self._write(instr, zero(instr.type))
        if is_zero(dy):
            return
        if ops.of(instr.op).role in _STRUCTURAL:
            dy = self.guards.settled(dy)
        if instr.op is ops.getitem:
            array, *index = instr.args
            if array in self.activity and isinstance(array, Value):
                self._emit(ops.accumulate, (Alpha(self.shadows[array]), dy, *map(_alpha, index)), types.none)
        elif instr.op is ops.pick:
            chosen_by, *items = instr.args
            position = self._emit(operator.mod, (_alpha(chosen_by), Const(len(items), types.int64)), types.int64)
            for number, item in enumerate(items):
                if item in self.activity:
                    chosen = self._emit(operator.eq, (position, Const(number, types.int64)), types.boolean)
                    self._add(item, self._emit(ops.select, (chosen, dy, zero(dy.type)), dy.type))
        elif instr.op is ops.select:
            condition, then, orelse = instr.args
            if then in self.activity:
                self._add(then, self._emit(ops.select, (_alpha(condition), dy, zero(dy.type)), dy.type))
            if orelse in self.activity:
                self._add(orelse, self._emit(ops.select, (_alpha(condition), zero(dy.type), dy), dy.type))
        elif instr.op is ops.guarded:
            self._pull_back_guarded(instr, dy)
        else:
            direct = self.direct.get(instr)
            rule = rule_for(instr) if direct is None else direct.rule
            if rule is None:
                raise InternalError(f"adjoint: {ops.name_of(instr.op)} has no rule")
            seen = instr if direct is None else direct.stand_in
            for number, argument in enumerate(seen.args):
                if argument in self.activity and rule.passes(number):
                    adjoint, factor = self.guards.factor(instr, dy, rule, number, seen)
                    contribution = expand(rule, number, seen, adjoint, self._emit, _alpha)
                    self.guards.hang(contribution, adjoint, factor, instr, number)
                    self._add(argument, contribution)

    def _pull_back_guarded(self, instr: Instr, dy: Operand) -> None:
        """Emit the pullback of a guarded product, which is not finite if the derivative by a factor of 0 is not.

        A factor may be 0 by coincidence, and then the derivative by it counts; it does not count where another value
        was selected.
        """
        product, *factors = instr.args
        if product not in self.activity:
            return
        counts = self._emit(operator.eq, (_alpha(product), zero(product.type)), types.boolean)
        for factor in factors:
            other = self._emit(operator.ne, (_alpha(factor), zero(factor.type)), types.boolean)
            counts = self._emit(operator.or_, (counts, other), types.boolean)
        self._add(product, self._emit(ops.select, (counts, dy, zero(dy.type)), dy.type))

    def _take(self, instr: Instr) -> None:
        """Emit the pullback of x[i] = v and of x[i] += v: the element of the shadow belongs to v."""
        array, item, *index = instr.args
        assert isinstance(array, Value)
        if is_array(item.type):
            raise InternalError("adjoint: an accumulation into a whole array that was not written out")
        at = tuple(map(_alpha, index))
        shadow = Alpha(self.shadows[array])
        element = element_of(array.type)
        d = self._emit(ops.getitem, (shadow, *at), element) if item in self.activity else None
        if instr.op is ops.setitem:
            self._emit(ops.setitem, (shadow, zero(element), *at), types.none)
        if d is not None:
            self._add(item, self._cast(d, item.type))

    def _take_extreme(self, instr: Instr) -> None:
        """Emit the pullback of an atomic maximum or minimum: the shadow belongs to the value that the element got last.

        That is the one that has changed it and equals its final contents. Of equal values, the first has changed it.
        """
        array, item, *index = instr.args
        assert isinstance(array, Value)
        kind, at = element_of(array.type), tuple(map(_alpha, index))
        shadow, flag = Alpha(self.shadows[array]), types.boolean
        final = self._emit(ops.getitem, (Alpha(self.prepared.finals.get(array, array)), *at), kind)
        less = operator.lt if instr.op is ops.raise_to else operator.gt
        taken_value = Alpha(self.prepared.latched[instr])
        changed = self._emit(less, (Alpha(instr), taken_value), flag)
        is_final = self._emit(operator.eq, (taken_value, final), flag)
        has_won = self._emit(operator.and_, (changed, is_final), flag)
        d = self._emit(ops.getitem, (shadow, *at), kind)
        taken = self._emit(ops.select, (has_won, d, zero(kind)), kind)
        self._emit(ops.accumulate, (shadow, self._emit(operator.neg, (taken,), kind), *at), types.none)
        self._add(item, self._cast(taken, item.type))

    def _wait(self, instr: Instr) -> None:
        """Emit the pullback of a barrier: what other threads add to shadows is seen by what is reversed after it."""
        shadows = [self.shadows[arg] for arg in instr.args if isinstance(arg, Value) and arg in self.shadows]
        self._emit(instr.op, tuple(map(_alpha, (*instr.args, *shadows))), types.none)

    def _take_pushed(self, instr: Instr) -> None:
        """Emit the pullback of s.append(v): the shadow's last item belongs to v and is removed."""
        values, item = instr.args
        assert isinstance(values, Value)
        d = self._emit(ops.pop, (Alpha(self.shadows[values]),), element_of(values.type))
        if item in self.activity:
            self._add(item, self._cast(d, item.type))

    def _give_back(self, instr: Instr) -> None:
        """Emit the pullback of v = s.pop(): its adjoint becomes the last item of the shadow of s again."""
        (values,) = instr.args
        assert isinstance(values, Value)
        self._emit(ops.push, (Alpha(self.shadows[values]), self._adjoint_of(instr, instr.type)), types.none)

    def _call(self, call: Call) -> None:
        """Emit the pullback of a call: its reverse function adds to shadows and returns the adjoints of numbers."""
        derivative = call.derivative
        given: dict[str, Sequence[Operand]] = {
            "argument": call.instr.args,
            "result": [call.items[number] for number in range(len(derivative.returned))],
            "stack": call.stacks,
        }
        args = [_alpha(given[source.kind][source.number]) for source in derivative.sources]
        seeds = [self._adjoint_of(call.items[number], call.items[number].type) for number in derivative.seeds]
        if all(map(is_zero, seeds)) and not derivative.moves_memory:
            return
        kinds = [derivative.routine.function.params[number].type for number in derivative.adjoints]
        b = Builder(self.mirror[self.block], origin=self.origin)
        items = b.call_packed(derivative.reverse, [*args, *seeds], kinds)
        for number, item in zip(derivative.adjoints, items, strict=True):
            self._add(call.instr.args[number], item)

    def _cast(self, d: Operand, type: Type) -> Operand:
        """Cast an adjoint to a different type of number."""
        if isinstance(d.type, types.Complex) and isinstance(type, types.Float):
            d = self._emit(np.real, (d,), d.type.underlying_float)
        return d if d.type == type else self._emit(CASTS[type], (d,), type)

    def _apply(self, instr: Instr, rule: OpaqueRule) -> None:
        """Emit the pullback of an operation on whole arrays: a contribution to the adjoint of each argument."""
        active = [number for number in rule.adjoints if instr.args[number] in self.activity]
        given = self._given(instr, rule, rule.needed(active))
        contributions: dict[int, Operand] = {}

        def contribution(number: int) -> Operand:
            if number not in contributions:
                adjoint = rule.adjoints[number]
                others = map(rule.other, adjoint.needs)
                needed = [
                    given[name] if other is None else contribution(other)
                    for name, other in zip(adjoint.needs, others, strict=True)
                ]
                is_left_out = self.prepared.left_out.get(instr) is Degree.LEFT_OUT
                function = adjoint.nan_safe if is_left_out and adjoint.nan_safe else adjoint.function
                contributions[number] = self._emit(function, tuple(needed), instr.args[number].type)
            return contributions[number]

        if is_zero(given.get("dy", NONE)):
            return
        for number in active:
            argument = instr.args[number]
            if is_array(argument.type):
                assert isinstance(argument, Value)
                self._emit(ops.accumulate, (Alpha(self.shadows[argument]), contribution(number)), types.none)
            else:
                self._add(argument, contribution(number))

    def _given(self, instr: Instr, rule: OpaqueRule, needed: Collection[str]) -> dict[str, Operand]:
        """Return the operands of the contributions, by name; the adjoints of numbers among the results are consumed."""
        given = {name: self._contents(argument, instr) for name, argument in zip(rule.names, instr.args, strict=False)}
        if not isinstance(instr.type, types.BaseTuple):
            return given | {"y": self._contents(instr, instr), "dy": self._adjoint_of(instr, instr.type)}
        items = items_read(self.primal, instr)
        for number, type in enumerate(components_of(instr.type)):
            item = items.get(number)
            given[f"y{number}"] = NONE if item is None else self._contents(item, instr)
            d = self._adjoint_of(item, type)
            if d is NONE and is_array(type) and f"dy{number}" in needed:
                d = self._emit(np.zeros_like, (given[f"y{number}"],), type)
            given[f"dy{number}"] = d
        return given

    def _contents(self, operand: Operand, instr: Instr) -> Operand:
        """Return an operand of an operation with its contents at that time."""
        return Alpha(self.prepared.kept.get((instr, operand), operand)) if isinstance(operand, Value) else operand

    def _adjoint_of(self, result: Instr | None, type: Type) -> Operand:
        """Return the adjoint of a result: an array, or a number, which is reset to zero; None if it has none."""
        if result is not None and result in self.shadows:
            return Alpha(self.shadows[result])
        if not is_number(type):
            return NONE
        if result is None or result not in self.activity:
            return zero(type)
        d = self._current(result)
        self._write(result, zero(type))
        return d

    def _emit(self, op: ops.Op, args: tuple[Operand, ...], type: Type) -> Instr:
        instr = Instr(op, args, type, origin=self.origin)
        self.mirror[self.block].instrs.append(instr)
        return instr

    def _current(self, value: Value) -> Operand:
        return self.guards.settled(self._unsettled(value))

    def _settle(self, value: Value) -> None:
        """Emit the guard of a value's adjoint, if it needs one, since a different block may use the adjoint."""
        adjoint = self._unsettled(value)
        if not self.guards.is_settled(adjoint):
            self._write(value, self.guards.settled(adjoint))

    def _unsettled(self, value: Value) -> Operand:
        """Return the adjoint of a value, which may still need a guard."""
        if value not in self.written and value not in self.carried[self.block]:
            return zero(value.type)
        return self.ssa.read(value, self.mirror[self.block])

    def _write(self, value: Value, adjoint: Operand) -> None:
        self.written[value] = None
        self.ssa.write(value, self.mirror[self.block], adjoint)

    def _add(self, operand: Operand, contribution: Operand | None) -> None:
        """Add a contribution to an adjoint; the first is assigned."""
        if not isinstance(operand, Value) or operand not in self.activity or contribution is None:
            return
        current = self._unsettled(operand)
        total = contribution if is_zero(current) else self.guards.sum(current, contribution, operand.type)
        if isinstance(total, Instr) and not total.hint:
            total.hint = f"d{operand.hint or 't'}"
        self._write(operand, total)

    def _gradient(self, value: Value) -> Operand:
        """Return the adjoint that is returned for a parameter, or for a part of one."""
        if value not in self.activity.asked or not carries_adjoint(value.type):
            return NONE
        if has_shadow(value.type):
            return Alpha(self.shadows[value])
        if value in self.parts:
            items = tuple(map(self._gradient, self.parts[value]))
            kind = with_components(value.type, tuple(item.type for item in items))
            gradient = Instr(ops.pack, items, kind, f"d{value.hint}")
            self.mirror[self.block].instrs.append(gradient)
            return gradient
        return self._current(value)


def _is_item(instr: Instr) -> bool:
    """Return whether an instruction extracts an item from a tuple."""
    return instr.op is ops.getitem and isinstance(instr.args[0].type, types.BaseTuple)


def _alpha(operand: Operand) -> Operand:
    return Alpha(operand) if isinstance(operand, Value) else operand
