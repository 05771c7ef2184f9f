"""Functions with a custom rule: the IR of what they compute, and the rule that goes with them.

    @adjoint(f)                          routine f (%x)                      f itself, for where no derivative is needed
    def rule(x):                         routine rule (%x) -> (value, c)     also returns the captured `c`
        c = math.cos(x)                  routine back (%dy, %c) -> (dx)
        def back(dy): return (c * dy,)
        return math.sin(x), back         f.derivation = Custom(rule, back, ...)

A call of such a function stays a call. A function whose body is not available is called as it is: a function of NumPy,
a `cfunc`, one that runs in object mode. Here the gradients that a pullback returns are matched with the parameters;
their use is described in `zygote_py.adjoints.strategies.custom`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import Custom, DifferentiationError, Gradient, Input, refuse
from zygote_py.adjoints.analysis import carries_adjoint
from zygote_py.adjoints.routines import Inverse
from zygote_py.base import CustomRule, place_of, python_function, statements as st
from zygote_py.frontend.program import Program
from zygote_py.frontend.values import (
    LoweredValue,
    components,
    flatten,
    is_tuple,
    join,
    leaves_of,
    parameters_of,
    plain,
    split,
)
from zygote_py.ir import (
    NONE,
    Block,
    Builder,
    Const,
    Foreign,
    Function,
    Loc,
    Operand,
    Param,
    Return,
    Routine,
    Type,
    components_of,
    identifier,
    ops,
)

Lower = Callable[[st.TypedFunction, Program], tuple[Function, tuple[st.Capture, ...]]]


def signature_of(function: st.TypedFunction) -> inspect.Signature | None:
    """Return the parameters of a function with a custom rule; None for all others."""
    if function.given is None:
        return None
    if function.types:  # it has a body of its own
        return inspect.signature(python_function(function.given.given.target))
    if function.given.given.kind != "hook":
        return numba_adapter.signature_of_given(function.given.given, function.argument_count)
    return by_place(function)


def by_place(function: st.TypedFunction) -> inspect.Signature:
    """Return the signature of a function that is called by position."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind) for name in function.parameters[: function.argument_count]])


def function_of(typed: st.TypedFunction, program: Program, lower: Lower) -> Function:
    """Return the IR of a function, whose parameters are the leaves of its arguments and captured variables."""
    parts = typed.given
    assert parts is not None
    for part in parts.parts:
        program.routine(part)  # to be made as well
    if parts.given.kind == "hook":
        return _identity(typed, program)
    if parts.is_foreign:
        return _call(typed, parts, program)
    try:
        return lower(typed, program)[0]
    except DifferentiationError:
        if not numba_adapter.can_call(parts.given, typed.parameter_types[: typed.argument_count]):
            raise
        return _call(typed, parts, program)


def add_rule(typed: st.TypedFunction, routine: Routine, program: Program) -> None:
    """Set the derivation of a routine. Raise DifferentiationError if the rule does not fit it."""
    parts = typed.given
    assert parts is not None
    if parts.given.kind == "ignore":
        routine.passes = frozenset()
        return
    count = sum(len(leaves_of(kind)) for kind in typed.parameter_types[: typed.argument_count])
    hidden = _places(program.hidden(typed), count)
    state = len(leaves_of(typed.return_type))
    if parts.inverse is not None:
        taken = (*range(state, count), *_taken(parts.inverse, program, hidden))
        assert parts.given.inverse is not None
        routine.inverse = Inverse(
            parts.given.name, place_of(parts.given.inverse), program.routine(parts.inverse), state, taken
        )
    if parts.given.kind == "inverse":
        return
    back = parts.back
    assert back is not None
    if parts.rule is None:
        rule, rule_inputs = None, ()
        held = [Input("argument", number) for number in range(state, count)]
        gradients: tuple[Gradient, ...] = tuple(_of_hook(typed, back))
    else:
        rule = program.routine(parts.rule)
        rule_inputs = (*range(count), *_taken(parts.rule, program, hidden))
        held = [Input("kept", number) for number in range(len(leaves_of(components_of(parts.rule.return_type)[1])))]
        gradients = tuple(_gradients(typed, parts.given, back))
    inputs = (
        *(Input("seed", number) for number in _values_in(typed.return_type)),
        *(held if parts.holds else ()),
        *(Input("argument", number) for number in _taken(back, program, hidden)),
    )
    routine.is_custom = True
    routine.derivation = Custom(
        name=str(parts.given) if parts.rule is not None else f"the function that is given to `{parts.given.name}`",
        loc=parts.given.loc if parts.rule is not None else back.loc,
        rule=rule,
        rule_inputs=tuple(rule_inputs),
        returned=() if parts.rule is None else tuple(map(plain, leaves_of(parts.rule.return_type))),
        back=program.routine(back),
        back_inputs=inputs,
        contributions=tuple(map(plain, leaves_of(back.return_type))),
        gradients=gradients,
        is_linear=parts.given.is_linear,
    )
    routine.passes = frozenset(gradient.parameter for gradient in gradients)


