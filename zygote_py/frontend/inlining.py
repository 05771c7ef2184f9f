"""Replace calls of Python functions by their bodies, before anything is lowered.

    1: y = call f(x)          1: 1:a = x               # for def f(a): if a > 0: return a; return -a
       goto 2                    choose ..., 10, 11
                        ->    10: y = 1:a;  goto 12
                              11: y = 1:t;  goto 12
                              12: goto 2

The captured variables of a callee are added to those of the caller. The adapter of Numba tells which callables have a
body, and `zygote_py.library` for functions of NumPy, whose bodies get the location of the call. Calls of other
callables are left as they are.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable, Iterator
from types import FunctionType

import numpy as np
from numba import types

from zygote_py import library, numba_adapter
from zygote_py import statements as st
from zygote_py.adjoints.analysis.kinds import element_of
from zygote_py.frontend import given
from zygote_py.frontend.displays import with_tuples
from zygote_py.frontend.handlers import guard
from zygote_py.frontend.program import Program
from zygote_py.frontend.renaming import moved, parameter, renamed, with_divisions_of_numpy
from zygote_py.frontend.values import is_list
from zygote_py.ir.core import Loc, Type
from zygote_py.ir.errors import InternalError
from zygote_py.ir.text.identifiers import is_identifier
from zygote_py.ir.types import components_of
from zygote_py.library import list_slices
from zygote_py.tries import leads_out


def program_of(typed: st.TypedFunction) -> Program:
    """Return a function and those that it calls."""
    caught: set[st.TypedFunction] = set()
    return Program(_inline, typed, lambda function: _Inliner(function, _LIBRARY).callees(caught), caught)


def _inline(function: st.TypedFunction, program: Program) -> st.TypedFunction:
    return _Inliner(function, program).run()


# Functions of this package's library: everything that they call is inlined.
_LIBRARY = Program(_inline)


# Methods of arrays that change the array, unlike NumPy's function of the same name.
_IN_PLACE = frozenset({"sort", "partition"})
# Operators in place that change a list, by the operator that makes a new one.
_CHANGE_A_LIST: dict[object, Callable[..., object]] = {operator.add: operator.iadd, operator.mul: operator.imul}


_HAVE_METHODS = (types.Array, types.List, types.ListType, types.ClassInstanceType)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Inlined:
    """A body that replaces a call, with its own calls inlined; `call.types` are its parameters' types.

    `stays` is the function as it was typed, if it is a routine, whose call stays one.
    """

    function: st.TypedFunction
    signature: inspect.Signature
    call: st.Call
    stays: st.TypedFunction | None = None


class _Inliner:
    def __init__(self, typed: st.TypedFunction, program: Program) -> None:
        self._typed = typed = with_tuples(typed)
        self._program = program
        self._types = dict(typed.types)
        self._names = dict(typed.names)
        self._parameters = list(typed.parameters)
        self._parameter_types = list(typed.parameter_types)
        self._hidden = {capture.key: capture for capture in typed.hidden}
        self._frozen = {capture.key: capture for capture in typed.frozen}
        self._blocks: dict[st.Label, st.TypedBlock] = {}
        self._label = max(typed.blocks)
        self._handlers: dict[st.Label, st.Label] = {}  # by the block, where exceptions in it go
        self._calls = 0
        self._methods: dict[st.Variable, st.Attribute] = {}  # by the variable that holds the method of an array
        self._never_none: set[st.Variable] = set()  # although Numba types them as if they could be

    def run(self) -> st.TypedFunction:
        lasts = {label: self._block(label, block) for label, block in self._typed.blocks.items()}
        if not self._calls and not any(isinstance(block.ending, st.Try) for block in self._typed.blocks.values()):
            return self._typed
        # Control now reaches the successors of a block from the last of the blocks into which it was split.
        blocks = {
            label: st.map_merges(block, lasts) if label in lasts else block for label, block in self._blocks.items()
        }
        if self._handlers:
            blocks, lasts = guard(blocks, self._handlers, self._types, self._typed.options)
            blocks = {label: st.map_merges(block, lasts) for label, block in blocks.items()}
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

    def callees(self, caught: set[st.TypedFunction]) -> list[st.TypedFunction]:
        """Return the functions that this one calls, once for each call in it, except those of this package's library.

        Those that it calls in a `try` are added to `caught`.
        """
        found: list[st.TypedFunction] = []
        for block in self._typed.blocks.values():
            for written in (each for raw in block.statements for each in self._initialized(raw)):
                statement = self._with_receiver(written)
                if isinstance(statement, st.Assign) and isinstance(statement.value, st.Call):
                    callee, _, _ = self._called(statement.value)
                    if callee is not None:
                        found.append(callee)
                        if isinstance(block.ending, st.Try):
                            caught.add(callee)
                for _ in self._keep_self(statement):
                    pass
        return found

    def _block(self, label: st.Label, block: st.TypedBlock) -> st.Label:
        """Copy a block with the calls in it; return the label of the block that ends like it."""
        done: list[st.Statement] = []
        before = set(self._blocks)
        for written in (each for raw in block.statements for each in self._initialized(raw)):
            statement = self._with_receiver(written)
            inlined = self._inlined(statement)
            if inlined is None:
                done.append(statement)
                done += self._keep_self(statement)
                self._follow(statement)
                continue
            assert isinstance(statement, st.Assign)
            callee = inlined.function
            self._calls += 1
            prefix = f"{self._calls}:"
            done += self._pass_arguments(inlined, prefix, statement.loc)
            if inlined.stays is not None:
                done += self._invoke(inlined.stays, prefix, statement)
                continue
            bodies = [renamed(each, prefix) for each in callee.blocks.values()]
            if _divides_by_zero(callee) and not _divides_by_zero(self._typed):
                bodies = [with_divisions_of_numpy(each) for each in bodies]
            if len(bodies) == 1 and isinstance(bodies[0].ending, st.Leave):
                done += bodies[0].statements
                done += self._result(statement, callee, bodies[0].ending, prefix)
                continue
            labels = {old: self._next_label() for old in callee.blocks}
            rest = self._next_label()
            self._blocks[label] = st.TypedBlock(
                tuple(done), st.GoTo(labels[next(iter(callee.blocks))], statement.loc), block.loc
            )
            for old, inner in zip(callee.blocks, bodies, strict=True):
                self._blocks[labels[old]] = self._inner(inner, labels, rest, statement, callee, prefix)
            label, done = rest, []
        ending = block.ending
        if isinstance(ending, st.Try):
            ways = {label} | (set(self._blocks) - before)
            if not leads_out(self._typed.blocks, ending.handler):
                self._handlers |= dict.fromkeys(ways, ending.handler)
            ending = st.GoTo(ending.target, ending.loc)
        self._blocks[label] = st.TypedBlock(tuple(done), ending, block.loc)
        return label

    def _next_label(self) -> st.Label:
        self._label += 1
        return self._label

    def _initialized(self, statement: st.Statement) -> Iterator[st.Statement]:
        """Return the call of a jitclass as one that makes the object, and the call of its `__init__`."""
        yield statement
        match statement:
            case st.Assign(target, st.Call(callee, args, keywords, argument_types, star), loc):
                made = numba_adapter.made_by(self._types[callee])
                initializer = None if made is None else self._typed.member_of(made, "__init__")
                if made is not None and initializer is not None:
                    self._types[f"{target}.__init__"] = initializer
                    self._types[f"{target}.initialized"] = types.none
                    call = st.Call(f"{target}.__init__", (target, *args), keywords, (made, *argument_types), star)
                    yield st.Assign(f"{target}.initialized", call, loc)
            case _:
                pass

    def _with_receiver(self, statement: st.Statement) -> st.Statement:
        """Return the call of a method, an object or a property as a call that passes the object first.

        What writes to a slice of a list, or deletes from it, is an operator like any other.
        """
        match statement:
            case st.Assign(target, st.Call(callee, args, keywords, argument_types, star), loc):
                own = self._types[callee]
                if numba_adapter.is_closure(own):
                    keywords = (*keywords, (numba_adapter.CLOSURE, callee))
                    return st.Assign(target, st.Call(callee, args, keywords, (*argument_types, own), star), loc)
                this = numba_adapter.receiver_of(own)
                if this is not None:
                    call = st.Call(callee, (callee, *args), keywords, (this, *argument_types), star)
                    return st.Assign(target, call, loc)
            case st.Assign(target, st.Attribute(value, name), loc):
                this = self._types[value]
                accessor = self._typed.accessor_of(this, name)
                if accessor is not None:
                    self._types[f"{target}.{name}"] = accessor
                    return st.Assign(target, st.Call(f"{target}.{name}", (value,), (), (this,)), loc)
            case st.Store(target, index, value, _, loc) if isinstance(self._types[index], types.SliceType):
                if is_list(self._types[target]):
                    return self._act(f"{index}.stored", operator.setitem, (target, index, value), loc)
            case st.Act("delitem", (target, index), loc) if is_list(self._types[target]):
                return self._act(f"{index}.deleted", operator.delitem, (target, index), loc)
            case _:
                pass
        return statement

    def _act(
        self, name: st.Variable, op: Callable[..., object], args: tuple[st.Variable, ...], loc: Loc
    ) -> st.Statement:
        """Return a statement without a result as the call of an operator."""
        self._types[name] = types.none
        return st.Assign(name, st.Operate(op, args, tuple(self._types[arg] for arg in args)), loc)

    def _inlined(self, statement: st.Statement) -> _Inlined | None:
        match statement:
            case st.Assign(_, st.Call() as call):
                found, own, call = self._called(call)
                if found is None:
                    return self._from_library(call, statement)
                signature = given.signature_of(found) or self._typed.signature_of(own) or _by_place(found)
                if self._program.is_routine(found):
                    return _Inlined(found, signature, call, found)
                return _Inlined(self._program.body(found), signature, call)
            case st.Assign(_, st.Operate(op, args, taken, inplace)) if any(map(is_list, taken)):
                function = _CHANGE_A_LIST.get(op, op) if inplace else op
                return self._implemented(function, st.Call("", args, (), taken), statement)
            case st.Assign(_, st.Item(value, None, slice() as static)) if is_list(self._types[value]):
                return self._implemented(list_slices.part_of(static), st.Call("", (value,), (), ()), statement)
            case st.Assign(_, st.Item(value, index, _, _)) if index is not None and is_list(self._types[value]):
                taken = (self._types[value], self._types[index])
                return self._implemented(operator.getitem, st.Call("", (value, index), (), taken), statement)
            case _:
                return None

    def _called(self, call: st.Call) -> tuple[st.TypedFunction | None, Type, st.Call]:
        """Return the called function if it has a body, the callable's type, and the call with the method's object."""
        method = self._methods.get(call.callee)
        own = self._types[call.callee]
        if method is not None:
            this = self._types[method.value]
            member = self._typed.member_of(this, method.name)
            if member is not None or numba_adapter.is_object(this):
                call = dataclasses.replace(call, args=(method.value, *call.args), types=(this, *call.types))
                own = member or types.none
        found = self._typed.callee_of(own, call.types)
        if found is not None:  # by constants, maybe, which are arguments like others then
            call = dataclasses.replace(call, types=tuple(map(types.unliteral, call.types)))
        return found, own, call

    def _from_library(self, call: st.Call, statement: st.Assign) -> _Inlined | None:
        """Return the library's replacement of a call, if numbers are differentiated through it or it returns a list."""
        method = self._methods.get(call.callee)
        if method is None:
            function = numba_adapter.object_of(self._types[call.callee])
        elif is_list(self._types[method.value]):
            call = dataclasses.replace(call, args=(method.value, *call.args))
            return self._implemented(getattr(list, method.name, None), call, statement)
        else:
            name = method.name if method.name in _IN_PLACE else ""
            function = getattr(np.ndarray, name, None) or getattr(np, method.name, None)
            call = dataclasses.replace(call, args=(method.value, *call.args))
        if not callable(function) or function not in library.implemented():
            return None
        star = () if call.star is None else components_of(self._types[call.star])
        positional = (*(self._types[arg] for arg in call.args), *star)
        keywords = {name: self._types[arg] for name, arg in call.keywords}
        result = self._types[statement.target]
        active = any(map(library.is_differentiable, (*positional, *keywords.values())))
        active = active and (library.is_differentiable(result) or isinstance(result, types.NoneType))
        # A list is known only if its items are.
        return self._implemented(function, call, statement) if active or is_list(result) else None

    def _implemented(
        self, function: Callable[..., object] | None, call: st.Call, statement: st.Assign
    ) -> _Inlined | None:
        """Return the library's implementation of a function for these arguments."""
        if function is None:
            return None
        star = () if call.star is None else components_of(self._types[call.star])
        positional = (*(self._types[arg] for arg in call.args), *star)
        keywords = {name: self._types[arg] for name, arg in call.keywords}
        result = self._types[statement.target]
        made = isinstance(function, FunctionType) and function not in library.implemented()
        implementation = function if made else library.implementation_of(function, positional, keywords)
        if implementation is None:
            return None
        signature = inspect.signature(implementation)
        bound = signature.bind(*positional, **keywords).arguments
        taken = tuple(
            _plain_slice(bound[name]) if name in bound else types.Omitted(parameter.default)
            for name, parameter in signature.parameters.items()
        )
        typed = numba_adapter.typed_implementation(implementation, taken)
        if isinstance(result, types.Optional) and _holds(result.type, typed.return_type):
            # Numba's own implementation seems to end without a value somewhere; the library's does not.
            self._types[statement.target] = result = result.type
            self._never_none.add(statement.target)
        if not _holds(result, typed.return_type):
            raise InternalError(f"{function}{taken} gives {typed.return_type}, and Numba's gives {result}")
        return _Inlined(moved(_LIBRARY.body(typed), statement.loc), signature, dataclasses.replace(call, types=taken))

    def _keep_self(self, statement: st.Statement) -> Iterator[st.Statement]:
        """Keep the array of a method in a variable that nothing else assigns."""
        match statement:
            case st.Assign(target, st.Attribute(value, name)) if isinstance(self._types[value], _HAVE_METHODS):
                if isinstance(self._types[target], types.BoundFunction):
                    kept = f"{target}:self"
                    self._types[kept] = self._types[value]
                    self._methods[target] = st.Attribute(kept, name)
                    yield st.Assign(kept, st.Copy(value), statement.loc)
            case st.Assign(target, st.Copy(source)) if source in self._methods:
                self._methods[target] = self._methods[source]
            case _:
                pass

    def _follow(self, statement: st.Statement) -> None:
        """Mark a copy of what is never `None` as never `None`, if nothing else is assigned to it."""
        match statement:
            case st.Assign(target, st.Copy(source)) if source in self._never_none:
                blocks = self._typed.blocks.values()
                targets = [each.target for block in blocks for each in block.statements if isinstance(each, st.Assign)]
                if targets.count(target) == 1 and isinstance(self._types[target], types.Optional):
                    self._types[target] = self._types[source]
                    self._never_none.add(target)
            case _:
                pass

    def _pass_arguments(self, inlined: _Inlined, prefix: str, loc: Loc) -> Iterator[st.Statement]:
        """Take over the callee's variables, and assign to its parameters."""
        call, callee = inlined.call, inlined.function
        if inlined.stays is None:
            self._types |= {prefix + name: type_ for name, type_ in callee.types.items()}
            self._names |= {prefix + name: in_source for name, in_source in callee.names.items()}
        for capture in callee.frozen:
            self._frozen.setdefault(capture.key, capture)
        positional = list(call.args)
        if call.star is not None:
            for index, part in enumerate(components_of(self._types[call.star])):
                item = f"{prefix}*{index}"
                self._types[item] = part
                positional.append(item)
                yield st.Assign(item, st.Item(call.star, None, index), loc)
        taken = list(inlined.signature.parameters)
        bound = inlined.signature.bind(*positional, **dict(call.keywords)).arguments
        for index, (name, type_) in enumerate(zip(callee.parameters, callee.parameter_types, strict=True)):
            variable = parameter(prefix, index)
            self._types[variable] = type_
            value: st.Expression
            if name not in inlined.signature.parameters and index < len(taken):
                name = taken[index]  # an implementation for Numba may have other names for them
            if index >= callee.argument_count:
                if inlined.stays is not None:
                    break
                value = st.Parameter(self._hide(callee.hidden[index - callee.argument_count], type_, callee.name))
            elif isinstance(bound.get(name), tuple):  # of `*args`
                value = st.Build("tuple", bound[name])
            elif name in bound:
                value = st.Copy(bound[name])
            elif isinstance(omitted := call.types[index], types.Omitted):
                value = st.Constant(omitted.value, name)
            else:
                value = st.Attribute(call.callee, numba_adapter.default_of(name))
            yield st.Assign(variable, value, loc)

    def _invoke(self, function: st.TypedFunction, prefix: str, call: st.Assign) -> Iterator[st.Statement]:
        """Yield the call of a routine, which also takes its captured variables and those of its callees."""
        args = [parameter(prefix, index) for index in range(function.argument_count)]
        for capture, type_ in self._program.hidden(function):
            args.append(parameter(prefix, len(args)))
            self._types[args[-1]] = type_
            yield st.Assign(args[-1], st.Parameter(self._hide(capture, type_, function.name)), call.loc)
        result = f"{prefix}*result"
        self._types[result] = function.return_type
        yield st.Assign(result, st.Invoke(function, tuple(args)), call.loc)
        yield st.Assign(call.target, st.Copy(result), call.loc)

    def _hide(self, capture: st.Capture, type_: Type, callee: str) -> int:
        """Return the number of the parameter that holds a captured value."""
        if capture.key not in self._hidden:
            name = capture.name
            while name in self._parameters:
                name = f"{callee}_{name}" if is_identifier(callee) else f"{name}_"
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
        """Return a block of the callee as one of the caller."""
        block = st.map_merges(block, labels)
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
        result = f"{prefix}*result"
        self._types[result] = callee.return_type
        yield st.Assign(result, st.Copy(leave.value), leave.loc)
        yield st.Assign(call.target, st.Copy(result), call.loc)


