"""Random expressions of a kernel: integers, elements, bounded floats and conditions."""

from __future__ import annotations

import random

from tests.kernels.random_kernels.writer import Scope, Source, Writer

CONSTANTS = ("0.3", "0.5", "0.7", "1.1", "1.3", "0.9", "2.0", "-0.4", "0.25", "G0", "G1")


class Expressions(Writer):
    """Writes expressions of what a scope knows."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        # How often a loop turns, and so how much is recorded, is refused if it depends on what the kernel writes.
        self.decides_by_inputs = self.chance(0.85)

    def constant(self) -> str:
        return self.pick(*CONSTANTS)

    def index(self, scope: Scope, depth: int = 1) -> str:
        """Return an integer, not negative."""
        if not scope.indices or self.chance(0.08):
            return str(self.rng.randrange(4))
        a, k = self.pick(*scope.indices), self.rng.random()
        if depth <= 0 or k < 0.35:
            return a
        if k < 0.5:
            return f"({a} + {self.rng.randrange(1, 4)})"
        if k < 0.58:
            return f"({a} + {self.index(scope, depth - 1)})"
        if k < 0.64:
            return f"({a} * {self.rng.randrange(2, 4)})"
        if k < 0.69:
            return f"({a} // 2)"
        if k < 0.74:
            return f"({a} * {self.index(scope, depth - 1)})"
        if k < 0.79 and scope.in_kernel:
            return f"abs(n + {self.rng.randrange(3)} - {a})"
        if k < 0.9 and scope.tables:
            return f"{self.pick(*scope.tables)}[{self.index(scope, 0)} % n]"
        few = self.rng.randrange(1, 4)
        return self.pick(f"min({a}, {few})", f"abs({a} - 2)", f"({a} % {few + 1})", f"({a} ^ 1)")

    def source(self, scope: Scope) -> str:
        """Return an element of an array that all threads may read."""
        source = self.pick(*scope.sources)
        if source.lengths == ("n",) and scope.below_n and self.chance(0.5):
            at = self.pick(*scope.below_n)
            return f"{source.name}[{at} - {self.rng.randrange(1, 3)}]" if self.chance(0.1) else f"{source.name}[{at}]"
        return f"{source.name}[{source.prefix}{self.place(scope, source)}]"

    def place(self, scope: Scope, source: Source) -> str:
        """Return an index of each axis of a source, in its bounds."""
        parts = []
        for axis, length in enumerate(source.lengths):
            if length == "n" and self.chance(0.05):
                parts.append("-1")
                continue
            if source.name in self.arrays and not source.prefix and self.chance(0.3):
                known = [f"{source.name}.shape[{axis}]"]
                known += [f"{source.name}.size", f"len({source.name})"] if len(source.lengths) == 1 else []
                length = self.pick(*known)
            parts.append(f"{self.index(scope)} % {length}")
        return ", ".join(parts)

    def leaf(self, scope: Scope) -> str:
        kinds = {"constant": 1.0, "value": 4.0 * bool(scope.values), "source": 5.0 * bool(scope.sources)}
        kinds |= {"own": 2.0 * bool(scope.own), "small": 3.0 * bool(scope.small), "s": 1.0 * scope.in_kernel}
        kinds |= {"index": 1.0 * bool(scope.indices), "table": 1.0 * bool(scope.indices)}
        match self.weighted(**kinds):
            case "value":
                return self.pick(*scope.values)
            case "source":
                return self.source(scope)
            case "own":
                return self.pick(*scope.own)
            case "small":
                name, length = self.pick(*scope.small)
                return f"{name}[{self.index(scope)} % {length}]"
            case "s":
                return "s"
            case "index":
                return f"{self.index(scope, 0)} * 0.125"
            case "table":
                return f"TAB[{self.index(scope, 0)} % 3]"
        return self.constant()

    def expression(self, scope: Scope, depth: int = 2) -> str:
        """Return a float."""
        if depth <= 0 or self.chance(0.12):
            return self.leaf(scope)

        def inner(less: int = 1) -> str:
            return self.expression(scope, depth - less)

        kind = self.weighted(
            smooth=8, square=4, sum=3, product=3, extreme=1, magnitude=1, choice=1, minus=1, call=3, scaled=3
        )
        match kind:
            case "smooth":
                return self.pick("math.sin({})", "math.cos({})", "math.tanh({})", "math.atan({})").format(inner())
            case "square":
                a = inner(2)
                forms = "math.exp(-0.5 * ({0}) * ({0}))", "math.sqrt(1.0 + ({0}) * ({0}))", "math.sin({0}) ** 2"
                more = "math.log(1.5 + ({0}) * ({0}))", "({1} / (1.5 + ({0}) * ({0})))", "math.atan2({0}, 1.5)"
                return self.pick(*forms, *more).format(a, inner(2))
            case "sum":
                return f"({inner()} {self.pick('+', '-')} {inner()})"
            case "product":
                return f"({inner()} * {inner()})"
            case "extreme":
                return f"{self.pick('max', 'min')}({inner()}, {inner()})"
            case "magnitude":
                return f"{self.pick('abs', 'math.fabs')}({inner()})"
            case "choice":
                return f"({inner()} if {self.condition(scope)} else {inner()})"
            case "minus":
                return f"(-({inner(2)}))"
            case "call" if scope.functions:
                name, count = self.pick(*scope.functions)
                return f"{name}({', '.join([inner(), *(self.leaf(scope) for _ in range(count - 1))])})"
        return f"({inner()} + {self.constant()} * {inner()})"

    def bounded(self, scope: Scope, depth: int | None = None) -> str:
        """Return a float that stays small whatever is in it."""
        inner = self.expression(scope, self.pick(1, 2, 2, 3) if depth is None else depth)
        forms = "math.sin({})", "math.tanh({})", "math.cos({})", "math.sin({}) + 0.2", "0.8 * math.atan({})"
        return self.pick(*forms).format(inner)

    def condition(self, scope: Scope) -> str:
        """Return a condition, of integers or of floats."""
        if self.decides_by_inputs:
            scope = scope.of_inputs()
        k = self.rng.random()
        if k < 0.12:
            return f"{self.condition(scope)} {self.pick('and', 'or')} {self.condition(scope)}"
        if k < 0.16:
            return f"not ({self.condition(scope)})"
        if k < 0.6 and scope.indices:
            return self.pick(
                f"{self.index(scope)} % 2 == {self.rng.randrange(2)}",
                f"{self.index(scope, 0)} < {self.rng.randrange(1, 4)}",
                f"{self.index(scope, 0)} != {self.rng.randrange(3)}",
                f"{self.index(scope, 0)} >= {self.index(scope, 0)}",
            )
        with_what = self.pick("0.8", "1.05", "0.33", self.leaf(scope))
        return f"{self.expression(scope, 1)} {self.pick('>', '<')} {with_what}"