def _places(hidden: list[tuple[st.Capture, Type]], place: int) -> dict[object, range]:
    """Return the numbers of a routine's parameters, from `place` on, that receive captured values."""
    found: dict[object, range] = {}
    for capture, type_ in hidden:
        found[capture.key] = range(place, place + len(leaves_of(type_)))
        place = found[capture.key].stop
    return found


def _values_in(kind: Type, start: int = 0) -> Iterator[int]:
    """Return the numbers of the leaves of a type that are values, and do not say whether there is one."""
    if isinstance(kind, types.Optional):
        yield from _values_in(kind.type, start + 1)
    elif is_tuple(kind):
        for part in components_of(kind):
            yield from _values_in(part, start)
            start += len(leaves_of(part))
    else:
        yield from range(start, start + len(leaves_of(kind)))


def _taken(function: st.TypedFunction, program: Program, hidden: dict[object, range]) -> list[int]:
    return [number for capture, _ in program.hidden(function) for number in hidden[capture.key]]


# ------------------------------------------------------------------------------------------------------- gradients


def _of_hook(typed: st.TypedFunction, back: st.TypedFunction) -> Iterator[Gradient]:
    """Yield the gradient of a hook; one that returns nothing leaves it unchanged."""
    x = typed.parameter_types[0]
    returned = plain(back.return_type)
    if isinstance(returned, types.NoneType):
        yield Gradient("seed", 0, 0)
    elif why := _misfit(returned, plain(x)):
        raise refuse(
            f"the hook returns {why} for a gradient of type {x}",
            back.loc,
            "let it return a gradient of the type that it is given, or nothing",
            "def",
        )
    else:
        yield Gradient("back", 0, 0)


def _gradients(typed: st.TypedFunction, given: CustomRule, back: st.TypedFunction) -> Iterator[Gradient]:
    kinds = numba_adapter.spread(given, typed.parameter_types[: typed.argument_count], components_of)
    names = names_of(given, typed.parameters[: typed.argument_count], len(kinds))
    returned = back.return_type
    if not is_tuple(returned):
        raise refuse(
            f"the pullback of {given} returns a value of type {returned}, not a tuple",
            back.loc,
            f"let it return a tuple with a gradient for each parameter: ({_shown(names)})",
            "def",
        )
    items = components_of(returned)
    if len(items) != len(kinds):
        raise refuse(
            f"the pullback of {given} returns {len(items)} gradient{'s' * (len(items) != 1)}, and `{given.name}` has "
            f"{len(kinds)} parameter{'s' * (len(kinds) != 1)}",
            back.loc,
            f"let it return a gradient, or None, for each: ({_shown(names)})",
            "def",
        )
    leaf = parameter = 0
    for name, item, kind in zip(names, items, kinds, strict=True):
        yield from _matched(given, back.loc, name, item, kind, leaf, parameter)
        leaf += len(leaves_of(item))
        parameter += len(leaves_of(kind))


def names_of(given: CustomRule, parameters: Sequence[str], count: int) -> list[str]:
    """Return names for this many arguments: those of the parameters, with indices for those of `*args`."""
    rest = count - len(parameters) + 1
    found: list[str] = numba_adapter.spread(given, parameters, lambda name: [f"{name}[{n}]" for n in range(rest)])
    return found


def _shown(names: Sequence[str]) -> str:
    return "".join(f"d{name}, " for name in names).strip() if len(names) == 1 else ", ".join(f"d{n}" for n in names)


def _matched(
    given: CustomRule, loc: Loc, name: str, item: Type, kind: Type, leaf: int, parameter: int
) -> Iterator[Gradient]:
    """Return the gradients in one of those that a pullback returns, for a parameter or a component of it."""
    item = plain(item)
    if isinstance(item, types.NoneType):
        return
    if isinstance(kind, types.Optional):
        kind, parameter = kind.type, parameter + 1
    if isinstance(item, types.Optional) and isinstance(item.type, types.Number):  # zero where there is none
        item, leaf = item.type, leaf + 1
    if is_tuple(kind):
        parts = components_of(kind)
        if not is_tuple(item) or len(components_of(item)) != len(parts):
            raise _wrong(given, loc, name, f"a value of type {item}", kind)
        for number, (inner, part) in enumerate(zip(components_of(item), parts, strict=True)):
            yield from _matched(given, loc, f"{name}[{number}]", inner, part, leaf, parameter)
            leaf += len(leaves_of(inner))
            parameter += len(leaves_of(part))
        return
    if why := _misfit(item, plain(kind)):
        raise _wrong(given, loc, name, why, kind)
    if carries_adjoint(plain(kind)):
        yield Gradient("back", leaf, parameter)


