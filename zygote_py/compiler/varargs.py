"""Functions of `*args`, as functions of a fixed number of arguments.

    def f(a, *xs): ...          expanded(f, 3) is `def f(a, xs_0, xs_1): return original(a, xs_0, xs_1)`

The gradient has one entry for each argument that was passed. Nothing is differentiated here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from zygote_py import numba_adapter
from zygote_py.base import caller, captured, free
from zygote_py.ir import identifier


def star_of(primal: Any) -> str:
    """Return the name of the parameter `*args`; empty if there is none."""
    func = numba_adapter.py_func_of(primal)
    if not isinstance(func, FunctionType) or not func.__code__.co_flags & inspect.CO_VARARGS:
        return ""
    return func.__code__.co_varnames[func.__code__.co_argcount + func.__code__.co_kwonlyargcount]


def expanded(primal: Any, count: int) -> Callable[..., Any]:
    """Return the function with a parameter for each of `count` arguments, decorated like the original."""
    func: Any = numba_adapter.py_func_of(primal)
    code = func.__code__
    own = code.co_varnames[: code.co_argcount][:count]
    star = star_of(primal)
    names = [*own, *(f"{star}_{number}" for number in range(count - len(own)))]
    name, listed = identifier(func.__name__, "function"), ", ".join(names)
    called = free("original", (*names, name))
    lines = [f"def {name}({listed}): return {called}({listed})"]
    made = captured(lines, {called: numba_adapter.called_function(primal)}, module=func.__module__)
    place = {"co_filename": code.co_filename, "co_firstlineno": numba_adapter.definition_of(code).line}
    made.__code__ = made.__code__.replace(**place)
    made.__module__ = func.__module__
    if numba_adapter.is_dispatcher(primal):
        made = numba_adapter.decorated(made, numba_adapter.options_of(primal))
    return made  # type: ignore[no-any-return]


def names_of(wrt: Any, primal: Any, count: int) -> Any:
    """Return the `wrt` of the expanded function; the name of `*args` stands for all its arguments."""
    star = star_of(primal)
    code: Any = numba_adapter.py_func_of(primal).__code__
    rest = [f"{star}_{number}" for number in range(count - code.co_argcount)]
    if wrt == star:
        return rest
    if isinstance(wrt, str) or not isinstance(wrt, Sequence):
        return wrt
    return [each for one in wrt for each in (rest if one == star else [one])]


def starred_dispatcher(primal: Any, of: Callable[[int], Any]) -> Any:
    """Return the dispatcher for a function of `*args` in compiled code; `of` returns one for a number of arguments."""
    func: Any = numba_adapter.py_func_of(primal)
    own = func.__code__.co_varnames[: func.__code__.co_argcount]
    both = ", ".join((*own, f"*{star_of(primal)}"))

    def made(callee: Any) -> Callable[..., object]:
        function: Callable[..., object] = caller(callee, both, both, name=identifier(func.__name__, "function"))
        function.__defaults__ = func.__defaults__
        return function

    def implement(argument_types: tuple[Any, ...]) -> Callable[..., object]:
        return made(of(len(own) + len(argument_types[-1])))

    return numba_adapter.make_dispatcher(made(None), implement, numba_adapter.options_of(primal))
