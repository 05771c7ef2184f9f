"""Python values as IR operands: a tuple over those of its components, a range over three integers.

    leaves_of(UniTuple(float64, 2))         (float64, float64)
    leaves_of(Function(sin))                ()                    known while compiling, no operand at all

A `LoweredValue` is a value of any type with its operands. Casts between numbers are here too. Instructions are made
only where whole tuples are taken apart, put together and returned:

    split(%p: (f64, (i64, f64)))        getitem %p, 0     %t = getitem %p, 1     getitem %t, 0     getitem %t, 1
    join(%x, %n, %y)                    %t = pack %n, %y                         pack %x, %t
    flatten(%x, %n, %y)                 pack %x, %n, %y                          what a routine returns
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import element_of
from zygote_py.ir import (
    NONE,
    Builder,
    Const,
    DisjointType,
    Instr,
    Loc,
    Operand,
    Param,
    SlotsType,
    Type,
    Undef,
    components_of,
    is_scalar,
    leaf_types,
    names_of,
    ops,
    result_type,
    with_components,
)
from zygote_py.ir.lazy_dataclass import dataclass

_list_of: Callable[[Type], Type] = types.List
RANGES: dict[Type, Type] = {
    types.range_state32_type: types.int32,
    types.range_state64_type: types.int64,
    types.unsigned_range_state64_type: types.uint64,
}


@dataclass(frozen=True, slots=True, eq=False)
class LoweredValue:
    """A value: its type and the operands that it consists of, or the object itself if that is known while compiling.

    `iterator` is what a loop over an iterator runs over, and how it counts.
    """

    type: Type
    leaves: tuple[Operand, ...]
    static: object = None
    iterator: Any = None


NOTHING = LoweredValue(types.none, (NONE,))


def plain(type: Type) -> Type:
    """Return the type that a value has at run time: of `Literal[int](2)`, int64."""
    if isinstance(type, types.Omitted):
        return numba_adapter.typeof(type.value)
    if isinstance(type, types.BaseTuple | types.LiteralStrKeyDict):
        return type
    found: Type = types.unliteral(type.dtype if isinstance(type, types.EnumMember) else type)
    return found


def is_whole(type: Type) -> bool:
    """Return whether values of this type are not tuples, and may have several parts in the IR all the same."""
    is_of_records = is_record(type) or is_structured(type)
    return is_of_records or is_list(type) or dict_of(type) is not None or numba_adapter.is_object(type)


def structure(type: Type) -> Type:
    """Return the type that a parameter has in the IR: a closure or a container is a tuple of what it holds."""
    if is_whole(type):
        leaves = leaves_of(type)
        if len(leaves) == 1:
            return leaves[0]
        fields = is_structured(type) or is_record(type)
        return DisjointType(leaves) if fields else types.BaseTuple.from_types(leaves)
    if not isinstance(type, types.BaseTuple):
        return plain(type)
    parts = components_of(type)
    made = tuple(map(structure, parts))
    if numba_adapter.is_closure(type):
        together: Type = types.BaseTuple.from_types(made)
        return together
    return type if made == parts else with_components(type, made)


def is_in_parts(type: Type) -> bool:
    """Return whether this, or a component, is not a tuple, but one in the IR, as a list of tuples is; no records."""
    if is_tuple(type):
        return not numba_adapter.is_closure(type) and any(map(is_in_parts, components_of(type)))
    return is_whole(type) and not (is_record(type) or is_structured(type)) and is_tuple(structure(type))


def is_tuple(type: Type) -> bool:
    """Return whether values of this type have components."""
    return isinstance(type, types.BaseTuple)


def is_list(type: Type) -> bool:
    """Return whether values of this type are lists."""
    return isinstance(plain(type), types.List | types.ListType)


def is_record(type: Type) -> bool:
    """Return whether values of this type are records, the elements of structured arrays."""
    return isinstance(type, types.Record)


def is_structured(type: Any) -> bool:
    """Return whether this is the type of a structured array."""
    return isinstance(type, types.Array) and isinstance(type.dtype, types.Record)


def fields_of_record(type: Any) -> dict[str, Type]:
    """Return the types of the fields of a record, by name."""
    return {name: field.type for name, field in type.fields.items()}


def field_leaves(field: Any, ndim: int, readonly: bool = False, aligned: bool = True) -> tuple[Type, ...]:
    """Return the types of the arrays that hold a field of the records in a structured array of `ndim` axes.

    Of a record as the field, those of all its fields, which are aligned in memory if they are so in the record.
    """
    if isinstance(field, types.Record):
        aligned = aligned and field.aligned
        fields = fields_of_record(field).values()
        return tuple(leaf for each in fields for leaf in field_leaves(each, ndim, readonly, aligned))
    if isinstance(field, types.NestedArray):
        return (types.Array(field.dtype, ndim + field.ndim, "A", readonly, aligned=aligned),)
    return (types.Array(field, ndim, "A", readonly, aligned=aligned),)


def is_dict(type: Type) -> bool:
    """Return whether values of this type are dicts."""
    return isinstance(type, types.DictType) and not isinstance(type, SlotsType)


_OF_DICTS = types.DictKeysIterableType, types.DictValuesIterableType, types.DictItemsIterableType


def dict_of(type: Any) -> Any:
    """Return the type of a dict, for it and for its keys, values and items; None for all others."""
    found = type.parent if isinstance(type, _OF_DICTS) else type
    return plain(found) if is_dict(found) else None


def key_has_floats(type: Any) -> bool:
    """Return whether there are floats in the keys of a dict, of which several that differ may be equal."""
    return any(isinstance(leaf, types.Float | types.Complex) for leaf in leaves_of(type.key_type))


_KINDS = (
    types.Number,
    types.Boolean,
    types.Array,
    types.UnicodeType,
    types.NoneType,
    types.SliceType,
    types.EllipsisType,
    types.NumPyRandomGeneratorType,
)


def unsupported(type: Type) -> str:
    """Return a description of a type that the IR does not represent; empty for all others."""
    if is_tuple(type):
        return next((kind for kind in map(unsupported, components_of(type)) if kind), "")
    own = plain(type)
    if isinstance(own, _KINDS) or not leaves_of(type):
        return ""
    return next((name for kind, name in _NAMES.items() if isinstance(own, kind)), f"a value of type `{own}`")


def unsupported_argument(type: Type) -> str:
    """Return a description of a type that arguments do not have: what is in lists, dicts and objects counts."""
    if is_tuple(type):
        return next((kind for kind in map(unsupported_argument, components_of(type)) if kind), "")
    if not is_whole(type):
        return unsupported(type)
    if any(is_record(each) or is_structured(each) for each in held_in(type)):
        return f"{_kind_of(type)} that holds records or structured arrays"
    return next((kind for kind in map(_unsupported_within, leaves_of(type)) if kind), "")


def held_in(type: Any) -> Iterator[Type]:
    """Yield the types of what lists, dicts and objects hold, and of what is held in that."""
    parts: tuple[Type, ...] = ()
    held: tuple[Type, ...] = ()
    if is_tuple(type):
        parts = components_of(type)
    elif is_list(type):
        parts = held = (element_of(type),)
    elif (of := dict_of(type)) is not None:
        parts = held = (of.key_type, of.value_type)
    elif numba_adapter.is_object(type):
        parts = held = tuple(numba_adapter.fields_of_object(type).values())
    for each in held:
        yield from leaf_types(each)
    for each in parts:
        yield from held_in(each)


def _kind_of(type: Type) -> str:
    if numba_adapter.is_object(type):
        return "an object"
    return "a list" if is_list(type) else "a dict"


def _unsupported_within(leaf: Any) -> str:
    while isinstance(leaf, types.List):
        leaf = leaf.dtype
    if isinstance(leaf, types.Array) and not is_scalar(leaf.dtype):
        return f"a field of type `{leaf.dtype}`"
    return "" if isinstance(leaf, SlotsType) else unsupported(leaf)


_NAMES = {
    types.List: "a list",
    types.ListType: "a list",
    types.Set: "a set",
    types.DictType: "a dict",
    types.Optional: "a value that may be `None`",
}


def fields_of(type: Any) -> tuple[str, ...]:
    """Return the names of the components of a NamedTuple; none of another tuple."""
    return tuple(getattr(type, "fields", ()))


def elements_of(type: Any) -> Type:
    """Return the type of what an iterator yields."""
    found: Type = type.yield_type
    return found


def cells_of(field: Type) -> tuple[Type, ...]:
    """Return the types of what holds a field of an object: arrays of one number, or lists of one of anything else."""
    return tuple(types.Array(leaf, 1, "C") if is_scalar(leaf) else _list_of(leaf) for leaf in leaves_of(field))


def leaves_of(type: Type) -> tuple[Type, ...]:
    """Return the types of the operands that make up a value of this type."""
    if is_tuple(type):
        return tuple(leaf for component in components_of(type) for leaf in leaves_of(component))
    if type in RANGES:
        return (RANGES[type],) * 3
    if isinstance(type, types.Optional):  # whether there is a value, and the value
        return (types.boolean, *leaves_of(type.type))
    if numba_adapter.is_object(type):
        return tuple(cell for field in numba_adapter.fields_of_object(type).values() for cell in cells_of(field))
    if is_list(type):
        return tuple(map(_list_of, leaves_of(element_of(type))))
    if is_record(type):
        return (types.int64, *field_leaves(type, 1))
    if is_structured(type):
        own: Any = type
        return field_leaves(own.dtype, own.ndim, not own.mutable)
    if isinstance(type, types.NestedArray):
        return (types.Array(type.dtype, type.ndim, "C"),)
    if isinstance(type, types.LiteralStrKeyDict):
        return tuple(leaf for each in type.types for leaf in leaves_of(each))
    if (of := dict_of(type)) is not None:
        slots = SlotsType(plain(of.key_type))
        both = (*leaves_of(of.key_type), *leaves_of(of.value_type))
        return ((slots,) * (1 + key_has_floats(of))) + tuple(map(_list_of, both))
    if (this := numba_adapter.receiver_of(type)) is not None and this is not type:
        return leaves_of(this)
    return () if numba_adapter.is_compile_time(type) else (plain(type),)


def component(bundle: LoweredValue, index: int) -> LoweredValue:
    """Return one component of a tuple."""
    parts = components_of(bundle.type)
    index = range(len(parts))[index]
    start = sum(len(leaves_of(part)) for part in parts[:index])
    part = parts[index]
    return LoweredValue(part, bundle.leaves[start : start + len(leaves_of(part))])


def components(bundle: LoweredValue) -> tuple[LoweredValue, ...]:
    """Return all components of a tuple."""
    parts = components_of(bundle.type)
    ends = list(itertools.accumulate((len(leaves_of(part)) for part in parts), initial=0))
    pairs = zip(parts, itertools.pairwise(ends), strict=True)
    return tuple(LoweredValue(part, bundle.leaves[start:end]) for part, (start, end) in pairs)


def tuple_of(parts: Sequence[LoweredValue]) -> LoweredValue:
    """Return values as the components of a tuple."""
    return LoweredValue(
        types.Tuple([part.type for part in parts]), tuple(leaf for part in parts for leaf in part.leaves)
    )


def tuple_like(kind: Type, parts: Sequence[LoweredValue]) -> LoweredValue:
    """Return values as the components of a tuple, of the same NamedTuple or dataclass as a type if that is one."""
    made = with_components(kind, tuple(part.type for part in parts))
    return LoweredValue(made, tuple(leaf for part in parts for leaf in part.leaves))


def value_of(operand: Operand) -> LoweredValue:
    """Return a number or an array as a value."""
    return LoweredValue(operand.type, (operand,))


def named(operand: Operand, hint: str) -> Operand:
    """Return an operand, which gets a name if it is an instruction without one."""
    if isinstance(operand, Instr) and not operand.hint:
        operand.hint = hint
    return operand


def with_names(value: LoweredValue, hint: str) -> LoweredValue:
    """Return a value, whose numbers and arrays get a name if they have none."""
    for leaf in value.leaves:
        named(leaf, hint)
    return value


def constant(value: object, type: Type) -> Const:
    """Return a constant of a scalar type, in Python's own form of it."""
    match type:
        case types.Boolean():
            return Const(bool(value), type)
        case types.Integer():
            return Const(int(value), type)  # type: ignore[call-overload]
        case types.Float():
            number = float(value)  # type: ignore[arg-type]
            return Const(float(np.float32(number)) if type == types.float32 else number, type)
        case types.Complex():
            return Const(complex(value), type)  # type: ignore[call-overload]
        case _:
            return Const(value, type)


