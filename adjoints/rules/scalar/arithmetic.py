"""The rules of arithmetic: operators, casts, comparisons, logic, and powers in all their cases.

    rule(operator.sub, np.subtract, a="dy", b="-dy")

Remainders take the quotient `q` of `a = q*b + y` from `(a - y) / b`: `floor(a / b)` is off by one where the division
rounds up to a whole number (`1.0 % 0.1` has `q = 9`, while `1.0 / 0.1` is 10).
"""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints.rules.formulas.rule import Rule, flat, row, rule, structural
from zygote_py.ir import Const, Instr, Operand, ops

rule(operator.add, np.add, a="dy", b="dy")
rule(operator.sub, np.subtract, a="dy", b="-dy")
rule(operator.mod, np.remainder, np.mod, np.fmod, a="dy", b="-(rint((a - y) / b) * dy)")
rule(operator.neg, np.negative, x="-dy")
rule(operator.pos, np.positive, x="dy")
rule(np.square, x="(2 * x) * dy")
rule(np.reciprocal, x="-((y * y) * dy)")

# Casts: the contribution is cast back to the argument's type.
rule(float, np.float64, np.float32, ops.const, x="dy")
rule(np.real, np.conjugate, x="dy")
# Reductions of an array, of which a number is the smallest.
rule(np.sum, np.prod, np.mean, np.average, x="dy")
rule(np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin, x="dy")

flat(int, bool, np.bool_, np.imag, hash, np.ptp, np.std)
flat(np.int8, np.int16, np.int32, np.int64, np.longlong)
flat(np.uint8, np.uint16, np.uint32, np.uint64, np.ulonglong)
flat(operator.floordiv, np.floor_divide)
flat(operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt, operator.is_, operator.is_not)
flat(np.less, np.less_equal, np.equal, np.not_equal, np.greater_equal, np.greater)
flat(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.invert)
flat(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.invert)
flat(operator.not_, np.logical_and, np.logical_or, np.logical_xor, np.logical_not)
flat(np.gcd, np.lcm, math.gcd)
flat(ops.dim, len, ops.range_length, np.size, np.any, np.all)
flat(np.isscalar, np.isreal, np.iscomplex, np.isrealobj, np.iscomplexobj, np.isclose, np.allclose)

PRODUCT = row(a="dy * b", b="dy * a")
_SQUARE = row(a="(2 * dy) * b", b=None)
_BY_ROOT = {1: row(a="(1.5 * dy) * b", b=None), 0: row(a=None, b="(1.5 * dy) * a")}  # by the place of the root


@structural(operator.mul, np.multiply)
def product(instr: Instr) -> Rule | None:
    """Return the rule of a product: that of a number and itself or its root, `x * sqrt(x)`, is a power.

    The derivative of the latter is finite also at 0. By the rule of products it would be `sqrt(x) + x / (2 * sqrt(x))`.
    """
    if len(instr.args) != 2:
        return None
    if instr.args[0] is instr.args[1]:
        return _SQUARE
    for place in (0, 1):
        root, other = instr.args[place], instr.args[1 - place]
        is_root = isinstance(root, Instr) and root.op in (math.sqrt, np.sqrt) and root.args == (other,)
        if is_root and isinstance(instr.type, types.Float) and root.type == other.type == instr.type:
            return _BY_ROOT[place]
    return PRODUCT


# One division serves both arguments; an inverse needs none.
QUOTIENT = row(a="dy / b", b="-((dy / b) * y)")
_INVERSE = row(a="dy / b", b="-((dy * y) * y)")


@structural(operator.truediv, np.divide, np.true_divide, ops.fast_divide)
def quotient(instr: Instr) -> Rule | None:
    """Return the rule of a division: of 1 it is an inverse."""
    if len(instr.args) != 2:
        return None
    return _INVERSE if constant_value(instr.args[0]) == 1 else QUOTIENT


# x**p. The selections keep 0 * inf out, at p = 0 and at x = 0, both here and in the derivative of this derivative.
# They do so where it would come up and nowhere else: elsewhere at p = 0 the derivative by p is that of the product.
_NONE = "(p == 0) & ((x == 0) | isnan(x))"
_BASE = f"(0.0 if {_NONE} else p * power(x, 1.0 if {_NONE} else p - 1)) * dy"
_EXPONENT = "(y * log(1.0 if (x == 0) & (p >= 0) else x)) * dy"
# With an integer exponent the power is one of repeated multiplications in both sweeps. x**0 is 1, at any x. A negative
# exponent is that of a quotient, since Numba's `**` raises where x to its magnitude is too small for a float.
_POWER_OF_WHOLE = "x ** (p - 1 if p > 0 else 1 - p if p < 0 else 0)"
_BASE_OF_WHOLE = f"(p * ({_POWER_OF_WHOLE} if p >= 0 else 1 / {_POWER_OF_WHOLE})) * dy"
# Up to this exponent x**(n-1) is multiplied out.
_LARGEST_CHAIN = 16


@structural(operator.pow, builtins.pow, math.pow, np.power, np.float_power, ops.fast_pow)
def power(instr: Instr) -> Rule | None:
    """Return the rule of a power: constant exponents are worked out here."""
    if len(instr.args) != 2:
        return None
    exponent = constant_value(instr.args[1])
    if exponent is None and instr.op in (operator.pow, builtins.pow) and _is_whole(instr.args[1]):
        return row(x=_BASE_OF_WHOLE, p=None)
    return row(x=_BASE, p=_EXPONENT) if exponent is None else row(x=power_by(exponent), p=None)


def _is_whole(operand: Operand) -> bool:
    """Return whether an exponent is a number of a signed integer type, of which one less can be taken."""
    kind: Any = operand.type
    return isinstance(operand.type, types.Integer) and bool(kind.signed)


def constant_value(operand: Operand) -> int | float | None:
    """Return the value of a constant number, anonymous or named, else None."""
    match operand:
        case Const(bool()):
            return None
        case Const(int() | float() | np.integer() | np.floating() as value):
            return value.item() if isinstance(value, np.generic) else value
        case Instr(op=ops.const, args=(constant,)):
            return constant_value(constant)
        case _:
            return None


def power_by(n: int | float) -> str | None:
    """Return the adjoint of x in x**n.

    x**0 -> no gradient, x**1 -> dy, x**2 -> 2*x, x**-1 -> -y*y, x**0.5 -> 0.5/y, x**1.5 -> 1.5*sqrt(x),
    x**-n -> -n*(y/x). Each is inf, 0 and nan where the general form is.
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
        case 1.5:
            return "(1.5 * sqrt(x)) * dy"
        case _ if not math.isfinite(n):
            return _BASE
        case _ if n < 0:
            return f"({n!r} * (y / x)) * dy"
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
