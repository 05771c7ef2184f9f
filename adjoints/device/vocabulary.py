"""The operations that the threads of a device can run, and what takes the place of others.

    %y = np.exp %x : f32            ->      %y = math.exp %x : f32
    %y = np.where %c, %a, %b : f64  ->      %y = select %c, %a, %b : f64

What CUDA has no code for is refused, with its line: allocation, exceptions, linear algebra, lists. (A function for CUDA
compiles with `raise` in it, but the thread then ends without a word.)
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable

import numpy as np
from numba import types

from zygote_py.adjoints.device.formulas import written_out
from zygote_py.adjoints.errors import refuse
from zygote_py.ir import Block, Builder, Const, Function, Instr, Raise, Routine, Type, functions_of, ops

_MATH = """
    acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh degrees erf erfc exp exp2 expm1 fabs floor fmod frexp
    gamma hypot isfinite isinf isnan ldexp lgamma log log10 log1p log2 modf pow radians sin sinh sqrt tan tanh trunc
"""
_BUILTINS = (abs, bool, float, int, len, max, min, range, round, complex)
_NUMPY = (np.bool_, np.float32, np.float64, np.complex64, np.complex128, np.maximum, np.minimum)
_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_KNOWN: frozenset[ops.Op] = frozenset(
    [getattr(math, name) for name in _MATH.split()] + [*_BUILTINS, *_NUMPY, *_INTEGERS, np.real, np.imag, np.conjugate]
)
_SAME = "copysign cos cosh exp exp2 expm1 fmod hypot isfinite isinf isnan log log10 log1p log2 sin sinh sqrt tan tanh"
# Functions of NumPy that another module has under another name.
_RENAMED: dict[ops.Op, ops.Op] = {
    np.arccos: math.acos,
    np.arccosh: math.acosh,
    np.arcsin: math.asin,
    np.arcsinh: math.asinh,
    np.arctan: math.atan,
    np.arctan2: math.atan2,
    np.arctanh: math.atanh,
    np.absolute: builtins.abs,
    np.fabs: builtins.abs,
    np.deg2rad: math.radians,
    np.radians: math.radians,
    np.rad2deg: math.degrees,
    np.degrees: math.degrees,
    np.remainder: operator.mod,
    np.floor_divide: operator.floordiv,
    math.trunc: int,
    **{getattr(np, name): getattr(math, name) for name in _SAME.split()},
}
_OWN = (
    *(ops.getitem, ops.setitem, ops.accumulate, ops.initialize, ops.select, ops.const, ops.pack, ops.dim, ops.pick),
    *(ops.range_length, ops.record, ops.stop, ops.release, slice),
    *(ops.thread_index, ops.block_index, ops.block_size, ops.blocks, ops.grid, ops.grid_step, ops.barrier, ops.shared),
    *(ops.element_if, ops.raise_to, ops.lower_to, ops.latch, ops.cube_root),
    *ops.ATOMIC.values(),
    *ops.FAST.values(),
)


def use_device_operations(function: Function, *, where: str = "a CUDA kernel") -> None:
    """Replace the operations of a function and its routines that a device has not, in place.

    Raises DifferentiationError for those that nothing takes the place of.
    """
    for each in functions_of(function):
        for block in each.blocks:
            if isinstance(block.terminator, Raise):
                raise refuse(f"exceptions cannot be raised in {where}", block.loc, "return a number that tells of it")
            block.instrs = [found for instr in block.instrs for found in _replaced(instr, where)]


def _replaced(instr: Instr, where: str) -> list[Instr]:
    """Return the instructions in the place of one, which is the last of them."""
    op, kinds = instr.op, (instr.type, *(arg.type for arg in instr.args))
    is_complex = any(isinstance(kind, types.Complex) for kind in kinds)
    if is_complex and (op in _RENAMED or op in _WRITTEN) and op not in (np.absolute, np.square, np.where):
        raise refuse(f"{ops.name_of(op)} of complex numbers cannot be called in {where}", instr.loc)
    if all(map(_is_number, kinds)):
        if isinstance(instr.type, types.Float) and not instr.keywords and (made := written_out(instr)) is not None:
            return [each for one in made for each in ([one] if one is instr else _replaced(one, where))]
        b = Builder(Block(), instr.loc, instr.origin)
        if op in _RENAMED and not instr.keywords and not (op is np.fmod and not isinstance(instr.type, types.Float)):
            _cast(b, instr)
            instr.op = _RENAMED[op]
            return [*b.block.instrs, instr]
        whole = isinstance(instr.type, types.Integer)
        if (make := _WRITTEN.get(op)) is not None and not instr.keywords and not (whole and op is np.reciprocal):
            if op is not np.where:
                _cast(b, instr)
            make(b, instr)
            return [*b.block.instrs, instr]
        if op is np.round and (len(instr.args) == 1 or instr.args[1:] == (Const(0, types.int64),)):
            instr.op, instr.args, instr.keywords = np.rint, instr.args[:1], ()
            return _replaced(instr, where)
        scalar = ops.of(op).scalar
        if scalar is not None and not instr.keywords:
            instr.op = scalar
            return [instr]
    if ops.of(op).comparison:
        _compare_in_single_precision(instr)
    if ops.of(op).syntax or op in _OWN or isinstance(op, Routine):
        return [instr]
    if op in _KNOWN and not (op is math.log and len(instr.args) == 2):
        return [instr]
    if ops.of(op).role is ops.Role.CHECK or op is ops.refuse:
        raise refuse(f"{ops.name_of(op)} raises an exception, which cannot be done in {where}", instr.loc)
    if ops.of(op).effect is ops.Effect.ALLOCATE or isinstance(instr.type, types.Array | types.List):
        raise refuse(f"memory cannot be allocated in {where}, as {ops.name_of(op)} does", instr.loc)
    raise refuse(f"{ops.name_of(op)} cannot be called in {where}", instr.loc)


def _compare_in_single_precision(instr: Instr) -> None:
    """Compare a number of single precision with a constant in that precision, if the constant has it.

    Numba compares in double precision, which a device does more slowly.
    """
    match instr.args:
        case (Instr(args=(value,)) as cast, Const(constant, types.float64)) if (
            ops.of(cast.op).family is ops.Family.CAST
            and (cast.type, value.type) == (types.float64, types.float32)
            and isinstance(constant, float)
            and float(np.float32(constant)) == constant
        ):
            instr.args = (value, Const(constant, types.float32))


def _is_number(kind: Type) -> bool:
    return isinstance(kind, types.Number | types.Boolean)


def _cast(b: Builder, instr: Instr) -> None:
    """Convert whole arguments of a function with a float as its result, as NumPy does."""
    if not isinstance(instr.type, types.Float):
        return
    op: ops.Op = np.float32 if instr.type == types.float32 else float
    instr.args = tuple(
        b.call(op, arg, type=instr.type) if isinstance(arg.type, types.Integer | types.Boolean) else arg
        for arg in instr.args
    )


def _square(b: Builder, instr: Instr) -> None:
    (value,) = instr.args
    instr.op, instr.args = operator.mul, (value, value)


def _where(b: Builder, instr: Instr) -> None:
    instr.op = ops.select


def _sign(b: Builder, instr: Instr) -> None:
    (value,) = instr.args
    kind = value.type
    is_whole = isinstance(kind, types.Integer)
    zero, one = (Const(number if is_whole else float(number), kind) for number in (0, 1))
    is_more = b.call(operator.gt, value, zero, type=types.boolean)
    is_zero = b.call(operator.eq, value, zero, type=types.boolean)
    other = b.call(ops.select, is_zero, zero, value, type=kind)  # of NaN
    if is_whole and not kind.signed:  # type: ignore[attr-defined]
        instr.op, instr.args = ops.select, (is_more, one, other)
        return
    positive = b.call(ops.select, is_more, one, other, type=kind)
    is_less = b.call(operator.lt, value, zero, type=types.boolean)
    instr.op, instr.args = ops.select, (is_less, Const(-1 if is_whole else -1.0, kind), positive)


def _reciprocal(b: Builder, instr: Instr) -> None:
    instr.op, instr.args = operator.truediv, (Const(1.0, instr.type), *instr.args)


def _power(b: Builder, instr: Instr) -> None:
    instr.op = operator.pow


def _ldexp(b: Builder, instr: Instr) -> None:
    value, exponent = instr.args
    instr.op, instr.args = math.ldexp, (value, b.call(int, exponent, type=types.int64))


def _signbit(b: Builder, instr: Instr) -> None:
    (value,) = instr.args
    sign = b.call(math.copysign, Const(1.0, value.type), value, type=value.type)
    instr.op, instr.args = operator.lt, (sign, Const(0.0, value.type))


_WRITTEN: dict[ops.Op, Callable[[Builder, Instr], None]] = {
    np.square: _square,
    np.where: _where,
    np.sign: _sign,
    np.reciprocal: _reciprocal,
    np.power: _power,
    np.float_power: _power,
    np.ldexp: _ldexp,
    np.signbit: _signbit,
}
