"""`check_gradient`: a comparison of derivatives with central differences, entry by entry, in a table.

    print(check_gradient(f, x, w))
    gradient of f: 5 entries compared, none is off
      argument   gradient    differences   off
      w[1]       0.25000000  0.25000000    3.1e-13

The differences are taken of the function compiled by Numba alone, or run in plain Python if Numba does not compile it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np

from zygote_py import numba_adapter
from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.api.differences import (
    both_parts,
    copied,
    leaves_of,
    one_sided,
    random_seed,
    slope,
    weighted,
    with_leaf,
)
from zygote_py.api.gradient import value_and_gradient
from zygote_py.base import structures
from zygote_py.compiler import Wrt, check_fit, make_request
from zygote_py.ir import Loc
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.runtime import pullback, shortening

_SHOWN = 10


@dataclass(frozen=True)
class Entry:
    """One number that was compared.

    Attributes
    ----------
    name : str
        The argument and the position in it, such as `x[3]` or `model.w[0, 1]`; `value` is the value of the function.
    ours : complex
        The derivative that the library computes.
    differences : complex
        The derivative by differences.
    off : float
        The absolute value of their difference.
    allowed : float
        The tolerance.
    note : str
        A remark on the differences: that the point is a kink, or that results for different steps disagree.
    is_wrong : bool
        Whether the entry counts as wrong.
    """

    name: str
    ours: complex
    differences: complex
    off: float
    allowed: float
    note: str
    is_wrong: bool


@dataclass(frozen=True)
class GradientReport:
    """The result of `check_gradient`. Its text is a table of the entries with the largest differences.

    Attributes
    ----------
    function : str
        The name of the function.
    entries : tuple of Entry
        All entries that were compared, in the order of the arguments.

    Examples
    --------
    >>> from zygote_py import check_gradient
    >>> report = check_gradient(lambda x, y: x * y, 2.0, 3.0)
    >>> report.wrong
    ()
    """

    function: str
    entries: tuple[Entry, ...]

    @property
    def wrong(self) -> tuple[Entry, ...]:
        """The entries that are wrong."""
        return tuple(entry for entry in self.entries if entry.is_wrong)

    def worst(self, count: int = _SHOWN) -> list[Entry]:
        """Return the entries whose differences are largest relative to the tolerance; wrong ones first."""

        def rank(entry: Entry) -> tuple[bool, float]:
            share = entry.off / entry.allowed if entry.allowed else np.inf * (entry.off > 0)
            return entry.is_wrong, np.inf if np.isnan(share) else share

        return sorted(self.entries, key=rank, reverse=True)[:count]

    def __str__(self) -> str:
        wrong = len(self.wrong)
        said = f"{wrong} of them off" if wrong else "none is off"
        lines = [f"gradient of {self.function}: {len(self.entries)} entries compared, {said}"]
        rows = [("argument", "gradient", "differences", "off", "")]
        for entry in self.worst():
            mark = "wrong" if entry.is_wrong else ""
            note = "; ".join(filter(None, (mark, entry.note)))
            rows.append((entry.name, _text(entry.ours), _text(entry.differences), f"{entry.off:.2g}", note))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(("  " + "  ".join(cells)).rstrip())
        if len(self.entries) > _SHOWN:
            lines.append(f"  and {len(self.entries) - _SHOWN} more")
        return "\n".join(lines)

    __repr__ = __str__


@shortening
def check_gradient(
    f: Callable[..., Any],
    *args: Any,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float = 1e-8,
    most: int | None = 100,
    forward: bool = False,
    has_aux: bool = False,
    seed: int = 0,
) -> GradientReport:
    """Compare the derivatives of a function with central differences.

    Parameters
    ----------
    f : callable
        A function as for `gradient` or `pullback`. Its results, including the arrays that it writes to, are combined
        with a random weight for each number.
    *args : numbers, arrays and structures of these
        The arguments. They are not changed.
    wrt : str, int or tuple of these, optional
        The parameter or parameters to compare, by name or number. The default is all.
    rtol, atol : float
        The tolerance is `atol + rtol * largest`, where `largest` is the largest derivative in the same array. The
        default `rtol` is 1e-6, and 1e-2 if an argument has single precision.
    most : int or None
        The maximal number of elements of an array that are compared, chosen at random; None for all. Each takes some
        twenty to forty runs of the function.
    forward : bool
        Whether to compare forward mode along a random direction, too.
    has_aux : bool
        Whether `f` returns a pair of which only the first element is differentiated.
    seed : int
        The seed of the random weights and choices.

    Returns
    -------
    GradientReport
        The entries that were compared. At a kink, where the one-sided slopes differ, every number between them is
        accepted, and the table says so. It also says where the results for different steps disagree, so that they are
        unreliable.

    Raises
    ------
    DifferentiationError
        If an entry is wrong: the message contains the table, and the attribute `report` the report. Also if the
        function cannot be differentiated.

    Examples
    --------
    >>> import numpy as np
    >>> import zygote_py as zg
    >>> def f(x, k):
    ...     return k * np.sum(np.sin(x))
    >>> report = zg.check_gradient(f, np.array([0.1, 0.2, 0.3]), 2.0)
    >>> len(report.entries), report.wrong
    (5, ())
    """
    func: Any = numba_adapter.py_func_of(getattr(f, "primal", f))
    if not inspect.isfunction(func):
        raise DifferentiationError(f"`{f!r}` is not a Python function", hint="write a function that calls it")
    loc = Loc(func.__code__.co_filename, func.__code__.co_firstlineno)
    check_fit(func, args, {})
    bound = inspect.signature(func).bind(*args)
    for number, arg in enumerate(args):
        for path, leaf in structures.leaves(f"argument {number}", arg):
            if _is_container(leaf):
                hint = "compare with differences of one number or array in it"
                what = f"{path}, a value of type `{type(leaf).__name__}`"
                raise refuse(f"`check_gradient` does not take {what}", loc, hint)
    bound.apply_defaults()
    check = _Check(f, func, loc, tuple(bound.args), wrt, rtol, atol, most, has_aux, np.random.default_rng(seed))
    report = GradientReport(func.__name__, tuple(check.entries(forward)))
    if report.wrong:
        error = refuse(f"the gradient is off\n{report}", loc, "report it, or correct the rule that was given", "def")
        error.report = report  # type: ignore[attr-defined]
        raise error
    return report


def _is_container(value: Any) -> bool:
    """Return whether this is a list, a dict, a record, a structured array or an object of a jitclass."""
    containers = list | numba.typed.List | numba.typed.Dict | np.void
    is_structured = isinstance(value, np.ndarray) and value.dtype.names is not None
    return isinstance(value, containers) or is_structured or hasattr(value, "_numba_type_")


class _Check:
    """One comparison: the function, its arguments, and the options."""

    def __init__(
        self,
        f: Callable[..., Any],
        func: Any,
        loc: Loc,
        args: tuple[Any, ...],
        wrt: Wrt,
        rtol: float | None,
        atol: float,
        most: int | None,
        has_aux: bool,
        random: np.random.Generator,
    ) -> None:
        self.f, self.loc, self.atol, self.most, self.has_aux, self.random = f, loc, atol, most, has_aux, random
        parameters = inspect.signature(func).parameters
        names = list(parameters)
        if any(each.kind is each.VAR_POSITIONAL for each in parameters.values()):
            names[-1:] = [f"{names[-1]}[{number}]" for number in range(len(args) - len(names) + 1)]
        self.names = names
        self.asked = self._asked(func, wrt, len(args))
        self.args = tuple(
            float(arg) if number in self.asked and _is_integer(arg) and (wrt is not None or len(args) == 1) else arg
            for number, arg in enumerate(args)
        )
        single = any(np.asarray(leaf).dtype in (np.float32, np.complex64) for leaf in leaves_of(self.args))
        self.rtol = (1e-2 if single else 1e-6) if rtol is None else rtol
        self.function = _reference(f, func, self.args)
        self.value, left = self._run(self.args)
        self.is_loss = isinstance(self.value, float | np.floating | int | np.integer)
        self.back = None if self.is_loss else pullback(f, *copied(self.args))[1]
        written = () if self.back is None else self.back.written
        self.weights = [1.0] if self.is_loss else [np.array(w) for w in leaves_of((random_seed(self.value, random),))]
        named = zip(self.names, left, strict=True)
        self.after = [random_seed(each, random) if name in written else _nothing(each) for name, each in named]
        if not _same(self.loss(self.args), self.loss(self.args)):
            raise refuse(
                "the function gives another value each time that it is called",
                loc,
                "check it without random numbers, or seed them in the function",
            )

    def _asked(self, func: Any, wrt: Wrt, count: int) -> tuple[int, ...]:
        if any(each.kind is each.VAR_POSITIONAL for each in inspect.signature(func).parameters.values()):
            if wrt is not None:
                raise refuse("`wrt` of a function of any number of arguments", self.loc, "leave it out")
            return tuple(range(count))
        numbers = make_request(func, wrt, with_value=False).wrt
        if numbers is None:
            return tuple(range(count))
        for one in numbers:
            if isinstance(one, str):
                raise refuse(
                    f"`check_gradient` with respect to `{one}`, which is not a parameter", self.loc, "make it one"
                )
        return tuple(number for number in numbers if isinstance(number, int))

    def _run(self, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Return the value for copies of the arguments, and the contents of the copies afterwards."""
        given = copied(args)
        value = self.function(*given)
        if self.has_aux:
            if not isinstance(value, tuple) or len(value) != 2:
                raise refuse("with `has_aux=True` the function has to return a pair", self.loc, "return `loss, aux`")
            value = value[0]
        return value, given

    def loss(self, args: tuple[Any, ...]) -> float:
        """Return the number that is differentiated: the weighted sum of all results."""
        value, written = self._run(args)
        total = weighted(self.weights, leaves_of((value,)))
        return total if self.is_loss else total + weighted(leaves_of(self.after), leaves_of(written))

    def _gradients(self) -> tuple[Any, tuple[Any, ...]]:
        """Return the value and the gradients of the selected parameters."""
        if self.back is None:
            value, gradients = value_and_gradient(self.f, wrt=self.asked, has_aux=self.has_aux)(*copied(self.args))
            return value[0] if self.has_aux else value, gradients
        seeds = {name: self.after[self.names.index(name)] for name in self.back.written}
        weights = iter(self.weights)

        def weight(leaf: Any) -> Any:
            found: Any = next(weights)
            return found if isinstance(leaf, np.ndarray) else found.item()

        seed = (structures.map_leaves(weight, self.value),) if _has_floats(self.value) else ()
        every = self.back(*seed, **seeds)
        return self.value, tuple(every[number] for number in self.asked)

    def entries(self, forward: bool) -> Iterator[Entry]:
        """Return all entries that are compared."""
        value, gradients = self._gradients()
        if self.is_loss:
            off = abs(complex(value) - complex(self.value))
            allowed = self.atol + self.rtol * abs(complex(self.value))
            wrong = not (off <= allowed or _same(value, self.value))
            yield Entry("value", value, self.value, off, allowed, "", wrong)
        starts = np.cumsum([0, *(len(leaves_of((arg,))) for arg in self.args)])
        for number, gradient in zip(self.asked, gradients, strict=True):
            found = structures.leaves(self.names[number], self.args[number], gradient)
            for place, (name, leaf, ours) in enumerate(found):
                if np.asarray(leaf).dtype.kind in "fc":
                    yield from self._of_leaf(int(starts[number]) + place, name, leaf, ours)
        if forward:
            yield self._forward()

    def _of_leaf(self, number: int, name: str, leaf: Any, ours: Any) -> Iterator[Entry]:
        """Return the entries of one number or array."""
        if ours is None or np.shape(ours) != np.shape(leaf):
            yield Entry(name, np.nan, np.nan, np.inf, 0.0, f"a gradient of shape {np.shape(ours)}", True)
            return
        got = np.asarray(ours)
        places = list(np.ndindex(np.shape(leaf)))
        if self.most is not None and len(places) > self.most:
            places = [places[at] for at in sorted(self.random.choice(len(places), self.most, replace=False))]

        def loss(moved: Any) -> float:
            return self.loss(with_leaf(self.args, number, moved))

        found = [both_parts(leaf, place, loss) for place in places]
        finite = [abs(value) for value, _ in found if np.isfinite(value)]
        allowed = self.atol + self.rtol * max(finite, default=0.0)
        for place, (value, error) in zip(places, found, strict=True):
            text = f"{name}[{', '.join(map(str, place))}]" if place else name
            off = abs(complex(got[place]) - value)
            note, wrong = "", not off <= allowed
            if wrong and not np.isfinite(value):
                note, wrong = "the differences are not finite: the function has an edge or a pole here", False
            elif wrong and np.isfinite(complex(got[place])):
                note, wrong = _judged(leaf, place, loss, got[place], off, error, allowed)
            elif not wrong and error > allowed:
                note = "the steps disagree"
            yield Entry(text, got[place].item(), value, off, allowed, note, wrong)

    def _forward(self) -> Entry:
        """Compare forward mode along a random direction with differences in this direction."""
        from zygote_py.api.directions import jvp

        tangents = tuple(
            _zeroed(random_seed(arg, self.random)) if number in self.asked and _has_floats(arg) else None
            for number, arg in enumerate(self.args)
        )
        value, change = jvp(self.f, self.args, tangents)
        change = change[0] if self.has_aux else change
        if not _has_floats(value[0] if self.has_aux else value):
            raise refuse("forward mode of a function that returns no floats", self.loc, "leave out `forward`")
        ours = weighted(self.weights, leaves_of((change,)))
        after, self.after = self.after, [_nothing(each) for each in self.after]

        def along(t: Any) -> float:
            return self.loss(tuple(map(lambda arg, d: _along(arg, d, float(t)), self.args, tangents)))

        expected, error = slope(0.0, (), 1.0, along)
        self.after = after
        off, allowed = abs(ours - expected), self.atol + self.rtol * abs(expected) + 10 * error
        return Entry("forward mode", ours, expected, off, allowed, "", not off <= allowed)


