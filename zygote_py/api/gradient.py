"""The public functions `gradient` and `value_and_gradient`.

    from zygote_py import gradient

    df = gradient(lambda x, y: x * y)
    df(2.0, 3.0)                            # (3.0, 2.0)
    print(df.source(2.0, 3.0))              # the Python source of the gradient

They return a `GradientFunction`. Numba's own dispatcher compiles it at the first call for each signature, and compiled
code can call it (see `zygote_py.runtime.compiled_function`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, overload

from zygote_py import numba_adapter
from zygote_py.adjoints import DifferentiationError
from zygote_py.compiler import GradientForm, Wrt, hashable
from zygote_py.runtime import DerivativeFunction as GradientFunction, kept_derivative

__all__ = ["GradientFunction", "gradient", "value_and_gradient"]

Mode = Literal["auto", "forward", "reverse"]
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
    f: Callable[P, tuple[Any, A]],
    *,
    wrt: Wrt = None,
    closure: bool = False,
    has_aux: Literal[True],
    mode: Mode = "auto",
) -> GradientFunction[P, tuple[Any, A]]: ...
@overload
def gradient(
    f: Callable[P, Any], *, wrt: Wrt = None, closure: bool = False, has_aux: bool = False, mode: Mode = "auto"
) -> GradientFunction[P, Any]: ...
@overload
def gradient(
    f: None = None, *, wrt: Wrt = None, closure: bool = False, has_aux: Literal[True], mode: Mode = "auto"
) -> _AuxDecorator: ...
@overload
def gradient(
    f: None = None, *, wrt: Wrt = None, closure: bool = False, has_aux: Literal[False] = False, mode: Mode = "auto"
) -> _Decorator: ...
def gradient(
    f: Callable[..., Any] | None = None,
    *,
    wrt: Wrt = None,
    closure: bool = False,
    has_aux: bool = False,
    mode: Mode = "auto",
) -> Any:
    """Return the function that computes the exact gradient of `f`.

    Parameters
    ----------
    f : callable, optional
        A function of numbers and arrays that returns a real number: a Python function that Numba can compile, plain or
        decorated with `numba.njit`, or another callable (docs/calls.md): a bound method, a `functools.partial`, an
        object with `__call__`, a ufunc. Without `f`, a decorator is returned: `@gradient(wrt="x")`.
    wrt : str, int or tuple of these, optional
        The parameter or parameters to differentiate with respect to, by name or number. The default is all parameters.
        A captured variable, global or of an enclosing function, can be named too, if it is a float, an array of floats,
        or a tuple, NamedTuple or frozen dataclass of these.
    closure : bool
        Whether to return the gradients of all such captured variables as well.
    has_aux : bool
        Whether `f` returns a pair: the number to differentiate, and auxiliary output (numbers, arrays and structures of
        these), which is returned but not differentiated.
    mode : {"auto", "forward", "reverse"}
        How the gradient is computed. "forward" carries a tangent for each input along with each value, and takes
        functions of numbers alone. "auto" chooses it for functions of up to eight numbers (one, if arrays depend on
        them) whose reverse sweep would keep values of each round of a loop, and "reverse" for all others.

    Returns
    -------
    GradientFunction
        A function of the same parameters. It returns the gradient of the one parameter that `wrt` names, or a tuple of
        gradients, in the order of `wrt` or of the parameters. A gradient has the shape and the dtype of its argument,
        and is zero where the argument does not affect the result. The entry of an integer, truth value or string is
        None; but an integer that is the only parameter, or that `wrt` names, is converted to a float.

        With `closure`, it returns a pair: the above, and a NamedTuple `Captured` with the gradients of the captured
        variables of the function and of the functions that it calls, by name. If different variables have the same
        name, each is prefixed with the name of the function that captures it, as in `layer_w`.

        With `has_aux`, it returns a pair of the above and the auxiliary output, in which arrays are copies.

    Raises
    ------
    DifferentiationError
        At the first call with given argument types, if the function cannot be differentiated.

    Notes
    -----
    Captured variables are read at each call. In compiled code they are constants, as everywhere in Numba, and their
    gradients are those at the values that they had during compilation.

    `gradient(f)` can also be called in a function that `numba.njit` compiles, if `f` is known at compile time: a
    global, an inner function or lambda, or a compiled function passed as an argument. The captured variables of an
    inner function are read where the gradient is called. If the gradient is passed on instead, they must not be
    assigned to afterwards.

    The method is that of M. Innes, "Don't Unroll Adjoint: Differentiating SSA-Form Programs", 2018.

    Examples
    --------
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
    """
    if f is None:
        return functools.partial(gradient, wrt=wrt, closure=closure, has_aux=has_aux, mode=mode)
    return GradientFunction(f, GradientForm(hashable(wrt), False, closure, has_aux, mode))


@overload
def value_and_gradient(
    f: Callable[P, tuple[R, A]], *, wrt: Wrt = None, closure: bool = False, has_aux: Literal[True], mode: Mode = "auto"
) -> GradientFunction[P, tuple[tuple[R, A], Any]]: ...
@overload
def value_and_gradient(
    f: Callable[P, R], *, wrt: Wrt = None, closure: bool = False, has_aux: bool = False, mode: Mode = "auto"
) -> GradientFunction[P, tuple[R, Any]]: ...
@overload
def value_and_gradient(
    f: None = None, *, wrt: Wrt = None, closure: bool = False, has_aux: Literal[True], mode: Mode = "auto"
) -> _ValueAuxDecorator: ...
@overload
def value_and_gradient(
    f: None = None, *, wrt: Wrt = None, closure: bool = False, has_aux: Literal[False] = False, mode: Mode = "auto"
) -> _ValueDecorator: ...
def value_and_gradient(
    f: Callable[..., Any] | None = None,
    *,
    wrt: Wrt = None,
    closure: bool = False,
    has_aux: bool = False,
    mode: Mode = "auto",
) -> Any:
    """Return the function that computes the value of `f` together with its gradient.

    Parameters
    ----------
    f, wrt, closure, has_aux, mode
        See `gradient`.

    Returns
    -------
    GradientFunction
        A function that returns the pair of the value and the result of `gradient` with the same options. With
        `has_aux`, it returns `((value, aux), gradient)`.

    Examples
    --------
    >>> from zygote_py import value_and_gradient
    >>> value_and_gradient(lambda x: (x * x, x + 1.0), has_aux=True)(3.0)
    ((9.0, 4.0), 6.0)
    >>> value_and_gradient(lambda x, y: x * y)(2.0, 3.0)
    (6.0, (3.0, 2.0))
    """
    if f is None:
        return functools.partial(value_and_gradient, wrt=wrt, closure=closure, has_aux=has_aux, mode=mode)
    return GradientFunction(f, GradientForm(hashable(wrt), True, closure, has_aux, mode))


def _embed(function: Callable[..., Any], *, with_value: bool) -> None:
    def make(f: Any, options: Mapping[str, Any]) -> GradientFunction[..., Any]:
        made, captured_count = form(options), options.get("captured_count", 0)
        if made.closure and captured_count:
            raise DifferentiationError(
                "`closure=True` of a function that captures variables of a compiled function",
                hint="name a captured variable: `wrt=('x', 'w')`",
            )
        return kept_derivative(f, made, captured_count)

    def form(options: Mapping[str, Any]) -> GradientForm:
        given = {"wrt": None, "closure": False, "has_aux": False, "mode": "auto"} | dict(options)
        closure, has_aux = bool(given["closure"]), bool(given["has_aux"])
        return GradientForm(hashable(given["wrt"]), with_value, closure, has_aux, given["mode"])

    numba_adapter.embed(function, make, ("wrt", "closure", "has_aux", "mode"), form=form)


_embed(gradient, with_value=False)
_embed(value_and_gradient, with_value=True)


def _in_kernels(df: GradientFunction[..., Any]) -> Any:
    from zygote_py.kernels.device_functions import in_kernels  # which imports CUDA

    return in_kernels(df)


numba_adapter.call_in_kernels(GradientFunction, _in_kernels)
