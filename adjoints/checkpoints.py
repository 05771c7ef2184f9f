"""The derivative of a routine that keeps its arguments only, and runs again in the reverse sweep.

    f_checkpoint (%x):                  f_again (%x, %dy):
        %y = f %x                           %y, %kept = f_forward %x
        return %y                           %dx = f_reverse %kept, %dy
                                            return %dx

Arrays that the function writes to, or the caller afterwards, are copied: the second run is on the copies. It must not
draw random numbers, which would be others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.calls import Case, Derivative, Source, name_apart
from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.kinds import is_array
from zygote_py.ir import ops
from zygote_py.ir.builder import Builder
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Param, Routine, Type
from zygote_py.ir.memory import Memory, bases, draws, has_memory, is_fresh, reads
from zygote_py.ir.routines import routines_of
from zygote_py.ir.types import copied_type, writable


def run_again(derivative: Derivative, plain: Derivative) -> None:
    """Make the two functions of a derivative from those of the `plain` one. Raises DifferentiationError."""
    check_repeatable(derivative.routine)
    if derivative.case.unstable_result:
        _check_results(derivative.routine)
    made = Reverse(derivative, make_forward(derivative))
    adjoints = replay(made.b, plain, made.args, made.shadows, made.given, made.seeds)
    made.b.return_packed([adjoints[number] for number in derivative.adjoints])
    made.finish()


def make_forward(derivative: Derivative) -> dict[int, Type]:
    """Make the forward function, which keeps copies of those parameters whose types these are."""
    routine, results = derivative.routine, derivative.results
    derivative.shadowed_results = tuple(number for number, type in enumerate(results) if is_array(type))
    function = routine.function
    params = [Param(param.type, param.hint, param.loc) for param in function.params]
    shadows = [Param(writable(params[n].type), f"d{params[n].hint}", function.loc) for n in derivative.shadowed]
    b = Builder(Block(function.loc), function.loc)
    copies = {
        number: b.call(np.copy, params[number], type=type, hint=params[number].hint)
        for number, type in _copied(derivative)
    }
    items = b.call_all(routine, params, results)
    made = [b.zeros_like(items[n], "shadow") for n in derivative.shadowed_results]
    sources: list[Source] = []
    for number in range(len(params)):
        if number in copies:
            sources.append(Source("result", len(items) + len(made) + list(copies).index(number)))
        else:
            sources.append(Source("argument", number))
    sources += [Source("argument", len(params) + place) for place in range(len(shadows))]
    sources += [Source("result", len(items) + place) for place in range(len(made))]
    derivative.kept = tuple(each.type for each in copies.values())
    derivative.sources = tuple(sources)
    b.return_packed([*items, *made, *copies.values()])
    derivative.forward.function = _function(derivative.forward, function, [*params, *shadows], b.block)
    return {number: copy.type for number, copy in copies.items()}


def _copied(derivative: Derivative) -> Iterator[tuple[int, Type]]:
    """The parameters whose contents may have changed when the reverse function runs, with the types of their copies."""
    routine = derivative.routine
    yield from copies_of_written(routine)
    for number in sorted(derivative.case.unstable - routine.writes):
        if isinstance(kind := routine.function.params[number].type, types.Array):
            yield number, copied_type(kind)


def copies_of_written(routine: Routine) -> list[tuple[int, Type]]:
    """The parameters that a routine writes to, with the types of copies of them.

    Of an array that it never reads, it does not matter what it holds: it is not among them.
    """
    memory = Memory(routine.function)
    read = {memory.root(arg) for instr in routine.function.instrs() for arg in reads(instr)}
    params = routine.function.params
    return [
        (number, copied_type(params[number].type))
        for number in sorted(routine.writes)
        if memory.root(params[number]) in read
    ]


class Reverse:
    """The parameters of a reverse function, and its first block, in which the routine's arguments are as they were."""

    def __init__(self, derivative: Derivative, kept: Mapping[int, Type]) -> None:
        self._derivative = derivative
        function, results = derivative.routine.function, derivative.results
        taken = [
            Param(kept.get(number, param.type), param.hint, param.loc) for number, param in enumerate(function.params)
        ]
        self.shadows = {
            n: Param(writable(taken[n].type), f"d{function.params[n].hint}", function.loc) for n in derivative.shadowed
        }
        self.given = {n: Param(writable(results[n]), "dy", function.loc) for n in derivative.shadowed_results}
        self.seeds = {n: Param(results[n], "dy", function.loc) for n in derivative.seeds}
        self._params = [*taken, *self.shadows.values(), *self.given.values()]
        self.b = Builder(Block(function.loc), function.loc)
        # What the routine only writes to, it writes to again, elsewhere: the caller may have written there since.
        self.args: list[Operand] = [
            self.b.call(np.empty_like, param, type=copied_type(param.type), hint=param.hint)
            if number in derivative.routine.writes and number not in kept
            else param
            for number, param in enumerate(taken)
        ]

    def finish(self, before_seeds: Sequence[Param] = ()) -> None:
        """Make the function, which begins with the block; it has other parameters behind the sources."""
        derivative = self._derivative
        params = [*self._params, *before_seeds, *self.seeds.values()]
        derivative.reverse.function = _function(derivative.reverse, derivative.routine.function, params, self.b.block)


