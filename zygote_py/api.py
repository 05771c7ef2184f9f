"""The public functions: `gradient` and `value_and_gradient`.

    from zygote_py import gradient

    df = gradient(lambda x, y: x * y)
    df(2.0, 3.0)                            # (3.0, 2.0)
    print(df.source(2.0, 3.0))              # the Python source of the gradient

What they give is a `GradientFunction`, which is compiled at the first call for each signature, by Numba's own dispatch,
and is callable from compiled code (see `zygote_py.derivative_function`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, overload

from zygote_py import numba_adapter
from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.derivative_function import DerivativeFunction as GradientFunction
from zygote_py.derivative_function import kept_derivative
from zygote_py.forms import GradientForm, hashable
from zygote_py.requests import Wrt

__all__ = ["GradientFunction", "gradient", "value_and_gradient"]

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


class _Decorator(Protocol):
    def __call__(self, f: Callable[P, Any], /) -> GradientFunction[P, Any]: ...


class _ValueDecorator(Protocol):
    def __call__(self, f: Callable[P, R], /) -> GradientFunction[P, tuple[R, Any]]: ...


class _AuxDecorator(Protocol):
    def __call__(self, f: Callable[P, tuple[R, A]], /) -> GradientFunction[P, tuple[Any, A]]: ...


class _ValueAuxDecorator(Protocol):
    def __call__(self, f: Callable[P, tuple[R, A]], /) -> GradientFunction[P, tuple[tuple[R, A], Any]]: ...


@overload
def gradient(
    f: Callable[P, tuple[Any, A]], *, wrt: Wrt = None, closure: bool = False, has_aux: Literal[True]
) -> GradientFunction[P, tuple[Any, A]]: ...
@overload
def gradient(
    f: Callable[P, Any], *, wrt: Wrt = None, closure: bool = False, has_aux: bool = False
) -> GradientFunction[P, Any]: ...
@overload
def gradient(f: None = None, *, wrt: Wrt = None, closure: bool = False, has_aux: Literal[True]) -> _AuxDecorator: ...
@overload
def gradient(
    f: None = None, *, wrt: Wrt = None, closure: bool = False, has_aux: Literal[False] = False
) -> _Decorator: ...
def gradient(
    f: Callable[..., Any] | None = None, *, wrt: Wrt = None, closure: bool = False, has_aux: bool = False
) -> Any:
    """The function that computes the exact gradient of `f`, a function of numbers and arrays that returns a number.

    Parameters:
        f: a Python function that Numba can compile, plain or decorated with `numba.njit`. Left out, a decorator is
            returned: `@gradient(wrt="x")`.
        wrt: the parameter or parameters to differentiate with respect to, by name or number. By default, all
            parameters. A variable that the function captures, a global or one of the functions around it, may be named
            too, if it holds a float, an array of floats, or a tuple, NamedTuple or frozen dataclass of these.
        closure: whether to give the gradients of all such captured variables as well.
        has_aux: whether `f` returns a pair: the number to be differentiated, and anything else that is to be known of
            the call, numbers, arrays and structures of them, which is passed on and not differentiated.

    Returns:
        A `GradientFunction`. It returns the gradient of the one parameter asked for, or a tuple of gradients, in the
        order of `wrt`, or of the parameters. A gradient has the shape and the dtype of its argument; where the argument
        does not matter it is zero. Integers, truth values and strings have None; but an integer that is the only
        parameter, or named in `wrt`, is taken as a float.

        With `closure`, it returns a pair: what it would return without, and a NamedTuple `Captured` with the gradients
        of the captured variables, of the function and of those that it calls, by name. Where different variables have
        the same name, each has the name of the function that captures it before it, as in `layer_w`.

        With `has_aux`, it returns a pair of what it would return without and of what the function returned beside the
        number. Arrays in that are copies.

        Captured variables are read at each call. In compiled code they are constants, as everywhere in Numba, and their
        gradients are those for the values they had when it was compiled.

        `gradient(f)` may also be written in a function that `numba.njit` compiles, if it is known there which function
        `f` is: a global, an inner function or a lambda, or a compiled function that is an argument. What an inner
        function captures of the compiled function is read where the gradient is called. Where the gradient is passed on
        instead, what it captures must not be assigned to afterwards.

    Raises:
        DifferentiationError: at the first call for the types of its arguments, for what cannot be differentiated.

    Example:
        >>> from zygote_py import gradient
        >>> def pow(x, n):
        ...     r = 1.0
        ...     while n > 0:
        ...         n -= 1
        ...         r *= x
        ...     return r
        >>> gradient(pow, wrt="x")(2.0, 5)
        80.0
        >>> import numpy as np
        >>> w, b = np.ones(3), 0.5
        >>> def model(x):
        ...     return np.sum(w * x) + b
        >>> gradient(model, wrt=("x", "b"))(2.0)
        (3.0, 1.0)
        >>> gradient(model, closure=True)(2.0)
        (3.0, Captured(w=array([2., 2., 2.]), b=1.0))

    Source: M. Innes, "Don't Unroll Adjoint: Differentiating SSA-Form Programs", 2018.
    """
    if f is None:
        return functools.partial(gradient, wrt=wrt, closure=closure, has_aux=has_aux)
    return GradientFunction(f, GradientForm(hashable(wrt), False, closure, has_aux))


@overload
def value_and_gradient(
    f: Callable[P, tuple[R, A]], *, wrt: Wrt = None, closure: bool = False, has_aux: Literal[True]
) -> GradientFunction[P, tuple[tuple[R, A], Any]]: ...
@overload
def value_and_gradient(
    f: Callable[P, R], *, wrt: Wrt = None, closure: bool = False, has_aux: bool = False
) -> GradientFunction[P, tuple[R, Any]]: ...
@overload
def value_and_gradient(
    f: None = None, *, wrt: Wrt = None, closure: bool = False, has_aux: Literal[True]
) -> _ValueAuxDecorator: ...
@overload
def value_and_gradient(
    f: None = None, *, wrt: Wrt = None, closure: bool = False, has_aux: Literal[False] = False
) -> _ValueDecorator: ...
def value_and_gradient(
    f: Callable[..., Any] | None = None, *, wrt: Wrt = None, closure: bool = False, has_aux: bool = False
) -> Any:
    """The function that computes the value of `f` and its gradient together; see `gradient`.

    Returns:
        A `GradientFunction` that returns the pair of the value and what `gradient` with the same options gives; with
        `has_aux` that is `((value, aux), gradient)`.

    Example:
        >>> from zygote_py import value_and_gradient
        >>> value_and_gradient(lambda x: (x * x, x + 1.0), has_aux=True)(3.0)
        ((9.0, 4.0), 6.0)
        >>> value_and_gradient(lambda x, y: x * y)(2.0, 3.0)
        (6.0, (3.0, 2.0))
    """
    if f is None:
        return functools.partial(value_and_gradient, wrt=wrt, closure=closure, has_aux=has_aux)
    return GradientFunction(f, GradientForm(hashable(wrt), True, closure, has_aux))


def _embed(function: Callable[..., Any], *, with_value: bool) -> None:
    def make(f: Any, options: Mapping[str, Any]) -> GradientFunction[..., Any]:
        made, held = form(options), options.get("held", 0)
        if made.closure and held:
            raise DifferentiationError(
                "`closure=True` of a function that captures variables of a compiled function",
                hint="name what it captures: `wrt=('x', 'w')`",
            )
        return kept_derivative(f, made, held)

    def form(options: Mapping[str, Any]) -> GradientForm:
        given = {"wrt": None, "closure": False, "has_aux": False} | dict(options)
        return GradientForm(hashable(given["wrt"]), with_value, bool(given["closure"]), bool(given["has_aux"]))

    numba_adapter.embed(function, make, ("wrt", "closure", "has_aux"), form=form)


_embed(gradient, with_value=False)
_embed(value_and_gradient, with_value=True)
