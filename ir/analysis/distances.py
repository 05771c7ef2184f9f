"""Whether an element that has been read may be written to later, by the indices alone.

    for k in range(n):
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]        a[k, j] is not written to any more: i is larger than any k so far

The indices are affine expressions of loop counters. A write comes later in a later round of a loop around both, or
further on in the same round. For each of these cases the difference of an index of the write and that of the read is
bounded, with the bounds of the counters and what is known of the rounds: the cases are apart if it cannot be 0 for one
axis. Indices must not be negative, as these count from the end.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.effects import is_fresh, is_view
from zygote_py.ir.analysis.loops import CountedLoop, Loop, LoopNest, counter_within
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Param, Phi, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Role


@dataclass(frozen=True, eq=False, slots=True)
class Affine:
    """A sum of a constant and of multiples of terms: counters, in the rounds of one of two points, and other values."""

    constant: int
    terms: Mapping[object, int]

    def plus(self, other: Affine, times: int = 1) -> Affine:
        """Return this plus a multiple of another."""
        found = dict(self.terms)
        for term, factor in other.terms.items():
            found[term] = found.get(term, 0) + times * factor
        constant = self.constant + times * other.constant
        return Affine(constant, {term: factor for term, factor in found.items() if factor})

    def without(self, term: object) -> Affine:
        """Return this without one term."""
        return Affine(self.constant, {each: factor for each, factor in self.terms.items() if each is not term})


@dataclass(frozen=True, eq=False, slots=True)
class _Counter:
    """The counter of a loop, at the read or at the write, or in a round that both are in."""

    loop: Loop
    how: CountedLoop
    side: object


@dataclass(frozen=True, eq=False, slots=True)
class _Step:
    """The difference between the counters of two rounds of a loop, the later less the earlier: of one sign."""

    least: int


_READ, _WRITE, _BOTH = "read", "write", "both"


class Distances:
    """Queries on one function as it is at construction: with its loops, and the block of each value."""

    def __init__(self, function: Function, nest: LoopNest, home: Mapping[Value, Block]) -> None:
        self._nest = nest
        self._parents = {loop: loop.parent for loop in nest.loops}  # which may change
        self._home = home
        self._counts: dict[Loop, CountedLoop | None] = {loop: counter_within(loop) for loop in nest.loops}
        self._counters: dict[tuple[Loop, object], _Counter] = {}
        self._shared: frozenset[Loop] = frozenset()  # loops of whose rounds the read and the write share one
        self._later: Loop | None = None  # the loop of which the write has a later round

    def __contains__(self, value: Value) -> bool:
        return value in self._home

    def are_apart(
        self, read: Instr, target: Operand, write: Instr, follows: bool, before: Collection[Block] = ()
    ) -> bool:
        """Return whether a write never changes what has been read before it of the memory of `target`.

        Parameters
        ----------
        read : Instr
            An instruction that reads an element of an array, or a view.
        target : Operand
            The array.
        write : Instr
            A store in an element, in memory that may be the same.
        follows : bool
            Whether the write may come after the read in the same round of all loops around both.
        before : collection of Block
            Headers of loops of which later rounds do not count.
        """
        if ops.of(write.op).role is not Role.STORE:
            return False
        r, w = self._home[read], self._home[write]
        of_read = self._indices(target, read.args[1:] if read.op is ops.getitem and read.args[0] is target else ())
        of_write = self._indices(write.args[0], write.args[2:])
        if of_read is None or of_write is None or of_read[0] is not of_write[0]:
            return False
        pairs = list(zip(of_read[1], of_write[1], strict=False))
        around = [loop for loop in self.around(r) if w in loop]
        cases: list[int | None] = [number for number, loop in enumerate(around) if loop.header not in before]
        cases += [None] if follows else []
        return all(any(self._differ(a, r, b, w, around, case) for a, b in pairs) for case in cases)

    def are_others(self, a: Instr, b: Instr, loop: Loop) -> bool:
        """Return whether two accesses to elements are to different ones whenever they are in one run of a loop.

        Parameters
        ----------
        a, b : Instr
            Instructions that read or write an element, in memory that may be the same.
        loop : Loop
            A loop around both.
        """
        first, second = self._accessed(a), self._accessed(b)
        if first is None or second is None or first[0] is not second[0]:
            return False
        around = [each for each in self.around(self._home[a]) if each.depth < loop.depth]
        pairs = zip(first[1], second[1], strict=False)
        return any(self._differ(x, self._home[a], y, self._home[b], around, None) for x, y in pairs)

    def is_more(self, a: Operand, b: Operand, block: Block, least: int) -> bool:
        """Return whether `a` is at least `least` more than `b`, integers both, whenever control is in a block."""
        self._shared, self._later = frozenset(), None
        one, other = (self._affine(each, block, _READ) for each in (a, b))
        bound = None if one is None or other is None else self._least(one.plus(other, -1))
        return bound is not None and bound >= least

    def is_natural(self, index: Operand, block: Block) -> bool:
        """Return whether an index is never negative where it is used in a block."""
        return self._is_natural(index, block, _READ)

    def _accessed(self, instr: Instr) -> tuple[Operand, list[Operand]] | None:
        if ops.of(instr.op).role is Role.STORE:
            return self._indices(instr.args[0], instr.args[2:])
        if instr.op is ops.getitem and not is_view(instr):
            return self._indices(instr.args[0], instr.args[1:])
        return None

    def _indices(self, array: Operand, index: Sequence[Operand]) -> tuple[Operand, list[Operand]] | None:
        """Return the array that a view is of, and the indices of the element in it, as far as they are numbers."""
        found = list(index)
        while isinstance(array, Instr) and is_view(array):
            if array.op is not ops.getitem:
                return None
            own = array.args[1:]
            numbers = _leading_numbers(own)
            if len(numbers) < len(own):
                found = []  # slices: the axes that follow are not those of the array
            found = [*numbers, *found]
            array = array.args[0]
        is_one = isinstance(array, Param) or (isinstance(array, Instr) and is_fresh(array))
        if not is_one and (array not in self._home or self._nest.innermost(self._home[array]) is not None):  # type: ignore[index]
            return None
        return array, _leading_numbers(found)

    def around(self, block: Block) -> list[Loop]:
        """Return the loops around a block, the outermost first."""
        found: list[Loop] = []
        loop = self._nest.innermost(block)
        while loop is not None:
            found.insert(0, loop)
            loop = self._parents[loop]
        return found

    def _differ(self, a: Operand, r: Block, b: Operand, w: Block, around: Sequence[Loop], case: int | None) -> bool:
        """Return whether index `b` of the write is never index `a` of the read before it.

        In the case of a number the rounds of the loops around both are the same up to that loop, of which the round is
        a later one; in that of None they are the same of all.
        """
        if not self._is_natural(a, r, _READ) or not self._is_natural(b, w, _WRITE):
            return False
        self._shared = frozenset(around if case is None else around[:case])
        self._later = None if case is None else around[case]
        read, write = self._affine(a, r, _READ), self._affine(b, w, _WRITE)
        if read is None or write is None:
            return False
        distance = write.plus(read, -1)
        bounds = (self._least(distance), self._least(Affine(0, {}).plus(distance, -1)))
        return any(bound is not None and bound > 0 for bound in bounds)

    def _is_natural(self, index: Operand, block: Block, side: object) -> bool:
        """Return whether an index is never negative."""
        self._shared, self._later = frozenset(), None
        found = self._affine(index, block, side)
        least = None if found is None else self._least(found)
        return least is not None and least >= 0

    def _least(self, distance: Affine) -> int | None:
        """Return a lower bound of an expression, None if there is none."""
        for _ in range(50):
            counters = [term for term in distance.terms if isinstance(term, _Counter)]
            if not counters:
                break
            innermost = max(counters, key=lambda each: each.loop.depth)
            factor = distance.terms[innermost]
            bound = self._bound(innermost, is_lower=factor > 0)
            if bound is None:
                return None
            distance = distance.without(innermost).plus(bound, factor)
        least = distance.constant
        for term, factor in distance.terms.items():
            if factor < 0:
                return None
            if isinstance(term, _Step):
                least += factor * term.least
            elif not isinstance(term, Instr) or not ops.of(term.op).nonnegative:
                return None
        return least

    def _bound(self, counter: _Counter, is_lower: bool) -> Affine | None:
        """Return the least or the largest value of a counter within its loop, by those of the loops around."""
        how, before = counter.how, counter.loop.entering[0]
        if is_lower == (how.step > 0):
            return self._affine(how.start, before, counter.side)
        found = self._affine(how.bound, before, counter.side)
        if found is None:
            return None
        inside = 0 if how.comparison.of_equals else 1
        return found.plus(Affine(inside if is_lower else -inside, {}))

    def _affine(self, operand: Operand, block: Block, side: object, depth: int = 12) -> Affine | None:
        """Return an integer as an expression of the counters around a block."""
        if isinstance(operand, Const):
            return Affine(int(operand.value), {}) if isinstance(operand.value, int) else None
        if not isinstance(operand, Value) or depth == 0:
            return None
        home = self._home.get(operand)
        loop = None if home is None else self._nest.innermost(home)
        if isinstance(operand, Phi):
            how = None if loop is None or operand not in loop.header.phis else self._counts[loop]
            if (
                how is not None
                and how.phi is operand
                and loop is not None
                and block in loop
                and block is not loop.header
            ):
                return self._counter(loop, side)
        if isinstance(operand, Instr):
            match operand.op, operand.args:
                case operator.add, (a, b):
                    return self._sum(a, b, 1, block, side, depth)
                case operator.sub, (a, b):
                    return self._sum(a, b, -1, block, side, depth)
                case ops.const, (a,) if isinstance(a.type, types.Integer):
                    return self._affine(a, block, side, depth - 1)
        return Affine(0, {operand: 1}) if loop is None else None

    def _sum(self, a: Operand, b: Operand, sign: int, block: Block, side: object, depth: int) -> Affine | None:
        first, second = self._affine(a, block, side, depth - 1), self._affine(b, block, side, depth - 1)
        return None if first is None or second is None else first.plus(second, sign)

    def _counter(self, loop: Loop, side: object) -> Affine:
        """Return the counter of a loop at one of two points: the same in rounds that they share."""
        how = self._counts[loop]
        assert how is not None
        is_later = loop is self._later and side is _WRITE
        if loop in self._shared or loop is self._later:
            side = _BOTH
        key = loop, side
        if key not in self._counters:
            self._counters[key] = _Counter(loop, how, side)
        terms: dict[object, int] = {self._counters[key]: 1}
        if is_later:
            terms[_Step(abs(how.step))] = 1 if how.step > 0 else -1
        return Affine(0, terms)


def _leading_numbers(index: Sequence[Operand]) -> list[Operand]:
    found: list[Operand] = []
    for each in index:
        if not isinstance(each.type, types.Integer):
            break
        found.append(each)
    return found
