"""Implicit functions: derivatives of what a solver returns by the implicit function theorem.

    @zg.implicit(lambda x, a: x**3 + a * x - 1.0)           # the residual: 0 where x is the solution
    def root(a): ...                                        # bisection, or any other way to find it

    zg.gradient(root)(2.0)                                  # -x / (3 x^2 + a)

The rule that is registered for the solver calls it, and its pullback is a driver (`zygote_py.drivers.implicit`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.api.custom_rules import give_rule
from zygote_py.base import OURS, captured, custom_rules as given
from zygote_py.compiler.transforms import applying
from zygote_py.drivers.implicit import Adjoint, FlatSolution, Gradients, LinearSolution, MixedGradients, Residual
from zygote_py.ir import identifier

F = TypeVar("F", bound=Callable[..., Any])


def implicit(
    residual: Callable[..., Any] | None = None,
    *,
    fixed_point: Callable[..., Any] | None = None,
    minimum_of: Callable[..., Any] | None = None,
    linear_solve: Callable[..., Any] | None = None,
    check: float | None = None,
) -> Callable[[F], F]:
    """Differentiate what a solver returns by the implicit function theorem, and not the steps of the solver.

    Exactly one of `residual`, `fixed_point` and `minimum_of` says what the solution satisfies. That function takes the
    solution first, and then the arguments of the solver, in their order. Whatever the solver does to find the solution
    (comparisons, iterations, calls of other libraries) is not differentiated.

    Parameters
    ----------
    residual : callable, optional
        `residual(x, *args)` is zero where x is the solution. It has the structure and the shapes of x.
    fixed_point : callable, optional
        `g(x, *args)` with x = g(x, *args).
    minimum_of : callable, optional
        `h(x, *args)`, a real number, of which x is a minimum (or any other stationary point).
    linear_solve : callable, optional
        `linear_solve(matvec, b)` returns v with `matvec(v) = b`, for a vector b; `matvec` multiplies a vector by the
        Jacobian matrix of the residual, or by its transpose, which are never formed. It may also take the matrix itself
        as its first argument. It is not used for a solution that is a float.
    check : float, optional
        The largest absolute value that an element of the residual (for `minimum_of`, of the gradient) may have at the
        solution. It is not verified by default.

    Returns
    -------
    callable
        A decorator for the solver, which it returns unchanged. The solver is a function of the arguments, plain or
        decorated with `numba.njit`, above or below. It returns a float, an array of floats of any shape, or a tuple, a
        NamedTuple or a frozen dataclass of these.

    Raises
    ------
    DifferentiationError
        If the function does not take the solution and the arguments of the solver; and when a derivative is compiled,
        if the types do not fit.
    numpy.linalg.LinAlgError
        At run time, if the derivative of the residual with respect to the solution is singular.
    ValueError
        At run time, if the residual exceeds `check`.

    Notes
    -----
    With J = dr/dx at the solution, a cotangent u of the solution contributes -(J^-T u)^T dr/da to the gradient of an
    argument a. The Jacobian matrix J is dense and is factorised by LU decomposition. An argument that the function
    ignores, such as an initial guess, has a zero gradient. Captured variables of the solver and of the function are
    constants, as with `adjoint`. Forward mode and second derivatives differentiate the rule in turn; they never
    differentiate `linear_solve`.

    The solver must have converged: its error is amplified by the inverse of J.

    See M. Blondel et al., "Efficient and Modular Implicit Differentiation", NeurIPS 2022.

    Examples
    --------
    Kepler's equation, solved by bisection:

    >>> import math
    >>> import zygote_py as zg
    >>> @zg.implicit(lambda e, m, ecc: e - ecc * math.sin(e) - m)
    ... def anomaly(m, ecc):
    ...     low, high = m - 1.0, m + 1.0
    ...     for _ in range(60):
    ...         e = 0.5 * (low + high)
    ...         if e - ecc * math.sin(e) < m:
    ...             low = e
    ...         else:
    ...             high = e
    ...     return 0.5 * (low + high)
    >>> zg.gradient(anomaly)(1.0, 0.1)
    (1.04862782763..., 0.92906068630...)
    """
    forms = {"residual": residual, "fixed_point": fixed_point, "minimum_of": minimum_of}
    named = {kind: function for kind, function in forms.items() if function is not None}
    if len(named) != 1:
        raise DifferentiationError(
            f"`implicit` takes one of {', '.join(f'`{kind}`' for kind in forms)}, and was given {len(named)}",
            hint="say in one way what the solution satisfies",
        )
    ((kind, function),) = named.items()

    def register(solver: F) -> F:
        _check_parameters(solver, kind, function)
        made = _Rule(solver, kind, function)
        rule = made.rule(None if check is None else float(check), linear_solve)
        give_rule(given.CustomRule("rule", solver, rule, is_linear=True))
        return solver

    return register


def _check_parameters(solver: Callable[..., Any], kind: str, function: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called with the solution and the arguments of the solver."""
    taken = _parameters(solver, "the solver")
    also = _parameters(function, f"the `{kind}`")
    if len(also) != len(taken) + 1:
        name = given.name_of(function)
        raise refuse(
            f"`{name}` takes ({', '.join(also)}), and `{given.name_of(solver)}` takes ({', '.join(taken)})",
            given.place_of(function),
            f"let `{name}` take the solution and then what the solver takes: ({', '.join(('x', *taken))})",
            "def",
        )