def constant_of(value: object, type_: Type, loc: Loc) -> LoweredValue:
    """Return a value known while compiling: a number, a string, an object, or a tuple or structure of such."""
    if numba_adapter.is_closure(type_):
        return LoweredValue(type_, ())  # a derivative of a function that captures nothing here
    if is_tuple(type_):
        names = fields_of(type_)
        items = [getattr(value, name) for name in names] if names else value
        assert isinstance(items, list | tuple)
        parts = [constant_of(item, part, loc) for item, part in zip(items, components_of(type_), strict=True)]
        return LoweredValue(type_, tuple(leaf for part in parts for leaf in part.leaves))
    if not leaves_of(type_):
        return LoweredValue(type_, (), value)
    own = plain(type_)
    if isinstance(type_, types.EnumMember):
        assert isinstance(value, enum.Enum)
        return LoweredValue(type_, constant_of(value.value, own, loc).leaves)
    if not isinstance(own, types.Number | types.Boolean | types.UnicodeType | types.NoneType | types.EllipsisType):
        kind = type(value).__name__
        hint = "pass it as an argument, or use a number, an array or a tuple"
        raise refuse(f"a constant of type `{kind}` is not supported", loc, hint)
    return LoweredValue(own, (constant(value, own),))


def undefined(type: Type) -> tuple[Operand, ...]:
    """Return the operands of a variable of this type on a path where it was not assigned."""
    return tuple(Undef(leaf) for leaf in leaves_of(type))


