"""What compiled code keeps for a later call, as one object that Python holds without looking into it.

    njit(sealed(f_forward, 1, {}))(x)   (value, <kept>)         f_forward gives (value, (x, record))
    opened(f_reverse, {})(kept, dy)     what f_reverse((x, record), dy) gives

A tuple of lists and arrays would be made into objects of Python one by one, and an empty list would not tell of what it
is one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numba
from numba import types
from numba.experimental import structref
from numba.extending import overload

from zygote_py.base.python_text import caller, free
from zygote_py.ir.core import Type


@structref.register
class KeptType(types.StructRef):
    """The type of what is kept: a reference to one field."""

    def preprocess_fields(self, fields: Any) -> Any:
        """The field's type, as that of a value that is not known while compiling."""
        return tuple((name, types.unliteral(type)) for name, type in fields)


class Kept(structref.StructRefProxy):
    """What Python holds."""

    def __repr__(self) -> str:
        return "<what a function keeps for its pullback>"


structref.define_boxing(KeptType, Kept)


def _seal(value: Any, number: int) -> Any:
    """Make one object of what is kept."""
    return value


@overload(_seal, prefer_literal=True)
def _seal_compiled(value: Any, number: Any) -> Any:
    if not isinstance(number, types.IntegerLiteral):
        return None
    make = seal_as(sealed_type(value, number.literal_value))

    def sealed(value: Any, number: Any) -> Any:
        return make(value)

    return sealed


def sealed_type(kept: Type, number: int) -> Type:
    """The type of what is kept, as one object.

    Each function has a type of its own for what it keeps: `function_of` tells them apart.
    """
    make: Any = KeptType
    made: Type = make([("kept", kept), (f"function_{number}", types.none)])
    return made


def seal_as(kind: Any) -> Any:
    """A compiled function that makes an object of this type of what is kept."""
    new: Any = structref.new
    decorate: Any = numba.njit

    def seal(value: Any) -> Any:
        made = new(kind)
        made.kept = value
        return made

    return decorate(seal)


def function_of(kept: Any) -> int:
    """The number of the function that has kept this."""
    _, (name, _) = kept._type._fields
    return int(name.removeprefix("function_"))


def sealed(forward: Callable[..., Any], number: int, options: Mapping[str, object]) -> Callable[..., Any]:
    """A function for Numba that calls `forward`, which returns a pair, and makes the second of it one object."""
    return _around(forward, "{all}", f"value, kept = {{call}}; return value, seal(kept, {number})", options)


def opened(reverse: Callable[..., Any], options: Mapping[str, object]) -> Any:
    """The compiled function that calls `reverse` with what was sealed, its first argument."""
    decorate: Any = numba.njit
    return decorate(**options)(_around(reverse, "{first}.kept{rest}", "return {call}", options))


def entry_of_seed(dispatcher: Any, kept: Any) -> Any:
    """What Python calls for a reverse function and one seed, a float, with no look at the types any more."""
    signature = kept._type, types.float64
    dispatcher.compile(signature)
    return dispatcher.overloads[signature].entry_point


def _around(function: Callable[..., Any], passed: str, body: str, options: Mapping[str, object]) -> Callable[..., Any]:
    decorate: Any = numba.njit
    names = list(inspect.signature(function).parameters)
    rest = "".join(f", {name}" for name in names[1:])
    passed = passed.format(all=", ".join(names), first=names[0] if names else "", rest=rest)
    seal = free("seal", names)
    body = body.replace("seal(", f"{seal}(")
    made: Callable[..., Any] = caller(
        decorate(**options)(function), ", ".join(names), passed, name=function.__name__, body=body, values={seal: _seal}
    )
    return made


def is_sealed(kept: object) -> bool:
    """Return whether what is kept is one object of compiled code; interpreted functions keep a tuple."""
    return hasattr(kept, "_type")


def taken_out(kept: Any) -> tuple[Any, Type]:
    """What is kept as objects of Python, to be pickled, and the type that it is to have again."""
    decorate: Any = numba.njit
    return decorate(lambda each: each.kept)(kept), kept._type


def put_back(items: Any, kind: Any) -> Any:
    """What was taken out as what it was."""
    signature = (kind.field_dict["kept"],)
    made = seal_as(kind)
    made.compile(signature)
    return made.overloads[signature].entry_point(items)
