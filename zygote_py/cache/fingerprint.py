"""What a gradient depends on, as one digest: the function, all that it calls and captures, the types, the options.

    found = fingerprint(request, argument_types, hidden)
    found.digest                        # the same in every process in which the same would be compiled
    found.objects                       # the functions, classes and namespaces that were met, in the same order

Captured floats and arrays, which are passed at each call, count by their types, all else by its value. What cannot be
told by its content, an object of a class that is not known here for one, raises `NotCacheable`: when in doubt, nothing
is cached. Versions and settings are in `zygote_py.cache.environment`.
"""

from __future__ import annotations

import builtins
import cmath
import dataclasses
import dis
import functools
import hashlib
import math
import operator
import sys
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter, structures
from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.capture import Capture
from zygote_py.ir.core import Type
from zygote_py.ir.types import components_of
from zygote_py.requests import Request


class NotCacheable(Exception):
    """Something is part of a gradient whose content is not known."""


# Modules of which a version says all there is to say.
_TRUSTED = frozenset({"builtins", "math", "cmath", "operator", "_operator", "numpy", "zygote_py"})
_LOOKED_UP = (builtins, math, cmath, operator, np, np.linalg, np.random, np.fft)
_NUMBERS = types.Integer | types.Float | types.Complex | types.Boolean | types.NoneType | types.UnicodeType
# What a class has of its own accord: of Python, or made by `dataclass` and `NamedTuple`.
_WORDS = """
    __dict__ __weakref__ __doc__ __module__ __qualname__ __annotations__ __annotate__ __annotations_cache__
    __annotate_func__ __orig_bases__ __parameters__ __slots__ __static_attributes__ __firstlineno__ __match_args__
    __dataclass_fields__ __dataclass_params__ __repr__ __eq__ __hash__ __setattr__ __delattr__ __replace__
    __abstractmethods__ _abc_impl
"""
_OF_CLASSES = frozenset(_WORDS.split()) | frozenset(vars(namedtuple("_Any", "a")))


