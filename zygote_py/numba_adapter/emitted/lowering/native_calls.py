"""Calls of a few functions that nearly every derivative makes, lowered here: `np.zeros`, `np.empty_like`, `max`.

Numba writes these functions in Python, several for each, and compiles them first, for each type: half of the time that
a small gradient takes. Here they are lowered at once, for numbers and truth values in arrays of which Numba knows all
else. What they compute, and the errors they raise, are Numba's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.ir as llvm
import numpy as np
from numba import types

from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base import internals
from zygote_py.numba_adapter.base.internals import ConfigStack, cgutils, npydecl, signature
from zygote_py.numba_adapter.emitted.lowering.addresses import addresses_of
from zygote_py.numba_adapter.emitted.lowering.elements import SCALARS, array_of
from zygote_py.numba_adapter.emitted.lowering.lane_arithmetic import lanes_of_result, operate

_TOO_BIG = "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A call for arguments of some types: its signature, and what makes its result from the values of arguments."""

    signature: Any
    lower: Callable[[Any, Any, Any, Any], Any]


def native_call(function: Any, args: tuple[Any, ...]) -> NativeCall | None:
    """Return how a call is lowered here; None if it is Numba's."""
    if type(function) is not types.Function:
        return None
    key = function.typing_key
    if (lanes := lanes_of_result(key, args)) is not None:
        kinds = args

        def lower(_context: Any, builder: Any, _sig: Any, values: Any) -> Any:
            return operate(key, kinds)(builder, values)

        return NativeCall(signature(lanes, *kinds), lower)
    known = _KNOWN.get(key)
    return known(tuple(map(types.unliteral, args))) if known is not None else None


def _allocation(fill: bool) -> Callable[[tuple[Any, ...]], NativeCall | None]:
    """`np.empty(shape, dtype)` and `np.zeros(shape, dtype)`."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        shapes = cgutils.unpack_tuple(builder, args[0]) if isinstance(sig.args[0], types.BaseTuple) else [args[0]]
        return allocated(context, builder, sig.return_type, shapes, fill)

    def typed(args: tuple[Any, ...]) -> NativeCall | None:
        if not 1 <= len(args) <= 2 or not _is_shape(args[0]):
            return None
        if len(args) == 2 and not isinstance(args[1], types.NumberClass | types.DType):
            return None
        dtype = npydecl.parse_dtype(args[1]) if len(args) == 2 else types.float64
        if type(dtype) not in SCALARS:
            return None
        ndim = npydecl.parse_shape(args[0])
        return NativeCall(signature(types.Array(dtype, ndim, "C"), *args), lower)

    return typed


def _likeness(fill: bool) -> Callable[[tuple[Any, ...]], NativeCall | None]:
    """`np.empty_like(a)` and `np.zeros_like(a)`."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        shape = context.data_model_manager[sig.args[0]].get(builder, args[0], "shape")
        return allocated(context, builder, sig.return_type, cgutils.unpack_tuple(builder, shape), fill)

    def typed(args: tuple[Any, ...]) -> NativeCall | None:
        if len(args) != 1 or type(args[0]) is not types.Array or type(args[0].dtype) not in SCALARS:
            return None
        made = args[0].copy(layout="F" if args[0].layout == "F" else "C", readonly=False)
        return NativeCall(signature(made, *args), lower)

    return typed


def _largest(comparison: str) -> Callable[[tuple[Any, ...]], NativeCall | None]:
    """`max(a, b)` and `min(a, b)`, which is `b` if it compares so with `a`, and else `a`, also for NaN."""

    def lower(_context: Any, builder: Any, sig: Any, args: Any) -> Any:
        compare = builder.fcmp_ordered if isinstance(sig.return_type, types.Float) else builder.icmp_signed
        return builder.select(compare(comparison, args[1], args[0]), args[1], args[0])

    def typed(args: tuple[Any, ...]) -> NativeCall | None:
        # Where NaN is ruled out, Numba's own comparison still allows it, as it is that of another function.
        flags: Any = ConfigStack.top_or_none()
        kinds = (types.intp,) if flags is None or flags.fastmath else (types.intp, types.float64)
        is_known = len(args) == 2 and args[0] == args[1] and args[0] in kinds
        return NativeCall(signature(args[0], *args), lower) if is_known else None

    return typed


def copy_of(array: Any) -> NativeCall | None:
    """Return how a copy of an array of a type is made, `np.copy(a)`: by a function of its own, called once for each."""
    if type(array) is not types.Array or type(array.dtype) not in SCALARS:
        return None

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return called_apart(context, builder, f"copy {array}", internals._array_copy, sig, args)

    made = array.copy(layout="F" if array.layout == "F" else "C", readonly=False)
    return NativeCall(signature(made, array), lower)


