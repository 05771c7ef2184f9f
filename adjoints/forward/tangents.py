"""Tangents: the companions of a pushforward. The rows of rules give them, which are linear in `dy`, here a tangent."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import carries_adjoint, element_of, has_shadow, is_array, is_number
from zygote_py.adjoints.forward.companions import Domain, Walk, has_companion
from zygote_py.adjoints.forward.custom_pushforward import CustomPushforwards
from zygote_py.adjoints.forward.direct import direct_tangents
from zygote_py.adjoints.forward.transposed import Transposed
from zygote_py.adjoints.reverse.calls import Case
from zygote_py.adjoints.rules import push_forward, rule_for
from zygote_py.adjoints.rules.formulas.expand import Emit
from zygote_py.adjoints.rules.formulas.opaque import opaque_for
from zygote_py.adjoints.rules.formulas.terms import is_singular, vanishes
from zygote_py.ir import (
    NONE,
    Block,
    Builder,
    Const,
    Function,
    Instr,
    InternalError,
    Operand,
    Routine,
    Type,
    Value,
    components_of,
    is_zero,
    ops,
    routines_of,
    with_components,
    writable,
    zero,
)

_LOGARITHMS = (math.log, math.log2, math.log10, math.log1p, np.log, np.log2, np.log10, np.log1p)


def tangent_type(kind: Type) -> Type:
    """Return the type of a tangent: the writable variant of the type of the value."""
    if isinstance(kind, types.BaseTuple):
        parts = tuple(tangent_type(each) if carries_adjoint(each) else types.none for each in components_of(kind))
        return with_components(kind, parts)
    return writable(kind)


class Tangents(Domain):
    """Tangents as companions."""

    name = "push"
    suffix = "pushforward"
    has_poles = False  # whether a derivative has been guarded that may be infinite where the value is finite

    def __init__(self, width: int, transposed: Transposed) -> None:
        self.width = width
        self._transposed = transposed
        self._custom = CustomPushforwards()

    def type_of(self, kind: Type) -> Type:
        """Return the writable variant of the type of the value."""
        return tangent_type(kind)

    def hint(self, name: str) -> str:
        """Return the name with the prefix `t`."""
        return f"t{name}"

    def hint_of_param(self, name: str, number: int) -> str:
        """Return the name with the prefix `t`, and the index of the direction if there are several."""
        return self.hint(name) if self.width == 1 else f"{self.hint(name)}_{number}"

    def zero(self, kind: Type) -> Operand:
        """Return zero, of the same type."""
        return zero(kind) if is_number(kind) else NONE

    def zeros(self, b: Builder, array: Operand, hint: str = "") -> Operand:
        """Return an array of zeros."""
        return b.zeros_like(array, hint)

    def missing(self, walk: Walk, operand: Operand) -> Operand:
        """Raise InternalError: every active value has a tangent."""
        raise InternalError(f"pushforward: a value of type {operand.type} without a tangent")

    def allocated(self, walk: Walk, instr: Instr) -> Operand:
        """Return an array of zeros, or of undefined elements if no element is read before it is stored."""
        if instr in walk.records:
            return walk.emit(ops.record, instr.args, instr)
        return walk.emit(np.zeros_like if instr.op is np.zeros_like else ops.zeros, instr.args, instr)

    def returns(self, kind: Type) -> bool:
        """Return whether values of the type have tangents."""
        return has_companion(kind)

    def case(self, routine: Routine, case: Case) -> Case:
        """Return the case; unstable parameters matter only to rules, which may save values overwritten later."""
        if not any(each.is_custom for each in (routine, *routines_of(routine.function))):
            return Case(case.active, frozenset(), False)
        return case

    def custom(self, routine: Routine, case: Case, name: str) -> Function | None:
        """Return the function with the tangents that the transposed pullback of the rule computes."""
        return self._custom.push(routine, case, self.width, name)

    def store(self, walk: Walk, instr: Instr, number: int) -> None:
        """Store the tangent of the stored value."""
        whole, value, *rest = instr.args
        if instr.op is ops.accumulate and is_array(value.type) and value not in walk.activity:
            return
        changes = has_shadow(value.type) or (is_number(value.type) and value in walk.activity)
        tangent = walk.of(value, number) if changes else self.zero(element_of(whole.type))
        if instr.op is ops.accumulate and is_zero(tangent):
            return
        walk.make(instr.op, (walk.of(whole, number), tangent, *rest), types.none)

    def view(self, walk: Walk, instr: Instr, number: int) -> Operand:
        """Return the same view of the tangents."""
        args = [walk.of(arg, number) if has_shadow(arg.type) else arg for arg in instr.args]
        if instr.op is np.broadcast_to:  # the array NumPy returns must not be written to
            return walk.emit(ops.spread, args, instr)
        return walk.emit(instr.op, args, instr, instr.keywords)

    def scalar(self, walk: Walk, instr: Instr, number: int) -> Operand:
        """Return the tangent of a number, by the rule of its operation."""
        if ops.of(instr.op).role is ops.Role.CHOOSE:
            return walk.emit(instr.op, [instr.args[0], *(walk.of(arg, number) for arg in instr.args[1:])], instr)
        if instr.op is ops.guarded:
            return self._of_guarded(walk, instr, number)
        direct = walk.direct.get(instr)
        rule = rule_for(instr) if direct is None else direct.rule
        if rule is None:
            raise InternalError(f"pushforward: {ops.name_of(instr.op)} has no rule")
        seen = instr if direct is None else direct.stand_in
        total: Operand | None = None
        make = self.maker(walk)
        for index, argument in enumerate(seen.args):
            if argument in walk.activity and rule.passes(index):
                tangent = walk.of(argument, number)
                if isinstance(tangent, Const) and tangent.value == 0.0:
                    continue
                term = push_forward(rule, index, seen, tangent, make)
                term = self._guarded(walk, term, tangent, rule.adjoints[index], instr.op)
                total = term if total is None else make(operator.add, (total, term), instr.type)
        if isinstance(total, Instr) and not total.hint:
            total.hint = walk.hint(instr)
        return self.zero(instr.type) if total is None else total

    def maker(self, walk: Walk) -> Emit:
        """Return what makes an instruction of a rule: for an operation, its operands, and the type of a number."""
        return walk.make

    def _guarded(self, walk: Walk, term: Operand, tangent: Operand, rule: str | None, op: ops.Op) -> Operand:
        """Return a term with a guard for a zero tangent, where the derivative may be infinite."""
        assert rule is not None
        if isinstance(term, Const) or isinstance(tangent, Const) or vanishes(rule) or not is_singular(rule):
            return term
        self.has_poles |= op not in _LOGARITHMS and ops.of(op).family is not ops.Family.TRUE_DIVISION
        return walk.make(ops.guarded, (term, tangent), term.type)

    def _of_guarded(self, walk: Walk, instr: Instr, number: int) -> Operand:
        """Return the tangent of a guarded product: 0 where its factors and their tangents are all 0."""
        self.has_poles = True
        product, *factors = instr.args
        tangent = walk.of(product, number)
        changes = [each for each in (walk.of(factor, number) for factor in factors) if isinstance(each, Value)]
        return tangent if isinstance(tangent, Const) else walk.emit(instr.op, [tangent, *factors, *changes], instr)

    def whole(self, walk: Walk, instr: Instr, items: Mapping[int, Instr]) -> None:
        """Compute the tangents of the results of an operation on whole arrays."""
        rule = opaque_for(instr)
        if rule is None:
            raise InternalError(f"pushforward: {ops.name_of(instr.op)} has no rule")
        active = [n for n in rule.adjoints if instr.args[n] in walk.activity]
        found: dict[int, list[Operand]] = {}
        # Conditions on what nothing depends on, as on the phases of vectors beside eigenvalues, do not matter.
        wanted = [place for place, item in items.items() if item in walk.used or item is instr]
        for number in range(self.width):
            b = Builder(Block(), instr.loc)
            changes = {n: walk.of(instr.args[n], number) for n in active}
            if rule.gives_tangents:
                made = direct_tangents(b, instr, rule, items, changes)
            else:
                made = self._transposed.tangents(b, instr, rule, items, changes, wanted)
            for place, tangent in made.items():
                found.setdefault(place, []).append(tangent)
            walk.b.block.instrs += b.block.instrs
        walk.companions |= {items[place]: tuple(tangents) for place, tangents in found.items()}
