"""The routines of a program, those included that only derivatives call: of a rule, of an inverse, of a schedule.

main calls f, and f has a rule              routines_of(main)               (f,)
rule, back: what the rule is made of        routines_behind(main)           (f, rule, back)
"""

from __future__ import annotations

from zygote_py.adjoints.calls import Derivation
from zygote_py.adjoints.inverses import Inverse
from zygote_py.ir.core import Function, Routine
from zygote_py.ir.dataflow import reach
from zygote_py.ir.routines import routines_of


def routines_behind(function: Function) -> tuple[Routine, ...]:
    """The routines that a function calls, or that a derivative of it may call, in the order in which they are met."""

    def following(routine: Routine) -> tuple[Routine, ...]:
        found = routines_of(routine.function)
        if isinstance(routine.derivation, Derivation):
            found += routine.derivation.calls
        return (*found, routine.inverse.routine) if isinstance(routine.inverse, Inverse) else found

    return tuple(reach(routines_of(function), following))
