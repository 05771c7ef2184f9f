"""The comparisons that `check_adjoint` and `check_inverse` make.

check_rule(given_for(f), (2.0, x), None, 1e-8)      # raises DifferentiationError: the gradient for `x[3]` is ...
check_undone(given_for(step), (2.0, x), None, 0.0)  # raises DifferentiationError: it does not undo it

The rule is called as a differentiated function calls it. The function itself runs in plain Python if it is written in
Python, and compiled otherwise. The differences are central, with three steps and two Richardson extrapolations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numba
import numpy as np

import zygote_py.numpy_functions  # noqa: F401 (it registers the functions that `lower` knows)
from zygote_py import numba_adapter
from zygote_py.adjoints import Custom, DifferentiationError, refuse
from zygote_py.api.differences import both_parts, copied, leaves_of, random_seed, weighted, with_leaf
from zygote_py.base import CustomRule, caller, name_of, parts, place_of, python_function
from zygote_py.emit import NJIT, emit
from zygote_py.frontend import lower
from zygote_py.frontend.custom_calls import names_of
from zygote_py.ir import passes, write_out_guards
from zygote_py.ir.arrays import expand_arrays


def check_rule(given: CustomRule, args: tuple[Any, ...], rtol: float | None, atol: float) -> None:
    """Compare the gradients of a custom rule with differences. Raises DifferentiationError."""
    from zygote_py.runtime import pullback

    args = _with_defaults(given, args)
    call = _calling(given.target, len(args))
    reached = _reached(given, call, args)
    single = any(leaf.dtype in (np.float32, np.complex64) for leaf in map(np.asarray, leaves_of(args)))
    rtol = (1e-2 if single else 1e-6) if rtol is None else rtol
    function = _function(given, len(args), call)
    _, back = pullback(call, *copied(args))
    expected = function(*copied(args))
    value = _value_of_rule(given, args)(*copied(args))
    _compare_values(given, value, expected, rtol, atol)
    random = np.random.default_rng(20)
    seed = 1.0 if isinstance(value, float | np.floating) else random_seed(value, random)
    weights = [np.array(leaf) for leaf in leaves_of((seed,))]
    gradients = back(seed)

    def loss(moved: tuple[Any, ...]) -> float:
        return weighted(weights, leaves_of((function(*copied(moved)),)))

    names = names_of(given, list(numba_adapter.signature_of_given(given, len(args)).parameters), len(args))
    for number, (path, leaf, gradient) in enumerate(_paths(args, gradients, names)):
        if number not in reached or np.asarray(leaf).dtype.kind not in "fc":
            continue
        _compare(given, path, leaf, gradient, _of_leaf(loss, args, number), rtol, atol)


def check_undone(given: CustomRule, args: tuple[Any, ...], rtol: float | None, atol: float) -> None:
    """Compare the state that an inverse restores with the state before the step. Raises DifferentiationError."""
    what, loc = f"the inverse `{name_of(given.inverse)}` of `{given.name}`", place_of(given.inverse)
    parameters = list(numba_adapter.signature_of_given(given, len(args)).parameters.values())
    if not args or len(args) > len(parameters):
        raise refuse(f"`{given.name}` takes {len(parameters)} arguments, not {len(args)}", loc, "give what it takes")
    after = _function(given, len(args), _calling(given.target, len(args)))(*copied(args))
    unstep = python_function(given.inverse)
    before = unstep(after, *copied(args[1:]), *(each.default for each in parameters[len(args) :]))
    name = parameters[0].name
    wanted, got = list(_paths([args[0]], [None], [name])), list(_paths([before], [None], [name]))
    hint = "let it return the state before the step"
    if [path for path, _, _ in wanted] != [path for path, _, _ in got]:
        raise refuse(f"{what} gives {before!r} for the state {args[0]!r}", loc, hint, "def")
    for (path, expected, _), (_, value, _) in zip(wanted, got, strict=True):
        if np.shape(value) != np.shape(expected):
            shapes = f"the shape {np.shape(value)}, and it has {np.shape(expected)}"
            raise refuse(f"{what} gives `{path}` with {shapes}", loc, hint, "def")
        single = np.asarray(expected).dtype in (np.float32, np.complex64)
        relative = (1e-4 if single else 1e-9) if rtol is None else rtol
        off = np.abs(np.asarray(value) * 1.0 - np.asarray(expected) * 1.0)
        if not np.all(off <= atol + relative * np.max(np.abs(expected), initial=0.0)):
            raise refuse(f"{what} does not undo it: `{path}` is off by {np.max(off):.3g}", loc, hint, "def")


def _of_leaf(loss: Callable[[tuple[Any, ...]], float], args: tuple[Any, ...], number: int) -> Callable[[Any], float]:
    """Return the loss as a function of one of the leaves of the arguments."""
    return lambda moved: loss(with_leaf(args, number, moved))


def _with_defaults(given: CustomRule, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments, with default values for those that are missing."""
    if not numba_adapter.is_python(given.target):
        return args
    function = python_function(given.target)
    try:
        bound = inspect.signature(function).bind(*args)
    except TypeError as error:
        raise refuse(f"`{given.name}` cannot be called with these arguments: {error}", None, "") from None
    bound.apply_defaults()
    return (*bound.args, *bound.kwargs.values())


