"""Puts the bodies of called Python functions in the place of the calls, before anything is lowered.

    1: y = call f(x)          1: 1:a = x               # for def f(a): if a > 0: return a; return -a
       goto 2                    choose ..., 10, 11
                        ->    10: y = 1:a;  goto 12
                              11: y = 1:t;  goto 12
                              12: goto 2

What a callee captures is added to what the caller captures. Which callables have a body that can be put in, Numba's
adapter says; for the others, and for recursive functions, it does nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from numba import types

from zygote_py import statements as st
from zygote_py.ir.core import Loc, Type
from zygote_py.ir.types import components_of

Rename = Callable[[st.Variable], st.Variable]


def inline_calls(typed: st.TypedFunction) -> st.TypedFunction:
    """The function with the bodies of the functions that it calls."""
    return _Inliner(typed).run()


class _Inliner:
    def __init__(self, typed: st.TypedFunction) -> None:
        self._typed = typed
        self._types = dict(typed.types)
        self._names = dict(typed.names)
        self._parameters = list(typed.parameters)
        self._parameter_types = list(typed.parameter_types)
        self._hidden = {capture.key: capture for capture in typed.hidden}
        self._frozen = {capture.key: capture for capture in typed.frozen}
        self._blocks: dict[st.Label, st.TypedBlock] = {}
        self._label = max(typed.blocks)
        self._calls = 0

    def run(self) -> st.TypedFunction:
        lasts = {label: self._block(label, block) for label, block in self._typed.blocks.items()}
        if not self._calls:
            return self._typed
        # Control now comes to the successors of a block from the last of those that it was split into.
        blocks = {
            label: _map_merges(block, lasts) if label in lasts else block for label, block in self._blocks.items()
        }
        return dataclasses.replace(
            self._typed,
            parameters=tuple(self._parameters),
            parameter_types=tuple(self._parameter_types),
            blocks=blocks,
            types=self._types,
            names=self._names,
            hidden=tuple(self._hidden.values()),
            frozen=tuple(self._frozen.values()),
        )

    def _block(self, label: st.Label, block: st.TypedBlock) -> st.Label:
        """Copy a block with the calls in it; gives the label of the block that ends like it."""
        done: list[st.Statement] = []
        for statement in block.statements:
            callee = self._callee(statement)
            if callee is None:
                done.append(statement)
                continue
            assert isinstance(statement, st.Assign)
            assert isinstance(statement.value, st.Call)
            self._calls += 1
            prefix = f"{self._calls}:"
            done += self._pass_arguments(statement.value, callee, prefix, statement.loc)
            renamed = [_renamed(each, prefix) for each in callee.blocks.values()]
            if len(renamed) == 1 and isinstance(renamed[0].ending, st.Leave):
                done += renamed[0].statements
                done += self._result(statement, callee, renamed[0].ending, prefix)
                continue
            labels = {old: self._next_label() for old in callee.blocks}
            rest = self._next_label()
            self._blocks[label] = st.TypedBlock(
                tuple(done), st.GoTo(labels[next(iter(callee.blocks))], statement.loc), block.loc
            )
            for old, inner in zip(callee.blocks, renamed, strict=True):
                self._blocks[labels[old]] = self._inner(inner, labels, rest, statement, callee, prefix)
            label, done = rest, []
        self._blocks[label] = st.TypedBlock(tuple(done), block.ending, block.loc)
        return label

    def _next_label(self) -> st.Label:
        self._label += 1
        return self._label

    def _callee(self, statement: st.Statement) -> st.TypedFunction | None:
        match statement:
            case st.Assign(_, st.Call(callee, types=argument_types)):
                found = self._typed.callee_of(self._types[callee], argument_types)
                return None if found is None else inline_calls(found)
            case _:
                return None

    def _pass_arguments(self, call: st.Call, callee: st.TypedFunction, prefix: str, loc: Loc) -> Iterator[st.Statement]:
        """Take over the callee's variables, and assign to its parameters."""
        for name, type_ in callee.types.items():
            self._types[prefix + name] = type_
        for name, in_source in callee.names.items():
            self._names[prefix + name] = in_source
        for capture in callee.frozen:
            self._frozen.setdefault(capture.key, capture)
        positional = list(call.args)
        if call.star is not None:
            for index, part in enumerate(components_of(self._types[call.star])):
                item = f"{prefix}*{index}"
                self._types[item] = part
                positional.append(item)
                yield st.Assign(item, st.Item(call.star, None, index), loc)
        bound = self._typed.signature_of(self._types[call.callee]).bind(*positional, **dict(call.keywords)).arguments
        for index, (name, type_) in enumerate(zip(callee.parameters, callee.parameter_types, strict=True)):
            variable = _parameter(prefix, index)
            self._types[variable] = type_
            value: st.Expression
            if index >= callee.argument_count:
                value = st.Parameter(self._hide(callee.hidden[index - callee.argument_count], type_, callee.name))
            elif name in bound:
                value = st.Copy(bound[name])
            else:
                omitted = call.types[index]
                assert isinstance(omitted, types.Omitted)
                value = st.Constant(omitted.value, name)
            yield st.Assign(variable, value, loc)

    def _hide(self, capture: st.Capture, type_: Type, callee: str) -> int:
        """The number of the parameter that holds a captured value."""
        if capture.key not in self._hidden:
            name = capture.name
            while name in self._parameters:
                name = f"{callee}_{name}" if callee.isidentifier() else f"{name}_"
            self._hidden[capture.key] = dataclasses.replace(capture, name=name)
            self._parameters.append(name)
            self._parameter_types.append(type_)
        return self._typed.argument_count + list(self._hidden).index(capture.key)

    def _inner(
        self,
        block: st.TypedBlock,
        labels: dict[st.Label, st.Label],
        rest: st.Label,
        call: st.Assign,
        callee: st.TypedFunction,
        prefix: str,
    ) -> st.TypedBlock:
        """A block of the callee as one of the caller."""
        block = _map_merges(block, labels)
        statements, ending = block.statements, block.ending
        match ending:
            case st.GoTo(target, loc):
                ending = st.GoTo(labels[target], loc)
            case st.Choose(condition, then, orelse, loc):
                ending = st.Choose(condition, labels[then], labels[orelse], loc)
            case st.Leave(_, loc):
                statements = (*statements, *self._result(call, callee, ending, prefix))
                ending = st.GoTo(rest, loc)
            case _:
                pass
        return st.TypedBlock(statements, ending, block.loc)

    def _result(
        self, call: st.Assign, callee: st.TypedFunction, leave: st.Leave, prefix: str
    ) -> Iterator[st.Statement]:
        result = f"{prefix}result"
        self._types[result] = callee.return_type
        yield st.Assign(result, st.Copy(leave.value), leave.loc)
        yield st.Assign(call.target, st.Copy(result), call.loc)


