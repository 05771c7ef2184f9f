"""Views of arrays: other shapes, other orders of axes, parts of complex numbers, bytes as numbers of another type.

    x.reshape(n, -1)            np.reshape %x, %n, -1
    x.T                         np.transpose %x
    np.ravel(x)                 np.reshape %x, -1
    z.view(np.float64)          view %z : f64[:]            of complex128: real and imaginary parts in turn
    x[i].view(np.int64)         view %t : i64

Whether a derivative may depend on `view` is decided in `zygote_py.adjoints.analysis.byte_views`. Where the elements are
of another size, the last axis must be contiguous, as in NumPy; arrays in Fortran order, which Numba may interpret
differently, are then refused.
"""

from __future__ import annotations

import numpy as np
from numba import types

from zygote_py.frontend.expressions.arrays import is_array, lengths
from zygote_py.frontend.values import INT, Emitter, LoweredValue, check_last_axis, constant, lowers, plain, shape_of
from zygote_py.ir import Const, Operand, Type, is_scalar, itemsize, ops
from zygote_py.numpy_functions.creation.new_arrays import new_array


@lowers(np.ndarray.flatten)
def flatten(at: Emitter, type_: Type, array: LoweredValue) -> LoweredValue:
    """Return a copy of the elements in a row."""
    own = array.leaves[0].type
    assert isinstance(own, types.Array)
    copy = at.emit(np.copy, array.leaves, own.copy(layout="C", readonly=False))
    return _raveled(at, copy, type_)


@lowers(np.ravel)
def ravel(at: Emitter, type_: Type, array: LoweredValue) -> LoweredValue | None:
    """Return the elements in a row: a view of an array in C order."""
    if not is_array(array.type):
        return None
    is_view = getattr(array.type, "layout", "") == "C"
    return _raveled(at, array.leaves[0], type_) if is_view else flatten(at, type_, array)


def _raveled(at: Emitter, array: Operand, type_: Type) -> LoweredValue:
    is_row = getattr(array.type, "ndim", 0) == 1
    return LoweredValue(type_, (array if is_row else at.emit(np.reshape, (array, Const(-1, INT)), type_),))


@lowers(np.reshape)
def reshape(at: Emitter, type_: Type, array: LoweredValue, shape: LoweredValue, *others: LoweredValue) -> LoweredValue:
    """`np.reshape(array, shape)`, or `array.reshape` of the lengths one by one."""
    return LoweredValue(type_, (at.emit(np.reshape, (*array.leaves, *lengths(at, shape, *others)), type_),))


@lowers(np.transpose)
def transpose(
    at: Emitter, type_: Type, array: LoweredValue, axes: LoweredValue | None = None, *others: LoweredValue
) -> LoweredValue | None:
    """`np.transpose(array, axes)`, and the attribute `array.T`."""
    if not is_array(array.type):
        return None
    if getattr(array.leaves[0].type, "ndim", 0) <= 1:
        return LoweredValue(type_, array.leaves)
    if axes is None or isinstance(axes.type, types.NoneType):
        return LoweredValue(type_, (at.emit(np.transpose, array.leaves, type_),))
    if is_array(axes.type):
        raise at.refuse("`np.transpose` with an array of axes is not supported", "give a tuple", "transpose")
    return LoweredValue(type_, (at.emit(np.transpose, (*array.leaves, *lengths(at, axes, *others)), type_),))


@lowers(np.expand_dims)
def expand_dims(at: Emitter, type_: Type, array: LoweredValue, axis: LoweredValue) -> LoweredValue | None:
    """`np.expand_dims(array, axis)`"""
    if not is_array(array.type) or not is_scalar(plain(axis.type)):
        return None
    return LoweredValue(type_, (at.emit(np.expand_dims, (*array.leaves, at.cast(axis.leaves[0], INT)), type_),))


@lowers(np.broadcast_to)
def broadcast_to(at: Emitter, type_: Type, array: LoweredValue, shape: LoweredValue) -> LoweredValue | None:
    """`np.broadcast_to(array, shape)`, also of a number."""
    if not is_array(array.type):
        alone = new_array(at, ops.record, [], types.Array(plain(array.type), 0, "C"), array)
        return None if alone is None else broadcast_to(at, type_, alone, shape)
    return LoweredValue(type_, (at.emit(np.broadcast_to, (*array.leaves, *lengths(at, shape)), type_),))


@lowers(np.real)
def real(at: Emitter, type_: Type, value: LoweredValue) -> LoweredValue:
    """Return the real parts of numbers: a view of a complex array."""
    return LoweredValue(type_, (at.emit(np.real, value.leaves, type_),) if _is_complex(value) else value.leaves)


@lowers(np.imag)
def imag(at: Emitter, type_: Type, value: LoweredValue) -> LoweredValue | None:
    """Return the imaginary parts of numbers: a view of a complex array, new zeros for a real one."""
    if _is_complex(value):
        return LoweredValue(type_, (at.emit(np.imag, value.leaves, type_),))
    if is_array(value.type):
        return new_array(at, ops.zeros, shape_of(at, value.leaves[0]), type_)
    return LoweredValue(type_, (constant(0, type_),))


def _is_complex(value: LoweredValue) -> bool:
    own = plain(value.type)
    return isinstance(own.dtype if isinstance(own, types.Array) else own, types.Complex)


@lowers(np.ndarray.item, np.generic.item)
def item(at: Emitter, type_: Type, array: LoweredValue) -> LoweredValue | None:
    """Return the only element of an array; of a number, that is the number."""
    (operand,) = array.leaves
    own = operand.type
    if own == type_:
        return array
    if not isinstance(own, types.Array) or (own.ndim > 0 and own.layout == "A"):
        return None
    if own.ndim == 0:
        return LoweredValue(type_, (at.emit(ops.getitem, (operand,), own.dtype),))
    # It raises ValueError, as `item` does, unless there is one element.
    row = at.emit(np.reshape, (operand, Const(1, INT)), own.copy(ndim=1))
    return LoweredValue(type_, (at.emit(ops.getitem, (row, Const(0, INT)), own.dtype),))


_TOKEN = "view"


@lowers(np.ndarray.view, np.generic.view)
def view(at: Emitter, type_: Type, value: LoweredValue, dtype: LoweredValue | None = None) -> LoweredValue | None:
    """`value.view(dtype)`, of this type."""
    source = plain(value.type)
    (operand,) = value.leaves
    if source == type_:
        return LoweredValue(type_, (operand,))
    for each in (source, type_):
        if not is_scalar(each.dtype if isinstance(each, types.Array) else each):
            raise at.refuse(f"a view of {source} as {type_} is not supported", "use arrays of numbers", _TOKEN)
    if isinstance(source, types.Array) and itemsize(source) != itemsize(type_):
        _check_layout(at, operand, source)
    return LoweredValue(type_, (at.emit(ops.view, (operand,), type_),))


def _check_layout(at: Emitter, operand: Operand, source: types.Array) -> None:
    """Refuse layouts on which Numba and NumPy disagree, where the element size changes."""
    if source.ndim == 0:
        message = "a view of an array without axes as a type of another size is not supported"
        raise at.refuse(message, "give it an axis: `x.reshape(1)`", _TOKEN)
    if source.ndim > 1 and source.layout == "F":
        message = "a view of an array in Fortran order as a type of another size is not supported"
        raise at.refuse(message, "make a copy in C order: `np.ascontiguousarray(x)`", _TOKEN)
    if source.ndim > 1 and source.layout == "A":
        at.emit(check_last_axis, (operand,), types.none)
