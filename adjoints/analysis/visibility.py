"""Visibility of definitions in memory: which reads see them, and which stores overwrite them.

    for i in range(n):
        y[i] = x[i] * x[i]          seen by s += y[i] in a loop over the same range; possibly not by y[i + 1]
    y[0] = 0.0                      overwrites one element, which is not treated as a selection

The analysis considers only the indices (`ir/analysis/subscripts.py`), not the order of execution, which `left_out`
analyzes.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator

from zygote_py.ir import Access, Accesses, Block, Index, Instr, LoopNest, Memory, Operand, Return, Value, is_view
from zygote_py.ir.analysis import Kind
from zygote_py.ir.lazy_dataclass import dataclass

_PICKED = (Kind.CONSTANT, Kind.FIXED, Kind.FOUND)


@dataclass(frozen=True, eq=False, slots=True)
class Definition:
    """A definition of memory: by a store (at `indices`), an operation on whole arrays, a call, or at the entry."""

    value: Value
    array: Operand
    block: Block
    access: Access | None
    indices: tuple[Operand, ...] = ()
    replaces: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    """A read of an array; `degree` is that of the value read; `whole`: all elements are read."""

    reader: Instr | Return
    array: Operand
    access: Access | None
    degree: int = 0
    whole: bool = False


class Visibility:
    """The definitions and the reads of one function, by the roots of their memory."""

    def __init__(self, memory: Memory, accesses: Accesses, nest: LoopNest) -> None:
        self._memory = memory
        self._accesses = accesses
        self._nest = nest
        self._definitions: dict[Value, list[Definition]] = {}
        self._at: dict[Value, dict[Access | None, list[Definition]]] = {}  # by constant indices; None: by others
        self._lengths: dict[Value, set[int]] = {}  # of constant indices
        self._reads: dict[Value, list[Read]] = {}
        self._stores: dict[Value, Definition] = {}

    def defines(self, definition: Definition) -> None:
        """Record a definition."""
        root = self._memory.root(definition.array)
        if root is not None:
            self._definitions.setdefault(root, []).append(definition)
            place = _constant(definition.access)
            self._at.setdefault(root, {}).setdefault(place, []).append(definition)
            if place is not None:
                self._lengths.setdefault(root, set()).add(len(place))
            if definition.replaces:
                self._stores[definition.value] = definition

    def reads(self, read: Read) -> None:
        """Record a read."""
        root = self._memory.root(read.array)
        if root is not None:
            self._reads.setdefault(root, []).append(read)

    def seen(self, below: int, lenient: bool) -> dict[Instr | Return, set[Value]]:
        """Return the definitions each reader with a degree below `below` sees; `lenient`: those it probably sees."""
        found: dict[Instr | Return, set[Value]] = {}
        for root, reads in self._reads.items():
            definitions = self._definitions.get(root, ())
            picked = _picked_axes(reads) if lenient else ()
            for read in reads:
                if read.degree < below:
                    values = (d.value for d in definitions if self._sees(read, d, lenient, picked))
                    found.setdefault(read.reader, set()).update(values)
        return found

    def replaced(self, store: Instr, lenient: bool) -> Iterator[Value]:
        """Yield the definitions that a store may overwrite; `lenient`: those that it probably overwrites."""
        definition = self._stores.get(store)
        root = None if definition is None else self._memory.root(definition.array)
        if definition is not None and root is not None:
            for other in self._near(root, _constant(definition.access)):
                if other is not definition and self._replaces(definition, other, lenient):
                    yield other.value

    def _near(self, root: Value, place: Access | None) -> Iterable[Definition]:
        """Return the definitions of a root, but for some that are certainly apart from a place of constant indices."""
        by_place = self._at[root]
        if place is None or self._lengths[root] != {len(place)}:
            return self._definitions[root]
        return itertools.chain(by_place[place], by_place.get(None, ()))

    def _sees(self, read: Read, definition: Definition, lenient: bool, picked: Collection[int]) -> bool:
        if read.whole:
            return True
        if read.access is None:
            return lenient
        stored = definition.access
        if stored is not None and len(stored) != len(read.access):
            stored = None
        for axis, index in enumerate(read.access):
            if index.kind is Kind.ALL or self._is_full(index, definition.array, axis):
                continue
            if index.kind is Kind.FOUND:
                return False
            if stored is not None and stored[axis] == index:
                continue
            if axis in picked or not lenient:
                return False
        return True

    def _is_full(self, index: Index, array: Operand, axis: int) -> bool:
        while isinstance(array, Instr) and is_view(array):
            array = array.args[0]
        return self._accesses.is_full(index, array, axis)

    def _replaces(self, store: Definition, other: Definition, lenient: bool) -> bool:
        assert isinstance(store.value, Instr)
        if self._memory.is_made_after(store.array, store.value, other.value):
            return False
        a, b = store.access, other.access
        if a is None or b is None or len(a) != len(b):
            return not lenient
        if any(_are_apart(x, y) or _are_apart(y, x) for x, y in zip(a, b, strict=True)):
            return False
        if not lenient or a == b:
            return True
        if other.indices and self._nest.innermost(store.block) is self._nest.innermost(other.block):
            return False  # x[2 * i] and x[2 * i + 1]
        return all(x == y or not {x.kind, y.kind} & {Kind.CONSTANT, Kind.FIXED} for x, y in zip(a, b, strict=True))


def _constant(access: Access | None) -> Access | None:
    """Return an access if all its indices are constants."""
    return access if access is not None and all(index.kind is Kind.CONSTANT for index in access) else None


def _picked_axes(reads: Collection[Read]) -> set[int]:
    """Return the axes that the reads certainly cover incompletely: at one index, or at indices with gaps."""
    accesses = [read.access for read in reads if not read.whole]
    if len(accesses) < len(reads) or any(access is None for access in accesses):
        return set()
    ranks = {len(access) for access in accesses if access is not None}
    if len(ranks) != 1:
        return set()
    columns = zip(*(access for access in accesses if access is not None), strict=True)
    return {axis for axis, column in enumerate(columns) if _leaves_gaps(set(column))}


def _leaves_gaps(indices: set[Index]) -> bool:
    kinds = {index.kind for index in indices}
    if kinds == {Kind.PART}:
        return len(indices) == 1
    if not kinds <= {*_PICKED}:
        return False
    constants = {index.key for index in indices if index.kind is Kind.CONSTANT}
    fixed = sum(index.kind is Kind.FIXED for index in indices)
    if fixed:
        return fixed == 1 and not constants
    return len(constants) < 2 or constants != set(range(len(constants)))


def _are_apart(a: Index, b: Index) -> bool:
    """Return whether two indices are never equal: constants, or a range that begins after one."""
    if b.kind is not Kind.CONSTANT:
        return False
    if a.kind is Kind.CONSTANT:
        return a.key != b.key
    start = a.key[0] if a.kind is Kind.RANGE and isinstance(a.key, tuple) else None
    return isinstance(start, int) and isinstance(b.key, int) and 0 <= b.key < start
