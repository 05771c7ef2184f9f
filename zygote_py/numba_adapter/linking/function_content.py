"""The content of a function that Numba compiles, as words that are the same in every process.

    words_of(implementation)        # ["function", "numba.np.arrayobj", "np_zeros.<locals>.impl", 5012, ...]

Functions of packages whose versions are known are named; the emitted ones, which no other process has, are described
by their code and by what this refers to. Whatever is not known to be the same elsewhere raises `Unknown`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types

from zygote_py.base import global_names
from zygote_py.numba_adapter.base.decorations import locals_of
from zygote_py.numba_adapter.base.internals import Dispatcher, _Intrinsic
from zygote_py.numba_adapter.linking.function_numbers import EMITTED

VERSIONED = frozenset({"builtins", "math", "cmath", "_operator", "operator", "numpy", "numba", "zygote_py"})
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), type(Ellipsis)})
_HAS_ADDRESS = re.compile(r"_0x[0-9a-f]+$")
_NUMBER = re.compile(r"_\d+$")
_ARRAY_FUNCTION: type = type(np.sum)
_LEAVES = (
    types.Number,
    types.Boolean,
    types.NoneType,
    types.UnicodeType,
    types.StringLiteral,
    types.IntegerLiteral,
    types.BooleanLiteral,
    types.SliceType,
    types.RangeType,
    types.EllipsisType,
    types.DType,
    types.NumberClass,
)


class Unknown(Exception):
    """A function depends on something that another process may have otherwise."""


def words_of(function: Any) -> list[object]:
    """Return words that describe a Python function or a dispatcher. Raises Unknown."""
    content = _Content()
    content.value(function)
    return content.words


def words_of_type(kind: Any) -> Iterator[object]:
    """Yield words that describe a type of an argument. Raises Unknown."""
    yield type(kind).__name__
    match kind:
        case types.Omitted():
            yield from words_of(kind.value)
        case types.TypeRef():
            yield from words_of_type(kind.instance_type)
        case types.CPointer():
            yield kind.addrspace
            yield from words_of_type(kind.dtype)
        case types.ExternalFunction():
            yield kind.symbol
            for each in (kind.sig.return_type, *kind.sig.args):
                yield from words_of_type(each)
        case types.Optional():
            yield from words_of_type(kind.type)
        case types.Array():
            yield from (kind.ndim, kind.layout, kind.mutable, kind.aligned)
            yield from words_of_type(kind.dtype)
        case types.UniTuple():
            yield kind.count
            yield from words_of_type(kind.dtype)
        case types.Tuple() | types.StarArgTuple() | types.StarArgUniTuple():
            yield len(kind.types)
            for each in kind.types:
                yield from words_of_type(each)
        case types.Function() if isinstance(kind.typing_key, FunctionType | BuiltinFunctionType | np.ufunc):
            yield from words_of(kind.typing_key)
        case _ if isinstance(kind, _LEAVES):
            yield str(kind)
        case _:
            raise Unknown(f"the type {kind}")


def code_text(function: Any) -> tuple[object, ...]:
    """Return what is the same for two functions of the same text, wherever it stands."""
    code = function.__code__
    return code.co_code, code.co_consts, code.co_names, code.co_varnames


class _Content:
    """Words, and the functions that they describe, each once."""

    def __init__(self) -> None:
        self.words: list[object] = []
        self._numbers: dict[int, int] = {}

    def value(self, value: Any) -> None:
        """Add a function, or something that one refers to."""
        kind = type(value)
        if kind in _PLAIN:
            self.words += kind.__name__, repr(value)
        elif kind in (tuple, list, frozenset):
            items = sorted(value, key=repr) if kind is frozenset else value
            self.words += kind.__name__, len(value)
            for each in items:
                self.value(each)
        elif isinstance(value, types.Type):
            self.words += ("type", *words_of_type(value))
        elif isinstance(value, np.dtype) and value.kind in "biufc":
            self.words += "dtype", value.str
        elif isinstance(value, np.generic) and value.dtype.kind in "biufc":
            self.words += "number", value.dtype.str, value.tobytes().hex()
        elif isinstance(value, Dispatcher):
            if self._is_new(value):
                options = sorted((name, repr(option)) for name, option in value.targetoptions.items())
                self.words += "dispatcher", options, [(name, str(each)) for name, each in locals_of(value)]
                self.value(value.py_func)
        elif isinstance(value, _Intrinsic):
            self.words += ("intrinsic",)
            self.value(value._defn)
        elif isinstance(value, type) and issubclass(value, types.Type):
            self.words += "name", _name(value)
        elif kind is FunctionType:
            if self._is_new(value):
                self._function(value)
        else:
            self.words += "name", _name(value)

    def _is_new(self, value: object) -> bool:
        number = self._numbers.setdefault(id(value), len(self._numbers))
        self.words += "number", number
        return number == len(self._numbers) - 1

    def _function(self, function: FunctionType) -> None:
        code = function.__code__
        home = function.__globals__.get("__name__")
        is_emitted = code.co_filename.startswith(EMITTED)
        if not is_emitted:
            if _HAS_ADDRESS.search(function.__name__):  # of the object that it was made for
                raise Unknown(function.__name__)
            if not isinstance(home, str) or home.partition(".")[0] not in VERSIONED:
                raise Unknown(f"{function.__qualname__} of {home}")
            if function.__globals__ is not getattr(
                sys.modules.get(home), "__dict__", None
            ):  # it was made of text, with others
                raise Unknown(f"{function.__qualname__}, whose global variables are not those of {home}")
            self.words += "function", home, function.__qualname__, code.co_firstlineno
        # Emitted functions are numbered if several have the same name, in each module in another order.
        self._code(code, _NUMBER.sub("", code.co_name) if is_emitted else code.co_name)
        self.value(function.__defaults__)
        self.value(tuple(sorted((function.__kwdefaults__ or {}).items())))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self.words += "free", name
            try:
                self.value(cell.cell_contents)
            except ValueError:
                raise Unknown(f"{name}, which has no value") from None
        if is_emitted:
            for name in global_names(code):
                if name in function.__globals__:
                    self.words += "global", name
                    self.value(function.__globals__[name])

    def _code(self, code: CodeType, name: str) -> None:
        self.words += "code", name, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
        self.words += code.co_flags, code.co_code.hex(), code.co_names, code.co_varnames, code.co_exceptiontable.hex()
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant, constant.co_name)
            else:
                self.value(constant)


def _name(value: Any) -> str:
    """Return the name under which every process finds a module, a class or a function of a versioned package."""
    home: Any
    name: Any
    if type(value) is ModuleType:
        home, name = value.__name__, ""
    else:
        home, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if isinstance(value, np.ufunc) or type(value) is _ARRAY_FUNCTION:
            home, name = home or "numpy", getattr(value, "__name__", None)
        elif isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, ModuleType):
            home = value.__self__.__name__
        elif not isinstance(value, type) and not isinstance(value, BuiltinFunctionType):
            raise Unknown(f"a {type(value).__name__}")
    is_known = isinstance(home, str) and isinstance(name, str) and home.partition(".")[0] in VERSIONED
    if not is_known or "<locals>" in str(name):
        raise Unknown(f"{name} of {home}")
    return f"{home}:{name}"
