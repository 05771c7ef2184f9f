"""One kernel and its adjoint: values and gradients in three orders of the threads, against differences, and races.

    check(generate(3), seed=3).kind     # Kind.OK

The reference is a central difference of fourth order of the kernel itself, in double precision, in each element that
the kernel touches; the gradient in the others is the seed. Where it disagrees with the adjoint, two smaller steps must
agree with each other and disagree too, else the kernel is discarded: it is at a kink or jumps. A kernel is also
discarded if its own threads race, or its result depends on their order; in single precision, if its errors grow.
"""

from __future__ import annotations

import enum
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda

import zygote_py as zg
from tests.kernels.random_kernels.case import EXTREMES, Case, load
from tests.kernels.random_kernels.races import Log, addresses
from tests.kernels.random_kernels.simulator import ORDERS, threads_in
from tests.random_programs.check import time_limit

STEP, SMALLER_STEPS = 2e-4, (2.3e-5, 3e-6)
TOLERANCE, SINGLE_TOLERANCE = 1e-6, 2e-3
SECONDS = 60.0
Place = tuple[int, tuple[int, ...]]  # the number of an argument, and an index


class Kind(enum.StrEnum):
    """The outcome of a kernel."""

    OK = "ok"
    DISCARDED = "discarded"  # the kernel itself races, fails or jumps
    REFUSED = "refused"  # a DifferentiationError
    WRONG = "wrong"  # another gradient or value, or a race, or any other exception


@dataclass(frozen=True)
class Outcome:
    """The outcome of a kernel, and why it is so."""

    kind: Kind
    detail: str = ""

    @property
    def signature(self) -> str:
        """The detail without what differs from kernel to kernel."""
        first = self.detail.strip().splitlines()[0] if self.detail.strip() else ""
        return re.sub(r"[0-9][0-9.e+-]*", "#", re.sub(r"^<.*?>:\d+: ", "", first))[:150]


class _DiscardedError(Exception):
    pass


class _WrongError(Exception):
    pass


def check(case: Case, seed: int = 0, make_adjoint: Callable[[Any], Any] | None = None) -> Outcome:
    """Run a kernel and its adjoint on random arguments. `make_adjoint` is `zg.adjoint_kernel` unless it is given."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), time_limit(SECONDS):
        warnings.simplefilter("ignore")
        try:
            _check(case, seed, make_adjoint or zg.adjoint_kernel)
        except _DiscardedError as found:
            return Outcome(Kind.DISCARDED, str(found))
        except zg.DifferentiationError as found:
            return Outcome(Kind.REFUSED, str(found))
        except _WrongError as found:
            return Outcome(Kind.WRONG, str(found))
        except Exception as error:
            return Outcome(Kind.WRONG, f"{type(error).__name__}: {error}\n{traceback.format_exc()[-2000:]}")
    return Outcome(Kind.OK)


def _check(case: Case, seed: int, make_adjoint: Callable[[Any], Any]) -> None:
    reference = _Reference(case, seed)
    adjoint = make_adjoint(load(case.text))
    expected: list[np.ndarray | None] | None = None
    for order in ORDERS:
        args = [_on_device(each) for each in case.arguments(seed)]
        shadows = [None if each is None else cuda.to_device(each.copy()) for each in reference.seeds]
        given = [x for pair in zip(args, shadows, strict=True) for x in pair if x is not None]
        log = Log()
        with threads_in(order, log):
            adjoint[case.launched](*given)
        expected = expected or reference.gradients()
        _compare_values(case, order, args, reference.finals)
        _compare_gradients(case, order, shadows, expected, reference)
        # A thread reads the shadow of a maximum, and takes of it if its value is the maximum: no other one does then.
        allowed = {"read", "atomic"} if EXTREMES in case.features else set()
        races = [race for race in log.races if {race.kind, race.other_kind} != allowed]
        if races:
            raise _WrongError(f"a race, {order}: {races[0]}")
        if log.has_left_out and not reference.has_left_out:
            raise _WrongError(f"some threads leave out a barrier, {order}")


class _Reference:
    """The values of the arrays after a kernel, and the derivative of a weighted sum of that."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case = case.double
        self.kernel = load(self.case.text)
        self.args = [_as_double(each) for each in case.arguments(seed)]
        rng = np.random.default_rng(seed + 77)
        self.seeds = [
            rng.normal(size=each.shape).astype(each.dtype) if _is_float(each) else None for each in case.arguments(seed)
        ]
        self.has_left_out = False
        self.finals, self.touched = self._finals()
        if case.single and not all(map(_are_nearly_equal, self._single(case, seed), self.finals)):
            raise _DiscardedError("the errors of single precision grow in the kernel")

    def _finals(self) -> tuple[list[Any], set[Place]]:
        """Return what the arguments are after the kernel, and which elements it touches."""
        finals, touched = None, set()
        for order in ORDERS:
            log = Log()
            try:
                found, on_device = self._run(self.args, order, log)
            except (ArithmeticError, IndexError, ValueError) as error:
                raise _DiscardedError(f"the kernel fails: {type(error).__name__}: {error}") from error
            if log.races:
                raise _DiscardedError("the threads of the kernel race")
            if not all(np.isfinite(each).all() for each in found if _is_float(each)):
                raise _DiscardedError("the kernel makes infinite values, or reads what it has not set")
            if finals is not None and not all(map(_are_close, found, finals)):
                raise _DiscardedError("the result of the kernel depends on the order of its threads")
            finals, touched = found, _touched(on_device, log)
            self.has_left_out |= log.has_left_out
        assert finals is not None
        return finals, touched

    def _single(self, case: Case, seed: int) -> list[Any]:
        """Return what the arguments are after the kernel in single precision."""
        given = [_on_device(each) for each in case.arguments(seed)]
        with threads_in():
            load(case.text)[case.launched](*given)
        return [each.copy_to_host() if hasattr(each, "copy_to_host") else each for each in given]

    def _run(self, args: Sequence[Any], order: str = ORDERS[0], log: Log | None = None) -> tuple[list[Any], list[Any]]:
        """Return copies of the arguments after the kernel, and those on the device."""
        given = [_on_device(each) for each in args]
        with threads_in(order, log):
            self.kernel[self.case.launched](*given)
        return [each.copy_to_host() if hasattr(each, "copy_to_host") else each for each in given], given

    def gradients(self) -> list[np.ndarray | None]:
        """Return the derivative by each argument, None for those that have none."""
        found = [None if seed is None else seed.astype(np.float64) for seed in self.seeds]
        for number, place in self.touched:
            found[number][place] = self.derivative((number, place), STEP)  # type: ignore[index]
        return found

    def derivative(self, at: Place, step: float) -> float:
        number, place = at

        def total(by: float) -> float:
            args = list(self.args)
            args[number] = args[number].copy()
            args[number][place] += by
            finals, _ = self._run(args)
            return sum(
                float(np.sum(seed * final)) for seed, final in zip(self.seeds, finals, strict=True) if seed is not None
            )

        return (8 * (total(step) - total(-step)) - (total(2 * step) - total(-2 * step))) / (12 * step)


