"""Derivatives in a function that is typed for us: functions of their own, made of the function that they are of.

    d = gradient(lambda v: v * w)(x)            $1 = call $deriver($lambda)     # DerivedType(gradient, ClosureType(w))
                                                d = call $1(x)

`gradient(f)` is a function value like `f` itself: it holds what `f` captures, may be passed on, and its calls are
known. What a call of it computes, its `Form` says, for the types of the arguments: another typed function. Objects that
were made of functions before, such as `df = gradient(f)`, are taken apart into the form and the function.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numba import types
from numba.extending import register_model, typeof_impl

from zygote_py import statements as st
from zygote_py.adjoints.errors import refuse
from zygote_py.base.python_text import define
from zygote_py.given import Ignored, calling
from zygote_py.ir.core import Loc, Type
from zygote_py.ir.errors import InternalError
from zygote_py.ir.text.identifiers import identifier
from zygote_py.numba_adapter.callees import CalleeType, Session, fold_signature
from zygote_py.numba_adapter.closures import SELF, ClosureType
from zygote_py.numba_adapter.decorations import is_from_source
from zygote_py.numba_adapter.dispatch import is_made, made_for
from zygote_py.numba_adapter.embedded import Call, Embedded, embedded_call
from zygote_py.numba_adapter.given import GivenType
from zygote_py.numba_adapter.internals import ir, models, signature
from zygote_py.numba_adapter.messages import definition_of
from zygote_py.numba_adapter.same import Same


class Form(Protocol):
    """What to make of a function. Compared and hashed by what it says."""

    def __hash__(self) -> int: ...

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """The parameters of what is made of a function with these."""
        ...

    def typed(self, call: DerivedCall) -> st.TypedFunction:
        """What is made, for the types of its arguments. The last parameter of that is `closure_`."""
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
        self.func: Any = derived.func
        if isinstance(self.inner, DerivedType):
            self.func = _with_signature(self.func, self.inner.own_signature())

    @property
    def loc(self) -> Loc:
        """Where the function is defined."""
        return Loc(self.func.__code__.co_filename, self.func.__code__.co_firstlineno)

    @property
    def parameters(self) -> list[str]:
        """The names of the function's parameters."""
        return list(inspect.signature(self.func).parameters)

    @property
    def name(self) -> str:
        """What to call the function."""
        return _name(self.inner)

    @property
    def options(self) -> Mapping[str, object]:
        """Numba's options."""
        return self.session.options

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the variables of the function around that it captures."""
        return self.inner.fields if isinstance(self.inner, ClosureType) else ()

    @property
    def is_closure(self) -> bool:
        """Whether the function takes what it captures as its last argument."""
        return isinstance(self.inner, ClosureType)

    def typed(self, argument_types: tuple[Type, ...]) -> st.TypedFunction:
        """The function itself for other arguments; a closure is the last of its arguments."""
        session, inner = self.session, self.inner
        if isinstance(inner, ClosureType):
            return inner.typed((*argument_types, inner.held()))
        if isinstance(inner, CalleeType) and inner.caller is inner.func:
            return inner.typed(argument_types)
        if isinstance(inner, CalleeType):
            return session.typed(inner.caller, argument_types)
        if isinstance(inner, GivenType):  # what is given is seen where the function is called
            target = inner.given.target
            called = calling(Ignored(target) if inner.given.kind == "ignore" else target)
            return session.typed(called, argument_types)
        return session.typed(self.func, argument_types)

    def written(self, function: Any, argument_types: tuple[Type, ...]) -> st.TypedFunction:
        """A function in Python that takes arguments of these types and then the function itself."""
        typed = self.session.typed(function, (*argument_types, self.inner))
        names = tuple(self.closure.own_signature().parameters)  # some have other names in there
        return dataclasses.replace(typed, parameters=(*names, *typed.parameters[len(names) :]))


class Deriver(Same):
    """What stands in a function that is being typed for `gradient` and the like."""

    def __init__(self, name: str, form: Form, session: Session, loc: Loc) -> None:
        self.name = name
        self.form = form
        self.session = session
        self.loc = loc


class DeriverType(Same, types.Callable, types.Opaque):
    """The type of a `Deriver`."""

    def __init__(self, deriver: Deriver) -> None:
        self.deriver = deriver
        super().__init__(f"{deriver.form!r} in {deriver.session.number}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        (function,) = args
        return signature(derived_type(self.deriver.form, function, self.deriver.session, self.deriver.loc), function)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba asks for what is known beforehand, to explain a failure."""
        return [], False

    def get_impl_key(self, sig: object) -> object:
        """Numba asks for what to compile; it does not come to that."""
        raise InternalError("a derivative is to be compiled before it is lowered")


