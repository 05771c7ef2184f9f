"""Which elements of an array only one thread accesses, by the indices: what is added to them need not be atomic.

    i = cuda.grid(1)                            dx[i] += d              each thread its own
    for i in range(start, n, cuda.gridsize(1))  dx[i] += d              the same: i is `start` modulo the step
    tile[cuda.blockDim.x - 1 - t]               dtile[...] += d         each thread of the block its own
    x[i] + x[i + 1]                             cuda.atomic.add(dx, i, d)       two threads meet

An index is a sum of the number of the thread along an axis, of multiples of the number of threads along that axis, and
of what is the same for all threads. It tells threads apart along that axis. Accesses of one array have to tell all
threads apart, by the same indices.

Arrays in shared memory are accessed by the threads of a block, and only accesses between the same two barriers matter.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Self

from numba import types

from zygote_py.adjoints.reverse.fused.stepwise import CASTS
from zygote_py.ir import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    Memory,
    Operand,
    Param,
    Phi,
    Value,
    dominator_tree,
    has_memory,
    ops,
    reads,
    uses,
    writes,
)
from zygote_py.ir.lazy_dataclass import dataclass

_MOST_TERMS = 8
_ACCESSES = (
    *(ops.getitem, ops.setitem, ops.accumulate, ops.initialize, ops.raise_to, ops.lower_to),
    *ops.ATOMIC.values(),
)


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum of terms with integer factors, and a constant."""

    terms: tuple[tuple[object, int], ...]
    constant: int = 0

    @classmethod
    def of(cls, terms: dict[object, int], constant: int) -> Self:
        kept = sorted(((term, factor) for term, factor in terms.items() if factor), key=lambda each: repr(each[0]))
        return cls(tuple(kept), constant)

    def plus(self, other: _Sum, factor: int = 1) -> _Sum:
        terms = dict(self.terms)
        for term, count in other.terms:
            terms[term] = terms.get(term, 0) + factor * count
        return _Sum.of(terms, self.constant + factor * other.constant)

    def times(self, factor: int) -> _Sum:
        return _Sum.of({term: count * factor for term, count in self.terms}, self.constant * factor)


@dataclass(frozen=True, slots=True)
class _Thread:
    """The number of a thread in its block, along an axis."""

    axis: int


@dataclass(frozen=True, slots=True)
class _Start:
    """The number of the first thread of a block, along an axis."""

    axis: int


@dataclass(frozen=True, slots=True)
class _Size:
    """The number of threads of a block, or of the grid, along an axis."""

    axis: int
    is_of_grid: bool


@dataclass(frozen=True, slots=True)
class _Multiple:
    """A multiple of that number, which varies, but is not negative."""

    of: _Size


@dataclass(frozen=True, slots=True)
class _Block:
    """The number of a block along an axis."""

    axis: int


