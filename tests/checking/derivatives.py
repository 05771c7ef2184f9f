"""The derivatives of any function, checked in every way that is asked for: one function, `check_derivatives`.

    check_derivatives(f, 0.7, x)                                # against differences of f in plain Python
    check_derivatives(f, x, expected=([12.0, 8.0],))            # against what is written down
    check_derivatives(f, 1.5, 3, at=[(2.0, 0)], method="precise", value="exact")
    check_derivatives(f, x, y, routes=("call", "pullback"), layouts="CFA", float32=True)
    check_derivatives(f, x, direction=v)                        # second derivatives along v

Arguments are trees (`tests.checking.trees`) and whatever else the function takes, which gets no gradient. For every
variant of the arguments, by every route, it is checked that

* the gradients agree with the reference, about which there is no doubt: points at kinks are an error, what holds there
  is written down as `expected`;
* they have the classes, shapes and dtypes of the arguments, writable memory of their own, and None for what has no
  derivative;
* the value is that of the function, and the arguments are left as the function leaves them;
* a second call gives the same to the bit.

The routes: "call" calls the gradient function, twice; "source" runs the emitted source in plain Python, with captured
values after the arguments; "njit" calls from a compiled function; "pullback" calls `pullback` and twice what it gives.
Where routes are compiled (see `tests.modes`) the emitted source always runs in plain Python, too.

A function whose result is not one real number, or that is to be seeded, is differentiated as the sum of all results
(what it leaves in `mutated` arguments among them), each times a random weight.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np

import zygote_py
from tests.checking.second import check_second
from tests.checking.slopes import Slopes, chosen_of, complex_slopes, precise_slopes, slopes
from tests.checking.trees import (
    copied,
    in_types_of,
    is_active,
    laid_out,
    leaves,
    narrow,
    real_parts,
    same,
    same_form,
    seed_like,
)
from tests.modes import is_interpreted, unless_native
from tests.plain import plain

Args = tuple[Any, ...]
WRITTEN_DOWN = 1e-11  # the tolerance of what is expected, or found by the complex step
TOLERANCES = {"central": 1e-8, "precise": 1e-10, "complex": WRITTEN_DOWN, "directional": 1e-7}
SEEDS = 2
ALL_ROUTES = ("call", "source", "njit")
PRECISELY: dict[str, Any] = {"method": "precise", "value": "exact"}
ARRAYS: dict[str, Any] = {
    "routes": ("call", "pullback"),
    "layouts": "CFA",
    "float32": True,
    "reference": "numba",
}


def check_derivatives(
    function: Callable[..., Any],
    *args: Any,
    at: Sequence[Args] = (),
    wrt: Sequence[str] | None = None,
    expected: Sequence[Any] | None = None,
    reference: Callable[..., Any] | str | None = None,
    method: str = "central",
    routes: Sequence[str] = ("call",),
    direction: Any = None,
    mutated: Sequence[str] = (),
    layouts: Sequence[str] = (),
    float32: bool = False,
    empty: Sequence[Args] = (),
    thorough: bool = False,
    value: str = "close",
    tolerance: float | None = None,
    tolerance32: float = 2e-2,
    seed: int = 0,
) -> Any:
    """Check the derivatives of `function` at `args`; raises AssertionError with what does not hold.

    Parameters
    ----------
    at
        Further arguments of the same types, which are checked with the same gradient function.
    wrt
        The parameters that get a gradient; by default the library decides.
    expected
        The gradients of the arguments that have a derivative, written down: nothing else is a reference then.
    reference
        The function that gradients and values are compared with; by default the function itself in plain Python. With
        "numba" the function compiled by Numba, whose value compiled routes give to the bit.
    method
        "central" differences, "precise" ones at 50 digits, the "complex" step, or central differences along two
        random directions ("directional"), for large arguments.
    direction
        Where this is given, second derivatives of a function of one argument are checked along it.
    mutated
        Parameters whose arrays the function writes to, as results to be seeded.
    layouts
        Of "C", "F" and "A" (strided, with steps of 2 and -1), which all arrays are given in, in turn.
    float32
        Whether the same is checked in single precision.
    empty
        Further arguments of zero length, at which nothing fails and gradients are empty or zero.
    thorough
        Whether every variant is checked by every route, instead of each one after the first by one of them.
    value
        How the value is compared: "close" to rounding; or "exact", to the bit with that of the function in plain
        Python, or compiled by Numba where the route is compiled.

    Returns
    -------
    gradients
        What the first route gave for the first arguments.
    """
    if direction is not None:
        return check_second(function, reference or function, args[0], direction, tolerance or 1e-8)
    with quiet():
        problem = _Problem(function, args, wrt, reference, tuple(mutated), "pullback" in routes, value, thorough)
        tolerance = tolerance or (TOLERANCES[method] if expected is None else WRITTEN_DOWN)
        rng = np.random.default_rng(seed)
        cases = [case for given in (args, *at) for case in problem.cases(given, expected, method, tolerance, rng)]
        for position, layout in enumerate(_possible(layouts, args)):
            variant = cases if layout is None else [replace(case, args=laid_out(case.args, layout)) for case in cases]
            how = "" if layout is None else f", layout {layout}"
            for route in routes if thorough or not position else (routes[position % len(routes)],):
                problem.take(route, variant, how, may_compile=not position and route in (routes[0], "njit"))
            if not position and not is_interpreted() and "source" not in routes:
                problem.take("source", variant, how)
        if float32:
            narrowed = [problem.in_float32(case, tolerance32) for case in cases]
            for route in routes if thorough else routes[:1]:
                problem.take(route, narrowed, ", float32", may_compile=False)
        with unless_native():
            for given in empty:
                problem.at_zero_length(given)
    return problem.first


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings, neither Python's nor NumPy's."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class _Case:
    """Arguments, the seed of the results if they are weighed, and what the gradients are compared with."""

    args: Args
    seed: Args | None
    expected: Sequence[Any] | Slopes
    tolerance: float

    @property
    def weights(self) -> Args:
        return tuple(leaves(self.seed))

    def compare(self, gradients: Args, how: str) -> None:
        """Compare gradients of the chosen arguments with the reference."""
        if isinstance(self.expected, Slopes):
            off = self.expected.off(np.ones(1) if self.seed is None else real_parts(self.seed), real_parts(gradients))
            assert off <= self.tolerance, f"{how}: {gradients!r} is off by {off:.1e} from\n{self.expected}"
            return
        assert len(gradients) == len(self.expected), f"{how}: {len(gradients)} gradients"
        for gradient, right in zip(gradients, self.expected, strict=True):
            assert np.shape(gradient) == np.shape(right), f"{how}: shape {np.shape(gradient)}"
            np.testing.assert_allclose(gradient, right, rtol=self.tolerance, atol=self.tolerance, err_msg=how)


class _Problem:
    """A function that is differentiated, with the function that it is compared with."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Args,
        wrt: Sequence[str] | None,
        reference: Callable[..., Any] | str | None,
        mutated: tuple[str, ...],
        is_seeded: bool,
        value: str,
        thorough: bool,
    ) -> None:
        self.function, self.mutated, self.value, self.thorough = function, mutated, value, thorough
        python = getattr(function, "py_func", function)
        self.compiled = function if hasattr(function, "py_func") else numba.njit(python)
        self.is_exact = value == "exact" or reference == "numba"
        if isinstance(reference, str):
            reference = self.compiled
        self.primal = reference or python
        self.is_seeded = is_seeded or bool(mutated) or not _is_real(self.primal(*copied(args)))
        self.first: Any = None
        if self.is_seeded:
            self.function, self.primal = python, reference or self.compiled
            self.names = tuple(inspect.signature(python).parameters)[: len(args)]
            wrt = wrt or [name for name, arg in zip(self.names, args, strict=True) if real_parts(arg).size]
            wrt = wrt or [name for name, arg in zip(self.names, args, strict=True) if is_active(arg)]
            self.loss = _weighted_sum(self.function, self.primal, self.names, self.results(*args), mutated)
            self.compiled_loss = numba.njit(self.loss)
        elif wrt is not None:
            self.names = tuple(inspect.signature(python).parameters)
        self.wrt = None if wrt is None else tuple(wrt)
        self.chosen = chosen_of(args) if wrt is None else tuple(self.names.index(name) for name in wrt)
        assert self.chosen, "no argument has a derivative"
        self.derivative = self.new_derivative()

    def new_derivative(self) -> Any:
        """The gradient function, for which nothing is compiled yet."""
        function = self.loss if self.is_seeded else self.function
        return zygote_py.value_and_gradient(function, **({} if self.wrt is None else {"wrt": self.wrt}))

    def results(self, *args: Any) -> Args:
        """Return the result of the reference, followed by the arrays that it writes to."""
        given = copied(args)
        value = self.primal(*given)
        return value, *(given[self.names.index(name)] for name in self.mutated)

    def cases(
        self, args: Args, expected: Sequence[Any] | None, method: str, tolerance: float, rng: np.random.Generator
    ) -> list[_Case]:
        """The arguments with each seed, and the reference's derivatives at them."""
        seeds: list[Any] = [None]
        if self.is_seeded:
            seeds = [seed_like(self.results(*args), rng) for _ in range(SEEDS)]
        if expected is not None:
            assert not self.is_seeded, "what is expected of a function whose results are weighed cannot be written down"
            return [_Case(args, None, expected, tolerance)]
        run = self.results if self.is_seeded else self.primal
        if method in ("precise", "complex"):
            run = getattr(run, "py_func", run)
        found = derivatives_of(run, args, self.chosen, method, rng)
        assert found.doubt is None, f"at {args!r} the reference is in doubt: {found.doubt}"
        return [_Case(args, seed, found, tolerance) for seed in seeds]

    def in_float32(self, case: _Case, tolerance: float) -> _Case:
        """The case in single precision."""
        args = narrow(case.args)
        return replace(case, args=args, seed=in_types_of(case.seed, self.results(*args)), tolerance=tolerance)

    # Routes

    def take(self, route: str, cases: Sequence[_Case], variant: str, may_compile: bool = True) -> None:
        """Hold the gradients that one route gives against the reference."""
        with nullcontext() if may_compile else unless_native():
            run = None if route == "pullback" else self._runner(route, cases[0])
            for k, case in enumerate(cases):
                seed = f", seed {k % SEEDS}" if self.is_seeded else ""
                how = f'routes=("{route}",){variant}{seed}, at {case.args!r}'
                if run is None:
                    self._pull_back(case, how)
                else:
                    self._run(run, case, route, how)

    def _runner(self, route: str, case: _Case) -> Callable[..., Any]:
        """The function of arguments and weights that gives the value and the gradients by a route."""
        if self.is_seeded and is_interpreted():
            self.derivative = self.new_derivative()
        derivative = self.derivative
        if route == "call":
            return derivative
        if route == "source":
            emitted = plain(derivative.source(*case.args, *case.weights))
            return lambda *args: emitted(*args, *captured_by(derivative))
        if route == "njit":
            scope: dict[str, Any] = {"derivative": derivative}
            names = ", ".join(f"a{number}" for number in range(len(case.args) + len(case.weights)))
            exec(f"def call({names}): return derivative({names})", scope)
            return numba.njit(scope["call"])
        raise ValueError(route)

    def _run(self, run: Callable[..., Any], case: _Case, route: str, how: str) -> None:
        given = copied(case.args)
        found = run(*given, *case.weights)
        value, gradients = found
        if self.first is None:
            self.first = gradients
        is_compiled = route != "source" and not is_interpreted()
        self._compare_gradients(case, given, self._in_order(gradients, len(given)), how)
        self._compare_left(case, given, is_compiled, how)
        self._compare_value(case, value, is_compiled, how)
        if route == "call":
            same(run(*copied(case.args), *case.weights), found, f"{how}: the second call")

    def _in_order(self, gradients: Any, count: int) -> Args:
        """The gradients of all parameters that get one."""
        all_of_them: Args = gradients if self.wrt is not None or count > 1 else (gradients,)
        return all_of_them

    def _pull_back(self, case: _Case, how: str) -> None:
        assert case.seed is not None
        given = copied(case.args)
        value, back = zygote_py.pullback(self.function, *given)
        is_compiled = not is_interpreted()
        left = copied(case.args)
        same(value, self.primal(*left), f"{how}: the value", is_compiled and self.is_exact)
        self._compare_left(case, given, is_compiled, how)
        named = dict(zip(self.mutated, case.seed[1:], strict=True))
        results = () if value is None else case.seed[:1]
        gradients = back(*results, **named)
        assert isinstance(gradients, tuple), f"{how}: {type(gradients)} and not a tuple of gradients"
        assert len(gradients) == len(self.names), f"{how}: {len(gradients)} gradients"
        if self.first is None:
            self.first = gradients
        chosen = tuple(gradients[position] for position in self.chosen)
        self._compare_gradients(case, given, chosen, how)
        same(back(*results, **named), gradients, f"{how}: the second call of back")

    def at_zero_length(self, args: Args) -> None:
        """Nothing fails where the function does not, and gradients are zero where the results are empty."""
        try:
            results = self.results(*args)
        except Exception as error:  # whatever Numba's function raises
            kind = type(error)
            try:
                zygote_py.pullback(self.function, *copied(args))
            except kind:
                return
            raise AssertionError(f"zero length: the function raises {kind.__name__}, the gradient does not") from error
        seed = tuple(seed_like(part, np.random.default_rng(0)) for part in results)
        case = _Case(args, seed, (), 0.0)
        given = copied(args)
        total, gradients = self.derivative(*given, *case.weights)
        self._compare_value(case, total, not is_interpreted(), "zero length")
        for position, gradient in zip(self.chosen, gradients, strict=True):
            same_form(given[position], gradient, f"zero length: the gradient of argument {position}")
        if not real_parts(seed).size:
            assert not np.any(real_parts(gradients)), "zero length: no result, but a gradient"

    # Comparisons

    def _compare_gradients(self, case: _Case, given: Args, gradients: Args, how: str) -> None:
        """Compare the gradients of all parameters that get one."""
        places = range(len(given)) if self.wrt is None else self.chosen
        for gradient in gradients[len(places) :]:  # of parameters whose default value is taken
            assert self.wrt is None, f"{how}: {len(gradients)} gradients"
            assert not list(leaves(gradient)), f"{how}: there is also {gradient!r}"
        assert len(gradients) >= len(places), f"{how}: {len(gradients)} gradients"
        for position, gradient in zip(places, gradients[: len(places)], strict=True):
            same_form(given[position], gradient, f"{how}: the gradient of argument {position}")
        case.compare(tuple(gradients[place] for place, at in enumerate(places) if at in self.chosen), how)

    def _compare_left(self, case: _Case, given: Args, is_compiled: bool, how: str) -> None:
        exact = is_compiled and (self.is_seeded or self.is_exact)
        left = copied(case.args)
        (self.compiled if exact else self.primal)(*left)
        same(given, left, f"{how}: the arguments are not left as the function leaves them", exact)

    def _compare_value(self, case: _Case, value: Any, is_compiled: bool, how: str) -> None:
        how = f"{how}: the value"
        if not self.is_seeded:
            exact = self.value == "exact" or (self.is_exact and is_compiled)
            primal = self.compiled if exact and is_compiled else self.primal
            same(np.asarray(value, float), np.asarray(primal(*copied(case.args)), float), how, exact)
        elif self.thorough and is_compiled:
            total = self.compiled_loss(*copied(case.args), *case.weights)
            same(value, total, how, self.is_exact)
        else:
            assert case.seed is not None
            terms = real_parts(case.seed) * real_parts(self.results(*case.args))
            precision = max(np.finfo(np.asarray(leaf).dtype).eps for leaf in leaves(case.seed) if is_active(leaf))
            rounding = 1e3 * precision * np.sum(np.abs(terms))
            assert abs(value - np.sum(terms)) <= rounding, f"{how} is {value} and not {np.sum(terms)}"


