"""Gradients with respect to captured variables: which there are, what they are called, the NamedTuple that holds them.

    w = np.ones(3)
    gradient(lambda x: np.sum(w * x), closure=True)(2.0)     # (3.0, Captured(w=array([2., 2., 2.])))

A captured variable goes by the name that it has in the function that captures it. Where functions capture different
variables of one name, each has the name of its function before it: `layer_w`, `loss_w`. What is captured and cannot
have a gradient, an integer say, is left out.
"""

from __future__ import annotations

import functools
import re
from collections import Counter, namedtuple
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from zygote_py.adjoints.analysis.kinds import carries_adjoint
from zygote_py.adjoints.errors import DifferentiationError, refuse
from zygote_py.ir.core import Loc

if TYPE_CHECKING:
    from zygote_py.frontend import Capture, LoweredFunction


@functools.cache
def captured_type(*names: str) -> Any:
    """The class of the NamedTuples `Captured` with these fields: one for the same names, and it can be pickled."""
    made = namedtuple("Captured", names, module=__name__)  # type: ignore[misc]
    made.__qualname__ = f"Captured({', '.join(names)})"  # under which pickle looks for it here
    made.__doc__ = "The gradients of what a function captures, by name."
    return made


def __getattr__(name: str) -> Any:
    found = re.fullmatch(r"Captured\(([^()]*)\)", name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return captured_type(*(found[1].split(", ") if found[1] else ()))


def is_captured_type(value: object) -> bool:
    """Whether this is a class that `captured_type` made."""
    return isinstance(value, type) and value.__module__ == __name__ and hasattr(value, "_fields")


def numbers_asked_for(
    wrt: Sequence[int | str] | None,
    closure: bool,
    parameters: Sequence[str],
    lowered: LoweredFunction,
    loc: Loc,
    held: int = 0,
) -> tuple[int, ...]:
    """The numbers of the parameters that are asked for, hidden ones too; with `closure` all hidden ones behind them.

    If it is not said which, these are all but the first `held` ones.
    """
    given = range(held, lowered.argument_count) if wrt is None else wrt
    numbers = [one if isinstance(one, int) else _number(one, parameters, lowered, loc) for one in given]
    return (*numbers, *(_differentiable(lowered) if closure else ()))


def fields_of(lowered: LoweredFunction) -> tuple[str, ...]:
    """The names of the captured variables that have a gradient, as names of fields."""
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
        if capture.type is not None and carries_adjoint(capture.type):
            yield lowered.argument_count + number
    start = lowered.argument_count + len(lowered.hidden) + 1
    for number in range(start, start + len(lowered.fields)):
        if carries_adjoint(lowered.function.params[number].type):
            yield number


def _names(lowered: LoweredFunction) -> list[str]:
    """What the hidden captured variables are called, the closure, and the variables in that."""
    return [*(_name(capture, lowered.hidden) for capture in lowered.hidden), "", *lowered.fields]


def _name(capture: Capture, among: Iterable[Capture]) -> str:
    same = [each for each in among if each.source == capture.source]
    if len(same) == 1:
        return capture.source
    name = f"{capture.owner}_{capture.source}"
    if Counter(each.owner for each in same)[capture.owner] == 1:
        return name
    return f"{name}_{[each.key for each in same].index(capture.key)}"


def _number(name: str, parameters: Sequence[str], lowered: LoweredFunction, loc: Loc) -> int:
    """The number of the hidden parameter that a captured variable is."""
    captures = {each.key: each for each in (*lowered.hidden, *lowered.frozen)}
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
            f"wrt={name!r} is no parameter of the function, and no variable that it captures",
            loc,
            f"{hint}; of what it captures there is {captured}" if captured else hint,
        )
    keys = [capture.key for capture in lowered.hidden]
    for number in _differentiable(lowered):
        if keys[number - lowered.argument_count :][:1] == [meant[0].key]:
            return number
    raise _refused(name, type(meant[0].value).__name__, loc)


def _field(name: str, lowered: LoweredFunction, loc: Loc, is_of_another: bool) -> int:
    """The number of the parameter that a variable of the function around is."""
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
