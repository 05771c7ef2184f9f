"""The pullback of an implicit function: x(a, b) such that r(x, a, b) = 0, by the implicit function theorem.

    def r_adjoint(x, dx, a, n, closure_):                       # x: a float
        d_0 = gradient(closure_, wrt=0)(x, a, n)                # dr/dx
        return dx / d_0

    def r_gradients(x, adjoint, a, n, closure_):
        def g_0(a):
            return -adjoint * closure_(x, a, n)                 # its gradient is -dx (dr/dx)^-1 dr/da
        found = gradient(g_0)(a)
        return found[0], None

Of a vector, or of a structure as a vector, `d_0` is the Jacobian matrix J, and the adjoint solves a system with J.T.
With "fixed_point", the function is g in x = g(x, a, n), and r = x - g; with "minimum_of" it is h, and r = dh/dx.

See S. G. Krantz, H. R. Parks, "The Implicit Function Theorem", 2002; for the method M. Blondel et al., "Efficient and
Modular Implicit Differentiation", 2022.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.base import free
from zygote_py.compiler import FUNCTION, GradientForm, PushForm, Script, leaves, signature_of
from zygote_py.drivers.forms import Driver
from zygote_py.drivers.matrices import Jacobian
from zygote_py.drivers.vectors import Flat, OfVector
from zygote_py.ir import Type, components_of
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True)
class _OfSolution(Driver):
    """A driver of the function that a solution satisfies, called with the solution first.

    `kind` says what that function is: "residual", "fixed_point" or "minimum_of".
    """

    kind: str = "residual"

    def equation(self, call: numba_adapter.DerivedCall, script: Script) -> _Equation:
        """Return the equation that the solution satisfies; `script` has the parameters of the call."""
        function = FUNCTION if self.kind != "minimum_of" else script.derived(GradientForm(0))
        return _Equation(script, function, call.argument_types[0], self.kind == "fixed_point")

    def begun(self, call: numba_adapter.DerivedCall) -> Script:
        """Return a new script with the parameters of the signature."""
        return self.script(call, list(self.signature(inspect.signature(call.func)).parameters))

    @staticmethod
    def divide(script: Script, right: str, slope: str) -> None:
        """Return the quotient of two numbers; a slope of 0 is a singular matrix."""
        with script.block(f"if (d_0 := {slope}) == 0.0:"):
            script.add("raise np.linalg.LinAlgError('the residual does not depend on the solution: 0 slope')")
        script.add(f"return {right} / d_0")

    def check_types(self, call: numba_adapter.DerivedCall, taken: tuple[Type, ...]) -> None:
        """Refuse a solution that is not a structure of real numbers, and a function of it with another result."""
        kind = taken[0]
        if not _is_real(kind):
            raise refuse(
                f"`{call.name}` is to be satisfied by a solution of type {kind}",
                call.loc,
                "let the solver return a float, an array of floats, or a structure of these",
                "def",
            )
        result = call.typed(taken).return_type
        wanted = types.float64 if self.kind == "minimum_of" else kind
        if _shape(result) != _shape(wanted):
            raise refuse(
                f"`{call.name}` returns a value of type {result}, for a solution of type {kind}",
                call.loc,
                f"let it return a value of type {wanted}",
                "def",
            )


class _Equation:
    """The equation of a solution: how its residual and its Jacobian are written, as for a vector or a number."""

    def __init__(self, script: Script, function: str, kind: Type, is_fixed_point: bool) -> None:
        self._script = script
        self._function = function
        self.is_number = isinstance(kind, types.Float)
        self._is_vector = isinstance(kind, types.Array) and kind.ndim == 1
        self.is_fixed_point = is_fixed_point

    def flat(self, value: str) -> str:
        """Return a value like the solution as a number or a vector."""
        if self.is_number or self._is_vector:
            return value
        return f"{self._script.derived(Flat(), self._script.named(_itself, 'itself'))}({value})"

    def value(self, arguments: str) -> str:
        """Return the value of the function, as a number or a vector."""
        if self.is_number or self._is_vector:
            return f"{self._function}({arguments})"
        return f"{self._script.derived(Flat(), self._function)}({arguments})"

    def summed(self, product: str) -> str:
        """Return the sum of a product of values like the solution."""
        return product if self.is_number else f"np.sum({product})"

    def residual(self, solution: str, arguments: str) -> str:
        """Return the residual, as a number or a vector."""
        value = self.value(arguments)
        return f"{self.flat(solution)} - {value}" if self.is_fixed_point else value

    def of_vector(self, solution: str, *rest: str) -> tuple[str, str]:
        """Return the function with a number or a vector in the place of the solution, and its further arguments."""
        if self.is_number or self._is_vector:
            return self._function, "".join(f", {each}" for each in rest)
        function = self._script.derived(Flat(), self._script.derived(OfVector(places=(0,)), self._function))
        return function, "".join(f", {each}" for each in (solution, *rest))

    def jacobian(self, solution: str, *rest: str) -> str:
        """Return the derivative of the residual with respect to the solution, a number or a matrix."""
        if self.is_number:
            slope = f"{self._script.derived(GradientForm(0), self._function)}({', '.join((solution, *rest))})"
            return f"1.0 - {slope}" if self.is_fixed_point else slope
        function, others = self.of_vector(solution, *rest)
        matrix = f"{self._script.derived(Jacobian(0), function)}({self.flat(solution)}{others})"
        return f"np.eye({self.flat(solution)}.size) - {matrix}" if self.is_fixed_point else matrix

    def add_product(self, name: str, transposed: bool, solution: str, *rest: str) -> None:
        """Define the function that multiplies a vector by the Jacobian matrix, without computing that."""
        add, function, others = self._script.add, *self.of_vector(solution, *rest)
        add(f"u_0 = {self.flat(solution)}")
        with self._script.block(f"def {name}(v):"):
            if transposed:
                add("def g(u):", f"    return np.sum(v * {function}(u{others}))")
                product = f"{self._script.derived(GradientForm(0), 'g')}(u_0)"
            else:
                add("def g(u):", f"    return {function}(u{others})")
                product = f"{self._script.derived(PushForm(with_value=False), 'g')}((u_0,), ((v,),))[0]"
            add(f"return v - {product}" if self.is_fixed_point else f"return {product}")


@dataclass(frozen=True)
class Adjoint(_OfSolution):
    """The adjoint w of the residual: takes the solution, its adjoint u, and the arguments; solves J.T w = u."""

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature with the adjoint after the solution."""
        return _with(of, "dx")

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        script = self.begun(call)
        solution, adjoint, *rest = script.parameters
        kind, _, *kinds = call.argument_types
        self.check_types(call, (kind, *kinds))
        equation = self.equation(call, script)
        if equation.is_number:
            self.divide(script, adjoint, equation.jacobian(solution, *rest))
        else:
            script.add(f"d_0 = {equation.jacobian(solution, *rest)}")
            script.add(f"return np.linalg.solve(d_0.T, {equation.flat(adjoint)})")
        return script.function()


