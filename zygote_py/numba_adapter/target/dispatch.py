"""Dispatchers, and what Numba says of values and types.

typeof(2.0)                                     # types.float64
options_of(dispatcher)                          # {"fastmath": True}
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import typeof_impl

from zygote_py.adjoints import refuse
from zygote_py.base import structures
from zygote_py.ir import Type
from zygote_py.numba_adapter import types as numba_types
from zygote_py.numba_adapter.base import is_from_source, is_plainly_decorated, locals_of, signatures_of, unknown
from zygote_py.numba_adapter.base.internals import (
    CPUDispatcher,
    Dispatcher,
    errors,
    function_type,
    global_compiler_lock,
    numba_typeof,
)
from zygote_py.numba_adapter.linking import number_functions

# Held by all that compile, Numba and this package. A second lock might let two threads wait for each other.
COMPILER_LOCK: Any = global_compiler_lock


def warn(message: str) -> None:
    """Warn as Numba does."""
    warnings.warn(message, errors.NumbaWarning, stacklevel=3)


_overruled: list[bool] = []  # what `DISABLE_JIT` was before it was set aside


def jit_is_disabled() -> bool:
    """Whether `NUMBA_DISABLE_JIT` is set: functions run in the interpreter then."""
    return bool(numba.config.DISABLE_JIT) or any(_overruled)  # type: ignore[attr-defined]


def bounds_are_checked() -> bool:
    """Whether `NUMBA_BOUNDSCHECK` is set: all functions check indices."""
    return bool(numba.config.BOUNDSCHECK == 1)  # type: ignore[attr-defined]


@contextmanager
def jit_enabled() -> Iterator[None]:
    """Enable Numba for a while, for the thread that holds the lock: `jit_is_disabled` still says what the user set."""
    settings: Any = numba.config
    disabled = settings.DISABLE_JIT
    _overruled.append(bool(disabled))
    settings.DISABLE_JIT = 0
    try:
        yield
    finally:
        settings.DISABLE_JIT = disabled
        _overruled.pop()


def typeof(value: object) -> Type:
    """The Numba type of a value. Raises DifferentiationError if Numba has none for it."""
    try:
        return numba_typeof(value)  # type: ignore[no-any-return]
    except (ValueError, errors.NumbaError):
        what, hint = unknown(value)
        raise refuse(f"{what} is not supported", None, hint) from None


number_functions()

_typeof_others = typeof_impl.dispatch(object)
_typeof_classes = typeof_impl.dispatch(type)


@typeof_impl.register(object)
def _typeof_object(value: Any, context: object) -> Any:
    """Return the type of any object. Nothing of what structures need is imported before the first is met."""
    if not structures.is_structure(type(value)):
        return _typeof_others(value, context)
    return numba_types.typeof_structure(value, context)


@typeof_impl.register(type)
def _typeof_class(value: Any, context: object) -> Any:
    return numba_types.ConstructorType(value) if structures.is_structure(value) else _typeof_classes(value, context)


_PLAIN = frozenset({float, int, bool, str, complex, type(None), np.ndarray})


def is_plain(value: object) -> bool:
    """Whether a value is a number, an array or a text: nothing that has to be wrapped, and no structure."""
    return type(value) in _PLAIN or isinstance(value, np.generic)


class CompileTimeType(types.Type):
    """The type of an object of which only attributes are read, which are known while compiling."""


_COMPILE_TIME = (
    CompileTimeType,
    types.Callable,
    types.Module,
    types.DType,
    types.EnumClass,
    types.ExceptionInstance,
    types.IteratorType,
    types.Pair,
    types.MakeFunctionLiteral,
    types.TypeRef,
)


def is_compile_time(type: Type) -> bool:
    """Whether values of this type are known while compiling, as functions, modules and the state of loops are."""
    return not isinstance(type, types.FunctionType) and (isinstance(type, _COMPILE_TIME) or type == types.code_type)


def object_of(type: Type) -> object:
    """The Python object that is the only value of a compile-time type; None if there is no such object."""
    match type:
        case types.Dispatcher():
            return type.dispatcher
        case types.Module():
            return type.pymod
        case types.NumberClass():
            return getattr(np, type.instance_type.name, None) if type.instance_type != types.boolean else bool
        case types.DType():
            return np.dtype(str(type.dtype))
        case types.NamedTupleClass() | types.EnumClass():
            return type.instance_class
        case types.ExceptionClass():
            return type.exc_class
        case types.Function():
            return type.typing_key
        case types.TypeRef() if type.instance_type is types.ListType:
            return numba.typed.List
        case _:
            return None


def is_dispatcher(value: object) -> bool:
    """Whether `value` is a function that was decorated with `numba.njit`."""
    return isinstance(value, Dispatcher)


def is_plain_dispatcher(value: Any) -> bool:
    """Whether a decorated function is compiled from its Python function, and from nothing else."""
    return type(value) is CPUDispatcher and is_from_source(value)


def arguments_of_decorator(value: Any) -> dict[str, object]:
    """Return the arguments of `numba.njit` besides the function, for a decorated one."""
    found = options_of(value)
    if is_from_source(value) and not is_plainly_decorated(value):
        signatures = signatures_of(value)
        found |= {"locals": dict(locals_of(value))}
        found |= {} if signatures is None else {"signature_or_function": list(signatures)}
    return found


def options_of(value: Any) -> dict[str, object]:
    """The Numba options that a dispatcher was made with, `nopython` apart; none for a plain function."""
    options: dict[str, object] = value.targetoptions if isinstance(value, Dispatcher) else {}
    return {name: option for name, option in options.items() if name != "nopython" and option is not None}


def register_as_dispatcher(cls: type, getter: Callable[[Any], Any]) -> None:
    """Make the objects of a class callable from compiled code, each as the dispatcher that `getter` gives for it."""

    @typeof_impl.register(cls)
    def type_of_object(value: object, context: object) -> Type:
        if cls in _in_kernels and type(context).__module__.startswith("numba.cuda."):
            kind: Type = _in_kernels[cls](value)._numba_type_
            return kind
        dispatcher = getter(value)
        _made_for[dispatcher] = weakref.ref(value)
        return types.Dispatcher(dispatcher)

    _made_classes[cls] = getter


def call_in_kernels(cls: type, getter: Callable[[Any], Any]) -> None:
    """Let kernels for CUDA call the objects of such a class, each as the device function that `getter` gives for it."""
    _in_kernels[cls] = getter


_in_kernels: dict[type, Callable[[Any], Any]] = {}
_made_classes: dict[type, Callable[[Any], Any]] = {}
_made_for: weakref.WeakKeyDictionary[Any, Callable[[], Any]] = weakref.WeakKeyDictionary()


def is_made(value: object) -> bool:
    """Whether a value is an object of a class that was registered as a dispatcher."""
    return isinstance(value, tuple(_made_classes))


def made_for(dispatcher: object) -> Any:
    """The object whose dispatcher in compiled code this is; None for any other."""
    found = _made_for.get(dispatcher) if isinstance(dispatcher, Dispatcher) else None
    return None if found is None else found()


def _address_of(find: Callable[[Any, Any], int], function: Any, signature: Any) -> int:
    """Return the address that Numba finds for a function that is a value. Objects of such classes are taken, too."""
    getter = next((getter for cls, getter in _made_classes.items() if isinstance(function, cls)), None)
    return find(function if getter is None else getter(function), signature)


_values: Any = function_type  # compiled code asks it, by these names
_values._get_wrapper_address = functools.partial(_address_of, _values._get_wrapper_address)
_values._get_jit_address = functools.partial(_address_of, _values._get_jit_address)
