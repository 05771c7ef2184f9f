"""Shadows that the reverse sweep makes itself: those of arrays that each round of a loop makes and hands on.

    for t in range(steps):                  for k in range(steps - 1, -1, -1):
        new = np.empty(n)                       dnew = du               what the round after left, or the loop's end
        for i in range(n):                      du = np.zeros(n)        for the array that the round began with
            new[i] = f(u, i)                    for i in range(n): ...  takes from dnew, adds to du
        u = new                             du0 += du                   to the shadow of what the loop began with

A shadow that is made beside its array, in the forward sweep, would be kept until the reverse of its round: one for
each round, like the records. Made here, there are two at a time.

The shadow of `u` is then no longer the one of `u0`, though `u` is `u0` in the first round. That makes no difference as
long as nothing takes from one what belongs to the other: what the loop began with, and what it ends with, must not be
written to from then on, by whatever name. The arrays that it makes in between may, in the round that makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numba import types

from zygote_py.adjoints.reverse.stored.trip_counts import INDEX, Trip
from zygote_py.ir import (
    Block,
    Const,
    Instr,
    Loop,
    LoopNest,
    Memory,
    Operand,
    Phi,
    Undef,
    Value,
    bases,
    is_fresh,
    is_view,
    map_operands,
    ops,
    reach,
    writes,
)
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class LateShadow:
    """The shadow `handed_on` of what a loop's rounds hand on, a phi, and the shadow `made` of what they make.

    In the reverse of a round `begun` stands for the phi, an instruction that makes zeros, and `taken` for the shadow
    that is made: what the reverse of the round after has left. After the loop `end` stands for the phi. What is left
    of the first round belongs to the shadow `start`.
    """

    trip: Trip
    handed_on: Phi
    made: Instr
    begun: Instr
    end: Instr
    start: Operand
    taken: Phi

    @property
    def after(self) -> Block:
        """Return the block after the loop."""
        ((_, after),) = self.trip.loop.exits
        return after

    def as_seen_from(self, block: Block) -> Instr:
        """Return what stands for the phi in the reverse of a block."""
        return self.begun if block in self.trip.loop else self.end


class LateShadows:
    """Finds the late shadows of a function, whose blocks have been reversed in part, and takes them out of it.

    `blocks` are those of the function and those of the reversed loops, each with the block that it mirrors in
    `mirrored`; `shadows` maps arrays to shadows.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        mirrored: Mapping[Block, Block],
        nest: LoopNest,
        memory: Memory,
        shadows: Mapping[Value, Value],
    ) -> None:
        self._blocks = blocks
        self._mirrored = mirrored
        self._nest = nest
        self._memory = memory
        self._shadows = shadows

    def find(self, trips: Sequence[Trip]) -> dict[Value, LateShadow]:
        """Return the late shadows by the phis that they stand for."""
        found: dict[Value, LateShadow] = {}
        for trip in trips:
            for array in list(trip.loop.header.phis):
                shadow = self._shadows.get(array)
                if isinstance(shadow, Phi) and shadow in trip.loop.header.phis:
                    late = self._late(trip, array, shadow)
                    if late is not None:
                        found[shadow] = late
        return found

    def _late(self, trip: Trip, array: Phi, shadow: Phi) -> LateShadow | None:
        made, start = shadow.incoming[trip.latch], shadow.incoming[trip.preheader]
        if not isinstance(made, Instr) or not self._is_made_each_round(made, trip) or made.type != shadow.type:
            return None
        if isinstance(start, Undef) or len(trip.loop.exits) != 1:
            return None
        ((_, after),) = trip.loop.exits
        uses = self._uses({made, shadow})
        within = {user for user, place in uses[shadow] if not self._nest.tree.dominates(after, place)}
        if not self._are_idle({user for user, _ in uses[made]} - {shadow}) or not self._are_idle(within):
            return None
        if not self._is_left_alone(trip.loop, array, after):
            return None
        begun, end = (self._zeros(block, array, shadow) for block in (trip.first, after))
        trip.loop.header.phis.remove(shadow)
        late = LateShadow(trip, shadow, made, begun, end, start, Phi(shadow.type, made.hint, made.loc))

        def replaced(operand: Operand, block: Block) -> Operand:
            return late.as_seen_from(self._mirrored.get(block, block)) if operand is shadow else operand

        map_operands(self._blocks, replaced)
        return late

    def _is_made_each_round(self, made: Instr, trip: Trip) -> bool:
        """Return whether a shadow is made of zeros, once in each round."""
        if ops.of(made.op).contents != "zero":
            return False
        home = next((block for block in trip.loop.order if made in block.instrs), None)
        return (
            home is not None and self._nest.innermost(home) is trip.loop and self._nest.tree.dominates(home, trip.latch)
        )

    def _uses(self, values: set[Value]) -> dict[Value, list[tuple[object, Block]]]:
        """Return the users of some values, each with the block of the function that it belongs to."""
        found: dict[Value, list[tuple[object, Block]]] = {value: [] for value in values}
        for block in self._blocks:
            place = self._mirrored.get(block, block)
            for phi in block.phis:
                for pred, operand in phi.incoming.items():
                    if operand in values:
                        found[operand].append((phi, self._mirrored.get(pred, pred)))
            for node in (*block.instrs, block.terminator):
                for operand in node.args:
                    if operand in values:
                        found[operand].append((node, place))
        return found

    def _are_idle(self, users: set[object]) -> bool:
        """Return whether the function itself does nothing with a shadow: these users are views that are not used."""
        if not all(isinstance(user, Instr) and is_view(user) for user in users):
            return False
        views = {user for user in users if isinstance(user, Instr)}
        return not views or all(self._are_idle({user for user, _ in each}) for each in self._uses(set(views)).values())

    def _is_left_alone(self, loop: Loop, array: Phi, after: Block) -> bool:
        """Return whether nothing that the loop begins or ends with is written to once the loop has begun.

        What its rounds make is another matter, in the round that makes it.
        """
        memory = self._memory
        reachable = set(reach([loop.header], lambda block: block.successors))
        places = {instr: block for block in self._nest.tree.order for instr in block.instrs}
        for writer in memory.writers(array):
            block = places[writer]
            if block not in reachable:
                continue
            for target in (each for each in writes(writer) if memory.may_share(each, array)):
                if block in loop and memory.is_of_its_round(loop, target):
                    continue
                if memory.is_made_after(target, writer, array) or self._is_made_later(target, after, places):
                    continue
                return False
        return True

    def _is_made_later(self, target: Operand, after: Block, places: Mapping[Instr, Block]) -> bool:
        """Return whether an array is made after a loop, which is in no other."""
        if self._nest.innermost(after) is not None:
            return False
        return all(
            isinstance(base, Instr) and is_fresh(base) and self._nest.tree.dominates(after, places[base])
            for base in bases(target)
        )

    def _zeros(self, block: Block, array: Phi, shadow: Phi) -> Instr:
        """Return a new shadow for an array, made at the start of a block."""
        assert isinstance(array.type, types.Array)
        lengths = []
        for axis in range(array.type.ndim):
            length = next((each for each in block.instrs if each.op is ops.dim and _is_axis(each, array, axis)), None)
            if length is None:
                length = Instr(ops.dim, (array, Const(axis, INDEX)), INDEX, "n")
            else:
                block.instrs.remove(length)
            lengths.append(length)
        made = Instr(ops.zeros, tuple(lengths), shadow.type, shadow.hint, shadow.loc)
        block.instrs[:0] = [*lengths, made]
        return made


def _is_axis(length: Instr, array: Phi, axis: int) -> bool:
    of, number = length.args
    return of is array and isinstance(number, Const) and number.value == axis
