"""The derivative of a checkpointed routine, which saves only its arguments and runs again in the reverse sweep.

    f_checkpoint (%x):                  f_again (%x, %dy):
        %y = f %x                           %y, %kept = f_forward %x
        return %y                           %dx = f_reverse %kept, %dy
                                            return %dx

Arrays that the function, or the caller afterwards, writes to are copied: the second run is on the copies. The function
must not draw random numbers, which would differ in the second run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.reverse.calls import Derivation, Derivative, Deriver, Source, plain_case
from zygote_py.adjoints.routines import ForwardFrame, ReverseFrame
from zygote_py.ir import (
    Block,
    Builder,
    Const,
    Instr,
    Memory,
    Operand,
    Param,
    Routine,
    Type,
    bases,
    copied_type,
    draws,
    has_memory,
    is_fresh,
    ops,
    reads,
    routines_of,
)


class Checkpoint(Derivation):
    """A routine that runs again in the reverse sweep, so that only its arguments are saved."""

    suffixes = ("checkpoint", "again")

    @property
    def calls(self) -> tuple[Routine, ...]:
        """Return no routines."""
        return ()

    def derive(self, made: Derivative, deriver: Deriver) -> Sequence[Routine]:
        """Make the two functions from those of the ordinary derivative, which saves residuals."""
        if made.routine in routines_of(made.routine.function):
            raise refuse(
                f"`{made.routine.__name__}` calls itself through `checkpoint`, which is not supported in reverse mode",
                made.routine.function.loc,
                "call it without `checkpoint`, or use `checkpoint` for a part of it that does not call it",
                "def",
            )
        plain = deriver.plain(made.routine, plain_case(made.case))
        check_repeatable(made.routine)
        if made.case.clobbered_result:
            _check_results(made.routine)
        reverse = Reverse(made, make_forward(made))
        adjoints = replay(reverse.b, plain, reverse.args, reverse.shadows, reverse.given, reverse.seeds)
        reverse.b.return_packed([adjoints[number] for number in made.adjoints])
        reverse.finish([reverse.b.block])
        return ()


def make_forward(derivative: Derivative) -> dict[int, Type]:
    """Make the forward function; return the types of the parameters that it saves copies of, by index."""
    frame = ForwardFrame(derivative)
    sources = [Source("argument", number) for number in range(len(frame.params))]
    for number in _copied(derivative):
        sources[number] = frame.keep_copy(frame.params[number], frame.params[number].hint)
    items = frame.call()
    frame.set_sources(sources)
    frame.finish(items)
    return {n: frame.value(source).type for n, source in enumerate(sources) if source.kind == "result"}


def _copied(derivative: Derivative) -> Iterator[int]:
    """Yield the array parameters whose contents may have changed when the reverse function runs."""
    routine = derivative.routine
    yield from copies_of_written(routine)
    for number in sorted(derivative.case.clobbered - routine.writes):
        if isinstance(routine.function.params[number].type, types.Array):
            yield number


def copies_of_written(routine: Routine) -> list[int]:
    """Return the parameters that a routine both writes to and reads: the contents of others do not matter."""
    memory = Memory(routine.function)
    read = {memory.root(arg) for instr in routine.function.instrs() for arg in reads(instr)}
    return [number for number in sorted(routine.writes) if memory.root(routine.function.params[number]) in read]


class Reverse(ReverseFrame):
    """A reverse function with its first block, in which the routine's arguments are restored."""

    def __init__(self, derivative: Derivative, kept: Mapping[int, Type]) -> None:
        function = derivative.routine.function
        taken = [
            Param(kept.get(number, param.type), param.hint, param.loc) for number, param in enumerate(function.params)
        ]
        super().__init__(derivative, taken, lambda number: "dy")
        self.b = Builder(Block(function.loc), function.loc)
        # Write-only arguments are replaced by new arrays: the caller may have written to the originals since.
        self.args: list[Operand] = [
            self.b.call(np.empty_like, param, type=copied_type(param.type), hint=param.hint)
            if number in derivative.routine.writes and number not in kept
            else param
            for number, param in enumerate(taken)
        ]