def cast_op(own: Type, type: Type) -> Callable[..., object]:
    """Return the callable that casts one type of number to another; Numba's `float` leaves a float32 unchanged."""
    if type == types.float64 and isinstance(own, types.Integer):
        return float
    if isinstance(type, types.Boolean):
        return bool
    op: Callable[..., object] = getattr(np, type.name)
    return op


def literal(value: object, loc: Loc) -> Const:
    """Return a constant operand of Numba's type for it."""
    type_ = numba_adapter.typeof(value)
    if is_tuple(type_) or not leaves_of(type_):
        raise refuse(f"the constant `{value!r}` is not supported here", loc, "use a number or a string")
    return constant(value, plain(type_))


def known(type_: Type) -> LoweredValue | None:
    """Return the value of something whose type is that of a literal."""
    if isinstance(type_, types.Literal) and leaves_of(type_):
        own = plain(type_)
        return LoweredValue(own, (constant(type_.literal_value, own),))
    return None


# ---------------------------------------------------------------------------------------- whole tuples as instructions


def split(b: Builder, value: Operand, kind: Type) -> LoweredValue:
    """Take a value of a type apart; a value known by its type alone has no operand."""
    if not is_tuple(kind):
        own = leaves_of(kind)
        if len(own) < 2:
            return LoweredValue(kind, (value,) if own else ())
        return LoweredValue(kind, tuple(_item(b, value, number, leaf) for number, leaf in enumerate(own)))
    leaves: list[Operand] = []
    for number, part in enumerate(components_of(kind)):
        if leaves_of(part):
            leaves += split(b, _item(b, value, number, part), part).leaves
    return LoweredValue(kind, tuple(leaves))