def _wrong(given: CustomRule, loc: Loc, name: str, what: str, kind: Type) -> DifferentiationError:
    hint = f"no gradient flows to `{name}`: let it return None"
    if carries_adjoint(plain(kind)) and leaves_of(kind):
        hint = f"let it return one of the form of `{name}`, or None if no gradient flows there"
    return refuse(f"the pullback of {given} returns {what} for `{name}`, which is of type {kind}", loc, hint, "def")


def _misfit(item: Type, kind: Type) -> str:
    """Return why a gradient of one type does not fit a parameter of another; empty if it does."""
    match item, kind:
        case types.Array(), types.Array():
            own, needed, fits = item.dtype, kind.dtype, item.ndim == kind.ndim
        case _:
            own, needed, fits = item, kind, True
    fits = fits and isinstance(own, types.Number) and isinstance(needed, types.Boolean | types.Number)
    return (
        ""
        if fits and not (isinstance(own, types.Complex) and isinstance(needed, types.Float))
        else f"a value of type {item}"
    )


# ----------------------------------------------------------------------------------------------- generated functions


def _identity(typed: st.TypedFunction, program: Program) -> Function:
    """Return a function that returns its first parameter, an array as a copy."""
    params, _ = _parameters(typed, program)
    b = Builder(Block(typed.loc), typed.loc)
    value = params[0]
    return _returning(b, b.copy(value, "y") if isinstance(value.type, types.Array) else value, typed, params)


def _call(typed: st.TypedFunction, parts: st.TypedCustomRule, program: Program) -> Function:
    """Return a function that calls another one unchanged."""
    params, arguments = _parameters(typed, program)
    b = Builder(Block(typed.loc), typed.loc)
    args = [
        join(b, each, lambda leaf: _operand(leaf, typed))
        for each in numba_adapter.spread(parts.given, arguments, components)
    ]
    target = parts.given.target if numba_adapter.jit_is_disabled() else parts.foreign
    op = target if ops.properties(target).effect is not ops.Effect.WRITE else Foreign(target, _name(typed))
    result = plain(typed.return_type)
    if len(list(_values_in(result))) < len(leaves_of(result)):
        raise refuse(
            f"`{typed.name}` returns a value on one path and `None` on another, and cannot be read",
            typed.loc,
            "call a Python function that returns a value everywhere",
        )
    value = b.call(op, *args, type=result, hint="y")
    whole = NONE if isinstance(result, types.NoneType) else flatten(b, split(b, value, result))
    return _returning(b, whole, typed, params)


def _returning(b: Builder, value: Operand, typed: st.TypedFunction, params: list[Param]) -> Function:
    b.block.terminator = Return((value,))
    return Function(_name(typed), params, [b.block], kind="primal", loc=typed.loc, options=typed.options)


def _name(typed: st.TypedFunction) -> str:
    return identifier(typed.name, "function")


def _parameters(typed: st.TypedFunction, program: Program) -> tuple[list[Param], list[LoweredValue]]:
    """Return the parameters of the routine, and the arguments that those before the captured values make up."""
    kinds = typed.parameter_types[: typed.argument_count]
    made = [parameters_of(name, kind, typed.loc) for name, kind in zip(typed.parameters, kinds, strict=False)]
    hidden = [parameters_of(capture.name, kind, typed.loc) for capture, kind in program.hidden(typed)]
    arguments = [LoweredValue(kind, tuple(params)) for kind, params in zip(kinds, made, strict=True)]
    return [param for params in (*made, *hidden) for param in params], arguments


def _operand(leaf: LoweredValue, typed: st.TypedFunction) -> Operand:
    """Return an argument, or a component of one, that is not a tuple."""
    if len(leaf.leaves) == 1:
        return NONE if isinstance(leaf.leaves[0].type, types.NoneType) else leaf.leaves[0]
    if (known := numba_adapter.object_of(leaf.type)) is None:
        raise refuse(
            f"an argument of type {leaf.type} of `{typed.name}` is not supported", typed.loc, "pass numbers and arrays"
        )
    return Const(known, leaf.type)
