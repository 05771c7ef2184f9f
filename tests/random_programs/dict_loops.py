"""Loops of random programs over dicts, and loops that fill them.

for i1, (j2, v3) in enumerate(d4.items()):
    v5 = math.tanh(0.5 * v5 + 0.1 * (j2 + 1) * v3)
    d4[j2] = v3 * x
"""

from __future__ import annotations

import random
from typing import Any

from tests.random_programs.entries import COUNT, Entries
from tests.random_programs.expressions import NARROW, Interval, Scope
from tests.random_programs.families import Families
from tests.random_programs.functions import Place


class DictLoops:
    """The part of the statements on dicts that loops."""

    rng: random.Random
    writer: Any
    families: Families
    put: Any
    fresh: Any
    at: Any
    chosen: Any
    held: Any
    store: Any
    change: Any
    accumulate: Any
    _alike: Any
    _join: Any

    def _count_up(self, scope: Scope, name: str, entries: Entries, stop: str) -> None:
        index = self.fresh("i")
        inner = scope.inner()
        inner.ints[index] = Interval(0, 3)
        inner.fixed.add(index)
        self.put(f"for {index} in range({stop}):")
        self.put(f"    {name}[{index}] = {self.held(inner, name, entries)}")

    def loop(self, scope: Scope, place: Place) -> None:
        """A loop over a dict."""
        rng = self.rng
        name = self.chosen(scope, grows=False)
        assert name is not None
        entries, inner = scope.dicts[name], scope.inner()
        key, value, index = self.fresh("j"), self.fresh("v"), self.fresh("i")
        total = self.fresh("v")
        self.put(f"{total} = {rng.choice(('0.0', '1.0', '0.25'))}")
        inner.fixed |= {key, value, index}
        form = rng.randrange(8)
        lists = form >= 6
        if not lists:
            inner.fixed |= set(self.families.relatives(name, scope.dicts))
        has_key, has_value = form in (0, 1, 2, 4, 5, 6), form in (0, 1, 2, 3, 4, 7)
        match form:
            case 0 | 1 | 2:
                self.put(f"for {key}, {value} in {name}.items():")
            case 3:
                self.put(f"for {value} in {name}.values():")
            case 4:
                self.put(f"for {index}, ({key}, {value}) in enumerate({name}.items()):")
            case 5:
                self.put(f"for {key} in {rng.choice((name, f'{name}.keys()'))}:")
            case 6:
                self.put(f"for {key} in {rng.choice((f'sorted(list({name}.keys()))', f'list({name})'))}:")
            case _:
                self.put(f"for {value} in list({name}.values()):")
        if form == 4:
            inner.ints[index] = Interval(0, 9)
        weight = "1.0"
        if has_key:
            match entries.keys:
                case "whole":
                    inner.ints[key] = Interval(0, 8)
                    weight = f"({key} + 1)"
                case "pair":
                    weight = f"({key}[0] + 0.5 * {key}[1])"
                case _:
                    weight = f"len({key})"
        self.writer.indent += 1
        found = value if has_value else f"{name}[{key}]"
        if not has_value and lists:
            self.put(f"if {key} not in {name}:")
            self.put("    continue")
        self._read_one(inner, entries, found if has_value else "", total, weight, found)
        if not lists and has_key and rng.random() < 0.5:
            self._overwrite_present(inner, name, key, entries)
        self.writer.indent -= 1
        if place.depth > 0 and rng.random() < 0.4:
            self.writer.body(inner, scope, place, 8)
        scope.floats.append(total)

    def _overwrite_present(self, scope: Scope, name: str, key: str, entries: Entries) -> None:
        """A new value for the key that a loop is at."""
        if entries.values == "array" and self.rng.random() < 0.5:
            index = self.rng.randrange(entries.size)
            at = self.at(scope)
            return self.put(f"{name}[{key}][{index}] = {at.flat(at.real(1), NARROW).text}")
        self.put(f"{name}[{key}] = {self.held(scope, name, entries)}")
        return None

    def _read_one(self, scope: Scope, entries: Entries, name: str, total: str, weight: str, found: str) -> None:
        """Add a value to a total that stays within NARROW, and tell the scope of its name."""
        weight = f"0.1 * {weight}"
        match entries.values:
            case "float":
                if name:
                    scope.floats.append(name)
                term = found
            case "count":
                if name:
                    scope.ints[name] = COUNT
                term = found
            case "floats":
                if name:
                    scope.tuples[name] = 2
                term = f"{found}[0] * {found}[1]"
            case _:
                if name:
                    scope.arrays[name], scope.layouts[name] = (entries.size,), "C"
                    for other, kind in scope.dicts.items():
                        if kind.values == "array":
                            self.writer.on_arrays.families.join(other, name)
                term = f"np.sum({found})"
        self.put(f"{total} = math.tanh(0.5 * {total} + {weight} * {term})")
        scope.fixed.add(total)
        scope.floats.append(total)

    def fill(self, scope: Scope, place: Place) -> None:
        """A loop that stores a value for each of its numbers."""
        if (name := self.chosen(scope, keys="whole")) is None:
            return self.store(scope, place)
        stop = self.at(scope).whole(1, Interval(0, 4)).text
        self._count_up(scope, name, scope.dicts[name], stop)
        return None

    def each_of_two(self, scope: Scope, place: Place) -> None:
        """A loop over a tuple of dicts."""
        name = self.chosen(scope)
        if name is None:
            return self.change(scope, place)
        related = self.families.relatives(name, scope.dicts)
        others = [
            other
            for other in self._alike(scope, scope.dicts[name])
            if other not in scope.fixed and (not place.in_loop or other in related)
        ]
        other, made = self.rng.choice(others), self.fresh("d")
        self.put(f"for {made} in ({name}, {other}):")
        self._join(scope, made, name, other)
        inner = scope.inner()
        inner.dicts[made] = scope.dicts[name]
        self.writer.indent += 1
        inside = Place(0, place.trips * 2, True, "")
        for _ in range(self.rng.choice((1, 2))):
            self.rng.choice((self.store, self.change, self.accumulate))(inner, inside)
        self.writer.indent -= 1
        return None

    def sums(self, scope: Scope) -> list[str]:
        """Terms of what the dicts have at the end, in its order."""
        terms = []
        for name in scope.dicts:
            if self.rng.random() < 0.8:
                only = replace_dicts(scope, name)
                before = len(scope.floats)
                self._sum(only, scope)
                terms += [f"{0.5 + self.rng.random():.2f} * {v}" for v in scope.floats[before:]]
        return terms

    def _sum(self, only: Scope, scope: Scope) -> None:
        ((name, entries),) = only.dicts.items()
        key, value, total = self.fresh("j"), self.fresh("v"), self.fresh("v")
        weights = {"whole": f"({key} + 1)", "pair": f"({key}[0] + 0.5 * {key}[1])", "text": f"len({key})"}
        self.put(f"{total} = 0.25")
        self.put(f"for {key}, {value} in {name}.items():")
        self.writer.indent += 1
        self._read_one(only, entries, value, total, weights[entries.keys], value)
        self.writer.indent -= 1
        scope.floats.append(total)


def replace_dicts(scope: Scope, name: str) -> Scope:
    """The scope with one of its dicts."""
    found = scope.inner()
    found.dicts = {name: scope.dicts[name]}
    return found