class _Sums:
    """The sums that integers of a function are."""

    def __init__(self, function: Function) -> None:
        self._same = {param for param in function.params if not has_memory(param.type)}
        self._known: dict[Value, _Sum | None] = {}
        self._tree = dominator_tree(function)
        self._uses = uses(function)
        self._headers = {phi: block for block in function.blocks for phi in block.phis}

    def of(self, operand: Operand) -> _Sum | None:
        """Return the sum that a number is; None if it may be anything."""
        if isinstance(operand, Const):
            return _Sum((), operand.value) if isinstance(operand.value, int) else None
        if not isinstance(operand, Value):
            return None
        if operand not in self._known:
            self._known[operand] = None  # a number that depends on itself
            self._known[operand] = self._sum(operand)
        found = self._known[operand]
        return found if found is None or len(found.terms) <= _MOST_TERMS else None

    def _sum(self, value: Value) -> _Sum | None:
        if value in self._same:
            return _Sum(((value, 1),))
        if isinstance(value, Phi):
            return self._of_phi(value)
        if not isinstance(value, Instr):
            return None
        match value.op, value.args:
            case ops.thread_index, (Const(value=int(axis)),):
                return _Sum(((_Thread(axis), 1),))
            case ops.block_index, (Const(value=int(axis)),):
                return _Sum(((_Block(axis), 1),))
            case ops.block_size, (Const(value=int(axis)),):
                return _Sum(((_Size(axis, False), 1),))
            case ops.grid, (_, Const(value=int(axis))):
                return _Sum(((_Start(axis), 1), (_Thread(axis), 1)))
            case ops.grid_step, (_, Const(value=int(axis))):
                return _Sum(((_Size(axis, True), 1),))
            case ops.blocks, _:
                return _Sum(((value, 1),))
            case ops.dim, (Param(), _):  # of a view, it may differ from thread to thread
                return _Sum(((value, 1),))
            case op, (inner,) if op in CASTS:
                return self.of(inner)
            case operator.neg, (inner,):
                found = self.of(inner)
                return found and found.times(-1)
            case (operator.add | operator.sub) as op, (left, right):
                first, second = self.of(left), self.of(right)
                return first and second and first.plus(second, 1 if op is operator.add else -1)
            case operator.mul, (left, right):
                return self._product(left, right)
            case _:
                return None

    def _product(self, left: Operand, right: Operand) -> _Sum | None:
        first, second = self.of(left), self.of(right)
        for one, other, varying in ((first, second, right), (second, first, left)):
            if one is not None and other is not None and not one.terms:
                return other.times(one.constant)
            match one:
                case _Sum(((_Size() as size, 1),), 0):
                    if other == _Sum(((_Block(size.axis), 1),)) and not size.is_of_grid:
                        return _Sum(((_Start(size.axis), 1),))
                    if _is_blocks(other, size.axis) and not size.is_of_grid:
                        return _Sum(((_Size(size.axis, True), 1),))
                    if self._counts(varying):
                        return _Sum(((_Multiple(size), 1),))
        return None

    def _counts(self, operand: Operand) -> bool:
        """Return whether a number counts the rounds of a loop, up from 0, or down to 0 within the loop."""
        while isinstance(operand, Instr) and operand.op in CASTS:
            operand = operand.args[0]
        if not isinstance(operand, Phi):
            return False
        for each in operand.args:
            match each:
                case Const(value=int(start)) if start >= 0:
                    continue
                case Instr(op=operator.add, args=(before, Const(value=int(step)))) if before is operand and step > 0:
                    continue
                case _:
                    return self._is_guarded(operand)
        return True

    def _is_guarded(self, phi: Phi) -> bool:
        """Return whether a number is used only where its loop has found it to be 0 or more."""
        match self._headers[phi].terminator:
            case Branch(condition=Instr(op=operator.ge, args=(tested, Const(value=0))) as test, then=inside):
                others = [use for use in self._uses.get(phi, ()) if use.user is not test]
                return tested is phi and all(self._tree.dominates(inside, use.block) for use in others)
            case _:
                return False

    def _of_phi(self, phi: Phi) -> _Sum | None:
        """Return the sum of a number that a loop raises by the number of threads."""
        starts: list[Operand] = []
        sizes: set[_Size] = set()
        for operand in phi.args:
            if isinstance(operand, Instr) and operand.op is operator.add and phi in operand.args:
                steps = [arg for arg in operand.args if arg is not phi]
                match self.of(steps[0]) if steps else None:
                    case _Sum(((_Size() as size, 1),), 0):
                        sizes.add(size)
                        continue
                return None
            starts.append(operand)
        start = self.of(starts[0]) if len(sizes) == len(starts) == 1 else None
        return start and start.plus(_Sum(((_Multiple(sizes.pop()), 1),)))


def _is_blocks(found: _Sum | None, axis: int) -> bool:
    match found:
        case _Sum(((Instr(op=ops.blocks, args=(Const(value=number),)), 1),), 0):
            return number == axis
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Own:
    """An index by which threads are told apart along an axis: the same offset from the number of the thread."""

    axis: int
    sign: int
    offset: _Sum


