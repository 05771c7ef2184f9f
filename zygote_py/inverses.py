"""Inverses of steps, by which the reverse sweep of a loop walks back, so that the loop stores nothing.

    @zg.inverse(step)                       # step(state, *rest) -> state
    def unstep(state, *rest): ...           # the state before the step

    zg.check_inverse(step, state, *rest)    # raises DifferentiationError if it is not

What loops these are, `zygote_py.adjoints.strategies.reversible_loops` says.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace as replaced
from typing import Any, TypeVar

from zygote_py import given, numba_adapter
from zygote_py.adjoints.errors import refuse
from zygote_py.ir.core import Loc
from zygote_py.ir.text.identifiers import one_line

F = TypeVar("F", bound=Callable[..., Any])


def inverse(step: Callable[..., Any], *, replace: bool = False) -> Callable[[F], F]:
    """Give a step its inverse: loops of such steps store nothing, as their reverse sweep walks back by it.

    Parameters:
        step: a function `step(state, *rest)` that returns the next state, a value of the type of its first parameter:
            a number, an array, or a tuple, a NamedTuple or a frozen dataclass of these. It must not write to its
            arguments and draw no random numbers. It may have a rule by `adjoint`; without one it is differentiated as
            it is.
        replace: take the place of the inverse that `step` has already.

    Returns:
        A decorator for the inverse, which gives it back unchanged. The inverse is a function of the subset that Numba
        compiles. It takes what `step` takes, in the place of the state the one that `step` returned, and returns the
        state before the step.

    Raises:
        DifferentiationError: if the inverse does not take what `step` takes, or if `step` has an inverse already; and
            when a derivative is compiled, if the types do not fit.

    Example:
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

    Source: A. N. Gomez, M. Ren, R. Urtasun, R. B. Grosse, "The Reversible Residual Network: Backpropagation Without
    Storing Activations", 2017.
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
        given.give(given.Given("inverse", step, None, unstep) if old is None else replaced(old, inverse=unstep))
        return unstep

    return register


def check_form(step: Callable[..., Any], unstep: object, replace: bool) -> None:
    """Refuse what cannot be the inverse of a step, as far as that can be told without the types of the arguments."""
    name, loc = given.name_of(step), given.place_of(unstep)
    own = given.python_function(unstep)
    if not inspect.isfunction(own):
        raise refuse(f"the inverse of `{name}`, {own!r}, is no Python function", None, "write one")
    what = f"the inverse `{given.name_of(own)}` of `{name}`"
    parameters = list(inspect.signature(own).parameters.values())
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise refuse(
                f"{what} has the parameter `{parameter}`", loc, "give each parameter a place of its own", "def"
            )
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
            "let it take the state after the step, and behind it what the step takes behind the state",
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
            f"`{name}` has an inverse already, `{given.name_of(old.inverse)}`{_at(given.place_of(old.inverse))}",
            loc,
            "replace it with `@inverse(step, replace=True)`",
            "def",
        )


def _at(loc: Loc | None) -> str:
    return "" if loc is None else f" ({one_line(loc.file)}:{loc.line})"


def check_inverse(step: Callable[..., Any], *args: Any, rtol: float | None = None, atol: float = 1e-12) -> None:
    """Take a step and walk back, and compare.

    Parameters:
        step: a function that has an inverse. Both are called as they are, from Python.
        args: the arguments: the state and what follows it. They are not changed.
        rtol, atol: how far a number may be off: `atol + rtol * largest`, of the largest number in the array that it is
            in; by default `rtol` is 1e-9, for single precision 1e-4.

    Raises:
        DifferentiationError: if the state is not what it was before; it says which part, and by how much it is off.

    Example:
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
    from zygote_py.checking import check_undone

    found = given.given_for(step)
    if found is None or found.inverse is None:
        raise refuse(f"`{given.name_of(step)}` has no inverse", None, "give it one with `@inverse(step)`")
    check_undone(found, args, rtol, atol)
