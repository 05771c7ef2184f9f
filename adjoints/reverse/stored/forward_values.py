"""The values of the primal, and what is computed from them alone, as the forward sweep has them.

dt = dy * (1.0 - t * t)         1.0 - t * t needs no adjoint: it is lifted into the forward sweep, after %t, and the
                                plan may store it, or recompute it in the reverse sweep after all
y[i] = t                        %t may be read from y[i] in the reverse sweep, if that is not overwritten
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numba import types

from zygote_py.ir import (
    Alpha,
    Block,
    CameFrom,
    Clone,
    Function,
    Instr,
    Memory,
    Operand,
    Phi,
    Value,
    effect,
    has_memory,
    is_left_out,
    ops,
    replace_uses,
)
from zygote_py.ir.ops import Cost


class ForwardValues:
    """Says which value of the forward sweep an operand of the adjoint is."""

    def __init__(self, forward: Clone, reverse: Function) -> None:
        self._forward, self._reverse = forward, reverse
        self.lifted: dict[Value, Instr] = {}  # instructions of the adjoint that need no adjoint, moved forward
        self._read: dict[Value, Instr] = {}  # reads of elements to which values of the primal have been stored

    def of(self, operand: Operand) -> Operand:
        """Return an alpha, or a lifted instruction, as a value of the forward sweep."""
        if isinstance(operand, Alpha):
            return self._forward.values[operand.value]
        return self.lifted[operand] if isinstance(operand, Value) and operand in self.lifted else operand

    def lift(self) -> None:
        """Move computations of the adjoint from primal values alone into the primal, after their origins.

        What is read from where it has been stored may be there later than its origin.
        """
        behind: dict[Value, list[Instr]] = {}
        places: dict[Value, tuple[Block, int]] = {
            instr: (block, at) for block in self._forward.function.blocks for at, instr in enumerate(block.instrs)
        }
        after: dict[Value, Value] = {}  # what moved ones come after
        for block in self._reverse.blocks:
            kept: list[Instr] = []
            same: dict[object, Instr] = {}  # of this block, by computation
            for instr in block.instrs:
                if isinstance(instr, CameFrom) or not self._needs_no_adjoint(instr):
                    kept.append(instr)
                    continue
                assert instr.origin is not None
                args = tuple(map(self.of, instr.args))
                copy = Instr(instr.op, args, instr.type, "", instr.loc, instr.keywords, instr.origin)
                key = (instr.origin, instr.op, args, instr.keywords)
                self.lifted[instr] = same.setdefault(key, copy)
                if self.lifted[instr] is copy:
                    last = self._forward.values[instr.origin]
                    for arg in args:
                        last = _later(places, last, after.get(arg, arg)) if isinstance(arg, Value) else last
                    after[copy] = last
                    behind.setdefault(last, []).append(copy)
            block.instrs = kept
        for block in self._forward.function.blocks:
            block.instrs = [new for instr in block.instrs for new in (instr, *behind.get(instr, ()))]

    def _needs_no_adjoint(self, instr: Instr) -> bool:
        is_value = instr.origin is not None and effect(instr) is ops.Effect.PURE and not has_memory(instr.type)
        return is_value and all(not isinstance(arg, Value) or arg in self.lifted for arg in instr.args)

    def let_stored_be_read(self) -> None:
        """Let the adjoint read values that are costly to compute where the block that computes them stores them."""
        if is_left_out("values-from-arrays"):
            return
        alphas = (arg for node in self._reverse.nodes() for arg in node.args if isinstance(arg, Alpha))
        wanted = {self._forward.values[each.value]: each.value for each in alphas}
        for block in self._forward.function.blocks:
            made: set[Value] = {value for value in block.values if value in wanted and _is_costly(value)}
            stores = [instr for instr in block.instrs if made and _is_store_of(instr, made)]
            for store in stores:
                array, value, *index = store.args
                assert isinstance(value, Value)
                if wanted[value] not in self._read:
                    read = Instr(ops.getitem, (array, *index), value.type, value.hint, store.loc)
                    block.instrs.insert(block.instrs.index(store) + 1, read)
                    self._read[wanted[value]] = read
        self._stored = {each: self._forward.values[each] for each in self._read}
        self._forward.values.update(self._read)

    def keep_overwritten(self, memory: Memory) -> None:
        """Take the values themselves where the elements may be overwritten."""
        lost = [each for each, read in self._read.items() if memory.may_be_written_after(read)]
        replace_uses(self._forward.function, {self._read[each]: self._stored[each] for each in lost})
        for each in lost:
            self._forward.values[each] = self._stored[each]


def _later(places: Mapping[Value, tuple[Block, int]], value: Value, other: Value) -> Value:
    """Return the later of two values if the same block computes them, else the first."""
    if value not in places or other not in places:
        return value
    (block, at), (of_other, there) = places[value], places[other]
    return other if block is of_other and there > at else value


def _is_costly(value: Value) -> bool:
    """Return whether a value of a loop or of a condition is stored rather than recomputed, or a function's is."""
    if not isinstance(value.type, types.Float | types.Complex):
        return False
    return isinstance(value, Phi) or (isinstance(value, Instr) and ops.of(value.op).cost >= Cost.DIVISION)


def _is_store_of(instr: Instr, values: set[Value]) -> bool:
    """Return whether an instruction sets an element of an array to one of these values, as it is."""
    if instr.op not in (ops.setitem, ops.initialize) or instr.args[1] not in values:
        return False
    array, value, *index = instr.args
    kind: Any = array.type
    is_whole = isinstance(kind, types.Array) and (kind.dtype, kind.ndim) == (value.type, len(index))
    return is_whole and all(isinstance(each.type, types.Integer) for each in index)
