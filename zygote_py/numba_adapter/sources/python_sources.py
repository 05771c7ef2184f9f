"""The Python source of callables that Numba compiles: decorated functions, ufuncs, stencils, callbacks, overloads.

Which function a call of one comes to, `zygote_py.numba_adapter.sources.resolution` says. Loops are written for ufuncs
and stencils as Python functions that call a `Kernel`; they stand at the place of the user's function.

Other packages may have given Numba implementations of functions (`overload`), of methods and of attributes:

    @overload(clamp)                                    find_overload(clamp, (float64, float64))
    def _(x, high):                                     # the inner function, for these types
        return lambda x, high: min(x, high)

Which implementation there is for the types of the arguments, the function says that was registered; what it gives is
Python source like any other. NumPy's functions and those of our own library are not looked for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from numba import types

from zygote_py.base import calling
from zygote_py.ir import Type
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base import (
    Decoration,
    is_from_source,
    is_plainly_decorated,
    own_options,
    py_func_of,
    refreshed_context,
)
from zygote_py.numba_adapter.base.internals import (
    CFunc,
    DUFunc,
    GUFunc,
    StencilFunc,
    _OverloadAttributeTemplate,
    _OverloadFunctionTemplate,
    cpu_target,
    errors,
    get_local_target,
    order_by_target_specificity,
)


@dataclass(frozen=True, slots=True)
class ResolvedFunction:
    """A Python function, the types that it takes its arguments as, and how it is compiled.

    `asked` are the types by which it was found, if they say of a constant that it is one.
    """

    func: Any
    types: tuple[Type, ...]
    how: Decoration | None = None
    asked: tuple[Type, ...] | None = None


class Kernel:
    """A Python function in a loop that is written here, compiled for certain types whatever it is given."""

    def __init__(self, name: str, found: ResolvedFunction) -> None:
        self.__name__ = name
        self.found = found


class Overloaded:
    """A function, a method or an attribute with implementations of another package, in Numba's order."""

    def __init__(self, name: str, source: Any, templates: tuple[Any, ...]) -> None:
        self.__name__ = name
        self.source = source  # what it is called as
        self.templates = templates
        self.signature = _common_signature(source, templates)  # None if arguments are taken by their places


WITH_SOURCE = (Kernel, CFunc, DUFunc, GUFunc, StencilFunc, Overloaded)


def has_source(value: object) -> bool:
    """Whether this is something that Numba can call, and whose Python source says what it does."""
    return isinstance(value, WITH_SOURCE) or is_from_source(value)


def python_source(value: Any) -> Any:
    """Return the user's Python function of a callable that has one."""
    match value:
        case Kernel():
            return value.found.func
        case Overloaded():
            return value.source
        case CFunc():
            return value._pyfunc
        case StencilFunc():
            return value.kernel_ir.func_id.func
        case DUFunc() | GUFunc():
            return value._dispatcher.py_func  # type: ignore[union-attr]
        case _:
            return value.py_func


def content_of_source(value: Any) -> tuple[Any, list[object], list[Type]] | None:
    """Return the content of a callable, besides its options: Python source, words and types; None if unknown.

    Of a ufunc that compiles what it is called with, it is known as long as it has not.
    """
    if isinstance(value, CFunc):
        own = vars(value)
        held = own["_compiler"].locals
        return own["_pyfunc"], sorted(held), [*own["_sig"].args, own["_sig"].return_type, *map(held.get, sorted(held))]
    if isinstance(value, StencilFunc):
        options = value.options
        standard = tuple(options.get("standard_indexing", ()))
        return python_source(value), ["cval" in options, options.get("cval"), standard, value.neighborhood], []
    if not isinstance(value, DUFunc | GUFunc):
        return None
    ufunc: Any = value
    dispatcher = ufunc._dispatcher
    if not ufunc._frozen and dispatcher.overloads:
        return None
    words = [ufunc._frozen, sorted(dispatcher.locals), len(dispatcher.overloads)]
    if isinstance(value, GUFunc):
        words.append(ufunc.gufunc_builder.signature)
    kinds = [dispatcher.locals[name] for name in sorted(dispatcher.locals)]
    kinds += [kind for each in dispatcher.overloads for kind in (*each.args, each.return_type)]
    return python_source(value), words, kinds


