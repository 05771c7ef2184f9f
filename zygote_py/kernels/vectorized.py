"""`Vectorized`: a derivative over arrays of inputs, which broadcasts like a ufunc.

    over = Vectorized(gradient(f), "cpu", None)     # f of two numbers
    over(x, 2.0)                                    # x: shape (n,); two arrays of shape (n,)

Arguments are arrays of items, or structures whose leaves are. The trailing dimensions that the signature names are
those of an item. All others broadcast, and each combination of their indices is one call of the derivative.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import DifferentiationError
from zygote_py.base import leaves, made, map_leaves, parts
from zygote_py.compiler import Input, ItemLoops, Structure, outputs
from zygote_py.ir import Type, components_of
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.kernels.core_dimensions import Dimensions, Names, shape_of
from zygote_py.kernels.loops import DeviceLoops, HostLoops, Loops
from zygote_py.kernels.workspaces import dtype_of
from zygote_py.numba_adapter.cuda import launch
from zygote_py.runtime.compiled_function import DerivativeFunction
from zygote_py.runtime.entered import bound

_NUMBERS = (bool, int, float, complex, np.generic, np.ndarray, list)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf of the arguments: an array of items, or something else, which all items have."""

    path: str
    value: Any
    core: int | None  # dimensions of an item; None for what is not an array of numbers

    @property
    def shape(self) -> tuple[int, ...]:
        return () if self.core is None else self.value.shape[: self.value.ndim - self.core]