def _divides_by_zero(function: st.TypedFunction) -> bool:
    """Return whether a division by zero is not an error in a function."""
    return function.options.get("error_model") == "numpy"


def _by_place(function: st.TypedFunction) -> inspect.Signature:
    """Return the signature of a function that is called by position."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind) for name in function.parameters[: function.argument_count]])


def _plain_slice(type: Type) -> Type:
    """Return the type of a slice whose bounds are not known, for one whose bounds are."""
    if not isinstance(type, types.SliceType):
        return type
    return types.slice3_type if type.has_step else types.slice2_type


def _holds(type: Type, own: Type) -> bool:
    """Return whether a variable of one type can hold values of another: arrays must be at least as contiguous."""
    if isinstance(type, types.BaseTuple) and isinstance(own, types.BaseTuple):
        parts, own_parts = components_of(type), components_of(own)
        return len(parts) == len(own_parts) and all(map(_holds, parts, own_parts))
    if isinstance(type, types.Array) and isinstance(own, types.Array):
        return (type.dtype, type.ndim) == (own.dtype, own.ndim) and type.layout in ("A", own.layout)
    if is_list(type) and is_list(own):
        return element_of(type) == element_of(own)
    scalars = types.Number | types.Boolean
    both = isinstance(types.unliteral(type), scalars) and isinstance(types.unliteral(own), scalars)
    return both or types.unliteral(type) == types.unliteral(own)