def parameter(b: Builder, name: str, type_: Type, loc: Loc) -> tuple[Param, LoweredValue]:
    """Return a new parameter of a function that takes whole arguments, and its value, taken apart."""
    if kind := unsupported_argument(type_):
        raise refuse(
            f"the argument `{name}`, {kind}, is not supported",
            loc,
            "use a number, an array, a tuple or a NamedTuple",
            name,
        )
    param = Param(structure(type_), name, loc)
    if not leaves_of(type_):
        return param, LoweredValue(type_, (), numba_adapter.object_of(type_))
    own = param.type if is_tuple(type_) else type_
    return param, LoweredValue(plain(type_), split(b, param, own).leaves)


def join(b: Builder, value: LoweredValue, leaf: Callable[[LoweredValue], Operand]) -> Operand:
    """Put the tuples of a value together again; `leaf` returns the operand of a component that is not a tuple."""
    if not is_tuple(value.type):
        whole = structure(value.type)
        return b.call(ops.pack, *value.leaves, type=whole) if is_tuple(whole) else leaf(value)
    return b.call(ops.pack, *[join(b, part, leaf) for part in components(value)], type=structure(value.type))


def flatten(b: Builder, value: LoweredValue) -> Operand:
    """Return what a routine returns: nothing, the one number or array of a result, or a tuple of them."""
    if len(value.leaves) > 1:
        return b.call(ops.pack, *value.leaves, type=flat_type(leaves_of(value.type)))
    return value.leaves[0] if value.leaves else NONE


