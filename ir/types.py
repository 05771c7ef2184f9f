"""The types of the IR, which are Numba's, and their text.

    f64 f32 i64 u8 bool none str    f64[:] f64[:, :]F i64[:]A f32[]    (f64, i64) (f64,) ()    list(f64)    f64x4

An array is in C order unless `F` or `A` (any) follows; a read-only array is `readonly f64[:]`. `parse_type` reads these
and the spellings of Numba and NumPy (`float64`, `boolean`, `float64[:, ::1]`, `array(float64, 2d, C)`). A type without
a spelling here is printed as Numba prints it, in angle brackets, and cannot be read back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numba import types

from zygote_py.ir.core import Type

_SHORT: dict[str, Type] = {
    "f64": types.float64,
    "f32": types.float32,
    "f16": types.float16,
    "i64": types.int64,
    "i32": types.int32,
    "i16": types.int16,
    "i8": types.int8,
    "u64": types.uint64,
    "u32": types.uint32,
    "u16": types.uint16,
    "u8": types.uint8,
    "c128": types.complex128,
    "c64": types.complex64,
    "bool": types.boolean,
    "none": types.none,
    "str": types.unicode_type,
    "slice": types.slice2_type,
    "strided_slice": types.slice3_type,
}
_TEXT: dict[Type, str] = {type: name for name, type in _SHORT.items()}
_SPELLED: dict[str, Type] = (
    _SHORT
    | {str(type): type for type in _SHORT.values()}
    | {"float": types.float64, "int": types.int64, "complex": types.complex128}
    | {"boolean": types.boolean, "bool_": types.boolean, "None": types.none}
)
_Layout = Literal["C", "F", "A"]
_LAYOUTS: dict[str, _Layout] = {"": "C", "C": "C", "F": "F", "A": "A"}
_tuple_of: Callable[[tuple[Type, ...]], Type] = types.Tuple
_list_of: Callable[[Type], Type] = types.List
_BRACKETS = {"(": ")", "[": "]", "<": ">", "{": "}"}


class DisjointType(types.Tuple):
    """The type of a tuple of the fields of a structured array: they lie between each other, and share no byte."""

    def __new__(cls, components: tuple[Type, ...]) -> DisjointType:
        """Return the new type, which is never one of equal components."""
        return object.__new__(cls)

    def __init__(self, components: tuple[Type, ...]) -> None:
        super().__init__(components)  # type: ignore[no-untyped-call]

    def with_components(self, components: tuple[Type, ...]) -> Type:
        """Return the type of a tuple of other values, which need not be fields."""
        found: Type = types.BaseTuple.from_types(components)
        return found


class Lanes(types.Type):
    """The type of several numbers of one type, on which an operation acts at once: a tangent in each direction.

    In plain Python, as in arrays of such values, it is an array of `count` numbers.
    """

    def __init__(self, dtype: Type, count: int) -> None:
        self.dtype = dtype
        self.count = count
        super().__init__(f"{_TEXT[dtype]}x{count}")


class SlotsType(types.DictType):
    """The type of a dict from keys to slots (see `zygote_py.ir.ops.slots`), which no value of the program has."""

    def __init__(self, key_type: Type) -> None:
        super().__init__(key_type, types.int64)  # type: ignore[no-untyped-call]

    def __unliteral__(self) -> SlotsType:
        """Return the type itself."""
        return self


def type_text(t: Type) -> str:
    """Return the text of a type."""
    if t in _TEXT:
        return _TEXT[t]
    match t:
        case Lanes():
            return str(t)
        case types.Array() if type(t) is types.Array:
            layout = "" if t.layout == "C" else str(t.layout)
            readonly = "" if t.mutable else "readonly "
            unaligned = "" if t.aligned else "unaligned "
            return f"{readonly}{unaligned}{type_text(t.dtype)}[{', '.join(':' * t.ndim)}]{layout}"
        case types.UniTuple() | types.Tuple():
            items = [type_text(item) for item in t.types]
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        case types.List() if not t.reflected:
            return f"list({type_text(t.dtype)})"
        case _:
            return f"<{t}>"


def is_scalar(type: Type) -> bool:
    """Whether this is a number or a truth value."""
    return isinstance(type, types.Number | types.Boolean)


def components_of(type: Any) -> tuple[Type, ...]:
    """Return the component types of a tuple type."""
    return tuple(type.types)


def names_of(type: Any) -> tuple[str, ...]:
    """Return the component names of a tuple type: the fields of a NamedTuple or a dataclass, else numbers."""
    return tuple(getattr(type, "fields", map(str, range(len(type.types)))))


def item_texts(type: Any) -> tuple[str, ...]:
    """Return the suffixes that access the components of a tuple: `.W` for named components, else `[0]`."""
    return tuple(item_text(type, number) for number in range(len(type.types)))


def item_text(type: Any, number: int) -> str:
    """Return the suffix that accesses one component."""
    return f".{type.fields[number]}" if hasattr(type, "fields") else f"[{number}]"


def with_components(type: Any, components: tuple[Type, ...]) -> Type:
    """Return a tuple type with other components, of the same NamedTuple or dataclass if it is one."""
    own = hasattr(type, "with_components")
    cls = getattr(type, "instance_class", None)
    made: Type = type.with_components(components) if own else types.BaseTuple.from_types(components, cls)
    return made


def leaf_types(type: Type) -> Iterator[Type]:
    """Yield the leaf types of a type: the component types of nested tuples that are not tuples themselves."""
    if isinstance(type, types.BaseTuple):
        for each in components_of(type):
            yield from leaf_types(each)
    else:
        yield type


def scalar_type(type: Type) -> Type:
    """Return the type of each of several numbers, and any other type unchanged."""
    return type.dtype if isinstance(type, Lanes) else type


def itemsize(type: Any) -> int:
    """Return the size in bytes of an array's elements, or of a number."""
    kind = getattr(type, "dtype", type)
    if isinstance(kind, Lanes):
        return kind.count * itemsize(kind.dtype)
    return np.dtype(str(kind)).itemsize


