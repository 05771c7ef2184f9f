"""Conditions, checked before a loop runs, under which its iterations run side by side.

What is done for whole arrays has to be little, compared with the iterations: partial sums are added up once, and rows
are copied to lanes even if few of their elements are read. What is kept for all lanes has to be small.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.building.builder import Builder
from zygote_py.ir.core import Const, Instr, Operand, Value
from zygote_py.ir.passes.lanes.varying import Varying, array_type

INDEX = types.int64
_MOST_PARTS = 8  # elements of an array that all iterations add to, for each iteration
_MOST_OF_MANY, _MOST_OF_FEW = 1 << 12, 1 << 17  # elements that an array has for each iteration: up to 8 MiB
_LONGER = 2  # times as long as what is read of it may an axis be


def conditions(b: Builder, found: Varying, length: Instr, is_wide: bool) -> Iterator[Instr]:
    """Append the conditions, given the number of iterations, of which many or few run at a time."""
    most_elements = Const(_MOST_OF_MANY if is_wide else _MOST_OF_FEW, INDEX)

    def at_most(size: Operand, most: Operand) -> Instr:
        return b.call(operator.le, size, most, type=types.boolean)

    for array in found.added_in_parts() if is_wide else ():
        most = b.call(operator.mul, length, Const(_MOST_PARTS, INDEX), type=INDEX)
        yield at_most(_product(b, lengths_of(b, array)), most)
    for array in found.lanes:
        yield at_most(_product(b, lengths_of(b, array)), most_elements)
    for array, slices in (*found.read_in_slices().items(), *found.added_in_slices().items()):
        lengths = lengths_of(b, array)
        for axis, bound in slices.bounds.items():
            if not (isinstance(bound, Instr) and bound.op is ops.dim and bound.args == (array, Const(axis, INDEX))):
                yield at_most(lengths[axis], b.call(operator.mul, bound, Const(_LONGER, INDEX), type=INDEX))
        del lengths[slices.axis]
        yield at_most(_product(b, lengths), most_elements)
    for sum in found.sums:
        bounds = [count.bound for count in sum.counts or ()]
        for bound in bounds:
            yield b.call(operator.ge, bound, Const(0, INDEX), type=types.boolean)
            yield at_most(bound, most_elements)
        if len(bounds) > 1:
            yield at_most(_product(b, bounds), most_elements)


def lengths_of(b: Builder, array: Value) -> list[Instr]:
    """Append the lengths of an array."""
    return [b.call(ops.dim, array, Const(axis, INDEX), type=INDEX) for axis in range(array_type(array).ndim)]


def _product(b: Builder, lengths: Sequence[Operand]) -> Operand:
    """Append the number of elements of an array with these lengths."""
    size, *others = lengths
    for each in others:
        size = b.call(operator.mul, size, each, type=INDEX)
    return size
