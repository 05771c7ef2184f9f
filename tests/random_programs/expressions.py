"""Random expressions whose values are bounded and whose functions are called inside their domains.

    scope = Scope(floats=["x"], ints={"n": Interval(0, 5)})
    Expressions(random.Random(0), scope).real(2)        # e.g. Real('math.sin(x) * (n + 1.5)', 7.5)

A real expression comes with a bound of its magnitude and an integer one with its interval, so that a program can be
kept from overflow, from an index out of range and from a domain error whatever its inputs are. Kinks and jumps are not
avoided: `tests.checking.reference` sees when an input is near one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

NARROW = 4.0  # the bound of ordinary float variables
WIDE = 1e6  # the bound of accumulators, which are read only through functions that flatten them


class Real(NamedTuple):
    """A float expression and a bound of its magnitude."""

    text: str
    bound: float


class Positive(NamedTuple):
    """A float expression between two positive numbers."""

    text: str
    low: float
    high: float


class Interval(NamedTuple):
    """The values an integer may have, both ends included."""

    low: int
    high: int

    def within(self, other: Interval) -> bool:
        return other.low <= self.low and self.high <= other.high


class Whole(NamedTuple):
    """An integer expression and its interval."""

    text: str
    range: Interval


@dataclass
class Scope:
    """The variables that certainly have a value, by kind; an int keeps to its interval and a tuple to its length."""

    floats: list[str] = field(default_factory=list)
    wides: list[str] = field(default_factory=list)
    ints: dict[str, Interval] = field(default_factory=dict)
    bools: list[str] = field(default_factory=list)
    tuples: dict[str, int] = field(default_factory=dict)
    arrays: dict[str, tuple[int, ...]] = field(default_factory=dict)
    heaps: dict[str, tuple[int, ...]] = field(default_factory=dict)  # arrays that only sum up
    layouts: dict[str, str] = field(default_factory=dict)  # "C" for arrays of this layout
    masks: dict[str, int] = field(default_factory=dict)  # arrays of truth values, with their lengths
    places: dict[str, tuple[int, Interval]] = field(default_factory=dict)  # of integers, with the range of these
    selected: dict[str, int] = field(default_factory=dict)  # what a mask selected, with the most elements it may have
    strided: set[str] = field(default_factory=set)  # masks that are not contiguous
    options: list[str] = field(default_factory=list)  # None or a float
    dicts: dict[str, Any] = field(default_factory=dict)  # with their `tests.random_programs.dicts.Entries`
    reach: float = 2.0  # the bound of the elements of arrays
    fixed: set[str] = field(default_factory=set)  # not to be assigned to

    def inner(self) -> Scope:
        """A copy for a branch or a loop body: what is defined there ends there."""
        return replace(
            self,
            floats=list(self.floats),
            wides=list(self.wides),
            ints=dict(self.ints),
            bools=list(self.bools),
            tuples=dict(self.tuples),
            arrays=dict(self.arrays),
            heaps=dict(self.heaps),
            layouts=dict(self.layouts),
            masks=dict(self.masks),
            places=dict(self.places),
            selected=dict(self.selected),
            strided=set(self.strided),
            options=list(self.options),
            dicts=dict(self.dicts),
            fixed=set(self.fixed),
        )


ANY = (  # functions of any real number of moderate size, with a bound of what they give
    ("math.sin({})", 1.0),
    ("np.sin({})", 1.0),
    ("math.cos({})", 1.0),
    ("np.cos({})", 1.0),
    ("math.tanh({})", 1.0),
    ("np.tanh({})", 1.0),
    ("math.atan({})", 1.6),
    ("np.arctan({})", 1.6),
    ("math.erf({})", 1.0),
    ("math.erfc({})", 2.0),
    ("np.sinc({})", 1.0),
    ("math.exp(-abs({}))", 1.0),
    ("np.sign({})", 1.0),
    ("math.copysign(1.5, {})", 1.5),
)
GROWING = (  # functions of any real number, with their bound as a function of its bound
    ("abs({})", lambda b: b),
    ("np.abs({})", lambda b: b),
    ("math.fabs({})", lambda b: b),
    ("-{}", lambda b: b),
    ("+{}", lambda b: b),
    ("np.negative({})", lambda b: b),
    ("np.square({})", lambda b: b * b),
    ("({}) ** 2", lambda b: b**2),
    ("({}) ** 3", lambda b: b**3),
    ("({}) ** 2.0", lambda b: b**2),
    ("math.asinh({})", lambda b: b),
    ("np.arcsinh({})", lambda b: b),
    ("math.radians({})", lambda b: b),
    ("np.deg2rad({})", lambda b: b),
    ("math.degrees(0.1 * ({}))", lambda b: 6 * b),
    ("np.rad2deg(0.1 * ({}))", lambda b: 6 * b),
    ("np.floor({})", lambda b: b + 1),
    ("np.ceil({})", lambda b: b + 1),
    ("np.trunc({})", lambda b: b),
    ("float({})", lambda b: b),
    ("np.float64({})", lambda b: b),
)
STEEP = (  # functions of a number of magnitude 4 at most
    ("math.exp({})", 60.0),
    ("np.exp({})", 60.0),
    ("np.exp2({})", 16.0),
    ("math.expm1({})", 60.0),
    ("np.expm1({})", 60.0),
    ("math.sinh({})", 30.0),
    ("np.sinh({})", 30.0),
    ("math.cosh({})", 30.0),
    ("np.cosh({})", 30.0),
)
UNIT = (  # functions of a number between -0.95 and 0.95
    ("math.asin({})", 1.6),
    ("np.arcsin({})", 1.6),
    ("math.acos({})", 3.2),
    ("np.arccos({})", 3.2),
    ("math.atanh({})", 2.0),
    ("np.arctanh({})", 2.0),
    ("math.tan({})", 1.6),
    ("np.tan({})", 1.6),
    ("np.log1p({})", 3.0),
    ("math.log1p({})", 3.0),
)
ROUNDING = ("floor", "ceil", "trunc")
LOGS = ("math.log({})", "np.log({})", "math.log2({})", "np.log2({})", "math.log10({})", "np.log10({})")
TWO = (  # functions of two numbers, with the bound as a function of the larger bound
    ("({} + {})", lambda b: 2 * b),
    ("({} - {})", lambda b: 2 * b),
    ("({} * {})", lambda b: b * b),
    ("({} + {})", lambda b: 2 * b),
    ("({} - {})", lambda b: 2 * b),
    ("({} * {})", lambda b: b * b),
    ("max({}, {})", lambda b: b),
    ("min({}, {})", lambda b: b),
    ("np.maximum({}, {})", lambda b: b),
    ("np.minimum({}, {})", lambda b: b),
    ("np.fmax({}, {})", lambda b: b),
    ("np.fmin({}, {})", lambda b: b),
    ("math.copysign({}, {})", lambda b: b),
    ("np.copysign({}, {})", lambda b: b),
    ("np.logaddexp({}, {})", lambda b: b + 1),
    ("np.add({}, {})", lambda b: 2 * b),
    ("np.multiply({}, {})", lambda b: b * b),
)


class Expressions:
    """Draws expressions over the variables of a scope."""

    def __init__(self, rng: random.Random, scope: Scope) -> None:
        self.rng = rng
        self.scope = scope

    # Reals

    def real(self, depth: int) -> Real:
        """A float expression of moderate size."""
        found = self._real(depth)
        return found if found.bound <= 1000.0 else self.flat(found, NARROW)

    def _real(self, depth: int) -> Real:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15:
            return self.leaf()
        match rng.randrange(14):
            case 0 | 1 | 2 | 3 | 4:
                form, growth = rng.choice(TWO)
                a, b = self.real(depth - 1), self.real(depth - 1)
                return Real(form.format(a.text, b.text), growth(max(a.bound, b.bound, 1.0)))
            case 5 | 6:
                form, bound = rng.choice(ANY)
                return Real(form.format(self.real(depth - 1).text), bound)
            case 7:
                form, grown = rng.choice(GROWING)
                a = self.real(depth - 1)
                return Real(form.format(f"({a.text})"), grown(a.bound))
            case 8:
                form, bound = rng.choice(STEEP)
                return Real(form.format(self.flat(self.real(depth - 1), 4.0).text), bound)
            case 9:
                form, bound = rng.choice(UNIT)
                return Real(form.format(self.unit(depth - 1)), bound)
            case 10:
                a, b = self.real(depth - 1), self.positive(depth - 1)
                form = rng.choice(("({} / {})", "({} / {})", "np.divide({}, {})", "({} / -({}))"))
                return Real(form.format(a.text, b.text), a.bound / b.low)
            case 11:
                c = self.truth(1)
                a, b = self.real(depth - 1), self.real(depth - 1)
                if rng.random() < 0.1:  # an array without dimensions, until something is added to it
                    return Real(f"(np.where({c}, {a.text}, {b.text}) + 0.0)", max(a.bound, b.bound))
                return Real(f"({a.text} if {c} else {b.text})", max(a.bound, b.bound))
            case 12:
                return self._special(depth)
            case _:
                found = self.positive(depth)
                return Real(found.text, found.high)

    def _special(self, depth: int) -> Real:
        rng = self.rng
        a = self.real(depth - 1)
        match rng.randrange(10):
            case 0:
                b = self.positive(depth - 1)
                return Real(f"(({a.text}) % ({b.text}))", b.high)
            case 1:
                b = self.positive(depth - 1)
                return Real(f"(({a.text}) // ({b.text}))", a.bound / b.low + 1)
            case 2:
                b = self.positive(depth - 1)
                return Real(f"np.fmod({a.text}, {b.text})", a.bound)
            case 3:
                b = self.positive(depth - 1)
                form = rng.choice(("math.atan2({}, {})", "np.arctan2({}, {})"))
                return Real(form.format(*rng.sample((a.text, b.text), 2)), 3.2)
            case 4:
                n = self.whole(1, Interval(0, 3))
                a = self.flat(a, 4.0)
                return Real(f"(({a.text}) ** ({n.text}))", 64.0)
            case 5:
                b = self.positive(depth - 1)
                form = rng.choice(("min(max({0}, -({1})), {1})", "max({0}, {1}, 0.25)", "min({1}, {0}, 1.5)"))
                return Real(form.format(a.text, b.text), max(a.bound, b.high, 0.25))
            case 6:
                n = self.whole(1, Interval(-9, 9))
                return Real(rng.choice(("(({}) * ({}))", "(({}) + ({}))")).format(a.text, n.text), 9 * a.bound + 9)
            case 7:
                n = self.whole(1, Interval(-9, 9))
                return Real(f"({n.text}) / {rng.choice((2, 3, 7, -5))}", 4.5)
            case 8:
                form = rng.choice(("(({}) * 3)", "(2 * ({}))", "(1 - ({}))", "(({}) - 1)", "(({}) / 2)", "(5 + ({}))"))
                return Real(form.format(a.text), 3 * a.bound + 5)
            case _:
                return Real(f"(({self.truth(0)}) * ({a.text}))", a.bound)

    def leaf(self) -> Real:
        """A variable, an element of an array or a tuple, or a constant."""
        rng, scope = self.rng, self.scope
        draw = rng.random()
        arrays = [name for name, shape in scope.arrays.items() if all(shape)]
        if draw < 0.25 and arrays:
            return Real(self.element(rng.choice(arrays)), scope.reach)
        if draw < 0.32 and scope.wides:
            return self.flat(Real(rng.choice(scope.wides), WIDE), NARROW)
        if draw < 0.4 and scope.tuples:
            name = rng.choice(list(scope.tuples))
            if rng.random() < 0.25:
                return Real(f"{name}[{self.whole(1, Interval(0, scope.tuples[name] - 1)).text}]", NARROW)
            return Real(f"{name}[{rng.randrange(-scope.tuples[name], scope.tuples[name])}]", NARROW)
        if draw < 0.85 and scope.floats:
            return Real(rng.choice(scope.floats), NARROW)
        if draw < 0.9 and scope.ints:
            n = self.whole(0, Interval(-9, 9))
            return Real(f"float({n.text})", 9.0)
        value = rng.choice((0.5, 2.0, 1.0, -0.75, 0.3, 1.7, 3.0, -1.0))
        return Real(repr(value), abs(value))

    def element(self, name: str) -> str:
        """An element of an array, by indices that are in range."""
        index = []
        for size in self.scope.arrays[name]:
            if self.rng.random() < 0.3:
                index.append(str(self.rng.randrange(-size, size)))
            else:
                index.append(self.whole(1, Interval(-size, size - 1)).text)
        return f"{name}[{', '.join(index)}]"

    def flat(self, a: Real, bound: float) -> Real:
        """The expression made smaller than a bound, if it is not."""
        if a.bound <= bound:
            return a
        text = f"({a.text})"
        if a.bound > 50.0:
            form = self.rng.choice(("{t} / (1.0 + abs({t}))", "math.atan(0.1 * {t})", "np.tanh(0.05 * {t})"))
            return Real(f"({form.format(t=text)})", 1.6)
        form = self.rng.choice(
            (
                "math.tanh({t})",
                "math.sin({t})",
                "{t} * {c}",
                "{t} * {c}",
                "{t} / (1.0 + {t} * {t})",
                "max(-{b}, min({b}, {t}))",
            )
        )
        return Real(f"({form.format(t=text, c=round(bound / a.bound, 4) * 0.99, b=bound)})", bound)

    def unit(self, depth: int) -> str:
        """An expression between -0.95 and 0.95."""
        form = self.rng.choice(
            ("0.95 * math.sin({})", "0.9 * math.tanh({})", "0.8 * np.cos({})", "0.6 * math.atan({})")
        )
        return form.format(self.real(depth).text)

    def positive(self, depth: int) -> Positive:
        """An expression that is positive and not near zero."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.2:
            value = rng.choice((0.5, 1.5, 2.0, 0.7, 3.0, 1.25))
            return Positive(repr(value), value, value)
        match rng.randrange(12):
            case 0:
                a = self.flat(self.real(depth - 1), NARROW)
                return Positive(f"(1.0 + ({a.text}) ** 2)", 1.0, 1.0 + a.bound**2)
            case 1:
                return Positive(f"(1.5 + math.sin({self.real(depth - 1).text}))", 0.5, 2.5)
            case 2:
                return Positive(f"math.exp(math.tanh({self.real(depth - 1).text}))", 0.36, 2.72)
            case 3:
                a = self.real(depth - 1)
                return Positive(f"(0.5 + abs({a.text}))", 0.5, 0.5 + a.bound)
            case 4:
                b = self.positive(depth - 1)
                form = rng.choice(("math.sqrt({})", "np.sqrt({})", "({}) ** 0.5"))
                return Positive(form.format(b.text), b.low**0.5, b.high**0.5)
            case 5:
                a = self.real(depth - 1)
                form = rng.choice(("np.hypot({}, 1.5)", "math.hypot(1.5, {})"))
                return Positive(form.format(a.text), 1.5, 1.5 + a.bound)
            case 6:
                a, b = self.positive(depth - 1), self.positive(depth - 1)
                form = rng.choice(("(({}) + ({}))", "max({}, {})", "np.maximum({}, {})"))
                low = a.low + b.low if "+" in form else max(a.low, b.low)
                return Positive(form.format(a.text, b.text), low, a.high + b.high)
            case 7:
                a, b = self.positive(depth - 1), self.flat(self.real(depth - 1), 1.0)
                form = rng.choice(("(({}) ** ({}))", "math.pow({}, {})", "np.power({}, {})"))
                small, large = min(a.low, 1 / a.high), max(a.high, 1 / a.low)
                return Positive(form.format(a.text, f"float({b.text})"), min(small, 1.0), max(large, 1.0))
            case 8:
                a = self.positive(depth - 1)
                form = rng.choice(("(1.0 / ({}))", "(({}) ** -1)", "np.reciprocal(float({}))"))
                return Positive(form.format(a.text), 1 / a.high, 1 / a.low)
            case 9:
                form = rng.choice(LOGS)
                a = self.positive(depth - 1)
                return Positive(
                    f"(0.3 + abs({form.format(a.text)}))", 0.3, 0.3 + 1.5 * (abs(a.low) + 1 / a.low + a.high)
                )
            case 10:
                form = rng.choice(("math.acosh({})", "np.arccosh({})", "math.lgamma(2.0 + {})", "math.gamma({})"))
                argument = f"(1.5 + 0.4 * math.sin({self.real(depth - 1).text}))"
                return Positive(f"(0.1 + {form.format(argument)})", 0.2, 3.0)
            case _:
                return Positive(f"np.cbrt(1.5 + math.cos({self.real(depth - 1).text}))", 0.79, 1.36)

    # Integers

    def whole(self, depth: int, inside: Interval) -> Whole:
        """An integer expression in an interval."""
        found = self._whole(depth)
        if found.range.within(inside):
            return found
        size = inside.high - inside.low + 1
        if inside.low == 0:
            return Whole(f"({found.text}) % {size}", inside)
        if self.rng.random() < 0.5:
            return Whole(f"min(max({found.text}, {inside.low}), {inside.high})", inside)
        return Whole(f"(({found.text}) % {size} + {inside.low})", inside)

    def _whole(self, depth: int) -> Whole:
        rng, scope = self.rng, self.scope
        if depth <= 0 or rng.random() < 0.4:
            if scope.places and rng.random() < 0.35:
                name = rng.choice(list(scope.places))
                return Whole(*self._one_of(name, *scope.places[name]))
            if scope.ints and rng.random() < 0.85:
                name = rng.choice(list(scope.ints))
                return Whole(name, scope.ints[name])
            value = rng.randrange(-2, 5)
            return Whole(str(value), Interval(value, value))
        a = self._whole(depth - 1)
        match rng.randrange(13):
            case 0 | 1:
                b = self._whole(depth - 1)
                return Whole(
                    f"(({a.text}) + ({b.text}))", Interval(a.range.low + b.range.low, a.range.high + b.range.high)
                )
            case 2 | 3:
                b = self._whole(depth - 1)
                return Whole(
                    f"(({a.text}) - ({b.text}))", Interval(a.range.low - b.range.high, a.range.high - b.range.low)
                )
            case 4:
                b = self._whole(depth - 1)
                ends = [x * y for x in a.range for y in b.range]
                return Whole(f"(({a.text}) * ({b.text}))", Interval(min(ends), max(ends)))
            case 5:
                d = rng.choice((2, 3, -2))
                ends = [x // d for x in a.range]
                return Whole(f"(({a.text}) // {d})", Interval(min(ends), max(ends)))
            case 6:
                d = rng.choice((2, 3, 5, -3))
                return Whole(f"(({a.text}) % {d})", Interval(min(0, d + 1), max(0, d - 1)))
            case 7:
                ends = [abs(x) for x in a.range]
                return Whole(f"abs({a.text})", Interval(0, max(ends)))
            case 8:
                b = self._whole(depth - 1)
                low, high = min(a.range.low, b.range.low), max(a.range.high, b.range.high)
                return Whole(f"{rng.choice(('min', 'max'))}({a.text}, {b.text})", Interval(low, high))
            case 9:
                form = rng.choice(
                    ("int({})", "round({})", "math.floor({})", "math.ceil({})", "math.trunc({})", "int({})")
                )
                return Whole(form.format(self.flat(self.real(1), NARROW).text), Interval(-5, 5))
            case 10:
                form, low, high = rng.choice((("(({}) & 3)", 0, 3), ("(({}) % 8 ^ 5)", 0, 7), ("(({}) % 8 | 2)", 0, 7)))
                return Whole(form.format(a.text), Interval(low, high))
            case 11:
                ends = [x * 2 for x in a.range]
                return Whole(f"(({a.text}) << 1)", Interval(*ends))
            case _:
                if scope.arrays:
                    name, shape = rng.choice(list(scope.arrays.items()))
                    axis = rng.randrange(len(shape))
                    text = f"len({name})" if axis == 0 and rng.random() < 0.6 else f"{name}.shape[{axis}]"
                    return Whole(text, Interval(shape[axis], shape[axis]))
                return Whole(
                    f"({a.text} if {self.truth(0)} else 1)", Interval(min(1, a.range.low), max(1, a.range.high))
                )

    def _one_of(self, name: str, size: int, range_: Interval) -> tuple[str, Interval]:
        """An element of an array of integers or truth values."""
        at = (
            str(self.rng.randrange(-size, size))
            if self.rng.random() < 0.5
            else self.whole(0, Interval(0, size - 1)).text
        )
        return f"{name}[{at}]", range_

    # Truth

    def truth(self, depth: int) -> str:
        """A condition."""
        rng, scope = self.rng, self.scope
        if depth > 0 and rng.random() < 0.45:
            match rng.randrange(6):
                case 0 | 1:
                    return f"({self.truth(depth - 1)} and {self.truth(depth - 1)})"
                case 2 | 3:
                    return f"({self.truth(depth - 1)} or {self.truth(depth - 1)})"
                case 4:
                    return f"(not {self.truth(depth - 1)})"
                case _:
                    divisor = self.leaf().text
                    return f"({divisor} != 0 and {self.real(1).text} / ({divisor}) < {self.real(0).text})"
        if scope.masks and rng.random() < 0.2:
            name = rng.choice(list(scope.masks))
            return self._one_of(name, scope.masks[name], Interval(0, 1))[0]
        if scope.bools and rng.random() < 0.25:
            return rng.choice(scope.bools)
        if scope.ints and rng.random() < 0.4:
            a, b = self._whole(1), self._whole(0)
            match rng.randrange(4):
                case 0:
                    return f"(({a.text}) % 2 == {rng.randrange(2)})"
                case 1:
                    return f"(({a.text}) {rng.choice(('==', '!='))} ({b.text}))"
                case _:
                    return f"(({a.text}) {rng.choice(('<', '<=', '>', '>='))} ({b.text}))"
        a, b = self.real(1), self.leaf()
        compare = rng.choice(("<", "<=", ">", ">="))
        if rng.random() < 0.15:
            return f"({self.leaf().text} {compare} {a.text} {compare} {b.text})"
        return f"({a.text} {compare} {b.text})"
