"""Helpers as routines of the IR, so that they can be differentiated like users' functions.

lowered_helper(inv_a, (float64[:, ::1], float64[:, ::1]))       # a `Routine` whose function is in canonical form
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from numba import types

import zygote_py.numpy_functions  # noqa: F401 (it registers the functions that `lower` knows)
from zygote_py.adjoints import is_differentiated, matters, number_matters, opaque_for, rule_for, unless_zero
from zygote_py.adjoints.analysis import carries_adjoint
from zygote_py.frontend import lower
from zygote_py.ir import (
    Const,
    Function,
    Routine,
    Type,
    find_effects,
    is_helper,
    make_canonical,
    ops,
    replace_uses,
    routines_of,
)


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
