"""Reference derivatives that owe nothing to the library: differences at 50 digits, in doubles, and the complex step.

    found = precise(lambda x, n: x**n, 3.0, 2)
    found.gradients         # (6.0, None): a parameter that is an int has no derivative unless it is named in `wrt`
    found.doubt             # None: the reference can be trusted; otherwise a reason why not

`precise` is the main reference: the same bytecode runs on numbers of 50 digits (`tests.checking.multiprecision`), so a
central difference is exact to far more than a double and does not depend on its step. `central` needs only that the
function runs in plain Python: two step sizes must agree. Both pass copies of the arguments, which the function may
write to; arrays that share memory share none then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.checking.multiprecision import Number, number, rebuild, watch

STEP = number(1.0) / 10**15
FAR = 1e100


@dataclass(frozen=True)
class Reference:
    """The value and the gradient for each argument (a float, an array, or None), an error estimate, and any doubt."""

    value: float
    gradients: tuple[Any, ...]
    error: float
    doubt: str | None = None


def is_float(arg: object) -> bool:
    """Whether an argument is a float or an array of floats: what has a derivative without being asked for it."""
    if isinstance(arg, np.ndarray):
        return bool(arg.dtype.kind == "f")
    return isinstance(arg, float | np.floating)


def precise(function: Callable[..., Any], *args: Any, wrt: Sequence[int] | None = None) -> Reference:
    """The gradient by central differences at 50 digits.

    Parameters `wrt` (positions) get a gradient, by default those that are floats; an int among them is taken as a
    float. A doubt arises where the one-sided differences disagree, where a comparison, a floor or a sign is decided
    otherwise on the two sides of the point or is too close to be decided in doubles, and where a number is not finite.
    """
    chosen = tuple(i for i, arg in enumerate(args) if is_float(arg)) if wrt is None else tuple(wrt)
    run = rebuild(function)
    lifted = [_lift(arg, i in chosen) for i, arg in enumerate(args)]
    with watch() as seen:
        middle = run(*_copies(lifted))
    doubt = seen.close
    error = 0.0
    gradients: list[Any] = []
    for position, arg in enumerate(args):
        if position not in chosen:
            gradients.append(None)
            continue
        slopes = np.zeros(np.shape(arg))
        for index in np.ndindex(np.shape(arg)):
            values = []
            for step in (STEP, -STEP):
                with watch() as moved:
                    values.append(run(*_copies(_moved(lifted, position, index, step))))
                if moved.outcomes != seen.outcomes:
                    doubt = doubt or f"a decision changes at argument {position}{list(index)}"
            up, down = values
            slopes[index] = float((up - down) / (2 * STEP))
            error = max(error, float(_magnitude((up - middle) - (middle - down)) / STEP))
        gradients.append(slopes if isinstance(arg, np.ndarray) else float(slopes))
    value = float(middle)
    numbers = [value, *(x for g in gradients if g is not None for x in np.ravel(g))]
    if not all(math.isfinite(x) and abs(x) < FAR for x in numbers):
        doubt = doubt or "a number is not finite"
    if error > 1e-6 * max(map(abs, numbers), default=0.0) + 1e-12:
        doubt = doubt or f"the one-sided differences disagree by {error:.1e}"
    return Reference(value, tuple(gradients), error, doubt)


def _copies(args: Sequence[Any]) -> list[Any]:
    return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]


def _magnitude(x: Any) -> Any:
    return float(x) if float(x) >= 0 else -float(x)


def _lift(arg: Any, chosen: bool) -> Any:
    if isinstance(arg, np.ndarray):
        if arg.dtype.kind != "f":
            return arg
        lifted = np.empty(arg.shape, object)
        for index in np.ndindex(arg.shape):
            lifted[index] = number(arg[index])
        return lifted
    if isinstance(arg, bool | np.bool_ | str):
        return arg
    if isinstance(arg, float | np.floating) or chosen:
        return number(arg)
    return int(arg) if isinstance(arg, np.integer) else arg


def _moved(lifted: list[Any], position: int, index: tuple[int, ...], step: Any) -> list[Any]:
    moved = list(lifted)
    if isinstance(moved[position], Number):
        moved[position] = moved[position] + step
    else:
        moved[position] = moved[position].copy()
        moved[position][index] += step
    return moved


def central(function: Callable[..., Any], *args: Any, wrt: Sequence[int] | None = None) -> Reference:
    """The gradient by central differences of doubles with Richardson's extrapolation.

    The error estimate is the distance of the extrapolations from two steps; a doubt arises if it is large beside the
    gradient.
    """
    chosen = tuple(i for i, arg in enumerate(args) if is_float(arg)) if wrt is None else tuple(wrt)
    gradients: list[Any] = []
    error = 0.0
    for position, arg in enumerate(args):
        if position not in chosen:
            gradients.append(None)
            continue
        slopes = np.zeros(np.shape(arg))
        for index in np.ndindex(np.shape(arg)):

            def slope(step: float, position: int = position, index: tuple[int, ...] = index) -> float:
                up, down = (function(*_copies(_shifted(args, position, index, s))) for s in (step, -step))
                return float(up - down) / (2 * step)

            h = 1e-3 * max(1.0, abs(float(np.asarray(arg)[index])))
            coarse, middle, fine = slope(h), slope(h / 2), slope(h / 4)
            first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
            slopes[index] = (16 * second - first) / 15
            error = max(error, abs(second - first))
        gradients.append(slopes if isinstance(arg, np.ndarray) else float(slopes))
    scale = max((float(np.max(np.abs(g), initial=0.0)) for g in gradients if g is not None), default=0.0)
    doubt = f"two steps disagree by {error:.1e}" if error > 1e-6 * max(1.0, scale) else None
    return Reference(float(function(*_copies(args))), tuple(gradients), error, doubt)


def _shifted(args: Sequence[Any], position: int, index: tuple[int, ...], step: float) -> list[Any]:
    shifted = list(args)
    if isinstance(shifted[position], np.ndarray):
        shifted[position] = shifted[position].copy()
        shifted[position][index] += step
    else:
        shifted[position] = shifted[position] + step
    return shifted


def complex_step(function: Callable[..., Any], x: float) -> float:
    """The derivative of an analytic function of one parameter, exact to rounding: Im f(x + ih) / h."""
    return float(np.imag(function(complex(x, 1e-200))) / 1e-200)


def distance(gradients: Sequence[Any], reference: Sequence[Any]) -> float:
    """The largest difference of two lists of gradients, relative to the scale of the reference.

    None must stand against None and an array against an array of its shape; otherwise the distance is infinite.
    """
    if len(gradients) != len(reference):
        return math.inf
    scale, largest = 1e-4, 0.0
    for expected in reference:
        if expected is not None:
            scale = max(scale, float(np.max(np.abs(expected), initial=0.0)))
    for got, expected in zip(gradients, reference, strict=True):
        if (got is None) != (expected is None) or np.shape(got) != np.shape(expected):
            return math.inf
        if expected is None:
            continue
        difference = np.abs(np.asarray(got, float) - expected)
        largest = max(largest, float(np.max(np.where(np.isnan(difference), math.inf, difference), initial=0.0)))
    return largest / scale
