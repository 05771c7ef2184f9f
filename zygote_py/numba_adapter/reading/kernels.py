"""Kernels for CUDA, read as functions for the processor: stand-ins take the place of what `numba.cuda` has for threads.

    function, options = read_kernel(kernel)     # of `@cuda.jit`; the function calls `STAND_INS.grid(1)`
    STAND_INS.shared.array                      # Numba types it as numba-cuda types its own

Numba's ordinary pipeline types such a function, so that there is one way in for all functions. Types are those of
numba-cuda: `threadIdx.x` is int32, `grid(1)` int64, `grid(2)` a pair of them. Nothing of CUDA is imported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from numba import types
from numba.extending import overload_attribute, register_model, typeof_impl

from zygote_py.base import caller
from zygote_py.numba_adapter.base.internals import (
    AbstractTemplate,
    errors,
    infer_global,
    make_concrete_template,
    models,
    npydecl,
    signature,
    templates,
)
from zygote_py.numba_adapter.reading.libdevice import make_libdevice
from zygote_py.numba_adapter.target.dispatch import CompileTimeType

STAND_INS = ModuleType("cuda")
REGISTERS = ("threadIdx", "blockIdx", "blockDim", "gridDim")
AXES = "xyz"
ATOMIC = ("add", "sub", "max", "min", "exch", "and_", "or_", "xor", "inc", "dec")
_LIBDEVICE = ".cuda.libdevice"
_INTEGERS_ONLY = ("and_", "or_", "xor", "inc", "dec")


class _Register:
    """The stand-in for `cuda.threadIdx` and its like."""


def _stand_in(name: str) -> Callable[..., Any]:
    def function(*args: object) -> None:
        raise NotImplementedError(name)

    function.__name__ = function.__qualname__ = name
    return function


@functools.cache
def stand_ins() -> ModuleType:
    """Return the module that takes the place of `numba.cuda`, known to Numba."""
    for name in REGISTERS:
        setattr(STAND_INS, name, _register(name))
    for name in ("grid", "gridsize"):
        function = _stand_in(name)
        setattr(STAND_INS, name, function)
        _typed(function, _of_axes)
    for name in ("syncthreads", "threadfence", "threadfence_block", "threadfence_system"):
        _add(STAND_INS, name, signature(types.none))
    for space in ("shared", "local"):
        inner = ModuleType(f"cuda.{space}")
        inner.array = _stand_in(f"{space}_array")  # type: ignore[attr-defined]
        _typed(inner.array, _new_array)
        setattr(STAND_INS, space, inner)
    const = ModuleType("cuda.const")
    const.array_like = _stand_in("array_like")  # type: ignore[attr-defined]
    _typed(const.array_like, lambda array: array)
    STAND_INS.const = const  # type: ignore[attr-defined]
    atomic = ModuleType("cuda.atomic")
    for name in ATOMIC:
        function = _stand_in(f"atomic_{name}")
        setattr(atomic, name, function)
        infer_global(function, types.Function(_atomic_template(function, name in _INTEGERS_ONLY)))
    STAND_INS.atomic = atomic  # type: ignore[attr-defined]
    for name in ("fma", "cbrt", "rsqrt"):
        arguments = 3 if name == "fma" else 1
        _add(STAND_INS, name, *(signature(kind, *[kind] * arguments) for kind in (types.float32, types.float64)))
    STAND_INS.selp = _stand_in("selp")  # type: ignore[attr-defined]
    _typed(STAND_INS.selp, lambda condition, then, orelse: then if then == orelse else None)
    STAND_INS.libdevice = make_libdevice(_stand_in)  # type: ignore[attr-defined]
    return STAND_INS


def _add(module: ModuleType, name: str, *signatures: Any) -> None:
    function = _stand_in(name)
    setattr(module, name, function)
    infer_global(function, types.Function(make_concrete_template(name, function, list(signatures))))


def _typed(function: Callable[..., object], typer: Callable[..., Any]) -> None:
    members = {"key": function, "generic": lambda self: typer}
    infer_global(function, types.Function(type(function.__name__, (templates.CallableTemplate,), members)))


def _register(name: str) -> Any:
    """Return the stand-in for registers: an object with an attribute for each axis."""
    kind = type(name, (CompileTimeType,), {})(f"cuda.{name}")
    register_model(type(kind))(models.OpaqueModel)
    found = type(name, (_Register,), {})
    typeof_impl.register(found)(lambda value, context: kind)
    for axis in AXES:
        function = _stand_in(f"{name}_{axis}")
        setattr(found, f"read_{axis}", staticmethod(function))
        infer_global(function, types.Function(make_concrete_template(name, function, [signature(types.int32)])))
        read = caller(function, "register", "", name="read")
        overload_attribute(type(kind), axis)(caller(lambda read=read: read, "register", "", name="overload"))
    return found()


def _of_axes(ndim: Any) -> Any:
    if not isinstance(ndim, types.IntegerLiteral):
        raise errors.RequireLiteralValue(ndim)
    count = ndim.literal_value
    if count not in (1, 2, 3):
        raise errors.NumbaValueError("a grid has 1, 2 or 3 axes")
    return types.int64 if count == 1 else types.UniTuple(types.int64, count)


def _new_array(shape: Any, dtype: Any, alignment: Any = None) -> Any:
    lengths = [shape] if isinstance(shape, types.Integer) else list(shape)
    if not all(isinstance(each, types.IntegerLiteral) for each in lengths):
        raise errors.NumbaValueError("the shape of an array of threads has to be written as a constant")
    kind = npydecl.parse_dtype(dtype)
    return None if kind is None else types.Array(kind, len(lengths), "C")


def _atomic_template(function: Callable[..., object], of_integers: bool) -> type:
    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            """Return the signature for an array, an index, and a number."""
            if kws or len(args) != 3 or not isinstance(args[0], types.Array):
                return None
            array, index, _ = args
            if of_integers and not isinstance(array.dtype, types.Integer):
                return None
            if isinstance(index, types.Integer):
                index = types.intp
            return signature(array.dtype, array, index, array.dtype)

    return Template


def read_kernel(kernel: Any) -> tuple[FunctionType, dict[str, object]]:
    """Return a kernel as a function for the processor, and the options that it was decorated with.

    `kernel` is what `cuda.jit` returns, on a device or in the simulator, or a Python function.
    """
    function = py_func_of_kernel(kernel)
    options = dict(getattr(kernel, "targetoptions", {}))
    return _Reading().function(function), options


def is_kernel(value: Any) -> bool:
    """Return whether a value is what `cuda.jit` returns."""
    return _is_of_cuda(type(value)) and isinstance(_python_of(value), FunctionType)


def py_func_of_kernel(kernel: Any) -> FunctionType:
    """Return the Python function of a kernel. Raises TypeError for any other value."""
    for found in (getattr(kernel, "py_func", None), getattr(kernel, "fn", None), kernel):
        if isinstance(found, FunctionType):
            return found
    raise TypeError(f"a kernel is a function that cuda.jit decorates, not {type(kernel).__name__}")


class _Reading:
    """Puts stand-ins into the functions of a kernel, each of which is made once."""

    def __init__(self) -> None:
        self._module = stand_ins()
        self._made: dict[int, FunctionType] = {}
        self._known: list[object] = []  # kept, so that no other object gets their numbers

    def function(self, function: FunctionType) -> FunctionType:
        """Return a function that refers to stand-ins."""
        if id(function) in self._made:
            return self._made[id(function)]
        self._known.append(function)
        own, scope = function.__globals__, dict(function.__globals__)
        cells = tuple(CellType() for _ in function.__closure__ or ())
        made = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells or None)
        self._made[id(function)] = made
        made.__kwdefaults__ = function.__kwdefaults__
        made.__module__, made.__qualname__ = function.__module__, function.__qualname__
        made.__dict__.update(function.__dict__)
        scope.update({name: self.value(own[name]) for name in _names(function.__code__) & own.keys()})
        for cell, old in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self.value(old.cell_contents)
        return made

    def value(self, value: Any) -> Any:
        """Return what takes the place of a global or captured variable."""
        if isinstance(value, ModuleType):
            return self._module.libdevice if _is_libdevice(value) else self._module if _is_cuda(value) else value
        if _is_of_cuda(type(value)) and isinstance(inner := _python_of(value), FunctionType):  # a device function
            return self.function(inner)
        if _is_of_cuda(value):
            if value.__module__.endswith(_LIBDEVICE):
                return getattr(self._module.libdevice, value.__name__, value)
            return getattr(self._module, getattr(value, "__name__", type(value).__name__), value)
        return self.function(value) if isinstance(value, FunctionType) and _calls_cuda(value) else value


def _python_of(value: Any) -> Any:
    return getattr(value, "py_func", None) or getattr(value, "fn", None)


def _is_of_cuda(value: Any) -> bool:
    """Return whether a class or a function is one of Numba's for CUDA."""
    return _is_of_cuda_name(str(getattr(value, "__module__", "")))


def _is_of_cuda_name(module: str) -> bool:
    return module.startswith(("numba.cuda", "numba_cuda"))


def _is_cuda(module: ModuleType) -> bool:
    return module.__name__ in ("numba.cuda", "numba_cuda.numba.cuda") or _is_libdevice(module)


def _is_libdevice(module: ModuleType) -> bool:
    return _is_of_cuda_name(module.__name__) and module.__name__.endswith(_LIBDEVICE)


def _calls_cuda(function: FunctionType) -> bool:
    """Return whether a function refers to `numba.cuda`, or to functions that do."""
    seen = {function}
    pending = [function]
    while pending:
        each = pending.pop()
        values = [cell.cell_contents for cell in each.__closure__ or ()]
        values += [each.__globals__[name] for name in _names(each.__code__) & each.__globals__.keys()]
        for value in values:
            if _is_of_cuda(value) or _is_of_cuda(type(value)) or (isinstance(value, ModuleType) and _is_cuda(value)):
                return True
            if isinstance(value, FunctionType) and value not in seen:
                seen.add(value)
                pending.append(value)
    return False


def _names(code: CodeType) -> set[str]:
    """Return the names that the code of a function, and of those in it, looks up."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found
