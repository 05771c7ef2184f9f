"""The reference interpreter, which runs functions of the IR directly and serves as the oracle for every pass.

    trace = Trace()
    interpret(primal, 2.0, 3, trace=trace)            # 8.0
    interpret_adjoint(adjoint, trace, 1.0)            # (12.0, None)

Every instruction executes the call `op(*args)` that it represents, with Python's semantics: an int does not overflow,
and a division of Python floats by zero raises. Constants of types that Python does not have, such as `f32(2.0)`, are
NumPy scalars. Exceptions raised by the function propagate unchanged.

An adjoint runs against the trace of its primal, with no record and no stack: the executions of a block that reverses
`b` visit the executions of `b` in the trace from the last to the first, and an alpha is the latest definition of its
value at or before that execution. Arrays are traced by reference: an alpha of an array is the array in its current
state.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import field
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import (
    Alpha,
    Block,
    Branch,
    CameFrom,
    Const,
    Function,
    Instr,
    InternalError,
    Jump,
    Operand,
    Raise,
    Return,
    Routine,
    Type,
    Undef,
    Value,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.text.printer import Names, text

LIMIT = 1_000_000

_PYTHON = frozenset({types.float64, types.complex128, types.int64, types.boolean, types.none, types.unicode_type})


class StepLimitError(RuntimeError):
    """A function executed more blocks than allowed."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One execution of a block, with the values it defined; that of the entry includes the arguments."""

    block: Block
    values: dict[Value, object]


@dataclass(slots=True, eq=False)
class Trace:
    """The block executions of one call, in order."""

    steps: list[Step] = field(default_factory=list)


class _Undefined:
    """The value of an `undef`; phis pass it on, a number may be saved as zero, and any other read of it fails."""


_UNDEFINED = _Undefined()


def interpret(function: Function, *args: object, trace: Trace | None = None, limit: int = LIMIT) -> object:
    """Call `function`, which is not an adjoint. Return its value, or a tuple if it returns several.

    The blocks it executes are appended to `trace`. Raises StepLimitError after `limit` blocks.
    """
    results = _Machine(function, args, None).run(trace, limit)
    return results[0] if len(results) == 1 else results or None


def interpret_adjoint(adjoint: Function, trace: Trace, *seeds: object, limit: int = LIMIT) -> tuple[object, ...]:
    """Call `adjoint` for the execution of its primal recorded in `trace`, and return the adjoints it returns."""
    return _Machine(adjoint, seeds, _Rewind(trace)).run(None, limit)


class _Rewind:
    """The position of an adjoint in a primal's trace."""

    def __init__(self, trace: Trace) -> None:
        self.steps = trace.steps
        self.position = len(trace.steps)
        self.here: set[Block] = set()  # the adjoint blocks executed at this position
        self.executions: defaultdict[Block, list[int]] = defaultdict(list)
        self.definitions: defaultdict[Value, list[int]] = defaultdict(list)
        for index, step in enumerate(trace.steps):
            self.executions[step.block].append(index)
            for value in step.values:
                self.definitions[value].append(index)

    def enter(self, block: Block) -> None:
        """Go back to the matching execution; several blocks may reverse one block, each once per execution."""
        mirror = block.mirror
        if mirror is None:
            return
        executions = self.executions[mirror]
        current = self.position < len(self.steps) and self.steps[self.position].block is mirror
        if current and block not in self.here:
            self.here.add(block)
            return
        before = bisect_left(executions, self.position)
        if before == 0:
            raise InternalError("the adjoint executes a block more often than the primal did")
        self.position = executions[before - 1]
        self.here = {block}

    def alpha(self, value: Value) -> object:
        definitions = self.definitions[value]
        before = bisect_right(definitions, self.position)
        if before == 0:
            raise InternalError("the adjoint reads an alpha that the primal had not computed")
        return self.steps[definitions[before - 1]].values[value]

    def came_from(self, question: CameFrom) -> bool:
        executions = self.executions[question.block]
        before = bisect_right(executions, self.position)
        if before == 0:
            raise InternalError("the adjoint queries how the primal entered a block that was not executed")
        execution = executions[before - 1]
        return execution > 0 and self.steps[execution - 1].block is question.pred


