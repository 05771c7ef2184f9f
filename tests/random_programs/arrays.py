"""Expressions and statements on arrays that are written to, viewed, swapped and made anew.

    scope = Scope(floats=["x"], arrays={"a": (3,), "m": (2, 3)}, reach=NARROW)
    ArrayExpressions(random.Random(0), scope).array((3,), 2)      # e.g. Real('np.sin(m[0]) * x + a[::-1]', 9.0)

The shape of every array is known when the program is drawn. Each element of an array stays within NARROW, whatever is
stored through whichever view, except those of arrays that only sum up (`scope.heaps`), which are read through functions
that flatten them. An update in place of what it reads, `a[1:] += a[:-1]`, which NumPy and Numba do differently, is
refused; it is drawn with a copy, `a[1:] += a[:-1].copy()`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Protocol

from tests.random_programs.expressions import NARROW, WIDE, Expressions, Interval, Real, Scope
from tests.random_programs.families import Families

Shape = tuple[int, ...]

UNARY: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("np.sin({})", lambda b: 1.0),
    ("np.cos({})", lambda b: 1.0),
    ("np.tanh({})", lambda b: 1.0),
    ("np.arctan({})", lambda b: 1.6),
    ("np.abs({})", lambda b: b),
    ("(-{})", lambda b: b),
    ("np.square({})", lambda b: b * b),
    ("({} ** 2)", lambda b: b * b),
    ("({} ** 3)", lambda b: b**3),
    ("np.exp(-np.abs({}))", lambda b: 1.0),
    ("np.sqrt(1.0 + np.square({}))", lambda b: 1.0 + b),
    ("np.log1p(np.abs({}))", lambda b: b),
    ("np.arcsinh({})", lambda b: b),
    ("np.copy({})", lambda b: b),
)
BINARY: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("({} + {})", lambda b: 2 * b),
    ("({} - {})", lambda b: 2 * b),
    ("({} * {})", lambda b: b * b),
    ("({} * {})", lambda b: b * b),
    ("np.maximum({}, {})", lambda b: b),
    ("np.minimum({}, {})", lambda b: b),
    ("np.add({}, {})", lambda b: 2 * b),
    ("np.multiply({}, {})", lambda b: b * b),
)
SLICES = (":", "1:", ":-1", "::2", "1::2", "::-1", "2:", ":2", "-2:", "1:-1", "::-2")


def length(text: str, size: int) -> int:
    """How many elements a slice, as text, takes out of so many."""
    bounds = [int(part) if part else None for part in text.split(":")]
    return len(range(*slice(*bounds).indices(size)))


class ArrayExpressions(Expressions):
    """Draws scalars and arrays over a scope with arrays."""

    def leaf(self) -> Real:
        """As before, and sums and products over arrays and elements of heaps."""
        rng, scope = self.rng, self.scope
        draw = rng.random()
        if draw < 0.12 and (found := self.reduction()):
            return self.flat(found, NARROW)
        heaps = [name for name, shape in scope.heaps.items() if all(shape)]
        if draw < 0.18 and heaps:
            return self.flat(Real(self._element_of(rng.choice(heaps), scope.heaps), WIDE), NARROW)
        return super().leaf()

    def _element_of(self, name: str, shapes: dict[str, Shape]) -> str:
        return f"{name}[{', '.join(self.whole(1, Interval(-size, size - 1)).text for size in shapes[name])}]"

    def reduction(self) -> Real | None:
        """A number out of an array."""
        rng, scope = self.rng, self.scope
        shapes = list(scope.arrays.values())
        if not shapes:
            return None
        shape = rng.choice(shapes)
        size = math.prod(shape)
        a = self.array(shape, rng.choice((0, 0, 1, 2)))
        lines = [name for name, dimensions in scope.arrays.items() if len(dimensions) == 1]
        match rng.randrange(9):
            case 0 if size:
                return Real(f"np.mean({a.text})", a.bound)
            case 1 if size:
                return Real(rng.choice(("np.max({})", "np.min({})")).format(a.text), a.bound)
            case 2:
                a = self.flat_array(a, 1.0)
                return Real(f"np.prod({a.text})", 1.0)
            case 3 if lines:  # of any part of an array
                cut = rng.choice((f"{self.whole(1, Interval(-3, 5)).text}:", f":{self.whole(1, Interval(-3, 5)).text}"))
                return Real(f"np.sum({rng.choice(lines)}[{cut}])", 5 * scope.reach)
            case 4 if lines:
                name = rng.choice(lines)
                other = self.array(scope.arrays[name], 1)
                form = (
                    rng.choice(("np.dot({}, {})", "({} @ {})")) if scope.layouts.get(name) == "C" else "np.sum({} * {})"
                )
                if form != "np.sum({} * {})" and not other.text.startswith("np."):
                    other = Real(f"np.copy({other.text})", other.bound)
                return Real(form.format(name, other.text), scope.arrays[name][0] * scope.reach * other.bound)
            case 5:
                return Real(f"({a.text}).sum()", max(size, 1) * a.bound)
            case _:
                return Real(f"np.sum({a.text})", max(size, 1) * a.bound)

    # Arrays

    def array(self, shape: Shape, depth: int) -> Real:
        """An array expression of a shape; its bound is that of its elements."""
        found = self._array(shape, depth)
        return found if found.bound <= 1000.0 else self.flat_array(found, NARROW)

    def _array(self, shape: Shape, depth: int) -> Real:
        rng = self.rng
        if depth <= 0:
            return self.part(shape)
        match rng.randrange(8):
            case 0 | 1:
                form, growth = rng.choice(UNARY)
                a = self.array(shape, depth - 1)
                return Real(form.format(a.text), growth(a.bound))
            case 2 | 3:
                form, growth = rng.choice(BINARY)
                a, b = self.array(shape, depth - 1), self.array(self._narrower(shape), depth - 1)
                operands = (a, b) if rng.random() < 0.6 else (b, a)
                return Real(form.format(*(x.text for x in operands)), growth(max(a.bound, b.bound, 1.0)))
            case 4 | 5:
                form, growth = rng.choice(BINARY)
                a, x = self.array(shape, depth - 1), self.real(1)
                operands = (a, x) if rng.random() < 0.6 else (x, a)
                return Real(form.format(*(x.text for x in operands)), growth(max(a.bound, x.bound, 1.0)))
            case 6:
                a, b = self.array(shape, depth - 1), self.array(shape, depth - 1)
                return Real(f"({a.text} / (1.0 + np.square({b.text})))", a.bound)
            case _:
                condition = f"{self.array(shape, 0).text} {rng.choice(('<', '>', '<=', '>='))} {self.leaf().text}"
                a = self.array(shape, depth - 1)
                b = self.array(shape, 0) if rng.random() < 0.6 else Real(f"float({self.leaf().text})", NARROW)
                return Real(f"np.where({condition}, {a.text}, {b.text})", max(a.bound, b.bound))

    def _narrower(self, shape: Shape) -> Shape:
        """The shape, or at times one that is broadcast to it."""
        return shape[1:] if len(shape) == 2 and self.rng.random() < 0.3 else shape

    def part(self, shape: Shape) -> Real:
        """A name or a view, or something made of a number if there is none of this shape."""
        found = [*self.views(shape), *((text, "C") for text in self._gathered(shape))]
        heaps = [name for name, other in self.scope.heaps.items() if other == shape]
        if heaps and self.rng.random() < 0.2:
            return Real(f"np.tanh(0.01 * {self.rng.choice(heaps)})", 1.0)
        if found and self.rng.random() < 0.95:
            return Real(self.rng.choice(found)[0], self.scope.reach)
        if self.rng.random() < 0.3:
            return Real(f"{self.rng.choice(('np.zeros', 'np.ones'))}({dimensions(shape)})", 1.0)
        x = self.flat(self.real(1), NARROW)
        return Real(f"np.full({dimensions(shape)}, float({x.text}))", x.bound)

    def _gathered(self, shape: Shape) -> Iterator[str]:
        """Elements that arrays of indices select from arrays."""
        for name, (size, range_) in self.scope.places.items():
            for source, whole in self.scope.arrays.items():
                if (size, *whole[1:]) == shape and range_.within(Interval(-whole[0], whole[0] - 1)):
                    yield f"{source}[{name}]"

    def views(self, shape: Shape) -> Iterator[tuple[str, str]]:
        """All names and views of a shape, with the layout that the compiler knows of each."""
        for name, whole in self.scope.arrays.items():
            layout = self.scope.layouts.get(name, "A")
            if whole == shape:
                yield name, layout
                yield name, layout
            if len(shape) == 1 and len(whole) == 1:
                for cut in SLICES:
                    if length(cut, whole[0]) == shape[0] and cut != ":":
                        yield f"{name}[{cut}]", layout if cut.count(":") == 1 else "A"
            if len(shape) == 1 and len(whole) == 2:
                if whole[1] == shape[0] and whole[0]:
                    yield f"{name}[{self.whole(1, Interval(-whole[0], whole[0] - 1)).text}]", layout
                if whole[0] == shape[0] and whole[1]:
                    yield f"{name}[:, {self.whole(1, Interval(-whole[1], whole[1] - 1)).text}]", "A"
                if math.prod(whole) == shape[0] and layout == "C":
                    yield f"{name}.reshape({shape[0]})", "C"
            if len(shape) == 2 and len(whole) == 2:
                if whole[::-1] == shape:
                    yield f"{name}.T", "A"
                for cuts in ((":-1", ":"), (":", "1:"), ("::-1", ":"), (":", "::2")):
                    if (length(cuts[0], whole[0]), length(cuts[1], whole[1])) == shape:
                        yield f"{name}[{', '.join(cuts)}]", "A"

    def flat_array(self, a: Real, bound: float) -> Real:
        """The array made smaller than a bound, if it is not."""
        if a.bound <= bound:
            return a
        if a.bound > 50.0:
            form = self.rng.choice(("np.tanh(0.05 * {t})", "np.arctan(0.1 * {t})"))
            return self.flat_array(Real(form.format(t=a.text), 1.6), bound)
        form = self.rng.choice(
            ("np.tanh({t})", "np.sin({t})", "({t} * {c})", "({t} * {c})", "({t} / (1.0 + {t} * {t}))")
        )
        small = round(bound / a.bound, 4) * 0.99
        return Real(form.format(t=a.text, c=small), min(bound, 1.0) if "{c}" not in form else bound)


def dimensions(shape: Shape) -> str:
    """A shape as an argument."""
    return str(shape[0]) if len(shape) == 1 else str(shape)


class Writer(Protocol):
    """The interface of the generator that statements need."""

    rng: random.Random
    indent: int

    def put(self, line: str) -> None: ...
    def fresh(self, stem: str) -> str: ...


class ArrayStatements:
    """Statements that make, view, swap and write to arrays; each learns the scope what it defines."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.rng = writer.rng
        self.families = Families()
        self.made = ArrayExpressions  # what draws expressions

    def statement(self, scope: Scope) -> None:
        """One of them."""
        choices = (
            (self.element, 6),
            (self.whole, 4),
            (self.part, 4),
            (self.number_to_a_part, 2),
            (self.make, 4),
            (self.heap, 3),
            (self.alias, 4),
            (self.swap, 3),
            (self.fill, 3),
            (self.masked, 1),
            (self.in_a_tuple, 1),
        )
        self.rng.choices([c[0] for c in choices], [c[1] for c in choices])[0](scope)

    def at(self, scope: Scope) -> ArrayExpressions:
        return self.made(self.rng, scope)

    def _chosen(self, scope: Scope, dimensions: int = 0) -> str | None:
        found = [n for n, s in scope.arrays.items() if all(s) and (not dimensions or len(s) == dimensions)]
        return self.rng.choice(found) if found else None

    def _update(self, scope: Scope, target: str, value: Callable[[float], Real], mean: str = "") -> None:
        """Write to a target such that it stays within NARROW; `value(bound)` draws what is written."""
        put = self.writer.put
        match self.rng.randrange(7):
            case 0:
                put(f"{target} *= {self.families.apart(target, value(1.0).text, scope.arrays)}")
            case 1:
                put(f"{target} /= 1.0 + np.square({value(NARROW).text})")
            case 2:
                put(f"{target} = {mean or target} * 0.5 + 0.5 * ({value(NARROW).text})")
            case 3:
                sign = self.rng.choice(("+=", "-="))
                put(f"{target} {sign} {self.families.apart(target, value(NARROW).text, scope.arrays)}")
                put(f"{target} *= 0.5" if self.rng.random() < 0.5 else f"{target} = np.tanh({mean or target})")
            case _:
                put(f"{target} = {value(NARROW).text}")

    def element(self, scope: Scope) -> None:
        """Write to an element."""
        if (name := self._chosen(scope)) is None:
            return self.make(scope)
        expressions = self.at(scope)
        if scope.heaps and self.rng.random() < 0.25:
            heap = self.rng.choice([n for n, s in scope.heaps.items()])
            if all(scope.heaps[heap]):
                target = expressions._element_of(heap, scope.heaps)
                self.writer.put(f"{target} {self.rng.choice(('+=', '-='))} {self._real(scope)(NARROW).text}")
                return None
        self._update(scope, expressions.element(name), self._real(scope))
        return None

    def _real(self, scope: Scope) -> Callable[[float], Real]:
        expressions = self.at(scope)
        return lambda bound: expressions.flat(expressions.real(2), bound)

    def _array(self, scope: Scope, shape: Shape) -> Callable[[float], Real]:
        """An array of a shape, or at times what is broadcast to it."""
        expressions = self.at(scope)

        def draw(bound: float) -> Real:
            if self.rng.random() < 0.2:
                return expressions.flat(expressions.real(1), bound)
            narrower = shape[1:] if len(shape) == 2 and self.rng.random() < 0.2 else shape
            return expressions.flat_array(expressions.array(narrower, self.rng.choice((0, 1, 1, 2))), bound)

        return draw

    def whole(self, scope: Scope) -> None:
        """Write to all elements."""
        names = list(scope.arrays)
        if not names:
            return self.make(scope)
        if scope.heaps and self.rng.random() < 0.25:
            heap, shape = self.rng.choice(list(scope.heaps.items()))
            self.writer.put(f"{heap} += {self._array(scope, shape)(NARROW).text}")
            return None
        name = self.rng.choice(names)
        shape = scope.arrays[name]
        target = f"{name}[:, :]" if len(shape) == 2 else f"{name}[:]"
        if self.rng.random() < 0.3:
            self.writer.put(f"{name} *= {self.families.apart(name, self._array(scope, shape)(1.0).text, scope.arrays)}")
        else:
            self._update(scope, target, self._array(scope, shape), name)
        return None

    def part(self, scope: Scope) -> None:
        """Write to a slice, a row or a column."""
        if (name := self._chosen(scope)) is None:
            return self.make(scope)
        shape, rng = scope.arrays[name], self.rng
        if len(shape) == 1:
            cut = rng.choice(SLICES)
            target, size = f"{name}[{cut}]", (length(cut, shape[0]),)
        elif rng.random() < 0.5:
            target, size = f"{name}[{self.at(scope).whole(1, Interval(-shape[0], shape[0] - 1)).text}]", shape[1:]
        elif rng.random() < 0.6:
            target, size = f"{name}[:, {self.at(scope).whole(1, Interval(-shape[1], shape[1] - 1)).text}]", shape[:1]
        else:
            cuts = rng.choice(SLICES), rng.choice(SLICES)
            target, size = f"{name}[{', '.join(cuts)}]", (length(cuts[0], shape[0]), length(cuts[1], shape[1]))
        self._update(scope, target, self._array(scope, size))
        return None

    def number_to_a_part(self, scope: Scope) -> None:
        """Write one number to a slice whose bounds only the data know."""
        if (name := self._chosen(scope, 1)) is None:
            return self.make(scope)
        bound = self.at(scope).whole(1, Interval(-4, 6)).text
        target = f"{name}[{self.rng.choice((f'{bound}:', f':{bound}', f'{bound}::2'))}]"
        self._update(scope, target, self._real(scope))
        return None

    def make(self, scope: Scope) -> None:
        """A new array, filled."""
        rng, put = self.rng, self.writer.put
        name = self.writer.fresh("w")
        others = [(other, shape) for other, shape in scope.arrays.items()]
        if others and rng.random() < 0.7:
            other, shape = rng.choice(others)
        else:
            other, shape = "", rng.choice(((1,), (2,), (3,), (3,), (4,), (2, 2), (2, 3), (3, 2)))
        size = f"len({other})" if len(shape) == 1 and other and rng.random() < 0.6 else dimensions(shape)
        if other and rng.random() < 0.2:
            size = f"{other}.shape"
        layout = "C"
        match rng.randrange(6):
            case 0:
                put(f"{name} = {rng.choice(('np.zeros', 'np.ones'))}({size})")
            case 1 if other:
                put(f"{name} = {other}.copy()")
                layout = scope.layouts.get(other, "A")
            case 2:
                put(f"{name} = {self.at(scope).flat_array(self.at(scope).array(shape, 2), NARROW).text} + 0.0")
                layout = "A"  # what layout the sum has is Numba's affair
                if self.rng.random() < 0.5:
                    put(f"{name} = {name} * 0.5")
                else:
                    put(f"{name} *= 0.75")
            case 3 if other:
                put(f"{name} = {rng.choice(('np.zeros_like', 'np.ones_like'))}({other})")
                layout = scope.layouts.get(other, "A")
            case _:
                put(f"{name} = np.empty({size})")
                target = f"{name}[:, :]" if len(shape) == 2 else f"{name}[:]"
                if len(shape) == 1 and rng.random() < 0.5:
                    self._fill(scope, name, shape)
                else:
                    put(f"{target} = {self._array(scope, shape)(NARROW).text}")
        scope.arrays[name] = shape
        scope.layouts[name] = "C" if layout == "C" else "A"

    def heap(self, scope: Scope) -> None:
        """A new array that only sums up."""
        name = self.writer.fresh("h")
        shape = self.rng.choice(((1,), (2,), (3,), (2, 2)))
        self.writer.put(f"{name} = np.zeros({dimensions(shape)})")
        scope.heaps[name] = shape

    def _fill(self, scope: Scope, name: str, shape: Shape) -> None:
        put, index = self.writer.put, self.writer.fresh("i")
        put(f"for {index} in range({self.rng.choice((f'len({name})', f'{name}.shape[0]'))}):")
        inner = scope.inner()
        inner.ints[index] = Interval(0, max(shape[0] - 1, 0))
        inner.fixed.add(index)
        self.writer.indent += 1
        put(f"{name}[{index}] = {self._real(inner if shape[0] else scope)(NARROW).text}")
        self.writer.indent -= 1

    def fill(self, scope: Scope) -> None:
        """A loop that writes to each element of an array or the rows of a matrix."""
        rng, put = self.rng, self.writer.put
        if (name := self._chosen(scope)) is None:
            return self.make(scope)
        shape = scope.arrays[name]
        if len(shape) == 1:
            return self._fill(scope, name, shape)
        row = self.writer.fresh("u")
        inner = scope.inner()
        inner.arrays[row], inner.layouts[row] = shape[1:], scope.layouts.get(name, "A")
        self.families.join(name, row)
        if rng.random() < 0.6:
            put(f"for {row} in {name}:")
            self.writer.indent += 1
        else:
            index = self.writer.fresh("i")
            put(f"for {index} in range(len({name})):")
            inner.ints[index] = Interval(0, shape[0] - 1)
            inner.fixed.add(index)
            self.writer.indent += 1
            put(f"{row} = {name}[{index}]")
        inner.fixed.add(row)
        for _ in range(rng.choice((1, 1, 2))):
            self._update(inner, f"{row}[:]", self._array(inner, shape[1:]), row)
        self.writer.indent -= 1
        return None

    def alias(self, scope: Scope) -> None:
        """Another name for an array or a part of it, or for one of two."""
        rng = self.rng
        if not scope.arrays:
            return self.make(scope)
        name = self.writer.fresh("u")
        expressions = self.at(scope)
        sizes = list(scope.arrays.values())
        shape = rng.choice(sizes)
        if len(shape) == 2 and rng.random() < 0.5:
            shape = rng.choice((shape[1:], shape[:1], (math.prod(shape),)))
        elif len(shape) == 1 and rng.random() < 0.5:
            shape = (length(rng.choice(SLICES), shape[0]),)
        found = list(expressions.views(shape))
        text, layout = rng.choice(found) if found else ("", "")
        if not found:
            return self.make(scope)
        alike = [other for other, kind in found if kind == layout and other in scope.arrays]
        if rng.random() < 0.25 and text in scope.arrays and len(set(alike)) > 1:
            text = f"{text} if {expressions.truth(1)} else {rng.choice(alike)}"
        self.writer.put(f"{name} = {text}")
        self.families.join_with_all_in(name, text, scope.arrays)
        scope.arrays[name], scope.layouts[name] = shape, layout
        return None

    def swap(self, scope: Scope) -> None:
        """Two arrays of one type swapped."""
        free = [name for name in scope.arrays if name not in scope.fixed]
        pairs = [
            (a, b)
            for a in free
            for b in free
            if a < b and scope.arrays[a] == scope.arrays[b] and scope.layouts.get(a) == scope.layouts.get(b)
        ]
        if not pairs:
            return self.make(scope)
        a, b = self.rng.choice(pairs)
        self.writer.put(f"{a}, {b} = {b}, {a}")
        self.families.join(a, b)
        return None

    def masked(self, scope: Scope) -> None:
        """Write where a condition holds."""
        if (name := self._chosen(scope, 1)) is None:
            return self.make(scope)
        compare = self.rng.choice(("<", ">"))
        value = self._real(scope)(NARROW).text
        target = f"{name}[{name} {compare} {self.at(scope).leaf().text}]"
        self.writer.put(f"{target} = {value}")
        return None

    def in_a_tuple(self, scope: Scope) -> None:
        """Arrays packed, written to and unpacked."""
        if (a := self._chosen(scope, 1)) is None or (b := self._chosen(scope)) is None:
            return self.make(scope)
        pair, c, d = self.writer.fresh("p"), self.writer.fresh("u"), self.writer.fresh("u")
        self.writer.put(f"{pair} = ({a}, {b})")
        index = self.at(scope).whole(1, Interval(0, scope.arrays[a][0] - 1)).text
        self._update(scope, f"{pair}[0][{index}]", self._real(scope))
        self.writer.put(f"{c}, {d} = {pair}")
        for name, source in ((c, a), (d, b)):
            scope.arrays[name], scope.layouts[name] = scope.arrays[source], scope.layouts.get(source, "A")
            self.families.join(source, name)
        return None
