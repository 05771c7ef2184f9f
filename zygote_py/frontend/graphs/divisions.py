"""The divisions in a function, which depend on whether a division by zero is an error."""

from __future__ import annotations

import dataclasses
import operator

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.base import statements as st
from zygote_py.ir import Type, ops


def divisions(function: st.TypedFunction) -> set[object]:
    """Return the operators by which a function divides numbers, and functions that do."""
    found: set[object] = set()
    for block in function.blocks.values():
        for statement in block.statements:
            match statement:
                case st.Assign(_, st.Operate(op, _, types_)) if ops.of(op).divides and _are_numbers(types_):
                    found.add(op)
                case st.Assign(_, st.Call(callee, types=types_)) if _are_numbers(types_):
                    called = numba_adapter.object_of(function.types[callee])
                    if ops.properties(called).divides:
                        found.add(called)
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


def _are_numbers(types_: tuple[Type, ...]) -> bool:
    return all(isinstance(types.unliteral(each), types.Number | types.Boolean) for each in types_)
