"""Appending of instructions to a block, with a cache of the lengths of axes computed there.

writer.length(common([n, m]))           %n1 = common_length %n, %m : i64
writer.fitting(%n, m)                   %n2 = fitting_length %n, %m : i64
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.arrays.shapes import INDEX, Length
from zygote_py.ir.core import Block, Const, Instr, Loc, Operand, Type

_LENGTHS = "nmpq"


class Writer:
    """The current position of the expansion of one block. `counters` are names for loop counters, by axis."""

    def __init__(self, block: Block, counters: list[str], python_errors: bool) -> None:
        self.block = block
        self.counters = counters
        self.python_errors = python_errors
        self.loc: Loc | None = None
        self._lengths: dict[Hashable, Operand] = {}

    def add(self, op: ops.Op, *args: Operand, type: Type, hint: str = "", loc: Loc | None = None) -> Instr:
        """Append an instruction."""
        instr = Instr(op, args, type, hint, loc or self.loc)
        self.block.instrs.append(instr)
        return instr

    def know(self, length: Length, operand: Operand) -> None:
        """Record the operand of a length that the function itself computes."""
        self._lengths.setdefault(length.key, operand)

    def length(self, length: Length) -> Operand:
        """Return the operand of a length."""
        if length.operand is not None:
            return length.operand
        if length.key not in self._lengths:
            self._lengths[length.key] = self._compute(length)
        return self._lengths[length.key]

    def _compute(self, length: Length) -> Operand:
        if length.parts:
            return functools.reduce(self._common, map(self.length, length.parts))
        assert length.array is not None
        axis = Const(length.axis, INDEX)
        return self.add(ops.dim, length.array, axis, type=INDEX, hint=_LENGTHS[min(length.axis, 3)])

    def fitting(self, target: Operand, value: Length, length: Length | None = None) -> Operand:
        """Return the length of the target, after a check that an axis of length `value` broadcasts to it."""
        key = "fitting", target, value.key
        if key not in self._lengths:
            fits = target
            for part in value.parts or (value,):
                if length is None or part.key != length.key:
                    fits = self.add(ops.fitting_length, fits, self.length(part), type=INDEX, hint="n")
            self._lengths[key] = fits
        return self._lengths[key]

    def _common(self, first: Operand, second: Operand) -> Operand:
        return self.add(ops.common_length, first, second, type=INDEX, hint="n")

    def equal(self, a: Operand, b: Operand) -> Operand:
        """Return whether two lengths are equal, as an operand."""
        key = "equal", a, b
        if key not in self._lengths:
            self._lengths[key] = self.add(operator.eq, a, b, type=types.boolean, hint="c")
        return self._lengths[key]
