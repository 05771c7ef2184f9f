"""Lets routines return the numbers and arrays in a tuple of tuples one by one, as what is differentiated has them.

    return (%a, (%b, %c))                   return (%a, %b, %c)
    %t = f %x                               %t = f %x
                                      ->    %a = getitem %t, 0  ...
                                            %u = pack %a, (pack %b, %c)         # stands where %t did
    %p = getitem %t, 1                          # %p is the inner pack, and %q is %c
    %q = getitem %p, 1

What a routine returns and how it is called change together, so that all functions of a program are done at once. It is
no pass over one function.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Routine, Type, Value
from zygote_py.ir.debug import check_after
from zygote_py.ir.passes.dead_code import remove_dead_code
from zygote_py.ir.types import components_of
from zygote_py.ir.walks import replace_uses, resolved


def flatten_results(function: Function, routines: Collection[Routine]) -> None:
    """Flatten what the routines return, in place, in them and where they are called: in these, and in a function."""
    changed = {routine for routine in routines if _flatten(routine.function)}
    functions = (function, *(routine.function for routine in routines))
    for each in functions:
        _take_apart_again(each, changed)
    check_after("flatten_results", *functions)


def _flatten(function: Function) -> bool:
    """Let a function return a flat tuple, if it returns one with tuples in it; gives whether it does."""
    found = False
    for block, end in function.returns():
        (value,) = end.args
        if _is_nested(value.type):
            found = True
            made = tuple(_items(block, value))
            whole = Instr(ops.pack, made, types.Tuple(tuple(item.type for item in made)))
            block.instrs.append(whole)
            end.args = (whole,)
    return found


def _take_apart_again(function: Function, changed: Collection[Routine]) -> None:
    """Put what routines returned together again, where they are called."""
    replaced: dict[Value, Operand] = {}
    for block in function.blocks:
        instrs = []
        for instr in block.instrs:
            instrs.append(instr)
            if instr.op in changed:
                kinds = tuple(_leaves(instr.type))
                call = Instr(instr.op, instr.args, types.Tuple(kinds), instr.hint, instr.loc, instr.keywords)
                items = [Instr(ops.getitem, (call, Const(n, types.int64)), kind) for n, kind in enumerate(kinds)]
                made: list[Instr] = []
                replaced[instr] = _whole(instr.type, iter(items), made)
                instrs[-1:] = [call, *items, *made]
        block.instrs = instrs
    replace_uses(function, replaced)
    if replaced:
        _read_through(function)
        remove_dead_code(function)  # tuples that nothing takes as a whole


def _read_through(function: Function) -> None:
    """Replace what is taken out of a tuple by what was put into it."""
    found: dict[Value, Operand] = {}
    for instr in function.instrs():
        match instr:
            case Instr(op=ops.getitem, args=(whole, Const(value=int(number)))):
                made = resolved(whole, found)
                if isinstance(made, Instr) and made.op is ops.pack:
                    found[instr] = made.args[number]
    replace_uses(function, found)


def _is_nested(kind: Type) -> bool:
    return isinstance(kind, types.BaseTuple) and any(isinstance(e, types.BaseTuple) for e in components_of(kind))


def _leaves(kind: Type) -> Iterator[Type]:
    if isinstance(kind, types.BaseTuple):
        for inner in components_of(kind):
            yield from _leaves(inner)
    else:
        yield kind


def _items(block: Block, value: Operand) -> Iterator[Operand]:
    """What is in a value that is no tuple itself, taken out at the end of a block."""
    if not isinstance(value.type, types.BaseTuple):
        yield value
        return
    for number, kind in enumerate(components_of(value.type)):
        if isinstance(value, Instr) and value.op is ops.pack:
            item = value.args[number]
        else:
            item = Instr(ops.getitem, (value, Const(number, types.int64)), kind)
            block.instrs.append(item)
        yield from _items(block, item)


def _whole(kind: Type, items: Iterator[Operand], made: list[Instr]) -> Operand:
    """A value of a type put together from what is in it."""
    if not isinstance(kind, types.BaseTuple):
        return next(items)
    parts = tuple(_whole(each, items, made) for each in components_of(kind))
    made.append(instr := Instr(ops.pack, parts, kind))
    return instr