class Vectorized:
    """A derivative over arrays of inputs; see `vectorize`."""

    def __init__(self, derivative: DerivativeFunction[..., Any], target: str, signature: str | None) -> None:
        self.derivative = derivative
        self.target = target
        self.signature = signature
        self._dimensions = None if signature is None else Dimensions.of(signature)
        self._made: dict[Any, Loops] = {}

    def __repr__(self) -> str:
        signature = "" if self.signature is None else f", signature={self.signature!r}"
        return f"vectorize({self.derivative!r}, target={self.target!r}{signature})"

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0, **kwargs: Any) -> Any:
        """Return the derivatives for all items, as one array, or as a structure of arrays."""
        if self.target != "cuda" and not (isinstance(stream, int) and stream == 0):
            raise TypeError(f"{self._name} takes no stream: its target is {self.target!r}")
        args, found, shape, sizes = self._broadcast(args, kwargs)
        nest, values, axes = _arranged(found, shape)
        # No item may be written to that others read too: by other threads, or as it is broadcast.
        is_parallel = self.target == "parallel"
        values = [
            _read_only(each) if is_parallel or _is_shared(each, own, len(nest)) else each
            for each, own in zip(values, axes, strict=True)
        ]
        if self.target != "cuda" and numba_adapter.jit_is_disabled():
            return self._interpreted(args, values, axes, nest, shape, out)
        loops = self._loops_for(args, values, axes, len(nest))
        kinds = [kind for _, kind in outputs(loops.result)]
        new = launch.new if self.target == "cuda" else np.empty
        wanted = self._shapes(kinds, shape, sizes)
        for number, (has, to) in enumerate(zip(loops.shapes_of_results(values), wanted, strict=True)):
            if has is not None and has != to[len(shape) :]:
                raise ValueError(
                    f"result {number} of {self._name} has the shape {has} for each item; the signature says "
                    f"{to[len(shape) :]}"
                )
        dtypes = list(map(dtype_of, kinds))
        given = [None] * len(kinds) if out is None else _given(out, wanted, dtypes)
        results: list[Any] = []
        for number, (place, each, dtype) in enumerate(zip(given, wanted, dtypes, strict=True)):
            others = (*values, *loops.captured, *given[:number], *given[number + 1 :])
            results.append(place if self._may_fill(place, others) else new(each, dtype))
        stored = [
            each.reshape(nest + of[len(shape) :]) if len(nest) != len(shape) else each
            for each, of in zip(results, wanted, strict=True)
        ]
        loops.run(nest, values, stored, stream)
        if out is not None:
            for place, each in zip(given, results, strict=True):
                if place is not each:
                    _copy(place, each, stream)
            return out
        if self.target == "cuda" and not any(launch.is_device_array(each.value) for each in found):
            results = [launch.on_host(each, stream) for each in results]
        return _structured(loops.result, (each if each.ndim else each[()] for each in results))

    def source(self, *args: Any, **kwargs: Any) -> str:
        """Return the text that runs on the device for these arguments: its functions, and the loops of a thread."""
        return self._device_loops(args, kwargs)[0].source

    def inspect_ptx(self, *args: Any, capability: tuple[int, int] = (9, 0), **kwargs: Any) -> str:
        """Return the PTX of the kernel for these arguments and a compute capability. No device is needed."""
        loops, nest, values = self._device_loops(args, kwargs)
        return loops.ptx(nest, values, capability)

    def inspect_sass(self, *args: Any, capability: tuple[int, int] = (9, 0), **kwargs: Any) -> str:
        """Return the machine code of the kernel for arguments, as text. No device is needed.

        Raises ImportError if the assembler of CUDA is not installed (`nvidia-cuda-nvcc`).
        """
        loops, nest, values = self._device_loops(args, kwargs)
        return loops.sass(nest, values, capability)

    def _device_loops(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[DeviceLoops, tuple[int, ...], list[Any]]:
        args, found, shape, _ = self._broadcast(args, kwargs)
        nest, values, axes = _arranged(found, shape)
        loops = self._loops_for(args, values, axes, len(nest))
        if not isinstance(loops, DeviceLoops):
            raise ValueError(f"the target is {self.target!r}: see `source` and `inspect_llvm` of the derivative")
        return loops, nest, values

    def _may_fill(self, place: Any, others: Sequence[Any]) -> bool:
        """Return whether the loops may store results in an array right away: what they read is not in it."""
        if place is None or launch.is_device_array(place) is not (self.target == "cuda"):
            return False
        own = launch.span(place)
        if own is None:
            return False
        parts_ = [leaf for each in others for _, leaf in leaves("", each)]
        arrays = [each for each in parts_ if isinstance(each, np.ndarray) or launch.is_device_array(each)]
        if not all(isinstance(each, (*_NUMBERS, type(None))) or launch.is_device_array(each) for each in parts_):
            return False  # it may hold anything
        spans = [launch.span(each) for each in arrays]
        return all(each is not None and (each[1] <= own[0] or own[1] <= each[0]) for each in spans)

    def record_bytes(self, *args: Any, **kwargs: Any) -> int:
        """Return how many bytes the records of a call with these arguments take on the device."""
        args, found, shape, _ = self._broadcast(args, kwargs)
        nest, values, axes = _arranged(found, shape)
        loops = self._loops_for(args, values, axes, len(nest))
        return loops.record_bytes(nest, values)

    def _broadcast(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], list[_Leaf], tuple[int, ...], dict[str, int]]:
        """Return all arguments, their leaves, the shape of the loops, and the sizes of the dimensions of items."""
        names, args = bound(self.derivative, args, kwargs)
        if taken := {"out", "stream"}.intersection(names):
            raise TypeError(f"{self._name} has a parameter `{min(taken)}`, which vectorize has too: rename it")
        cores = None if self._dimensions is None else self._cores(args, names, self._dimensions.inputs)
        found = _taken(args, names, cores, self.target == "cuda")
        sizes: dict[str, int] = {}
        if self._dimensions is not None:
            shapes = [each.value.shape for each in found if each.core]
            named = Dimensions(tuple(core for core in self._dimensions.inputs if core), ())
            sizes = named.sizes(shapes, [each.path for each in found if each.core])
        return args, found, _shape_of_loops(found), sizes

    def _cores(self, args: Sequence[Any], names: Sequence[str], given: Sequence[Names]) -> list[Names]:
        """Return the dimensions of each leaf of the arguments; the signature has them for leaves, or for arguments."""
        counts = [len(list(leaves(name, arg))) for name, arg in zip(names, args, strict=True)]
        if len(given) == sum(counts):
            return list(given)
        if len(given) != len(args):
            raise TypeError(
                f"{self._name} takes {len(given)} arguments, as its signature has it, not {len(args)}, in which there "
                f"are {sum(counts)} numbers and arrays"
            )
        for name, arg, core in zip(names, args, given, strict=True):
            if core and parts(arg) is not None:
                raise TypeError(
                    f"the argument `{name}` is a structure: in the signature, its dimensions are (), or all arguments "
                    "have those of each number and array in them"
                )
        return [core for core, count in zip(given, counts, strict=True) for _ in range(count)]

    def _interpreted(
        self,
        args: tuple[Any, ...],
        values: list[Any],
        axes: list[tuple[int | None, ...] | None],
        nest: tuple[int, ...],
        shape: tuple[int, ...],
        out: Any,
    ) -> Any:
        """Call the derivative for each item, without loops that are compiled."""
        numbered = itertools.count()
        arguments = [_numbered(arg, numbered) for arg in args]
        found = []
        for place in np.ndindex(nest):
            items = [
                value[tuple(0 if axis is None else place[axis] for axis in own)] if own else value
                for value, own in zip(values, axes, strict=True)
            ]
            if self.target == "cpu":
                shared = [_is_shared(value, own, len(nest)) for value, own in zip(values, axes, strict=True)]
                items = [item.copy() if copied else item for item, copied in zip(items, shared, strict=True)]
            found.append(self.derivative(*(_filled(argument, items) for argument in arguments)))
        if not found:
            raise ValueError("without compilation, there has to be an item")
        results = [np.stack(each) for each in zip(*map(_numbers_in, found), strict=True)]
        results = [each.reshape(shape + each.shape[1:]) for each in results]
        if out is not None:
            given = _given(out, [each.shape for each in results], [each.dtype for each in results])
            for place, each in zip(given, results, strict=True):
                place[...] = each
            return out
        left = iter([each if each.ndim else each[()] for each in results])
        return map_leaves(lambda leaf: None if leaf is None else next(left), found[0])

    @property
    def _name(self) -> str:
        return f"the vectorized {self.derivative.form} of `{getattr(self.derivative, '__name__', '?')}`"

    def _shapes(self, kinds: Sequence[Type], shape: tuple[int, ...], sizes: dict[str, int]) -> list[tuple[int, ...]]:
        """Return the shapes of the results."""
        if self._dimensions is None:
            if any(isinstance(kind, types.Array) for kind in kinds):
                raise TypeError(
                    f'{self._name} returns arrays for each item: name their dimensions, as in signature="(k)->(k)"'
                )
            return [shape] * len(kinds)
        cores = self._dimensions.outputs
        if len(cores) != len(kinds):
            raise TypeError(
                f"{self._name} returns {len(kinds)} numbers or arrays for each item; the signature has {len(cores)}"
            )
        for number, (core, kind) in enumerate(zip(cores, kinds, strict=True)):
            if len(core) != getattr(kind, "ndim", 0):
                raise TypeError(
                    f"result {number} of {self._name} has {getattr(kind, 'ndim', 0)} dimensions for each item; the "
                    f"signature has {len(core)}"
                )
        return [shape + shape_of(core, sizes) for core in cores]

    def _loops_for(
        self, args: tuple[Any, ...], values: list[Any], axes: list[tuple[int | None, ...] | None], ndim: int
    ) -> Loops:
        kinds: list[Any] = [_item_type(value, of) for value, of in zip(values, axes, strict=True)]
        if self.target == "cuda":
            kinds = [kind.copy(readonly=True) if isinstance(kind, types.Array) else kind for kind in kinds]
        numbered = itertools.count()
        arguments = tuple(_numbered(arg, numbered) for arg in args)
        key = tuple(kinds), tuple(axes), ndim, arguments
        loops = self._made.get(key)
        if loops is None or not loops.is_current:
            shared = [_is_shared(value, own, ndim) for value, own in zip(values, axes, strict=True)]
            try:
                loops = self._new_loops(arguments, args, kinds, axes, ndim)
            except DifferentiationError:
                if self.target != "cpu" or not any(shared):
                    raise
                # It may be that the function writes to such an array, or calls one that takes no read-only ones.
                own = [kind.copy(readonly=False) if each else kind for kind, each in zip(kinds, shared, strict=True)]
                loops = self._new_loops(arguments, args, own, axes, ndim, shared)
            self._made[key] = loops
        return loops

    def _new_loops(
        self,
        arguments: Sequence[Any],
        args: Sequence[Any],
        kinds: list[Any],
        axes: Sequence[tuple[int | None, ...] | None],
        ndim: int,
        copied: Sequence[bool] = (),
    ) -> Loops:
        taken = tuple(_type_of(argument, arg, kinds) for argument, arg in zip(arguments, args, strict=True))
        inputs = [Input(each, is_copied) for each, is_copied in zip(axes, copied or [False] * len(axes), strict=True)]
        calls = ItemLoops(arguments, inputs, 0, ndim)
        if self.target == "cuda":
            return DeviceLoops(self.derivative, taken, calls)
        return HostLoops(self.derivative, taken, calls, parallel=self.target == "parallel")


