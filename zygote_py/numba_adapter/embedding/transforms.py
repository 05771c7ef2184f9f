"""Derivatives in a function that this package types: function values, each made from the original function.

    d = gradient(lambda v: v * w)(x)            $1 = call $deriver($lambda)     # DerivedType(gradient, ClosureType(w))
                                                d = call $1(x)

`gradient(f)` is a function value like `f` itself: it holds the captured variables of `f`, may be passed on, and its
calls are known. What a call of it computes, the compiler says, for its `Form` and the types of the arguments: another
typed function (see `derive_with`). Objects that were made of functions before, such as `df = gradient(f)`, are taken
apart into the form and the function.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any, Protocol

from numba import errors, types

from zygote_py.adjoints import refuse
from zygote_py.base import Ignored, calling, statements as st, stub
from zygote_py.ir import InternalError, Loc, Type, components_of, identifier, with_components
from zygote_py.numba_adapter.base import contents_of_defaults, definition_of, is_from_source, known_type, rewrite
from zygote_py.numba_adapter.base.internals import ir, numba_typeof
from zygote_py.numba_adapter.embedding.calls import Call, Embedded, embedded_call
from zygote_py.numba_adapter.embedding.custom_calls import CustomRuleType, given_callee
from zygote_py.numba_adapter.sources.python_sources import has_source
from zygote_py.numba_adapter.target.dispatch import is_made, made_for, typeof
from zygote_py.numba_adapter.types import (
    ClosureConstructor,
    ClosureType,
    FunctionHandleType,
    FunctionValueType,
    ObjectType,
    StandIn,
    TransformType,
    TypingContext,
    as_function,
    callee_type,
    is_plain_object,
    with_functions,
)


class Form(Protocol):
    """A transform of a function. Compared and hashed by its content."""

    def __hash__(self) -> int: ...

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """The parameters of what is made of a function with these."""
        ...


class DerivedCall:
    """A call of what is made of a function: `argument_types` are those of the call, `closure` what `closure_` is.

    `inner` is the type of the function itself, which has the same operands as `closure`.
    """

    def __init__(self, derived: DerivedType, argument_types: tuple[Type, ...]) -> None:
        self.argument_types = argument_types
        self.closure = derived
        self.inner = derived.inner
        self.session = derived.session
        self.options = derived.session.options
        self.name = _name(self.inner)
        self.func: Any = derived.func
        if isinstance(self.inner, DerivedType):
            self.func = _with_signature(self.func, self.inner.own_signature())
        self.loc = Loc(self.func.__code__.co_filename, self.func.__code__.co_firstlineno)
        self.parameters = list(inspect.signature(self.func).parameters)
        # the variables of the function around that it captures, which it takes as its last argument
        self.fields = self.inner.fields if isinstance(self.inner, ClosureType) else ()

    @property
    def inner_form(self) -> Form | None:
        """The form of the function itself, if it is a derivative."""
        return self.inner.form if isinstance(self.inner, DerivedType) else None

    def typed(self, argument_types: tuple[Type, ...]) -> st.TypedFunction:
        """The function itself for other arguments; a closure is the last of its arguments."""
        called, inner = self.func, self.inner
        match inner:
            case ClosureType():
                return inner.typed((*argument_types, inner.held()))
            case FunctionHandleType() if inner.caller is inner.func:
                return inner.typed(argument_types)
            case FunctionHandleType():
                called = inner.caller
            case CustomRuleType():  # what is given is seen where the function is called
                target = inner.given.target
                called = calling(Ignored(target) if inner.given.kind == "ignore" else target)
        return self.session.typed(called, argument_types)

    def derived(self, form: Form, function: Any) -> DerivedType:
        """The type of what another form makes of a function, which need not be the one that this is a call of."""
        return derived_type(form, function, self.session, self.loc)

    def written(self, function: Any, argument_types: tuple[Type, ...]) -> st.TypedFunction:
        """A function in Python that takes arguments of these types and then the function itself."""
        typed = self.session.typed(function, (*argument_types, self.inner))
        names = tuple(self.closure.own_signature().parameters)  # some have other names in there
        return dataclasses.replace(typed, parameters=(*names, *typed.parameters[len(names) :]))


def derive_with(derive: Callable[[Any, DerivedCall], st.TypedFunction]) -> None:
    """Let `derive` make derivatives, for a form and a call; the last parameter of what it makes is `closure_`."""
    global _derive
    _derive = derive


def _without_compiler(form: Any, call: DerivedCall) -> st.TypedFunction:
    raise InternalError("a derivative is called before the compiler has been imported")


_derive: Callable[[Any, DerivedCall], st.TypedFunction] = _without_compiler


class DerivedType(ClosureType):
    """The type of what is made of a function of type `inner`: it holds what that holds."""

    def __init__(self, form: Form, inner: Any, session: TypingContext) -> None:
        self.form = form
        self.inner = inner
        self.session = session
        self.func: Any = _func_of(inner)
        if isinstance(inner, ClosureType):
            super().__init__(inner.maker, inner.types)
        else:
            super().__init__(ClosureConstructor(self.func, (), "", (), session, definition_of(self.func.__code__)), ())
        self.name = f"{form!r} of {inner.name}"

    @property
    def key(self) -> object:
        """The identity of the type."""
        return self.form, self.inner

    def common(self, context: Any, other: Type) -> ClosureType | None:
        """Return the type for both if they are made alike, of functions that differ in the captured variables alone."""
        if not isinstance(other, DerivedType) or other.form != self.form or not isinstance(self.inner, ClosureType):
            return None
        inner = self.inner.common(context, other.inner)
        return None if inner is None else DerivedType(self.form, inner, self.session)

    def checkpointed(self) -> ClosureType:
        """Refuse a checkpoint."""
        raise errors.TypingError(f"`checkpoint` of a `{self.form}` is not supported: pass a function that calls it")

    def typed(self, argument_types: tuple[Type, ...]) -> st.TypedFunction:
        """Return the derived function for these argument types, of which the last is its own."""
        session = self.session
        key = self.form, self.inner, argument_types[:-1]

        def make() -> st.TypedFunction:
            if key in session.deriving or session.is_active(self.func):
                raise refuse(
                    f"`{self.func.__name__}` takes a derivative of itself",
                    definition_of(self.func.__code__),
                    "take the derivative of another function, which does not call this one",
                    "def",
                )
            session.deriving.add(key)
            try:
                made = _derive(self.form, DerivedCall(self, argument_types[:-1]))
                constants = contents_of_defaults(self.func, argument_types)
                return dataclasses.replace(made, frozen=(*made.frozen, *constants)) if constants else made
            finally:
                session.deriving.remove(key)

        return session.once(key, make)  # type: ignore[no-any-return]

    def own_signature(self) -> inspect.Signature:
        """The parameters without that for the closure."""
        inner = self.inner.own_signature() if isinstance(self.inner, DerivedType) else inspect.signature(self.func)
        return self.form.signature(inner)

    def result_type(self, argument_types: tuple[Type, ...]) -> Type:
        """Return the type of what a call gives."""
        return self.typed((*argument_types, self)).return_type


def _name(inner: Any) -> str:
    if isinstance(inner, DerivedType):
        return f"{_name(inner.inner)}_{inner.form}"
    return identifier(_func_of(inner).__name__, "function")


def _with_signature(func: Any, pysig: inspect.Signature) -> Any:
    """A function that stands where another does, with other parameters."""
    defaults = tuple(each.default for each in pysig.parameters.values() if each.default is not each.empty)
    return stub("derived", list(pysig.parameters), defaults, at=func)


def _func_of(inner: Any) -> Any:
    """The Python function in a function of this type."""
    match inner:
        case FunctionHandleType() | ClosureType():
            return inner.func
        case CustomRuleType():
            return getattr(inner.given.target, "py_func", inner.given.target)
        case _:
            return inner.dispatcher.py_func


def derived_type(form: Form, function: Any, session: TypingContext, loc: Loc | None) -> DerivedType:
    """The type of a transformed function. Raises DifferentiationError if that is not a Python function."""
    if isinstance(function, types.Dispatcher):
        owner = made_for(function.dispatcher)
        if owner is not None:
            return derived_type(form, type_of_made(owner, session, loc), session, loc)
    if isinstance(function, types.Function | ObjectType):
        called = function.value if isinstance(function, ObjectType) else function.typing_key
        written = session.once(("function", called), lambda: as_function(called))
        function = callee_type(written, session) if inspect.isfunction(written) else function
    known = isinstance(function, FunctionHandleType | ClosureType | CustomRuleType) or (
        isinstance(function, types.Dispatcher) and is_from_source(function.dispatcher)
    )
    if not known or not inspect.isfunction(_func_of(function)):
        raise refuse(
            f"`{form}` of {'a function that is not written in Python' if known else f'a value of type {function}'}",
            loc,
            "write a function that calls it, and differentiate that",
        )
    return DerivedType(form, function, session)


def type_of_made(made: Any, session: TypingContext, loc: Loc | None) -> DerivedType:
    """Return the type, within a session, of a derivative that was made before."""
    return type_of_form(made.form, made.function, session, loc)


def type_of_form(form: Form, primal: Any, session: TypingContext, loc: Loc | None) -> DerivedType:
    """The type of what a form makes of a Python function, or of a derivative that was made before."""
    if is_made(primal):
        return derived_type(form, type_of_made(primal, session, loc), session, loc)
    (wrapped,) = with_functions((primal,))
    return derived_type(form, as_callees(typeof(wrapped), session), session, loc)


def as_callees(type_: Any, session: TypingContext) -> Any:
    """Return the type of an argument within a session: functions in it are to be inlined."""
    if isinstance(type_, types.BaseTuple):
        parts = components_of(type_)
        made = tuple(as_callees(part, session) for part in parts)
        return type_ if made == parts else with_components(type_, made)
    if not isinstance(type_, FunctionValueType | types.Dispatcher):
        return type_
    func = type_.typing_key if isinstance(type_, FunctionValueType) else type_.dispatcher
    if (callee := given_callee(func, session)) is not None:
        return callee.type
    if is_plain_object(func):
        return session.once(("object", id(func)), lambda: ObjectType(func))
    if (owner := made_for(func)) is not None and hasattr(owner, "form"):
        return type_of_made(owner, session, None)
    if isinstance(func, FunctionType) or has_source(func):
        return callee_type(func, session)
    return type_ if isinstance(type_, types.Dispatcher) else known_type(func) or numba_typeof(func)


def derived_callee(value: Any, session: TypingContext, loc: Loc | None) -> StandIn | None:
    """Return the replacement of a captured derivative; None for anything else."""
    return StandIn(type_of_made(value, session, loc)) if is_made(value) and hasattr(value, "form") else None


def take_derivers(state: Any) -> None:
    """Replace calls of transforms such as `gradient` by calls of stand-ins."""

    def derived(block: Any, statement: Any) -> Sequence[Any] | None:
        found = embedded_call(state.func_ir, statement.value) if isinstance(statement, ir.Assign) else None
        return None if found is None else [*_with_deriver(state, block.scope, statement, found), statement]

    rewrite(state.func_ir, derived)


def _with_deriver(state: Any, scope: Any, statement: Any, found: Embedded) -> Sequence[Any]:
    call = Call(state.func_ir, state, scope, statement)
    if found.form is None:
        raise refuse(
            f"`{found.name}` in a function that is differentiated is not supported",
            call.loc,
            "use `gradient` or `value_and_gradient` there",
            found.name,
        )
    make = found.form

    def deriver(function: Any, options: Mapping[str, Any]) -> Any:
        form = make(options)
        apply = partial(derived_type, form, session=state.session, loc=call.loc)
        return call.call(found.name, StandIn(TransformType(repr(form), state.session.number, apply)), (function,))

    call.replace(found, deriver)
    return call.body
