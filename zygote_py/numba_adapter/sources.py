"""The Python source of callables that Numba compiles: decorated functions, ufuncs, stencils, callbacks, overloads.

Which function a call of one comes to, `zygote_py.numba_adapter.resolution` says. Loops are written for ufuncs and
stencils as Python functions that call a `Kernel`; they stand at the place of the user's function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from zygote_py.given import calling
from zygote_py.ir.core import Type
from zygote_py.numba_adapter.decorations import Decoration, is_from_source, is_plainly_decorated, py_func_of
from zygote_py.numba_adapter.internals import CFunc, DUFunc, GUFunc, StencilFunc
from zygote_py.numba_adapter.overloads import Overloaded


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


def fresh(name: str, taken: set[str]) -> str:
    """A name that is not taken, taken from now on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def called_function(value: Any) -> Any:
    """What to call for the source of a function: the Python function, or what takes arguments in a way of its own."""
    return value if has_source(value) and not takes_as_given(value) else py_func_of(value)


def differentiated_function(value: Any) -> Callable[..., object]:
    """The Python function to differentiate for a callable: its source, or a function that calls it."""
    called = called_function(value)
    if called is not value or not has_source(value):
        return called  # type: ignore[no-any-return]
    made: Any = calling(value, python_source(value))
    made.called_directly = value
    return made  # type: ignore[no-any-return]
