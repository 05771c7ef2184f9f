"""Kernels that walk over an array in tiles: products of matrices, and sums over all bodies."""

from __future__ import annotations

from tests.kernels.random_kernels.statements import Statements
from tests.kernels.random_kernels.writer import Scope, Source


class Products(Statements):
    """Writes a product of matrices in tiles, changed at random."""

    family = "products"

    def write(self) -> None:
        side = self.side = self.pick(2, 2, 3)
        self.grid = (self.pick(1, 2), self.pick(1, 2)), (side, side)
        rows, columns, inner = (self.rng.randrange(1, 6) for _ in range(3))
        self.ragged = rows % side != 0 or columns % side != 0
        self.floats("a", rows, inner)
        self.floats("bm", inner, columns)
        self.floats("c", rows, columns)
        for line in ("x, y = cuda.grid(2)", "tx = cuda.threadIdx.x", "ty = cuda.threadIdx.y"):
            self.line(line)
        tiles = []
        for number in range(self.pick(1, 2, 2)):
            lengths = [side, side]
            if self.chance(0.2):
                lengths[self.rng.randrange(2)] += 1
            self.line(f"s{number} = cuda.shared.array(({lengths[0]}, {lengths[1]}), {self.number})")
            tiles.append((f"s{number}", self.pick("tx, ty", "tx, ty", "ty, tx")))
        self.line(self.pick("v = 0.0", "v = 0.0", "v = 0.3"))
        is_set = self.chance(0.2)
        if is_set:
            for name, mine in tiles:
                self.line(f"{name}[{mine}] = 0.5")
            self.barrier()
        rounds = self.pick(f"(a.shape[1] + {side - 1}) // {side}", "reps", "2", "3")
        with self.indented(f"for q in range({rounds}):"):
            self.round_of_tiles(tiles, is_set)
        if self.chance(0.15):
            self.barrier()
            self.line(f"v += s0[{self.pick('0, 0', 'tx, ty', 'ty, tx')}]")
        if self.chance(0.2):
            self.line("v = math.sin(v)")
        self.end()

    def round_of_tiles(self, tiles: list[tuple[str, str]], is_set: bool) -> None:
        if self.chance(0.12):
            self.barrier()
        if self.chance(0.08):
            with self.indented("if q == 2:"):
                self.line(self.pick("break", "continue", "v += 0.1", "v += 0.1"))
        for name, mine in tiles:
            self.load(f"{name}[{mine}]", is_set)
        self.barrier()
        if self.chance(0.15):
            name, mine = tiles[0]
            self.line(f"{name}[{mine}] = math.sin({name}[{mine}])")
            self.barrier()
        reads = [self.pick("{}[tx, k]", "{}[k, ty]", "{}[k, tx]", "{}[ty, k]").format(name) for name, _ in tiles]
        product = " * ".join(reads)
        with self.indented(f"for k in range({self.side}):"):
            value = self.pick(product, product, f"math.sin({product})", f"{product} * v", f"({product} + x)")
            self.line(f"v {self.pick('+=', '+=', '-=', '= 0.9 * v +')} {value}")
        if self.chance(0.9):
            self.barrier()
        if self.chance(0.1):
            with self.indented("if x < c.shape[0] and y < c.shape[1]:"):
                self.line(f"c[x, y] {self.pick('= v', '+= v', '*= 0.5')}")

    def load(self, target: str, is_set: bool) -> None:
        side = self.side
        at_a = f"a[x, q * {side} + ty]", f"x < a.shape[0] and q * {side} + ty < a.shape[1]"
        at_b = f"bm[q * {side} + tx, y]", f"y < bm.shape[1] and q * {side} + tx < bm.shape[0]"
        value, guard = self.pick(at_a, at_b)
        if self.chance(0.2):
            value = f"math.sin({value})"
        match self.weighted(before=35, otherwise=25, choice=30, add=10):
            case "before":
                self.line(f"{target} = 0.0")
                self.guarded(guard, f"{target} = {value}")
            case "otherwise":
                self.guarded(guard, f"{target} = {value}", f"{target} = {self.pick('0.0', '1.0', 'v')}")
            case "choice":
                self.line(f"{target} = {value} if {guard} else {self.pick('0.0', '0.5')}")
            case _:
                if not is_set:
                    self.line(f"{target} = v")
                self.guarded(guard, f"{target} += {value}")

    def guarded(self, condition: str, line: str, otherwise: str | None = None) -> None:
        with self.indented(f"if {condition}:"):
            self.line(line)
        if otherwise is not None:
            with self.indented("else:"):
                self.line(otherwise)

    def end(self) -> None:
        inside, store = "x < c.shape[0] and y < c.shape[1]", self.pick("= v", "= v", "+= v", "= v * c[x, y]")
        match self.weighted(guarded=60, nested=15, twice=10, leaves=8, sometimes=7):
            case "guarded":
                self.guarded(inside, f"c[x, y] {store}")
            case "nested":
                with self.indented("if x < c.shape[0]:"):
                    self.guarded("y < c.shape[1]", f"c[x, y] {store}")
            case "twice":
                with self.indented(f"if {inside}:"):
                    self.line(f"c[x, y] {store}")
                    self.line("c[x, y] *= 1.5")
            case "leaves":
                self.guarded("x >= c.shape[0] or y >= c.shape[1]", "return")
                self.line(f"c[x, y] {store}")
            case _:
                with self.indented(f"if {inside}:"):
                    self.guarded("v > 0.7", f"c[x, y] {store}")


