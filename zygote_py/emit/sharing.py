"""Merge variables that have the same hint and type and are never live together, as they usually were in the source.

    y = f(x); a = y * y; y = g(x); ...      two values of the hint `y`, one variable

Sets of variables are ints with one bit per variable. The live ranges are those of the statements as they will be
printed, in which inlined instructions read their operands later than in the IR.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from zygote_py.emit.inlining import Statements
from zygote_py.emit.out_of_ssa import Variable, Variables
from zygote_py.emit.structure import Range
from zygote_py.ir import Block, Function, Instr, Operand, Param, Phi, Value, grouped, solve


def share_by_hint(
    function: Function, variables: Variables, statements: Statements, ranges: Mapping[Block, Range]
) -> None:
    """Merge variables in `variables`, in place."""
    live = _Liveness(function, variables, statements, ranges)
    groups = grouped(((hint_of(variable), variable.members[0].type), variable) for variable in live.order)
    replaced: dict[Variable, Variable] = {}
    for group in groups.values():
        kept: list[
            tuple[Variable, int, int]
        ] = []  # with the bits of the variables it represents and of those they interfere with
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
    for block, zeros in variables.zeros.items():
        variables.zeros[block] = list(dict.fromkeys(replaced.get(variable, variable) for variable in zeros))


def hint_of(variable: Variable) -> str:
    """Return the hint for a variable: that of its parameter, its first phi, or its first value with a hint."""
    for kind in (Param, Phi, Value):
        for member in variable.members:
            if isinstance(member, kind) and member.hint:
                return member.hint
    return ""


class _Step(NamedTuple):
    defines: int
    uses: int


_NOTHING = _Step(0, 0)


class _Liveness:
    """Liveness of variables: `after[i]` is live immediately after some assignment of the variable `i`."""

    def __init__(
        self, function: Function, variables: Variables, statements: Statements, ranges: Mapping[Block, Range]
    ) -> None:
        self.variables = variables
        self.inlined = statements.inlined
        printed = {root for roots in statements.roots.values() for root in roots}
        used = (value for value in function.values() if value in printed or isinstance(value, Param | Phi))
        self.order = list(dict.fromkeys(variables.of[value] for value in used))
        self.number = {variable: index for index, variable in enumerate(self.order)}
        self.after = [0] * len(self.order)
        steps = {block: list(self._steps(block, statements, ranges)) for block in function.blocks}
        bounds = {(found.entering, header): self._bits((found.start, found.bound)) for header, found in ranges.items()}
        edges = {edge: self._edge(edge) for edge in variables.copies}

        def at_end(block: Block, successor: Block, live: int) -> int:
            """Return what is live before the copies on an edge, given what is `live` at the start of the successor."""
            copies = edges.get((block, successor), _NOTHING)
            return (live | bounds.get((block, successor), 0)) & ~copies.defines | copies.uses

        def at_start(block: Block, live: int) -> int:
            for step in reversed(steps[block]):
                live = live & ~step.defines | step.uses
            return live

        found = solve(function, at_start, start=0, top=0, forward=False, edge=at_end)
        for (block, successor), copies in edges.items():
            self._define(copies.defines, found.before[successor] | bounds.get((block, successor), 0))
        for block, live in found.after.items():
            for step in reversed(steps[block]):
                self._define(step.defines, live)
                live = live & ~step.defines | step.uses
        given = found.before[function.entry]
        for param in function.params:
            given |= 1 << self.number[variables.of[param]]
        self._define(given, given)

    def _bits(self, found: tuple[Operand, ...]) -> int:
        bits = 0
        for operand in found:
            if operand in self.inlined and isinstance(operand, Instr):
                bits |= self._bits(operand.args)
            elif isinstance(operand, Value):
                bits |= 1 << self.number[self.variables.of[operand]]
        return bits

    def _steps(self, block: Block, statements: Statements, ranges: Mapping[Block, Range]) -> Iterator[_Step]:
        for variable in self.variables.zeros.get(block, ()):
            yield _Step(1 << self.number[variable], 0)
        for instr in statements.roots[block]:
            yield _Step(self._bits((instr,)), self._bits(instr.args))
        if block in ranges:
            yield _Step(self._bits((ranges[block].phi,)), 0)
        else:
            yield _Step(0, self._bits(block.terminator.args))

    def _edge(self, edge: tuple[Block, Block]) -> _Step:
        """Return the copies on an edge as one step; they are parallel."""
        copies = self.variables.copies[edge]
        defines = sum(1 << self.number[target] for target in {copy.target for copy in copies})
        return _Step(defines, self._bits(tuple(copy.source for copy in copies)))

    def _define(self, defined: int, live: int) -> None:
        rest = defined
        while rest:
            bit = rest & -rest
            rest ^= bit
            self.after[bit.bit_length() - 1] |= (live | defined) & ~bit
