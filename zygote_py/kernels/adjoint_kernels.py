"""`AdjointKernel`: the adjoint of a kernel, launched like the kernel.

    adjoint = AdjointKernel(kernel, None)
    adjoint[blocks, threads](x, dx, out, dout)      # a shadow follows each active array

Everything that can be known before the launch is checked before it, so that a refused call changes nothing.
"""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.base import define
from zygote_py.compiler import KernelCode, compile_kernel
from zygote_py.ir import Type, parse_types
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.kernels.sums import add_parts
from zygote_py.kernels.thread_functions import register
from zygote_py.kernels.workspaces import Workspaces
from zygote_py.numba_adapter.cuda import launch

_MOST_SHARED = 49_152  # bytes of static shared memory that a block has on all devices


@dataclass(frozen=True, slots=True)
class _Grid:
    """How many blocks of how many threads, in which stream, with how many bytes of dynamic shared memory."""

    blocks: tuple[int, ...]
    threads: tuple[int, ...]
    stream: Any
    shared_bytes: int

    @classmethod
    def of(cls, name: str, configuration: Any) -> _Grid:
        given = configuration if isinstance(configuration, tuple) else (configuration,)
        if not 2 <= len(given) <= 4:
            raise ValueError(f"launch it as {name}[blocks, threads], and with a stream and bytes of shared memory")
        blocks, threads, stream, shared_bytes = [*given, 0, 0][:4]
        return cls(_axes(blocks, "blocks"), _axes(threads, "threads"), stream, int(shared_bytes))

    @property
    def axes(self) -> int:
        """The number of the last axis, from 1 on, along which there are several threads."""
        both = zip_longest(self.blocks, self.threads, fillvalue=1)
        return max((axis for axis, (blocks, threads) in enumerate(both, 1) if blocks * threads > 1), default=1)

    @property
    def kind(self) -> tuple[int, tuple[int, int, int]]:
        """The axes, and the threads of a block, that a kernel is compiled for."""
        x, y, z = (*self.threads, 1, 1)[:3]
        return self.axes, (x, y, z)

    @property
    def lanes(self) -> int:
        return math.prod(self.blocks) * math.prod(self.threads)

    def configuration(self, shared_bytes: int) -> tuple[Any, ...]:
        return self.blocks, self.threads, self.stream, shared_bytes


def _axes(given: Any, what: str) -> tuple[int, ...]:
    axes = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(axes) <= 3 or not all(isinstance(each, int | np.integer) and each > 0 for each in axes):
        raise ValueError(f"the number of {what} is a positive integer, or one for each of up to three axes: {given!r}")
    return tuple(map(int, axes))


class _Compiled:
    """The adjoint for some types of arguments."""

    def __init__(self, code: KernelCode, kinds: Sequence[Type]) -> None:
        self.code = code
        self.kinds = kinds
        self.kernel = numba_adapter.load(code.emitted)
        self.workspaces = Workspaces([record.dtype for record in code.records])
        self.captured = [capture.read() for capture in code.hidden]
        self._on_devices: dict[int, list[Any]] = {}
        self._known: dict[Any, list[int]] = {}
        self._lock = threading.Lock()
        self._lengths: Any = None
        if code.lengths is not None:
            count = len(kinds) + len(code.active) + len(self.captured) + len(code.finals)
            self._lengths = launch.compiled(_over_grid(code, count), {})

    def captured_on(self, stream: Any) -> list[Any]:
        """Return the captured values, arrays on the present device."""
        device, _ = launch.number_of(stream)
        if device not in self._on_devices:
            self._on_devices[device] = [
                launch.on_device(each, stream) if isinstance(each, np.ndarray) else each for each in self.captured
            ]
        return self._on_devices[device]

    def lengths(self, grid: _Grid, given: Sequence[Any]) -> list[int]:
        """Return the length of each record for a thread of a grid."""
        if self._lengths is None:
            return []
        shapes = [each.shape if launch.is_device_array(each) else each for each in given]
        key = (grid.blocks, grid.threads, *shapes)
        known = None if self.code.lengths_read_memory else self._known.get(key)
        if known is None:
            found = launch.on_device(np.zeros(len(self.code.records), np.int64), grid.stream)
            launch.start(self._lengths, grid.configuration(0), (*given, found))
            known = [int(each) for each in launch.on_host(found, grid.stream)]
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = known
        return known

    def run(self, grid: _Grid, shared_bytes: int, args: Sequence[Any], finals: Sequence[Any]) -> None:
        """Launch the kernel."""
        given = [*args, *self.captured_on(grid.stream), *finals]
        if self._lengths is None:
            launch.start(self.kernel, grid.configuration(shared_bytes), given)
            return
        lengths = self.lengths(grid, given)
        with self._lock:
            arrays = self.workspaces.arrays(grid.lanes, lengths, grid.stream)
            launch.start(self.kernel, grid.configuration(shared_bytes), (*given, *arrays))
            for record, number in self.code.sums:
                add_parts(arrays[record], grid.lanes, args[self.code.active[number] + number + 1], grid.stream)


