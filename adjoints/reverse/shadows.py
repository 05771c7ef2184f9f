"""Shadows: for each array that has an adjoint, an array of the same shape in which the adjoint accumulates.

A shadow is created together with its array, in the primal, and its identity never changes afterwards; its contents
change in the reverse sweep. The shadow of a view is the same view of the shadow, so that the same memory always has the
same shadow:

    %row = getitem %x, %i : f64[:]              %row = getitem %x, %i : f64[:]
                                        ->      %drow = getitem %dx, %i : f64[:]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import Activity, has_shadow, is_list, is_number
from zygote_py.adjoints.reverse.calls import Call
from zygote_py.ir import (
    Block,
    Const,
    Function,
    Instr,
    InternalError,
    Operand,
    Param,
    Phi,
    Undef,
    Value,
    is_fresh,
    is_view,
    ops,
    writable,
    zero,
)
from zygote_py.ir.arrays.shapes import Shapes

INDEX = types.int64


def add_shadows(
    function: Function, activity: Activity, calls: Mapping[Instr, Call] = MappingProxyType({}), given: bool = False
) -> dict[Value, Value]:
    """Add the shadows of the arrays that need one to a primal; return the shadow of each.

    The shadows of parameters are allocated, or, if they are `given`, further parameters, after the others. Those of the
    arguments are passed to the `calls` of forward functions.
    """
    shadows: dict[Value, Value] = {}
    shapes = Shapes()
    made: list[Instr] = []
    for param in tuple(function.params):
        if param in activity.shadowed:
            if given and param in activity.asked:
                shadows[param] = passed = Param(writable(param.type), _hint(param), param.loc)
                function.params.append(passed)
            else:
                shadows[param] = shadow = _zeros_like(param)
                made.append(shadow)
    items = {item: (call, number) for call in calls.values() for number, item in call.items.items()}
    for block in function.blocks:
        for phi in [phi for phi in block.phis if phi in activity.shadowed]:
            shadows[phi] = new = Phi(writable(phi.type), _hint(phi), phi.loc)
            block.phis.append(new)
    for block in function.blocks:
        instrs: list[Instr] = []
        for instr in block.instrs:
            if instr in calls:
                args = [instr.args[number] for number in calls[instr].derivative.shadowed]
                # An inactive argument here may be active in a different call of a recursive routine.
                others = {arg: _zeros_like(arg) for arg in args if isinstance(arg, Value) and arg not in shadows}
                instrs += others.values()
                instr.args = (*instr.args, *(_mapped(arg, {**shadows, **others}) for arg in args))
                instrs.append(instr)
                continue
            instrs.append(instr)
            if instr in items and has_shadow(instr.type):
                call, number = items[instr]
                if (passed_on := call.shadow_of(number)) is not None:
                    shadows[instr] = passed_on
                elif instr in activity.shadowed:
                    shadows[instr] = made_here = _zeros_like(instr)
                    instrs.append(made_here)
            elif instr in activity.shadowed and isinstance(instr, Instr):
                made_with = _shadow_of(instr, shadows, shapes)
                shadows[instr] = made_with[-1]
                instrs += made_with
            elif instr.args and instr.args[0] in activity and is_list(instr.args[0].type):
                instrs += _followed(instr, shadows)
        block.instrs = instrs
    for block in function.blocks:
        for phi in block.phis:
            new_phi = shadows.get(phi)
            if isinstance(new_phi, Phi):
                new_phi.incoming = {pred: _mapped(operand, shadows) for pred, operand in phi.incoming.items()}
    start = _after_checks(function.entry, set(shadows.values()))
    function.entry.instrs[start:start] = made
    return shadows


def _after_checks(entry: Block, shadows: Collection[Value]) -> int:
    """Return where the arguments have been checked, and no shadow is used yet: a call that is refused makes none."""
    start = 0
    for number, instr in enumerate(entry.instrs):
        if instr in shadows or any(arg in shadows for arg in instr.args):
            break
        if instr.op is ops.refuse:
            start = number + 1
    return start


def _shadow_of(instr: Instr, shadows: dict[Value, Value], shapes: Shapes) -> list[Instr]:
    """Return the shadow of an instruction, after what it is made of: the same selection from the arguments' shadows, or
    zeros.
    """
    role = ops.of(instr.op).role
    if role is ops.Role.ALLOCATE:  # the shape is known without reading their elements
        return [Instr(ops.zeros, instr.args, instr.type, _hint(instr), instr.loc)]
    if instr.op is ops.stack:
        return [Instr(ops.stack, (), instr.type, _hint(instr), instr.loc)]
    if role in (ops.Role.READ, ops.Role.POP) and is_list(instr.args[0].type):
        shadow = _mapped(instr.args[0], shadows)
        return [Instr(instr.op, (shadow, *instr.args[1:]), instr.type, _hint(instr), instr.loc)]
    if not is_view(instr) and not (role is ops.Role.CHOOSE and has_shadow(instr.type)):
        return _zeros_of(instr, shapes)  # a new array, or an item of a tuple
    args = tuple(_mapped(arg, shadows) if has_shadow(arg.type) else arg for arg in instr.args)
    type_ = writable(instr.type)
    if instr.op is np.broadcast_to:  # the array NumPy returns must not be written to
        return [Instr(ops.spread, args, type_, _hint(instr), instr.loc)]
    return [Instr(instr.op, args, type_, _hint(instr), instr.loc, instr.keywords)]


def _zeros_of(array: Instr, shapes: Shapes) -> list[Instr]:
    """Return zeros of the shape of a new array, after its lengths: these can be kept without the array."""
    kind = array.type
    if not isinstance(kind, types.Array) or not kind.ndim or kind.layout != "C" or not is_fresh(array):
        return [_zeros_like(array)]
    made: list[Instr] = []
    lengths: list[Operand] = []
    for axis, length in enumerate(shapes.of(array)):
        if length.operand is None:
            of, number = (array, axis) if length.array is None else (length.array, length.axis)
            made.append(Instr(ops.dim, (of, Const(number, INDEX)), INDEX, "n", array.loc))
        lengths.append(made[-1] if length.operand is None else length.operand)
    return [*made, Instr(ops.zeros, tuple(lengths), kind, _hint(array), array.loc)]


def _followed(instr: Instr, shadows: dict[Value, Value]) -> list[Instr]:
    """Return the operations that keep the shadow of a list equal to the list in length and nesting."""
    values, *rest = instr.args
    shadow = _mapped(values, shadows)
    assert isinstance(values.type, types.List)
    if instr.op is ops.push:
        item = zero(values.type.dtype) if is_number(values.type.dtype) else _mapped(rest[0], shadows)
        return [Instr(ops.push, (shadow, item), types.none, "", instr.loc)]
    if instr.op is ops.pop:  # a number: other items have shadows, which are popped
        return [Instr(ops.pop, (shadow,), instr.type, "", instr.loc)]
    if instr.op is ops.setitem and has_shadow(values.type.dtype):
        item, *index = rest
        return [Instr(ops.setitem, (shadow, _mapped(item, shadows), *index), types.none, "", instr.loc)]
    return []


def _mapped(operand: Operand, shadows: dict[Value, Value]) -> Operand:
    match operand:
        case Value():
            return shadows[operand]
        case Undef():
            return operand
        case _:
            raise InternalError("shadows: a constant array has no shadow")


def _zeros_like(array: Value) -> Instr:
    return Instr(np.zeros_like, (array,), writable(array.type), _hint(array), array.loc)


def _hint(array: Value) -> str:
    return f"d{array.hint or 't'}"
