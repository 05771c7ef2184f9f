"""From what a user asked for to a `Request`: which function, which of its parameters, in which form.

    make_request(f, wrt="x", with_value=False)       # Request(func=f, wrt=(0,), bare=True, ...)

What is asked for is checked here as far as the function's signature tells; types are not known yet.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zygote_py import numba_adapter
from zygote_py.adjoints.errors import DifferentiationError, refuse
from zygote_py.capture import Capture
from zygote_py.ir.core import Loc

Wrt = str | int | Sequence[str | int] | None


@dataclass(frozen=True, slots=True)
class Request:
    """What to differentiate: the function, the parameters asked for (None: all), by number, the form.

    Captured variables are asked for by name; the first `held` parameters are such variables too. With `bare`, the
    answer is the one gradient asked for and no tuple; `closure` puts the gradients of all captured variables behind it,
    `with_value` the value before. If what is to be differentiated is a derivative of the function, that is `inner`.
    If it is no gradient that is asked for, `form` says what (see `zygote_py.forms`).
    """

    func: Callable[..., object]
    name: str
    wrt: tuple[int | str, ...] | None
    bare: bool
    with_value: bool
    options: Mapping[str, object]
    signature: inspect.Signature
    closure: bool = False
    held: int = 0
    inner: Request | None = None
    form: Any = None
    primal: Any = None  # what was given to the form

    @property
    def numbers_vary(self) -> bool:
        """Whether gradients may be asked for of the numbers in captured tuples."""
        return self.closure or any(isinstance(one, str) for one in self.wrt or ())

    @property
    def defaults(self) -> dict[str, object]:
        """The parameters that have defaults, with these."""
        parameters = self.signature.parameters
        return {name: each.default for name, each in parameters.items() if each.default is not each.empty}

    @property
    def loc(self) -> Loc:
        """Where the function is defined."""
        code = self.func.__code__
        return Loc(code.co_filename, code.co_firstlineno)


class MoreCaptured(Exception):
    """The function reads captured values that it is not passed; `hidden` are all that it has to be passed."""

    def __init__(self, hidden: tuple[Capture, ...]) -> None:
        super().__init__(hidden)
        self.hidden = hidden


def make_request(
    primal: Callable[..., Any],
    wrt: Wrt,
    *,
    with_value: bool,
    closure: bool = False,
    held: int = 0,
    inner: Request | None = None,
) -> Request:
    """What is to be differentiated: a function, or the derivative `inner` of one.

    Raises DifferentiationError for what is no function, or not of a supported form.
    """
    func = numba_adapter.differentiated_function(primal) if inner is None else inner.func
    if not inspect.isfunction(func):
        raise DifferentiationError(
            f"`{primal!r}` is not a Python function",
            hint="write a function or a lambda that calls it, and differentiate that",
        )
    loc = Loc(func.__code__.co_filename, func.__code__.co_firstlineno)
    signature = inspect.signature(func) if inner is None else inner.signature
    parameters = signature.parameters
    for parameter in parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise refuse(
                f"the parameter `{parameter}` is not supported", loc, hint="give each parameter a place of its own"
            )
    numbers = None if wrt is None else _numbers(wrt, list(parameters), held, loc)
    bare = len(parameters) - held == 1 if wrt is None else isinstance(wrt, str | int | np.integer)
    name = func.__name__ if func.__name__.isidentifier() else "function"
    name = name if inner is None else inner.name
    suffix = "value_and_gradient" if with_value else "gradient"
    return Request(
        func,
        f"{name}_{suffix}",
        numbers,
        bare,
        with_value,
        numba_adapter.options_of(primal) if inner is None else inner.options,
        signature,
        closure,
        held,
        inner,
    )


def _numbers(wrt: Wrt, names: list[str], held: int, loc: Loc) -> tuple[int | str, ...]:
    """The numbers of parameters; a name that none has may be that of a captured variable.

    In `wrt` they are counted from the first parameter on that does not hold such a variable.
    """
    count = len(names) - held
    found: list[int | str] = []
    for one in wrt if isinstance(wrt, tuple | list) else (wrt,):
        if isinstance(one, str) and one in names:
            found.append(names.index(one))
        elif isinstance(one, int | np.integer) and not isinstance(one, bool) and -count <= one < count:
            found.append(int(one) % count + held)
        elif isinstance(one, str) and one.isidentifier():
            found.append(one)
        else:
            raise refuse(
                f"wrt={one!r} is no parameter of the function",
                loc,
                hint=f"name one of {', '.join(names)}" if names else "the function has no parameters",
            )
    return tuple(found)


def misfit(request: Request, error: TypeError) -> DifferentiationError:
    """The error for arguments that do not fit the parameters."""
    return refuse(
        f"wrong arguments: {error}", request.loc, hint=f"call it as {request.func.__name__}{request.signature}"
    )


def named_in_module(func: Any) -> object:
    """What a module has under the name of a function that was defined in it; None if there is nothing."""
    found: object = sys.modules.get(getattr(func, "__module__", None) or "")
    for name in getattr(func, "__qualname__", "<none>").split("."):
        found = getattr(found, name, None)
    return found
