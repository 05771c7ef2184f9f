"""Derivatives as functions that can be differentiated again.

    routines = take_as_primal(joint)        # the joint function is in canonical form now, and so are its routines

The IR of a derivative is ordinary IR, except for what a second differentiation does not support: helpers without a rule
become routines (`lowered_helpers`), nested tuples that routines return become flat, stacks of tuples become stacks of
numbers, and sums of whole arrays become loops.

    typed_as_called(call, function, request)    # a derivative that is called in a differentiated function
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from zygote_py.adjoints.routines import routines_behind
from zygote_py.compiler.lowered_helpers import take_as_routines
from zygote_py.compiler.request import Request
from zygote_py.frontend import Derived, LoweredFunction, typed_as_derived
from zygote_py.ir import (
    Function,
    Operand,
    Routine,
    find_effects,
    flatten_results,
    make_canonical,
    passes,
    routines_of,
    split_stacks,
    write_out_whole_accumulations,
)

if TYPE_CHECKING:
    from zygote_py.base import TypedFunction
    from zygote_py.numba_adapter import DerivedCall


def take_as_primal(function: Function) -> tuple[Routine, ...]:
    """Bring a derivative and the routines that it calls into the form that is differentiated. Returns the routines."""
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


def within(call: DerivedCall, form: Any, request: Request) -> Request:
    """Return the request for a form that is applied in a function during its type inference."""
    return replace(request, options=call.options, name=f"{call.name}_{form}")


def typed_as_called(call: DerivedCall, function: Function, name: str, lowered: LoweredFunction) -> TypedFunction:
    """Clean up a derivative and return it as a typed function, which is called in another one."""
    tidy(function)
    derived = Derived(function, len(call.argument_types), routines_of(function))
    return typed_as_derived(call, derived, name, result_of(function).type, lowered.hidden, lowered.frozen)


def tidy(joint: Function) -> Function:
    """Clean a derivative up, in place."""
    passes.run(joint, (*passes.CLEAN_UP, passes.promote_accumulations, *passes.CLEAN_UP))
    return joint


def result_of(function: Function) -> Operand:
    """Return the operand that a function in canonical form returns."""
    _, end = function.exit()
    return end.args[0]
