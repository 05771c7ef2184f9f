"""Calls of functions with a body: that of a Python function, or the library's implementation of a NumPy function.

    y = call f(x)                     def f(a): ...            `f` for the types of its arguments, a value for each of
                                                               its parameters
    y = call np.interp(x, xp, fp)     interp of the library    likewise, if numbers are differentiated through it

The adapter of Numba tells which callables have a body. `zygote_py.frontend.lowering` lowers the body in the place of
the call, or calls the routine that the function is.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints.analysis import element_of
from zygote_py.base import statements as st
from zygote_py.frontend import custom_calls as given
from zygote_py.frontend.expressions import arrays
from zygote_py.frontend.expressions.calls import Method
from zygote_py.frontend.frames import Frame, methods_of
from zygote_py.frontend.program import Program, labels_in_loops
from zygote_py.frontend.values import (
    Emitter,
    LoweredValue,
    component,
    components,
    constant_of,
    fields_of,
    is_dict,
    is_in_parts,
    is_list,
    registry,
    tuple_of,
)
from zygote_py.ir import InternalError, Type, components_of, is_scalar, ops
from zygote_py.ir.lazy_dataclass import dataclass

_HAVE_METHODS = (
    types.Array,
    types.List,
    types.ListType,
    types.DictType,
    types.ClassInstanceType,
    types.NumPyRandomGeneratorType,
)


@dataclass(frozen=True, slots=True, eq=False)
class Inlined:
    """The call of a function that has a body, with a value for each of its parameters."""

    function: st.TypedFunction
    arguments: list[LoweredValue]
    is_library: bool = False


def program_of(typed: st.TypedFunction) -> Program:
    """Return a function and those that it calls."""
    caught: set[st.TypedFunction] = set()
    repeated: set[st.TypedFunction] = set()
    return Program(typed, lambda function: list(_callees(function, caught, repeated)), caught, repeated)


def _callees(
    function: st.TypedFunction, caught: set[st.TypedFunction], repeated: set[st.TypedFunction]
) -> Iterator[st.TypedFunction]:
    """Yield the functions that one calls, once for each call in it, except those of this package's library.

    Those that it calls in a `try` are added to `caught`, those that it calls in a loop to `repeated`.
    """
    methods, looped = methods_of(function), labels_in_loops(function)
    for label, block in function.blocks.items():
        for statement in block.statements:
            for own, taken in _calls(function, methods, statement):
                if (callee := function.callee_of(own, taken)) is not None:
                    yield callee
                    if isinstance(block.ending, st.Try):
                        caught.add(callee)
                    if label in looped:
                        repeated.add(callee)


def _calls(
    typed: st.TypedFunction, methods: Mapping[st.Variable, st.Attribute], statement: st.Statement
) -> Iterator[tuple[Type, tuple[Type, ...]]]:
    """Yield the types of what a statement calls, and of its arguments."""
    match statement:
        case st.Assign(_, st.Call(callee, types=taken) as call):
            yield _target(typed, typed.types, methods, call)
            yield from _initializer(typed, typed.types[callee], taken)
        case st.Assign(_, st.Attribute(value, name)):
            this = typed.types[value]
            if (accessor := typed.accessor_of(this, name)) is not None:
                yield accessor, (this,)


def _initializer(
    typed: st.TypedFunction, own: Type, taken: tuple[Type, ...]
) -> Iterator[tuple[Type, tuple[Type, ...]]]:
    """Yield the types of the `__init__` that the call of a jitclass calls, and of its arguments."""
    made = numba_adapter.made_by(own)
    initializer = None if made is None else typed.member_of(made, "__init__")
    if made is not None and initializer is not None:
        yield initializer, (made, *taken)


def _target(
    typed: st.TypedFunction,
    types_: Mapping[st.Variable, Type],
    methods: Mapping[st.Variable, st.Attribute],
    call: st.Call,
) -> tuple[Type, tuple[Type, ...]]:
    """Return the types of what a call calls and of its arguments: of a method the object, of a closure itself, too."""
    own = types_[call.callee]
    if numba_adapter.is_closure(own):
        return own, (*call.types, own)
    if (this := numba_adapter.receiver_of(own)) is not None:
        return own, (this, *call.types)
    if (method := methods.get(call.callee)) is not None:
        this = types_[method.value]
        member = typed.member_of(this, method.name)
        if member is not None or numba_adapter.is_object(this):
            return member or types.none, (this, *call.types)
    return own, call.types


# ------------------------------------------------------------------------------------------------ where it is called


def inlined(at: Emitter, frame: Frame, target: st.Variable, statement: st.Statement) -> Inlined | None:
    """Return the call of a function with a body that a statement comes to; None for all others."""
    types_ = frame.types
    match statement:
        case st.Assign(_, st.Call() as call):
            return _of_call(at, frame, target, call)
        case st.Assign(_, st.Attribute(value, name)):
            if (accessor := frame.typed.accessor_of(types_[value], name)) is not None:
                return _of_body(at, frame, (accessor, (types_[value],)), _read(at, [value]), {})
        case st.Assign(_, st.Operate(op, args, taken, inplace)) if any(map(_is_container, taken)):
            function = (ops.of(op).in_place or op) if inplace else op
            return _implemented(at, frame, target, function, _read(at, args))
        case st.Assign(_, st.Item(value, None, slice() as static)) if is_list(types_[value]):
            part = registry.implementation_of(operator.getitem, (types_[value], static), {})
            return _implemented(at, frame, target, part, _read(at, [value]))
        case st.Assign(_, st.Item(value, index)) if index is not None and is_list(types_[value]):
            return _implemented(at, frame, target, operator.getitem, _read(at, [value, index]))
        case st.Store(of, index, value) if is_list(types_[of]) and isinstance(types_[index], types.SliceType):
            return _implemented(at, frame, target, operator.setitem, _read(at, [of, index, value]))
        case st.SideEffect("delitem", (of, index)) if is_list(types_[of]):
            return _implemented(at, frame, target, operator.delitem, _read(at, [of, index]))
    return None


def initialized(at: Emitter, frame: Frame, statement: st.Assign) -> Inlined | None:
    """Return the call of `__init__` for an object that a statement has made; None for all other statements."""
    if isinstance(call := statement.value, st.Call):
        for target in _initializer(frame.typed, frame.types[call.callee], call.types):
            args = [at.read_whole(statement.target), *_positional(at, call)]
            return _of_body(at, frame, target, args, _keywords(at, call))
    return None


def _of_call(at: Emitter, frame: Frame, target: st.Variable, call: st.Call) -> Inlined | None:
    own, taken = _target(frame.typed, frame.types, frame.methods, call)
    args, keywords = _positional(at, call), _keywords(at, call)
    method = at.read_whole(call.callee).static
    if numba_adapter.is_closure(own):
        keywords[numba_adapter.CLOSURE] = at.read_whole(call.callee)
    elif numba_adapter.receiver_of(own) is not None:
        args.insert(0, at.read_whole(call.callee))
    elif isinstance(method, Method) and isinstance(method.value.type, _HAVE_METHODS):
        args.insert(0, method.value)
    else:
        method = None
    if (found := _of_body(at, frame, (own, taken), args, keywords, call.callee)) is not None:
        return found
    if not isinstance(method, Method):
        function = numba_adapter.object_of(own)
    else:
        function = registry.method_of(method.value.type, method.name)
        if _is_container(method.value.type):
            return _implemented(at, frame, target, function, args, keywords)
    if not callable(function) or function not in registry.implemented():
        return None
    result = frame.types[target]
    active = any(registry.is_differentiable(each.type) for each in (*args, *keywords.values()))
    active = active and (registry.is_differentiable(result) or isinstance(result, types.NoneType))
    # A list is known only if its items are, and Numba's own function would not know one that is in several parts.
    in_parts = any(is_in_parts(each.type) for each in (*args, *keywords.values()))
    needed = active or in_parts or _is_container(result)
    return _implemented(at, frame, target, function, args, keywords) if needed else None


def _is_container(type: Type) -> bool:
    return is_list(type) or is_dict(type)


def _read(at: Emitter, variables: Iterable[st.Variable]) -> list[LoweredValue]:
    return [at.read_whole(variable) for variable in variables]


def _positional(at: Emitter, call: st.Call) -> list[LoweredValue]:
    """Return the positional arguments of a call, those of `*args` one by one."""
    return [*_read(at, call.args), *(() if call.star is None else components(at.read(call.star)))]


def _keywords(at: Emitter, call: st.Call) -> dict[str, LoweredValue]:
    return {name: at.read_whole(variable) for name, variable in call.keywords}


def _of_body(
    at: Emitter,
    frame: Frame,
    target: tuple[Type, tuple[Type, ...]],
    args: Sequence[LoweredValue],
    keywords: Mapping[str, LoweredValue],
    closure: st.Variable = "",
) -> Inlined | None:
    """Return the call of a function of the user's, of which these are the types; None if it has no body."""
    own, taken = target
    if (function := frame.typed.callee_of(own, taken)) is None:
        return None
    signature = given.signature_of(function) or frame.typed.signature_of(own) or given.by_place(function)
    # Constants are arguments like others here.
    return Inlined(
        function, _bound(at, function, signature, tuple(map(types.unliteral, taken)), args, keywords, closure)
    )


