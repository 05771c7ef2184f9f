"""Which Python function a call of something with a source comes to, for the types of its arguments.

    @njit("f8(f8)")                 find(f, (int64,))           # Found(f.py_func, (float64,), ...)
    @vectorize                      find(v, (float64[:],))      # Found(a loop around the kernel, (float64[:],), ...)
    @cfunc("f8(f8)")                find(c, (int64,))           # Found(the Python function, (float64,), ...)

The function that is found is typed and inlined like any other function that is called.
"""

from __future__ import annotations

import inspect
from typing import Any

from numba import types

from zygote_py.base import caller
from zygote_py.ir import Type
from zygote_py.numba_adapter.base import Decoration, chosen, misfit_text, own_options
from zygote_py.numba_adapter.base.internals import CFunc, DUFunc, GUFunc, StencilFunc, cpu_target, errors
from zygote_py.numba_adapter.sources.elementwise import find_in_gufunc, find_in_ufunc
from zygote_py.numba_adapter.sources.python_sources import (
    Kernel,
    Overloaded,
    ResolvedFunction,
    find_overload,
    python_source,
)
from zygote_py.numba_adapter.sources.stencils import find_in_stencil, signature_of_stencil


def signature_of_source(value: Any) -> inspect.Signature | None:
    """The parameters of a callable; None if it takes its arguments by position only, in a number that may vary."""
    match value:
        case DUFunc() | GUFunc():
            return None
        case Overloaded():
            return value.signature
        case StencilFunc():
            return signature_of_stencil(value)
        case _:
            return inspect.signature(python_source(value))


def find(value: Any, given: tuple[Type, ...], session: Any) -> ResolvedFunction:
    """Return the function that arguments of these types select. Raises numba's TypingError if there is none."""
    plain = tuple(map(types.unliteral, given))
    match value:
        case Kernel():
            return value.found
        case Overloaded():
            func, how, asked = session.once((value, given), lambda: _overload_of(value, given))
            return ResolvedFunction(func, plain, how, asked)
        case CFunc():
            return _of_cfunc(value, given)
        case DUFunc():
            return find_in_ufunc(value, plain, session)
        case GUFunc():
            return find_in_gufunc(value, plain, session)
        case StencilFunc():
            return find_in_stencil(value, plain, session)
        case _:
            return ResolvedFunction(value.py_func, *chosen(value, given))


def _overload_of(value: Overloaded, given: tuple[Type, ...]) -> tuple[Any, Decoration, tuple[Type, ...]]:
    func, how, asked = find_overload(value, given)
    return func if value.signature is not None else _by_place(func, len(given)), how, asked


def _by_place(made: Any, count: int) -> Any:
    """An implementation that is called with so many arguments: with one parameter for each."""
    parameters = list(inspect.signature(made).parameters.values())
    if len(parameters) == count and all(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters):
        return made
    names = ", ".join(f"a{number}" for number in range(count))
    return caller(made, names, names, module=made.__module__, at=made)


def _of_cfunc(value: Any, given: tuple[Type, ...]) -> ResolvedFunction:
    taken, own = value._sig.args, value._compiler
    convert = cpu_target.typing_context.can_convert
    if len(taken) != len(given) or any(convert(one, to) is None for one, to in zip(given, taken, strict=True)):
        raise errors.TypingError(misfit_text(value.__name__, [taken], given))
    how = Decoration(own_options(own.targetoptions), tuple(own.locals.items()), value._sig.return_type)
    return ResolvedFunction(value._pyfunc, taken, how)