def _taken(args: Sequence[Any], names: Sequence[str], cores: Sequence[Names] | None, on_device: bool) -> list[_Leaf]:
    """Return the leaves of the arguments, as arrays. Numbers of Python become floats like those of the arrays."""
    found: list[_Leaf] = []
    for arg, name in zip(args, names, strict=True):
        for path, value in leaves(name, arg):
            core = len(cores[len(found)]) if cores is not None else 0
            is_on_device = on_device and launch.is_device_array(value)
            if is_on_device:
                value = launch.on_device(value)
            if not isinstance(value, _NUMBERS) and not is_on_device:
                if core:
                    raise TypeError(f"the argument `{path}` is not an array: {type(value).__name__}")
                found.append(_Leaf(path, value, None))
                continue
            if _ndim(value) < core:
                has = f"the argument `{path}` has {_ndim(value)} dimensions"
                raise ValueError(f"{has}; the signature has {core} for each item")
            found.append(_Leaf(path, value, core))
    dtypes = [each.value.dtype for each in found if hasattr(each.value, "dtype")]
    floats = [dtype for dtype in dtypes if dtype.kind in "fc"]
    single = bool(floats) and np.result_type(*floats) in (np.float32, np.complex64)
    return [
        _Leaf(each.path, _as_array(each.value, single), each.core) if each.core is not None else each for each in found
    ]


