"""The memory of records: `ops.array_of_record` and `ops.contiguous`, for Numba.

    array_of_record(r)          Record(x: f64)   ->   Record(x: f64)[:]         an array of one
    contiguous(a["p"][i])       f64[:]A          ->   f64[:]                    the array that is a field

A record in compiled code is where it lies, and so is what the array holds. It does not keep the memory alive: the
argument of which it is made does, as it does for a field that is an array.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic, overload

from zygote_py.ir import ops
from zygote_py.numba_adapter.base import internals


@intrinsic
def _typed_and_lowered(context: Any, record: Any) -> Any:
    """Return the array of one record at the place of a record."""

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = sig.return_type
        made = internals.make_array(kind)(context, builder)
        one, size = (context.get_constant(types.intp, number) for number in (1, record.size))
        data = builder.bitcast(args[0], made.data.type)
        internals.populate_array(made, data=data, shape=(one,), strides=(size,), itemsize=size, meminfo=None)
        return made._getvalue()

    return internals.signature(types.Array(record, 1, "C"), record), lowered


_array_of_record: Any = _typed_and_lowered


@intrinsic
def _typed_as_contiguous(context: Any, x: Any) -> Any:
    """Return an array with the type of one in C order."""

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = internals.make_array(x)(context, builder, value=args[0])
        made = internals.make_array(sig.return_type)(context, builder)
        for name in ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides"):
            setattr(made, name, getattr(given, name))
        return internals.impl_ret_borrowed(context, builder, sig.return_type, made._getvalue())

    return internals.signature(types.Array(x.dtype, x.ndim, "C", not x.mutable), x), lowered


_contiguous: Any = _typed_as_contiguous


@overload(ops.contiguous)
def _typed_contiguous(x: Any, shape: Any = None) -> Any:
    def in_order(x: Any, shape: Any = None) -> Any:
        step = x.itemsize
        for axis in range(x.ndim - 1, -1, -1):
            if x.shape[axis] > 1 and x.strides[axis] != step:
                raise ValueError("the elements of a field are not in C order")
            step *= x.shape[axis]
        return _contiguous(x)

    def in_shape(x: Any, shape: Any = None) -> Any:
        if x.shape != shape:
            raise ValueError("the elements of a field are not in its shape")
        return ops.contiguous(x)

    if not isinstance(x, types.Array):
        return None
    return in_order if isinstance(shape, types.NoneType | types.Omitted) or shape is None else in_shape


@overload(ops.array_of_record)
def _typed(record: Any) -> Any:
    def implementation(record: Any) -> Any:
        return _array_of_record(record)

    return implementation if isinstance(record, types.Record) else None
