"""Operations at the border of a compiled function: lists, dicts and objects are taken apart, and made.

    taken(s, "each.1")                [each[1] for each in s]         a list for each component
    taken(d, "values")                [each for each in d.values()]
    taken(d, "slots")                 slots_by_order(d)               as in `zygote_py.ir.ops.slots`
    taken(s, "each.copy")             [each.copy() for each in s]     with copies of the arrays
    taken(p, "cell.:total")           np.array([p.total])             the memory of a field of an object
    taken(a, "=x")                    a["x"]                          a field of a structured array
    taken(r, "rows.=x")               array_of_record(r)["x"]         a field of a record, as an array of one
    given(template, l, m)             List([(a, b) for a, b in zip(l, m)])

Inside of the function there are only the parts: arrays, lists and tuples. A path is the text of steps from the outside
in, a template a tuple that says what is made of the parts:

    ("part", 0)                       the part with this number
    ("tuple", type, t, u)             a tuple, a NamedTuple or a dataclass of these
    ("list", cls, t, (0, 1))          a list of this class; its elements are made as `t` says of those of parts
    ("dict", t, (0,), u, (1, 2), ())  a dict, the same for keys and values
    ("dict", t, (1,), u, (2,), (0,0)) the same of the slots that there are, with those of the keys and of the values
    ("none",)                         None
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zygote_py.ir.ops.helpers import helper
from zygote_py.ir.ops.table import Effect, primitive

SEPARATOR = "."


def slots_by_order(keys: Any) -> dict[Any, int]:
    """Return the place of each key of a dict."""
    slots = {}
    for slot, key in enumerate(keys):
        slots[key] = slot
    return slots


helper(slots_by_order, Effect.ALLOCATE)


@primitive(effect=Effect.PURE)
def array_of_record(record: Any) -> Any:
    """Return the array of one record that is in the memory of a record."""
    return np.asarray(record).reshape(1)


def contiguous(x: Any, shape: Any = None) -> Any:
    """Return an array in C order, for Numba, of one that is so in memory and has this shape: the field of a record."""
    if shape is not None and x.shape != shape:
        raise ValueError("the elements of a field are not in its shape")
    return x


@primitive(effect=Effect.ALLOCATE)
def taken(value: Any, path: str) -> Any:
    """Return a part of a value: what is at the end of a path."""
    return _follow(value, path.split(SEPARATOR) if path else [])


def _follow(value: Any, steps: list[str]) -> Any:
    if not steps:
        return value
    step, *rest = steps
    match step:
        case "each" | "keys":
            return [_follow(each, rest) for each in value]
        case "values":
            return [_follow(each, rest) for each in value.values()]
        case "slots":
            return slots_by_order(value)
        case "cell":
            return np.array([_follow(value, rest)])
        case "rows":
            return _follow(array_of_record(value), rest)
        case "box":
            return [_follow(value, rest)]
        case "copy":
            return value.copy()
        case _ if step.startswith(":"):
            return _follow(getattr(value, step[1:]), rest)
        case _ if step.startswith("="):
            return _follow(value[step[1:]], rest)
        case _:
            return _follow(value[int(step)], rest)


@primitive(effect=Effect.ALLOCATE)
def new_records(dtype: Any, *shape: int) -> Any:
    """Return a structured array of zeros."""
    return np.zeros(shape, dtype)


@primitive(effect=Effect.ALLOCATE)
def given(template: Any, *parts: Any) -> Any:
    """Return what a template makes of parts."""
    kind, *rest = template
    match kind:
        case "part":
            return parts[rest[0]]
        case "tuple":
            type_, *inner = rest
            items = [given(each, *parts) for each in inner]
            cls = getattr(type_, "instance_class", None)
            return tuple(items) if cls is None else cls(*items)
        case "list":
            cls, inner, numbers = rest
            return cls([given(inner, *items) for items in zip(*(parts[number] for number in numbers), strict=True)])
        case "dict":
            of_key, keys, of_value, values, slots = rest
            places: Any = [parts[n].values() for n in slots] if slots else [range(len(parts[keys[0]]))] * 2
            return {
                given(of_key, *(parts[n][i] for n in keys)): given(of_value, *(parts[n][j] for n in values))
                for i, j in zip(*places, strict=True)
            }
        case _:
            return None
