"""The compiled loops of a `Vectorized`, on the processor or on a device.

    loops = HostLoops(df, kinds, calls, parallel=False)
    loops.run((1000,), values, results)

They are compiled for some types of arguments, and valid as long as the function is what it was then.
"""

from __future__ import annotations

import itertools
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.compiler import ItemLoops, defined, outputs
from zygote_py.ir import Type
from zygote_py.kernels.workspaces import Workspaces
from zygote_py.numba_adapter.cuda import launch
from zygote_py.runtime.compiled_function import DerivativeFunction
from zygote_py.runtime.entered import DeviceEntered, Entered, device_entered, entered

_MOST_LANES = 1 << 17  # threads with records: about as many as run at once on a large device


class Loops(ABC):
    """Compiled loops for some types of arguments."""

    def __init__(self, code: Entered | DeviceEntered) -> None:
        self._entered = code

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

    @abstractmethod
    def run(self, shape: tuple[int, ...], values: Sequence[Any], results: Sequence[Any], stream: Any) -> None:
        """Store the results for all items."""

    @abstractmethod
    def record_bytes(self, shape: tuple[int, ...], values: Sequence[Any]) -> int:
        """Return how many bytes the records of these items take on a device."""

    @abstractmethod
    def shapes_of_results(self, values: Sequence[Any]) -> list[tuple[int, ...] | None]:
        """Return the shape of each result of an item: (), that of an array, or None if it is not known before."""


