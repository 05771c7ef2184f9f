"""The functions of `numba.cuda` for the threads of a kernel, as operations of the IR.

cuda.grid(2)                        (grid 2, 0), (grid 2, 1)
cuda.threadIdx.x                    thread_index 0
cuda.shared.array(16, float32)      shared 16 : f32[::1]
cuda.local.array(4, float64)        record 4 : f64[::1]
cuda.atomic.add(out, i, v)          atomic_add %out, %v, %i
cuda.syncthreads()                  barrier
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.frontend.expressions.arrays import lengths
from zygote_py.frontend.values import Emitter, LoweredValue, components, lowers
from zygote_py.ir import Const, Operand, Type, ops
from zygote_py.kernels.libdevice_functions import register_libdevice

_INDEX = types.int64
_REGISTERS = dict(
    zip(
        numba_adapter.REGISTERS,
        (ops.thread_index, ops.block_index, ops.block_size, ops.blocks),
        strict=True,
    )
)


@functools.cache
def register() -> None:
    """Let the front end know these functions."""
    cuda: Any = numba_adapter.stand_ins()
    for name, op in _REGISTERS.items():
        for axis, letter in enumerate(numba_adapter.AXES):
            _lower_register(getattr(getattr(cuda, name), f"read_{letter}"), op, axis)
    for function, op in ((cuda.grid, ops.grid), (cuda.gridsize, ops.grid_step)):
        _lower_grid(function, op)
    for name in ("threadfence", "threadfence_block", "threadfence_system", "syncthreads"):
        _lower_barrier(getattr(cuda, name), is_barrier=name == "syncthreads")
    _lower_array(cuda.shared.array, ops.shared)
    _lower_array(cuda.local.array, ops.record)
    for name, op in ops.ATOMIC.items():
        _lower_atomic(getattr(cuda.atomic, name), op)

    register_libdevice(cuda.libdevice)

    @lowers(cuda.const.array_like)
    def array_like(at: Emitter, type_: Type, array: LoweredValue) -> LoweredValue:
        return array

    @lowers(cuda.selp)
    def selp(
        at: Emitter, type_: Type, condition: LoweredValue, then: LoweredValue, orelse: LoweredValue
    ) -> LoweredValue:
        chosen = at.cast(condition.leaves[0], types.boolean)
        return LoweredValue(type_, (at.emit(ops.select, (chosen, then.leaves[0], orelse.leaves[0]), type_),))

    @lowers(cuda.fma)
    def fma(at: Emitter, type_: Type, a: LoweredValue, b: LoweredValue, c: LoweredValue) -> LoweredValue:
        x, y, z = (at.cast(each.leaves[0], type_) for each in (a, b, c))
        product = at.emit(operator.mul, (x, y), type_)
        return LoweredValue(type_, (at.emit(operator.add, (product, z), type_),))

    @lowers(cuda.rsqrt)
    def rsqrt(at: Emitter, type_: Type, x: LoweredValue) -> LoweredValue:
        root = at.emit(math.sqrt, (at.cast(x.leaves[0], type_),), type_)
        return LoweredValue(type_, (at.emit(operator.truediv, (Const(1.0, type_), root), type_),))

    @lowers(cuda.cbrt)
    def cbrt(at: Emitter, type_: Type, x: LoweredValue) -> LoweredValue:
        return LoweredValue(type_, (at.emit(np.cbrt, (at.cast(x.leaves[0], type_),), type_),))


def _lower_register(function: Callable[..., object], op: ops.Op, axis: int) -> None:
    @lowers(function)
    def read(at: Emitter, type_: Type) -> LoweredValue:
        return LoweredValue(type_, (at.emit(op, (Const(axis, _INDEX),), type_),))


def _lower_grid(function: Callable[..., object], op: ops.Op) -> None:
    @lowers(function)
    def number(at: Emitter, type_: Type, ndim: LoweredValue) -> LoweredValue:
        count = type_.count if isinstance(type_, types.UniTuple) else 1
        axes = [at.emit(op, (Const(count, _INDEX), Const(axis, _INDEX)), _INDEX) for axis in range(count)]
        return LoweredValue(type_, tuple(axes))


def _lower_barrier(function: Callable[..., object], *, is_barrier: bool) -> None:
    @lowers(function)
    def wait(at: Emitter, type_: Type) -> LoweredValue:
        if is_barrier:
            at.emit(ops.barrier, (), types.none)
        return LoweredValue(types.none, ())


def _lower_array(function: Callable[..., object], op: ops.Op) -> None:
    @lowers(function)
    def array(
        at: Emitter, type_: Type, shape: LoweredValue, dtype: LoweredValue, alignment: LoweredValue | None = None
    ) -> LoweredValue:
        return LoweredValue(type_, (at.emit(op, lengths(at, shape), type_),))


def _lower_atomic(function: Callable[..., object], op: ops.Op) -> None:
    @lowers(function)
    def update(at: Emitter, type_: Type, array: LoweredValue, index: LoweredValue, value: LoweredValue) -> LoweredValue:
        parts = components(index) if isinstance(index.type, types.BaseTuple) else (index,)
        places: list[Operand] = [at.cast(part.leaves[0], _INDEX) for part in parts]
        made = at.emit(op, (array.leaves[0], at.cast(value.leaves[0], type_), *places), type_)
        return LoweredValue(type_, (made,))