def _calling(function: Callable[..., Any], count: int, read: str = "") -> Callable[..., Any]:
    """Return a Python function of that many parameters that calls another, passing keyword-only parameters by name."""
    names = [f"x{number}" for number in range(count)]
    python = python_function(function)
    keywords = []
    if inspect.isfunction(python):
        parameters = inspect.signature(python).parameters.values()
        keywords = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    first = count - len(keywords)
    passed = [*names[:first], *(f"{word}={name}" for word, name in zip(keywords, names[first:], strict=True))]
    return caller(function, ", ".join(names), ", ".join(passed), body=f"return {{call}}{read}")


def _reached(given: CustomRule, call: Callable[..., Any], args: tuple[Any, ...]) -> frozenset[int]:
    """Return the leaves of the arguments for which the rule returns gradients."""
    routines = lower(call, [numba_adapter.typeof(arg) for arg in args]).routines
    for routine in routines:
        if isinstance(routine.derivation, Custom) and routine.derivation.name == str(given):
            return routine.passes or frozenset()
    raise refuse(f"`{given.name}` never calls its rule", given.loc)


def _value_of_rule(given: CustomRule, args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the function that computes the value of the rule."""
    value = _calling(python_function(given.rule), len(args), "[0]")
    lowered = lower(value, [numba_adapter.typeof(arg) for arg in args])
    for function in lowered.functions:
        passes.run(function, passes.CLEAN_UP)
        expand_arrays(function)
        write_out_guards(function)
        passes.run(function, passes.CLEAN_UP)
    loaded = numba_adapter.load(emit(lowered.function, name="value", target=NJIT))
    captured = [capture.read() for capture in lowered.hidden]
    return lambda *given_args: loaded(*given_args, *captured)


def _function(given: CustomRule, count: int, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function without its rule."""
    if numba_adapter.is_python(given.target):
        return _calling(python_function(given.target), count)
    if numba_adapter.jit_is_disabled():
        return given.target
    compiled: Callable[..., Any] = numba.njit(call)
    return compiled


# -------------------------------------------------------------------------------------------------- values and leaves


def _paths(args: Sequence[Any], gradients: Sequence[Any], names: Sequence[str]) -> Iterator[tuple[str, Any, Any]]:
    """Return the numbers and arrays in the arguments, with their names for messages, and their gradients."""
    for arg, gradient, name in zip(args, gradients, names, strict=True):
        held = parts(arg)
        if held is None:
            yield name, arg, gradient
            continue
        inner = (None,) * len(held) if gradient is None else parts(gradient)
        assert inner is not None
        yield from _paths(held, inner, [f"{name}[{number}]" for number in range(len(held))])


# ------------------------------------------------------------------------------------------------------- comparisons


def _compare_values(given: CustomRule, value: Any, expected: Any, rtol: float, atol: float) -> None:
    for got, wanted in zip(leaves_of((value,)), leaves_of((expected,)), strict=True):
        if np.asarray(wanted).dtype.kind not in "fciub":
            continue
        if np.shape(got) != np.shape(wanted) or not np.allclose(got, wanted, rtol, atol, equal_nan=True):
            raise refuse(
                f"{given} gives the value {got!r}, and `{given.name}` gives {wanted!r}",
                given.loc,
                "let it return what the function returns",
                "def",
            )


def _compare(
    given: CustomRule, path: str, leaf: Any, gradient: Any, loss: Callable[[Any], float], rtol: float, atol: float
) -> None:
    """Compare the gradient of one number or array with differences."""
    expected = np.zeros(np.shape(leaf), np.result_type(np.asarray(leaf).dtype, np.float64))
    for index in np.ndindex(np.shape(leaf)):
        expected[index] = both_parts(leaf, index, loss)[0]
    got = np.asarray(gradient)
    if got.shape != expected.shape:
        raise _off(given, f"the gradient for `{path}` has the shape {got.shape}, and `{path}` {expected.shape}")
    off = np.abs(got - expected)
    allowed = atol + rtol * float(np.max(np.abs(expected), initial=0.0))
    wrong = ~(off <= allowed)
    if np.any(wrong):
        worst = np.unravel_index(np.argmax(np.where(np.isnan(off), np.inf, off)), off.shape)
        place = f"[{', '.join(map(str, worst))}]" if worst else ""
        what = f"the gradient for `{path}{place}` is {got[worst]:.10g}, and differences give {expected[worst]:.10g}"
        others = f"; {np.count_nonzero(wrong)} of {off.size} elements are off" if off.size > 1 else ""
        raise _off(given, f"{what}: it is off by {off[worst]:.3g}{others}")


def _off(given: CustomRule, what: str) -> DifferentiationError:
    return refuse(f"{given}: {what}", given.loc, "correct the pullback; for no gradient let it return None", "def")
