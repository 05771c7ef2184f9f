"""Elementwise operations on one element: scalar instructions, with every cast explicit.

    %y = mul %x, %w : f64[:]        where %x is f32[:]          %t = np.float64 %xi : f64
                                                                %yi = mul %t, %wi : f64

The result is that of Numba for an array expression: the operation on scalars of the elements' types, cast to the
result's element type, with NumPy's treatment of errors. A division of floats by zero is infinite and does not raise, so
it becomes `np.divide`, unless the whole function uses NumPy's error model; an integer divided by zero gives 0.
"""

from __future__ import annotations

import operator
from typing import Protocol

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Const, Operand, Type
from zygote_py.ir.ops import Family

# Parametric functions return double precision for single precision, which is then rounded.
_IN_DOUBLE: dict[Type, Type] = {types.float32: types.float64, types.complex64: types.complex128}


class Emit(Protocol):
    """Appends a scalar instruction to a loop."""

    def __call__(self, op: ops.Op, *args: Operand, type: Type) -> Operand:
        """Return the result of the instruction."""


def cast(emit: Emit, operand: Operand, type: Type) -> Operand:
    """Return the number cast to a type."""
    own = operand.type
    if own == type:
        return operand
    if isinstance(operand, Const):
        return Const(converted(operand.value, type), type)
    if isinstance(type, types.Boolean):
        return emit(operator.ne, operand, Const(converted(0, own), own), type=type)
    if type == types.float64 and isinstance(own, types.Integer):
        return emit(float, operand, type=type)
    return emit(getattr(np, type.name), operand, type=type)


def converted(value: object, type: Type) -> object:
    """Return a number as the Python value of a constant of a type."""
    match type:
        case types.Boolean():
            return bool(value)
        case types.Integer():
            return int(np.array(value).astype(type.name))
        case types.Float():
            return float(np.array(value).astype(type.name))
        case _:
            return complex(np.array(value).astype(type.name))


def joint_type(*found: Type) -> Type:
    """Return NumPy's common type of numbers of these types."""
    result: Type = getattr(types, np.result_type(*(np.dtype(type.name) for type in found)).name)
    return result


def is_inexact(type: Type) -> bool:
    """Return whether this is a type of floating-point numbers, real or complex."""
    return isinstance(type, types.Float | types.Complex)


def _working_type(result: Type) -> Type:
    """Return the type in which arithmetic is done: Numba computes with integers of 64 bits."""
    if is_inexact(result):
        return result
    return types.uint64 if isinstance(result, types.Integer) and result.name.startswith("u") else types.int64


def compute(emit: Emit, op: ops.Op, args: tuple[Operand, ...], result: Type, python_errors: bool) -> Operand:
    """Return one element of `op(*args)`, of the type `result`."""
    record = ops.of(op)
    scalar = record.scalar or op
    work = _working_type(result)
    match record.family:
        case Family.COMPARISON:
            return emit(scalar, *_comparable(emit, args), type=types.boolean)
        case Family.PARAMETRIC:
            return cast(emit, emit(op, *args, type=_IN_DOUBLE.get(result, result)), result)
        case Family.LOGICAL:
            truths = [cast(emit, arg, types.boolean) for arg in args]
            return cast(emit, emit(scalar, *truths, type=types.boolean), result)
        case Family.INVERSION | Family.BITWISE:
            return _bits(emit, scalar, args, result, work)
        case Family.ARITHMETIC | Family.NEGATION:
            return cast(emit, emit(scalar, *(cast(emit, arg, work) for arg in args), type=work), result)
        case Family.IDENTITY:
            return cast(emit, args[0], result)
        case Family.TRUE_DIVISION:
            # In Numba's array expressions, too, complex division raises.
            quiet = python_errors and not isinstance(result, types.Complex)
            by = np.divide if quiet else operator.truediv
            return emit(by, *(cast(emit, arg, result) for arg in args), type=result)
        case Family.WHOLE_DIVISION:
            return _divide_whole(emit, op, args, result, work)
        case Family.POWER:
            return _power(emit, args, result, work, python_errors)
    match op, args:
        case np.copy, (array,):
            return cast(emit, array, result)
        case ops.stop, (array,):
            return emit(op, array, type=result)
        case np.where, (condition, then, orelse):
            chosen = cast(emit, condition, types.boolean)
            return emit(ops.select, chosen, cast(emit, then, result), cast(emit, orelse, result), type=result)
        case np.clip, _:
            return _clip(emit, args, result)
        case np.logical_not, (value,):
            return emit(operator.not_, cast(emit, value, types.boolean), type=types.boolean)
    return _function(emit, op, args, result)


