"""Tangents in several directions as one value: an operation on a tangent is written, and compiled, once for all.

    %ty = mul %tx, %w : f64x4                   # instead of four products
    setitem %ta, %ty, %i                        # `ta` holds four numbers for each element of `a`

The pushforward takes and returns the tangents of each direction; they are put together where it begins and taken apart
where it ends. That suits functions of loops over floats: `NotInLanes` is raised for others, such as those with products
of matrices, lists of arrays, or complex numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import (
    carries_adjoint,
    expose_leaves,
    expose_results,
    find_active,
    is_array,
    is_number,
    rank_of,
)
from zygote_py.adjoints.forward.companions import Companions, Walk
from zygote_py.adjoints.forward.pushforward import Pushed
from zygote_py.adjoints.forward.tangents import Tangents, tangent_type
from zygote_py.adjoints.reverse.calls import Case, name_apart
from zygote_py.adjoints.rules.formulas.expand import Emit
from zygote_py.ir import (
    NONE,
    Builder,
    Const,
    Function,
    Instr,
    Lanes,
    Memory,
    Operand,
    Param,
    Routine,
    Type,
    Value,
    check_after,
    components_of,
    cycles,
    inserting,
    ops,
    replace_uses,
    with_components,
    zero,
)

_LINEAR = (operator.add, operator.sub, operator.neg)


class NotInLanes(Exception):
    """The tangents of a function are not all floats of one kind, in arrays in C order, computed by themselves."""


def push_in_lanes(
    routines: Collection[Routine],
    primal: Function,
    wrt: Sequence[Param],
    count: int,
    known: Mapping[Param, Sequence[Const | None]],
) -> Pushed:
    """Make the pushforward of a function in canonical form in `count` directions, as `Pushforwards.push` does.

    The function is changed. Raises NotInLanes, and leaves the function half done, if it is not one for this.
    """
    if any(cycles(routines).values()):
        raise NotInLanes  # recursive functions, which call each other by pointers that other processes read
    domain = LaneTangents(count)
    parts = expose_leaves(primal, wrt)
    expose_results(primal)
    walk = Companions(routines, domain).add_to(primal, wrt, find_active(primal, wrt, parts), parts)
    found = {block: walk.results(block, end.args[0])[0] for block, end in primal.returns()}
    memory = Memory(primal)
    for block, end in primal.returns():
        b = Builder(block)
        changes = _copied(b, found[block], memory)
        b.return_packed([end.args[0], *(domain.apart(b, changes, number) for number in range(count))])
    tangents: list[Operand] = []
    joined: dict[Value, Operand] = {}
    with inserting(primal.entry) as b:
        for param in wrt:
            kind = _in_any_order(tangent_type(param.type))
            own: list[Operand] = [
                Param(kind, f"t{param.hint}_{number}", param.loc) if constant is None else constant
                for number, constant in enumerate(known.get(param, [None] * count))
            ]
            (whole,) = walk.companions[param]
            assert isinstance(whole, Param)
            joined[whole] = domain.together(b, own, whole.hint)
            tangents += own
    replace_uses(primal, joined)
    primal.params = [each for each in primal.params if each not in joined]
    primal.params += [each for each in tangents if isinstance(each, Param)]
    name_apart(primal.params)
    check_after("push in lanes", primal)
    return Pushed(primal, tuple(tangents), domain.has_poles)


class LaneTangents(Tangents):
    """Tangents in `count` directions as one companion."""

    def __init__(self, count: int) -> None:
        self.width = 1
        self.count = count

    def type_of(self, kind: Type) -> Type:
        """Return the type of several floats, or of an array of such."""
        match kind:
            case types.Float():
                return Lanes(kind, self.count)
            case types.Array(dtype=types.Float()) if kind.aligned and kind.ndim:
                return _array_of(Lanes(kind.dtype, self.count), kind.ndim, "A" if kind.layout == "A" else "C")
            case types.List(dtype=types.Float()):
                return types.List(Lanes(kind.dtype, self.count))
            case types.BaseTuple():
                parts = components_of(kind)
                return with_components(
                    kind, tuple(self.type_of(each) if carries_adjoint(each) else types.none for each in parts)
                )
            case _:
                raise NotInLanes

    def zero(self, kind: Type) -> Operand:
        """Return zeros."""
        return zero(self.type_of(kind)) if is_number(kind) else NONE

    def zeros(self, b: Builder, array: Operand, hint: str = "") -> Operand:
        """Return an array of zeros."""
        if not is_array(array.type):
            raise NotInLanes
        return b.call(ops.zeros, *_lengths(b, array), type=self.type_of(array.type), hint=hint)

    def allocated(self, walk: Walk, instr: Instr) -> Operand:
        """Return an array of zeros, or of undefined elements if no element is read before it is stored."""
        if instr in walk.records:
            return walk.emit(ops.record, instr.args, instr)
        if ops.of(instr.op).role is ops.Role.ALLOCATE:
            return walk.emit(ops.zeros, instr.args, instr)
        return walk.emit(ops.zeros, _lengths(walk.b, instr.args[0]), instr)

    def case(self, routine: Routine, case: Case) -> Case:
        """Return the case reduced to the parameters that are active."""
        return Case(case.active, frozenset(), False)

    def custom(self, routine: Routine, case: Case, name: str) -> Function | None:
        """Raise NotInLanes: the user has written the rule for floats."""
        raise NotInLanes

    def store(self, walk: Walk, instr: Instr, number: int) -> None:
        """Store the tangent of the stored value."""
        whole, value, *index = instr.args
        if is_array(whole.type) and not index and not is_array(value.type):
            raise NotInLanes  # a number for all elements
        super().store(walk, instr, number)

    def view(self, walk: Walk, instr: Instr, number: int) -> Operand:
        """Return the same view of the tangents."""
        array, *index = instr.args
        is_plain = all(isinstance(each.type, types.Integer | types.SliceType) for each in index)
        if instr.op is not ops.getitem or not is_plain or getattr(array.type, "layout", "F") == "F":
            raise NotInLanes
        return super().view(walk, instr, number)

    def maker(self, walk: Walk) -> Emit:
        """Return what makes an instruction of a rule, which is linear in the tangent."""

        def make(op: ops.Op, args: tuple[Operand, ...], kind: Type) -> Instr:
            several = [isinstance(arg.type, Lanes) for arg in args]
            if not any(several):
                return walk.make(op, args, kind)
            if op is ops.select:
                condition, *arms = args
                return walk.make(op, (condition, *(self._alike(arm) for arm in arms)), self.type_of(kind))
            is_linear = op in _LINEAR and all(several)
            is_scaled = (op is operator.mul and sum(several) == 1) or (op is np.divide and several == [True, False])
            if not (is_linear or is_scaled or op is ops.guarded):
                raise NotInLanes
            return walk.make(op, args, self.type_of(kind))

        return make

    def _alike(self, arm: Operand) -> Operand:
        """Return an arm of a selection whose other arm is a tangent."""
        if isinstance(arm.type, Lanes):
            return arm
        if isinstance(arm, Const):
            return Const(arm.value, self.type_of(arm.type))
        raise NotInLanes

    def whole(self, walk: Walk, instr: Instr, items: Mapping[int, Instr]) -> None:
        """Copy the tangents of an array that is copied; raise NotInLanes for other operations on whole arrays."""
        if instr.op is not np.copy:
            raise NotInLanes
        walk.companions[instr] = (walk.emit(np.copy, (walk.of(instr.args[0], 0),), instr),)

    def together(self, b: Builder, parts: Sequence[Operand], hint: str) -> Operand:
        """Return the tangents of a value in all directions as one."""
        kind = parts[0].type
        if isinstance(kind, types.BaseTuple):
            items = [[b.item(part, number) for part in parts] for number in range(len(components_of(kind)))]
            return b.pack([self.together(b, each, "") for each in items], kind)
        if isinstance(kind, types.NoneType):
            return parts[0]
        op = ops.interleaved if isinstance(kind, types.Array) else ops.lanes
        return b.call(op, *parts, type=self.type_of(kind), hint=hint)

    def apart(self, b: Builder, value: Operand, number: int) -> Operand:
        """Return the tangent in one of the directions."""
        match value.type:
            case types.BaseTuple():
                return b.pack([self.apart(b, item, number) for item in b.items(value)], value.type)
            case Lanes(dtype=kind):
                if isinstance(value, Const):
                    return Const(value.value, kind)
                return b.call(ops.lane, value, Const(number, types.int64), type=kind)
            case types.Array(dtype=Lanes(dtype=kind), ndim=ndim):
                made = _array_of(kind, ndim, "A")
                return b.call(ops.lane_of_array, value, Const(number, types.int64), type=made)
            case types.List():
                raise NotInLanes
            case _:
                return value


def _copied(b: Builder, value: Operand, memory: Memory | None) -> Operand:
    """Return the tangents of a result, with copies of those that are the caller's own, as it may write to them.

    Without `memory`, these are all of them.
    """
    if isinstance(value.type, types.BaseTuple):
        is_made = isinstance(value, Instr) and value.op is ops.pack
        return b.pack([_copied(b, item, memory if is_made else None) for item in b.items(value)], value.type)
    is_made = memory is not None and isinstance(memory.root(value), Instr)
    is_given = isinstance(value.type, types.Array) and not is_made
    return b.call(np.copy, value, type=value.type, hint=getattr(value, "hint", "")) if is_given else value


_array_of: Callable[..., Type] = types.Array


def _in_any_order(kind: Type) -> Type:
    """Return the type of a tangent whose arrays are in any order: they are read once, in the order that they have."""
    match kind:
        case types.BaseTuple():
            return with_components(kind, tuple(map(_in_any_order, components_of(kind))))
        case types.Array():
            return _array_of(kind.dtype, kind.ndim, "A")
        case _:
            return kind


def _lengths(b: Builder, array: Operand) -> list[Operand]:
    return [b.call(ops.dim, array, Const(axis, types.int64), type=types.int64) for axis in range(rank_of(array.type))]
