"""The Python source of what Numba can call: which function a call comes to, for the types of its arguments.

    @njit("f8(f8)")                 find(f, (int64,))           # Found(f.py_func, (float64,), ...)
    @vectorize                      find(v, (float64[:],))      # Found(a loop around the kernel, (float64[:],), ...)
    @cfunc("f8(f8)")                find(c, (int64,))           # Found(the Python function, (float64,), ...)

What is found is typed and inlined like any other function that is called. Loops are written here, as Python functions
that call a `Kernel`; they stand at the place of the user's function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba import types

from zygote_py.base.python_text import caller
from zygote_py.ir.core import Type
from zygote_py.numba_adapter.decorations import (
    Decoration,
    chosen,
    is_from_source,
    is_plainly_decorated,
    misfit_text,
    semantic,
)
from zygote_py.numba_adapter.internals import CFunc, DUFunc, GUFunc, StencilFunc, cpu_target, errors
from zygote_py.numba_adapter.overloads import Overloaded, find_overload


@dataclass(frozen=True, slots=True)
class Found:
    """A Python function, the types that it takes its arguments as, and how it is compiled.

    `asked` are the types by which it was found, if they say of a constant that it is one.
    """

    func: Any
    types: tuple[Type, ...]
    how: Decoration | None = None
    asked: tuple[Type, ...] | None = None


class Kernel:
    """A Python function in a loop that is written here, compiled for certain types whatever it is given."""

    def __init__(self, name: str, found: Found) -> None:
        self.__name__ = name
        self.found = found


WITH_SOURCE = (Kernel, CFunc, DUFunc, GUFunc, StencilFunc, Overloaded)


def has_source(value: object) -> bool:
    """Whether this is something that Numba can call, and whose Python source says what it does."""
    return isinstance(value, WITH_SOURCE) or is_from_source(value)


def python_source(value: Any) -> Any:
    """The user's own Python function behind a callable that has one."""
    if isinstance(value, Kernel):
        return value.found.func
    if isinstance(value, Overloaded):
        return value.source
    if isinstance(value, CFunc):
        return vars(value)["_pyfunc"]
    if isinstance(value, StencilFunc):
        return value.kernel_ir.func_id.func
    return (value._dispatcher if isinstance(value, DUFunc | GUFunc) else value).py_func  # type: ignore[union-attr]


def content_of_source(value: Any) -> tuple[Any, list[object], list[Type]] | None:
    """What a callable does, beside its options: its Python source, words and types; None if that is not known.

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


def signature_of_source(value: Any) -> inspect.Signature | None:
    """The parameters of a callable; None if it takes its arguments by position only, in a number that may vary."""
    if isinstance(value, DUFunc | GUFunc):
        return None
    if isinstance(value, Overloaded):
        return value.signature
    if isinstance(value, StencilFunc):
        from zygote_py.numba_adapter.stencils import signature_of_stencil

        return signature_of_stencil(value)
    return inspect.signature(python_source(value))


def find(value: Any, given: tuple[Type, ...], session: Any) -> Found:
    """What a call with arguments of these types comes to. Raises numba's TypingError if there is nothing."""
    from zygote_py.numba_adapter.elementwise import find_in_gufunc, find_in_ufunc
    from zygote_py.numba_adapter.stencils import find_in_stencil

    match value:
        case Kernel():
            return value.found
        case Overloaded():
            return _of_overload(value, given, session)
        case CFunc():
            return _of_cfunc(value, given)
        case DUFunc():
            return find_in_ufunc(value, given, session)
        case GUFunc():
            return find_in_gufunc(value, given, session)
        case StencilFunc():
            return find_in_stencil(value, given, session)
        case _:
            return Found(value.py_func, *chosen(value, given))


def _of_overload(value: Overloaded, given: tuple[Type, ...], session: Any) -> Found:
    key = value, given
    if key not in session.written:
        func, how, asked = find_overload(value, given)
        session.written[key] = func if value.signature is not None else _by_place(func, len(given)), how, asked
    func, how, asked = session.written[key]
    return Found(func, tuple(map(types.unliteral, given)), how, asked)


def _by_place(made: Any, count: int) -> Any:
    """An implementation that is called with so many arguments: with one parameter for each."""
    parameters = list(inspect.signature(made).parameters.values())
    if len(parameters) == count and all(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters):
        return made
    names = ", ".join(f"a{number}" for number in range(count))
    return caller(made, names, names, module=made.__module__, at=made)


def _of_cfunc(value: Any, given: tuple[Type, ...]) -> Found:
    taken = value._sig.args
    context: Any = cpu_target.typing_context
    if len(taken) != len(given) or any(
        context.can_convert(one, to) is None for one, to in zip(given, taken, strict=True)
    ):
        raise errors.TypingError(misfit_text(value.__name__, [taken], given))
    options = semantic(value._compiler.targetoptions)
    return Found(
        value._pyfunc, taken, Decoration(options, tuple(value._compiler.locals.items()), value._sig.return_type)
    )


def fresh(name: str, taken: set[str]) -> str:
    """A name that is not taken, taken from now on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def remembered(session: Any, key: object, make: Callable[[], Any]) -> Any:
    """A function that is written once in a session."""
    held: dict[object, Any] = session.written
    if key not in held:
        held[key] = make()
    return held[key]
