"""Functions for which something is given, typed: the function itself, and of a rule the value, and the pullback's body.

    def rule(x):                            rule: (f64) -> (f64, <function back with c: f64>)
        c = math.cos(x)                     back: (f64, <function back with c: f64>) -> (f64,)
        def back(dy):
            return (c * dy,)
        return math.sin(x), back

A pullback is a closure like any other (see `zygote_py.numba_adapter.types.closures`): the captured variables are its
components. A function that Numba can call and whose body cannot be read stands as one with an empty body
(`is_foreign`). Whether the gradients fit the parameters, the front end looks at.

The pullback of a rule that makes one or another, as its path has it, is a number that says which, and all of them:

    def rule(x):
        if x > 0.0:
            c = x * x                       ClosureType(c: float64)
            return x * c, lambda dy: (3.0 * c * dy,)
        return -x, lambda dy: (-dy,)        CalleeType()
                                            rule: (f64) -> (f64, ChoiceType(which: int64, ClosureType(c), CalleeType()))

Numba has no type for a value that is one of several inner functions, so that there are such values in the rules of
`zygote_py.adjoint` only. What is not there on a path, the front end puts something in the place of.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import CellType, FunctionType
from typing import Any

from numba import types

from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.base import MADE, CustomRule, define, name_of, place_of, python_function, statements as st
from zygote_py.ir import Loc, Type, components_of, with_components, writable
from zygote_py.numba_adapter.base import contents_of_defaults, runtime_type, with_changing_default
from zygote_py.numba_adapter.base.internals import GUFunc, errors, models
from zygote_py.numba_adapter.embedding.custom_calls import (
    CustomRuleType,
    compiled_by_numba,
    given_callee,
    is_python,
    result_of,
    signature_of_given,
    spread,
    star_among,
    star_of,
    taken_by,
)
from zygote_py.numba_adapter.target.dispatch import object_of
from zygote_py.numba_adapter.types import (
    CallableType,
    ClosureType,
    FieldsType,
    FunctionHandleType,
    TypingContext,
    handle_of,
    is_closure,
)

_NOWHERE = Loc("<unknown>", 1)


def function_of_given(type_: Type, argument_types: Sequence[Type], session: TypingContext) -> st.TypedFunction | None:
    """Return the function that a call of this type calls; None for other types, or if nothing is to be called."""
    held: Any = None
    if isinstance(type_, types.Dispatcher):
        held = type_.dispatcher
    elif isinstance(type_, FunctionHandleType) and not type_.again:  # a method, which no variable holds
        held = type_.func
    if held is not None and (callee := given_callee(held, session)) is not None:
        type_ = callee.type
    if not isinstance(type_, CustomRuleType) or type_.given.kind == "stop":
        return None
    given, session, taken = type_.given, type_.session, tuple(argument_types)
    try:
        found: st.TypedFunction = session.once((given, taken), lambda: _make(given, taken, session))
    except errors.NumbaError as error:
        raise refuse(f"{given} cannot be called: {error}", given.loc) from None
    return found


def _make(given: CustomRule, taken: tuple[Type, ...], session: TypingContext) -> st.TypedFunction:
    if given.kind == "hook":
        return _hook(given, taken, session)
    if isinstance(given.target, GUFunc) and given.kind == "rule":
        what = f"`{given.name}`, which `guvectorize` made, writes to its arguments, and has {given}"
        raise refuse(what, given.loc, "give the rule to a function that calls it and returns a new array", "def")
    constants = contents_of_defaults(python_function(given.target), taken)
    taken = tuple(map(with_changing_default, taken))
    result, accepted = result_of(given, taken, session)
    foreign, typed = compiled_by_numba(given), None
    if is_python(given.target):
        with suppress(DifferentiationError):  # Numba can call it, as is known by now
            typed = session.typed(python_function(given.target), *taken_by(given.target, taken))
    if typed is None:
        names = tuple(signature_of_given(given, len(taken)).parameters)
        accepted = (*accepted, *map(runtime_type, taken[len(accepted) :]))
        typed = _shell(given, names, accepted, result, session)
    kinds = tuple(map(runtime_type, typed.parameter_types[: typed.argument_count]))
    parts = st.TypedCustomRule(given, foreign, is_foreign=not typed.types)
    if given.kind == "rule":
        rule = _typed(given, given.rule, _kinds_of_rule(given, kinds), session, given.loc)
        value, back = _value_and_back(given, rule)
        _check_value(given, value, typed.return_type)
        find = partial(_one_of, given) if isinstance(back, ChoiceType) else _body_of
        body = find(back, shadow_type(value), session)
        if body is None:
            raise _no_pullback(given, rule.return_type, rule.loc)
        parts = dataclasses.replace(parts, rule=rule, back=body, holds=is_closure(back) or isinstance(back, ChoiceType))
    if given.inverse is not None:
        parts = dataclasses.replace(parts, inverse=_typed_inverse(given, kinds, typed.return_type, session))
    return dataclasses.replace(typed, given=parts, frozen=(*typed.frozen, *constants))


def _kinds_of_rule(given: CustomRule, kinds: tuple[Type, ...]) -> tuple[Type, ...]:
    """The types of the rule's parameters: either it, or the function, may take any number of arguments."""
    pysig = inspect.signature(python_function(given.rule))
    star, own = star_among(pysig), len(pysig.parameters)
    if star == star_of(given) and own == len(kinds):
        return kinds
    flat = tuple(spread(given, kinds, components_of))
    count = len(flat) if star is None else len(flat) - own + 1  # of those for the star
    if count < 0 or (star is None and len(flat) != own):
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


