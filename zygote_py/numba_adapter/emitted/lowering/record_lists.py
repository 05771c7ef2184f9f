"""Lists of records, which a loop appends and the loop that reverses it pops: numbers, and tuples of numbers or arrays.

Numba gives memory back while a list shrinks, which the next round of an outer loop asks for again, and fills what it
asks for with zeros. Here a list that is too short grows by a quarter, and keeps its memory until it is deleted. A list
that is made empty has room for a few items from the start.

Numba takes a tuple with arrays apart for each reference in it that it counts, and again to store it: a record of twenty
arrays is two thousand instructions, an eighth of a Hessian for each list. Here such a record is moved as a whole, what
changes the list is a function of its own, and a record that is popped keeps the references that the list had to it. The
list is Numba's, so that all else that is done with it is Numba's as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.ir as llvm
from numba import types

from zygote_py.numba_adapter.base import internals
from zygote_py.numba_adapter.base.internals import cgutils, signature
from zygote_py.numba_adapter.emitted.lowering.addresses import addresses_of, reserve
from zygote_py.numba_adapter.emitted.lowering.elements import has_one_form, items_of, size_and_alignment
from zygote_py.numba_adapter.emitted.lowering.native_calls import called_apart

_COUNT = types.MemInfoPointer(types.voidptr)
_ADDRESS = types.voidptr
_TUPLE: Any = types.BaseTuple


def is_of_records(context: Any, kind: Any) -> bool:
    """Return whether a type is one of lists of tuples in which references are counted."""
    return (
        type(kind) is types.List
        and isinstance(kind.dtype, _TUPLE)
        and bool(context.data_model_manager[kind.dtype].contains_nrt_meminfo())
    )


def is_of_numbers(context: Any, kind: Any) -> bool:
    """Return whether a type is one of lists of numbers or tuples of numbers, and not that of a list of Python's."""
    return (
        type(kind) is types.List
        and not kind.reflected
        and isinstance(kind.dtype, (types.Number, types.Boolean, _TUPLE))
        and not context.data_model_manager[kind.dtype].contains_nrt_meminfo()
    )


def is_made_here(context: Any, kind: Any) -> bool:
    """Return whether empty lists of a type are made, and items appended and popped, by this module."""
    return is_of_numbers(context, kind) or is_of_records(context, kind)


