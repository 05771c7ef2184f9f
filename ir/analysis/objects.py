"""Objects: which arrays and lists the values of a function may be, where lists hold arrays, or lists.

    push %s, %x             %s and %t are two lists, which hold the same array: to a `Memory`, which has one root for
    push %t, %x             all that a value may reach, they would be one
    %y = f %s, %t           f takes items from both lists: nothing that it writes to is shared
    %z = g %s, %t           g writes to an item of %t: it is the item of %s

A list is one object, and all that it holds another one. Objects that may be the same are joined (B. Steensgaard,
"Points-to analysis in almost linear time", POPL 1996); a call joins those that its routine may join, as a `Summary`
says. Nothing is known of what other containers hold. Parameters are assumed to be different objects.

    known = summaries_of(routines)
    Objects(function, known).share_what_is_written(call)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.effects import has_memory, is_fresh, may_write, writes
from zygote_py.ir.core import Const, Function, Instr, Operand, Param, Phi, Routine, Type, Undef, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Role
from zygote_py.ir.types import components_of
from zygote_py.ir.walks import grouped

_UNKNOWN = 0  # the object that any value of which nothing is known may be


class Path(NamedTuple):
    """An object that a call can reach: an argument, the result (None), an item of a tuple; or what a list there holds,
    `depth` levels of lists down.
    """

    argument: int | None
    item: int | None
    depth: int


@dataclass(frozen=True)
class Summary:
    """The objects that a call may join, those of which nothing is known then, and those that it writes to."""

    joined: tuple[tuple[Path, ...], ...] = ()
    unknown: frozenset[Path] = frozenset()
    written: frozenset[Path] = frozenset()


def summaries_of(routines: Collection[Routine]) -> dict[Routine, Summary]:
    """Return the summaries of routines, which may call each other; of others that they call nothing is known."""
    found = dict.fromkeys(routines, Summary())
    changing = True
    while changing:
        changing = False
        for routine in routines:
            summary = Objects(routine.function, found).summary()
            if summary != found[routine]:
                found[routine] = summary
                changing = True
    return found


class Objects:
    """The objects of a function. They are numbers; two that have been joined have the same `_root`."""

    def __init__(self, function: Function, known: Mapping[Routine, Summary]) -> None:
        self._function = function
        self._known = known
        self._parent = [_UNKNOWN]
        self._held: dict[int, int] = {}  # what a list holds, by its root
        self._of: dict[tuple[Value, int | None], int] = {}
        self._written: list[int] = []
        for value in function.values():
            if isinstance(value, Phi):
                for item, kind in _parts(value.type):
                    for given in value.incoming.values():
                        self._join(self._object(value, item, kind), self._object(given, item, kind))
            elif isinstance(value, Instr):
                self._add(value)

    def share_what_is_written(self, call: Instr) -> bool:
        """Return whether two arguments of a call may reach the same object, to which the routine writes."""
        assert isinstance(call.op, Routine)
        if (summary := self._known.get(call.op)) is None:
            return True
        reached: dict[int, set[int]] = {}
        written: set[int] = set()
        for number, arg in enumerate(call.args):
            for path in _paths(number, arg.type):
                root = self._root(self._at(call, path))
                reached.setdefault(root, set()).add(number)
                if path in summary.written or path in summary.unknown:
                    written.add(root)
        if _UNKNOWN in reached and written:
            return True
        return any(len(reached[root]) > 1 for root in written)

    def summary(self) -> Summary:
        """Return the summary of calls of this function."""
        written = {self._root(each) for each in self._written}
        found: list[tuple[int, Path]] = []
        for number, param in enumerate(self._function.params):
            for path in _paths(number, param.type):
                found.append((self._root(self._reached(param, path)), path))
        for _, end in self._function.returns():
            for result in end.args:
                for path in _paths(None, result.type):
                    found.append((self._root(self._reached(result, path)), path))
        by_root = grouped(found)
        unknown = by_root.pop(_UNKNOWN, [])
        return Summary(
            tuple(tuple(dict.fromkeys(paths)) for paths in by_root.values() if len(set(paths)) > 1),
            frozenset(unknown),
            frozenset(path for root, paths in by_root.items() if root in written for path in paths).union(unknown),
        )

    def _add(self, instr: Instr) -> None:
        match instr:
            case Instr(op=Routine() as routine):
                self._call(instr, routine)
                return
            case Instr(op=ops.push | ops.setitem, args=(Value(type=types.List()) as values, given, *_)):
                held = self._hold(self._object(values))
                is_item = _is_like(given.type, values.type.dtype)  # type: ignore[attr-defined]
                self._pass_on(given, held if is_item else self._unknown(held))
            case Instr(op=ops.pop | ops.getitem, args=(Value(type=types.List()) as values, *_)):
                held = self._hold(self._object(values))
                is_item = _is_like(instr.type, values.type.dtype)  # type: ignore[attr-defined]
                self._pass_on(instr, held if is_item else self._unknown(held))
            case Instr(op=ops.getitem, args=(Value(type=types.BaseTuple()) as whole, Const(value=int(number)))):
                place = number % len(components_of(whole.type))
                self._pass_on(instr, self._object(whole, place, instr.type))
            case Instr(op=ops.pack):
                for place, arg in enumerate(instr.args):
                    self._pass_on(arg, self._object(instr, place, arg.type))
            case Instr(op=ops.copied, args=(Value(type=types.List()) as values,)):
                self._join(self._hold(self._object(instr)), self._hold(self._object(values)))
            case Instr(op=ops.stack | np.zeros_like):
                pass
            case _:
                self._add_other(instr)
        role = ops.of(instr.op).role
        for target in writes(instr):
            if role in (Role.STORE, Role.APPEND, Role.POP):
                self._written += [self._object(target, item, kind) for item, kind in _parts(target.type)]
            else:
                self._written += self._all_in(target)

    def _add_other(self, instr: Instr) -> None:
        """Add an instruction that moves no items of lists: array operations, and those of which nothing is known."""
        given = [arg for arg in instr.args if has_memory(arg.type)]
        is_plain = all(isinstance(each.type, types.Array) for each in given)
        if is_plain and isinstance(instr.type, types.Array):
            if not is_fresh(instr):
                for arg in given:
                    self._join(self._object(instr), self._object(arg))
        elif has_memory(instr.type) or (may_write(instr) and not is_plain):
            for each in (*given, instr):
                for one in self._all_in(each):
                    self._join(one, _UNKNOWN)

    def _call(self, call: Instr, routine: Routine) -> None:
        if (summary := self._known.get(routine)) is None:
            for operand in (*call.args, call):
                for each in self._all_in(operand):
                    self._join(each, _UNKNOWN)
            self._written.append(_UNKNOWN)
            return
        for paths in summary.joined:
            for path in paths[1:]:
                self._join(self._at(call, paths[0]), self._at(call, path))
        for path in summary.unknown:
            self._join(self._at(call, path), _UNKNOWN)
        self._written += [self._at(call, path) for path in summary.written if path.argument is not None]

    def _pass_on(self, value: Operand, place: int) -> None:
        """Join an array or a list with the object of a place; what stands in a tuple in such a place is not known."""
        for part, kind in _parts(value.type):
            given = self._object(value, part, kind)
            self._join(given, place if part is None else self._unknown(given))

    def _unknown(self, each: int) -> int:
        """Let an object be one of which nothing is known."""
        self._join(each, _UNKNOWN)
        return _UNKNOWN

    def _at(self, call: Instr, path: Path) -> int:
        return self._reached(call if path.argument is None else call.args[path.argument], path)

    def _reached(self, operand: Operand, path: Path) -> int:
        kind = operand.type if path.item is None else components_of(operand.type)[path.item]
        found = self._object(operand, path.item, kind)
        for _ in range(path.depth):
            found = self._hold(found)
        return found

    def _all_in(self, operand: Operand) -> Iterator[int]:
        """Yield all objects that an operand may reach."""
        for path in _paths(None, operand.type):
            yield self._reached(operand, path)

    def _object(self, operand: Operand, item: int | None = None, kind: Type | None = None) -> int:
        """Return the object that an operand is, or an item of a tuple."""
        kind = kind or operand.type
        if isinstance(operand, Undef) or not has_memory(kind) or _is_empty(operand):
            return self._new()
        if not isinstance(operand, Param | Phi | Instr) or not isinstance(kind, types.Array | types.List):
            return _UNKNOWN
        if (operand, item) not in self._of:
            made = self._of[operand, item] = self._new()
            held = getattr(kind, "dtype", None) if isinstance(kind, types.List) else None
            if held is not None and has_memory(held) and not isinstance(held, types.Array | types.List):
                self._held[made] = _UNKNOWN
        return self._of[operand, item]

    def _new(self) -> int:
        self._parent.append(len(self._parent))
        return len(self._parent) - 1

    def _hold(self, values: int) -> int:
        """Return the object that stands for all that a list holds."""
        root = self._root(values)
        if root == _UNKNOWN:
            return _UNKNOWN
        if root not in self._held:
            self._held[root] = self._new()
        return self._held[root]

    def _root(self, each: int) -> int:
        while self._parent[each] != each:
            self._parent[each] = each = self._parent[self._parent[each]]
        return each

    def _join(self, one: int, other: int) -> None:
        pending = [(one, other)]
        while pending:
            kept, dropped = sorted(map(self._root, pending.pop()))
            if kept == dropped:
                continue
            self._parent[dropped] = kept
            held = self._held.pop(dropped, None)
            if kept == _UNKNOWN:
                if held is not None:
                    pending.append((held, _UNKNOWN))
            elif held is not None:
                pending.append((self._held.setdefault(kept, held), held))


def _is_like(kind: Type, other: Type) -> bool:
    """Return whether a value of a type may be an item of lists of another, and not several of them."""
    if isinstance(kind, types.List) and isinstance(other, types.List):
        return _is_like(kind.dtype, other.dtype)
    if isinstance(kind, types.Array) or isinstance(other, types.Array):
        return isinstance(kind, types.Array) and isinstance(other, types.Array)
    return not isinstance(kind, types.List) and not isinstance(other, types.List)


def _is_empty(operand: Operand) -> bool:
    """Return whether a value is a new array without elements, which stands where there is no array."""
    if not isinstance(operand, Instr) or operand.op not in (ops.record, ops.zeros):
        return False
    return any(isinstance(arg, Const) and arg.value == 0 for arg in operand.args)


def _parts(kind: Type) -> Sequence[tuple[int | None, Type]]:
    """Return the parts of a type that have memory: the items of a tuple by number, or itself."""
    if not isinstance(kind, types.BaseTuple):
        return [(None, kind)] if has_memory(kind) else []
    return [(number, item) for number, item in enumerate(components_of(kind)) if has_memory(item)]


def _paths(argument: int | None, kind: Type) -> Iterator[Path]:
    for item, part in _parts(kind):
        yield Path(argument, item, 0)
        depth = 0
        while isinstance(part, types.List) and has_memory(part.dtype):
            part, depth = part.dtype, depth + 1
            yield Path(argument, item, depth)
