"""The public functions for directional derivatives and matrices: `jvp`, `derivative`, `jacobian`, `hessian`, ...

    value, tangent = jvp(lambda x: x * x, (0.5,), (1.0,))
    h = hessian(lambda x: np.sum(x**3))(np.ones(4))

Those that return a function return a `DerivativeFunction` (see `zygote_py.runtime.compiled_function`).
`zygote_py.drivers` defines how each of them is computed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, overload

from zygote_py import numba_adapter
from zygote_py.adjoints import DifferentiationError
from zygote_py.api.sparse import SparseHessian, SparseJacobian
from zygote_py.compiler import Wrt, hashable
from zygote_py.drivers.directional import Derivative, Hvp, Pushforward
from zygote_py.drivers.forms import Driver
from zygote_py.drivers.matrices import Diagonal, Hessian, Jacobian
from zygote_py.runtime import DerivativeFunction, kept_derivative

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
_Mode = Literal["auto", "forward", "reverse"]


class _Decorator(Protocol):
    def __call__(self, f: Callable[P, Any], /) -> DerivativeFunction[P, Any]: ...


class _TripleDecorator(Protocol):
    def __call__(self, f: Callable[P, R], /) -> DerivativeFunction[P, tuple[R, Any, Any]]: ...


def jvp(f: Callable[..., R], args: Any, tangents: Any) -> tuple[R, R]:
    """Return the value of a function and its tangent (Jacobian-vector product), by forward mode.

    Parameters
    ----------
    f : callable
        A function as for `gradient`. It may return any number, array, tuple, NamedTuple or dataclass, and lists and
        dicts of these.
    args : tuple
        The arguments. For a function of one parameter, the argument itself may be passed.
    tangents : tuple
        The tangent of each argument, with the structure, shapes and dtypes of the argument; None for an argument that
        is held constant, as integers are. An integer that is the only argument is converted to a float.

    Returns
    -------
    value : object
        The value of `f(*args)`.
    tangent : object
        The directional derivative, with the structure of the value and None in place of integers and the like.

    Raises
    ------
    DifferentiationError
        If the function cannot be differentiated, or if a tangent does not have the structure of its argument.
    ValueError
        If a tangent has another shape than its argument.

    Notes
    -----
    Arrays among the arguments are left unchanged, even if the function writes to them. `jvp` can be called in functions
    that `numba.njit` compiles, and in functions that are differentiated.

    Examples
    --------
    >>> import math
    >>> from zygote_py import jvp
    >>> jvp(lambda x, y: (x * y, math.sin(x)), (0.0, 3.0), (1.0, 0.0))
    ((0.0, 0.0), (3.0, 1.0))
    """
    found: tuple[R, R] = _pushforward_of(f)(_as_tuple(args), _as_tuple(tangents))
    return found


def pushforward(f: Callable[..., R]) -> DerivativeFunction[[Any, Any], tuple[R, R]]:
    """Return the function from arguments and tangents to the value and its tangent.

    Parameters
    ----------
    f : callable
        A function as for `jvp`.

    Returns
    -------
    callable
        A function of `args` and `tangents`, which `jvp` describes along with the result.

    Examples
    --------
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
    """Return the derivative of a function of a real number.

    Parameters
    ----------
    f : callable, optional
        A function as for `gradient`. It may return numbers, arrays, and structures of these. Without `f`, a decorator
        is returned.
    wrt : str, int or tuple of these
        The parameter, by name or number. It is a real number; an integer is converted to a float. For a tuple of
        parameters, a tuple of derivatives is computed.

    Returns
    -------
    DerivativeFunction
        A function of the same parameters that returns the derivative, with the structure of the result of `f`. It is
        computed by forward mode.

    Examples
    --------
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
    """Return the function that computes the Jacobian of `f`.

    Parameters
    ----------
    f : callable, optional
        A function as for `gradient` that returns real or complex numbers, arrays, or structures of these. Without `f`,
        a decorator is returned.
    wrt : str, int or tuple of these
        The parameter or parameters, by name or number: real numbers, arrays of real numbers, or structures of these.
    mode : {"auto", "forward", "reverse"}
        "forward" computes columns, several at once. "reverse" computes rows, each of them a gradient. "auto" selects
        reverse mode if there are many more columns than rows.
    sparsity : str or array of shape (m, n), optional
        "detect", or the positions of the entries that may be nonzero, as a SciPy sparse array or an array of truth
        values. The result is a sparse array then; see `SparseJacobian`.
    has_aux : bool
        Whether `f` returns a pair of which only the first element is differentiated. The result is then a pair of its
        Jacobian and the second element, for which `f` runs once more.

    Returns
    -------
    DerivativeFunction
        A function of the same parameters. For a result of shape `m` and an argument of shape `n`, it returns an array
        of shape `m + n`, as in JAX. For structures, it returns the structure of the result, with that of the argument
        in place of each number or array, and a tuple in that place if `wrt` names several parameters. Arrays among the
        arguments are left unchanged, even if the function writes to them.

    Raises
    ------
    DifferentiationError
        At the first call with given argument types, if the function cannot be differentiated.

    Examples
    --------
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
        return _sparse(SparseJacobian, jacobian, f, wrt, sparsity, has_aux)
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
    """Return the function that computes the Hessian of `f`.

    Parameters
    ----------
    f : callable, optional
        A function as for `gradient` that returns a real number. Without `f`, a decorator is returned.
    wrt : str, int or tuple of these
        The parameter or parameters, by name or number.
    sparsity : str or array of shape (n, n), optional
        "detect", or the positions of the entries that may be nonzero, as a SciPy sparse array or an array of truth
        values. The result is a sparse array then; see `SparseHessian`.
    has_aux : bool
        Whether `f` returns a pair of which only the first element is differentiated. The result is then a pair of its
        Hessian and the second element, for which `f` runs once more.

    Returns
    -------
    DerivativeFunction
        A function of the same parameters. For an argument of shape `n`, it returns an array of shape `n + n`; for
        several parameters in `wrt` and for structures, blocks: the structure nested in the structure. The result is
        symmetric to the last bit. Arrays among the arguments are left unchanged, even if the function writes to them.

    Raises
    ------
    DifferentiationError
        At the first call with given argument types, if the function cannot be differentiated.

    Notes
    -----
    Columns are computed several at once, in forward over reverse mode [1]_.

    .. [1] B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6, 1994.

    Examples
    --------
    >>> import numpy as np
    >>> from zygote_py import hessian
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    >>> hessian(lambda x, y: x * y * y, wrt=(0, 1))(1.0, 2.0)
    ((0.0, 4.0), (4.0, 2.0))
    """
    if sparsity is not None:
        return _sparse(SparseHessian, hessian, f, wrt, sparsity, has_aux)
    return _made(f, hessian, Hessian, wrt=wrt, has_aux=has_aux)


