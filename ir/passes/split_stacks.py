"""Makes a stack of tuples into several stacks, one for each item: what is differentiated again has stacks of numbers.

    push %s, %t        (%t = pack %a, %b)       push %s_0, %a        push %s_1, %b
    %r = pop %s                           ->    %r_0 = pop %s_0      %r_1 = pop %s_1
    %v = getitem %r, 0                          %v = %r_0

Stacks are passed to routines, so that all functions of a program are done at once. It is no pass over one function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Const, Function, Instr, Operand, Param, Phi, Routine, Type, Undef, Value, replace_values
from zygote_py.ir.errors import InternalError
from zygote_py.ir.types import components_of

_list_of: Callable[[Type], Type] = types.List


def split_stacks(function: Function, routines: Collection[Routine]) -> None:
    """Split the stacks of tuples of a function and of the routines that it calls, in place."""
    functions = (function, *(routine.function for routine in routines))
    while before := [value for each in functions for value in each.values() if _is_stack(value.type)]:
        places = {routine: _new_places(routine.function.params) for routine in routines}
        for each in functions:
            _split(each)
        for routine, place in places.items():
            routine.writes = _moved(routine.writes, place)
            routine.shares = _moved(routine.shares, place)
            routine.mixes = _moved(routine.mixes, place)
        if not set(before).isdisjoint(value for each in functions for value in each.values()):
            raise InternalError("split_stacks: a stack of tuples is left")


def _is_stack(kind: Type) -> bool:
    return isinstance(kind, types.List) and isinstance(kind.dtype, types.BaseTuple)


def _items_of(kind: Type) -> tuple[Type, ...]:
    assert isinstance(kind, types.List)
    found: tuple[Type, ...] = components_of(kind.dtype)
    return found


def _new_places(params: list[Param]) -> list[range]:
    """Where each parameter will be."""
    found: list[range] = []
    at = 0
    for param in params:
        count = len(_items_of(param.type)) if _is_stack(param.type) else 1
        found.append(range(at, at + count))
        at += count
    return found


def _moved(numbers: frozenset[int], places: list[range]) -> frozenset[int]:
    return frozenset(new for number in numbers for new in places[number])


def _split(function: Function) -> None:
    parts: dict[Value, tuple[Value, ...]] = {}
    merges: dict[Phi, tuple[Phi, ...]] = {}
    params: list[Param] = []
    for param in function.params:
        if _is_stack(param.type):
            made = tuple(Param(_list_of(kind), f"{param.hint}_{n}") for n, kind in enumerate(_items_of(param.type)))
            parts[param] = made
            params += made
        else:
            params.append(param)
    function.params = params
    for block in function.blocks:
        for instr in block.instrs:
            if isinstance(instr, Instr) and instr.op is ops.stack and _is_stack(instr.type):
                parts[instr] = tuple(
                    Instr(ops.stack, (), _list_of(kind), f"{instr.hint}_{n}", instr.loc)
                    for n, kind in enumerate(_items_of(instr.type))
                )
        for phi in [phi for phi in block.phis if _is_stack(phi.type)]:
            merges[phi] = tuple(
                Phi(_list_of(kind), f"{phi.hint}_{n}", phi.loc) for n, kind in enumerate(_items_of(phi.type))
            )
            block.phis.remove(phi)
            block.phis += merges[phi]
            parts[phi] = merges[phi]
    popped: dict[Value, tuple[Value, ...]] = {}
    replacement: dict[Value, Operand] = {}
    for block in function.blocks:
        instrs: list[Instr] = []
        for instr in block.instrs:
            assert isinstance(instr, Instr)
            match instr:
                case Instr(op=ops.stack) if instr in parts:
                    instrs += [each for each in parts[instr] if isinstance(each, Instr)]
                case Instr(op=ops.push, args=(Value() as stack, item)) if stack in parts:
                    for number, each in enumerate(parts[stack]):
                        value = _item(item, number, instrs)
                        instrs.append(Instr(ops.push, (each, value), types.none, "", instr.loc))
                case Instr(op=ops.pop, args=(Value() as stack,)) if stack in parts:
                    made_here = tuple(
                        Instr(ops.pop, (each,), kind, f"{instr.hint}_{n}", instr.loc)
                        for n, (each, kind) in enumerate(zip(parts[stack], _items_of(stack.type), strict=True))
                    )
                    popped[instr] = made_here
                    instrs += made_here
                case Instr(op=ops.getitem, args=(Value() as whole, Const(value=int(number)))) if whole in popped:
                    replacement[instr] = popped[whole][number]
                case Instr(op=ops.copied, args=(Value() as stack,)) if stack in parts:
                    copies = tuple(Instr(ops.copied, (each,), each.type, each.hint) for each in parts[stack])
                    parts[instr] = copies
                    instrs += copies
                case Instr(op=Routine()):
                    instr.args = tuple(
                        new for arg in instr.args for new in (_parts(arg, parts) if _is_stack(arg.type) else (arg,))
                    )
                    instrs.append(instr)
                case _:
                    instrs.append(instr)
        block.instrs = list(instrs)
    for phi, made_of_it in merges.items():
        for number, part in enumerate(made_of_it):
            part.incoming = {pred: _parts(operand, parts)[number] for pred, operand in phi.incoming.items()}
    replace_values(function, replacement)


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
