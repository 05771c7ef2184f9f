"""Kernels whose indices are sums of thread numbers and loop variables, of which many do not meet and some do.

They are about which additions to shadows need not be atomic, and which loops are reversed at once. A kernel whose own
threads race is discarded.
"""

from __future__ import annotations

from tests.kernels.random_kernels.statements import Statements

LENGTH = 80


class Affine(Statements):
    """Writes loops over global memory without barriers."""

    family = "affine"

    def write(self) -> None:
        self.values: list[str] = []
        self.written: dict[str, tuple[str, list[str]]] = {}
        self.size = self.rng.randrange(3, 8)
        self.plane = self.chance(0.25)
        self.inputs_read = [self.floats(f"x{k}", LENGTH) for k in range(self.pick(1, 2))]
        if self.chance(0.4):
            self.floats("z", *self.pick((12, 4), (4, 12)))
        outputs = [self.floats(f"o{k}", LENGTH) for k in range(self.pick(1, 2))]
        if self.chance(0.4):
            self.floats("acc", 2)
        if self.plane:
            self.grid = (self.pick(1, 2), self.pick(1, 2)), (self.pick(1, 2), self.pick(1, 2, 3))
            self.line("i, j = cuda.grid(2)")
            self.line("t = cuda.threadIdx.y")
            self.mine = "me"
            names = ["i", "j", "me", "t", "b"]
        else:
            self.grid = (self.pick(1, 2, 2, 3),), (self.pick(1, 2, 3, 4),)
            self.line("i = cuda.grid(1)")
            self.line("t = cuda.threadIdx.x")
            self.mine = "i"
            names = ["i", "i", "i", "t", "b"]
        self.line("b = cuda.blockIdx.x")
        if self.plane:
            self.line(self.pick("me = i * 7 + j", "me = i * cuda.gridsize(2)[1] + j"))
        self.values.append(self.new("v"))
        self.line(f"{self.values[0]} = {self.constant()}")
        for _ in range(self.rng.randrange(1, 4)):
            self.affine_statement(names, outputs, 0)
        if "acc" in self.arrays and self.chance(0.7):
            self.line(f"cuda.atomic.add(acc, {self.pick('0', '1', 'i % 2')}, {self.values[0]})")

    def affine(self, names: list[str]) -> str:
        a, b, k = self.pick(*names), self.pick(*names), self.rng.randrange(1, 4)
        if self.chance(0.25):
            return a
        by = self.pick("n", "2", "3", "cuda.blockDim.x", "cuda.gridsize(1)", "cuda.gridDim.x")
        forms = [f"{a} + {k}", f"{a} - {k}", f"2 * {a}", f"{a} * 2 + {k % 2}", f"{2 * k} - {a}", f"-{a}", f"-1 - {a}"]
        forms += [f"{a} + {b}", f"{a} + {b}", f"{a} - {b}", f"{a} + {b} * {by}", f"cuda.blockDim.x - 1 - {a}"]
        return self.pick(*forms, str(2 * k))

    def element(self, names: list[str]) -> str:
        if "z" in self.arrays and self.chance(0.2):
            rows, columns = self.arrays["z"].shape
            at = [f"{self.pick(*names)} % {rows}", f"{self.pick(*names)} % {columns}"]
            if self.chance(0.6):
                at[0 if rows == 12 else 1] = f"{names[0]} % 12"
            if self.chance(0.3):
                at[0 if rows == 4 else 1] = str(self.rng.randrange(-2, 4))
            return f"z[{', '.join(at)}]"
        return f"{self.pick(*self.inputs_read)}[{self.affine(names)}]"

    def smooth(self, names: list[str], more: str = "G0", depth: int = 2) -> str:
        if depth == 0 or self.chance(0.2):
            return self.pick(*(self.element(names) for _ in range(3)), self.values[0], "s", more)
        a, b = (self.smooth(names, more, depth - 1) for _ in "ab")
        forms = f"math.sin({a})", f"({a} * {b})", f"({a} + {b})", f"({a} - {b})", f"math.tanh({a})"
        return self.pick(*forms, f"math.cos({a}) ** 2")

    def affine_condition(self, names: list[str]) -> str:
        a = self.pick(*names)
        forms = f"{a} % 2 == 0", f"{a} < {self.rng.randrange(1, 4)}", f"{a} != 1", "i > 0", "reps > 1"
        return self.pick(*forms, f"{self.element(names)} > 0.8")

    def affine_statement(self, names: list[str], outputs: list[str], depth: int) -> None:
        k = self.rng.random()
        if k < 0.55 and depth < 3:
            self.affine_loop(names, outputs, depth)
        elif k < 0.65:
            with self.indented(f"if {self.affine_condition(names)}:"):
                self.affine_body(names, outputs, depth + 1)
            if self.chance(0.3):
                with self.indented("else:"):
                    self.affine_body(names, outputs, depth + 1)
        elif k < 0.85:
            v, e = self.values[0], self.element(names)
            forms = f"{v} += 0.3 * math.sin({self.smooth(names)})", f"{v} += 0.2 * {e} * {self.element(names)}"
            more = f"{v} = math.sin({v}) + 0.4 * math.cos({self.smooth(names)})", f"{v} += 0.5 * {e}"
            self.line(self.pick(*forms, *more))
        else:
            self.store(names, outputs)

    def affine_loop(self, names: list[str], outputs: list[str], depth: int) -> None:
        k = self.new("k")
        step, number = "1", "j" if self.plane else "t + b * cuda.blockDim.x"
        if not self.plane:
            size = "cuda.gridsize(1)"
            step = self.pick(size, size, "cuda.blockDim.x * cuda.gridDim.x", "cuda.blockDim.x")
        last = None
        match self.weighted(strided=30, counted=40, steps=20):
            case "strided":
                first, end = self.pick("i", "i", "i", "i - 2", "i + 1", number, "t"), self.pick("n", "n", "2 * n", "9")
                head = f"for {k} in range({first}, {end}, {step}):"
            case "counted":
                rounds = "3", "2", "n", "reps", "4", "-2, 3", "1, 6, 2", "3, -1, -1", "4, -4, -2", "i % 3", "-n, n"
                head = f"for {k} in range({self.pick(*rounds)}):"
            case _:
                self.line(f"{k} = {self.pick('i', 'i', 't', '0', 'i - 2')}")
                head = f"while {k} < {self.pick('n', '5', 'n + 2')}:"
                last = f"{k} += {step if self.chance(0.7) else self.pick('1', '2', '3')}"
        first_line = last is not None and self.chance(0.3)
        with self.indented(head):
            if last is not None and first_line:
                self.line(last)
            if last is None and self.chance(0.08):
                with self.indented(f"if {self.affine_condition([*names, k])}:"):
                    self.line(self.pick("break", "continue"))
            self.affine_body([*names, k, k], outputs, depth + 1)
            if last is not None and not first_line:
                self.line(last)

    def affine_body(self, names: list[str], outputs: list[str], depth: int) -> None:
        for _ in range(self.pick(1, 1, 2, 2, 3)):
            if self.chance(0.45):
                self.store(names, outputs)
            else:
                self.affine_statement(names, outputs, depth)

    def store(self, names: list[str], outputs: list[str]) -> None:
        """Write to an element: often to the one that was written to before."""
        name, me = self.pick(*outputs), self.mine
        loops = [each for each in names if each[0] == "k"]
        forms = [me, f"{me} + 1", f"2 * {me}", f"{me} * 3 + 1", f"-1 - {me}", f"40 - {me}", f"{me} - 3", f"{me} + n"]
        if loops and self.chance(0.75):
            k = self.pick(*loops)
            forms = [k, k, f"{k} + 1", f"{k} - 1", f"{k} * 2", f"20 - {k}", f"-{k}", f"{me} * 6 + {k}", f"{k} - n"]
            forms += [f"{me} * 5 + {k} - 2", f"{k} * 8 + {me}"]
            forms.append(f"{k} * 9 + me" if self.plane else f"{k} * cuda.gridsize(1) + i")
        form = self.pick(*forms)
        if name in self.written and self.chance(0.6) and set(self.written[name][1]) <= set(names):
            form = self.written[name][0]
        else:
            self.written[name] = form, [k for k in loops if k in form]
        target, v, e = f"{name}[{form}]", self.values[0], self.element(names)
        value = self.smooth(names, target)
        stores = f"{target} = math.sin({value})", f"{target} += 0.4 * math.sin({value})", f"{target} = {v} * {e}"
        self.line(self.pick(*stores, f"{target} = {target} * math.cos({value})", f"{target} *= {e}", f"{target} = {v}"))


