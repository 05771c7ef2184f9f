"""The adjoint of a kernel: each thread runs the primal, then the reverse sweep, with shadows that the caller gives.

    kernel(%x: f64[:], %out: f64[:])                kernel(%x, %out, %dx, %dout)
    %v = getitem %x, %i                             ...                             (the primal)
    %y = math.sin %v                        ->      %dy = getitem %dout, %i
    setitem %out, %y, %i                            setitem %dout, 0.0, %i
                                                    %t = mul %dy, (math.cos %v)
                                                    atomic_add %dx, %t, %i

What holds for one thread holds for all, since they run the same code: no thread writes to an array after a read of
another one unless this code writes to it after that read, or between the same barriers, which is a race in the primal.
So values can be read again in the reverse sweep as in a function. A barrier is reversed to a barrier: what is written
before it and read after it becomes a shadow that is added to before, and taken after.

Arrays in shared memory are parameters here, with shadows of their own; `give_shared` makes them when all else is done.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import Degree, Summaries, expose_results, find_active, find_left_out
from zygote_py.adjoints.device.divergence import check_barriers
from zygote_py.adjoints.device.exclusive import exclusive_accumulations
from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.reverse.adjoint import Prepared, make_adjoint
from zygote_py.adjoints.reverse.joint import join_kernel
from zygote_py.adjoints.reverse.shadows import add_shadows
from zygote_py.adjoints.reverse.snapshots import keep_contents
from zygote_py.ir import (
    Block,
    Builder,
    Const,
    Function,
    Instr,
    Jump,
    Memory,
    Nest,
    Operand,
    Param,
    Type,
    Value,
    check_after,
    cycles,
    inline_calls,
    inserting,
    loop_nest,
    ops,
    reach,
    reads,
    replace_uses,
    routines_of,
    uses,
    writes,
    zero,
)
from zygote_py.ir.lazy_dataclass import dataclass

_INDEX = types.int64


@dataclass(frozen=True, slots=True)
class Shared:
    """An array in shared memory: its type and its lengths, of which the only one is 0 if the launch says how long."""

    type: Type
    lengths: tuple[int, ...]

    @property
    def is_dynamic(self) -> bool:
        """Whether the launch says how long it is."""
        return self.lengths == (0,)

    @property
    def bytes(self) -> int:
        """How many bytes it takes; 0 if the launch says."""
        size = getattr(self.type.dtype, "bitwidth", 64) // 8  # type: ignore[attr-defined]
        return math.prod(self.lengths) * size


def take_threads(function: Function) -> tuple[Shared, ...]:
    """Make a kernel one function, in place, whose barriers name the arrays that threads share.

    Arrays in shared memory become parameters, after the others, and are returned. Raises DifferentiationError.
    """
    for routine in routines_of(function):
        if routine.is_custom:
            raise refuse(
                f"a call of `{routine.__name__}`, which has a rule of its own, is not supported in a kernel that is "
                "differentiated",
                routine.function.loc,
                "call it by vectorize(gradient(...)), or let the kernel call its derivative",
            )
    called = [routine for _, routine in function.calls()]
    for routine, others in cycles(routines_of(function)).items() if called else ():
        if others:
            raise refuse(
                f"`{routine.__name__}` calls itself, which cannot be differentiated in a kernel", routine.function.loc
            )
    while list(function.calls()):
        inline_calls(function, lambda call: True)
    found = _take_shared(function)
    _use_accumulations(function)
    memory = Memory(function)
    arrays = [param for param in function.params if isinstance(param.type, types.Array) and memory.is_written(param)]
    for instr in function.instrs():
        if instr.op is ops.barrier:
            instr.args = tuple(arrays)
    return found


def _take_shared(function: Function) -> tuple[Shared, ...]:
    nest = loop_nest(function)
    found: list[Shared] = []
    for block in function.blocks:
        for instr in [each for each in block.instrs if each.op is ops.shared]:
            if nest.innermost(block) is not None:
                raise refuse(
                    "an array in shared memory that is made in a loop is not supported", instr.loc, "make it before"
                )
            found.append(Shared(instr.type, tuple(int(each.value) for each in instr.args)))  # type: ignore
            param = Param(instr.type, instr.hint or "shared", instr.loc)
            function.params.append(param)
            block.instrs.remove(instr)
            known = {} if found[-1].is_dynamic else _lengths_of(function, instr)
            replace_uses(function, {instr: param, **known})
    if len([each for each in found if each.is_dynamic]) > 1:
        raise refuse(
            "a kernel with several arrays in dynamic shared memory, which are the same memory, is not supported",
            function.loc,
            "make one, and use slices of it",
        )
    return tuple(found)


def _lengths_of(function: Function, array: Instr) -> dict[Value, Operand]:
    """Return the lengths of an array of constant shape, for each instruction that asks for one."""
    return {
        instr: array.args[int(instr.args[1].value)]  # type: ignore
        for instr in function.instrs()
        if instr.op is ops.dim and instr.args[0] is array
    }


_EXTREMES: dict[ops.Op, ops.Op] = {ops.atomic_max: ops.raise_to, ops.atomic_min: ops.lower_to}


def _use_accumulations(function: Function) -> None:
    """Let atomic sums whose former value is not used be accumulations, and likewise extremes, in place."""
    used = uses(function)
    for block in function.blocks:
        instrs: list[Instr] = []
        for instr in block.instrs:
            if instr.op in _EXTREMES and instr not in used and isinstance(instr.type, types.Float):
                instr.op = _EXTREMES[instr.op]
            if instr.op in (ops.atomic_add, ops.atomic_sub) and instr not in used:
                array, value, *index = instr.args
                if instr.op is ops.atomic_sub:
                    value = Instr(operator.neg, (value,), value.type, "", instr.loc)
                    instrs.append(value)
                instr.op, instr.args, instr.type = ops.accumulate, (array, value, *index), types.none
            instrs.append(instr)
        block.instrs = instrs


@dataclass(frozen=True, eq=False)
class KernelAdjoint:
    """The joint function of a kernel, which returns nothing.

    `shadows` are the numbers of its parameters that are shadows, by the numbers of the arrays, and `finals` those of
    arrays with what others are at the end; `written` are arrays that the kernel writes to.
    """

    function: Function
    shadows: dict[int, int]
    finals: dict[int, int]
    written: tuple[int, ...]


def active_shared(primal: Function, active: Sequence[int], shared: Collection[int]) -> list[int]:
    """Return those of the `shared` arrays through which the results depend on the `active` parameters."""
    memory = Memory(primal)
    asked = [primal.params[number] for number in active]
    found = find_active(primal, asked, {}, [param for param in asked if memory.is_written(param)])
    return [number for number in shared if primal.params[number] in found]


def adjoint_of_kernel(
    primal: Function,
    active: Sequence[int],
    shared: Mapping[int, Shared],
    threads: tuple[int, ...],
    axes: int = 3,
    deterministic: bool = False,
) -> KernelAdjoint:
    """Return the joint function of a kernel in canonical form, with the shadows of the `active` parameters: arrays.

    Of these, `shared` are in shared memory; `threads` are how many a block has, along each of the `axes`.
    `deterministic` refuses kernels that read sums of threads.
    """
    in_blocks = [primal.params[number] for number in shared]
    check_barriers(primal, in_blocks, axes)
    if deterministic:
        own = exclusive_accumulations(primal, in_blocks, axes)
        _refuse_varying_sums(primal, Memory(primal), "with deterministic=True", own)
    expose_results(primal)
    memory = Memory(primal)
    params = list(primal.params)
    written = [param for param in params if isinstance(param.type, types.Array) and memory.is_written(param)]
    asked = [params[number] for number in active]
    results = [param for param in asked if param in written]
    activity = find_active(primal, asked, {}, results)
    left_out = find_left_out(primal, activity, Summaries(), Degree.KEPT, results)
    kept = keep_contents(primal, activity)
    finals = _finals(primal, [params[number] for number in active if number not in shared])
    latched = _latched(primal)
    shadows = add_shadows(primal, activity, {}, given=True)
    adjoint = make_adjoint(Prepared(primal, activity, shadows, {}, kept, (), {}, True, left_out, finals, latched))
    check_after("differentiate", primal, adjoint)
    places = {number: primal.params.index(shadows[params[number]]) for number in active}  # type: ignore[arg-type]
    covering = _covering(primal, {params[number]: each for number, each in shared.items()}, threads)
    taken = list[Value](primal.params)
    of_finals = {number: taken.index(finals[param]) for number, param in enumerate(params) if param in finals}
    return KernelAdjoint(join_kernel(adjoint, shadows, covering), places, of_finals, tuple(map(params.index, written)))


def _finals(function: Function, arrays: Sequence[Param]) -> dict[Value, Value]:
    """Add a parameter for what each array in global memory is at the end whose elements several threads raise or lower.

    Arrays in shared memory are read again. Raises DifferentiationError for one that is written otherwise later.
    """
    memory = Memory(function, barriers=False)
    places = {instr: (block, n) for block in function.blocks for n, instr in enumerate(block.instrs)}
    found: dict[Value, Value] = {}
    made: list[Param] = []
    for instr in function.instrs():
        if ops.of(instr.op).role is not ops.Role.EXTREME:
            continue
        block, place = places[instr]
        after = list(reach(block.successors, lambda each: each.successors))
        for other in memory.writers(instr.args[0]):
            where, at = places[other]
            if other.op is not instr.op and (where in after or (where is block and at > place)):
                raise refuse(
                    "writing to an array after an atomic maximum or minimum in the same kernel is not supported",
                    other.loc,
                    "do it in another kernel, or use another array",
                )
        root = memory.root(instr.args[0])
        for other, (where, at) in places.items():
            if other.op in (ops.barrier, instr.op) or root not in map(memory.root, reads(other)):
                continue
            if block in reach(where.successors, lambda each: each.successors) or (where is block and at < place):
                raise refuse(
                    "an atomic maximum or minimum of an array that was read before in the same kernel is not supported",
                    instr.loc,
                    "use another array for each of them, or another kernel",
                )
        if root in arrays and root not in found:
            assert isinstance(root, Param)
            made.append(Param(root.type, f"{root.hint}_final", root.loc))
            found[root] = made[-1]
    if made:
        _refuse_varying_sums(function, memory, "in a kernel with an atomic maximum or minimum in global memory")
    function.params += made
    return found


def _refuse_varying_sums(function: Function, memory: Memory, where: str, own: Collection[Instr] = ()) -> None:
    """Refuse to read atomic sums of floats, whose last bits differ from launch to launch; `own` sums do not vary."""
    sums = [i for i in function.instrs() if i.op is ops.accumulate and len(i.args) > 2 and i not in own]
    roots = {memory.root(instr.args[0]) for instr in sums if isinstance(instr.args[1].type, types.Float)}
    for instr in function.instrs():
        if instr.op is ops.getitem and memory.root(instr.args[0]) in roots & {memory.root(p) for p in function.params}:
            raise refuse(
                f"reading a sum of several threads, whose last bits vary, {where} is not supported",
                instr.loc,
                "read it in another kernel",
            )


def _latched(function: Function) -> dict[Instr, Instr]:
    """Keep the value that each atomic maximum or minimum took, since it is compared with what became of it."""
    found: dict[Instr, Instr] = {}
    for block in function.blocks:
        instrs: list[Instr] = []
        for instr in block.instrs:
            if ops.of(instr.op).role is ops.Role.EXTREME:
                value = instr.args[1]
                found[instr] = Instr(ops.latch, (value,), value.type, getattr(value, "hint", ""), instr.loc)
                instrs.append(found[instr])
            instrs.append(instr)
        block.instrs = instrs
    return found


def _covering(function: Function, shared: Mapping[Param, Shared], threads: tuple[int, ...]) -> dict[Instr, Value]:
    """Return the stores by which the threads of a block, each by its own, set all elements of an array."""

    def axis_of(index: Operand) -> int | None:
        while isinstance(index, Instr) and index.op in (int, np.int64):
            index = index.args[0]
        match index:
            case Instr(op=ops.thread_index, args=(Const(value=int(axis)),)):
                return axis
            case _:
                return None

    found: dict[Instr, Value] = {}
    for instr in function.instrs():
        array = instr.args[0] if instr.op is ops.setitem else None
        if not isinstance(array, Param) or array not in shared:
            continue
        axes = [axis_of(index) for index in instr.args[2:]]
        lengths = shared[array].lengths
        of_axes = {axis: length for axis, length in zip(axes, lengths, strict=True) if axis is not None}
        if len(of_axes) == len(lengths) and all(threads[axis] >= length > 0 for axis, length in of_axes.items()):
            found[instr] = array
    return found


def drop_barriers(function: Function) -> None:
    """Remove barriers between which no memory that threads share is accessed, but for the first; in place."""
    for block in function.blocks:
        kept: list[Instr] = []
        waits: Instr | None = None
        for instr in block.instrs:
            if instr.op is ops.barrier:
                if waits is not None:
                    waits.args = tuple(dict.fromkeys((*waits.args, *instr.args)))
                    continue
                waits = instr
            elif reads(instr) or writes(instr):
                waits = None
            kept.append(instr)
        block.instrs = kept


def use_atomic_updates(function: Function, arrays: Collection[Value], shared: Collection[Value], axes: int) -> None:
    """Make accumulations into arrays that threads share atomic, unless no two of them meet at an element; in place."""
    memory = Memory(function)
    roots = {memory.root(array) for array in arrays}
    own = exclusive_accumulations(function, shared, axes)
    for instr in function.instrs():
        if instr.op is ops.accumulate and memory.root(instr.args[0]) in roots and instr not in own:
            instr.op = ops.atomic_add


def give_shared(function: Function, shared: Sequence[tuple[Shared, Param, Param | None]]) -> None:
    """Make the arrays in shared memory, and their shadows, which the threads of a block fill with zeros; in place."""
    if not shared:
        return
    start = Block(function.loc)
    b = Builder(start, function.loc)
    made: dict[Value, Operand] = {}
    for each, array, shadow in shared:
        if each.is_dynamic and shadow is not None:
            made[array], made[shadow] = _halves(b, array)
            continue
        for param in (array, shadow):
            if param is not None:
                lengths = [Const(length, _INDEX) for length in each.lengths]
                made[param] = b.call(ops.shared, *lengths, type=each.type, hint=param.hint)
    blocks = [start]
    filled = [made[shadow] for _, _, shadow in shared if shadow is not None]
    for each, _, shadow in shared:
        if shadow is not None:
            blocks += _fill_together(blocks[-1], made[shadow], each.lengths)
    if filled:
        Builder(blocks[-1]).call(ops.barrier, *filled, type=types.none)
    blocks[-1].terminator = Jump(function.entry)
    function.blocks[:0] = blocks
    function.params = [param for param in function.params if param not in made]
    replace_uses(function, made)


def _halves(b: Builder, param: Param) -> tuple[Instr, Instr]:
    """Return the two halves of the shared memory that the launch gives."""
    kind: types.Array = param.type  # type: ignore[assignment]
    whole = b.call(ops.shared, Const(0, _INDEX), type=kind, hint="memory")
    size = b.call(ops.dim, whole, Const(0, _INDEX), type=_INDEX)
    half = b.call(operator.floordiv, size, Const(2, _INDEX), type=_INDEX, hint="half")
    parts = []
    for bounds, hint in (((Const(0, _INDEX), half), param.hint), ((half, size), f"d{param.hint}")):
        part = b.call(slice, *bounds, type=types.slice2_type)
        parts.append(b.call(ops.getitem, whole, part, type=kind, hint=hint))
    return parts[0], parts[1]


def _fill_together(before: Block, array: Operand, constant: tuple[int, ...]) -> list[Block]:
    """Let the threads of a block set all elements of an array to zero; return the new blocks, the last one open."""
    kind: types.Array = array.type  # type: ignore[assignment]
    b = Builder(before, before.loc)
    own, count = _places(b, ops.thread_index, ops.block_size)
    lengths: list[Operand] = [Const(length, _INDEX) for length in constant]
    if constant == (0,):
        lengths = [b.call(ops.dim, array, Const(0, _INDEX), type=_INDEX)]
    size = _product(b, lengths)
    rounds = b.call(ops.range_length, own, size, count, type=_INDEX)
    nest = Nest(before, [rounds], ["k"], before.loc)
    inside = Builder(nest.bodies[0], before.loc)
    step = inside.call(operator.mul, nest.counters[0], count, type=_INDEX)
    rest: Operand = inside.call(operator.add, own, step, type=_INDEX)
    index: list[Operand] = []
    for length in reversed(lengths[1:]):
        index.insert(0, inside.call(operator.mod, rest, length, type=_INDEX))
        rest = inside.call(operator.floordiv, rest, length, type=_INDEX)
    inside.call(ops.setitem, array, zero(kind.dtype), rest, *index, type=types.none)
    return nest.finish()


def _product(b: Builder, factors: Sequence[Operand]) -> Operand:
    product = factors[0]
    for factor in factors[1:]:
        product = b.call(operator.mul, product, factor, type=_INDEX)
    return product


def _register(b: Builder, op: ops.Op, axis: int) -> Instr:
    return b.call(np.int64, b.call(op, Const(axis, _INDEX), type=types.int32), type=_INDEX)


def _places(b: Builder, place: ops.Op, size: ops.Op) -> tuple[Operand, Operand]:
    """Return the number of a thread in its block, or of a block, counted over all axes, and of how many."""
    sizes = [_register(b, size, axis) for axis in range(3)]
    number: Operand = _register(b, place, 2)
    for axis in (1, 0):
        number = b.call(operator.mul, number, sizes[axis], type=_INDEX)
        number = b.call(operator.add, number, _register(b, place, axis), type=_INDEX)
    return number, _product(b, sizes)


def give_lane(function: Function, lane: Param, lanes: Param) -> None:
    """Let a kernel compute the number of its thread, and of all threads, which were parameters; in place."""
    with inserting(function.entry, loc=function.loc) as b:
        block, blocks = _places(b, ops.block_index, ops.blocks)
        thread, threads = _places(b, ops.thread_index, ops.block_size)
        start = b.call(operator.mul, block, threads, type=_INDEX)
        made: dict[Value, Operand] = {
            lane: b.call(operator.add, start, thread, type=_INDEX, hint="lane"),
            lanes: b.call(operator.mul, blocks, threads, type=_INDEX, hint="lanes"),
        }
    function.params = [param for param in function.params if param not in made]
    replace_uses(function, made)
