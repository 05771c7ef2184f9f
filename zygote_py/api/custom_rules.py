"""Custom rules, and functions that are not differentiated.

    @zg.adjoint(f)                          # in place of the derivative that would be generated for f
    def rule(x):
        c = math.cos(x)
        def back(dy):
            return (c * dy,)
        return f(x), back

    zg.check_adjoint(f, 0.5)                # raises DifferentiationError if the rule is wrong

`stop_gradient`, `ignore` and `hook` determine how a value, a function and a gradient are treated. Outside
differentiation, they return the value or call the function.
"""

from __future__ import annotations

import dataclasses
import dis
import inspect
import itertools
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, TypeVar

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.api import inverses
from zygote_py.base import custom_rules as given
from zygote_py.ir import Loc

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def adjoint(
    f: Callable[..., Any], *, inverse: Callable[..., Any] | None = None, replace: bool = False
) -> Callable[[F], F]:
    """Register a custom rule: the derivative of a function, wherever it is called from now on.

    Parameters
    ----------
    f : callable
        Any callable that compiled code can call: a function, plain or decorated with `numba.njit`, of NumPy or of
        another library, a `cfunc`, an intrinsic, or a function of a shared library. It must not write to its arguments.
    inverse : callable, optional
        The inverse of `f`, as for `zygote_py.inverse`, if `f` is a step that can be undone.
    replace : bool
        Whether to replace the rule, and the inverse, that `f` already has.

    Returns
    -------
    callable
        A decorator for the rule, which it returns unchanged.

        The rule is a function of the subset that Numba compiles. It takes the parameters of `f` and returns `(value,
        back)`: the result of `f`, and an inner function of one parameter, the adjoint of the value, which has the
        structure of the value (for a complex number z it is dL/dRe z + i dL/dIm z). The inner function returns a tuple
        with a gradient for each parameter: a number for a number, an array of the same shape for an array, a tuple for
        a tuple, and None where no gradient flows. It may use variables of the rule: numbers, arrays, and tuples of
        these.

    Raises
    ------
    DifferentiationError
        If the rule does not have this form, or if `f` already has a rule; and when a derivative is compiled, if the
        types do not fit. A gradient of another shape than its argument raises ValueError at run time.

    Notes
    -----
    Second derivatives differentiate the rule and the inner function. Forward mode transposes the inner function, which
    must therefore be linear in its parameter and must not branch on it.

    See M. Innes, "Don't Unroll Adjoint: Differentiating SSA-Form Programs", 2018, section 3.2.

    Examples
    --------
    >>> import math
    >>> import zygote_py as zg
    >>> def soft(x):
    ...     return math.log1p(math.exp(x))
    >>> @zg.adjoint(soft)
    ... def rule(x):
    ...     e = math.exp(-abs(x))
    ...     value = max(x, 0.0) + math.log1p(e)
    ...     def back(dy):
    ...         return (dy / (1.0 + e) if x >= 0.0 else dy * e / (1.0 + e),)
    ...     return value, back
    >>> zg.gradient(lambda x: soft(x) ** 2)(0.0)
    0.6931471805599453
    """
    if isinstance(f, given.Ignored):
        raise refuse(
            f"`{given.name_of(f)}` is ignored, and a rule would give it a derivative", None, "use one of the two"
        )
    if not callable(f):
        hint = "give a rule for a function: `@adjoint(f)`"
        if numba_adapter.as_pointer(f) is not f:
            hint = "only compiled code can call it: write a function that does so, and give the rule for that one"
        raise refuse(f"{f!r} cannot be called", None, hint)

    def register(rule: F) -> F:
        give_rule(given.CustomRule("rule", f, rule, inverse), replace=replace)
        return rule

    return register


def give_rule(made: given.CustomRule, *, replace: bool = False) -> None:
    """Register a rule. Raises DifferentiationError if it does not fit its target."""
    _check_rule(made)
    f, old = made.target, given.given_for(made.target)
    if old is not None and old.kind not in ("rule", "inverse"):
        raise refuse(f"`{old.name}` is a function of the library with a meaning of its own", made.loc)
    if old is not None and old.rule is not None and not replace:
        raise refuse(
            f"`{made.name}` has a rule already, `{given.name_of(old.rule)}`{inverses.at(old.loc)}",
            made.loc,
            "replace it with `@adjoint(f, replace=True)`",
            "def",
        )
    if made.inverse is not None:
        inverses.check_form(f, made.inverse, replace)
    elif old is not None:
        made = dataclasses.replace(made, inverse=old.inverse)
    given.give(made)


