"""The routines that a function calls, and what is to be known of them: who calls whom, and what a call may do.

    primal main(%x: f64, %n: i64) -> f64            routines_of(main)     (fact,)
    b0:                                             cycles((fact,))       {fact: (fact,)}, as it calls itself
      %y = fact %x, %n : f64
      return %y

A call may do what any path of the routine does. Routines that call each other are looked at together: none is taken to
do anything until it is seen to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from numba import types

from zygote_py.ir.core import Function, Instr, Param, Raise, Routine, Type
from zygote_py.ir.dataflow import reach
from zygote_py.ir.memory import Memory, effect, has_memory, writes
from zygote_py.ir.ops import Effect
from zygote_py.ir.types import components_of


def routines_of(function: Function) -> tuple[Routine, ...]:
    """The routines that a function calls, and those that these call, each once."""
    return tuple(reach(_callees(function), lambda routine: _callees(routine.function)))


def cycles(routines: Collection[Routine]) -> dict[Routine, tuple[Routine, ...]]:
    """For each routine those that can call it and that it can call, itself among them if it is recursive.

    A routine whose derivative is given is taken to call none: what it does is its own business.
    """

    def called(routine: Routine) -> list[Routine]:
        return [] if routine.is_custom else _callees(routine.function)

    reachable = {routine: set(reach(called(routine), called)) for routine in routines}
    return {
        routine: tuple(other for other in reachable if other in found and routine in reachable.get(other, ()))
        for routine, found in reachable.items()
    }


def results_of(function: Function) -> tuple[Type, ...]:
    """The types of what a routine returns, one by one."""
    _, end = function.exit()
    (value,) = end.args
    if isinstance(value.type, types.BaseTuple):
        return components_of(value.type)
    return () if isinstance(value.type, types.NoneType) else (value.type,)


def _callees(function: Function) -> list[Routine]:
    return [routine for _, routine in function.calls()]


def find_effects(routines: Sequence[Routine]) -> None:
    """Set what calls of the routines may do."""
    changed = True
    while changed:
        changed = False
        for routine in routines:
            found = _effects(routine.function)
            if found != (routine.writes, routine.shares, routine.acts):
                routine.writes, routine.shares, routine.acts = found
                changed = True


def _effects(function: Function) -> tuple[frozenset[int], frozenset[int], bool]:
    memory = Memory(function)
    results = {memory.root(value) for _, end in function.returns() for value in end.args if has_memory(value.type)}

    def numbers(chosen: Collection[Param]) -> frozenset[int]:
        return frozenset(number for number, param in enumerate(function.params) if param in chosen)

    given = [param for param in function.params if has_memory(param.type)]
    return (
        numbers([param for param in given if memory.writers_to(param)]),
        numbers([param for param in given if memory.root(param) in results]),
        any(map(_acts, function.instrs())) or any(isinstance(block.terminator, Raise) for block in function.blocks),
    )


def _acts(instr: Instr) -> bool:
    """Whether an instruction does something other than writing to memory that is known."""
    if isinstance(instr.op, Routine):
        return instr.op.acts
    return effect(instr) is Effect.WRITE and not writes(instr)
