"""A log of who reads and writes which element between barriers, in which two threads that meet are found.

    log = Log()
    log.note("write", address, Thread(0, 1), "x")
    log.note("read", address, Thread(0, 2), "x")
    log.races           # [Race('x', 'write', Thread(block=0, number=1), 'read', Thread(block=0, number=2))]

Two threads race if one of them writes an element that the other reads or writes, or updates atomically, with no barrier
between: for threads of one block one of this block, and for threads of two blocks there is none. Atomic updates do not
race with each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

Kind = Literal["read", "write", "atomic"]
_MOST = 20  # races that are kept


class Thread(NamedTuple):
    """A thread, by the numbers of its block and of itself in it."""

    block: int
    number: int


class Race(NamedTuple):
    """Two accesses of an element that nothing puts in order."""

    array: str
    kind: Kind
    thread: Thread
    other_kind: Kind
    other: Thread


class Log:
    """The accesses of a launch; `running` is the thread whose accesses are noted, None outside of kernels."""

    def __init__(self) -> None:
        self.races: list[Race] = []
        self.has_left_out = False  # some threads of a block have ended before a barrier of others
        self.running: Thread | None = None
        self.touched: set[int] = set()  # addresses in global memory
        self._in_block: dict[int, set[tuple[Kind, Thread]]] = {}  # since the last barrier
        self._in_grid: dict[int, set[tuple[Kind, Thread]]] = {}

    def launch(self) -> None:
        """Forget the accesses of the launch before: there is a barrier between two launches."""
        self._in_grid.clear()
        self.barrier()

    def barrier(self, is_left_out: bool = False) -> None:
        """Forget the accesses of the running block: what follows comes after them. Some threads may leave it out."""
        self._in_block.clear()
        self.has_left_out |= is_left_out

    def note(self, kind: Kind, address: int, thread: Thread, name: str, is_shared: bool = False) -> None:
        """Note an access, and the races with those before."""
        access = (kind, thread)
        before = self._in_block.setdefault(address, set())
        if access in before:
            return
        others = set(before)
        before.add(access)
        if not is_shared:
            self.touched.add(address)
            in_grid = self._in_grid.setdefault(address, set())
            others.update((k, other) for k, other in in_grid if other.block != thread.block)
            in_grid.add(access)
        for other_kind, other in others:
            together = {kind, other_kind}
            if other != thread and together not in ({"read"}, {"atomic"}) and len(self.races) < _MOST:
                self.races.append(Race(name, kind, thread, other_kind, other))


class Logged:
    """An array within a kernel: what is read and written goes through a log."""

    __slots__ = ("_address", "_is_shared", "_log", "array", "name")

    def __init__(self, array: np.ndarray, log: Log, name: str, is_shared: bool = False) -> None:
        self.array = array
        self.name = name
        self._log = log
        self._is_shared = is_shared
        self._address = array.__array_interface__["data"][0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def __len__(self) -> int:
        return len(self.array)

    def note(self, kind: Kind, index: Any) -> None:
        """Note an access of an element, or of each of a view."""
        log = self._log
        if log.running is not None:
            for address in self._addresses(index if isinstance(index, tuple) else (index,)):
                log.note(kind, address, log.running, self.name, self._is_shared)

    def _addresses(self, index: tuple[Any, ...]) -> Iterator[int]:
        array = self.array
        if len(index) == array.ndim and not any(isinstance(each, slice) for each in index):
            at = self._address
            for each, stride, length in zip(index, array.strides, array.shape, strict=True):
                place = int(each)
                at += (place + length if place < 0 else place) * stride
            yield at
            return
        yield from addresses(array[index])

    def __getitem__(self, index: Any) -> Any:
        found = self.array[index]
        if isinstance(found, np.ndarray):
            return Logged(found, self._log, self.name, self._is_shared)
        self.note("read", index)
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        self.note("write", index)
        self.array[index] = bare(value)


def bare(value: Any) -> Any:
    """Return an array without its log; other values as they are."""
    return value.array if isinstance(value, Logged) else value


def addresses(array: np.ndarray) -> Iterator[int]:
    """Return the addresses of the elements of an array."""
    first = array.__array_interface__["data"][0]
    for place in np.ndindex(array.shape):
        yield first + sum(k * stride for k, stride in zip(place, array.strides, strict=True))
