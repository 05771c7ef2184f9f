"""The functions that a random program calls: with floats, an int and perhaps an array, recursive now and then.

    def g1(x, n, a):
        if n <= 0:
            return 0.5 * x
        a[0] = math.sin(x)
        v1 = 0.5 * g1(x * a[1], n - 1, a)
        return math.tanh(v1 + x)

What they return stays within NARROW. A recursion is at most three deep, with at most two calls on each level.
"""

from __future__ import annotations

import ast
import math
import random
from dataclasses import dataclass
from typing import Any

from tests.random_programs.expressions import NARROW, Interval, Scope

DEPTH = Interval(-1, 3)  # of a recursion


@dataclass(frozen=True)
class Signature:
    """The parameters of a function, in order, and the number of floats that it returns."""

    name: str
    floats: int
    has_int: bool
    shape: tuple[int, ...] | None
    results: int
    recursive: bool

    def parameters(self) -> dict[str, object]:
        """The names of the parameters with their kinds, as the generator has them."""
        kinds: dict[str, object] = dict.fromkeys("xyz"[: self.floats], "float")
        if self.has_int:
            kinds["n"] = DEPTH
        if self.shape is not None:
            kinds["a"] = self.shape
        return kinds


def draw(rng: random.Random, number: int, arrays: bool) -> Signature:
    """A signature of the function with this number."""
    recursive = rng.random() < 0.4
    shape = rng.choice(((3,), (2,), (4,), (2, 2))) if arrays and rng.random() < 0.7 else None
    return Signature(
        f"g{number}",
        rng.choice((1, 1, 2)),
        recursive or rng.random() < 0.3,
        shape,
        rng.choice((1, 1, 1, 2)),
        recursive,
    )


def array_of(shape: tuple[int, ...], rng: random.Random) -> str:
    """The text of a new array of this shape."""
    items = ", ".join(f"{rng.uniform(-1.0, 1.0):.2f}" for _ in range(math.prod(shape)))
    return f"np.array([{items}])" + (f".reshape({', '.join(map(str, shape))})" if len(shape) > 1 else "")


@dataclass(frozen=True)
class Place:
    """Where a statement stands: the room that is left for nesting, and the loop around it."""

    depth: int
    trips: int = 1
    in_loop: bool = False
    step: str = ""  # the statement that `continue` must not skip


class Calls:
    """The generator's part for functions."""

    rng: random.Random
    arrays: bool
    writes: bool
    known: list[Signature]
    own: Signature | None
    own_calls: int
    on_dicts: Any
    lines: list[str]
    indent: int

    def function(self, number: int) -> str:
        """Another function, for this one and later ones to call."""
        own = draw(self.rng, number, self.writes)
        inside: Any = type(self)(self.rng, self.arrays, self.writes, known=self.known, own=own)
        if self.on_dicts is not None:
            inside.on_dicts = type(self.on_dicts)(inside)
        text: str = inside.definition()
        self.known.append(own)
        return text

    def definition(self) -> str:
        """The text of a function that is called."""
        rng, own = self.rng, self.own
        assert own is not None
        scope = Scope(reach=NARROW if self.writes else 2.0, floats=list("xyz"[: own.floats]))
        if own.has_int:
            scope.ints["n"] = DEPTH
            scope.fixed.add("n")
        if own.shape is not None:
            scope.arrays["a"] = own.shape
            scope.layouts["a"] = "A"
        if own.recursive:
            self.put("if n <= 0:")
            self.indent += 1
            self.give_back(scope)
            self.indent -= 1
        place = Place(depth=rng.choice((0, 1, 1)))
        self.block(scope, place, rng.randint(1, 3))
        if own.recursive:
            self.call_one(scope, own)
            self.block(scope, place, rng.randint(0, 2))
        self.give_back(scope)
        return ast.unparse(ast.parse(f"def {own.name}({', '.join(own.parameters())}):\n" + "\n".join(self.lines)))

    def give_back(self, scope: Scope) -> None:
        assert self.own is not None
        self.put(f"return {', '.join(f'float({self.narrow(scope, 2)})' for _ in range(self.own.results))}")

    def call(self, scope: Scope, place: Place) -> None:
        """The call of another function; of this one itself if it is recursive."""
        own = self.own
        if own is not None and own.recursive and not place.in_loop and self.own_calls < 1 and self.rng.random() < 0.3:
            self.call_one(scope, own)
        elif place.trips <= 10:
            self.call_one(scope, self.rng.choice(self.known))
        else:
            self.assign(scope, place)

    def call_one(self, scope: Scope, called: Signature) -> None:
        rng = self.rng
        self.own_calls += called is self.own
        args = [self.narrow(scope, 1) for _ in range(called.floats)]
        if called.has_int:
            args.append("n - 1" if called is self.own else self.at(scope).whole(1, DEPTH).text)
        if called.shape is not None:
            fitting = [name for name, shape in scope.arrays.items() if shape == called.shape]
            if not fitting or rng.random() < 0.1:
                name = self.fresh("w")
                self.put(f"{name} = {array_of(called.shape, rng)}")
                scope.arrays[name] = called.shape
                fitting = [name]
            args.append(f"{rng.choice(fitting)}{rng.choice(('', '', '', '', '[::-1]', '.copy()'))}")
        names = [self.fresh("v") for _ in range(called.results)]
        self.put(f"{', '.join(names)} = {called.name}({', '.join(args)})")
        scope.floats += names
