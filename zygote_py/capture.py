"""Captured variables: what a function reads that is neither a parameter nor its own.

    SCALE = 2.0
    def f(x):                   Capture("SCALE", "global", read, key, float64, 2.0)
        return SCALE * x

Which of them become parameters, Numba's adapter says; who calls reads them. What a function is made of, its code and
its defaults, may be assigned to as a variable is (`f.__code__ = g.__code__`), and so may what a class defines: it is
captured as well, by `parts_of_function` and `member_of_class`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from zygote_py import structures
from zygote_py.ir.core import Type

# Modules whose floats are constants of nature, not variables.
CONSTANT_MODULES = frozenset({"math", "cmath", "numpy", "scipy"})


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """A captured variable: `kind` is "global", "freevar", "function" or "class", `read` gives what it holds now.

    The `key` says which variable it is: functions of several modules may capture variables of the same name. `source`
    is the name that it has in the function `owner`; its parameter may have to have another `name`.
    """

    name: str
    kind: str
    read: Callable[[], object]
    key: Any  # a tuple that starts with the identity of where it is
    type: Type | None = None  # None for those that are frozen into the compiled code
    value: object = None  # what it was when the function was compiled
    source: str = ""
    owner: str = ""


PARTS = ("__code__", "__defaults__", "__kwdefaults__")  # of a function, that may be assigned to


def parts_of_function(func: FunctionType) -> Iterator[Capture]:
    """What a Python function is made of, and each default of a parameter that is given by name only."""
    for name in PARTS:
        yield _part(func, name, partial(getattr, func, name))
    for name in func.__kwdefaults__ or ():  # which are in a dictionary that may be changed
        yield _part(func, name, partial(default_by_name, func, name))


def default_by_name(func: FunctionType, name: str) -> object:
    """The default of a parameter that is given by name only. Raises KeyError if there is none."""
    return (func.__kwdefaults__ or {})[name]


def member_of_class(cls: type, name: str) -> Capture:
    """What a class holds under a name."""
    read = partial(structures.member, cls, name)
    return Capture(name, "class", read, (id(cls), name), None, read(), name, cls.__name__)


def _part(func: FunctionType, name: str, read: Callable[[], object]) -> Capture:
    return Capture(name, "function", read, (id(func), name), None, read(), name, func.__name__)


def varies(value: object, numbers: bool, is_passed: Callable[[object], bool] = lambda value: False) -> bool:
    """Return whether a captured value is read at each call; floats in structures are if `numbers` vary.

    What tuples are passed besides those with arrays `is_passed` says.
    """
    if numbers and isinstance(value, float | complex | np.floating | np.complexfloating):
        return True
    parts = structures.parts(value)
    if parts is None:
        return isinstance(value, float | np.floating | np.ndarray)
    if numbers and any(varies(each, True, is_passed) for each in parts):
        return True
    if isinstance(value, tuple):
        if is_passed(value):
            return True
        parts = tuple(each for each in parts if not isinstance(each, float))
    return any(varies(each, False, is_passed) for each in parts)


def are_unchanged(readers: Iterable[Callable[[], object]], values: Iterable[object]) -> bool:
    """Whether captured variables hold the objects that they held."""
    try:
        return all(map(operator.is_, map(operator.call, readers), values))
    except (KeyError, ValueError, AttributeError):  # one is not there any more
        return False
