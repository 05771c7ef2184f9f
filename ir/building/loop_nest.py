"""Loop nests that count up, in canonical form, to be filled with instructions.

    nest = Nest(block, [n, m], "ij")        b0: jump b1
                                            b1: %i: i64 = phi b0: 0, b4: %i2
                                                %c = lt %i, %n : bool
                                                branch %c, b2, b5
                                            b2: jump b3                         bodies[0]
                                            b3: (the same for %j)
                                            b4: %i2 = add %i, 1 : i64           ends[0]
                                                jump b1
                                            b5: (after)

Instructions in `bodies[k]` run before the next inner loop, those in `ends[k]` after it. A nest without loops is the
block itself.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from numba import types

from zygote_py.ir.analysis.loops import CountedLoop
from zygote_py.ir.building.builder import Builder
from zygote_py.ir.core import Block, Branch, Const, Instr, Jump, Loc, Operand, Phi, Type
from zygote_py.ir.lazy_dataclass import dataclass

INDEX = types.int64


def rounds_by_one(b: Builder, count: CountedLoop) -> Operand:
    """Append the number of iterations of a loop that counts up or down by one; it may be negative."""
    first, second = (count.start, count.bound) if count.step > 0 else (count.bound, count.start)
    length: Operand = b.call(operator.sub, second, first, type=INDEX)
    past = count.step * count.comparison.past
    return b.call(operator.add, length, Const(past, INDEX), type=INDEX) if past else length


@dataclass(eq=False)
class Accumulator:
    """A number carried around the loops of a nest from `depth` on: its phis, and the next value of the last one."""

    depth: int
    phis: list[Phi]

    @property
    def inner(self) -> Phi:
        """Return the value at the start of an innermost iteration."""
        return self.phis[-1]

    @property
    def outer(self) -> Phi:
        """Return the value after the loops."""
        return self.phis[0]


class Nest:
    """A loop nest; each loop runs from `start`, which is 0 by default, to its bound by `step`."""

    def __init__(
        self,
        before: Block,
        bounds: Sequence[Operand],
        hints: Sequence[str],
        loc: Loc | None,
        start: Operand | None = None,
        step: int = 1,
    ) -> None:
        self.before = before
        self.loc = loc
        self._start = Const(0, INDEX) if start is None else start
        self._step = Const(step, INDEX)
        self.headers: list[Block] = []
        self.bodies: list[Block] = []
        self.counters: list[Phi] = []
        self._accumulators: list[tuple[Accumulator, Operand]] = []
        block = before
        for bound, hint in zip(bounds, hints, strict=True):
            header, body = Block(loc), Block(loc)
            counter = Phi(INDEX, hint, loc)
            test = Instr(operator.lt, (counter, bound), types.boolean, "c", loc)
            header.phis, header.instrs = [counter], [test]
            header.terminator = Branch(test, body, body)  # the exit is set at the end
            block.terminator = Jump(header)
            self.headers.append(header)
            self.bodies.append(body)
            self.counters.append(counter)
            block = body
        self.after = Block(loc) if self.headers else before
        self.ends = [*(Block(loc) for _ in self.headers[1:]), *self.bodies[-1:]]

    @property
    def depth(self) -> int:
        """Return the number of loops."""
        return len(self.headers)

    def block(self, level: int) -> Block:
        """Return the block for code that depends on the counter of a loop and no inner one; -1: before all loops."""
        return self.bodies[level] if level >= 0 else self.before

    def end(self, level: int) -> Block:
        """Return the block for code after the loop just inside of a loop; -1: after all loops."""
        return self.ends[level] if level >= 0 else self.after

    def accumulate(self, depth: int, start: Operand, type: Type, hint: str) -> Accumulator:
        """Carry a number from `start` around the loops from `depth` on; `set_next` sets its next value."""
        phis = [Phi(type, hint, self.loc) for _ in self.headers[depth:]]
        for level, phi in enumerate(phis, depth):
            self.headers[level].phis.append(phi)
            phi.incoming[self.block(level - 1)] = start if level == depth else phis[level - depth - 1]
        return Accumulator(depth, phis)

    def set_next(self, accumulator: Accumulator, value: Operand) -> None:
        """Set the value of an accumulator after an innermost iteration."""
        self._accumulators.append((accumulator, value))

    def finish(self) -> list[Block]:
        """Close the loops and return the new blocks in order, ending with the one after the loops."""
        for level, header in enumerate(self.headers):
            end = self.ends[level]
            counter = self.counters[level]
            following = Instr(operator.add, (counter, self._step), INDEX, counter.hint, self.loc)
            end.instrs.append(following)
            end.terminator = Jump(header)
            counter.incoming = {self.block(level - 1): self._start, end: following}
            assert isinstance(header.terminator, Branch)
            header.terminator.orelse = self.end(level - 1)
        for accumulator, value in self._accumulators:
            for level, phi in enumerate(accumulator.phis, accumulator.depth):
                last = level + 1 == self.depth
                phi.incoming[self.ends[level]] = value if last else accumulator.phis[level + 1 - accumulator.depth]
        if not self.headers:
            return []
        opening = [block for pair in zip(self.headers, self.bodies, strict=True) for block in pair]
        return [*opening, *reversed(self.ends[:-1]), self.after]
