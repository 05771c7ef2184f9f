"""Functions of vectors with derivatives, in the form that SciPy's solvers take.

    objective = scipy_objective(f, x0)
    found = scipy.optimize.minimize(objective, objective.x0, jac=True, hess=objective.hess, method="trust-exact")
    objective.unflatten(found.x)            # with the structure of x0

The objects returned here have no mutable state: nothing is kept from one call for the next. Captured variables may
change between calls, and threads may share an object. SciPy itself is not imported.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.api.directions import hessian, hvp, jacobian
from zygote_py.api.gradient import value_and_gradient
from zygote_py.compiler import Wrt, expanded, hashable, star_of
from zygote_py.drivers.vectors import Flat, OfVector, Weighted
from zygote_py.ir import Loc
from zygote_py.runtime import DerivativeFunction, Layout, Vector

__all__ = [
    "ScipyEquations",
    "ScipyObjective",
    "ScipyOde",
    "ScipyResiduals",
    "scipy_objective",
    "scipy_ode",
    "scipy_residuals",
    "scipy_root",
]

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def scipy_objective(
    f: Callable[..., Any], x0: Any = None, *, wrt: Wrt = 0, constants: Mapping[str, Any] | None = None
) -> ScipyObjective:
    """Return a function of a vector with gradient and Hessian, for `scipy.optimize.minimize`.

    Parameters
    ----------
    f : callable
        A function that returns a number, such as `f(x, *args)`. SciPy's `args=` are passed as its further arguments, in
        order. Captured variables are read at each call.
    x0 : array, float or structure, optional
        The starting point, which also defines the structure of the argument of `f`: a vector, a float, an array of any
        shape, or a tuple, NamedTuple or frozen dataclass of these. Integers, strings and None in a structure are
        constants; arrays and lists of integers, and a single integer, are converted to floats. By default, `f` takes a
        vector.
    wrt : str, int or tuple of these
        The parameter that varies, by name or number. For several, `x0` is a tuple with one entry for each.
    constants : dict of str to object, optional
        Values of further parameters, by name.

    Returns
    -------
    ScipyObjective
        An object that returns the value and the gradient when called, as `jac=True` expects. Its `.hess` and `.hessp`
        are those of `minimize`; `.x0` is the starting vector, of shape `(n,)`, and `.unflatten` converts a vector to
        the structure of `x0`. The vector contains the floats in the order of items and fields, arrays in row-major
        order.

    Raises
    ------
    DifferentiationError
        If `x0` contains complex numbers or values that cannot vary; at the first call, if the function cannot be
        differentiated or does not return a number.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.optimize import minimize
    >>> from zygote_py import scipy_objective
    >>> def rosenbrock(x):
    ...     return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    >>> objective = scipy_objective(rosenbrock)
    >>> found = minimize(objective, np.zeros(3), jac=True, hess=objective.hess, method="trust-exact")
    >>> np.round(found.x, 3)
    array([1., 1., 1.])
    """
    return ScipyObjective(f, x0, wrt, constants)


def scipy_residuals(
    f: Callable[..., Any], x0: Any = None, *, wrt: Wrt = 0, constants: Mapping[str, Any] | None = None
) -> ScipyResiduals:
    """Return a vector-valued function of a vector with its Jacobian, for `scipy.optimize.least_squares`.

    Parameters
    ----------
    f : callable
        A function that returns numbers: an array of any shape, a number, or a tuple, NamedTuple, frozen dataclass or
        list of these. They are concatenated in this order, arrays in row-major order.
    x0, wrt, constants
        See `scipy_objective`.

    Returns
    -------
    ScipyResiduals
        An object that returns the vector of residuals, of shape `(m,)`, when called. `.jac` is the Jacobian, of shape
        `(m, n)`. `.hess(x, v)`, the Hessian of the sum of the residuals weighted by `v`, is what
        `scipy.optimize.NonlinearConstraint` takes.

    Raises
    ------
    DifferentiationError
        See `scipy_objective`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.optimize import least_squares
    >>> from zygote_py import scipy_residuals
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> y = 3.0 * np.exp(-2.0 * t)
    >>> residuals = scipy_residuals(lambda p, t, y: p[0] * np.exp(-p[1] * t) - y, (1.0, 1.0))
    >>> found = least_squares(residuals, residuals.x0, jac=residuals.jac, args=(t, y))
    >>> np.round(found.x, 6)
    array([3., 2.])
    """
    return ScipyResiduals(f, x0, wrt, constants)


def scipy_root(
    f: Callable[..., Any], x0: Any = None, *, wrt: Wrt = 0, constants: Mapping[str, Any] | None = None
) -> ScipyEquations:
    """Return a system of equations with its Jacobian, for `scipy.optimize.root`.

    Parameters
    ----------
    f : callable
        A function that returns as many numbers as there are unknowns, in a structure as for `scipy_residuals`.
    x0, wrt, constants
        See `scipy_objective`.

    Returns
    -------
    ScipyEquations
        An object that returns the vector, of shape `(n,)`, and the Jacobian, of shape `(n, n)`, when called, as
        `jac=True` expects. `.fun` and `.jac` return one of them, which takes less time if SciPy requests few Jacobians.

    Raises
    ------
    DifferentiationError
        See `scipy_objective`; and if the numbers of equations and of unknowns differ.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.optimize import root
    >>> from zygote_py import scipy_root
    >>> equations = scipy_root(lambda x: [x[0] ** 2 + x[1] ** 2 - 2.0, x[0] - x[1]])
    >>> found = root(equations.fun, [2.0, 0.5], jac=equations.jac)
    >>> np.round(found.x, 6)
    array([1., 1.])
    """
    return ScipyEquations(f, x0, wrt, constants)


def scipy_ode(f: Callable[..., Any], y0: Any = None, *, constants: Mapping[str, Any] | None = None) -> ScipyOde:
    """Return the right-hand side of a differential equation with its Jacobian, for `scipy.integrate.solve_ivp`.

    Parameters
    ----------
    f : callable
        A function `f(t, y, *args)` that returns the derivative of `y` with respect to `t`: as many numbers as `y` has,
        in an array, tuple, NamedTuple, frozen dataclass or list.
    y0 : array, float or structure, optional
        The initial state, which also defines the structure of `y`, as `x0` does in `scipy_objective`.
    constants : dict of str to object, optional
        Values of further parameters, by name.

    Returns
    -------
    ScipyOde
        An object that returns the derivative, of shape `(n,)`, when called with `t` and a vector. `.jac` is the
        Jacobian with respect to `y`, of shape `(n, n)`, for the implicit methods. `.y0` is the initial vector.

    Raises
    ------
    DifferentiationError
        See `scipy_objective`; and if the derivative has another size than `y`.

    Examples
    --------
    >>> from scipy.integrate import solve_ivp
    >>> from zygote_py import scipy_ode
    >>> ode = scipy_ode(lambda t, y, mu: (y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]))
    >>> found = solve_ivp(ode, (0.0, 1000.0), [2.0, 0.0], jac=ode.jac, args=(1000.0,), method="Radau")
    >>> found.success
    True
    """
    return ScipyOde(f, y0, constants)


class _Function:
    """A function of a vector: how its arguments are assembled, and its derivatives."""

    def __init__(
        self, f: Callable[..., Any], x0: Any, wrt: Wrt, constants: Mapping[str, Any] | None, name: str = "x0"
    ) -> None:
        self._f = f
        self._wrt = hashable(wrt)
        self._constants = dict(constants or {})
        self._arguments = _Arguments(f, self._wrt, self._constants)
        several = isinstance(self._wrt, tuple)
        if several and (not isinstance(x0, tuple) or len(x0) != len(self._wrt)):
            raise refuse(
                f"wrt={self._wrt!r} names {len(self._wrt)} parameters, and `{name}` is {x0!r}",
                self._arguments.loc,
                hint=f"pass for `{name}` a tuple with one entry for each",
            )
        start = tuple(map(_as_floats, x0)) if several else _as_floats(x0)
        self._layout: Layout | None = None
        if start is not None:
            given = Layout(start, self._arguments.loc, name)
            start = given.unflatten(given.flatten(start))  # who gave the arrays may write to them
            self._layout = Layout(start, self._arguments.loc, name)
        self._is_vector = start is None or (
            isinstance(start, np.ndarray) and start.ndim == 1 and start.dtype == np.float64
        )
        self._made: dict[tuple[str, int], DerivativeFunction[..., Any]] = {}

    def __reduce__(self) -> Any:
        return type(self), (self._f, self._structure, self._wrt, self._constants)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {getattr(self._f, '__qualname__', self._f)}>"

    def flatten(self, structure: Any) -> Vector:
        """Return the vector of a structure like `x0`; a vector is returned as it is."""
        return (self._layout or Layout(_as_floats(structure), self._arguments.loc)).flatten(structure)

    def unflatten(self, x: Any) -> Any:
        """Return the structure of a vector, such as SciPy's result."""
        vector = self._vector(x)
        return vector if self._layout is None else self._layout.unflatten(vector)

    @property
    def _structure(self) -> Any:
        return None if self._layout is None else self._layout.structure

    @property
    def _start(self) -> Vector:
        if self._layout is None:
            raise AttributeError(f"{self!r} was made without values to start from")
        return self._layout.flatten(self._layout.structure)

    def _vector(self, x: Any, name: str = "x", size: int | None = None) -> Vector:
        """Return a copy of a vector, which must have this size, or that of the structure."""
        if np.iscomplexobj(x):
            raise refuse(f"`{name}` is complex", self._arguments.loc, hint="take real and imaginary parts as floats")
        vector = np.array(x, np.float64, ndmin=1)
        expected = size if size is not None else vector.size if self._layout is None else self._layout.size
        if vector.shape != (expected,):
            raise refuse(
                f"`{name}` has the shape {np.shape(x)}, not ({expected},)",
                self._arguments.loc,
                hint="pass a vector, such as `flatten` gives for a structure",
            )
        return vector

    def _call(self, x: Any, args: tuple[Any, ...]) -> list[Any]:
        """Return all arguments of the function, or of the function of the vector and the structure."""
        vector, others = self._vector(x), self._arguments.others(args)
        if not self._is_vector:
            return [vector, self._structure, *others]
        others.insert(self._arguments.numbers[0], vector)
        return others

    def _evaluated(self, kind: str, x: Any, args: tuple[Any, ...], *more: Any) -> Any:
        """Return a derivative of the function at a vector; `more` are arguments of the derivative only."""
        arguments = self._call(x, args)
        return self._derived(kind, arguments)(*arguments, *more)

    def _derived(self, kind: str, arguments: list[Any]) -> DerivativeFunction[..., Any]:
        """Return a derivative of the function for this number of arguments, with respect to the vector."""
        made = self._made.get((kind, len(arguments)))
        if made is None:
            f, numbers = self._f, self._arguments.numbers
            if star_of(f):
                f = expanded(f, len(arguments) if self._is_vector else len(arguments) - 2 + len(numbers))
            wrt = numbers[0]
            if not self._is_vector:
                f, wrt = DerivativeFunction(f, OfVector(places=numbers, several=isinstance(self._wrt, tuple))), 0
            made = self._made[kind, len(arguments)] = _MAKE[kind](f, wrt)
        return made


