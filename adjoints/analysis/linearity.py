"""Linearity analysis: a routine whose results are linear in some of its arguments can be transposed.

    back (%dy, %c):   %t = mul %c, %dy          linear: zero where %dy is, and its derivative is free of %dy
    back (%dy):       %t = min %dy, 1.0         not linear

A pullback must be linear in its cotangent for tangents to exist (`base/custom_rules.py`). Each number, and all
memory that may alias, has one of four states, computed by iteration to a fixpoint. The analysis is conservative: a
routine with a branch that depends on the argument is not linear, for example.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np
from numba import types

from zygote_py.adjoints.analysis.byte_views import is_exact
from zygote_py.adjoints.rules import rule_for, uses
from zygote_py.adjoints.rules.formulas.opaque import opaque_for
from zygote_py.ir import (
    Branch,
    Const,
    Function,
    Instr,
    Loc,
    Memory,
    Operand,
    Routine,
    Value,
    draws,
    has_memory,
    is_view,
    ops,
    results_of,
    writes,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import FILLS, Role


class State(enum.IntEnum):
    """The dependence of a value on the arguments under analysis."""

    ZERO = 0  # the value is zero
    FREE = 1  # no dependence
    LINEAR = 2
    OTHER = 3

    def __or__(self, other: int) -> State:
        """Return the state of a merge or a sum of two values."""
        return State(max(self, other)) if State.ZERO in (self, other) or self == other else State.OTHER


ZERO, FREE, LINEAR, OTHER = State


@dataclass
class _Summary:
    """The effects of a call with arguments in given states: the results, and the final memory of arguments."""

    results: list[State] = field(default_factory=list)
    written: dict[int, State] = field(default_factory=dict)
    loc: Loc | None = None  # of the first nonlinear operation
    branches: bool = False  # on conditions that depend on the arguments


_Known = Callable[[Routine, tuple[State, ...]], _Summary]


class Linearity:
    """Analyzes routines, once for each combination of argument states."""

    def __init__(self) -> None:
        self._made: dict[tuple[Routine, tuple[State, ...]], _Summary] = {}
        self._changed = False

    def culprit(self, routine: Routine, linear: Sequence[int], results: Sequence[int]) -> tuple[bool, Loc | None]:
        """Return whether results, by index, are linear in the parameters numbered in `linear`; if not, where not."""
        params = routine.function.params
        key = routine, tuple(LINEAR if number in linear else FREE for number in range(len(params)))
        self._summary(*key)
        self._changed = True
        while self._changed:
            self._changed = False
            for each in list(self._made):
                self._look(*each)
        found = self._made[key]
        is_linear = not found.branches and all(found.results[number] in (ZERO, LINEAR) for number in results)
        return is_linear, found.loc or routine.function.loc

    def _summary(self, routine: Routine, states: tuple[State, ...]) -> _Summary:
        if (routine, states) not in self._made:
            self._made[routine, states] = _Summary()
            self._changed = True
        return self._made[routine, states]

    def _look(self, routine: Routine, states: tuple[State, ...]) -> None:
        found = _Look(self._summary, routine.function, states).run()
        if found != self._made[routine, states]:
            known = self._made[routine, states]
            if (known.results, known.written, known.branches) != (found.results, found.written, found.branches):
                self._changed = True
            self._made[routine, states] = found


class _Look:
    """The analysis of one function."""

    def __init__(self, summary: _Known, function: Function, states: Sequence[State]) -> None:
        self._summary = summary
        self._function = function
        self._memory = Memory(function)
        self._states: dict[Value, State] = {}
        self._items: dict[Value, list[State]] = {}  # of the tuples that routines return
        self._loc: Loc | None = None
        self._changed = False
        self._branches = False
        for param, state in zip(function.params, states, strict=True):
            self._set(param, state)

    def run(self) -> _Summary:
        """Visit all instructions until nothing changes."""
        self._changed = True
        while self._changed:
            self._changed = False
            for block in self._function.blocks:
                for phi in block.phis:
                    self._set(phi, self._joined(tuple(phi.incoming.values())))
                for instr in block.instrs:
                    self._step(instr)
                match block.terminator:
                    case Branch(condition) if self._of(condition) in (LINEAR, OTHER):
                        self._branches = True
        found = _Summary(loc=self._loc, branches=self._branches)
        for _, end in self._function.returns():
            found.results = self._returned(end.args[0])
        for number, param in enumerate(self._function.params):
            if has_memory(param.type):
                found.written[number] = self._of(param)
        return found

    def _returned(self, value: Operand) -> list[State]:
        return self._items.get(value, [self._of(value)]) if isinstance(value, Value) else [self._of(value)]

    def _of(self, operand: Operand) -> State:
        match operand:
            case Const(value=int() | float() | complex() | np.number() as value):
                return ZERO if value == 0 else FREE
            case Value():
                held = self._states.get(self._memory.root(operand) or operand, ZERO)
                return held | self._states.get(operand, ZERO)
            case _:  # not a number
                return ZERO

    def _set(self, value: Operand, state: State) -> None:
        """Add a possible state of a value, or of the memory that it reaches."""
        if isinstance(value, Value):
            node = value if isinstance(value.type, types.BaseTuple) else self._memory.root(value) or value
            before = self._states.get(node, ZERO)
            if before | state != before:
                self._states[node] = before | state
                self._changed = True

    def _joined(self, operands: Sequence[Operand]) -> State:
        found = ZERO
        for each in operands:
            found |= self._of(each)
        return found

    def _step(self, instr: Instr) -> None:
        if isinstance(instr.op, Routine):
            self._call(instr, instr.op)
            return
        state = self._result(instr)
        stores = ops.of(instr.op).role in FILLS
        targets = [*writes(instr)] if instr.op is not ops.pop else []
        if state is OTHER and (targets or instr.type != types.none) and OTHER not in map(self._of, instr.args):
            self._blame(instr.loc)
        for target in targets[:1] if stores else [*targets, instr]:
            self._set(target, state)

    def _result(self, instr: Instr) -> State:
        """Return the state of the value that an instruction returns or stores."""
        op, args = instr.op, instr.args
        match instr:
            case Instr(args=(Value() as whole, Const(value=int(number)))) if op is ops.getitem and whole in self._items:
                return self._items[whole][number] if self._items[whole] else ZERO
        record = ops.of(op)
        if record.contents:
            return ZERO
        match record.role:
            case Role.LENGTH | Role.CHECK:
                return FREE
            case Role.STORE | Role.APPEND:
                return self._moved(instr, args[1:2], args[2:])
            case Role.READ:
                return self._moved(instr, args[:1], args[1:])
            case Role.CHOOSE:
                return self._moved(instr, args[1:], args[:1])
            case Role.POP:
                return self._moved(instr, args, ())
            case Role.PACK:
                self._items[instr] = list(map(self._of, args))
                return self._joined([arg for arg in args if not has_memory(arg.type)])
            case Role.COPY:
                return self._joined(args)
        if is_view(instr):
            return self._moved(instr, args[:1], ())
        return self._joined(args) if op is ops.const else self._of_operation(instr)

    def _moved(self, instr: Instr, carried: Sequence[Operand], others: Sequence[Operand]) -> State:
        """Return the state of operands that an instruction moves unchanged; the others select which and where to."""
        if any(self._of(other) in (LINEAR, OTHER) for other in others if not has_memory(other.type)):
            return OTHER
        found = self._joined(carried)
        bytes_only = instr.op is ops.view and not is_exact(instr)
        return OTHER if bytes_only and found in (LINEAR, OTHER) else found

    def _of_operation(self, instr: Instr) -> State:
        """Return the state of the result, which grows monotonically as arguments leave the state ZERO."""
        states = [self._of(arg) for arg in instr.args]
        linear = [number for number, state in enumerate(states) if state is LINEAR]
        if OTHER in states:
            return OTHER
        if linear:
            return LINEAR if self._is_linear(instr, linear, states) else OTHER
        if ops.of(instr.op).sums:
            return FREE if FREE in states else ZERO
        zeros = [number for number, state in enumerate(states) if state is ZERO]
        return ZERO if any(self._is_linear(instr, [number], states) for number in zeros) else FREE

    def _is_linear(self, instr: Instr, linear: Sequence[int], states: Sequence[State]) -> bool:
        """Return whether an operation is jointly linear in some of its arguments."""
        if draws(instr):
            return False
        opaque = opaque_for(instr)
        if opaque is not None:
            needed = opaque.needed([number for number in linear if number in opaque.adjoints])
            own = {opaque.names[number] for number in linear}
            passes = all(number in opaque.adjoints for number in linear)
            return passes and not needed & own and not any(name[:1] == "y" for name in needed)
        rule = rule_for(instr)
        if rule is None or not all(rule.passes(number) for number in linear):
            return False
        used = frozenset[str]().union(*(uses(rule, number) for number in linear))
        if "y" in used or used & {rule.names[number] for number in linear}:
            return False
        return FREE not in states or ops.of(instr.op).scales

    def _call(self, instr: Instr, routine: Routine) -> None:
        states = tuple(map(self._of, instr.args))
        ignored = routine.passes is not None and not routine.is_custom and LINEAR in states
        found = (
            _Summary([OTHER] * len(results_of(routine.function)), loc=instr.loc)
            if ignored
            else self._summary(routine, states)
        )
        if found.loc is not None:
            self._blame(found.loc)
        self._branches |= found.branches
        for number, state in found.written.items():
            if number in routine.writes:
                self._set(instr.args[number], state)
        if isinstance(instr.type, types.BaseTuple):
            self._items[instr] = found.results
        elif found.results:
            self._set(instr, found.results[0])

    def _blame(self, loc: Loc | None) -> None:
        self._loc = self._loc or loc
