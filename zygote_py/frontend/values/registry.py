"""Functions that do not become instructions of the same name: those with a lowering, and those with an overload.

    @lowers(np.full)
    def full(at, type_, shape, fill_value, dtype=None):     # the type of the result, then the function's parameters
        ...                                                 # None: the call becomes an instruction

A lowering emits instructions. An overload, as of Numba's `overload`, is a template that returns a Python function for
types of arguments, whose body replaces the call. `zygote_py.numpy_functions` registers both; the front end looks them
up here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numba import types

from zygote_py.frontend.values.bundles import LoweredValue, is_dict, is_list, plain
from zygote_py.frontend.values.emitter import Emitter
from zygote_py.ir import Const, Type, ops

Lowering = TypeVar("Lowering", bound=Callable[..., LoweredValue | None])

_LOWERINGS: dict[object, Callable[..., LoweredValue | None]] = {}
_OVERLOADS: dict[Callable[..., object], list[Callable[..., object]]] = {}
# Whose methods are those of values of a type.
_CLASSES: dict[type, type] = {
    types.UnicodeType: str,
    types.Float: np.float64,
    types.Integer: np.int64,
    types.Complex: np.complex128,
    types.NumPyRandomGeneratorType: np.random.Generator,
}


def lowers(*functions: object) -> Callable[[Lowering], Lowering]:
    """Register the lowering of calls of some functions."""

    def register(lowering: Lowering) -> Lowering:
        _LOWERINGS.update(dict.fromkeys(functions, lowering))
        return lowering

    return register


def lowered(
    at: Emitter, callee: object, args: Sequence[LoweredValue], keywords: Mapping[str, LoweredValue], type_: Type
) -> LoweredValue | None:
    """Return the value of a call that has a lowering; a keyword that it does not have stands for the first argument."""
    lowering = _LOWERINGS.get(ops.properties(callee).function)  # not of `callee`, which may have no hash
    if lowering is None:
        return None
    signature = inspect.signature(lowering)
    first = next(iter(list(signature.parameters)[2:]), "")
    named = {name if name in signature.parameters else first: arg for name, arg in keywords.items()}
    try:
        bound = signature.bind(at, plain(type_), *args, **named)
    except TypeError:
        return None
    return lowering(*bound.args, **bound.kwargs)


def overload(function: Callable[..., object], template: Callable[..., object]) -> None:
    """Register a template of a function: the operators have one for each kind of values."""
    _OVERLOADS.setdefault(function, []).append(template)


def implemented() -> Mapping[Callable[..., object], list[Callable[..., object]]]:
    """Return all functions that have templates, with these."""
    return MappingProxyType(_OVERLOADS)


def implementation_of(
    function: Callable[..., object], arguments: Sequence[object], keywords: Mapping[str, object]
) -> Callable[..., object] | None:
    """Return the function that replaces a call with arguments of these types; None if the call stays."""
    given = [_given(each) for each in arguments]
    named = {name: _given(each) for name, each in keywords.items()}
    for template in _OVERLOADS.get(function, ()):
        found: Any = template(*given, **named)
        if found is not None:
            return found  # type: ignore[no-any-return]
    return None


def _given(type: object) -> object:
    """Return the value of a default that a user's function passes on."""
    return type.value if isinstance(type, types.Omitted) else type


def method_of(type: Type, name: str) -> Callable[..., object] | None:
    """Return the function that a method of a value of this type is; None if there is none.

    A method of an array is NumPy's function of its name, unless it is registered itself, as `np.ndarray.sort` is.
    """
    own = plain(type)
    if is_list(own) or is_dict(own):
        return getattr(list if is_list(own) else dict, name, None)
    if isinstance(own, types.Number) and name == "conjugate":
        return np.conjugate
    if isinstance(own, types.Array):
        method: Callable[..., object] | None = getattr(np.ndarray, name, None)
        is_registered = method in _LOWERINGS or method in _OVERLOADS
        return method if is_registered else getattr(np, name, method)
    return next((getattr(cls, name, None) for kind, cls in _CLASSES.items() if isinstance(own, kind)), None)


def by_position(
    callee: object, args: list[LoweredValue], keywords: dict[str, LoweredValue]
) -> tuple[list[LoweredValue], dict[str, LoweredValue]]:
    """Return the arguments of a call with keyword arguments at their positions, if its operation has a signature.

    `np.where(condition=c, x=a, y=b)` becomes `np.where(c, a, b)`, `x.clip(a_max=1.0)` becomes `np.clip(x, None, 1.0)`.
    """
    signature = ops.properties(callee).signature
    parameters = {} if signature is None else dict(signature.parameters)
    if len(args) > len(parameters) or not keywords.keys() <= parameters.keys():
        return args, keywords
    given = dict(zip(parameters, args, strict=False)) | keywords
    if isinstance(getattr(given.get("out"), "type", None), types.NoneType):
        del given["out"]
    placed: list[LoweredValue] = []
    for name, parameter in reversed(parameters.items()):
        default = parameter.default
        if name in given:
            placed.insert(0, given[name])
        elif placed or (default is None and name != "out"):
            if default is parameter.empty:
                return args, keywords
            type_ = types.none if default is None else types.int64
            placed.insert(0, LoweredValue(type_, (Const(default, type_),)))
    return placed, {}


def is_differentiable(type: object) -> bool:
    """Return whether a value of this type may carry a derivative: a real or complex number, or a container of such."""
    match type:
        case types.Float() | types.Complex():
            return True
        case types.Array() | types.List() | types.ListType() | types.Sequence():
            return is_differentiable(getattr(type, "dtype", None))
        case types.DictType():
            return is_differentiable(type.value_type)
        case types.BaseTuple():
            parts: Sequence[object] = getattr(type, "types", ())
            return any(map(is_differentiable, parts))
        case types.Optional():
            return is_differentiable(type.type)
        case _:
            return False
