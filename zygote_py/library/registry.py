"""The table of NumPy functions that are written in Python here, and how one is looked up.

    @implements(np.ptp)
    def ptp(a):                                    # Numba types come in, as with Numba's own @overload
        if not isinstance(a, types.Array):
            return None                            # the call stays as it is

        def implementation(a):                     # the function to put in the place of the call
            return np.max(a) - np.min(a)

        return implementation

The parameters have NumPy's names and defaults, in both functions. What is known while compiling comes as
`types.Literal`, what was not given as the default itself (`arguments.py` reads both). An implementation is typed by
Numba, so it uses what Numba has: operators, loops, other functions, of NumPy or of its own module. What it captures is
constant. It is not compiled for itself: the front end puts it into the function that is being differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from numba import types

from zygote_py.ir.core import Type

Implementation = Callable[..., object]
Template = Callable[..., Implementation | None]
Registered = TypeVar("Registered", bound=Template)

_TEMPLATES: dict[Callable[..., object], Template] = {}


def implements(*functions: Callable[..., object]) -> Callable[[Registered], Registered]:
    """Register a template for functions of NumPy.

    A method of an array is taken for NumPy's function of its name, unless it is registered itself, as `np.ndarray.sort`
    is; the array comes as the first argument then.
    """

    def register(template: Registered) -> Registered:
        for function in functions:
            assert function not in _TEMPLATES, function
            _TEMPLATES[function] = template
        return template

    return register


def implemented() -> Mapping[Callable[..., object], Template]:
    """All functions that have a template."""
    return MappingProxyType(_TEMPLATES)


def implementation_of(
    function: Callable[..., object], arguments: Sequence[Type], keywords: Mapping[str, Type]
) -> Implementation | None:
    """The function to put in the place of a call with arguments of these types; None if the call is to stay."""
    template = _TEMPLATES.get(function)
    if template is None:
        return None
    return template(*map(_given, arguments), **{name: _given(type) for name, type in keywords.items()})


def _given(type: Type) -> object:
    """A default that a function of the user's hands on comes as what it is."""
    return type.value if isinstance(type, types.Omitted) else type


def is_differentiable(type: object) -> bool:
    """Whether a value of this type may carry a derivative: a real or complex number, or something with one in it."""
    match type:
        case types.Float() | types.Complex():
            return True
        case types.Array() | types.List() | types.ListType() | types.Sequence():
            return is_differentiable(getattr(type, "dtype", None))
        case types.BaseTuple():
            parts: Sequence[object] = getattr(type, "types", ())
            return any(map(is_differentiable, parts))
        case types.Optional():
            return is_differentiable(type.type)
        case _:
            return False
