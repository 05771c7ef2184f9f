"""Coverage: whether an access in nested loops is one to each element of an array, and to none of them twice.

for i in range(x.shape[0]):
    for j in range(x.shape[1] - 1, -1, -1):
        y[i, j] = ...                           all elements of an `y` of that shape, once each
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from zygote_py.ir import ops
from zygote_py.ir.analysis import CountedLoop, Loop, LoopNest, counted_exit
from zygote_py.ir.arrays.shapes import Length, Shape, Shapes
from zygote_py.ir.core import Block, Const, Instr, Operand
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Visit:
    """How loops let an index run over the elements of an array: to none of them twice.

    Attributes
    ----------
    loop : Loop
        The outermost of the loops.
    is_whole : bool
        Whether each element is visited.
    """

    loop: Loop
    is_whole: bool


def visit_of(
    nest: LoopNest, shapes: Shapes, index: Sequence[Operand], at: Block, shape: Shape, within: Loop | None = None
) -> Visit | None:
    """Return how an index in a block visits the elements of an array; None if it may visit one twice.

    Parameters
    ----------
    nest : LoopNest
        The loops of the function.
    shapes : Shapes
        The lengths of its arrays.
    index : sequence of Operand
        The index, one integer for each axis.
    at : Block
        The block in which it is used.
    shape : tuple of Length
        The shape of the array.
    within : Loop, optional
        A loop around these loops.
    """
    if len(index) != len(shape) or not index:
        return None
    needed = list(zip(index, shape, strict=True))
    block, around, outermost, is_whole = at, nest.innermost(at), None, True
    while needed:
        if around is None or around is within or around not in nest.loops:
            return None
        how = counted_exit(around)
        match = [] if how is None else [pair for pair in needed if pair[0] is how.phi]
        if how is None or len(match) != 1 or not _is_natural(how) or block is around.header:
            return None
        (latch,) = around.latches if len(around.latches) == 1 else (None,)
        exits = [inside for inside, _ in around.exits]
        is_whole = is_whole and latch is not None and nest.tree.dominates(block, latch)
        is_whole = is_whole and exits == [around.header] and not around.raising_exits
        is_whole = is_whole and _counts_over(how, match[0][1], shapes)
        needed.remove(match[0])
        outermost, block, around = around, around.header, around.parent
    return None if outermost is None else Visit(outermost, is_whole)


def _is_natural(how: CountedLoop) -> bool:
    """Return whether a counter is never negative in the body of its loop; in the header it may be, at the end."""
    if how.step > 0:
        least = _value(how.start)
        return least is not None and least >= 0
    last = _value(how.bound)
    return last is not None and last >= (0 if how.comparison.of_equals else -1)


def _counts_over(how: CountedLoop, length: Length, shapes: Shapes) -> bool:
    """Return whether a counter takes all values from 0 to the length of an axis, up or down."""
    if how.step == 1:
        is_first = _value(how.start) == 0 and how.comparison.op is operator.lt
        return is_first and shapes.length(how.bound).key == length.key
    if how.step != -1 or _value(how.bound) != (0 if how.comparison.of_equals else -1):
        return False
    match how.start:
        case Instr(op=operator.sub, args=(n, one)) if _value(one) == 1:
            return shapes.length(n).key == length.key
        case Const(int(last)):
            return shapes.length(Const(last + 1, how.start.type)).key == length.key
    return False


def _value(operand: Operand) -> int | None:
    """Return the value of an integer, if it is a constant."""
    if isinstance(operand, Instr) and operand.op is ops.const:
        (operand,) = operand.args
    return operand.value if isinstance(operand, Const) and isinstance(operand.value, int) else None