def _reference(f: Any, func: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the function compiled by Numba alone, or the Python function if Numba does not compile it."""
    if hasattr(f, "form"):
        return f  # type: ignore[no-any-return]
    if numba_adapter.jit_is_disabled():
        return func  # type: ignore[no-any-return]
    compiled = f if numba_adapter.is_dispatcher(f) else numba.njit(func)
    try:
        compiled.compile(tuple(map(numba_adapter.typeof, args)))
    except Exception:  # Numba raises errors of several kinds for what it does not compile
        return func  # type: ignore[no-any-return]
    return compiled  # type: ignore[no-any-return]


def _judged(
    leaf: Any, place: tuple[int, ...], loss: Callable[[Any], float], ours: Any, off: float, error: float, allowed: float
) -> tuple[str, bool]:
    """Return a remark on an entry that the differences do not confirm, and whether it is wrong."""
    if np.asarray(leaf).dtype.kind == "f":
        size = max(abs(float(np.asarray(leaf)[place])), 1e-2)
        double = np.asarray(leaf).dtype.itemsize > 4
        sides = [one_sided(leaf, place, 1.0, loss, step * size) for step in ((1e-5, 1e-6) if double else (1e-2, 2e-3))]
        gaps = [abs(left - right) for left, right in sides]
        low, high = sorted(sides[-1])
        if min(gaps) > 100 * allowed and gaps[1] > 0.5 * gaps[0]:
            slack = allowed + 1e-3 * gaps[1]
            inside = low - slack <= float(ours) <= high + slack
            what = "a jump" if gaps[1] > 3 * gaps[0] else "a kink"
            return f"{what}: the slopes are {_text(low)} and {_text(high)}", not inside
    if not error <= allowed:
        return "the steps disagree", bool(off > allowed + 10 * error)
    return "", True


def _zeroed(tangent: Any) -> Any:
    """Return a tangent with None for entries that have no derivative."""
    return structures.map_leaves(lambda leaf: leaf if np.asarray(leaf).dtype.kind in "fc" else None, tangent)


def _along(arg: Any, tangent: Any, t: float) -> Any:
    def moved(leaf: Any, change: Any) -> Any:
        if change is None:
            return leaf
        there = np.asarray(leaf) + np.asarray(t * np.asarray(change), np.asarray(leaf).dtype)
        return there if isinstance(leaf, np.ndarray) else there.item()

    return structures.map_leaves(moved, arg, tangent)


def _nothing(value: Any) -> Any:
    return structures.map_leaves(
        lambda leaf: np.zeros_like(leaf) if np.asarray(leaf).dtype.kind in "fc" else leaf, value
    )


def _has_floats(value: Any) -> bool:
    return any(np.asarray(leaf).dtype.kind in "fc" for leaf in leaves_of((value,)))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one, other, equal_nan=True))


def _text(value: complex) -> str:
    return f"{value:.9g}"
