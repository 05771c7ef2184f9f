"""Implementations that other packages gave to Numba: of functions (`overload`), of methods and of attributes.

    @overload(clamp)                                    find_overload(clamp, (float64, float64))
    def _(x, high):                                     # the inner function, for these types
        return lambda x, high: min(x, high)

Which implementation there is for the types of the arguments, the function says that was registered; what it gives is
Python source like any other. NumPy's functions and those of our own library are not looked for here.
"""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from numba import types

from zygote_py.ir.core import Type
from zygote_py.numba_adapter.decorations import Decoration, semantic
from zygote_py.numba_adapter.internals import (
    _OverloadAttributeTemplate,
    _OverloadFunctionTemplate,
    cpu_target,
    errors,
    get_local_target,
    order_by_target_specificity,
)

_THEIRS = frozenset({"numba", "numpy", "math", "cmath", "operator", "_operator", "builtins", "random", "zygote_py"})


_MEMBER: Any = _OverloadAttributeTemplate


class Overloaded:
    """A function, a method or an attribute with implementations of another package, in Numba's order."""

    def __init__(self, name: str, source: Any, templates: tuple[Any, ...]) -> None:
        self.__name__ = name
        self.source = source  # what it is called as
        self.templates = templates
        self.signature = _common_signature(source, templates)  # None if arguments are taken by their places


def overloaded_function(value: object) -> Overloaded | None:
    """The implementations of a Python function; None if it has none from another package."""
    if not isinstance(value, FunctionType) or _root(value) in _THEIRS:
        return None
    context: Any = cpu_target.typing_context
    context.refresh()
    found = context._lookup_global(value)
    if not isinstance(found, types.Function) or not all(
        issubclass(each, _OverloadFunctionTemplate) for each in found.templates
    ):
        return None
    order: Any = order_by_target_specificity
    target: Any = get_local_target
    return Overloaded(value.__name__, value, tuple(order(target(context), found.templates, fnkey=value)))


def overloaded_member(type_: Type, name: str, accessor: bool = False) -> Overloaded | None:
    """The implementations of a method of values of a type, or of an attribute if it is an `accessor`."""
    context: Any = cpu_target.typing_context
    known: list[Any] = list(context._get_attribute_templates(type_))
    found = [
        each
        for each in known
        if isinstance(each, _MEMBER)
        and getattr(each, "_attr", None) == name
        and each.is_method is not accessor
        and _root(each._overload_func) not in _THEIRS
    ]
    if not found:
        return None
    functions = tuple(
        template for each in found for template in context.resolve_value_type(each._overload_func).templates
    )
    return Overloaded(name, found[0]._overload_func, functions)


def find_overload(value: Overloaded, given: tuple[Type, ...]) -> tuple[Any, Decoration, tuple[Type, ...]]:
    """The Python function for arguments of these types, how it is compiled, and the types that it was found by.

    An implementation may ask for a constant, so that a call with another one comes to another function.

    Raises numba's TypingError if there is none.
    """
    for template in value.templates:
        if value.signature is None and not _takes(template, given):
            continue
        literals = (True, False) if template.prefer_literal else (False, True)
        for literal in literals:
            kinds = given if literal else tuple(map(types.unliteral, given))
            made = template._overload_func(*_spread(value.signature, map(_given, kinds)))
            made = made[1] if isinstance(made, tuple) else made
            if made is not None:
                return made, Decoration(semantic(template._jit_options)), kinds
    shown = ", ".join(map(str, map(types.unliteral, given)))
    raise errors.TypingError(f"wrong arguments for `{value.__name__}`: there is no implementation for ({shown})")


def _given(type_: Any) -> Any:
    """A default that was not given comes as what it is."""
    return type_.value if isinstance(type_, types.Omitted) else type_


def _spread(signature: inspect.Signature | None, kinds: Any) -> list[Any]:
    """The types of the arguments, those of `*args` each for itself."""
    if signature is None:
        return list(kinds)
    found: list[Any] = []
    for parameter, kind in zip(signature.parameters.values(), kinds, strict=True):
        found += list(kind) if parameter.kind is parameter.VAR_POSITIONAL else [kind]
    return found


def _common_signature(source: Any, templates: tuple[Any, ...]) -> inspect.Signature | None:
    """The parameters of the registered functions, which count and not those of the function that is called as well.

    None if they differ, or if an implementation may have others: Numba then tries one after the other.
    """
    found = [inspect.signature(template._overload_func) for template in templates]
    starred = any(each.kind is each.VAR_POSITIONAL for each in found[0].parameters.values())
    if len(set(map(_shape, found))) > 1 or (starred and not all(template._strict for template in templates)):
        return None
    own = inspect.signature(source)
    if len({tuple(each.parameters) for each in found}) > 1 and _shape(own) == _shape(found[0]):
        return own
    return found[0]


def _shape(signature: inspect.Signature) -> tuple[tuple[object, str], ...]:
    """What parameters there are, apart from their names."""
    return tuple((each.kind, repr(each.default)) for each in signature.parameters.values())


def _takes(template: Any, given: tuple[Type, ...]) -> bool:
    """Whether a registered function may be called with that many arguments."""
    try:
        inspect.signature(template._overload_func).bind(*given)
    except TypeError:
        return False
    return True


def _root(function: Any) -> str:
    return (getattr(function, "__module__", None) or "").partition(".")[0]
