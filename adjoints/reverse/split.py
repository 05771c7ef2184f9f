"""Splitting of a joint function: the forward half, and the reverse half with the residuals as parameters.

    joint pow(%x, %n, %dy)                      forward pow(%x, %n)             reverse pow(%n, %r_record, %x, %dy)
    b0:  %r_record = record %n                  b0:  %r_record = record %n      b4:  ...
    b1:  ...                            ->      b1:  ...
    b3:  jump b4                                b3:  (%r3, and what crosses)
    b4:  ...

A crossing value that is cheap to compute from the parameters and from other crossing values is recomputed; views, and
shadows that only the reverse half accesses, always are. So is a value of a branch, in the branch of the reverse half
that uses it:

    forward: b1: %e = mul %t, %t : f64              reverse: b5: %e2 = mul %t, %t : f64     instead of %e1
             b3: %e1 = phi b1: %e, b2: undef                     ... %e2 ...

Values of which a run computes one cross as one (`stored/shared_fields.py`), and records of one length in one array
(`stored/joined_records.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from numba import types

from zygote_py.adjoints.reverse.stored.joined_records import join_records
from zygote_py.adjoints.reverse.stored.shared_fields import share_fields
from zygote_py.ir import (
    Block,
    Function,
    Instr,
    Operand,
    Param,
    Phi,
    Return,
    Terminator,
    Undef,
    Value,
    check_after,
    definitions,
    effect,
    has_memory,
    is_left_out,
    is_view,
    loop_nest,
    ops,
    passes,
    reach,
    replace_uses,
    reverse_postorder,
    uses,
)
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(eq=False)
class Halves:
    """The two functions, without their returns: `last` is the final block of the forward half.

    `crossing` are values of the forward half; the first parameters of the reverse half represent them, in the same
    order. The reverse half returns what the joint function did.
    """

    forward: Function
    last: Block
    reverse: Function
    crossing: tuple[Value, ...]


def split(
    joint: Function, last: Block, entry: Block, seeds: Collection[Param], mirrored: Mapping[Block, Block]
) -> Halves:
    """Split a joint function between `last`, which jumps to `entry`, and `entry`.

    `mirrored` are the blocks of the forward sweep that blocks of the reverse sweep mirror: these run if those have run.
    """
    last.terminator = Return(())
    forward_blocks = reverse_postorder(joint)
    inside = set(forward_blocks)
    reverse = Function(joint.name, [], [entry], "joint", None, joint.loc, joint.options)
    reverse.blocks = reverse_postorder(reverse)
    assert not inside & set(reverse.blocks)
    forward = Function(joint.name, list(joint.params), forward_blocks, "joint", None, joint.loc, joint.options)
    shared = share_fields(_Crossing(forward, last, reverse, mirrored).choose(), forward.blocks)
    params = {value: Param(value.type, value.hint, value.loc) for value in dict.fromkeys(shared.values())}
    reverse.params = [*params.values(), *seeds]
    replace_uses(reverse, {value: params[recorded] for value, recorded in shared.items()})
    check_after("split", forward, reverse)
    passes.run(reverse, _WITHOUT_EFFECT)
    used = uses(reverse)
    params = {value: param for value, param in params.items() if param in used}
    params = join_records(forward, reverse, params)
    reverse.params = [*params.values(), *seeds]
    return Halves(forward, last, reverse, tuple(params))


# Of a branch whose two ways turn out to be the same, the condition need not cross.
_WITHOUT_EFFECT = (passes.remove_dead_code, passes.merge_blocks, passes.remove_dead_code)


class _Crossing:
    def __init__(self, forward: Function, last: Block, reverse: Function, mirrored: Mapping[Block, Block]) -> None:
        self._last = last
        self._mirrored = mirrored
        self._reverse = reverse
        self._order: dict[Value, int] = {value: number for number, value in enumerate(forward.values())}
        self._uses = uses(forward)
        self._kept: set[Value] = set()  # arrays of which a view crosses, so that they must not be recreated
        self._home = definitions(forward)
        self._nest = loop_nest(forward)
        self._carried: dict[Value, Instr] = {}  # by phis that are a value of a branch, wherever they are defined
        self._carriers: dict[Value, Phi] = {}  # of these values: a phi that is one, wherever it is computed
        self._following: dict[Block, set[Block]] = {}  # the blocks that may run after one

    def choose(self) -> list[Value]:
        """Return the crossing values; the recomputation of the others is added to the reverse half."""
        needed = self._used(self._reverse.nodes())
        single = {value: self._only_value(value) for value in dict.fromkeys(needed) if isinstance(value, Phi)}
        values = Counter([*single.values(), *dict.fromkeys(needed)])
        for value, instr in single.items():
            if instr is None:
                continue
            is_complete = self._is_complete(value, self._home[instr])
            if isinstance(value.type, types.Array) and not (is_complete and values[instr] == 1):
                continue  # it must not be made twice
            self._carried[value] = instr
            if is_complete:
                self._carriers.setdefault(instr, value)
        # Users before their operands, so that the needs of users are known when an operand is visited.
        wanted = dict.fromkeys(sorted(needed, key=self._order.__getitem__, reverse=True))
        again, crossing = self._divide(wanted)
        while kept := self._parts_of_crossing(crossing) & again.keys() or self._made_elsewhere(again):
            self._kept |= kept
            again, crossing = self._divide(wanted)
        made = sorted(again, key=lambda value: self._order[self._computed(value)])
        self._reverse.entry.instrs[:0] = [again[value] for value in made]
        replace_uses(self._reverse, dict(again))
        self._sink([again[value] for value in made if self._is_of_branch(value)])
        crossing = [value for value in dict.fromkeys((*crossing, *self._used(again.values()))) if value in self._order]
        return sorted(crossing, key=self._order.__getitem__)

    def _parts_of_crossing(self, crossing: Collection[Value]) -> set[Value]:
        """Return the arrays of which what crosses is a view, which would be a view of another one if they were new."""
        return {self._carriers.get(each, each) for each in reach(crossing, _parts_of)}

    def _divide(self, wanted: Collection[Value]) -> tuple[dict[Value, Instr], list[Value]]:
        """Return the copies of recomputed instructions, and the crossing values."""
        again: dict[Value, Instr] = {}
        crossing: list[Value] = []
        for value in wanted:
            if self._is_made_again(value, wanted, 0):
                self._make(value, wanted, again)
            else:
                crossing.append(value)
        return again, crossing

    def _used(self, nodes: Iterable[Value | Terminator]) -> list[Value]:
        return [arg for node in nodes for arg in node.args if isinstance(arg, Value) and arg in self._order]

    def _make(self, value: Value, wanted: Collection[Value], again: dict[Value, Instr]) -> None:
        """Add a copy of an instruction, and of the operands that are not available otherwise."""
        if value in again:
            return
        instr = self._computed(value)
        assert isinstance(instr, Instr)
        again[value] = made = instr.copy()
        made.args = tuple(self._carriers.get(arg, arg) if isinstance(arg, Value) else arg for arg in instr.args)
        for arg in made.args:
            if isinstance(arg, Instr) and not self._is_at_hand(arg, wanted):
                self._make(arg, wanted, again)

    def _computed(self, value: Value) -> Value:
        """Return the value that a phi is wherever it is defined, if it has been found to be a single one."""
        carried = self._carried.get(value)
        return value if carried is None else carried

    def _is_at_hand(self, operand: Operand, wanted: Collection[Value]) -> bool:
        if not isinstance(operand, Value) or isinstance(operand, Param):
            return True
        return operand in wanted or operand in self._carriers

    def _is_made_again(self, value: Value, wanted: Collection[Value], depth: int) -> bool:
        """Return whether a value is recomputed in the reverse half."""
        if value in self._kept:
            return False
        value = self._computed(value)
        if not isinstance(value, Instr) or depth > 8 or value in self._kept:
            return False
        if ops.of(value.op).contents == "zero" and self._is_untouched(value):
            allowed = True
        elif isinstance(value.type, types.Array | types.SliceType | types.BaseTuple):
            allowed = is_view(value) or value.op is slice or (value.op is ops.pack and not has_memory(value.type))
        else:
            allowed = ops.of(value.op).remade and effect(value) is ops.Effect.PURE
        return allowed and all(self._can_be_had(arg, wanted, depth) for arg in value.args)

    def _can_be_had(self, operand: Operand, wanted: Collection[Value], depth: int) -> bool:
        if self._is_at_hand(operand, wanted):
            return not isinstance(operand, Undef)
        return isinstance(operand, Instr) and self._is_made_again(operand, wanted, depth + 1)

    def _only_value(self, phi: Phi) -> Instr | None:
        """Return the number or the array of a branch that a phi is wherever it is defined, if there is one alone."""
        is_fit = isinstance(phi.type, types.Number | types.Boolean | types.Array)
        if not is_fit or is_left_out("recomputed-branches"):
            return None
        start: list[Operand] = [phi]
        reached = reach(start, lambda each: each.args if isinstance(each, Phi) else ())
        found = [each for each in reached if not isinstance(each, Phi | Undef)]
        match found:
            case [Instr() as single] if single.type == phi.type and not self._nest.depth(self._home[single]):
                return single
            case _:
                return None

    def _made_elsewhere(self, again: Mapping[Value, Instr]) -> set[Value]:
        """Return the arrays of branches that would be made again where the branch may not have been taken.

        Their shapes may be anything there.
        """
        arrays = [value for value in again if value in self._carried and isinstance(value.type, types.Array)]
        if not arrays:
            return set()
        used, nest = uses(self._reverse), loop_nest(self._reverse)
        at = {value: [use.at for use in used[value]] for value in again}
        places: dict[Value, Block] = {}
        for value in sorted(again, key=lambda value: self._order[self._computed(value)], reverse=True):
            places[value] = nest.nearest(at[value], None) if self._is_of_branch(value) else self._reverse.entry
            for arg in again[value].args:
                if isinstance(arg, Value) and arg in at:
                    at[arg].append(places[value])

        def is_after(block: Block, home: Block) -> bool:
            return any(
                nest.tree.dominates(each, block) and self._nest.tree.dominates(home, self._mirrored[each])
                for each in self._reverse.blocks
                if each in self._mirrored
            )

        return {each for each in arrays if not is_after(places[each], self._home[self._carried[each]])}

    def _is_complete(self, phi: Phi, home: Block) -> bool:
        """Return whether a phi is defined wherever its only value, of the block `home`, has been computed."""
        if home not in self._following:
            self._following[home] = set(reach([home], lambda block: block.successors))
        start: list[Operand] = [phi]
        return not any(
            isinstance(operand, Undef) and pred in self._following[home]
            for each in reach(start, lambda each: each.args if isinstance(each, Phi) else ())
            if isinstance(each, Phi)
            for pred, operand in each.incoming.items()
        )

    def _is_of_branch(self, value: Value) -> bool:
        """Return whether some runs of the forward half do not compute a value."""
        return value in self._carried or not self._nest.tree.dominates(self._home[value], self._last)

    def _sink(self, made: list[Instr]) -> None:
        """Move instructions at the entry of the reverse half, in order, to where their values are used."""
        nest, home, used = loop_nest(self._reverse), definitions(self._reverse), uses(self._reverse)
        for instr in reversed(made):
            block = nest.nearest(
                (use.at if isinstance(use.user, Phi | Terminator) else home[use.user] for use in used[instr]), None
            )
            home[instr] = block
            if block is not self._reverse.entry:
                block.instrs.insert(0, instr)
        self._reverse.entry.instrs = [each for each in self._reverse.entry.instrs if home[each] is self._reverse.entry]

    def _is_untouched(self, value: Value) -> bool:
        """Return whether the forward half does not access an array of zeros except by views."""
        start: list[Value] = [value]
        same = set(reach(start, lambda each: (phi for phi in self._phis(each) if self._only_value(phi) is value)))
        users = [use.user for each in same for use in self._uses.get(each, ()) if use.user not in same]
        return all(
            isinstance(user, Instr) and is_view(user) and user.args[0] in same and self._is_untouched(user)
            for user in users
        )

    def _phis(self, value: Value) -> list[Phi]:
        return [use.user for use in self._uses.get(value, ()) if isinstance(use.user, Phi)]


def _parts_of(value: Value) -> list[Value]:
    """Return what a phi may be, and the array that a view shows."""
    found: tuple[Operand, ...] = ()
    if isinstance(value, Phi):
        found = value.args
    elif isinstance(value, Instr) and is_view(value):
        found = value.args[:1]
    return [each for each in found if isinstance(each, Value)]
