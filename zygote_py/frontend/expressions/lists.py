"""Lists that a function creates and reads: `ops.stack`, `push`, `pop`, `getitem`, `setitem` and `len`.

    s = [x]                  %s = stack : list(f64)
                             push %s, %x
    s.append(y)              push %s, %y
    s[-1] = s.pop()          %v = pop %s : f64
                             setitem %s, %v, -1

A list of tuples is spread over several lists, one for each component, as a tuple is over its components. A list of
`numba.typed` becomes a list like any other, since it cannot leave the function. Other methods and operators are
functions of `zygote_py.numpy_functions.lists.lists`, or refused here.
"""

from __future__ import annotations

import builtins
import operator
import sys
from dataclasses import dataclass

from numba import types

from zygote_py.adjoints.analysis import element_of
from zygote_py.base import statements as st
from zygote_py.frontend.values import (
    INT,
    Bundle,
    Emitter,
    Iteration,
    OverCheckpointed,
    OverEnumerate,
    OverZip,
    check_count,
    leaves_of,
    plain,
)
from zygote_py.ir import Const, Function, Instr, Jump, Memory, Operand, Type, components_of, loop_nest, ops


def build(at: Emitter, items: list[Bundle], type_: Type) -> Bundle:
    """`[a, b]`"""
    made = _new(at, type_)
    for item in items:
        _push(at, made, item)
    return made


def _new(at: Emitter, type_: Type) -> Bundle:
    leaves = leaves_of(type_)
    if not leaves:
        raise at.refuse("a list of objects without numbers is not supported", "use a list of numbers or arrays", "[")
    return Bundle(type_, tuple(at.emit(ops.stack, (), leaf) for leaf in leaves))


def make(at: Emitter, callee: object, args: list[Bundle], type_: Type) -> Bundle | None:
    """Return the result of a call that makes an empty list: `list()`, `List()` and `List.empty_list(type)`."""
    if args and getattr(callee, "name", "") != "empty_list":
        return None
    return _new(at, type_)


def method(at: Emitter, value: Bundle, name: str, args: list[Bundle], type_: Type) -> Bundle:
    """`value.name(*args)`"""
    match name, args:
        case "append", [item]:
            _push(at, value, item)
            return Bundle(type_, ())
        case "pop", []:
            return Bundle(
                element(value),
                tuple(at.emit(ops.pop, (part,), leaf) for part, leaf in zip(value.leaves, _parts(value), strict=True)),
            )
    raise at.refuse(
        f"the method `{name}` of a list is not supported", "use append, pop, indexing and loops over it", name
    )


def item(at: Emitter, value: Bundle, index: Bundle) -> Bundle:
    """`value[index]`"""
    number = _number(at, index)
    leaves = (
        at.emit(ops.getitem, (part, number), leaf) for part, leaf in zip(value.leaves, _parts(value), strict=True)
    )
    return Bundle(element(value), tuple(leaves))


def unpack(at: Emitter, value: Bundle, type_: Type) -> Bundle:
    """Return the items of a list, of which there must be as many as `type_` has components."""
    parts = components_of(type_)
    at.emit(check_count, (length(at, value), Const(len(parts), INT)), types.none)
    items = [item(at, value, Bundle(INT, (Const(place, INT),))) for place in range(len(parts))]
    return Bundle(type_, tuple(leaf for each in items for leaf in each.leaves))


def store(at: Emitter, statement: st.Store) -> None:
    """`target[index] = value`"""
    target = at.read(statement.target)
    if isinstance(at.types[statement.index], types.SliceType):
        raise at.refuse("only a list can be assigned to a slice of a list", "make one: `s[a:b] = list(x)`", "=")
    number = _number(at, at.read(statement.index))
    stored = at.cast_bundle(at.read(statement.value), element(target))
    for part, leaf in zip(target.leaves, stored.leaves, strict=True):
        at.emit(ops.setitem, (part, leaf, number), types.none)


def length(emit: Emitter, value: Bundle) -> Operand:
    """`len(value)`"""
    return emit.emit(builtins.len, (value.leaves[0],), INT)


def truth(at: Emitter, value: Bundle) -> Operand:
    """`bool(value)`"""
    return at.emit(operator.ne, (length(at, value), Const(0, INT)), types.boolean, "c")


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
    positive = at.emit(operator.gt, (step, Const(0, INT)), types.boolean)
    return at.emit(ops.select, (positive, Const(forwards, INT), Const(backwards, INT)), INT)


def element(value: Bundle) -> Type:
    """Return the type of the elements of a list."""
    return element_of(plain(value.type))


def _parts(value: Bundle) -> tuple[Type, ...]:
    return leaves_of(element(value))


def _push(at: Emitter, target: Bundle, item: Bundle) -> None:
    taken = at.cast_bundle(item, element(target))
    for part, leaf in zip(target.leaves, taken.leaves, strict=True):
        at.emit(ops.push, (part, leaf), types.none)


def _number(at: Emitter, index: Bundle) -> Operand:
    if len(index.leaves) != 1 or not isinstance(plain(index.type), types.Integer | types.Boolean):
        raise at.refuse("this index of a list is not supported", "use an integer", "[")
    return at.cast(index.leaves[0], INT)


@dataclass(frozen=True, slots=True, eq=False)
class OverList(Iteration):
    """The elements of a list, which may grow and shrink meanwhile: its length is read before each iteration."""

    list: Bundle

    def length(self, emit: Emitter) -> Operand:
        """Return the number of elements at this moment."""
        return length(emit, self.list)

    def at(self, k: Operand, emit: Emitter) -> Bundle:
        """Return element number `k`."""
        own = element(self.list)
        leaves = (
            emit.emit(ops.getitem, (part, k), leaf) for part, leaf in zip(self.list.leaves, leaves_of(own), strict=True)
        )
        return Bundle(own, tuple(leaves))


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
