"""Gradients with respect to captured variables: which there are, and what they are called.

    w = np.ones(3)
    gradient(lambda x: np.sum(w * x), closure=True)(2.0)     # (3.0, Captured(w=array([2., 2., 2.])))

A captured variable goes by the name that it has in the function that captures it. Where functions capture different
variables of one name, each has the name of its function before it: `layer_w`, `loss_w`. Captured variables that
cannot have a gradient, such as integers, are left out.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.adjoints.analysis import carries_adjoint
from zygote_py.base import Capture
from zygote_py.frontend import LoweredFunction
from zygote_py.ir import (
    Const,
    Function,
    Instr,
    Loc,
    Operand,
    Param,
    Value,
    components_of,
    inserting,
    ops,
    replace,
    replace_uses,
)


def numbers_asked_for(
    wrt: Sequence[int | str] | None,
    closure: bool,
    parameters: Sequence[str],
    lowered: LoweredFunction,
    loc: Loc,
    captured_count: int = 0,
) -> tuple[int, ...]:
    """Return the indices of the selected parameters, hidden ones included; with `closure`, followed by all hidden ones.

    By default, these are all but the first `captured_count` ones.
    """
    given = range(captured_count, lowered.argument_count) if wrt is None else wrt
    numbers = [one if isinstance(one, int) else _number(one, parameters, lowered, loc) for one in given]
    return (*numbers, *(_differentiable(lowered) if closure else ()))


def fields_of(lowered: LoweredFunction) -> tuple[str, ...]:
    """Return the names of the captured variables that have a gradient, as field names."""
    names = _names(lowered)
    fields: list[str] = []
    for number in _differentiable(lowered):
        base = field = names[number - lowered.argument_count].lstrip("_") or "captured"  # a field starts with a letter
        count = 1
        while field in fields:
            field = f"{base}_{count}"
            count += 1
        fields.append(field)
    return tuple(fields)


def _differentiable(lowered: LoweredFunction) -> Iterator[int]:
    for number, capture in enumerate(lowered.hidden):
        if capture.type is not None and carries_adjoint(capture.type) and not _is_default(capture):
            yield lowered.argument_count + number
    start = lowered.argument_count + len(lowered.hidden) + 1
    for number in range(start, start + len(lowered.fields)):
        if carries_adjoint(lowered.function.params[number].type):
            yield number


def _names(lowered: LoweredFunction) -> list[str]:
    """Return the names of the hidden captured variables, the closure, and the variables in it; "" for what has none."""
    hidden = [capture for capture in lowered.hidden if not _is_default(capture)]
    names = ["" if _is_default(capture) else _name(capture, hidden) for capture in lowered.hidden]
    return [*names, "", *lowered.fields]


def _is_default(capture: Capture) -> bool:
    """Return whether it is the default of a called function's parameter, no variable."""
    return capture.kind == "function"


def _name(capture: Capture, among: Iterable[Capture]) -> str:
    same = [each for each in among if each.source == capture.source]
    if len(same) == 1:
        return capture.source
    name = f"{capture.owner}_{capture.source}"
    if Counter(each.owner for each in same)[capture.owner] == 1:
        return name
    return f"{name}_{[each.key for each in same].index(capture.key)}"


def _number(name: str, parameters: Sequence[str], lowered: LoweredFunction, loc: Loc) -> int:
    """Return the index of the hidden parameter for a captured variable."""
    captures = {each.key: each for each in (*lowered.hidden, *lowered.frozen) if not _is_default(each)}
    meant = [each for each in captures.values() if each.source == name]
    if len(meant) > 1:
        choice = ", ".join(f"`{_name(each, captures.values())}`" for each in meant)
        raise refuse(f"wrt={name!r} may be one of several variables that are captured", loc, f"name one of {choice}")
    names = _names(lowered)
    if name in lowered.fields:
        return _field(name, lowered, loc, bool(meant))
    if not meant and name in names:
        meant = [lowered.hidden[names.index(name)]]
    if not meant:
        captured = ", ".join(names[number - lowered.argument_count] for number in _differentiable(lowered))
        hint = f"name one of {', '.join(parameters)}" if parameters else "it has no parameters"
        raise refuse(
            f"wrt={name!r} is neither a parameter nor a captured variable",
            loc,
            f"{hint}; captured variables: {captured}" if captured else hint,
        )
    keys = [capture.key for capture in lowered.hidden]
    for number in _differentiable(lowered):
        if keys[number - lowered.argument_count :][:1] == [meant[0].key]:
            return number
    raise _refused(name, type(meant[0].value).__name__, loc)


def _field(name: str, lowered: LoweredFunction, loc: Loc, is_of_another: bool) -> int:
    """Return the index of the parameter for a variable of the enclosing function."""
    if is_of_another:
        raise refuse(
            f"wrt={name!r} may be one of several variables that are captured", loc, "give one of them another name"
        )
    number = lowered.argument_count + len(lowered.hidden) + 1 + lowered.fields.index(name)
    kind = lowered.function.params[number].type
    if not carries_adjoint(kind):
        raise _refused(name, str(kind), loc)
    return number


def _refused(name: str, kind: str, loc: Loc) -> DifferentiationError:
    return refuse(
        f"no gradient with respect to `{name}`, a captured {kind}",
        loc,
        hint="capture a float or an array of floats, or leave it out of wrt",
    )


def with_fields(lowered: LoweredFunction, names: tuple[str, ...]) -> LoweredFunction:
    """Return the function with one more parameter for each variable in its closure, called `names`."""
    function = lowered.function
    count = lowered.argument_count + len(lowered.hidden)
    if not names or len(function.params) <= count:
        return lowered
    closure = function.params[count]
    params = [Param(kind, name, closure.loc) for name, kind in zip(names, components_of(closure.type), strict=True)]
    taken: dict[Value, Operand] = {}
    for instr in function.instrs():
        match instr:
            case Instr(op=ops.getitem, args=(whole, Const(value=int(number)))) if whole is closure:
                taken[instr] = params[number]
    replace(function, taken)
    function.params += params
    return dataclasses.replace(lowered, fields=names)


def put_fields_back(function: Function, lowered: LoweredFunction) -> None:
    """Let a derivative of such a function read those variables from the closure again, in place."""
    if not lowered.fields:
        return
    count = lowered.argument_count + len(lowered.hidden)
    closure, fields = function.params[count], function.params[count + 1 :]
    with inserting(function.entry, loc=closure.loc) as b:
        made = [b.item(closure, number, field.hint) for number, field in enumerate(fields)]
    replace_uses(function, dict(zip(fields, made, strict=True)))
    function.params = function.params[: count + 1]
