"""Any function of arrays, its gradient checked in every way: one function, `check_arrays`.

    def f(x, w):
        return np.cumsum(x * w)

    check_arrays(f, rng.normal(size=4), rng.normal(size=4), empty=[(np.zeros(0), np.zeros(0))])

The function may return numbers, arrays and tuples of them, or None, and may write to its arguments (`written`). What is
checked, for the given arguments and for the same in other layouts and in float32:

* the vector-Jacobian product against differences of the Numba-compiled function in float64, whose step is checked: two
  steps must agree. Small problems against the whole Jacobian, all against J v along a random direction (`<s, J v>`);
* with several seeds that are not ones, through `value_and_gradient` of a weighted sum and through `pullback`: both for
  the first layout, one of the two for each other layout and for float32, both for all of them if `thorough`. The first
  of all is compiled, and the others are interpreted, unless everything is to be compiled (see `tests.modes`);
* the emitted source in plain Python gives the same; a second call gives the same to the bit;
* shapes, dtypes (float32 in, float32 out) and None for what has no derivative;
* the value that `pullback` gives, and if `thorough` that of the weighted sum, is that of the Numba-compiled function to
  the bit, otherwise to rounding; the arguments are left as that leaves them.

A complex number counts as two real ones, so the gradient of a real loss is the direction of steepest ascent. Points at
kinks are an error (the steps disagree): what holds there is tested with the numbers written down.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

import zygote_py
from tests.array_trees import (
    copied,
    in_types_of,
    is_active,
    laid_out,
    leaves,
    narrow,
    real_parts,
    same,
    seed_like,
    with_parts,
)
from tests.modes import is_interpreted, unless_native
from tests.plain import plain

Args = tuple[Any, ...]
LAYOUTS = ("C", "F", "A")
WAYS = ("gradient", "pullback")
FULL = 400  # the most entries of a Jacobian that is found by differences as a whole


def check_arrays(
    function: Callable[..., Any],
    *args: Any,
    wrt: Sequence[str] | None = None,
    written: Sequence[str] = (),
    empty: Sequence[Args] = (),
    layouts: Sequence[str] = LAYOUTS,
    float32: bool = True,
    in_python: bool = True,
    exact: bool = True,
    ways: Sequence[str] = WAYS,
    thorough: bool = False,
    tolerance: float = 1e-7,
    tolerance32: float = 2e-3,
    step: float = 1e-3,
    seed: int = 0,
) -> None:
    """Check the gradient of `function` at `args`; raise AssertionError with the failed check.

    Parameters
    ----------
    wrt
        The parameters that get a gradient; by default all that contain floats or complex numbers.
    written
        The parameters whose arrays the function writes to, as results with a cotangent.
    empty
        Further arguments, of zero length, at which gradients are empty or zero and nothing fails.
    layouts
        The layouts of all arrays, one after the other: of "C", "F" and "A" (strided, with steps of 2 and -1).
    float32
        Whether the same is checked with float32 (and complex64) arguments.
    in_python
        Whether the emitted source is also run in plain Python.
    exact
        Whether the value must equal that of the compiled function bitwise (otherwise up to rounding).
    ways
        Which of the two routes to a gradient are compiled.
    thorough
        Whether both are, for every layout and dtype.
    step
        The largest step of the finite differences, relative to the size of each argument.
    """
    problem = _Problem(function, args, wrt, tuple(written), np.random.default_rng(seed), exact, thorough)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        seeds = [problem.seed() for _ in range(2)]
        expected = problem.expected(seeds, step, tolerance)
        most = max((np.ndim(leaf) for leaf in leaves(args)), default=0)
        kinds = [layout for layout in layouts if most >= {"C": 0, "A": 1, "F": 2}[layout]]
        ways = WAYS if thorough else tuple(ways)
        for position, layout in enumerate(kinds):
            gone = ways if thorough or not position else (ways[position % len(ways)],)
            changed, slow = laid_out(args, layout), in_python and not position
            problem.compare(changed, seeds, expected, tolerance, f"layout {layout}", slow, gone, not position)
        if float32:
            results = problem.result(narrow(args))
            narrowed = [in_types_of(seed, results) for seed in seeds]
            gone = ways if thorough else ways[:1]
            problem.compare(narrow(args), narrowed, expected, tolerance32, "float32", False, gone, False)
        with unless_native():
            for given in empty:
                problem.at_zero_length(given)


@dataclass
class _Problem:
    """A function of some arguments with its weighted sum, and its derivatives by the library and by differences."""

    function: Callable[..., Any]
    args: Args
    wrt: Sequence[str] | None
    written: tuple[str, ...]
    rng: np.random.Generator
    exact: bool
    thorough: bool

    def __post_init__(self) -> None:
        self.function = getattr(self.function, "py_func", self.function)
        self.names = tuple(inspect.signature(self.function).parameters)[: len(self.args)]
        self.primal = numba.njit(self.function)
        if self.wrt is None:
            self.wrt = [name for name, arg in zip(self.names, self.args, strict=True) if real_parts(arg).size]
            self.wrt = self.wrt or [name for name, arg in zip(self.names, self.args, strict=True) if is_active(arg)]
        assert self.wrt, "no argument has a derivative"
        self.loss = _weighted_sum(self.function, self.primal, self.names, self.result(self.args), self.written)
        self.value_and_gradient = self.new_gradient()
        self.compiled_loss = numba.njit(self.loss)

    def new_gradient(self) -> Any:
        """The gradient of the weighted sum, for which nothing is compiled yet."""
        return zygote_py.value_and_gradient(self.loss, wrt=tuple(self.wrt or ()))

    def result(self, args: Args) -> tuple[Any, ...]:
        """Return the result of the compiled function, then the final contents of the arrays that it writes to."""
        given = copied(args)
        value = self.primal(*given)
        return value, *(given[self.names.index(name)] for name in self.written)

    def seed(self) -> tuple[Any, ...]:
        """Random adjoints of the results, none of them 1 or 0."""
        return tuple(seed_like(part, self.rng) for part in self.result(self.args))

    def expected(self, seeds: Sequence[tuple[Any, ...]], step: float, tolerance: float) -> _Expected:
        """Return finite differences: the products of the seeds with the Jacobian if it is small, and with J v."""
        assert self.wrt is not None
        chosen = [self.names.index(name) for name in self.wrt]
        center = np.concatenate([real_parts(self.args[k]) for k in chosen])
        scales = step * np.maximum(1.0, np.abs(center))

        def along(direction: np.ndarray) -> np.ndarray:
            """The derivative of all results along a direction, by extrapolated differences whose steps agree."""

            def at(t: float) -> np.ndarray:
                moved, used = list(self.args), 0
                for k in chosen:
                    size = real_parts(moved[k]).size
                    part = center[used : used + size] + t * direction[used : used + size]
                    moved[k] = with_parts(moved[k], iter(part))
                    used += size
                return real_parts(self.result(tuple(moved)))

            middle = at(0.0)
            up, down = ([at(sign * t) for t in (1.0, 0.5, 0.25)] for sign in (1, -1))
            slopes = [(a - b) / (2 * t) for a, b, t in zip(up, down, (1.0, 0.5, 0.25), strict=True)]
            first, second = (4 * slopes[1] - slopes[0]) / 3, (4 * slopes[2] - slopes[1]) / 3
            found = (16 * second - first) / 15
            error = np.max(np.abs(found - second), initial=0.0)
            size = max(np.max(np.abs(found), initial=0.0), step)
            assert error <= tolerance * size, f"two steps of the differences disagree by {error:.1e} of {size:.1e}"
            for sign, side in ((1, up), (-1, down)):  # at a kink only the one-sided differences tell
                one, two, three = (
                    (value - middle) / (sign * t) for value, t in zip(side, (1.0, 0.5, 0.25), strict=True)
                )
                bend = np.max(np.abs((8 * three - 6 * two + one) / 3 - found), initial=0.0)
                assert bend <= 1e-4 * size, f"the differences of one side are off by {bend:.1e} of {size:.1e}: a kink"
            return found

        flat = [real_parts(seed) for seed in seeds]
        outputs = real_parts(self.result(self.args)).size
        rows = None
        if outputs * center.size <= FULL:
            columns = [
                along(np.where(np.arange(center.size) == k, scales, 0.0)) / scales[k] for k in range(center.size)
            ]
            jacobian = np.stack(columns, axis=1) if columns else np.zeros((outputs, 0))
            rows = [s @ jacobian for s in flat]
        directions = [self.rng.uniform(0.5, 1.0, center.size) * self.rng.choice((-1, 1), center.size) for _ in range(2)]
        products = [[float(s @ along(v * scales)) for v in directions] for s in flat]
        return _Expected(rows, [v * scales for v in directions], products)

    def compare(
        self,
        args: Args,
        seeds: Sequence[tuple[Any, ...]],
        expected: _Expected,
        tolerance: float,
        how: str,
        slow: bool,
        ways: Sequence[str],
        compiled: bool,
    ) -> None:
        """Hold some ways to a gradient at the same point against the expected ones; `compiled` is the first of them."""
        left = copied(args)
        value = self.primal(*left)
        for number, way in enumerate(ways):
            with nullcontext() if compiled and not number else unless_native():
                if way == "gradient" and is_interpreted():
                    self.value_and_gradient = self.new_gradient()
                for k, seed in enumerate(seeds):
                    if way == "gradient":
                        self._differentiate(args, seed, left, expected, k, tolerance, how)
                    else:
                        self._pull_back(args, seed, value, left, expected, k, tolerance, how)
        if slow and not is_interpreted():
            for k, seed in enumerate(seeds):
                self._differentiate_in_python(args, seed, left, expected, k, tolerance, how)

    def _differentiate(
        self, args: Args, seed: tuple[Any, ...], left: Args, expected: _Expected, k: int, tol: float, how: str
    ) -> None:
        weights = _weights(seed)
        given = copied(args)
        total, gradients = self.value_and_gradient(*given, *weights)
        self._like_arguments(args, gradients, how)
        expected.hold(k, real_parts(gradients), tol, f"{how}, seed {k}")
        _same_memory(given, left, how, exact=not is_interpreted())
        self._same_total(total, args, seed, f"{how}: the value")
        again = self.value_and_gradient(*copied(args), *weights)
        same(again, (total, gradients), f"{how}: the second call")

    def _differentiate_in_python(
        self, args: Args, seed: tuple[Any, ...], left: Args, expected: _Expected, k: int, tol: float, how: str
    ) -> None:
        weights = _weights(seed)
        emitted = plain(self.value_and_gradient.source(*args, *weights))
        given = copied(args)
        _, found = emitted(*given, *weights)
        expected.hold(k, real_parts(found), tol, f"{how}, seed {k}, in plain Python")
        _same_memory(given, left, f"{how}, in plain Python", exact=False)

    def _same_total(self, total: Any, args: Args, seed: tuple[Any, ...], how: str) -> None:
        """The weighted sum is that of the compiled function's results; of the compiled sum to the bit if thorough."""
        if self.thorough and not is_interpreted():
            same(total, self.compiled_loss(*copied(args), *_weights(seed)), how, self.exact)
            return
        terms = real_parts(seed) * real_parts(self.result(args))
        precision = max(np.finfo(np.asarray(leaf).dtype).eps for leaf in leaves(seed) if is_active(leaf))
        rounding = 1e3 * precision * np.sum(np.abs(terms))
        assert abs(total - np.sum(terms)) <= rounding, f"{how} is {total} and not {np.sum(terms)}"

    def _pull_back(
        self,
        args: Args,
        seed: tuple[Any, ...],
        value: Any,
        left: Args,
        expected: _Expected,
        k: int,
        tol: float,
        how: str,
    ) -> None:
        assert self.wrt is not None
        given = copied(args)
        got, back = zygote_py.pullback(self.function, *given)
        same(got, value, f"{how}, pullback: the value", self.exact and not is_interpreted())
        _same_memory(given, left, f"{how}, pullback", exact=not is_interpreted())
        named = dict(zip(self.written, seed[1:], strict=True))
        results = () if value is None else seed[:1]
        gradients = back(*results, **named)
        assert isinstance(gradients, tuple), f"{how}, pullback: {type(gradients)} and no tuple of gradients"
        assert len(gradients) == len(self.names), f"{how}, pullback: {len(gradients)} gradients"
        chosen = tuple(gradients[self.names.index(name)] for name in self.wrt)
        self._like_arguments(args, chosen, f"{how}, pullback")
        expected.hold(k, real_parts(chosen), tol, f"{how}, seed {k}, pullback")
        same(back(*results, **named), gradients, f"{how}, pullback: the second call of back")

    def _like_arguments(self, args: Args, gradients: Any, how: str) -> None:
        """Gradients have the structure, shapes and dtypes of their arguments and memory of their own."""
        assert self.wrt is not None
        for name, gradient in zip(self.wrt, gradients, strict=True):
            _like(args[self.names.index(name)], gradient, f"{how}: the gradient of {name}")

    def at_zero_length(self, args: Args) -> None:
        """Nothing fails where the function does not, and gradients are zero where the results are empty."""
        try:
            results = self.result(args)
        except Exception as error:  # whatever Numba's function raises
            kind = type(error)
            try:
                zygote_py.pullback(self.function, *copied(args))
            except kind:
                return
            raise AssertionError(f"zero length: the function raises {kind.__name__}, the gradient does not") from error
        seed = tuple(seed_like(part, self.rng) for part in results)
        total, gradients = self.value_and_gradient(*copied(args), *_weights(seed))
        self._same_total(total, args, seed, "zero length: the value")
        self._like_arguments(args, gradients, "zero length")
        if not real_parts(seed).size:
            assert not np.any(real_parts(gradients)), "zero length: no result, but a gradient"


