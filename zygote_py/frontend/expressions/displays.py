"""List displays from which an array is made become tuples: the lists never exist at run time.

    $1 = list(x, 1.0)                        $1 = tuple(x, 1.0)
    a = call np.array($1)            ->      a = call np.array($1)
    $2 = list(1.0, x)                        $2 = tuple(1.0, x)
    a[:2] = $2                               a[:2] = $2

A list with any other use stays a list. This runs before calls are inlined, since `np.array` of a list is inlined.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator

from numba import types

from zygote_py import numba_adapter
from zygote_py.base import statements as st
from zygote_py.ir import Type, ops
from zygote_py.ir.analysis import reach


def with_tuples(typed: st.TypedFunction) -> st.TypedFunction:
    """Return the same function with tuples for such lists."""
    blocks, types_ = typed.blocks, typed.types
    lists: dict[st.Variable, tuple[st.Variable, ...]] = {}
    uses: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for block in blocks.values():
        for statement in block.statements:
            match statement:
                case st.Assign(target, st.Build("list", items)):
                    uses[target] += 1  # a second assignment counts like a second use
                    uses.update(items)
                    lists[target] = items
                case st.Assign(target, st.Call(callee, (first, *others), keywords)) if _takes_display(types_[callee]):
                    taken[first] += 1
                    uses.update((target, callee, first, *others, *(name for _, name in keywords)))
                case st.Store(target, index, value) if isinstance(types_[target], types.Array):
                    taken[value] += 1
                    uses.update((target, index, value))
                case _:
                    uses.update(_names(statement))
        uses.update(_names(block.ending))

    def once(names: Iterable[st.Variable]) -> Iterator[st.Variable]:
        return (name for name in names if name in lists and uses[name] == 2)

    starts = once(name for name in lists if taken[name] == 1)
    found = {name: lists[name] for name in reach(starts, lambda name: once(lists[name]))}
    if not found:
        return typed
    types_ = dict(types_)
    for name in sorted(found, key=list(lists).index):  # inner ones first
        types_[name] = types.Tuple([types_[item] for item in found[name]])
    changed = {
        label: dataclasses.replace(block, statements=tuple(_changed(each, found, types_) for each in block.statements))
        for label, block in blocks.items()
    }
    return dataclasses.replace(typed, blocks=changed, types=types_)


def _takes_display(callee: Type) -> bool:
    return ops.properties(numba_adapter.object_of(callee)).takes_display


def _changed(
    statement: st.Statement, found: dict[st.Variable, tuple[st.Variable, ...]], types_: dict[st.Variable, Type]
) -> st.Statement:
    match statement:
        case st.Assign(target) if target in found:
            return dataclasses.replace(statement, value=st.Build("tuple", found[target]))
        case st.Assign(_, st.Call(_, (first, *_)) as call) if first in found:
            call = dataclasses.replace(call, types=(types_[first], *call.types[1:]))
            return dataclasses.replace(statement, value=call)
        case _:
            return statement


def _names(node: object) -> Iterator[str]:
    """Return the strings in a statement, the variables among them."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, tuple):
        for each in node:
            yield from _names(each)
    elif dataclasses.is_dataclass(node) and not isinstance(node, st.Constant | type):
        for field in dataclasses.fields(node):
            yield from _names(getattr(node, field.name))
