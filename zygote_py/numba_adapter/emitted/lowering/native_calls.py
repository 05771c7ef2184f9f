"""Calls of a few functions that nearly every derivative makes, lowered here: `np.zeros`, `np.empty_like`, `max`; stores
of copies of arrays; and sums and products of complex numbers.

Numba writes these functions in Python, several for each, and compiles them first, for each type: half of the time that
a small gradient takes. Here they are lowered at once, for numbers and truth values in arrays of which Numba knows all
else. What they compute, and the errors they raise, are Numba's.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.ir as llvm
import numpy as np
from numba import types

from zygote_py.ir import Lanes
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base import internals
from zygote_py.numba_adapter.base.internals import ConfigStack, cgutils, npydecl, signature
from zygote_py.numba_adapter.emitted.lowering.addresses import addresses_of, reserve
from zygote_py.numba_adapter.emitted.lowering.elements import SCALARS, array_of, fields_of, size_and_alignment
from zygote_py.numba_adapter.emitted.lowering.lane_arithmetic import lanes_of_result, operate

_BYTES_OF_ARRAY = 512  # the most on the stack
_BYTES_OF_FRAME = 4096  # of such arrays together, so that a recursion can still be thousands of calls deep
_ALIGNMENT = 64  # of memory, in bytes: of a vector of eight numbers, and what the processor loads at a time
_FRAME = "_zygote_py_frame"  # the attribute of an LLVM function: the bytes that are taken

_TOO_BIG = "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A call for arguments of some types: its signature, and what makes its result from the values of arguments."""

    signature: Any
    lower: Callable[[Any, Any, Any, Any], Any]


def native_call(function: Any, args: tuple[Any, ...], *, on_stack: bool = False) -> NativeCall | None:
    """Return how a call is lowered here; None if it is Numba's. A new array may be put on the stack if so said."""
    if type(function) is not types.Function:
        return None
    key = function.typing_key
    if (lanes := lanes_of_result(key, args)) is not None:
        kinds = args

        def lower(_context: Any, builder: Any, _sig: Any, values: Any) -> Any:
            return operate(key, kinds)(builder, values)

        return NativeCall(signature(lanes, *kinds), lower)
    known = (_ON_STACK if on_stack else _KNOWN).get(key)
    return known(tuple(map(types.unliteral, args))) if known is not None else None


def is_allocation(function: Any, args: tuple[Any, ...]) -> bool:
    """Return whether a call is one of those that are lowered here, and makes a new array that is zero or not set."""
    return getattr(function, "typing_key", None) in _ON_STACK and native_call(function, args) is not None


def _allocation(fill: bool, *, on_stack: bool = False) -> Callable[[tuple[Any, ...]], NativeCall | None]:
    """`np.empty(shape, dtype)` and `np.zeros(shape, dtype)`."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        shapes = cgutils.unpack_tuple(builder, args[0]) if isinstance(sig.args[0], types.BaseTuple) else [args[0]]
        return allocated(context, builder, sig.return_type, shapes, fill, on_stack=on_stack)

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


def _likeness(fill: bool, *, on_stack: bool = False) -> Callable[[tuple[Any, ...]], NativeCall | None]:
    """`np.empty_like(a)` and `np.zeros_like(a)`."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        shape = context.data_model_manager[sig.args[0]].get(builder, args[0], "shape")
        shapes = cgutils.unpack_tuple(builder, shape)
        return allocated(context, builder, sig.return_type, shapes, fill, on_stack=on_stack)

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


