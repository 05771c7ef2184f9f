"""Dicts that a function creates: a dict from keys to slots, and lists in which the keys and the values have them.

    d[k] = x                 %n = len %values : i64
                             set_slot %slots, %k, %n
                             push %keys, %k
                             push %values, %x
    d[k]                     %n = slot_of %slots, %k : i64
                             %v = getitem %values, %n : f64
    del d[k]                 free_slot %slots, %k
    for k, v in d.items()    %order = slots_in_order %slots : i64[:]

Values are spread over several lists as the elements of a list of tuples are. A value that is stored again has a new
slot, so that nothing is overwritten and the order of the keys stays. Dicts do not distinguish equal keys: of those
that are stored again the first stays, and where keys are floats, a second dict from keys to slots tells which one that
is. Other methods and operators are functions of `zygote_py.numpy_functions.lists.dicts`, or refused here.

A display with keys that are strings and values of several types has components for Numba, as a tuple has.
"""

from __future__ import annotations

import builtins
import operator
from dataclasses import replace
from itertools import islice
from typing import Any

from numba import types

from zygote_py.base import statements as st
from zygote_py.frontend.expressions.lists import refuse_other_arrays
from zygote_py.frontend.values import (
    INT,
    ZERO,
    Emitter,
    Iteration,
    LoweredValue,
    components,
    constant_of,
    dict_of,
    is_dict,
    is_tuple,
    join,
    key_has_floats,
    leaves_of,
    plain,
)
from zygote_py.ir import Function, Operand, Type, is_scalar, ops, zero_key
from zygote_py.ir.analysis import Memory, loop_nest
from zygote_py.ir.lazy_dataclass import dataclass

_HINT = "use `d[k]`, `in`, `get`, `pop`, `setdefault`, `update`, `copy`, and loops over keys, values and items"


@dataclass(frozen=True, slots=True)
class _Parts:
    """The operands of a dict."""

    slots: Operand
    first: Operand  # `slots`, unless the keys are floats: the slots of the keys as they were first stored
    keys: tuple[Operand, ...]
    values: tuple[Operand, ...]


def _parts(value: LoweredValue) -> _Parts:
    own: Any = dict_of(value.type)
    slots, *rest = value.leaves
    first = rest.pop(0) if key_has_floats(own) else slots
    count = len(leaves_of(own.key_type))
    return _Parts(slots, first, tuple(rest[:count]), tuple(rest[count:]))


def new(at: Emitter, type_: Type) -> LoweredValue:
    """Return an empty dict."""
    own: Any = plain(type_)
    key = zero_key(plain(own.key_type))
    if key is None:
        raise at.refuse(
            f"a dict with keys of type `{own.key_type}` is not supported",
            "use numbers, strings, or tuples of them",
            "{",
        )
    made: list[Operand] = []
    for leaf in leaves_of(own):
        if isinstance(leaf, types.DictType):
            made.append(at.emit(ops.no_slots, (key,), leaf, "slots"))
        else:
            hint = "keys" if len(made) < len(leaves_of(own)) - len(leaves_of(own.value_type)) else "values"
            made.append(at.emit(ops.stack, (), leaf, hint))
    return LoweredValue(own, tuple(made))


def build(at: Emitter, items: list[LoweredValue], type_: Type) -> LoweredValue:
    """`{a: b, c: d}`"""
    if isinstance(type_, types.LiteralStrKeyDict):
        parts = zip(items[1::2], type_.types, strict=True)
        return LoweredValue(type_, tuple(leaf for item, own in parts for leaf in at.cast_bundle(item, own).leaves))
    made = new(at, type_)
    for key, value in zip(items[::2], items[1::2], strict=True):
        store_item(at, made, key, value)
    return made


def length(at: Emitter, value: LoweredValue) -> Operand:
    """`len(value)`"""
    return at.emit(builtins.len, (value.leaves[0],), INT)


def item(at: Emitter, value: LoweredValue, key: LoweredValue) -> LoweredValue:
    """`value[key]`"""
    slot = at.emit(ops.slot_of, (value.leaves[0], _key(at, value, key)), INT, "slot")
    return _at_slot(at, value, slot)