def _own(found: _Sum | None, *, is_shared: bool) -> _Own | None:
    """Return how an index tells threads apart: those of a block, if the array is shared, or those of the grid."""
    if found is None:
        return None
    terms = dict(found.terms)
    threads = [term for term in terms if isinstance(term, _Thread)]
    if len(threads) != 1 or abs(terms[threads[0]]) != 1 or not _is_nonnegative(terms, found.constant):
        return None
    (thread,) = threads
    sign = terms.pop(thread)
    axis = thread.axis
    for term in list(terms):
        match term:
            case _Multiple(_Size(along, is_of_grid)) if along == axis and (is_shared or is_of_grid):
                del terms[term]
            case _Multiple():
                return None
            case _Start(along) if not is_shared:
                if along != axis or terms.pop(term) != sign:
                    return None
                sign *= 2  # has been found
            case _Block() if not is_shared:
                return None
    if not is_shared and abs(sign) != 2:
        return None
    return _Own(axis, sign, _Sum.of(terms, found.constant))


def _is_nonnegative(terms: Mapping[object, int], constant: int) -> bool:
    """Return whether a sum is not negative, since a negative index counts from the end."""
    left = dict(terms)
    for term, count in terms.items():
        if count < 0:
            size = _Size(term.axis, False) if isinstance(term, _Thread) else None
            if size is None or left.get(size, 0) < -count:
                return False
            left[size] += count  # a number below the size
            constant -= count
            del left[term]
    known = (_Thread, _Start, _Size, _Multiple, _Block, Instr)
    return constant >= 0 and all(isinstance(term, known) for term in left)


def exclusive_accumulations(function: Function, shared: Collection[Value], axes: int) -> set[Instr]:
    """Return the accumulations into elements that no other thread accesses meanwhile.

    `shared` are arrays in shared memory; blocks and the grid have threads along the first `axes` axes only.
    """
    memory, sums = Memory(function), _Sums(function)
    roots_shared = {memory.root(array) for array in shared}
    phases = _phases(function)
    accesses = _accesses(function, memory)
    found: set[Instr] = set()
    for root, group in accesses.items():
        is_shared = root in roots_shared
        indices = {each: [_own(sums.of(one), is_shared=is_shared) for one in _index(each, root)] for each in group}
        for instr in group:
            if instr.op is not ops.accumulate:
                continue
            meanwhile = [each for each in group if not is_shared or phases[each] & phases[instr]]
            if _are_apart([indices[each] for each in meanwhile], axes):
                found.add(instr)
    return found


def own_arrays(function: Function, axes: int) -> set[Value]:
    """Return the arrays in global memory of which no element is accessed by two threads."""
    memory, sums = Memory(function), _Sums(function)
    return {
        root
        for root, group in _accesses(function, memory).items()
        if _are_apart([[_own(sums.of(one), is_shared=False) for one in _index(each, root)] for each in group], axes)
    }


def _accesses(function: Function, memory: Memory) -> dict[Value, list[Instr]]:
    """Return the instructions that read, or write to, each array."""
    found: dict[Value, list[Instr]] = {}
    for instr in function.instrs():
        if instr.op is not ops.barrier:
            for root in {memory.root(each) for each in (*reads(instr), *writes(instr))}:
                if root is not None:
                    found.setdefault(root, []).append(instr)
    return found


def _index(access: Instr, root: Value) -> Sequence[Operand]:
    """Return the indices of an element of an array itself; none of what is accessed by a view, or as a whole."""
    if access.op not in _ACCESSES:
        return ()
    if access.args[0] is not root or isinstance(access.type, types.Array):
        return ()
    index = access.args[1 if access.op is ops.getitem else 2 :]
    return index if all(isinstance(each.type, types.Integer) for each in index) else ()


def _are_apart(indices: Sequence[Sequence[_Own | None]], axes: int) -> bool:
    """Return whether accesses tell all threads apart by the same indices."""
    same = [set(column) for column in zip(*indices, strict=False)] if all(indices) else []
    along = {own.axis for column in same if len(column) == 1 for own in column if own is not None}
    return along >= set(range(axes))


def _phases(function: Function) -> dict[Instr, set[object]]:
    """Return the barriers, or the start, that each instruction may follow without another barrier between."""
    before: dict[Block, set[object]] = {function.entry: {function}}
    found: dict[Instr, set[object]] = {}
    pending = [function.entry]
    while pending:
        block = pending.pop()
        now = set(before[block])
        for instr in block.instrs:
            found[instr] = now
            if instr.op is ops.barrier:
                now = {instr}
        for after in block.successors:
            known = before.get(after)
            if known is None or not now <= known:
                before[after] = now | (known or set())
                pending.append(after)
    return found
