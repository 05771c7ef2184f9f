"""Overlap analysis: whether two array handles have the same elements in the same order, or none in common.

%a = getitem %x, %s      %b = getitem %x, %s       the same: made in the same way from the same
%a = getitem %x, 0       %b = getitem %x, 1        apart: different rows
%a = getitem %x, 3:      %b = getitem %x, :3       apart
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import is_view
from zygote_py.ir.arrays.classify import ndim
from zygote_py.ir.arrays.shapes import full_index, is_whole
from zygote_py.ir.core import Const, Instr, Operand, Value


def same_elements(a: Operand, b: Operand) -> bool:
    """Return whether two arrays certainly have the same elements in the same order."""
    if a is b or (isinstance(a, Const) and a == b):
        return True
    match a, b:
        case Instr(), Instr() if a.op is b.op and a.keywords == b.keywords and len(a.args) == len(b.args):
            plain = is_view(a) or a.op is builtins.slice or a.op is ops.dim
            # Views of the same bytes may be numbers of different types.
            return plain and a.type == b.type and all(map(same_elements, a.args, b.args))
        case _:
            return False


def are_apart(a: Operand, b: Operand) -> bool:
    """Return whether two arrays certainly have no element in common: constant indices or slices of one array."""
    match a, b:
        case Instr(op=ops.getitem, args=(x, *first)), Instr(op=ops.getitem, args=(y, *second)) if (
            is_view(a) and is_view(b) and same_elements(x, y)
        ):
            for left, right in zip(first, second, strict=False):
                if not isinstance(left.type, types.Integer | types.SliceType) or type(left.type) is not type(
                    right.type
                ):
                    return False
                if _differ(left, right):
                    return True
    return False


def _differ(a: Operand, b: Operand) -> bool:
    match a, b:
        case Const(int(left)), Const(int(right)):
            return left != right and (left < 0) == (right < 0)
        case Instr(op=builtins.slice), Instr(op=builtins.slice):
            (first, end), (other_first, other_end) = _range_of(a), _range_of(b)
            return first >= 0 <= other_first and (0 <= end <= other_first or 0 <= other_end <= first)
        case _:
            return False


def _range_of(slice_: Instr) -> tuple[int, int]:
    """Return from where to where a slice goes, if these are constants and no step is given; else -1."""
    start, stop, *step = slice_.args
    ends = [each.value if isinstance(each, Const) and isinstance(each.value, int) else -1 for each in (start, stop)]
    first = 0 if isinstance(start.type, types.NoneType) else ends[0]
    return (-1, -1) if step else (first, ends[1])


def seen_through(
    array: Operand, indices: Sequence[Operand], replaced: Mapping[Value, Operand]
) -> tuple[Operand, tuple[Operand, ...]]:
    """Return the array underlying an element of a view and its indices there, resolved through known views only."""
    indices = tuple(indices)
    while True:
        while isinstance(array, Value) and array in replaced:
            array = replaced[array]
        found = _in_base(array, indices) if isinstance(array, Instr) and is_view(array) else None
        if found is None:
            return array, indices
        array, indices = found


def _in_base(view: Instr, indices: tuple[Operand, ...]) -> tuple[Operand, tuple[Operand, ...]] | None:
    base = view.args[0]
    match view.op, view.args[1:]:
        case np.transpose, ():
            return base, indices[::-1]
        case np.expand_dims, (Const(int(axis)),):
            axis %= len(indices)
            return base, (*indices[:axis], *indices[axis + 1 :])
        case ops.getitem, index:
            items = full_index(index, ndim(base))
            if not all(isinstance(item.type, types.NoneType | types.Integer) or is_whole(item) for item in items):
                return None
            rest = iter(indices)
            found = []
            for item in items:
                if isinstance(item.type, types.Integer):
                    found.append(item)
                    continue
                own = next(rest)
                if not isinstance(item.type, types.NoneType):
                    found.append(own)
            return base, tuple(found)
        case _:
            return None