_MOST_KNOWN = 64  # grids and shapes whose lengths are kept


def _over_grid(code: KernelCode, count: int) -> Any:
    """Return the kernel that finds the largest lengths over all threads."""
    taken = [f"a_{number}" for number in range(count)]
    lines = [f"def lengths({', '.join(taken)}, found):", f"    needed = of_thread({', '.join(taken)})"]
    lines += [f"    cuda.atomic.max(found, {number}, needed[{number}])" for number in range(len(code.records))]
    assert code.lengths is not None
    namespace = {"of_thread": numba_adapter.load(code.lengths), "cuda": launch.cuda_module()}
    return define("\n".join(lines) + "\n", "lengths", namespace, filename="<zygote_py lengths>")


class AdjointKernel:
    """The adjoint of a kernel; see `adjoint_kernel`."""

    def __init__(self, kernel: Any, active: Sequence[str] | None, deterministic: bool = False) -> None:
        self.kernel = kernel
        self.active = active
        self.deterministic = deterministic
        self._function = numba_adapter.py_func_of_kernel(kernel)
        self._parameters = list(inspect.signature(self._function).parameters)
        self._made: dict[tuple[tuple[Type, ...], int, tuple[int, int, int] | None], _Compiled] = {}
        if unknown := [name for name in active or () if name not in self._parameters]:
            known = ", ".join(self._parameters)
            raise ValueError(f"{self.__name__} has no parameter `{unknown[0]}`: it has {known}")
        register()

    def __repr__(self) -> str:
        return f"adjoint_kernel({self.__name__})"

    @property
    def __name__(self) -> str:
        return self._function.__name__

    def __getitem__(self, configuration: Any) -> Launcher:
        """Return the kernel for `blocks, threads`, and a stream and bytes of dynamic shared memory."""
        return Launcher(self, _Grid.of(self.__name__, configuration))

    def __call__(self, *args: Any) -> None:
        """Refuse a call without a grid."""
        raise TypeError(f"launch the adjoint of a kernel on a grid: {self.__name__}[blocks, threads](...)")

    def source(self, *args: Any, threads: int | tuple[int, ...] = 128) -> str:
        """Return the text of the kernel for arguments, or their Numba types, as at a launch, shadows among them.

        `threads` is how many a block has, along one to three axes, here and below.
        """
        made, _ = self._inspected(args, threads)
        lengths = made.code.lengths
        return "\n\n".join([made.code.emitted.source, *([] if lengths is None else [lengths.source])])

    def inspect_ptx(
        self, *args: Any, capability: tuple[int, int] = (9, 0), threads: int | tuple[int, ...] = 128
    ) -> str:
        """Return the PTX for arguments, or their types, and a compute capability. No device is needed."""
        made, kinds = self._inspected(args, threads)
        return launch.ptx(made.kernel, made_kinds(made, kinds), capability)

    def inspect_sass(
        self, *args: Any, capability: tuple[int, int] = (9, 0), threads: int | tuple[int, ...] = 128
    ) -> str:
        """Return the machine code, as text, for arguments, or their types. No device is needed.

        Raises ImportError if the assembler of CUDA is not installed (`nvidia-cuda-nvcc`).
        """
        made, kinds = self._inspected(args, threads)
        return launch.sass(made.kernel, made_kinds(made, kinds), capability)

    def _inspected(self, args: tuple[Any, ...], threads: int | tuple[int, ...]) -> tuple[_Compiled, list[Type]]:
        grid = _Grid((2,) * len(_axes(threads, "threads")), _axes(threads, "threads"), 0, 0)
        given = parse_types(args[0]) if len(args) == 1 and isinstance(args[0], str) else args
        kinds = [each if isinstance(each, types.Type) else launch.type_of(_as_numba_has_it(each)) for each in given]
        own = self._own(kinds, kinds)
        return self._for(tuple(kinds[place] for place, _ in own), grid.kind), list(kinds)

    def with_shadows(self, kinds: Sequence[Type]) -> list[Type]:
        """Return the types of the arguments of a launch, from those of the kernel."""
        found: list[Type] = []
        for name, kind in zip_longest(self._parameters, kinds):
            found += [kind] * (2 if self._has_shadow(name, kind) else 1)
        return found

    def _has_shadow(self, name: str, kind: Type | None) -> bool:
        is_float = isinstance(kind, types.Array) and isinstance(kind.dtype, types.Float)
        if self.active is not None and name in self.active and not is_float and kind is not None:
            raise TypeError(f"`{name}` is active and of type {kind}: only arrays of floats have a shadow")
        return is_float and (self.active is None or name in self.active)

    def _own(self, args: Sequence[Any], kinds: Sequence[Type]) -> list[tuple[int, int | None]]:
        """Return the places of the arguments and of their shadows, None for those without."""
        found: list[tuple[int, int | None]] = []
        place = 0
        for name in self._parameters:
            kind = kinds[place] if place < len(kinds) else None
            has_shadow = self._has_shadow(name, kind)
            found.append((place, place + 1 if has_shadow else None))
            place += 2 if has_shadow else 1
        if place != len(args):
            names = [
                name
                for name, (_, shadow) in zip(self._parameters, found, strict=True)
                for name in ([name] if shadow is None else [name, f"d{name}"])
            ]
            raise TypeError(
                f"the adjoint of {self.__name__} takes ({', '.join(names)}): a shadow follows each active array of "
                f"floats; {len(args)} arguments were given"
            )
        return found

    def _for(self, kinds: tuple[Type, ...], of: tuple[int, tuple[int, int, int]]) -> _Compiled:
        axes, threads = of
        if (known := self._made.get((kinds, axes, None)) or self._made.get((kinds, axes, threads))) is None:
            with numba_adapter.COMPILER_LOCK:
                function, options = numba_adapter.read_kernel(self.kernel)
                code = compile_kernel(function, options, kinds, self.active, axes, threads, self.deterministic)
                static = sum(each.bytes for each in code.shared) + sum(each.bytes for each in code.shadows_of_shared)
                if static > _MOST_SHARED:
                    raise MemoryError(
                        f"the arrays of {self.__name__} in shared memory, and their shadows, take {static:,} bytes; a "
                        f"block has {_MOST_SHARED:,}: make them smaller"
                    )
                known = _Compiled(code, kinds)
                self._made[kinds, axes, threads if code.shared else None] = known
        return known

    def _prepared(self, args: Sequence[Any], grid: _Grid) -> _Compiled:
        """Return what is compiled for arguments. Raises TypeError or ValueError for those that do not fit."""
        for number, each in enumerate(args):
            if isinstance(each, np.ndarray) and each.ndim and not launch.is_device_array(each):
                raise TypeError(
                    f"argument {number} of the adjoint of {self.__name__} is an array of the host: copy it with "
                    "cuda.to_device, since the kernel adds to what it is given"
                )
        kinds = [launch.type_of(each) for each in args]
        own = self._own(args, kinds)
        for name, (place, shadow) in zip(self._parameters, own, strict=True):
            if shadow is not None:
                self._check_shadow(name, args[place], args[shadow])
        made = self._for(tuple(kinds[place] for place, _ in own), grid.kind)
        self._check_apart(args, own, made.code.written)
        return made

    def _places(self, args: Sequence[Any]) -> list[int]:
        """Return the places of the arguments of the kernel among those of its adjoint."""
        return [place for place, _ in self._own(args, [launch.type_of(each) for each in args])]

    def _finals(self, made: _Compiled, args: Sequence[Any], grid: _Grid, shared_bytes: int) -> list[Any]:
        """Return what arrays are after the kernel, which threads have to know: it is run on copies before.

        The same code runs both times, so that values agree to the last bit.
        """
        code = made.code
        if not code.finals:
            return []
        own = self._own(args, [launch.type_of(each) for each in args])
        scratch = list(args)
        for number, (place, shadow) in enumerate(own):
            if launch.is_device_array(args[place]):
                launch.check_contiguous(args[place], self._parameters[number])
            if number in code.written:
                scratch[place] = launch.copied(args[place], grid.stream)
            if shadow is not None:
                launch.check_contiguous(args[shadow], f"d{self._parameters[number]}")
                scratch[shadow] = launch.new(tuple(args[shadow].shape), args[shadow].dtype, grid.stream)
        finals = [scratch[own[number][0]] for number in code.finals]
        others = [launch.copied(each, grid.stream) for each in finals]
        made.run(grid, shared_bytes, scratch, others)
        return finals

    def _check_shadow(self, name: str, array: Any, shadow: Any) -> None:
        if not launch.is_device_array(shadow):
            raise TypeError(f"the shadow of `{name}` is not an array on the device, but a {type(shadow).__name__}")
        if tuple(shadow.shape) != tuple(array.shape):
            raise ValueError(f"the shadow of `{name}` has the shape {tuple(shadow.shape)}, not {tuple(array.shape)}")
        if shadow.dtype != array.dtype:
            raise TypeError(f"the shadow of `{name}` is of dtype {shadow.dtype}, not {array.dtype}")

    def _check_apart(self, args: Sequence[Any], own: Sequence[tuple[int, int | None]], written: Sequence[int]) -> None:
        """Refuse arrays that share memory, if one of them is written to: each has a shadow of its own."""
        spans: list[tuple[tuple[int, int], str, bool]] = []
        for number, (name, (place, shadow)) in enumerate(zip(self._parameters, own, strict=True)):
            for at, text, is_written in ((place, name, number in written), (shadow, f"d{name}", True)):
                if at is not None and launch.is_device_array(args[at]):
                    span = launch.extent(args[at])
                    if span is not None:
                        spans.append((span, text, is_written))
        spans.sort(key=lambda each: each[0])
        for number, ((_, end), name, is_written) in enumerate(spans):
            for (start, _), other, also in spans[number + 1 :]:
                if start >= end:
                    break
                if is_written or also:
                    raise ValueError(
                        f"`{name}` and `{other}` share memory, and one of them is written to: give each its own"
                    )


