"""Elements and slices of arrays: reading and writing through an index, and in-place operators.

    x[i, a:b] = v            %s = slice %a, %b            x += y            %t = add %x, %y : f64[:]
                             %t = getitem %x, %i, %s                        setitem %x, %t
                             setitem %t, %v

A slice is a view, and storing to it stores to all of that view: `setitem` without an index is `x[...] = v`. Integer and
boolean arrays among the indices stay in one instruction. New arrays and other views are in `zygote_py.numpy_functions`.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.base import statements as st
from zygote_py.frontend.expressions import dicts, lists, records
from zygote_py.frontend.values import (
    INT,
    Emitter,
    LoweredValue,
    check_filled,
    components,
    constant,
    dim,
    is_dict,
    is_list,
    is_record,
    is_structured,
    is_tuple,
    literal,
    plain,
    product,
    shape_of,
    unravel,
)
from zygote_py.ir import Const, Instr, Operand, Type, are_apart, is_scalar, ops
from zygote_py.ir.analysis import is_view

_MOST_CONSTANTS = 256  # numbers of an array that a function has as a default


def is_array(type: Type) -> bool:
    """Return whether values of this type are arrays."""
    return isinstance(plain(type), types.Array)


def index_of(at: Emitter, index: LoweredValue) -> list[Operand]:
    """Return the operands of an index, with tuples flattened."""
    if is_tuple(index.type):
        return [operand for part in components(index) for operand in index_of(at, part)]
    return [_index(at, operand) for operand in index.leaves]


def static_index(at: Emitter, index: object) -> list[Operand]:
    """Return the operands of an index that is a constant."""
    match index:
        case tuple():
            return [operand for part in index for operand in static_index(at, part)]
        case slice():
            kind = types.slice2_type if index.step is None else types.slice3_type
            bounds = (index.start, index.stop) if index.step is None else (index.start, index.stop, index.step)
            operands = [Const(bound, types.none if bound is None else INT) for bound in bounds]
            return [at.emit(builtins.slice, operands, kind)]
        case _:
            return [literal(index, at.loc)]


def _index(at: Emitter, operand: Operand) -> Operand:
    match operand:
        case Const(slice() as bounds, _):
            (made,) = static_index(at, bounds)
            return made
        case _ if isinstance(operand.type, types.Array) and operand.type.ndim == 0:
            return at.emit(ops.getitem, (operand,), operand.type.dtype)
        case _:
            return operand


def item(at: Emitter, array: Operand, index: Sequence[Operand], type_: Type) -> Operand:
    """Lower `array[index]`, of the type `type_`: an element, a view or, with an array among the indices, a copy."""
    if not isinstance(type_, types.Array):
        index = [operand for operand in index if not isinstance(operand.type, types.EllipsisType)]
    elif type_ == array.type and all(map(_is_everything, index)):
        return array
    _check_index(at, index)
    if _are_taken(index) and any(isinstance(each.type, types.NoneType) for each in index):
        taken = [each for each in index if not isinstance(each.type, types.NoneType)]
        array = item(at, array, taken, records.part_type(array.type, taken))
        (everything,) = static_index(at, slice(None))
        index = [each if isinstance(each.type, types.NoneType | types.EllipsisType) else everything for each in index]
    return at.emit(ops.getitem, (array, *index), type_)


def _are_taken(index: Sequence[Operand]) -> bool:
    """Return whether one array is among the indices and no number: its axis is where it stands."""
    arrays = [each for each in index if isinstance(each.type, types.Array)]
    return len(arrays) == 1 and not any(isinstance(each.type, types.Integer | types.Boolean) for each in index)


def _check_index(at: Emitter, index: Sequence[Operand]) -> None:
    if any(isinstance(operand.type, types.Array) and operand.type.ndim > 1 for operand in index):
        message = "an array of more than one dimension as an index is not supported"
        raise at.refuse(message, "use one-dimensional arrays, or loop over the elements", "[")


def _is_everything(index: Operand) -> bool:
    """Return whether an index is `:` or `...`."""
    if isinstance(index, Instr) and index.op is builtins.slice:
        return len(index.args) == 2 and all(isinstance(bound.type, types.NoneType) for bound in index.args)
    return isinstance(index.type, types.EllipsisType)


def flat_of(value: LoweredValue) -> Operand | None:
    """Return the array whose elements are in a row in a value, `x.flat`; None for other values."""
    if not isinstance(value.type, types.NumpyFlatType):
        return None
    return value.static.value.leaves[0]  # type: ignore[attr-defined,no-any-return]


def flat_index(at: Emitter, array: Operand, index: Sequence[Operand]) -> list[Operand]:
    """Return the indices of the element of an array with a number in C order."""
    if len(index) != 1 or not isinstance(index[0].type, types.Integer):
        raise at.refuse("this index of `flat` is not supported", "use an integer", "[")
    lengths = shape_of(at, array)
    k = at.cast(index[0], INT)
    from_end = at.emit(operator.add, (k, product(at, lengths)), INT)
    negative = at.emit(operator.lt, (k, Const(0, INT)), types.boolean)
    return list(unravel(at.emit(ops.select, (negative, from_end, k), INT), lengths, at))


def store(at: Emitter, statement: st.Store) -> None:
    """Lower `target[index] = value`."""
    target = at.read(statement.target)
    if is_list(target.type):
        lists.store(at, statement)
        return
    if is_dict(target.type):
        dicts.store(at, statement)
        return
    own = plain(target.type)
    if is_record(own):
        name = at.types[statement.index]
        if not isinstance(name, types.StringLiteral):
            raise at.refuse("a field that is not known before", "write its name: `r['x'] = v`", "[")
        records.assign_field(at, target, name.literal_value, at.read(statement.value))
        return
    if is_structured(own):
        records.store(at, target, index_of(at, at.read(statement.index)), at.read(statement.value))
        return
    index = index_of(at, at.read(statement.index))
    value = at.read(statement.value)
    if (array := flat_of(target)) is not None:
        own, index = array.type, flat_index(at, array, index)
    elif isinstance(own, types.Array):
        (array,) = target.leaves
    if array is None or not isinstance(own, types.Array):
        raise at.refuse(f"writing to a value of type `{own}` is not supported", "write to an array", "[")
    store_item(at, array, index, value)


def store_item(at: Emitter, array: Operand, index: Sequence[Operand], value: LoweredValue) -> None:
    """Lower `array[index] = value`."""
    own = array.type
    assert isinstance(own, types.Array)
    found = numba_adapter.item_type(own, [plain(operand.type) for operand in index])
    if not isinstance(found, types.Array):
        index = [operand for operand in index if not isinstance(operand.type, types.EllipsisType)]
        at.emit(ops.setitem, (array, at.cast(number(at, value), own.dtype), *index), types.none)
    elif any(isinstance(operand.type, types.Array) for operand in index):
        _check_index(at, index)
        _check_apart(at, array, index)
        stored = _stored(at, value, own.dtype)
        at.emit(ops.setitem, (array, stored, *index), types.none)
    elif not _is_item(value, array, index):
        fill(at, item(at, array, index, found), value)


def fill(at: Emitter, array: Operand, value: LoweredValue) -> None:
    """Lower `array[...] = value`."""
    assert isinstance(array.type, types.Array)
    if not array.type.mutable:
        message = "this array cannot be written to: it is captured, or read-only"
        raise at.refuse(message, "pass it as an argument, or write to a copy", "=")
    if is_tuple(value.type) and len(components(value)) == 1 and array.type.ndim == 1:
        at.emit(check_filled, (dim(at, array, 0), Const(1, INT)), types.none)  # an array of one would be repeated
        (value,) = components(value)
    at.emit(ops.setitem, (array, _stored(at, value, array.type.dtype)), types.none)


def number(at: Emitter, value: LoweredValue) -> Operand:
    """Return a number; that of an array without dimensions."""
    if is_tuple(value.type) or len(value.leaves) != 1:
        raise at.refuse(f"storing a value of type `{plain(value.type)}` is not supported", "store numbers", "=")
    (operand,) = value.leaves
    if isinstance(operand.type, types.Array) and operand.type.ndim == 0:
        return at.emit(ops.getitem, (operand,), operand.type.dtype)
    return operand


def lengths(at: Emitter, *shapes: LoweredValue) -> list[Operand]:
    """Return the lengths in shapes, each an integer or a tuple of integers."""
    parts = (part for shape in shapes for part in (components(shape) if is_tuple(shape.type) else (shape,)))
    return [at.cast(number(at, part), INT) for part in parts]


def _stored(at: Emitter, value: LoweredValue, dtype: Type) -> Operand:
    """Return the value to store to many elements: an array unchanged, a number cast to the type of the elements."""
    if not is_tuple(value.type):
        operand = number(at, value)
        return operand if isinstance(operand.type, types.Array) else at.cast(operand, dtype)
    parts = [number(at, part) for part in components(value)]
    if len(parts) < 2 or not all(is_scalar(part.type) for part in parts):
        raise at.refuse("storing this tuple in an array is not supported", "store its components one by one", "=")
    return array_of(at, parts, dtype)


def array_of(at: Emitter, numbers: Sequence[Operand], dtype: Type) -> Operand:
    """Return a new array of some numbers."""
    made = at.emit(ops.record, (Const(len(numbers), INT),), types.Array(dtype, 1, "C"))
    for place, each in enumerate(numbers):
        at.emit(ops.initialize, (made, at.cast(each, dtype), Const(place, INT)), types.none)
    return made


def constant_array(at: Emitter, given: Any, type_: Type) -> LoweredValue:
    """Return a new array of the elements of one that is a default, of few numbers."""
    own = plain(type_)
    if (
        not isinstance(own, types.Array)
        or own.layout == "A"
        or given.size > _MOST_CONSTANTS
        or not is_scalar(own.dtype)
    ):
        hint = f"pass an array, or make one of at most {_MOST_CONSTANTS} numbers in one piece the default"
        raise at.refuse(f"this default, an array of shape {given.shape}, is not supported in a called function", hint)
    assert isinstance(own, types.Array)
    made = at.emit(ops.record, [Const(length, INT) for length in given.shape], own)
    for place in np.ndindex(*given.shape):
        index = [Const(number, INT) for number in place]
        at.emit(ops.initialize, (made, constant(given[place].item(), own.dtype), *index), types.none)
    return LoweredValue(type_, (made,))


def _is_item(value: LoweredValue, array: Operand, index: Sequence[Operand]) -> bool:
    """Return whether a value is the view it is stored to: Python stores the result of `x[a:b] += y` once more."""
    match value.leaves:
        case (Instr(op=ops.getitem, args=(viewed, *others)),):
            same = viewed is array and len(others) == len(index)
            return same and all(map(_is_same_index, others, index))
        case _:
            return False


def _is_same_index(one: Operand, other: Operand) -> bool:
    if isinstance(one, Instr) and isinstance(other, Instr) and one.op is other.op is builtins.slice:
        return len(one.args) == len(other.args) and all(map(_is_same_index, one.args, other.args))
    return one == other


def operate_in_place(at: Emitter, op: ops.Op, operands: Sequence[Operand]) -> Operand:
    """Lower `array op= other`, and return the array."""
    array = operands[0]
    assert isinstance(array.type, types.Array)
    if (type_ := numba_adapter.result_type(op, [plain(operand.type) for operand in operands])) is None:
        sign = ops.of(op).syntax.strip("ab ")
        raise at.refuse("this operation in place is not supported", "assign the result to a new name", f"{sign}=")
    check_overlap(at, array, operands)
    fill(at, array, LoweredValue(type_, (at.emit(op, operands, type_),)))
    return array


def check_overlap(at: Emitter, array: Operand, operands: Sequence[Operand]) -> None:
    """Refuse `x += x[0]`, where Numba, unlike NumPy, reads elements that it has already written."""
    for operand in operands:
        if shares_base(array, operand) and not _has_same_steps(array, operand):
            raise at.refuse(
                "this writes to an array while it reads another part of it, and Numba and NumPy differ in the result",
                "make a copy of what is read: `x[1:] += x[:-1].copy()`",
            )


def _check_apart(at: Emitter, array: Operand, index: Sequence[Operand]) -> None:
    """Refuse `k[k] = v` and `m[m[::-1]] = False`, where Numba, unlike NumPy, reads what it has already written.

    A mask may be the array itself, and both may be rows `i` and `i - 1`.
    """
    suspects = [each for each in index if isinstance(each.type, types.Array) and shares_base(array, each)]
    if not suspects:
        return
    none = Const(None, types.none)
    everything = Instr(builtins.slice, (none, none), types.slice2_type)
    items = [everything if isinstance(each.type, types.Array) else each for each in index]
    while items and items[-1] is everything:
        items.pop()
    target = array
    if items:
        type_ = numba_adapter.item_type(plain(array.type), [plain(each.type) for each in items])
        assert type_ is not None
        target = Instr(ops.getitem, (array, *items), type_)
    for each in suspects:
        is_mask = isinstance(each.type, types.Array) and each.type.dtype == types.boolean
        is_known = _has_same_steps(target, each) and (is_mask or _are_next_rows(target, each))
        if not (is_known or are_apart(each, target)):
            raise at.refuse(
                "this writes to an array by an index that is a part of it",
                "use a copy as the index: `k[k.copy()] = v`",
                "[",
            )


def shares_base(one: Operand, other: Operand) -> bool:
    """Return whether two arrays are views of one, or one of the other."""
    return _viewed(one)[0] is _viewed(other)[0]


def _has_same_steps(one: Operand, other: Operand) -> bool:
    """Return whether two views of one array have the same elements at the same positions, or none in common."""
    steps, others = _viewed(one)[1], _viewed(other)[1]
    return len(steps) == len(others) and all(map(_is_same_step, steps, others))


def _are_next_rows(one: Operand, other: Operand) -> bool:
    """Return whether two views with the same steps are those of a row `i` and a row `i + k`, or within these."""
    pairs = (
        (_place_of(a), _place_of(b))
        for step, step_of_other in zip(_viewed(one)[1], _viewed(other)[1], strict=True)
        for a, b in zip(step.args[1:], step_of_other.args[1:], strict=True)
    )
    return any(
        base == base_of_other and place != place_of_other for (base, place), (base_of_other, place_of_other) in pairs
    )


def _place_of(index: Operand) -> tuple[Operand, int]:
    """Return `i, k` for an index `i + k`."""
    match index:
        case Instr(op=operator.add, args=(base, Const(int(k)))):
            return base, k
        case Instr(op=operator.sub, args=(base, Const(int(k)))):
            return base, -k
        case _:
            return index, 0


def _viewed(operand: Operand) -> tuple[Operand, list[Instr]]:
    """Return the array that a view is of, and the views of views on the way to it."""
    steps = []
    while isinstance(operand, Instr) and is_view(operand):
        steps.append(operand)
        operand = operand.args[0]
    return operand, steps


def _is_same_step(one: Instr, other: Instr) -> bool:
    """Return whether two views of one array have the same elements at the same positions, or none in common."""
    rows = one.op is ops.getitem
    return (
        one.op is other.op
        and one.type == other.type
        and len(one.args) == len(other.args)
        and all(
            _is_same_index(a, b) or (rows and isinstance(a.type, types.Integer) and isinstance(b.type, types.Integer))
            for a, b in zip(one.args[1:], other.args[1:], strict=True)
        )
    )
