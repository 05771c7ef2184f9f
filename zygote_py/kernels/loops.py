"""The compiled loops of a `Vectorized`, on the processor or on a device.

loops = host_loops(df, kinds, calls, parallel=False)
loops.run((1000,), values, results)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.compiler import ItemLoops, defined, outputs
from zygote_py.ir import Type
from zygote_py.numba_adapter.cuda import launch
from zygote_py.runtime.compiled_function import DerivativeFunction
from zygote_py.runtime.entered import DeviceEntered, Entered, device_entered, entered

_MOST_LANES = 1 << 17  # threads with records: about as many as run at once on a large device


class Loops(Protocol):
    """Compiled loops for some types of arguments."""

    @property
    def result(self) -> Type:
        """The type of what the derivative returns for an item."""

    @property
    def is_current(self) -> bool:
        """Whether they compute what the function does now."""

    @property
    def captured(self) -> tuple[object, ...]:
        """The present values of captured variables."""

    def run(self, shape: tuple[int, ...], values: Sequence[Any], results: Sequence[Any], stream: Any) -> None:
        """Store the results for all items."""

    def record_bytes(self, shape: tuple[int, ...], values: Sequence[Any]) -> int:
        """Return how many bytes the records of these items take on a device."""


class HostLoops:
    """Loops on one thread of the processor, or on all of Numba's."""

    def __init__(
        self, df: DerivativeFunction[..., Any], kinds: tuple[Type, ...], calls: ItemLoops, *, parallel: bool
    ) -> None:
        self._entered: Entered = entered(df, kinds)
        calls = calls.with_captured(len(self._entered.captured))
        name = f"{df.form}_over_items"
        text, classes = calls.text(name, [*outputs(self.result)], parallel=parallel)
        function = defined(name, text, {"item": self._entered.dispatcher, **classes})
        self._run = numba_adapter.decorated(function, {"parallel": parallel, "nogil": True})

    @property
    def result(self) -> Type:
        """The type of what the derivative returns for an item."""
        return self._entered.result

    @property
    def is_current(self) -> bool:
        """Whether they compute what the function does now."""
        return self._entered.is_current

    @property
    def captured(self) -> tuple[object, ...]:
        """The present values of captured variables."""
        return self._entered.captured

    def run(self, shape: tuple[int, ...], values: Sequence[Any], results: Sequence[Any], stream: Any) -> None:
        """Store the results for all items."""
        self._run(shape, *values, *self.captured, *results)

    def record_bytes(self, shape: tuple[int, ...], values: Sequence[Any]) -> int:
        """Return 0: records are on no device."""
        return 0


