"""Kernels with atomic maxima and minima of floats, which are read after barriers or not at all."""

from __future__ import annotations

from tests.kernels.random_kernels.statements import Statements


class Extremes(Statements):
    """Writes maxima of global and shared arrays, some of them in loops."""

    family = "extremes"

    def write(self) -> None:
        self.width, self.blocks = self.pick(2, 3, 4), self.pick(1, 1, 2, 3)
        self.grid = (self.blocks,), (self.width,)
        self.floats("x0", 30)
        self.floats("g0", 24)
        self.floats("mx", 3)
        if self.chance(0.4):
            self.floats("mn", 2, 2)
        for line in ("i = cuda.grid(1)", "t = cuda.threadIdx.x", "v = 0.4"):
            self.line(line)
        self.is_shared = self.chance(0.5)
        if self.is_shared:
            self.line(f"sm = cuda.shared.array({self.width}, {self.number})")
            self.line(f"sm[t] = {self.pick('x0[i]', '-5.0', '0.2')}")
            self.barrier()
        for _ in range(self.pick(1, 2, 3, 4)):
            self.step(["i", "t"], 0)
        self.line(f"g0[i] {self.pick('=', '+=')} v")

    def value(self, names: list[str]) -> str:  # type: ignore[override]
        def element() -> str:
            more = [f"{each} * 4 + i" for each in names if each[0] == "r"]
            return f"x0[{self.pick('i', 'i + 1', '2 * i', '20 - i', *more, *names)}]"

        a, b = element(), element()
        return self.pick(a, a, f"{a} * {b}", f"math.sin({a}) + {b}", f"v + {a}", f"g0[i] * {a}")

    def step(self, names: list[str], depth: int) -> None:
        match self.weighted(extreme=40, loop=20 * (depth < 2), store=15, value=25):
            case "extreme":
                self.extreme(names)
            case "loop":
                k = self.new("r")
                with self.indented(f"for {k} in range({self.pick('2', '3', 'reps')}):"):
                    for _ in range(self.pick(1, 2)):
                        self.step([*names, k], depth + 1)
            case "store":
                self.line(f"g0[i] {self.pick('=', '*=', '+=')} {self.value(names)}")
            case _:
                self.line(f"v {self.pick('+=', '= 0.5 * v +')} math.sin({self.value(names)})")

    def extreme(self, names: list[str]) -> None:
        options = [("mx", "max", self.pick("0", "1", "i % 3", "2")) for _ in range(3)]
        if "mn" in self.arrays:
            options += [("mn", "min", self.pick("(0, 1)", "(i % 2, 0)", "(1, 1)"))] * 2
        if self.is_shared:
            options += [("sm", "max", self.pick("0", "t", f"(t + 1) % {self.width}"))] * 3
        array, operation, at = self.pick(*options)
        guard = f"if {self.pick('i % 2 == 0', 'x0[i] > 0.8', 'reps > 1')}:" if self.chance(0.25) else None
        with self.indented(guard):
            self.line(f"cuda.atomic.{operation}({array}, {at}, {self.value(names)})")
        if (array == "sm" or self.blocks == 1) and self.chance(0.7):
            self.barrier()
            read = f"{array}[{self.pick('0', '1') if array != 'mn' else '0, 1'}]"
            self.line(f"v = {self.pick(f'math.exp(v - {read})', f'v * {read}', f'math.sin({read}) + v')}")
            if self.chance(0.8):
                self.barrier()
