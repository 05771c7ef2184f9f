"""The compiled code of a derivative, with the captured variables that are passed to it or are constants in it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from zygote_py.base import Capture, are_unchanged, content_of
from zygote_py.cache import Kernel, as_captured
from zygote_py.ir import Type


class Generation:
    """The code that is valid while a function captures the same variables and constants keep their values.

    When it captures more, or a constant changes, a new one takes its place; calls in progress finish with the old one.
    It is changed only under the lock.
    """

    def __init__(
        self, hidden: tuple[Capture, ...], frozen: dict[Any, Capture], before: Generation | None = None
    ) -> None:
        """The entry is that of the generation before."""
        self.hidden = hidden  # captured variables whose values are passed at each call
        self.frozen: dict[Any, Capture] = {}  # those that are constants in the code; replaced, never changed
        self.compiled: dict[tuple[Type, ...], Kernel] = {}
        self._kernels: list[Kernel] = []  # all, including those that were replaced: their code may still be called
        self.dispatcher: Any = None  # takes the arguments, then the hidden values
        self.entry: Any = None if before is None else before.entry  # takes the arguments alone
        # Of the derivatives that it calls, if the function takes any number: whether there are other constants in them.
        self.entered: list[Callable[[], bool]] = [] if before is None else before.entered
        # What the hidden values were that are constants in the code of the entry.
        self._constants: list[object] = [] if before is None else list(before._constants)
        self.freeze(frozen.values())

    def freeze(self, captures: Iterable[Capture]) -> None:
        """Treat captured variables as constants."""
        self.frozen = self.frozen | {capture.key: capture for capture in captures}
        self._readers = tuple(capture.read for capture in self.frozen.values())
        self._values = tuple(capture.value for capture in self.frozen.values())

    def add(self, argument_types: tuple[Type, ...], kernel: Kernel) -> None:
        """Add the kernel for a signature."""
        self.freeze(kernel.frozen)
        self.compiled[argument_types] = kernel
        self._kernels.append(kernel)

    def numbered(self, number: int) -> Any:
        """Return the last kernel with this number, of those that have one."""
        return next(kernel for kernel in reversed(self._kernels) if getattr(kernel, "number", None) == number)

    def captured(self) -> tuple[object, ...]:
        """Return the current values of the captured variables that are passed."""
        return tuple(capture.read() for capture in self.hidden)

    def as_constants(self) -> tuple[object, ...]:
        """Return the current values of the captured variables, which become constants in code of the entry."""
        values = self.captured()
        if (content := content_of(values)) not in self._constants:
            self._constants.append(content)
        return values

    def has_other_constants(self) -> bool:
        """Return whether there are constants in code of the entry that are not the current values."""
        has_own = bool(self._constants) and self._constants != [content_of(self.captured())]
        return has_own or any(has_others() for has_others in self.entered)

    def renew_entry(self) -> None:
        """Let there be a new entry, for callers that are compiled from now on."""
        self.entry, self.entered, self._constants = None, [], []

    def is_outdated(self) -> bool:
        """Return whether a constant has changed."""
        return not are_unchanged(self._readers, self._values)

    def fits(self, kernel: Kernel, hidden_types: tuple[Type, ...]) -> bool:
        """Return whether a kernel was made for captured values of these types."""
        given = dict(zip((capture.key for capture in self.hidden), map(as_captured, hidden_types), strict=True))
        return all(given.get(capture.key) == capture.type for capture in kernel.hidden)


def passing(now: Generation, count: int) -> Callable[..., object]:
    """Return a function that calls the dispatcher with all of the arguments, followed by the captured values."""
    dispatcher, reads = now.dispatcher, tuple(capture.read for capture in now.hidden)

    def call(*args: object) -> object:
        if len(args) != count:
            raise Fewer
        return dispatcher(*args, *map(operator.call, reads))

    return call


class Fewer(Exception):
    """Defaults must be filled in before captured values can follow the arguments."""


class Outdated(Exception):
    """Raised if the type of a captured value has changed since the call began."""
