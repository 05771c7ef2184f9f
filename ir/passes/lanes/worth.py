"""Whether it pays to run the iterations of a loop side by side: a count of operations, ten times for each inner loop.

An operation on several numbers costs as much as four, and so does a function where the user allows those of vectors
(docs/vector-functions.md). An operation that is done for each lane costs as much as in as many iterations, and so does
reading elements that do not stand next to each other. Of innermost loops without sums, half are taken to become vectors
of the processor's anyway; and those with sums become vectors if the user allows sums in any order.
"""

from __future__ import annotations

import math
import operator

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.loops import CountedLoop, Loop, LoopNest, counted
from zygote_py.ir.core import Block, Const, Instr
from zygote_py.ir.ops import Cost
from zygote_py.ir.passes.lanes.varying import Kind, Varying

_ROUNDS = 10  # of an inner loop
_FEW = 16  # rounds, which are not worth the vectors
_OF_ALL = 4  # the cost of an operation on all lanes
_FUNCTION, _DIVISION = 20, 4
_AT_LEAST = 1.25  # times as fast
FUNCTIONS = frozenset(  # of several numbers at once
    (
        *(math.exp, math.log, math.sin, math.cos, math.sqrt, abs),
        *(np.exp, np.log, np.sin, np.cos, np.sqrt, np.abs),
    )
)
_DIVISIONS = (operator.truediv, operator.floordiv, operator.mod)


def is_worth_it(found: Varying, nest: LoopNest, width: int) -> bool:
    """Return whether the operations of a loop cost less in lanes."""
    one_by_one, side_by_side = 0.0, 0.0
    for block in found.loop.order:
        inner = nest.innermost(block)
        assert inner is not None
        rounds = _ROUNDS ** (inner.depth - found.loop.depth)
        share = _share(found, inner)
        for instr in block.instrs:
            cost = _cost(instr)
            one_by_one += rounds * cost * width * share
            side_by_side += rounds * cost * _in_lanes(found, instr, width)
    return one_by_one > _AT_LEAST * side_by_side


def _cost(instr: Instr) -> int:
    """Return what an instruction costs; arithmetic of indices is part of reading and storing elements."""
    if isinstance(instr.type, types.Integer) and instr.op is not ops.getitem:
        return 0
    if instr.op in _DIVISIONS or ops.of(instr.op).divides:
        return _DIVISION
    return _FUNCTION if ops.of(instr.op).cost is Cost.FUNCTION else 1


def _in_lanes(found: Varying, instr: Instr, width: int) -> float:
    """Return how often the cost of an instruction is paid for all lanes."""
    array = instr.args[0] if instr.args else None
    if instr.op is ops.getitem and array not in found.lanes:
        return 1.0 if found.is_uniform(instr.args) else 1.5 * width
    if instr.op in (ops.setitem, ops.initialize, ops.accumulate) and not found.is_uniform(instr.args[2:]):
        return 2.0 * width
    if found.is_uniform(instr.args) and array not in found.added:
        return 1.0
    is_of_each = _cost(instr) >= _FUNCTION and not (instr.op in FUNCTIONS and found.function.allows("afn"))
    return width if found.kind(instr) is Kind.EACH or is_of_each else _OF_ALL


def _share(found: Varying, loop: Loop) -> float:
    """Return what a loop costs one by one, of the operations in it: less if it becomes vectors of the processor's."""
    bodies: list[Block] = [block for block in loop.order if block is not loop.header]
    if loop.children or len(bodies) != 1:
        return 1.0
    if not any(isinstance(phi.type, types.Float) for phi in loop.header.phis):
        return 0.5
    function = found.function
    if not function.allows("reassoc") or not found.adds_up(loop):
        return 1.0
    match counted(loop, function):
        case CountedLoop(start=Const(value=int() as start), bound=Const(value=int() as end)) if abs(end - start) < _FEW:
            return 1.0
    functions = [instr for instr in bodies[0].instrs if _cost(instr) >= _FUNCTION]
    are_of_vectors = function.allows("afn") and all(each.op in FUNCTIONS for each in functions)
    return 0.25 if are_of_vectors or not functions else 1.0