def _is_shared(value: Any, axes: tuple[int | None, ...] | None, ndim: int) -> bool:
    """Return whether several of the items that loops over `ndim` axes visit are the same array."""
    is_array = isinstance(value, np.ndarray) and value.ndim > len(axes or ())
    return is_array and len([each for each in axes or () if each is not None]) < ndim


def _read_only(value: Any) -> Any:
    """Return a view of an array that cannot be written to; anything else as it is."""
    if not isinstance(value, np.ndarray) or not value.ndim:
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _ndim(value: Any) -> int:
    return value.ndim if hasattr(value, "ndim") else np.ndim(value)


def _as_array(value: Any, single: bool) -> Any:
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("masked arrays are not supported: pass what is not masked")
    if launch.is_device_array(value):
        return value
    if single and type(value) in (float, complex):
        return np.asarray(value, np.float32 if type(value) is float else np.complex64)
    return np.asarray(value)


def _shape_of_loops(found: Sequence[_Leaf]) -> tuple[int, ...]:
    """Return the shape of the loops. Raises ValueError if the arguments do not broadcast."""
    try:
        return np.broadcast_shapes(*(each.shape for each in found))
    except ValueError:
        shapes = ", ".join(f"`{each.path}` {each.shape}" for each in found if each.core is not None)
        raise ValueError(f"the arguments do not broadcast: {shapes}") from None


def _arranged(
    found: Sequence[_Leaf], shape: tuple[int, ...]
) -> tuple[tuple[int, ...], list[Any], list[tuple[int | None, ...] | None]]:
    """Return the shape of the loops, the arguments, and what selects an item of each; see `Input`.

    Where each array is one block of memory with an item for each combination of indices, one loop runs over all of it.
    """
    arrays = [each for each in found if each.core is not None and each.shape]
    is_flat = len(shape) > 1 and all(each.shape == shape and launch.is_contiguous(each.value) for each in arrays)
    nest = (math.prod(shape),) if is_flat else shape
    values: list[Any] = []
    axes: list[tuple[int | None, ...] | None] = []
    for each in found:
        value, own = each.value, each.shape
        if each.core is None or not own:
            values.append(value if getattr(value, "ndim", 1) else value[()])
            axes.append(None)
            continue
        if is_flat:
            value, own = value.reshape((*nest, *value.shape[len(shape) :])), nest
        first = len(nest) - len(own)
        axes.append(tuple(None if size == 1 != nest[first + axis] else first + axis for axis, size in enumerate(own)))
        values.append(value)
    return nest, values, axes