@dataclass
class _Expected:
    """For each seed its product with the Jacobian (None: too large), and the products with J v along directions."""

    rows: list[np.ndarray] | None
    directions: list[np.ndarray]
    products: list[list[float]]

    def hold(self, seed: int, gradient: np.ndarray, tolerance: float, how: str) -> None:
        """Compare a gradient, as real numbers in a row."""
        size = self.directions[0].size
        assert gradient.size == size, f"{how}: {gradient.size} numbers instead of {size}"
        if self.rows is not None:
            row = self.rows[seed]
            off = np.max(np.abs(gradient - row), initial=0.0) / max(np.max(np.abs(row), initial=0.0), 1e-3)
            assert off <= 10 * tolerance, f"{how}: off by {off:.1e}\n  is        {gradient}\n  should be {row}"
        for direction, product in zip(self.directions, self.products[seed], strict=True):
            found = float(gradient @ direction)
            scale = max(abs(product), float(np.abs(gradient) @ np.abs(direction)), 1e-6)
            assert abs(found - product) <= 10 * tolerance * scale, f"{how}: <J's, v> = {found}, <s, Jv> = {product}"


def _weights(seed: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(leaves(seed))


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


# Comparisons


def _like(arg: Any, gradient: Any, what: str) -> None:
    if isinstance(arg, tuple):
        assert isinstance(gradient, tuple), f"{what} is {type(gradient)}"
        assert len(gradient) == len(arg), f"{what} has {len(gradient)} items"
        assert not hasattr(arg, "_fields") or type(gradient) is type(arg), f"{what} is {type(gradient)}"
        for item, part in zip(arg, gradient, strict=True):
            _like(item, part, what)
    elif not is_active(arg):
        assert gradient is None, f"{what} is {gradient!r} and not None"
    elif isinstance(arg, np.ndarray):
        assert isinstance(gradient, np.ndarray), f"{what} is {gradient!r} and no array"
        assert gradient.shape == arg.shape, f"{what} has shape {gradient.shape}, not {arg.shape}"
        assert gradient.dtype == arg.dtype, f"{what} has dtype {gradient.dtype}, not {arg.dtype}"
        assert gradient.flags.writeable, f"{what} cannot be written to"
        assert not np.shares_memory(arg, gradient), f"{what} shares memory with the argument"
    else:
        assert np.shape(gradient) == (), f"{what} has shape {np.shape(gradient)}"


def _same_memory(given: Args, expected: Args, how: str, exact: bool = True) -> None:
    same(given, expected, f"{how}: the arguments are not left as the function leaves them", exact)
