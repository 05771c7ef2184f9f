"""Quotients whose divisor is a power of one value, or a multiple of it: their contribution to that value.

    %r = math.sqrt %x
    %b = mul %x, %r
    %y = truediv %c, %b                     %t = truediv %dy, @x
                                            %dx = mul (mul -1.5, %t), @y

By the rules of quotients, of products and of roots it would be divided by %b and multiplied by %r, both of which would
have to be known in the reverse sweep. The direct form is used where the steps from the value to its power are used by
the quotient alone, in the same block, and where the numerator has no adjoint, which would be divided by %b as well; but
not for the inverse of a product or of a whole power, whose adjoint needs no division.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import Activity
from zygote_py.adjoints.rules import Rule
from zygote_py.adjoints.rules.formulas.rule import row
from zygote_py.adjoints.rules.scalar.arithmetic import constant_value
from zygote_py.ir import Function, Instr, Operand, Use, Value, is_left_out, ops, uses
from zygote_py.ir.lazy_dataclass import dataclass

_QUOTIENTS = (operator.truediv, np.divide, np.true_divide)
_PRODUCTS = (operator.mul, np.multiply)
_ROOTS = (math.sqrt, np.sqrt)
_POWERS = (operator.pow, math.pow, np.power, np.float_power)
_MOST_STEPS = 32


@dataclass(frozen=True, eq=False)
class Direct:
    """The contribution of a quotient to a `base`: the first argument of `stand_in`, of which there is a `rule`."""

    base: Value
    rule: Rule
    stand_in: Instr


def direct_contributions(primal: Function, activity: Activity) -> Mapping[Instr, Direct]:
    """Return the quotients of a primal that contribute to the value of which their divisor is a power."""
    found: dict[Instr, Direct] = {}
    if is_left_out("direct-divisors") or any(instr.op is ops.guarded for instr in primal.instrs()):
        return found  # a derivative may have guards of its own, whose chains remain as they are
    used: Mapping[Value, Sequence[Use]] | None = None
    for block in primal.blocks:
        local: set[Instr] = set()
        for instr in block.instrs:
            if instr.op not in _QUOTIENTS or instr not in activity or not isinstance(instr.type, types.Float):
                continue
            if len(instr.args) == 2 and instr.args[0] not in activity:
                used, local = used or uses(primal), local or set(block.instrs)
                if (direct := _Finder(instr, local, activity, used).find()) is not None:
                    found[instr] = direct
    return found


class _Finder:
    """Finds the base of one divisor; the `steps` to it are the instructions that raise or multiply it."""

    def __init__(
        self,
        quotient: Instr,
        local: Collection[Instr],
        activity: Activity,
        used: Mapping[Value, Sequence[Use]],
    ) -> None:
        self._quotient = quotient
        self._local = local
        self._activity = activity
        self._used = used
        self._steps = {quotient}
        self._powers: dict[Operand, tuple[Operand, float]] = {}
        self._has_roots = False

    def find(self) -> Direct | None:
        """Return the contribution of the quotient to the base of its divisor, if it is not the divisor itself."""
        numerator, divisor = self._quotient.args
        base, exponent = self._power(divisor)
        if constant_value(numerator) == 1 and not self._has_roots:
            return None
        if base is divisor or base.type != self._quotient.type or not isinstance(base, Value):
            return None
        if exponent == 0 or not math.isfinite(exponent):
            return None
        return Direct(base, _rule(exponent), Instr(operator.truediv, (base, self._quotient), base.type))

    def _power(self, operand: Operand) -> tuple[Operand, float]:
        """Return the base of an operand and its exponent; factors without an adjoint do not count."""
        if not isinstance(operand, Instr) or not self._is_step(operand):
            return operand, 1.0
        if operand not in self._powers:
            self._steps.add(operand)
            self._powers[operand] = self._find(operand)
        return self._powers[operand]

    def _find(self, operand: Instr) -> tuple[Operand, float]:
        if operand.op in _PRODUCTS:
            for other, root in (operand.args, operand.args[::-1]):
                if _is_root(root, other):  # whose product has a rule of its own, by which the root has no adjoint
                    self._has_roots = True
                    base, inner = self._power(other)
                    return base, 1.5 * inner
            found = [self._power(each) for each in operand.args if each in self._activity]
            return found[0] if len(found) == 1 else _product(*found) or (operand, 1.0)
        exponent: float | None = 0.5 if operand.op in _ROOTS else constant_value(operand.args[1])
        if exponent is None or not math.isfinite(exponent) or exponent == 0:
            return operand, 1.0
        self._has_roots |= exponent != int(exponent)
        base, inner = self._power(operand.args[0])
        return base, inner * exponent

    def _is_step(self, operand: Instr) -> bool:
        if operand in self._steps:
            return True
        if len(self._steps) > _MOST_STEPS or operand not in self._activity or operand not in self._local:
            return False
        if operand.type != self._quotient.type:
            return False
        if not self._steps.issuperset(use.user for use in self._used[operand]):
            return False
        return operand.op in _ROOTS or (operand.op in (*_PRODUCTS, *_POWERS) and len(operand.args) == 2)


def _product(left: tuple[Operand, float], right: tuple[Operand, float]) -> tuple[Operand, float] | None:
    """Return the product of two powers of one base."""
    for (base, exponent), (other, more) in ((left, right), (right, left)):
        if other is base:
            return base, exponent + more
        if _is_root(other, base):
            return base, exponent + 0.5 * more
    return None


def _is_root(operand: Operand, of: Operand) -> bool:
    return isinstance(operand, Instr) and operand.op in _ROOTS and operand.args[0] is of


@functools.cache
def _rule(exponent: float) -> Rule:
    """Return the rule of `c / x**exponent`, given its value `q`."""
    factor = "-(dy / x)" if exponent == 1 else f"{-exponent!r} * (dy / x)"
    return row(x=f"({factor}) * q", q=None)
