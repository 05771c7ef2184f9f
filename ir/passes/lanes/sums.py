"""Sums of the gradient that LLVM may add up in any order, so that loops which add up become vectors.

    for i in range(n):                          for i in range(n):
        r = a * x[i] - y[i]                         r = a * x[i] - y[i]
        da += 2.0 * r * x[i]            ->          da = plus(da, 2.0 * r * x[i])

In each of its innermost loops a processor's vector needs partial sums. Those of the function itself keep their order
(`fastmath` has "reassoc" if the user wants another one); those of the adjoint are a sum over all uses anyway.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.loops import Loop, loop_nest
from zygote_py.ir.checks.debug import is_left_out
from zygote_py.ir.core import Function, Instr, Phi, Raise, Routine, Value
from zygote_py.ir.walks import Use, uses

_INSTRUCTIONS = frozenset((math.sqrt, np.sqrt, math.fabs, np.fabs, np.abs, abs))
_IN_ANY_ORDER = {operator.add: ops.plus, operator.sub: ops.minus}


def reorder_sums(function: Function) -> bool:
    """Let sums of the adjoint in innermost loops have any order, in place, where that makes vectors possible."""
    if function.allows("reassoc") or is_left_out("sums-in-any-order"):
        return False
    used = uses(function)
    done = False
    for loop in loop_nest(function).loops:
        if may_become_vectors(function, loop):
            for phi in loop.header.phis:
                done = _reorder(phi, loop, used) or done
    return done


def may_become_vectors(function: Function, loop: Loop) -> bool:
    """Return whether a loop is an innermost one of one block, without operations of which there are no vectors."""
    if loop.children or len(loop.order) > 2 or loop.raising_exits:
        return False
    if any(isinstance(block.terminator, Raise) for block in loop.order):
        return False
    has_functions = function.allows("afn")
    for block in loop.order:
        for instr in block.instrs:
            record = ops.of(instr.op)
            is_function = record.cost is ops.Cost.FUNCTION and instr.op not in _INSTRUCTIONS
            if isinstance(instr.op, Routine) or (is_function and not has_functions):
                return False
    return True


def _reorder(phi: Phi, loop: Loop, used: Mapping[Value, Sequence[Use]]) -> bool:
    """Let the additions of a sum have any order, if all are of the adjoint and nothing else in the loop reads it."""
    if not isinstance(phi.type, types.Float):
        return False
    adds: list[Instr] = []
    at: Value = phi
    while True:
        within = [use.user for use in used.get(at, ()) if use.block in loop]
        if len(within) != 1:
            return False
        (user,) = within
        if user is phi:
            break
        if not isinstance(user, Instr) or user.op not in _IN_ANY_ORDER or user.origin is None:
            return False
        if any(each.type != phi.type for each in (*user.args, user)):
            return False
        if user.op is operator.sub and user.args[1] is at:
            return False
        adds.append(user)
        at = user
    for each in adds:
        each.op = _IN_ANY_ORDER[each.op]
    return bool(adds)