def made_empty(context: Any, builder: Any, kind: Any) -> Any:
    """Return a new list without items."""
    count = min(_MOST_AT_FIRST, _BYTES_AT_FIRST // max(_itemsize(context, kind), 1))
    made = _Unfilled if is_of_numbers(context, kind) else internals.ListInstance
    return made.allocate(context, builder, kind, count).value


_MOST_AT_FIRST = 16
_BYTES_AT_FIRST = 960  # which `malloc` finds as quickly as a few


class _Unfilled(internals.ListInstance):  # type: ignore[misc]
    """A list of numbers, whose memory is not filled with zeros."""

    def zfill(self, start: Any, stop: Any) -> None:
        """Do nothing."""


def append_number(context: Any, builder: Any, kind: Any, records: Any, record: Any) -> None:
    """Store a record in which no references are counted at the end of a list."""
    place = _new_slot(context, builder, kind, _memory(context, builder, kind, records))
    builder.store(context.data_model_manager[kind.dtype].as_data(builder, record), place)


def pop_number(context: Any, builder: Any, kind: Any, records: Any) -> Any:
    """Return the last record, in which no references are counted, of a list, which is no longer in it."""
    place = _last_slot(context, builder, kind, _memory(context, builder, kind, records))
    return context.data_model_manager[kind.dtype].from_data(builder, builder.load(place))


def _new_slot(context: Any, builder: Any, kind: Any, meminfo: Any) -> Any:
    """Return the address of one more item of a list."""
    instance = _instance(context, builder, kind, meminfo)
    size = instance.size
    with builder.if_then(builder.icmp_signed(">=", size, instance._payload.allocated), likely=False):
        sig = signature(types.intp, _ADDRESS)
        called_apart(context, builder, f"grown {kind.dtype}", _growth(kind), sig, [meminfo])
    instance.size = builder.add(size, size.type(1))
    return instance._gep(size)


def _last_slot(context: Any, builder: Any, kind: Any, meminfo: Any) -> Any:
    """Return the address of the last item of a list, which is no longer in it."""
    instance = _instance(context, builder, kind, meminfo)
    size = instance.size
    cgutils.guard_zero(context, builder, size, (IndexError, "pop from empty list"))
    instance.size = last = builder.sub(size, size.type(1))
    return instance._gep(last)


def _growth(kind: Any) -> Callable[..., Any]:
    """Return what lowers a function that gives a list more memory, and returns for how many items it is."""

    def lower(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        instance = _instance(context, builder, kind, args[0])
        size = instance.size
        count = builder.add(builder.add(size, builder.ashr(size, size.type(2))), size.type(16))
        itemsize = size.type(_itemsize(context, kind))
        header = size_and_alignment(context, context.get_data_type(types.ListPayload(kind)))[0]
        header = builder.sub(size.type(header), itemsize)  # the payload has room for one item
        bytes_, is_too_large = cgutils.muladd_with_overflow(builder, count, itemsize, header)
        with builder.if_then(is_too_large, likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ("cannot resize list",))
        found = context.nrt.meminfo_varsize_realloc_unchecked(builder, args[0], size=bytes_)
        cgutils.guard_memory_error(context, builder, found, "cannot resize list")
        instance._payload.allocated = count
        return count

    return lower


def append(context: Any, builder: Any, kind: Any, records: Any, record: Any) -> None:
    """Store a record at the end of a list. Its references are to be counted by the caller."""

    def lower(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.bitcast(_new_slot(context, builder, kind, args[0]), cgutils.voidptr_t)

    name = f"slot {_itemsize(context, kind)}"
    args = [_memory(context, builder, kind, records)]
    slot = called_apart(context, builder, name, lower, signature(_ADDRESS, _ADDRESS), args)
    model = context.data_model_manager[kind.dtype]
    place = builder.bitcast(slot, model.get_data_type().as_pointer())
    items = items_of(record, len(kind.dtype))
    if items is None:
        builder.store(model.as_data(builder, record), place)
        return
    for position, (part, item) in enumerate(zip(kind.dtype, items, strict=True)):
        _put(context, builder, part, item, cgutils.gep_inbounds(builder, place, 0, position))


def _put(context: Any, builder: Any, kind: Any, item: Any, place: Any) -> None:
    """Store an item of a record; an array that stands in memory is copied as a whole."""
    addresses = addresses_of(builder.function)
    address = None if addresses is None else addresses.find(item)
    if address is None or not has_one_form(context, kind):
        builder.store(context.data_model_manager[kind].as_data(builder, item), place)
        return
    size = context.get_constant(types.intp, size_and_alignment(context, item.type)[0])
    to, source = (builder.bitcast(each, cgutils.voidptr_t) for each in (place, address))
    cgutils.raw_memcpy(builder, to, source, size, 1)


def note_item(builder: Any, record: Any, item: Any) -> None:
    """Remember where an item of a record stands, if that is known of the record."""
    addresses = addresses_of(builder.function)
    if addresses is None or (address := addresses.find(record)) is None:
        return
    if isinstance(item, llvm.instructions.ExtractValue) and item.operands[0] is record:
        addresses.note(item, cgutils.gep_inbounds(builder, address, 0, *item.indices))


def pop(context: Any, builder: Any, kind: Any, records: Any) -> Any:
    """Return the last record of a list, which is no longer in it, with its references."""

    def lower(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        last = builder.bitcast(_last_slot(context, builder, kind, args[0]), cgutils.voidptr_t)
        bytes_ = context.get_constant(types.intp, _itemsize(context, kind))
        cgutils.raw_memcpy(builder, args[1], last, bytes_, 1)
        return args[1]

    name = f"popped {_itemsize(context, kind)}"
    model = context.data_model_manager[kind.dtype]
    place = reserve(builder, model.get_data_type())
    args = [_memory(context, builder, kind, records), builder.bitcast(place, cgutils.voidptr_t)]
    called_apart(context, builder, name, lower, signature(_ADDRESS, _ADDRESS, _ADDRESS), args)
    items = [_taken(context, builder, part, place, position) for position, part in enumerate(kind.dtype)]
    return context.make_tuple(builder, kind.dtype, items)


def _taken(context: Any, builder: Any, kind: Any, record: Any, position: int) -> Any:
    """Return an item of a record in memory."""
    place = cgutils.gep_inbounds(builder, record, 0, position)
    value = builder.load(place)
    if not has_one_form(context, kind):
        return context.data_model_manager[kind].from_data(builder, value)
    if (addresses := addresses_of(builder.function)) is not None:
        addresses.note(value, place)
    return value


def define_destructor(context: Any, module: Any, kind: Any) -> None:
    """Define the function that drops the references of a list, under the name by which Numba looks for it."""
    accessor = internals.ListPayloadAccessor
    function = cgutils.get_or_insert_function(
        module, llvm.FunctionType(llvm.VoidType(), [cgutils.voidptr_t]), f".dtor.list.{kind.dtype}"
    )
    if not function.is_declaration:
        return
    function.linkage = "linkonce_odr"
    builder = llvm.IRBuilder(function.append_basic_block())
    payload = accessor(context, builder, kind, function.args[0])
    size = payload.size
    with cgutils.for_range(builder, size, intp=size.type) as loop:
        _drop(context, builder, kind.dtype, payload._gep(loop.index))
    builder.ret_void()


def _drop(context: Any, builder: Any, kind: Any, place: Any) -> None:
    """Count one reference less to each part of a value in memory."""
    model = context.data_model_manager[kind]
    if not model.contains_nrt_meminfo():
        return
    if isinstance(kind, _TUPLE):
        for position, part in enumerate(kind.types):
            _drop(context, builder, part, cgutils.gep_inbounds(builder, place, 0, position))
    elif type(kind) is types.Array:
        position = model.get_field_position("meminfo")
        context.nrt.decref(builder, _COUNT, builder.load(cgutils.gep_inbounds(builder, place, 0, position)))
    else:
        context.nrt.decref(builder, kind, model.load_from_data_pointer(builder, place))


def _itemsize(context: Any, kind: Any) -> int:
    return size_and_alignment(context, context.get_data_type(kind.dtype))[0]


def _memory(context: Any, builder: Any, kind: Any, records: Any) -> Any:
    return context.data_model_manager[kind].get(builder, records, "meminfo")


def _instance(context: Any, builder: Any, kind: Any, meminfo: Any) -> Any:
    """Return what Numba changes a list with."""
    instance = internals.ListInstance(context, builder, kind, None)
    instance._list.meminfo = meminfo
    return instance
