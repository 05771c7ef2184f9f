"""A model of a grid of threads: kernels in plain Python, with threads in any order, and a log of what they access.

    with threads_in("reversed", log := Log()):
        kernel[2, 4](x, out)            # what `cuda.jit` returns with NUMBA_ENABLE_CUDASIM=1
    assert not log.races

The threads of a block are generators that stop at each barrier: all run to the first one, one after another, and then
all to the second. A run is the same each time, and needs no threads of the system. Shared arrays and arrays of a thread
start as NaN, and each block has shared arrays of its own: in the simulator of Numba, neither is so. `Log` notes who
reads and writes which element; see `tests.kernels.random_kernels.races`.
"""

from __future__ import annotations

import ast
import inspect
import random
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba import cuda
from numba.core import types
from numba.cuda.simulator import kernel as simulated, kernelapi
from numba.np.numpy_support import as_dtype

from tests.kernels.random_kernels.races import Log, Logged, Thread, bare

ORDERS = ("in order", "reversed", "shuffled")
_UNSET = 0x3FFFFFFF  # an integer that has not been set


@contextmanager
def threads_in(order: str = "in order", log: Log | None = None) -> Iterator[None]:
    """Run kernels that are launched meanwhile by this model, with threads and blocks in an order."""

    def call(self: Any, *args: Any) -> Any:
        assert not self._device
        return _launch(self, args, order, log)

    kept = simulated.FakeCUDAKernel.__call__
    simulated.FakeCUDAKernel.__call__ = call
    try:
        yield
    finally:
        simulated.FakeCUDAKernel.__call__ = kept


def _launch(kernel: Any, args: Sequence[Any], order: str, log: Log | None) -> None:
    function = kernel.fn
    module = _Module(kernel.grid_dim, kernel.block_dim, kernel.dynshared_size, log)
    translated = _translated(function)
    run = translated.within(function, module)
    given = [_within(each, log, name) for each, name in zip(args, inspect.signature(function).parameters, strict=True)]
    rng = random.Random(order)
    if log is not None:
        log.launch()
    for block in _places(kernel.grid_dim, order, rng):
        module.start_block(block)
        threads = _places(kernel.block_dim, order, rng)
        if translated.waits:
            _run_together(module, {thread: run(*given) for thread in threads}, rng if order == "shuffled" else None)
            continue
        for thread in threads:
            module.switch_to(thread)
            run(*given)
    if log is not None:
        log.running = None


def _run_together(module: _Module, waiting: dict[tuple[int, ...], Any], rng: random.Random | None) -> None:
    """Run the threads of a block from barrier to barrier, in their order or shuffled each time.

    As on a device, a barrier does not wait for threads that have ended.
    """
    while waiting:
        threads = []
        for thread, steps in waiting.items():
            module.switch_to(thread)
            if next(steps, _END) is not _END:
                threads.append(thread)
        module.wait(is_left_out=0 < len(threads) < len(waiting))
        if rng is not None:
            rng.shuffle(threads)
        waiting = {thread: waiting[thread] for thread in threads}


_END = object()


def _places(shape: Sequence[int], order: str, rng: random.Random) -> list[tuple[int, ...]]:
    """Return the blocks of a grid, or the threads of a block, in an order."""
    found = sorted(np.ndindex(*shape), key=lambda place: place[::-1])  # the first axis runs fastest
    match order:
        case "reversed":
            found.reverse()
        case "shuffled":
            rng.shuffle(found)
    return found


def _within(value: Any, log: Log | None, name: str) -> Any:
    """Return an argument as it is within a kernel: the memory of an array, with a log."""
    array = getattr(value, "_ary", value)
    return Logged(array, log, name) if log is not None and isinstance(array, np.ndarray) else array


# The module `cuda`


def _unset(shape: Any, dtype: Any) -> np.ndarray:
    kind = _numpy_type(dtype)
    return np.full(shape, np.nan if kind.kind == "f" else _UNSET, kind)


def _numpy_type(dtype: Any) -> np.dtype[Any]:
    return as_dtype(dtype) if isinstance(dtype, types.Type) else np.dtype(dtype)


class _Local:
    """`cuda.local`: arrays of a thread."""

    @staticmethod
    def array(shape: Any, dtype: Any) -> np.ndarray:
        return _unset(shape, dtype)


