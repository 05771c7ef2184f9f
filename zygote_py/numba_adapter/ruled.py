"""Functions for which something is given, typed: the function itself, and of a rule the value, and the pullback's body.

    def rule(x):                            rule: (f64) -> (f64, <function back with c: f64>)
        c = math.cos(x)                     back: (f64, <function back with c: f64>) -> (f64,)
        def back(dy):
            return (c * dy,)
        return math.sin(x), back

A pullback is a closure like any other (see `zygote_py.numba_adapter.closures`): what it captures is its components.
A function that Numba can call and that has no body that we could read, stands as one whose body is empty
(`is_foreign`). Whether the gradients fit the parameters, the front end looks at.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from types import CellType, FunctionType
from typing import Any

from numba import types

from zygote_py import statements as st
from zygote_py.adjoints.errors import DifferentiationError, refuse
from zygote_py.given import Given, name_of, place_of, python_function
from zygote_py.ir.core import Loc, Type
from zygote_py.ir.types import components_of, with_components
from zygote_py.numba_adapter.callees import MADE, CalleeType, Session, typed_callee
from zygote_py.numba_adapter.choices import calling_one_of, is_choice
from zygote_py.numba_adapter.closures import is_closure
from zygote_py.numba_adapter.decorations import is_from_source
from zygote_py.numba_adapter.dispatch import object_of, typeof
from zygote_py.numba_adapter.given import (
    GivenType,
    compiled_by_numba,
    given_callee,
    is_python,
    result_of,
    signature_of_given,
    spread,
    star_of,
    taken_by,
)
from zygote_py.numba_adapter.internals import errors

_NOWHERE = Loc("<unknown>", 1)


def function_of_given(type_: Type, argument_types: Sequence[Type], session: Session) -> st.TypedFunction | None:
    """The function that a call of this type calls; None if it is no such type, or there is nothing to be called."""
    if isinstance(type_, types.Dispatcher) and (callee := given_callee(type_.dispatcher, session)) is not None:
        type_ = GivenType(callee)
    if not isinstance(type_, GivenType) or type_.given.kind == "stop":
        return None
    key = type_.given, tuple(argument_types)
    held: dict[object, st.TypedFunction] = type_.session.given
    if key not in held:
        try:
            held[key] = _make(type_.given, tuple(argument_types), type_.session)
        except errors.NumbaError as error:
            raise refuse(f"{type_.given} cannot be called: {error}", type_.given.loc) from None
    return held[key]


def _make(given: Given, taken: tuple[Type, ...], session: Session) -> st.TypedFunction:
    if given.kind == "hook":
        return _hook(given, taken, session)
    result, accepted = result_of(given, taken, session)
    foreign = compiled_by_numba(given)
    typed = None
    if is_python(given.target):
        with suppress(DifferentiationError):  # Numba can call it, as is known by now
            typed = session.typed(python_function(given.target), *taken_by(given.target, taken))
    if typed is None:
        names = tuple(signature_of_given(given, len(taken)).parameters)
        accepted = (*accepted, *map(_held, taken[len(accepted) :]))
        typed = _shell(given, names, accepted, result, session)
    kinds = tuple(map(_held, typed.parameter_types[: typed.argument_count]))
    parts = st.GivenParts(given, foreign, is_foreign=not typed.types)
    if given.kind == "rule":
        rule = _typed_rule(given, _kinds_of_rule(given, kinds), session)
        value, back = _value_and_back(given, rule)
        _check_value(given, value, typed.return_type)
        find = partial(_one_of, given) if is_choice(back) else _body_of
        body = find(back, shadow_type(value), session)
        if body is None:
            raise _no_pullback(given, rule.return_type, rule.loc)
        parts = dataclasses.replace(parts, rule=rule, back=body, holds=is_closure(back) or is_choice(back))
    if given.inverse is not None:
        parts = dataclasses.replace(parts, inverse=_typed_inverse(given, kinds, typed.return_type, session))
    return dataclasses.replace(typed, given=parts)


def _kinds_of_rule(given: Given, kinds: tuple[Type, ...]) -> tuple[Type, ...]:
    """The types of the rule's parameters: either it, or the function, may take any number of arguments."""
    parameters = list(inspect.signature(python_function(given.rule)).parameters.values())
    star = next((place for place, each in enumerate(parameters) if each.kind is each.VAR_POSITIONAL), None)
    if star == star_of(given) and len(parameters) == len(kinds):
        return kinds
    flat = tuple(spread(given, kinds, components_of))
    count = len(flat) if star is None else len(flat) - len(parameters) + 1  # of those for the star
    if count < 0 or (star is None and len(flat) != len(parameters)):
        raise refuse(
            f"{given} does not take {len(flat)} argument{'s' * (len(flat) != 1)}",
            given.loc,
            "let it take what the function takes",
            "def",
        )
    if star is None:
        return flat
    last = star + count
    return (*flat[:star], types.BaseTuple.from_types(flat[star:last]), *flat[last:])


