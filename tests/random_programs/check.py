"""One random program: its gradient against the reference, and what else must hold.

    check(generate(random.Random(3), arrays=True), compiled=False).kind     # Kind.OK

In plain mode the emitted source runs in Python, with nothing compiled. In compiled mode the gradient is called as a
user would call it, twice, and its value compared bit by bit with the function compiled by Numba; two of its arrays
are made to share memory, which must be refused or right. An input at which the reference is in doubt is passed over; a
program with no other input is discarded.
"""

from __future__ import annotations

import enum
import itertools
import math
import re
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import numpy as np

from tests.checking.reference import Reference, distance, is_float, precise
from tests.checking.trees import copied
from tests.plain import plain
from tests.random_programs.containers import Form
from tests.random_programs.generator import Program, compiled as compiled_by_numba, load
from tests.random_programs.nested import exact, many_digits, takes_derivatives
from tests.random_programs.second import Derivatives, curvature, direction_of
from tests.random_programs.sharing import Failure, check_shared

TOLERANCE = 1e-8
SECONDS = 20.0  # for one program, compiling included
LONGER = 4.0  # times as many for one that works on whole arrays, whose functions Numba has to compile too
STEPS = 2.0  # seconds for the program itself in plain Python


class Kind(enum.StrEnum):
    """The outcome of a program."""

    OK = "ok"
    DISCARDED = "discarded"  # no input at which the reference can be trusted
    REFUSED = "refused"  # a DifferentiationError
    WRONG = "wrong"  # another gradient than the reference, or another value, or changed arguments
    CRASH = "crash"  # any other exception
    INVALID = "invalid"  # the program fails by itself: a fault of the generator


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program, its reason, and the position of the input at which it occurred."""

    kind: Kind
    detail: str = ""
    input: int = 0

    @property
    def signature(self) -> str:
        """The detail without what differs from program to program."""
        first = self.detail.strip().splitlines()[0] if self.detail.strip() else ""
        return f"{self.kind}: {re.sub(r'[0-9][0-9.e+-]*', '#', first)[:160]}"


class _Timeout(Exception):
    pass


Run = Callable[[tuple[Any, ...], Reference], None]


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Stop what runs inside after some seconds of the processor's time, if it runs Python code at all."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise _Timeout(f"no end after {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def check(program: Program, compiled: bool, order: int = 1) -> Outcome:
    """Run one program, its derivatives up to an order."""
    from zygote_py.adjoints import DifferentiationError  # here, so that generating needs no library

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            function = load(program.ordinary)
            with time_limit(STEPS * len(program.inputs)):
                primal = exact(function) if takes_derivatives(program.text) else function
                references = [_reference(program, primal, args, order) for args in program.inputs]
        except Exception as error:
            return Outcome(Kind.INVALID, f"{type(error).__name__}: {error}")
        trusted = [i for i, found in enumerate(references) if found.doubt is None]
        if not trusted:
            return Outcome(Kind.DISCARDED, str(references[0].doubt))
        position = trusted[0]
        try:
            with time_limit(
                SECONDS
                * (LONGER if program.writes or program.features or takes_derivatives(program.text) else 1.0)
                * order**2
            ):
                if program.held is not None:
                    run = (_held if order == 1 else _held_second)(program, function, compiled)
                elif order == 2:
                    run = _second(program, primal, program.inputs[position], compiled)
                elif takes_derivatives(program.text):
                    run = _nested(_differentiated(program, function), primal, program.inputs[position], compiled)
                elif compiled:
                    run = _compiled(program, function)
                else:
                    run = _plain(program, function, program.inputs[position])
                for position in trusted:
                    run(program.inputs[position], references[position])
        except DifferentiationError as error:
            failed = Outcome(Kind.REFUSED, error.message + "\n" + str(error), position)
            return _unless_numba_fails(program, function, program.inputs[position], failed)
        except Failure as failure:
            failed = Outcome(Kind.WRONG, str(failure), position)
            return _unless_numba_fails(program, function, program.inputs[position], failed)
        except Exception as error:
            detail = f"{type(error).__name__}: {error}\n{''.join(traceback.format_exception(error)[-6:])}"
            return _unless_numba_fails(
                program, function, program.inputs[position], Outcome(Kind.CRASH, detail, position)
            )
    return Outcome(Kind.OK)


def _unless_numba_fails(
    program: Program, function: Callable[..., Any], args: tuple[Any, ...], failed: Outcome
) -> Outcome:
    """The outcome, or a discard if Numba cannot compile the program itself or computes another value than Python.

    Of a program that passes inner functions on nothing is asked: Numba does not compile those.

    Of variables that only loops define Numba cannot always tell the type. In an endless loop it takes the wrong
    version of a variable that is assigned before a `break` or `return` and read further down (0.68.1).
    """
    if program.passes_functions:
        return failed
    if program.held is not None:
        form = Form(program.text, program.inputs[0], program.writes, program.held)
        failed = replace(failed, detail=f"{failed.detail}\n{form.text[form.text.index('def f(') :]}")
    expected = float(function(*copied(args)))
    try:
        value = float(compiled_by_numba(program.text)(*copied(args)))
    except Exception:
        return Outcome(Kind.DISCARDED, "Numba cannot compile it")
    if not abs(value - expected) <= 1e-9 * max(1.0, abs(expected)):
        return Outcome(Kind.DISCARDED, "Numba computes another value than Python")
    return failed


def _reference(program: Program, function: Callable[..., Any], args: tuple[Any, ...], order: int) -> Reference:
    if not takes_derivatives(program.text):
        return _reference_of_first(function, args) if order == 1 else _reference_of_second(function, args)
    with many_digits():
        return precise(function, *args) if order == 1 else _reference_of_second(function, args)


def _reference_of_first(function: Callable[..., Any], args: tuple[Any, ...]) -> Reference:
    found = precise(function, *args)
    value = float(function(*copied(args)))
    if found.doubt is None and abs(value - found.value) > 1e-9 * max(1e-3, abs(found.value)):
        return Reference(found.value, found.gradients, found.error, "the value in doubles is another")
    return found


def _reference_of_second(function: Callable[..., Any], args: tuple[Any, ...]) -> Reference:
    if not any(map(is_float, args)):
        return Reference(0.0, (), 0.0, "there is nothing to differentiate by")
    return curvature(function, args, direction_of(args))


def as_tuple(gradients: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients of all parameters, of which there is no tuple if there is one parameter."""
    return gradients if len(args) > 1 else (gradients,)


