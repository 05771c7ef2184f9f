"""The routines that a function calls: the call graph, and the effects of a call.

    primal main(%x: f64, %n: i64) -> f64            routines_of(main)     (fact,)
    b0:                                             cycles((fact,))       {fact: (fact,)}, as it calls itself
      %y = fact %x, %n : f64
      return %y

The effects of a call are those of any path of the routine. Mutually recursive routines are analyzed together,
optimistically: none is assumed to have an effect until one is found.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from numba import types

from zygote_py.ir.analysis.dataflow import reach
from zygote_py.ir.analysis.effects import effect, has_memory, writes
from zygote_py.ir.analysis.memory import Memory
from zygote_py.ir.core import Function, Instr, Param, Raise, Routine, Type
from zygote_py.ir.ops import Effect
from zygote_py.ir.types import components_of
from zygote_py.ir.walks import grouped


def routines_of(function: Function) -> tuple[Routine, ...]:
    """Return the routines that a function calls, directly or indirectly, once each."""
    return tuple(reach(_callees(function), lambda routine: _callees(routine.function)))


def functions_of(function: Function) -> tuple[Function, ...]:
    """Return a function and those that it calls, directly or indirectly, once each."""
    return (function, *(routine.function for routine in routines_of(function)))


def cycles(routines: Collection[Routine]) -> dict[Routine, tuple[Routine, ...]]:
    """Return for each routine those that can call it and that it can call, including itself if it is recursive.

    A routine with a custom derivative is assumed to call none: its calls do not matter to differentiation.
    """

    def called(routine: Routine) -> list[Routine]:
        return [] if routine.is_custom else _callees(routine.function)

    reachable = {routine: set(reach(called(routine), called)) for routine in routines}
    return {
        routine: tuple(other for other in reachable if other in found and routine in reachable.get(other, ()))
        for routine, found in reachable.items()
    }


def results_of(function: Function) -> tuple[Type, ...]:
    """Return the types of a routine's individual results."""
    _, end = function.exit()
    (value,) = end.args
    if isinstance(value.type, types.BaseTuple):
        return components_of(value.type)
    return () if isinstance(value.type, types.NoneType) else (value.type,)


def _callees(function: Function) -> list[Routine]:
    return [routine for _, routine in function.calls()]


def find_effects(routines: Sequence[Routine]) -> None:
    """Set the effects of calls of the routines."""
    changed = True
    while changed:
        changed = False
        for routine in routines:
            memory = Memory(routine.function)
            found = _effects(routine.function, memory)
            aliases = routine.may_alias_after | _mixed(routine.function, memory)
            if (*found, aliases) != (routine.writes, routine.shares, routine.has_side_effects, routine.may_alias_after):
                routine.writes, routine.shares, routine.has_side_effects = found
                routine.may_alias_after = aliases
                changed = True


def _effects(function: Function, memory: Memory) -> tuple[frozenset[int], frozenset[int], bool]:
    results = {memory.root(value) for _, end in function.returns() for value in end.args if has_memory(value.type)}

    def numbers(chosen: Collection[Param]) -> frozenset[int]:
        return frozenset(number for number, param in enumerate(function.params) if param in chosen)

    given = [param for param in function.params if has_memory(param.type)]
    return (
        numbers([param for param in given if memory.is_written_to(param)]),
        numbers([param for param in given if memory.root(param) in results]),
        any(map(_acts, function.instrs())) or any(isinstance(block.terminator, Raise) for block in function.blocks),
    )


def _mixed(function: Function, memory: Memory) -> frozenset[int]:
    """Return the parameters that the function may have stored in one of them, a list, or may have stored others in."""
    found: set[int] = set()
    by_root = grouped(
        (memory.root(param), number) for number, param in enumerate(function.params) if has_memory(param.type)
    )
    for numbers in by_root.values():
        if len(numbers) > 1 and any(_holds_memory(function.params[number].type) for number in numbers):
            found.update(numbers)
    return frozenset(found)


def _holds_memory(type: Type) -> bool:
    if isinstance(type, types.BaseTuple):
        return any(map(_holds_memory, components_of(type)))
    held = getattr(type, "dtype", None) if isinstance(type, types.List | types.ListType) else None
    return held is not None and has_memory(held)


def _acts(instr: Instr) -> bool:
    """Return whether an instruction has a side effect other than writing to known memory."""
    if isinstance(instr.op, Routine):
        return instr.op.has_side_effects
    return effect(instr) is Effect.WRITE and not writes(instr)
