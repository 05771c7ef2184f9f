"""Statements under other names: the body of a called function, as a part of the function that calls it.

    renamed(block, "3:")          r = x * y        ->    3:r = 3:x * 3:y
                                  a = parameter 0  ->    3:a = 3:*parameter0
    moved(function, loc)          the same statements, all of them at one place in the source
    map_merges(block, labels)     phi(1: a, 2: b)  ->    phi(11: a, 12: b)

Where the names come from, and which bodies are put in, `zygote_py.frontend.inlining` says.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py import statements as st
from zygote_py.ir.core import Loc, Type

Rename = Callable[[st.Variable], st.Variable]


def moved(function: st.TypedFunction, loc: Loc) -> st.TypedFunction:
    """A function with all of it at one place in the source: what a call of a library's function does is the call's."""
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
    """The variable that holds an argument of a call."""
    return f"{prefix}*parameter{index}"


def is_parameter(variable: st.Variable) -> bool:
    """Whether a variable is one that `inline_calls` made to hold an argument."""
    return ":*parameter" in variable


def map_merges(block: st.TypedBlock, labels: dict[st.Label, st.Label]) -> st.TypedBlock:
    """Rename the blocks that the merges of a block name."""
    statements = []
    for statement in block.statements:
        if isinstance(statement, st.Assign) and isinstance(statement.value, st.Merge):
            incoming = tuple((labels.get(label, label), variable) for label, variable in statement.value.incoming)
            statement = st.Assign(statement.target, st.Merge(incoming), statement.loc)
        statements.append(statement)
    return st.TypedBlock(tuple(statements), block.ending, block.loc)


def renamed(block: st.TypedBlock, prefix: str) -> st.TypedBlock:
    """A block with other names for its variables."""
    new = prefix.__add__
    statements: list[st.Statement] = []
    for statement in block.statements:
        match statement:
            case st.Assign(target, value, loc):
                statements.append(st.Assign(new(target), _expression(value, new), loc))
            case st.SetAttribute(target, name, value, loc):
                statements.append(st.SetAttribute(new(target), name, new(value), loc))
            case st.Store(array, at, value, type_, loc):
                statements.append(st.Store(new(array), new(at), new(value), type_, loc))
            case st.Act(kind, args, loc):
                statements.append(st.Act(kind, tuple(map(new, args)), loc))
    ending = block.ending
    match ending:
        case st.Choose(condition, then, orelse, loc):
            ending = st.Choose(new(condition), then, orelse, loc)
        case st.Leave(result, loc):
            ending = st.Leave(new(result), loc)
        case st.Fail(exception, raised, loc):
            given = (st.Name(new(arg.variable)) if isinstance(arg, st.Name) else arg for arg in raised)
            ending = st.Fail(exception, tuple(given), loc)
        case _:
            pass
    return st.TypedBlock(tuple(statements), ending, block.loc)


def divisions(function: st.TypedFunction) -> set[object]:
    """The operators by which a function divides numbers, and functions that do."""
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
    """A block in which a number that is divided by zero gives infinity or nan, whatever Python would do."""
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


def _expression(value: st.Expression, new: Rename) -> st.Expression:
    match value:
        case st.Parameter(index):
            return st.Copy(new(parameter("", index)))
        case st.Copy(source):
            return st.Copy(new(source))
        case st.Operate(op, args, types_, inplace):
            return st.Operate(op, tuple(map(new, args)), types_, inplace)
        case st.Call(callee, args, keywords, types_, star):
            named = tuple((name, new(arg)) for name, arg in keywords)
            return st.Call(new(callee), tuple(map(new, args)), named, types_, None if star is None else new(star))
        case st.Invoke(function, args):
            return st.Invoke(function, tuple(map(new, args)))
        case st.Attribute(of, name):
            return st.Attribute(new(of), name)
        case st.Item(of, index_, static, type_):
            return st.Item(new(of), None if index_ is None else new(index_), static, type_)
        case st.Build(kind, items):
            return st.Build(kind, tuple(map(new, items)))
        case st.Iterate(of):
            return st.Iterate(new(of))
        case st.Advance(iterator):
            return st.Advance(new(iterator))
        case st.Element(pair):
            return st.Element(new(pair))
        case st.Present(pair):
            return st.Present(new(pair))
        case st.Unpack(of, count):
            return st.Unpack(new(of), count)
        case st.Merge(incoming):
            return st.Merge(tuple((label, None if name is None else new(name)) for label, name in incoming))
        case _:
            return value