def replay(
    b: Builder,
    plain: Derivative,
    args: Sequence[Operand],
    shadows: Mapping[int, Operand],
    given: Mapping[int, Operand],
    seeds: Mapping[int, Operand],
    look: Callable[[Sequence[Operand]], None] = lambda results: None,
) -> dict[int, Operand]:
    """Run a routine and at once its reverse function, at the end of a block; what it writes to, holds anything then.

    The `shadows` are those of its parameters, `given` those of its results, `seeds` the adjoints of its other results,
    by their numbers. Gives the adjoints of its parameters that are numbers. What is to be done between the two runs,
    `look` may emit, given the results.
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


def plain_case(case: Case) -> Case:
    """How a routine is differentiated that is reversed as soon as it has run."""
    return Case(case.active, frozenset(), False, case.left_out)


def check_repeatable(routine: Routine) -> None:
    """Refuse what would not do the same when it runs again. Raises DifferentiationError."""
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
            "let it return a copy",
            "def",
        )
    for function in (routine.function, *(other.function for other in routines_of(routine.function))):
        for instr in function.instrs():
            if draws(instr):
                raise refuse(
                    "what has a checkpoint draws random numbers, which would be others when it runs again",
                    instr.loc,
                    "draw them before, and pass them",
                )


def _check_results(routine: Routine) -> None:
    """Refuse arrays among the results that may share memory: each has a shadow of its own, and one is written to."""
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
                    "let it return one of them, or copies",
                    "def",
                )
            seen |= found


def _arrays_of(results: Sequence[Operand]) -> list[Operand]:
    """The arrays of which results are made; for one array alone, there is nothing that it may share memory with."""
    pending, found = list(results), list[Operand]()
    while pending:
        match pending.pop():
            case Instr(op=ops.pack, args=args):
                pending += args
            case each if has_memory(each.type):
                found.append(each)
    if len(found) == 1 and isinstance(found[0].type, types.Array):
        return []
    return found


def _is_apart(base: Instr) -> bool:
    """Whether an instruction gives an array that shares memory with no other one: also a result of an outlined loop."""
    match base:
        case Instr(op=ops.getitem, args=(Instr(op=Routine() as routine), Const())):
            return routine.runs_again or routine.schedule is not None
    return is_fresh(base)


def _function(routine: Routine, primal: Function, params: list[Param], block: Block) -> Function:
    name_apart(params)
    return Function(routine.__name__, params, [block], "joint", None, primal.loc, primal.options)


_list_of: Callable[[Type], Type] = types.List