def _typed(
    what: object, func: Any, kinds: tuple[Type, ...], session: TypingContext, place: Loc | None
) -> st.TypedFunction:
    """Return a function that was given, typed. The error says what cannot be compiled, and for which types."""
    try:
        return session.typed(python_function(func), kinds)
    except DifferentiationError as error:
        where = Loc(error.file, error.line or 1, error.column) if error.file else place
        shown = ", ".join(map(str, kinds))
        several = "the function " in error.message and "different types" in error.message
        hint = "let each path return a value of the same type, and an inner function" if several else error.hint
        raise refuse(f"{what} cannot be compiled for ({shown}): {error.message}", where, hint) from None


def _typed_inverse(
    given: CustomRule, kinds: tuple[Type, ...], result: Type, session: TypingContext
) -> st.TypedFunction | None:
    """The inverse; None where the function takes an integer for what it returns as a float: this call has none."""
    state, loc = kinds[0], place_of(given.inverse)
    what = f"the inverse `{name_of(given.inverse)}` of `{given.name}`"
    if not _all_leaves(_same, result, state):
        if _all_leaves(_widened, state, result):
            return None
        raise refuse(
            f"`{given.name}` takes a state of type {state} to one of type {result}, and has an inverse",
            place_of(given.target),
            "let it return what its first parameter is",
            "def",
        )
    inverse = _typed(what, given.inverse, (types.unliteral(result), *kinds[1:]), session, loc)
    if not _all_leaves(_same, inverse.return_type, state):
        raise refuse(
            f"{what} returns a value of type {inverse.return_type}, and the state is of type {state}",
            loc,
            "let it return the state before the step",
            "def",
        )
    return inverse


def _value_and_back(given: CustomRule, rule: st.TypedFunction) -> tuple[Type, Type]:
    returned = rule.return_type
    if not isinstance(returned, types.BaseTuple) or len(components_of(returned)) != 2 or is_closure(returned):
        raise _no_pullback(given, returned, rule.loc)
    value, back = components_of(returned)
    return types.unliteral(value), back


def _no_pullback(given: CustomRule, returned: Type, loc: Loc) -> DifferentiationError:
    return refuse(
        f"{given} returns a value of type {returned}, not a pair of a value and a function",
        loc,
        "let it end with `return value, back`, where `back` is an inner function of one parameter",
        "def",
    )


def _check_value(given: CustomRule, value: Type, result: Type) -> None:
    if isinstance(result, types.Optional) and not isinstance(result.type, types.Number):
        raise refuse(
            f"`{given.name}`, which has {given}, returns a value of type {result.type} on one path, `None` on another",
            place_of(given.target),
            "let it return such a value everywhere",
            "def",
        )
    if not _all_leaves(_same, value, result):
        raise refuse(
            f"{given} gives a value of type {value}, and `{given.name}` one of type {result}",
            given.loc,
            "let it return what the function returns, and the pullback",
            "def",
        )


def _all_leaves(test: Callable[[Any, Any], bool], one: Type, other: Type) -> bool:
    """Return whether two types have the same form, and a test is true of each pair of types in it."""
    if isinstance(one, types.BaseTuple) and isinstance(other, types.BaseTuple):
        parts, others = components_of(one), components_of(other)
        return len(parts) == len(others) and all(map(partial(_all_leaves, test), parts, others))
    return test(types.unliteral(one), types.unliteral(other))


def _same(value: Any, result: Any) -> bool:
    """Return whether a value is of the type of a result; arrays may lie otherwise in memory."""
    if isinstance(value, types.Array) and isinstance(result, types.Array):
        return (value.dtype, value.ndim) == (result.dtype, result.ndim)
    return bool(value == result)


def _widened(state: Any, result: Any) -> bool:
    """Return whether a result is of the type of a state, or a float where that is an integer."""
    return _same(result, state) or (
        isinstance(state, types.Integer) and isinstance(result, types.Float | types.Complex)
    )


def _alike(one: Any, other: Any) -> bool:
    """Return whether gradients are of the same form."""
    if isinstance(one, types.Array) and isinstance(other, types.Array):
        return bool(one.ndim == other.ndim)
    return one == other or (isinstance(one, types.Number) and isinstance(other, types.Number))


