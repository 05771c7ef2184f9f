"""Kernels that pass arrays on: rows and slices, functions of arrays with barriers, arrays of a thread, swaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.kernels.random_kernels.statements import Statements

Operations = dict[str, Callable[[str], list[str]]]

FUNCTIONS = """@cuda.jit(device=True)
def total(row, m):
    v = 0.0
    for k in range(m):
        v += row[k] * math.sin(row[k])
    return v


@cuda.jit(device=True)
def scale(row, m, f):
    for k in range(m):
        row[k] = row[k] * f + 0.2 * math.cos(row[k])


@cuda.jit(device=True)
def both(a, b):
    return math.sin(a) * b, a + math.cos(b)


@cuda.jit(device=True)
def publish(buf, t, v):
    buf[t] = v * v
    cuda.syncthreads()


@cuda.jit(device=True)
def block_sum(v):
    buf = cuda.shared.array(WIDTH, FLOAT)
    t = cuda.threadIdx.x
    buf[t] = v
    cuda.syncthreads()
    r = 0.0
    for k in range(WIDTH):
        r += buf[k] * buf[(k + 1) % WIDTH]
    cuda.syncthreads()
    return r


@cuda.jit(device=True)
def put(acc, k, v):
    cuda.atomic.add(acc, k, v)
    return v * 0.5"""
BARRIER = "cuda.syncthreads()"


class Views(Statements):
    """Writes statements in which `v` is the float of a thread, and `buf` a shared array."""

    family = "views"

    def write(self) -> None:
        width = self.width = self.pick(2, 3, 4)
        self.grid = (self.pick(1, 2),), (width,)
        count = self.grid[0][0] * width
        for name, shape in (("x0", (count, 4)), ("x1", (count,)), ("o0", (count, 4)), ("o1", (count,))):
            self.floats(name, *shape)
        self.device_functions.append(FUNCTIONS.replace("WIDTH", str(width)).replace("FLOAT", self.number))
        operations = self.operations()
        if self.chance(0.5):
            self.floats("acc", 3)
            operations["sums"] = lambda k: [
                f"v += put(acc, {self.pick('0', 't % 3', 'reps % 3')}, v * {self.pick('v', 'x1[i]')})",
                f"cuda.atomic.add({self.pick('acc[1:], 1', 'acc, 2', 'acc, t % 3')}, math.sin(v))",
            ]
        for line in ("i = cuda.grid(1)", "t = cuda.threadIdx.x", f"v = {self.pick('x1[i]', '0.4', 'x0[i, 1]')}"):
            self.line(line)
        self.line(f"buf = cuda.shared.array({width}, {self.number})")
        self.line("buf[t] = 0.3")
        for probability, lines, more in self.memory():
            if self.chance(probability):
                for line in lines:
                    self.line(line)
                operations |= more
        self.barrier()
        for _ in range(self.rng.randrange(2, 6)):
            self.operate(operations, 0)
        self.barrier()
        self.line(f"o1[i] {self.pick('=', '+=')} v + {self.pick(f'buf[(t + 1) % {width}]', 'buf[t]', '0.0')}")

    def operate(self, operations: Operations, depth: int) -> None:
        k = self.new("k")
        if depth < 2 and self.chance(0.15):
            with self.indented(f"for {k} in range({self.pick('2', '3', 'reps')}):"):
                for _ in range(self.pick(1, 2)):
                    self.operate(operations, depth + 1)
            return
        for line in operations[self.pick(*operations)](k):
            self.line(line)
        if depth == 0 and self.chance(0.2):
            self.line("v = math.tanh(v)")

    def operations(self) -> Operations:
        """Return what statements do, by name: functions of a new name, which return lines."""
        width, pick = self.width, self.pick
        last, after = width - 1, f"(t + 1) % {width}"
        return {
            "row": lambda k: [
                f"{k} = {pick('x0[i]', 'x0[(i + 1) % x0.shape[0]]', 'x0[i, :]', 'o0[i]')}",
                f"v += 0.3 * {k}[{pick(-1, 0, 1, 2, 3)}] * {k}[1]",
            ],
            "slice": lambda k: [
                f"{k} = {pick('x1[1:]', 'x1[i:]', 'x1[::-1]', 'x1[:i + 1]', 'x0[i, 1:3]', 'x0[i, ::2]', 'x0[:, 2]')}",
                f"v += 0.4 * math.sin({k}[0] * v)",
            ],
            "tuple": lambda k: [f"{k}, v = both(v, {pick('x1[i]', 'x0[i, 0]', 's')})", f"v += 0.3 * {k}"],
            "publish": lambda k: [
                BARRIER,
                f"publish(buf, {pick('t', f'{last} - t')}, {pick('v', 'x1[i] * v')})",
                f"v += 0.3 * buf[{after}]",
                BARRIER,
            ],
            "block sum": lambda k: [f"v = 0.4 * block_sum({pick('v', 'math.sin(v)', 'x1[i]')})"],
            "scale": lambda k: [
                f"scale({pick('o0[i]', 'o0[i, :]', 'o0[i, 1:]', 'o0[i, ::2]')}, {pick('2', 'reps % 3')}, "
                f"{pick('0.7', 's', 'v')})"
            ],
            "swap": lambda k: [f"{k} = math.cos(v)", f"v, {k} = {k}, v", f"v += 0.2 * {k} * v"],
            "total": lambda k: [
                f"v += 0.2 * total({pick('x0[i]', 'x0[i, 1:]', 'o0[i]', 'x1', 'x0[(i + 1) % x0.shape[0]]')}, "
                f"{pick('2', 'reps % 3')})"
            ],
            "own of buf": lambda k: [
                BARRIER,
                f"buf[{pick('t', after)}] = {pick('v', '0.5 * v * v', 'math.sin(x1[i])')}",
                BARRIER,
                f"v = 0.7 * v + 0.4 * buf[{pick('0', 't', last)}] * v",
                BARRIER,
            ],
            "element": lambda k: [f"v = math.sin(v) + 0.4 * x1[{pick('i', '(i + 1) % x1.size', '-1', '0')}]"],
        }

    def memory(self) -> Iterator[tuple[float, list[str], Operations]]:
        """Return more memory: how often it is there, the lines that make it, and what is done with it."""
        width, pick, number = self.width, self.pick, self.number
        after = f"(t + 1) % {width}"
        yield (
            0.4,
            [f"bu2 = cuda.shared.array({width}, {number})", "bu2[t] = 0.6"],
            {
                "swap arrays": lambda k: [BARRIER, "buf, bu2 = bu2, buf"],
                "two": lambda k: [
                    BARRIER,
                    f"bu2[t] = 0.5 * bu2[t] + v * buf[{after}]",
                    BARRIER,
                    "buf[t] = math.sin(bu2[t])",
                    BARRIER,
                ],
            },
        )
        yield (
            0.6,
            [
                f"loc = cuda.local.array(4, {number})",
                "for k in range(4):",
                f"    loc[k] = {pick('x0[i, k]', '0.1 * k', 'v * k')}",
            ],
            {
                "element of loc": lambda k: [
                    f"loc[{pick('1', 'i % 4', 'reps % 4', '-1')}] {pick('=', '+=', '*=')} "
                    f"math.sin(v + loc[{pick('0', '2', '(i + 1) % 4')}])",
                    "v = 0.5 * v + loc[1] * loc[3]",
                ],
                "scale loc": lambda k: [
                    f"scale(loc, {pick('4', '3', 'reps')}, {pick('v', '0.5')})",
                    "v += 0.3 * total(loc, 4)",
                ],
                "slice of loc": lambda k: [
                    f"{k} = loc[{pick('1:3', ':2', '::2', '2:')}]",
                    f"{k}[0] = math.sin(v)",
                    f"v += 0.3 * loc[{pick(0, 1, 2, 3)}] * {k}[1]",
                ],
            },
        )
        yield (
            0.3,
            [
                f"lo2 = cuda.local.array((2, 2), {number})",
                "for k in range(2):",
                "    for m in range(2):",
                "        lo2[k, m] = math.sin(x0[i, k + m])",
            ],
            {
                "element of lo2": lambda k: [
                    f"lo2[{pick('i % 2', '0', 'reps % 2')}, 1] *= math.cos(v)",
                    "v += 0.3 * lo2[0, 1] * lo2[1, 1]",
                ],
                "row of lo2": lambda k: [
                    f"scale(lo2[{pick('0', '1', 'i % 2')}], 2, v)",
                    "v += 0.2 * lo2[0, 0] * lo2[1, 0]",
                ],
            },
        )
        yield (
            0.3,
            [f"ish = cuda.shared.array({width}, int64)", f"ish[t] = (t + 1) % {width}"],
            {
                "integers of the block": lambda k: [
                    BARRIER,
                    f"buf[ish[t]] = {pick('v', 'v * x1[i]')}",
                    BARRIER,
                    f"v = 0.6 * v + 0.3 * buf[ish[{after}]]",
                    BARRIER,
                    f"ish[t] = (ish[t] + 1) % {width}",
                    BARRIER,
                ]
            },
        )
        yield (
            0.2,
            ["il = cuda.local.array(3, int64)", "for k in range(3):", "    il[k] = (i + k) % 4"],
            {
                "integers": lambda k: [
                    f"il[{pick('0', '1', 'reps % 3')}] = {pick('(il[1] + 1) % 4', 'il[2]', '3')}",
                    "v += 0.3 * x0[i, il[0]] * v",
                ]
            },
        )
        yield (
            0.15,
            [f"big = cuda.local.array(70, {number})", "for k in range(70):", "    big[k] = 0.01 * k + x1[i]"],
            {
                "large": lambda k: [
                    f"big[{pick('3', 'i', '69', 'reps * 10')}] = math.sin(v)",
                    "v += 0.2 * big[3] * big[69]",
                ]
            },
        )