class DerivedCallee(Same):
    """What stands in a function that is being typed for a derivative that was made before."""

    def __init__(self, type_: DerivedType) -> None:
        self.type = type_


class _Plain(Same):
    """What makes closures that capture nothing."""

    def __init__(self, func: Any, session: Session) -> None:
        self.func = func
        self.session = session
        self.fields: tuple[str, ...] = ()
        self.variables: frozenset[str] = frozenset()
        self.loc = definition_of(func.__code__)
        self.how = None


class DerivedType(ClosureType):
    """The type of what is made of a function of type `inner`: it holds what that holds."""

    def __init__(self, form: Form, inner: Any, session: Session) -> None:
        self.form = form
        self.inner = inner
        self.session = session
        self.func: Any = _func_of(inner)
        if isinstance(inner, ClosureType):
            super().__init__(inner.maker, inner.types)
        else:
            super().__init__(_Plain(self.func, session), ())  # type: ignore[arg-type]
        self.name = f"{form!r} of {inner.name}"

    def __bool__(self) -> bool:
        return True  # also if it holds nothing

    @property
    def key(self) -> object:
        """What tells these types apart."""
        return self.form, self.inner

    def typed(self, argument_types: tuple[Type, ...]) -> st.TypedFunction:
        """What is made for these argument types, its own behind them."""
        session = self.session
        key = self.form, self.inner, argument_types[:-1]
        made: dict[object, st.TypedFunction] = session.derived
        if key not in made:
            if key in session.deriving or session.is_active(self.func):
                raise refuse(
                    f"`{self.func.__name__}` takes a derivative of itself",
                    definition_of(self.func.__code__),
                    "take the derivative of another function, which does not call this one",
                    "def",
                )
            session.deriving.add(key)
            try:
                made[key] = self.form.typed(DerivedCall(self, argument_types[:-1]))
            finally:
                session.deriving.remove(key)
        return made[key]

    def signature(self) -> inspect.Signature:
        """The parameters, and that for the closure."""
        pysig = self.own_signature()
        self_ = inspect.Parameter(SELF, inspect.Parameter.KEYWORD_ONLY)
        return pysig.replace(parameters=[*pysig.parameters.values(), self_])

    def own_signature(self) -> inspect.Signature:
        """The parameters without that for the closure."""
        inner = self.inner.own_signature() if isinstance(self.inner, DerivedType) else inspect.signature(self.func)
        return self.form.signature(inner)

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        defaults = dict(zip(self.fields, self.types, strict=True))
        pysig, folded = fold_signature(self.own_signature(), self.func, args, kws, defaults)
        found = self.typed((*folded, self)).return_type
        return signature(found, *folded).replace(pysig=pysig)


register_model(DeriverType)(models.OpaqueModel)
register_model(DerivedType)(models.TupleModel)


@typeof_impl.register(Deriver)
def _typeof_deriver(value: Deriver, context: object) -> Type:
    return DeriverType(value)


@typeof_impl.register(DerivedCallee)
def _typeof_derived(value: DerivedCallee, context: object) -> Type:
    return value.type


def _name(inner: Any) -> str:
    if isinstance(inner, DerivedType):
        return f"{_name(inner.inner)}_{inner.form}"
    name: str = _func_of(inner).__name__
    return identifier(name, "function")


