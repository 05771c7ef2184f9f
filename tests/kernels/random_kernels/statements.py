"""Random statements of a thread: updates, branches, loops, atomic sums, arrays of its own, and device functions."""

from __future__ import annotations

import random

from tests.kernels.random_kernels.case import Array
from tests.kernels.random_kernels.expressions import Expressions
from tests.kernels.random_kernels.writer import Scope, Source

UPDATE = "    x[i] = 0.5 * x[i] + 0.4 * math.sin(v * x[i])"
UPDATE_IN_LOOP = """    for _ in range(2):
        if x[i] > v:
            return
        x[i] += 0.3 * math.cos(v + x[i])"""


class Statements(Expressions):
    """Writes statements, about as many as `budget`."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.budget = self.pick(6, 10, 16, 24)

    def update(self, target: str, scope: Scope) -> None:
        match self.weighted(set=35, mix=15, add=25, scale=13, sine=6, divide=6):
            case "set":
                self.line(f"{target} = {self.bounded(scope)}")
            case "mix":
                self.line(f"{target} = 0.6 * {target} + 0.3 * {self.bounded(scope, 1)}")
            case "add":
                self.line(f"{target} {self.pick('+=', '-=')} 0.4 * {self.bounded(scope, 2)}")
            case "scale":
                self.line(f"{target} *= 0.8 + 0.1 * {self.bounded(scope, 1)}")
            case "sine":
                self.line(f"{target} = math.sin({target}) * {self.bounded(scope, 1)}")
            case _:
                self.line(f"{target} /= 1.5 + 0.3 * {self.bounded(scope, 1)}")

    def simple(self, scope: Scope) -> None:
        """Write a statement without a body."""
        targets = [*scope.own, *scope.own, *scope.values]
        if targets:
            self.update(self.pick(*targets), scope)
        else:
            self.value(scope)

    def value(self, scope: Scope) -> None:
        name = self.new("v")
        self.line(f"{name} = {self.pick(self.expression(scope), self.bounded(scope))} * 1.0")
        scope.values.append(name)

    def block(self, scope: Scope, count: int | None = None) -> None:
        for _ in range(count or self.pick(1, 1, 2, 2, 3)):
            self.statement(scope)

    def statement(self, scope: Scope) -> None:
        self.budget -= 1
        if self.budget < 0:
            self.simple(scope)
            return
        kind = self.weighted(
            value=20,
            simple=25,
            sum=9 * bool(scope.sums),
            count=3 * bool(scope.counters),
            branch=10,
            loop=16 * (scope.depth < 2),
            small=5 * (not scope.in_loop),
            swap=3 * (len(scope.values) > 1),
            index=2 * bool(scope.indices),
            leave=2 * scope.may_return,
            updater=3 * bool(scope.updaters and self._elements(scope)),
        )
        match kind:
            case "value":
                self.value(scope)
            case "sum":
                source = self.pick(*scope.sums)
                at = self.place(scope, source)
                at = at if len(source.lengths) == 1 else f"({at})"
                self.line(f"cuda.atomic.{self.pick('add', 'add', 'sub')}({source.name}, {at}, {self.bounded(scope)})")
            case "count":
                source = self.pick(*scope.counters)
                operation, at = self.pick("add", "add", "sub", "max", "min"), self.place(scope, source)
                self.line(f"cuda.atomic.{operation}({source.name}, {at}, {self.index(scope, 0)})")
            case "branch":
                self.branch(scope)
            case "loop":
                self.loop(scope)
            case "small":
                self.small_array(scope)
            case "swap":
                a, b = self.rng.sample(scope.values, 2)
                self.line(f"{a}, {b} = {b}, {a}")
            case "index":
                name = self.new("j")
                self.line(f"{name} = {self.index(scope)}")
                scope.indices.append(name)
            case "leave":
                with self.indented(f"if {self.condition(scope)}:"):
                    if self.chance(0.5):
                        self.simple(scope.inner())
                    self.line("return")
            case "updater":
                name, at = self.pick(*self._elements(scope))
                self.line(f"{self.pick(*scope.updaters)}({name}, {at}, {self.expression(scope, 1)})")
            case _:
                self.simple(scope)

    def _elements(self, scope: Scope) -> list[tuple[str, str]]:
        """Return the names and indices of own elements of arrays of one axis."""
        parts = [each[:-1].split("[", 1) for each in scope.own]
        return [(name, at) for name, at in parts if "," not in at]

    def branch(self, scope: Scope) -> None:
        with self.indented(f"if {self.condition(scope)}:"):
            self.block(scope.inner())
        if self.chance(0.25):
            with self.indented(f"elif {self.condition(scope)}:"):
                self.block(scope.inner())
        if self.chance(0.5):
            with self.indented("else:"):
                self.block(scope.inner())

    def rounds(self, scope: Scope) -> str:
        """Return the arguments of a range of a few rounds."""
        options = [str(self.rng.randrange(1, 4)), f"{self.rng.randrange(2)}, {self.rng.randrange(2, 5)}"]
        options += [f"{self.rng.randrange(2, 4)}, {self.pick(-1, 0)}, -1", f"0, {self.rng.randrange(3, 6)}, 2"]
        if scope.tables:
            options += [f"{self.pick(*scope.tables)}[{self.index(scope, 0)} % n] % 4"] * 3
        if scope.indices:
            options.append(f"{self.index(scope, 0)} % 3")
        if scope.in_kernel:
            options.append("reps")
        return self.pick(*options)

    def loop(self, scope: Scope) -> None:
        inner = scope.inner(depth=scope.depth + 1, in_loop=True)
        match self.weighted(counted=72, steps=16, until=12):
            case "counted":
                name = self.new("k")
                inner.indices.append(name)
                with self.indented(f"for {name} in range({self.rounds(scope)}):"):
                    self.round(inner)
            case "steps":
                name = self.new("m")
                inner.indices.append(name)
                self.line(f"{name} = {self.pick('0', self.index(scope, 0) + ' % 2')}")
                ends = ["3", f"{self.index(scope, 0)} % 4", *(["reps"] if scope.in_kernel else [])]
                with self.indented(f"while {name} < {self.pick(*ends)}:"):
                    self.line(f"{name} += {self.pick(1, 1, 2)}")
                    self.round(inner)
            case _:
                name, copy = self.new("u"), self.new("v")
                by = scope.of_inputs() if self.decides_by_inputs else scope
                self.line(f"{name} = 1.3 + math.fabs({self.expression(by, 1)})")
                with self.indented(f"while {name} > 0.9:"):
                    self.line(f"{name} *= 0.6 + 0.1 * math.sin({name} + {self.leaf(by)})")
                    self.line(f"{copy} = {name} * 1.0")
                    inner.values.append(copy)
                    self.round(inner)

    def round(self, scope: Scope) -> None:
        """Write the body of a loop, which may leave the round or the loop."""
        k = self.rng.random()
        if k < 0.1:
            with self.indented(f"if {self.condition(scope)}:"):
                self.line(self.pick("break", "continue"))
        self.block(scope.inner())
        if 0.1 < k < 0.25:
            with self.indented(f"if {self.condition(scope)}:"):
                if self.chance(0.4):
                    self.simple(scope.inner())
                self.line(self.pick("break", "break", "continue"))
            self.block(scope.inner(), 1)

    def small_array(self, scope: Scope) -> None:
        name, length, k = self.new("loc"), self.pick(2, 3, 4), self.new("q")
        self.line(f"{name} = cuda.local.array({length}, {self.number})")
        with self.indented(f"for {k} in range({length}):"):
            self.line(f"{name}[{k}] = {self.bounded(scope.inner(indices=[*scope.indices, k]), 1)}")
        scope.small.append((name, length))
        scope.own += [f"{name}[{k}]" for k in range(length) if self.chance(0.4)]

    # What kernels take and call

    def tables(self, scope: Scope) -> None:
        """Let the kernel take arrays of integers."""
        for name, kind, probability in (("idx", "index", 1.0), ("cnt", "count", 0.6), ("perm", "order", 0.3)):
            if self.chance(probability):
                self.arrays[name] = Array(kind, (self.size,))
                scope.tables.append(name)

    def inputs(self, scope: Scope) -> None:
        """Let the kernel take one to three arrays of floats that it only reads."""
        for number in range(self.rng.randrange(1, 4)):
            name = f"x{number}"
            match self.weighted(rows=25, short=15, plain=60):
                case "rows":
                    width = self.rng.randrange(2, 4)
                    scope.sources.append(Source(self.floats(name, self.size, width), ("n", str(width))))
                case "short":
                    length = self.rng.randrange(2, 6)
                    scope.sources.append(Source(self.floats(name, length), (str(length),)))
                case _:
                    scope.sources.append(Source(self.floats(name, self.size), ("n",)))

    def totals(self, scope: Scope) -> None:
        """Let the kernel take arrays that it adds to atomically, and counters."""
        if self.chance(0.45):
            length = self.rng.randrange(1, 4)
            scope.sums.append(Source(self.floats("acc", length), (str(length),)))
        if self.chance(0.15):
            scope.sums.append(Source(self.floats("acc2", 2, 2), ("2", "2")))
        if self.chance(0.2):
            self.arrays["hist"] = Array("counter", (3,))
            scope.counters.append(Source("hist", ("3",)))

    def add_to_total(self, scope: Scope, value: str) -> None:
        """Add a value to the first array that there is for sums."""
        if scope.sums:
            source = scope.sums[0]
            self.line(f"cuda.atomic.add({source.name}, {'0' if len(source.lengths) == 1 else '(0, 1)'}, {value})")

    def functions(self, scope: Scope) -> None:
        """Write device functions that the kernel may call."""
        decides, self.decides_by_inputs = self.decides_by_inputs, False
        for number in range(self.pick(0, 1, 1, 2)):
            count = self.rng.randrange(1, 4)
            kept, self.budget = self.budget, self.pick(0, 2, 5)
            names = "abc"[:count]
            inner = Scope(values=list(names), in_kernel=False, depth=1, in_loop=True, functions=list(scope.functions))
            with self.device_function(f"dev{number}({', '.join(names)})"):
                for _ in range(self.rng.randrange(3)):
                    self.statement(inner)
                if self.chance(0.25):
                    with self.indented(f"if {self.condition(inner)}:"):
                        self.line(f"return {self.bounded(inner, 1)}")
                self.line(f"return {self.bounded(inner)}")
            self.budget = kept
            scope.functions.append((f"dev{number}", count))
        self.decides_by_inputs = decides
        for name, body, probability in (("update", UPDATE, 0.3), ("raise_up", UPDATE_IN_LOOP, 0.0 if decides else 0.2)):
            if self.chance(probability):
                self.device_functions.append(f"@cuda.jit(device=True)\ndef {name}(x, i, v):\n{body}")
                scope.updaters.append(name)
