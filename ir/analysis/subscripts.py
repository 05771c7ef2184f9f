"""Access analysis: which elements of an array an instruction reads or writes, by a classification of each index.

    for i in range(n):
        y[i] = x[i] * x[i]              y: RANGE (from 0 to n)
    for k in range(count):
        s += y[places[k]]               y: FOUND (read from memory)
    return s + y[0] + y[n - 1]          y: CONSTANT, FIXED

An access names the axes of the array that the memory belongs to, however many views lie between. It does not determine
which elements two accesses have in common, except where both count over the same range or one covers the whole axis.
"""

from __future__ import annotations

import enum
import operator

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.effects import effect, is_view
from zygote_py.ir.analysis.loops import CountedLoop, Loop, LoopNest, counted_exit
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Param, Phi, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Effect, Role


class Kind(enum.Enum):
    """The classification of an index."""

    ALL = "the whole axis"
    RANGE = "all numbers of a range that a loop counts over"
    PART = "a slice"
    MOVING = "changes with a loop"
    CONSTANT = "a constant"
    FIXED = "the same in all loops"
    FOUND = "depends on what memory holds"


@dataclass(frozen=True)
class Index:
    """An index of one axis; two indices with the same `key` take the same values."""

    kind: Kind
    key: object = None


@dataclass(frozen=True)
class Origin:
    """The values a number is computed from: loop counters and parameters; `found` if also floats or memory."""

    loops: frozenset[Loop] = frozenset()
    params: frozenset[Param] = frozenset()
    found: bool = False

    def __or__(self, other: Origin) -> Origin:
        return Origin(self.loops | other.loops, self.params | other.params, self.found or other.found)


_NOTHING, _FOUND = Origin(), Origin(found=True)
_WHOLE = Index(Kind.ALL)
Access = tuple[Index, ...]


