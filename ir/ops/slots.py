"""Operations on the dict that holds, for each key of a dict of the program, the slot of its value in a list.

    no_slots("")              a dict without entries, with keys of the type of this one
    slot_of(d, k)             d[k]                        find_slot(d, k)          d.get(k, -1)
    set_slot(d, k, n)         d[k] = n                    keep_slot(d, k, n)       d.setdefault(k, n)
    free_slot(d, k)           del d[k]                    slots_in_order(d)        np.array([*d.values()])
    copied_slots(d)           d.copy()
    check_same_size(n, m)     raises RuntimeError if n entries became m in a loop over them

Keys may be tuples. Nothing that is differentiated is in these dicts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zygote_py.ir.ops.helpers import helper
from zygote_py.ir.ops.table import Cost, Effect, operation, primitive


def no_slots(key: Any) -> dict[Any, int]:
    """Return a dict without entries, whose keys are of the type of this one."""
    slots = {}
    slots[key] = 0
    del slots[key]
    return slots


def slots_in_order(slots: dict[Any, int]) -> Any:
    """Return the slots of all keys, in the order of the keys."""
    found = np.empty(len(slots), np.int64)
    for number, slot in enumerate(slots.values()):
        found[number] = slot
    return found


def copied_slots(slots: dict[Any, int]) -> dict[Any, int]:
    """Return a copy of the dict."""
    made = {}
    for key, slot in slots.items():
        made[key] = slot
    return made


def check_same_size(size: int, before: int) -> None:
    """Raise RuntimeError if the number of entries has changed in a loop over them."""
    if size != before:
        raise RuntimeError("dictionary changed size during iteration")


helper(no_slots, Effect.ALLOCATE)
helper(slots_in_order, Effect.ALLOCATE)
helper(copied_slots, Effect.ALLOCATE)
helper(check_same_size, Effect.WRITE)
operation(slots_in_order, fresh=True)
operation(copied_slots, fresh=True)


@primitive(effect=Effect.READ, cost=Cost.FUNCTION, raises=True)
def slot_of(slots: dict[Any, int], key: Any) -> int:
    """Return the slot of a key. Raises KeyError if there is none."""
    return slots[key]


@primitive(effect=Effect.READ, cost=Cost.FUNCTION, raises=True)
def slot_now(slots: dict[Any, int], key: Any, order: Any, number: int) -> int:
    """Return the slot of a key, which was `order[number]` before the loop; it becomes one or the other."""
    return slots[key]


@primitive(effect=Effect.READ, cost=Cost.FUNCTION)
def find_slot(slots: dict[Any, int], key: Any) -> int:
    """Return the slot of a key, -1 if there is none."""
    return slots.get(key, -1)


@primitive(effect=Effect.WRITE)
def set_slot(slots: dict[Any, int], key: Any, slot: int) -> None:
    """Set the slot of a key, which keeps its place among the keys."""
    slots[key] = slot


@primitive(effect=Effect.WRITE)
def keep_slot(slots: dict[Any, int], key: Any, slot: int) -> None:
    """Set the slot of a key that has none."""
    slots.setdefault(key, slot)


@primitive(effect=Effect.WRITE)
def free_slot(slots: dict[Any, int], key: Any) -> None:
    """Remove a key. Raises KeyError if it is not there."""
    del slots[key]