def _comparable(emit: Emit, args: tuple[Operand, ...]) -> list[Operand]:
    """Return the operands of a comparison: cast to one type if one is inexact, unchanged if all are integers."""
    if not any(is_inexact(arg.type) for arg in args):
        return list(args)
    work = joint_type(*(arg.type for arg in args))
    return [cast(emit, arg, work) for arg in args]


def _clip(emit: Emit, args: tuple[Operand, ...], result: Type) -> Operand:
    value, low, high = args
    given = [arg for arg in args if not isinstance(arg.type, types.NoneType)]
    work = joint_type(*(arg.type for arg in given))
    value = cast(emit, value, work)
    for op, bound in ((max, low), (min, high)):
        if not isinstance(bound.type, types.NoneType):
            value = emit(op, value, cast(emit, bound, work), type=work)
    return cast(emit, value, result)


def _bits(emit: Emit, op: ops.Op, args: tuple[Operand, ...], result: Type, work: Type) -> Operand:
    truths = all(isinstance(arg.type, types.Boolean) for arg in args)
    if truths and (op is operator.invert or isinstance(result, types.Boolean)):
        return emit(operator.not_ if op is operator.invert else op, *args, type=result)
    return cast(emit, emit(op, *(cast(emit, arg, work) for arg in args), type=work), result)


def _divide_whole(emit: Emit, op: ops.Op, args: tuple[Operand, ...], result: Type, work: Type) -> Operand:
    """Compute `//` or `%`, for which Python's scalars raise if the divisor is zero."""
    a, b = (cast(emit, arg, work) for arg in args)
    if isinstance(b, Const) and b.value:
        return cast(emit, emit(op, a, b, type=work), result)
    zero, one = (Const(converted(value, work), work) for value in (0, 1))
    fails = emit(operator.eq, b, zero, type=types.boolean)
    divisor = emit(ops.select, fails, one, b, type=work)
    quotient = emit(op, a, divisor, type=work)
    instead: Operand = zero
    if is_inexact(work):
        instead = emit(np.divide if op is operator.floordiv else np.remainder, a, b, type=work)
    return cast(emit, emit(ops.select, fails, instead, quotient, type=work), result)


def _power(emit: Emit, args: tuple[Operand, ...], result: Type, work: Type, python_errors: bool) -> Operand:
    base, exponent = args
    if not (isinstance(result, types.Float) and isinstance(exponent.type, types.Integer)):
        return cast(emit, emit(operator.pow, *(cast(emit, arg, work) for arg in args), type=work), result)
    # A float to an integer power is computed by multiplication, in the float's own type.
    base = base if isinstance(base.type, types.Float) else cast(emit, base, result)
    exponent = cast(emit, exponent, types.int64)
    own = base.type
    if isinstance(exponent, Const) and isinstance(exponent.value, int) and exponent.value < 0 and python_errors:
        power = emit(operator.pow, base, Const(-exponent.value, types.int64), type=own)
        return cast(emit, emit(np.divide, Const(1.0, own), power, type=own), result)
    return cast(emit, emit(operator.pow, base, exponent, type=own), result)


def _function(emit: Emit, op: ops.Op, args: tuple[Operand, ...], result: Type) -> Operand:
    """Compute any other function: its arguments are cast to the type of the result, if that is a number type."""
    if op is np.ldexp:
        first, second = args
        return emit(op, cast(emit, first, result), second, type=result)
    if isinstance(result, types.Boolean) or any(isinstance(arg.type, types.Complex) for arg in args):
        if isinstance(result, types.Complex):
            args = tuple(cast(emit, arg, result) for arg in args)
        return emit(op, *args, type=result)
    return emit(op, *(cast(emit, arg, result) for arg in args), type=result)