def replay(
    b: Builder,
    plain: Derivative,
    args: Sequence[Operand],
    shadows: Mapping[int, Operand],
    given: Mapping[int, Operand],
    seeds: Mapping[int, Operand],
    look: Callable[[Sequence[Operand]], None] = lambda results: None,
) -> dict[int, Operand]:
    """Run a routine and at once its reverse function at the end of a block; memory it writes to is arbitrary then.

    The `shadows` are those of its parameters, `given` those of its results, `seeds` the adjoints of its other results,
    by index. Return the adjoints of the parameters that are numbers. `look` receives the results and may emit code
    between the two runs.
    """
    passed: list[Operand] = [*args, *(shadows[number] for number in plain.shadowed)]
    stacks: list[Operand] = []
    for other in plain.group:
        assert other.record is not None
        stacks.append(b.call(ops.stack, type=_list_of(other.record), hint="records"))
    passed += [*stacks, *([Const(0, types.int64)] if plain.recursive else [])]
    items = b.call_packed(plain.forward, passed, plain.returned)
    look(items[: len(plain.results)])
    for place, number in enumerate(plain.shadowed_results):
        b.accumulate(items[len(plain.results) + place], given[number])
    where: dict[str, Sequence[Operand]] = {"argument": passed, "result": items, "stack": stacks}
    needed = [where[source.kind][source.number] for source in plain.sources]
    kinds = tuple(plain.routine.function.params[number].type for number in plain.adjoints)
    of_results = [seeds[number] for number in plain.seeds]
    return dict(zip(plain.adjoints, b.call_packed(plain.reverse, [*needed, *of_results], kinds), strict=True))


def check_repeatable(routine: Routine) -> None:
    """Refuse a routine that would not repeat the same computation. Raises DifferentiationError."""
    loc, name = routine.function.loc, routine.__name__
    for number in sorted(routine.writes):
        param = routine.function.params[number]
        if not isinstance(param.type, types.Array):
            raise refuse(
                f"`{name}` has a checkpoint, and changes its argument `{param.hint}`", loc, "use an array", "def"
            )
    if routine.shares:
        raise refuse(
            f"`{name}` has a checkpoint, and may return one of its arguments, or a part of it",
            loc,
            "return a copy",
            "def",
        )
    for function in (routine.function, *(other.function for other in routines_of(routine.function))):
        for instr in function.instrs():
            if draws(instr):
                raise refuse(
                    "a function with a checkpoint draws random numbers, which would differ when it runs again",
                    instr.loc,
                    "draw them beforehand, and pass them",
                )


def _check_results(routine: Routine) -> None:
    """Refuse array results that may share memory: each has its own shadow, and one of the arrays is written to."""
    seen: set[Operand] = set()
    for _, end in routine.function.returns():
        seen.clear()
        for array in _arrays_of(end.args):
            found = bases(array)
            if found & seen or not all(isinstance(base, Instr) and _is_apart(base) for base in found):
                raise refuse(
                    f"`{routine.__name__}` has a checkpoint, and may return arrays that share memory, to which"
                    " something is written afterwards",
                    routine.function.loc,
                    "return one of them, or copies",
                    "def",
                )
            seen |= found


def _arrays_of(results: Sequence[Operand]) -> list[Operand]:
    """Return the arrays that results are built from, or none if there is one array, which cannot share memory."""
    pending, found = list(results), list[Operand]()
    while pending:
        match pending.pop():
            case Instr(op=ops.pack, args=args):
                pending += args
            case each if has_memory(each.type):
                found.append(each)
    return [] if len(found) == 1 and isinstance(found[0].type, types.Array) else found


def _is_apart(base: Instr) -> bool:
    """Return whether a base, or a result of an outlined loop, is an array that shares memory with no other."""
    match base:
        case Instr(op=ops.getitem, args=(Instr(op=Routine() as routine), Const())):
            return routine.derivation is not None and not routine.is_custom
    return is_fresh(base)


_list_of: Callable[[Type], Type] = types.List
