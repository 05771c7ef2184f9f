"""Where derivatives flow in a primal: from what to what each instruction passes them on.

    %y = mul %x, %k : f64               %x -> %y
    %v = getitem %a, %i : f64           the memory of %a -> %v
    setitem %a, %v, %i                  %v -> the memory of %a
    %c = np.dot %a, %b : f64[:, :]      the memory of %a, that of %b -> that of %c

A node is a number, or the root of what a value reaches (see `ir.memory`): all the memory that may be the same is one
node, at all times. That an operation has no rule is not complained of here: it is taken to pass on everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zygote_py.adjoints.kinds import carries_adjoint
from zygote_py.adjoints.rules import rule_for
from zygote_py.adjoints.rules.opaque import opaque_for
from zygote_py.ir import ops
from zygote_py.ir.core import Instr, Operand, Phi, Routine, Value
from zygote_py.ir.memory import Memory, effect, is_view, writes
from zygote_py.ir.ops import Effect, Role


class Flows:
    """The edges between the nodes of a function."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def node(self, operand: Operand) -> Value | None:
        """The node of a value; None if it can carry no derivative."""
        if not isinstance(operand, Value) or not carries_adjoint(operand.type):
            return None
        return self._memory.root(operand) or operand

    def edges(self, value: Value) -> Iterator[tuple[Value, Value]]:
        """The pairs of nodes between which a phi or an instruction passes derivatives on."""
        for source, target in _flows(value):
            start, end = self.node(source), self.node(target)
            if start is not None and end is not None and start is not end:
                yield start, end


def sources(value: Value) -> Iterator[Operand]:
    """The operands that a phi or an instruction passes a derivative through to its result, or to what it writes to."""
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
        case Role.STORE | Role.APPEND:
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
    targets: list[Operand] = [instr]
    if effect(instr) is Effect.WRITE:
        targets += writes(instr)
    if not any(carries_adjoint(target.type) for target in targets):
        return
    for number in through(instr):
        for target in targets:
            yield instr.args[number], target


def through(instr: Instr) -> Sequence[int]:
    """The numbers of the arguments that a derivative flows through.

    Without a rule it is taken to flow through all, so that the instruction is refused if the result matters.
    """
    numbers = range(len(instr.args))
    if isinstance(instr.op, Routine):
        passes = instr.op.passes
        return numbers if passes is None else [number for number in numbers if number in passes]
    opaque, rule = opaque_for(instr), rule_for(instr)
    if opaque is not None:
        return [number for number in numbers if number in opaque.adjoints]
    return numbers if rule is None else [number for number in numbers if rule.passes(number)]
