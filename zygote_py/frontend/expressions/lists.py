"""Lists and objects of a `jitclass` that a function creates, which all references to them share.

    s = [x]                  %s = stack : list(f64)
                             push %s, %x
    s.append(y)              push %s, %y
    s[-1] = s.pop()          %v = pop %s : f64
                             setitem %s, %v, -1

A list of tuples is spread over several lists, one for each component, as a tuple is over its components. A list of
`numba.typed` becomes a list like any other, since it cannot leave the function. Other methods and operators are
functions of `zygote_py.numpy_functions.lists.lists`, or refused here.

An object is memory for each field:

    acc = Counter(x)         %acc_total = zeros 1 : f64[:]          a number is the element of an array of one
    acc.total += y           %t0 = getitem %acc_total, 0            anything else the element of a list of one
                             %t1 = add %t0, %y
                             setitem %acc_total, %t1, 0

`__init__` and the methods are inlined like functions, the object first. A number that `__init__` does not set is zero,
as with Numba. An object cannot be an argument, a result or a captured value.
"""

from __future__ import annotations

import builtins
import operator
import sys
from itertools import islice

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints.analysis import element_of
from zygote_py.base import statements as st
from zygote_py.frontend.values import (
    INT,
    ZERO,
    Emitter,
    Iteration,
    LoweredValue,
    OverCheckpointed,
    OverEnumerate,
    OverZip,
    cells_of,
    empty_array,
    leaves_of,
    plain,
)
from zygote_py.ir import Const, Function, Instr, Jump, Operand, Type, ops, zero_key
from zygote_py.ir.analysis import Memory, loop_nest
from zygote_py.ir.lazy_dataclass import dataclass


def build(at: Emitter, items: list[LoweredValue], type_: Type) -> LoweredValue:
    """`[a, b]`"""
    if not (leaves := leaves_of(type_)):
        raise at.refuse("a list of objects without numbers is not supported", "use a list of numbers or arrays", "[")
    made = LoweredValue(type_, tuple(at.emit(ops.stack, (), leaf) for leaf in leaves))
    for item in items:
        _push(at, made, item)
    return made


def method(at: Emitter, value: LoweredValue, name: str, args: list[LoweredValue], type_: Type) -> LoweredValue:
    """`value.name(*args)`"""
    match name, args:
        case "append", [item]:
            _push(at, value, item)
            return LoweredValue(type_, ())
        case "pop", []:
            return at.emit_each(ops.pop, value.leaves, element(value))
    raise at.refuse(
        f"the method `{name}` of a list is not supported", "use append, pop, indexing and loops over it", name
    )


def item(at: Emitter, value: LoweredValue, index: LoweredValue) -> LoweredValue:
    """`value[index]`"""
    return at.emit_each(ops.getitem, value.leaves, element(value), _number(at, index))


def store(at: Emitter, statement: st.Store) -> None:
    """`target[index] = value`"""
    target = at.read(statement.target)
    if isinstance(at.types[statement.index], types.SliceType):
        raise at.refuse("only a list can be assigned to a slice of a list", "make one: `s[a:b] = list(x)`", "=")
    number = _number(at, at.read(statement.index))
    stored = at.cast_bundle(at.read(statement.value), element(target))
    refuse_other_arrays(at, stored)
    for part, leaf in zip(target.leaves, stored.leaves, strict=True):
        at.emit(ops.setitem, (part, leaf, number), types.none)


def length(emit: Emitter, value: LoweredValue) -> Operand:
    """`len(value)`"""
    return emit.emit(builtins.len, (value.leaves[0],), INT)


def bound(at: Emitter, index: Operand, name: str) -> Operand | None:
    """`start`, `stop` or `step` of a slice, with Numba's value for one that is not given; None if it is not known."""
    match index:
        case Const(slice() as written, _):
            given = (Const(each, types.none if each is None else INT) for each in (written.start, written.stop))
            step: Operand = Const(1 if written.step is None else written.step, INT)
            bounds: dict[str, Operand] = dict(zip(("start", "stop"), given, strict=True))
        case Instr(op=builtins.slice, args=args):
            bounds = dict(zip(("start", "stop"), args, strict=False))
            step = args[2] if len(args) == 3 and not isinstance(args[2].type, types.NoneType) else Const(1, INT)
        case _:
            return None
    step = at.cast(step, INT)
    if name == "step" or not isinstance(bounds[name].type, types.NoneType):
        return step if name == "step" else at.cast(bounds[name], INT)
    forwards, backwards = (0, sys.maxsize) if name == "start" else (sys.maxsize, -sys.maxsize - 1)
    if isinstance(step, Const):
        return Const(forwards if step.value > 0 else backwards, INT)  # type: ignore[operator]
    positive = at.emit(operator.gt, (step, ZERO), types.boolean)
    return at.emit(ops.select, (positive, Const(forwards, INT), Const(backwards, INT)), INT)


def element(value: LoweredValue) -> Type:
    """Return the type of the elements of a list."""
    return element_of(plain(value.type))


def _push(at: Emitter, target: LoweredValue, item: LoweredValue) -> None:
    taken = at.cast_bundle(item, element(target))
    refuse_other_arrays(at, taken)
    for part, leaf in zip(target.leaves, taken.leaves, strict=True):
        at.emit(ops.push, (part, leaf), types.none)


