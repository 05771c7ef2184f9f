"""The public functions of derivatives in given directions, and in all: `jvp`, `derivative`, `jacobian`, `hessian`, ...

    value, tangent = jvp(lambda x: x * x, (0.5,), (1.0,))
    h = hessian(lambda x: np.sum(x**3))(np.ones(4))

What they give is a `DerivativeFunction` (see `zygote_py.derivative_function`). How each is computed, its form says
(`zygote_py.drivers`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, overload

from zygote_py import numba_adapter
from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.derivative_function import DerivativeFunction, kept_derivative
from zygote_py.drivers.directional import Derivative, Hvp, Pushforward
from zygote_py.drivers.forms import Driver
from zygote_py.drivers.matrices import Diagonal, Hessian, Jacobian
from zygote_py.forms import hashable
from zygote_py.requests import Wrt

if TYPE_CHECKING:
    from zygote_py.sparse import SparseHessian, SparseJacobian


P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
_Mode = Literal["auto", "forward", "reverse"]


class _Decorator(Protocol):
    def __call__(self, f: Callable[P, Any], /) -> DerivativeFunction[P, Any]: ...


class _TripleDecorator(Protocol):
    def __call__(self, f: Callable[P, R], /) -> DerivativeFunction[P, tuple[R, Any, Any]]: ...


def jvp(f: Callable[..., R], args: Any, tangents: Any) -> tuple[R, R]:
    """The value of a function, and how it changes when its arguments change in a given direction, in forward mode.

    Parameters:
        f: a function as for `gradient`; it may return any number, array, tuple, NamedTuple or dataclass.
        args: a tuple with the arguments. That of a function of one parameter may stand without the tuple.
        tangents: a tuple with the change of each argument, of the form, the shape and the dtype of that; None for one
            that does not change, as integers never do. An integer that is the only argument is taken as a float.

    Returns:
        The value and its tangent, which has the form of the value, None in the place of integers and the like. Arrays
        among the arguments are left as they are, also if the function writes to them.

    Raises:
        DifferentiationError: for what cannot be differentiated, and for tangents that are not like their arguments.
        ValueError: for tangents of another shape.

    Example:
        >>> import math
        >>> from zygote_py import jvp
        >>> jvp(lambda x, y: (x * y, math.sin(x)), (0.0, 3.0), (1.0, 0.0))
        ((0.0, 0.0), (3.0, 1.0))

    It may be called in functions that `numba.njit` compiles, and in those that are differentiated.
    """
    found: tuple[R, R] = _pushforward_of(f)(_as_tuple(args), _as_tuple(tangents))
    return found


def pushforward(f: Callable[..., R]) -> DerivativeFunction[[Any, Any], tuple[R, R]]:
    """The function that takes arguments and tangents, and gives the value and its tangent: see `jvp`.

    Example:
        >>> from zygote_py import pushforward
        >>> pushforward(lambda x: x * x)((3.0,), (1.0,))
        (9.0, 6.0)
    """
    return DerivativeFunction(f, Pushforward())


@overload
def derivative(f: Callable[P, Any], wrt: Wrt = 0) -> DerivativeFunction[P, Any]: ...
@overload
def derivative(f: None = None, wrt: Wrt = 0) -> _Decorator: ...
def derivative(f: Callable[..., Any] | None = None, wrt: Wrt = 0) -> Any:
    """The derivative of a function of a number, which may return anything: numbers, arrays, structures of these.

    Parameters:
        f: a function as for `gradient`. Left out, a decorator is returned.
        wrt: the parameter, by name or number: a real number, an integer is taken as a float. Of several, in a tuple,
            there is a tuple of derivatives.

    Returns:
        A function of the same arguments that returns the derivative, in the form of the result, by forward mode.

    Example:
        >>> import numpy as np
        >>> from zygote_py import derivative
        >>> derivative(lambda t: np.array([t, t**2, t**3]))(2.0)
        array([ 1.,  4., 12.])
        >>> derivative(derivative(lambda t: t**3))(2.0)
        12.0
    """
    return _made(f, derivative, Derivative, wrt=wrt)


@overload
def jacobian(
    f: Callable[P, tuple[Any, A]], wrt: Wrt = 0, *, mode: _Mode = "auto", sparsity: None = None, has_aux: Literal[True]
) -> DerivativeFunction[P, tuple[Any, A]]: ...
@overload
def jacobian(
    f: Callable[P, Any], wrt: Wrt = 0, *, mode: _Mode = "auto", sparsity: None = None, has_aux: bool = False
) -> DerivativeFunction[P, Any]: ...
@overload
def jacobian(
    f: Callable[..., Any], wrt: Wrt = 0, *, mode: _Mode = "auto", sparsity: Any, has_aux: bool = False
) -> SparseJacobian: ...
@overload
def jacobian(
    f: None = None, wrt: Wrt = 0, *, mode: _Mode = "auto", sparsity: None = None, has_aux: bool = False
) -> _Decorator: ...
@overload
def jacobian(
    f: None = None, wrt: Wrt = 0, *, mode: _Mode = "auto", sparsity: Any, has_aux: bool = False
) -> Callable[[Callable[..., Any]], SparseJacobian]: ...
def jacobian(
    f: Callable[..., Any] | None = None,
    wrt: Wrt = 0,
    *,
    mode: _Mode = "auto",
    sparsity: Any = None,
    has_aux: bool = False,
) -> Any:
    """The derivatives of all numbers that a function returns.

    Parameters:
        f: a function as for `gradient` that returns real or complex numbers, arrays, or structures of these. Left out,
            a decorator is returned.
        wrt: the parameter or parameters, by name or number: real numbers, arrays of these, or structures.
        mode: "forward" computes columns, several at once; "reverse" computes rows, each of them a gradient; "auto"
            takes reverse mode where there are many more columns than rows.
        sparsity: "detect", or the places of the entries that may be other than zero: a SciPy sparse array, or an array
            of truth values. Then the answer is a sparse array; see `SparseJacobian`.
        has_aux: whether `f` returns a pair, of which the first is to be differentiated. Then there is a pair of its
            derivatives and of the second, for which `f` runs once more.

    Returns:
        A function of the same arguments. For a result of shape `m` and an argument of shape `n` it gives an array of
        shape `m + n`, as in JAX; for structures the structure of the result, with that of the argument in the place of
        each number or array. For several parameters in `wrt` there is a tuple in that place. Arrays among the
        arguments are left as they are, also if the function writes to them.

    Example:
        >>> import numpy as np
        >>> from zygote_py import jacobian
        >>> jacobian(lambda x: x * x[0])(np.array([1.0, 2.0]))
        array([[2., 0.],
               [2., 1.]])
        >>> jacobian(lambda x, y: (x * y, x + y), wrt=(0, 1))(2.0, 3.0)
        ((3.0, 2.0), (1.0, 1.0))
    """
    if sparsity is not None:
        if mode != "auto":
            raise DifferentiationError(f"mode={mode!r} with `sparsity`", hint="leave one of them out")
        _check_no_aux(has_aux)
        return _sparse("SparseJacobian", jacobian, f, wrt, sparsity)
    return _made(f, jacobian, Jacobian, wrt=wrt, mode=mode, has_aux=has_aux)


@overload
def hessian(
    f: Callable[P, tuple[Any, A]], wrt: Wrt = 0, *, sparsity: None = None, has_aux: Literal[True]
) -> DerivativeFunction[P, tuple[Any, A]]: ...
@overload
def hessian(
    f: Callable[P, Any], wrt: Wrt = 0, *, sparsity: None = None, has_aux: bool = False
) -> DerivativeFunction[P, Any]: ...
@overload
def hessian(f: Callable[..., Any], wrt: Wrt = 0, *, sparsity: Any, has_aux: bool = False) -> SparseHessian: ...
@overload
def hessian(f: None = None, wrt: Wrt = 0, *, sparsity: None = None, has_aux: bool = False) -> _Decorator: ...
@overload
def hessian(
    f: None = None, wrt: Wrt = 0, *, sparsity: Any, has_aux: bool = False
) -> Callable[[Callable[..., Any]], SparseHessian]: ...
def hessian(f: Callable[..., Any] | None = None, wrt: Wrt = 0, *, sparsity: Any = None, has_aux: bool = False) -> Any:
    """The second derivatives of a function that returns a real number.

    Parameters:
        f: a function as for `gradient`. Left out, a decorator is returned.
        wrt: the parameter or parameters, by name or number.
        sparsity: "detect", or the places of the entries that may be other than zero: a SciPy sparse array, or an array
            of truth values. Then the answer is a sparse array; see `SparseHessian`.
        has_aux: whether `f` returns a pair, of which the first is to be differentiated. Then there is a pair of the
            Hessian and of the second, for which `f` runs once more.

    Returns:
        A function of the same arguments. For an argument of shape `n` it gives an array of shape `n + n`; for several
        parameters in `wrt`, and for structures, blocks: the structure in the structure. Both halves are the same to the
        last bit. Columns are computed several at once, in forward over reverse mode. Arrays among the arguments are
        left as they are, also if the function writes to them.

    Example:
        >>> import numpy as np
        >>> from zygote_py import hessian
        >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
        array([[4., 2.],
               [2., 0.]])
        >>> hessian(lambda x, y: x * y * y, wrt=(0, 1))(1.0, 2.0)
        ((0.0, 4.0), (4.0, 2.0))

    Source: B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6, 1994.
    """
    if sparsity is not None:
        _check_no_aux(has_aux)
        return _sparse("SparseHessian", hessian, f, wrt, sparsity)
    return _made(f, hessian, Hessian, wrt=wrt, has_aux=has_aux)


@overload
def hessian_diagonal(f: Callable[P, Any], wrt: Wrt = 0) -> DerivativeFunction[P, Any]: ...
@overload
def hessian_diagonal(f: None = None, wrt: Wrt = 0) -> _Decorator: ...
def hessian_diagonal(f: Callable[..., Any] | None = None, wrt: Wrt = 0) -> Any:
    """The second derivatives of a function with respect to each number alone, in the form of the arguments.

    Takes what `hessian` takes. It costs what that costs, but for the memory.

    Example:
        >>> import numpy as np
        >>> from zygote_py import hessian_diagonal
        >>> hessian_diagonal(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
        array([ 6., 12.])
    """
    return _made(f, hessian_diagonal, Diagonal, wrt=wrt)


@overload
def value_gradient_hessian(f: Callable[P, R], wrt: Wrt = 0) -> DerivativeFunction[P, tuple[R, Any, Any]]: ...
@overload
def value_gradient_hessian(f: None = None, wrt: Wrt = 0) -> _TripleDecorator: ...
def value_gradient_hessian(f: Callable[..., Any] | None = None, wrt: Wrt = 0) -> Any:
    """The value, the gradient and the Hessian of a function that returns a real number; see `hessian`.

    Example:
        >>> from zygote_py import value_gradient_hessian
        >>> value_gradient_hessian(lambda x: x**3)(2.0)
        (8.0, 12.0, 12.0)
    """
    return _made(f, value_gradient_hessian, functools.partial(Hessian, with_gradient=True), wrt=wrt)


@overload
def hvp(f: Callable[..., Any], wrt: Wrt = 0) -> DerivativeFunction[..., Any]: ...
@overload
def hvp(f: None = None, wrt: Wrt = 0) -> Callable[[Callable[..., Any]], DerivativeFunction[..., Any]]: ...
def hvp(f: Callable[..., Any] | None = None, wrt: Wrt = 0) -> Any:
    """The product of the Hessian of a function and a vector, which costs a few gradients, whatever their size.

    Parameters:
        f: a function as for `gradient` that returns a real number. Left out, a decorator is returned.
        wrt: the parameter or parameters, by name or number; None for all.

    Returns:
        A function of the same arguments and, behind them, of the vector: of the form of the argument asked for, or a
        tuple of such for several. It gives the derivative of the gradient in that direction, in the same form.

    Example:
        >>> import numpy as np
        >>> from zygote_py import hvp
        >>> hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 0.5]))
        array([6., 6.])

    Source: B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6, 1994.
    """
    return _made(f, hvp, Hvp, wrt=wrt)


def _check_no_aux(has_aux: bool) -> None:
    if has_aux:
        raise DifferentiationError("`has_aux=True` with `sparsity`", hint="let the function return the number alone")


def _made(f: Callable[..., Any] | None, function: Any, form: Callable[..., Driver], **options: Any) -> Any:
    if f is None:
        return functools.partial(function, **options)
    options["wrt"] = hashable(options["wrt"])
    return DerivativeFunction(f, form(**options))


def _sparse(name: str, function: Any, f: Callable[..., Any] | None, wrt: Wrt, sparsity: Any) -> Any:
    from zygote_py import sparse  # which needs SciPy's sparse arrays

    if f is None:
        return functools.partial(function, wrt=wrt, sparsity=sparsity)
    return getattr(sparse, name)(f, wrt, sparsity)


@functools.lru_cache(maxsize=512)
def _pushforward_of(f: Callable[..., Any]) -> DerivativeFunction[..., Any]:
    """What `jvp` calls; of the last functions only, so that lambdas made in a loop do not pile up."""
    return DerivativeFunction(f, Pushforward())


def _as_tuple(values: Any) -> Any:
    return tuple(values) if isinstance(values, list) else values


# ------------------------------------------------------------------------------------------------- in compiled code


def _embed(function: Callable[..., Any], cls: Callable[..., Driver], options: tuple[str, ...] = ("wrt",)) -> None:
    """Let a function that makes derivatives be called in compiled code."""

    def form(given: Mapping[str, Any]) -> Driver:
        return cls(**{name: hashable(value) for name, value in given.items()})

    numba_adapter.embed(
        function, lambda f, given: kept_derivative(f, form(given), given.get("held", 0)), options, form=form
    )


for _function in (jvp, pushforward):
    numba_adapter.embed(
        _function,
        lambda f, given: kept_derivative(f, Pushforward(held=given.get("held", 0)), given.get("held", 0)),
        applied=_function is jvp,
        form=lambda given: Pushforward(),
    )
_embed(derivative, Derivative)
_embed(hvp, Hvp)
_embed(hessian, Hessian, ("wrt", "has_aux"))
_embed(hessian_diagonal, Diagonal)
_embed(value_gradient_hessian, functools.partial(Hessian, with_gradient=True))
_embed(jacobian, Jacobian, ("wrt", "mode", "has_aux"))