def store_copy(context: Any, builder: Any, kinds: tuple[Any, Any], values: tuple[Any, Any]) -> None:
    """Store in an array the elements of a copy of it, `a[:] = b`. Numba would compare their shapes and look for memory
    that they share, by functions that take longer to compile than most derivatives.
    """

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, copy = (fields_of(context, builder, kind, value) for kind, value in zip(sig.args, args, strict=True))
        with cgutils.loop_nest(builder, array.shape, context.get_value_type(types.intp)) as indices:
            place, source = (
                cgutils.get_item_pointer2(context, builder, each.data, each.shape, each.strides, kind.layout, indices)
                for kind, each in zip(sig.args, (array, copy), strict=True)
            )
            item = internals.load_item(context, builder, sig.args[1], source)
            internals.store_item(context, builder, sig.args[0], item, place)
        return context.get_dummy_value()

    name = f"store {kinds[0]} {kinds[1]}"
    called_apart(context, builder, name, lower, signature(types.none, *kinds), values)


def is_stored_here(array: Any, copy: Any) -> bool:
    """Return whether `store_copy` knows arrays of such types."""
    are_arrays = type(array) is type(copy) is types.Array and array.ndim == copy.ndim > 0
    return are_arrays and array.dtype == copy.dtype and type(array.dtype) in SCALARS


def of_complex_numbers(builder: Any, op: Any, kinds: tuple[Any, ...], values: Sequence[Any]) -> Any:
    """Return the sum, difference or product of two complex numbers; None of other values, or for another operation.

    Numba calls a function for a product; Python's own product of infinities is another one from 3.14 on.
    """
    if len(kinds) != 2 or kinds[0] != kinds[1] or not isinstance(kinds[0], types.Complex):
        return None
    (a, b), (c, d) = ([builder.extract_value(each, place) for place in (0, 1)] for each in values)
    if op is operator.add:
        parts = builder.fadd(a, c), builder.fadd(b, d)
    elif op is operator.sub:
        parts = builder.fsub(a, c), builder.fsub(b, d)
    elif op is operator.mul and sys.version_info < (3, 14):
        ac, bd, ad, bc = (builder.fmul(x, y) for x, y in ((a, c), (b, d), (a, d), (b, c)))
        parts = builder.fsub(ac, bd), builder.fadd(ad, bc)
    else:
        return None
    found = llvm.Constant(values[0].type, llvm.Undefined)
    for place, part in enumerate(parts):
        found = builder.insert_value(found, part, place)
    return found


_KNOWN: dict[Any, Callable[[tuple[Any, ...]], NativeCall | None]] = {
    np.copy: lambda args: copy_of(args[0]) if len(args) == 1 else None,
    np.empty: _allocation(fill=False),
    np.zeros: _allocation(fill=True),
    np.empty_like: _likeness(fill=False),
    np.zeros_like: _likeness(fill=True),
    max: _largest(">"),
    min: _largest("<"),
}

_ON_STACK: dict[Any, Callable[[tuple[Any, ...]], NativeCall | None]] = {
    np.empty: _allocation(fill=False, on_stack=True),
    np.zeros: _allocation(fill=True, on_stack=True),
    np.empty_like: _likeness(fill=False, on_stack=True),
    np.zeros_like: _likeness(fill=True, on_stack=True),
}


def _is_shape(given: Any) -> bool:
    return given == types.intp or (isinstance(given, types.UniTuple) and given.dtype == types.intp and given.count > 0)


