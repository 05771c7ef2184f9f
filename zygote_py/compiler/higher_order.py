"""Derivatives as functions that can be differentiated again.

    routines = take_as_primal(joint)        # the joint function is in canonical form now, and so are its routines

The IR of a derivative is ordinary IR, except for what a second differentiation does not support: helpers without a rule
become routines, nested tuples that routines return become flat, stacks of tuples become stacks of
numbers, and sums of whole arrays become loops.

    typed_as_called(call, function, request)    # a derivative that is called in a differentiated function
    lowered_helper(inv_a, (float64[:, ::1], float64[:, ::1]))       # a `Routine` whose function is in canonical form
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numba import types

import zygote_py.numpy_functions  # noqa: F401 (it registers the functions that `lower` knows)
from zygote_py.adjoints import is_differentiated, matters, number_matters, opaque_for, rule_for, unless_zero
from zygote_py.adjoints.analysis import carries_adjoint
from zygote_py.adjoints.routines import routines_behind
from zygote_py.base import TypedFunction
from zygote_py.compiler.request import Request
from zygote_py.frontend import Derived, LoweredFunction, lower, typed_as_derived
from zygote_py.ir import (
    Const,
    Function,
    Operand,
    Routine,
    Type,
    find_effects,
    flatten_results,
    is_helper,
    make_canonical,
    ops,
    passes,
    replace_uses,
    routines_of,
    split_stacks,
    write_out_whole_accumulations,
)
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


@functools.cache
def lowered_helper(function: Callable[..., object], argument_types: tuple[Type, ...]) -> Routine:
    """Return the routine of a helper that takes and returns numbers and arrays, for the types of its arguments."""
    lowered = lower(function, argument_types, {})
    routine = Routine(function.__name__)
    routine.function = lowered.function
    for each in (*lowered.routines, routine):
        _let_adjoints_matter(each.function)
        take_as_routines(each.function)
        make_canonical(each.function)
    find_effects((*routines_of(routine.function), routine))
    return routine


def _let_adjoints_matter(function: Function) -> None:
    """Remove the shortcuts that a helper takes where an adjoint is zero, since they have no derivative by that adjoint.

    If the helper has a path for this purpose, it takes that. Terms that are left out have the derivatives of products.
    """
    asked = [i for i in function.instrs() if i.op in (matters, number_matters, is_differentiated)]
    replace_uses(function, {instr: Const(True, types.boolean) for instr in asked})
    for instr in function.instrs():
        if instr.op is unless_zero:
            instr.op = ops.guarded


def take_as_routines(function: Function) -> None:
    """Let a function call routines where it calls helpers that have no rule."""
    for instr in function.instrs():
        if not is_helper(instr.op) or instr.keywords or ops.of(instr.op).role is ops.Role.CHECK:
            continue
        if carries_adjoint(instr.type) and rule_for(instr) is None and opaque_for(instr) is None:
            instr.op = lowered_helper(instr.op, tuple(arg.type for arg in instr.args))
