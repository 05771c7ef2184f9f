"""Kernels on a device, or in the simulator (`NUMBA_ENABLE_CUDASIM=1`), and arrays there.

    kernel = compiled(function, {})
    run(kernel, lanes_for(1000), (on_device(x), new((1000,), x.dtype)))     # a thread for each of 1000 items

Without numba-cuda and without the simulator, asking for any of it raises ImportError.
"""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import config

from zygote_py.numba_adapter.target.dispatch import typeof

THREADS = 128  # of a block
_OF_HOST = (float, int, bool, np.ndarray, np.float64, np.int64)


@functools.cache
def cuda_module() -> Any:
    """Return the module `numba.cuda`. Raises ImportError if there is none for a device."""
    if not config.ENABLE_CUDASIM and importlib.util.find_spec("numba_cuda") is None:  # type: ignore[attr-defined]
        raise ImportError(
            "CUDA needs numba-cuda: install zygote-py[cuda], or set NUMBA_ENABLE_CUDASIM=1 before Numba is imported, "
            "which runs kernels in Python"
        )
    from numba import cuda

    return cuda


def is_device_array(value: object) -> bool:
    """Return whether a value is an array on a device, of any library."""
    if hasattr(type(value), "copy_to_host"):  # Numba's, which take long to say where they are
        return hasattr(value, "dtype")
    return type(value) not in _OF_HOST and hasattr(value, "__cuda_array_interface__")


def on_device(value: Any, stream: Any = 0) -> Any:
    """Return an array on the device: the given one, or a copy of an array of the host."""
    cuda = cuda_module()
    if not is_device_array(value):
        return cuda.to_device(np.ascontiguousarray(value), stream=stream)
    return value if hasattr(value, "copy_to_host") else cuda.as_cuda_array(value)


def new(shape: tuple[int, ...], dtype: Any, stream: Any = 0) -> Any:
    """Return an array on the device whose elements are not set."""
    return cuda_module().device_array(shape, dtype, stream=stream)


def on_host(array: Any, stream: Any = 0) -> Any:
    """Return an array of the device as one of the host."""
    return array.copy_to_host(stream=stream)


def copied(array: Any, stream: Any = 0) -> Any:
    """Return a copy of a contiguous array of the device."""
    made = new(tuple(array.shape), array.dtype, stream)
    made.copy_to_device(on_device(array), stream=stream)
    return made


def check_contiguous(array: Any, name: str) -> None:
    """Raise ValueError for an array that is not in row-major order, and so has no copy of the same type."""
    if not is_contiguous(array):
        raise ValueError(
            f"`{name}` is not in row-major order: a kernel with an atomic maximum or minimum is run on copies first"
        )


def is_contiguous(array: Any) -> bool:
    """Return whether an array is one block of memory in row-major order."""
    return bool(array.flags.c_contiguous if isinstance(array, np.ndarray) else array.is_c_contiguous())


def span(array: Any) -> tuple[int, int] | None:
    """Return the addresses of the first byte of a contiguous array and of the one after its last; None for others."""
    if isinstance(array, np.ndarray):
        return (array.ctypes.data, array.ctypes.data + array.nbytes) if array.flags.c_contiguous else None
    if not hasattr(array, "__cuda_array_interface__") or not is_contiguous(array):
        return None
    start: int = array.__cuda_array_interface__["data"][0] or 0
    return start, start + array.size * array.dtype.itemsize


def compiled(function: Callable[..., None], options: Mapping[str, object]) -> Any:
    """Return a kernel."""
    return cuda_module().jit(**options)(function)


def device(function: Callable[..., object]) -> Any:
    """Return a device function."""
    return cuda_module().jit(device=True)(function)


