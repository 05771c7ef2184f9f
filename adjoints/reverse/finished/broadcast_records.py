"""Gradients of vectors that are broadcast over a loop, stored where the vectors were.

    %m = common_length %n, ...                      %m = common_length %n, ...
    %c = eq %n, %m                                  %c = eq %n, %m
    %dt = zeros %n
    loop over %i, %m rounds:                        loop over %i, %m rounds; %s from 0.0:
        %k = select %c, %i, 0                           %k = select %c, %i, 0
        %x = getitem %t, %k             ->              %x = getitem %t, %k
        ...                                             ...
        accumulate %dt, %v, %k                          if %c: setitem %t, %v, %i
                                                        else:  %s = add %s, %v
                                                    if not %c: setitem %t, %s, 0
    (uses of %dt)                                   (uses of %t)

A vector as long as the loop is read for the last time in the round that stores the gradient of that element. One of a
single element is read in all rounds, and has their sum for its gradient, which is stored after the loop.
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.adjoints.reverse.finished.reused_records import is_access, is_length
from zygote_py.ir import (
    Block,
    Branch,
    Const,
    CountedLoop,
    Function,
    Instr,
    Jump,
    Loop,
    LoopNest,
    Operand,
    Phi,
    Use,
    counted_exit,
    definitions,
    is_fresh,
    is_left_out,
    loop_nest,
    ops,
    reach,
    replace_uses,
    uses,
    zero,
)
from zygote_py.ir.arrays.shapes import Shapes
from zygote_py.ir.lazy_dataclass import dataclass


def reuse_broadcast_vectors(function: Function) -> bool:
    """Store gradients where broadcast vectors were, in place. Return whether there are any."""
    instrs = list(function.instrs())
    arrays = [each for each in instrs if each.op is ops.zeros and len(each.args) == 1]
    if not arrays or is_left_out("reused-records") or any(ops.is_of_threads(each.op) for each in instrs):
        return False
    changed = [_Broadcast(function).rewrite(array) for array in arrays]
    return any(changed)


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Where a loop adds to a gradient: `condition` says whether to an element of its own in each round."""

    added: Instr
    block: Block
    loop: Loop
    counted: CountedLoop
    condition: Operand
    after: Block