class _Shared:
    """`cuda.shared`: one array for each line that makes one, anew for each block."""

    def __init__(self, size: int, log: Log | None) -> None:
        self._size = size
        self._log = log
        self.clear()

    def clear(self) -> None:
        self._made: dict[tuple[str, int], np.ndarray] = {}
        self._dynamic = np.full(self._size, 255, np.uint8)  # NaN as floats

    def array(self, shape: Any, dtype: Any) -> Any:
        kind = _numpy_type(dtype)
        frame = sys._getframe(1)
        at = frame.f_code.co_filename, frame.f_lineno
        if shape == 0:
            found = self._dynamic[: self._size // kind.itemsize * kind.itemsize].view(kind)
        else:
            if at not in self._made:
                self._made[at] = _unset(shape, dtype)
            found = self._made[at]
        name = f"the shared array of line {at[1]}"
        return found if self._log is None else Logged(found, self._log, name, is_shared=True)


class _Atomic:
    """`cuda.atomic`, whose operations are noted as such."""

    def __init__(self) -> None:
        self._operations = kernelapi.FakeCUDAAtomic()

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._operations, name)

        def noted(array: Any, index: Any, *values: Any) -> Any:
            if isinstance(array, Logged):
                array.note("atomic", index)
            return operation(bare(array), index, *values)

        setattr(self, name, noted)
        return noted


class _Module(kernelapi.FakeCUDAModule):  # type: ignore[misc]
    """The module `cuda` within a kernel, as the running thread sees it."""

    threadIdx = blockIdx = None

    def __init__(self, blocks: Sequence[int], threads: Sequence[int], shared_bytes: int, log: Log | None) -> None:
        super().__init__(blocks, threads, shared_bytes)
        self._shared = _Shared(shared_bytes, log)
        self._local = _Local()
        self._atomic = _Atomic()
        self._log = log
        self._block = 0

    def start_block(self, place: tuple[int, ...]) -> None:
        self.blockIdx = kernelapi.Dim3(*place)
        self._block = _number(place, self.gridDim)
        self._shared.clear()
        self.wait()

    def wait(self, is_left_out: bool = False) -> None:
        if self._log is not None:
            self._log.barrier(is_left_out)

    def switch_to(self, place: tuple[int, ...]) -> None:
        self.threadIdx = kernelapi.Dim3(*place)
        if self._log is not None:
            self._log.running = Thread(self._block, _number(place, self.blockDim))


def _number(place: tuple[int, ...], dimensions: Any) -> int:
    x, y, z = place
    return x + dimensions.x * (y + dimensions.y * z)


# Functions with barriers


@dataclass(frozen=True)
class _Translated:
    """A function whose barriers are places where a generator stops."""

    code: CodeType
    waits: bool  # it has barriers, and is a generator
    called: dict[str, FunctionType]

    def within(self, function: FunctionType, module: _Module) -> FunctionType:
        """Return the function with another module for `cuda`."""
        scope = dict(function.__globals__)
        scope.update({name: module for name, value in scope.items() if value is cuda})
        for name, each in self.called.items():
            scope[name] = _translated(each).within(each, module)
        return FunctionType(self.code, scope, function.__name__, function.__defaults__, function.__closure__)


_known: WeakKeyDictionary[FunctionType, _Translated] = WeakKeyDictionary()  # codes are equal if their texts are


def _translated(function: FunctionType) -> _Translated:
    if function not in _known:
        code = function.__code__
        called = {name: found for name in code.co_names if (found := _python_of(function.__globals__.get(name)))}
        waiting = {name for name, each in called.items() if _translated(each).waits}
        waits = "syncthreads" in code.co_names or bool(waiting)
        _known[function] = _Translated(_generator(function, waiting) if waits else code, waits, called)
    return _known[function]


def _python_of(value: Any) -> FunctionType | None:
    found = value.fn if isinstance(value, simulated.FakeCUDAKernel) else value
    return found if isinstance(found, FunctionType) else None


def _generator(function: FunctionType, waiting: set[str]) -> CodeType:
    """Return the code of a function that has barriers, some in functions of these names."""
    lines, first = inspect.getsourcelines(function)
    tree = ast.increment_lineno(ast.parse(textwrap.dedent("".join(lines))), first - 1)
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    changed = ast.fix_missing_locations(_Barriers(waiting).visit(tree))
    module = compile(changed, function.__code__.co_filename, "exec")
    (code,) = (each for each in module.co_consts if isinstance(each, CodeType))
    assert code.co_freevars == function.__code__.co_freevars
    return code


class _Barriers(ast.NodeTransformer):
    """Makes each barrier a `yield`, and each call of a function with barriers a `yield from`."""

    def __init__(self, functions: set[str]) -> None:
        self._functions = functions

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(attr="syncthreads"):
                return ast.copy_location(ast.Yield(None), node)
            case ast.Name(id=name) if name in self._functions:
                return ast.copy_location(ast.YieldFrom(node), node)
        return node
