"""Dicts in random programs: made, stored to, deleted from, looped over, swapped, passed on.

    d1 = {0: float(x), 1: math.sin(y), 2: 0.5, 3: a[0]}
    k2 = int(x * 3.0) % 4
    d1[k2] = d1.get(k2 + 4, 0.5) * y
    for k3, v4 in d1.items():
        v5 = 0.5 * v5 + k3 * v4

Every dict has a core of keys that it never lacks: these are read without a question, all others with `in`, `get`,
`setdefault` or `try`. Keys are computed integers, pairs of these or strings; values are floats, pairs of floats, arrays
of one axis, or integers that may steer the program. Nothing adds or deletes keys in a loop over the same dict.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from tests.random_programs.arrays import ArrayStatements
from tests.random_programs.dict_loops import DictLoops
from tests.random_programs.entries import (
    CORES,
    COUNT,
    TYPES,
    DictAndArrayExpressions,
    DictExpressions,
    DictReads,
    Entries,
)
from tests.random_programs.expressions import NARROW, Interval, Real, Scope
from tests.random_programs.families import Families
from tests.random_programs.functions import Place, Signature


class Writer(Protocol):
    """The interface of the generator that statements on dicts need."""

    rng: random.Random
    indent: int
    writes: bool
    functions: bool
    own: Signature | None
    on_arrays: ArrayStatements

    def put(self, line: str) -> None: ...
    def fresh(self, stem: str) -> str: ...
    def body(self, scope: Scope, outer: Scope, place: Place, trips: int, step: str = "", last: str = "") -> None: ...
    def overwrite(self, scope: Scope, place: Place) -> None: ...


class DictStatements(DictLoops):
    """Statements that make, change and use dicts; each learns the scope what it defines."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.rng = writer.rng
        self.put = writer.put
        self.fresh = writer.fresh
        self.families = Families()
        self.count = 0
        if writer.writes:
            writer.on_arrays.made = DictAndArrayExpressions

    def at(self, scope: Scope) -> DictReads:
        return (DictAndArrayExpressions if self.writer.writes else DictExpressions)(self.rng, scope)

    def statement(self, scope: Scope, place: Place) -> None:
        """One of them."""
        self.count += 1
        if not scope.dicts or self.rng.random() < 0.1:
            return self.make(scope, place)
        choices: list[tuple[Callable[[Scope, Place], None], int]] = [
            (self.store, 8),
            (self.change, 8),
            (self.accumulate, 5),
            (self.take, 5),
            (self.delete, 3),
            (self.loop, 7),
            (self.optional, 2),
            (self.attempt, 2),
            (self.copy, 4),
            (self.rename, 3),
            (self.swap, 3),
            (self.call, 4),
            (self.fill, 3),
            (self.empty, 2),
            (self.make_again, 2),
            (self.each_of_two, 1),
        ]
        return self.rng.choices([c[0] for c in choices], [c[1] for c in choices])[0](scope, place)

    def chosen(self, scope: Scope, grows: bool = True, **wanted: str) -> str | None:
        """The name of a dict, of the kinds that are wanted, to which keys can be added if it `grows`."""
        found = [
            name
            for name, entries in scope.dicts.items()
            if not (grows and name in scope.fixed) and all(getattr(entries, k) == v for k, v in wanted.items())
        ]
        return self.rng.choice(found[-3:]) if found else None

    # Values and keys

    def value(self, scope: Scope, entries: Entries) -> str:
        """A value of the kind that the dict has."""
        rng, at = self.rng, self.at(scope)

        def number() -> str:
            return f"float({at.flat(at.real(rng.choice((1, 2))), NARROW).text})"

        match entries.values:
            case "float":
                return number()
            case "count":
                return at.whole(1, COUNT).text
            case "floats":
                return f"({number()}, {number()})"
        lines = [
            name for name, shape in scope.arrays.items() if shape == (entries.size,) and scope.layouts.get(name) == "C"
        ]
        match rng.randrange(6):
            case 0 | 1 if lines:
                return rng.choice(lines)
            case 2 if lines:
                return f"{rng.choice(lines)}.copy()"
            case 3 if lines:
                return f"np.{rng.choice(('sin', 'tanh', 'cos'))}({rng.choice(lines)})"
            case 4:
                return f"np.array([{', '.join(number() for _ in range(entries.size))}])"
            case _:
                return f"np.full({entries.size}, {number()})"

    def held(self, scope: Scope, name: str, entries: Entries) -> str:
        """A value, which the dict shares from now on if it is an array."""
        text = self.value(scope, entries)
        if text in scope.arrays:
            self.writer.on_arrays.families.join(name, text)
        return text

    def named(self, text: str) -> str:
        """The name of a variable that has the value of a key, or the key if it is a constant."""
        if not ("[" in text or "int(" in text or "%" in text or " if " in text or self.rng.random() < 0.2):
            return text
        self.put(f"{(name := self.fresh('j'))} = {text}")
        return name

    def display(self, scope: Scope, name: str, entries: Entries) -> str:
        """A dict with the core's keys, and others."""
        keys = list(entries.core) or [self.rng.choice(entries.all_keys)]
        if self.rng.random() < 0.2:
            self.rng.shuffle(keys)
        if self.rng.random() < 0.2:
            keys.append(self.at(scope).key(entries))
        return "{" + ", ".join(f"{key}: {self.held(scope, name, entries)}" for key in keys) + "}"

    # Statements

    def make(self, scope: Scope, place: Place) -> None:
        """A new dict."""
        rng = self.rng
        name = self.fresh("d")
        keys = rng.choices(("whole", "pair", "text"), (6, 2, 2))[0]
        values = rng.choices(("float", "array", "count", "floats"), (6, 3 if self.writer.writes else 0, 1, 1))[0]
        entries = Entries(keys, values, rng.choice((2, 3)) if values == "array" else 0, rng.choice(CORES[keys]))
        if scope.dicts and rng.random() < 0.4:
            entries = rng.choice(list(scope.dicts.values()))  # for two that can be swapped
        counted = entries.keys == "whole" and len(entries.core) == 4
        # In a function with a comprehension, Numba 0.68.1 drops what a loop over the rows of a matrix writes to them.
        # There is none where Numba does not compile the program itself, which would show that.
        checked = not self.writer.writes or (self.writer.own is None and not self.writer.functions)
        match rng.randrange(7):
            case 0 | 1:
                empty = "{}"
                if rng.random() < 0.5 or not scope.floats:
                    empty = f"Dict.empty({TYPES[entries.keys]}, {TYPES[entries.values]})"
                self.put(f"{name} = {empty}")
                if counted and rng.random() < 0.6:
                    self._count_up(scope, name, entries, "4")
                else:
                    for key in entries.core:
                        self.put(f"{name}[{key}] = {self.held(scope, name, entries)}")
                if not entries.core:
                    condition = self.at(scope).truth(1)
                    if empty == "{}":  # whose types Numba does not know if the store is pruned
                        condition = f"{rng.choice(scope.floats)} < {self.at(scope).leaf().text}"
                    self.put(f"if {condition}:")
                    self.put(f"    {name}[{self.at(scope).key(entries)}] = {self.held(scope, name, entries)}")
            case 2 if counted and checked:
                inner = scope.inner()
                inner.ints[key := self.fresh("i")] = Interval(0, 3)
                self.put(f"{name} = {{{key}: {self.held(inner, name, entries)} for {key} in range(4)}}")
            case 3 if checked and entries.values == "float" and (others := self._alike(scope, entries)):
                key, value = self.fresh("j"), self.fresh("v")
                inner = scope.inner()
                inner.floats += [value] * 3
                inner.fixed.add(value)
                items = f"for {key}, {value} in {rng.choice(others)}.items()"
                self.put(f"{name} = {{{key}: {self.value(inner, entries)} {items}}}")
            case 4 if (entries.keys, entries.values) == ("whole", "float"):
                count = self.at(scope).whole(1, Interval(0, 5)).text
                self.put(f"{name} = powers({self.value(scope, entries)}, {count})")
                entries = replace(entries, core=())
            case _:
                if len(entries.core) > 4 and rng.random() < 0.7:
                    entries = replace(entries, core=entries.core[:2])
                self.put(f"{name} = {self.display(scope, name, entries)}")
        others = self._alike(scope, entries)
        if others and not place.in_loop and rng.random() < 0.5:
            self.families.join(rng.choice(others), name)
        scope.dicts[name] = entries

    def _alike(self, scope: Scope, entries: Entries) -> list[str]:
        return [name for name, other in scope.dicts.items() if other == entries]

    def make_again(self, scope: Scope, place: Place) -> None:
        """Another dict for a variable."""
        if name := self.chosen(scope):
            self.put(f"{name} = {self.display(scope, name, scope.dicts[name])}")

    def store(self, scope: Scope, place: Place) -> None:
        """A value for any key, which may be new."""
        if (name := self.chosen(scope)) is None:
            return self.change(scope, place)
        key = self.at(scope).key(scope.dicts[name])
        self.put(f"{name}[{key}] = {self.held(scope, name, scope.dicts[name])}")
        return None

    def change(self, scope: Scope, place: Place) -> None:
        """An update of a value that is there."""
        name = self.chosen(scope, grows=False)
        assert name is not None
        entries, at = scope.dicts[name], self.at(scope)
        if not entries.core:
            key = self.named(at.key(entries))
            self.put(f"if {key} in {name}:")
        else:
            key = self.named(at.certain_key(entries))
            if self.rng.random() < 0.15:
                return self.put(f"{name}[{key}] = {self.held(scope, name, entries)}")
        self.writer.indent += not entries.core
        self._update(scope, name, key, entries)
        self.writer.indent -= not entries.core
        return None

    def _update(self, scope: Scope, name: str, key: str, entries: Entries) -> None:
        rng, at, target = self.rng, self.at(scope), f"{name}[{key}]"
        arrays = self.writer.on_arrays
        match entries.values:
            case "float":
                arrays._update(scope, target, lambda bound: Real(f"float({at.flat(at.real(2), bound).text})", bound))
            case "count":
                self.put(f"{target} = ({target} + {at.whole(1, Interval(0, 3)).text}) % 5")
            case "floats":
                a, b = self.fresh("v"), self.fresh("v")
                before = target
                if rng.random() < 0.5:
                    before = f"{name}.get({at.key(entries)}, (0.25, float({at.flat(at.real(1), NARROW).text})))"
                self.put(f"{a}, {b} = {before}")
                self.put(f"{target} = ({b}, float({at.flat(at.real(2), NARROW).text}))")
            case _:
                match rng.randrange(4):
                    case 0:
                        index = at.whole(1, Interval(0, entries.size - 1)).text
                        arrays._update(scope, f"{target}[{index}]", lambda bound: at.flat(at.real(2), bound))
                    case 1:
                        self.put(f"{target} *= {at.flat(at.real(1), 1.0).text}")
                    case 2:
                        view = self.fresh("u")
                        self.put(f"{view} = {target}")
                        scope.arrays[view], scope.layouts[view] = (entries.size,), "C"
                        arrays.families.join(name, view)
                        if rng.random() < 0.5:
                            arrays._update(scope, f"{view}[:]", arrays._array(scope, (entries.size,)), view)
                        if not entries.core:
                            del scope.arrays[view]
                    case _:
                        arrays._update(scope, f"{target}[:]", arrays._array(scope, (entries.size,)), target)

    def accumulate(self, scope: Scope, place: Place) -> None:
        """A value made of the one before, or of a default."""
        name = self.chosen(scope, values="float") or self.chosen(scope, values="count")
        if name is None:
            return self.store(scope, place)
        at = self.at(scope)
        key = self.named(at.key(scope.dicts[name]))
        if scope.dicts[name].values == "count":
            return self.put(f"{name}[{key}] = ({name}.get({key}, 0) + 1) % 5")
        default = at.flat(at.real(1), NARROW).text
        self.put(
            f"{name}[{key}] = 0.5 * {name}.get({key}, float({default})) + 0.5 * ({at.flat(at.real(2), NARROW).text})"
        )
        return None

    def take(self, scope: Scope, place: Place) -> None:
        """`pop`, `setdefault` and `get`, whose results become variables."""
        rng, at = self.rng, self.at(scope)
        name = self.chosen(scope, values="float")
        if name is None:
            return self.change(scope, place)
        entries, result = scope.dicts[name], self.fresh("v")
        default = f"float({at.flat(at.real(1), NARROW).text})"
        spare = [key for key in entries.all_keys if key not in entries.core]
        match rng.randrange(5):
            case 0 | 1:
                self.put(f"{result} = {name}.setdefault({at.key(entries)}, {default})")
            case 2 if spare:
                self.put(f"{result} = 1.0 * {name}.pop({self._spare(scope, entries)}, {default})")
            case 3 if entries.core:
                key = self.named(at.certain_key(entries))
                self.put(f"{result} = 1.0 * {name}.pop({key})")
                related = self.families.relatives(name, scope.dicts)  # which lack a key now
                without = scope.inner()
                without.dicts = {other: kind for other, kind in scope.dicts.items() if other not in related}
                inside = self.at(without)
                factor = inside.flat(inside.real(1), 1.0).text
                self.put(f"{name}[{key}] = {rng.choice((result, f'{result} * ({factor})'))}")
            case _:
                self.put(f"{result} = 1.0 * {name}.get({at.key(entries)}, {default})")
        scope.floats.append(result)
        return None

    def _spare(self, scope: Scope, entries: Entries) -> str:
        """A key that is not of the core."""
        spare = [key for key in entries.all_keys if key not in entries.core]
        if entries.keys == "whole" and self.rng.random() < 0.5:
            return f"({self.at(scope)._computed(4)}) + 4"
        return self.rng.choice(spare)

    def delete(self, scope: Scope, place: Place) -> None:
        """A key less, if it is there; or a key that goes at once."""
        name = self.chosen(scope)
        if name is None or len(scope.dicts[name].core) == len(scope.dicts[name].all_keys):
            return self.change(scope, place)
        entries = scope.dicts[name]
        key = self.named(self._spare(scope, entries))
        if self.rng.random() < 0.4:
            self.put(f"{name}[{key}] = {self.held(scope, name, entries)}")
            if entries.values == "float":
                self.put(f"{(result := self.fresh('v'))} = {name}[{key}] * 0.5")
                scope.floats.append(result)
            return self.put(f"del {name}[{key}]")
        self.put(f"if {key} in {name}:")
        self.put(f"    del {name}[{key}]")
        return None

    def optional(self, scope: Scope, place: Place) -> None:
        """`get` without a default."""
        name = self.chosen(scope, grows=False, values="float")
        if name is None:
            return self.change(scope, place)
        at = self.at(scope)
        found, result = self.fresh("o"), self.fresh("v")
        self.put(f"{found} = {name}.get({at.key(scope.dicts[name])})")
        if self.rng.random() < 0.5:
            self.put(f"{result} = {at.flat(at.real(1), 1.0).text} if {found} is None else {found} * 0.5")
        else:
            self.put(f"{result} = {at.flat(at.real(1), NARROW).text}")
            self.put(f"if {found} is not None:")
            self.put(f"    {result} = 0.5 * {found} + 0.5 * {result}")
        scope.floats.append(result)
        return None

    def attempt(self, scope: Scope, place: Place) -> None:
        """A key that may be missing, in `try`."""
        name = self.chosen(scope, grows=False, values="float")
        if name is None:
            return self.change(scope, place)
        at = self.at(scope)
        result = self.fresh("v")
        first, second = (at.flat(at.real(1), NARROW).text for _ in range(2))
        key = self.named(at.key(scope.dicts[name]))
        self.put(f"{result} = {first}")
        self.put("try:")
        self.put(f"    {result} = 0.5 * {result} + 0.5 * {name}[{key}]")
        self.put("except Exception:")
        self.put(f"    {result} = 0.5 * {result} - 0.5 * ({second})")
        scope.floats.append(result)
        return None

    def copy(self, scope: Scope, place: Place) -> None:
        """`copy` and `update`."""
        name = self.chosen(scope, grows=False)
        assert name is not None
        entries = scope.dicts[name]
        others = [
            other
            for other, kind in scope.dicts.items()
            if (kind.keys, kind.values, kind.size) == (entries.keys, entries.values, entries.size) and other != name
        ]
        if name not in scope.fixed and self.rng.random() < 0.5:
            if others and self.rng.random() < 0.6:
                other = self.rng.choice(others)
                if entries.values == "array":
                    self.writer.on_arrays.families.join(name, other)
                return self.put(f"{name}.update({other})")
            return self.put(f"{name}.update({self.display(scope, name, replace(entries, core=()))})")
        made = self.fresh("d")
        if entries.values == "float" and self.rng.random() < 0.3:
            self.put(f"{made} = halved({name})")
        else:
            self.put(f"{made} = {name}.copy()")
            if entries.values == "array":
                self.writer.on_arrays.families.join(name, made)
        scope.dicts[made] = replace(entries, core=()) if self.rng.random() < 0.2 else entries
        return None

    def rename(self, scope: Scope, place: Place) -> None:
        """Another name for a dict, or for one of two."""
        name = self.chosen(scope, grows=False)
        assert name is not None
        others = [
            other
            for other in self._alike(scope, scope.dicts[name])
            if not place.in_loop or other in self.families.relatives(name, scope.dicts)
        ]
        made = self.fresh("d")
        if len(others) > 1 and self.rng.random() < 0.7:
            other = self.rng.choice(others)
            self.put(f"{made} = {name} if {self.at(scope).truth(1)} else {other}")
        else:
            other = name
            self.put(f"{made} = {name}")
        self._join(scope, made, name, other)
        scope.dicts[made] = scope.dicts[name]

    def _join(self, scope: Scope, made: str, *names: str) -> None:
        self.families.join(made, *names)
        if scope.fixed & set(names):
            scope.fixed.add(made)
        if scope.dicts[names[0]].values == "array":
            self.writer.on_arrays.families.join(made, *names)

    def swap(self, scope: Scope, place: Place) -> None:
        """Two dicts of one kind swapped."""
        name = self.chosen(scope)
        if name is None:
            return self.change(scope, place)
        related = self.families.relatives(name, scope.dicts)
        others = [
            other
            for other in self._alike(scope, scope.dicts[name])
            if other != name and other not in scope.fixed and (not place.in_loop or other in related)
        ]
        if not others:
            return self.make(scope, place)
        other = self.rng.choice(others)
        self.put(f"{name}, {other} = {other}, {name}")
        self._join(scope, name, other)
        return None

    def call(self, scope: Scope, place: Place) -> None:
        """A function that reads or changes a dict."""
        at = self.at(scope)
        name = self.chosen(scope, values="float")
        if name is None:
            return self.store(scope, place)
        if self.rng.random() < 0.5:
            self.put(f"put({name}, {at.key(scope.dicts[name])}, {self.value(scope, scope.dicts[name])})")
            return None
        self.put(f"{(result := self.fresh('v'))} = 0.5 * blended({name})")
        scope.floats.append(result)
        return None

    def empty(self, scope: Scope, place: Place) -> None:
        """`popitem` and `clear`, for dicts without a core."""
        names = [
            n for n, kind in scope.dicts.items() if not kind.core and kind.values == "float" and n not in scope.fixed
        ]
        if not names:
            return self.copy(scope, place)
        name, result = self.rng.choice(names), self.fresh("v")
        self.put(f"{result} = 0.5")
        if self.rng.random() < 0.7:
            key = self.fresh("j")
            self.put(f"if len({name}) > {self.rng.randrange(3)}:")
            self.put(f"    {key}, {result} = {name}.popitem()")
        else:
            self.put(f"if {self.at(scope).truth(1)}:")
            self.put(f"    {name}.clear()")
        scope.floats.append(result)
        return None
