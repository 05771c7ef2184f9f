"""What is itself when it is copied."""

from __future__ import annotations

from typing import Self


class Same:
    """What is itself when Numba copies what it is in."""

    def __deepcopy__(self, memo: object) -> Self:
        return self
