"""The plan of a derivative: what it keeps, recomputes and allocates, as text and as data, before anything runs.

plan = gradient(f).plan(x, 1000)
print(plan)
plan.bytes                      the most that is alive at a time, for these shapes
plan.formula                    the same for any shapes
plan.as_dict()
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from numba import types as numba_types

from zygote_py import numba_adapter
from zygote_py.adjoints.reverse.stored.notes import JoinNotes, ValueNote, Way, noted
from zygote_py.compiler import Request, derivative_of
from zygote_py.emit import Widened, widen
from zygote_py.ir import Type, clone
from zygote_py.ir.arrays.measures.allocations import Allocations, allocations, bytes_of

_AT_ONCE = "as it runs, with no record"
_NO_RECORD = "afterwards, with no record"
_RECORDS = "afterwards, from records"
_IN_LANES, _IN_THREADS = "several rounds at a time", "in threads"


@dataclass(frozen=True)
class PlannedLoop:
    """A loop of the function: its line, its number of rounds as an expression, how it is reversed, and what it keeps.

    Attributes
    ----------
    function : str
        The function that it is in.
    line : int or None
        The line of its header.
    rounds : str
        How often it runs.
    reversal : str
        When and from what its rounds are reversed.
    bytes_per_round : int
        The bytes that each round keeps; of an array that is kept by reference, those of the reference.
    together : str
        "several rounds at a time", "in threads", or both, if its rounds run side by side in what Numba compiles. The
        buffers that this takes do not count among the allocations.
    """

    function: str
    line: int | None
    rounds: str
    reversal: str
    bytes_per_round: int
    together: str = ""


@dataclass(frozen=True)
class PlannedValue:
    """A value that the reverse sweep needs of each round of a loop, how it obtains it, and why in this way.

    Attributes
    ----------
    function : str
        The function that computes it.
    name : str
        Its variable, or what computes it.
    line : int or None
        Its line.
    way : str
        "kept", "reference kept", "overwritten value kept", "recomputed", "read again" or "made by the reverse sweep".
    why : str
        The reason.
    loop : int or None
        The line of the loop.
    where : str
        "array" or "list" for what is kept, else empty.
    """

    function: str
    name: str
    line: int | None
    way: str
    why: str
    loop: int | None
    where: str


@dataclass(frozen=True)
class PlannedAllocation:
    """The memory that one place of the derivative allocates.

    Attributes
    ----------
    name : str
        Its variable in the emitted source; variables with the same name are numbered there.
    line : int or None
        The line of the function that it is for.
    kind : str
        "array", "list", or "call" for the results of a called function.
    formula : str
        The bytes as an expression.
    bytes : int or None
        The bytes for the given shapes, if they follow from these.
    """

    name: str
    line: int | None
    kind: str
    formula: str
    bytes: int | None


@dataclass(frozen=True)
class Plan:
    """The plan of a derivative for the types of its arguments, and for their shapes if values were given.

    Attributes
    ----------
    derivative : str
        What is computed, such as "gradient of f".
    types : tuple of str
        The types of the arguments.
    mode : str
        "reverse" or "forward"; empty for other derivatives than gradients.
    why : str
        Why this mode.
    loops, values, allocations : tuple
        See `PlannedLoop`, `PlannedValue`, `PlannedAllocation`. A gradient in forward mode keeps no values.
    formula : str
        The most bytes that are alive at a time, as an expression in the parameters. What the caller has given does not
        count, nor what library functions allocate for themselves.
    bytes : int or None
        The same for the given shapes, if it follows from them; see `formula`.

    Examples
    --------
    >>> import numpy as np
    >>> import zygote_py as zg
    >>> plan = zg.gradient(lambda x: np.sum(x * x)).plan(np.ones(100))
    >>> plan.formula, plan.bytes
    ('8 * x.shape[0]', 800)
    """

    derivative: str
    types: tuple[str, ...]
    mode: str
    why: str
    loops: tuple[PlannedLoop, ...]
    values: tuple[PlannedValue, ...]
    allocations: tuple[PlannedAllocation, ...]
    formula: str
    bytes: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as dicts, lists, strings and numbers."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        """Return the plan as text."""
        lines = [f"{self.derivative}({', '.join(self.types)})"]
        if self.mode:
            lines.append(f"mode: {self.mode}, {self.why}")
        if self.loops:
            lines += ["", "loops"]
            for loop in self.loops:
                kept = f", {loop.bytes_per_round} bytes per round" if loop.bytes_per_round else ""
                rounds = loop.rounds if loop.rounds.startswith("rounds") else f"{loop.rounds} rounds"
                together = f", {loop.together}" if loop.together else ""
                lines.append(f"  {_place(loop)}: {rounds}, reversed {loop.reversal}{kept}{together}")
        for title, ways in _SECTIONS.items():
            found = [value for value in self.values if value.way in ways]
            lines += ["", title, *_told(found)] if found else []
        if self.allocations:
            lines += ["", "allocations"]
            lines += [
                f"  {each.name}{_at(each.line)}: {each.formula} bytes{_equal(each.bytes)}" for each in self.allocations
            ]
        lines += ["", f"at most alive at a time: {self.formula} bytes{_equal(self.bytes)}"]
        return "\n".join(lines)


_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "kept": (Way.KEPT.value, Way.REFERENCE.value, Way.REWOUND.value),
    "computed or read again": (Way.RECOMPUTED.value, Way.REREAD.value),
    "made by the reverse sweep": (Way.MADE.value,),
}


def _told(values: Sequence[PlannedValue]) -> list[str]:
    """Return a line for the values of each line that are obtained in the same way for the same reason."""

    def key(value: PlannedValue) -> tuple[Any, ...]:
        return (value.function, value.line or 0, value.way, value.why, value.where)

    lines = []
    for _, group in groupby(sorted(values, key=key), key):
        same = list(group)
        names = list(dict.fromkeys(value.name for value in same))
        first = same[0]
        how = {"array": ", in an array", "list": ", in a list"}.get(first.where, "")
        lines.append(f"  {_place(first)}: {', '.join(names)}: {first.way}{how}, {first.why}")
    return lines


def _place(of: PlannedLoop | PlannedValue) -> str:
    return f"{of.function}{_at(of.line)}"


def _at(line: int | None) -> str:
    return "" if line is None else f", line {line}"


def _equal(size: int | None) -> str:
    return "" if size is None else f" = {size:,}"


def make_plan(derivative: str, request: Request, types: tuple[Type, ...], sizes: Sequence[object]) -> Plan:
    """Return the plan of what is requested, for the types of the arguments, their shapes, and integers."""
    with numba_adapter.COMPILER_LOCK, noted() as notes:
        made, _ = derivative_of(request, types, ())
    known: dict[Any, Any] = {}
    for param, size in zip(made.joint.params, sizes, strict=False):
        if isinstance(size, int) and isinstance(param.type, numba_types.Array):
            size = (size,)
        if isinstance(size, tuple | int):
            known[param] = size
    found = allocations(made.joint, known)
    told = [] if made.mode[0] == "forward" else notes
    widened = widen(clone(made.joint).function, request.options)
    return Plan(
        derivative,
        tuple(map(str, types)),
        *made.mode,
        tuple(loop for each in told for loop in _loops(each, widened)),
        tuple(_value(each.function, value) for each in told for value in each.values),
        _allocations(found),
        found.peak.text,
        found.peak.value,
    )


def _loops(notes: JoinNotes, widened: Widened) -> list[PlannedLoop]:
    loops = []
    for loop, rounds in notes.loops:
        kept = sum(bytes_of(value.type) for value in notes.values if value.loop is loop and _is_kept(value))
        inside = any(_is_kept(value) and value.loop.header in loop for value in notes.values)
        reversal = _AT_ONCE if loop in notes.immediate else _RECORDS if inside else _NO_RECORD
        loc = loop.loc
        ways = ((_IN_THREADS, widened.in_threads), (_IN_LANES, widened.in_lanes))
        together = ", ".join(way for way, places in ways if loc is not None and loc in places)
        loops.append(PlannedLoop(notes.function, _line(loc), rounds, reversal, kept, together))
    return loops


def _is_kept(value: ValueNote) -> bool:
    return value.way in (Way.KEPT, Way.REFERENCE, Way.REWOUND)


def _value(function: str, value: ValueNote) -> PlannedValue:
    where = ("list" if value.in_list else "array") if _is_kept(value) else ""
    loop = _line(value.loop.loc)
    return PlannedValue(function, value.name, _line(value.loc), value.way.value, value.why, loop, where)


def _allocations(found: Allocations) -> tuple[PlannedAllocation, ...]:
    return tuple(
        PlannedAllocation(each.name, _line(each.loc), each.kind, each.in_all.text, each.in_all.value)
        for each in found.found
    )


def _line(loc: Any) -> int | None:
    return None if loc is None else loc.line