def _parameter(prefix: str, index: int) -> st.Variable:
    """The variable that holds an argument of a call."""
    return f"{prefix}parameter{index}"


def is_parameter(variable: st.Variable) -> bool:
    """Whether a variable is one that `inline_calls` made to hold an argument."""
    return ":parameter" in variable


def _map_merges(block: st.TypedBlock, labels: dict[st.Label, st.Label]) -> st.TypedBlock:
    """Rename the blocks that the merges of a block name."""
    statements = []
    for statement in block.statements:
        if isinstance(statement, st.Assign) and isinstance(statement.value, st.Merge):
            incoming = tuple((labels.get(label, label), variable) for label, variable in statement.value.incoming)
            statement = st.Assign(statement.target, st.Merge(incoming), statement.loc)
        statements.append(statement)
    return st.TypedBlock(tuple(statements), block.ending, block.loc)


def _renamed(block: st.TypedBlock, prefix: str) -> st.TypedBlock:
    """A block with other names for its variables."""
    new = prefix.__add__
    statements: list[st.Statement] = []
    for statement in block.statements:
        match statement:
            case st.Assign(target, value, loc):
                statements.append(st.Assign(new(target), _renamed_expression(value, new), loc))
            case st.Act(kind, args, loc):
                statements.append(st.Act(kind, tuple(map(new, args)), loc))
    ending = block.ending
    match ending:
        case st.Choose(condition, then, orelse, loc):
            ending = st.Choose(new(condition), then, orelse, loc)
        case st.Leave(result, loc):
            ending = st.Leave(new(result), loc)
        case st.Fail(exception, raised, loc):
            renamed = (st.Name(new(arg.variable)) if isinstance(arg, st.Name) else arg for arg in raised)
            ending = st.Fail(exception, tuple(renamed), loc)
        case _:
            pass
    return st.TypedBlock(tuple(statements), ending, block.loc)


def _renamed_expression(value: st.Expression, new: Rename) -> st.Expression:
    match value:
        case st.Parameter(index):
            return st.Copy(new(_parameter("", index)))
        case st.Copy(source):
            return st.Copy(new(source))
        case st.Operate(op, args, types_, inplace):
            return st.Operate(op, tuple(map(new, args)), types_, inplace)
        case st.Call(callee, args, keywords, types_, star):
            named = tuple((name, new(arg)) for name, arg in keywords)
            return st.Call(new(callee), tuple(map(new, args)), named, types_, None if star is None else new(star))
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
