"""Sums over the threads of a grid whose order does not vary, in two passes.

    atomic_add %dp, %d, 0                   %dp_part = record (dim %dp, 0) : f64[::1]       zeros, of the thread's own
                                    ->      accumulate %dp_part, %d, 0

A second kernel adds the parts of all threads, element by element, in the order of their numbers. This is for elements
that all threads add to, as the gradient of a parameter: each thread has a whole array of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from numba import types

from zygote_py.adjoints.device.arrays import fill
from zygote_py.adjoints.device.exclusive import exclusive_accumulations
from zygote_py.adjoints.errors import refuse
from zygote_py.ir import (
    Const,
    Function,
    Instr,
    Loc,
    Memory,
    Operand,
    Param,
    Phi,
    Value,
    has_memory,
    ops,
    reads,
    writes,
)

_INDEX = types.int64
_VARY = (ops.thread_index, ops.block_index, ops.grid, ops.latch, *ops.ATOMIC.values())


def give_parts(
    function: Function, shadows: Iterable[Param], shared: Collection[Param], axes: int
) -> dict[Instr, Param]:
    """Let each thread add to parts of its own where all threads add to the same elements of `shadows`, in place.

    `shared` are shadows in shared memory. Returns the array that the parts in each record belong to. Raises
    DifferentiationError for other elements at which threads meet.
    """
    memory = Memory(function)
    given = list(shadows)
    roots = {memory.root(each): each for each in (*given, *shared)}
    parts: dict[Param, Instr] = {}
    found = _meeting(function, roots, shared, axes)
    for instr in found:
        array = roots[memory.root(instr.args[0])]
        if array in given and instr.args[0] is array and all(_is_uniform(each) for each in instr.args[2:]):
            if not array.type.ndim:  # type: ignore[attr-defined]
                raise refuse(
                    f"`{array.hint}` is of an array without axes, to which all threads add, with deterministic=True",
                    _place(instr) or function.loc,
                    "pass an array of one element",
                )
            if array not in parts:
                parts[array] = _part(function, array)
            instr.args = (parts[array], *instr.args[1:])
    for instr in _meeting(function, roots, shared, axes) if found else ():
        name = roots[memory.root(instr.args[0])].hint
        raise refuse(
            f"threads meet at elements of `{name}` that are not the same for all threads, so that the order of sums "
            "varies, with deterministic=True",
            _place(instr) or function.loc,
            "let each thread read elements of its own, or leave out `deterministic`",
        )
    _check_never_read(function, parts)
    return {part: array for array, part in parts.items()}


def _meeting(
    function: Function, roots: Mapping[Value | None, Param], shared: Collection[Param], axes: int
) -> list[Instr]:
    """Return the accumulations into shadows at elements at which threads may meet."""
    memory = Memory(function)
    own = exclusive_accumulations(function, shared, axes)
    return [
        instr
        for instr in function.instrs()
        if instr.op is ops.accumulate and memory.root(instr.args[0]) in roots and instr not in own
    ]


def _part(function: Function, array: Param) -> Instr:
    """Make a thread's own array like another one, of zeros, where the function starts."""
    kind: types.Array = array.type  # type: ignore[assignment]
    lengths = [Instr(ops.dim, (array, Const(axis, _INDEX)), _INDEX) for axis in range(kind.ndim)]
    made = Instr(ops.record, tuple(lengths), kind.copy(layout="C"), f"{array.hint}_part", function.loc)
    function.entry.instrs[:0] = [*lengths, made]
    fill(function, function.entry, len(lengths) + 1, made, lengths, dims_are_known=True)
    return made


def _is_uniform(operand: Operand, around: Collection[Phi] = ()) -> bool:
    """Return whether a number is the same for all threads, but for the branches that they take."""
    if not isinstance(operand, Value):
        return True
    if isinstance(operand, Param):
        return not has_memory(operand.type)
    if isinstance(operand, Phi):
        return operand in around or all(_is_uniform(each, (*around, operand)) for each in operand.args)
    if not isinstance(operand, Instr) or operand.op in _VARY:
        return False
    if operand.op in (ops.getitem, ops.dim):
        array, *index = operand.args
        return isinstance(array, Param) and all(_is_uniform(each, around) for each in index)
    return not reads(operand) and not writes(operand) and all(_is_uniform(each, around) for each in operand.args)


def _check_never_read(function: Function, parts: Mapping[Param, Instr]) -> None:
    """Refuse to add to parts of an array that the kernel reads, or sets, since the sums come after it."""
    memory = Memory(function)
    roots = {memory.root(array): array for array in parts}
    for instr in function.instrs():
        if instr.op is ops.accumulate or instr.op is ops.dim:
            continue
        for each in (*reads(instr), *writes(instr)):
            if memory.root(each) in roots:
                name = roots[memory.root(each)].hint
                raise refuse(
                    f"`{name}`, the shadow of an array that the kernel writes to, is a sum over all threads, which "
                    "comes too late with deterministic=True",
                    _place(instr) or function.loc,
                    "let another kernel write to the array, or leave out `deterministic`",
                )


def _place(instr: Instr) -> Loc | None:
    """Return where an instruction is in the user's code, or what it was made for."""
    return instr.loc or getattr(instr.origin, "loc", None)