@dataclass(frozen=True)
class LinearSolution(_OfSolution):
    """The solution of a linear system with the Jacobian matrix by a function that is passed.

    It takes the solution, the right side (a vector), the function, and the arguments of the solver. The function takes
    another one that multiplies a vector by the matrix, or the matrix itself, and the right side.
    """

    transposed: bool = True

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature with the right side and the function after the solution."""
        return _with(of, "right", "linear_solve")

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments: the first of the two ways that can be typed."""
        failures = []
        for matrix_free in (True, False):
            function = self._written(call, matrix_free)
            try:
                call.written(function, call.argument_types)
            except DifferentiationError as error:
                failures.append(error.message)
            else:
                return function
        raise refuse(
            f"`linear_solve` fails with a function and with a matrix as its first argument: {'; '.join(failures)}",
            call.loc,
            "let it take `matvec` and `b`, and return x with `matvec(x) = b`",
            "def",
        )

    def _written(self, call: numba_adapter.DerivedCall, matrix_free: bool) -> Callable[..., Any]:
        script = self.begun(call)
        solution, right, solve, *rest = script.parameters
        equation = self.equation(call, script)
        if equation.is_number:
            self.divide(script, right, equation.jacobian(solution, *rest))
        elif matrix_free:
            equation.add_product("g_0", self.transposed, solution, *rest)
            script.add(f"return {solve}(g_0, {right})")
        else:
            script.add(f"d_0 = {equation.jacobian(solution, *rest)}")
            script.add(f"return {solve}(np.ascontiguousarray(d_0{'.T' * self.transposed}), {right})")
        return script.function()