class DeviceLoops:
    """A kernel in which each thread of a device takes every so many items, with a workspace for records."""

    def __init__(self, df: DerivativeFunction[..., Any], kinds: tuple[Type, ...], calls: ItemLoops) -> None:
        cuda = launch.cuda_module()
        self._entered: DeviceEntered = device_entered(df, kinds)
        code = self._entered.code
        found = [*outputs(code.result)]
        calls = calls.with_captured(len(code.hidden))
        name = f"{df.form}_over_items"
        text, classes = calls.device_text(name, found, len(code.records))
        item = numba_adapter.load(code.emitted)
        self._kernel = launch.compiled(defined(name, text, {"item": item, "cuda": cuda, **classes}), {})
        self._lengths: Any = None
        if code.lengths is not None:
            kind = types.UniTuple(types.int64, len(code.records))
            text, classes = calls.device_text(f"{name}_lengths", [*outputs(kind)], 0, lengths=True)
            item = numba_adapter.load(code.lengths)
            function = defined(f"{name}_lengths", text, {"item": item, "cuda": cuda, **classes})
            self._lengths = launch.compiled(function, {})
        self._read = [number for place in code.lengths_of for number in calls.inputs_of(place)]
        self._known: tuple[list[Any], list[int]] | None = None
        self._workspace: list[Any] = []

    @property
    def result(self) -> Type:
        """The type of what the derivative returns for an item."""
        return self._entered.code.result

    @property
    def is_current(self) -> bool:
        """Whether they compute what the function does now."""
        return self._entered.is_current

    @property
    def captured(self) -> tuple[object, ...]:
        """The present values of captured variables."""
        return self._entered.captured

    def run(self, shape: tuple[int, ...], values: Sequence[Any], results: Sequence[Any], stream: Any) -> None:
        """Store the results for all items, on the device."""
        count = math.prod(shape)
        if not count:
            return
        given = [self._given(each, stream) for each in (*values, *self.captured)]
        lanes = launch.lanes_for(count)
        if self._lengths is not None:
            lanes = self._prepared(count, self._needed(count, shape, given, stream), stream)
        launch.run(self._kernel, lanes, (count, shape, *given, *self._workspace, *results), stream)

    def record_bytes(self, shape: tuple[int, ...], values: Sequence[Any]) -> int:
        """Return how many bytes the records of these items take."""
        count = math.prod(shape)
        if self._lengths is None or not count:
            return 0
        given = [self._given(each, 0) for each in (*values, *self.captured)]
        return self._bytes_of_lane(self._needed(count, shape, given, 0)) * launch.lanes_for(count, _MOST_LANES)

    def _given(self, value: Any, stream: Any) -> Any:
        is_array = isinstance(value, np.ndarray) and value.ndim
        return launch.on_device(value, stream) if is_array or launch.is_device_array(value) else value

    def _needed(self, count: int, shape: tuple[int, ...], given: Sequence[Any], stream: Any) -> list[int]:
        """Return the length of each record that suffices for all items."""
        read = [given[number] for number in self._read]
        if all(isinstance(each, bool | int | float | np.generic) for each in read):  # the same for all items
            count, shape = 1, (1,) * len(shape)
            if self._known is None or self._known[0] != read:
                self._known = read, self._lengths_of(count, shape, given, stream)
            return self._known[1]
        return self._lengths_of(count, shape, given, stream)

    def _lengths_of(self, count: int, shape: tuple[int, ...], given: Sequence[Any], stream: Any) -> list[int]:
        found = launch.on_device(np.zeros(len(self._entered.code.records), np.int64), stream)
        launch.run(self._lengths, launch.lanes_for(count), (count, shape, *given, found), stream)
        return [int(each) for each in launch.on_host(found, stream)]

    def _bytes_of_lane(self, lengths: Sequence[int]) -> int:
        return sum(
            length * dtype_of(record.dtype).itemsize
            for length, record in zip(lengths, self._entered.code.records, strict=True)
        )

    def _prepared(self, count: int, lengths: Sequence[int], stream: Any) -> int:
        """Allocate the workspace, unless the last one is large enough. Return the number of threads."""
        lanes = launch.lanes_for(count, _MOST_LANES)
        each = self._bytes_of_lane(lengths)
        held = sum(array.size * array.dtype.itemsize for array in self._workspace)
        free = launch.free_bytes() + held
        lanes = min(lanes, launch.lanes_for(count, max(launch.THREADS, int(0.8 * free) // max(each, 1))))
        if each * lanes > free:
            raise refuse(
                f"the records of {launch.THREADS} items take {each * launch.THREADS:,} bytes, where {free:,} are free "
                "on the device",
                None,
                "let a loop of the function have fewer rounds, or checkpoint it",
            )
        sizes = [length * lanes for length in lengths]
        if len(self._workspace) != len(sizes) or any(
            array.size < size for array, size in zip(self._workspace, sizes, strict=True)
        ):
            self._workspace = []  # freed before more is asked for
            kinds = [dtype_of(record.dtype) for record in self._entered.code.records]
            self._workspace = [
                launch.new((max(size, 1),), kind, stream) for size, kind in zip(sizes, kinds, strict=True)
            ]
        return lanes


def dtype_of(kind: Any) -> np.dtype[Any]:
    """Return the dtype of a number, or of the elements of an array."""
    element = kind.dtype if isinstance(kind, types.Array) else kind
    return np.dtype("bool" if isinstance(element, types.Boolean) else str(element))
