"""The memory that a function allocates: arrays, lists and what they hold, and the most that it holds at a time.

    found = allocations(function, {%x: (1000,), %n: 50})
    found.groups[0]                 Allocation("r_record", 8 * n bytes, ...)
    found.peak                      Amount("8 * n + 8 * x.shape[0]", 8400)

Memory that may be the same has one group: the states that a loop hands on and keeps in a list. Of what a round makes
and does not keep, one is alive at a time. A group is alive from where it is made until where it is last used. What the
caller has given does not count, nor what called library functions allocate for themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.dataflow import liveness
from zygote_py.ir.analysis.effects import bases, effect, has_memory, is_fresh
from zygote_py.ir.analysis.loops import Loop, LoopNest, loop_nest
from zygote_py.ir.analysis.memory import Memory
from zygote_py.ir.arrays.measures.sizes import Amount, Known, Sizes, exactly, product, total
from zygote_py.ir.core import Block, Function, Instr, Loc, Operand, Phi, Routine, Type, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops.helpers import is_helper
from zygote_py.ir.types import Lanes, components_of

_LISTS = (types.List, types.ListType, types.DictType)


@dataclass(frozen=True, slots=True)
class Allocation:
    """The memory that one instruction allocates: how many pieces of how many bytes are alive at a time."""

    name: str
    loc: Loc | None
    kind: str  # array, list, call
    bytes: Amount
    pieces: Amount

    @property
    def in_all(self) -> Amount:
        """Return the bytes of all pieces."""
        return self.bytes * self.pieces


@dataclass(frozen=True, slots=True)
class Allocations:
    """The allocations of a function, the most bytes alive at a time, and those that its results hold."""

    found: tuple[Allocation, ...]
    peak: Amount
    returned: Amount


def allocations(
    function: Function, known: Known | None = None, around: frozenset[Routine] = frozenset()
) -> Allocations:
    """Return the allocations of a function whose parameters are known in part, or not at all."""
    return _Finder(function, known or {}, around).find()


class _Finder:
    def __init__(self, function: Function, known: Known, around: frozenset[Routine]) -> None:
        self._function = function
        self._around = around
        self._nest: LoopNest = loop_nest(function)
        self._memory = Memory(function)
        self.sizes = Sizes(function, known)
        self._groups: dict[Value, list[Allocation]] = {}
        self._calls: dict[Instr, Amount] = {}  # the most that a call has alive
        self._results: dict[Instr, Allocation] = {}  # of calls, which are part of that

    def find(self) -> Allocations:
        kept = {base for instr in self._function.instrs() if instr.op is ops.push for base in bases(instr.args[1])}
        kept |= {
            base
            for instr in self._function.instrs()
            if instr.op is ops.push and isinstance(instr.args[1], Instr) and instr.args[1].op is ops.pack
            for item in instr.args[1].args
            for base in bases(item)
        }
        for block in self._nest.tree.order:
            for instr in block.instrs:
                self._find(instr, block, instr in kept)
        results = [arg for block, end in self._function.returns() for arg in end.args]
        roots = {root for result in results if (root := self._root(result)) is not None}
        returned = total([each.in_all for root in roots for each in self._groups.get(root, ())])
        return Allocations(tuple(each for group in self._groups.values() for each in group), self._peak(), returned)

    def _root(self, operand: Operand) -> Value | None:
        """Return what stands for the memory of a value: an array that a rule's function makes stands for itself."""
        if isinstance(operand, Instr) and _is_made(operand):
            return operand
        return self._memory.root(operand)

    def _find(self, instr: Instr, block: Block, is_kept: bool) -> None:
        root = self._root(instr)
        kind: Any = instr.type
        loops = list(self._nest.around(block))[::-1]
        if isinstance(instr.op, Routine):
            self._call(instr, instr.op, root, loops)
        elif instr.op is ops.push:
            self._push(instr, loops)
        elif instr.op is ops.interleaved:
            return  # drivers give views of one array, which it is
        elif root is not None and isinstance(kind, types.Array) and (is_fresh(instr) or _is_made(instr)):
            size = product([exactly(bytes_of(kind.dtype)), self.sizes.elements(instr)])
            pieces = self.sizes.rounds(loops) if is_kept else exactly(1)
            self._add(root, Allocation(instr.hint or "t", instr.loc, "array", size, pieces))
        elif root is not None and isinstance(kind, _LISTS) and instr.op is not ops.stack and _allocates(instr):
            self._add_unknown(instr, root)

    def _add_unknown(self, instr: Instr, root: Value) -> None:
        """Add a list or a dict that is made with its contents."""
        size = Amount(f"what {ops.name_of(instr.op)} makes")
        self._add(root, Allocation(instr.hint or "t", instr.loc, "call", size, exactly(1)))

    def _push(self, instr: Instr, loops: list[Loop]) -> None:
        stack, item = instr.args
        root = self._root(stack)
        if root is not None and isinstance(stack, Value):
            rounds = self.sizes.rounds(loops)
            capacity = Amount(rounds.text, None if rounds.value is None else _capacity(rounds.value))
            size = exactly(bytes_of(item.type))
            self._add(root, Allocation(stack.hint, instr.loc, "list", size, capacity))

    def _call(self, instr: Instr, routine: Routine, root: Value | None, loops: list[Loop]) -> None:
        if routine in self._around or routine.is_custom:
            within = Allocations(
                (), Amount(f"what {routine.__name__} takes"), Amount(f"what {routine.__name__} returns")
            )
        else:
            known: dict[Any, Any] = {}
            for param, arg in zip(routine.function.params, instr.args, strict=False):
                if isinstance(param.type, types.Array):
                    lengths = [self.sizes.length(arg, axis).value for axis in range(param.type.ndim)]
                    if None not in lengths:
                        known[param] = tuple(lengths)
                elif isinstance(param.type, types.Integer) and (value := self.sizes.of(arg).value) is not None:
                    known[param] = value
            within = allocations(routine.function, known, self._around | {routine})
        self._calls[instr] = Amount(within.peak.text, within.peak.value)
        if root is not None and within.returned.text != "0":
            pieces = self.sizes.rounds(loops)
            self._add(root, Allocation(routine.__name__, instr.loc, "call", within.returned, pieces))

    def _add(self, root: Value, allocation: Allocation) -> None:
        self._groups.setdefault(root, []).append(allocation)

    def _peak(self) -> Amount:
        """Return the largest sum of what is alive at one point; it has no value if that of any part is not known.

        Then it is the sum with the most parts that are not known, and of such sums the longest.
        """
        alive_at = liveness(self._function)
        most, found = (-1, -1), exactly(0)
        parts = [*(each.in_all for group in self._groups.values() for each in group), *self._calls.values()]
        is_known = all(each.is_exact for each in parts)
        for block in self._nest.tree.order:
            alive = self._roots(alive_at.after(block))
            for instr in reversed((*block.phis, *block.instrs)):
                alive |= self._roots((instr, *(() if isinstance(instr, Phi) else instr.args)))
                own = self._results.get(instr) if isinstance(instr, Instr) else None
                if own is not None and own.pieces.value != 1:
                    own = None  # of other rounds, too
                groups = (group for root, group in self._groups.items() if root in alive)
                here = [each.in_all for group in groups for each in group if each is not own]
                if instr in self._calls:
                    here.append(self._calls[instr])
                known = [each.value for each in here if each.value is not None]
                size = (0, sum(known)) if is_known else (len(here) - len(known), len(here))
                if size > most:
                    most, found = size, total(here)
                if isinstance(instr, Instr) and self._is_only_source(instr):
                    alive.discard(instr)
        return found if is_known else Amount(found.text)

    def _roots(self, operands: Iterable[Operand]) -> set[Value]:
        found = {self._root(each) for each in operands if isinstance(each, Value) and has_memory(each.type)}
        return {root for root in found if root is not None and root in self._groups}

    def _is_only_source(self, instr: Instr) -> bool:
        root = self._root(instr)
        return root is instr and len(self._groups.get(root, ())) == 1 and (is_fresh(instr) or _is_made(instr))


def _is_made(instr: Instr) -> bool:
    """Return whether a function of a rule makes an array, though it may return one that it is given."""
    return is_helper(instr.op) and isinstance(instr.type, types.Array) and _allocates(instr)


def _allocates(instr: Instr) -> bool:
    return effect(instr) is ops.Effect.ALLOCATE


def _capacity(count: int) -> int:
    """Return the items that a list of Numba has memory for after so many have been appended."""
    capacity = 0
    while capacity < count:
        size = capacity + 1
        capacity = size + (size >> 3) + (3 if size < 9 else 6)
    return capacity


def bytes_of(kind: Type) -> int:
    """Return the bytes of a value in memory; of an array, those of what refers to it."""
    if isinstance(kind, types.Boolean):
        return 1
    if isinstance(kind, types.Integer | types.Float | types.Complex):
        return int(getattr(kind, "bitwidth", 64)) // 8
    if isinstance(kind, Lanes):
        return kind.count * bytes_of(kind.dtype)
    if isinstance(kind, types.BaseTuple):
        return sum(-(-bytes_of(each) // 8) * 8 for each in components_of(kind))
    if isinstance(kind, types.Array):
        return 8 * (5 + 2 * kind.ndim)
    return 8
