"""Guards: a product with the zero adjoint of a value that was left out is 0 even if the other factor is not finite.

    %dl is the adjoint of %l = np.log(%x), which is left out where x is not positive
    %t = np.divide %dl, @x : f64
    %g = guarded %t, %dl : f64              0 where %dl is 0, else %t

In a chain of products each depends on the adjoint that the chain starts from, and only its end is guarded: where that
adjoint is 0 the intermediate products may have any value. `hangs_by` records this for the current block; `settled`
emits the guard where an adjoint leaves the chain: where it is added to another, selected from, stored, or used in a
different block.

Where the primal is a derivative with guards of its own, the adjoint of another factor is a multiple of %dl:

    %dm = mul @dl, %dt                      of %t = mul %dl, %m, which %g guards
    %dx = guarded (mul %dm, inf), %dm       0 where %l was left out: a chain begins with %dm
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import Degree, Degrees
from zygote_py.adjoints.rules import Rule, uses
from zygote_py.adjoints.rules.formulas.terms import is_singular, leaves_out, vanishes
from zygote_py.ir import Const, Function, Instr, Operand, Type, ops

Emit = Callable[[ops.Op, tuple[Operand, ...], Type], Instr]


class Guards:
    """The guards in one adjoint, whose instructions `emit` appends to the current block."""

    def __init__(self, primal: Function, left_out: Degrees, emit: Emit) -> None:
        self._other_factors = _other_factors(primal)
        self._multiples: set[Operand] = set()  # adjoints of such factors
        self._left_out = left_out
        self._emit = emit
        self._hangs_by: dict[Operand, Operand] = {}
        self._settled: dict[Operand, Operand] = {}

    def begin_block(self) -> None:
        """Discard the guards of the previous block."""
        self._hangs_by.clear()
        self._settled.clear()
        self._multiples.clear()

    def settled(self, adjoint: Operand) -> Operand:
        """Return an adjoint with its guard, if it needs one."""
        factor = self._hangs_by.get(adjoint)
        if factor is None or not isinstance(adjoint, Instr):
            return adjoint
        if adjoint not in self._settled:
            made = self._emit(ops.guarded, (adjoint, factor), adjoint.type)
            made.hint = adjoint.hint
            self._settled[adjoint] = made
        return self._settled[adjoint]

    def is_settled(self, adjoint: Operand) -> bool:
        """Return whether an adjoint needs no guard."""
        return adjoint not in self._hangs_by

    def factor(self, instr: Instr, dy: Operand, rule: Rule, number: int, seen: Instr) -> tuple[Operand, Operand | None]:
        """Return the adjoint to use for a contribution, and the factor the contribution hangs by.

        The contribution of `instr` is to an argument of `seen`, which the rule is about.
        """
        text = rule.adjoints[number]
        assert text is not None
        if dy in self._multiples:
            dy = self.settled(dy)
        degree = self._left_out.get(instr, Degree.KEPT)
        if degree is Degree.KEPT or leaves_out(text):
            return self.settled(dy), None
        if vanishes(text) or _is_finite(seen, rule, number):
            if sum(each is not None for each in rule.adjoints) > 1:  # one guard before the chain branches
                return self.settled(dy), None
            return dy, self._hangs_by.get(dy)
        if degree is Degree.UNCERTAIN and not is_singular(text):
            return dy, self._hangs_by.get(dy)
        return dy, self._hangs_by.get(dy, dy)

    def hang(self, contribution: Operand, dy: Operand, factor: Operand | None, instr: Instr, number: int) -> None:
        """Record the factor that a contribution to an argument hangs by."""
        if number in self._other_factors.get(instr, ()):
            self._multiples.add(contribution)
        if factor is not None and contribution is not dy and isinstance(contribution, Instr):
            self._hangs_by[contribution] = factor

    def sum(self, a: Operand, b: Operand, type: Type) -> Instr:
        """Return the sum of two adjoints, which shares their guard if they hang by the same factor."""
        factor = self._hangs_by.get(a)
        if factor is None or self._hangs_by.get(b) is not factor:
            return self._emit(operator.add, (self.settled(a), self.settled(b)), type)
        total = self._emit(operator.add, (a, b), type)
        self._hangs_by[total] = factor
        if not self._multiples.isdisjoint((a, b)):
            self._multiples.add(total)
        return total


def _other_factors(primal: Function) -> dict[Instr, set[int]]:
    """Return the arguments of the products in chains that are guarded that do not depend on where the chain starts."""
    found: dict[Instr, set[int]] = {}
    for block in primal.blocks:
        guards = [(place, each) for place, each in enumerate(block.instrs) if each.op is ops.guarded]
        places: dict[Operand, int] = {each: place for place, each in enumerate(block.instrs)} if guards else {}
        for place, guard in guards:
            end, *factors = guard.args
            chain: set[Operand] = set(factors)
            members = []
            start = min(places.get(factor, -1) for factor in factors) + 1
            for instr in block.instrs[start:place]:
                if not chain.isdisjoint(instr.args):
                    chain.add(instr)
                    members.append(instr)
            needed = {end}
            for instr in reversed(members):
                if instr in needed and instr not in factors:
                    needed.update(instr.args)
                    others = {number for number, each in enumerate(instr.args) if each not in chain}
                    found.setdefault(instr, set()).update(others)
    return found


def _is_finite(instr: Instr, rule: Rule, number: int) -> bool:
    """Return whether the factor of an adjoint is finite, whatever the arguments are."""
    text = rule.adjoints[number]
    assert text is not None
    names = uses(rule, number)
    factors = [arg for name, arg in zip(rule.names, instr.args, strict=True) if name in names]
    if "y" in names:
        return False
    return all(map(_is_constant, factors)) or (not is_singular(text) and all(map(_is_bounded, factors)))


def _is_constant(factor: Operand) -> bool:
    """Return whether a factor is a finite constant other than 0, by which one may also divide."""
    match factor:
        case Instr(op=op, args=(operand,)) if _is_cast(op):
            return _is_constant(operand)
        case Const(int() | float() | np.integer() | np.floating() as value):
            return math.isfinite(value) and value != 0
    return False


def _is_bounded(factor: Operand) -> bool:
    """Return whether a factor is an integer, possibly cast to float, or a finite constant."""
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