def refuse_other_arrays(at: Emitter, stored: LoweredValue) -> None:
    """Refuse arrays among other values, and those of another dtype, or with more or fewer axes, among arrays."""
    for leaf, kind in zip(stored.leaves, leaves_of(stored.type), strict=True):
        given = leaf.type
        if _kind_of_array(given) != _kind_of_array(kind):
            raise at.refuse(
                f"a value of type `{given}` cannot be stored among those of type `{kind}`",
                "convert it before, as Numba does not do so",
            )


def _kind_of_array(type: Type) -> tuple[Type, int] | None:
    return (type.dtype, type.ndim) if isinstance(type, types.Array) else None


def _number(at: Emitter, index: LoweredValue) -> Operand:
    if len(index.leaves) != 1 or not isinstance(plain(index.type), types.Integer | types.Boolean):
        raise at.refuse("this index of a list is not supported", "use an integer", "[")
    return at.cast(index.leaves[0], INT)


@dataclass(frozen=True, slots=True, eq=False)
class OverList(Iteration):
    """The elements of a list, which may grow and shrink meanwhile: its length is read before each iteration."""

    list: LoweredValue

    def length(self, emit: Emitter) -> Operand:
        """Return the number of elements at this moment."""
        return length(emit, self.list)

    def at(self, k: Operand, emit: Emitter) -> LoweredValue:
        """Return element number `k`."""
        return emit.emit_each(ops.getitem, self.list.leaves, element(self.list), k)


def grows(iteration: Iteration) -> bool:
    """Return whether the number of elements of an iteration may change while it runs."""
    match iteration:
        case OverList():
            return True
        case OverZip(parts):
            return any(map(grows, parts))
        case OverEnumerate(part) | OverCheckpointed(part):
            return grows(part)
        case _:
            return False


def hoist_lengths(function: Function) -> None:
    """Move `len` of a list from a loop's header to before the loop, unless the loop changes the length."""
    if not any(instr.op is ops.stack for instr in function.instrs()):
        return
    memory = Memory(function)
    for loop in reversed(loop_nest(function).loops):
        header = loop.header
        if len(loop.entering) != 1 or not isinstance(loop.entering[0].terminator, Jump):
            continue
        inside = loop.values
        for instr in list(header.instrs):
            if instr.op is builtins.len and isinstance(instr.args[0].type, types.List):
                resized = (writer for writer in memory.writers(instr.args[0]) if writer.op is not ops.setitem)
                if instr.args[0] not in inside and not any(writer in inside for writer in resized):
                    header.instrs.remove(instr)
                    loop.entering[0].instrs.append(instr)


# ---------------------------------------------------------------------------------------------- objects of a jitclass


def make_object(at: Emitter, type_: Type) -> LoweredValue:
    """Return a new object; its fields are zeros and empty arrays."""
    made: list[Operand] = []
    for field in numba_adapter.fields_of_object(type_).values():
        for leaf, cell in zip(leaves_of(field), cells_of(field), strict=True):
            if isinstance(cell, types.Array):
                made.append(at.emit(ops.zeros, (Const(1, INT),), cell))
            else:
                made.append(at.emit(ops.stack, (), cell))
                at.emit(ops.push, (made[-1], _of_field(at, leaf)), types.none)
    return LoweredValue(type_, tuple(made))


def _of_field(at: Emitter, leaf: Type) -> Operand:
    """Return the value of a field before anything is assigned to it."""
    if isinstance(leaf, types.List):
        return at.emit(ops.stack, (), leaf)
    if isinstance(leaf, types.UnicodeType):
        return Const("", leaf)
    if isinstance(leaf, types.DictType) and (key := zero_key(plain(leaf.key_type))) is not None:
        return at.emit(ops.no_slots, (key,), leaf)
    if not isinstance(leaf, types.Array):
        raise at.refuse(f"a field of type `{leaf}` of a jitclass object is not supported", "use numbers and arrays")
    return empty_array(at, leaf)


def read_field(at: Emitter, value: LoweredValue, name: str) -> LoweredValue:
    """`value.name`"""
    field, cells = _cells(value, name)
    return at.emit_each(ops.getitem, cells, field, ZERO)


def assign_field(at: Emitter, statement: st.SetAttribute) -> None:
    """`target.name = value`"""
    target = at.read(statement.target)
    if not numba_adapter.is_object(target.type) or statement.name not in numba_adapter.fields_of_object(target.type):
        raise at.refuse("setting an attribute is not supported", "use local variables, or make a new object", "=")
    field, cells = _cells(target, statement.name)
    given = at.cast_bundle(at.read(statement.value), field)
    if len(given.leaves) != len(cells):
        raise at.refuse("a text that is computed is not supported", "use one of several constants", "=")
    for cell, leaf in zip(cells, given.leaves, strict=True):
        at.emit(ops.setitem, (cell, leaf, ZERO), types.none)


def _cells(value: LoweredValue, name: str) -> tuple[Type, tuple[Operand, ...]]:
    """Return the type of a field, and what holds it."""
    fields, cells = numba_adapter.fields_of_object(value.type), iter(value.leaves)
    held = {each: tuple(islice(cells, len(leaves_of(field)))) for each, field in fields.items()}
    return fields[name], held[name]