class Fingerprint:
    """What was met of a gradient; `digest` once all is."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.objects: list[Any] = []
        self.captured: dict[tuple[int, str], tuple[object, bool]] = {}  # what a variable held; whether by its value
        self._numbers: dict[int, int] = {}
        self._looked_into: set[tuple[int, tuple[str, ...]]] = set()

    @property
    def digest(self) -> str:
        """The digest of all that was met until now."""
        return self._hash.hexdigest()[:40]

    def number_of(self, value: object) -> int | None:
        """The place of an object among those that were met."""
        return self._numbers.get(id(value))

    # ------------------------------------------------------------------------------------------------- what there is

    def add(self, *words: object) -> None:
        """Take words and numbers into the digest, each for itself."""
        for word in words:
            text = repr(word).encode()
            self._hash.update(b"%d:" % len(text) + text)

    def function(self, func: Any) -> None:
        """A Python function: its code, defaults, and what it captures."""
        if not self._is_new(func, "function"):
            return
        if type(func) is not FunctionType:
            raise NotCacheable(f"{func!r} is no Python function")
        self.add(func.__name__, func.__qualname__)
        self._code(func.__code__)
        self.value(func.__defaults__)
        for name, default in sorted((func.__kwdefaults__ or {}).items()):
            self.add(name)
            self.value(default)
        self._is_new(func.__globals__, "namespace")
        attributes = tuple(sorted(_attributes(func.__code__)))
        for name in sorted(_global_names(func.__code__)):
            self.add("global", name)
            if name in func.__globals__:
                self._variable(func.__globals__, name, func.__globals__[name], attributes)
            elif hasattr(builtins, name):
                self.add("builtin")
            else:
                self.add("undefined")
        for name, cell in zip(func.__code__.co_freevars, func.__closure__ or (), strict=True):
            self.add("free", name)
            self._is_new(cell, "cell")
            try:
                held = cell.cell_contents
            except ValueError:
                self.add("empty")
                continue
            self._variable(cell, name, held, attributes)

    def _variable(self, place: object, name: str, held: object, attributes: tuple[str, ...]) -> None:
        """A captured variable, of a namespace or a cell."""
        if isinstance(held, ModuleType):
            self._module(held, attributes)
            return
        by_value = not _varies(held)
        self.captured[id(place), name] = held, by_value
        if by_value:
            self.value(held)
        else:
            self.add("passed")
            self.type(_typeof(held))

    def _module(self, module: ModuleType, attributes: tuple[str, ...]) -> None:
        """A module, with those of its variables that the function which captures it may read."""
        if type(module) is not ModuleType:
            raise NotCacheable(f"the module {module.__name__}, which is of a class of its own")
        self._is_new(vars(module), "module")
        self.add(module.__name__)
        if _is_trusted(module.__name__) or (id(module), attributes) in self._looked_into:
            return
        self._looked_into.add((id(module), attributes))
        for name in attributes:
            if name in vars(module):
                self.add("attribute", name)
                self._variable(vars(module), name, vars(module)[name], attributes)
            elif "__getattr__" in vars(module):
                raise NotCacheable(f"{module.__name__}.{name}, which is made when it is read")

    def _code(self, code: CodeType) -> None:
        self.add("code", code.co_name, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
        self.add(code.co_flags, code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self.add(getattr(code, "co_exceptiontable", b""), code.co_linetable, code.co_firstlineno)
        self.add(code.co_filename.replace("\\", "/").rpartition("/")[2])  # the emitted source names file and line
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant)
            else:
                self.value(constant)

    # -------------------------------------------------------------------------------------------------------- values

    def value(self, value: Any) -> None:
        """Anything that is a constant of what is compiled."""
        kind = type(value)
        if value is None or value is Ellipsis or kind in (bool, int, str, bytes):
            self.add(kind.__name__, value)
        elif kind in (float, complex):
            self.add(kind.__name__, repr(value))
        elif isinstance(value, np.generic) and kind.__module__ == "numpy":
            self.add("scalar", value.dtype.str, value.tobytes())
        elif kind is tuple:
            self.add("tuple", len(value))
            for item in value:
                self.value(item)
        elif kind is frozenset:
            self.add("frozenset", sorted(map(repr, value)))
        elif kind is slice:
            self.value((value.start, value.stop, value.step))
        elif isinstance(value, tuple) or structures.is_structure(kind):
            parts = structures.parts(value)
            self.type_of_structure(kind)
            self.value(tuple(parts or ()))
        elif kind is FunctionType and not _is_trusted(value.__module__):
            self.function(value)
        elif numba_adapter.is_dispatcher(value):
            self._dispatcher(value)
        elif isinstance(value, np.dtype) and value.kind in "biufc":
            self.add("dtype", value.str)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, BuiltinFunctionType | np.ufunc) or callable(value):
            self._known(value)
        elif isinstance(value, types.Number | types.Boolean):
            self.add("type", str(value))
        else:
            raise NotCacheable(f"a captured {kind.__name__}")

    def _dispatcher(self, value: Any) -> None:
        """A function decorated with `njit`."""
        if not numba_adapter.is_plain_dispatcher(value):
            raise NotCacheable(f"{value!r} is not compiled from its own source")
        if self._is_new(value, "njit"):
            self.add(sorted((name, repr(option)) for name, option in numba_adapter.options_of(value).items()))
            self.function(value.py_func)

    def _known(self, value: Any) -> None:
        """A function or class of Python's own or of NumPy, by its name."""
        name = getattr(value, "__name__", "")
        for module in _LOOKED_UP:
            if getattr(module, name, None) is value:
                if self._is_new(value, "known"):
                    self.add(module.__name__, name)
                return
        if isinstance(value, FunctionType) and _is_importable(value):
            if self._is_new(value, "known"):
                self.add(value.__module__, value.__qualname__)
            return
        raise NotCacheable(f"{value!r} is of a module that is not known")

    def _class(self, cls: Any) -> None:
        if issubclass(cls, BaseException) and cls.__module__ != "builtins":
            if not structures.is_importable(cls):
                raise NotCacheable(f"the exception {cls.__name__} cannot be imported")
            if self._is_new(cls, "exception"):
                self.add(cls.__module__, cls.__qualname__)
        elif structures.is_structure(cls) or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
            self.type_of_structure(cls)
        else:
            self._known(cls)

    def type_of_structure(self, cls: Any) -> None:
        """A NamedTuple or a frozen dataclass: what its fields are called, and all that it defines."""
        if not structures.is_importable(cls):  # objects of it could not be made anew in another process
            raise NotCacheable(f"the class {cls.__name__} cannot be imported")
        if not self._is_new(cls, "class"):
            return
        self.add(cls.__module__, cls.__qualname__)
        for base in cls.__mro__:
            if base.__module__ in ("builtins", "typing") or base is tuple:
                continue
            self.add("base", base.__qualname__)
            for name, member in sorted(vars(base).items()):
                if name not in _OF_CLASSES and name not in getattr(base, "_fields", ()):
                    self.add("member", name)
                    self._member(name, member)
        if issubclass(cls, tuple):
            self.add(cls._fields)
            self.value(tuple(cls._field_defaults.items()))
            return
        for field in cls.__dataclass_fields__.values():
            self.add(field.name, field.init, field.kw_only, field.default_factory is dataclasses.MISSING)
            if field.default is not dataclasses.MISSING:
                self.value(field.default)

    def _member(self, name: str, member: Any) -> None:
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if isinstance(member, property):
            for accessor in (member.fget, member.fset, member.fdel):
                self.value(accessor)
        elif isinstance(member, MemberDescriptorType | GetSetDescriptorType):
            self.add("slot")
        elif isinstance(member, FunctionType) and member.__code__.co_filename == "<string>":
            self._code(member.__code__)  # made by `dataclass`
        else:
            self.value(member)

    # --------------------------------------------------------------------------------------------------------- types

    def type(self, kind: Any) -> None:
        """The Numba type of an argument or of a captured value that is passed."""
        if isinstance(kind, types.Omitted):
            self.add("omitted")
            self.value(kind.value)
        elif isinstance(kind, _NUMBERS) and not isinstance(kind, types.Literal):
            self.add("type", str(kind))
        elif type(kind) is types.Array and isinstance(kind.dtype, _NUMBERS):
            self.add("type", str(kind), kind.aligned, kind.mutable)
        elif isinstance(kind, types.BaseTuple):
            cls = getattr(kind, "instance_class", None)
            items = components_of(kind)
            self.add("tuple", len(items))
            if cls is not None:
                self.type_of_structure(cls)
            for item in items:
                self.type(item)
        else:
            raise NotCacheable(f"a value of type {kind}")

    def _is_new(self, value: object, kind: str) -> bool:
        """Take an object in by its place among those that were met; the first time, all that is of it has to follow."""
        number = self._numbers.get(id(value))
        self.add(kind, -1 if number is None else number)
        if number is not None:
            return False
        self._numbers[id(value)] = len(self.objects)
        self.objects.append(value)
        return True


