"""The flow graph of derivatives in a primal: the edges along which each instruction propagates them.

    %y = mul %x, %k : f64               %x -> %y
    %v = getitem %a, %i : f64           the memory of %a -> %v
    setitem %a, %v, %i                  %v -> the memory of %a
    %c = np.dot %a, %b : f64[:, :]      the memory of %a, that of %b -> that of %c

A node is a number, or the root of the memory a value reaches (see `ir.memory`): all memory that may alias is one node,
at all times. An operation without a rule is not an error here: it is assumed to propagate everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zygote_py.adjoints.analysis.kinds import carries_adjoint
from zygote_py.adjoints.rules import rule_for
from zygote_py.adjoints.rules.formulas.opaque import opaque_for
from zygote_py.ir import Instr, Memory, Operand, Phi, Routine, Value, effect, is_view, ops, writes
from zygote_py.ir.ops import Effect, Role


class Flows:
    """The edges between the nodes of a function."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._nodes: dict[Operand, Value | None] = {}

    def node(self, operand: Operand) -> Value | None:
        """Return the node of a value; None if its type is not differentiable."""
        if not isinstance(operand, Value):
            return None
        if operand not in self._nodes:
            found = carries_adjoint(operand.type)
            self._nodes[operand] = (self._memory.root(operand) or operand) if found else None
        return self._nodes[operand]

    def edges(self, value: Value) -> Iterator[tuple[Value, Value]]:
        """Yield the pairs of nodes between which a phi or an instruction propagates derivatives."""
        for source, target in _flows(value):
            start, end = self.node(source), self.node(target)
            if start is not None and end is not None and start is not end:
                yield start, end


def sources(value: Value) -> Iterator[Operand]:
    """Yield the operands whose derivatives a phi or an instruction propagates to its result or to memory it writes."""
    for source, _ in _flows(value):
        yield source


def _flows(value: Value) -> Iterator[tuple[Operand, Operand]]:
    if isinstance(value, Phi):
        for operand in value.incoming.values():
            yield operand, value
    if not isinstance(value, Instr):
        return
    record = ops.of(value.op)
    match record.role:
        case Role.BARRIER:
            pass
        case Role.STORE | Role.APPEND | Role.EXTREME:
            yield value.args[1], value.args[0]
        case Role.READ | Role.POP | Role.GUARD:
            yield value.args[0], value
        case Role.CHOOSE:
            for item in value.args[1:]:
                yield item, value
        case _ if is_view(value):
            yield value.args[0], value
        case _ if not record.contents:
            yield from _of_operation(value)


def _of_operation(instr: Instr) -> Iterator[tuple[Operand, Operand]]:
    targets: list[Operand] = [instr, *(writes(instr) if effect(instr) is Effect.WRITE else ())]
    if not any(carries_adjoint(target.type) for target in targets):
        return
    for number in through(instr):
        for target in targets:
            yield instr.args[number], target


def through(instr: Instr) -> Sequence[int]:
    """Return the numbers of the arguments in which an instruction is differentiable.

    Without a rule these are all of them, so that the instruction is refused if the result matters.
    """
    numbers = range(len(instr.args))
    if isinstance(instr.op, Routine):
        passes = instr.op.passes
        return numbers if passes is None else [number for number in numbers if number in passes]
    opaque, rule = opaque_for(instr), rule_for(instr)
    if opaque is not None:
        return [number for number in numbers if number in opaque.adjoints]
    return numbers if rule is None else [number for number in numbers if rule.passes(number)]
