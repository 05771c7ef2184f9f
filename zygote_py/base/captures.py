"""Captured variables: those that a function reads and that are neither its parameters nor its local variables.

    SCALE = 2.0
    def f(x):                   Capture("SCALE", "global", read, key, float64, 2.0)
        return SCALE * x

The adapter to Numba decides which of them become parameters; the caller reads them. The parts of a function, its code
and its defaults, can be assigned to like variables (`f.__code__ = g.__code__`), and so can the attributes of classes
and of other objects: they are captured as well (`parts_of_function`, `member_of_class`, `attribute_of_object`).
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import operator
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from zygote_py.base import structures
from zygote_py.ir import Type
from zygote_py.ir.lazy_dataclass import dataclass

# Modules whose floats are constants of nature, not variables.
CONSTANT_MODULES = frozenset({"math", "cmath", "numpy", "scipy"})

# The globals of a function that this package wrote have this name: its captured values need not be observed.
OURS = "__written_by_zygote_py__"
# An attribute that only functions made by this package of the user's code have: their code is not assigned to.
MADE = "__made_by_zygote_py__"


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """A captured variable: `kind` says where it is, `read` returns its current value.

    Kinds are "global", "freevar", "function", "class" and "object".

    The `key` identifies the variable: functions of several modules may capture variables of the same name. `source` is
    its name in the function `owner`; the `name` of its parameter may differ.
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


def is_observed(func: Any) -> bool:
    """Return whether the captured variables of a function may change: not if the function is of this package."""
    namespace = func.__globals__
    return OURS not in namespace and not (namespace.get("__name__") or "").startswith(_LIBRARY)


_LIBRARY = ("zygote_py.numpy_functions.", "zygote_py.api.")


def parts_of_function(func: FunctionType) -> Iterator[Capture]:
    """Return the captures of the code and the defaults of a Python function, and of each keyword-only default."""
    for name in PARTS:
        yield _part(func, name, partial(getattr, func, name))
    for name in func.__kwdefaults__ or ():  # which are in a dictionary that may be changed
        yield _part(func, name, partial(default_by_name, func, name))


def defaults_of(func: FunctionType) -> dict[str, object]:
    """Return the defaults of the parameters of a Python function, by name."""
    given = func.__defaults__ or ()
    names = func.__code__.co_varnames[: func.__code__.co_argcount]
    return {**dict(zip(names[len(names) - len(given) :], given, strict=True)), **(func.__kwdefaults__ or {})}


def default_by_name(func: FunctionType, name: str) -> object:
    """Return the default of a parameter. Raises KeyError if there is none."""
    return defaults_of(func)[name]


def is_default_read(default: object) -> bool:
    """Return whether a default of a called function is read at each call: numbers cannot change, arrays can."""
    return not isinstance(default, float | np.floating) and varies(default, False)


def content_of_default(func: FunctionType, name: str) -> Capture:
    """Return the capture of what is in a default that may change in place: the same object while nothing changes."""

    held = content_of(default_by_name(func, name))

    def read() -> object:
        found = content_of(default_by_name(func, name))
        return held if found == held else found

    return Capture(name, "function", read, (id(func), name, "content"), None, held, name, func.__name__)


def content_of(value: object) -> object:
    """Return what is equal as long as a captured value has not changed: arrays, and structures with some, in place."""
    if isinstance(value, np.ndarray | np.void):
        return value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).digest()
    if isinstance(value, float | complex | np.generic):
        return type(value), repr(value)  # zeros have signs
    parts = structures.parts(value)
    return value if parts is None else (type(value), *map(content_of, parts))


def member_of_class(cls: type, name: str) -> Capture:
    """Return an attribute of a class."""
    read = partial(structures.member, cls, name)
    return Capture(name, "class", read, (id(cls), name), None, read(), name, cls.__name__)


def attribute_of_object(value: object, name: str) -> Capture:
    """Return an attribute of an object of a class that Numba does not know."""
    read = partial(structures.attribute, value, name)
    return Capture(name, "object", read, (id(value), name), None, read(), name, type(value).__name__)


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
        return isinstance(value, float | np.floating | np.ndarray | np.void | np.random.Generator)
    if numbers and any(varies(each, True, is_passed) for each in parts):
        return True
    if isinstance(value, tuple):
        if is_passed(value):
            return True
        parts = tuple(each for each in parts if not isinstance(each, float))
    return any(varies(each, False, is_passed) for each in parts)


def named_in(namespace: dict[str, Any], name: str) -> object:
    """Return what a name means in a namespace: a global variable, or what Python has under the name."""
    return namespace[name] if name in namespace else vars(builtins)[name]


@lru_cache(maxsize=1024)
def global_names(code: CodeType) -> tuple[str, ...]:
    """Return the global names that a function and its inner functions read."""
    names = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(global_names(constant))
    return tuple(sorted(names))


def variable_of(read: Callable[[], object]) -> tuple[Any, str] | None:
    """Return where a captured variable is that `read` reads, and its name there; None of what else is called."""
    return read.args if isinstance(read, partial) and len(read.args) == 2 else None


def are_unchanged(readers: Iterable[Callable[[], object]], values: Iterable[object]) -> bool:
    """Return whether captured variables still hold the same objects."""
    try:
        return all(map(operator.is_, map(operator.call, readers), values))
    except (KeyError, ValueError, AttributeError):  # one is not there any more
        return False