def _parameters(function: Callable[..., Any], what: str) -> list[str]:
    python = given.python_function(function)
    if not inspect.isfunction(python):
        raise refuse(f"{what}, {function!r}, is not a Python function", None, "write one")
    parameters = inspect.signature(python).parameters.values()
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise refuse(
                f"{what} `{given.name_of(function)}` has the parameter `{each}`",
                given.place_of(function),
                "give every parameter a name",
                str(each),
            )
    return [each.name for each in parameters]


class _Rule:
    """Writes the rule of a solver, with `p_0`, `p_1`, ... for its parameters."""

    def __init__(self, solver: Callable[..., Any], kind: str, function: Callable[..., Any]) -> None:
        self._name = identifier(given.name_of(solver), "function")
        self._kind = kind
        self._listed = ", ".join(f"p_{number}" for number in range(len(_parameters(solver, "the solver"))))
        self._values = {"solver": solver, "equation": function}

    def rule(self, check: float | None, linear_solve: Callable[..., Any] | None) -> Callable[..., Any]:
        """Return the rule: the adjoint of the residual solves a linear system, and the gradients follow."""
        lines = ["x = solver(PARAMETERS)"]
        if check is not None:
            message = f"the solution of `{self._name}` does not satisfy its {self._kind} to {check}"
            lines += [
                f"if not {self._called(Residual)}(x, PARAMETERS) <= {check!r}:",
                f"    raise ValueError({message!r})",
            ]
        if linear_solve is None:
            adjoint_of = f"{self._called(Adjoint)}(x, dx, PARAMETERS)"
        else:
            self._values["transposed"] = self._linear_solver(linear_solve)
            adjoint_of = f"transposed({self._called(FlatSolution)}(dx, PARAMETERS), x, PARAMETERS)"
        lines += [
            "def back(dx):",
            f"    w = {adjoint_of}",
            f"    return {self._called(Gradients)}(x, w, PARAMETERS)",
            "return x, back",
        ]
        return self._function("rule", "PARAMETERS", lines)

    def _linear_solver(self, linear_solve: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that solves systems with the transposed Jacobian matrix.

        It has a rule, whose pullback solves a system with the matrix itself, and the other way round.
        """
        self._values["linear_solve"] = linear_solve
        for name, is_transposed in (("transposed", True), ("straight", False)):
            solution = self._called(LinearSolution, transposed=is_transposed)
            self._values[name] = self._function(
                name, "b, x, PARAMETERS", [f"return {solution}(x, b, linear_solve, PARAMETERS)"]
            )
        for name, other, arguments in (("transposed", "straight", "w, y"), ("straight", "transposed", "y, w")):
            lines = [
                f"w = {name}(b, x, PARAMETERS)",
                "def back(dw):",
                f"    y = {other}(dw, x, PARAMETERS)",
                f"    return (y,) + {self._called(MixedGradients)}(x, {arguments}, PARAMETERS)",
                "return w, back",
            ]
            rule = self._function(f"{name}_rule", "b, x, PARAMETERS", lines)
            give_rule(given.CustomRule("rule", self._values[name], rule, is_linear=True))
        return self._values["transposed"]

    def _called(self, driver: Any, **options: bool) -> str:
        """Return a driver of the function that the solution satisfies, as text."""
        form = driver(kind=self._kind, **options)
        name = f"{form}_{'_'.join(map(str, options.values()))}".lower()
        self._values[name] = applying(form)
        return f"{name}(equation)"

    def _function(self, name: str, parameters: str, lines: list[str]) -> Callable[..., Any]:
        """Return a function of these lines, in which PARAMETERS stands for the parameters of the solver."""
        lines = [f"def {self._name}_{name}({parameters}):", *(f"    {line}" for line in lines)]
        written = [re.sub(r", PARAMETERS\b|\bPARAMETERS\b", self._list, line) for line in lines]
        filename = f"<zygote_py {self._name} {name}>"
        return captured(written, self._values, module=__name__, filename=filename, **{OURS: True})  # type: ignore[no-any-return]

    def _list(self, found: re.Match[str]) -> str:
        return f", {self._listed}" if found[0].startswith(",") and self._listed else self._listed