def _typed_rule(given: Given, kinds: tuple[Type, ...], session: Session) -> st.TypedFunction:
    try:
        return session.typed(python_function(given.rule), kinds)
    except DifferentiationError as error:
        where = Loc(error.file, error.line or 1, error.column) if error.file else given.loc
        shown = ", ".join(map(str, kinds))
        several = "the function " in error.message and "different types" in error.message
        hint = "let each path return a value of the same type, and an inner function" if several else error.hint
        raise refuse(f"{given} cannot be compiled for ({shown}): {error.message}", where, hint) from None


def _typed_inverse(given: Given, kinds: tuple[Type, ...], result: Type, session: Session) -> st.TypedFunction | None:
    """The inverse; None where the function takes an integer for what it returns as a float: this call has none."""
    state, loc = kinds[0], place_of(given.inverse)
    what = f"the inverse `{name_of(given.inverse)}` of `{given.name}`"
    if not _fits(result, state):
        if _is_widened(state, result):
            return None
        raise refuse(
            f"`{given.name}` takes a state of type {state} to one of type {result}, and has an inverse",
            place_of(given.target),
            "let it return what its first parameter is",
            "def",
        )
    try:
        inverse = session.typed(python_function(given.inverse), (types.unliteral(result), *kinds[1:]))
    except DifferentiationError as error:
        where = Loc(error.file, error.line or 1, error.column) if error.file else loc
        shown = ", ".join(map(str, (result, *kinds[1:])))
        raise refuse(f"{what} cannot be compiled for ({shown}): {error.message}", where, error.hint) from None
    if not _fits(inverse.return_type, state):
        raise refuse(
            f"{what} returns a value of type {inverse.return_type}, and the state is of type {state}",
            loc,
            "let it return the state before the step",
            "def",
        )
    return inverse


def _is_widened(state: Type, result: Type) -> bool:
    """Whether a result is of the type of a state but for numbers that are floats there, and integers in the state."""
    if isinstance(state, types.BaseTuple) and isinstance(result, types.BaseTuple):
        parts, others = components_of(state), components_of(result)
        return len(parts) == len(others) and all(map(_is_widened, parts, others))
    wide = isinstance(types.unliteral(result), types.Float | types.Complex)
    return _fits(result, state) or (isinstance(types.unliteral(state), types.Integer) and wide)


def _value_and_back(given: Given, rule: st.TypedFunction) -> tuple[Type, Type]:
    returned = rule.return_type
    if not isinstance(returned, types.BaseTuple) or len(components_of(returned)) != 2 or is_closure(returned):
        raise _no_pullback(given, returned, rule.loc)
    value, back = components_of(returned)
    return types.unliteral(value), back


def _no_pullback(given: Given, returned: Type, loc: Loc) -> DifferentiationError:
    return refuse(
        f"{given} returns a value of type {returned}, not a pair of a value and a function",
        loc,
        "let it end with `return value, back`, where `back` is an inner function of one parameter",
        "def",
    )


def _check_value(given: Given, value: Type, result: Type) -> None:
    if isinstance(result, types.Optional) and not isinstance(result.type, types.Number):
        raise refuse(
            f"`{given.name}`, which has {given}, returns a value of type {result.type} on one path, `None` on another",
            place_of(given.target),
            "let it return such a value everywhere",
            "def",
        )
    if not _fits(value, result):
        raise refuse(
            f"{given} gives a value of type {value}, and `{given.name}` one of type {result}",
            given.loc,
            "let it return what the function returns, and the pullback",
            "def",
        )


def _fits(value: Type, result: Type) -> bool:
    """Whether a value is of the type of a result; arrays may lie otherwise in memory."""
    if isinstance(value, types.BaseTuple) and isinstance(result, types.BaseTuple):
        parts, others = components_of(value), components_of(result)
        return len(parts) == len(others) and all(map(_fits, parts, others))
    value, result = types.unliteral(value), types.unliteral(result)
    if isinstance(value, types.Array) and isinstance(result, types.Array):
        return (value.dtype, value.ndim) == (result.dtype, result.ndim)
    return bool(value == result)


def shadow_type(type_: Type) -> Type:
    """The type of the adjoint of a value: of the same form, and it may be written to."""
    if isinstance(type_, types.BaseTuple):
        return with_components(type_, tuple(map(shadow_type, components_of(type_))))
    if isinstance(type_, types.Optional):  # zero where there is no value
        return shadow_type(type_.type)
    held: Type = types.unliteral(type_)
    return types.Array(held.dtype, held.ndim, held.layout) if isinstance(held, types.Array) else held


