"""Entries of the dicts of random programs, and expressions that read them.

    scope = Scope(floats=["x"], dicts={"d1": Entries("whole", "float", core=("0", "1", "2", "3"))})
    DictExpressions(random.Random(0), scope).real(2)        # e.g. Real('math.sin(d1[int(x * 3.0) % 4])', 1.0)

A key of the core is read without a question, and computed if all that are computed are of the core; other keys are read
with `in` or `get`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.random_programs.arrays import ArrayExpressions
from tests.random_programs.expressions import NARROW, Expressions, Interval, Real, Whole

DICTS = "dicts"
# What the text and its stand-in begin with: the reference keeps numbers of 50 digits in its dicts.
IMPORTS = "from numba import types\nfrom numba.typed import Dict\n"
STAND_IN_IMPORTS = "from numba import types\n\nfrom tests.random_programs.entries import Dict\n"
# What programs have beside what is drawn: functions that take, change and return dicts.
HELPERS = """PAIR = types.UniTuple(types.int64, 2)
FLOATS = types.UniTuple(types.float64, 2)


def put(d, key, value):
    if len(d) > 6:
        return
    d[key] = value


def blended(d):
    total = 0.0
    for v in d.values():
        total = 0.5 * total + v
    return total


def halved(d):
    e = d.copy()
    for k, v in d.items():
        e[k] = 0.5 * v
    return e


def powers(x, n):
    d = {0: 1.0}
    for i in range(n):
        d[i + 1] = d[i] * math.tanh(x)
    return d


"""
TEXTS = ("a", "b", "cc", "dd")
PAIRS = tuple(f"({i}, {j})" for i in range(2) for j in range(3))
COUNT = Interval(0, 4)  # of the values that are integers
TYPES = {
    "whole": "types.int64",
    "pair": "PAIR",
    "text": "types.unicode_type",
    "float": "types.float64",
    "count": "types.int64",
    "floats": "FLOATS",
    "array": "types.float64[::1]",
}


class Dict(dict[Any, Any]):
    """Stands in for Numba's typed dict, which the reference cannot fill."""

    @classmethod
    def empty(cls, key: Any, value: Any) -> Dict:
        """Return a dict that takes anything."""
        return cls()


@dataclass(frozen=True)
class Entries:
    """The kinds of the keys and values of a dict, the length of its arrays, and the keys that are always there."""

    keys: str
    values: str
    size: int = 0
    core: tuple[str, ...] = ()

    @property
    def all_keys(self) -> tuple[str, ...]:
        """The keys that are written as constants."""
        return {"whole": tuple(map(str, range(8))), "pair": PAIRS, "text": TEXTS_QUOTED}[self.keys]


TEXTS_QUOTED = tuple(f"'{text}'" for text in TEXTS)
CORES = {
    "whole": (("0", "1", "2", "3"), ("0", "1", "2", "3"), ("1", "2"), ()),
    "pair": (PAIRS, PAIRS[:2], ()),
    "text": (TEXTS_QUOTED[:2], TEXTS_QUOTED, ()),
}