class _Broadcast:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._nest: LoopNest = loop_nest(function)
        self._home = definitions(function)
        self._used = uses(function)
        self._shapes = Shapes()

    def rewrite(self, array: Instr) -> bool:
        """Store the elements of an array where those of another were; return whether there is one."""
        place = self._place(array) if self._nest.innermost(self._home[array]) is None else None
        if place is None:
            return False
        for block in self._function.blocks:
            for vector in block.instrs if self._nest.innermost(block) is None else ():
                if vector is not array and is_fresh(vector) and self._is_read_only_there(vector, array, place):
                    self._store(array, vector, place)
                    return True
        return False

    def _place(self, array: Instr) -> _Place | None:
        """Return where a loop adds to an array that is one of zeros before, and used after the loop only."""
        others = [use for use in self._used[array] if not is_length(use.user)]
        adding = [use for use in others if isinstance(use.user, Instr) and use.user.op is ops.accumulate]
        adding = [use for use in adding if use.user.args[0] is array and len(use.user.args) == 3]
        found = [use for use in adding if self._nest.innermost(use.block) is not None]
        if len(found) != 1:
            return None
        (use,) = found
        added = use.user
        assert isinstance(added, Instr)
        loop = self._nest.innermost(use.block)
        counted = counted_exit(loop) if loop is not None and loop.parent is None else None
        if counted is None or loop is None or not self._runs_once_a_round(use.block, loop):
            return None
        condition = self._condition(added.args[2], counted, array)
        ((_, after),) = loop.exits
        later = all(self._nest.tree.dominates(after, each.block) for each in others if each is not use)
        if condition is None or not later or added.args[1] is array:
            return None
        return _Place(added, use.block, loop, counted, condition, after)

    def _runs_once_a_round(self, block: Block, loop: Loop) -> bool:
        """Return whether a block of a loop, of one entry and one exit at its start, runs in each of its rounds."""
        if len(loop.latches) != 1 or len(loop.entering) != 1 or loop.raising_exits or block is loop.header:
            return False
        is_left_at_the_start = [inside for inside, _ in loop.exits] == [loop.header]
        return is_left_at_the_start and self._nest.tree.dominates(block, loop.latches[0])

    def _condition(self, index: Operand, counted: CountedLoop, array: Instr) -> Operand | None:
        """Return the test that the array is as long as the loop, if the index is the counter then, and 0 otherwise."""
        match index:
            case Instr(op=ops.select, args=(Instr(op=operator.eq, args=(one, other)) as test, phi, Const(value=0))):
                starts = isinstance(counted.start, Const) and counted.start.value == 0 and counted.step == 1
                if phi is not counted.phi or not starts or counted.comparison.op is not operator.lt:
                    return None
                own = self._shapes.of(array)[0].key
                lengths = {self._shapes.length(each).key for each in (one, other)}
                is_of_these = lengths == {self._shapes.length(counted.bound).key, own}
                is_outside = self._nest.innermost(self._home[test]) is None
                return test if is_of_these and is_outside and self._is_broadcast(own, counted.bound) else None
        return None

    def _is_broadcast(self, own: object, rounds: Operand) -> bool:
        """Return whether a length is 1 or that of the loop: lengths that do not broadcast have raised an error."""
        if not isinstance(rounds, Instr) or rounds.op is not ops.common_length:
            return False
        return any(self._shapes.length(each).key == own or self._is_broadcast(own, each) for each in rounds.args)

    def _is_read_only_there(self, vector: Instr, array: Instr, place: _Place) -> bool:
        """Return whether a vector of the same form is read for the last time before its gradient is added to."""
        keys = [[length.key for length in self._shapes.of(each)] for each in (vector, array)]
        if vector.type != array.type or keys[0] != keys[1]:
            return False
        needed = [use for use in self._used[vector] if not is_length(use.user)]
        within = [use for use in needed if use.block in place.loop]
        later = set(reach([place.after], lambda block: block.successors))
        is_used_up = all(is_access(use.user, vector) and use.block not in later for use in needed)
        return bool(within) and is_used_up and all(self._is_read_before(use, place) for use in within)

    def _is_read_before(self, use: Use, place: _Place) -> bool:
        instrs = place.block.instrs
        read = use.user
        is_same = isinstance(read, Instr) and read.op is ops.getitem and read.args[1:] == place.added.args[2:]
        return is_same and use.block is place.block and instrs.index(read) < instrs.index(place.added)  # type: ignore[arg-type]

    def _store(self, array: Instr, vector: Instr, place: _Place) -> None:
        """Store values in the vector, or add them up, and let it take the place of the array."""
        added, block, loop = place.added, place.block, place.loop
        _, value, _ = added.args
        kind, loc, origin = value.type, added.loc, added.origin
        where = block.instrs.index(added)
        before = Phi(kind, "total", loc)
        own, joined, rest = Block(loc), Block(loc), Block(loc)
        own.instrs = [Instr(ops.setitem, (vector, value, place.counted.phi), types.none, loc=loc, origin=origin)]
        own.terminator = Jump(rest)
        total = Instr(operator.add, (before, value), kind, "total", loc, origin=origin)
        joined.instrs, joined.terminator = [total], Jump(rest)
        following = Phi(kind, "total", loc, {own: before, joined: total})
        rest.phis, rest.instrs, rest.terminator = [following], block.instrs[where + 1 :], block.terminator
        block.instrs, block.terminator = block.instrs[:where], Branch(place.condition, own, joined)
        for successor in rest.successors:
            for phi in successor.phis:
                phi.incoming = {rest if source is block else source: each for source, each in phi.incoming.items()}
        (entering,), (latch,) = loop.entering, loop.latches
        before.incoming = {entering: zero(kind), (rest if latch is block else latch): following}
        loop.header.phis.append(before)
        # After the loop, the sum is stored: in a block of its own, before all others.
        single, on = Block(loc), Block(loc)
        single.instrs = [
            Instr(ops.setitem, (vector, before, Const(0, types.int64)), types.none, loc=loc, origin=origin)
        ]
        single.terminator = Jump(place.after)
        on.terminator = Branch(place.condition, place.after, single)
        end = loop.header.terminator
        assert isinstance(end, Branch)
        loop.header.terminator = Branch(
            end.condition, *(on if each is place.after else each for each in (end.then, end.orelse))
        )
        for phi in place.after.phis:
            value_then = phi.incoming.pop(loop.header)
            phi.incoming |= {on: value_then, single: value_then}
        position = self._function.blocks.index(block)
        self._function.blocks[position + 1 : position + 1] = [own, joined, rest]
        position = self._function.blocks.index(place.after)
        self._function.blocks[position:position] = [on, single]
        self._home[array].instrs.remove(array)
        vector.hint = array.hint
        replace_uses(self._function, {array: vector})
        self._function.independent = self._function.independent - {place.counted.phi}
