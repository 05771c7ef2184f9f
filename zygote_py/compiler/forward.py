"""Gradients in forward mode: the function, with the tangents of all numbers in the directions of its inputs.

    def power(x, n):                        def power_gradient(x, n):
        r = 1.0                                 r, tr = 1.0, 0.0
        for i in range(n):          ->          for i in range(n):
            r *= x                                  tr = tr * x + r
        return r                                    r *= x
                                                return tr

Nothing is recorded, and loops run once. That is what `mode="auto"` chooses for functions of a few numbers whose reverse
sweep would record values: each number costs about as much as the function, and the records are saved.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints import NotInLanes, Pushed, Pushforwards, Transposed, push_in_lanes, refuse
from zygote_py.adjoints.analysis import Activity, carries_adjoint, find_active, has_shadow
from zygote_py.compiler.jvp import has_threads_in_text, one
from zygote_py.compiler.prepare import lowered_helper
from zygote_py.compiler.request import Request
from zygote_py.frontend import LoweredFunction
from zygote_py.frontend.values import cast_op
from zygote_py.ir import (
    NONE,
    Builder,
    Const,
    Function,
    Instr,
    Memory,
    Operand,
    Param,
    Routine,
    at_exit,
    clone,
    cycles,
    functions_of,
    make_canonical,
    ops,
    routines_of,
    zero,
)

MOST = 4  # numbers, of a function for which this mode is chosen
MOST_IN_LANES = 8  # where the tangents in all directions are one value
_MOST_WITH_ARRAYS = 1  # of a function with arrays that depend on them, of which each has a tangent in each direction


def may_go_forward(request: Request, lowered: LoweredFunction, wrt: Sequence[int]) -> bool:
    """Return whether forward mode is possible, and not more expensive than a reverse mode that records values."""
    function = lowered.function
    count = len(_numbers(function, wrt))
    if not 0 < count <= MOST_IN_LANES or _obstacle(request, lowered, wrt) is not None:
        return False
    routines = routines_of(function)
    if any(instr.op is ops.checkpointed for instr in _all_instrs(function)):  # the user's own choice
        return False
    if any(routine.derivation is not None for routine in routines):  # also that
        return False
    if any(cycles(routines).values()):  # reverse mode limits the depth of a recursion
        return False
    called = (value for routine in routines for value in routine.function.values())
    return count <= _MOST_WITH_ARRAYS or not any(
        has_shadow(value.type) for value in (*activity_of(lowered, wrt).values, *called)
    )


def cheaper_gradient(
    request: Request, lowered: LoweredFunction, wrt: Sequence[int], joint: Function, in_lanes: bool
) -> Function | None:
    """Return the function of the gradient in forward mode; None if the joint function, in reverse mode, is cheaper.

    None also for a derivative that may be infinite where the value is finite, as that of a root. There the modes
    differ: forward mode takes 0 for what a zero tangent is multiplied with, reverse mode for what a zero factor is.
    """
    count = len(_numbers(lowered.function, wrt))
    if not _records_values(joint, count) or any(map(_has_phases, _all_instrs(lowered.function))):
        return None
    pushed = _pushed_in_lanes(request, lowered, wrt) if in_lanes else None
    if pushed is None and count > MOST:
        return None
    pushed = pushed or _pushed(lowered, wrt)
    return None if pushed.has_poles else _returning_gradient(request, pushed, wrt)


def forward_gradient(request: Request, lowered: LoweredFunction, wrt: Sequence[int], in_lanes: bool) -> Function:
    """Return the function of the gradient in forward mode, from a primal in canonical form, which stays as it is.

    The tangents in all directions are one value if that is allowed, `in_lanes`, and possible. Raises
    DifferentiationError for a function that is not one of numbers.
    """
    if (obstacle := _obstacle(request, lowered, wrt)) is not None:
        raise refuse(
            f"mode='forward' of a function {obstacle}",
            request.loc,
            "use mode='auto', or `jacobian(f, mode='forward')`, which takes arrays",
        )
    pushed = _pushed_in_lanes(request, lowered, wrt) if in_lanes else None
    return _returning_gradient(request, pushed or _pushed(lowered, wrt), wrt)


def _records_values(joint: Function, count: int) -> bool:
    """Return whether a joint function of `count` numbers keeps values that forward mode would not.

    By one number, forward mode does nothing more than reverse mode, which then need not keep anything. With more, loops
    whose rounds are known are left to reverse mode: it keeps a few values, and LLVM has them in registers.
    """
    return any(
        instr.op is ops.stack
        or (instr.op is ops.record and (count == 1 or not all(isinstance(each, Const) for each in instr.args)))
        for instr in _all_instrs(joint)
    )


def _has_phases(instr: Instr) -> bool:
    """Return whether forward mode may refuse an operation for the phases of vectors that do not matter in the end."""
    if instr.op not in (np.linalg.eigh, np.linalg.svd):
        return False
    return isinstance(instr.args[0].type.dtype, types.Complex)  # type: ignore[attr-defined]


def _all_instrs(function: Function) -> list[Instr]:
    """Return the instructions of a function and of the routines that it calls."""
    functions = functions_of(function)
    return [instr for each in functions for instr in each.instrs()]


def _returning_gradient(request: Request, pushed: Pushed, wrt: Sequence[int]) -> Function:
    """Let a pushforward in the directions of its numbers return the gradient."""
    function = pushed.function
    numbers = [function.params[number] for number in _numbers(function, wrt)]
    b, end = at_exit(function)
    (packed,) = end.args
    value, *tangents = b.unpack_all(packed, 1 + len(numbers))
    of = dict(zip(numbers, tangents, strict=True))
    params = [function.params[number] for number in wrt]
    gradients = [_as(b, of[param], param) if param in of else NONE for param in params]
    result: Operand = gradients[0] if request.unwrap_single else b.pack(gradients)
    end.args = (b.pack([value, result]) if request.with_value else result,)
    return function


def _pushed(lowered: LoweredFunction, wrt: Sequence[int]) -> Pushed:
    """Return the pushforward in the directions of all numbers."""
    function, numbers, known = _copied(lowered, wrt)
    made = Pushforwards(lowered.routines, len(numbers), Transposed(lowered_helper, make_canonical))
    return made.push(function, numbers, known=known)


def _pushed_in_lanes(request: Request, lowered: LoweredFunction, wrt: Sequence[int]) -> Pushed | None:
    """Return the same with the tangents in all directions as one value; None if there is one, or it is not possible."""
    function, numbers, known = _copied(lowered, wrt)
    if len(numbers) < 2 or has_threads_in_text(function, request.options):
        return None
    try:
        return push_in_lanes(lowered.routines, function, numbers, len(numbers), known)
    except NotInLanes:
        return None


def _copied(
    lowered: LoweredFunction, wrt: Sequence[int]
) -> tuple[Function, list[Param], dict[Param, list[Const | None]]]:
    """Return a copy of a function, its numbers, and the tangents of each in the directions of all of them."""
    function = clone(lowered.function).function
    numbers = [function.params[number] for number in _numbers(function, wrt)]
    known: dict[Param, list[Const | None]] = {
        param: [one(param.type) if other is param else zero(param.type) for other in numbers] for param in numbers
    }
    return function, numbers, known


def activity_of(lowered: LoweredFunction, wrt: Sequence[int]) -> Activity:
    """Return the active values of a function of numbers."""
    return find_active(
        lowered.function, [lowered.function.params[number] for number in _numbers(lowered.function, wrt)]
    )


def _numbers(function: Function, wrt: Sequence[int]) -> list[int]:
    return [number for number in wrt if isinstance(function.params[number].type, types.Float)]


def _as(b: Builder, tangent: Operand, param: Param) -> Operand:
    """Return a derivative in the type of the parameter."""
    if tangent.type == param.type:
        return tangent
    return b.call(cast_op(tangent.type, param.type), tangent, type=param.type)


def _obstacle(request: Request, lowered: LoweredFunction, wrt: Collection[int]) -> str | None:
    """Return the property of a function that rules out this mode; None if there is none."""
    function = lowered.function
    asked = [function.params[number] for number in wrt]
    if request.closure or request.has_aux:
        return "with `closure=True` or `has_aux=True` is not supported"
    if any(carries_adjoint(param.type) and not isinstance(param.type, types.Float) for param in asked):
        return "of arrays, or structures, is not supported"
    if any(isinstance(each.op, Routine) and each.op.is_custom for each in _all_instrs(function)):
        return "with a custom rule is not supported"
    memory = Memory(function)
    if any(memory.is_written_to(param) for param in function.params if isinstance(param.type, types.Array)):
        return "that may write to its arguments is not supported"
    return None