def copied_type(type: Type) -> Type:
    """Return the type of a copy of an array. For Numba, a copy of an unaligned array is unaligned."""
    if not isinstance(type, types.Array):
        return type
    made: Type = type.copy(layout="F" if type.layout == "F" else "C", readonly=False)
    return made


def writable(type: Type) -> Type:
    """Return the writable variant of an array type, and any other type unchanged."""
    made: Type = type.copy(readonly=False) if isinstance(type, types.Array) else type
    return made


def is_a(type: Type, wanted: Type) -> bool:
    """Return whether a value of `type` is also one of type `wanted`: an array in C order is an array in any order."""
    if type is wanted:
        return True
    if isinstance(type, types.BaseTuple) and isinstance(wanted, types.BaseTuple) and names_of(type) == names_of(wanted):
        items, others = components_of(type), components_of(wanted)
        return len(items) == len(others) and all(map(is_a, items, others))
    if not isinstance(type, types.Array) or not isinstance(wanted, types.Array):
        return type == wanted
    same = (type.dtype, type.ndim) == (wanted.dtype, wanted.ndim) and (type.aligned or not wanted.aligned)
    return same and wanted.layout in (type.layout, "A") and (type.mutable or not wanted.mutable)


def common_type(first: Type, second: Type) -> Type:
    """Return a type common to values of both types, for arrays and tuples of arrays that differ only in order."""
    if is_a(second, first):
        return first
    if isinstance(first, types.BaseTuple) and isinstance(second, types.BaseTuple):
        return with_components(first, tuple(map(common_type, components_of(first), components_of(second))))
    if isinstance(first, types.Array) and isinstance(second, types.Array):
        layout = first.layout if first.layout == second.layout else "A"
        readonly = not (first.mutable and second.mutable)
        return types.Array(first.dtype, first.ndim, layout, readonly, aligned=first.aligned and second.aligned)
    return second if is_a(first, second) else first