def fingerprint(
    request: Request,
    argument_types: Iterable[Type],
    hidden: Iterable[Capture],
    environment: str,
    given: Iterable[object],
) -> Fingerprint:
    """What a gradient depends on; `given` is what has a say in it without being called. Raises NotCacheable."""
    found = Fingerprint()
    found.add(environment, request.name, request.wrt, request.bare, request.with_value, request.closure)
    options: Mapping[str, object] = request.options
    found.add(sorted((name, repr(option)) for name, option in options.items()))
    for each in given:
        found.value(each)
    found.function(request.func)
    for name, default in request.defaults.items():
        found.add(name)
        found.value(default)
    for kind in argument_types:
        found.add("argument")
        found.type(kind)
    for capture in hidden:
        place, name = place_of(capture)
        number = next((n for n, each in enumerate(found.objects) if id(each) == place), None)
        if number is None:
            raise NotCacheable(f"the captured variable {name}")
        found.add("hidden", number, name)
    return found


def place_of(capture: Capture) -> tuple[int, str]:
    """The identity of the namespace or cell of a captured variable, and its name there."""
    key: Any = capture.key
    return key[0], key[1]


def read_from(place: Any, name: str) -> Any:
    """What a variable of a namespace or a cell holds. Raises KeyError or ValueError if it holds nothing."""
    return place.cell_contents if isinstance(place, CellType) else place[name]


def _typeof(value: object) -> Type:
    try:
        return numba_adapter.typeof(value)
    except DifferentiationError as error:
        raise NotCacheable(error.message) from None


def _varies(value: object) -> bool:
    """Whether a captured value is passed at each call. If it is not after all, or the other way, nothing is stored."""
    if isinstance(value, tuple):
        return any(isinstance(item, np.ndarray) or (not isinstance(item, float) and _varies(item)) for item in value)
    if structures.is_structure(type(value)):
        return any(_varies(getattr(value, name)) for name in structures.field_names(type(value)))
    return isinstance(value, float | np.floating | np.ndarray)


def _is_trusted(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _TRUSTED


def _is_importable(func: FunctionType) -> bool:
    return _is_trusted(func.__module__) and getattr(sys.modules.get(func.__module__), func.__qualname__, None) is func


@functools.lru_cache(maxsize=4096)
def _names(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The global names that a function and the functions in it read, and the names of attributes."""
    names: set[str] = set()
    attributes: set[str] = set()
    for each in _nested(code):
        for instruction in dis.get_instructions(each):
            match instruction.opname:
                case "LOAD_GLOBAL" | "LOAD_NAME" | "LOAD_FROM_DICT_OR_GLOBALS":
                    names.add(instruction.argval)
                case "LOAD_ATTR" | "LOAD_METHOD":
                    attributes.add(instruction.argval)
                case "IMPORT_NAME" | "STORE_GLOBAL" | "DELETE_GLOBAL":
                    raise NotCacheable(f"{instruction.opname} in {code.co_name}")
                case _:
                    pass
    return frozenset(names), frozenset(attributes)


def _global_names(code: CodeType) -> frozenset[str]:
    return _names(code)[0]


def _attributes(code: CodeType) -> frozenset[str]:
    return _names(code)[1]


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
