"""The rules of arithmetic: operators, casts, comparisons, logic, and powers in all their cases.

    rule(operator.mul, np.multiply, a="dy * b", b="dy * a")

Remainders take the quotient `q` of `a = q*b + y` from `(a - y) / b`: `floor(a / b)` is off by one where the division
rounds up to a whole number (`1.0 % 0.1` has `q = 9`, while `1.0 / 0.1` is 10).
"""

from __future__ import annotations

import builtins
import math
import operator

import numpy as np
from numba import types
from zygote_py.adjoints.rules.rule import Rule, row, rule, structural
from zygote_py.ir import ops
from zygote_py.ir.core import Const, Instr, Operand

rule(operator.add, np.add, a="dy", b="dy")
rule(operator.sub, np.subtract, a="dy", b="-dy")
rule(operator.mul, np.multiply, a="dy * b", b="dy * a")
# One division serves both.
rule(operator.truediv, np.divide, np.true_divide, a="dy / b", b="-((dy / b) * y)")
rule(operator.mod, np.remainder, np.mod, np.fmod, a="dy", b="-(rint((a - y) / b) * dy)")
rule(operator.floordiv, np.floor_divide, a=None, b=None)
rule(operator.neg, np.negative, x="-dy")
rule(operator.pos, np.positive, x="dy")
rule(np.square, x="(2 * x) * dy")
rule(np.reciprocal, x="-((y * y) * dy)")

# Casts: the contribution is cast back to the argument's type.
rule(float, np.float64, np.float32, ops.const, x="dy")
rule(np.real, np.conjugate, x="dy")
rule(int, bool, np.bool_, np.imag, x=None)
rule(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, x=None)

rule(operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt, a=None, b=None)
rule(operator.is_, operator.is_not, a=None, b=None)
rule(np.less, np.less_equal, np.equal, np.not_equal, np.greater_equal, np.greater, a=None, b=None)
rule(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, a=None, b=None)
rule(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, a=None, b=None)
rule(np.logical_and, np.logical_or, np.logical_xor, a=None, b=None)
rule(np.gcd, np.lcm, math.gcd, a=None, b=None)
rule(operator.invert, operator.not_, np.invert, np.logical_not, x=None)

# x**p. The factor p * x**(p-1) would be 0 * inf at x = p = 0, and y * log(x) would be 0 * -inf at x = 0 < p.
_BASE = "(0.0 if p == 0 else p * power(x, p - 1)) * dy"
_EXPONENT = "(0.0 if (x == 0) & (p >= 0) else y * log(x)) * dy"
# Up to this exponent x**(n-1) is multiplied out.
_LARGEST_CHAIN = 16


@structural(operator.pow, builtins.pow, math.pow, np.power, np.float_power)
def power(instr: Instr) -> Rule | None:
    """The rule of a power: constant exponents are worked out here."""
    if len(instr.args) != 2:
        return None
    exponent = constant_value(instr.args[1])
    if exponent is None:
        return row(x=_BASE, p=_EXPONENT)
    return row(x=_power_by(exponent), p=None)


def constant_value(operand: Operand) -> int | float | None:
    """The value of a constant number, anonymous or named, else None."""
    match operand:
        case Const(bool()):
            return None
        case Const(int() | float() | np.integer() | np.floating() as value):
            return value.item() if isinstance(value, np.generic) else value
        case Instr(op=ops.const, args=(constant,)):
            return constant_value(constant)
        case _:
            return None


def _power_by(n: int | float) -> str | None:
    """The adjoint of x in x**n.

    x**0 -> no gradient, x**1 -> dy, x**2 -> 2*x, x**-1 -> -y*y, x**0.5 -> 0.5/y. The chains are exact where
    x**(n-1) is, and overflow where it does.
    """
    match n:
        case 0:
            return None
        case 1:
            return "dy"
        case -1:
            return "-((y * y) * dy)"
        case 0.5:
            return "(0.5 / y) * dy"
        case _ if n == int(n) and 2 <= n <= _LARGEST_CHAIN + 1:
            return f"({int(n)} * {_chain(int(n) - 1)}) * dy"
        case _:
            return f"({n!r} * power(x, {n - 1!r})) * dy"


def _chain(n: int) -> str:
    """x**n by repeated squaring; equal sub-expressions are emitted once."""
    if n == 1:
        return "x"
    half = _chain(n // 2)
    return f"({half} * {half})" if n % 2 == 0 else f"({half} * {half} * x)"


@structural(round, np.round)
def rounding(instr: Instr) -> Rule | None:
    """Rounding, to an integer or to a number of digits: flat."""
    return Rule(("x", "digits")[: len(instr.args)], (None,) * len(instr.args))


@structural(ops.dim, len, ops.range_length, ops.record)
def sizes(instr: Instr) -> Rule | None:
    """Sizes are integers."""
    return Rule(tuple(f"x{k}" for k in range(len(instr.args))), (None,) * len(instr.args))


def is_number(type: types.Type) -> bool:
    """Whether a value of the type is a real scalar."""
    return isinstance(type, types.Float | types.Integer | types.Boolean)
