"""The scalar functions of `scipy.special` as operations of the IR.

    %y = special.jv %v, %x : f64            jv(v, x)

Compiled code calls them through the pointers that `scipy.special.cython_special` exports. A function is identified by
its name and the C types of its parameters and result; its symbol is looked up in SciPy on demand.

    special("jv", "double", "double")                                   a callable: jv(double, double) -> double
    of_pointer(CFUNCTYPE(c_double, c_double)(address of gammaln))       special("gammaln", "double")

Nothing is imported from SciPy before that. Functions that return several values, or complex ones, are not supported.
"""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from typing import Any

from numba import types

from zygote_py.ir.core import Type

MODULE = "scipy.special.cython_special"
C_TYPES: dict[str, Any] = {
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "long": ctypes.c_long,
    "Py_ssize_t": ctypes.c_ssize_t,
}
_TYPES: dict[str, Type] = {
    "double": types.float64,
    "float": types.float32,
    "long": types.int64 if ctypes.sizeof(ctypes.c_long) == 8 else types.int32,
    "Py_ssize_t": types.intp,
}
_POINTER: Any = vars(ctypes)["_CFuncPtr"]  # the class of ctypes function pointers
_SKIP = "int __pyx_skip_dispatch"  # the last parameter of each, which is ignored


class Special:
    """A function of `scipy.special` for certain C types. Instances are interned."""

    def __init__(self, name: str, parameters: tuple[str, ...], result: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "scipy.special"
        self.parameters = parameters
        self.result = result

    @property
    def argument_types(self) -> tuple[Type, ...]:
        """Return the types of the arguments."""
        return tuple(_TYPES[each] for each in self.parameters)

    @property
    def result_type(self) -> Type:
        """Return the type of the result."""
        return _TYPES[self.result]

    @functools.cached_property
    def symbol(self) -> str:
        """Return the symbol of the function in SciPy, which differs from the name for functions of several types."""
        return next(symbol for symbol, function in _symbols().items() if function is self)

    @functools.cached_property
    def pointer(self) -> Any:
        """Return the function as a `ctypes` callable."""
        from numba.extending import get_cython_function_address

        kinds = [C_TYPES[each] for each in (self.result, *self.parameters)]
        return ctypes.CFUNCTYPE(*kinds)(get_cython_function_address(MODULE, self.symbol))

    def __call__(self, *args: Any) -> Any:
        """Call the function in the interpreter."""
        return self.pointer(*args)

    def __repr__(self) -> str:
        return f"{self.__name__}({', '.join(self.parameters)}) -> {self.result}"


@functools.cache
def _interned(name: str, parameters: tuple[str, ...], result: str) -> Special:
    return Special(name, parameters, result)


def special(name: str, *parameters: str, result: str = "double") -> Special:
    """Return the function with this name and these C types."""
    return _interned(name, parameters, result)


@functools.cache
def _symbols() -> dict[str, Special]:
    """Return all functions of SciPy, by symbol."""
    import scipy.special.cython_special as module

    name_of: Any = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    found = {}
    for symbol, capsule in module.__pyx_capi__.items():
        declared = re.fullmatch(r"([\w ]+) \((.*)\)", name_of(capsule).decode())
        if declared is None:
            continue
        *parameters, last = declared[2].split(", ")
        if last == _SKIP and all(each in C_TYPES for each in (declared[1], *parameters)):
            name = re.sub(r"^__pyx_fuse_(\d+_)*\d+", "", symbol)
            found[symbol] = special(name, *parameters, result=declared[1])
    return found


@functools.cache
def _addresses() -> dict[int, Special]:
    from numba.extending import get_cython_function_address

    return {get_cython_function_address(MODULE, symbol): function for symbol, function in _symbols().items()}


def of_pointer(value: Any) -> Special | None:
    """Return the function that a `ctypes` pointer points to; None for other values, and if its types differ."""
    if not isinstance(value, _POINTER) or MODULE not in sys.modules:
        return None
    found = _addresses().get(ctypes.cast(value, ctypes.c_void_p).value or 0)
    if found is None or value.argtypes is None or value.restype is None:
        return None
    wanted = [C_TYPES[each] for each in found.parameters]
    given = list(value.argtypes)
    fits = value.restype is C_TYPES[found.result] and given in (wanted, [*wanted, ctypes.c_int])
    return found if fits else None


def is_of_scipy(value: object) -> bool:
    """Return whether a value is a function of `scipy.special`."""
    namespace = sys.modules.get("scipy.special")
    name = getattr(value, "__name__", None)
    return namespace is not None and isinstance(name, str) and vars(namespace).get(name) is value


def of_function(value: object, argument_types: tuple[Type, ...], result: Type) -> Special | None:
    """Return the implementation of a `scipy.special` function for these types; None for any other value."""
    if not is_of_scipy(value):
        return None
    name = getattr(value, "__name__")  # noqa: B009
    functions = [each for each in _symbols().values() if each.__name__ == name and each.result_type == result]
    functions = [each for each in functions if len(each.parameters) == len(argument_types)]
    for taken in (argument_types, tuple(map(_as_double, argument_types)), (types.float64,) * len(argument_types)):
        for function in functions:
            if function.argument_types == taken:
                return function
    return None


def _as_double(type_: Type) -> Type:
    return types.float64 if isinstance(type_, types.Float) else types.int64
