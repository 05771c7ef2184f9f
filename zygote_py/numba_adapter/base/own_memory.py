"""Which memory the arrays of a compiled function may be in: that of its arguments, or one that the function has made.

    def f(x, n):
        a = np.zeros(n)             # memory 1
        b = a[1:]                   # memory 1
        c = b if n > 2 else x       # memory 1, or given
        for i in range(n):
            d = np.empty(i)         # memory 2, in each round
            ...

What a statement has made in another round is not told from what it makes in this one. Of an array from elsewhere, a
list or a call, nothing is known: it may be any of these.

What is memory of its own for one call may be an argument's for a call within it. So it may not be said of a loop that
LLVM makes of a function that ends with a call of itself. It makes none: after such a call, the function drops its
reference to the array that it has made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numba import types

from zygote_py.numba_adapter.base.internals import ir

GIVEN = 1  # the memory of arguments and of arrays that are constants
UNKNOWN = -1  # all bits

_NEW: frozenset[Any] = frozenset(
    {np.empty, np.zeros, np.ones, np.full, np.empty_like, np.zeros_like, np.ones_like, np.copy}
)
_VIEWS = frozenset({"array.reshape", "array.ravel", "array.transpose"})  # or else copies


def memory_of_arrays(blocks: Mapping[int, Any], typeof: Callable[[str], Any]) -> dict[str, int]:
    """Return the bits of the memory that each variable may be in that holds an array, unless it is not known."""
    assigned = [(each.target.name, each.value) for block in blocks.values() for each in block.find_insts(ir.Assign)]
    times = Counter(name for name, _ in assigned)
    methods = {name: value for name, value in assigned if getattr(value, "op", None) == "getattr" and times[name] == 1}
    found: dict[str, int] = {}
    holders: dict[str, list[str]] = {}  # by each variable those that may hold its array
    new = GIVEN
    for name, value in assigned:
        if type(typeof(name)) is not types.Array:
            continue
        if _makes_one(value, methods, typeof):
            new <<= 1
            found[name] = found.get(name, 0) | new
            continue
        for source in _sources(value, methods, typeof):
            if isinstance(source, str):
                holders.setdefault(source, []).append(name)
            else:
                found[name] = found.get(name, 0) | source
    work = list(found)
    while work:
        source = work.pop()
        for name in holders.get(source, ()):
            before = found.get(name, 0)
            if before | found[source] != before:
                found[name] = before | found[source]
                work.append(name)
    return {name: bits for name, bits in found.items() if bits != UNKNOWN}


def _makes_one(value: Any, methods: Mapping[str, Any], typeof: Callable[[str], Any]) -> bool:
    """Return whether an expression of an array makes a new one."""
    match getattr(value, "op", None):
        case "binop" | "unary" | "arrayexpr":
            return True
        case "call":
            kind = typeof(value.func.name)
            if isinstance(kind, types.BoundFunction):
                return kind.typing_key == "array.copy" and value.func.name in methods
            key = getattr(kind, "typing_key", None)
            return type(kind) is types.Function and (
                key in _NEW or (key is np.dot and not value.kws and len(value.args) == 2)
            )
    return False


def _sources(value: Any, methods: Mapping[str, Any], typeof: Callable[[str], Any]) -> Iterator[str | int]:
    """Yield the variables whose array an expression may be, or the memory that it is in."""
    if isinstance(value, ir.Arg | ir.Global | ir.FreeVar | ir.Const):
        yield GIVEN
        return
    if isinstance(value, ir.Var):
        yield value.name
        return
    match getattr(value, "op", None):
        case "cast":
            yield from _of_array(value.value, typeof)
        case "inplace_binop":
            yield from _of_array(value.lhs, typeof)
        case "phi":
            for each in value.incoming_values:
                yield from _of_array(each, typeof) if isinstance(each, ir.Var) else ()
        case "getitem" if _gives_a_view(typeof(value.index.name)):
            yield from _of_array(value.value, typeof)
        case "static_getitem" if value.index_var is not None and _gives_a_view(typeof(value.index_var.name)):
            yield from _of_array(value.value, typeof)
        case "getattr" if value.attr == "T":
            yield from _of_array(value.value, typeof)
        case "call" if getattr(typeof(value.func.name), "typing_key", None) in _VIEWS and value.func.name in methods:
            yield from _of_array(methods[value.func.name].value, typeof)
        case _:
            yield UNKNOWN


def _of_array(variable: Any, typeof: Callable[[str], Any]) -> Iterator[str | int]:
    yield variable.name if type(typeof(variable.name)) is types.Array else UNKNOWN


def _gives_a_view(index: Any) -> bool:
    """Return whether an index of a type gives a view: it has integers, slices, and what stands for whole axes alone."""
    parts: Any = index if isinstance(index, types.BaseTuple) else [index]
    known = (types.Integer, types.SliceType, types.EllipsisType, types.NoneType)
    return all(isinstance(each, known) for each in parts)
