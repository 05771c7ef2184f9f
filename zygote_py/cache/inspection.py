"""Facts about Python's objects that fingerprints rest on: what functions read, and what the versions determine.

names_in(code)              the globals that a function and its inner functions read, and the attributes
known_name(np.sum)          "numpy.sum"
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np


class NotCacheable(Exception):
    """A gradient depends on something whose content is unknown."""


# Modules that are determined by the versions in the environment.
VERSIONED = frozenset({"builtins", "math", "cmath", "_operator", "_functools", "numpy", "numba"})
_OF_NUMPY = ("numpy", "numpy.linalg", "numpy.random", "numpy.fft")  # the last is imported when it is first needed
_ARRAY_FUNCTION: type = type(np.sum)
_RANDOM_FUNCTION: type = type(np.random.seed)  # others there are methods of an object
# Methods that `dataclass` generates, whose code is not in a file.
_WRITTEN = frozenset(
    ["__init__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__setattr__", "__delattr__"]
)


def is_written(name: str, member: FunctionType) -> bool:
    """Return whether `dataclass` or `NamedTuple` generated a member: its code and the fields determine it."""
    home = member.__globals__.get("__name__") or ""
    if home in ("collections", "dataclasses", "reprlib", "typing") or home.startswith("namedtuple_"):
        return True
    code = member.__code__
    if name not in _WRITTEN or code.co_filename != "<string>":
        return False
    return all(hasattr(builtins, each) for each in names_in(code)[0])


def known_name(value: Any) -> str | None:
    """Return the name of a function or class whose version is part of the environment, else None."""
    name: Any = getattr(value, "__qualname__", None)
    home: Any = None
    if isinstance(value, FunctionType):
        home = value.__globals__.get("__name__")  # read-only, unlike `__module__`, which `functools.wraps` changes
    elif isinstance(value, type):
        home = value.__module__
    elif isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, ModuleType):
        home = value.__self__.__name__
    elif isinstance(value, BuiltinFunctionType | np.ufunc | _ARRAY_FUNCTION | _RANDOM_FUNCTION) or (
        isinstance(value, MethodType) and isinstance(value.__self__, np.random.RandomState)
    ):
        name = getattr(value, "__name__", "")
        loaded = (each for each in _OF_NUMPY if each in sys.modules)
        home = next((each for each in loaded if vars(sys.modules[each]).get(name) is value), None)
    if not isinstance(home, str) or not isinstance(name, str):
        return None
    if root_of(home) == "zygote_py" and name in sys.modules["zygote_py"].__all__:
        home = "zygote_py"
    elif root_of(home) not in VERSIONED:
        return None
    found: Any = sys.modules.get(home)
    for each in name.split("."):
        found = getattr(found, each, None)
    return f"{home}.{name}" if found is value else None


def root_of(module: str) -> str:
    """Return the name of the package that a module is in."""
    return module.partition(".")[0]


@functools.lru_cache(maxsize=4096)
def names_in(code: CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the global names that a function and its inner functions read, and the names of attributes."""
    names: set[str] = set()
    attributes: set[str] = set()
    for each in _nested(code):
        for instruction in dis.get_instructions(each):
            match instruction.opname:
                case "LOAD_GLOBAL" | "LOAD_NAME" | "LOAD_FROM_DICT_OR_GLOBALS":
                    names.add(instruction.argval)
                case "LOAD_ATTR" | "LOAD_METHOD" | "STORE_ATTR" | "DELETE_ATTR" | "LOAD_SUPER_ATTR":
                    attributes.add(instruction.argval)
                case "STORE_NAME" | "DELETE_NAME":
                    pass  # in the body of a class
                case _ if instruction.opcode in dis.hasname:
                    raise NotCacheable(f"{instruction.opname} in {code.co_name}")
                case _:
                    pass
    if "getattr" in names:
        attributes.update(each for inner in _nested(code) for each in inner.co_consts if isinstance(each, str))
    return tuple(sorted(names)), tuple(sorted(attributes))


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
