"""The fingerprint of a gradient: a digest of its function, all that this calls and captures, the types, the options.

    found = fingerprint(request, argument_types, hidden, environment, rules)
    found.digest                        # the same in every process in which the same would be compiled
    found.objects                       # the functions, classes and namespaces that were visited, in the same order

Captured floats and arrays, which are passed at each call, are represented by their types, everything else by its
value. Objects whose content cannot be determined, for example those of unknown classes, raise `NotCacheable`: when in
doubt, nothing is cached. Versions and settings are in `zygote_py.cache.environment`.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import hashlib
from collections import namedtuple
from collections.abc import Iterable, Mapping
from types import (
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any, Generic, Protocol

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import DifferentiationError
from zygote_py.base import (
    CONSTANT_MODULES,
    PARTS,
    Capture,
    Checkpointed,
    Ignored,
    default_by_name,
    defaults_of,
    is_default_read,
    named_in,
    parts_of_function,
    structures,
    varies,
)
from zygote_py.cache.inspection import VERSIONED, NotCacheable, is_written, known_name, names_in, root_of
from zygote_py.compiler import Request
from zygote_py.ir import Type, components_of, of_pointer

_NUMBERS = types.Integer | types.Float | types.Complex | types.Boolean | types.NoneType | types.UnicodeType
# Members of any class that do not affect its objects in compiled code.
_WORDS = """
    __dict__ __weakref__ __doc__ __module__ __qualname__ __annotations__ __annotate__ __annotations_cache__
    __annotate_func__ __orig_bases__ __parameters__ __slots__ __static_attributes__ __firstlineno__ __abstractmethods__
    __dataclass_fields__ __dataclass_params__ _abc_impl _field_defaults