def _with_signature(func: Any, pysig: inspect.Signature) -> Any:
    """A function that stands where another does, with other parameters."""
    made = define(f"def derived({', '.join(pysig.parameters)}): pass\n", "derived", {}, at=func)
    defaults = [each.default for each in pysig.parameters.values() if each.default is not each.empty]
    made.__defaults__ = tuple(defaults) or None
    return made


def _func_of(inner: Any) -> Any:
    """The Python function in a function of this type."""
    match inner:
        case DerivedType() | CalleeType():
            return inner.func
        case ClosureType():
            return inner.maker.func
        case GivenType():
            return getattr(inner.given.target, "py_func", inner.given.target)
        case _:
            return inner.dispatcher.py_func


def derived_type(form: Form, function: Any, session: Session, loc: Loc | None) -> DerivedType:
    """The type of what is made of a function of a type. Raises DifferentiationError if that is no Python function."""
    if isinstance(function, types.Dispatcher):
        owner = made_for(function.dispatcher)
        if owner is not None:
            return derived_type(form, type_of_made(owner, session, loc), session, loc)
    known = isinstance(function, CalleeType | ClosureType | GivenType) or (
        isinstance(function, types.Dispatcher) and is_from_source(function.dispatcher)
    )
    if not known or not inspect.isfunction(_func_of(function)):
        raise refuse(
            f"`{form}` of {'a function that is not written in Python' if known else f'a value of type {function}'}",
            loc,
            "write a function that calls it, and differentiate that",
        )
    return DerivedType(form, function, session)


def type_of_made(made: Any, session: Session, loc: Loc | None) -> DerivedType:
    """The type of a derivative that was made before, as a function that is typed for us sees it."""
    return type_of_form(made.form, made.primal, session, loc)


def type_of_form(form: Form, primal: Any, session: Session, loc: Loc | None) -> DerivedType:
    """The type of what a form makes of a Python function, or of a derivative that was made before."""
    if is_made(primal):
        return derived_type(form, type_of_made(primal, session, loc), session, loc)
    from zygote_py.numba_adapter.dispatch import typeof
    from zygote_py.numba_adapter.functions import as_callees, with_functions

    (wrapped,) = with_functions((primal,))
    return derived_type(form, as_callees(typeof(wrapped), session), session, loc)


def derived_callee(value: Any, session: Session, loc: Loc | None) -> DerivedCallee | None:
    """What to put in the place of a derivative that is captured; None for anything else."""
    return DerivedCallee(type_of_made(value, session, loc)) if is_made(value) and hasattr(value, "form") else None


def take_derivers(state: Any) -> None:
    """Put in derivers where a function of ours is called that makes something of a function."""
    func_ir = state.func_ir
    for block in func_ir.blocks.values():
        body: list[Any] = []
        for statement in block.body:
            found = embedded_call(func_ir, statement.value) if isinstance(statement, ir.Assign) else None
            if found is not None:
                body += _with_deriver(state, block.scope, statement, found)
            body.append(statement)
        block.body = body


def _with_deriver(state: Any, scope: Any, statement: Any, found: Embedded) -> Sequence[Any]:
    call = Call(state.func_ir, state, scope, statement)
    if found.form is None:
        raise refuse(
            f"`{found.name}` in a function that is differentiated is not supported",
            call.loc,
            "use `gradient` or `value_and_gradient` there",
            found.name,
        )
    args, vararg, words, options = call.taken(found)
    loc = statement.loc
    deriver = call.new(ir.Global(found.name, Deriver(found.name, found.form(options), state.session, call.loc), loc))
    made = ir.Expr.call(deriver, (args[0],), (), loc)
    if found.applied:
        made = ir.Expr.call(call.new(made), args[1:], tuple(words.items()), loc, vararg)
    call.define(statement, made)
    return call.body


def is_deriver(type: Type) -> bool:
    """Whether this is the type of what makes a derivative of a function."""
    return isinstance(type, DeriverType)