def same_bits(a: Any, b: Any) -> bool:
    """Whether two results are equal, NaN to itself and the zeros apart."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_bits, a, b))
    if a is None or b is None:
        return a is b
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return left.shape == right.shape and left.tobytes() == right.tobytes()


def _left(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return the result of a function, and the final contents of copies of its arguments."""
    given = copied(args)
    return function(*given), given


def _differentiated(program: Program, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that is to be differentiated, given that in which all callees are ordinary functions."""
    return load(program.text) if program.stand_in else function


def _plain(program: Program, function: Callable[..., Any], args: tuple[Any, ...]) -> Run:
    from zygote_py import value_and_gradient

    emitted = plain(value_and_gradient(_differentiated(program, function)).source(*args))

    def run(args: tuple[Any, ...], reference: Reference) -> None:
        given = copied(args)
        value, gradients = emitted(*given)
        gradients = as_tuple(gradients, args)
        _compare(function, args, gradients, reference)
        expected, left = _left(function, args)
        # NumPy adds up in another order than a loop does, and has an `exp` of its own for arrays.
        alike = _alike if program.writes or "np.sum(" in program.text else same_bits
        if not alike(value, expected):
            _must(_alike(value, expected), "another value", value, expected)
            _compiled(program, function)(args, reference)  # where `np.cosh` and `math.cosh` have the same last digit
        _must(alike(given, left), "the arguments are not left as by the function", given, left)

    return run


def _compiled(program: Program, function: Callable[..., Any]) -> Run:
    from zygote_py import value_and_gradient

    derivative = value_and_gradient(_differentiated(program, function))
    primal = function if program.passes_functions else compiled_by_numba(program.text)
    alike = _alike if program.passes_functions else same_bits

    def run(args: tuple[Any, ...], reference: Reference) -> None:
        given = copied(args)
        value, gradients = derivative(*given)
        gradients = as_tuple(gradients, args)
        _compare(function, args, gradients, reference)
        expected, left = _left(primal, args)
        _must(alike(value, expected), "another value than Numba's", value, expected)
        _must(alike(given, left), "the arguments are not left as by the function", given, left)
        again = derivative(*copied(args))
        _must(same_bits((again[0], as_tuple(again[1], args)), (value, gradients)), "another answer when called twice")
        in_python, slow = plain(derivative.source(*given))(*copied(args))
        off = distance((in_python, *as_tuple(slow, args)), (float(value), *gradients))
        _must(off < 1e-9, "plain Python and compiled code differ", (in_python, slow), (value, gradients))
        if program.writes:
            check_shared(function, derivative, args)

    return run


def _held(program: Program, function: Callable[..., Any], compiled: bool) -> Run:
    """The value and the gradient of a program that takes its arguments in containers."""
    from zygote_py import jvp, value_and_gradient

    assert program.held is not None
    form = Form(program.text, program.inputs[0], program.writes, program.held)
    own = load(form.text)
    derivative: Any = value_and_gradient(own)
    run_it = derivative if compiled else plain(derivative.source(*form.given(program.inputs[0])))

    def run(args: tuple[Any, ...], reference: Reference) -> None:
        given = form.given(copied(args))
        value, found = run_it(*given)
        gradients = form.taken(found if len(given) > 1 else (found,))
        numbers = [number for number, each in enumerate(reference.gradients) if each is None]
        _must(all(gradients[n] is None or gradients[n] == 0 for n in numbers), "an integer has a gradient", gradients)
        gradients = tuple(None if n in numbers else each for n, each in enumerate(gradients))
        _compare(function, args, gradients, reference)
        expected, left = _left(function, args)
        _must(_alike(value, expected), "another value", value, expected)
        _must(_alike(form.taken(given), left), "the arguments are not left as by the function", form.taken(given), left)
        if compiled and form.has_tangents and not any(isinstance(each, bool) for each in args):
            direction = direction_of(args)
            along = sum(float(np.sum(g * d)) for g, d in zip(gradients, direction, strict=True) if g is not None)
            slope = float(jvp(own, form.given(copied(args)), form.given(direction))[1])
            _must(math.isclose(slope, along, rel_tol=1e-7, abs_tol=1e-7), "another tangent", slope, along)

    return run


def _held_second(program: Program, function: Callable[..., Any], compiled: bool) -> Run:
    """The Hessian times a direction, of a program that takes its arguments in containers."""
    from zygote_py import hvp

    assert program.held is not None
    seeds = itertools.count(program.held)
    forms = (Form(program.text, program.inputs[0], program.writes, seed) for seed in seeds)
    form = next(form for form in forms if form.has_tangents)
    given = form.given(direction_of(program.inputs[0]))
    wrt = tuple(number for number, each in enumerate(given) if each is not None)
    product: Any = hvp(load(form.text), wrt=wrt)

    def along(args: tuple[Any, ...]) -> tuple[Any, ...]:
        direction = form.given(direction_of(args))
        return tuple(direction[number] for number in wrt)

    first = program.inputs[0]
    run_it = product if compiled else plain(product.source(*form.given(first), along(first)))

    def run(args: tuple[Any, ...], reference: Reference) -> None:
        found = dict(zip(wrt, run_it(*form.given(copied(args)), along(args)), strict=True))
        products = form.taken([found.get(number) for number in range(len(given))])
        products = tuple(None if b is None else a for a, b in zip(products, reference.gradients, strict=True))
        off = distance(products, reference.gradients)
        if off <= TOLERANCE or _second_is_ill_conditioned(function, args, reference, off):
            return
        raise Failure(f"the product is off by {off:.1e}\n  is        {products!r}\n  should be {reference.gradients!r}")

    return run


def _nested(function: Callable[..., Any], primal: Callable[..., Any], args: tuple[Any, ...], compiled: bool) -> Run:
    """The value and the gradient of a program that takes derivatives."""
    from zygote_py import value_and_gradient

    derivative: Any = value_and_gradient(function)
    run_it = derivative if compiled else plain(derivative.source(*args))

    def run(args: tuple[Any, ...], reference: Reference) -> None:
        value, gradients = run_it(*copied(args))
        with many_digits():
            _compare(primal, args, as_tuple(gradients, args), reference)
        _must(_alike(value, reference.value), "another value", value, reference.value)

    return run


def _second(program: Program, primal: Callable[..., Any], args: tuple[Any, ...], compiled: bool) -> Run:
    """Hessians times a direction, by `hvp`, reverse over reverse and over forward; forward over forward along it."""
    made = Derivatives(program, args)
    direction = made.in_direction(direction_of(args))

    def ready(derivative: Any, *given: Any) -> Any:
        return derivative if compiled else plain(derivative.source(*given))

    product = ready(made.product(), *args, direction)
    reverse = [(name, ready(made.gradient_of(name), *args, *direction)) for name in ("directed", "pushed")]
    forward = ready(made.pushed("pushed"), (*args, *direction), (*direction_of(args), *[None] * len(direction)))

    def run(args: tuple[Any, ...], reference: Reference) -> None:
        expected = tuple(each for each in reference.gradients if each is not None)
        direction = made.in_direction(direction_of(args))

        def compare(way: str, found: tuple[Any, ...], against: tuple[Any, ...]) -> None:
            off = distance(found, against)
            with many_digits():
                fine = off <= TOLERANCE or _second_is_ill_conditioned(primal, args, reference, off)
            if fine:
                return
            size = "of another form" if off == math.inf else f"off by {off:.1e}"
            raise Failure(f"{way} is {size}\n  is        {found!r}\n  should be {against!r}")

        compare("forward over reverse", product(*copied(args), direction), expected)
        for name, gradient in reverse:
            compare(
                "reverse over " + ("reverse" if name == "directed" else "forward"),
                gradient(*copied(args), *direction),
                expected,
            )
        given = (*copied(args), *direction)
        slope, curve = forward(given, (*direction_of(args), *[None] * len(direction)))
        along = sum(float(np.sum(np.asarray(a) * b)) for a, b in zip(expected, direction, strict=True))
        scale = (max((float(np.max(np.abs(each), initial=0.0)) for each in expected), default=0.0),)
        compare("forward", (slope, *scale), (reference.value, *scale))
        compare("forward over forward", (curve, *scale), (along, *scale))

    return run


def _second_is_ill_conditioned(
    function: Callable[..., Any], args: tuple[Any, ...], reference: Reference, off: float
) -> bool:
    """Whether the second derivatives move by as much when the inputs move by what rounding would explain."""
    moved = tuple(arg * (1 + 1e-12) if is_float(arg) else arg for arg in args)
    return distance(curvature(function, moved, direction_of(args)).gradients, reference.gradients) > 0.1 * off


def _alike(a: Any, b: Any) -> bool:
    """Whether two results are equal but for rounding."""
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_alike, a, b))
    return a is b or bool(np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))


def _must(holds: bool, what: str, *shown: Any) -> None:
    if not holds:
        raise Failure("\n  ".join((what, *map(repr, shown))))


def _compare(
    function: Callable[..., Any], args: tuple[Any, ...], gradients: tuple[Any, ...], reference: Reference
) -> None:
    off = distance(gradients, reference.gradients)
    if off <= TOLERANCE or _ill_conditioned(function, args, reference, off):
        return
    size = "of another form" if off == math.inf else f"off by {off:.1e}"
    raise Failure(f"the gradient is {size}\n  is        {gradients!r}\n  should be {reference.gradients!r}")


def _ill_conditioned(function: Callable[..., Any], args: tuple[Any, ...], reference: Reference, off: float) -> bool:
    """Whether the derivative moves by as much when the inputs move by what rounding would explain."""
    moved = [arg * (1 + 1e-12) if is_float(arg) else arg for arg in args]
    return distance(precise(function, *moved).gradients, reference.gradients) > 0.1 * off
