"""Adds instructions to the end of a block, and computes there the lengths of axes, each once.

writer.length(common([n, m]))           %n1 = common_length %n, %m : i64
writer.fitting(%n, m)                   %n2 = fitting_length %n, %m : i64
"""

from __future__ import annotations

import operator
from collections.abc import Hashable

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.arrays.shapes import INDEX, Length
from zygote_py.ir.core import Block, Const, Instr, Loc, Operand, Type

_LENGTHS = "nmpq"


class Writer:
    """Where the expansion of one block has come to. `counters` are names for the counters of loops, by axis."""

    def __init__(self, block: Block, counters: list[str], python_errors: bool) -> None:
        self.block = block
        self.counters = counters
        self.python_errors = python_errors
        self.loc: Loc | None = None
        self._lengths: dict[Hashable, Operand] = {}

    def add(self, op: ops.Op, *args: Operand, type: Type, hint: str = "", loc: Loc | None = None) -> Instr:
        """Add an instruction."""
        instr = Instr(op, args, type, hint, loc or self.loc)
        self.block.instrs.append(instr)
        return instr

    def know(self, length: Length, operand: Operand) -> None:
        """Say what a length is, which the function computes itself."""
        self._lengths.setdefault(length.key, operand)

    def length(self, length: Length) -> Operand:
        """The operand that is a length."""
        if length.operand is not None:
            return length.operand
        if length.key not in self._lengths:
            self._lengths[length.key] = self._compute(length)
        return self._lengths[length.key]

    def _compute(self, length: Length) -> Operand:
        if length.parts:
            return self.add(ops.common_length, *map(self.length, length.parts), type=INDEX, hint="n")
        assert length.array is not None
        axis = Const(length.axis, INDEX)
        return self.add(ops.dim, length.array, axis, type=INDEX, hint=_LENGTHS[min(length.axis, 3)])

    def fitting(self, target: Operand, value: Length, length: Length | None = None) -> Operand:
        """The length of the target, once it is certain that an axis of another length broadcasts to it."""
        key = "fitting", target, value.key
        if key not in self._lengths:
            others = [part for part in value.parts or (value,) if length is None or part.key != length.key]
            lengths = list(map(self.length, others))
            self._lengths[key] = self.add(ops.fitting_length, target, *lengths, type=INDEX, hint="n")
        return self._lengths[key]

    def equal(self, a: Operand, b: Operand) -> Operand:
        """Whether two lengths are equal."""
        key = "equal", a, b
        if key not in self._lengths:
            self._lengths[key] = self.add(operator.eq, a, b, type=types.boolean, hint="c")
        return self._lengths[key]
