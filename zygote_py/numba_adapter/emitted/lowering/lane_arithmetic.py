"""Arithmetic on several numbers at once, and where they stand in arrays: vectors of LLVM's.

A number beside a vector stands for as many equal ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.ir as llvm
import numpy as np
from numba import types

from zygote_py.ir import Lanes
from zygote_py.numba_adapter.base.internals import cgutils
from zygote_py.numba_adapter.emitted.lowering.elements import Fields, address

_BINARY = {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
    np.divide: "fdiv",
}


def vector_type(kind: Lanes) -> Any:
    """Return LLVM's type of several numbers."""
    return llvm.VectorType(llvm.DoubleType() if kind.dtype == types.float64 else llvm.FloatType(), kind.count)


def lanes_of_result(op: Any, args: Sequence[Any]) -> Lanes | None:
    """Return the type of the result of an operation of which an operand is of several numbers; None for others."""
    found = next((each for each in args if type(each) is Lanes), None)  # Numba's `isinstance` is slow
    if found is None or not all(each in (found, found.dtype) for each in args):
        return None
    return found if (op in _BINARY and len(args) == 2) or (op is operator.neg and len(args) == 1) else None


def operate(op: Any, kind: Lanes) -> Callable[[Any, Any], Any]:
    """Return what lowers an operation: it takes a builder and the values of the operands."""

    def lowered(builder: Any, values: Sequence[Any]) -> Any:
        vectors = [_spread(builder, kind, each) for each in values]
        return builder.fneg(*vectors) if op is operator.neg else getattr(builder, _BINARY[op])(*vectors)

    return lowered


def _spread(builder: Any, kind: Lanes, value: Any) -> Any:
    """Return a vector of equal numbers; a vector as it is."""
    vector = vector_type(kind)
    if value.type == vector:
        return value
    nothing = llvm.Constant(vector, llvm.Undefined)
    first = builder.insert_element(nothing, value, llvm.Constant(llvm.IntType(32), 0))
    return builder.shuffle_vector(first, nothing, llvm.Constant(llvm.VectorType(llvm.IntType(32), kind.count), None))


def address_of_lanes(context: Any, builder: Any, array: Any, fields: Fields, index_type: Any, index: Any) -> Any:
    """Return the address of the first of several numbers, at an index of all axes but the last."""
    is_tuple = isinstance(index_type, types.BaseTuple)
    kinds = list(index_type) if is_tuple else [index_type]
    indices = cgutils.unpack_tuple(builder, index, len(kinds)) if is_tuple else [index]
    kind = types.UniTuple(types.intp, array.ndim)
    fixed = [context.cast(builder, each, of, types.intp) for each, of in zip(indices, kinds, strict=True)]
    whole = context.make_tuple(builder, kind, [*fixed, context.get_constant(types.intp, 0)])
    return address(context, builder, array, fields, kind, whole, {})


def load_lanes(builder: Any, kind: Lanes, place: Any) -> Any:
    """Return the numbers that begin at an address."""
    vector = vector_type(kind)
    return builder.load(builder.bitcast(place, vector.as_pointer()), align=_ALIGNMENT[kind.dtype])


def store_lanes(builder: Any, kind: Lanes, value: Any, place: Any) -> None:
    """Store numbers from an address on."""
    vector = vector_type(kind)
    builder.store(value, builder.bitcast(place, vector.as_pointer()), align=_ALIGNMENT[kind.dtype])


_ALIGNMENT = {types.float64: 8, types.float32: 4}
