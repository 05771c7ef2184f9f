"""Fold operations with constant operands at compile time, and remove identity operations.

    %a = mul 2.0, 3.0 : f64         ->      6.0 for %a
    %b = mul %x, 1.0 : f64          ->      %x for %b
    branch True, b1, b2             ->      jump b1

The folded result is exactly what the program would compute: only operations that IEEE 754 rounds correctly and integer
ones that do not overflow are folded, but not elementary functions, whose last bit depends on the library. Operations
that raise or warn are not folded. The identities on floats here are those that hold for NaN, infinities and the sign of
zero.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import reverse_postorder
from zygote_py.ir.building.cfg import drop_unreachable, remove_incoming
from zygote_py.ir.core import Branch, Const, Function, Instr, Jump, Operand, Type, Value, zero
from zygote_py.ir.walks import replace


def fold_constants(function: Function) -> None:
    """Fold instructions and branches of constants, including named ones."""
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
    """Replace an adjoint times -1 by its negative; the user's own products keep the sign of NaN."""
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
    """Return the constant that an instruction of constants computes, or None if it must run."""
    match instr.op, args:
        case operator.eq | operator.ne, (Const(str(one)), Const(str(other))):
            return Const(bool(instr.op(one, other)), types.boolean)
        case operator.is_ | operator.is_not, (Const(bool(one)), Const(bool(other))):
            return Const(bool(instr.op(one, other)), types.boolean)
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
    """Return whether NumPy and Numba agree bitwise on this operation for these types."""
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
    """Return a constant as the arithmetic of its type is defined: floats of NumPy, ints and bools of Python."""
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
    """Return the result as a constant; raise OverflowError if the type cannot hold an integer."""
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
    """Return the operand, or the constant, to which an instruction simplifies whatever its other operands are."""
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
        case operator.pow, (x, Const(1 | 1.0)) if x.type == instr.type and isinstance(x.type, _REAL):
            return x  # x**1 -> x, for an exponent of any type; a complex one is rounded in its polar form
    if instr.keywords or not args or any(arg.type != args[0].type for arg in args):
        return None
    if (order := ops.of(instr.op).comparison) and isinstance(args[0].type, types.Integer) and args[0] == args[1]:
        return Const(order.of_equals, types.boolean)  # not for floats: NaN
    if args[0].type != instr.type:
        return None
    identities = next((found for kind, found in _IDENTITIES.items() if isinstance(instr.type, kind)), None)
    return identities.applied(instr.op, args) if identities is not None else None


_X, _CONSTANT = "the other operand", "the constant itself"


class _Identities:
    """Identities of one kind of number with a constant operand, or with two equal operands.

    `rows` are operations, a constant, its possible sides, and the result; `of_equals` are operations on two equal
    operands; `undone` are involutions.
    """

    def __init__(
        self,
        rows: tuple[tuple[tuple[ops.Op, ...], object, tuple[int, ...], object], ...],
        of_equals: dict[ops.Op, object],
        undone: tuple[ops.Op, ...],
    ) -> None:
        self._of_equals = of_equals
        self._undone = undone
        self._found = {
            (op, side, repr(constant)): result
            for operations, constant, sides, result in rows
            for op in operations
            for side in sides
        }

    def applied(self, op: ops.Op, args: tuple[Operand, ...]) -> Operand | None:
        """Return the simplified result of an operation; None if there is none."""
        match args:
            case (Instr(op=inner, args=(x,)) as done,) if inner is op and op in self._undone and x.type == done.type:
                return x
        if len(args) != 2:
            return None
        for side, constant in ((_RIGHT, args[_RIGHT]), (_LEFT, args[_LEFT])):
            if isinstance(constant, Const):
                result = self._found.get((op, side, repr(constant.value)))
                if result is not None:
                    return _made(result, args[1 - side], constant)
        result = self._of_equals.get(op) if args[0] == args[1] else None
        return _made(result, args[0], args[0]) if result is not None else None


def _made(result: object, other: Operand, constant: Operand) -> Operand:
    if result is _X:
        return other
    return constant if result is _CONSTANT else Const(result, other.type)


_LEFT, _RIGHT = 0, 1
_EITHER = (_LEFT, _RIGHT)
# Each result is bitwise the operand (a quiet NaN stays the same NaN): x + 0.0 and x - -0.0 are 0.0 for -0.0.
_OF_FLOATS = _Identities(
    (
        ((operator.mul,), 1.0, _EITHER, _X),
        ((operator.truediv,), 1.0, (_RIGHT,), _X),
        ((operator.sub,), 0.0, (_RIGHT,), _X),
        ((operator.add,), -0.0, _EITHER, _X),
    ),
    {},
    (operator.neg,),
)
_OF_INTEGERS = _Identities(
    (
        ((operator.add, operator.or_, operator.xor), 0, _EITHER, _X),
        ((operator.sub, operator.lshift, operator.rshift), 0, (_RIGHT,), _X),
        ((operator.mul, operator.and_), 0, _EITHER, _CONSTANT),
        ((operator.mul,), 1, _EITHER, _X),
        ((operator.floordiv,), 1, (_RIGHT,), _X),
        ((operator.mod,), 1, (_RIGHT,), 0),
    ),
    {operator.sub: 0, operator.xor: 0, operator.and_: _X, operator.or_: _X, max: _X, min: _X},
    (operator.neg, operator.invert),
)
_OF_BOOLEANS = _Identities(
    (
        ((operator.and_,), True, _EITHER, _X),
        ((operator.and_,), False, _EITHER, _CONSTANT),
        ((operator.or_,), True, _EITHER, _CONSTANT),
        ((operator.or_,), False, _EITHER, _X),
        ((operator.eq,), True, _EITHER, _X),
        ((operator.ne, operator.xor), False, _EITHER, _X),
    ),
    {operator.and_: _X, operator.or_: _X},
    (operator.not_,),
)
_IDENTITIES = {types.Float: _OF_FLOATS, types.Integer: _OF_INTEGERS, types.Boolean: _OF_BOOLEANS}