@overload
def hessian_diagonal(f: Callable[P, Any], wrt: Wrt = 0) -> DerivativeFunction[P, Any]: ...
@overload
def hessian_diagonal(f: None = None, wrt: Wrt = 0) -> _Decorator: ...
def hessian_diagonal(f: Callable[..., Any] | None = None, wrt: Wrt = 0) -> Any:
    """Return the function that computes the diagonal of the Hessian of `f`.

    Parameters
    ----------
    f, wrt
        See `hessian`.

    Returns
    -------
    DerivativeFunction
        A function of the same parameters that returns the second derivative with respect to each number, with the
        structure of the argument. It takes as long as `hessian`, but less memory.

    Examples
    --------
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
    """Return the function that computes the value, the gradient and the Hessian of `f` together.

    Parameters
    ----------
    f, wrt
        See `hessian`.

    Returns
    -------
    DerivativeFunction
        A function of the same parameters that returns `(value, gradient, hessian)`.

    Examples
    --------
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
    """Return the function that computes products of the Hessian of `f` with vectors.

    Parameters
    ----------
    f : callable, optional
        A function as for `gradient` that returns a real number. Without `f`, a decorator is returned.
    wrt : str, int or tuple of these, optional
        The parameter or parameters, by name or number; None for all.

    Returns
    -------
    DerivativeFunction
        A function of the same parameters, followed by the vector, which has the structure of the argument, or is a
        tuple of such for several parameters. It returns the derivative of the gradient in that direction, with the same
        structure.

    Raises
    ------
    DifferentiationError
        At the first call with given argument types, if the function cannot be differentiated.

    Notes
    -----
    A product costs a few gradients, whatever the size of the vector [1]_.

    .. [1] B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6, 1994.

    Examples
    --------
    >>> import numpy as np
    >>> from zygote_py import hvp
    >>> hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 0.5]))
    array([6., 6.])
    """
    return _made(f, hvp, Hvp, wrt=wrt)


def _made(f: Callable[..., Any] | None, function: Any, form: Callable[..., Driver], **options: Any) -> Any:
    if f is None:
        return functools.partial(function, **options)
    options["wrt"] = hashable(options["wrt"])
    return DerivativeFunction(f, form(**options))


def _sparse(
    form: Callable[..., Any], function: Any, f: Callable[..., Any] | None, wrt: Wrt, sparsity: Any, has_aux: bool
) -> Any:
    if has_aux:
        raise DifferentiationError("`has_aux=True` with `sparsity`", hint="let the function return the number alone")
    if f is None:
        return functools.partial(function, wrt=wrt, sparsity=sparsity)
    return form(f, wrt, sparsity)


@functools.lru_cache(maxsize=512)
def _pushforward_of(f: Callable[..., Any]) -> DerivativeFunction[..., Any]:
    """Return the function that `jvp` calls. The cache is limited, so that lambdas made in a loop do not accumulate."""
    return DerivativeFunction(f, Pushforward())


def _as_tuple(values: Any) -> Any:
    return tuple(values) if isinstance(values, list) else values


# ------------------------------------------------------------------------------------------------- in compiled code


def _embed(function: Callable[..., Any], cls: Callable[..., Driver], options: tuple[str, ...] = ("wrt",)) -> None:
    """Register a function that makes derivatives, so that it can be called in compiled code."""

    def form(given: Mapping[str, Any]) -> Driver:
        return cls(**{name: hashable(value) for name, value in given.items()})

    numba_adapter.embed(
        function, lambda f, given: kept_derivative(f, form(given), given.get("captured_count", 0)), options, form=form
    )


for _function in (jvp, pushforward):
    numba_adapter.embed(
        _function,
        lambda f, given: kept_derivative(
            f, Pushforward(captured_count=given.get("captured_count", 0)), given.get("captured_count", 0)
        ),
        applied=_function is jvp,
        form=lambda given: Pushforward(),
    )
_embed(derivative, Derivative)
_embed(hvp, Hvp)
_embed(hessian, Hessian, ("wrt", "has_aux"))
_embed(hessian_diagonal, Diagonal)
_embed(value_gradient_hessian, functools.partial(Hessian, with_gradient=True))
_embed(jacobian, Jacobian, ("wrt", "mode", "has_aux"))