@dataclass(frozen=True)
class _Gradients(_OfSolution):
    """A driver that returns gradients, with None for arguments that have none."""

    def add_gradients(self, script: Script, names: list[str], kinds: Sequence[Type], lines: Sequence[str]) -> None:
        """Return the gradients of the function with these lines with respect to all parameters that can have one."""
        varied = [name for name, each in zip(names, kinds, strict=True) if any(leaves(name, each))]
        if not varied:
            script.add(f"return {_tuple('None' for _ in names)}")
            return
        with script.block(f"def g_0({', '.join(varied)}):"):
            script.add(*lines)
        form = GradientForm(tuple(range(len(varied))))
        script.add(f"found = {script.derived(form, 'g_0')}({', '.join(varied)})")
        places = iter(range(len(varied)))
        script.add(f"return {_tuple(f'found[{next(places)}]' if name in varied else 'None' for name in names)}")


@dataclass(frozen=True)
class Gradients(_Gradients):
    """The gradients of the solver's arguments: takes the solution, the adjoint of the residual, and the arguments."""

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature with the adjoint after the solution."""
        return _with(of, "adjoint")

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        script = self.begun(call)
        solution, adjoint, *rest = script.parameters
        equation = self.equation(call, script)
        product = equation.summed(f"{adjoint} * {equation.value(', '.join((solution, *rest)))}")
        sign = "" if equation.is_fixed_point else "-"
        self.add_gradients(script, rest, call.argument_types[2:], [f"return {sign}{product}"])
        return script.function()


@dataclass(frozen=True)
class MixedGradients(_Gradients):
    """The gradients of -w.T J y with respect to the solution and the arguments: takes the solution, w, y, and these."""

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature with the two vectors after the solution."""
        return _with(of, "left", "right")

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        script = self.begun(call)
        solution, left, right, *rest = script.parameters
        equation = self.equation(call, script)
        function, others = equation.of_vector(solution, *rest)
        flat, form = equation.flat(solution), PushForm(with_value=False)
        lines = [
            "def g(u):",
            f"    return {function}(u{others})",
            f"t_0 = {script.derived(form, 'g')}(({flat},), (({right},),))[0]",
            f"return {'' if equation.is_fixed_point else '-'}{equation.summed(f'{left} * t_0')}",
        ]
        kinds = call.argument_types
        self.add_gradients(script, [solution, *rest], (kinds[0], *kinds[3:]), lines)
        return script.function()


@dataclass(frozen=True)
class FlatSolution(_OfSolution):
    """A value like the solution as a number or a vector: takes the value, and the arguments of the solver."""

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        self.check_types(call, call.argument_types)
        script = self.script(call, call.parameters)
        script.add(f"return {self.equation(call, script).flat(script.parameters[0])}")
        return script.function()


@dataclass(frozen=True)
class Residual(_OfSolution):
    """The largest absolute value in the residual of a solution and the arguments of the solver."""

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        script = self.script(call, call.parameters)
        solution, *_ = names = script.parameters
        self.check_types(call, call.argument_types)
        equation = self.equation(call, script)
        residual = f"np.abs({equation.residual(solution, ', '.join(names))})"
        script.add(f"return {residual}" if equation.is_number else f"return np.max({residual})")
        return script.function()


def _with(of: inspect.Signature, *names: str) -> inspect.Signature:
    """Return a signature with further parameters after the first."""
    solution, *rest = of.parameters
    return signature_of(solution, *(free(name, (solution, *rest)) for name in names), *rest)


def _itself(x: Any) -> Any:
    return x


def _tuple(items: Iterable[str]) -> str:
    inside = ", ".join(items)
    return f"({inside},)" if inside else "()"


def _is_real(kind: Type) -> bool:
    """Return whether a type is that of a float, an array of floats, or a structure of these."""
    if isinstance(kind, types.BaseTuple):
        return len(kind) > 0 and all(map(_is_real, components_of(kind)))
    return isinstance(kind.dtype if isinstance(kind, types.Array) else kind, types.Float)


def _shape(kind: Any) -> Any:
    """Return the structure of a type: nested tuples with the numbers of axes of its leaves."""
    if isinstance(kind, types.BaseTuple):
        return tuple(map(_shape, components_of(kind)))
    return kind.ndim if isinstance(kind, types.Array) else 0