class Accesses:
    """Access queries on one function, as it was when this was constructed."""

    def __init__(self, function: Function, nest: LoopNest) -> None:
        self._nest = nest
        self._headers: dict[Phi, Loop] = {phi: loop for loop in nest.loops for phi in loop.header.phis}
        self._counted: dict[Loop, CountedLoop | None] = {}
        self._origins: dict[Value, Origin] = {}
        self._keys: dict[Operand, object] = {}

    def of(self, array: Operand, indices: tuple[Operand, ...], block: Block) -> Access | None:
        """Return the access to elements of an array, or to the whole array without indices; None if it is unknown."""
        if not isinstance(array.type, types.Array):
            return None
        found = [self._index(index, block) for index in indices]
        found += [_WHOLE] * (array.type.ndim - len(found))
        return self._through_views(array, found, block)

    def origin(self, operand: Operand, block: Block) -> Origin:
        """Return the origin of an integer or condition used in `block`."""
        return self._origin(operand, block, 0)

    def counts(self, loop: Loop) -> CountedLoop | None:
        """Return how a loop counts, or None if it is not counted."""
        if loop not in self._counted:
            self._counted[loop] = counted_exit(loop)
        return self._counted[loop]

    def is_full(self, index: Index, array: Operand, axis: int) -> bool:
        """Return whether an index takes all values of an axis."""
        if index.kind is Kind.ALL:
            return True
        return index.kind is Kind.RANGE and index.key == (0, self._dim(array, axis))

    def _through_views(self, array: Operand, found: list[Index], block: Block) -> Access | None:
        while isinstance(array, Instr) and is_view(array):
            base = array.args[0]
            if not isinstance(base.type, types.Array):
                return None
            full = all(self.is_full(index, array, axis) for axis, index in enumerate(found))
            if array.op is ops.getitem:
                taken = self._of_slices(array.args[1:], base.type.ndim, found, array, block)
                if taken is None:
                    return None
                found = taken
            elif array.op is np.transpose and len(array.args) == 1:
                found.reverse()
            elif full and array.op is not np.diagonal:
                found = [_WHOLE] * base.type.ndim
            else:
                return None
            array = base
        return tuple(found)

    def _of_slices(
        self, indices: tuple[Operand, ...], rank: int, found: list[Index], view: Instr, block: Block
    ) -> list[Index] | None:
        """Return the indices into the array underlying a view, from the indices into the view."""
        below = list(enumerate(found))
        taken: list[Index] = []
        for index in indices:
            if isinstance(index.type, types.SliceType):
                if not below:
                    return None
                axis, inner = below.pop(0)
                if _is_whole(index):
                    taken.append(inner)
                elif self.is_full(inner, view, axis):
                    taken.append(Index(Kind.PART, self.key(index)))
                else:
                    taken.append(inner if inner.kind is Kind.FOUND else Index(Kind.MOVING, (self.key(index), inner)))
            elif isinstance(index.type, types.Integer):
                taken.append(self._index(index, block))
            else:
                return None
        taken += [inner for _, inner in below]
        return taken if len(taken) == rank else None

    def _index(self, index: Operand, block: Block) -> Index:
        match index:
            case Const(value=value):
                return Index(Kind.CONSTANT, value)
            case Instr(op=ops.select, args=(Instr(op=operator.eq), Phi() as then, Const(value=0))):
                # Broadcast: over the whole axis, or the same single element each time.
                inner = self._index(then, block)
                return _WHOLE if inner.kind is Kind.RANGE and inner.key[0] == 0 else inner  # type: ignore[index]
            case Phi() if (loop := self._headers.get(index)) is not None and block in loop:
                how = self.counts(loop)
                if how is not None and how.phi is index and how.step == 1 and how.comparison.op is operator.lt:
                    if self.origin(how.bound, block).found and not self.origin(how.start, block).found:
                        return Index(Kind.FOUND)  # the bound is read from memory
                    return Index(Kind.RANGE, (self.key(how.start), self.key(how.bound)))
        origin = self.origin(index, block)
        if origin.found:
            return Index(Kind.FOUND)
        return Index(Kind.MOVING if origin.loops else Kind.FIXED, self.key(index))

    def _origin(self, operand: Operand, block: Block, depth: int) -> Origin:
        if not isinstance(operand, Value):
            return _NOTHING
        if isinstance(operand, Phi) and (loop := self._headers.get(operand)) is not None:
            if block in loop:
                return Origin(frozenset({loop}))
            return _NOTHING if self.counts(loop) is not None and len(loop.exits) == 1 else _FOUND
        if operand not in self._origins:
            self._origins[operand] = _FOUND if depth > 50 else self._made_of(operand, block, depth + 1)
        return self._origins[operand]

    def _made_of(self, operand: Value, block: Block, depth: int) -> Origin:
        match operand:
            case Param(type=types.Integer()):
                return Origin(params=frozenset({operand}))
            case Instr(op=ops.dim):
                return _NOTHING
            case Instr() if effect(operand) is Effect.PURE and isinstance(operand.type, types.Integer | types.Boolean):
                args = operand.args
            case Phi(type=types.Integer()):
                args = tuple(operand.incoming.values())
            case _:
                return _FOUND
        found = _NOTHING
        for arg in args:
            found |= self._origin(arg, block, depth)
        return found

    def key(self, operand: Operand) -> object:
        """Return a key that is equal for operands computed in the same way from the same values."""
        match operand:
            case Const(value):
                return value
            case Instr():
                if operand not in self._keys:
                    self._keys[operand] = self._key_of(operand)
                return self._keys[operand]
            case _:
                return operand

    def _key_of(self, instr: Instr) -> object:
        match instr:
            case Instr(op=ops.dim, args=(array, Const(int(axis)))):
                return self._dim(array, axis)
            case Instr(op=op, args=args) if effect(instr) is Effect.PURE and not isinstance(instr.type, types.Array):
                return op, *map(self.key, args)
            case _:
                return instr

    def _dim(self, array: Operand, axis: int) -> object:
        """Return the length of an axis: that of the array it was created from, if known."""
        while isinstance(array, Instr):
            record = ops.of(array.op)
            if record.role is Role.ALLOCATE and axis < len(array.args):
                return self.key(array.args[axis])
            like = record.role is Role.COPY or record.contents
            if not like or not array.args or not isinstance(array.args[0].type, types.Array):
                break
            array = array.args[0]
        return ops.dim, array, axis


def _is_whole(index: Operand) -> bool:
    """Return whether a slice covers a whole axis."""
    match index:
        case Instr(op=op, args=(Const(None | 0), Const(None), *step)) if op is slice:
            return all(isinstance(each, Const) and each.value in (None, 1) for each in step)
    return False