def _item_type(value: Any, axes: tuple[int | None, ...] | None) -> Type:
    """Return the type of an item of an argument."""
    kind = launch.type_of(value)
    core = kind.ndim - len(axes) if axes else 0
    item: Type = (
        kind.copy(ndim=core, layout="C" if kind.layout == "C" else "A") if core else kind.dtype if axes else kind
    )
    return item


def _numbered(arg: Any, numbers: Iterator[int]) -> Any:
    """Return an argument with a number for each leaf."""
    inner = parts(arg)
    return next(numbers) if inner is None else Structure(type(arg), tuple(_numbered(each, numbers) for each in inner))


def _type_of(argument: Any, arg: Any, kinds: Sequence[Type]) -> Type:
    """Return the type of an argument of the derivative, given those of its leaves."""
    if not isinstance(argument, Structure):
        kind: Type = kinds[argument]
        return kind
    inner = parts(arg)
    assert inner is not None
    of = [_type_of(each, part, kinds) for each, part in zip(argument.parts, inner, strict=True)]
    if issubclass(argument.cls, tuple):
        made_of: Type = types.BaseTuple.from_types(of, None if argument.cls is tuple else argument.cls)
        return made_of
    return numba_adapter.DataclassType(tuple(of), argument.cls)


def _filled(argument: Any, items: Sequence[Any]) -> Any:
    if not isinstance(argument, Structure):
        return items[argument]
    return made(argument.cls, tuple(_filled(each, items) for each in argument.parts))


def _numbers_in(result: Any) -> list[Any]:
    return [leaf for _, leaf in leaves("y", result) if leaf is not None]


def _copy(place: Any, result: Any, stream: Any) -> None:
    """Store a result in an array that was given."""
    if launch.is_device_array(place):
        place.copy_to_device(result, stream=stream)
    else:
        place[...] = launch.on_host(result, stream) if launch.is_device_array(result) else result


def _given(out: Any, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[np.dtype[Any]]) -> list[Any]:
    """Return the arrays to store the results in. Raises ValueError or TypeError if they do not fit."""
    if isinstance(out, list):
        raise TypeError("`out` is an array, or a tuple of arrays, not a list")
    found = [leaf for _, leaf in leaves("out", out) if leaf is not None]
    if len(found) != len(shapes):
        raise TypeError(f"`out` has {len(found)} arrays, where {len(shapes)} are expected")
    arrays: list[Any] = []
    for number, (each, shape, dtype) in enumerate(zip(found, shapes, dtypes, strict=True)):
        if launch.is_device_array(each):
            each = launch.on_device(each)
        if not hasattr(each, "dtype") or each.dtype != dtype or each.shape != shape:
            what = f"{each.dtype} of shape {each.shape}" if hasattr(each, "dtype") else type(each).__name__
            raise ValueError(f"array {number} of `out` is {what}, where {dtype} of shape {shape} is expected")
        if isinstance(each, np.ndarray) and not each.flags.writeable:
            raise ValueError(f"array {number} of `out` is read-only")
        if isinstance(each, np.ndarray) and any(
            n > 1 and step == 0 for n, step in zip(shape, each.strides, strict=True)
        ):
            raise ValueError(f"array {number} of `out` has several elements at the same place")
        for other, before in enumerate(arrays):
            if _share(before, each):
                raise ValueError(f"the arrays {other} and {number} of `out` share memory")
        arrays.append(each)
    return arrays


def _share(one: Any, other: Any) -> bool:
    """Return whether two arrays have an element in common."""
    on_host = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return on_host and np.may_share_memory(one, other) and np.shares_memory(one, other)


def _structured(kind: Type, results: Iterator[Any]) -> Any:
    """Return results in the structure of a type."""
    if isinstance(kind, types.BaseTuple):
        cls = getattr(kind, "instance_class", tuple)
        return made(cls, tuple(_structured(each, results) for each in components_of(kind)))
    return None if isinstance(kind, types.NoneType) else next(results)