class Steps(Statements):
    """Writes loops with barriers, in which elements are handed on from round to round."""

    family = "steps"

    def write(self) -> None:
        self.size = self.rng.randrange(3, 8)
        self.plane = self.chance(0.2)
        self.width = 6 if self.plane else self.pick(2, 3, 4)
        if self.plane:
            self.grid = (1, 1), self.pick((2, 2), (2, 3))
            self.line("i, j = cuda.grid(2)")
        else:
            self.grid = (1,), (self.width,)
            self.line("i = cuda.grid(1)")
        self.line("t = cuda.threadIdx.x")
        names = ["i", "j"] if self.plane else ["i"]
        self.floats("x0", 30)
        self.written = [self.floats("g0", 30)]
        if self.chance(0.5):
            self.written.append(self.floats("g1", 30))
        if self.chance(0.4):
            self.written.append(self.floats("g2", 6, 6))
        if self.chance(0.3):
            self.floats("acc", 2)
        if self.chance(0.6):
            self.written.append("s0")
            self.line(f"s0 = cuda.shared.array(16, {self.number})")
            guard, places = ("if i == 0 and j == 0:", "16") if self.plane else (None, "t, 16, cuda.blockDim.x")
            with self.indented(guard), self.indented(f"for q in range({places}):"):
                self.line(f"s0[q] = {self.pick('0.1 * q', 'x0[q]')}")
            self.barrier()
        self.line("v = 0.4")
        for _ in range(self.pick(1, 2, 2, 3)):
            self.step(names, 0)
        if self.chance(0.5):
            self.line(f"g0[{self.pick('i', 'i + 20', '29 - i')}] {self.pick('=', '+=')} v")
        if "acc" in self.arrays:
            self.line("cuda.atomic.add(acc, 0, v)")

    def at(self, names: list[str], array: str) -> str:
        loops = [each for each in names if each[0] == "r"]
        a, w = ("(i * 3 + j)", self.width) if self.plane else ("i", self.width)
        k = self.pick(*loops) if loops else "1"
        if array == "g2":
            forms = f"i, {k}", f"{k}, i", "i, j" if self.plane else "i, t", f"i, {k} + 1", f"(i + {k}) % 6, i"
            return self.pick(*forms, f"{k} % 2, i", f"-1 - i, {k}", "0, i")
        if not loops or self.chance(0.15):
            return self.pick(a, a, f"{a} + 1", f"2 * {a}", f"10 - {a}", f"-1 - {a}", f"({a} + 1) % {w}")
        forms = [f"{a} + {k}", f"{a} + {k}", f"{k} + {a}", f"{a} + 2 * {k}", f"2 * {a} + {k}", f"{a} - {k}", k, a]
        forms += [f"8 + {k} - {a}", f"{a} * 3 + {k}", f"{k} * cuda.blockDim.x + i", f"{k} * {w} + {a}"]
        forms.append(f"{a} + {k} - 3")
        return self.pick(*forms, f"({a} + {k}) % {w}", f"({a} + {k}) % 5", f"{w - 1} - {a} + {k}")

    def term(self, names: list[str], target: str) -> str:
        other = self.pick(*self.written)
        x, y = f"x0[{self.at(names, 'x0')}]", f"{other}[{self.at(names, other)}]"
        return self.pick(x, x, target, y, self.pick("v", "s", "G0"))

    def product(self, names: list[str], target: str) -> str:
        a, b = self.term(names, target), self.term(names, target)
        return self.pick(f"math.sin({a} * {b})", f"{a} * {b}", f"{a} * {b}", a, f"{a} + 0.3 * {b}", f"math.cos({a})")

    def assignment(self, names: list[str]) -> str:
        name = self.pick(*self.written)
        target = f"{name}[{self.at(names, name)}]"
        value = self.product(names, target)
        match self.weighted(store=60, value=25, sum=7, sine=8):
            case "store":
                forms = f"{target} = {value}", f"{target} *= {value}", f"{target} += 0.4 * {value}"
                return self.pick(*forms, f"{target} = math.sin({target} * {value})")
            case "value":
                return f"v {self.pick('+=', '+=', '= 0.7 * v +')} 0.3 * {self.product(names, 'v')}"
            case "sum":
                place = "(0, 1)" if name == "g2" else self.pick("0", "1", "i % 2")
                return f"cuda.atomic.add({name}, {place}, {self.product(names, 'v')})"
        return "v = math.sin(v)"

    def step(self, names: list[str], depth: int) -> None:
        if depth < 2 and self.chance(0.6):
            k, is_while = self.new("r"), self.chance(0.2)
            if is_while:
                self.line(f"{k} = 0")
            rounds = self.pick("2", "3", "4", "reps", "1, 4", "3, -1, -1", "0, 4, 2")
            head = f"while {k} < {self.pick('3', 'reps')}:" if is_while else f"for {k} in range({rounds}):"
            with self.indented(head):
                if self.chance(0.15):
                    self.barrier()
                for _ in range(self.pick(1, 1, 2, 2)):
                    self.step([*names, k], depth + 1)
                if is_while:
                    self.line(f"{k} += 1")
            return
        for _ in range(self.pick(1, 1, 2)):
            guard = self.pick("i > 0", "i % 2 == 0", "reps > 1", "x0[i] > 0.8", "i < 2")
            with self.indented(f"if {guard}:" if self.chance(0.2) else None):
                self.line(self.assignment(names))
        if self.chance(0.9):
            self.barrier()