class Bodies(Statements):
    """Writes a sum over all elements of an array, which are loaded in tiles."""

    family = "bodies"

    def write(self) -> None:
        width = self.width = self.pick(2, 3, 4, 4)
        blocks = self.pick(1, 2, 2)
        self.grid = (blocks,), (width,)
        self.floats("x0", self.rng.randrange(1, 11))
        outputs = blocks * width - self.pick(0, 0, 1)
        self.ragged = outputs % width != 0
        self.floats("out", outputs)
        scope = Scope(values=["v"], indices=["t", "i", "b"], sources=[Source("x0", ("x0.size",))])
        if self.chance(0.4):
            scope.sources.append(Source(self.floats("x1", self.size), ("n",)))
        if self.chance(0.3):
            self.floats("acc", 2)
        for line in ("t = cuda.threadIdx.x", "i = cuda.grid(1)", "b = cuda.blockIdx.x"):
            self.line(line)
        self.lengths = [width if self.chance(0.8) else width + self.pick(1, 2) for _ in range(self.pick(1, 1, 2))]
        for number in range(len(self.lengths)):
            if number == 0 and self.chance(0.12):
                self.dynamic = self.lengths[0] = width
            size = "0" if number == 0 and self.dynamic else str(self.lengths[number])
            self.line(f"s{number} = cuda.shared.array({size}, {self.number})")
        self.is_set = [self.chance(0.3) or length > width for length in self.lengths]
        for number, (length, is_set) in enumerate(zip(self.lengths, self.is_set, strict=True)):
            if is_set:
                with self.indented(f"for q in range(t, {length}, {width}):"):
                    self.line(f"s{number}[q] = {self.pick('0.0', '0.4', 'x0[q % x0.size]')}")
        if any(self.is_set):
            self.barrier()
        self.line(f"v = {self.pick('0.0', '0.0', 'x0[i % x0.size]', '0.3')}")
        walks = self.pick(1, 1, 1, 2)
        for number in range(walks):
            self.walk(scope)
            if number + 1 < walks:
                self.barrier()
        self.end()

    def walk(self, scope: Scope) -> None:
        base, width, last = self.new("base"), self.width, None
        match self.weighted(steps=60, rounds=25, until=15):
            case "steps":
                length, step = self.pick("x0.size", "x0.shape[0]", "len(x0)"), self.pick(str(width), "cuda.blockDim.x")
                head, at = f"for {base} in range(0, {length}, {step}):", f"{base} + t"
            case "rounds":
                rounds = self.pick("reps", "2", f"(x0.size + {width - 1}) // {width}")
                head, at = f"for {base} in range({rounds}):", f"{base} * {width} + t"
            case _:
                self.line(f"{base} = 0")
                head, at, last = f"while {base} < x0.size:", f"{base} + t", f"{base} += {width}"
        number = self.rng.randrange(len(self.lengths))
        with self.indented(head):
            if self.chance(0.1):
                self.barrier()
            inner = scope.inner(indices=[*scope.indices, base])
            other = self.load(inner, number, at)
            self.barrier()
            self.change(inner, f"s{number}")
            self.add(inner, number, other, f"min({width}, x0.size - {base})" if "*" not in at else str(width))
            if self.chance(0.15) and "acc" in self.arrays:
                value = self.pick("v", "v * v", f"s{number}[t]")
                self.line(f"cuda.atomic.add(acc, {self.pick('0', 't % 2')}, {value})")
            if self.chance(0.12):
                with self.indented("if i < out.size:"):
                    self.line(f"out[i] {self.pick('=', '+=')} {self.pick('v', f'v * s{number}[t]')}")
            if self.chance(0.92):
                self.barrier()
            if last is not None:
                self.line(last)
        if self.chance(0.25):
            self.barrier()
            self.line(f"v {self.pick('+=', '*=')} s{number}[{self.pick('t', '0', str(width - 1))}]")

    def load(self, scope: Scope, number: int, at: str) -> int:
        """Write to a tile, and return the number of another one that is set too, or of the same."""
        mine = self.pick("t", "t", "t", f"{self.width - 1} - t", f"(t + 1) % {self.width}")
        target, value, guard = f"s{number}[{mine}]", f"x0[{at}]", f"{at} < x0.size"
        if self.chance(0.4):
            more = f"math.sin({value})", f"{value} * {value}", f"{value} * v", f"{value} + {self.expression(scope, 1)}"
            value = self.pick(*more)
        match self.weighted(choice=30, before=20, otherwise=20, keeps=10 * self.is_set[number], other=20):
            case "choice":
                self.line(f"{target} = {value} if {guard} else {self.pick('0.0', '0.5', 'v')}")
            case "before":
                self.line(f"{target} = {self.pick('0.0', 'v', '0.2')}")
                with self.indented(f"if {guard}:"):
                    self.line(f"{target} {self.pick('=', '+=')} {value}")
            case "otherwise":
                with self.indented(f"if {guard}:"):
                    self.line(f"{target} = {value}")
                with self.indented("else:"):
                    self.line(f"{target} = {self.pick('0.0', '1.0')}")
            case "keeps":
                with self.indented(f"if {guard}:"):
                    self.line(f"{target} = {value}")
            case _:
                self.line(f"{target} = {self.bounded(scope)}")
        if len(self.lengths) == 2 and self.chance(0.6):
            self.line(f"s{1 - number}[{mine}] = {self.bounded(scope, 1)}")
            return 1 - number
        return 1 - number if len(self.lengths) == 2 and self.is_set[1 - number] else number

    def change(self, scope: Scope, tile: str) -> None:
        """Let one thread change a tile, or all add to an element of it."""
        k, last = self.rng.randrange(self.width), self.width - 1
        if self.chance(0.2):
            with self.indented(f"if t == {k}:"):
                target, value = f"{tile}[{self.pick('0', 't', str(k))}]", self.pick("v", "s", f"{tile}[0]")
                self.line(f"{target} {self.pick('+=', '*=', '=')} 0.5 + 0.3 * math.sin({value})")
            self.barrier()
        elif self.chance(0.15):
            at = self.pick("0", str(last), f"(t * 2) % {self.width}")
            self.line(f"cuda.atomic.add({tile}, {at}, {self.bounded(scope, 1)})")
            self.barrier()

    def add(self, scope: Scope, number: int, other: int, few: str) -> None:
        width = self.width
        k, head = "k", f"for k in range({self.pick(str(width), str(width), few, f'reps % {width}')}):"
        if self.is_set[number] and self.chance(0.3):
            head = f"for k in range({self.lengths[number]}):"
        if self.is_set[other] is False and other != number and self.lengths[other] < self.lengths[number]:
            other = number
        if self.chance(0.25):
            k = self.pick("0", f"(t + 1) % {width}", str(width - 1))
            head = f"if {self.pick('t < 2', 'i < out.size', 'reps > 0')}:"
        mine = f"s{number}[{k}]"
        with self.indented(head):
            forms = mine, f"{mine} * s{other}[{self.pick('t', '0')}]", f"math.sin({mine} + v)"
            value = self.pick(*forms, f"math.exp(-{mine} * {mine})", f"{mine} * {self.expression(scope, 1)}")
            self.line(f"v {self.pick('+=', '+=', '+=', '= 0.8 * v +', '-=')} 0.4 * {value}")
            if self.chance(0.15):
                self.line("v = math.sin(v)")
            if self.chance(0.08):
                with self.indented("if v > 3.0:"):
                    self.line("v = 1.0")

    def end(self) -> None:
        store = self.pick("= v", "= v", "= math.sin(v)", "+= v", "= v * out[i]", "= v * x0[i % x0.size]")
        match self.weighted(guarded=50, branches=15, leaves=15, some=10, twice=10):
            case "guarded":
                with self.indented("if i < out.size:"):
                    self.line(f"out[i] {store}")
            case "branches":
                with self.indented("if i < out.size:"):
                    with self.indented(f"if {self.pick('t > 0', 'reps > 1', 'v > 0.5', 's > 0.5', 'x0[0] > 0.8')}:"):
                        self.line(f"out[i] {store}")
                    with self.indented("else:"):
                        self.line(f"out[i] {self.pick('= 2.0 * v', '*= 2.0', '= x0[0]')}")
            case "leaves":
                with self.indented("if i >= out.size:"):
                    self.line("return")
                self.line(f"out[i] {store}")
            case "some":
                with self.indented("if i < out.size and t % 2 == 0:"):
                    self.line(f"out[i] {store}")
            case _:
                with self.indented("for q in range(2):"), self.indented("if i < out.size:"):
                    self.line(f"out[i] {store}")
        if "acc" in self.arrays and self.chance(0.4):
            self.line("cuda.atomic.add(acc, 0, v * v)")
