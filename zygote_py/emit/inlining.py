"""Choose which instructions become part of an expression and which become statements.

    %t = mul %dr, %r : f64
    %dx2 = add %dx1, %t : f64           dx = dx + dr * r

An instruction without effects moves to its only use if the use is in the same block and nothing in between changes what
it reads: none of the variables in its operands is assigned, and, if it reads memory or may raise, nothing is written.
Values that have a name in the source remain variables, so that the emitted code can be compared with the source.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable, Mapping, Sequence

from numba import types

from zygote_py.emit.out_of_ssa import Variable, Variables
from zygote_py.emit.structure import Range
from zygote_py.ir import Block, Const, Function, Instr, Operand, Phi, Value, ops, uses
from zygote_py.ir.analysis import effects
from zygote_py.ir.lazy_dataclass import dataclass

# The approximate maximum width of an expression; longer lines are hard to read.
WIDTH = 64
# Of more, CPython makes a list before the call, in which Numba takes no conditional expressions.
_MOST_ARGUMENTS = 30
# Hints that do not name a variable of the source: the compiler gives them to unnamed values.
_NAMELESS = ("", "c", "e", "t")


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements of each block, `roots`, and the instructions that are `inlined` in other expressions."""

    roots: Mapping[Block, list[Instr]]
    inlined: frozenset[Value]


@dataclass(frozen=True, slots=True)
class _Expression:
    """An instruction that may still move: the variables it reads, and its approximate width."""

    leaves: frozenset[Variable]
    guarded: bool
    width: int


def is_movable(instr: Instr) -> bool:
    """Return whether `instr` may be computed anywhere in its block: it has no effect and reads no memory."""
    return effects.effect(instr) is ops.Effect.PURE


def choose_statements(
    function: Function, order: Mapping[Block, Sequence[Instr]], variables: Variables, ranges: Mapping[Block, Range]
) -> Statements:
    """Decide for every instruction of `function` whether it is a statement or a part of one."""
    removed: set[Value] = {instr for found in ranges.values() for instr in found.removed}
    at_end: dict[Block, tuple[Operand, ...]] = {
        found.entering: (found.start, found.bound) for found in ranges.values() if len(found.entering.successors) == 1
    }
    bounds = {operand for found in ranges.values() for operand in (found.start, found.bound)}
    chooser = _Chooser(variables, _use_counts(function, ranges, removed), bounds, _filled(function))
    roots: dict[Block, list[Instr]] = {}
    for block in function.blocks:
        roots[block] = []
        chooser.pending.clear()
        for instr in order[block]:
            if instr not in removed and not chooser.is_dead(instr) and chooser.is_root(instr):
                roots[block].append(instr)
        chooser.take(block.terminator.args)
        if block in at_end:
            # The copies on the edge into the loop precede its `for`.
            for copy in variables.copies.get((block, block.successors[0]), []):
                chooser.assigned(copy.target)
            chooser.take(at_end[block])
    inlined = frozenset(chooser.inlined)
    for block, instrs in roots.items():
        keep = set(instrs) | (chooser.candidates - inlined)
        roots[block] = [instr for instr in order[block] if instr in keep]
    return Statements(roots, inlined)


def _use_counts(function: Function, ranges: Mapping[Block, Range], removed: set[Value]) -> dict[Value, int]:
    """Count the uses of each value. A use by a phi counts as several: such a value needs its own variable."""
    counters = {found.phi for found in ranges.values()}
    counts: dict[Value, int] = dict.fromkeys(function.values(), 0)
    for value, found in uses(function).items():
        users = [use.user for use in found if use.user not in counters and use.user not in removed]
        counts[value] = sum(2 if isinstance(user, Phi) else 1 for user in users)
    for counting in ranges.values():
        counts[counting.removed[0]] = 0  # the condition, which the branch uses
        for operand in (counting.start, counting.bound):
            if isinstance(operand, Value):
                counts[operand] += 1
    return counts


