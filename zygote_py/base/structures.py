"""Frozen dataclasses as structures: tuples with named fields, and methods. Trees of values.

    @dataclass(frozen=True)
    class Dense:
        W: np.ndarray
        b: np.ndarray

        def __call__(self, x):
            return np.tanh(self.W @ x + self.b)

    gradient(lambda model, x: np.sum(model(x)), wrt="model")(Dense(W, b), x)      # Dense(W=..., b=...)

An object is determined by its fields, so that a gradient is an object of the same class. It is made without running
the class's `__init__` and `__post_init__`, whose checks of parameters need not hold for gradients. This module does not
use Numba (see `zygote_py.numba_adapter.types.dataclasses`), and does not change classes.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

import numpy as np


def is_structure(cls: object) -> bool:
    """Return whether this is a frozen dataclass."""
    return isinstance(cls, type) and dataclasses.is_dataclass(cls) and _is_frozen(cls)


def is_open(cls: object) -> bool:
    """Return whether this is a dataclass whose fields may be assigned to."""
    return isinstance(cls, type) and dataclasses.is_dataclass(cls) and not _is_frozen(cls)


def _is_frozen(cls: Any) -> bool:
    return bool(cls.__dataclass_params__.frozen) if "__dataclass_params__" in vars(cls) else False


def field_names(cls: Any) -> tuple[str, ...]:
    """Return the names of the fields, in their order."""
    return _field_names(cls)


@functools.lru_cache(maxsize=1024)
def _field_names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def fields_of(cls: Any) -> tuple[str, ...] | None:
    """Return the names of the fields of a class of NamedTuples or frozen dataclasses, or of the members of an `Enum`.

    Returns None for any other class.
    """
    if issubclass(cls, enum.Enum):
        return tuple(cls.__members__)
    if issubclass(cls, tuple):
        return getattr(cls, "_fields", None)
    return field_names(cls) if is_structure(cls) else None


def new(cls: type, values: tuple[object, ...]) -> Any:
    """Return an object of a dataclass with these values of its fields, without running any code of the class."""
    made: Any = object.__new__(cls)
    for name, value in zip(field_names(cls), values, strict=True):
        object.__setattr__(made, name, value)
    return made


def parts(value: Any) -> tuple[Any, ...] | None:
    """Return the components of a tuple, a NamedTuple or a frozen dataclass; None for any other value."""
    if isinstance(value, tuple):
        return value
    return tuple(getattr(value, name) for name in field_names(type(value))) if is_structure(type(value)) else None


def with_parts(value: Any, parts: Iterable[Any]) -> Any:
    """Return the tuple, NamedTuple or dataclass like `value` that holds other parts."""
    return made(type(value), tuple(parts))


def made(cls: Any, parts: tuple[Any, ...]) -> Any:
    """Return the tuple, NamedTuple or dataclass of a class that holds these parts."""
    if not issubclass(cls, tuple):
        return new(cls, parts)
    return cls(*parts) if hasattr(cls, "_fields") else parts


def item_names(value: Any) -> list[str]:
    """Return the suffixes that access the components of a structure: `[0]` for an item of a tuple, `.x` for a field."""
    fields = getattr(value, "_fields", None) if isinstance(value, tuple) else field_names(type(value))
    return [f"[{number}]" for number in range(len(value))] if fields is None else [f".{name}" for name in fields]


def leaves(path: str, value: Any, *others: Any) -> Iterator[tuple[Any, ...]]:
    """Yield `(path, leaf, *others)` for each leaf of a structure, depth first.

    `others` have the same structure; None stands for one that contains None everywhere.
    """
    held = parts(value)
    if held is None:
        yield path, value, *others
        return
    for name, *each in zip(item_names(value), held, *_inside(others, len(held)), strict=True):
        yield from leaves(path + name, *each)


def arrays_in(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each array of a structure with the path to it, as messages name it."""
    return ((name, leaf) for name, leaf in leaves(path, value) if isinstance(leaf, np.ndarray))


def map_leaves(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """Return the structure `value` with `function(leaf, *others)` in place of each leaf; see `leaves`."""
    held = parts(value)
    if held is None:
        return function(value, *others)
    pairs = zip(held, *_inside(others, len(held)), strict=True)
    return with_parts(value, [map_leaves(function, *each) for each in pairs])


def _inside(others: Iterable[Any], count: int) -> list[tuple[Any, ...]]:
    """Return the components of structures that have `count` of them."""
    return [(None,) * count if other is None else parts(other) or () for other in others]


def only_assigns(cls: Any) -> bool:
    """Return whether the constructor takes the fields in their order and only assigns them."""
    return all(field.init and not field.kw_only for field in dataclasses.fields(cls)) and why_not_constructed(cls) == ""


def why_not_constructed(cls: Any) -> str:
    """Return what makes the constructor do more than assign the fields; an empty string if nothing does."""
    if hasattr(cls, "__post_init__"):
        return "its `__post_init__`"
    if not cls.__dataclass_params__.init or "__init__" not in vars(cls):
        return "its `__init__`"
    if cls.__new__ is not object.__new__:
        return "its `__new__`"
    return "" if all(field.init for field in dataclasses.fields(cls)) else "a field with `init=False`"


def constructor_signature(cls: Any) -> inspect.Signature:
    """Return the parameters of the constructor; those whose default comes from a `default_factory` have none."""
    parameters = []
    for name, parameter in inspect.signature(cls).parameters.items():
        field = cls.__dataclass_fields__[name]
        if field.default_factory is not dataclasses.MISSING:
            parameter = parameter.replace(default=parameter.empty)
        parameters.append(parameter)
    return inspect.Signature(parameters)


def member(cls: type, name: str) -> object:
    """Return the member of a class as it was defined; None if there is none."""
    return inspect.getattr_static(cls, name, None)


def attribute(value: object, name: str) -> object:
    """Return an attribute of an object: a method or a property as it was defined, anything else as it is read."""
    found = inspect.getattr_static(value, name, None)
    return found if isinstance(found, _CALLED) or hasattr(found, "py_func") else getattr(value, name)


_CALLED = (FunctionType, staticmethod, classmethod, property)


def is_importable(cls: type) -> bool:
    """Return whether a class can be imported by its name from its module."""
    module = sys.modules.get(cls.__module__)
    return cls.__module__ != "__main__" and getattr(module, cls.__qualname__, None) is cls


def is_current(cls: type) -> bool:
    """Return whether a class is the one of its name in its module, which may be the main program, or in a class there.

    It is not if it was made in a function, or if the module or the cell of the notebook that defines it ran again.
    """
    return found_by_name(cls.__module__, cls.__qualname__) is cls


def found_by_name(module: str, name: str) -> object:
    """Return what has a name in a module that is loaded; None if there is none."""
    found: object = sys.modules.get(module)
    for each in name.split("."):
        found = getattr(found, each, None)
    return found
