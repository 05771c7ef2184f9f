"""What an elementwise operation does to one element: scalar instructions, with every cast explicit.

    %y = mul %x, %w : f64[:]        where %x is f32[:]          %t = np.float64 %xi : f64
                                                                %yi = mul %t, %wi : f64

It is what Numba makes of an expression of arrays: the operation on scalars of the elements' types, cast to the result's
element type, with NumPy's treatment of errors. A division of floats by zero is infinite and raises nothing, so that it
is `np.divide`, unless the whole function has NumPy's treatment; an integer divided by zero gives 0.
"""

from __future__ import annotations

import builtins
import operator
from typing import Protocol

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.arrays.kinds import COMPARISONS, OF_ONE
from zygote_py.ir.core import Const, Operand, Type

_ARITHMETIC: dict[ops.Op, ops.Op] = {
    operator.add: operator.add,
    operator.sub: operator.sub,
    operator.mul: operator.mul,
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
}
_BITS: dict[ops.Op, ops.Op] = {
    operator.and_: operator.and_,
    operator.or_: operator.or_,
    operator.xor: operator.xor,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor,
    operator.lshift: operator.lshift,
    operator.rshift: operator.rshift,
    np.left_shift: operator.lshift,
    np.right_shift: operator.rshift,
}
_LOGIC: dict[ops.Op, ops.Op] = {
    np.logical_and: operator.and_,
    np.logical_or: operator.or_,
    np.logical_xor: operator.xor,
}
# The functions of `OF_ONE` give a number of double precision for one of single precision, which is rounded then.
_IN_DOUBLE: dict[Type, Type] = {types.float32: types.float64, types.complex64: types.complex128}
# Cheap enough to be computed again rather than kept in an array.
_CHEAP: list[ops.Op] = [
    *_ARITHMETIC,
    *_BITS,
    *_LOGIC,
    *COMPARISONS,
    operator.neg,
    operator.pos,
    operator.invert,
    builtins.abs,
    np.negative,
    np.positive,
    np.absolute,
    np.invert,
    np.logical_not,
    np.maximum,
    np.minimum,
    np.square,
    np.where,
    np.clip,
    np.copy,
    ops.stop,
    ops.getitem,
]


def is_cheap(op: ops.Op) -> bool:
    """Whether an operation costs about as much as reading its result from memory."""
    return op in _CHEAP


class Emit(Protocol):
    """Adds an instruction of scalars to a loop."""

    def __call__(self, op: ops.Op, *args: Operand, type: Type) -> Operand:
        """What the instruction computes."""


def cast(emit: Emit, operand: Operand, type: Type) -> Operand:
    """The number as one of another type."""
    own = operand.type
    if own == type:
        return operand
    if isinstance(operand, Const):
        return Const(_converted(operand.value, type), type)
    if isinstance(type, types.Boolean):
        return emit(operator.ne, operand, Const(_converted(0, own), own), type=type)
    if type == types.float64 and isinstance(own, types.Integer):
        return emit(float, operand, type=type)
    return emit(getattr(np, type.name), operand, type=type)


def _converted(value: object, type: Type) -> object:
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
    """The type that numbers of these types have in common, as NumPy has it."""
    result: Type = getattr(types, np.result_type(*(np.dtype(type.name) for type in found)).name)
    return result


def is_inexact(type: Type) -> bool:
    """Whether this is a type of floating-point numbers, real or complex."""
    return isinstance(type, types.Float | types.Complex)


def _working_type(result: Type) -> Type:
    """The type that arithmetic is done in: Numba computes with integers of 64 bits."""
    if is_inexact(result):
        return result
    return types.uint64 if isinstance(result, types.Integer) and result.name.startswith("u") else types.int64


