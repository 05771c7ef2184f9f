"""The routines of a program, those included that only derivatives call: of a rule, of an inverse, of a schedule.

main calls f, and f has a rule              routines_of(main)               (f,)
rule, back: what the rule is made of        routines_behind(main)           (f, rule, back)
"""

from __future__ import annotations

from collections.abc import Iterator

from zygote_py.adjoints.custom import Custom
from zygote_py.adjoints.inverses import Inverse
from zygote_py.adjoints.long_loops import Snapshots
from zygote_py.adjoints.reversible import Reversible
from zygote_py.ir.core import Function, Routine
from zygote_py.ir.dataflow import reach
from zygote_py.ir.routines import routines_of


def routines_behind(function: Function) -> tuple[Routine, ...]:
    """The routines that a function calls, or that a derivative of it may call, in the order in which they are met."""
    called = routines_of(function)
    return tuple(reach(called, lambda routine: (*routines_of(routine.function), *_given(routine))))


def _given(routine: Routine) -> Iterator[Routine]:
    """The routines that say how one is differentiated."""
    if isinstance(routine.rule, Custom):
        if routine.rule.rule is not None:
            yield routine.rule.rule
        yield routine.rule.back
    if isinstance(routine.inverse, Inverse):
        yield routine.inverse.routine
    match routine.schedule:
        case Snapshots(body=body):
            yield body
        case Reversible(body=body, unbody=unbody):
            yield body
            yield unbody
