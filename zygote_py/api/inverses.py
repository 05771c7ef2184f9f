"""Inverses of steps, with which the reverse sweep undoes the iterations of a loop instead of storing states.

    @zg.inverse(step)                       # step(state, *rest) -> state
    def unstep(state, *rest): ...           # the state before the step

    zg.check_inverse(step, state, *rest)    # raises DifferentiationError if it is not

`zygote_py.adjoints.strategies.reversible_loops` determines which loops can be reversed this way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace as replaced
from typing import Any, TypeVar

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.base import custom_rules as given
from zygote_py.ir import Loc, one_line

F = TypeVar("F", bound=Callable[..., Any])


def inverse(step: Callable[..., Any], *, replace: bool = False) -> Callable[[F], F]:
    """Register the inverse of a step. Loops of such steps store nothing: their reverse sweep undoes the steps.

    Parameters
    ----------
    step : callable
        A function `step(state, *rest)` that returns the next state, a value of the type of its first parameter: a
        number, an array, or a tuple, NamedTuple or frozen dataclass of these. It must not write to its arguments or
        draw random numbers. It may have a custom rule (`adjoint`); otherwise it is differentiated.
    replace : bool
        Whether to replace the inverse that `step` already has.

    Returns
    -------
    callable
        A decorator for the inverse, which it returns unchanged. The inverse is a function of the subset that Numba
        compiles. It takes the parameters of `step`, with the state that `step` returned as the first, and returns the
        state before the step.

    Raises
    ------
    DifferentiationError
        If the inverse does not take the parameters of `step`, or if `step` already has an inverse; and when a
        derivative is compiled, if the types do not fit.

    Notes
    -----
    A wrong inverse is not detected during differentiation; `check_inverse` finds it.

    The method is that of A. N. Gomez, M. Ren, R. Urtasun, R. B. Grosse, "The Reversible Residual Network:
    Backpropagation Without Storing Activations", 2017.

    Examples
    --------
    >>> import math
    >>> import zygote_py as zg
    >>> def step(x, w):
    ...     a, b = x
    ...     a = a + math.sin(w * b)
    ...     return a, b + math.sin(w * a)
    >>> @zg.inverse(step)
    ... def unstep(y, w):
    ...     a, b = y
    ...     b = b - math.sin(w * a)
    ...     return a - math.sin(w * b), b
    >>> @zg.gradient(wrt="w")
    ... def slope(a, b, w, n):
    ...     for _ in range(n):
    ...         a, b = step((a, b), w)
    ...     return a
    >>> slope(0.1, 0.2, 0.1, 3)
    0.68433538984700...
    """
    if isinstance(step, given.Ignored):
        raise refuse(
            f"`{given.name_of(step)}` is ignored: nothing flows through it, and no inverse is needed",
            None,
            "use one of the two",
        )
    if not callable(step):
        raise refuse(f"{step!r} cannot be called", None, "give the inverse of a function: `@inverse(step)`")

    def register(unstep: F) -> F:
        check_form(step, unstep, replace)
        old = given.given_for(step)
        given.give(given.CustomRule("inverse", step, None, unstep) if old is None else replaced(old, inverse=unstep))
        return unstep

    return register


def check_form(step: Callable[..., Any], unstep: object, replace: bool) -> None:
    """Refuse what cannot be the inverse of a step, as far as this is known without the types of the arguments."""
    name, loc = given.name_of(step), given.place_of(unstep)
    own = given.python_function(unstep)
    if not inspect.isfunction(own):
        raise refuse(f"the inverse of `{name}`, {own!r}, is not a Python function", None, "write one")
    what = f"the inverse `{given.name_of(own)}` of `{name}`"
    parameters = list(inspect.signature(own).parameters.values())
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise refuse(f"{what} has the parameter `{parameter}`", loc, "make each parameter positional", "def")
    taken = numba_adapter.parameters_of(given.python_function(step))
    if taken is None and numba_adapter.is_python(step):
        raise refuse(
            f"`{name}` takes any number of arguments, and an inverse is for a function that does not",
            loc,
            "give the inverse of a function with a parameter for each",
            "def",
        )
    if not parameters or taken == []:
        raise refuse(f"`{name if taken == [] else given.name_of(own)}` takes no state", loc, "let it take one", "def")
    if taken is not None and len(parameters) != len(taken):
        count = f"{len(parameters)} parameter{'s' * (len(parameters) != 1)}"
        raise refuse(
            f"{what} has {count}, and `{name}` has {len(taken)}",
            loc,
            "let it take the state after the step, followed by the other parameters of the step",
            "def",
        )
    for mine, other in zip(parameters, taken or (), strict=False):
        if mine.default is not mine.empty and repr(mine.default) != repr(other.default):
            raise refuse(
                f"{what} has another default for `{mine.name}` than `{name}`",
                loc,
                "leave it out, or give it the function's",
                "def",
            )
    old = given.given_for(step)
    if old is not None and old.kind not in ("rule", "inverse"):
        raise refuse(f"`{name}` is a function of the library with a meaning of its own", loc)
    if old is not None and old.inverse is not None and not replace:
        raise refuse(
            f"`{name}` has an inverse already, `{given.name_of(old.inverse)}`{at(given.place_of(old.inverse))}",
            loc,
            "replace it with `@inverse(step, replace=True)`",
            "def",
        )


def at(loc: Loc | None) -> str:
    """Return a location in parentheses, after a space; empty if there is none."""
    return "" if loc is None else f" ({one_line(loc.file)}:{loc.line})"


def check_inverse(step: Callable[..., Any], *args: Any, rtol: float | None = None, atol: float = 1e-12) -> None:
    """Take a step, undo it with the inverse, and compare.

    Parameters
    ----------
    step : callable
        A function that has an inverse. Both are called from Python.
    *args : numbers, arrays and structures of these
        The arguments: the state and what follows it. They are not changed.
    rtol, atol : float
        The tolerance of a number is `atol + rtol * largest`, where `largest` is the largest number in its array. The
        default `rtol` is 1e-9, and 1e-4 in single precision.

    Raises
    ------
    DifferentiationError
        If the state differs from the one before the step. The message names the part, and gives the difference.

    Examples
    --------
    >>> import zygote_py as zg
    >>> def step(x, h):
    ...     return x + h
    >>> @zg.inverse(step)
    ... def unstep(y, h):
    ...     return y + h
    >>> zg.check_inverse(step, 1.0, 0.5)
    Traceback (most recent call last):
        ...
    zygote_py.adjoints.errors.DifferentiationError: ...
    """
    from zygote_py.api.rule_check import check_undone

    found = given.given_for(step)
    if found is None or found.inverse is None:
        raise refuse(f"`{given.name_of(step)}` has no inverse", None, "give it one with `@inverse(step)`")
    check_undone(found, args, rtol, atol)
