"""Flatten the nested tuples that routines return into tuples of numbers and arrays, as differentiation requires.

    return (%a, (%b, %c))                   return (%a, %b, %c)
    %t = f %x                               %t = f %x
                                      ->    %a = getitem %t, 0  ...
                                            %u = pack %a, (pack %b, %c)         # replaces %t
    %p = getitem %t, 1                          # %p is the inner pack, and %q is %c
    %q = getitem %p, 1

The results of a routine and its calls change together, so all functions of a program are processed at once. This is not
a pass over a single function.
"""

from __future__ import annotations

from collections.abc import Collection

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.building.builder import Builder, rewrite
from zygote_py.ir.checks.debug import check_after
from zygote_py.ir.core import Const, Function, Instr, Operand, Routine, Type, Value
from zygote_py.ir.passes.cleanup.dead_code import remove_dead_code
from zygote_py.ir.types import components_of, leaf_types
from zygote_py.ir.walks import replace_uses, resolved


def flatten_results(function: Function, routines: Collection[Routine]) -> None:
    """Flatten the results of the routines in place, in them and at their calls in these and in `function`."""
    for routine in routines:
        _flatten(routine.function)
    functions = (function, *(routine.function for routine in routines))
    for each in functions:
        _take_apart_again(each, frozenset(routines))
    check_after("flatten_results", *functions)


def _flatten(function: Function) -> None:
    """Flatten the tuple that a function returns, if it is nested."""
    nested = [(Builder(block), end) for block, end in function.returns() if _is_nested(end.args[0].type)]
    for b, end in nested:
        end.args = (b.pack(list(b.leaves(end.args[0]))),)


def _take_apart_again(function: Function, routines: Collection[Routine]) -> None:
    """Rebuild the nested tuples at the calls of routines, which may have been flattened for another function."""

    def change(b: Builder, instr: Instr) -> Operand | None:
        if instr.op not in routines or not _is_nested(instr.type):
            b.add(instr)
            return None
        kind = types.Tuple(tuple(leaf_types(instr.type)))
        call = b.add(Instr(instr.op, instr.args, kind, instr.hint, instr.loc, instr.keywords))
        return b.join(iter(b.items(call)), instr.type)

    if rewrite(function, change):
        _read_through(function)
        remove_dead_code(function)  # tuples that are not used as a whole


def _read_through(function: Function) -> None:
    """Replace items read from a tuple by the operands packed into it."""
    found: dict[Value, Operand] = {}
    for instr in function.instrs():
        match instr:
            case Instr(op=ops.getitem, args=(whole, Const(value=int(number)))):
                made = resolved(whole, found)
                if isinstance(made, Instr) and made.op is ops.pack:
                    found[instr] = made.args[number]
    replace_uses(function, found)


def _is_nested(kind: Type) -> bool:
    return isinstance(kind, types.BaseTuple) and any(isinstance(each, types.BaseTuple) for each in components_of(kind))
