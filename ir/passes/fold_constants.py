"""Computes at compile time what has constant operands, and drops operations that change nothing.

    %a = mul 2.0, 3.0 : f64         ->      6.0 for %a
    %b = mul %x, 1.0 : f64          ->      %x for %b
    branch True, b1, b2             ->      jump b1

What is folded is exactly what the program would compute: operations that IEEE 754 rounds correctly and integer ones
that do not overflow; no elementary functions, whose last bit depends on the library. What raises or warns is not
folded. The identities on floats here are those that hold for NaN, infinities and the sign of zero.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Branch, Const, Function, Instr, Jump, Operand, Type, Value, zero
from zygote_py.ir.dominators import reverse_postorder
from zygote_py.ir.edit import drop_unreachable, remove_incoming
from zygote_py.ir.walks import replace


def fold_constants(function: Function) -> None:
    """Fold instructions and branches of constants; constants that have a name are seen through."""
    folded: dict[Value, Operand] = {}
    named: dict[Value, Operand] = {}

    def final(operand: Operand) -> Operand:
        return folded.get(operand, operand) if isinstance(operand, Value) else operand

    def seen_through(operand: Operand) -> Operand:
        return named.get(operand, operand) if isinstance(operand, Value) else operand

    for block in reverse_postorder(function):
        for instr in block.instrs:
            instr.args = tuple(map(final, instr.args))
            if instr.op is ops.const:
                named[instr] = instr.args[0]
                continue
            args = tuple(map(seen_through, instr.args))
            result = _fold(instr, args) or _simplify(instr, args)
            if result is not None:
                folded[instr] = result
            else:
                _negate(instr, args)
    replace(function, folded)
    _fold_branches(function, seen_through)


def _negate(instr: Instr, args: tuple[Operand, ...]) -> None:
    """Let an adjoint times -1 be its negative; the sign of NaN, in which they differ, the user's own products keep."""
    if instr.op is not operator.mul or instr.origin is None or not isinstance(instr.type, types.Float):
        return
    for factor, other in (args, args[::-1]):
        if isinstance(factor, Const) and factor.value == -1.0 and other.type == instr.type:
            instr.op, instr.args = operator.neg, (other,)
            return


def _fold_branches(function: Function, seen_through: Callable[[Operand], Operand]) -> None:
    changed = False
    for block in function.blocks:
        match block.terminator:
            case Branch(condition, then, orelse) if then is not orelse:
                constant = seen_through(condition)
                if isinstance(constant, Const):
                    taken, not_taken = (then, orelse) if constant.value else (orelse, then)
                    remove_incoming(not_taken, block)
                    block.terminator = Jump(taken)
                    changed = True
    if changed:
        drop_unreachable(function)


def _fold(instr: Instr, args: tuple[Operand, ...]) -> Const | None:
    """The constant that an instruction of constants computes, or None where it must be left to run."""
    constants = [arg for arg in args if isinstance(arg, Const)]
    if (
        len(constants) < len(args)
        or not constants
        or instr.keywords
        or not _is_exact(instr, [c.type for c in constants])
    ):
        return None
    try:
        with np.errstate(all="raise"):
            return _constant(instr.op(*(_number(c.value, c.type) for c in constants)), instr.type)
    except (ArithmeticError, ValueError, TypeError, OverflowError):
        return None


def _is_exact(instr: Instr, operands: list[Type]) -> bool:
    """Whether NumPy and Numba agree to the last bit on this operation for these types."""
    record, result = ops.of(instr.op), instr.type
    if any(isinstance(t, types.Complex) for t in (result, *operands)):
        return _is_exact_of_complex(record, result, operands)
    if not all(isinstance(t, types.Integer | types.Float | types.Boolean) for t in (result, *operands)):
        return False
    if record.family is ops.Family.CAST:
        return record.cast_to is not None and len(operands) == 1
    if record.comparison:
        return operands[0] == operands[1]
    if instr.op is operator.not_:
        return operands == [types.boolean]
    if any(operand != result for operand in operands):
        return False
    match result:
        case types.Float():
            return "f" in record.exact
        case types.Integer():
            return "i" in record.exact
        case _:
            return "b" in record.exact


def _is_exact_of_complex(record: ops.Operation, result: Type, operands: list[Type]) -> bool:
    if not all(isinstance(t, types.Complex | types.Float) for t in (result, *operands)):
        return False
    if record.family is ops.Family.CAST and len(operands) == 1:
        return True
    return "p" in record.exact or ("c" in record.exact and all(operand == result for operand in operands))


def _number(value: object, type: Type) -> object:
    """A constant as what the arithmetic of its type is defined on: floats of NumPy, and ints and bools of Python."""
    match type:
        case types.Complex(bitwidth=bits):
            return _complex(value, bits)
        case types.Float(bitwidth=bits):
            return np.float32(value) if bits == 32 else np.float64(value)  # type: ignore[arg-type]
        case _:
            return value


def _complex(value: Any, bits: int) -> np.complexfloating:
    return np.complex64(value) if bits == 64 else np.complex128(value)


def _constant(value: object, type: Type) -> Const:
    """The result as a constant; raises OverflowError where the type cannot hold an integer."""
    match type:
        case types.Float(bitwidth=bits):
            return Const(float(np.float32(value) if bits == 32 else np.float64(value)), type)  # type: ignore[arg-type]
        case types.Complex(bitwidth=bits):
            return Const(complex(_complex(value, bits)), type)
        case types.Integer():
            number = int(value)  # type: ignore[call-overload]
            if not type.minval <= number <= type.maxval:
                raise OverflowError
            return Const(number, type)
        case _:
            return Const(bool(value), type)