def _compare_values(case: Case, order: str, args: Sequence[Any], finals: Sequence[Any]) -> None:
    for name, each, final in zip(case.parameters, args, finals, strict=True):
        tolerance = SINGLE_TOLERANCE if case.single else TOLERANCE
        if isinstance(final, np.ndarray) and not _are_close(each.copy_to_host(), final, tolerance):
            raise _WrongError(f"a value, {order}: `{name}` is {each.copy_to_host().tolist()}, not {final.tolist()}")


def _compare_gradients(
    case: Case, order: str, shadows: Sequence[Any], expected: Sequence[np.ndarray | None], reference: _Reference
) -> None:
    scale = max([1.0, *(float(np.abs(each).max()) for each in expected if each is not None and each.size)])
    tolerance = (SINGLE_TOLERANCE if case.single else TOLERANCE) * scale
    wrong = []
    for number, (shadow, gradient) in enumerate(zip(shadows, expected, strict=True)):
        if gradient is None:
            continue
        found = shadow.copy_to_host().astype(np.float64)
        wrong += [
            ((number, place), found[place])
            for place in np.ndindex(gradient.shape)
            if not abs(found[place] - gradient[place]) <= tolerance
        ]
    for at, value in wrong:
        one, other = (reference.derivative(at, step) for step in SMALLER_STEPS)
        if abs(one - other) > 1e-4 * scale:
            raise _DiscardedError("the result of the kernel has a kink")
        if not min(abs(value - one), abs(value - other)) <= tolerance + 1e-5 * scale:
            number, place = at
            raise _WrongError(
                f"a gradient, {order}: `d{case.parameters[number]}{list(place)}` is {value:.10g}, not {one:.10g}"
            )


def _touched(args: Sequence[Any], log: Log) -> set[Place]:
    """Return the elements of arrays of floats that a kernel reads or writes."""
    found = set()
    for number, each in enumerate(args):
        array = getattr(each, "_ary", None)
        if _is_float(array):
            places = zip(np.ndindex(array.shape), addresses(array), strict=True)
            found |= {(number, place) for place, address in places if address in log.touched}
    return found


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _as_double(value: Any) -> Any:
    return value.astype(np.float64) if _is_float(value) else value


def _on_device(value: Any) -> Any:
    return cuda.to_device(value.copy()) if isinstance(value, np.ndarray) else value


def _are_nearly_equal(one: Any, other: Any) -> bool:
    """Return whether values differ by a tenth at most of what is tolerated in single precision."""
    return _are_close(one, other, SINGLE_TOLERANCE / 10)


def _are_close(one: Any, other: Any, tolerance: float = 1e-9) -> bool:
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance))
