"""Guards: a product with an adjoint that is 0, as its value was left out, is 0 even if the other factor is not finite.

    %dl is the adjoint of %l = np.log(%x), which is left out where x is not positive
    %t = np.divide %dl, @x : f64
    %g = guarded %t, %dl : f64              0 where %dl is 0, else %t

Of a chain of products each hangs by the adjoint that it began with, and only its end is guarded: where that adjoint is
0 the products in between may be anything. `hangs_by` is kept for the block at work; `settled` puts the guard in, where
an adjoint leaves the chain: it is added to another, selected from, stored, or used in another block.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
from numba import types

from zygote_py.adjoints.left_out import Degree, Degrees
from zygote_py.adjoints.rules import Rule, uses
from zygote_py.adjoints.rules.terms import is_singular, leaves_out, vanishes
from zygote_py.ir import ops
from zygote_py.ir.core import Const, Instr, Operand, Type

Emit = Callable[[ops.Op, tuple[Operand, ...], Type], Instr]


class Guards:
    """The guards in one adjoint, whose instructions `emit` adds to the block at work."""

    def __init__(self, left_out: Degrees, emit: Emit) -> None:
        self._left_out = left_out
        self._emit = emit
        self._hangs_by: dict[Operand, Operand] = {}
        self._settled: dict[Operand, Operand] = {}

    def begin_block(self) -> None:
        """Forget what was settled: that was in another block."""
        self._hangs_by.clear()
        self._settled.clear()

    def settled(self, adjoint: Operand) -> Operand:
        """An adjoint with its guard, if it needs one."""
        factor = self._hangs_by.get(adjoint)
        if factor is None or not isinstance(adjoint, Instr):
            return adjoint
        if adjoint not in self._settled:
            made = self._emit(ops.guarded, (adjoint, factor), adjoint.type)
            made.hint = adjoint.hint
            self._settled[adjoint] = made
        return self._settled[adjoint]

    def is_settled(self, adjoint: Operand) -> bool:
        """Whether an adjoint needs no guard."""
        return adjoint not in self._hangs_by

    def factor(self, instr: Instr, dy: Operand, rule: Rule, number: int) -> tuple[Operand, Operand | None]:
        """The adjoint of an instruction for its contribution to an argument, and what that is to hang by."""
        text = rule.adjoints[number]
        assert text is not None
        degree = self._left_out.get(instr, Degree.KEPT)
        if degree is Degree.KEPT or leaves_out(text):
            return self.settled(dy), None
        if vanishes(text) or _is_finite(instr, rule, number):
            if sum(each is not None for each in rule.adjoints) > 1:  # one guard before the ways part
                return self.settled(dy), None
            return dy, self._hangs_by.get(dy)
        if degree is Degree.UNCERTAIN and not is_singular(text):
            return dy, self._hangs_by.get(dy)
        return dy, self._hangs_by.get(dy, dy)

    def hang(self, contribution: Operand, dy: Operand, factor: Operand | None) -> None:
        """Note what a contribution hangs by."""
        if factor is not None and contribution is not dy and isinstance(contribution, Instr):
            self._hangs_by[contribution] = factor

    def sum(self, a: Operand, b: Operand, type: Type) -> Instr:
        """The sum of two adjoints: what hangs by the same does so together."""
        factor = self._hangs_by.get(a)
        if factor is None or self._hangs_by.get(b) is not factor:
            return self._emit(operator.add, (self.settled(a), self.settled(b)), type)
        total = self._emit(operator.add, (a, b), type)
        self._hangs_by[total] = factor
        return total


def _is_finite(instr: Instr, rule: Rule, number: int) -> bool:
    """Whether what an adjoint is multiplied by is finite, whatever the arguments are."""
    text = rule.adjoints[number]
    assert text is not None
    names = uses(rule, number)
    factors = [arg for name, arg in zip(rule.names, instr.args, strict=True) if name in names]
    if "y" in names:
        return False
    return all(map(_is_constant, factors)) or (not is_singular(text) and all(map(_is_bounded, factors)))


def _is_constant(factor: Operand) -> bool:
    """Whether a factor is a finite constant other than 0, by which one may divide as well."""
    match factor:
        case Instr(op=op, args=(operand,)) if _is_cast(op):
            return _is_constant(operand)
        case Const(int() | float() | np.integer() | np.floating() as value):
            return math.isfinite(value) and value != 0
    return False


def _is_bounded(factor: Operand) -> bool:
    """Whether a factor is an integer, perhaps made a float, or a finite constant."""
    if isinstance(factor.type, types.Integer | types.Boolean):
        return True
    match factor:
        case Instr(op=op, args=(operand,)) if _is_cast(op):
            return _is_bounded(operand)
        case Const(int() | float() | np.integer() | np.floating() as value):
            return math.isfinite(value)
    return False


def _is_cast(op: ops.Op) -> bool:
    return op is ops.const or isinstance(ops.of(op).cast_to, types.Float)
