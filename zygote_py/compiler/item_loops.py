"""Functions over arrays of inputs: loops that call a function for each item and store what it returns.

    def gradient_over_items(start, stop, shape, a_0, a_1, r_0, r_1):
        for i_0 in range(start, stop):
            y = item(a_0[i_0], a_1)
            r_0[i_0] = y[0]
            r_1[i_0] = y[1]

On a device each thread has one of the items:

    def gradient_over_items(count, shape, a_0, a_1, r_0, r_1):
        i = cuda.grid(1)
        if i < count:
            i_0 = i
            y = item(a_0[i_0], a_1)
            ...

or, where there is a workspace for some threads only, every so many:

    def gradient_over_items(count, shape, a_0, a_1, w_0, r_0, r_1):
        lane = cuda.grid(1)
        lanes = cuda.gridsize(1)
        for i in range(lane, count, lanes):
            i_0 = i
            y = item(a_0[i_0], a_1, w_0, lane, lanes)
            ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from numba import types

from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import is_array
from zygote_py.base import define, free
from zygote_py.compiler.script import parts
from zygote_py.ir import Type
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Input:
    """An argument of a loop: what selects an item of it.

    These are axes of the loops, or None for an axis of length 1. `axes` is None for what is passed whole. An array
    that `is_copied` is passed as a copy, so that nothing that is done to it is seen by other items.
    """

    axes: tuple[int | None, ...] | None = None
    is_copied: bool = False


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure of arguments: its class, and its components, which are numbers of arguments of the loop."""

    cls: type
    parts: tuple[Any, ...]


def outputs(kind: Type, text: str = "y") -> Iterator[tuple[str, Type]]:
    """Yield how the numbers and arrays of a result are written, and their types."""
    if isinstance(kind, types.BaseTuple):
        for part, inner in parts(text, kind):
            yield from outputs(inner, part)
    elif isinstance(kind := types.unliteral(kind), types.Number | types.Boolean) or is_array(kind):
        yield text, kind
    elif not isinstance(kind, types.NoneType):
        raise refuse(
            f"a function over arrays of inputs cannot return values of type {kind}", None, "return numbers and arrays"
        )


