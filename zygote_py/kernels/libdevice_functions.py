"""The functions of `numba.cuda.libdevice`, as operations of the IR.

libdevice.sinf(x)           math.sin %x : f32           which a device computes by the same function
libdevice.fast_sinf(x)      fast_sin %x : f32
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from zygote_py.frontend.values import Emitter, LoweredValue, lowers
from zygote_py.ir import Const, Operand, Type, ops
from zygote_py.numba_adapter import FAST_ARGUMENTS, LIBDEVICE_ARGUMENTS

_NAMED: dict[str, ops.Op] = {
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "fabs": builtins.abs,
    "floor": np.floor,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fmod": np.fmod,
    "rint": np.rint,
    "tgamma": math.gamma,
    "trunc": np.trunc,
}


def register_libdevice(module: Any) -> None:
    """Let the front end know the functions of the module that takes the place of `numba.cuda.libdevice`."""
    for name in LIBDEVICE_ARGUMENTS:
        make = _WRITTEN.get(name) or _applied(_NAMED.get(name) or getattr(math, name))
        _lower(getattr(module, name), make)
        _lower(getattr(module, f"{name}f"), make)
    for name in FAST_ARGUMENTS:
        _lower(getattr(module, name), _applied(ops.FAST[name]))


_Make = Callable[[Emitter, Type, list[Operand]], Operand]


def _lower(function: Callable[..., object], make: _Make) -> None:
    @lowers(function)
    def value(at: Emitter, type_: Type, *args: LoweredValue) -> LoweredValue:
        return LoweredValue(type_, (make(at, type_, [at.cast(each.leaves[0], type_) for each in args]),))


def _applied(op: ops.Op) -> _Make:
    return lambda at, kind, args: at.emit(op, tuple(args), kind)


def _rsqrt(at: Emitter, kind: Type, args: list[Operand]) -> Operand:
    return at.emit(operator.truediv, (Const(1.0, kind), at.emit(math.sqrt, tuple(args), kind)), kind)


def _exp10(at: Emitter, kind: Type, args: list[Operand]) -> Operand:
    return at.emit(operator.pow, (Const(10.0, kind), *args), kind)


def _fdim(at: Emitter, kind: Type, args: list[Operand]) -> Operand:
    return at.emit(np.maximum, (at.emit(operator.sub, tuple(args), kind), Const(0.0, kind)), kind)


def _fma(at: Emitter, kind: Type, args: list[Operand]) -> Operand:
    x, y, z = args
    return at.emit(operator.add, (at.emit(operator.mul, (x, y), kind), z), kind)


_WRITTEN: dict[str, _Make] = {"rsqrt": _rsqrt, "exp10": _exp10, "fdim": _fdim, "fma": _fma}