def _check_rule(made: given.CustomRule) -> None:
    """Check of a rule what can be checked without the types of the arguments."""
    rule = given.python_function(made.rule)
    if not inspect.isfunction(rule):
        raise refuse(f"the rule of `{made.name}`, {rule!r}, is not a Python function", None, "write one")
    parameters = list(inspect.signature(rule).parameters.values())
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            raise refuse(f"{made} has the parameter `{parameter}`", made.loc, "make each parameter positional", "def")
    any_number = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    taken = numba_adapter.parameters_of(given.python_function(made.target))
    if taken is None and numba_adapter.is_python(made.target) and not any_number:
        raise refuse(
            f"`{made.name}` takes any number of arguments, and {made} does not",
            made.loc,
            "let it take what the function takes",
            "def",
        )
    if taken is not None and not any_number:
        most, least = len(taken), len([each for each in taken if each.default is each.empty])
        if numba_adapter.is_python(made.target):
            least = most
        if not least <= len(parameters) <= most:
            count = f"{most}" if least == most else f"{least} to {most}"
            raise refuse(
                f"{made} has {len(parameters)} parameter{'s' * (len(parameters) != 1)}, and `{made.name}` has {count}",
                made.loc,
                "let it take what the function takes",
                "def",
            )
        for own, other in zip(taken, parameters, strict=False):
            if other.default is not other.empty and repr(own.default) != repr(other.default):
                raise refuse(
                    f"{made} has another default for `{other.name}` than `{made.name}`",
                    made.loc,
                    "leave it out, or give it the function's",
                    "def",
                )
    _check_returns(made, rule.__code__, None if any_number else len(parameters))


def _check_returns(made: given.CustomRule, code: CodeType, count: int | None) -> None:
    """Check that a rule makes an inner function of one parameter that returns `count` gradients, and returns pairs.

    `count` is None if it is unknown. What the bytecode does not show is checked when types are known.
    """
    inner = [each for each in code.co_consts if isinstance(each, CodeType) and not each.co_name.endswith("comp>")]
    if not inner:
        raise refuse(
            f"{made} has no inner function to be its pullback",
            made.loc,
            "let it end with `return value, back`, where `back` is an inner function of one parameter",
            "def",
        )
    steps = [each for each in dis.get_instructions(code) if each.opname not in ("CACHE", "NOP", "PUSH_NULL")]
    for before, step in itertools.pairwise(steps):
        if step.opname != "RETURN_VALUE" or before.opname != "BUILD_TUPLE":
            continue
        if before.arg != 2:
            raise refuse(
                f"{made} returns {before.arg} values",
                Loc(code.co_filename, _line(before) or code.co_firstlineno),
                "let it return two: the value, and the pullback",
                "return",
            )
    returned = _returned_functions(steps, inner)
    for each in returned:
        if (
            each.co_argcount != 1
            or each.co_kwonlyargcount
            or each.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        ):
            raise refuse(
                f"the pullback of {made} has {each.co_argcount} parameter{'s' * (each.co_argcount != 1)}",
                Loc(each.co_filename, each.co_firstlineno),
                "let it take one, the adjoint of the value: of a tuple, a tuple of adjoints",
                "def",
            )
        for returned_count, line in _tuples_returned(each):
            if count is not None and returned_count != count:
                raise refuse(
                    f"the pullback of {made} returns {returned_count} gradient{'s' * (returned_count != 1)}, and "
                    f"`{made.name}` has {count} parameter{'s' * (count != 1)}",
                    Loc(each.co_filename, line or each.co_firstlineno),
                    "let it return a gradient, or None, for each",
                    "return",
                )


def _tuples_returned(code: CodeType) -> Iterator[tuple[int, int | None]]:
    """Return the lengths of the tuples that are written in `return` statements of a function, and the lines."""
    steps = [each for each in dis.get_instructions(code) if each.opname not in ("CACHE", "NOP", "PUSH_NULL")]
    for before, step in itertools.pairwise(steps):
        if step.opname != "RETURN_VALUE":
            continue
        if before.opname == "BUILD_TUPLE" and before.arg is not None:
            yield before.arg, _line(before)
        elif before.opname == "LOAD_CONST" and isinstance(before.argval, tuple):
            yield len(before.argval), _line(before)


def _line(step: dis.Instruction) -> int | None:
    positions = step.positions
    return None if positions is None else positions.lineno


