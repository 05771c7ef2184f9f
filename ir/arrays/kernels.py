"""The loop nest of one group.

    %t = sub %x, %m : f64[:]                for i in range(x.shape[0]):
    %u = mul %t, %t : f64[:]        ->          t = x[i] - m
    %s = np.sum %u : f64                        s += t * t

An element is computed in the outermost loop whose counter it depends on, so that values independent of the columns are
computed once per row. The indices of an array that may be broadcast are chosen by a condition that is computed before
the loops: `x[i if x.shape[0] == n else 0]`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.arrays.aliasing import seen_through
from zygote_py.ir.arrays.classify import Kind, element, in_fortran_order, in_layout, is_numeric, ndim, reduced_axes
from zygote_py.ir.arrays.elementwise import cast, compute, converted
from zygote_py.ir.arrays.fusion import Group, Node
from zygote_py.ir.arrays.shapes import Shape, Shapes, gathering, is_whole
from zygote_py.ir.arrays.writer import Writer
from zygote_py.ir.building.loop_nest import INDEX, Accumulator, Nest
from zygote_py.ir.core import Block, Const, Instr, Loc, Operand, Type, Value
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class Frame:
    """The axes of an elementwise computation: their lengths, and the indices of the current element."""

    shape: Shape
    indices: tuple[Operand, ...]


def start_of(op: ops.Op, type: Type) -> Const:
    """Return the initial value of a sum or a product."""
    return Const(converted(1 if op is np.prod else 0, type), type)


class Kernel:
    """The loops of one group with their contents. `results` are the replacements of the values of its roots."""

    def __init__(self, group: Group, writer: Writer, shapes: Shapes, replaced: dict[Value, Operand]) -> None:
        self.group = group
        self.writer = writer
        self.shapes = shapes
        self.replaced = replaced
        self.results: dict[Value, Operand] = {}
        self.loc: Loc | None = group.roots[-1].instr.loc
        self.own = {node.instr for node in group.nodes if node.is_by_element}
        self.levels: dict[Operand, int] = {}
        self.elements: dict[tuple[Operand, Frame], Operand] = {}
        self.loads: dict[tuple[Operand, ...], Operand] = {}

    def make(self) -> list[Block]:
        """Append the loops and the code that the roots need before them, and return the new blocks."""
        group = self.group
        self.sources = {root: self._source(root) for root in group.roots}
        lengths = {axis: self._bound(axis) for axis in group.order}
        made = {root: self._allocate(root) for root in group.roots}
        bounds = [lengths[axis] for axis in group.order]
        self.nest = nest = Nest(
            self.writer.block, bounds, [self.writer.counters[axis] for axis in group.order], self.loc
        )
        indices: list[Operand] = [Const(0, INDEX)] * len(group.frame)
        for level, axis in enumerate(group.order):
            indices[axis] = nest.counters[level]
            self.levels[nest.counters[level]] = level
        self.frame = Frame(group.frame, tuple(indices))
        self.lengths = lengths
        for root in group.roots:
            self.loc = root.instr.loc
            self._write_root(root, made[root])
        blocks = nest.finish()
        self.writer.block = nest.after
        return blocks

    # ---------------------------------------------------------------------------------------------- before the loops

    def _source(self, root: Node) -> Operand | None:
        """Return the value that a root stores, or else the operand it is computed from."""
        match root.kind:
            case Kind.STORE | Kind.SCATTER | Kind.MASKED_STORE:
                return root.instr.args[1]
            case Kind.REDUCE | Kind.REDUCE_AXES:
                return root.instr.args[0]
            case _:
                return root.instr

    def _bound(self, axis: int) -> Operand:
        """Return the length of an axis of the frame, after a check that the stored value fits in it."""
        length = self.group.frame[axis]
        operand = self.writer.length(length)
        for root in self.group.roots:
            if root.kind in (Kind.STORE, Kind.SCATTER):
                value = self.shapes.of(root.instr.args[1])
                place = axis - len(self.group.frame) + len(value)
                if place >= 0 and not value[place].is_one and value[place].key != length.key:
                    operand = self.writer.fitting(operand, value[place], length)
        return operand

    def _allocate(self, root: Node) -> Operand | None:
        instr = root.instr
        if root.kind in (Kind.STORE, Kind.SCATTER):
            self._check_other_axes(root)
        if root.kind not in (Kind.ELEMENTWISE, Kind.GATHER, Kind.REDUCE_AXES):
            return None
        shape = [self.writer.length(length) for length in self.shapes.of(instr)]
        op = ops.zeros if root.kind is Kind.REDUCE_AXES and not self._is_inner(root) else ops.record
        type = instr.type if in_fortran_order(instr.type) else in_layout(instr.type, "C")
        array = self.writer.add(op, *shape, type=type, hint=instr.hint, loc=instr.loc)
        self.results[instr] = array
        return array

    def _check_other_axes(self, root: Node) -> None:
        """Check that stored axes that the target lacks, or has with length 1, are of length 1."""
        value = self.shapes.of(root.instr.args[1])
        padding = len(value) - len(self.group.frame)
        for axis, length in enumerate(value):
            if not length.is_one and (axis < padding or self.group.frame[axis - padding].is_one):
                self.writer.fitting(Const(1, INDEX), length)

    # ----------------------------------------------------------------------------------------------- in the loops

    def emit(self, op: ops.Op, *args: Operand, type: Type) -> Operand:
        """Append an instruction in the outermost loop in which all of its operands are available."""
        return self._emit_at(max((self.levels.get(arg, -1) for arg in args), default=-1), op, *args, type=type)

    def _emit_at(self, level: int, op: ops.Op, *args: Operand, type: Type) -> Instr:
        instr = Instr(op, args, type, "", self.loc)
        self.nest.block(level).instrs.append(instr)
        self.levels[instr] = level
        return instr

    def _write_root(self, root: Node, array: Operand | None) -> None:
        instr = root.instr
        last = self.nest.depth - 1
        source = self.sources[root]
        assert source is not None
        match root.kind:
            case Kind.STORE:
                target = instr.args[0]
                value = cast(self.emit, self.element(source, self.frame), element(target))
                self._store(target, value, self.frame.indices)
            case Kind.SCATTER:
                self._scatter(root, source)
            case Kind.MASKED_STORE:
                self._store_masked(root, source)
            case Kind.REDUCE:
                value = cast(self.emit, self.element(source, self.frame), instr.type)
                self.results[instr] = self._reduce(root, value, 0)
            case Kind.REDUCE_AXES:
                assert array is not None
                self._reduce_axes(root, source, array)
            case _:
                assert array is not None
                value = self.element(source, self.frame)
                self._emit_at(last, ops.initialize, array, value, *self.frame.indices, type=types.none)

    def _reduce(self, root: Node, value: Operand, depth: int) -> Operand:
        """Accumulate in the loops from `depth` on, and return the result after them."""
        instr = root.instr
        type = element(instr)
        op = operator.mul if instr.op is np.prod else operator.add
        if isinstance(type, types.Boolean):
            op = operator.and_ if instr.op is np.prod else operator.or_
        start = start_of(instr.op, type)
        last = self.nest.depth - 1
        if depth > last:
            return self._emit_at(last, op, start, value, type=type)
        carried: Accumulator = self.nest.accumulate(depth, start, type, instr.hint or "s")
        following = self._emit_at(last, op, carried.inner, value, type=type)
        following.hint = instr.hint or "s"
        self.nest.set_next(carried, following)
        return carried.outer

    def _inner_axes(self, root: Node) -> int:
        """Return the number of loops around those over the reduced axes."""
        axes = reduced_axes(root.instr) or frozenset()
        return sum(axis not in axes for axis in self.group.order)

    def _is_inner(self, root: Node) -> bool:
        """Return whether the reduced axes are those of the innermost loops."""
        axes = reduced_axes(root.instr) or frozenset()
        return all(axis in axes for axis in self.group.order[self._inner_axes(root) :])

    def _reduce_axes(self, root: Node, source: Operand, array: Operand) -> None:
        axes = reduced_axes(root.instr) or frozenset()
        kept = tuple(index for axis, index in enumerate(self.frame.indices) if axis not in axes)
        type = element(root.instr)
        value = cast(self.emit, self.element(source, self.frame), type)
        if self._is_inner(root):
            depth = self._inner_axes(root)
            total = self._reduce(root, value, depth)
            end = self.nest.end(depth - 1) if depth < self.nest.depth else self.nest.block(depth - 1)
            end.instrs.append(Instr(ops.initialize, (array, total, *kept), types.none, "", self.loc))
            return
        last = self.nest.depth - 1
        before = self._emit_at(last, ops.getitem, array, *kept, type=type)
        op = operator.or_ if isinstance(type, types.Boolean) else operator.add
        self._emit_at(
            last, ops.setitem, array, self._emit_at(last, op, before, value, type=type), *kept, type=types.none
        )

    def _scatter(self, root: Node, source: Operand) -> None:
        target, _, *index = root.instr.args
        value = cast(self.emit, self.element(source, self.frame), element(target))
        self._store(target, value, self._items(target, index, self.frame))

    def _store_masked(self, root: Node, source: Operand) -> None:
        """Perform `x[mask] = v` without a branch: every element is stored, most of them unchanged."""
        target, _, mask = root.instr.args
        rank = ndim(mask)
        chosen = self.element(mask, Frame(self.frame.shape[:rank], self.frame.indices[:rank]))
        value = cast(self.emit, self.element(source, self.frame), element(target))
        last = self.nest.depth - 1
        old = self._load(target, self.frame.indices)
        new = self._emit_at(last, ops.select, chosen, value, old, type=element(target))
        self._store(target, new, self.frame.indices)

    def _store(self, target: Operand, value: Operand, indices: Sequence[Operand]) -> None:
        target, indices = seen_through(target, indices, self.replaced)
        self._emit_at(self.nest.depth - 1, ops.setitem, target, value, *indices, type=types.none)

    # ------------------------------------------------------------------------------------------------- elements

    def element(self, operand: Operand, frame: Frame) -> Operand:
        """Return the element of an array at the indices of a frame that it broadcasts to, or a scalar itself."""
        if not is_numeric(operand.type):
            return operand
        key = operand, frame
        if key not in self.elements:
            self.elements[key] = (
                self._computed(operand, frame)
                if isinstance(operand, Instr) and operand in self.own
                else self._load(operand, self._project(operand, frame))
            )
        return self.elements[key]

    def _computed(self, instr: Instr, frame: Frame) -> Operand:
        outer, self.loc = self.loc, instr.loc
        if instr.op is ops.getitem:
            own = Frame(self.shapes.of(instr), self._project(instr, frame))
            source, *index = instr.args
            found = self._load(source, self._items(source, index, own))
        else:
            args = tuple(self.element(arg, frame) for arg in instr.args)
            found = compute(self.emit, instr.op, args, element(instr), self.writer.python_errors)
        if isinstance(found, Instr) and not found.hint and instr not in self.results:
            found.hint = instr.hint
        self.loc = outer
        return found

    def _load(self, array: Operand, indices: Sequence[Operand]) -> Operand:
        array, indices = seen_through(array, indices, self.replaced)
        key = (array, *indices)
        if key not in self.loads:
            self.loads[key] = self.emit(ops.getitem, array, *indices, type=element(array))
        return self.loads[key]

    def _project(self, array: Operand, frame: Frame) -> tuple[Operand, ...]:
        """Return the indices of an array's element, from those of the frame that it broadcasts to."""
        shape = self.shapes.of(array)
        padding = len(frame.shape) - len(shape)
        found: list[Operand] = []
        for axis, length in enumerate(shape, padding):
            if axis < 0 or length.is_one or frame.shape[axis].is_one:
                found.append(Const(0, INDEX))
            elif length.key == frame.shape[axis].key:
                found.append(frame.indices[axis])
            else:
                whole = self.lengths[axis] if frame is self.frame else self.writer.length(frame.shape[axis])
                extends = self.writer.equal(self.writer.length(length), whole)
                key = (extends, frame.indices[axis])
                if key not in self.loads:
                    self.loads[key] = self.emit(ops.select, *key, Const(0, INDEX), type=INDEX)
                found.append(self.loads[key])
        return tuple(found)

    def _items(self, source: Operand, index: Sequence[Operand], frame: Frame) -> tuple[Operand, ...]:
        """Return the indices in `source` of the element that an array index selects for one element of its result."""
        how = gathering(source, index)
        assert how is not None
        rank = max(map(ndim, how.arrays))
        inner = slice(how.place, how.place + rank)
        of_arrays = Frame(frame.shape[inner], frame.indices[inner])
        others = iter((*frame.indices[: how.place], *frame.indices[how.place + rank :]))
        return tuple(next(others) if is_whole(item) else self.element(item, of_arrays) for item in how.items)
