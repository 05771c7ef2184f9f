"""Places in Numba's IR, and whether control comes from one by way of another to a third.

is_reached(blocks, made, assigned, used)      # made ... assigned ... used, and not made again in between
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """A statement: the label of its block, and its number in there."""

    label: int
    number: int


def is_reached(blocks: Mapping[int, Any], start: Place, through: Collection[Place], ends: Collection[Place]) -> bool:
    """Whether control may come from `start` to one of `ends`, through one of `through` and not again by `start`.

    A statement may be both: it is an end first, as it reads before it assigns.
    """
    passing, ending = frozenset(through), frozenset(ends)
    seen: set[tuple[int, bool]] = set()
    pending = [(start.label, start.number + 1, False)]
    while pending:
        label, first, passed = pending.pop()
        for number in range(first, len(blocks[label].body)):
            place = Place(label, number)
            if place == start:
                break
            if passed and place in ending:
                return True
            passed = passed or place in passing
        else:
            for successor in blocks[label].terminator.get_targets():
                if (successor, passed) not in seen:
                    seen.add((successor, passed))
                    pending.append((successor, 0, passed))
    return False
