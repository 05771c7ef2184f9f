"""The arrays on a device in which the threads of a kernel keep their records: an element for each thread, side by side.

spaces = Workspaces([types.float64])
spaces.arrays(1024, [100], stream)      # one array of 102,400 numbers, kept for the next launch in the stream
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import Type
from zygote_py.numba_adapter.cuda import launch

_MOST_STREAMS = 8  # whose workspaces are kept


class Workspaces:
    """The workspaces of one kernel: one for each stream, since kernels of several may run at a time."""

    def __init__(self, kinds: Sequence[Type]) -> None:
        self._dtypes = list(map(dtype_of, kinds))
        self._held: dict[tuple[int, int], list[Any]] = {}

    def bytes_of_lane(self, lengths: Sequence[int]) -> int:
        """Return how many bytes records of these lengths take for a thread."""
        return sum(length * dtype.itemsize for length, dtype in zip(lengths, self._dtypes, strict=True))

    def known(self, lanes: int, lengths: Sequence[int], stream: Any) -> list[Any] | None:
        """Return the last workspace of a stream, if it is large enough."""
        held = self._held.get(launch.number_of(stream))
        is_enough = held is not None and all(
            array.size >= length * lanes for array, length in zip(held, lengths, strict=True)
        )
        return held if is_enough else None

    def forget(self, stream: Any) -> None:
        """Free the workspace of a stream, before more is asked for."""
        key = launch.number_of(stream)
        if key not in self._held and len(self._held) >= _MOST_STREAMS:
            self._held.clear()
        self._held.pop(key, None)

    def arrays(self, lanes: int, lengths: Sequence[int], stream: Any) -> list[Any]:
        """Return a workspace. Raises MemoryError, with sizes, if it does not fit on the device."""
        if (held := self.known(lanes, lengths, stream)) is not None:
            return held
        self.forget(stream)
        needed, free = self.bytes_of_lane(lengths) * lanes, launch.free_bytes()
        if needed > free:
            raise MemoryError(
                f"the records of {lanes:,} threads take {needed:,} bytes, where {free:,} are free on the device: "
                "launch fewer threads, or let a loop have fewer rounds"
            )
        sizes = [max(length * lanes, 1) for length in lengths]
        made = [launch.new((size,), dtype) for size, dtype in zip(sizes, self._dtypes, strict=True)]
        self._held[launch.number_of(stream)] = made
        return made


def dtype_of(kind: Any) -> np.dtype[Any]:
    """Return the dtype of a number, or of the elements of an array."""
    element = kind.dtype if isinstance(kind, types.Array) else kind
    return np.dtype("bool" if isinstance(element, types.Boolean) else str(element))
