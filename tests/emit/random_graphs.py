"""Random reducible graphs: loops, jumps past merges, breaks out of several loops, early returns, unset variables.

`random_function(choices)` makes a joint function of `(a: f64, n: i64, x: f64[:])`, in SSA form, that ends for all
arguments with `0 <= n <= 4` and `len(x) == 4`. Canonical graphs leave loops by their headers only.
"""

from __future__ import annotations

import math
import operator
from random import Random

import numpy as np
from numba import types

from zygote_py.ir import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    Jump,
    Param,
    Raise,
    Return,
    SSABuilder,
    ops,
    predecessors,
    reverse_postorder,
)

f64, f32, i64, boolean = types.float64, types.float32, types.int64, types.boolean
array = types.Array(f64, 1, "C")
FLOATS, WHOLE, SINGLES = ("a", "b", "c", "d"), ("k", "m"), ("g", "h")
FUEL = 24


class Graphs:
    """Makes the blocks from the last to the first; what a block contains is written when all edges are known."""

    def __init__(self, choices: Random, canonical: bool) -> None:
        self.choices = choices
        self.canonical = canonical
        self.kinds: dict[Block, tuple[str, object]] = {}
        self.counters = 0

    def block(self, kind: str = "plain", detail: object = None) -> Block:
        block = Block()
        self.kinds[block] = (kind, detail)
        return block

    def run(self, size: int, last: Block, breaks: list[Block], depth: int) -> Block:
        """The first block of a random acyclic graph of blocks and loops that ends in `last`, or leaves for `breaks`."""
        targets = [last]
        for _ in range(size):
            kind = self.choices.choice(("plain", "branch", "branch", "branch", "loop", "unset", "leave"))
            following = targets[-1]
            if kind == "loop" and depth < 3:
                targets.append(self.loop(following, [*breaks, *targets[:2]], depth))
            elif kind == "branch":
                block = self.block()
                other = self.choices.choice([*targets, *([] if self.canonical else breaks)])
                block.terminator = self.either(following, other)
                targets.append(block)
            elif kind == "unset":  # reads what may be unset where it is not
                reader, block = self.block("reader"), self.block("unset")
                reader.terminator = Jump(following)
                block.terminator = Branch(Const(True, boolean), reader, following)
                targets.append(block)
            elif kind == "leave" and self.choices.random() < 0.4:
                end, block = self.block("end"), self.block()
                end.terminator = Return(()) if self.choices.random() < 0.5 and not self.canonical else Raise(ValueError)
                block.terminator = self.either(following, end)
                targets.append(block)
            else:
                block = self.block()
                block.terminator = Jump(following)
                targets.append(block)
        return targets[-1]

    def loop(self, following: Block, breaks: list[Block], depth: int) -> Block:
        name = f"i{self.counters}"
        self.counters += 1
        form = self.choices.choice(("counted", "counted", "while", "until" if not self.canonical else "while"))
        step = self.choices.choice((1, 1, 2, -1))
        detail = (name, form, step, self.choices.choice((0, 3, "n")))
        before, header = self.block("before", detail), self.block("header", detail)
        latch = self.block("latch", detail)
        inner = []
        if not self.canonical:
            again = self.block("latch", detail)
            again.terminator = Jump(header)
            inner = [*breaks, *([again] if form != "until" else [])]
        body = self.run(self.choices.randrange(4), latch, inner, depth + 1)
        before.terminator, latch.terminator = Jump(header), Jump(header)
        if form == "until":
            header.terminator, latch.terminator = Jump(body), self.either(header, following)
        else:
            header.terminator = self.either(body, following)
        return before

    def either(self, one: Block, other: Block) -> Branch:
        pair = (one, other) if self.choices.random() < 0.5 else (other, one)
        return Branch(Const(True, boolean), *pair)