class Launcher:
    """The adjoint of a kernel on a grid."""

    def __init__(self, adjoint: AdjointKernel, grid: _Grid) -> None:
        self._adjoint = adjoint
        self._grid = grid

    def __call__(self, *args: Any) -> None:
        """Run the kernel and its adjoint: add to the shadows of what it reads, consume those of what it overwrites."""
        args = tuple(_as_numba_has_it(each, self._grid.stream) for each in args)
        made = self._adjoint._prepared(args, self._grid)
        shared_bytes = self._shared_bytes(made)
        finals = self._adjoint._finals(made, args, self._grid, shared_bytes)
        made.run(self._grid, shared_bytes, args, finals)

    def record_bytes(self, *args: Any) -> int:
        """Return how many bytes the records of a launch with these arguments take in global memory."""
        args = tuple(_as_numba_has_it(each, self._grid.stream) for each in args)
        made = self._adjoint._prepared(args, self._grid)
        finals = [args[self._adjoint._places(args)[number]] for number in made.code.finals]
        lengths = made.lengths(self._grid, [*args, *made.captured_on(self._grid.stream), *finals])
        return self._grid.lanes * made.workspaces.bytes_of_lane(lengths)

    def _shared_bytes(self, made: _Compiled) -> int:
        """Return the bytes of dynamic shared memory, with those of the shadow."""
        return self._grid.shared_bytes * (2 if any(each.is_dynamic for each in made.code.shadows_of_shared) else 1)