_KNOWN: dict[Any, Callable[[tuple[Any, ...]], NativeCall | None]] = {
    np.copy: lambda args: copy_of(args[0]) if len(args) == 1 else None,
    np.empty: _allocation(fill=False),
    np.zeros: _allocation(fill=True),
    np.empty_like: _likeness(fill=False),
    np.zeros_like: _likeness(fill=True),
    max: _largest(">"),
    min: _largest("<"),
}


def _is_shape(given: Any) -> bool:
    return given == types.intp or (isinstance(given, types.UniTuple) and given.dtype == types.intp and given.count > 0)


def allocated(context: Any, builder: Any, kind: Any, shapes: list[Any], fill: bool) -> Any:
    """Return a new array, made by a function of its own. Its fields follow from the lengths, for LLVM to see."""
    word = context.get_value_type(types.intp)
    shape = types.UniTuple(types.intp, kind.ndim)

    def lower(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        lengths = internals._parse_shape(context, builder, shape, args[0])
        itemsize = word(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        align = context.get_preferred_array_alignment(kind.dtype)
        meminfo = _memory(context, builder, lengths, itemsize, align, fill)
        data = context.nrt.meminfo_data(builder, meminfo)
        return new_array(context, builder, kind, lengths, meminfo, data)

    name = f"{'zeros' if fill else 'empty'} {kind}"
    lengths = cgutils.pack_array(builder, shapes, ty=word)
    made = called_apart(context, builder, name, lower, signature(kind, shape), [lengths])
    model = context.data_model_manager[kind]
    meminfo, data = (model.get(builder, made, field) for field in ("meminfo", "data"))
    found = new_array(context, builder, kind, shapes, meminfo, data)
    addresses = addresses_of(builder.function)
    if addresses is not None and (place := addresses.find(made)) is not None:
        addresses.note(found, place)
    return found


def new_array(context: Any, builder: Any, kind: Any, shapes: list[Any], meminfo: Any, data: Any) -> Any:
    """Return an array of some lengths in memory."""
    word = context.get_value_type(types.intp)
    itemsize = word(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    inner_first = shapes if kind.layout == "F" else shapes[::-1]
    strides = [itemsize][: kind.ndim]
    for each in inner_first[:-1]:
        strides.append(builder.mul(strides[-1], each))
    nitems = shapes[0] if shapes else word(1)
    for each in shapes[1:]:
        nitems = builder.mul(nitems, each, flags=["nsw"])
    fields = {
        "meminfo": meminfo,
        "nitems": nitems,
        "itemsize": itemsize,
        "data": builder.bitcast(data, context.get_data_type(kind.dtype).as_pointer()),
        "shape": cgutils.pack_array(builder, shapes, ty=word),
        "strides": cgutils.pack_array(builder, strides if kind.layout == "F" else strides[::-1], ty=word),
    }
    return array_of(context, builder, kind, fields)


def _memory(context: Any, builder: Any, shapes: list[Any], itemsize: Any, align: int, fill: bool) -> Any:
    """Return memory for an array."""
    size, is_too_big = itemsize.type(1), cgutils.false_bit
    for each in [*shapes, itemsize]:
        product = builder.smul_with_overflow(size, each)
        size = builder.extract_value(product, 0)
        is_too_big = builder.or_(is_too_big, builder.extract_value(product, 1))
    with builder.if_then(is_too_big, likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (_TOO_BIG,))
    meminfo = context.nrt.meminfo_alloc_aligned(builder, size, context.get_constant(types.uint32, align))
    if fill:
        cgutils.memset(builder, context.nrt.meminfo_data(builder, meminfo), size, 0)
    return meminfo


def called_apart(context: Any, builder: Any, name: str, lower: Callable[..., Any], sig: Any, args: Any) -> Any:
    """Return the result of a call of a function in the same module, which is lowered there unless it is there.

    It is not inlined: it takes long compared with a call.
    """
    conventions, module = context.call_conv, builder.module
    name = f"zygote_py.{name}"
    function = module.globals.get(name)
    if function is None:
        function = llvm.Function(module, conventions.get_function_type(sig.return_type, sig.args), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        conventions.decorate_function(function, list(map(str, range(len(sig.args)))), sig.args)
        within = llvm.IRBuilder(function.append_basic_block("entry"))
        conventions.init_call_helper(within)
        made = lower(context, within, sig, conventions.decode_arguments(within, sig.args, function))
        conventions.return_value(within, context.get_return_value(within, sig.return_type, made))
    status, result = conventions.call_function(builder, function, sig.return_type, sig.args, args)
    with cgutils.if_unlikely(builder, status.is_error):
        conventions.return_status_propagate(builder, status)
    return result
