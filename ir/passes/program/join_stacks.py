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
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Param, Phi, Routine, Type, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.types import is_scalar
from zygote_py.ir.walks import grouped

_ROUNDS = 4  # of telling stacks apart by what they come from
_list_of: Callable[[Type], Type] = types.List


def join_stacks(functions: Sequence[Function], routines: Collection[Routine]) -> None:
    """Join the stacks of numbers and arrays of functions, and of the routines that they call, in place."""
    every = (*functions, *(routine.function for routine in routines))
    if sum(instr.op is ops.stack for function in every for instr in function.instrs()) < 2:
        return
    joined: dict[Value, _Member] = {}
    for together in _alike(_Stacks(functions, routines)):
        for start in range(0, len(together), LARGEST):
            chosen = together[start : start + LARGEST]
            if len(chosen) > 1:
                for members in zip(*chosen, strict=True):
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


@dataclass(eq=False)
class _Facts:
    """Of a stack: where it is made, where it changes, and which stacks it is, holds, or is held by, by place."""

    place: _Place
    changes: list[_Place] = field(default_factory=list)
    sources: dict[_Place, Value] = field(default_factory=dict)
    linked: set[Value] = field(default_factory=set)
    is_other: bool = False  # more is done with it


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
                        self.facts[value] = _Facts(("phi" if isinstance(value, Phi) else value.op, block))
        for function in every:
            for block in function.blocks:
                self._look(block)

    def _look(self, block: Block) -> None:
        for phi in block.phis:
            for pred, operand in phi.incoming.items():
                self._link(phi, ("phi", pred), operand)
        part = 0  # of the block, between calls
        for node in (*block.instrs, block.terminator):
            match node:
                case Instr(op=ops.push, args=(stack, item)):
                    self._changed(stack, ("push", block, part))
                    self._link(stack, ("push", block, part), item)
                case Instr(op=ops.pop, args=(stack,)):
                    self._changed(stack, ("pop", block, part))
                    if isinstance(node.type, types.List):
                        self._link(node, ("pop",), stack)
                case Instr(op=Routine() as called):
                    part += _passes_stacks(node)
                    for arg, param in zip(node.args, called.function.params, strict=True):
                        self._link(param, ("call", node), arg)
                case _:
                    for arg in node.args:
                        if isinstance(arg, Value) and arg in self.facts:
                            self.facts[arg].is_other = True

    def _changed(self, stack: Operand, place: _Place) -> None:
        if isinstance(stack, Value) and stack in self.facts:
            self.facts[stack].changes.append(place)

    def _link(self, value: Operand, place: _Place, source: Operand) -> None:
        """Note that two values may be one stack, or one of them in the other, if the second is a list."""
        if not isinstance(source.type, types.List):
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

    def classes(self) -> dict[Value, int]:
        """Return numbers that are different if two values differ in place, or in what they come from."""
        keys: Mapping[Value, object] = {
            value: (facts.place, _depth(value.type), frozenset(facts.changes)) for value, facts in self.facts.items()
        }
        for _ in range(_ROUNDS):
            numbers: dict[object, int] = {}
            found = {value: numbers.setdefault(key, len(numbers)) for value, key in keys.items()}
            keys = {
                value: (found[value], frozenset((place, found[each]) for place, each in facts.sources.items()))
                for value, facts in self.facts.items()
            }
        return found

    def webs(self) -> Iterator[Sequence[Value]]:
        """Yield the webs of which all is known, and which change once in a place."""
        seen: set[Value] = set()
        for value in self.facts:
            if value not in seen:
                web = list(reach([value], lambda each: self.facts[each].linked))
                seen.update(web)
                changes = Counter((place[1:], _depth(each.type)) for each in web for place in self.facts[each].changes)
                is_known = not any(self.facts[each].is_other for each in web)
                leaves = {_leaf(each.type) for each in web}
                if is_known and changes and max(changes.values()) == 1 and len(leaves) == 1:
                    yield web


