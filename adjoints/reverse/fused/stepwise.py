"""Arrays of which each iteration of a loop accesses elements of its own, and that nothing accesses afterwards.

    for i in range(start, n, step):         out: each iteration stores to its own element
        out[i] = f(x[i])
        y[i] = y[i] * x[i]                  y: and may read it

If the caller has given the shadows, they are what they are before the loop as after it: an iteration can be reversed
as soon as it has run (see `fused_reverse.py`). Not if the loop has barriers, between which an element may pass from one
thread to another.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence

import numpy as np
from numba import types

from zygote_py.ir import Block, Const, Function, Instr, Loop, Memory, Operand, Phi, Value, invariant, ops, reads, writes

CASTS = (int, np.int64, np.int32, np.uint32, np.uint64)
_ACCESSES = (ops.getitem, ops.setitem, ops.accumulate, ops.initialize)


class Stepwise:
    """Queries on the arrays `given` of a function, by their roots."""

    def __init__(self, function: Function, memory: Memory, given: Collection[Value]) -> None:
        self._accesses: dict[Value, list[tuple[Block, Instr]]] = {root: [] for root in given}
        for block in function.blocks if given else ():
            for instr in block.instrs:
                if instr.op is ops.barrier:
                    continue
                for root in {memory.root(each) for each in (*reads(instr), *writes(instr))} & self._accesses.keys():
                    self._accesses[root].append((block, instr))  # type: ignore[index]

    def is_stepwise(self, root: Value, loop: Loop, after: Collection[Block]) -> bool:
        """Return whether each iteration of a loop has elements of its own, and no block in `after` accesses any."""
        if root not in self._accesses or any(block in after for block, _ in self._accesses[root]):
            return False
        if any(instr.op is ops.barrier for block in loop.order for instr in block.instrs):
            return False
        first, *others = [_index(instr, root) for block, instr in self._accesses[root] if block in loop] or [None]
        if first is None or not all(each == first for each in others):
            return False
        own: Sequence[Operand] = first
        return any(_is_injective(each, loop) and is_nonnegative(each) for each in own)

    def is_stored_last(self, root: Value, store: Instr, blocks: Collection[Block]) -> bool:
        """Return whether a store is the only access to an array in some blocks."""
        found = [instr for block, instr in self._accesses.get(root, ()) if block in blocks]
        return root in self._accesses and found == [store]


def _index(access: Instr, root: Value) -> Sequence[Operand] | None:
    """Return the indices of an element of an array itself; None for what is accessed otherwise."""
    if access.op not in _ACCESSES or access.args[0] is not root or isinstance(access.type, types.Array):
        return None
    index = access.args[1 if access.op is ops.getitem else 2 :]
    return index if all(isinstance(each.type, types.Integer) for each in index) else None


def _is_injective(index: Operand, loop: Loop) -> bool:
    """Return whether an index is different in each iteration of a loop."""
    match index:
        case Phi() if index in loop.header.phis:
            following = [operand for pred, operand in index.incoming.items() if pred in loop]
            return all(_is_step(each, index, loop) for each in following)
        case Instr(op=op, args=(inner,)) if op in CASTS:
            return _is_injective(inner, loop)
        case Instr(op=operator.add | operator.sub, args=(left, right)):
            return any(
                invariant(other, loop) and _is_injective(one, loop) for one, other in ((left, right), (right, left))
            )
        case Instr(op=operator.mul, args=(left, right)):
            return any(
                _is_nonzero(other, loop) and _is_injective(one, loop) for one, other in ((left, right), (right, left))
            )
        case _:
            return False


def is_nonnegative(index: Operand, around: Collection[Phi] = ()) -> bool:
    """Return whether an index is not negative: a negative one counts from the end, and may be that of another one."""
    match index:
        case Const(value=int(value)):
            return value >= 0
        case Phi():
            return index in around or all(is_nonnegative(each, (*around, index)) for each in index.args)
        case Instr(op=op, args=(inner,)) if op in CASTS:
            return is_nonnegative(inner, around)
        case Instr(op=operator.add | operator.mul, args=(left, right)):
            return is_nonnegative(left, around) and is_nonnegative(right, around)
        case Instr():
            return ops.of(index.op).nonnegative
        case _:
            return False


def _is_step(following: Operand, phi: Phi, loop: Loop) -> bool:
    match following:
        case Instr(op=operator.add, args=(left, right)):
            return (left is phi and _is_nonzero(right, loop)) or (right is phi and _is_nonzero(left, loop))
        case Instr(op=operator.sub, args=(left, right)):
            return left is phi and _is_nonzero(right, loop)
        case _:
            return False


def _is_nonzero(operand: Operand, loop: Loop) -> bool:
    """Return whether a number is not 0, such as the step of the range that a loop goes over."""
    match operand:
        case Const(value=int(value)):
            return value != 0
        case Instr(op=op, args=(inner,)) if op in CASTS:
            return _is_nonzero(inner, loop)
        case Instr(op=operator.mul, args=(left, right)):
            return _is_nonzero(left, loop) and _is_nonzero(right, loop)
        case Instr(op=ops.grid_step | ops.block_size | ops.blocks):
            return True
    header = loop.header
    bounds = [arg for instr in header.instrs for arg in instr.args]
    return any(isinstance(each, Instr) and each.op is ops.range_length and each.args[2] is operand for each in bounds)