def lanes_for(count: int, most: int | None = None) -> int:
    """Return how many threads run for a number of items: whole blocks, at most `most` of them if that is given."""
    blocks = max(1, -(-count // THREADS))
    return THREADS * (blocks if most is None else max(1, min(blocks, most // THREADS)))


def run(kernel: Any, lanes: int, args: Sequence[Any], stream: Any = 0) -> None:
    """Run a kernel with this number of threads."""
    start(kernel, (lanes // THREADS, THREADS, stream), args)


def start(kernel: Any, configuration: tuple[Any, ...], args: Sequence[Any]) -> None:
    """Launch a kernel with blocks, threads, a stream, and bytes of dynamic shared memory."""
    cuda_module()
    # The simulator changes the kernel itself. A stream that is an object is not to be kept alive.
    is_kept = not config.ENABLE_CUDASIM and isinstance(configuration[2], int)  # type: ignore[attr-defined]
    configured = _kept_configuration if is_kept else _configured
    configured(kernel, *configuration)(*args)


def _configured(kernel: Any, *configuration: Any) -> Any:
    with warnings.catch_warnings():  # of few threads: that is what was asked for
        warnings.filterwarnings("ignore", ".*Grid size")
        return kernel[configuration]


_kept_configuration = functools.lru_cache(maxsize=256)(_configured)


def extent(array: Any) -> tuple[int, int] | None:
    """Return the addresses of the first byte that an array may use, and of the one after the last; None if unknown."""
    if array.size == 0:
        return None
    if hasattr(array, "__cuda_array_interface__"):
        start: int = array.__cuda_array_interface__["data"][0] or 0
    elif isinstance(host := getattr(array, "_ary", None), np.ndarray):  # of the simulator
        start = host.ctypes.data
    else:
        return None
    steps = [(length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True)]
    first = start + sum(step for step in steps if step < 0)
    last = start + sum(step for step in steps if step > 0)
    return first, last + array.dtype.itemsize


def type_of(value: Any) -> Any:
    """Return the Numba type of an argument of a kernel."""
    if not is_device_array(value):
        return typeof(value)
    return _array_type(value.ndim, value.dtype, is_contiguous(value))


@functools.lru_cache(maxsize=256)
def _array_type(ndim: int, dtype: Any, is_contiguous: bool) -> Any:
    known: Any = typeof(np.empty((1,) * ndim, dtype))
    return known.copy(layout="C" if is_contiguous else "A")


@contextmanager
def _without_device(capability: tuple[int, int]) -> Iterator[None]:
    """Let numba-cuda compile for a capability, whatever device there is."""
    if config.ENABLE_CUDASIM:  # type: ignore[attr-defined]
        raise RuntimeError("the simulator runs kernels in Python: it has no machine code")
    cuda_module()
    dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")
    known = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    try:
        yield
    finally:
        dispatcher.get_current_device = known


def ptx(kernel: Any, kinds: tuple[Any, ...], capability: tuple[int, int], *, device: bool = False) -> str:
    """Return the PTX of a kernel, or of a device function, for argument types and a compute capability.

    No device is needed.
    """
    options = getattr(kernel, "targetoptions", {})
    kept = {name: options[name] for name in ("debug", "lineinfo", "fastmath", "opt") if options.get(name) is not None}
    with _without_device(capability):
        text, _ = cuda_module().compile_ptx(kernel.py_func, kinds, cc=capability, device=device, **kept)
    return str(text)


def sass(kernel: Any, kinds: tuple[Any, ...], capability: tuple[int, int]) -> str:
    """Return the machine code of a kernel, disassembled. No device is needed. Raises ImportError without the tools."""
    assembler, disassembler = tool("ptxas"), tool("nvdisasm")
    text = ptx(kernel, kinds, capability)
    registers = getattr(kernel, "targetoptions", {}).get("max_registers")
    more = [] if registers is None else [f"-maxrregcount={registers}"]
    with TemporaryDirectory() as folder:
        source, code = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(text)
        chip = f"-arch=sm_{capability[0]}{capability[1]}"
        subprocess.run([assembler, chip, *more, source, "-o", code], check=True, capture_output=True)
        return subprocess.run([disassembler, "-c", code], check=True, capture_output=True, text=True).stdout


def tool(name: str) -> str:
    """Return the path of a tool of CUDA: in the environment of Python, where the wheels put it, or on the path."""
    folders = [Path(each) / "nvidia" for each in sys.path]
    found = [path for folder in folders if folder.is_dir() for path in folder.glob(f"*/bin/{name}")]
    path = str(found[0]) if found else shutil.which(name)
    if path is None:
        raise ImportError(f"this needs {name} of CUDA: install nvidia-cuda-nvcc")
    return path


def number_of(stream: Any) -> tuple[int, int]:
    """Return the numbers of the present device and of a stream."""
    if config.ENABLE_CUDASIM:  # type: ignore[attr-defined]
        return 0, 0
    handle = getattr(stream, "handle", stream)
    return cuda_module().get_current_device().id, int(getattr(handle, "value", handle) or 0)


def free_bytes() -> int:
    """Return how much memory is free on the device."""
    if config.ENABLE_CUDASIM:  # type: ignore[attr-defined]
        return 1 << 28
    return int(cuda_module().current_context().get_memory_info().free)
