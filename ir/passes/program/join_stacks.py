"""Join stacks that are filled and emptied together into one stack of tuples: for Numba each list is much code.

    %s = stack : list(f64[:])                   %s = stack : list((f64[:], f64[:]))
    %t = stack : list(f64[:])
    ...                                         ...
    push %s, %x                         ->      %p = pack %x, %y
    push %t, %y                                 push %s, %p
    ...                                         ...
    %a = pop %s                                 %q = pop %s
    %b = pop %t                                 %a = getitem %q, 0
                                                %b = getitem %q, 1

A web is what may be one stack: those that a phi selects from, the stacks in a stack and what is popped from that, the
arguments of a routine and its parameter. A web is joined with others that are made, selected, passed on and changed in
the same places: each of its stacks with the one of the other web that has its place.

It undoes `split_stacks` once nothing is differentiated anymore; like that it is not a pass over a single function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.dataflow import reach
from zygote_py.ir.building.builder import LARGEST, Builder
from zygote_py.ir.checks.debug import check_after
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Param, Phi, Routine, Terminator, Type, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.types import components_of, is_scalar
from zygote_py.ir.walks import grouped

_ROUNDS = 4  # of telling stacks apart by what they come from and what becomes of them
_list_of: Callable[[Type], Type] = types.List


def join_stacks(functions: Sequence[Function], routines: Collection[Routine]) -> None:
    """Join the stacks of numbers and arrays of functions, and of the routines that they call, in place."""
    every = (*functions, *(routine.function for routine in routines))
    if sum(instr.op is ops.stack for function in every for instr in function.instrs()) < 2:
        return
    joined: dict[Value, _Member] = {}
    for together in _alike(_Stacks(functions, routines)):
        if len(together) > 1:
            for members in zip(*together, strict=True):
                of = _joined(members)
                joined.update((member, _Member(of, number, len(members))) for number, member in enumerate(members))
    if not joined:
        return
    for routine in routines:
        _change_parameters(routine, joined)
    for function in every:
        for block in function.blocks:
            _change(block, joined)
    check_after("join_stacks", *every)


class _Member(NamedTuple):
    """The stack that takes the place of one, and which of the `size` items of its tuples is that of this stack."""

    of: Value
    number: int
    size: int


_Place = tuple[object, ...]
_OF_CHANGES = ("push", "pop", "into")  # the places that are those of changes, of which they have the number


class _Change(NamedTuple):
    """A push or a pop in a part of a block, where there is only one of these; and its number in the program."""

    op: ops.Op
    block: Block
    part: int
    number: int


@dataclass(eq=False)
class _Facts:
    """Of a stack: where it is made, where it changes, and which stacks it is, holds, or is held by, by place."""

    place: _Place
    changes: list[_Change] = field(default_factory=list)
    sources: dict[_Place, Value] = field(default_factory=dict)
    linked: set[Value] = field(default_factory=set)
    is_other: bool = False  # more is done with it


class _Parts:
    """The parts of a block: between calls that take stacks, each with pushes only, or with pops only."""

    def __init__(self) -> None:
        self._part = 0
        self._op: object = None

    def of(self, node: Instr | Terminator) -> int:
        """Return the part of the next instruction."""
        op = node.op if isinstance(node, Instr) else None
        if op in (ops.push, ops.pop) and op is not self._op:
            self._part += 1
            self._op = op
        elif isinstance(op, Routine) and any(isinstance(arg.type, types.List) for arg in node.args):
            self._part += 1
        return self._part


class _Stacks:
    """The stacks of a program, by what is done with them."""

    def __init__(self, functions: Collection[Function], routines: Collection[Routine]) -> None:
        every = (*functions, *(routine.function for routine in routines))
        self.facts: dict[Value, _Facts] = {
            param: _Facts(("parameter", routine))
            for routine in routines
            if not (routine.in_threads or routine.is_custom)
            for param in routine.function.params
            if _is_stack(param)
        }
        for function in every:
            for block in function.blocks:
                for value in block.values:
                    if _is_stack(value):
                        self.facts[value] = _Facts(("made", block))
        self._count = 0
        for function in every:
            for block in function.blocks:
                self._look(block)
        self._places: dict[int, _Place] = {}  # of changes, by number
        self.webs = list(self._find_webs())

    def _look(self, block: Block) -> None:
        for phi in block.phis:
            for pred, operand in phi.incoming.items():
                self._link(phi, ("phi", pred), operand)
        parts = _Parts()
        for node in (*block.instrs, block.terminator):
            part = parts.of(node)
            match node:
                case Instr(op=ops.push, args=(stack, item)):
                    number = self._changed(stack, ops.push, block, part)
                    self._link(stack, ("push", number), item)
                    self._link(item, ("into", number), stack)
                case Instr(op=ops.pop, args=(stack,)):
                    number = self._changed(stack, ops.pop, block, part)
                    self._link(node, ("pop", number), stack)
                case Instr(op=Routine() as called):
                    for arg, param in zip(node.args, called.function.params, strict=True):
                        self._link(param, ("call", node), arg)
                case _:
                    for arg in node.args:
                        if isinstance(arg, Value) and arg in self.facts:
                            self.facts[arg].is_other = True

    def _changed(self, stack: Operand, op: ops.Op, block: Block, part: int) -> int:
        self._count += 1
        if isinstance(stack, Value) and stack in self.facts:
            self.facts[stack].changes.append(_Change(op, block, part, self._count))
        return self._count

    def _link(self, value: Operand, place: _Place, source: Operand) -> None:
        """Note that two values may be one stack, or one of them in the other, if both are lists."""
        if not isinstance(source.type, types.List) or not isinstance(value.type, types.List):
            return
        known = [each for each in (value, source) if isinstance(each, Value) and each in self.facts]
        if len(known) == 2:
            value, source = known
            self.facts[value].sources[place] = source
            self.facts[value].linked.add(source)
            self.facts[source].linked.add(value)
        else:
            for each in known:
                self.facts[each].is_other = True

    def _find_webs(self) -> Iterator[Sequence[Value]]:
        """Yield the webs of which all is known."""
        seen: set[Value] = set()
        for value in self.facts:
            if value in seen:
                continue
            web = list(reach([value], lambda each: self.facts[each].linked))
            seen.update(web)
            changes = [(change, _depth(each.type)) for each in web for change in self.facts[each].changes]
            is_known = not any(self.facts[each].is_other for each in web)
            if is_known and changes and len({_leaf(each.type) for each in web}) == 1:
                self._number(changes)
                yield web

    def _number(self, changes: Sequence[tuple[_Change, int]]) -> None:
        """Note of each change which one it is in its part."""
        parts = grouped(((change.block, change.part, depth), change) for change, depth in changes)
        for (block, part, _), together in parts.items():
            together.sort(key=lambda change: change.number)
            for place, change in enumerate(together):
                self._places[change.number] = (change.op, block, part, place)

    def sources_of(self, value: Value) -> dict[_Place, Value]:
        """Return the stacks that one comes from, holds or is held by, by the places of the program and of changes."""
        found = self.facts[value].sources
        return {
            (place[0], self._places[place[1]]) if place[0] in _OF_CHANGES else place: each  # type: ignore[index]
            for place, each in found.items()
        }

    def classes(self) -> dict[Value, int]:
        """Return numbers that are different if two values differ in place, in what they come from, or what becomes of
        them.
        """
        members = [each for web in self.webs for each in web]
        sources = {value: self.sources_of(value) for value in members}
        followers: dict[Value, list[tuple[_Place, Value]]] = {value: [] for value in members}
        for value, found_sources in sources.items():
            for place, each in found_sources.items():
                followers[each].append((place, value))
        keys: dict[Value, object] = {}
        for value in members:
            changes = frozenset(self._places[change.number] for change in self.facts[value].changes)
            keys[value] = self.facts[value].place, type(value), _depth(value.type), changes, frozenset(sources[value])
        for _ in range(_ROUNDS):
            numbers: dict[object, int] = {}
            found = {value: numbers.setdefault(key, len(numbers)) for value, key in keys.items()}
            keys = {
                value: (
                    found[value],
                    frozenset((place, found[each]) for place, each in sources[value].items()),
                    frozenset((place, found[each]) for place, each in followers[value]),
                )
                for value in members
            }
        return found


def _alike(stacks: _Stacks) -> Iterable[Sequence[Sequence[Value]]]:
    """Yield the webs that can be joined with each other, their stacks in the same order."""
    number = stacks.classes()
    webs = [sorted(web, key=number.__getitem__) for web in stacks.webs]
    for together in grouped((tuple(number[each] for each in web), web) for web in webs).values():
        first = together[0]
        if len(together) > 1 and len({number[each] for each in first}) == len(first):
            yield [web for web in together if _has_same_sources(stacks, first, web)]


def _has_same_sources(stacks: _Stacks, web: Sequence[Value], other: Sequence[Value]) -> bool:
    """Return whether the stacks of one web come from each other as those of the other web do."""
    of = dict(zip(web, other, strict=True))
    return all(
        {place: of[source] for place, source in stacks.sources_of(each).items()} == stacks.sources_of(of[each])
        for each in web
    )


def _is_stack(value: Value) -> bool:
    """Return whether a value is a stack of numbers or arrays, or of such stacks, as far as the value itself tells."""
    if not isinstance(value.type, types.List):
        return False
    is_one = isinstance(value, Phi | Param) or (isinstance(value, Instr) and value.op in (ops.stack, ops.pop))
    leaf = _leaf(value.type)
    return is_one and (is_scalar(leaf) or isinstance(leaf, types.Array))


def _leaf(kind: Type) -> Type:
    return _leaf(kind.dtype) if isinstance(kind, types.List) else kind


def _depth(kind: Type) -> int:
    return 1 + _depth(kind.dtype) if isinstance(kind, types.List) else 0


def _tuple_of(kinds: Sequence[Type]) -> Type:
    """Return the type of `pack_all` of items of some types."""
    if len(kinds) > LARGEST:
        kinds = [_tuple_of(kinds[at : at + LARGEST]) for at in range(0, len(kinds), LARGEST)]
        return _tuple_of(kinds)
    made: Type = types.Tuple(tuple(kinds))
    return made


def _joined(members: Sequence[Value]) -> Value:
    """Return what takes the place of these stacks, whose items are tuples; it comes from nothing yet."""
    kind = _tuple_of([_leaf(each.type) for each in members])
    first = members[0]
    for _ in range(_depth(first.type)):
        kind = _list_of(kind)
    match first:
        case Phi():
            return Phi(kind, first.hint, first.loc)
        case Instr():
            return Instr(first.op, (), kind, "records", first.loc)
        case _:
            return Param(kind, first.hint, first.loc)


def _change_parameters(routine: Routine, joined: Mapping[Value, _Member]) -> None:
    """Let a routine take stacks of tuples."""
    params = [joined.get(param, _Member(param, 0, 1)) for param in routine.function.params]
    routine.function.params = [each.of for each in params if not each.number]  # type: ignore[misc]
    place = {param: number for number, param in enumerate(routine.function.params)}
    for effect in ("writes", "shares", "may_alias_after"):
        numbers: frozenset[int] = getattr(routine, effect)
        setattr(routine, effect, frozenset(place[params[number].of] for number in numbers))  # type: ignore[index]


def _of(operand: Operand, joined: Mapping[Value, _Member]) -> _Member | None:
    return joined.get(operand) if isinstance(operand, Value) else None


def _change(block: Block, joined: Mapping[Value, _Member]) -> None:
    """Let a block push tuples, where the last item is pushed, and pop them, where the first item is popped."""
    block.phis = [_changed_phi(phi, joined) for phi in block.phis if phi not in joined or not joined[phi].number]
    b = Builder(Block(block.loc))
    made: set[Value] = set()
    entries: dict[Value, list[dict[tuple[int, ...], Instr]]] = {}
    pushed: dict[Value, list[dict[int, Operand]]] = {}
    counts: Counter[tuple[Value, int]] = Counter()  # of the changes of a stack in this part of the block
    parts, part = _Parts(), 0
    for instr in block.instrs:
        if part != (part := parts.of(instr)):
            entries, pushed, counts = {}, {}, Counter()
        if (member := joined.get(instr)) is not None:  # a stack that is made, or popped from one of stacks
            assert isinstance(member.of, Instr)
            if member.of not in made:
                member.of.args = tuple(joined[each].of for each in instr.args)  # type: ignore[index]
                made.add(b.add(member.of))
            continue
        if isinstance(instr.op, Routine):
            members = [_of(arg, joined) for arg in instr.args]
            instr.args = tuple(
                arg if member is None else member.of
                for arg, member in zip(instr.args, members, strict=True)
                if member is None or not member.number
            )
        member = _of(instr.args[0], joined) if instr.op in (ops.push, ops.pop) else None
        if member is None:
            b.add(instr)
            continue
        place = counts[member.of, member.number]
        counts[member.of, member.number] += 1
        if instr.op is ops.push:
            each_time = pushed.setdefault(member.of, [])
            if place == len(each_time):
                each_time.append({})
            items = each_time[place]
            items[member.number] = instr.args[1]
            if len(items) == member.size:
                inner = _of(items[0], joined)
                whole = b.pack_all([items[n] for n in range(member.size)]) if inner is None else inner.of
                b.call(ops.push, member.of, whole, type=types.none)
        else:
            popped = entries.setdefault(member.of, [])
            if place == len(popped):
                kind = member.of.type.dtype  # type: ignore[attr-defined]
                popped.append({(): b.call(ops.pop, member.of, type=kind, hint="entry")})
            whole, number = _tuple_with(b, popped[place], member)
            instr.op, instr.args = ops.getitem, (whole, Const(number, types.int64))
            b.add(instr)
    block.instrs = b.block.instrs


def _tuple_with(b: Builder, known: dict[tuple[int, ...], Instr], member: _Member) -> tuple[Instr, int]:
    """Return the tuple in which an item is that `pack_all` packed, and its place there.

    The tuples in an entry that are `known` are given by the places that lead to them.
    """
    places, number, size = [], member.number, member.size
    while size > LARGEST:
        places.append(number % LARGEST)
        number, size = number // LARGEST, -(-size // LARGEST)
    path = (number, *reversed(places))
    for depth in range(1, len(path)):
        if path[:depth] not in known:
            whole = known[path[: depth - 1]]
            index = Const(path[depth - 1], types.int64)
            kind = components_of(whole.type)[path[depth - 1]]
            known[path[:depth]] = b.call(ops.getitem, whole, index, type=kind)
    return known[path[:-1]], path[-1]


def _changed_phi(phi: Phi, joined: Mapping[Value, _Member]) -> Phi:
    if phi not in joined:
        return phi
    of = joined[phi].of
    assert isinstance(of, Phi)
    of.incoming = {pred: joined[each].of for pred, each in phi.incoming.items()}  # type: ignore[index]
    return of
