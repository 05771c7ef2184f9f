"""Reading and writing an element of an array, and making arrays, in LLVM's terms.

Numba copies the array's structure to the stack for each access, from where LLVM takes it again. Here the fields are
taken from the value. All else is Numba's: an index less than zero counts from the end, bounds are checked where that is
asked for, and the address is computed in the same way.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping
from typing import Any

import llvmlite.ir as llvm
from numba import types

from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base import internals
from zygote_py.numba_adapter.base.internals import cgutils

_NEVER_NEGATIVE = "_zygote_py_never_negative"  # the attribute of an LLVM function
_TUPLE: Any = types.BaseTuple
SCALARS = (types.Integer, types.Float, types.Complex, types.Boolean)


def is_element(array: Any, index: Any) -> bool:
    """Return whether an index of a type gives an element of an array of a type, a number or a truth value."""
    if type(array) is not types.Array or type(array.dtype) not in SCALARS:
        return False
    indices: tuple[Any, ...] = index.types if isinstance(index, _TUPLE) else (index,)
    return 0 < len(indices) == array.ndim and all(isinstance(each, types.Integer) for each in indices)


def is_matrix(kind: Any) -> bool:
    """Return whether a type is one of arrays with two axes."""
    return type(kind) is types.Array and kind.ndim == 2


def has_one_form(context: Any, kind: Any) -> bool:
    """Return whether values of a type are the same in memory, as results, and as they are used.

    Numba takes a value apart and puts it together again to go from one form to another.
    """
    if isinstance(kind, _TUPLE):
        return type(kind) in (types.UniTuple, types.Tuple) and all(has_one_form(context, each) for each in kind.types)
    model = context.data_model_manager[kind]
    is_known = type(kind) is types.Array or isinstance(kind, types.Integer | types.Float | types.NoneType)
    return is_known and model.get_value_type() == model.get_data_type() == model.get_return_type()


_FEWEST, _MOST = 2, 64  # kinds of memory that are told apart; each access names all others


_Metadata: Any = llvm.MDValue


class Node(_Metadata):  # type: ignore[misc]
    """Metadata that is equal to no other, though it may hold the same, or itself."""

    def __init__(self, module: Any, operands: Any = ()) -> None:
        super().__init__(module, operands, name=str(len(module.metadata)))

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class Apart:
    """Tells LLVM of reads and writes of elements whether they can be of the same memory (`base/own_memory.py`).

    LLVM knows it of few arrays, and checks before a loop that becomes vectors whether the others overlap, if they are
    few enough.
    """

    def __init__(self, module: Any, memory: Mapping[str, int]) -> None:
        self._module = module
        self._every = functools.reduce(operator.or_, memory.values(), 0)
        self._memory = memory if _FEWEST <= self._every.bit_count() <= _MOST else {}
        self._scopes: dict[int, Node] = {}
        self._lists: dict[int, Node] = {}
        self._domain: Node | None = None

    def note(self, name: str, instructions: Iterable[Any]) -> None:
        """Note the memory that a variable's array may be in, with the loads and stores among these instructions."""
        bits = self._memory.get(name)
        if bits is None:
            return
        for each in instructions:
            if isinstance(each, llvm.LoadInstr | llvm.StoreInstr):
                each.set_metadata("alias.scope", self._list(bits))
                if bits != self._every:
                    each.set_metadata("noalias", self._list(self._every & ~bits))

    def _list(self, bits: int) -> Node:
        if bits not in self._lists:
            parts = [1 << number for number in range(bits.bit_length()) if bits >> number & 1]
            self._lists[bits] = Node(self._module, [self._scope(each) for each in parts])
        return self._lists[bits]

    def _scope(self, bit: int) -> Node:
        if self._domain is None:
            self._domain = self._new()
        if bit not in self._scopes:
            self._scopes[bit] = self._new(self._domain)
        return self._scopes[bit]

    def _new(self, *operands: Node) -> Node:
        made = Node(self._module)
        made.operands = (made, *operands)
        return made


@dataclass(frozen=True, slots=True)
class Parts:
    """Stands for a tuple that is only returned, and of which no value is made."""

    items: list[Any]


def items_of(value: Any, count: int) -> list[Any] | None:
    """Return the items of a tuple that has been made of them here; None if it is another one.

    To put an item into a tuple, or to take one out, means to write down the types of all others.
    """
    if isinstance(value, Parts):
        return value.items
    items: dict[int, Any] = {}
    while isinstance(value, llvm.instructions.InsertValue) and len(value.indices) == 1:
        whole, item = value.operands
        items.setdefault(value.indices[0], item)
        value = whole
    return [items[position] for position in range(count)] if len(items) == count else None


