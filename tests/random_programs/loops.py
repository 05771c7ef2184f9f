"""The loops of random programs: over ranges, arrays, tuples, `zip`, `enumerate`; `while` with a counter that ends it.

for i3 in range(len(a)):
    v4 += a[i3]
    if v4 > x:
        break
else:
    v4 = 0.0
"""

from __future__ import annotations

import random
from typing import Any

from tests.random_programs.expressions import Interval, Scope
from tests.random_programs.functions import Place

STEPS = 200  # the most iterations of the innermost loop


class Loops:
    """The generator's part for loops."""

    rng: random.Random
    put: Any
    fresh: Any
    narrow: Any
    at: Any
    block: Any
    accumulate: Any
    indent: int

    def loop(self, scope: Scope, place: Place) -> None:
        rng = self.rng
        form = rng.choice((self.over_range, self.over_range, self.counted_while, self.over_things))
        if not place.in_loop and not scope.wides and rng.random() < 0.7:
            self.accumulate(scope, place)
        form(scope, place)

    def body(self, scope: Scope, outer: Scope, place: Place, trips: int, step: str = "", last: str = "") -> None:
        """The body of a loop, in `scope`, and perhaps its `else`, in `outer`."""
        rng = self.rng
        self.indent += 1
        inside = Place(place.depth - 1 if place.trips * trips < STEPS else 0, place.trips * trips, True, step)
        local = scope.inner()
        self.block(local, inside, rng.randint(1, 4))
        if last:
            self.put(last)
        self.indent -= 1
        if rng.random() < 0.15:
            self.put("else:")
            self.indent += 1
            self.block(outer.inner(), Place(0, place.trips, place.in_loop, place.step), rng.randint(1, 2))
            self.indent -= 1

    def over_range(self, scope: Scope, place: Place) -> None:
        rng = self.rng
        stop = self.at(scope).whole(1, Interval(-1, 5)).text
        index = self.fresh("i")
        interval = Interval(0, 4)
        match rng.randrange(7):
            case 0:
                start = self.at(scope).whole(1, Interval(-2, 3)).text
                bounds, interval = f"{start}, {stop}", Interval(-2, 4)
            case 1:
                step = rng.choice((2, 3, 1))
                start = self.at(scope).whole(1, Interval(-3, 3)).text
                bounds, interval = f"{start}, {stop}, {step}", Interval(-3, 4)
            case 2:
                bounds, interval = f"{stop}, -1, {rng.choice((-1, -2))}", Interval(0, 5)
            case 3:
                step = self.at(scope).whole(1, Interval(1, 3)).text
                low = self.at(scope).whole(0, Interval(-2, 1)).text
                bounds, interval = f"{low}, {stop}, {step}", Interval(-2, 4)
            case 4:
                step = self.at(scope).whole(1, Interval(-3, -1)).text
                bounds, interval = f"{stop}, {rng.choice((-2, 0))}, {step}", Interval(-1, 5)
            case 5 if scope.arrays:
                name, shape = rng.choice(list(scope.arrays.items()))
                bounds, interval = f"len({name})", Interval(0, max(shape[0] - 1, 0))
            case _:
                bounds = stop
        after = rng.random() < 0.15
        if after:
            self.put(f"{index} = {rng.choice((-1, 7))}")
        self.put(f"for {index} in range({bounds}):")
        inner = scope.inner()
        if not ("len(" in bounds and interval == Interval(0, 0)):
            inner.ints[index] = interval
        inner.fixed.add(index)
        self.body(inner, scope, place, 6)
        if after:
            scope.ints[index] = Interval(-3, 7)

    def counted_while(self, scope: Scope, place: Place) -> None:
        """A `while` that a counter ends at the latest."""
        rng = self.rng
        counter = self.fresh("k")
        limit = self.at(scope).whole(1, Interval(0, 5)).text
        extra = rng.choice(("", "", f" and {self.at(scope).truth(1)}"))
        name = self.fresh("v")
        self.put(f"{counter} = 0")
        inner = scope.inner()
        inner.fixed.add(counter)
        scope.ints[counter] = Interval(0, 6)
        scope.fixed.add(counter)
        match rng.randrange(4):
            case 0:
                inner.ints[counter] = Interval(1, 6)
                bound = self.fresh("k")
                self.put(f"{bound} = {limit}")
                self.put("while True:")
                self.put(f"    {counter} += 1")
                self.put(f"    if {counter} > {bound}{extra.replace(' and', ' or')}:")
                if inner.floats and rng.random() < 0.5:
                    target = rng.choice([n for n in inner.floats if n not in inner.fixed] or [name])
                    self.put(f"        {target} = {self.narrow(scope, 1)}")
                self.put("        break")
                self.body(inner, scope, place, 6)
            case 1:
                inner.ints[counter] = Interval(0, 5)
                step = f"{counter} += 1"
                self.put(f"while {counter} < min(5, {limit}){extra}:")
                self.body(inner, scope, place, 6, step, step)
            case _:
                inner.ints[counter] = Interval(1, 6)
                self.put(f"while {counter} < min(5, {limit}){extra}:")
                self.put(f"    {counter} += {rng.choice((1, 1, 2))}")
                self.body(inner, scope, place, 6)

    def over_things(self, scope: Scope, place: Place) -> None:
        """A loop over an array, a tuple, `zip` or `enumerate`."""
        rng = self.rng
        lines = [name for name, shape in scope.arrays.items() if len(shape) == 1]
        inner = scope.inner()
        v, w, i = self.fresh("v"), self.fresh("w"), self.fresh("i")
        sequences = lines + list(scope.tuples)
        trips = 5
        choice = rng.randrange(5)
        if choice == 0 or not sequences:
            items = ", ".join(f"float({self.narrow(scope, 1)})" for _ in range(rng.choice((2, 3, 4))))
            self.put(f"for {v} in ({items}):")
            inner.floats.append(v)
        elif choice == 1:
            start = rng.choice(("", "", f", {rng.randrange(3)}"))
            self.put(f"for {i}, {v} in enumerate({rng.choice(sequences)}{start}):")
            inner.floats.append(v)
            inner.ints[i] = Interval(0, 7)
            inner.fixed.add(i)
        elif choice == 2:
            other = rng.choice([*sequences, "range(n)"]) if "n" in scope.ints else rng.choice(sequences)
            self.put(f"for {v}, {w} in zip({rng.choice(sequences)}, {other}):")
            inner.floats.append(v)
            if other == "range(n)":
                inner.ints[w] = Interval(0, 5)
                inner.fixed.add(w)
            else:
                inner.floats.append(w)
        else:
            self.put(f"for {v} in {rng.choice(sequences)}:")
            inner.floats.append(v)
        if rng.random() < 0.7:
            inner.fixed.add(v)
        self.body(inner, scope, place, trips)
