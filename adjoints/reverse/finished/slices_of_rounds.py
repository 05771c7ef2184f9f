"""Shadows of which each round of a loop uses a slice of its own: each round makes that slice.

    dg = np.zeros((n, 4, m))
    for t in range(n - 1, -1, -1):              for t in range(n - 1, -1, -1):
        ...                             ->          dg = np.zeros((4, m))
        dg[t, 0, i] += dh * c                       dg[0, i] += dh * c
        ...                                         ...
        da[i] += dg[t, 0, i] * s                    da[i] += dg[0, i] * s

So it is for what a step of the function stores and nothing but the same step reads. No two rounds have the same number,
and the array is made between two runs of the loop, so that each round finds zeros. Nothing may use the array otherwise:
not as a whole, and not outside of the loop.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from numba import types

from zygote_py.ir import (
    Block,
    Const,
    CountedLoop,
    DominatorTree,
    Function,
    Instr,
    Loop,
    LoopNest,
    Operand,
    Type,
    Use,
    Value,
    counted_exit,
    definitions,
    is_left_out,
    loop_nest,
    ops,
    place_before,
    replace,
    uses,
)

_array_of: Callable[[Type, int, Any], Type] = types.Array
_FIRST = {ops.getitem: 1, ops.setitem: 2, ops.initialize: 2, ops.accumulate: 2}  # the operand that is the first index
_DOWN_TO_ZERO = (operator.ge, 0), (operator.gt, -1)


def make_slices_in_rounds(function: Function) -> bool:
    """Let rounds make their slices of arrays of zeros, in place. Return whether there are any."""
    if is_left_out("slices-of-rounds"):
        return False
    arrays = [each for each in function.instrs() if each.op is ops.zeros and len(each.args) > 1]
    if not arrays or any(ops.is_of_threads(each.op) for each in function.instrs()):
        return False
    used, home, nest = uses(function), definitions(function), loop_nest(function)
    made = [each for each in function.instrs() if ops.of(each.op).role is ops.Role.ALLOCATE]
    changed = False
    for array in arrays:
        found = _found(function, nest, home[array], used[array])
        if found is not None and _is_made(made, nest.tree, home, array):
            _narrow(function, nest, array, used[array], *found)
            home[array].instrs.remove(array)
            made.remove(array)
            changed = True
    return changed


def _found(function: Function, nest: LoopNest, home: Block, where: list[Use]) -> tuple[Loop, int] | None:
    """Return the loop whose rounds use slices of an array, and along which axis; None if there is none."""
    accesses = [use for use in where if not _is_length(use)]
    indices = [_index(use) for use in accesses]
    if not indices or any(each is None for each in indices):
        return None
    for loop in nest.around(accesses[0].at):
        count = counted_exit(loop)
        if loop.parent is not nest.innermost(home) or any(use.at not in loop for use in accesses):
            continue
        if count is None or count.phi in function.independent or not _counts_apart(count):
            continue
        if any(use.at is loop.header for use in accesses):
            continue
        places = [{(axis, _beyond(each, count.phi)) for axis, each in enumerate(index or ())} for index in indices]
        for axis, beyond in sorted(set.intersection(*places), key=str):
            if beyond is not None:
                return loop, axis
    return None


def _is_made(made: list[Instr], tree: DominatorTree, home: Mapping[Value, Block], array: Instr) -> bool:
    """Return whether no length is negative: lengths of arrays are not, nor are those of another that is made before."""
    known: set[Operand] = set()
    for each in made:
        if each is not array and tree.dominates(home[each], home[array]):
            known.update(each.args)
    return all(
        each in known
        or (isinstance(each, Const) and isinstance(each.value, int) and each.value >= 0)
        or (isinstance(each, Instr) and each.op is ops.dim)
        for each in array.args
    )


def _counts_apart(count: CountedLoop) -> bool:
    """Return whether no number that a loop counts is negative, so that each is another place on an axis."""
    if count.step > 0:
        return isinstance(count.start, Const) and isinstance(count.start.value, int) and count.start.value >= 0
    least = count.bound.value if isinstance(count.bound, Const) else None
    return any(count.comparison is ops.of(op).comparison and least == value for op, value in _DOWN_TO_ZERO)


def _beyond(operand: Operand, counter: Operand) -> int | None:
    """Return how much larger than a counter a number is: the same in all rounds, and not negative; else None."""
    if operand is counter:
        return 0
    if isinstance(operand, Instr) and operand.op is operator.add and counter in operand.args:
        more = operand.args[operand.args[0] is counter]
        if isinstance(more, Const) and isinstance(more.value, int) and more.value >= 0:
            return more.value
    return None


def _is_length(use: Use) -> bool:
    return isinstance(use.user, Instr) and use.user.op is ops.dim


def _index(use: Use) -> tuple[Operand, ...] | None:
    """Return the index with which an array is used; None if it is used as a whole, or as an operand of another kind."""
    user = use.user
    if not isinstance(user, Instr) or user.op not in _FIRST:
        return None
    array, first = user.args[0], _FIRST[user.op]
    index = user.args[first:]
    is_element = isinstance(array.type, types.Array) and len(index) == array.type.ndim
    if not is_element or not all(isinstance(each.type, types.Integer) for each in index):
        return None
    return None if any(each is array for each in user.args[1:]) else index


def _narrow(function: Function, nest: LoopNest, array: Instr, where: list[Use], loop: Loop, axis: int) -> None:
    """Let the rounds of a loop make the slices along an axis."""
    kind: Any = array.type
    lengths = tuple(each for place, each in enumerate(array.args) if place != axis)
    made = Instr(ops.zeros, lengths, _array_of(kind.dtype, kind.ndim - 1, "C"), array.hint, array.loc)
    accesses = [use for use in where if not _is_length(use)]
    place_before(nest.nearest((use.at for use in accesses), loop), made, accesses)
    for use in accesses:
        user = use.user
        assert isinstance(user, Instr)
        place = _FIRST[user.op] + axis
        user.args = (made, *user.args[1:place], *user.args[place + 1 :])
    for use in where:
        match use.user:
            case Instr(op=ops.dim, args=(_, Const(value=int(place)))) as asked:
                replace(function, {asked: array.args[place]})