class DictReads(Expressions):
    """Draws expressions that read dicts as well.

    What `get` returns is optional to Numba, and takes part in arithmetic therefore, `1.0 * d.get(k, x)`.
    """

    in_key = False  # whether a key is being drawn, which reads no dict

    def leaf(self) -> Real:
        """As before, and entries of dicts."""
        if self.scope.dicts and not self.in_key and self.rng.random() < 0.25 and (found := self._entry()):
            return found
        return super().leaf()

    def _whole(self, depth: int) -> Whole:
        rng = self.rng
        if self.scope.dicts and not self.in_key and rng.random() < 0.1:
            name, entries = rng.choice(list(self.scope.dicts.items()))
            if entries.values != "count" or rng.random() < 0.2:
                return Whole(f"len({name})", Interval(0, 12))
            if entries.core and rng.random() < 0.5:
                return Whole(f"{name}[{self.certain_key(entries)}]", COUNT)
            return Whole(f"({name}.get({self.key(entries)}, {rng.randrange(3)}) + 0)", COUNT)
        return super()._whole(depth)

    def truth(self, depth: int) -> str:
        """As before, and whether a dict has a key."""
        rng = self.rng
        if self.scope.dicts and not self.in_key and rng.random() < 0.15:
            name, entries = rng.choice(list(self.scope.dicts.items()))
            match rng.randrange(8):
                case 0:
                    return f"(len({name}) {rng.choice(('<', '>', '=='))} {rng.randrange(1, 6)})"
                case 1:
                    return f"bool({name})"
                case _:
                    return f"({self.key(entries)} {rng.choice(('in', 'in', 'not in'))} {name})"
        return super().truth(depth)

    def key(self, entries: Entries) -> str:
        """Any key of the kind, which may be missing."""
        rng = self.rng
        if rng.random() < 0.35:
            return rng.choice(entries.all_keys)
        match entries.keys:
            case "whole":
                return self._computed(8)
            case "pair":
                return f"({self._computed(2)}, {self._computed(3)})"
            case _:
                a, b = rng.sample(entries.all_keys, 2)
                return f"({a} if {self._plain_truth()} else {b})"

    def certain_key(self, entries: Entries) -> str:
        """A key that is there, of a dict with a core."""
        rng, core = self.rng, entries.core
        if len(core) == 1 or rng.random() < 0.35:
            return rng.choice(core)
        if entries.keys == "whole" and len(core) == 4:
            return self._computed(4)
        if entries.keys == "pair" and len(core) == 6:
            return f"({self._computed(2)}, {self._computed(3)})"
        a, b = rng.sample(core, 2)
        return f"({a} if {self._plain_truth()} else {b})"

    def _plain_truth(self) -> str:
        """A condition that reads no dict."""
        self.in_key = True
        text = self.truth(0)
        self.in_key = False
        return text

    def _computed(self, count: int) -> str:
        rng, scope = self.rng, self.scope
        if scope.floats and rng.random() < 0.4:
            return f"int({rng.choice(scope.floats)} * {rng.choice((3.0, 1.7, -2.3))}) % {count}"
        known = [name for name, range_ in scope.ints.items() if range_.within(Interval(0, count - 1))]
        if known and rng.random() < 0.6:
            return rng.choice(known)
        if scope.ints and rng.random() < 0.8:
            return f"({rng.choice(list(scope.ints))} + {rng.randrange(3)}) % {count}"
        return str(rng.randrange(count))

    def _entry(self) -> Real | None:
        rng = self.rng
        name, entries = rng.choice(list(self.scope.dicts.items()))
        if entries.values == "count":
            return None
        default = rng.choice((*(f"float({v})" for v in self.scope.floats), "0.5", "-1.0"))
        if entries.core and rng.random() < 0.55:
            text = f"{name}[{self.certain_key(entries)}]"
        elif entries.values == "float":
            if rng.random() < 0.4:
                key = rng.choice(entries.all_keys)
                return Real(f"({name}[{key}] if {key} in {name} else {default})", NARROW)
            return Real(f"(1.0 * {name}.get({self.key(entries)}, {default}))", NARROW)
        elif entries.values == "floats":
            key = rng.choice(entries.all_keys)
            return Real(f"({name}[{key}][{rng.choice((0, 1, -1))}] if {key} in {name} else {default})", NARROW)
        elif entries.core:
            text = f"{name}.get({self.key(entries)}, {name}[{self.certain_key(entries)}])"
        else:
            return None
        match entries.values:
            case "floats":
                text += rng.choice(("[0]", "[1]", "[-1]"))
            case "array":
                if ".get(" not in text and rng.random() < 0.3:
                    return self.flat(Real(f"np.sum({text})", entries.size * NARROW), NARROW)
                text += f"[{self.whole(0, Interval(-entries.size, entries.size - 1)).text}]"
        return Real(text, NARROW)


class DictExpressions(DictReads, Expressions):
    """Expressions over scopes with dicts."""


class DictAndArrayExpressions(DictReads, ArrayExpressions):
    """Expressions over scopes with dicts and arrays that are written to."""