"""
_OF_CLASSES = frozenset(_WORDS.split())
_BASES = (object, tuple, Generic, Protocol)


# The parts of a request that are described by other means; all others are words and numbers.
_OTHERWISE = frozenset(["func", "name", "options", "signature", "inner", "form", "primal"])


class Fingerprint:
    """The objects that a gradient depends on, and their digest."""

    def __init__(self, tuple_floats_are_inputs: bool = False) -> None:
        self._hash = hashlib.sha256()
        self._tuple_floats_are_inputs = tuple_floats_are_inputs
        self.objects: list[Any] = []
        # Each captured variable, by the number of its place and its name: its value, and whether this represents it.
        self.captured: dict[tuple[int, str], tuple[object, bool]] = {}
        self._numbers: dict[int, int] = {}
        self._looked_into: set[tuple[int, tuple[str, ...]]] = set()
        self._attributes = {"__call__"}  # those that functions read
        self._plain_objects: list[Any] = []

    @property
    def digest(self) -> str:
        """The digest of everything visited so far."""
        return self._hash.hexdigest()[:40]

    def is_like(self, other: Fingerprint) -> bool:
        """Return whether a later fingerprint in this process found the same, including values of captured variables."""
        held, others = ([value for value, _ in each.captured.values()] for each in (self, other))
        return self.digest == other.digest and all(one is two for one, two in zip(held, others, strict=True))

    def number_of(self, capture: Capture) -> tuple[int, str]:
        """Return the number of a captured variable's namespace or cell, and its name there. Raises NotCacheable."""
        key: Any = capture.key
        number = self._numbers.get(key[0])
        if number is None:
            raise NotCacheable(f"the captured {capture.name}")
        return number, key[1]

    # ------------------------------------------------------------------------------------------------- what there is

    def add(self, *words: object) -> None:
        """Add words and numbers to the digest, one by one."""
        for word in words:
            text = repr(word).encode()
            self._hash.update(b"%d:" % len(text) + text)

    def function(self, func: Any) -> None:
        """Add a Python function: its code, its signature, and its captured variables."""
        if not self._is_new(func, "function"):
            return
        if type(func) is not FunctionType or getattr(func, "__builtins__", None) is not vars(builtins):
            raise NotCacheable("no ordinary Python function")
        self.add(func.__name__, func.__qualname__)
        for part in parts_of_function(func):
            self.captured[self._numbers[id(func)], part.source] = part.value, True
        self._code(func.__code__)
        for name, default in defaults_of(func).items():
            self.add("default", name)
            if is_default_read(default):
                self._variable(func, name, default, ())
            else:
                self.value(default)
        if "__signature__" in func.__dict__:
            raise NotCacheable(f"the signature of {func.__name__}")
        if "__wrapped__" in func.__dict__:  # the parameters and their defaults are looked up there
            self.add("wrapped")
            self.value(func.__dict__["__wrapped__"])
        self._is_new(func.__globals__, "namespace")
        names, attributes = names_in(func.__code__)
        self._attributes.update(attributes)
        for name in names:
            self.add("global", name)
            if name in func.__globals__:
                self._variable(func.__globals__, name, func.__globals__[name], attributes)
            elif hasattr(builtins, name):
                held = getattr(builtins, name)
                self.captured[self._numbers[id(func.__globals__)], name] = held, True
                self.value(held)
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
        """Add a captured variable of a namespace or a cell."""
        if isinstance(held, ModuleType):
            self.captured[self._numbers[id(place)], name] = held, True
            self._module(held, attributes)
            return
        by_value = not varies(held, self._tuple_floats_are_inputs)  # if it turns out otherwise, nothing is stored
        self.captured[self._numbers[id(place)], name] = held, by_value
        if by_value:
            self.value(held)
        else:
            self.add("passed")
            self.type(_typeof(held))

    def _module(self, module: ModuleType, attributes: tuple[str, ...]) -> None:
        """Add a module, with those of its variables that the function which captures it may read."""
        if type(module) is not ModuleType:
            raise NotCacheable(f"the module {module.__name__}, which is of a class of its own")
        self._is_new(vars(module), "module")
        self.add(module.__name__)
        if (id(module), attributes) in self._looked_into:
            return
        self._looked_into.add((id(module), attributes))
        is_constant = root_of(module.__name__) in CONSTANT_MODULES
        is_ours = module.__name__ == "zygote_py"
        for name in attributes:
            if is_ours and name in module.__all__:
                getattr(module, name)  # which imports it, if it has not been used yet
            if name in vars(module):
                held = vars(module)[name]
                self.add("attribute", name)
                if is_constant and not isinstance(held, ModuleType):
                    self.value(held)
                else:
                    self._variable(vars(module), name, held, attributes)
            elif "__getattr__" in vars(module) and root_of(module.__name__) not in VERSIONED and not is_ours:
                raise NotCacheable(f"{module.__name__}.{name}, which is made when it is read")

    def attributes_of_objects(self) -> None:
        """Add the attributes that functions may read of the captured objects whose class Numba does not know."""
        seen: set[tuple[int, str]] = set()
        while found := [
            (held, name)
            for held in self._plain_objects
            for name in sorted(self._attributes)
            if (id(held), name) not in seen
        ]:
            for held, name in found:
                seen.add((id(held), name))
                self._attribute(held, name)

    def _attribute(self, held: Any, name: str) -> None:
        if not hasattr(held, name):
            return
        self.add("attribute", name)
        found = structures.attribute(held, name)
        if isinstance(found, staticmethod | classmethod | property):
            self.captured[self._numbers[id(held)], name] = found, True
            self._member(name, found)
        else:
            self._variable(held, name, found, ())

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
        """Add a value that is a constant in the compiled code."""
        kind = type(value)
        if value is None or value is Ellipsis or value is NotImplemented or kind in _PLAIN:
            self.add(kind.__name__, value)
        elif isinstance(value, np.generic) and kind.__module__ == "numpy" and value.dtype.kind in "biufc":
            self.add("scalar", value.dtype.str, value.tobytes())
        elif kind is tuple:
            self.add("tuple", len(value))
            for item in value:
                self.value(item)
        elif kind is frozenset and all(type(item) in _PLAIN for item in value):
            self.add("frozenset", sorted(map(repr, value)))
        elif kind is slice:
            self.value((value.start, value.stop, value.step))
        elif isinstance(value, np.dtype) and value.kind in "biufc":
            self.add("dtype", value.str)
        elif isinstance(value, types.Number | types.Boolean):
            self.add("type", str(value))
        elif kind is Checkpointed or kind is Ignored:
            self.add(kind.__name__)
            self.value(value.func if kind is Checkpointed else value.function)
        elif numba_adapter.is_made(value) and hasattr(value, "form"):
            self.add("derivative", repr(value.form), value.captured_count)
            self.value(value.primal)
        elif isinstance(value, enum.Enum):
            self._enum(kind)
            self.add(value.name)
        elif isinstance(value, enum.EnumMeta):
            self._enum(value)
        elif _is_structure(kind):
            self._structure(kind)
            self.value(tuple(structures.parts(value) or ()))
        elif numba_adapter.is_dispatcher(value):
            self._dispatcher(value)
        elif isinstance(value, type) and _is_structure(value):
            self._structure(value)
        elif numba_adapter.has_source(value):
            self._source(value)
        elif (name := known_name(value)) is not None:
            self.add("known", name)
        elif (pointed_to := of_pointer(pointer := numba_adapter.as_pointer(value))) is not None:
            self.add("pointer", repr(pointed_to), repr(pointer.argtypes))
        elif kind is FunctionType:
            self.function(value)
        elif isinstance(value, type) and issubclass(value, BaseException) and structures.is_importable(value):
            self.add("exception", value.__module__, value.__qualname__)
        elif numba_adapter.is_plain_object(value):
            if _makes_attributes(kind):
                raise NotCacheable(f"a {kind.__name__}, which makes attributes when they are read")
            if self._is_new(value, "object"):
                self.add(kind.__module__, kind.__qualname__)
                self._plain_objects.append(value)
        else:
            raise NotCacheable(f"a {kind.__name__}, whose content is not known")

    def _options(self, options: Mapping[str, object]) -> None:
        """Add options of Numba's decorator; the order of a set differs between processes."""
        for name, option in sorted(options.items()):
            self.add("option", name, sorted(map(repr, option)) if isinstance(option, set | frozenset) else option)

    def _dispatcher(self, value: Any) -> None:
        """Add a function decorated with `njit`."""
        if not numba_adapter.is_plain_dispatcher(value):
            raise NotCacheable(f"{value.__name__} is not compiled from its own source")
        if self._is_new(value, "njit"):
            self._options(numba_adapter.options_of(value))
            for name, kind in numba_adapter.locals_of(value):
                self.add("local", name)
                self.type(kind)
            signatures = numba_adapter.signatures_of(value)
            self.add("signatures", None if signatures is None else len(signatures))
            for signature in signatures or ():
                self.add(len(signature.args))
                for kind in (*signature.args, signature.return_type):
                    self.type(kind)
            self.function(value.py_func)

    def _source(self, value: Any) -> None:
        """Add a function made by `vectorize`, `guvectorize`, `stencil` or `cfunc`."""
        content = numba_adapter.content_of_source(value)
        if content is None:
            raise NotCacheable(f"{value.__name__} compiles what it is called with")
        if self._is_new(value, type(value).__name__):
            source, words, kinds = content
            self._options(numba_adapter.options_of_source(value))
            for word in words:
                self.value(tuple(word) if isinstance(word, list) else word)
            for kind in kinds:
                self.type(kind)
            self.function(source)

    def _structure(self, cls: Any) -> None:
        """Add a NamedTuple or a frozen dataclass: the names of its fields, and everything that it defines."""
        if not structures.is_current(cls):  # objects of it could not be made anew in another process
            raise NotCacheable(f"the class {cls.__name__} is not found by its name")
        if not self._is_new(cls, "class"):
            return
        self.add(cls.__module__, cls.__qualname__)
        for base in cls.__mro__:
            if base not in _BASES:
                self.add("base", base.__qualname__)
                for name, member in sorted(vars(base).items()):
                    if name not in _OF_CLASSES:
                        self.captured[self._numbers[id(cls)], name] = structures.member(cls, name), True
                        self.add("member", name)
                        self._member(name, member)
        if issubclass(cls, tuple):
            self.value(tuple(cls._field_defaults.items()))
            return
        self.add(repr(cls.__dataclass_params__))
        for field in cls.__dataclass_fields__.values():
            self.add(field.name, field.init, field.kw_only, field.default_factory is dataclasses.MISSING)
            self.value(None if field.default is dataclasses.MISSING else (field.default,))

    def _enum(self, cls: Any) -> None:
        """Add an enumeration: the names and values of its members, and everything else that it defines."""
        if not structures.is_current(cls):
            raise NotCacheable(f"the class {cls.__name__} is not found by its name")
        if not self._is_new(cls, "enum"):
            return
        self.add(cls.__module__, cls.__qualname__)
        for name, member in cls.__members__.items():
            self.add("member", name, member.name)
            self.value(member.value)
        for base in cls.__mro__:
            self.add("base", base.__qualname__)
            for name, member in sorted(vars(base).items()):
                if base.__module__ not in VERSIONED | {"enum"} and name[0] != "_" and name not in cls.__members__:
                    self.add("member", name)
                    self._member(name, member)

    def _member(self, name: str, member: Any) -> None:
        if isinstance(member, staticmethod | classmethod):
            self.add(type(member).__name__)
            member = member.__func__
        if isinstance(member, property):
            self.value((member.fget, member.fset, member.fdel))
        elif isinstance(member, MemberDescriptorType | GetSetDescriptorType) or type(member) is _TUPLE_GETTER:
            self.add("field")
        elif isinstance(member, FunctionType) and is_written(name, member):
            self._code(member.__code__)
        else:
            self.value(member)

    # --------------------------------------------------------------------------------------------------------- types

    def type(self, kind: Any) -> None:
        """Add the Numba type of an argument or of a captured value that is passed."""
        if isinstance(kind, types.Omitted):
            self.add("omitted")
            self.value(kind.value)
        elif isinstance(kind, _NUMBERS) and not isinstance(kind, types.Literal):
            self.add("type", str(kind))
        elif type(kind) in (types.Array, types.NestedArray) and isinstance(kind.dtype, _NUMBERS | types.Record):
            self.add("type", str(kind), kind.aligned, kind.mutable)
            self.type(kind.dtype)
        elif isinstance(kind, types.Record):
            self.add("record", len(kind.fields), kind.size, kind.aligned)
            for name, field in kind.fields.items():
                self.add(name, field.offset, field.alignment, field.title)
                self.type(field.type)
        elif isinstance(kind, types.CharSeq | types.UnicodeCharSeq):
            self.add("type", str(kind))
        elif isinstance(kind, types.EnumMember):
            self.add("enum")
            self._enum(kind.instance_class)
            self.type(kind.dtype)
        elif isinstance(kind, types.List | types.ListType | types.DictType):
            self.add(type(kind).__name__, getattr(kind, "reflected", False))
            self.type(kind.keyvalue_type if isinstance(kind, types.DictType) else kind.dtype)
        elif isinstance(kind, types.BaseTuple):
            cls = getattr(kind, "instance_class", None)
            items = components_of(kind)
            self.add("tuple", len(items))
            if cls is not None:
                self._structure(cls)
            for item in items:
                self.type(item)
        else:
            raise NotCacheable(f"a value of type {kind}")

    def _is_new(self, value: object, kind: str) -> bool:
        """Add an object by its number; return whether it is new, so that its content has to follow."""
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
    rules: Iterable[object],
) -> Fingerprint:
    """Return the fingerprint of a gradient; `rules` may apply without being called by name. Raises NotCacheable."""
    found = Fingerprint(request.tuple_floats_are_inputs)
    found.add(environment, request.name)
    asked: Request | None = request
    while asked is not None:
        own = (field.name for field in dataclasses.fields(asked) if field.name not in _OTHERWISE)
        found.add(*(getattr(asked, name) for name in own), asked.tuple_floats_are_inputs, repr(asked.form))
        asked = asked.inner
    options: Mapping[str, object] = request.options
    found._options(options)
    for each in rules:
        if numba_adapter.is_plain_object(each):
            raise NotCacheable(f"a rule for a {type(each).__name__}")
        found.add("rule")
        found.value(each)
    found.function(request.func)
    found.attributes_of_objects()
    for name, default in request.defaults.items():
        found.add(name)
        found.value(default)
    for kind in argument_types:
        found.add("argument")
        found.type(kind)
    for capture in hidden:
        found.add("hidden", *found.number_of(capture))
    return found