def allocated(context: Any, builder: Any, kind: Any, shapes: list[Any], fill: bool, *, on_stack: bool = False) -> Any:
    """Return a new array. Its fields follow from the lengths, for LLVM to see. If it may be on the stack, it is there
    where it is small. One that is known to have no elements has no memory: it stands for another mostly, on the ways
    where that is not made.
    """
    if all(isinstance(each, llvm.Constant) for each in shapes) and min((n.constant for n in shapes), default=1) == 0:
        nothing = cgutils.get_null_value(cgutils.voidptr_t)
        return new_array(context, builder, kind, shapes, nothing, nothing)
    if not on_stack:
        meminfo, data, place = _new_memory(context, builder, kind, shapes, fill)
        found = new_array(context, builder, kind, shapes, meminfo, data)
        addresses = addresses_of(builder.function)
        if addresses is not None and place is not None:
            addresses.note(found, place)
        return found
    item = context.get_data_type(kind.dtype)
    size, _ = size_and_alignment(context, item)
    most = _BYTES_OF_ARRAY // size
    is_small, count = _small_count(builder, shapes, most)
    if is_small == cgutils.true_bit:
        most = count.constant
    taken = vars(builder.function).get(_FRAME, 0) + most * size
    if is_small == cgutils.false_bit or taken > _BYTES_OF_FRAME:
        return allocated(context, builder, kind, shapes, fill)
    vars(builder.function)[_FRAME] = taken
    place = reserve(builder, llvm.ArrayType(item, most))
    place.align = _ALIGNMENT if isinstance(kind.dtype, Lanes) else context.get_preferred_array_alignment(kind.dtype)
    buffer = builder.bitcast(place, cgutils.voidptr_t)
    nothing = cgutils.get_null_value(cgutils.voidptr_t)
    if is_small == cgutils.true_bit:
        if fill:
            cgutils.memset(builder, buffer, count.type(count.constant * size), 0)
        return new_array(context, builder, kind, shapes, nothing, buffer)
    with builder.if_else(is_small, likely=True) as (small, large):
        with small:
            if fill:
                cgutils.memset(builder, buffer, builder.mul(count, count.type(size)), 0)
            before = builder.basic_block
        with large:
            meminfo, data, _ = _new_memory(context, builder, kind, shapes, fill)
            data = builder.bitcast(data, cgutils.voidptr_t)
            after = builder.basic_block
    found = []
    for here, there in ((nothing, meminfo), (buffer, data)):
        either = builder.phi(there.type)
        either.add_incoming(here, before)
        either.add_incoming(there, after)
        found.append(either)
    return new_array(context, builder, kind, shapes, *found)


def _small_count(builder: Any, shapes: list[Any], most: int) -> tuple[Any, Any]:
    """Return whether an array has at most so many elements, and how many they are then."""
    word = shapes[0].type
    if all(isinstance(each, llvm.Constant) for each in shapes):
        count = math.prod(each.constant for each in shapes)
        is_small = all(0 <= each.constant <= most for each in shapes) and count <= most
        return cgutils.true_bit if is_small else cgutils.false_bit, word(count)
    count, is_small = word(1), cgutils.true_bit
    for each in shapes:
        is_small = builder.and_(is_small, builder.icmp_unsigned("<=", each, word(most)))
        count = builder.mul(count, each)
    if len(shapes) > 1:
        is_small = builder.and_(is_small, builder.icmp_unsigned("<=", count, word(most)))
    return is_small, count


def _new_memory(context: Any, builder: Any, kind: Any, shapes: list[Any], fill: bool) -> tuple[Any, Any, Any]:
    """Return the count of references and the elements of a new array, made by a function of its own, and where its
    structure is.
    """
    word = context.get_value_type(types.intp)
    shape = types.UniTuple(types.intp, kind.ndim)

    def lower(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        lengths = internals._parse_shape(context, builder, shape, args[0])
        itemsize = word(size_and_alignment(context, context.get_data_type(kind.dtype))[0])
        meminfo = _memory(context, builder, lengths, itemsize, _ALIGNMENT, fill)
        data = context.nrt.meminfo_data(builder, meminfo)
        return new_array(context, builder, kind, lengths, meminfo, data)

    name = f"{'zeros' if fill else 'empty'} {kind}"
    lengths = cgutils.pack_array(builder, shapes, ty=word)
    made = called_apart(context, builder, name, lower, signature(kind, shape), [lengths])
    model = context.data_model_manager[kind]
    addresses = addresses_of(builder.function)
    place = None if addresses is None else addresses.find(made)
    return model.get(builder, made, "meminfo"), model.get(builder, made, "data"), place


def new_array(context: Any, builder: Any, kind: Any, shapes: list[Any], meminfo: Any, data: Any) -> Any:
    """Return an array of some lengths in memory."""
    word = context.get_value_type(types.intp)
    itemsize = word(size_and_alignment(context, context.get_data_type(kind.dtype))[0])
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
