"""Structured arrays and their elements: an array for each field, and the place of an element in them.

    a: Array(Record(x: f64, n: i64), 1)      %a_x : f64[:]A, %a_n : i64[:]A
    a["x"], a.x                              %a_x
    r = a[i]                                 %i, %a_x, %a_n           a record is its place, as it is in Numba
    r.x, a[i]["x"]                           getitem %a_x, %i
    r.x = y                                  setitem %a_x, %y, %i

The arrays are the fields of the caller's memory. A field that is an array adds axes, one that is a record its fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.frontend.values import (
    INT,
    Emitter,
    Iteration,
    LoweredValue,
    dict_of,
    dim,
    field_leaves,
    fields_of_record,
    held_in,
    is_in_parts,
    is_record,
    is_structured,
    leaves_of,
    plain,
)
from zygote_py.ir import Const, DisjointType, Instr, Operand, Param, Type, Value, copied_type, ops
from zygote_py.ir.lazy_dataclass import dataclass

_HINT = "use its fields, each of which is an array, or loop over the records"


def field(at: Emitter, value: LoweredValue, name: str) -> LoweredValue:
    """`value.name`, of a structured array or of a record."""
    kind, leaves = _field(value, name)
    if is_structured(value.type):
        array: Any = value.type
        if isinstance(kind, types.Record):
            return LoweredValue(types.Array(kind, array.ndim, "A"), leaves)
        return LoweredValue(leaves[0].type, leaves)
    place = value.leaves[0]
    if isinstance(kind, types.Record):
        return LoweredValue(kind, (place, *leaves))
    (array_of_field,) = leaves
    return _element(at, array_of_field, place, kind)


def _element(at: Emitter, array: Any, place: Operand, kind: Any) -> LoweredValue:
    """Return the element of a field, of a type: an array is in C order, and where it lies."""
    if array.type.ndim == 1:
        return LoweredValue(array.type.dtype, (at.emit(ops.getitem, (array, place), array.type.dtype),))
    row = _row(at, array, (place,))
    made = types.Array(array.type.dtype, array.type.ndim - 1, "C", not array.type.mutable)  # as for Numba
    lengths = [Const(length, INT) for length in kind.shape]
    return LoweredValue(made, (at.emit(np.reshape, (row, *lengths), made),))


def _field(value: LoweredValue, name: str) -> tuple[Type, tuple[Operand, ...]]:
    """Return the type of a field, and the arrays that hold it."""
    record: Any = value.type.dtype if is_structured(value.type) else value.type  # type: ignore[attr-defined]
    leaves = iter(value.leaves if is_structured(value.type) else value.leaves[1:])
    for each, kind in fields_of_record(record).items():
        held = tuple(islice(leaves, len(field_leaves(kind, 1))))
        if each == name:
            return kind, held
    raise AssertionError(name)  # Numba would not have typed it


def item(at: Emitter, value: LoweredValue, index: Sequence[Operand], type_: Type) -> LoweredValue:
    """`value[index]`: a record, or a structured array."""
    array: Any = value.type
    if is_record(type_):
        leaves = value.leaves
        if len(index) != array.ndim or not all(isinstance(each.type, types.Integer | types.Boolean) for each in index):
            raise at.refuse("this index of a structured array is not supported", _HINT, "[")
        *rows, place = index
        if rows:
            leaves = tuple(_row(at, leaf, rows) for leaf in leaves)
        return LoweredValue(plain(type_), (at.cast(place, INT), *leaves))
    if any(isinstance(each.type, types.Array) for each in index):
        raise at.refuse("an array as an index of a structured array is not supported", _HINT, "[")
    leaves = tuple(at.emit(ops.getitem, (leaf, *index), part_type(leaf.type, index)) for leaf in value.leaves)
    return LoweredValue(type_, leaves)


def part_type(array: Type, index: Sequence[Operand]) -> Type:
    """Return the type that Numba gives a part of an array, which it has typed together with others."""
    found = numba_adapter.item_type(array, [each.type for each in index])
    assert found is not None
    return found


def _row(at: Emitter, leaf: Operand, rows: Sequence[Operand]) -> Operand:
    return at.emit(ops.getitem, (leaf, *rows), _like(leaf.type, -len(rows)))


def _like(array: Any, more: int) -> types.Array:
    made: types.Array = array.copy(ndim=array.ndim + more)
    return made


def store(at: Emitter, target: LoweredValue, index: Sequence[Operand], value: LoweredValue) -> None:
    """`target[index] = value`, of a record."""
    record: Any = target.type.dtype  # type: ignore[attr-defined]
    if not is_record(value.type) or plain(value.type) != record:
        raise at.refuse("storing this to a structured array is not supported", "store to its fields, one by one", "=")
    stored = item(at, target, index, record)
    kinds = _kinds(record)
    for own, given, kind in zip(stored.leaves[1:], value.leaves[1:], kinds, strict=True):
        _assign(at, own, stored.leaves[0], _element(at, given, value.leaves[0], kind))


def _kinds(record: Any) -> Iterator[Type]:
    """Yield the types of the fields of a record, and of those of records in it."""
    for kind in fields_of_record(record).values():
        yield from _kinds(kind) if is_record(kind) else (kind,)


def assign_field(at: Emitter, target: LoweredValue, name: str, value: LoweredValue) -> None:
    """`target.name = value`, of a record."""
    kind, leaves = _field(target, name)
    if isinstance(kind, types.Record):
        raise at.refuse("storing a record to a field is not supported", "store to its fields, one by one", "=")
    _assign(at, leaves[0], target.leaves[0], value)


def _assign(at: Emitter, array: Any, place: Operand, value: LoweredValue) -> None:
    (given,) = value.leaves
    if not array.type.mutable:
        raise at.refuse("this array cannot be written to: it is read-only", "write to a copy of it", "=")
    if array.type.ndim == 1:
        at.emit(ops.setitem, (array, at.cast(given, array.type.dtype), place), types.none)
    else:
        row = at.emit(ops.getitem, (array, place), _like(array.type, -1))
        at.emit(ops.setitem, (row, given), types.none)


def made(
    at: Emitter, callee: object, args: Sequence[LoweredValue], keywords: Mapping[str, LoweredValue], type_: Type
) -> LoweredValue | None:
    """Return a new structured array: of zeros, or a copy; None for all other calls."""
    if not is_structured(type_):
        return None
    new: Any = plain(type_)
    kinds: list[Any] = list(leaves_of(new))
    layout = [types.Array(leaf.dtype, leaf.ndim, "C") for leaf in kinds]
    if callee in (np.zeros, np.empty) and len(args) + len(keywords) == 2:
        shape = args[0] if args else keywords["shape"]
        lengths = [at.cast(each, INT) for each in shape.leaves]
        shapes = [[*lengths, *(Const(each, INT) for each in own)] for own in _shapes(new.dtype)]
        leaves = (at.emit(ops.zeros, own, leaf) for own, leaf in zip(shapes, layout, strict=True))
        return LoweredValue(new, tuple(leaves))
    if callee in (np.zeros_like, np.empty_like, np.copy) and args and not keywords and is_structured(args[0].type):
        op = np.copy if callee is np.copy else np.zeros_like
        return LoweredValue(new, tuple(at.emit(op, (leaf,), copied_type(leaf.type)) for leaf in args[0].leaves))
    return None


def refuse_dtype(at: Emitter, type_: Type, name: str) -> None:
    """Refuse the dtype of structured arrays as an argument of a function that does not make them."""
    if isinstance(type_, types.DType) and isinstance(type_.dtype, types.Record):
        what = f"`{name}` with a structured dtype is not supported"
        raise at.refuse(what, "use `np.zeros(shape, dtype)` or `np.empty(shape, dtype)`", name)


def make_readonly(captured: LoweredValue) -> None:
    """Let nothing be written to a record that is captured, as Numba lets nothing be written to a captured array."""
    if not is_record(captured.type):
        return
    kinds = [
        leaf.type.copy(readonly=True) if isinstance(leaf.type, types.Array) else leaf.type for leaf in captured.leaves
    ]
    for leaf, kind in zip(captured.leaves, kinds, strict=True):
        assert isinstance(leaf, Value)
        leaf.type = kind
        if isinstance(leaf, Instr):  # an item of the parameter
            (param, _) = leaf.args
            assert isinstance(param, Param)
            param.type = DisjointType(tuple(kinds))


def _shapes(record: Any) -> Iterator[tuple[int, ...]]:
    """Yield the shape of each field in a record, and of those of its records."""
    for field in fields_of_record(record).values():
        if is_record(field):
            yield from _shapes(field)
        else:
            yield getattr(field, "shape", ())


def refuse_held(at: Emitter, type_: Type) -> None:
    """Refuse a list or a dict of records: Numba copies a record that is stored there, and here it is a reference."""
    if any(map(is_record, held_in(type_))):
        kind = "dict" if dict_of(type_) is not None else "list"
        raise at.refuse(f"a {kind} of records is not supported", "store their numbers, or the places in the array")


def refuse_parts(at: Emitter, name: str, args: Iterable[LoweredValue]) -> None:
    """Refuse a list of tuples, or what else is in parts here, as an argument of a function of Numba's own."""
    for arg in args:
        if is_in_parts(arg.type):
            hint = "loop over it, or pass arrays and lists of numbers"
            raise at.refuse(f"`{name}` of a value of type `{plain(arg.type)}` is not supported", hint, name)


def refuse_records(at: Emitter, args: Sequence[LoweredValue], what: str) -> None:
    """Refuse an operation of structured arrays or records that is not among those above."""
    if any(is_record(arg.type) or is_structured(arg.type) for arg in args):
        raise at.refuse(f"`{what}` of a structured array or a record is not supported", _HINT, what)


@dataclass(frozen=True, slots=True, eq=False)
class OverRecords(Iteration):
    """The records of a structured array of one axis."""

    array: LoweredValue

    def length(self, emit: Emitter) -> Operand:
        """Return the number of records."""
        return dim(emit, self.array.leaves[0], 0)

    def at(self, k: Operand, emit: Emitter) -> LoweredValue:
        """Return record number `k`."""
        own: Any = self.array.type
        return LoweredValue(own.dtype, (emit.cast(k, INT), *self.array.leaves))


def shape(at: Emitter, value: LoweredValue) -> tuple[Operand, ...]:
    """Return the lengths of the axes of a structured array."""
    array: Any = value.type
    return tuple(dim(at, value.leaves[0], axis) for axis in range(array.ndim))
