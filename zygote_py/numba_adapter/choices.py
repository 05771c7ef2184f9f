"""The pullback of a rule that makes one or another, as its path has it: a number that says which, and all of them.

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

import functools
from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import register_model

from zygote_py.base.python_text import define
from zygote_py.ir.core import Loc, Type
from zygote_py.numba_adapter.callees import CalleeType
from zygote_py.numba_adapter.closures import ClosureType
from zygote_py.numba_adapter.internals import models
from zygote_py.numba_adapter.same import Same


class ChoiceType(Same, types.Callable, types.NamedTuple):
    """The type of a value that is one of several inner functions; its first component is the number of the one."""

    def __init__(self, functions: tuple[Any, ...]) -> None:
        self.functions = functions
        self.types = (types.int64, *functions)
        self.count = len(self.types)
        self.fields = ("which", *(f"function_{number}" for number in range(len(functions))))
        self.instance_class = tuple
        types.Type.__init__(self, f"one of {functions}")

    @property
    def key(self) -> object:
        """What tells choices apart."""
        return self.functions

    def unify(self, context: object, other: Type) -> Type | None:
        """Numba asks for a type that holds values of both."""
        return choice(self, other)

    def get_call_type(self, context: object, args: object, kws: object) -> Any:
        """Numba asks for the signature of a call, which there is none of in a rule."""
        return None

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba asks for what is known beforehand, to explain a failure."""
        return [], False

    def get_impl_key(self, sig: object) -> object:
        """Numba asks for what to compile."""
        return None


register_model(ChoiceType)(models.TupleModel)


def choice(*made: Any) -> ChoiceType | None:
    """The type of what is of one of these types; None if one of them is no function of ours."""
    functions: list[Any] = []
    for each in made:
        if not isinstance(each, CalleeType | ClosureType | ChoiceType):
            return None
        new = each.functions if isinstance(each, ChoiceType) else (each,)
        functions += [function for function in new if function not in functions]
    return ChoiceType(tuple(sorted(functions, key=_place)))  # Numba asks in any order


def _place(type: Any) -> tuple[object, ...]:
    """Where the function of a type is defined."""
    code = (type.maker.func if isinstance(type, ClosureType) else type.func).__code__
    columns = (start for _, _, start, _ in code.co_positions() if start is not None)
    return code.co_filename, code.co_firstlineno, min(columns, default=0), code.co_name


def is_choice(type: Type) -> bool:
    """Whether values of this type are one of several functions."""
    return isinstance(type, ChoiceType)


def number_in(type: Any, function: Type) -> int:
    """The number of a function in a choice."""
    return list(type.functions).index(function)


@functools.cache
def calling_one_of(count: int, loc: Loc) -> Callable[..., Any]:
    """A function that calls the one of so many functions that a choice says; to whoever asks, it is at this place."""
    tests = "".join(f"    if chosen.which == {n}:\n        return chosen.function_{n}(dy)\n" for n in range(count - 1))
    text = f"def back(dy, chosen):\n{tests}    return chosen.function_{count - 1}(dy)\n"
    made = define(text, "back", {}, module=__name__)
    made.__code__ = made.__code__.replace(co_filename=loc.file, co_firstlineno=loc.line, co_linetable=b"")
    return made  # type: ignore[no-any-return]