def parse_type(s: str) -> Type:
    """Return the type of a text. Raises ValueError, with the valid spellings, for any other text."""
    s = s.strip()
    if s in _SPELLED:
        return _SPELLED[s]
    if (several := _lanes(s)) is not None:
        return several
    if s.startswith("readonly "):
        array = parse_type(s.removeprefix("readonly "))
        if isinstance(array, types.Array):
            return types.Array(array.dtype, array.ndim, array.layout, readonly=True, aligned=array.aligned)
    if s.startswith("unaligned "):
        array = parse_type(s.removeprefix("unaligned "))
        if isinstance(array, types.Array):
            return types.Array(array.dtype, array.ndim, array.layout, aligned=False)
    if found := re.fullmatch(r"array\((\w+), (\d+)d, ([CFA])\)", s):
        return types.Array(_scalar(found[1], s), int(found[2]), _LAYOUTS[found[3]])
    if found := re.fullmatch(r"(\w+)\s*\[([:\s,1]*)\]\s*([CFA]?)", s):
        return _array(found[1], [axis.strip() for axis in found[2].split(",")], found[3], s)
    if s.startswith("list(") and s.endswith(")"):
        return _list_of(parse_type(s[5:-1]))
    if s.startswith("(") and s.endswith(")"):
        return _tuple_of(parse_types(s[1:-1].rstrip().removesuffix(",")))
    raise _unknown(s)


def parse_types(s: str) -> tuple[Type, ...]:
    """Return the types of a comma-separated list, such as `f64, i64, f64[:, :]F, (f64, i64)`, which may be empty."""
    return tuple(parse_type(part) for part in split(s, ",")) if s.strip() else ()


def _array(dtype: str, axes: list[str], layout: str, s: str) -> Type:
    if axes == [""]:
        return types.Array(_scalar(dtype, s), 0, "C")
    contiguous = [index for index, axis in enumerate(axes) if axis == "::1"]
    if any(axis not in (":", "::1") for axis in axes) or len(contiguous) > 1 or (contiguous and layout):
        raise _unknown(s)
    # Numba's notation: the axis marked with ::1 is the contiguous one.
    if contiguous and contiguous[0] not in (0, len(axes) - 1):
        raise _unknown(s)
    if contiguous:
        layout = "C" if contiguous[0] == len(axes) - 1 else "F"
    return types.Array(_scalar(dtype, s), len(axes), _LAYOUTS[layout])


def _scalar(name: str, s: str) -> Type:
    found = _SPELLED.get(name) or _lanes(name)
    if not isinstance(found, types.Number | types.Boolean | Lanes):
        raise _unknown(s)
    return found


def _lanes(name: str) -> Lanes | None:
    found = re.fullmatch(r"(f64|f32)x(\d+)", name)
    return Lanes(_SHORT[found[1]], int(found[2])) if found else None


def _unknown(s: str) -> ValueError:
    return ValueError(
        f"unknown type {s!r}: write f64, f32, i64, i32, u8, bool, none, str, an array such as f64[:] or f64[:, :]F, "
        "or a tuple such as (f64, i64)"
    )


def top_level(s: str) -> Iterator[tuple[int, str]]:
    """Yield the characters of a text outside of brackets and quotes, with their indices; brackets count as inside."""
    closing: list[str] = []
    quote = ""
    escaped = False
    for index, character in enumerate(s):
        if quote:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == quote:
                quote = ""
        elif character in "'\"" and not (index and (s[index - 1].isalnum() or s[index - 1] in "_'")):
            quote = character  # and not the prime of b1'
        elif closing and character == closing[-1]:
            closing.pop()
        elif character in _BRACKETS:
            closing.append(_BRACKETS[character])
        elif not closing:
            yield index, character


def split(s: str, separator: str) -> list[str]:
    """Split a text at a separator outside of brackets and quotes. The parts are stripped."""
    parts: list[str] = []
    start = 0
    for index, character in top_level(s):
        if character == separator[0] and index >= start and s.startswith(separator, index):
            parts.append(s[start:index].strip())
            start = index + len(separator)
    parts.append(s[start:].strip())
    return parts
