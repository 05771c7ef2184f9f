"""Functions among the arguments of a compiled function: each has a type of its own, and is known while compiling.

    gradient(apply, wrt="x")(math.sin, 1.0)         apply is compiled for FunctionValueType(sin), float64

Numba takes decorated functions only, and none from a tuple with several of them. So Python functions, decorated ones,
those of `math` and NumPy, `functools.partial`s and methods are wrapped before a call (`with_functions`), wherever they
stand in tuples and structures. In a session they have types of callees. Two functions
of the same code share what is compiled, if all that they capture is constant and the same.
"""

from __future__ import annotations

import functools
import inspect
import types as python_types
from collections import OrderedDict
from typing import Any

import numpy as np
from numba import types
from numba.extending import NativeValue, typeof_impl, unbox

from zygote_py.base import Ignored, given_for, structures
from zygote_py.ir import Type, leaf_types
from zygote_py.numba_adapter.base import is_as_undecorated, is_from_source
from zygote_py.numba_adapter.base.internals import Dispatcher
from zygote_py.numba_adapter.sources.python_sources import WITH_SOURCE
from zygote_py.numba_adapter.types.callables import CallableType
from zygote_py.numba_adapter.types.handles import constant_key
from zygote_py.numba_adapter.types.python_functions import as_python, called_by

_FUNCTIONS = (
    python_types.FunctionType,
    python_types.BuiltinFunctionType,
    python_types.MethodType,
    functools.partial,
    np.ufunc,
    Dispatcher,
    Ignored,
    *WITH_SOURCE,
)
_MOST_KEPT = 512


class FunctionValue:
    """A function as an argument; calling it calls the function."""

    def __init__(self, func: Any) -> None:
        self.func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the function."""
        return self.func(*args, **kwargs)


class FunctionValueType(CallableType, types.Opaque):
    """The type of a `FunctionValue`: each function has its own."""

    def __init__(self, func: Any) -> None:
        self.typing_key = func
        super().__init__(f"function {getattr(func, '__qualname__', func)} at {id(func)}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: object) -> Any:
        """Return None: calls are typed by this package only."""
        return None


def is_function(value: object) -> bool:
    """Whether a value is a function that is wrapped when it is passed."""
    return isinstance(value, _FUNCTIONS) and not (isinstance(value, Dispatcher) and not is_from_source(value))


def with_functions(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call, functions wrapped; the same tuple if there are none."""
    made = tuple(arg if type(arg) in _PLAIN else _wrapped(arg) for arg in args)
    return args if all(new is old for new, old in zip(made, args, strict=True)) else made


_PLAIN = frozenset({float, int, np.ndarray, bool, str, type(None)})


def _wrapped(value: Any) -> Any:
    if is_function(value):
        return FunctionValue(_representative(value))
    parts = structures.parts(value)
    if parts is None:
        return value if called_by(value) is None else FunctionValue(value)
    if isinstance(value, tuple):
        made = with_functions(parts)
    else:  # a dataclass knows functions; what else there is it takes wrapped
        made = tuple(each if inspect.isfunction(each) else _wrapped(each) for each in parts)
    is_same = all(new is old for new, old in zip(made, parts, strict=True))
    return value if is_same else structures.with_parts(value, made)


_known: OrderedDict[object, Any] = OrderedDict()  # functions by what they are made of, the last used at the end


def _representative(value: Any) -> Any:
    """The function that stands for all that do the same: lambdas made again at each call are compiled once."""
    if isinstance(value, Dispatcher) and is_as_undecorated(value):
        value = value.py_func
    key = _key(value)
    if key is None or given_for(value) is not None:
        return value
    found = _known.get(key)
    # its captured variables may have changed since
    if found is None or _key(found[0]) != key or given_for(found[0]) is not None:
        found = _known[key] = value, as_python(value)
        if len(_known) > _MOST_KEPT:
            _known.popitem(last=False)
    _known.move_to_end(key)
    return found[1]


def _key(value: Any) -> object:
    """Return a key of the content of a function; None if it captures variables that are read at each call."""
    if isinstance(value, python_types.MethodType):
        return id(value.__self__), id(value.__func__)
    if isinstance(value, functools.partial):
        given = (*value.args, *value.keywords.values())
        if all(isinstance(each, float | int | str | None) for each in given):
            return id(value.func), tuple(value.keywords), len(value.args), constant_key(given)
    if not isinstance(value, python_types.FunctionType):
        return id(value)
    held = []
    for cell in value.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            return None
        if isinstance(content, int | str | None):
            held.append(constant_key(content))
        elif isinstance(content, python_types.FunctionType | python_types.BuiltinFunctionType | np.ufunc | Dispatcher):
            held.append(id(content))
        else:
            return None
    defaults = value.__defaults__ or (), tuple((value.__kwdefaults__ or {}).items())
    try:
        key = value.__code__, id(value.__globals__), tuple(held), constant_key(defaults)
        hash(key)  # an array may be among the defaults
    except TypeError:
        return None
    return key


def as_captured_python(value: Any) -> Any:
    """Return the same for a captured value: the same function at each call, with the same captured variables."""
    wrapped = isinstance(value, functools.partial | python_types.MethodType)
    return _representative(value) if wrapped and given_for(value) is None else value


# ---------------------------------------------------------------------------------------------------------- their types


@typeof_impl.register(FunctionValue)
def _typeof_function_value(value: FunctionValue, context: object) -> Type:
    return FunctionValueType(value.func)


@unbox(FunctionValueType)  # type: ignore[untyped-decorator]
def _unbox(typ: Any, obj: Any, c: Any) -> Any:
    return NativeValue(c.context.get_dummy_value())


def takes_functions(argument_types: tuple[Type, ...]) -> bool:
    """Whether there are functions among arguments of these types, or in a tuple or structure among them."""
    return any(isinstance(leaf, types.Callable) for each in argument_types for leaf in leaf_types(each))


def holds_functions(value: Any) -> bool:
    """Whether a value is, or has in it, functions that are to be wrapped."""
    return type(value) not in _PLAIN and _wrapped(value) is not value
