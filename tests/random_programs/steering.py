"""Arrays that steer a program and that it changes: masks, arrays of indices, counters.

    k1 = a > 0.3
    v2 = np.sum(a[k1])
    k1[1] = not k1[0]
    p3[:] = (p3 + 1) % 3
    a[p3] = np.tanh(a[k1[::-1]].sum() + a[p3])

The length of each is known when the program is drawn, and of arrays of integers the interval of their elements, so that
every index is in range; only what a mask selects has a length that the data decide, and is summed up, or goes where the
mask selects. They are made, changed by element, whole, in part, through views, by each other and by functions, and are
read by statements of all kinds: `Expressions.whole` and `truth` draw their elements.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.random_programs.arrays import SLICES, ArrayExpressions, ArrayStatements, Writer, length
from tests.random_programs.expressions import NARROW, Interval, Real, Scope

# What programs that are steered have beside what is drawn: functions that change masks and arrays of indices.
HELPERS = """def flip(mask, i):
    if i > 0:
        flip(mask, i - 1)
    mask[i] = not mask[i]
    return 0.5 if mask[i] else -0.5


def exchange(places, i):
    places[0], places[i] = places[i], places[0]


"""


@dataclass(frozen=True)
class Mask:
    """A parameter that is a mask."""

    size: int

    def drawn(self, rng: random.Random) -> Any:
        """An argument for it."""
        return np.array([rng.random() < 0.5 for _ in range(self.size)], np.bool_)


@dataclass(frozen=True)
class Places:
    """A parameter that is an array of integers in an interval."""

    size: int
    range: Interval

    def drawn(self, rng: random.Random) -> Any:
        """An argument for it."""
        return np.array([rng.randint(*self.range) for _ in range(self.size)], np.int64)


def parameters(rng: random.Random, lengths: Sequence[int]) -> dict[str, Mask | Places]:
    """Masks and arrays of indices as parameters, of the lengths of arrays among others."""
    found: dict[str, Mask | Places] = {}
    sizes = [size for size in lengths if size] or [3]
    if rng.random() < 0.6:
        found["mk"] = Mask(rng.choice(sizes))
    if rng.random() < 0.5:
        top = rng.choice(sizes)
        found["ix"] = Places(rng.choice((top, 1, 2)), Interval(0, top - 1))
    if rng.random() < 0.2:
        found["ct"] = Places(2, Interval(0, 3))
    return found


class Steering:
    """Statements that make, change and use masks, arrays of indices and counters."""

    def __init__(self, writer: Writer, on_arrays: ArrayStatements) -> None:
        self.writer = writer
        self.rng: random.Random = writer.rng
        self.on_arrays = on_arrays
        self.count = 0
        self.last: dict[str, str] = {}  # the mask and the array of integers that came last, mostly taken again

    def statement(self, scope: Scope) -> None:
        """One of them."""
        choices: list[tuple[Callable[[Scope], None], int]] = [(self.make_mask, 3), (self.make_places, 3)]
        if scope.masks:
            choices += [(self.change_mask, 8), (self.select, 6), (self.store_selected, 4), (self.view_of_mask, 2)]
        if scope.places:
            choices += [(self.change_places, 8), (self.gather, 4), (self.scatter, 4), (self.view_of_places, 2)]
            choices += [(self.count_up, 2)]
        if scope.masks:
            choices.append((self.around_a_change_of_mask, 7))
        if self._pairs(scope):
            choices.append((self.around_a_change_of_places, 7))
        self.count += 1
        self.rng.choices([c[0] for c in choices], [c[1] for c in choices])[0](scope)

    def around_a_change_of_mask(self, scope: Scope) -> None:
        """Uses of a mask before and after it changes."""
        self.rng.choice((self.select, self.select, self.store_selected))(scope)
        for _ in range(self.rng.choice((1, 1, 2))):
            self.change_mask(scope)
        self.rng.choice((self.select, self.store_selected))(scope)

    def around_a_change_of_places(self, scope: Scope) -> None:
        """Uses of an array of indices before and after it changes."""
        self.rng.choice((self.gather, self.gather, self.scatter))(scope)
        self.change_places(scope)
        self.rng.choice((self.gather, self.scatter))(scope)

    def _mask(self, scope: Scope) -> str:
        return self._one_of("mask", list(scope.masks))

    def _places(self, scope: Scope) -> str:
        return self._one_of("places", list(scope.places))

    def _one_of(self, what: str, names: list[str]) -> str:
        if self.last.get(what) not in names or self.rng.random() < 0.3:
            self.last[what] = self.rng.choice(names)
        return self.last[what]

    def _at(self, scope: Scope) -> ArrayExpressions:
        return self.on_arrays.at(scope)

    def _put(self, line: str) -> None:
        self.writer.put(line)

    def _index(self, scope: Scope, size: int) -> str:
        if self.rng.random() < 0.4:
            return str(self.rng.randrange(-size, size))
        return self._at(scope).whole(1, Interval(-size, size - 1)).text

    def _lines(self, scope: Scope, size: int | None = None) -> list[str]:
        """The arrays of floats of one axis, of a length."""
        return [
            name
            for name, shape in scope.arrays.items()
            if len(shape) == 1 and shape[0] and (size is None or shape[0] == size)
        ]

    def _a_line(self, scope: Scope, size: int) -> str:
        """An array of floats of a length; one that is made, if there is none."""
        if found := self._lines(scope, size):
            return self.rng.choice(found)
        name = self.writer.fresh("w")
        items = ", ".join(f"{self.rng.uniform(-1.5, 1.5):.2f}" for _ in range(size))
        self._put(f"{name} = np.array([{items}]) + {self._at(scope).flat(self._at(scope).leaf(), 1.0).text}")
        scope.arrays[name], scope.layouts[name] = (size,), "C"
        return name

    # --------------------------------------------------------------------------------------------------------- masks

    def condition(self, scope: Scope, size: int) -> str:
        """An array of truth values of this length, which is new."""
        rng, expressions = self.rng, self._at(scope)
        alike = [name for name, other in scope.masks.items() if other == size]
        indices = [name for name, (other, _) in scope.places.items() if other == size]
        lines = self._lines(scope, size)
        match rng.randrange(6):
            case 0 if alike:
                return f"~{rng.choice(alike)}"
            case 1 if alike:
                return f"({rng.choice(alike)} {rng.choice('&|^')} {rng.choice(alike)})"
            case 2 if indices:
                limit = expressions.whole(0, Interval(0, 2)).text
                return f"({rng.choice(indices)} {rng.choice(('<', '>=', '=='))} {limit})"
            case 3 if indices and (wholes := [n for n, other in scope.masks.items() if other > 0]):
                mask = rng.choice(wholes)
                return f"{mask}[{rng.choice(indices)} % {scope.masks[mask]}]"
            case _ if lines:
                a = expressions.array((size,), rng.choice((0, 0, 1)))
                return f"({a.text} {rng.choice(('<', '>', '<=', '>='))} {expressions.leaf().text})"
            case _:
                return f"np.array([{', '.join(rng.choice(('True', 'False')) for _ in range(size))}])"

    def make_mask(self, scope: Scope) -> None:
        """A new mask."""
        rng, name = self.rng, self.writer.fresh("k")
        lines = self._lines(scope)
        size = scope.arrays[rng.choice(lines)][0] if lines and rng.random() < 0.85 else rng.choice((1, 2, 3, 4))
        alike = [other for other, count in scope.masks.items() if count == size]
        match rng.randrange(5):
            case 0:
                self._put(f"{name} = np.array([{', '.join(rng.choice(('True', 'False')) for _ in range(size))}])")
            case 1 if alike:
                self._put(f"{name} = {rng.choice(alike)}.copy()")
            case 2:
                self._put(f"{name} = np.{rng.choice(('zeros', 'ones'))}({size}, np.bool_)")
            case _:
                self._put(f"{name} = {self.condition(scope, size)}")
        scope.masks[name] = size

    def view_of_mask(self, scope: Scope) -> None:
        """Another name for a mask, or a part of it."""
        name, source = self.writer.fresh("k"), self._mask(scope)
        alike = [other for other, size in scope.masks.items() if size == scope.masks[source]]
        cut = self.rng.choice(("", *SLICES))
        size = length(cut or ":", scope.masks[source])
        if not size:
            return self.change_mask(scope)
        if not cut and len(alike) > 1 and self.rng.random() < 0.6 and not self._differ_in_type(scope, alike):
            self._put(f"{name} = {source} if {self._at(scope).truth(1)} else {self.rng.choice(alike)}")
        else:
            self._put(f"{name} = {source}[{cut}]" if cut else f"{name} = {source}")
        scope.masks[name] = size
        if cut.count(":") == 2 or source in scope.strided:
            scope.strided.add(name)
        return None

    def sums(self, scope: Scope) -> list[str]:
        """Terms of what masks have selected, and select at the end."""
        found = [f"0.3 * np.sum({name})" for name in scope.selected if self.rng.random() < 0.8]
        for mask, size in scope.masks.items():
            if self.rng.random() < 0.6 and (lines := self._lines(scope, size)):
                found.append(f"0.7 * np.sum({self.rng.choice(lines)}[{mask}])")
        for name in scope.places:
            found += [f"0.4 * {a}[{name}[-1]]" for a, other in self._pairs(scope, 2) if other == name][:1]
        return found

    def _differ_in_type(self, scope: Scope, names: list[str]) -> bool:
        """Whether masks may be of different types, so that one name cannot stand for each."""
        return any(name in scope.strided for name in names)

    def change_mask(self, scope: Scope) -> None:
        """Write to a mask: to an element, to all or a part of it, where it or another one holds."""
        rng, put, expressions = self.rng, self._put, self._at(scope)
        name = self._mask(scope)
        size = scope.masks[name]
        alike = [other for other, count in scope.masks.items() if count == size]
        indices = [other for other, (_, range_) in scope.places.items() if range_.within(Interval(-size, size - 1))]
        match rng.randrange(14):
            case 0 | 1:
                put(f"{name}[{self._index(scope, size)}] = {expressions.truth(1)}")
            case 2 | 3:
                index = self._index(scope, size)
                put(f"{name}[{index}] = not {name}[{rng.choice((index, self._index(scope, size)))}]")
            case 4:
                put(f"{name}[{self._index(scope, size)}] = {rng.choice(('True', 'False'))}")
            case 5:
                put(f"{name}[:] = {rng.choice((self.condition(scope, size), f'{rng.choice(alike)}[::-1].copy()'))}")
            case 6:
                cut = rng.choice([cut for cut in SLICES if length(cut, size)])
                value = rng.choice((self.condition(scope, length(cut, size)), "True", "False"))
                put(f"{name}[{cut}] = {value}")
            case 7:
                chosen = rng.choice(alike)
                where = chosen if chosen == name else f"{chosen}.copy()"  # it may be a view of the same array
                put(f"{name}[{where}] = {rng.choice(('True', 'False', expressions.truth(0)))}")
            case 8 if indices:
                put(f"{name}[{rng.choice(indices)}] = {rng.choice(('True', 'False', expressions.truth(0)))}")
            case 9 if indices:
                chosen = rng.choice(indices)
                put(f"{name}[{chosen}] = ~{name}[{chosen}]")
            case 10:
                value = self.writer.fresh("v")
                put(f"{value} = flip({name}, {expressions.whole(0, Interval(0, size - 1)).text})")
                scope.floats.append(value)
            case 11:
                index = self.writer.fresh("i")
                put(f"for {index} in range(len({name})):")
                inner = scope.inner()
                inner.ints[index] = Interval(0, size - 1)
                inner.fixed.add(index)
                put(f"    {name}[{index}] = {rng.choice((f'not {name}[{index}]', self._at(inner).truth(1)))}")
            case 12:
                other = rng.choice(alike)
                put(f"{name}[{name}] = {other}[{name}]")
            case _ if not self._differ_in_type(scope, [name]):
                put(f"{name} = {self.condition(scope, size)}")
            case _:
                put(f"{name}[:] = {self.condition(scope, size)}")

    def select(self, scope: Scope) -> None:
        """A number made of what a mask selects, or the array of that, to be read later."""
        rng, expressions, value = self.rng, self._at(scope), self.writer.fresh("v")
        mask = self._mask(scope)
        size = scope.masks[mask]
        a = self._a_line(scope, size)
        found = Real(f"np.sum({a}[{mask}])", size * NARROW)
        match rng.randrange(7):
            case 0 | 1:
                chosen = self.writer.fresh("q")
                self._put(f"{chosen} = {a}[{mask}]")
                scope.selected[chosen] = size
                return
            case 2 if scope.selected:
                chosen = rng.choice(list(scope.selected))
                found = Real(f"np.sum({chosen} * {chosen})", scope.selected[chosen] * NARROW**2)
            case 3:
                part = expressions.array((size,), 1)
                found = Real(f"np.sum(({part.text})[{mask}])", size * part.bound)
            case 4:
                other = self._a_line(scope, size)
                found = Real(f"np.sum({a}[{mask}] * {other}[{mask}])", size * NARROW**2)
            case 5:
                found = Real(f"np.sum(np.where({mask}, {a}, {expressions.leaf().text}))", size * NARROW)
            case 6 if rows := [n for n, s in scope.arrays.items() if len(s) == 2 and s[0] == size and s[1]]:
                matrix = rng.choice(rows)
                found = Real(f"np.sum({matrix}[{mask}])", size * 3 * NARROW)
            case _:
                pass
        self._put(f"{value} = {expressions.flat(found, NARROW).text}")
        scope.floats.append(value)

    def store_selected(self, scope: Scope) -> None:
        """Write to what a mask selects: a number, or what it selects of another array."""
        rng = self.rng
        mask = self._mask(scope)
        size = scope.masks[mask]
        target = f"{self._a_line(scope, size)}[{mask}]"
        expressions = self._at(scope)

        def value(bound: float) -> Real:
            if rng.random() < 0.4:
                return expressions.flat(expressions.real(2), bound)
            part = expressions.flat_array(expressions.array((size,), rng.choice((0, 1, 1))), bound)
            return Real(f"({part.text})[{mask}]", part.bound)

        self.on_arrays._update(scope, target, value)

    # ---------------------------------------------------------------------------- arrays of indices, and counters

    def make_places(self, scope: Scope) -> None:
        """A new array of integers."""
        rng, put, name = self.rng, self._put, self.writer.fresh("p")
        lines = self._lines(scope)
        top = scope.arrays[rng.choice(lines)][0] if lines and rng.random() < 0.8 else rng.choice((2, 3, 4))
        size = rng.choice((top, top, 1, 2, 3))
        others = list(scope.places)
        match rng.randrange(6):
            case 0 if others:
                other = rng.choice(others)
                put(f"{name} = {other}.copy()")
                scope.places[name] = scope.places[other]
                return
            case 1 if others:
                other = rng.choice(others)
                put(f"{name} = ({other} + {rng.randrange(1, 4)}) % {top}")
                size = scope.places[other][0]
            case 2:
                size = top
                put(f"{name} = np.arange({top})")
            case 3:
                put(f"{name} = np.zeros({size}, np.int64)")
            case 4 if size == top:
                put(f"{name} = np.array({rng.sample(range(top), top)})")
            case _:
                put(f"{name} = np.array({[rng.randrange(top) for _ in range(size)]})")
        scope.places[name] = size, Interval(0, top - 1)

    def view_of_places(self, scope: Scope) -> None:
        """Another name for an array of integers, or a part of it."""
        source = self._places(scope)
        (size, range_), cut = scope.places[source], self.rng.choice(("", *SLICES))
        if not length(cut or ":", size):
            return self.change_places(scope)
        name = self.writer.fresh("p")
        self._put(f"{name} = {source}[{cut}]" if cut else f"{name} = {source}")
        scope.places[name] = length(cut or ":", size), range_
        return None

    def change_places(self, scope: Scope) -> None:
        """Write to an array of integers: to an element, to all of it, to two of them in turn, by a function."""
        rng, put, expressions = self.rng, self._put, self._at(scope)
        name = self._places(scope)
        size, range_ = scope.places[name]
        count = range_.high + 1
        index = self._index(scope, size)
        fitting = [other for other, size_ in scope.masks.items() if size_ == size]
        alike = [other for other, (n, within) in scope.places.items() if n == size and within.within(range_)]
        own = [other for other, (_, within) in scope.places.items() if within.within(Interval(-size, size - 1))]
        match rng.randrange(11):
            case 0 | 1:
                put(f"{name}[{index}] = {expressions.whole(1, range_).text}")
            case 2 | 3:
                put(f"{name}[{index}] = ({name}[{rng.choice((index, self._index(scope, size)))}] + 1) % {count}")
            case 4:
                other = self._index(scope, size)
                put(f"{name}[{index}], {name}[{other}] = {name}[{other}], {name}[{index}]")
            case 5:
                put(f"{name}[:] = ({name} + {rng.randrange(1, 4)}) % {count}")
            case 6:
                put(f"{name}[:] = {rng.choice(alike)}[::-1].copy()")
            case 7:
                put(f"exchange({name}, {expressions.whole(0, Interval(0, size - 1)).text})")
            case 8 if fitting:
                put(f"{name}[{rng.choice(fitting)}] = {expressions.whole(0, range_).text}")
            case 9 if own:
                chosen = rng.choice(own)
                put(f"{name}[{chosen}.copy()] = ({name}[{chosen}] + 1) % {count}")  # it may be the same array
            case _:
                counter = self.writer.fresh("i")
                put(f"for {counter} in range(len({name})):")
                put(f"    {name}[{counter}] = ({name}[{counter}] * {rng.choice((1, 2, 3))} + {counter}) % {count}")

    def _fitting(self, scope: Scope) -> tuple[str, str] | None:
        """An array of floats and one of integers that are indices into it."""
        pairs = self._pairs(scope)
        recent = [pair for pair in pairs if pair[1] == self.last.get("places")]
        return self.rng.choice(recent if recent and self.rng.random() < 0.7 else pairs) if pairs else None

    def _pairs(self, scope: Scope, axes: int = 0) -> list[tuple[str, str]]:
        return [
            (a, name)
            for a, shape in scope.arrays.items()
            for name, (_, range_) in scope.places.items()
            if all(shape) and len(shape) != axes and range_.within(Interval(-shape[0], shape[0] - 1))
        ]

    def gather(self, scope: Scope) -> None:
        """Read the elements at an array of indices."""
        if (pair := self._fitting(scope)) is None:
            return self.make_places(scope)
        rng, expressions = self.rng, self._at(scope)
        a, indices = pair
        size, _ = scope.places[indices]
        if len(scope.arrays[a]) == 1 and rng.random() < 0.5:
            name = self.writer.fresh("w")
            self._put(f"{name} = {a}[{indices}]")
            scope.arrays[name], scope.layouts[name] = (size,), "C"
            return None
        value = self.writer.fresh("v")
        bound = size * (1 if len(scope.arrays[a]) == 1 else scope.arrays[a][1])
        found = Real(f"np.sum({a}[{indices}])", bound * NARROW)
        if rng.random() < 0.4:
            found = Real(f"np.sum({a}[{indices}] * {a}[{indices}])", bound * NARROW**2)
        self._put(f"{value} = {expressions.flat(found, NARROW).text}")
        scope.floats.append(value)
        return None

    def scatter(self, scope: Scope) -> None:
        """Write to the elements at an array of indices."""
        if (pair := self._fitting(scope)) is None:
            return self.make_places(scope)
        a, indices = pair
        size, _ = scope.places[indices]
        shape = (size, *scope.arrays[a][1:])
        self.on_arrays._update(scope, f"{a}[{indices}]", self.on_arrays._array(scope, shape))
        return None

    def count_up(self, scope: Scope) -> None:
        """A loop that an element of an array counts, which nothing else writes to."""
        name, value = self.writer.fresh("n"), self.writer.fresh("v")
        self._put(f"{name} = np.zeros(2, np.int64)")
        limit = self._at(scope).whole(1, Interval(0, 4)).text
        self._put(f"{value} = 0.0")
        self._put(f"while {name}[1] < {limit}:")
        self.writer.indent += 1
        inner = scope.inner()
        inner.ints[f"{name}[1]"] = Interval(0, 4)
        inner.fixed.add(f"{name}[1]")
        before = self._at(inner)
        self._put(f"{value} = 0.5 * {value} + 0.5 * {before.flat(before.real(2), NARROW).text}")
        self._put(f"{name}[1] += 1")
        if self.rng.random() < 0.5:
            self._put(f"{name}[0] += {self.rng.choice((1, 2))} * {name}[1]")
        self.writer.indent -= 1
        scope.floats.append(value)
        scope.ints[f"{name}[1]"] = Interval(0, 5)
        scope.fixed.add(f"{name}[1]")
