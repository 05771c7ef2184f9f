"""Keep an element that all rounds of a loop access, beside other elements of the array, in a variable.

    loop over %j from 0 to %n:                          %c = lt 0, %n
        %a = getitem %x, %i, %t                         %a = element_if %x, %c, %i, %t
        %b = mul %a, %w                     ->          loop over %j from 0 to %n:
        setitem %x, %b, %j, %u                              %b = mul %a, %w
                                                            setitem %x, %b, %j, %u

    loop over %j:                                       %s = element_if %x, %c, %i, %u
        %b = getitem %x, %j, %t                         loop over %j:
        accumulate %x, %b, %i, %u           ->              %s = add %s, %b
                                                        if %c: setitem %x, %s, %i, %u

That the elements are different ones, as the indices tell, LLVM cannot know: it would load and store the one in each
round, and compute one round at a time. Where it can, since nothing else of the array is accessed, this is left to it.
The values are the same, bit for bit. A loop that makes no round accesses nothing.

Of an array that is given, elements are only read so: if the loop is left by an exception, the caller sees them. Other
threads must not access the arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import (
    CountedLoop,
    Distances,
    Loop,
    LoopNest,
    Memory,
    counted_exit,
    invariant,
    loop_nest,
    writes,
)
from zygote_py.ir.building.cfg import order_blocks
from zygote_py.ir.checks.debug import is_left_out
from zygote_py.ir.core import Block, Function, Instr, Jump, Operand, Phi, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.passes.accumulation.fixed import computed_before, key_of
from zygote_py.ir.passes.accumulation.promote import put_behind, runs, touched
from zygote_py.ir.walks import definitions, replace_uses

_Key = tuple[object, ...]  # an array, and indices
_ADDED = (ops.setitem, ops.accumulate)


@dataclass(frozen=True, eq=False, slots=True)
class _Element:
    """An element that all rounds of a loop access, by instructions in their order, and in which blocks these are."""

    array: Value
    index: Sequence[Operand]
    accesses: Sequence[tuple[Block, Instr]]

    @property
    def is_only_read(self) -> bool:
        """Whether no access changes the element."""
        return all(instr.op is ops.getitem for _, instr in self.accesses)


def keep_invariant_elements(function: Function) -> bool:
    """Rewrite the loops of a function in place, inner loops first; return whether there are any to rewrite."""
    if is_left_out("invariant-elements"):
        return False
    memory: Memory | None = None
    changed = False
    pending = True
    while pending:
        nest = loop_nest(function)
        candidates = [loop for loop in reversed(nest.loops) if _is_simple(loop) and _may_have_elements(loop)]
        pending = False
        if candidates:
            memory = memory or Memory(function)
            distances = Distances(function, nest, definitions(function))
            pending = any(_keep_in(function, loop, nest, memory, distances) for loop in candidates)
            changed = changed or pending
    if changed:
        order_blocks(function)
    return changed


def _is_simple(loop: Loop) -> bool:
    return (
        len(loop.latches) == len(loop.entering) == len(loop.exits) == 1
        and loop.exits[0][0] is loop.header
        and not loop.raising_exits
        and isinstance(loop.entering[0].terminator, Jump)  # what comes before the loop leads nowhere else
    )


def _may_have_elements(loop: Loop) -> bool:
    """Return whether a loop stores elements, and accesses one that is the same in all rounds."""
    instrs = [instr for block in loop.order for instr in block.instrs]
    return any(instr.op in _ADDED for instr in instrs) and any(_element_of(instr, loop) for instr in instrs)


def _keep_in(function: Function, loop: Loop, nest: LoopNest, memory: Memory, distances: Distances) -> bool:
    """Keep the first element that this is possible for in a variable; return whether there is one."""
    counted = counted_exit(loop)
    if counted is None or (always := runs(counted, loop, distances)) is False:
        return False
    by_root = touched(loop, memory)
    for element in _elements(loop, nest):
        root = memory.root(element.array)
        own = {instr for _, instr in element.accesses}
        others = [each for each in by_root[root] if each not in own]
        changing = [each for each in others if any(memory.root(target) is root for target in writes(each))]
        against = changing if element.is_only_read else others
        if not element.is_only_read and root in memory.outside:
            continue  # what an exception leaves in it is seen
        if not against or not all(each in distances for each in (*own, *against)):
            continue  # or LLVM knows as much
        if all(distances.are_others(element.accesses[0][1], each, loop) for each in against):
            _keep(function, element, loop, counted, always)
            return True
    return False


def _elements(loop: Loop, nest: LoopNest) -> list[_Element]:
    """Return the elements that each round of a loop accesses; those that change only if it makes each access once."""
    (latch,) = loop.latches
    found: dict[_Key, list[tuple[Block, Instr]]] = {}
    for block in loop.order:
        for instr in block.instrs if block is not loop.header else ():
            if (key := _element_of(instr, loop)) is not None:
                found.setdefault(key, []).append((block, instr))
    elements = []
    for (array, *_), accesses in found.items():
        assert isinstance(array, Value)
        index = _index_of(accesses[0][1])
        always = [nest.innermost(block) is loop and nest.tree.dominates(block, latch) for block, _ in accesses]
        element = _Element(array, index, accesses)
        if all(always) or (element.is_only_read and any(always)):
            elements.append(element)
    return elements


def _element_of(instr: Instr, loop: Loop) -> _Key | None:
    """Return the array and the indices of an element that an instruction accesses, the same in all rounds of a loop."""
    if instr.op is not ops.getitem and instr.op not in _ADDED:
        return None
    kind = instr.type if instr.op is ops.getitem else instr.args[1].type
    array, index = instr.args[0], _index_of(instr)
    own = array.type
    if not isinstance(own, types.Array) or (own.dtype, own.ndim) != (kind, len(index)):
        return None
    if not isinstance(kind, types.Float | types.Complex) or not all(
        isinstance(each.type, types.Integer) for each in index
    ):
        return None
    keys = [key_of(each, loop) for each in index]
    return None if None in keys or not invariant(array, loop) else (array, *keys)


def _index_of(instr: Instr) -> Sequence[Operand]:
    return instr.args[1 if instr.op is ops.getitem else 2 :]


def _keep(function: Function, element: _Element, loop: Loop, counted: CountedLoop, always: bool | None) -> None:
    """Keep an element in a variable in a loop, which makes a round `always`, or under its condition."""
    (before,), (latch,) = loop.entering, loop.latches
    array, (first, *_) = element.array, [instr for _, instr in element.accesses]
    index = [computed_before(each, loop, before) for each in element.index]
    kind = array.type.dtype  # type: ignore[attr-defined]
    hint = next((i.hint for _, i in element.accesses if i.op is ops.getitem and i.hint), array.hint)
    op, args = ops.getitem, (array, *index)
    if not always:
        condition = Instr(counted.comparison.op, (counted.start, counted.bound), types.boolean, "c")
        before.instrs.append(condition)
        op, args = ops.element_if, (array, condition, *index)
    found = Instr(op, args, kind, hint, first.loc, (), first.origin)
    before.instrs.append(found)
    replaced: dict[Value, Operand] = {}
    if element.is_only_read:
        replaced = {instr: found for _, instr in element.accesses}
        _remove(element)
        replace_uses(function, replaced)
        return
    kept = Phi(kind, hint)
    now: Operand = kept
    last = first
    for block, instr in element.accesses:
        if instr.op is ops.getitem:
            replaced[instr] = now
            continue
        last = instr
        value = instr.args[1]
        if instr.op is ops.accumulate:
            value = Instr(operator.add, (now, value), kind, hint, instr.loc, (), instr.origin)
            block.instrs[block.instrs.index(instr)] = value
        now = value
    kept.incoming = {before: found, latch: now}
    loop.header.phis.append(kept)
    _remove(element)
    replace_uses(function, replaced)
    store = Instr(ops.setitem, (array, kept, *index), types.none, "", last.loc, (), last.origin)
    put_behind([store], loop, counted, always, function)


def _remove(element: _Element) -> None:
    gone = {instr for _, instr in element.accesses}
    for block in {block: None for block, _ in element.accesses}:
        block.instrs = [instr for instr in block.instrs if instr not in gone]
