"""Makes a stack of tuples into several stacks, one for each item: what is differentiated again has stacks of numbers.

    push %s, %t        (%t = pack %a, %b)       push %s_0, %a        push %s_1, %b
    %r = pop %s                           ->    %r_0 = pop %s_0      %r_1 = pop %s_1
    %v = getitem %r, 0                          %v = %r_0

A stack of stacks of tuples becomes several stacks of stacks. Stacks are passed to routines and returned by them, so
that all functions of a program are done at once. It is no pass over one function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import (
    Block,
    Const,
    Function,
    Instr,
    Operand,
    Param,
    Phi,
    Return,
    Routine,
    Type,
    Undef,
    Value,
)
from zygote_py.ir.debug import check_after
from zygote_py.ir.errors import InternalError
from zygote_py.ir.passes.dead_code import remove_dead_code
from zygote_py.ir.types import components_of
from zygote_py.ir.walks import replace_uses

_list_of: Callable[[Type], Type] = types.List


def split_stacks(function: Function, routines: Collection[Routine]) -> None:
    """Split the stacks of tuples of a function and of the routines that it calls, in place."""
    functions = (function, *(routine.function for routine in routines))
    while depth := max((_depth(value.type) for each in functions for value in each.values()), default=0):
        before = [value for each in functions for value in each.values() if _is_stack(value.type, depth)]
        places = {routine: _new_places(routine.function.params, depth) for routine in routines}
        for each in functions:
            _split(each, depth)
        for routine, place in places.items():
            routine.writes = _moved(routine.writes, place)
            routine.shares = _moved(routine.shares, place)
            routine.mixes = _moved(routine.mixes, place)
        for each in functions:
            remove_dead_code(each)  # tuples with such stacks, of which what is in them was taken
        if not set(before).isdisjoint(value for each in functions for value in each.values()):
            raise InternalError("split_stacks: a stack of tuples is left")
    check_after("split_stacks", *functions)


def _depth(kind: Type) -> int:
    """How deep the tuples on a stack are nested, those on stacks in them included; 0 for what is no stack of tuples."""

    def depth(of: Type) -> int:
        if isinstance(of, types.List):
            return depth(of.dtype)
        return 1 + max(map(depth, components_of(of)), default=0) if isinstance(of, types.BaseTuple) else 0

    return depth(kind) if isinstance(kind, types.List) else 0


def _is_stack(kind: Type, depth: int) -> bool:
    """Whether this is one of those that are split now: the deepest ones, so that what is on them is split later."""
    return _depth(kind) == depth


def _items_of(kind: Type) -> tuple[Type, ...]:
    """The types of what is on each of the stacks that one becomes."""
    assert isinstance(kind, types.List)
    if isinstance(kind.dtype, types.List):
        return tuple(map(_list_of, _items_of(kind.dtype)))
    found: tuple[Type, ...] = components_of(kind.dtype)
    return found


def _width(kind: Type, depth: int) -> int:
    """How many values one of a type becomes."""
    return len(_items_of(kind)) if _is_stack(kind, depth) else 1


def _new_places(params: list[Param], depth: int) -> list[range]:
    """Where each parameter will be."""
    found: list[range] = []
    at = 0
    for param in params:
        count = _width(param.type, depth)
        found.append(range(at, at + count))
        at += count
    return found


def _split_kinds(kinds: Iterable[Type], depth: int) -> tuple[Type, ...]:
    """The types of what values of these types become."""
    return tuple(
        new for kind in kinds for new in (map(_list_of, _items_of(kind)) if _is_stack(kind, depth) else (kind,))
    )


def _moved(numbers: frozenset[int], places: list[range]) -> frozenset[int]:
    return frozenset(new for number in numbers for new in places[number])


def _split(function: Function, depth: int) -> None:
    parts: dict[Value, tuple[Value, ...]] = {}
    merges: dict[Phi, tuple[Phi, ...]] = {}
    params: list[Param] = []
    for param in function.params:
        if _is_stack(param.type, depth):
            made = tuple(Param(_list_of(kind), f"{param.hint}_{n}") for n, kind in enumerate(_items_of(param.type)))
            parts[param] = made
            params += made
        else:
            params.append(param)
    function.params = params
    for block in function.blocks:
        for instr in block.instrs:
            if instr.op is ops.stack and _is_stack(instr.type, depth):
                parts[instr] = tuple(
                    Instr(ops.stack, (), _list_of(kind), f"{instr.hint}_{n}", instr.loc)
                    for n, kind in enumerate(_items_of(instr.type))
                )
        for phi in [phi for phi in block.phis if _is_stack(phi.type, depth)]:
            merges[phi] = tuple(
                Phi(_list_of(kind), f"{phi.hint}_{n}", phi.loc) for n, kind in enumerate(_items_of(phi.type))
            )
            block.phis.remove(phi)
            block.phis += merges[phi]
            parts[phi] = merges[phi]
    popped: dict[Value, tuple[Value, ...]] = {}
    returned: dict[Value, tuple[Type, ...]] = {}
    replacement: dict[Value, Operand] = {}
    for block in function.blocks:
        instrs: list[Instr] = []
        for instr in block.instrs:
            match instr:
                case Instr(op=ops.stack) if instr in parts:
                    instrs += [each for each in parts[instr] if isinstance(each, Instr)]
                case Instr(op=ops.push, args=(Value() as stack, item)) if stack in parts:
                    for number, each in enumerate(parts[stack]):
                        value = (
                            _parts(item, parts)[number] if _is_stack(item.type, depth) else _item(item, number, instrs)
                        )
                        instrs.append(Instr(ops.push, (each, value), types.none, "", instr.loc))
                case Instr(op=ops.pop, args=(Value() as stack,)) if stack in parts:
                    made_here = tuple(
                        Instr(ops.pop, (each,), kind, f"{instr.hint}_{n}", instr.loc)
                        for n, (each, kind) in enumerate(zip(parts[stack], _items_of(stack.type), strict=True))
                    )
                    (parts if _is_stack(instr.type, depth) else popped)[instr] = made_here
                    instrs += made_here
                case Instr(op=ops.getitem, args=(Value() as whole, Const(value=int(number)))) if whole in popped:
                    replacement[instr] = popped[whole][number]
                case Instr(op=ops.getitem, args=(Value() as whole, Const(value=int(number)))) if whole in returned:
                    start = sum(_width(kind, depth) for kind in returned[whole][:number])
                    taken = _taken(whole, range(start, start + _width(instr.type, depth)), instr.hint)
                    instrs += taken
                    if _is_stack(instr.type, depth):
                        parts[instr] = taken
                    else:
                        (replacement[instr],) = taken
                case Instr(op=ops.copied, args=(Value() as stack,)) if stack in parts:
                    copies = tuple(Instr(ops.copied, (each,), each.type, each.hint) for each in parts[stack])
                    parts[instr] = copies
                    instrs += copies
                case Instr(op=ops.pack, args=args) if any(_is_stack(arg.type, depth) for arg in args):
                    pass  # it is pushed or returned, and taken apart there
                case Instr(op=Routine()):
                    instr.args = _expanded(instr.args, parts, depth)
                    instrs.append(instr)
                    if _is_stack(instr.type, depth):
                        kinds = _split_kinds((instr.type,), depth)
                        call = Instr(instr.op, instr.args, types.Tuple(kinds), instr.hint, instr.loc)
                        parts[instr] = stacks = _taken(call, range(len(kinds)), instr.hint)
                        instrs[-1:] = [call, *stacks]
                    elif isinstance(instr.type, types.BaseTuple) and any(
                        _is_stack(kind, depth) for kind in components_of(instr.type)
                    ):
                        returned[instr] = components_of(instr.type)
                        instr.type = types.Tuple(_split_kinds(returned[instr], depth))
                case _:
                    instrs.append(instr)
        block.instrs = list(instrs)
    for block, end in function.returns():
        _split_result(block, end, parts, depth)
    for phi, made_of_it in merges.items():
        for number, part in enumerate(made_of_it):
            part.incoming = {pred: _parts(operand, parts)[number] for pred, operand in phi.incoming.items()}
    replace_uses(function, replacement)


def _split_result(block: Block, end: Return, parts: Mapping[Value, tuple[Value, ...]], depth: int) -> None:
    """Let a function return the stacks that one becomes."""
    (value,) = end.args
    if _is_stack(value.type, depth):
        items = _parts(value, parts)
    elif isinstance(value, Instr) and value.op is ops.pack and any(_is_stack(arg.type, depth) for arg in value.args):
        items = _expanded(value.args, parts, depth)
    else:
        return
    whole = Instr(ops.pack, items, types.Tuple(tuple(item.type for item in items)))
    block.instrs.append(whole)
    block.terminator = Return((whole,))


def _expanded(args: Iterable[Operand], parts: Mapping[Value, tuple[Value, ...]], depth: int) -> tuple[Operand, ...]:
    """Operands, with the stacks that one becomes in its place."""
    return tuple(new for arg in args for new in (_parts(arg, parts) if _is_stack(arg.type, depth) else (arg,)))


def _taken(whole: Value, numbers: range, hint: str) -> tuple[Instr, ...]:
    """Items of what a routine returns."""
    kinds = components_of(whole.type)
    return tuple(Instr(ops.getitem, (whole, Const(n, types.int64)), kinds[n], hint) for n in numbers)


def _parts(stack: Operand, parts: Mapping[Value, tuple[Value, ...]]) -> tuple[Operand, ...]:
    """The stacks that one becomes."""
    if isinstance(stack, Undef):
        return tuple(Undef(_list_of(kind)) for kind in _items_of(stack.type))
    if not isinstance(stack, Value) or stack not in parts:
        raise InternalError("split_stacks: a stack of tuples that is neither made, passed nor merged")
    return parts[stack]


def _item(item: Operand, number: int, instrs: list[Instr]) -> Operand:
    """An item of what is pushed."""
    if isinstance(item, Instr) and item.op is ops.pack:
        return item.args[number]
    taken = Instr(ops.getitem, (item, Const(number, types.int64)), components_of(item.type)[number])
    instrs.append(taken)
    return taken