def _alike(stacks: _Stacks) -> Iterable[Sequence[Sequence[Value]]]:
    """Yield the webs that can be joined with each other, their stacks in the same order."""
    number = stacks.classes()
    webs = [sorted(web, key=number.__getitem__) for web in stacks.webs()]
    for together in grouped((tuple(number[each] for each in web), web) for web in webs).values():
        first = together[0]
        if len(together) > 1 and len({number[each] for each in first}) == len(first):
            yield [web for web in together if _has_same_sources(stacks, first, web)]


def _has_same_sources(stacks: _Stacks, web: Sequence[Value], other: Sequence[Value]) -> bool:
    """Return whether the stacks of one web come from each other as those of the other web do."""
    of = dict(zip(web, other, strict=True))
    return all(
        {place: of[source] for place, source in stacks.facts[each].sources.items()} == stacks.facts[of[each]].sources
        for each in web
    )


def _is_stack(value: Value) -> bool:
    """Return whether a value is a stack of numbers or arrays, or of such stacks, as far as the value itself tells."""
    if not isinstance(value.type, types.List):
        return False
    is_one = isinstance(value, Phi | Param) or (isinstance(value, Instr) and value.op in (ops.stack, ops.pop))
    leaf = _leaf(value.type)
    return is_one and (is_scalar(leaf) or isinstance(leaf, types.Array))


def _passes_stacks(call: Instr) -> bool:
    return any(isinstance(arg.type, types.List) for arg in call.args)


def _leaf(kind: Type) -> Type:
    return _leaf(kind.dtype) if isinstance(kind, types.List) else kind


def _depth(kind: Type) -> int:
    return 1 + _depth(kind.dtype) if isinstance(kind, types.List) else 0


def _joined(members: Sequence[Value]) -> Value:
    """Return what takes the place of these stacks, whose items are tuples; it comes from nothing yet."""
    kind: Type = types.Tuple(tuple(_leaf(each.type) for each in members))
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
    """Let a block push tuples, at the last push, and pop them, at the first pop."""
    block.phis = [_changed_phi(phi, joined) for phi in block.phis if phi not in joined or not joined[phi].number]
    b = Builder(Block(block.loc))
    made: set[Value] = set()
    entries: dict[Value, Instr] = {}
    pushed: dict[Value, dict[int, Operand]] = {}
    for instr in block.instrs:
        if (member := joined.get(instr)) is not None:  # a stack that is made, or popped from one of stacks
            assert isinstance(member.of, Instr)
            if member.of not in made:
                member.of.args = tuple(joined[each].of for each in instr.args)  # type: ignore[index]
                made.add(b.add(member.of))
            continue
        if isinstance(instr.op, Routine) and _passes_stacks(instr):
            members = [_of(arg, joined) for arg in instr.args]
            instr.args = tuple(
                arg if member is None else member.of
                for arg, member in zip(instr.args, members, strict=True)
                if member is None or not member.number
            )
            entries, pushed = {}, {}
        member = _of(instr.args[0], joined) if instr.op in (ops.push, ops.pop) else None
        if member is None:
            b.add(instr)
        elif instr.op is ops.push:
            items = pushed.setdefault(member.of, {})
            items[member.number] = instr.args[1]
            if len(items) == member.size:
                inner = _of(items[0], joined)
                whole = b.pack([items[n] for n in range(member.size)]) if inner is None else inner.of
                b.call(ops.push, member.of, whole, type=types.none)
        else:
            if member.of not in entries:
                kind = member.of.type.dtype  # type: ignore[attr-defined]
                entries[member.of] = b.call(ops.pop, member.of, type=kind, hint="entry")
            instr.op, instr.args = ops.getitem, (entries[member.of], Const(member.number, types.int64))
            b.add(instr)
    block.instrs = b.block.instrs


def _changed_phi(phi: Phi, joined: Mapping[Value, _Member]) -> Phi:
    if phi not in joined:
        return phi
    of = joined[phi].of
    assert isinstance(of, Phi)
    of.incoming = {pred: joined[each].of for pred, each in phi.incoming.items()}  # type: ignore[index]
    return of
