"""Data independence: if a function takes the same path for all numbers, its dependence sets are computed only once.

    for i in range(len(x)):         takes the same path for all `x` of the same length
        if x[i] > 0.0: ...          does not
        y[int(x[i])] = ...          nor this

Anything not known to be determined by array shapes and integer parameters is assumed to depend on numbers. A function
that calls routines, or has lists of floats, is assumed to be data dependent.
"""

from __future__ import annotations

from collections.abc import Collection

from numba import types

from zygote_py.adjoints.analysis.kinds import has_shadow, is_array, is_number
from zygote_py.ir import (
    Block,
    Branch,
    Function,
    Instr,
    Operand,
    Param,
    Phi,
    Raise,
    Routine,
    Value,
    effect,
    is_view,
    ops,
)
from zygote_py.ir.ops import Effect, Role


def goes_the_same_way(function: Function) -> bool:
    """Return whether the path of a canonical function and its accesses are independent of the values of numbers."""
    values = [value for value in function.values() if not isinstance(value, Param)]
    if any(isinstance(value, Instr) and _is_beyond(value) for value in values):
        return False
    varied: set[Value] = set()  # integers, and arrays whose shapes, may depend on numbers
    while found := {value for value in values if value not in varied and _varies(value, varied)}:
        varied |= found
    return not any(_decides(block, varied) for block in function.blocks)


def _is_beyond(instr: Instr) -> bool:
    if isinstance(instr.op, Routine) or any(isinstance(each.type, types.List) for each in (instr, *instr.args)):
        return True
    return effect(instr) is Effect.WRITE and ops.of(instr.op).role not in (Role.STORE, Role.CHECK, Role.RELEASE)


def _varies(value: Value, varied: Collection[Value]) -> bool:
    """Return whether an integer, or the shape of an array, may depend on numbers."""
    if is_number(value.type) or isinstance(value.type, types.NoneType):
        return False
    if isinstance(value, Phi):
        return any(_is_varied(operand, varied) for operand in value.incoming.values())
    assert isinstance(value, Instr)
    if isinstance(value.type, types.Array):
        if not (ops.of(value.op).shapes_decide or is_view(value)):
            return True
    elif not (value.op is ops.dim or (effect(value) is Effect.PURE and all(map(_is_plain, value.args)))):
        return True
    return any(_is_varied(operand, varied) for operand in value.args)


def _is_varied(operand: Operand, varied: Collection[Value]) -> bool:
    return isinstance(operand, Value) and operand in varied


def _is_plain(operand: Operand) -> bool:
    kinds = (types.Integer, types.Boolean, types.NoneType, types.SliceType, types.EllipsisType, types.Literal)
    return isinstance(operand.type, kinds)


def _decides(block: Block, varied: Collection[Value]) -> bool:
    """Return whether a varying value determines a block's memory accesses or successor."""
    match block.terminator:
        case Branch(condition, then, orelse) if _is_varied(condition, varied):
            if not any(isinstance(target.terminator, Raise) for target in (then, orelse)):
                return True
    for value in (*block.phis, *block.instrs):
        if is_array(value.type) and value in varied:
            return True
        if not isinstance(value, Instr) or value.op is ops.release:
            continue
        role = ops.of(value.op).role
        if role in (Role.READ, Role.STORE):
            first = 1 if role is Role.READ else 2
            if has_shadow(value.args[0].type) and any(_is_varied(index, varied) for index in value.args[first:]):
                return True
        elif role is Role.CHOOSE and not isinstance(value.type, types.Number | types.Boolean):
            return True
    return False
