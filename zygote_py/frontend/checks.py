"""Checks that a function makes while it runs, where Numba makes them and no instruction does.

a, b, c = x                   check_count %n, 3             raises ValueError unless the array has three elements
"""

from __future__ import annotations

from zygote_py.ir.helpers import helper
from zygote_py.ir.ops import Effect


def check_count(length: int, count: int) -> None:
    """Raise ValueError if an array of `length` cannot be unpacked into `count` variables."""
    if length > count:
        raise ValueError("too many values to unpack")
    if length < count:
        raise ValueError("not enough values to unpack")


helper(check_count, Effect.WRITE)
