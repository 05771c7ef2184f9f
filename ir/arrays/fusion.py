"""Grouping of array instructions that become one loop nest.

    %t = sub %x, %m : f64[:]
    %u = mul %t, %t : f64[:]        one group: its root is the sum, %t and %u are fused into it
    %s = np.sum %u : f64

A group has roots, which have a lasting result (a sum, an array that is filled, a store), and instructions fused into
them, of which only one element exists at a time. An instruction is fused if all its uses are in one group, and if
no instruction between it and the position of the group may write to memory it reads. Several groups that use one value
are joined, if they may move to one position; else the value is stored in an array, once. Consecutive groups over equal
shapes are joined.

The function is not changed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import Memory, Order
from zygote_py.ir.arrays.aliasing import are_apart, same_elements
from zygote_py.ir.arrays.classify import (
    Kind,
    can_store,
    element,
    in_fortran_order,
    is_elementwise,
    is_numeric,
    ndim,
    reduced_axes,
)
from zygote_py.ir.arrays.shapes import Shape, Shapes, gathered, gathering
from zygote_py.ir.core import Block, Function, Instr, Operand, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.types import is_scalar
from zygote_py.ir.walks import uses

_FAR = 12  # how many groups ahead to search for one to join with


@dataclass(eq=False)
class Node:
    """An instruction that will be expanded."""

    instr: Instr
    kind: Kind
    position: int
    group: Group | None = None
    is_index: bool = False  # whether it is, or is part of, an array of indices

    @property
    def parts(self) -> tuple[Operand, ...]:
        """Return the arrays read one element at a time."""
        args = self.instr.args
        match self.kind:
            case Kind.STORE:
                args = args[1:2]
            case Kind.SCATTER | Kind.MASKED_STORE | Kind.GATHER:
                args = args[1:]
            case Kind.REDUCE | Kind.REDUCE_AXES | Kind.POSITIONS:
                args = args[:1]
        return tuple(arg for arg in args if is_numeric(arg.type))

    @property
    def read(self) -> tuple[Operand, ...]:
        """Return all arrays whose memory is read."""
        source = self.instr.args[:1] if self.kind in (Kind.GATHER, Kind.MASKED_STORE) else ()
        return (*source, *self.parts)

    @property
    def is_by_element(self) -> bool:
        """Return whether an element of the result is available inside the loops."""
        return self.kind in (Kind.ELEMENTWISE, Kind.GATHER)

    @property
    def target(self) -> Operand | None:
        """Return the array stored into, or None."""
        stores = self.kind in (Kind.STORE, Kind.SCATTER, Kind.MASKED_STORE)
        return self.instr.args[0] if stores else None


@dataclass(eq=False)
class Group:
    """One loop nest over `frame`, at the position `position` of its block."""

    roots: list[Node]
    frame: Shape
    backwards: bool  # whether the first axis is that of the innermost loop
    position: int
    fused: list[Node] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        """Return the roots and the fused nodes."""
        return [*self.roots, *self.fused]

    @property
    def may_move(self) -> bool:
        """Return whether the group writes only to its own memory, so that it may be joined with others."""
        return all(root.target is None and root.kind is not Kind.POSITIONS for root in self.roots)

    @property
    def order(self) -> list[int]:
        """Return the axes of the frame, outermost loop first; axes of constant length 1 need no loop."""
        axes = [axis for axis, length in enumerate(self.frame) if not length.is_one]
        return axes[::-1] if self.backwards else axes


@dataclass(eq=False)
class Plan:
    """The groups of a function, keyed by the instruction at their position, and all instructions they replace."""

    groups: dict[Instr, Group]
    nodes: dict[Value, Node]


def kind_of(instr: Instr) -> Kind | None:
    """Return the kind of an instruction in the expansion; None if it is not expanded."""
    args = instr.args
    if instr.op is ops.setitem and args and is_numeric(args[0].type):
        return _kind_of_store(instr)
    if instr.op is ops.getitem and is_numeric(instr.type) and is_numeric(args[0].type):
        return Kind.GATHER if gathering(args[0], args[1:]) is not None else None
    if instr.op is np.flatnonzero and ndim(args[0]) == 1 and len(args) == 1:
        return (
            Kind.POSITIONS if is_scalar(element(args[0])) and not isinstance(element(args[0]), types.Complex) else None
        )
    if is_elementwise(instr):
        return Kind.ELEMENTWISE
    if reduced_axes(instr) is not None:
        if is_scalar(instr.type):
            return Kind.REDUCE if len(reduced_axes(instr) or ()) == ndim(args[0]) else None
        return Kind.REDUCE_AXES if is_numeric(instr.type) else None
    return None


def _kind_of_store(instr: Instr) -> Kind | None:
    target, value, *index = instr.args
    if not can_store(target, value):
        return None
    if not index:
        return Kind.STORE if ndim(target) or ndim(value) else None
    if gathering(target, index) is not None:
        return Kind.SCATTER
    if len(index) == 1 and is_scalar(value.type) and 1 <= ndim(index[0]) <= ndim(target):
        return Kind.MASKED_STORE if element(index[0]) == types.boolean else None
    return None


def find_groups(function: Function, shapes: Shapes, memory: Memory) -> Plan:
    """Group the array instructions of all blocks."""
    users = {
        value: [use.user if isinstance(use.user, Instr) else None for use in found]
        for value, found in uses(function).items()
    }
    plan = Plan({}, {})
    for block in function.blocks:
        with memory.order_of(block) as order:
            found = _BlockGroups(block, users, shapes, memory, order)
        plan.nodes |= found.nodes
        plan.groups |= {block.instrs[group.position]: group for group in found.groups}
    return plan


class _BlockGroups:
    """The groups of one block, which is visited backwards, so that the uses of a value are known before it."""

    def __init__(
        self, block: Block, users: dict[Value, list[Instr | None]], shapes: Shapes, memory: Memory, order: Order
    ) -> None:
        self.block = block
        self.order = order
        self.users = users
        self.shapes = shapes
        self.memory = memory
        self.places = {instr: place for place, instr in enumerate(block.instrs)}
        self.nodes: dict[Value, Node] = {
            instr: Node(instr, kind, place)
            for place, instr in enumerate(block.instrs)
            if (kind := kind_of(instr)) is not None
        }
        self.groups: list[Group] = []
        for node in reversed(self.nodes.values()):
            self._place(node)
        self.groups.sort(key=lambda group: group.position)
        self._join_neighbours()

    def _place(self, node: Node) -> None:
        if not node.is_by_element:
            self._start(node)
            return
        users = [user for user in self.users.get(node.instr, []) if user is None or user.op is not ops.dim]
        if not users:
            return  # its lengths may be read, its elements are not
        readers = [self.nodes.get(user) if user is not None else None for user in users]
        found: list[Group] = []
        for reader in readers:
            if reader is None or reader.group is None or not self._is_read_by_element(node, reader):
                self._start(node)
                return
            if reader.group not in found:
                found.append(reader.group)
        node.is_index = any(reader is not None and self._indexes(node, reader) for reader in readers)
        group = self._brought_together(found)
        if group is not None and self._can_join(node, group):
            group.fused.append(node)
            node.group = group
        elif group is None and self._may_repeat(node) and all(self._can_join(node, each) for each in found):
            for each in found:
                each.fused.append(node)
        else:
            self._start(node)

    def _may_repeat(self, node: Node) -> bool:
        """Return whether computing an element costs no more than reading it from memory."""
        made = any(part in self.nodes for part in node.parts if isinstance(part, Value))
        return ops.of(node.instr.op).duplicable and not made

    def _is_read_by_element(self, node: Node, reader: Node) -> bool:
        return (
            reader.kind is not Kind.POSITIONS
            and reader.target is not node.instr
            and not (reader.kind is Kind.GATHER and reader.instr.args[0] is node.instr)
        )

    def _indexes(self, node: Node, reader: Node) -> bool:
        return (
            reader.kind is Kind.GATHER
            or reader.is_index
            or (reader.kind is Kind.SCATTER and node.instr in reader.instr.args[2:])
        )

    def _start(self, node: Node) -> None:
        """Make the instruction the root of a separate group."""
        node.is_index = False
        instr = node.instr
        args = instr.args
        made = instr.type
        match node.kind:
            case Kind.STORE | Kind.REDUCE | Kind.REDUCE_AXES | Kind.POSITIONS:
                frame, made = self.shapes.of(args[0]), args[0].type
            case Kind.SCATTER:
                frame = gathered(self.shapes, args[0], args[2:]) or ()
            case Kind.MASKED_STORE:
                mask = self.shapes.of(args[2])
                frame = (*mask, *self.shapes.of(args[0])[len(mask) :])
            case _:
                frame = self.shapes.of(instr)
        in_order = node.kind in (Kind.SCATTER, Kind.MASKED_STORE, Kind.GATHER)
        backwards = not in_order and in_fortran_order(made) and len(frame) > 1
        node.group = Group([node], frame, backwards, node.position)
        self.groups.append(node.group)

    # ------------------------------------------------------------------------------------------- fusion

    def _can_join(self, node: Node, group: Group) -> bool:
        """Return whether the elements of an array may be computed in the loops of `group`, at its position."""
        return (
            self._unchanged(node, group.position)
            and all(self._keeps_clear(node, root) for root in group.roots)
            and (ops.of(node.instr.op).duplicable or not self._is_repeated(node, group))
        )

    def _unchanged(self, node: Node, position: int) -> bool:
        """Return whether the memory an instruction reads is the same at a different position in the block."""
        first, last = sorted((node.position, position))
        return not any(self.order.writes_between(self._at(first), self._at(last), operand) for operand in node.read)

    def _keeps_clear(self, node: Node, root: Node) -> bool:
        """Return whether a store of one element does not affect the elements read for the next."""
        target = root.target
        if target is None:
            return True
        own = root.kind is not Kind.SCATTER and not node.is_index and node.kind is Kind.ELEMENTWISE
        return all(
            not self.memory.may_share(operand, target)
            or are_apart(operand, target)
            or (own and same_elements(operand, target))
            or self._is_same_place(node, root)
            for operand in node.read
        )

    def _is_same_place(self, node: Node, root: Node) -> bool:
        """Return whether a scatter writes exactly the elements that a gather reads, once each."""
        if node.kind is not Kind.GATHER or root.kind is not Kind.SCATTER:
            return False
        source, *index = node.instr.args
        target, _, *places = root.instr.args
        positions = [place for place in places if is_numeric(place.type)]
        return (
            same_elements(source, target)
            and len(index) == len(places)
            and all(map(same_elements, index, places))
            and len(positions) == 1
            and isinstance(positions[0], Instr)
            and positions[0].op is np.flatnonzero
        )

    def _is_repeated(self, node: Node, group: Group) -> bool:
        """Return whether the loops certainly compute an element repeatedly, as loops over rows do for a row vector."""
        shape = self.shapes.of(node.instr)
        if node.is_index or len(shape) > len(group.frame):
            return True
        padding = len(group.frame) - len(shape)
        varies = [axis >= padding and not shape[axis - padding].is_one for axis in group.order]
        return varies != sorted(varies, reverse=True)

    # ------------------------------------------------------------------------------------------- joining of groups

    def _brought_together(self, groups: Sequence[Group]) -> Group | None:
        """Join several groups at the position of one of them; None if that is impossible."""
        first, *others = sorted(groups, key=lambda group: group.position)
        return first if all(self._join(first, other) for other in others) else None

    def _join_neighbours(self) -> None:
        place = 0
        while place < len(self.groups):
            for other in self.groups[place + 1 : place + 1 + _FAR]:
                if self._join(self.groups[place], other):
                    self.groups.sort(key=lambda group: group.position)
                    break
            else:
                place += 1

    def _join(self, first: Group, second: Group) -> bool:
        """Add a group to another over an equal shape, at the position of the first or else the second, if possible."""
        if not (first.may_move and second.may_move) or first.backwards != second.backwards or not first.frame:
            return False
        if [length.key for length in first.frame] != [length.key for length in second.frame]:
            return False
        if self._can_precede(second, first):
            position = first.position
        elif self._can_follow(first, second):
            position = second.position
        else:
            return False
        first.roots += second.roots
        first.roots.sort(key=lambda node: node.position)
        first.fused += second.fused
        first.position = position
        for node in second.nodes:
            node.group = first
        self.groups.remove(second)
        return True

    def _can_precede(self, group: Group, other: Group) -> bool:
        """Return whether a group may move up to the position of another."""
        own = {node.instr for node in (*group.nodes, *other.nodes) if node.is_by_element}
        for node in group.nodes:
            gathers = node.kind is Kind.GATHER and node.instr.args[0] in own  # it reads arbitrary elements of an array
            if gathers or not self._unchanged(node, other.position):
                return False
            for operand in node.instr.args:
                waits = isinstance(operand, Instr) and self._place_of(operand) >= other.position
                if waits and operand not in own:
                    return False
        return True

    def _can_follow(self, group: Group, other: Group) -> bool:
        """Return whether a group may move down to the position of another."""
        users = (user for root in group.roots for user in self.users.get(root.instr, []) if user is not None)
        if any(user.op is not ops.dim and group.position <= self._place_of(user) <= other.position for user in users):
            return False
        first, last = self._at(group.position), self._at(other.position)
        return not any(self.order.writes_between(first, last, operand) for node in group.nodes for operand in node.read)

    def _place_of(self, instr: Instr) -> int:
        """Return the position of an instruction, that of its group if it is in one; -1 if it is in another block."""
        node = self.nodes.get(instr)
        return self.places.get(instr, -1) if node is None or node.group is None else node.group.position

    def _at(self, position: int) -> Instr:
        return self.block.instrs[position]