def _flat(f: Callable[..., Any]) -> DerivativeFunction[..., Any]:
    return DerivativeFunction(f, Flat())


_MAKE: dict[str, Callable[[Any, Any], DerivativeFunction[..., Any]]] = {
    "value": lambda f, wrt: value_and_gradient(f, wrt=()),
    "value and gradient": lambda f, wrt: value_and_gradient(f, wrt=wrt),
    "Hessian": hessian,
    "product": hvp,
    "vector": lambda f, wrt: _flat(f),
    "Jacobian": lambda f, wrt: jacobian(_flat(f), wrt),
    "square Jacobian": lambda f, wrt: jacobian(_flat(f), wrt, mode="forward"),  # in reverse it would cost more
    "weighted": lambda f, wrt: hessian(DerivativeFunction(_flat(f), Weighted()), wrt),
}


class ScipyObjective(_Function):
    """A function of a vector with gradient and Hessian, made by `scipy_objective`."""

    def __call__(self, x: Any, /, *args: Any) -> tuple[float, Vector]:
        """Return the value and the gradient, of shape `(n,)`."""
        value, gradient = self._evaluated("value and gradient", x, args)
        return float(value), gradient

    @property
    def x0(self) -> Vector:
        """The starting vector, of shape `(n,)`."""
        return self._start

    def fun(self, x: Any, /, *args: Any) -> Value:
        """Return the value. It can be unpacked into value and gradient, as SciPy does for `jac=True`.

        The gradient is computed when the value is unpacked. Raises ValueError if the function returns another value by
        then because something in `args` or a captured variable has changed.
        """
        copy = np.array(x)  # SciPy may write to its own

        def compute() -> float:
            return float(self._evaluated("value", copy, args)[0])

        value = compute()

        def gradient() -> Vector:
            now = compute()  # by the same code, which rounds alike
            if not math.isclose(now, value, rel_tol=1e-9) and not (math.isnan(now) and math.isnan(value)):
                raise ValueError(
                    f"{self!r} gives {now} where it gave {value}: its gradient would be another one's; call it itself, "
                    "which gives both at once"
                )
            return self(copy, *args)[1]

        return Value(value, gradient)

    def jac(self, x: Any, /, *args: Any) -> Vector:
        """Return the gradient, of shape `(n,)`."""
        return self(x, *args)[1]

    def hess(self, x: Any, /, *args: Any) -> Matrix:
        """Return the Hessian, of shape `(n, n)`."""
        found: Matrix = self._evaluated("Hessian", x, args)
        return found

    def hessp(self, x: Any, p: Any, /, *args: Any) -> Vector:
        """Return the product of the Hessian and a vector, of shape `(n,)`."""
        arguments = self._call(x, args)
        direction = self._vector(p, "p", np.size(x))
        found: Vector = self._derived("product", arguments)(*arguments, direction)
        return found