def compute(emit: Emit, op: ops.Op, args: tuple[Operand, ...], result: Type, python_errors: bool) -> Operand:
    """One element of `op(*args)`, of the type `result`."""
    if op in COMPARISONS:
        return emit(COMPARISONS[op], *_comparable(emit, args), type=types.boolean)
    if op is np.copy or op in (operator.pos, np.positive):
        return cast(emit, args[0], result)
    if op is ops.stop:
        return emit(op, args[0], type=result)
    if op is np.where:
        condition, then, orelse = args
        chosen = cast(emit, condition, types.boolean)
        return emit(ops.select, chosen, cast(emit, then, result), cast(emit, orelse, result), type=result)
    if op is np.clip:
        return _clip(emit, args, result)
    if op in OF_ONE:
        return cast(emit, emit(op, *args, type=_IN_DOUBLE.get(result, result)), result)
    if op in _LOGIC:
        truths = [cast(emit, arg, types.boolean) for arg in args]
        return cast(emit, emit(_LOGIC[op], *truths, type=types.boolean), result)
    if op is np.logical_not:
        return emit(operator.not_, cast(emit, args[0], types.boolean), type=types.boolean)
    work = _working_type(result)
    if op in _BITS or op in (operator.invert, np.invert):
        return _bits(emit, op, args, result, work)
    if op in _ARITHMETIC:
        return cast(emit, emit(_ARITHMETIC[op], *(cast(emit, arg, work) for arg in args), type=work), result)
    if op in (operator.neg, np.negative):
        return cast(emit, emit(operator.neg, cast(emit, args[0], work), type=work), result)
    if op in (operator.truediv, np.divide):
        # Complex division raises in Numba's expressions of arrays too.
        quiet = python_errors and not isinstance(result, types.Complex)
        return emit(np.divide if quiet else operator.truediv, *(cast(emit, arg, result) for arg in args), type=result)
    if op in (operator.floordiv, operator.mod):
        return _divide_whole(emit, op, args, result, work)
    if op is operator.pow:
        return _power(emit, args, result, work, python_errors)
    return _function(emit, op, args, result)


def _comparable(emit: Emit, args: tuple[Operand, ...]) -> list[Operand]:
    """Operands to be compared: of one type if one is inexact, and as they are if all are whole numbers."""
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
    if op in (operator.invert, np.invert):
        if truths:
            return emit(operator.not_, args[0], type=result)
        return cast(emit, emit(operator.invert, cast(emit, args[0], work), type=work), result)
    if truths and isinstance(result, types.Boolean):
        return emit(_BITS[op], *args, type=result)
    return cast(emit, emit(_BITS[op], *(cast(emit, arg, work) for arg in args), type=work), result)


def _divide_whole(emit: Emit, op: ops.Op, args: tuple[Operand, ...], result: Type, work: Type) -> Operand:
    """`//` and `%`, which Python's scalars raise for where the divisor is zero."""
    a, b = (cast(emit, arg, work) for arg in args)
    if isinstance(b, Const) and b.value:
        return cast(emit, emit(op, a, b, type=work), result)
    zero, one = (Const(_converted(value, work), work) for value in (0, 1))
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
    # A float to the power of an integer is multiplied out, in the float's own type.
    base = base if isinstance(base.type, types.Float) else cast(emit, base, result)
    exponent = cast(emit, exponent, types.int64)
    own = base.type
    if isinstance(exponent, Const) and isinstance(exponent.value, int) and exponent.value < 0 and python_errors:
        power = emit(operator.pow, base, Const(-exponent.value, types.int64), type=own)
        return cast(emit, emit(np.divide, Const(1.0, own), power, type=own), result)
    return cast(emit, emit(operator.pow, base, exponent, type=own), result)


def _function(emit: Emit, op: ops.Op, args: tuple[Operand, ...], result: Type) -> Operand:
    """Any other function: its arguments are cast to the result's type, if that is one of numbers."""
    if op is np.ldexp:
        first, second = args
        return emit(op, cast(emit, first, result), second, type=result)
    if isinstance(result, types.Boolean) or any(isinstance(arg.type, types.Complex) for arg in args):
        if isinstance(result, types.Complex):
            args = tuple(cast(emit, arg, result) for arg in args)
        return emit(op, *args, type=result)
    return emit(op, *(cast(emit, arg, result) for arg in args), type=result)
