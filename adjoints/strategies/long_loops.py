"""Division of the loops that `checkpointed` marks into segments, to reduce the residuals of the derivative.

    for i in checkpointed(range(n)):            stride = segment_length(n, 0)
        x = step(x)                             i = 0
                                      ->        while i < n:
                                                    x, i = f_steps(x, i, segment_end(i, stride, n))

`f_steps` continues the loop from `i`. It is a routine with a checkpoint: its derivative saves its arguments, and runs
it again (`adjoints/strategies/checkpoint.py`). With a number of snapshots the whole loop is one such routine, and its
derivative divides it further (`adjoints/strategies/binomial.py`).

A segment returns new arrays, so that none of its results is one of its arguments: this is unobservable if none of them
is written to afterwards, and refused otherwise.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.strategies.binomial import Snapshots
from zygote_py.adjoints.strategies.checkpoint import Checkpoint
from zygote_py.adjoints.strategies.outlined_loops import (
    call_in_place,
    call_outlined,
    copied_instrs,
    is_harmless,
    return_copies,
    written_after_return,
)
from zygote_py.ir import (
    Block,
    Branch,
    Builder,
    Const,
    Function,
    Instr,
    Jump,
    Loop,
    Memory,
    Operand,
    Param,
    Phi,
    Routine,
    Value,
    add_counter,
    check_after,
    define,
    find_effects,
    has_memory,
    helper,
    inputs_of,
    is_view,
    loop_nest,
    ops,
    outlined_body,
    outlined_loop,
    reach,
    replace,
    replace_loop,
    replace_uses,
    shares_what_it_writes,
    writes,
)

INT = types.int64


@helper
def segment_length(count: int, segments: int) -> int:
    """How many iterations a segment has; of as many as it has segments, if their number is not given."""
    if segments < 1:
        segments = int(np.sqrt(count))
    segments = max(segments, 1)
    return max((count + segments - 1) // segments, 1)


@helper
def segment_end(start: int, stride: int, stop: int) -> int:
    """Where a segment stops counting that starts here."""
    return min(start + stride, stop) if stride > 0 else max(start + stride, stop)


def divide_loops(function: Function) -> list[Routine]:
    """Divide the marked loops of a function in canonical form, inner ones first; return the resulting routines.

    Raises DifferentiationError for loops that cannot be divided.
    """
    made: list[Routine] = []
    while (found := _marked(function)) is not None:
        loop, mark = found
        made += _Division(function, loop, mark).divide()
    replace(function, {instr: instr.args[0] for instr in function.instrs() if _is_mark(instr)})
    return made


def check_returned(functions: Sequence[Function], routines: Collection[Routine]) -> None:
    """Refuse writes to results of routines that are arguments if a loop over `checkpointed` never runs.

    Raises DifferentiationError.
    """
    marked = [each for each in routines if any(map(_is_mark, each.function.instrs()))]
    if marked and (call := written_after_return(functions, marked)) is not None:
        raise refuse(
            f"`{call.op.__name__}` may return one of its arguments through a loop over `checkpointed`, and something is"
            " written to it afterwards",
            call.loc,
            "return a copy",
        )


def _is_mark(value: object) -> bool:
    return isinstance(value, Instr) and value.op is ops.checkpointed


def _marked(function: Function) -> tuple[Loop, Instr] | None:
    """Return an innermost marked loop, and its mark, which is the bound of the loop."""
    for loop in reversed(loop_nest(function).loops):
        for instr in loop.header.instrs:
            for arg in instr.args:
                if isinstance(arg, Instr) and _is_mark(arg) and arg not in loop.values:
                    return loop, arg
    return None


class _Division:
    """The division of one loop."""

    def __init__(self, function: Function, loop: Loop, mark: Instr) -> None:
        self._function = function
        self._loop = loop
        self._mark = mark
        self._loc = loop.header.loc or function.loc
        (self._before,) = loop.entering
        self._counter, self._step = self._counting()

    def divide(self) -> list[Routine]:
        """Replace the loop by calls of routines."""
        stop, segments, snapshots = self._mark.args
        with_snapshots = snapshots != Const(0, INT)
        if with_snapshots:
            add_counter(self._loop, "count", self._loc)
            self._loop.forget_values()
        self._check(Memory(self._function))
        for phi in self._loop.header.phis:
            define([phi], self._before)
        inputs = self._inputs(Memory(self._function))
        self._loop.forget_values()
        steps = Routine(f"{self._function.name}_steps")
        steps.derivation = Checkpoint()
        steps.function = outlined_loop(self._function, self._loop, steps.__name__, inputs)
        made = [steps]
        if with_snapshots:
            body = Routine(f"{self._function.name}_step")
            body.function = outlined_body(self._function, self._loop, body.__name__, inputs)
            for function in (steps.function, body.function):
                function.params.append(Param(INT, "snapshots", self._loc))
            phis = self._loop.header.phis
            steps.derivation = Snapshots(
                body,
                len(phis) - 1,
                phis.index(self._counter),
                self._step,
                len(phis) + inputs.index(self._mark),
                len(steps.function.params) - 1,
            )
            made.append(body)
        for routine in made:
            _remake_views(routine.function)
            return_copies(routine.function)
        check_after("divide_loops", *(routine.function for routine in made))
        find_effects(made)
        rest = list(inputs)
        if with_snapshots:
            passed = [*(stop if each is self._mark else each for each in rest), snapshots]
            call = call_in_place(self._function, self._loop, steps, passed)
        else:
            call = self._call_in_turn(steps, rest, stop, segments)
        if shares_what_it_writes(Memory(self._function), call):
            raise self._refused(
                "uses arrays that may share memory, and writes to one of them",
                "make the views inside the loop, or work on copies",
            )
        return made

    # ------------------------------------------------------------------------------------------------- analysis

    def _counting(self) -> tuple[Phi, int]:
        """Return the phi that counts, and its step."""
        (latch,) = self._loop.latches
        for instr in self._loop.header.instrs:
            if self._mark in instr.args:
                for phi in instr.args:
                    if isinstance(phi, Phi) and phi in self._loop.header.phis:
                        step = _step_of(phi.incoming[latch], phi)
                        if step and isinstance(phi.type, types.Integer) and getattr(phi.type, "signed", False):
                            return phi, step
        raise self._refused("does not count by a constant step", "loop over a range of int64 with a constant step")

    def _inputs(self, memory: Memory) -> list[Value]:
        """Return the outside values that the loop uses; views that may alias other inputs are recreated inside it."""
        found = inputs_of(self._loop)
        if self._mark not in found:
            found.append(self._mark)
        arrays = [each for each in found if isinstance(each.type, types.Array)]
        starts = [phi.incoming[self._before] for phi in self._loop.header.phis]
        for value in arrays:
            together = [each for each in (*arrays, *starts) if memory.may_share(each, value)]
            if len(together) > 1 and isinstance(value, Instr) and is_view(value):
                found.remove(value)
                found += [each for each in self._origins(value) if each not in found]
        for value in (*found, *self._loop.header.phis):
            if has_memory(value.type) and not isinstance(value.type, types.Array):
                raise self._refused(
                    f"uses {_named(value)}, which is neither a number nor an array",
                    "use an array, or make the list inside the loop",
                )
        return found

    def _origins(self, view: Value) -> Iterator[Value]:
        """Yield the operands that a view is built from and that are not views themselves."""
        assert isinstance(view, Instr)
        for arg in view.args:
            if isinstance(arg, Instr) and is_view(arg):
                yield from self._origins(arg)
            elif isinstance(arg, Value):
                yield arg

    def _check(self, memory: Memory) -> None:
        """Refuse writes to arrays that the loop carries from one iteration to the next."""
        for phi in self._loop.header.phis:
            if not isinstance(phi.type, types.Array):
                continue
            for writer in memory.writers(phi):
                for target in writes(writer):
                    if memory.may_share(target, phi) and not is_harmless(self._loop, writer, target):
                        name = phi.hint or "an array"
                        raise self._refused(
                            f"gives `{name}` another array, to which something is written (line "
                            f"{writer.loc.line if writer.loc else '?'})",
                            f"keep one array, and assign to its elements: `{name}[:] = ...`",
                        )

    def _refused(self, what: str, hint: str) -> Exception:
        return refuse(f"the loop over `checkpointed` {what}", self._loc, hint, "checkpointed")

    # -------------------------------------------------------------------------------------------- transformation

    def _call_in_turn(self, steps: Routine, rest: list[Value], stop: Operand, segments: Operand) -> Instr:
        """Build an outer loop that runs one segment per iteration; return the call."""
        old, (_, behind) = self._loop.header, self._loop.exits[0]
        header, body = Block(self._loc), Block(self._loc)
        start = self._counter.incoming[self._before]
        step = Const(self._step, INT)

        b = Builder(self._before, self._loc)
        count = b.call(ops.range_length, start, stop, step, type=INT, hint="count")
        length = b.call(segment_length, count, segments, type=INT, hint="length")
        stride = b.call(operator.mul, length, step, type=INT, hint="stride")
        for phi in old.phis:
            header.phis.append(new := Phi(phi.type, phi.hint, phi.loc))
            new.incoming = {self._before: phi.incoming[self._before]}
        new_of: dict[Value, Operand] = dict(zip(old.phis, header.phis, strict=True))
        copies = copied_instrs(old, {**new_of, self._mark: stop})
        header.instrs += copies.values()
        counter = new_of[self._counter]
        end = Builder(body, self._loc).call(segment_end, counter, stride, stop, type=counter.type, hint="end")
        args: list[Operand] = [*header.phis, *(end if each is self._mark else each for each in rest)]
        call, items = call_outlined(body, steps, args, self._loop)
        for phi, item in zip(header.phis, items, strict=True):
            phi.incoming[body] = item
        body.terminator = Jump(header)
        branch = old.terminator
        assert isinstance(branch, Branch)
        condition = copies.get(branch.condition, new_of.get(branch.condition, branch.condition))  # type: ignore[arg-type]
        header.terminator = (
            Branch(condition, body, behind) if branch.then in self._loop else Branch(condition, behind, body)
        )
        self._function.blocks += [header, body]
        replace_loop(self._function, self._loop, header, {**new_of, **copies})
        return call


def _step_of(following: Operand, phi: Phi) -> int:
    """Return the constant added to a phi, by one addition or on some paths to the latch; 0 if there is no such one."""
    steps: set[int] = set()
    for value in reach([following], lambda each: each.args if isinstance(each, Phi) else (), [phi]):
        match value:
            case Phi():
                pass
            case Instr(op=operator.add, args=(base, Const(value=int(step)))) if base is phi:
                steps.add(step)
            case _:
                return 0
    return steps.pop() if len(steps) == 1 else 0


def _remake_views(function: Function) -> None:
    """Recreate the views that a function uses and that were created outside of it, at its start."""
    own = set(function.values())
    made: dict[Value, Operand] = {}

    def remake(value: Operand) -> Operand:
        if not isinstance(value, Instr) or value in own:
            return value
        if value not in made:
            assert is_view(value)
            copy = value.copy(tuple(map(remake, value.args)), with_origin=False)
            made[value] = copy
            function.entry.instrs.append(copy)
        return made[value]

    for block in function.blocks:
        for value in (*block.phis, *block.instrs):
            for operand in value.args:
                if operand not in made.values():
                    remake(operand)
    replace_uses(function, made)


def _named(value: Value) -> str:
    return f"`{value.hint}`" if value.hint else "a value"
