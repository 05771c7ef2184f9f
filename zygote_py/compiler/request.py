"""From the user's call to a `Request`: the function, the selected parameters, and the options.

    make_request(f, wrt="x", with_value=False)       # Request(func=f, wrt=(0,), bare=True, ...)

Everything that the function's signature determines is checked here; types are not known yet. A function of `*args` is
taken as one of a fixed number of arguments, so that its gradient has one entry for each argument that was passed:

    def f(a, *xs): ...          expanded(f, 3) is `def f(a, xs_0, xs_1): return original(a, xs_0, xs_1)`
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.base import caller, captured, define, free, parameters_text
from zygote_py.ir import Loc, Type, components_of, identifier, is_identifier
from zygote_py.ir.lazy_dataclass import dataclass

Wrt = str | int | Sequence[str | int] | None


@dataclass(frozen=True, slots=True)
class Request:
    """A request: the function, the indices of the selected parameters (None for all), and the options.

    Captured variables are selected by name; the first `captured_count` parameters are captured variables, too. With
    `unwrap_single`, the result is the one gradient and not a tuple; `closure` appends the gradients of all captured
    variables, `with_value` prepends the value. With `has_aux`, the function returns a pair whose second element is
    passed on. If a derivative of the function is differentiated, that is `inner`. If another derivative than a gradient
    is wanted, `form` is that (see `zygote_py.compiler.transforms`).
    """

    func: Callable[..., object]
    name: str
    wrt: tuple[int | str, ...] | None
    unwrap_single: bool
    with_value: bool
    options: Mapping[str, object]
    signature: inspect.Signature
    closure: bool = False
    captured_count: int = 0
    inner: Request | None = None
    form: Any = None
    primal: Any = None  # what was given to the form
    has_aux: bool = False
    mode: str = "auto"  # of a gradient: or "forward", "reverse"
    keyword_only: int = 0  # how many of the parameters, the last of the function's own, are passed by keyword only

    def check_positional(self, count: int) -> None:
        """Refuse positional arguments for keyword-only parameters, as Python does."""
        most = len(self.signature.parameters) - self.keyword_only
        if self.keyword_only and count > most:
            taken = f"{most} positional argument{'' if most == 1 else 's'}"
            raise TypeError(f"{self.func.__name__}() takes {taken} but {count} were given")

    @property
    def tuple_floats_are_inputs(self) -> bool:
        """Whether gradients of the numbers in captured tuples may be requested."""
        return self.closure or any(isinstance(one, str) for one in self.wrt or ())

    @property
    def defaults(self) -> dict[str, object]:
        """The parameters that have default values, with these."""
        parameters = self.signature.parameters
        return {name: each.default for name, each in parameters.items() if each.default is not each.empty}

    @property
    def loc(self) -> Loc:
        """The location of the function's definition."""
        code = self.func.__code__
        return Loc(code.co_filename, code.co_firstlineno)


def make_request(
    primal: Callable[..., Any],
    wrt: Wrt,
    *,
    with_value: bool,
    closure: bool = False,
    captured_count: int = 0,
    inner: Request | None = None,
    has_aux: bool = False,
    mode: str = "auto",
) -> Request:
    """Return the request to differentiate a function, or its derivative `inner`.

    Raises DifferentiationError for what is not a function, or is of an unsupported kind.
    """
    func = numba_adapter.differentiated_function(primal) if inner is None else inner.func
    if not inspect.isfunction(func):
        raise DifferentiationError(
            f"`{primal!r}` is not a Python function",
            hint="write a function or a lambda that calls it, and differentiate that",
        )
    loc = Loc(func.__code__.co_filename, func.__code__.co_firstlineno)
    numba_adapter.check_parameters(func.__code__)
    signature = inspect.signature(func) if inner is None else inner.signature
    parameters = signature.parameters
    for parameter in parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise refuse(f"the parameter `{parameter}` is not supported", loc, hint="make each parameter positional")
    by_name = [each for each in parameters.values() if each.kind is each.KEYWORD_ONLY]
    if by_name:
        signature = _with_places(signature, loc)
    numbers = None if wrt is None else _numbers(wrt, list(parameters), captured_count, loc)
    unwrap_single = len(parameters) - captured_count == 1 if wrt is None else isinstance(wrt, str | int | np.integer)
    name = identifier(func.__name__, "function")
    name = name if inner is None else inner.name
    suffix = "value_and_gradient" if with_value else "gradient"
    return Request(
        func,
        f"{name}_{suffix}",
        numbers,
        unwrap_single,
        with_value,
        numba_adapter.options_of(primal) if inner is None else inner.options,
        signature,
        closure,
        captured_count,
        inner,
        has_aux=has_aux,
        mode=mode,
        keyword_only=len(by_name) if inner is None else inner.keyword_only,
    )