def shown(
    kernel: Any,
    active: Sequence[str] | None,
    kinds: Sequence[Type],
    stage: str,
    capability: tuple[int, int],
    threads: tuple[int, ...],
) -> str:
    """Return a stage of the adjoint of a kernel, for the types of the arguments of the kernel."""
    adjoint = AdjointKernel(kernel, active)
    given = adjoint.with_shadows(kinds)
    match stage:
        case "python":
            return adjoint.source(*given, threads=threads)
        case "ptx":
            return adjoint.inspect_ptx(*given, capability=capability, threads=threads)
        case _:
            return adjoint.inspect_sass(*given, capability=capability, threads=threads)


def made_kinds(made: _Compiled, kinds: Sequence[Type]) -> tuple[Type, ...]:
    """Return the types of all that the kernel takes, from those of the arguments of a launch."""
    captured = [launch.type_of(each) for each in made.captured]
    finals = [made.kinds[number] for number in made.code.finals]
    return (*kinds, *captured, *finals, *(types.Array(record.dtype, 1, "C") for record in made.code.records))


def _as_numba_has_it(value: Any, stream: Any = 0) -> Any:
    """Return an array of another library on the device as one of Numba, without a copy; other values as they are."""
    return launch.on_device(value, stream) if launch.is_device_array(value) else value