_LAYOUTS: dict[Any, tuple[int, int]] = {}


def size_and_alignment(context: Any, kind: Any) -> tuple[int, int]:
    """Return the bytes of values of a type of LLVM's, and what their addresses are multiples of.

    Numba has LLVM read a module for each such question.
    """
    if kind not in _LAYOUTS:
        _LAYOUTS[kind] = context.get_abi_sizeof(kind), context.get_abi_alignment(kind)
    return _LAYOUTS[kind]


def places_of(context: Any, builder: Any, kind: Any, place: Any) -> list[Any]:
    """Return the addresses of the items of a tuple in memory, by bytes: otherwise each names the types of all items."""
    start = builder.bitcast(place, cgutils.voidptr_t)
    found, offset = [], 0
    for each in kind:
        data = context.get_data_type(each)
        size, alignment = size_and_alignment(context, data)
        offset += -offset % alignment
        found.append(builder.bitcast(cgutils.gep_inbounds(builder, start, offset), data.as_pointer()))
        offset += size
    return found


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an array that are needed for the address of an element."""

    data: Any
    shape: list[Any]
    strides: list[Any]


def fields_of(context: Any, builder: Any, kind: Any, value: Any) -> Fields:
    """Return the fields of an array."""
    model = context.data_model_manager[kind]
    shape, strides = (
        cgutils.unpack_tuple(builder, model.get(builder, value, name), kind.ndim) for name in ("shape", "strides")
    )
    return Fields(model.get(builder, value, "data"), shape, strides)


def array_of(context: Any, builder: Any, kind: Any, fields: Mapping[str, Any]) -> Any:
    """Return the array that has these fields; those that are not given are null."""
    model = context.data_model_manager[kind]
    made = cgutils.get_null_value(model.get_value_type())
    for name, value in fields.items():
        made = model.set(builder, made, value, name)
    return made


def transposed(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return a matrix with its axes exchanged, in which references are not counted."""
    fields = fields_of(context, builder, kind, value)
    model = context.data_model_manager[kind]
    for name, given in (("shape", fields.shape), ("strides", fields.strides)):
        value = model.set(builder, value, cgutils.pack_array(builder, given[::-1]), name)
    return value


def view_at(context: Any, builder: Any, kind: Any, array_kind: Any, array: Any, index_kind: Any, index: Any) -> Any:
    """Return the view at an index of numbers and slices, in which references are not counted."""
    kinds, indices = (index_kind,), [index]
    if isinstance(index_kind, _TUPLE):
        kinds, indices = index_kind.types, cgutils.unpack_tuple(builder, index, len(index_kind))
    whole = internals.make_array(array_kind)(context, builder, array)
    return internals._getitem_array_generic(context, builder, kind, array_kind, whole, kinds, indices)


def note_never_negative(function: Any, value: Any) -> None:
    """Remember of an integer of an LLVM function that it is never negative."""
    vars(function).setdefault(_NEVER_NEGATIVE, {})[id(value)] = value  # which is kept, so that no other has its id


def _is_never_negative(function: Any, value: Any) -> bool:
    return id(value) in vars(function).get(_NEVER_NEGATIVE, ())


def address(
    context: Any,
    builder: Any,
    kind: Any,
    fields: Fields,
    index_type: Any,
    index: Any,
    steps: Mapping[int, tuple[Any, Any]],
) -> Any:
    """Return the address of an element. Along some axes the index is the product of another one and of a step."""
    if isinstance(index_type, _TUPLE):
        count = len(index_type)
        index_types, indices = index_type.types, items_of(index, count) or cgutils.unpack_tuple(builder, index, count)
    else:
        index_types, indices = (index_type,), [index]
    fixed = []
    for axis, length in enumerate(fields.shape):
        if axis in steps:
            whole, step = steps[axis]
            whole = internals.fix_integer_index(context, builder, types.intp, whole, length)
            fixed.append(builder.mul(whole, step, flags=["nsw", "nuw"]))
        elif index_types[axis] == types.intp and _is_never_negative(builder.function, indices[axis]):
            fixed.append(indices[axis])
        else:
            fixed.append(internals.fix_integer_index(context, builder, index_types[axis], indices[axis], length))
    if context.enable_boundscheck:
        for axis, each in enumerate(fixed):
            cgutils.do_boundscheck(context, builder, each, fields.shape[axis], axis)
    return cgutils.get_item_pointer2(
        context, builder, data=fields.data, shape=fields.shape, strides=fields.strides, layout=kind.layout, inds=fixed
    )