def _returned_functions(steps: list[dis.Instruction], inner: list[CodeType]) -> list[CodeType]:
    """Return the inner functions that are returned as the second element of a pair, as far as the bytecode shows it."""
    names = {each.co_name: each for each in inner}
    return [
        names[first.argval]
        for first, pair, last in zip(steps, steps[1:], steps[2:], strict=False)
        if last.opname == "RETURN_VALUE" and pair.opname == "BUILD_TUPLE" and pair.arg == 2
        if first.opname.startswith("LOAD_") and first.argval in names
    ]


def stop_gradient(x: T) -> T:
    """Return `x`, which is a constant for differentiation.

    Parameters
    ----------
    x : number, array or structure
        A number, an array, or a tuple, NamedTuple or dataclass of these.

    Returns
    -------
    number, array or structure
        `x` itself. In a differentiated function an array is copied; writing to the copy, or to `x` while the copy is
        still read, is refused.

    Examples
    --------
    >>> import zygote_py as zg
    >>> zg.gradient(lambda x: x * zg.stop_gradient(x))(3.0)
    3.0
    """
    return x


def hook(x: T, fn: Callable[[Any], Any]) -> T:
    """Return `x`, and call `fn` with its gradient in the reverse sweep.

    Parameters
    ----------
    x : number or array
        The value whose gradient is intercepted.
    fn : callable
        A function of the gradient, in the subset that Numba compiles. Its result replaces the gradient; if it returns
        nothing, the gradient is unchanged.

    Returns
    -------
    number or array
        `x` itself. In a differentiated function an array is copied; writing to the copy, or to `x` while the copy is
        still read, is refused.

    Notes
    -----
    Forward mode has no gradients: an `fn` that returns nothing is not called, a linear one is transposed, so that both
    modes agree, and any other is refused. Second derivatives differentiate `fn`.

    Examples
    --------
    >>> import zygote_py as zg
    >>> zg.gradient(lambda x: zg.hook(x * x, lambda g: min(g, 1.0)) * 5.0)(3.0)
    6.0
    """
    return x


def ignore(f: Callable[..., Any]) -> given.Ignored:
    """Mark a function as not differentiated: its result is constant, and its effects have no derivative.

    Parameters
    ----------
    f : callable
        A function, plain or decorated with `numba.njit`, or another callable that compiled code can call. It may print,
        draw random numbers, and write to arrays through which no derivative flows.

    Returns
    -------
    callable
        An object that is called like `f`, from Python and from compiled code.

    Examples
    --------
    >>> import zygote_py as zg
    >>> @zg.ignore
    ... def scale(x):
    ...     return 2.0 if x > 1.0 else 0.5
    >>> zg.gradient(lambda x: x * scale(x))(3.0)
    2.0
    """
    if not callable(f):
        raise refuse(f"{f!r} cannot be called", None, "give `ignore` a function")
    return f if isinstance(f, given.Ignored) else given.Ignored(f)


def check_adjoint(f: Callable[..., Any], *args: Any, rtol: float | None = None, atol: float = 1e-8) -> None:
    """Compare the custom rule of a function with finite differences.

    The gradients that the rule computes for a random adjoint of the value are compared with central differences of `f`,
    element by element, and so is the value. Where the rule returns None, nothing is compared.

    Parameters
    ----------
    f : callable
        A function that has a custom rule.
    *args : numbers, arrays and tuples of these
        The arguments. They are not changed.
    rtol, atol : float
        The tolerance of a gradient is `atol + rtol * largest`, where `largest` is its largest element. The default
        `rtol` is 1e-6, and 1e-2 in single precision.

    Raises
    ------
    DifferentiationError
        If a gradient differs, has the wrong structure, or is not finite. The message names the argument and the
        element, and gives the difference.

    Examples
    --------
    >>> import math
    >>> import zygote_py as zg
    >>> def cube(x):
    ...     return x * x * x
    >>> @zg.adjoint(cube)
    ... def rule(x):
    ...     def back(dy):
    ...         return (3.0 * x * dy,)
    ...     return cube(x), back
    >>> zg.check_adjoint(cube, 2.0)
    Traceback (most recent call last):
        ...
    zygote_py.adjoints.errors.DifferentiationError: ...
    """
    from zygote_py.api.rule_check import check_rule

    found = given.given_for(f)
    if found is None or found.kind != "rule":
        raise refuse(f"`{given.name_of(f)}` has no rule", None, "give it one with `@adjoint(f)`")
    check_rule(found, args, rtol, atol)


for _kind, _function in (("stop", stop_gradient), ("hook", hook)):
    given.give(given.CustomRule(_kind, _function))  # type: ignore[arg-type]
numba_adapter.make_identities(stop_gradient, hook)
numba_adapter.make_ignored_known(given.Ignored)
