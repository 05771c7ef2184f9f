"""Kernels of shared memory: between two barriers, an array is read by all, or written to by owners, or added to."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.kernels.random_kernels.statements import Statements
from tests.kernels.random_kernels.writer import Scope, Source


@dataclass
class Tile:
    """A shared array: the lengths of its axes, and ways of giving each thread elements of its own."""

    name: str
    lengths: tuple[str, ...]
    owners: list[list[str]] = field(default_factory=list)
    prefix: str = ""  # of the rows of an array in global memory, one for each block

    @property
    def source(self) -> Source:
        return Source(self.name, self.lengths, self.prefix)


class Phases(Statements):
    """Writes phases that barriers divide, some of them in loops."""

    family = "phases"

    def write(self) -> None:
        scope = Scope()
        self.tiles: list[Tile] = []
        plane = self.chance(0.2)
        self.x, self.y = self.pick((2, 2), (2, 3), (3, 2)) if plane else (self.pick(2, 3, 4, 4, 4, 8), 1)
        self.width = self.x * self.y
        self.blocks = self.pick(1, 1, 2) if plane else self.pick(1, 1, 2, 3) if self.width < 8 else 1
        self.grid = ((self.blocks, 1), (self.x, self.y)) if plane else ((self.blocks,), (self.x,))
        if self.chance(0.4):
            self.size = self.blocks * self.width
        elif self.chance(0.7):
            self.size = max(1, self.blocks * self.width - self.rng.randrange(1, self.width))
        self.ragged = self.size < self.blocks * self.width and self.size % self.width != 0
        if self.chance(0.75):
            self.tables(scope)
        self.functions(scope)
        self.inputs(scope)
        self.totals(scope)
        self.floats("out", self.size)
        self.width_text = str(self.width) if plane or self.chance(0.6) else "cuda.blockDim.x"
        if plane:
            self.line("tx = cuda.threadIdx.x")
            self.line("ty = cuda.threadIdx.y")
            self.line(f"t = tx + ty * {self.x}")
            self.line(f"i = cuda.blockIdx.x * {self.width} + t")
            scope.indices += ["tx", "ty"]
        else:
            self.line("t = cuda.threadIdx.x")
            self.line(self.pick("i = cuda.grid(1)", "i = cuda.blockIdx.x * cuda.blockDim.x + t"))
        self.line("b = cuda.blockIdx.x")
        scope.indices += ["t", "i", "b"]
        for number in range(self.pick(1, 1, 2, 2, 3)):
            self.make_tile(f"s{number}", plane)
        for tile in self.tiles:
            self.fill(tile, scope)
        if self.chance(0.25):
            self.floats("gl", self.blocks, self.width)
            owners = [["gl[b, t]"], [f"gl[b, {self.width - 1} - t]"]]
            self.tiles.append(Tile("gl", (str(self.width),), owners, "b, "))
        self.lines_of_tile = [
            tile for tile in self.tiles if tile.lengths == (str(self.width),) and tile.owners and not tile.prefix
        ]
        self.barrier()
        if self.chance(0.5):
            self.value(scope)
        for _ in range(self.pick(1, 1, 2, 2, 3, 4)):
            self.section(scope, 0)
        self.end(scope)

    def make_tile(self, name: str, plane: bool) -> None:
        width, x, y, k = self.width, self.x, self.y, self.rng.random()
        if plane and k < 0.5:
            if self.chance(0.5):
                lengths = str(x), str(y)
                owners = [["{}[tx, ty]"], [f"{{}}[{x - 1} - tx, ty]"], [f"{{}}[tx, (ty + 1) % {y}]"]]
            else:
                lengths = str(y), str(x)
                owners = [["{}[ty, tx]"], [f"{{}}[{y - 1} - ty, tx]"]]
            made = f"({', '.join(lengths)})"
        elif k < 0.12 and not self.dynamic:
            self.dynamic, lengths, owners, made = width, (str(width),), self.owners(), "0"
        elif k < 0.3:
            lengths, made = (str(2 * width),), self.pick(f"({2 * width},)", f"{2 * width}")
            owners = [["{}[t]", f"{{}}[t + {self.width_text}]"], ["{}[2 * t]", "{}[2 * t + 1]"]]
            owners.append(["{}[t]", f"{{}}[{2 * width - 1} - t]"])
        elif k < 0.4:
            lengths, made = (str(width), "2"), f"({width}, 2)"
            owners = [["{}[t, 0]", "{}[t, 1]"], [f"{{}}[{width - 1} - t, 0]", "{}[t, 1]"]]
        elif k < 0.5:
            lengths, made = ("2", str(width)), f"shape=(2, {width}), dtype={self.number}"
            owners = [["{}[0, t]", "{}[1, t]"], [f"{{}}[0, (t + 1) % {width}]", "{}[1, t]"]]
        elif k < 0.6:
            length = str(self.rng.randrange(1, 4))
            lengths, owners, made = (length,), [], length
        else:
            lengths, owners, made = (str(width),), self.owners(), str(width)
        self.line(f"{name} = cuda.shared.array({made if 'dtype' in made else f'{made}, {self.number}'})")
        self.tiles.append(Tile(name, lengths, [[each.format(name) for each in way] for way in owners]))

    def owners(self) -> list[list[str]]:
        width = self.width
        shifted = f"{{}}[(t + 1) % {width}]", f"{{}}[(t + {width - 1}) % {width}]"
        return [[form] for form in ("{}[t]", "{}[t]", f"{{}}[{self.width_text} - 1 - t]", *shifted)]

    def fill(self, tile: Tile, scope: Scope) -> None:
        """Set all elements of a tile."""
        if tile.owners:
            for target in tile.owners[0]:
                value = f"{self.source(scope)} if i < n else {self.pick('0.0', '0.5')}"
                self.line(f"{target} = {self.pick(value, self.bounded(scope, 1))}")
            return
        (length,) = tile.lengths
        if self.chance(0.5):
            with self.indented("if t == 0:"), self.indented(f"for q in range({length}):"):
                self.line(f"{tile.name}[q] = {self.pick('0.0', '0.25', self.source(scope))}")
        else:
            with self.indented(f"for q in range(t, {length}, {self.width_text}):"):
                self.line(f"{tile.name}[q] = {self.pick('0.0', self.source(scope))}")

    def phase(self, scope: Scope, read_all: bool = False) -> Scope:
        """Return the scope of a phase: what is done with each tile in it."""
        inner = scope.inner(may_return=False, in_loop=True)
        for tile in self.tiles:
            ways = ("read", "read", "own", "own", "add") if tile.owners else ("read", "add", "add")
            match "read" if read_all else self.pick(*ways):
                case "read":
                    inner.sources += [tile.source] * 2
                case "own":
                    inner.own += self.pick(*tile.owners)
                case "add" if not tile.prefix:
                    inner.sums += [tile.source] * 2
        return inner

    def section(self, scope: Scope, depth: int) -> None:
        """Write one or several phases, and the barriers after them."""
        pairs = [tile for tile in self.tiles if tile.lengths == ("2", str(self.width))]
        kind = self.weighted(
            phase=45,
            loop=18 * (depth < 2),
            tree=10 * bool(self.lines_of_tile),
            pairs=8 * bool(pairs),
            walk=10 * bool(self.lines_of_tile and len(self.arrays["x0"].shape) == 1),
            alike=5 * (depth < 2),
            updater=7 * bool(scope.updaters and self.lines_of_tile),
        )
        match kind:
            case "phase":
                self.one_phase(scope)
            case "loop":
                self.loop_of_phases(scope, depth)
            case "tree":
                self.tree(self.pick(*self.lines_of_tile).name)
            case "pairs":
                self.take_turns(pairs[0].name)
            case "walk":
                self.walk(scope, self.pick(*self.lines_of_tile).name)
            case "alike":
                with self.indented(f"if {self.pick('reps > 1', 'b == 0', 'n > 4', 'G0 > 0.0')}:"):
                    self.section(scope.inner(), depth + 1)
            case _:
                name = self.pick(*self.lines_of_tile).name
                self.line(f"{self.pick(*scope.updaters)}({name}, t, {self.expression(scope, 1)})")
                self.barrier()

    def one_phase(self, scope: Scope) -> None:
        inner = self.phase(scope)
        if self.chance(0.25):
            with self.indented(f"if {self.pick(f't < {max(1, self.width // 2)}', 't % 2 == 0', 'i < n', 't == 0')}:"):
                self.block(inner)
        else:
            known = set(scope.values)
            first = len(self.lines)
            self.block(inner)
            made = {line.split(" = ")[0] for line in self.lines[first:]}  # those that are not in a body
            scope.values += [v for v in inner.values if v not in known and "    " * self._depth + v in made]
        self.barrier()

    def loop_of_phases(self, scope: Scope, depth: int) -> None:
        k = self.new("r")
        counts = ["2", "3", "reps", "1 + b", "cnt[0] % 3" if "cnt" in self.arrays else "reps"]
        match self.weighted(counted=6, halved=2, all_threads=2):
            case "counted":
                head, first = f"for {k} in range({self.pick(*counts)}):", None
            case "halved":
                self.line(f"{k} = {self.pick('4', '3')}")
                head, first = f"while {k} > 0:", f"{k} {self.pick('//= 2', '-= 1')}"
            case _:
                head, first = f"for {k} in range({self.width}):", None
        with self.indented(head):
            if first is not None:
                self.line(first)
            if self.chance(0.12):
                with self.indented(f"if {k} == 2:"):
                    self.line(self.pick("break", "continue") if first is None else "break")
            elif self.chance(0.1) and self.lines_of_tile and not self.decides_by_inputs:
                with self.indented(f"if {self.lines_of_tile[0].name}[0] > 0.6:"):
                    self.line("break")
                self.barrier()
            for _ in range(self.pick(1, 1, 2)):
                self.section(scope.inner(indices=[*scope.indices, k]), depth + 1)

    def tree(self, name: str) -> None:
        """Write a reduction to the first element, or a scan."""
        w, v = self.new("w"), self.new("v")
        a, b = f"{name}[t]", f"{name}[t + {w}]"
        if self.width in (2, 4, 8):
            self.line(f"{w} = {self.pick(str(self.width // 2), self.width_text + ' // 2')}")
            with self.indented(f"while {w} > 0:"):
                with self.indented(f"if t < {w}:"):
                    forms = f"{a} += {b}", f"{a} = {a} * 0.7 + {b} * math.sin({a})", f"{a} = max({a}, {b})"
                    more = f"{a} += {b} * {a} * 0.5", f"{a} = math.sin({a}) * {b} + {a}"
                    self.line(self.pick(*forms, *more))
                self.barrier()
                self.line(f"{w} {self.pick('//= 2', '>>= 1')}")
            return
        self.line(f"{w} = 1")
        with self.indented(f"while {w} < {self.width}:"):
            self.line(f"{v} = {name}[t - {w}] if t >= {w} else 0.0")
            self.barrier()
            self.line(f"{a} = 0.8 * {a} + 0.5 * {v}{self.pick('', f' * {a}')}")
            self.barrier()
            self.line(f"{w} *= 2")

    def take_turns(self, name: str) -> None:
        """Write rounds from one row of a tile to the other."""
        p, k = self.new("p"), self.new("r")
        self.line(f"{p} = 0")
        with self.indented(f"for {k} in range({self.pick('2', '3', 'reps')}):"):
            next_one, mine = f"{name}[{p}, (t + 1) % {self.width}]", f"{name}[{p}, t]"
            self.line(f"{name}[1 - {p}, t] = 0.5 * {next_one} + math.sin({mine}){self.pick('', f' * {mine}')}")
            swap = f"{p} = 1 - {p}"
            for each in self.pick(("cuda.syncthreads()", swap), (swap, "cuda.syncthreads()")):
                self.line(each)

    def walk(self, scope: Scope, name: str) -> None:
        """Write a loop over an array in tiles."""
        k, base, v = self.new("k"), self.new("base"), self.new("v")
        length, width = self.pick("x0.size", "x0.shape[0]"), self.width
        self.line(f"{v} = 0.0")
        with self.indented(f"for {base} in range(0, {length}, {width}):"):
            with self.indented(f"if {base} + t < {length}:"):
                self.line(f"{name}[t] = x0[{base} + t]")
            if self.chance(0.6):
                with self.indented("else:"):
                    self.line(f"{name}[t] = 0.0")
            self.barrier()
            rounds = self.pick(str(width), f"min({width}, {length} - {base})")
            with self.indented(f"for {k} in range({rounds}):"):
                inner = scope.inner(values=[*scope.values, v], indices=[*scope.indices, k])
                inner.sources.append(Source(name, (str(width),)))
                forms = f"{name}[{k}]", f"math.sin({name}[{k}] + {v})", f"{name}[{k}] * {self.expression(inner, 1)}"
                self.line(f"{v} {self.pick('+= 0.3 *', f'= 0.7 * {v} +')} {self.pick(*forms)}")
            self.barrier()
        scope.values.append(v)

    def end(self, scope: Scope) -> None:
        """Write what the threads make of the tiles."""
        inner = self.phase(scope, read_all=True)
        outer = inner.inner()
        with self.indented("if i < n:"):
            inner.below_n.append("i")
            inner.own.append("out[i]")
            self.budget = max(self.budget, 3)
            self.line(f"out[i] {self.pick('=', '+=', '-=')} {self.bounded(inner, 2)}")
            if self.chance(0.5):
                self.block(inner.inner(own=["out[i]"]), self.pick(1, 2))
        if self.chance(0.3) and scope.sums:
            with self.indented("if t == 0:"):
                self.add_to_total(scope, self.bounded(outer, 1))
