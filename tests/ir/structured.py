"""Random structured programs as functions of the IR: nested loops and branches, `break`, `continue`, returns, raises.

    function = build(statements(random.Random(7)))

Loops are lowered as Python's compiler and Numba do it: `while` with the test before the loop and again at its end, or
with one test at the top; `for` over a range with the test in the header; `while True` with none; and loops with a test
at the end only. All end.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numba import types

from zygote_py.ir import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    InternalError,
    Jump,
    Operand,
    Param,
    Raise,
    Return,
    SSABuilder,
    StepLimitError,
    drop_unreachable,
    interpret,
    ops,
)

FLOATS = ("a", "b", "d")  # d has no value at the start
INTS = ("i", "j")
ARRAY = types.Array(types.float64, 1, "C")

Statement = tuple[object, ...]


def statements(rng: random.Random, depth: int = 3, in_loop: bool = False, arrays: bool = True) -> list[Statement]:
    """A list of statements; the deeper, the shorter."""
    found: list[Statement] = []
    for _ in range(rng.randint(1, 2 + depth)):
        kinds = ["float", "float", "int"] + (["store", "load"] if arrays else [])
        if depth:
            kinds += ["if", "if", "for", "while", "top", "forever", "do"]
        if in_loop:
            kinds += ["leave", "leave"]
        kind = rng.choice(kinds)
        inner = lambda loop=in_loop: statements(rng, depth - 1, loop, arrays)
        match kind:
            case "float":
                op = rng.choice(["add", "sub", "mul", "neg", "one", "copy", "zero"])
                found.append(("float", rng.choice(FLOATS), op, _float(rng), _float(rng)))
            case "int":
                found.append(("int", rng.choice(INTS), rng.choice(["add", "sub", "mul"]), _int(rng), _int(rng)))
            case "store":
                found.append(("store", rng.choice(FLOATS[:2]), rng.randrange(3)))
            case "load":
                found.append(("load", rng.choice(FLOATS), rng.randrange(3)))
            case "if":
                found.append(("if", _test(rng), inner(), inner() if rng.random() < 0.5 else []))
            case "for":
                found.append(("for", rng.randrange(4), inner(True), inner() if rng.random() < 0.3 else []))
            case "while" | "top":
                tests = [_test(rng) for _ in range(rng.choice([1, 1, 2]))]
                found.append((kind, rng.randrange(1, 4), tests, inner(True), inner() if rng.random() < 0.3 else []))
            case "forever":
                found.append(("forever", rng.randrange(1, 4), inner(True), rng.random() < 0.5))
            case "do":
                found.append(("do", rng.randrange(1, 4), _test(rng), inner(True)))
            case "leave":
                how = rng.choice(["break", "break", "continue", "return", "raise"])
                found.append(("leave", how, _test(rng), rng.choice(FLOATS)))
    return found


def _float(rng: random.Random) -> object:
    return rng.choice([*FLOATS, *FLOATS[:2], *FLOATS[:2], rng.choice([0.5, -1.0, 2.0, 0.0, -0.0, 1.0])])


def _int(rng: random.Random) -> object:
    return rng.choice([*INTS, rng.randint(-2, 3)])


def _test(rng: random.Random) -> tuple[str, object, object]:
    if rng.random() < 0.1:
        return ("lt", 0, rng.choice([0, 1]))
    make = rng.choice([_float, _int])
    return (rng.choice(["lt", "le", "gt", "ge", "eq", "ne"]), make(rng), make(rng))


@dataclass
class _Loop:
    next: Block
    leave: Block


@dataclass
class _Builder:
    function: Function
    ssa: SSABuilder
    block: Block | None
    preds: dict[Block, list[Block]] = field(default_factory=dict)
    loops: list[_Loop] = field(default_factory=list)
    counters: int = 0

    def new(self) -> Block:
        block = Block()
        self.preds[block] = []
        self.function.blocks.append(block)
        return block

    def jump(self, target: Block) -> None:
        if self.block is not None:
            self.block.terminator = Jump(target)
            self.preds[target].append(self.block)
        self.block = None

    def branch(self, condition: Operand, then: Block, orelse: Block) -> None:
        assert self.block is not None
        self.block.terminator = Branch(condition, then, orelse)
        self.preds[then].append(self.block)
        self.preds[orelse].append(self.block)
        self.block = None

    def start(self, block: Block, seal: bool = True) -> None:
        """Go on in a block, if it can be reached; seal it if all edges to it are there."""
        if seal:
            self.ssa.seal(block, self.preds[block])
        self.block = block if self.preds[block] else None

    def emit(self, op: ops.Op, args: tuple[Operand, ...], type: types.Type, hint: str = "") -> Instr:
        assert self.block is not None
        instr = Instr(op, args, type, hint)
        self.block.instrs.append(instr)
        return instr

    def operand(self, name: object, type: types.Type) -> Operand:
        assert self.block is not None
        return self.ssa.read(name, self.block) if isinstance(name, str) else Const(type_value(name, type), type)

    def test(self, test: tuple[str, object, object]) -> Operand:
        name, left, right = test
        is_float = any(x in FLOATS or isinstance(x, float) for x in (left, right))
        type = types.float64 if is_float else types.int64
        args = (self.operand(left, type), self.operand(right, type))
        return self.emit(getattr(operator, name), args, types.boolean, "c")

    def body(self, statements: list[Statement]) -> None:
        for statement in statements:
            if self.block is None:
                return
            getattr(self, f"do_{statement[0]}")(*statement[1:])

    def do_float(self, name: str, op: str, left: object, right: object) -> None:
        assert self.block is not None
        a = self.operand(left, types.float64)
        match op:
            case "copy":
                result: Operand = a
            case "neg":
                result = self.emit(operator.neg, (a,), types.float64, name)
            case "one":
                result = self.emit(operator.mul, (a, Const(1.0, types.float64)), types.float64, name)
            case "zero":
                result = self.emit(ops.const, (Const(0.0, types.float64),), types.float64, name)
            case _:
                b = self.operand(right, types.float64)
                result = self.emit(getattr(operator, op), (a, b), types.float64, name)
        self.ssa.write(name, self.block, result)

    def do_int(self, name: str, op: str, left: object, right: object) -> None:
        assert self.block is not None
        args = (self.operand(left, types.int64), self.operand(right, types.int64))
        # Small enough to stay in 64 bits.
        wide = self.emit(getattr(operator, op), args, types.int64)
        self.ssa.write(name, self.block, self.emit(operator.mod, (wide, Const(7, types.int64)), types.int64, name))

    def do_store(self, name: str, index: int) -> None:
        self.emit(ops.setitem, (self.function.params[-1], self.operand(name, types.float64), _index(index)), types.none)

    def do_load(self, name: str, index: int) -> None:
        assert self.block is not None
        loaded = self.emit(ops.getitem, (self.function.params[-1], _index(index)), types.float64, name)
        self.ssa.write(name, self.block, loaded)

    def do_if(self, test: tuple[str, object, object], then: list[Statement], orelse: list[Statement]) -> None:
        blocks = self.new(), self.new()
        after = self.new()
        self.branch(self.test(test), *blocks)
        for block, inner in zip(blocks, (then, orelse), strict=True):
            self.start(block)
            self.body(inner)
            self.jump(after)
        self.start(after)

    def do_for(self, count: int, inner: list[Statement], orelse: list[Statement]) -> None:
        assert self.block is not None
        counter, header, body, latch, exhausted, after = self.counter(), *(self.new() for _ in range(5))
        self.ssa.write(counter, self.block, Const(0, types.int64))
        self.jump(header)
        self.start(header, seal=False)
        self.branch(self.count_test(counter, count), body, exhausted)
        self.start(body)
        self.in_loop(latch, after, inner)
        self.jump(latch)
        self.start(latch)
        self.count(counter)
        self.jump(header)
        self.ssa.seal(header, self.preds[header])
        self.finish_loop(exhausted, orelse, after)

    def do_while(self, count: int, tests: list, inner: list[Statement], orelse: list[Statement]) -> None:
        assert self.block is not None
        counter, body, latch, exhausted, after = self.counter(), *(self.new() for _ in range(4))
        self.ssa.write(counter, self.block, Const(0, types.int64))
        first = self.new()
        self.jump(first)
        self.start(first, seal=False)
        self.tests(counter, count, tests, body, exhausted)
        self.start(body, seal=False)
        self.count(counter)
        self.in_loop(first, after, inner)  # `continue` goes back to the first test
        self.jump(latch)
        self.start(latch)
        if self.block is not None:
            self.tests(counter, count, tests, body, exhausted)
        self.ssa.seal(first, self.preds[first])
        self.ssa.seal(body, self.preds[body])
        self.finish_loop(exhausted, orelse, after)

    def do_top(self, count: int, tests: list, inner: list[Statement], orelse: list[Statement]) -> None:
        assert self.block is not None
        counter, header, body, exhausted, after = self.counter(), *(self.new() for _ in range(4))
        self.ssa.write(counter, self.block, Const(0, types.int64))
        self.jump(header)
        self.start(header, seal=False)
        self.tests(counter, count, tests, body, exhausted)
        self.start(body)
        self.count(counter)
        self.in_loop(header, after, inner)
        self.jump(header)
        self.ssa.seal(header, self.preds[header])
        self.finish_loop(exhausted, orelse, after)

    def do_forever(self, count: int, inner: list[Statement], returns: bool) -> None:
        assert self.block is not None
        counter, header, body, enough, after = self.counter(), *(self.new() for _ in range(4))
        self.ssa.write(counter, self.block, Const(0, types.int64))
        self.jump(header)
        self.start(header, seal=False)
        self.count(counter)
        self.branch(self.count_test(counter, count), body, enough)
        self.start(enough)
        self.jump_or_return(after, returns)
        self.start(body)
        self.in_loop(header, after, inner)
        self.jump(header)
        self.ssa.seal(header, self.preds[header])
        self.start(after)

    def do_do(self, count: int, test: tuple[str, object, object], inner: list[Statement]) -> None:
        """A loop with its test at the end only."""
        assert self.block is not None
        counter, header, latch, after = self.counter(), *(self.new() for _ in range(3))
        self.ssa.write(counter, self.block, Const(0, types.int64))
        self.jump(header)
        self.start(header, seal=False)
        self.count(counter)
        self.in_loop(latch, after, inner)
        self.jump(latch)
        self.start(latch)
        if self.block is not None:
            self.tests(counter, count, [test], header, after)
        self.ssa.seal(header, self.preds[header])
        self.start(after)

    def jump_or_return(self, after: Block, returns: bool) -> None:
        if not returns:
            self.jump(after)
            return
        assert self.block is not None
        self.block.terminator = Return((self.ssa.read("b", self.block),))
        self.block = None

    def do_leave(self, how: str, test: tuple[str, object, object], name: str) -> None:
        gone, stays = self.new(), self.new()
        self.branch(self.test(test), gone, stays)
        self.start(gone)
        assert self.block is not None
        match how:
            case "break":
                self.jump(self.loops[-1].leave)
            case "continue":
                self.jump(self.loops[-1].next)
            case "return":
                self.block.terminator = Return((self.ssa.read(name, self.block),))
            case "raise":
                self.block.terminator = Raise(ValueError, (self.ssa.read(name, self.block),))
        self.start(stays)

    def tests(self, counter: str, count: int, tests: list, body: Block, exhausted: Block) -> None:
        """`while counter < count and test and test`."""
        conditions: list[Callable[[], Operand]] = [lambda: self.count_test(counter, count)]
        conditions += [lambda test=test: self.test(test) for test in tests]
        for condition in conditions[:-1]:
            following = self.new()
            self.branch(condition(), following, exhausted)
            self.start(following)
        self.branch(conditions[-1](), body, exhausted)

    def in_loop(self, following: Block, leave: Block, inner: list[Statement]) -> None:
        """The body of a loop, and the jump that goes round again."""
        self.loops.append(_Loop(following, leave))
        self.body(inner)
        self.loops.pop()

    def finish_loop(self, exhausted: Block, orelse: list[Statement], after: Block) -> None:
        self.start(exhausted)
        self.body(orelse)
        self.jump(after)
        self.start(after)

    def counter(self) -> str:
        self.counters += 1
        name = f"k{self.counters}"
        self.ssa.declare(name, types.int64, "k")
        return name

    def count(self, counter: str) -> None:
        if self.block is not None:
            old = self.ssa.read(counter, self.block)
            new = self.emit(operator.add, (old, Const(1, types.int64)), types.int64, "k")
            self.ssa.write(counter, self.block, new)

    def count_test(self, counter: str, count: int) -> Operand:
        assert self.block is not None
        args = (self.ssa.read(counter, self.block), Const(count, types.int64))
        return self.emit(operator.lt, args, types.boolean, "c")


def build(program: list[Statement]) -> Function:
    """The function of a, b, i, j and an array x of three elements that the statements make; it returns a + b."""
    params = [Param(types.float64, "a"), Param(types.float64, "b"), Param(types.int64, "i"), Param(types.int64, "j")]
    params.append(Param(ARRAY, "x"))
    function = Function("f", params, [])
    ssa = SSABuilder(function)
    for param in params:
        ssa.declare(param.hint, param.type, param.hint, param)
    ssa.declare("d", types.float64, "d")
    builder = _Builder(function, ssa, None)
    entry = builder.new()
    ssa.seal(entry, [])
    builder.block = entry
    builder.body(program)
    if builder.block is not None:
        total = builder.emit(operator.add, tuple(ssa.read(name, builder.block) for name in "ab"), types.float64)
        builder.block.terminator = Return((total,))
    ssa.finish()
    drop_unreachable(function)
    return function


def outcomes(function: Function) -> list[str] | None:
    """Return the results of calls for some arguments, or None if one reads an undefined variable or takes too long."""
    found: list[str] = []
    for args in ((1.5, -0.5, 0, 1), (-2.0, 0.0, 3, 2), (0.25, math.nan, -1, 5)):
        x = np.array([0.5, -1.0, 3.0])
        try:
            result: object = interpret(function, *args, x, limit=20_000)
        except ValueError as error:
            result = error.args
        except StepLimitError:
            return None
        except InternalError as error:
            if "undefined" not in error.message:
                raise
            return None
        if isinstance(result, np.generic):
            result = result.item()  # what was stored need not be read: a Python float in place of NumPy's
        found.append(f"{result!r} {x.tolist()}")
    return found


def type_value(value: object, type: types.Type) -> object:
    return float(value) if type is types.float64 else value  # type: ignore[arg-type]


def _index(index: int) -> Const:
    return Const(index, types.int64)
