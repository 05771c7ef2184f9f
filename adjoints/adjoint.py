"""The adjoint of a primal: its control-flow graph inverted, and in each block the pullbacks in reverse order.

    primal: b0 -> b1 <-> b2, b1 -> b3           adjoint: b3' -> b1' <-> b2', b1' -> b0'
    b2:  %r2 = mul %r1, %x                      b2':  %dr2 = mul %dr1, @x
                                                      %t   = mul %dr1, @r1
                                                      %dx2 = add %dx1, %t

`@v` is an alpha, what `%v` held in the matching execution of its block; `came_from @b1, b2` tells whether the primal
came into b1 from b2. How either is had is not decided here (see `adjoints.joint`).

Adjoints are variables that start at zero: a use of a value adds to its adjoint, its definition takes the adjoint and
leaves zero, and SSA construction over the inverted graph puts in the phis. At the end of a block the adjoint of a value
can differ from zero only if the value is live there, so it is looked for only then. Arrays have no such variable: what
the read of an element contributes is accumulated in their shadow.

M. Innes, "Don't Unroll Adjoint: Differentiating SSA-Form Programs", 2018.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping

from numba import types

from zygote_py.adjoints.activity import Activity, carries_adjoint, differentiable_inputs, is_float, is_float_array
from zygote_py.adjoints.rules import expand, rule_for
from zygote_py.ir import ops
from zygote_py.ir.core import (
    Alpha,
    Block,
    Branch,
    CameFrom,
    Const,
    Function,
    Instr,
    Jump,
    Operand,
    Param,
    Return,
    Type,
    Value,
    predecessors,
    zero,
)
from zygote_py.ir.dominators import dominator_tree, postdominator_tree, reverse_postorder
from zygote_py.ir.errors import InternalError
from zygote_py.ir.ssa import SSABuilder

NONE = Const(None, types.none)


def make_adjoint(
    primal: Function, activity: Activity, shadows: Mapping[Value, Value], parts: Mapping[Value, tuple[Instr, ...]]
) -> Function:
    """The adjoint of a primal in canonical form: a function of the result's adjoint that returns the parameters'.

    `shadows` are those of `add_shadows`, `parts` those of `expose_leaves`. Parameters that were not asked for, and
    those that can have no adjoint, have None.
    """
    return _Builder(primal, activity, shadows, parts).build()


class _Builder:
    """Fills the blocks of the adjoint in an order in which each comes after the blocks that lead to it."""

    def __init__(
        self,
        primal: Function,
        activity: Activity,
        shadows: Mapping[Value, Value],
        parts: Mapping[Value, tuple[Instr, ...]],
    ) -> None:
        self.primal = primal
        self.activity = activity
        self.shadows = shadows
        self.parts = parts
        self.leaves: set[Value] = {part for whole in parts.values() for part in whole}
        self.tree = dominator_tree(primal)
        self.preds = predecessors(primal)
        order = postdominator_tree(primal).order
        self.carried = _live_at_ends(order, activity)
        self.back = {block: self._back_edges(block) for block in order}
        after: dict[Block, list[Block]] = {order[0]: []}
        for block in order:  # each after those that lead to it, but for the bodies of loops
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
        # Of the block at work:
        self.block = self.order[0]
        self.written: set[Value] = set()
        self.origin: Value | None = None

    def build(self) -> Function:
        for value in self.activity.values:
            if is_float(value.type):
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
        return self.adjoint

    def _fill(self, block: Block) -> None:
        self.block, self.written = block, set()
        mirror = self.mirror[block]
        if isinstance(block.terminator, Return):
            (result,) = block.terminator.values
            seed = Param(result.type, "dy")
            self.adjoint.params.append(seed)
            self._add(result, seed)
        for operand, d in self.from_phis.pop(block, ()):
            self._add(operand, d)
        for instr in reversed(block.instrs):
            if isinstance(instr, Instr) and instr in self.activity and instr not in self.leaves:
                self._pull_back(instr)
        self._pull_back_phis(block)
        match self.back[block]:
            case []:
                mirror.terminator = Return(tuple(self._gradient(param) for param in self.primal.params))
            case [only]:
                mirror.terminator = Jump(self.mirror[only])
            case [chosen, other]:
                question = CameFrom(block, chosen)
                mirror.instrs.append(question)
                mirror.terminator = Branch(question, self.mirror[chosen], self.mirror[other])

    def _back_edges(self, block: Block) -> list[Block]:
        """Where control goes from the adjoint of a block: back to its predecessors, of a loop's header the latch first.

        Back past everything in between, if there is nothing to pull back on any way there.
        """
        preds = self.preds[block]
        dominator = self.tree.idom[block]
        if len(preds) < 2 or dominator is None:
            return preds
        if not self._has_active_phi(block) and not self._active_between(dominator, preds):
            return [dominator]
        return sorted(preds, key=lambda pred: not self.tree.dominates(block, pred))

    def _active_between(self, dominator: Block, preds: list[Block]) -> bool:
        """Whether there is anything to pull back on the ways to `preds` from the block that dominates them all."""
        pending = [pred for pred in preds if pred is not dominator]
        seen = set(pending)
        while pending:
            block = pending.pop()
            if self._has_active_phi(block) or any(
                instr in self.activity and is_float(instr.type) for instr in block.instrs
            ):
                return True
            for pred in self.preds[block]:
                if pred is not dominator and pred not in seen:
                    seen.add(pred)
                    pending.append(pred)
        return False

    def _has_active_phi(self, block: Block) -> bool:
        return any(phi in self.activity and is_float(phi.type) for phi in block.phis)

    def _pull_back_phis(self, block: Block) -> None:
        """Pass the adjoint of each phi to the value of the edge taken, in the block that the edge is reversed to."""
        phis = [phi for phi in block.phis if phi in self.activity and is_float(phi.type)]
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
        """The pullback of one instruction: from its adjoint to contributions to the adjoints of its arguments."""
        if not is_float(instr.type):
            return  # an array: its adjoint is in its shadow, which its base's shadow shares
        dy = self._current(instr)
        self._write(instr, zero(instr.type))
        if _is_zero(dy):
            return
        self.origin = instr
        if instr.op is ops.getitem:
            self._accumulate(instr, dy)
        elif instr.op is ops.pick:
            index, *items = instr.args
            position = self._emit(operator.mod, (_alpha(index), Const(len(items), types.int64)), types.int64)
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
        else:
            rule = rule_for(instr)
            if rule is None:
                raise InternalError(f"adjoint: {ops.name_of(instr.op)} has no rule")
            for number, argument in enumerate(instr.args):
                if argument in self.activity and rule.passes(number):
                    self._add(argument, expand(rule, number, instr, dy, self._emit, _alpha))
        self.origin = None

    def _accumulate(self, instr: Instr, dy: Operand) -> None:
        """The pullback of x[i]: its adjoint is added to the element of the shadow that it was read from."""
        array, *index = instr.args
        if array not in self.activity or not isinstance(array, Value):
            return
        shadow = Alpha(self.shadows[array])
        self._emit(ops.accumulate, (shadow, dy, *map(_alpha, index)), types.none)

    def _emit(self, op: ops.Op, args: tuple[Operand, ...], type: Type) -> Instr:
        instr = Instr(op, args, type, origin=self.origin)
        self.mirror[self.block].instrs.append(instr)
        return instr

    def _current(self, value: Value) -> Operand:
        if value not in self.written and value not in self.carried[self.block]:
            return zero(value.type)
        return self.ssa.read(value, self.mirror[self.block])

    def _write(self, value: Value, adjoint: Operand) -> None:
        self.written.add(value)
        self.ssa.write(value, self.mirror[self.block], adjoint)

    def _add(self, operand: Operand, contribution: Operand | None) -> None:
        """Add a contribution to an adjoint; the first is assigned."""
        if not isinstance(operand, Value) or operand not in self.activity or contribution is None:
            return
        current = self._current(operand)
        total = contribution
        if not _is_zero(current):
            total = self._emit(operator.add, (current, contribution), operand.type)
        if isinstance(total, Instr) and not total.hint:
            total.hint = f"d{operand.hint or 't'}"
        self._write(operand, total)

    def _gradient(self, value: Value) -> Operand:
        """What the adjoint returns for a parameter, or for a part of one."""
        if value not in self.activity.asked or not carries_adjoint(value.type):
            return NONE
        if is_float_array(value.type):
            return Alpha(self.shadows[value])
        if value in self.parts:
            items = tuple(map(self._gradient, self.parts[value]))
            kind = types.Tuple(tuple(item.type for item in items))
            gradient = Instr(ops.pack, items, kind, f"d{value.hint}")
            self.mirror[self.block].instrs.append(gradient)
            return gradient
        return self._current(value)


def _live_at_ends(order: tuple[Block, ...], activity: Activity) -> dict[Block, set[Value]]:
    """The active numbers that are used after each block, other than by phis of its successors.

    Backward dataflow: what is live at the start of the successors. A phi's operands are used in the predecessors.
    """
    used: dict[Block, set[Value]] = {block: set() for block in order}
    defined: dict[Block, set[Value]] = {block: set() for block in order}
    for block in order:
        defined[block].update(block.phis, block.instrs)
        inputs: list[Operand] = []
        for instr in block.instrs:
            if instr in activity:
                inputs += differentiable_inputs(instr)
        if isinstance(block.terminator, Return):
            inputs += block.terminator.values
        for after in block.successors:
            inputs += [phi.incoming[block] for phi in after.phis if phi in activity]
        used[block].update(v for v in inputs if isinstance(v, Value) and v in activity and is_float(v.type))
    at_start = {block: used[block] - defined[block] for block in order}
    at_end: dict[Block, set[Value]] = {block: set() for block in order}
    changed = True
    while changed:  # as often as loops are nested, plus two
        changed = False
        for block in order:
            live = set().union(*(at_start[after] for after in block.successors if after in at_start))
            if len(live) != len(at_end[block]):
                at_end[block] = live
                at_start[block] |= live - defined[block]
                changed = True
    return at_end


def _alpha(operand: Operand) -> Operand:
    return Alpha(operand) if isinstance(operand, Value) else operand


def _is_zero(operand: Operand) -> bool:
    return isinstance(operand, Const) and operand.value == 0.0