def shadow_type(type_: Type) -> Type:
    """The type of the adjoint of a value: of the same form, and it may be written to."""
    if isinstance(type_, types.BaseTuple):
        return with_components(type_, tuple(map(shadow_type, components_of(type_))))
    if isinstance(type_, types.Optional):  # zero where there is no value
        return shadow_type(type_.type)
    held: Type = types.unliteral(type_)
    return writable(held)


def _body_of(type_: Any, argument: Type, session: TypingContext) -> st.TypedFunction | None:
    """Return the body of a function of this type for this argument, which a closure follows as the last one."""
    handle = handle_of(type_, session)
    if handle is None or (handle is type_ and len(inspect.signature(handle.func).parameters) != 1):
        return None
    return handle.typed((argument, type_) if is_closure(type_) else (argument,))  # type: ignore[no-any-return]


def _one_of(given: CustomRule, type_: Any, argument: Type, session: TypingContext) -> st.TypedFunction | None:
    """The body of a function that calls one of several."""
    bodies: list[Any] = [_body_of(each, argument, session) for each in type_.functions]
    if not all(bodies):
        return None
    first, *others = bodies
    for body in others:
        if not _all_leaves(_alike, first.return_type, body.return_type):
            raise refuse(
                f"one pullback of {given} returns values of type {first.return_type}, and another of type "
                f"{body.return_type}",
                body.loc,
                "let all return a gradient for the same parameters, and None for the others",
                "def" if body.name.isidentifier() else "lambda",
            )
    made = session.typed(calling_one_of(len(bodies), first.loc), (argument, type_))
    return dataclasses.replace(made, loc=first.loc)


def _hook(given: CustomRule, taken: tuple[Type, ...], session: TypingContext) -> st.TypedFunction:
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
        raise refuse("the hook is not a function of one parameter that can be compiled", None, "write `hook(x, fn)`")
    shell = dataclasses.replace(_shell(given, ("x", "fn"), taken, x, session), loc=body.loc)
    parts = st.TypedCustomRule(given, given.target, rule=None, back=body, holds=is_closure(fn))
    return dataclasses.replace(shell, given=parts)


def _calling(known: object) -> FunctionType:
    """A Python function that calls something that Numba knows."""

    def fn(dy):  # type: ignore[no-untyped-def]
        return known(dy)  # type: ignore[operator]

    made = FunctionType(fn.__code__, fn.__globals__, "fn", None, (CellType(known),))
    vars(made)[MADE] = True
    return made


def _shell(
    given: CustomRule, names: tuple[str, ...], kinds: tuple[Type, ...], result: Type, session: TypingContext
) -> st.TypedFunction:
    """A function without a body."""
    loc = place_of(given.target) or given.loc or _NOWHERE
    return st.TypedFunction(
        name=given.name,
        loc=loc,
        parameters=names,
        argument_count=len(names),
        parameter_types=tuple(map(runtime_type, kinds)),
        blocks={0: st.TypedBlock((), st.Raise(NotImplementedError, (), loc), loc)},
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


# -------------------------------------------------------------------------------------- pullbacks of several paths


class ChoiceType(CallableType, FieldsType):
    """The type of a value that is one of several inner functions; its first component is the number of the one."""

    model = models.TupleModel

    def __init__(self, functions: tuple[Any, ...]) -> None:
        self.functions = functions
        names = "which", *(f"function_{number}" for number in range(len(functions)))
        FieldsType.__init__(self, (types.int64, *functions), names, tuple, f"one of {functions}")

    @property
    def key(self) -> object:
        """The identity of the type."""
        return self.functions

    def unify(self, context: object, other: Type) -> Type | None:
        """Numba asks for a type that holds values of both."""
        return choice(self, other)

    def get_call_type(self, context: object, args: object, kws: object) -> Any:
        """Numba asks for the signature of a call, which there is none of in a rule."""
        return None


def choice(*made: Any) -> ChoiceType | None:
    """Return the type of a value of one of these types; None if one of them is not an inlined function."""
    if not all(isinstance(each, FunctionHandleType | ClosureType | ChoiceType) for each in made):
        return None
    functions = [one for each in made for one in (each.functions if isinstance(each, ChoiceType) else (each,))]
    return ChoiceType(tuple(sorted(dict.fromkeys(functions), key=_place)))  # Numba asks in any order


def _place(type: Any) -> tuple[object, ...]:
    """Where the function of a type is defined."""
    code = type.func.__code__
    columns = (start for _, _, start, _ in code.co_positions() if start is not None)
    return code.co_filename, code.co_firstlineno, min(columns, default=0), code.co_name


@functools.cache
def calling_one_of(count: int, loc: Loc) -> Callable[..., Any]:
    """Return a function that calls the selected one of `count` functions. Its code has the location `loc`."""
    tests = "".join(f"    if chosen.which == {n}:\n        return chosen.function_{n}(dy)\n" for n in range(count - 1))
    text = f"def back(dy, chosen):\n{tests}    return chosen.function_{count - 1}(dy)\n"
    made = define(text, "back", {}, module=__name__)
    made.__code__ = made.__code__.replace(co_filename=loc.file, co_firstlineno=loc.line, co_linetable=b"")
    return made
