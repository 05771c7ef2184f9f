"""The routines of a program, including those that only derivatives call: of a rule, of an inverse, of a schedule.

main calls f, and f has a rule              routines_of(main)               (f,)
rule, back: the routines of the rule        routines_behind(main)           (f, rule, back)
"""

from __future__ import annotations

from zygote_py.adjoints.reverse.calls import Derivation
from zygote_py.adjoints.routines.inverses import Inverse
from zygote_py.ir import Function, Routine, reach, routines_of


def routines_behind(function: Function) -> tuple[Routine, ...]:
    """Return the routines that a function or a derivative of it may call, in order of first occurrence."""

    def following(routine: Routine) -> tuple[Routine, ...]:
        found = routines_of(routine.function)
        if isinstance(routine.derivation, Derivation):
            found += routine.derivation.calls
        return (*found, routine.inverse.routine) if isinstance(routine.inverse, Inverse) else found

    return tuple(reach(routines_of(function), following))
