"""Checks that a function makes while it runs, where Numba makes them and no instruction does.

a, b, c = x                   check_count %n, 3             raises ValueError unless the array has three elements
x[a:b] = [y]                  check_filled %n, 1            raises ValueError unless that is one element
checkpointed(range(n), k)     check_positive %k             raises ValueError unless there is a segment
np.round(x, 1, y)             check_out %n, %m              raises ValueError unless the axes have the same length
prev * x                      check_present %flag, "float64"    raises TypeError if `prev` is None
z.view(np.float64)            check_last_axis %z            raises ValueError if the last axis is not contiguous
"""

from __future__ import annotations

from typing import Any

from zygote_py.ir import helper
from zygote_py.ir.ops import Effect, operation


def check_count(length: int, count: int) -> None:
    """Raise ValueError if an array of `length` cannot be unpacked into `count` variables."""
    if length > count:
        raise ValueError("too many values to unpack")
    if length < count:
        raise ValueError("not enough values to unpack")


def check_filled(length: int, count: int) -> None:
    """Raise ValueError if a part of an array has not as many elements as the tuple or list that is stored to it."""
    if length != count:
        raise ValueError("the value does not have the shape of what it is assigned to")


def check_out(length: int, given: int) -> None:
    """Raise ValueError if an axis of the array for the result has not the length of the result's."""
    if length != given:
        raise ValueError("the array for the result does not have the shape of the result")


def check_positive(number: int) -> None:
    """Raise ValueError if a loop is to have no segment, or no snapshot."""
    if number < 1:
        raise ValueError("checkpointed: segments and snapshots must be at least 1")


def check_present(present: bool, kind: str) -> None:
    """Raise TypeError if there is no value."""
    if not present:
        raise TypeError("expected " + kind + ", got None")


def check_last_axis(x: Any) -> None:
    """Raise ValueError if the elements of the last axis of an array are not next to each other."""
    if x.strides[x.ndim - 1] != x.itemsize:
        raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")


def enum_value(member):  # type: ignore[no-untyped-def]
    """Return the value that represents a member of an enumeration."""
    return member.value


helper(enum_value)
for check in (check_count, check_filled, check_positive, check_present, check_out, check_last_axis):
    helper(check, Effect.WRITE)
operation(check_present, check_last_axis, silent=True)