def derivatives_of(
    function: Callable[..., Any], args: Args, chosen: Sequence[int], method: str, rng: np.random.Generator
) -> Slopes:
    """The derivatives of a function by a method that owes nothing to the library."""
    match method:
        case "precise":
            return precise_slopes(function, args, chosen)
        case "complex":
            return complex_slopes(function, args, chosen)
        case "central" | "directional":
            return slopes(function, args, chosen, rng if method == "directional" else None)
    raise ValueError(method)


def captured_by(derivative: Any) -> list[Any]:
    """Return the captured values that a gradient function passes after the arguments."""
    hidden = derivative._hidden if hasattr(derivative, "_hidden") else derivative._now.hidden
    return [capture.read() for capture in hidden]


def _is_real(result: Any) -> bool:
    """Whether a result is one real number."""
    return isinstance(result, bool | int | float | np.bool_ | np.integer | np.floating)


def _possible(layouts: Sequence[str], args: Args) -> list[str | None]:
    """The layouts that arrays of so many dimensions can have; None for that of the arguments."""
    most = max((np.ndim(leaf) for leaf in leaves(args) if isinstance(leaf, np.ndarray)), default=0)
    return [layout for layout in layouts if most >= {"C": 0, "A": 1, "F": 2}[layout]] or [None]


