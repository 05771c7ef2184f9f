"""Device functions whose code is chosen by the types of their arguments, when a kernel that calls them is compiled.

    device_function(stub, implement)        # implement((float32, int64)) returns a function that `cuda.jit` decorated

numba-cuda has its own copy of Numba's compiler, and shares with Numba the types, the stack of flags and the present
target. What is typed for the processor within the compilation of a kernel sees neither of the latter two.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import types

from zygote_py.ir import Type
from zygote_py.numba_adapter.base.internals import ConfigStack, compiler, target_override
from zygote_py.numba_adapter.cuda.launch import cuda_module

_OPTIONS = {"device": True, "debug": False, "opt": True, "fastmath": False, "lineinfo": False}


def device_function(stub: Callable[..., object], implement: Callable[[tuple[Type, ...]], Any]) -> Any:
    """Return a device function with the signature of `stub`."""
    return _class()(stub, implement)


@functools.cache
def _class() -> Any:
    cuda_module()
    dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")

    class DeviceFunction(dispatcher.CUDADispatcher):  # type: ignore[misc]
        """A device function that is compiled from what `implement` returns for the types of its arguments."""

        def __init__(self, stub: Callable[..., object], implement: Callable[[tuple[Type, ...]], Any]) -> None:
            super().__init__(stub, dict(_OPTIONS))
            self._implement = implement
            self._implemented: dict[tuple[Type, ...], Any] = {}  # kept, since what is compiled refers to it weakly

        def compile_device(self, args: tuple[Type, ...], return_type: Any = None) -> Any:
            """Return the code for argument types."""
            if args not in self.overloads:
                with _as_for_the_processor():
                    found = self._implement(tuple(map(types.unliteral, args)))
                self._implemented[args] = found
                self.overloads[args] = found.compile_device(args, return_type)
            return self.overloads[args]

    return DeviceFunction


@contextmanager
def _as_for_the_processor() -> Iterator[None]:
    with target_override("cpu"), ConfigStack().enter(compiler.Flags()):
        yield
