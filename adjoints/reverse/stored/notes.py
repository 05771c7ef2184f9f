"""Notes on how the reverse sweep obtains each value that it needs, for those who ask (`df.plan`).

    with noted() as notes:
        join(...)
    notes[0].function, notes[0].values

Nothing is noted otherwise.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from numba import types

from zygote_py.adjoints.reverse.stored.late_shadows import LateShadow
from zygote_py.adjoints.reverse.stored.plan import Demand, Plan, Strategy
from zygote_py.ir import Function, Instr, Loc, Loop, Phi, Type, Value, ops
from zygote_py.ir.arrays.measures.sizes import Sizes
from zygote_py.ir.lazy_dataclass import dataclass


class Way(enum.Enum):
    """The way in which the reverse sweep obtains a value."""

    KEPT = "kept"
    REFERENCE = "reference kept"
    REWOUND = "overwritten value kept"
    RECOMPUTED = "recomputed"
    REREAD = "read again"
    MADE = "made by the reverse sweep"


@dataclass(frozen=True, slots=True)
class ValueNote:
    """A value, the loop in each round of which it is needed, and why it is obtained in this way.

    It is kept in an array of the exact size, or, if `in_list`, in a list.
    """

    name: str
    loc: Loc | None
    type: Type
    loop: Loop
    way: Way
    why: str
    in_list: bool = False


@dataclass(frozen=True, slots=True)
class JoinNotes:
    """The notes on one joint function; the `immediate` loops are reversed as they run, with no record."""

    function: str
    loops: tuple[tuple[Loop, str], ...]  # with the number of rounds
    immediate: frozenset[Loop]
    values: tuple[ValueNote, ...]


_notes: ContextVar[list[JoinNotes] | None] = ContextVar("notes", default=None)


@contextmanager
def noted() -> Iterator[list[JoinNotes]]:
    """Collect the notes on all joint functions that are made in this context."""
    found: list[JoinNotes] = []
    token = _notes.set(found)
    try:
        yield found
    finally:
        _notes.reset(token)


def rounds_of(function: Function, loops: Collection[Loop]) -> tuple[tuple[Loop, str], ...]:
    """Return the loops of a function with the number of their rounds, if anyone collects notes."""
    if _notes.get() is None:
        return ()
    sizes = Sizes(function)
    return tuple((loop, sizes.trips(loop).text) for loop in loops)


def note(
    name: str,
    rounds: tuple[tuple[Loop, str], ...],
    immediate: Collection[Loop],
    plan: Plan,
    late: Mapping[Value, LateShadow],
    listed: Collection[Demand],
) -> None:
    """Add the notes on a joint function, if anyone collects them; the `listed` nodes are kept in lists."""
    notes = _notes.get()
    if notes is None:
        return
    found = [_note(plan, node, node in listed) for node, way in plan.strategies.items() if _is_told(plan, node, way)]
    for shadow in late.values():
        why = "each round makes its array, and hands it on"
        found.append(ValueNote(shadow.made.hint, shadow.made.loc, shadow.made.type, shadow.trip.loop, Way.MADE, why))
    notes.append(JoinNotes(name, rounds, frozenset(immediate), tuple(found)))


def _is_told(plan: Plan, node: Demand, way: Strategy) -> bool:
    """Return whether a node is of interest: not the counters, the indices computed from them, and final values."""
    if node.loop is None or node.value in plan.given or way not in (Strategy.STORE, Strategy.RECOMPUTE):
        return False
    return way is Strategy.STORE or isinstance(node.value.type, types.Float | types.Complex | types.Array)


def _note(plan: Plan, node: Demand, in_list: bool) -> ValueNote:
    value, loop = node.value, node.loop
    assert loop is not None
    way, why = _kept(plan, node) if plan.strategies[node] is Strategy.STORE else _again(plan, node)
    return ValueNote(_name(value), value.loc, value.type, loop, way, why, in_list and way is not Way.RECOMPUTED)


def _name(value: Value) -> str:
    if value.hint:
        return value.hint
    if isinstance(value, Instr) and value.op is ops.getitem:
        return f"{getattr(value.args[0], 'hint', '') or 't'}[...]"
    return f"{ops.name_of(value.op)}(...)" if isinstance(value, Instr) else "t"


def _kept(plan: Plan, node: Demand) -> tuple[Way, str]:
    value = node.value
    if value in plan.olds:
        return Way.REWOUND, "restores memory that many values are read from again"
    way = Way.KEPT if not isinstance(value.type, types.Array) else Way.REFERENCE
    if isinstance(value, Phi):
        return way, _of_phi(plan, node)
    if plan.can_recompute(node):
        return way, "costs more to compute again"
    if isinstance(value, Instr) and ops.of(value.op).effect is ops.Effect.READ:
        return way, "is overwritten in memory later"
    return way, "cannot be computed again"


def _of_phi(plan: Plan, node: Demand) -> str:
    if node.loop is not None and node.value in node.loop.header.phis:
        return "is handed from round to round"
    return "depends on the branch taken" if plan.is_of_its_loop(node) else "is the result of an inner loop"


def _again(plan: Plan, node: Demand) -> tuple[Way, str]:
    value = node.value
    if isinstance(value, Instr) and ops.of(value.op).effect is ops.Effect.READ and value.op is ops.getitem:
        return Way.REREAD, "is in memory still" if plan.is_repeatable(value) else "its memory is rewound"
    if isinstance(value, Instr) and ops.of(value.op).contents == "zero":
        return Way.MADE, "is needed in the reverse of its round only"
    return Way.RECOMPUTED, "costs less than to keep"