def item_of_display(at: Emitter, value: LoweredValue, key: object) -> LoweredValue:
    """`value["a"]`, of a display with values of several types."""
    own: Any = value.type
    leaves = iter(value.leaves)
    for name, kind in zip(own.fields, own.types, strict=True):
        taken = tuple(islice(leaves, len(leaves_of(kind))))
        if name == key:
            return LoweredValue(kind, taken)
    raise at.refuse(f"there is no key {key!r} in this display", "use one of its keys, as a constant", "[")


def store(at: Emitter, statement: st.Store) -> None:
    """`target[index] = value`"""
    store_item(at, at.read(statement.target), at.read(statement.index), at.read(statement.value))


def store_item(at: Emitter, target: LoweredValue, key: LoweredValue, value: LoweredValue) -> None:
    """`target[key] = value`"""
    own: Any = plain(target.type)
    parts, where = _parts(target), _key(at, target, key)
    stored = at.cast_bundle(value, own.value_type)
    for given, wanted in ((key, own.key_type), (value, own.value_type)):
        _check(at, at.cast_bundle(given, wanted), wanted)
    refuse_other_arrays(at, stored)
    slot = at.emit(builtins.len, (parts.values[0],), INT, "slot")
    at.emit(ops.set_slot, (parts.slots, where, slot), types.none)
    if parts.first is not parts.slots:
        at.emit(ops.keep_slot, (parts.first, where, slot), types.none)
    leaves = (*at.cast_bundle(key, own.key_type).leaves, *stored.leaves)
    for held, leaf in zip((*parts.keys, *parts.values), leaves, strict=True):
        at.emit(ops.push, (held, leaf), types.none)


def _check(at: Emitter, given: LoweredValue, wanted: Type) -> None:
    """Refuse a key or a value of another type than those in a dict; Numba types a display by its first item."""
    both = zip(given.leaves, leaves_of(wanted), strict=False)
    fits = all(plain(leaf.type) == plain(kind) for leaf, kind in both if is_scalar(plain(kind)))
    if not fits or len(given.leaves) != len(leaves_of(wanted)):
        kinds = ", ".join(f"`{plain(leaf.type)}`" for leaf in given.leaves)
        hint = "use values of one type, or a NamedTuple"
        raise at.refuse(f"a dict of mixed types: {kinds} beside `{plain(wanted)}`", hint, "{")


def delete(at: Emitter, target: LoweredValue, key: LoweredValue) -> None:
    """`del target[key]`"""
    parts, where = _parts(target), _key(at, target, key)
    for slots in dict.fromkeys((parts.slots, parts.first)):
        at.emit(ops.free_slot, (slots, where), types.none)


def contains(at: Emitter, value: LoweredValue, key: LoweredValue) -> Operand:
    """`key in value`"""
    slot = at.emit(ops.find_slot, (value.leaves[0], _key(at, value, key)), INT, "slot")
    return at.emit(operator.ge, (slot, ZERO), types.boolean, "c")


def lacks(at: Emitter, value: LoweredValue, key: object) -> Operand:
    """`key not in value`, of a key in a variable or known while compiling."""
    own: Any = dict_of(value.type)
    held = key if isinstance(key, LoweredValue) else constant_of(key, plain(own.key_type), at.loc)
    slot = at.emit(ops.find_slot, (value.leaves[0], _key(at, value, held)), INT, "slot")
    return at.emit(operator.lt, (slot, ZERO), types.boolean, "c")


def with_own_keys(at: Emitter, value: LoweredValue) -> LoweredValue:
    """Return the result of a derivative with copies of the keys of dicts, which are those of other dicts."""
    if is_tuple(value.type):
        parts = [with_own_keys(at, part).leaves for part in components(value)]
        return replace(value, leaves=tuple(leaf for leaves in parts for leaf in leaves))
    if not is_dict(value.type):
        return value
    count = len(value.leaves) - len(_parts(value).values)
    keys = (
        at.emit(ops.copied if isinstance(leaf.type, types.List) else ops.copied_slots, (leaf,), leaf.type)
        for leaf in value.leaves[:count]
    )
    return replace(value, leaves=(*keys, *value.leaves[count:]))


