"""Python functions that do what other callables do: partials, bound methods, objects with `__call__`, ufuncs.

    as_function(functools.partial(f, w))        def f(x): return function(w, x)         which captures w
    as_function(model.energy)                   def energy(x): return function(self, x)
    as_function(np.hypot)                       def hypot(x1, x2): return function(x1, x2)

What is bound is a captured variable of that function, under the name of the parameter that it is bound to.
"""

from __future__ import annotations

import enum
import functools
import inspect
import random
import types as python_types
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from zygote_py.base import OURS, arguments_text, captured, free, given_for, parameters_text, structures
from zygote_py.ir import identifier
from zygote_py.numba_adapter.base import known_type
from zygote_py.numba_adapter.base.internals import Dispatcher
from zygote_py.numba_adapter.sources.python_sources import has_source

_BUILT_IN = (python_types.BuiltinFunctionType, np.ufunc)
_ARRAY_FUNCTION: type = type(np.sum)
_OTHERS = (type, tuple, list, dict, set, str, int, float, enum.Enum, np.ndarray, np.generic, functools.partial)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def as_function(value: Any) -> Any:
    """Return a Python function to differentiate in the place of a callable; anything else as it is."""
    if has_source(value) or given_for(value) is not None:
        return value
    if known_type(value) is not None and (isinstance(value, _BUILT_IN) or _is_of_numpy(value)):
        return _named_after(value, _parameters(value), {"function": value}, "function")
    if isinstance(value, functools.partial):
        return bound(value.func, value.args, value.keywords)
    return as_python(value)


def as_python(value: Any) -> Any:
    """Return a Python function that does what a partial, a method or an object with `__call__` does.

    Anything else is returned as it is. The keywords of a partial are the defaults of the function.
    """
    if isinstance(value, functools.partial):
        return bound(value.func, value.args, {}, value.keywords)
    # Numba may know a method itself: one in another language, such as np.random.shuffle, or one of Python's generator.
    if (
        isinstance(value, python_types.MethodType)
        and isinstance(value.__func__, python_types.FunctionType | Dispatcher)
        and not isinstance(value.__self__, random.Random)
    ):
        return bound(value.__func__, (value.__self__,))
    call = called_by(value)
    return value if call is None else bound(call, (value,))


def called_by(value: Any) -> Any:
    """Return the function that calls of an object with a `__call__` of its own run; None for anything else."""
    found = structures.member(type(value), "__call__") if is_plain_object(value) else None
    return found if isinstance(found, python_types.FunctionType | Dispatcher) else None


def bound_by(value: Any) -> tuple[object, ...]:
    """Return what the function of a callable was made of and may be changed in place: by identity, all of it."""
    if isinstance(value, functools.partial):
        return (*bound_by(value.func), value.func, *value.args, *value.keywords, *value.keywords.values())
    call = called_by(value)
    return () if call is None else (type(value), call)


def is_plain_object(value: Any) -> bool:
    """Return whether this is an object of a class written in Python that Numba has no type for."""
    cls = type(value)
    is_written = bool(cls.__flags__ & _HEAP_TYPE) and isinstance(vars(cls).get("__module__"), str)
    if not (is_written or cls is python_types.SimpleNamespace) or isinstance(value, _OTHERS):
        return False
    is_known = cls.__module__.partition(".")[0] in ("zygote_py", "numba") or structures.is_structure(cls)
    return not is_known and known_type(value) is None


def bound(
    function: Any,
    args: Sequence[object],
    keywords: Mapping[str, object] = MappingProxyType({}),
    defaults: Mapping[str, object] = MappingProxyType({}),
) -> Callable[..., Any]:
    """Return a function of the parameters that are left where `args` and `keywords` are bound, which it captures.

    `defaults` are new defaults, which make the parameters that follow them keyword-only, as `functools.partial` does.
    """
    parameters = _parameters(function)
    places = [each.name for each in parameters if each.kind in _BY_PLACE][: len(args)]
    names = [*places, *(f"argument_{number}" for number in range(len(places), len(args)))]
    values = {**dict(zip(names, args, strict=True)), **keywords}
    called = free("function", [*values, *(each.name for each in parameters)])
    left = []
    is_after = False
    for each in parameters:
        is_after = is_after or each.name in keywords or each.name in defaults
        kind = each.kind
        if kind in _BY_PLACE:
            kind = each.KEYWORD_ONLY if is_after else each.POSITIONAL_OR_KEYWORD
        if each.name not in values and kind is not each.VAR_KEYWORD and not (is_after and kind is each.VAR_POSITIONAL):
            left.append(each.replace(kind=kind, default=defaults.get(each.name, each.default)))
    passed = [each for each in parameters if each.name in values or any(each.name == one.name for one in left)]
    values = {**values, called: function}
    return _named_after(function, left, values, called, passed, names[len(places) :])


def _named_after(
    function: Any,
    parameters: Sequence[inspect.Parameter],
    values: Mapping[str, object],
    called: str,
    passed: Sequence[inspect.Parameter] | None = None,
    star: Sequence[str] = (),
) -> Callable[..., Any]:
    """Return a function of the name of another, which calls it; `star` are captured variables among its `*args`."""
    own = getattr(function, "__name__", "function")
    passed = parameters if passed is None else passed
    name = free(identifier(own, "function"), [*values, *(each.name for each in parameters)])
    texts: list[str] = []
    for each in passed:
        if each.kind is each.VAR_POSITIONAL:
            texts += star
        texts.append(arguments_text([each]))
    lines = [f"def {name}({parameters_text(parameters)}):", f"    return {called}({', '.join(texts)})"]
    known: dict[str, Any] = {OURS: True}
    made: Any = captured(lines, values, module=__name__, **known)
    defaults = {each.name: each.default for each in parameters if each.default is not each.empty}
    by_name = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
    made.__defaults__ = tuple(value for key, value in defaults.items() if key not in by_name) or None
    made.__kwdefaults__ = {key: value for key, value in defaults.items() if key in by_name} or None
    made.__name__ = made.__qualname__ = own
    return made  # type: ignore[no-any-return]


def _parameters(function: Any) -> list[inspect.Parameter]:
    """Return the parameters of a callable: `*args` for a function in another language that does not tell them."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if isinstance(function, np.ufunc):
        names = ["x"] if function.nin == 1 else [f"x{number}" for number in range(1, function.nin + 1)]
        return [inspect.Parameter(name, kind) for name in names]
    if not isinstance(function, python_types.BuiltinFunctionType) and not _is_of_numpy(function):
        return list(inspect.signature(function).parameters.values())
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        found = []
    if found and all(each.kind is each.POSITIONAL_ONLY and each.default is each.empty for each in found):
        return [each.replace(kind=kind) for each in found]
    return [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]


def _is_of_numpy(value: Any) -> bool:
    """Return whether this is a function of NumPy that Numba implements, and does not compile the source of."""
    return isinstance(value, _ARRAY_FUNCTION) and (value.__module__ or "").partition(".")[0] == "numpy"