def _body_of(type_: Any, argument: Type, session: Session) -> st.TypedFunction | None:
    """The body of a function of this type, for this argument, behind which stands the closure if it is one."""
    if is_closure(type_):
        signature = inspect.signature(type_.maker.func)
        return (
            session.typed(type_.maker.func, (argument, type_), type_.maker.how)
            if len(signature.parameters) == 1
            else None
        )
    if isinstance(type_, CalleeType):
        return type_.typed((argument,)) if len(inspect.signature(type_.func).parameters) == 1 else None
    if isinstance(type_, types.Dispatcher) and is_from_source(type_.dispatcher):
        return typed_callee(type_, (argument,), session)
    return None


def _one_of(given: Given, type_: Any, argument: Type, session: Session) -> st.TypedFunction | None:
    """The body of a function that calls one of several."""
    bodies = []
    for each in type_.functions:
        body = _body_of(each, argument, session)
        if body is None:
            return None
        bodies.append(body)
    first = bodies[0]
    for body in bodies[1:]:
        if not _alike(first.return_type, body.return_type):
            raise refuse(
                f"one pullback of {given} returns values of type {first.return_type}, and another of type "
                f"{body.return_type}",
                body.loc,
                "let all return a gradient for the same parameters, and None for the others",
                "def" if body.name.isidentifier() else "lambda",
            )
    made = session.typed(calling_one_of(len(bodies), first.loc), (argument, type_))
    return dataclasses.replace(made, loc=first.loc)


def _alike(one: Type, other: Type) -> bool:
    """Whether gradients are of the same form."""
    if isinstance(one, types.BaseTuple) and isinstance(other, types.BaseTuple):
        parts, others = components_of(one), components_of(other)
        return len(parts) == len(others) and all(map(_alike, parts, others))
    if isinstance(one, types.Array) and isinstance(other, types.Array):
        return bool(one.ndim == other.ndim)
    return one == other or (isinstance(one, types.Number) and isinstance(other, types.Number))


def _hook(given: Given, taken: tuple[Type, ...], session: Session) -> st.TypedFunction:
    """`hook(x, fn)`: a function that gives `x`, and whose pullback is `fn`."""
    x, fn = taken
    if not isinstance(x, types.Float | types.Complex | types.Array) or (
        isinstance(x, types.Array) and not isinstance(x.dtype, types.Float | types.Complex)
    ):
        raise refuse(f"`hook` of a value of type {x} is not supported", None, "hook numbers and arrays of numbers")
    body = _body_of(fn, shadow_type(x), session)
    if body is None and (known := object_of(fn)) is not None and callable(known):
        body = session.typed(_calling(known), (shadow_type(x),))
    if body is None:
        raise refuse("the hook is no function of one parameter that can be compiled", None, "write `hook(x, fn)`")
    shell = dataclasses.replace(_shell(given, ("x", "fn"), taken, x, session), loc=body.loc)
    parts = st.GivenParts(given, given.target, rule=None, back=body, holds=is_closure(fn))
    return dataclasses.replace(shell, given=parts)


def _calling(known: object) -> FunctionType:
    """A Python function that calls something that Numba knows."""

    def fn(dy):  # type: ignore[no-untyped-def]
        return known(dy)  # type: ignore[operator]

    made = FunctionType(fn.__code__, fn.__globals__, "fn", None, (CellType(known),))
    vars(made)[MADE] = True
    return made


def _held(type_: Type) -> Type:
    held: Type = typeof(type_.value) if isinstance(type_, types.Omitted) else types.unliteral(type_)
    return held


def _shell(
    given: Given, names: tuple[str, ...], kinds: tuple[Type, ...], result: Type, session: Session
) -> st.TypedFunction:
    """A function without a body."""
    loc = _definition(given)
    return st.TypedFunction(
        name=given.name,
        loc=loc,
        parameters=names,
        argument_count=len(names),
        parameter_types=tuple(map(_held, kinds)),
        blocks={0: st.TypedBlock((), st.Fail(NotImplementedError, (), loc), loc)},
        types={},
        names={},
        return_type=types.unliteral(result),
        hidden=(),
        frozen=(),
        options={},
        callee_of=lambda type, arguments: None,
        signature_of=lambda type: inspect.Signature(),
        accessor_of=lambda type, name: None,
        member_of=lambda type, name: None,
    )


def _definition(given: Given) -> Loc:
    code = getattr(python_function(given.target), "__code__", None)
    return (given.loc or _NOWHERE) if code is None else Loc(code.co_filename, code.co_firstlineno)
