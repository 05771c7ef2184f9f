"""Classification of the instructions that are expanded, by callable and types.

    %y = np.sin %x : f64[:]                 elementwise
    setitem %x, %v                          a store into a whole array
    %s = np.sum %x : f64                    a reduction
    %y = getitem %x, %i : f64[:]            a gather, where %i is an array of integers

Everything else is left to other passes.
"""

from __future__ import annotations

import enum
from typing import Literal

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Const, Instr, Operand, Type
from zygote_py.ir.ops import Family
from zygote_py.ir.types import is_scalar


class Kind(enum.Enum):
    """The kind of expansion of an instruction."""

    ELEMENTWISE = "elementwise"
    GATHER = "gather"
    STORE = "store"
    SCATTER = "scatter"
    MASKED_STORE = "masked store"
    REDUCE = "reduce"
    REDUCE_AXES = "reduce axes"
    POSITIONS = "positions"


def is_numeric(type: Type) -> bool:
    """Return whether this is the type of an array of numbers or booleans."""
    return isinstance(type, types.Array) and is_scalar(type.dtype)


def element(operand: Operand) -> Type:
    """Return the type of an array's elements, or that of a scalar."""
    found: Type = operand.type.dtype if isinstance(operand.type, types.Array) else operand.type
    return found


def ndim(operand: Operand) -> int:
    """Return the number of axes of an array; 0 for a scalar."""
    return int(operand.type.ndim) if isinstance(operand.type, types.Array) else 0


def in_fortran_order(type: Type) -> bool:
    """Return whether an array is in Fortran order: the elements along its first axis are adjacent."""
    return isinstance(type, types.Array) and bool(type.layout == "F")


def in_layout(type: Type, layout: Literal["C", "A"]) -> Type:
    """Return the array type in another layout."""
    found: Type = type.copy(layout=layout) if isinstance(type, types.Array) else type
    return found


def is_elementwise(instr: Instr) -> bool:
    """Return whether each element of the result is computed from the elements of the arguments at its index."""
    return is_numeric(instr.type) and _is_of_elements(instr)


def is_of_numbers_in_arrays(instr: Instr) -> bool:
    """Return whether this is an elementwise operation with a scalar result, on arrays without axes."""
    return is_scalar(instr.type) and any(is_numeric(arg.type) for arg in instr.args) and _is_of_elements(instr)


def _is_of_elements(instr: Instr) -> bool:
    op, args = instr.op, instr.args
    if instr.keywords or not args or max(map(ndim, args)) != ndim(instr):
        return False
    if op is np.clip:
        first, *bounds = args
        given = [bound for bound in bounds if not isinstance(bound.type, types.NoneType)]
        return is_numeric(first.type) and len(bounds) == 2 and bool(given) and all(map(_is_part, given))
    if not all(map(_is_part, args)):
        return False
    if op in (np.copy, np.where):
        return len(args) == (1 if op is np.copy else 3)
    record = ops.of(op)
    if record.family is Family.PARAMETRIC:
        inexact = isinstance(element(args[0]), types.Float | types.Complex)
        return inexact and len(args) <= 2 and all(is_scalar(arg.type) for arg in args[1:])
    return record.elements == len(args)


def _is_part(operand: Operand) -> bool:
    return is_scalar(operand.type) or is_numeric(operand.type)


def reduced_axes(instr: Instr) -> frozenset[int] | None:
    """Return the axes, counted from 0, that a sum or a product reduces; None for any other instruction."""
    if instr.op not in (np.sum, np.prod) or not instr.args or not is_numeric(instr.args[0].type):
        return None
    rank = ndim(instr.args[0])
    if len(instr.args) == 1:
        return frozenset(range(rank))
    if len(instr.args) != 2 or instr.op is np.prod or instr.keywords not in ((), ("axis",)):
        return None
    match instr.args[1]:
        case Const(int(axis)) if -rank <= axis < rank:
            return frozenset({axis % rank})
        case Const(tuple() as axes) if all(isinstance(axis, int) and -rank <= axis < rank for axis in axes):
            found = frozenset(axis % rank for axis in axes)
            return found if len(found) == len(axes) else None
        case Const(None):
            return frozenset(range(rank))
        case _:
            return None


def can_store(target: Operand, value: Operand) -> bool:
    """Return whether a store can convert the value's elements to the target's type."""
    if not is_numeric(target.type) or not _is_part(value):
        return False
    return isinstance(element(target), types.Complex) or not isinstance(element(value), types.Complex)