def _weighted_sum(
    function: Callable[..., Any], primal: Any, names: Sequence[str], results: tuple[Any, ...], written: Sequence[str]
) -> Callable[..., Any]:
    """A function of the arguments and of weights: the sum of all results, each times its weight."""
    terms: list[str] = []

    def visit(text: str, value: Any) -> None:
        if isinstance(value, tuple | list):
            for position, item in enumerate(value):
                visit(f"{text}[{position}]", item)
            return
        kind = np.asarray(value).dtype.kind
        if value is None or kind not in "fc":
            return
        weight = f"weight_{len(terms)}"
        is_array = isinstance(value, np.ndarray)
        if is_array and not value.ndim:
            text, weight = f"{text}[()]", f"{weight}[()]"
        product = f"({text} * np.conj({weight})).real" if kind == "c" else f"{text} * {weight}"
        terms.append(f"np.sum({product})" if is_array and value.ndim else product)

    for text, value in zip(("result", *written), results, strict=True):
        visit(text, value)
    assert terms, "the function has no result with a derivative"
    parameters = [*names, *(f"weight_{k}" for k in range(len(terms)))]
    lines = [f"def loss({', '.join(parameters)}):", f"    result = primal({', '.join(names)})"]
    namespace: dict[str, Any] = {"primal": primal, "np": np}
    exec("\n".join([*lines, f"    return {' + '.join(terms)}"]), namespace)
    loss: Callable[..., Any] = namespace["loss"]
    loss.__doc__ = f"The weighted sum of the results of {function.__name__}."
    return loss
