"""What was compiled of a derivative, and what it holds for: captured variables that are passed, and constants."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from zygote_py.cache import Kernel, as_captured
from zygote_py.capture import Capture, are_unchanged
from zygote_py.ir.core import Type


class Generation:
    """What is compiled while a function captures the same variables, and what is constant in it has its value.

    When it captures more, or a constant changes, there is another one; who calls meanwhile goes on with this. Only who
    holds the lock changes it.
    """

    def __init__(self, hidden: tuple[Capture, ...], frozen: dict[Any, Capture], entry: Any = None) -> None:
        self.hidden = hidden  # captured values that are passed at each call
        self.frozen: dict[Any, Capture] = {}  # those that are constants of what was compiled; replaced, never changed
        self.compiled: dict[tuple[Type, ...], Kernel] = {}
        self._kernels: list[Kernel] = []  # all, also those that have been replaced: what they made is still called
        self.dispatcher: Any = None  # takes the hidden values behind the arguments
        self.entry = entry  # takes the arguments alone
        self.freeze(frozen.values())

    def freeze(self, captures: Iterable[Capture]) -> None:
        """Take captured values for constants."""
        self.frozen = self.frozen | {capture.key: capture for capture in captures}
        self._readers = tuple(capture.read for capture in self.frozen.values())
        self._values = tuple(capture.value for capture in self.frozen.values())

    def add(self, argument_types: tuple[Type, ...], kernel: Kernel) -> None:
        """Take in what was compiled for a signature."""
        self.freeze(kernel.frozen)
        self.compiled[argument_types] = kernel
        self._kernels.append(kernel)

    def captured(self) -> tuple[object, ...]:
        """The captured values that are passed, as they are now."""
        return tuple(capture.read() for capture in self.hidden)

    def is_outdated(self) -> bool:
        """Whether a constant is not what it was."""
        return not are_unchanged(self._readers, self._values)

    def fits(self, kernel: Kernel, hidden_types: tuple[Type, ...]) -> bool:
        """Whether a kernel was made for captured values of these types."""
        given = dict(zip((capture.key for capture in self.hidden), map(as_captured, hidden_types), strict=True))
        return all(given.get(capture.key) == capture.type for capture in kernel.hidden)


def passing(now: Generation, count: int) -> Callable[..., object]:
    """What calls the dispatcher of a generation with the captured values behind all of the arguments."""
    dispatcher, reads = now.dispatcher, tuple(capture.read for capture in now.hidden)

    def call(*args: object) -> object:
        if len(args) != count:
            raise Fewer
        return dispatcher(*args, *map(operator.call, reads))

    return call


class Fewer(Exception):
    """Defaults are to be filled in before captured values come behind them."""


class Outdated(Exception):
    """A captured value has changed its type since the call began."""
