"""Descriptions of values that a derivative cannot take, and hints on what to pass instead.

    unknown(Open(1.0))                ("`Open`, a dataclass that is not frozen,", "declare it with ...")
    unsuitable((1.0, [2.0]), "x")     ("[1]", "a list", "convert it: `np.array(x[1])`, ...")

Numba has a type for some of them too, such as lists; those are not arguments of what is differentiated either.
"""

from __future__ import annotations

import enum
import itertools
import sys
from typing import Any

import numba
import numpy as np
from numba import types

from zygote_py.base import structures
from zygote_py.numba_adapter.base.internals import errors

HINT = "use a number, an array, a tuple, a NamedTuple or a frozen dataclass"

# Types of Numba that cannot be arguments of a differentiated function.
_DENIED = (
    types.PyObject,
    types.Bytes,
    types.ByteArray,
    types.MemoryView,
    types.PyArray,
    types.List,
    types.ListType,
    types.Set,
    types.DictType,
    types.Record,
    types.NPDatetime,
    types.NPTimedelta,
    types.CharSeq,
    types.UnicodeCharSeq,
    types.RangeType,
    types.Generator,
)
_DENIED_AS_ARGUMENTS = tuple({*_DENIED} - {types.List, types.ListType, types.DictType, types.Record})
_FINE = frozenset({float, int, bool, complex, str, type(None), np.float64, np.int64, np.bool_})

# How to convert values that know a method for it, by the method's name.
_CONVERSIONS = {
    "detach": "`{x}.detach().numpy()`",
    "to_numpy": "`{x}.to_numpy()`",
    "toarray": "`{x}.toarray()`",
    "numpy": "`{x}.numpy()`",
    "__array__": "`np.asarray({x})`",
    "__float__": "`float({x})`",
    "__iter__": "`np.array(list({x}))`",
}
_OF_BUILTINS: dict[type, str] = {
    list: "`np.array({x})`, or make a tuple, a NamedTuple or a dataclass of its items",
    set: "`np.array(sorted({x}))`",
    frozenset: "`np.array(sorted({x}))`",
    range: "`np.array({x})`",
    bytes: "`np.frombuffer({x}, dtype)`",
    bytearray: "`np.frombuffer({x}, dtype)`",
    memoryview: "`np.asarray({x})`",
}


def unknown(value: Any) -> tuple[str, str]:
    """Return a description of a value that Numba has no type for, and a hint."""
    found = unsuitable(value, "x")
    if found is None:
        return _described(value), HINT
    place, what, hint = found
    if not place:
        return what, hint
    first = place.lstrip(".[").partition("[")[0].partition(".")[0].rstrip("]")
    where = f"component {first} of a tuple" if place[0] == "[" else f"the field `{first}` of `{type(value).__name__}`"
    return f"{where}, {what},", hint


def unsuitable(value: Any, name: str, *, lists: bool = True) -> tuple[str, str, str] | None:
    """Return the part of a value that is not supported: its place in structures, a description, and a hint.

    None if all of it is supported, as far as the value tells. `lists` tells whether lists and dicts are.
    """
    found = _found(value, _DENIED_AS_ARGUMENTS if lists else _DENIED)
    if found is None:
        return None
    place, what, hint = found
    text = "".join(f".{one}" if isinstance(one, str) else f"[{one}]" for one in place)
    return text, what.removesuffix(","), hint.replace("{x}", name + text)


def _found(value: Any, denied: tuple[type, ...]) -> tuple[tuple[int | str, ...], str, str] | None:
    """The place, and the rest with `{x}` for the variable."""
    if type(value) in _FINE:
        return None
    parts = structures.parts(value)
    if parts is not None:
        names: Any = getattr(value, "_fields", ()) if isinstance(value, tuple) else structures.field_names(type(value))
        for name, part in zip(names or range(len(parts)), parts, strict=True):
            if not callable(part) and (found := _found(part, denied)) is not None:
                return (name, *found[0]), found[1], found[2]
        return None
    if isinstance(value, np.ndarray):
        objection = _of_array(value, types.Record in denied)
        return None if objection is None else ((), *objection)
    kind = _type_of(value)
    is_fine = kind is not None and not isinstance(kind, denied) and kind != types.float16
    if isinstance(value, list) and len(kinds := list(dict.fromkeys(map(type, value)))) > 1:
        names = " and ".join(f"`{each.__name__}`" for each in kinds)
        return (), f"a list of {names}", "make all of its items of one type: `[float(v) for v in {x}]`, or pass a tuple"
    if isinstance(kind, types.List) and isinstance(kind.dtype, types.List):
        return (), "a list of lists", "convert it: `np.array({x})`, or to a `numba.typed.List` of such lists"
    return None if is_fine else ((), _described(value), _instead(value))