def method(at: Emitter, value: LoweredValue, name: str, args: list[LoweredValue], type_: Type) -> LoweredValue:
    """`value.name(*args)`"""
    if name in ("keys", "values", "items") and not args and is_dict(value.type):
        return replace(value, type=type_)
    if name == "__setitem__":  # in a comprehension
        store_item(at, value, *args)
        return LoweredValue(type_, ())
    raise at.refuse(f"the method `{name}` of a dict is not supported", _HINT, name)


def _key(at: Emitter, value: LoweredValue, key: LoweredValue) -> Operand:
    """Return a key as one operand."""
    own: Any = dict_of(value.type)
    return join(at, at.cast_bundle(key, plain(own.key_type)), lambda part: part.leaves[0])


def _at_slot(at: Emitter, value: LoweredValue, slot: Operand) -> LoweredValue:
    own: Any = dict_of(value.type)
    return at.emit_each(ops.getitem, _parts(value).values, own.value_type, slot)


@dataclass(frozen=True, slots=True, eq=False)
class OverDict(Iteration):
    """The keys, values or items of a dict, none of which may be added or removed meanwhile."""

    dict: LoweredValue
    element_type: Type
    order: Operand | None = None
    order_of_keys: Operand | None = None
    size: Operand | None = None

    def begin(self, emit: Emitter) -> Iteration:
        """Return the iteration of a loop, for the entries that there are now."""
        parts = _parts(self.dict)
        order = keys = emit.emit(ops.slots_in_order, (parts.slots,), _ORDER, "order")
        if parts.first is not parts.slots:
            keys = emit.emit(ops.slots_in_order, (parts.first,), _ORDER, "order")
        size = emit.emit(builtins.len, (parts.slots,), INT)
        return replace(self, order=order, order_of_keys=keys, size=size)

    def length(self, emit: Emitter) -> Operand:
        """Return the number of entries."""
        assert self.size is not None
        return self.size

    def at(self, k: Operand, emit: Emitter) -> LoweredValue:
        """Return element number `k`."""
        own: Any = dict_of(self.dict.type)
        parts = _parts(self.dict)
        assert self.order is not None
        assert self.order_of_keys is not None
        assert self.size is not None
        now = emit.emit(builtins.len, (parts.slots,), INT)
        emit.emit(ops.check_same_size, (now, self.size), types.none)
        slot = emit.emit(ops.getitem, (self.order_of_keys, k), INT, "slot")
        key = LoweredValue(own.key_type, emit.emit_each(ops.getitem, parts.keys, own.key_type, slot).leaves)
        found: list[Operand] = []
        if not isinstance(self.dict.type, types.DictValuesIterableType):
            found += key.leaves
        if isinstance(self.dict.type, types.DictItemsIterableType | types.DictValuesIterableType):
            current = (parts.slots, _key(emit, self.dict, key), self.order, k)
            slot = emit.emit(ops.slot_now, current, INT, "slot")
            found += emit.emit_each(ops.getitem, parts.values, own.value_type, slot).leaves
        return LoweredValue(self.element_type, tuple(found))


_ORDER = types.Array(INT, 1, "C")


def settle_loops(function: Function) -> None:
    """Take the slots in a loop over a dict from their order if the loop stores nothing to the dict, else look them up.

    In the first case the dict keeps its size, too, and the checks of that are removed.
    """
    if not any(instr.op in _IN_LOOPS for instr in function.instrs()):
        return
    memory, nest = Memory(function), loop_nest(function)
    for block in function.blocks:
        loop = nest.innermost(block)
        for instr in [each for each in block.instrs if each.op in _IN_LOOPS]:
            if instr.op is ops.slot_now:
                slots, key, order, k = instr.args
            else:
                (slots,) = instr.args[0].args  # type: ignore[union-attr]
            is_constant = loop is None or not any(writer in loop.values for writer in memory.writers(slots))
            if instr.op is ops.slot_now:
                instr.op, instr.args = (ops.getitem, (order, k)) if is_constant else (ops.slot_of, (slots, key))
            elif is_constant:
                block.instrs.remove(instr)


_IN_LOOPS = (ops.slot_now, ops.check_same_size)


def over(value: LoweredValue) -> OverDict:
    """Return the iteration over a dict, or over its keys, values or items."""
    own: Any = value.type
    return OverDict(value, own.key_type if is_dict(own) else own.iterator_type.yield_type)