class HostLoops(Loops):
    """Loops on one thread of the processor, or on all of Numba's."""

    def __init__(
        self, df: DerivativeFunction[..., Any], kinds: tuple[Type, ...], calls: ItemLoops, *, parallel: bool
    ) -> None:
        code = entered(df, kinds)
        super().__init__(code)
        calls = calls.with_captured(len(self.captured))
        name = f"{df.form}_over_items"
        text, classes = calls.text(name, [*outputs(self.result)])
        function = defined(name, text, {"item": code.dispatcher, **classes})
        self._run = numba_adapter.decorated(function, {"nogil": True})
        self._parallel = parallel

    def run(self, shape: tuple[int, ...], values: Sequence[Any], results: Sequence[Any], stream: Any) -> None:
        """Store the results for all items."""
        given = (shape, *values, *self.captured, *results)
        count = shape[0] if shape else 0
        threads = min(numba.get_num_threads(), count) if self._parallel else 1
        if threads < 2:
            self._run(0, count, *given)
            return
        bounds = [count * number // threads for number in range(threads + 1)]
        self._run.compile(tuple(map(numba_adapter.typeof, (0, count, *given))))  # once
        with ThreadPoolExecutor(threads) as pool:
            parts = [pool.submit(self._run, start, stop, *given) for start, stop in itertools.pairwise(bounds)]
        for each in parts:  # what the first of the items that failed has raised
            each.result()

    def shapes_of_results(self, values: Sequence[Any]) -> list[tuple[int, ...] | None]:
        """Return nothing: the loops compare the shapes."""
        return [None for _ in outputs(self.result)]

    def record_bytes(self, shape: tuple[int, ...], values: Sequence[Any]) -> int:
        """Return 0: records are on no device."""
        return 0


class DeviceLoops(Loops):
    """A kernel in which each thread of a device takes every so many items, with a workspace for records."""

    def __init__(self, df: DerivativeFunction[..., Any], kinds: tuple[Type, ...], calls: ItemLoops) -> None:
        cuda = launch.cuda_module()
        known = device_entered(df, kinds)
        super().__init__(known)
        self._code = code = known.code
        found = [*outputs(code.result)]
        self._found = found
        self._calls = calls = calls.with_captured(len(code.hidden))
        name = f"{df.form}_over_items"
        text, classes = calls.device_text(name, found, len(code.records))
        self._texts = [text]
        item = numba_adapter.load(code.emitted)
        self._kernel = launch.compiled(defined(name, text, {"item": item, "cuda": cuda, **classes}), {})
        self._lengths: Any = None
        if code.lengths is not None:
            kind = types.UniTuple(types.int64, len(code.records))
            text, classes = calls.device_text(f"{name}_lengths", [*outputs(kind)], 0, lengths=True)
            self._texts.append(text)
            item = numba_adapter.load(code.lengths)
            function = defined(f"{name}_lengths", text, {"item": item, "cuda": cuda, **classes})
            self._lengths = launch.compiled(function, {})
        self._read = [number for place in code.lengths_of for number in calls.inputs_of(place)]
        self._known: tuple[list[Any], list[int]] | None = None
        self._spaces = Workspaces([record.dtype for record in code.records])
        self._lock = threading.Lock()

    def run(self, shape: tuple[int, ...], values: Sequence[Any], results: Sequence[Any], stream: Any) -> None:
        """Store the results for all items, on the device."""
        count = math.prod(shape)
        if not count:
            return
        given = [self._given(each, stream) for each in (*values, *self.captured)]
        if self._lengths is None:
            launch.run(self._kernel, launch.lanes_for(count), (count, shape, *given, *results), stream)
            return
        lengths = self._needed(count, shape, given, stream)
        with self._lock:
            lanes, workspace = self._prepared(count, lengths, stream)
            launch.run(self._kernel, lanes, (count, shape, *given, *workspace, *results), stream)

    def record_bytes(self, shape: tuple[int, ...], values: Sequence[Any]) -> int:
        """Return how many bytes the records of these items take."""
        count = math.prod(shape)
        if self._lengths is None or not count:
            return 0
        given = [self._given(each, 0) for each in (*values, *self.captured)]
        return self._spaces.bytes_of_lane(self._needed(count, shape, given, 0)) * launch.lanes_for(count, _MOST_LANES)

    def shapes_of_results(self, values: Sequence[Any]) -> list[tuple[int, ...] | None]:
        """Return the shape of each result of an item."""
        given = iter(self._code.given)
        return [self._shape_of(next(given), values) if getattr(kind, "ndim", 0) else () for _, kind in self._found]

    def _shape_of(self, place: Sequence[int], values: Sequence[Any]) -> tuple[int, ...]:
        number = self._calls.input_at(place)
        axes = self._calls.inputs[number].axes if number < len(self._calls.inputs) else None
        shape: tuple[int, ...] = (*values, *self.captured)[number].shape
        return shape[len(axes or ()) :]

    @property
    def source(self) -> str:
        """The text of the device functions, and of the loops."""
        lengths = self._code.lengths
        texts = [self._code.emitted.source, *([] if lengths is None else [lengths.source]), *self._texts]
        return "\n\n".join(texts)

    def ptx(self, shape: tuple[int, ...], values: Sequence[Any], capability: tuple[int, int]) -> str:
        """Return the PTX of the kernel for a compute capability."""
        return launch.ptx(self._kernel, self._kinds(shape, values), capability)

    def sass(self, shape: tuple[int, ...], values: Sequence[Any], capability: tuple[int, int]) -> str:
        """Return the machine code of the kernel for a compute capability, as text."""
        return launch.sass(self._kernel, self._kinds(shape, values), capability)

    def _kinds(self, shape: tuple[int, ...], values: Sequence[Any]) -> tuple[Type, ...]:
        kinds = [launch.type_of(each) for each in (*values, *self.captured)]
        spaces = [types.Array(record.dtype, 1, "C") for record in self._code.records]
        results = [
            types.Array(getattr(kind, "dtype", kind), len(shape) + getattr(kind, "ndim", 0), "C")
            for _, kind in outputs(self.result)
        ]
        count = types.UniTuple(types.int64, len(shape)) if shape else types.Tuple(())
        return types.int64, count, *kinds, *spaces, *results

    def _given(self, value: Any, stream: Any) -> Any:
        is_array = isinstance(value, np.ndarray) and value.ndim
        return launch.on_device(value, stream) if is_array or launch.is_device_array(value) else value

    def _needed(self, count: int, shape: tuple[int, ...], given: Sequence[Any], stream: Any) -> list[int]:
        """Return the length of each record that suffices for all items."""
        read = [given[number] for number in self._read]
        if all(isinstance(each, bool | int | float | np.generic) for each in read):  # the same for all items
            count, shape = 1, (1,) * len(shape)
            known = self._known
            if known is None or known[0] != read:
                self._known = known = read, self._lengths_of(count, shape, given, stream)
            return known[1]
        return self._lengths_of(count, shape, given, stream)

    def _lengths_of(self, count: int, shape: tuple[int, ...], given: Sequence[Any], stream: Any) -> list[int]:
        found = launch.on_device(np.zeros(len(self._code.records), np.int64), stream)
        launch.run(self._lengths, launch.lanes_for(count), (count, shape, *given, found), stream)
        return [int(each) for each in launch.on_host(found, stream)]

    def _prepared(self, count: int, lengths: Sequence[int], stream: Any) -> tuple[int, list[Any]]:
        """Return the number of threads, and the workspace: as many as fit on the device."""
        lanes = launch.lanes_for(count, _MOST_LANES)
        if (held := self._spaces.known(lanes, lengths, stream)) is not None:
            return lanes, held
        self._spaces.forget(stream)
        each = max(self._spaces.bytes_of_lane(lengths), 1)
        lanes = min(lanes, launch.lanes_for(count, max(launch.THREADS, int(0.8 * launch.free_bytes()) // each)))
        return lanes, self._spaces.arrays(lanes, lengths, stream)