def _filled(function: Function) -> set[Operand]:
    """Return the slices that are assigned as a whole: they are written on the left of the `=`."""
    return {instr.args[0] for instr in function.instrs() if instr.op is ops.setitem and len(instr.args) == 2}


class _Chooser:
    """Walks through a block; `pending` are the expressions that may still move to a later use."""

    def __init__(
        self,
        variables: Variables,
        counts: Mapping[Value, int],
        bounds: Collection[Operand],
        filled: Collection[Operand],
    ) -> None:
        self.bounds = bounds
        self.filled = filled
        self.variables = variables
        self.counts = counts
        self.pending: dict[Value, _Expression] = {}
        self.inlined: set[Value] = set()
        self.candidates: set[Value] = set()

    def is_dead(self, instr: Instr) -> bool:
        idle = effects.effect(instr) is not ops.Effect.WRITE and not ops.of(instr.op).may_raise
        return self.counts[instr] == 0 and idle

    def is_root(self, instr: Instr) -> bool:
        """Return whether `instr` must be a statement; otherwise it is pending until its use."""
        if self._is_constant_slice(instr):
            self.inlined.add(instr)
            return False
        inner = self.take(instr.args, _width(instr)) if len(instr.args) <= _MOST_ARGUMENTS else []
        leaves = {self.variables.of[arg] for arg in instr.args if isinstance(arg, Value) and arg not in self.inlined}
        effect = effects.effect(instr)
        guarded = ops.of(instr.op).may_raise or effect is ops.Effect.READ
        width = _width(instr) + sum(_operand_width(arg) for arg in instr.args if arg not in self.inlined)
        for expression in inner:
            leaves |= expression.leaves
            guarded |= expression.guarded
            width += expression.width + 2
        if self.counts[instr] == 1 and self._can_move(instr, effect) and width <= WIDTH:
            self.pending[instr] = _Expression(frozenset(leaves), guarded, width)
            self.candidates.add(instr)
            return False
        self.assigned(self.variables.of[instr])
        if effect is ops.Effect.WRITE:
            self.pending = {value: expression for value, expression in self.pending.items() if not expression.guarded}
        return True

    def _is_constant_slice(self, instr: Instr) -> bool:
        """Return whether `instr` is written as a slice, `1:`, wherever it is used."""
        return (
            instr.op is builtins.slice
            and all(isinstance(bound, Const) for bound in instr.args)
            and len(self.variables.of[instr].members) == 1
        )

    def _can_move(self, instr: Instr, effect: ops.Effect) -> bool:
        if effect not in (ops.Effect.PURE, ops.Effect.READ):
            return False
        if isinstance(instr.type, types.Array) and not (instr.op is ops.getitem and instr in self.filled):
            return False
        if len(self.variables.of[instr].members) > 1:
            return False
        return instr.hint in _NAMELESS or instr.op in (builtins.slice, ops.pack) or instr in self.bounds

    def take(self, found: Iterable[Operand], used: int = 0) -> list[_Expression]:
        """Move the pending expressions among the operands into their user, as many as fit."""
        taken = []
        for operand in found:
            if isinstance(operand, Value) and operand in self.pending:
                expression = self.pending[operand]
                if used + expression.width > WIDTH:
                    continue
                used += expression.width
                del self.pending[operand]
                self.inlined.add(operand)
                taken.append(expression)
        return taken

    def assigned(self, variable: Variable) -> None:
        self.pending = {value: found for value, found in self.pending.items() if variable not in found.leaves}


def _width(instr: Instr) -> int:
    return 3 if ops.module_of(instr.op) == "_operator" else len(ops.name_of(instr.op)) + 2


def _operand_width(operand: Operand) -> int:
    if isinstance(operand, Const):
        return len(operand.key)
    return max(len(operand.hint), 1) + 2 if isinstance(operand, Value) else 3