def read_from(place: Any, name: str) -> Any:
    """Return the value of a variable in a namespace or a cell, an attribute, or a part of a function or a class.

    Raises KeyError, ValueError or AttributeError if there is none.
    """
    match place:
        case CellType():
            return place.cell_contents
        case FunctionType() if name in PARTS:
            return getattr(place, name)
        case FunctionType():
            return default_by_name(place, name)
        case type():
            return structures.member(place, name)
        case dict():
            return named_in(place, name)
        case _:
            return structures.attribute(place, name)


def content_of(value: Any) -> str:
    """Return a digest of a captured value that is represented by its type in fingerprints. Raises NotCacheable."""
    found = Fingerprint()
    parts = structures.parts(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc" and value.size <= _MOST_ELEMENTS:
        found.add(value.dtype.str, value.shape, value.strides, value.flags.writeable)
        found.add(hashlib.sha256(np.ascontiguousarray(value).data).hexdigest())
    elif parts is not None:
        found.add(*map(content_of, parts))
    else:
        found.value(value)
    return found.digest


def _typeof(value: object) -> Type:
    try:
        return numba_adapter.typeof(value)
    except DifferentiationError as error:
        raise NotCacheable(error.message) from None


_MOST_ELEMENTS = 1_000_000  # of an array that is read only to see whether it is the same
_PLAIN = frozenset({bool, int, float, complex, str, bytes})
_TUPLE_GETTER = type(vars(namedtuple("_Any", "a"))["a"])


def _is_structure(cls: type) -> bool:
    return structures.is_structure(cls) or (issubclass(cls, tuple) and hasattr(cls, "_fields"))


def _makes_attributes(cls: type) -> bool:
    return hasattr(cls, "__getattr__") or getattr(cls, "__getattribute__", None) is not object.__getattribute__