def _type_of(value: object) -> Any:
    """Return the type that Numba has for a value; None if it has none."""
    try:
        return numba.typeof(value)
    except (ValueError, errors.NumbaError):
        return None


def _of_array(value: Any, no_records: bool) -> tuple[str, str] | None:
    """Return an objection to an array, and a hint; None if it is supported."""
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)  # before it has been imported, there are none
    if masked is not None and isinstance(value, masked):
        return "a masked array", "fill it: `{x}.filled(0.0)`, and pass the mask as another argument if it matters"
    dtype, what = value.dtype, f"an array of dtype {value.dtype}"
    match dtype.kind:
        case "O":
            return "an array of Python objects (dtype object)", "convert it: `{x}.astype(float)`"
        case "S" | "U":
            return f"an array of strings (dtype {dtype})", "convert them to numbers: `{x}.astype(float)`"
        case "m" | "M":
            return what, "convert it to numbers: `({x} - {x}[0]) / np.timedelta64(1, 's')`, say"
        case "V" if dtype.names and not no_records and _type_of(value) is not None:
            hint = "give each field bytes of its own"
            return (f"an array of dtype {dtype}, whose fields overlap", hint) if _overlap(dtype) else None
        case "V":
            hint = "pass the fields that the function needs, each as an array"
            return what, f"{hint}: `{{x}}[{dtype.names[0]!r}]`" if dtype.names else hint
        case "f" if dtype == np.float16:
            return what, "convert it: `{x}.astype(np.float32)`"
    if not dtype.isnative or (dtype.kind in "fc" and dtype.itemsize > (8 if dtype.kind == "f" else 16)):
        wider = {"f": "float64", "c": "complex128"}
        target = wider[dtype.kind] if dtype.itemsize > 16 - 8 * (dtype.kind == "f") else dtype.newbyteorder("=").name
        return what, f"convert it: `{{x}}.astype(np.{target})`"
    return None if _type_of(value) is not None else (what, "pass an array of float64, float32, complex128 or complex64")


def _overlap(dtype: Any) -> bool:
    """Return whether fields of a structured dtype share bytes."""
    spans = sorted((offset, offset + kind.itemsize) for kind, offset, *_ in dtype.fields.values())
    inner = any(kind.names and _overlap(kind) for kind, *_ in dtype.fields.values())
    return inner or any(end > start for (_, end), (start, _) in itertools.pairwise(spans))


def _described(value: Any) -> str:
    """Return a description of a value."""
    cls = value if isinstance(value, type) else type(value)
    if structures.is_open(cls):
        return f"`{cls.__name__}`, a dataclass that is not frozen,"
    if isinstance(value, list | dict | set | range | bytes | numba.typed.List | numba.typed.Dict):
        return f"a {type(value).__name__.lower()}"
    return f"a value of type `{cls.__name__ if cls is not value else 'type'}`"


def _instead(value: Any) -> str:
    """Return a hint on what to pass instead of a value."""
    cls = type(value)
    if structures.is_open(value if isinstance(value, type) else cls):
        return "declare it with @dataclass(frozen=True)"
    if isinstance(value, type):
        return HINT
    if isinstance(value, enum.Enum):
        return f"give all members of `{cls.__name__}` values of one type, numbers or strings"
    if isinstance(value, numba.typed.List):  # which is imported when it is needed first
        return "convert it: `np.array(list({x}))`, or make a tuple, a NamedTuple or a dataclass of its items"
    if isinstance(value, numba.typed.Dict):
        return "pass a tuple, a NamedTuple or a dataclass of what it holds, or arrays"
    if isinstance(value, dict):
        return "put what it holds into a `numba.typed.Dict`, a tuple, a NamedTuple or a dataclass, or arrays"
    for kind, conversion in _OF_BUILTINS.items():
        if isinstance(value, kind):
            return f"convert it: {conversion}"
    if isinstance(value, np.generic):
        names = {"c": "complex({x})", "f": "np.float32({x})" if cls is np.float16 else "float({x})"}
        return f"convert it: `{names[value.dtype.kind]}`" if value.dtype.kind in names else HINT
    for method, conversion in _CONVERSIONS.items():
        if callable(getattr(cls, method, None)):
            return f"convert it: {conversion}"
    return HINT
