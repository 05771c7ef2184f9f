"""What was made by differentiating, as something that can be differentiated again.

    routines = take_as_primal(joint)        # the joint function is in canonical form now, and so are its routines

The IR of a derivative is ordinary IR, but for what the second derivative does not know: helpers without a rule become
routines (`lowered_helpers`), what routines return in tuples of tuples flat, stacks of tuples stacks of numbers, sums of
whole arrays loops.
"""

from __future__ import annotations

from zygote_py.adjoints.routines.reachable import routines_behind
from zygote_py.canonical import make_canonical
from zygote_py.ir.analysis.routines import find_effects
from zygote_py.ir.core import Function, Routine
from zygote_py.ir.passes.accumulation.lower_array_accumulations import write_out_whole_accumulations
from zygote_py.ir.passes.program.flatten_results import flatten_results
from zygote_py.ir.passes.program.split_stacks import split_stacks
from zygote_py.lowered_helpers import take_as_routines


def take_as_primal(function: Function) -> tuple[Routine, ...]:
    """Bring a derivative, with the routines that it calls, into the form that is differentiated. Gives the routines."""
    for routine in routines_behind(function):
        take_as_routines(routine.function)
    take_as_routines(function)
    routines = routines_behind(function)
    flatten_results(function, routines)
    split_stacks(function, routines)
    for each in (function, *(routine.function for routine in routines)):
        each.kind = "primal"
        write_out_whole_accumulations(each)
        make_canonical(each)
    find_effects(routines)
    return routines