def _implemented(
    at: Emitter,
    frame: Frame,
    target: st.Variable,
    function: Callable[..., object] | None,
    args: Sequence[LoweredValue],
    keywords: Mapping[str, LoweredValue] | None = None,
) -> Inlined | None:
    """Return the call of the library's implementation of a function for these arguments."""
    if function is None:
        return None
    positional = [each.type for each in args]
    named = {name: each.type for name, each in (keywords or {}).items()}
    result = frame.types.get(target, types.none)
    made = isinstance(function, FunctionType) and function not in registry.implemented()
    implementation = function if made else registry.implementation_of(function, positional, named)
    if implementation is None:
        return None
    signature = inspect.signature(implementation)
    bound = signature.bind(*positional, **named).arguments
    taken = tuple(
        _plain_slice(bound[name]) if name in bound else types.Omitted(parameter.default)
        for name, parameter in signature.parameters.items()
    )
    typed = numba_adapter.typed_implementation(implementation, taken)
    if isinstance(result, types.Optional) and _holds(result.type, typed.return_type):
        # Numba's own implementation seems to end without a value somewhere; the library's does not.
        frame.types[target] = result = result.type
        frame.never_none.add(target)
    if not _holds(result, typed.return_type):
        raise InternalError(f"{function}{taken} gives {typed.return_type}, and Numba's gives {result}")
    return Inlined(typed, _bound(at, typed, signature, taken, args, keywords or {}), is_library=True)