_REAL = (types.Integer, types.Float)


def _simplify(instr: Instr, args: tuple[Operand, ...]) -> Operand | None:
    """The operand, or the constant, that an instruction comes to whatever its other operands are."""
    match instr.op, args:
        case ops.select, (Const(condition), then, orelse):
            arm = then if condition else orelse
            return arm if arm.type == instr.type else None
        case ops.pick, (Const(int(index)), *items):
            item = items[index] if -len(items) <= index < len(items) else None
            return item if item is not None and item.type == instr.type else None
        case ops.guarded, (value, *factors) if any(isinstance(each, Const) and each.value != 0 for each in factors):
            return value
        case ops.guarded, (_, *factors) if all(isinstance(each, Const) for each in factors):
            return zero(instr.type)
        case ops.select | ops.pick | ops.guarded, _:
            return None
    match instr.op, args:
        case operator.pow, (x, Const(1 | 1.0)) if x.type == instr.type and isinstance(x.type, _REAL):
            return x  # x**1 -> x, for an exponent of any type; a complex one is rounded on its way through polar form
    if instr.keywords or not args or any(arg.type != args[0].type for arg in args):
        return None
    if (order := ops.of(instr.op).comparison) and isinstance(args[0].type, types.Integer) and args[0] == args[1]:
        return Const(order.of_equals, types.boolean)  # for floats not: NaN
    if args[0].type != instr.type:
        return None
    match instr.type:
        case types.Float():
            return _simplify_float(instr.op, args)
        case types.Integer():
            return _simplify_integer(instr.op, args)
        case types.Boolean():
            return _simplify_boolean(instr.op, args)
        case _:
            return None


def _simplify_float(op: ops.Op, args: tuple[Operand, ...]) -> Operand | None:
    """Each result is the operand bit for bit (a quiet NaN stays the NaN it is)."""
    match args:
        case (x, Const(float(c))):
            if c == 1.0 and op in (operator.mul, operator.truediv):
                return x  # x*1 -> x, x/1 -> x
            if op is operator.sub and _is_plus_zero(c):
                return x  # x - 0.0 -> x; x - -0.0 is 0.0 for -0.0
            if op is operator.add and _is_minus_zero(c):
                return x  # x + -0.0 -> x; x + 0.0 is 0.0 for -0.0
        case (Const(float(c)), x):
            if c == 1.0 and op is operator.mul:
                return x  # 1*x -> x
            if op is operator.add and _is_minus_zero(c):
                return x  # -0.0 + x -> x
        case (Instr(op=operator.neg, args=(x,)),) if op is operator.neg:
            return x  # -(-x) -> x: the sign bit, twice
    return None


def _is_plus_zero(value: float) -> bool:
    return value == 0.0 and math.copysign(1.0, value) > 0.0


def _is_minus_zero(value: float) -> bool:
    return value == 0.0 and math.copysign(1.0, value) < 0.0


def _simplify_integer(op: ops.Op, args: tuple[Operand, ...]) -> Operand | None:
    match args:
        case (x, Const(0)):
            if op in (operator.add, operator.sub, operator.or_, operator.xor, operator.lshift, operator.rshift):
                return x  # x+0 -> x, x-0 -> x, x|0 -> x, x^0 -> x, x<<0 -> x, x>>0 -> x
            if op in (operator.mul, operator.and_):
                return args[1]  # x*0 -> 0, x&0 -> 0
        case (x, Const(1)):
            if op in (operator.mul, operator.floordiv):
                return x  # x*1 -> x, x//1 -> x
            if op is operator.mod:
                return Const(0, x.type)  # x%1 -> 0
        case (Const(0), x):
            if op in (operator.add, operator.or_, operator.xor):
                return x  # 0+x -> x, 0|x -> x, 0^x -> x
            if op in (operator.mul, operator.and_):
                return args[0]  # 0*x -> 0, 0&x -> 0
        case (Const(1), x) if op is operator.mul:
            return x  # 1*x -> x
        case (Instr(op=inner, args=(x,)),) if inner is op and op in (operator.neg, operator.invert):
            return x  # -(-x) -> x, ~~x -> x
    if len(args) == 2 and args[0] == args[1]:
        if op in (operator.sub, operator.xor):
            return Const(0, args[0].type)  # x-x -> 0, x^x -> 0
        if op in (operator.and_, operator.or_, max, min):
            return args[0]  # x&x -> x, x|x -> x, max(x, x) -> x
    return None


def _simplify_boolean(op: ops.Op, args: tuple[Operand, ...]) -> Operand | None:
    match args:
        case (Instr(op=operator.not_, args=(x,)),) if op is operator.not_ and x.type == types.boolean:
            return x  # not not x -> x
        case (x, Const(bool(c))) | (Const(bool(c)), x):
            if op is operator.and_:
                return x if c else Const(False, types.boolean)  # x & True -> x, x & False -> False
            if op is operator.or_:
                return Const(True, types.boolean) if c else x  # x | True -> True, x | False -> x
            if (op is operator.eq and c) or (op in (operator.ne, operator.xor) and not c):
                return x  # x == True -> x, x != False -> x
        case (x, y) if x == y and op in (operator.and_, operator.or_):
            return x  # x & x -> x
    return None
