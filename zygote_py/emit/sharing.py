"""Variables of one hint and type that are never alive together become one, as they mostly were in the source.

    y = f(x); a = y * y; y = g(x); ...      two values of the hint `y`, one variable

The sets of variables are ints, a bit for each variable; the live ranges are those of the statements as they will be
printed, in which inlined instructions read their operands later than they did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from zygote_py.emit.inlining import Statements
from zygote_py.emit.out_of_ssa import Variable, Variables
from zygote_py.emit.ranges import Range
from zygote_py.ir.core import Block, Function, Instr, Operand, Param, Phi, Type, Value, operands


def share_by_hint(
    function: Function, variables: Variables, statements: Statements, ranges: Mapping[Block, Range]
) -> None:
    """Merge variables in `variables`, in place."""
    live = _Liveness(function, variables, statements, ranges)
    groups: dict[tuple[str, Type], list[Variable]] = {}
    for variable in live.order:
        groups.setdefault((hint_of(variable), variable.members[0].type), []).append(variable)
    replaced: dict[Variable, Variable] = {}
    for group in groups.values():
        kept: list[
            tuple[Variable, int, int]
        ] = []  # with the bits of what it stands for and of what that interferes with
        for variable in group:
            own, after = 1 << live.number[variable], live.after[live.number[variable]]
            for index, (other, others, others_after) in enumerate(kept):
                if not (after & others or others_after & own):
                    kept[index] = (other, others | own, others_after | after)
                    replaced[variable] = other
                    break
            else:
                kept.append((variable, own, after))
    for variable, other in replaced.items():
        other.members += variable.members
        for member in variable.members:
            variables.of[member] = other
    for copies in variables.copies.values():
        for index, copy in enumerate(copies):
            if copy.target in replaced:
                copies[index] = type(copy)(replaced[copy.target], copy.source)
    variables.zeros = list(dict.fromkeys(replaced.get(variable, variable) for variable in variables.zeros))


def hint_of(variable: Variable) -> str:
    """What the variable is to be called: as its parameter, or its first phi, or its first value with a hint."""
    for kind in (Param, Phi, Value):
        for member in variable.members:
            if isinstance(member, kind) and member.hint:
                return member.hint
    return ""


class _Step(NamedTuple):
    defines: int
    uses: int


class _Liveness:
    """`after[i]` is what is live right after an assignment of the variable `i`, over all its assignments."""

    def __init__(
        self, function: Function, variables: Variables, statements: Statements, ranges: Mapping[Block, Range]
    ) -> None:
        self.variables = variables
        self.inlined = statements.inlined
        self.ranges = ranges
        printed = {root for roots in statements.roots.values() for root in roots}
        used = (value for value in function.values() if value in printed or isinstance(value, Param | Phi))
        self.order = list(dict.fromkeys(variables.of[value] for value in used))
        self.number = {variable: index for index, variable in enumerate(self.order)}
        self.after = [0] * len(self.order)
        steps = {block: list(self._steps(block, statements)) for block in function.blocks}
        entering = self._solve(function, steps)
        for block in function.blocks:
            live = self._leaving(block, entering, record=True)
            for step in reversed(steps[block]):
                self._define(step.defines, live)
                live = live & ~step.defines | step.uses
        at_start = entering[function.entry]
        for variable in (*(variables.of[param] for param in function.params), *variables.zeros):
            at_start |= 1 << self.number[variable]
        self._define(at_start, at_start)

    def _bits(self, found: tuple[Operand, ...]) -> int:
        bits = 0
        for operand in found:
            if operand in self.inlined and isinstance(operand, Instr):
                bits |= self._bits(operand.args)
            elif isinstance(operand, Value):
                bits |= 1 << self.number[self.variables.of[operand]]
        return bits

    def _steps(self, block: Block, statements: Statements) -> Iterator[_Step]:
        for instr in statements.roots[block]:
            yield _Step(self._bits((instr,)), self._bits(instr.args))
        if block not in self.ranges:
            yield _Step(0, self._bits(operands(block.terminator)))
            return
        yield _Step(self._bits((self.ranges[block].phi,)), 0)

    def _define(self, defined: int, live: int) -> None:
        rest = defined
        while rest:
            bit = rest & -rest
            rest ^= bit
            self.after[bit.bit_length() - 1] |= (live | defined) & ~bit

    def _leaving(self, block: Block, entering: Mapping[Block, int], record: bool = False) -> int:
        """What is live at the end of `block`, before the copies on its edges."""
        live = 0
        for successor in block.successors:
            copies = self.variables.copies.get((block, successor), ())
            defined = uses = 0
            for copy in copies:
                defined |= 1 << self.number[copy.target]
                uses |= self._bits((copy.source,))
            after = entering[successor]
            if successor in self.ranges and self.ranges[successor].entering is block:
                found = self.ranges[successor]
                after |= self._bits((found.start, found.bound))
            if record and defined:
                self._define(defined, after)
            live |= after & ~defined | uses
        return live

    def _solve(self, function: Function, steps: Mapping[Block, list[_Step]]) -> dict[Block, int]:
        entering = dict.fromkeys(function.blocks, 0)
        summary: dict[Block, tuple[int, int]] = {}
        preds: dict[Block, list[Block]] = {block: [] for block in function.blocks}
        for block in function.blocks:
            defines = uses = 0
            for step in reversed(steps[block]):
                uses = uses & ~step.defines | step.uses
                defines |= step.defines
            summary[block] = (defines, uses)
            for successor in block.successors:
                preds[successor].append(block)
        work = list(function.blocks)
        waiting = set(work)
        while work:
            block = work.pop()
            waiting.discard(block)
            defines, uses = summary[block]
            before = self._leaving(block, entering) & ~defines | uses
            if before == entering[block]:
                continue
            entering[block] = before
            for pred in preds[block]:
                if pred not in waiting:
                    waiting.add(pred)
                    work.append(pred)
        return entering