class Writer:
    """Fills the blocks with instructions on variables, and builds SSA form."""

    def __init__(self, graphs: Graphs, function: Function) -> None:
        self.graphs = graphs
        self.choices = graphs.choices
        self.function = function
        self.preds = predecessors(function)
        self.ssa = SSABuilder(function)
        for index, variable in enumerate(FLOATS):
            self.ssa.declare(variable, f64, variable, Const(float(index), f64))
        for variable in (*WHOLE, "fuel", *(f"i{index}" for index in range(graphs.counters))):
            self.ssa.declare(variable, i64, variable, Const(FUEL if variable == "fuel" else 1, i64))
        for variable in SINGLES:
            self.ssa.declare(variable, f32, variable, Const(0.5, f32))
        self.ssa.declare("p", boolean, "p", Const(False, boolean))
        self.ssa.declare("u", f64, "u")
        self.ssa.declare("u_set", boolean, "u_set", Const(False, boolean))

    def write(self) -> None:
        headers = {block for block, (kind, _) in self.graphs.kinds.items() if kind == "header"}
        for block in reverse_postorder(self.function):
            if block not in headers:
                self.ssa.seal(block, self.preds[block])
            if block is self.function.entry:
                self.start(block)
            self.fill(block)
        for header in headers & set(self.preds):
            self.ssa.seal(header, self.preds[header])
        self.ssa.finish()

    def start(self, entry: Block) -> None:
        """Assign values that are not constants to the variables; Numba would prune code that depends on constants."""
        a, n, _ = self.function.params
        self.ssa.write("a", entry, a)
        self.ssa.write("m", entry, n)
        for index, variable in enumerate(FLOATS[1:]):
            self.ssa.write(variable, entry, self.instr(entry, operator.add, a, Const(float(index), f64)))
        for variable in ("k", *(f"i{index}" for index in range(self.graphs.counters))):
            self.ssa.write(variable, entry, self.instr(entry, operator.sub, n, Const(1, i64)))
        for variable in SINGLES:
            self.ssa.write(variable, entry, self.instr(entry, np.float32, n, type=f32))
        for variable in ("p", "u_set"):
            self.ssa.write(variable, entry, self.instr(entry, operator.lt, n, Const(0, i64), type=boolean))

    def fill(self, block: Block) -> None:
        kind, detail = self.graphs.kinds[block]
        if kind == "reader":
            self.ssa.write("a", block, self.instr(block, operator.add, "a", "u"))
        elif kind != "header" or self.choices.random() < 0.2:
            for _ in range(self.choices.randrange(4)):
                self.assign(block)
        condition = None
        if kind in ("before", "header", "latch"):
            condition = self.count(block, kind, *detail)
        elif kind == "unset":
            condition = self.ssa.read("u_set", block)
        match block.terminator:
            case Branch() as branch:
                branch.condition = self.condition(block) if condition is None else condition
            case Return() as leave:
                leave.args = tuple(
                    self.ssa.read(variable, block) for variable in (*FLOATS, *WHOLE, *SINGLES, "p", "u_set")
                )

    def count(self, block: Block, kind: str, name: str, form: str, step: int, bound: object) -> object:
        n = self.function.params[1]
        limit = n if bound == "n" else Const(bound, i64)
        start, stop = (Const(0, i64), limit) if step > 0 else (limit, Const(0, i64))
        if kind == "before":
            self.ssa.write(name, block, start)
        elif kind == "latch":
            following = self.instr(block, operator.add, name, Const(step, i64), hint=name)
            self.ssa.write(name, block, following)
            self.ssa.write("fuel", block, self.instr(block, operator.sub, "fuel", Const(1, i64), hint="fuel"))
        branch = block.terminator
        if kind == "before" or not isinstance(branch, Branch):
            return None
        # Whether to stay in the loop, which leaves by the other way.
        inside = self.graphs.kinds[branch.then][0] == "header" if kind == "latch" else branch.then in self.body(block)
        if form == "counted":
            op = self.choices.choice((operator.lt, operator.le) if step > 0 else (operator.gt, operator.ge))
            if not inside:
                op = {operator.lt: operator.ge, operator.le: operator.gt}.get(op) or {
                    operator.gt: operator.le,
                    operator.ge: operator.lt,
                }[op]
            return self.instr(block, op, name, stop, type=boolean, hint="c")
        stay = self.instr(block, operator.gt, "fuel", Const(0, i64), type=boolean)
        stay = self.instr(block, operator.and_, stay, self.condition(block), type=boolean)
        return stay if inside else self.instr(block, operator.not_, stay, type=boolean)

    def body(self, header: Block) -> set[Block]:
        """The blocks from which the header can be reached."""
        found: set[Block] = set()
        detail = self.graphs.kinds[header][1]
        work = [block for block, found in self.graphs.kinds.items() if found == ("latch", detail)]
        found: set[Block] = set()
        while work:
            block = work.pop()
            if block not in found and block is not header:
                found.add(block)
                work += self.preds.get(block, [])
        return found

    def instr(self, block: Block, op: ops.Op, *args: object, type: types.Type = None, hint: str = "") -> Instr:
        operands = tuple(self.ssa.read(arg, block) if isinstance(arg, str) else arg for arg in args)
        made = Instr(op, operands, type or operands[0].type, hint)
        block.instrs.append(made)
        return made

    def condition(self, block: Block) -> object:
        if self.choices.random() < 0.2:
            return self.ssa.read("p", block)
        # Not of two constants: what Numba prunes for them, it may have needed for the types of what is left.
        first = self.ssa.read(self.choices.choice(FLOATS), block)
        if self.choices.random() < 0.3:
            return self.instr(block, operator.gt, first, self.number(block), type=boolean)
        op = self.choices.choice((operator.lt, operator.gt, operator.eq, operator.le))
        if self.choices.random() < 0.5:
            return self.instr(block, op, self.number(block), self.number(block), type=boolean, hint="c")
        return self.instr(block, op, self.whole(block, 0), self.whole(block), type=boolean)

    def whole(self, block: Block, depth: int = 1) -> object:
        counters = [f"i{index}" for index in range(self.graphs.counters)]
        pick = self.choices.random()
        if pick < 0.4 or depth == 0:
            return self.ssa.read(self.choices.choice([*WHOLE, *counters]), block)
        if pick < 0.6:
            return Const(self.choices.randrange(-2, 6), i64)
        op = self.choices.choice((operator.add, operator.sub, operator.mul))
        value = self.instr(block, op, self.whole(block, depth - 1), self.whole(block, depth - 1))
        return self.instr(block, operator.and_, value, Const(7, i64))

    def number(self, block: Block, depth: int = 2) -> object:
        pick = self.choices.random()
        x = self.function.params[2]
        if pick < 0.35 or depth == 0:
            return self.ssa.read(self.choices.choice(FLOATS), block)
        if pick < 0.45:
            return Const(self.choices.choice((0.0, 1.5, -2.0, -0.0)), f64)
        if pick < 0.5:
            return self.instr(block, float, self.whole(block), type=f64)
        if pick < 0.6:
            index = self.instr(block, operator.and_, self.whole(block), Const(3, i64))
            return self.instr(block, ops.getitem, x, index, type=f64)
        if pick < 0.65:
            return self.instr(block, math.atan, self.number(block, depth - 1))
        if pick < 0.7:
            then, orelse = self.number(block, depth - 1), self.number(block, depth - 1)
            return self.instr(block, ops.select, self.condition(block), then, orelse, type=f64)
        if pick < 0.75:
            return self.instr(block, np.float64, self.ssa.read(self.choices.choice(SINGLES), block), type=f64)
        op = self.choices.choice((operator.add, operator.sub, operator.mul))
        return self.instr(block, op, self.number(block, depth - 1), self.number(block, depth - 1))

    def assign(self, block: Block) -> None:
        write = self.ssa.write
        match self.choices.randrange(10):
            case 0:
                one, other = self.choices.sample(FLOATS, 2)
                first, second = self.ssa.read(one, block), self.ssa.read(other, block)
                write(one, block, second)
                write(other, block, first)
            case 1:
                variable = self.choices.choice(WHOLE)
                write(variable, block, self.whole(block))
            case 2:
                write("p", block, self.condition(block))
            case 3:
                index = self.instr(block, operator.and_, self.whole(block), Const(3, i64))
                op = self.choices.choice((ops.setitem, ops.accumulate))
                self.instr(block, op, self.function.params[2], self.number(block), index, type=types.none)
            case 4:
                write("u", block, self.number(block))
                write("u_set", block, Const(True, boolean))
            case 5:
                one, other = self.choices.sample(SINGLES, 2)
                factor = Const(self.choices.choice((0.1, 3.0)), f32)
                product = self.instr(block, operator.mul, one, factor, hint=self.choices.choice(("", one)))
                write(one, block, self.instr(block, operator.sub, product, other))
            case _:
                variable = self.choices.choice(FLOATS)
                value = self.number(block)
                if isinstance(value, Instr) and value in block.instrs and self.choices.random() < 0.7:
                    value.hint = variable
                write(variable, block, value)


def random_function(choices: Random, canonical: bool, size: int = 6) -> Function:
    graphs = Graphs(choices, canonical)
    last = graphs.block("end")
    last.terminator = Return(())
    first = graphs.run(size, last, [], 0)
    entry = graphs.block()
    entry.terminator = Jump(first)
    function = Function("f", [Param(f64, "a"), Param(i64, "n"), Param(array, "x")], [entry], "joint")
    function.blocks = reverse_postorder(function)
    Writer(graphs, function).write()
    return function
