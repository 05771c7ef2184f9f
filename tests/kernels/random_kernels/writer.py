"""Random text, and the state that a random kernel is written with.

with writer.indented("if i < n:"):
    writer.line(f"x[i] = {writer.pick('x[i]', '2.0')} * x[i]")
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeVar

from tests.kernels.random_kernels.case import CAPTURED, MODULE, Array, Case

T = TypeVar("T")


class Source(NamedTuple):
    """An array that any thread may read, or add to atomically: the lengths of its axes, as text."""

    name: str
    lengths: tuple[str, ...]
    prefix: str = ""  # the indices of the axes before, as text


@dataclass
class Scope:
    """The variables and arrays that statements may use at a place of the kernel."""

    values: list[str] = field(default_factory=list)  # variables of floats
    indices: list[str] = field(default_factory=list)  # variables of integers, none negative
    sources: list[Source] = field(default_factory=list)
    own: list[str] = field(default_factory=list)  # elements that no other thread reads or writes at present
    sums: list[Source] = field(default_factory=list)
    counters: list[Source] = field(default_factory=list)
    small: list[tuple[str, int]] = field(default_factory=list)  # arrays of the thread, and their lengths
    below_n: list[str] = field(default_factory=list)  # integers that are indices of arrays of n elements
    tables: list[str] = field(default_factory=list)  # arrays of n integers
    updaters: list[str] = field(default_factory=list)  # device functions that change an element
    functions: list[tuple[str, int]] = field(default_factory=list)  # device functions, and how many floats they take
    in_kernel: bool = True  # n, reps and s are known
    may_return: bool = False
    depth: int = 0  # of loops
    in_loop: bool = False

    def inner(self, **changes: Any) -> Scope:
        """Return a copy, for a body whose variables are not known after it."""
        kept = {f.name: list(v) for f in fields(self) if isinstance(v := getattr(self, f.name), list)}
        return replace(self, **{**kept, **changes})

    def of_inputs(self) -> Scope:
        """Return the scope of what the kernel does not change: numbers, and arrays whose name starts with x or y."""
        return self.inner(values=[], own=[], small=[], sources=[each for each in self.sources if each.name[0] in "xy"])


class Writer:
    """Writes the text of a kernel, and draws random choices."""

    family = ""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.device_functions: list[str] = []
        self.arrays: dict[str, Array] = {}
        self.grid: tuple[tuple[int, ...], tuple[int, ...]] = ((1,), (1,))
        self.single = self.chance(0.1)
        self.number = "float32" if self.single else "float64"
        self.size = rng.randrange(3, 9)
        self.ragged = False
        self.dynamic = 0
        self._depth = 1
        self._count = 0

    def write(self) -> None:
        """Write the body of the kernel."""
        raise NotImplementedError

    def case(self) -> Case:
        """Return the kernel that has been written."""
        names = list(self.arrays)
        self.rng.shuffle(names)
        parameters = (*names, "n", "reps", "s")
        parts = [*self.device_functions, f"@cuda.jit\ndef kernel({', '.join(parameters)}):\n" + "\n".join(self.lines)]
        text = MODULE + CAPTURED + "".join(f"\n\n{part}\n" for part in parts)
        return Case(
            text,
            self.grid,
            self.arrays,
            parameters,
            self.size,
            self.family,
            self.single,
            self.ragged,
            self.dynamic,
        )

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, *options: T) -> T:
        return self.rng.choice(options)

    def weighted(self, **options: float) -> str:
        """Return one of the names, with these weights."""
        return self.rng.choices(list(options), list(options.values()))[0]

    def new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def indented(self, head: str | None) -> Iterator[None]:
        """Indent what is written meanwhile under a line, or nothing if there is none."""
        if head is None:
            yield
            return
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def barrier(self) -> None:
        self.line("cuda.syncthreads()")

    def floats(self, name: str, *shape: int) -> str:
        """Let the kernel take an array of floats."""
        self.arrays[name] = Array("float", shape)
        return name

    @contextmanager
    def device_function(self, head: str) -> Iterator[None]:
        """Write what is written meanwhile into a device function."""
        kept, self.lines, depth, self._depth = self.lines, [], self._depth, 1
        yield
        self.device_functions.append(f"@cuda.jit(device=True)\ndef {head}:\n" + "\n".join(self.lines))
        self.lines, self._depth = kept, depth
