"""Functions that keep records, or may do so once differentiated, become part of those that call them.

A thread has one workspace, which its function is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from zygote_py.adjoints.device.records import found_records, is_small
from zygote_py.adjoints.errors import refuse
from zygote_py.ir import (
    CLEAN_UP,
    Function,
    Instr,
    Routine,
    cycles,
    functions_of,
    inline_calls,
    loop_nest,
    ops,
    routines_of,
    run,
)


def inline_loops(function: Function) -> None:
    """Inline the routines with loops, or that call one with loops, in place: its adjoint may record values."""
    routines = routines_of(function)
    together = cycles(routines)
    _inline(function, [each for each in routines if not (each.is_custom or together.get(each)) and _has(_loops, each)])


def inline_recording(function: Function) -> None:
    """Inline the routines that allocate memory, or call one that does, in place. Raises DifferentiationError."""
    recording = [each for each in routines_of(function) if _has(_allocated, each)]
    for routine, others in cycles(recording).items():
        if others:
            raise refuse(
                f"`{routine.__name__}` calls itself and keeps a record of a length that is not known when it is "
                "compiled",
                routine.function.loc,
                "let a loop take the place of the recursion",
            )
    if recording:
        _inline(function, recording)
        run(function, CLEAN_UP)


def _inline(function: Function, routines: Collection[Routine]) -> None:
    while any(routine in routines for _, routine in function.calls()):
        inline_calls(function, lambda call: call.op in routines)


def _has(what: Callable[[Function], Collection[object]], routine: Routine) -> bool:
    return any(map(what, functions_of(routine.function)))


def _loops(function: Function) -> Collection[object]:
    return loop_nest(function).loops


def _allocated(function: Function) -> list[Instr]:
    return [
        *found_records(function),
        *(instr for instr in function.instrs() if instr.op is ops.zeros and not is_small(instr)),
    ]