def options_of_source(value: Any) -> dict[str, object]:
    """The options that a callable was made with."""
    if isinstance(value, StencilFunc):
        return {}
    made: Any = vars(value)["_compiler"] if isinstance(value, CFunc) else value._dispatcher
    return dict(made.targetoptions)


def takes_as_given(value: Any) -> bool:
    """Whether the source itself is called, with arguments of the types that they have."""
    return is_from_source(value) and is_plainly_decorated(value)


def fresh(name: str, taken: set[str]) -> str:
    """A name that is not taken, taken from now on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def called_function(value: Any) -> Any:
    """Return the callable for a function: the Python function, or the value itself if it converts arguments."""
    return value if has_source(value) and not takes_as_given(value) else py_func_of(value)


def differentiated_function(value: Any) -> Callable[..., object]:
    """The Python function to differentiate for a callable: its source, or a function that calls it."""
    called = called_function(value)
    if called is not value or not has_source(value):
        return called  # type: ignore[no-any-return]
    made: Any = calling(value, python_source(value))
    made.called_directly = value
    return made  # type: ignore[no-any-return]


# -------------------------------------------------------------------- implementations that other packages gave to Numba


_THEIRS = frozenset(
    {"numba", "numpy", "math", "cmath", "operator", "_operator", "builtins", "random", "heapq", "zygote_py"}
)


_MEMBER: Any = _OverloadAttributeTemplate


def overloaded_function(value: object) -> Overloaded | None:
    """The implementations of a Python function; None if it has none from another package."""
    if not isinstance(value, FunctionType) or _root(value) in _THEIRS:
        return None
    context = refreshed_context()
    found = context._lookup_global(value)
    if not isinstance(found, types.Function) or not all(
        issubclass(each, _OverloadFunctionTemplate) for each in found.templates
    ):
        return None
    templates = order_by_target_specificity(get_local_target(context), found.templates, fnkey=value)
    return Overloaded(value.__name__, value, tuple(templates))


def overloaded_member(type_: Type, name: str, accessor: bool = False) -> Overloaded | None:
    """The implementations of a method of values of a type, or of an attribute if it is an `accessor`."""
    context = cpu_target.typing_context
    found = [
        each
        for each in context._get_attribute_templates(type_)
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
        for literal in (True, False) if template.prefer_literal else (False, True):
            kinds = given if literal else tuple(map(types.unliteral, given))
            made = template._overload_func(*_spread(value.signature, map(_given, kinds)))
            made = made[1] if isinstance(made, tuple) else made
            if made is not None:
                return made, Decoration(own_options(template._jit_options)), kinds
    shown = ", ".join(map(str, map(types.unliteral, given)))
    raise errors.TypingError(f"wrong arguments for `{value.__name__}`: there is no implementation for ({shown})")


def _given(type_: Any) -> Any:
    """A default that was not given comes as what it is."""
    return type_.value if isinstance(type_, types.Omitted) else type_


def _spread(signature: inspect.Signature | None, kinds: Any) -> list[Any]:
    """The types of the arguments, those of `*args` each for itself."""
    if signature is None:
        return list(kinds)
    pairs = zip(signature.parameters.values(), kinds, strict=True)
    return [each for own, kind in pairs for each in (kind if own.kind is own.VAR_POSITIONAL else [kind])]


def _common_signature(source: Any, templates: tuple[Any, ...]) -> inspect.Signature | None:
    """The parameters of the registered functions, which count and not those of the function that is called as well.

    None if they differ, or if an implementation may have others: Numba then tries one after the other.
    """
    found = [inspect.signature(template._overload_func) for template in templates]
    starred = any(each.kind is each.VAR_POSITIONAL for each in found[0].parameters.values())
    if len(set(map(_shape, found))) > 1 or (starred and not all(template._strict for template in templates)):
        return None
    own = inspect.signature(source)
    names = {tuple(each.parameters) for each in found}
    return own if len(names) > 1 and _shape(own) == _shape(found[0]) else found[0]


def _shape(signature: inspect.Signature) -> tuple[tuple[object, str], ...]:
    """Return the parameters without their names."""
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
