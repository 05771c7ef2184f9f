"""Renamed statements: the body of a called function, as a part of its caller.

    renamed(block, "3:")          r = x * y        ->    3:r = 3:x * 3:y
                                  a = parameter 0  ->    3:a = 3:*parameter0
    moved(function, loc)          the same statements, all at one location in the source

The names, and the choice of the bodies, are those of `zygote_py.frontend.inlining`.
"""

from __future__ import annotations

import dataclasses
import operator

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py import statements as st
from zygote_py.ir.core import Loc, Type


def moved(function: st.TypedFunction, loc: Loc) -> st.TypedFunction:
    """Return a function with all statements at one location: those of a library function belong to its call."""
    return dataclasses.replace(
        function,
        blocks={
            label: st.TypedBlock(
                tuple(dataclasses.replace(statement, loc=loc) for statement in block.statements),
                dataclasses.replace(block.ending, loc=loc),
                loc,
            )
            for label, block in function.blocks.items()
        },
    )


def parameter(prefix: str, index: int) -> st.Variable:
    """Return the variable that holds an argument of a call."""
    return f"{prefix}*parameter{index}"


def is_parameter(variable: st.Variable) -> bool:
    """Return whether `inline_calls` created a variable to hold an argument."""
    return ":*parameter" in variable


def renamed(block: st.TypedBlock, prefix: str) -> st.TypedBlock:
    """Return a block with other names for its variables; its parameters become variables, too."""
    new = prefix.__add__
    statements: list[st.Statement] = []
    for statement in block.statements:
        match statement:
            case st.Assign(target, st.Parameter(index), loc):
                statements.append(st.Assign(new(target), st.Copy(parameter(prefix, index)), loc))
            case _:
                statements.append(st.map_variables(statement, new))
    return st.TypedBlock(tuple(statements), st.map_variables(block.ending, new), block.loc)


def divisions(function: st.TypedFunction) -> set[object]:
    """Return the operators by which a function divides numbers, and functions that do."""
    found: set[object] = set()
    for block in function.blocks.values():
        for statement in block.statements:
            match statement:
                case st.Assign(_, st.Operate(op, _, types_)) if op in _DIVISIONS and _are_numbers(types_):
                    found.add(op)
                case st.Assign(_, st.Call(callee, types=types_)) if _are_numbers(types_):
                    called = numba_adapter.object_of(function.types[callee])
                    found |= {each for each in _DIVIDE if each is called}
                case _:
                    pass
    return found


def with_divisions_of_numpy(block: st.TypedBlock) -> st.TypedBlock:
    """Return a block in which dividing a number by zero yields infinity or NaN, whatever Python would do."""
    statements: list[st.Statement] = []
    for statement in block.statements:
        match statement:
            case st.Assign(target, st.Operate(operator.truediv, args, types_), loc) if _are_numbers(types_):
                statement = st.Assign(target, st.Operate(np.true_divide, args, types_), loc)
            case _:
                pass
        statements.append(statement)
    return dataclasses.replace(block, statements=tuple(statements))


_DIVISIONS = frozenset({operator.truediv, operator.floordiv, operator.mod})
_DIVIDE = (divmod, *_DIVISIONS)


def _are_numbers(types_: tuple[Type, ...]) -> bool:
    return all(isinstance(types.unliteral(each), types.Number | types.Boolean) for each in types_)