def unflatten(b: Builder, value: Operand, kind: Type) -> LoweredValue:
    """Return the value of a type from the result of a routine, which is in the form of `flatten`."""
    leaves = leaves_of(kind)
    if len(leaves) < 2:
        return LoweredValue(kind, (value,) if leaves else ())
    parts = (NONE if plain(leaf) == types.none else _item(b, value, number, leaf) for number, leaf in enumerate(leaves))
    return LoweredValue(kind, tuple(parts))


def flat_type(leaves: Iterable[Type]) -> Type:
    """Return the type of a routine's flat result, for a result of these parts."""
    return result_type(tuple(map(plain, leaves)))


def parameters_of(name: str, type: Type, loc: Loc) -> list[Param]:
    """Return the parameters of a routine for one of a function: one for each number or array in it."""
    names = _names(name, type)
    leaves = leaves_of(type)
    if len(names) != len(leaves):  # a range, an object: known by the type alone
        names = [name] * len(leaves) if len(leaves) == 1 else [f"{name}_{number}" for number in range(len(leaves))]
    return [Param(plain(leaf), each, loc) for each, leaf in zip(names, leaves, strict=True)]


def _names(name: str, type: Type) -> list[str]:
    if isinstance(type, types.Optional):
        return [f"has_{name}", *_names(name, type.type)]
    if not is_tuple(type):
        return [name]
    parts = zip(names_of(type), components_of(type), strict=True)
    return [each for part, kind in parts for each in _names(f"{name}_{part}", kind) if leaves_of(kind)]


def _item(b: Builder, value: Operand, number: int, kind: Type) -> Operand:
    """Return an item of a tuple: what was packed, if that is known."""
    if isinstance(value, Instr) and value.op is ops.pack:
        return value.args[number]
    return b.call(ops.getitem, value, Const(number, types.int64), type=plain(kind))
