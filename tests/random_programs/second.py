"""Second derivatives of a random program: every way of computing them against differences at 50 digits.

    curvature(f, args, direction)       # (2.0, None): the Hessian times the direction, for each argument
    for way in WAYS: way(program, args, direction)

Forward over reverse (`hvp`), reverse over reverse, reverse over forward and forward over forward. Each is a function
that is added to the program's text, so that the program itself is called inside a function which is differentiated.
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.checking.multiprecision import number, rebuild, watch
from tests.checking.reference import FAR, Reference, is_float
from tests.random_programs.generator import Program, load

STEP = number(1.0) / 10**15


def direction_of(args: Sequence[Any]) -> tuple[Any, ...]:
    """A direction for each argument that is a float, the same for the same number of arguments."""
    rng = random.Random(len(args))

    def drawn(arg: Any) -> Any:
        if not is_float(arg):
            return None
        if isinstance(arg, np.ndarray):
            return np.array([rng.uniform(-1.0, 1.0) for _ in range(arg.size)]).reshape(arg.shape)
        return rng.uniform(-1.0, 1.0)

    return tuple(map(drawn, args))


def curvature(function: Callable[..., Any], args: Sequence[Any], direction: Sequence[Any]) -> Reference:
    """The Hessian times a direction, its `value` being the slope in that direction.

    Differences of differences. There is a doubt where a decision changes, where a number is not finite, and where the
    second derivative in the direction, taken by itself, is another one than the direction times that product.
    """
    run = rebuild(function)

    def at(along: int, position: int = -1, index: tuple[int, ...] = (), by: int = 0) -> Any:
        moved = []
        for place, (arg, change) in enumerate(zip(args, direction, strict=True)):
            if not is_float(arg):
                moved.append(arg.copy() if isinstance(arg, np.ndarray) else arg)
                continue
            new = np.empty(np.shape(arg), object)
            for k in np.ndindex(np.shape(arg)):
                new[k] = number(np.asarray(arg)[k]) + number(np.asarray(change)[k]) * along * STEP
                if place == position and k == index:
                    new[k] += by * STEP
            moved.append(new if isinstance(arg, np.ndarray) else new[()])
        with watch() as seen:
            value = run(*moved)
        outcomes.append(seen.outcomes)
        closes.append(seen.close)
        return value

    outcomes: list[list[int]] = []
    closes: list[str | None] = []
    middle = at(0)
    doubt = closes[0]
    products: list[Any] = []
    along = number(0.0)
    for position, arg in enumerate(args):
        if not is_float(arg):
            products.append(None)
            continue
        found = np.zeros(np.shape(arg))
        for index in np.ndindex(np.shape(arg)):
            place = position, index
            second = (at(1, *place, 1) - at(1, *place, -1) - at(-1, *place, 1) + at(-1, *place, -1)) / (4 * STEP * STEP)
            found[index] = float(second)
            along += second * number(np.asarray(direction[position])[index])
        products.append(found if isinstance(arg, np.ndarray) else float(found))
    up, down = at(1), at(-1)
    itself = (up - 2 * middle + down) / (STEP * STEP)
    if any(each != outcomes[0] for each in outcomes):
        doubt = doubt or "a decision changes"
    value = float((up - down) / (2 * STEP))
    numbers = [value, float(itself), *(x for each in products if each is not None for x in np.ravel(each))]
    if not all(math.isfinite(x) and abs(x) < FAR for x in numbers):
        return Reference(value, tuple(products), math.inf, doubt or "a number is not finite")
    error = abs(float(itself) - float(along))
    if error > 1e-9 * max(map(abs, numbers)) + 1e-12:
        doubt = doubt or f"the second derivatives disagree by {error:.1e}"
    return Reference(value, tuple(products), error, doubt)


# What is added to a program's text. `copies` are the arguments for a function that may write to them.
_ADDED = """

from zygote_py.api.directions import jvp
from zygote_py import gradient


def directed({parameters}):
    g = gradient(f, wrt={wrt!r})({copies})
    return {product}


def pushed({parameters}):
    return jvp(f, ({arguments},), ({tangents},))[1]

"""


class Derivatives:
    """A program with functions that take derivatives of it."""

    def __init__(self, program: Program, args: Sequence[Any]) -> None:
        self.names = list(inspect.signature(load(program.text)).parameters)
        self.wrt = tuple(name for name, arg in zip(self.names, args, strict=True) if is_float(arg))
        arrays = {name for name, arg in zip(self.names, args, strict=True) if isinstance(arg, np.ndarray)}
        tangents = [f"t_{name}" for name in self.wrt]
        terms = [
            f"np.sum(g[{k}] * t_{name})" if name in arrays else f"g[{k}] * t_{name}" for k, name in enumerate(self.wrt)
        ]
        everything = [*self.names, *tangents]
        text = _ADDED.format(
            parameters=", ".join(everything),
            wrt=self.wrt,
            copies=", ".join(f"{name}.copy()" if name in arrays else name for name in self.names),
            product=" + ".join(terms),
            arguments=", ".join(self.names),
            tangents=", ".join(f"t_{name}" if name in self.wrt else "None" for name in self.names),
        )
        self.scope = load(program.text + text, "<second derivatives>").__globals__

    def gradient_of(self, name: str) -> Any:
        """The gradient of one of the functions."""
        from zygote_py import gradient

        return gradient(self.scope[name], wrt=self.wrt)

    def product(self) -> Any:
        """The function of the arguments and of a direction that `hvp` gives."""
        from zygote_py.api.directions import hvp

        return hvp(self.scope["f"], wrt=self.wrt)

    def pushed(self, name: str) -> Any:
        """The function of arguments and tangents that gives a function's value and tangent."""
        from zygote_py.api.directions import pushforward

        return pushforward(self.scope[name])

    def in_direction(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of a direction, those of the arguments that are asked for."""
        return tuple(each for each in given if each is not None)
