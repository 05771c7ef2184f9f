"""The axes of the arrays in which values are recorded: one for each loop, but one for two loops that make a triangle.

    for i in range(n):                      row = i * (i - 1) >> 1
        for j in range(i):                  x_record[row + j] = x, an array of n * (n - 1) >> 1 elements
            x = math.sin(x)

The trip count of each loop must be known before the outermost one, or be larger by 1, or smaller by 1, in each
iteration of one loop between, whose own count is known. The elements before those of a row are then a sum of successive
integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from zygote_py.adjoints.reverse.stored.trip_counts import INDEX, Trip, cannot_be_negative, hoist, named
from zygote_py.ir import Const, DominatorTree, Instr, Loop, Operand, Value, is_left_out, is_zero
from zygote_py.ir.lazy_dataclass import dataclass

Compute = Callable[..., Operand]  # of an operation and its operands, where an integer is needed
_ZERO, _ONE = Const(0, INDEX), Const(1, INDEX)


@dataclass(frozen=True, eq=False)
class Triangle:
    """The iterations of a loop in all those of a loop around it, the `rows`.

    The first row has `first` iterations, and each that follows has `slope` more, 1 or -1; but none has fewer than 0.
    """

    outer: Loop
    rows: Operand
    first: Operand
    slope: int

    def row(self, index: Operand, compute: Compute, read: Callable[[Value], Operand] = lambda value: value) -> Operand:
        """Return the place of the first iteration of a row; `read` returns what is known before the loops."""
        first = read(self.first) if isinstance(self.first, Value) else self.first
        place = _before(index, first, self.slope, compute)
        return named(compute(max, place, _ZERO), "row")  # which cannot be negative, as the back end sees then

    def size(self, compute: Compute) -> Operand:
        """Return the number of iterations in all rows."""
        if self.slope < 0 and _is_less_or_equal(self.first, self.rows):
            first = not_negative(self.first, compute)
            return _half(first, compute(operator.add, first, _ONE), compute)
        rows = not_negative(self.rows, compute)
        if self.slope < 0:
            return _before(compute(min, rows, not_negative(self.first, compute)), self.first, self.slope, compute)
        if not cannot_be_negative(self.first):
            rows = compute(max, rows, compute(operator.neg, self.first))
        return _before(rows, self.first, self.slope, compute)


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis for the iterations of a loop, `count` of them, or for those that it has in all of a triangle."""

    loop: Loop
    count: Operand | Triangle

    def size(self, compute: Compute) -> Operand:
        """Return the length of the axis."""
        triangle = self.count
        if not isinstance(triangle, Triangle):
            return not_negative(triangle, compute)
        return named(triangle.size(compute), "n")

    def hoisted(self, loop: Loop) -> Axis | None:
        """Return the axis with what is computed before `loop`; None if it may differ between the loop's iterations."""
        if not isinstance(self.count, Triangle):
            count = hoist(self.count, loop)
            return None if count is None else Axis(self.loop, count)
        rows, first = hoist(self.count.rows, loop), hoist(self.count.first, loop)
        if rows is None or first is None:
            return None
        return Axis(self.loop, Triangle(self.count.outer, rows, first, self.count.slope))


def _before(row: Operand, first: Operand, slope: int, compute: Compute) -> Operand:
    """Return the number of iterations before a row of a triangle whose first row has `first`, and each `slope` more.

    The row has iterations itself, or follows one that has; of other rows the result is of no use.
    """
    if slope < 0:
        lengths = compute(operator.sub, compute(operator.mul, Const(2, INDEX), first), row)
        return _half(row, compute(operator.add, lengths, _ONE), compute)
    # Rows of 1, 2, ... iterations would precede the first one, and do not exist.
    least = not_negative(first, compute)
    length = row if is_zero(first) else compute(operator.add, row, first)
    found = _half(length, compute(operator.sub, length, _ONE), compute)
    missing = _half(least, compute(operator.sub, least, _ONE), compute)
    return found if is_zero(missing) else compute(operator.sub, found, missing)


def axes_of(
    loop: Loop, around: tuple[Axis, ...], trips: Mapping[Loop, Trip], tree: DominatorTree
) -> tuple[Axis, ...] | None:
    """Return the axes of the records of a loop, given those of the loop around it.

    There are none if its iterations are not known before the outermost loop. Two loops make a triangle only if the
    inner one runs in each row: others may have few of so many iterations.
    """
    if trips[loop].counted is None:
        return None
    if loop.parent is None:
        return (Axis(loop, trips[loop].count),)
    outermost = loop
    while outermost.parent is not None:
        outermost = outermost.parent
    count = hoist(trips[loop].count, outermost)
    if count is not None:
        return (*around, Axis(loop, count))
    always = loop
    while always.parent is not None and tree.dominates(trips[always].preheader, trips[always.parent].latch):
        always = always.parent
    for axis in around:
        if axis.loop.depth < always.depth or isinstance(axis.count, Triangle):
            continue
        if found := _triangle(trips[loop], trips[axis.loop], outermost):
            return (*(each for each in around if each is not axis), Axis(loop, found))
    return None


def _triangle(trip: Trip, around: Trip, outermost: Loop) -> Triangle | None:
    """Return the triangle of two loops; None if the count of the inner one does not differ by 1 from row to row."""
    how = around.counted
    if how is None or is_left_out("triangular-records"):
        return None
    slope = (_slope(trip.count, {how.phi: 1}, outermost) or 0) * how.step
    start = hoist(how.start, outermost) if abs(slope) == 1 else None
    first = None if start is None else hoist(trip.count, outermost, {how.phi: start})
    rows = None if first is None else hoist(around.count, outermost)
    return None if first is None or rows is None else Triangle(around.loop, rows, first, slope)


def _slope(operand: Operand, known: dict[Operand, int | None], outermost: Loop) -> int | None:
    """Return the multiple of a counter in a sum, of which the rest is the same in all iterations; None if it is not.

    The counter, of which it is 1, and parts of the sum that were met before are `known`.
    """
    if operand in known:
        return known[operand]
    if not isinstance(operand, Instr) or operand.op not in (operator.add, operator.sub):
        return 0 if hoist(operand, outermost) is not None else None
    left, right = (_slope(each, known, outermost) for each in operand.args)
    known[operand] = None if left is None or right is None else left + right * (1 if operand.op is operator.add else -1)
    return known[operand]


def _is_less_or_equal(count: Operand, other: Operand) -> bool:
    """Return whether a count is another, or that less a constant."""
    match count:
        case Instr(op=operator.sub, args=(whole, Const(int(constant)))):
            return whole is other and constant >= 0
    return count is other


def not_negative(count: Operand, compute: Compute) -> Operand:
    """Return a count, or 0 if it is negative."""
    return count if cannot_be_negative(count) else named(compute(max, count, _ZERO), "n")


def _half(left: Operand, right: Operand, compute: Compute) -> Operand:
    """Return the half of a product, which is even."""
    return compute(operator.rshift, compute(operator.mul, left, right), _ONE)