def _bound(
    at: Emitter,
    function: st.TypedFunction,
    signature: inspect.Signature,
    taken: tuple[Type, ...],
    args: Sequence[LoweredValue],
    keywords: Mapping[str, LoweredValue],
    closure: st.Variable = "",
) -> list[LoweredValue]:
    """Return a value for each parameter of a function, of the parameter's type."""
    names = list(signature.parameters)
    bound = signature.bind(*args, **keywords).arguments
    made: list[LoweredValue] = []
    for index, name in enumerate(function.parameters[: function.argument_count]):
        type_ = function.parameter_types[index]
        if name not in signature.parameters and index < len(names):
            name = names[index]  # an implementation for Numba may have other names for them
        if isinstance(bound.get(name), tuple):  # of `*args`
            value = tuple_of(bound[name])
        elif name in bound:
            value = bound[name]
        elif isinstance(omitted := taken[index], types.Omitted):
            if isinstance(type_, types.NoneType):  # the function has captured its default
                value = constant_of(None, type_, at.loc)
            elif isinstance(omitted.value, np.ndarray):
                value = arrays.constant_array(at, omitted.value, type_)
            else:
                value = constant_of(omitted.value, type_, at.loc)
        elif signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            value = tuple_of(())
        else:
            captured = at.read(closure)
            value = component(captured, fields_of(captured.type).index(numba_adapter.default_of(name)))
        if isinstance(type_, types.Array) and is_scalar(value.type):
            type_ = type_.dtype  # the result of `np.where` of numbers
        made.append(at.cast_bundle(value, type_))
    return made


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