@dataclass(frozen=True, slots=True)
class ItemLoops:
    """The function that is called for each item, and how its arguments are selected.

    `arguments` are those of the function: numbers of inputs, or structures of them. They are followed by `captured`
    values, which are passed whole.
    """

    arguments: Sequence[Any]
    inputs: Sequence[Input]
    captured: int
    ndim: int

    def with_captured(self, count: int) -> ItemLoops:
        """Return the loops for this number of captured values."""
        return replace(self, captured=count)

    def inputs_of(self, place: int) -> list[int]:
        """Return the numbers of the inputs that an argument consists of; captured values follow the inputs."""
        if place >= len(self.arguments):
            return [len(self.inputs) + place - len(self.arguments)]
        return _numbers(self.arguments[place])

    def input_at(self, place: Sequence[int]) -> int:
        """Return the number of the input that an argument is, or that the parts of a structure lead to."""
        first, *rest = place
        if first >= len(self.arguments):
            (number,) = self.inputs_of(first)
            return number
        found: Any = self.arguments[first]
        for number in rest:
            found = found.parts[number]
        return int(found)

    def text(self, name: str, found: Sequence[tuple[str, Type]]) -> tuple[str, dict[str, Any]]:
        """Return the text of the loops for a processor, from one index of the first axis to another.

        Also returns the classes that it names.
        """
        indices = self._indices
        lines = [f"def {name}({', '.join(['start', 'stop', 'shape', *self._parameters, *_results(found)])}):"]
        for axis, index in enumerate(indices):
            bounds = f"shape[{axis}]" if axis else "start, stop"
            lines.append(f"{'    ' * (axis + 1)}for {index} in range({bounds}):")
        classes: dict[str, Any] = {}
        body = [f"y = item({', '.join(self._passed(classes))})", *_checks(found, indices), *_stores(found, indices)]
        return _joined(lines, body, self.ndim + 1), classes

    def device_text(
        self, name: str, found: Sequence[tuple[str, Type]], workspace: int, *, lengths: bool = False
    ) -> tuple[str, dict[str, Any]]:
        """Return the text of the loops for the threads of a device, with arrays of a workspace.

        If it is about the `lengths` of these, the largest are stored. Without a workspace each thread has one item, and
        no loop: as fast as a kernel that is written for it, where a loop costs half as much again in memory-bound ones.
        """
        loops = workspace > 0 or lengths
        spaces = [f"w_{number}" for number in range(workspace)]
        taken = [*self._parameters, *spaces, *(["r_0"] if lengths else _results(found))]
        lines = [
            f"def {name}({', '.join(['count', 'shape', *taken])}):",
            *(_LANES if loops else _THREAD),
        ]
        classes: dict[str, Any] = {}
        body = []
        rest = "i"
        for axis in range(self.ndim - 1, 0, -1):
            body.append(f"i_{axis} = {rest} % shape[{axis}]")
            body.append(f"n_{axis} = {rest} // shape[{axis}]")
            rest = f"n_{axis}"
        if self.ndim:
            body.append(f"i_0 = {rest}")
        arrays = [] if lengths else [number for number, (_, kind) in enumerate(found) if isinstance(kind, types.Array)]
        where = ", ".join(self._indices)
        given = [f"r_{number}[{where}]" if where else f"r_{number}" for number in arrays]
        more = [*given, *spaces, *(["lane", "lanes"] if spaces else [])]
        body.append(f"y = item({', '.join([*self._passed(classes), *more])})")
        if lengths:
            body += [f"cuda.atomic.max(r_0, {number}, {text})" for number, (text, _) in enumerate(found)]
        else:
            body += _stores(found, self._indices, arrays)  # the function has stored what it was given
        return _joined(lines, body, 2), classes

    @property
    def _indices(self) -> list[str]:
        return [f"i_{axis}" for axis in range(self.ndim)]

    @property
    def _parameters(self) -> list[str]:
        return [*(f"a_{number}" for number in range(len(self.inputs))), *self._captured]

    @property
    def _captured(self) -> list[str]:
        return [f"c_{number}" for number in range(self.captured)]

    def _passed(self, classes: dict[str, Any]) -> list[str]:
        return [*(self._written(argument, classes) for argument in self.arguments), *self._captured]

    def _written(self, argument: Any, classes: dict[str, Any]) -> str:
        if isinstance(argument, Structure):
            inside = ", ".join(self._written(each, classes) for each in argument.parts)
            if argument.cls is tuple:
                return f"({inside},)" if inside else "()"
            taken = ["item", "cuda", *(known for known, cls in classes.items() if cls is not argument.cls)]
            own = free(argument.cls.__name__, taken)
            classes[own] = argument.cls
            return f"{own}({inside})"
        axes, copy = self.inputs[argument].axes, ".copy()" if self.inputs[argument].is_copied else ""
        if not axes:
            return f"a_{argument}{copy}"
        return f"a_{argument}[{', '.join('0' if axis is None else f'i_{axis}' for axis in axes)}]{copy}"


_LANES = ["    lane = cuda.grid(1)", "    lanes = cuda.gridsize(1)", "    for i in range(lane, count, lanes):"]
_THREAD = ["    i = cuda.grid(1)", "    if i < count:"]


def _numbers(argument: Any) -> list[int]:
    return (
        [number for part in argument.parts for number in _numbers(part)]
        if isinstance(argument, Structure)
        else [argument]
    )


def defined(name: str, text: str, namespace: dict[str, Any]) -> Callable[..., None]:
    """Return the function of a text."""
    return define(text, name, namespace, filename=f"<zygote_py {name}>")


def _results(found: Sequence[object]) -> list[str]:
    return [f"r_{number}" for number in range(len(found))]


def _checks(found: Sequence[tuple[str, Any]], indices: Sequence[str]) -> Iterator[str]:
    """Yield checks of the shapes of arrays: an assignment would broadcast an array of length 1."""
    for number, (text, kind) in enumerate(found):
        if getattr(kind, "ndim", 0):
            place = f"r_{number}[{', '.join(indices)}]" if indices else f"r_{number}"
            message = f"result {number} of an item has other dimensions than the signature says"
            yield f"if {text}.shape != {place}.shape:"
            yield f'    raise ValueError("{message}")'


def _stores(found: Sequence[tuple[str, Any]], indices: Sequence[str], stored: Sequence[int] = ()) -> Iterator[str]:
    for number, (text, kind) in enumerate(found):
        if number in stored:
            continue
        place = ", ".join([*indices, *[":"] * getattr(kind, "ndim", 0)]) or "()"
        yield f"r_{number}[{place}] = {text}"


def _joined(lines: Sequence[str], body: Sequence[str], depth: int) -> str:
    return "\n".join([*lines, *(f"{'    ' * depth}{line}" for line in body), ""])
