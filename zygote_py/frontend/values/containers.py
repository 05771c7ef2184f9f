"""Lists, dicts and objects as arguments: in the IR they are their parts, from the first instruction to the last.

    leaves_of(ListType(Tuple(i64, f64)))          list(i64), list(f64)
    paths_of(ListType(Tuple(i64, f64)))           "each.0", "each.1": how a compiled function takes these from a list

A gradient has the form of its argument. In the IR it is a tuple of the adjoints of the parts, None for those that have
none; `gradient_type` is the type of what a compiled function gives, and `template_of` says how that is made of parts:

    gradient_type(ListType(Tuple(i64, f64)), (none, list(f64)))       ListType(Tuple(none, f64))
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from numba import types
from numba.typed import List

from zygote_py import numba_adapter
from zygote_py.frontend.values.bundles import (
    dict_of,
    fields_of_record,
    is_list,
    is_record,
    is_structured,
    is_tuple,
    is_whole,
    key_has_floats,
    leaves_of,
    plain,
)
from zygote_py.ir import Type, components_of, leaf_types, names_of, with_components
from zygote_py.ir.ops import SEPARATOR

_list_of: Any = types.List


def holds_container(type: Type) -> bool:
    """Return whether a value of this type is a list, a dict, an object or of records, or has one as a component."""
    return any(map(is_whole, leaf_types(type)))


def paths_of(type: Any) -> list[str]:
    """Return the path of each leaf of a type (see `zygote_py.ir.ops.containers`)."""
    return [SEPARATOR.join(steps) for steps in _steps(type)]


def _steps(type: Any) -> Iterator[tuple[str, ...]]:
    own: Any = type if is_tuple(type) else plain(type)
    if is_tuple(own):
        for number, part in enumerate(components_of(own)):
            step = f":{names_of(own)[number]}" if hasattr(own, "fields") else str(number)
            yield from ((step, *steps) for steps in _steps(part))
    elif is_list(own):
        yield from (("each", *steps) for steps in _steps(own.dtype))
    elif dict_of(own) is not None:
        yield from (("slots",),) * (1 + key_has_floats(own))
        yield from (("keys", *steps) for steps in _steps(own.key_type))
        yield from (("values", *steps) for steps in _steps(own.value_type))
    elif is_record(own):
        yield ("first",)
        yield from (("rows", *steps) for steps in _field_steps(own))
    elif is_structured(own):
        yield from _field_steps(own.dtype)
    elif numba_adapter.is_object(own):
        for name, field in numba_adapter.fields_of_object(own).items():
            for leaf, steps in zip(leaves_of(field), _steps(field), strict=True):
                yield ("cell" if isinstance(leaf, types.Number | types.Boolean) else "box", f":{name}", *steps)
    elif leaves_of(own):
        yield ()


def _field_steps(record: Any) -> Iterator[tuple[str, ...]]:
    for name, field in fields_of_record(record).items():
        if is_record(field):
            yield from ((f"={name}", *steps) for steps in _field_steps(field))
        else:
            yield (f"={name}",)


# ----------------------------------------------------------------------------------------------------- gradients


def gradient_type(type: Any, parts: Sequence[Type]) -> Type:
    """Return the type of a container's gradient, for the types of the adjoints of its leaves."""
    if all(isinstance(part, types.NoneType) for part in parts):
        return types.none
    own: Any = plain(type)
    if is_structured(own) or is_record(own):
        return types.Array(own, 1, "C") if is_record(own) else types.Array(own.dtype, own.ndim, "C")
    if is_list(own):
        inner = _inner(own.dtype, [getattr(part, "dtype", part) for part in parts])
        made: Type = types.ListType(inner) if isinstance(own, types.ListType) else _list_of(inner)
        return made
    if dict_of(own) is not None:
        count = len(leaves_of(own.value_type))
        return types.DictType(
            own.key_type, _inner(own.value_type, [getattr(each, "dtype", each) for each in parts[-count:]])
        )
    fields, rest = [], list(parts)
    for field in numba_adapter.fields_of_object(own).values():
        taken, rest = rest[: len(leaves_of(field))], rest[len(leaves_of(field)) :]
        fields.append(_inner(field, [getattr(each, "dtype", each) for each in taken]))
    return with_class(tuple(fields), gradient_class(own))


def with_class(parts: tuple[Type, ...], cls: Any) -> Type:
    """Return the type of NamedTuples of a class."""
    found: Type = types.BaseTuple.from_types(parts, cls)
    return found


def _inner(type: Any, parts: Sequence[Type]) -> Type:
    """Return the type of the gradient of an element or of a field."""
    if is_whole(type):
        return gradient_type(type, parts)
    if not is_tuple(type):
        return parts[0] if parts else types.none
    found, rest = [], list(parts)
    for part in components_of(type):
        taken, rest = rest[: len(leaves_of(part))], rest[len(leaves_of(part)) :]
        found.append(_inner(part, taken))
    return with_components(type, tuple(found))


@cache
def gradient_class(type: Any) -> Any:
    """Return the class of the NamedTuples that are gradients of the objects of a jitclass."""
    return namedtuple(type.class_type.class_name, tuple(numba_adapter.fields_of_object(type)))


def template_of(type: Any, first: int = 0, is_result: bool = False) -> Any:
    """Return how a value of a type is made of its leaves, numbered from `first` (see `ir.ops.containers`).

    With `is_result` entries may have been removed from dicts, whose leaves still have them.
    """
    if isinstance(type, types.NoneType):
        return ("none",)
    if is_tuple(type):
        made = []
        for part in components_of(type):
            made.append(template_of(part, first, is_result))
            first += count_of(part)
        return ("tuple", type, *made)
    own: Any = plain(type)
    if is_list(own):
        cls = List if isinstance(own, types.ListType) else list
        return ("list", cls, template_of(own.dtype, 0, is_result), tuple(range(first, first + count_of(own.dtype))))
    if dict_of(own) is not None:
        keys, values = count_of(own.key_type), count_of(own.value_type)
        start = first + 1 + key_has_floats(own)
        numbers = tuple(range(start, start + keys)), tuple(range(start + keys, start + keys + values))
        slots = (start - 1, first) if is_result else ()  # of the keys, of the values
        of_value = template_of(own.value_type, 0, is_result)
        return ("dict", template_of(own.key_type), numbers[0], of_value, numbers[1], slots)
    return ("part", first)


def count_of(type: Any) -> int:
    """Return the number of leaves of a gradient: None has none."""
    if isinstance(type, types.NoneType):
        return 0
    if is_tuple(type):
        return sum(map(count_of, components_of(type)))
    if is_list(type):
        return count_of(type.dtype)
    if (own := dict_of(type)) is not None:
        return 1 + key_has_floats(own) + count_of(own.key_type) + count_of(own.value_type)
    return len(leaves_of(type)) if is_structured(type) else 1
