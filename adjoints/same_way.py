"""Whether a function goes the same way for all numbers: then what depends on what needs to be found out only once.

    for i in range(len(x)):         goes the same way for all `x` of the same length
        if x[i] > 0.0: ...          does not
        y[int(x[i])] = ...          nor this

What is not known to be decided by the shapes of arrays and by integers that are parameters is taken to be decided by
numbers. A function that calls routines, or has lists of floats, is not looked at.
"""

from __future__ import annotations

from collections.abc import Collection

from numba import types

from zygote_py.adjoints.kinds import has_shadow, is_array, is_number
from zygote_py.ir import ops
from zygote_py.ir.core import Block, Branch, Function, Instr, Operand, Param, Phi, Raise, Routine, Type, Value
from zygote_py.ir.memory import effect, is_view
from zygote_py.ir.ops import Effect, Role


def goes_the_same_way(function: Function) -> bool:
    """Whether numbers decide nothing of where a function in canonical form goes, and of what it reads and writes."""
    values = [value for value in function.values() if not isinstance(value, Param)]
    if any(isinstance(value, Instr) and _is_beyond(value) for value in values):
        return False
    varied: set[Value] = set()  # integers that numbers may decide, arrays of whose shape they may
    changed = True
    while changed:
        found = {value for value in values if value not in varied and _varies(value, varied)}
        varied |= found
        changed = bool(found)
    return not any(_decides(block, varied) for block in function.blocks)


def _is_beyond(instr: Instr) -> bool:
    if isinstance(instr.op, Routine) or any(isinstance(each.type, types.List) for each in (instr, *instr.args)):
        return True
    return effect(instr) is Effect.WRITE and ops.of(instr.op).role not in (Role.STORE, Role.CHECK, Role.RELEASE)


def _varies(value: Value, varied: Collection[Value]) -> bool:
    """Whether numbers may decide an integer, or the shape of an array."""
    if is_number(value.type):
        return False
    if isinstance(value, Phi):
        return any(_is_varied(operand, varied) for operand in value.incoming.values())
    assert isinstance(value, Instr)
    if isinstance(value.type, types.NoneType):
        return False
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
    """Whether in a block something that varies decides what is read and written, or which block is next."""
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
        elif role is Role.CHOOSE and not _is_single(value.type):
            return True
    return False


def _is_single(kind: Type) -> bool:
    return isinstance(kind, types.Number | types.Boolean)