def _with_places(signature: inspect.Signature, loc: Loc) -> inspect.Signature:
    """Return a signature with the same parameters, keyword-only ones last, in the same order."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    made = [
        each.replace(kind=kind) if each.kind is each.KEYWORD_ONLY else each for each in signature.parameters.values()
    ]
    with_default = ""
    for each in made:
        if each.default is not each.empty:
            with_default = each.name
        elif with_default:
            raise refuse(
                f"the parameter `{each.name}` has no default and follows `{with_default}`, which has one",
                loc,
                hint=f"write `{each.name}` before the parameters that have defaults, or give it one",
                token=each.name,
            )
    return signature.replace(parameters=made)


def _numbers(wrt: Wrt, names: list[str], captured_count: int, loc: Loc) -> tuple[int | str, ...]:
    """Return the indices of parameters; a name that no parameter has may be that of a captured variable.

    In `wrt`, indices count from the first parameter that is not a captured variable.
    """
    count = len(names) - captured_count
    found: list[int | str] = []
    for one in wrt if isinstance(wrt, tuple | list) else (wrt,):
        if isinstance(one, str) and one in names:
            found.append(names.index(one))
        elif isinstance(one, int | np.integer) and not isinstance(one, bool) and -count <= one < count:
            found.append(int(one) % count + captured_count)
        elif isinstance(one, str) and is_identifier(one):
            found.append(one)
        else:
            raise refuse(
                f"wrt={one!r} is not a parameter of the function",
                loc,
                hint=f"name one of {', '.join(names)}" if names else "the function has no parameters",
            )
    return tuple(found)


def misfit(request: Request, args: Sequence[Any], keywords: Mapping[str, Any]) -> TypeError:
    """Return the error for arguments that do not fit the parameters, in Python's words."""
    own = request.func.__name__
    differs = request.form is not None and list(request.signature.parameters) != list(_parameters(request.func))
    return does_not_take(f"{request.form} of {own}" if differs else own, request.signature, args, keywords)


def _parameters(func: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(func).parameters


def check_fit(func: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Raise TypeError for arguments that a function does not take."""
    func = numba_adapter.py_func_of(func)
    signature = inspect.signature(func)
    try:
        signature.bind(*args, **keywords)
    except TypeError:
        raise does_not_take(func.__name__, signature, args, keywords) from None


def does_not_take(
    name: str, signature: inspect.Signature, args: Sequence[Any], keywords: Mapping[str, Any]
) -> TypeError:
    """Return the error that Python raises if a function of this signature is called with wrong arguments.

    Python itself makes it: a function without a body is called with the arguments.
    """
    function = define(f"def function({parameters_text(signature.parameters.values())}): pass\n", "function", {})
    function.__qualname__ = name
    try:
        function(*args, **keywords)
    except TypeError as error:
        return wrong_arguments(str(error))
    return wrong_arguments(f"{name}() does not take these arguments")


def wrong_arguments(message: str) -> TypeError:
    """Return a TypeError about the user's call (see `zygote_py.runtime.tracebacks`)."""
    error = TypeError(message)
    error.is_misfit = True  # type: ignore[attr-defined]
    return error


def refuse_aux(result: Any, loc: Loc) -> DifferentiationError:
    """Return the error for a function with `has_aux` that does not return a pair."""
    what = (
        f"a tuple of {len(components_of(result))} items" if isinstance(result, types.BaseTuple) else f"of type {result}"
    )
    return refuse(
        f"with `has_aux=True` the function has to return a pair, and its result is {what}",
        loc,
        hint="return `loss, aux`, or leave out `has_aux`",
    )


@dataclass(frozen=True, slots=True)
class PullbackInterface:
    """The names and types by which a pullback is called.

    There is a seed for the result if it can have an adjoint, and one for each of the parameters that `written` names:
    arrays that the function writes to, and structures with such an array.
    """

    parameters: tuple[tuple[str, Type], ...]
    result_type: Type
    written: tuple[str, ...]

    @property
    def written_parameters(self) -> list[tuple[int, str, Type]]:
        """The numbers, names and types of the parameters in `written`, in that order."""
        return [(number, *each) for number, each in enumerate(self.parameters) if each[0] in self.written]


def under_name(func: FunctionType, qualname: str) -> FunctionType:
    """Return a function that does the same, under another qualified name."""
    made = FunctionType(func.__code__, func.__globals__, func.__name__, func.__defaults__, func.__closure__)
    made.__kwdefaults__ = func.__kwdefaults__
    made.__module__ = func.__module__
    made.__doc__ = func.__doc__
    made.__qualname__ = qualname
    return made


def named_in_module(func: Any) -> object:
    """Return the attribute of a module with the name of a function that was defined in it; None if there is none."""
    found: object = sys.modules.get(getattr(func, "__module__", None) or "")
    for name in getattr(func, "__qualname__", "<none>").split("."):
        found = getattr(found, name, None)
    return found


# --------------------------------------------------------------------------------------------------- functions of *args


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
        function = caller(callee, both, both, name=identifier(func.__name__, "function"))
        function.__defaults__ = func.__defaults__
        return function

    def implement(argument_types: tuple[Any, ...]) -> Callable[..., object]:
        return made(of(len(own) + len(argument_types[-1])))

    return numba_adapter.make_dispatcher(made(None), implement, numba_adapter.options_of(primal))