class _Machine:
    """One call of a function."""

    def __init__(self, function: Function, args: tuple[object, ...], rewind: _Rewind | None) -> None:
        if len(args) != len(function.params):
            raise TypeError(f"{function.name} takes {len(function.params)} arguments, not {len(args)}")
        self.function = function
        self.rewind = rewind
        self.values: dict[Value, object] = dict(zip(function.params, args, strict=True))

    def run(self, trace: Trace | None, limit: int) -> tuple[object, ...]:
        pred: Block | None = None
        block = self.function.entry
        step = dict(self.values)
        for _ in range(limit):
            # All phis are read before any is written, and before the block is entered.
            if pred is not None:
                step = {phi: self.passed(phi.incoming[pred]) for phi in block.phis}
                self.values |= step
            if self.rewind is not None:
                self.rewind.enter(block)
            if trace is not None:
                trace.steps.append(Step(block, step))
            for instr in block.instrs:
                step[instr] = self.values[instr] = self.compute(instr)
            pred = block
            match block.terminator:
                case Jump(target):
                    block = target
                case Branch(condition, then, orelse):
                    block = then if bool(self.read(condition)) else orelse
                case Return(results):
                    return tuple(map(self.read, results))
                case Raise(None, _):
                    raise RuntimeError("No active exception to reraise")
                case Raise(exception, args):
                    assert exception is not None
                    raise exception(*map(self.read, args))
        raise StepLimitError(f"{self.function.name} executed {limit} blocks without coming to an end")

    def passed(self, operand: Operand) -> object:
        """Return the operand of a phi, which may be undefined."""
        match operand:
            case Const(value, type):
                return value if type in _PYTHON else _scalar(value, type)
            case Undef():
                return _UNDEFINED
            case Alpha(value):
                return self.matching().alpha(value)
            case _ if operand in self.values:
                return self.values[operand]
            case _:
                raise self.fault(f"{Names(self.function).operand(operand)} has no value yet")

    def read(self, operand: Operand) -> object:
        value = self.passed(operand)
        if value is _UNDEFINED:
            raise self.fault(f"{Names(self.function).operand(operand)} is read and undefined")
        return value

    def saved(self, operand: Operand) -> object:
        """Return an operand that is saved in any case: a number is zero if it is undefined."""
        value, type = self.passed(operand), operand.type
        if value is not _UNDEFINED or not isinstance(type, types.Number | types.Boolean):
            return self.read(operand)
        return False if type == types.boolean else _scalar(0, type)

    def compute(self, instr: Instr) -> object:
        if isinstance(instr, CameFrom):
            return self.matching().came_from(instr)
        saves = instr.op is ops.pack or ops.of(instr.op).role in ops.FILLS
        args = [(self.saved if saves else self.read)(operand) for operand in instr.args]
        if isinstance(instr.op, Routine):
            return interpret(instr.op.function, *args)
        if not instr.keywords:
            return _call(instr, args)
        first = len(args) - len(instr.keywords)
        return instr.op(*args[:first], **dict(zip(instr.keywords, args[first:], strict=True)))

    def matching(self) -> _Rewind:
        if self.rewind is None:
            raise self.fault("an adjoint runs against a trace of its primal: interpret_adjoint")
        return self.rewind

    def fault(self, message: str) -> InternalError:
        return InternalError(message, "interpret", text(self.function))


def _call(instr: Instr, args: list[Any]) -> object:
    """Return the result of an instruction, whose type determines the element type of a created array."""
    type = instr.type
    if instr.op is ops.view:
        kind = type.dtype if isinstance(type, types.Array) else type
        source = args[0] if isinstance(args[0], np.ndarray) else _scalar(args[0], instr.args[0].type)
        return ops.view(source, np.dtype(str(kind)))
    if isinstance(type, types.Array):
        dtype = np.dtype(str(type.dtype))
        if ops.of(instr.op).role is ops.Role.ALLOCATE:
            return (np.empty if instr.op is ops.record else np.zeros)(args, dtype)
        if instr.op is np.copy:
            return args[0].astype(dtype)
        if instr.op in (np.reshape, np.broadcast_to) or (instr.op is np.transpose and len(args) > 1):
            return instr.op(args[0], tuple(args[1:]))
        # In Numba a float next to an array of float32 is a float64.
        args = [np.float64(arg) if isinstance(arg, float) else arg for arg in args]
    return instr.op(*args)


def _scalar(value: object, type: Type) -> object:
    """Return a constant of a type that is not a Python type, as a NumPy scalar."""
    if not isinstance(type, types.Number):
        return value
    scalar: object = getattr(np, str(type))(value)
    return scalar
