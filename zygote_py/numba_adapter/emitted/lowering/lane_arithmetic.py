"""Arithmetic on several numbers at once, and where they stand in arrays: vectors of LLVM's.

A number beside a vector stands for as many equal ones.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.ir as llvm
import numpy as np
from numba import types

from zygote_py.ir import Lanes
from zygote_py.numba_adapter.base.internals import ConfigStack, cgutils
from zygote_py.numba_adapter.emitted.lowering.elements import Fields, address, items_of

_BINARY: dict[Any, str] = {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
    np.divide: "fdiv",
}


_COMPARISONS: dict[Any, str] = {
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}
_FUNCTIONS: dict[Any, str] = {
    math.exp: "exp",
    np.exp: "exp",
    math.log: "log",
    np.log: "log",
    math.sin: "sin",
    np.sin: "sin",
    math.cos: "cos",
    np.cos: "cos",
    math.sqrt: "sqrt",
    np.sqrt: "sqrt",
    abs: "fabs",
    np.abs: "fabs",
    math.fabs: "fabs",
    np.fabs: "fabs",
}
_LARGEST: dict[Any, str] = {max: ">", min: "<"}
_HALF = 4  # the numbers that a function takes at once: so many have a vector function (`linking/vector_functions.py`)
_OF_BOOLEANS: dict[Any, str] = {operator.and_: "and_", operator.or_: "or_", operator.xor: "xor"}
_ELEMENTS: dict[Any, Any] = {
    types.float64: llvm.DoubleType(),
    types.float32: llvm.FloatType(),
    types.boolean: llvm.IntType(1),
}


def vector_type(kind: Lanes) -> Any:
    """Return LLVM's type of several numbers."""
    return llvm.VectorType(_ELEMENTS[kind.dtype], kind.count)


def lanes_of_result(op: Any, args: Sequence[Any]) -> Lanes | None:
    """Return the type of the result of an operation of which an operand is of several numbers; None for others."""
    found = next((each for each in args if type(each) is Lanes), None)  # Numba's `isinstance` is slow
    if found is None or not all(each in (found, found.dtype) for each in args):
        return None
    if found.dtype == types.boolean:
        return found if op in _OF_BOOLEANS and len(args) == 2 else None
    if op in _COMPARISONS and len(args) == 2:
        return Lanes(types.boolean, found.count)
    known = (operator.neg, *_FUNCTIONS) if len(args) == 1 else (*_BINARY, *_LARGEST) if len(args) == 2 else ()
    return found if op in known else None


def operate(op: Any, kinds: Sequence[Any]) -> Callable[[Any, Any], Any]:
    """Return what lowers an operation on operands of some types: it takes a builder and the values of the operands."""
    kind = next(each for each in kinds if type(each) is Lanes)

    def lowered(builder: Any, values: Sequence[Any]) -> Any:
        vectors = [spread(builder, kind, each) for each in values]
        if op is operator.neg:
            return builder.fneg(*vectors)
        if op in _FUNCTIONS:
            return _call(builder, _FUNCTIONS[op], *vectors)
        if op in _LARGEST:  # as in `native_calls.py`: the second if it compares so with the first
            return builder.select(builder.fcmp_ordered(_LARGEST[op], *vectors[::-1]), *vectors[::-1])
        if op in _COMPARISONS:
            compare = builder.fcmp_unordered if op is operator.ne else builder.fcmp_ordered
            return compare(_COMPARISONS[op], *vectors)
        return getattr(builder, {**_BINARY, **_OF_BOOLEANS}[op])(*vectors)

    return lowered


def _call(builder: Any, name: str, vector: Any) -> Any:
    """Return a function of several numbers, a few at a time."""
    count = vector.type.count
    if count <= _HALF:
        kind = f"v{count}f{64 if vector.type.element == llvm.DoubleType() else 32}"
        function_type = llvm.FunctionType(vector.type, [vector.type])
        function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.{kind}")
        flags: Any = ConfigStack.top_or_none()
        # Numba gives calls of numbers the flags, and no calls of vectors.
        allowed = () if flags is None or not flags.fastmath else flags.fastmath.flags
        return builder.call(function, [vector], fastmath=tuple(allowed))
    half = count // 2
    parts = []
    for places in (range(half), range(half, count)):
        mask = llvm.Constant(llvm.VectorType(llvm.IntType(32), len(places)), list(places))
        parts.append(_call(builder, name, builder.shuffle_vector(vector, vector, mask)))
    if count % 2:
        raise AssertionError(f"{count} lanes")
    mask = llvm.Constant(llvm.VectorType(llvm.IntType(32), count), list(range(count)))
    return builder.shuffle_vector(*parts, mask)


def is_zero_in_any(builder: Any, kind: Lanes, value: Any) -> Any:
    """Return whether one of several numbers is zero."""
    vector = vector_type(kind)
    found = builder.fcmp_ordered("==", spread(builder, kind, value), llvm.Constant(vector, None))
    bits = llvm.IntType(kind.count)
    return builder.icmp_unsigned("!=", builder.bitcast(found, bits), bits(0))


def spread(builder: Any, kind: Lanes, value: Any) -> Any:
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
    count = len(kinds)
    indices = items_of(index, count) or cgutils.unpack_tuple(builder, index, count) if is_tuple else [index]
    kind = types.UniTuple(types.intp, array.ndim)
    fixed = [context.cast(builder, each, of, types.intp) for each, of in zip(indices, kinds, strict=True)]
    whole = context.make_tuple(builder, kind, [*fixed, context.get_constant(types.intp, 0)])
    return address(context, builder, array, fields, kind, whole, {})


def load_lanes(builder: Any, kind: Lanes, place: Any) -> Any:
    """Return the numbers that begin at an address."""
    vector = _in_memory(kind)
    found = builder.load(builder.bitcast(place, vector.as_pointer()), align=_ALIGNMENT[kind.dtype])
    return builder.trunc(found, vector_type(kind)) if kind.dtype == types.boolean else found


def store_lanes(builder: Any, kind: Lanes, value: Any, place: Any) -> None:
    """Store numbers from an address on."""
    vector = _in_memory(kind)
    if kind.dtype == types.boolean:
        value = builder.zext(value, vector)
    builder.store(value, builder.bitcast(place, vector.as_pointer()), align=_ALIGNMENT[kind.dtype])


def _in_memory(kind: Lanes) -> Any:
    """Return LLVM's type of several elements of an array, in which a boolean takes a byte."""
    return llvm.VectorType(llvm.IntType(8), kind.count) if kind.dtype == types.boolean else vector_type(kind)


_ALIGNMENT = {types.float64: 8, types.float32: 4, types.boolean: 1}