class Value(float):
    """A float that can be unpacked into its value and the gradient."""

    _gradient: Callable[[], Vector]

    def __new__(cls, value: Any, gradient: Callable[[], Vector]) -> Value:
        made = super().__new__(cls, value)
        made._gradient = gradient
        return made

    def __iter__(self) -> Iterator[Any]:
        return iter((self[0], self[1]))

    def __getitem__(self, number: int) -> Any:
        if number not in (0, 1):
            raise IndexError(number)
        return self._gradient() if number else float(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return float, (float(self),)


class _VectorFunction(_Function):
    """A vector-valued function of a vector; a square one has as many components as variables."""

    _square = False

    def _components(self, x: Any, args: tuple[Any, ...]) -> Vector:
        found = np.array(self._evaluated("vector", x, args))
        self._check(found.size, np.size(x))
        return found

    def _jacobian(self, x: Any, args: tuple[Any, ...]) -> Matrix:
        found: Matrix = self._evaluated("square Jacobian" if self._square else "Jacobian", x, args)
        self._check(len(found), np.size(x))
        return found

    def _check(self, count: int, size: int) -> None:
        if self._square and count != size:
            raise refuse(
                f"the function has {count} components, and {size} variables",
                self._arguments.loc,
                hint="return one number for each variable; for `least_squares`, use `scipy_residuals`",
            )


class ScipyResiduals(_VectorFunction):
    """A vector-valued function of a vector with its Jacobian, made by `scipy_residuals`."""

    def __call__(self, x: Any, /, *args: Any) -> Any:
        """Return the vector of all residuals, of shape `(m,)`."""
        return self.fun(x, *args)

    @property
    def x0(self) -> Vector:
        """The starting vector, of shape `(n,)`."""
        return self._start

    def fun(self, x: Any, /, *args: Any) -> Vector:
        """Return the vector of all residuals, of shape `(m,)`."""
        return self._components(x, args)

    def jac(self, x: Any, /, *args: Any) -> Matrix:
        """Return the Jacobian, of shape `(m, n)`."""
        return self._jacobian(x, args)

    def hess(self, x: Any, v: Any, /, *args: Any) -> Matrix:
        """Return the Hessian of the sum of all residuals weighted by `v`, of shape `(n, n)`."""
        found: Matrix = self._evaluated("weighted", x, args, np.array(v, np.float64, ndmin=1))
        return found


class ScipyEquations(ScipyResiduals):
    """A system of equations with its Jacobian, made by `scipy_root`."""

    _square = True

    def __call__(self, x: Any, /, *args: Any) -> tuple[Vector, Matrix]:
        """Return the vector that should be zero, of shape `(n,)`, and the Jacobian, of shape `(n, n)`."""
        jacobian = self.jac(x, *args)  # first, as `fun` may write to `args`
        return self.fun(x, *args), jacobian


class ScipyOde(_VectorFunction):
    """The right-hand side of a differential equation with its Jacobian, made by `scipy_ode`."""

    _square = True

    def __init__(self, f: Callable[..., Any], y0: Any, constants: Mapping[str, Any] | None) -> None:
        super().__init__(f, y0, 1, constants, "y0")

    def __reduce__(self) -> Any:
        return type(self), (self._f, self._structure, self._constants)

    def __call__(self, t: float, y: Any, /, *args: Any) -> Vector:
        """Return the derivative of the state, of shape `(n,)`."""
        return self.fun(t, y, *args)

    @property
    def y0(self) -> Vector:
        """The initial vector, of shape `(n,)`."""
        return self._start

    def fun(self, t: float, y: Any, /, *args: Any) -> Vector:
        """Return the derivative of the state, of shape `(n,)`."""
        return self._components(y, (float(t), *args))

    def jac(self, t: float, y: Any, /, *args: Any) -> Matrix:
        """Return the Jacobian with respect to the state, of shape `(n, n)`."""
        return self._jacobian(y, (float(t), *args))


class _Arguments:
    """The parameters of a function: those that vary, those that are constant, and the others, passed at each call."""

    def __init__(self, f: Callable[..., Any], wrt: Any, constants: Mapping[str, Any]) -> None:
        """Raises DifferentiationError if `f` is not a function, or if a name is not one of its parameters."""
        func = numba_adapter.py_func_of(f)
        if isinstance(f, DerivativeFunction):
            parameters = dict(f._request.signature.parameters)
            func = f._request.func
        elif inspect.isfunction(func):
            parameters = dict(inspect.signature(func).parameters)
        else:
            raise refuse(f"`{f!r}` is not a Python function", hint="write a function or a lambda that calls it")
        self.loc = Loc(func.__code__.co_filename, func.__code__.co_firstlineno)
        self._star = bool(star_of(f))
        self._parameters = [each for each in parameters.values() if each.kind is not each.VAR_POSITIONAL]
        self._names = [each.name for each in self._parameters]
        self.numbers = tuple(map(self._number, wrt if isinstance(wrt, tuple) else (wrt,)))
        known = {self._number(name): value for name, value in constants.items()}
        if len({*self.numbers, *known}) < len(self.numbers) + len(known):
            raise refuse("a parameter is named twice in `wrt` and `constants`", self.loc, hint="name it once")
        self._constant = known

    def others(self, given: tuple[Any, ...]) -> list[Any]:
        """Return the arguments for all parameters that do not vary; SciPy passes those in `given`."""
        rest = list(given)
        found = []
        for number, parameter in enumerate(self._parameters):
            if number in self.numbers:
                continue
            if number in self._constant:
                found.append(self._constant[number])
            elif rest:
                found.append(rest.pop(0))
            elif parameter.default is not parameter.empty:
                found.append(parameter.default)
            else:
                raise refuse(
                    f"the argument `{parameter.name}` is missing", self.loc, hint="pass it in `args`, or in `constants`"
                )
        if rest and not self._star:
            raise refuse(f"{len(rest)} arguments too many in `args`", self.loc, hint=self._hint())
        return found + rest

    def _number(self, name: Any) -> int:
        if isinstance(name, str) and name in self._names:
            return self._names.index(name)
        count = len(self._names)
        if isinstance(name, int | np.integer) and not isinstance(name, bool) and -count <= name < count:
            return int(name) % count
        raise refuse(f"`{name}` is not a parameter of the function", self.loc, hint=self._hint())

    def _hint(self) -> str:
        return f"its parameters are {', '.join(self._names)}" if self._names else "it has no parameters"


def _as_floats(x0: Any) -> Any:
    """Convert integers to floats, and lists to arrays."""
    if isinstance(x0, list) or (isinstance(x0, np.ndarray) and x0.dtype.kind in "iu"):
        made = np.array(x0)
        return made.astype(np.float64) if made.dtype.kind in "iuf" else made
    return float(x0) if isinstance(x0, int | np.integer) and not isinstance(x0, bool) else x0
