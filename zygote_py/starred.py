"""Functions that take any number of arguments, as functions of a certain number of them.

    def f(a, *xs): ...          expanded(f, 3) is `def f(a, xs_0, xs_1): return original(a, xs_0, xs_1)`

The gradient of `*xs` is flattened as the arguments were passed. It differentiates nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numba

from zygote_py import numba_adapter
from zygote_py.ir.python_text import identifier


def star_of(primal: Any) -> str:
    """The name of the parameter that takes all further arguments; empty if there is none."""
    func = numba_adapter.py_func_of(primal)
    if not isinstance(func, FunctionType) or not func.__code__.co_flags & inspect.CO_VARARGS:
        return ""
    return func.__code__.co_varnames[func.__code__.co_argcount + func.__code__.co_kwonlyargcount]


def expanded(primal: Any, count: int) -> Callable[..., Any]:
    """The function with a parameter for each of `count` arguments, decorated as it was."""
    func: Any = numba_adapter.py_func_of(primal)
    code = func.__code__
    own = code.co_varnames[: code.co_argcount][:count]
    star = star_of(primal)
    names = [*own, *(f"{star}_{number}" for number in range(count - len(own)))]
    name = identifier(func.__name__, "function")
    function = "original"
    while function in (*names, name):
        function += "_"
    text = (
        f"def make({function}):\n def {name}({', '.join(names)}): return {function}({', '.join(names)})\n return {name}"
    )
    namespace: dict[str, Any] = {"__name__": func.__module__}
    exec(text, namespace)
    made = namespace["make"](numba_adapter.called_function(primal))
    place = {"co_filename": code.co_filename, "co_firstlineno": numba_adapter.definition_line(func)}
    made.__code__ = made.__code__.replace(**place)
    made.__module__ = func.__module__
    if not numba_adapter.is_dispatcher(primal):
        return made  # type: ignore[no-any-return]
    decorate: Any = numba.njit
    return decorate(**numba_adapter.options_of(primal))(made)  # type: ignore[no-any-return]


def names_of(wrt: Any, primal: Any, count: int) -> Any:
    """What to differentiate in the expanded function: the name of the star means all of its arguments."""
    star = star_of(primal)
    code: Any = numba_adapter.py_func_of(primal).__code__
    rest = [f"{star}_{number}" for number in range(count - code.co_argcount)]
    if wrt == star:
        return rest
    if isinstance(wrt, str) or not isinstance(wrt, Sequence):
        return wrt
    return [each for one in wrt for each in (rest if one == star else [one])]


def starred_dispatcher(primal: Any, of: Callable[[int], Any]) -> Any:
    """What compiled code calls for a function that takes any number of arguments; `of` gives it for their number."""
    func: Any = numba_adapter.py_func_of(primal)
    star = star_of(primal)
    own = func.__code__.co_varnames[: func.__code__.co_argcount]
    name = identifier(func.__name__, "function")
    called = "called"
    while called in (*own, star, name):
        called += "_"
    text = f"def {name}({', '.join((*own, f'*{star}'))}): return {called}({', '.join((*own, f'*{star}'))})"

    def made(namespace: dict[str, Any]) -> Callable[..., object]:
        exec(text, namespace)
        function: Callable[..., object] = namespace[name]
        function.__defaults__ = func.__defaults__
        return function

    def implement(argument_types: tuple[Any, ...]) -> Callable[..., object]:
        return made({called: of(len(own) + len(argument_types[-1]))})

    return numba_adapter.make_dispatcher(made({}), implement, numba_adapter.options_of(primal))
