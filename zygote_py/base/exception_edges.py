"""Typed statements with `try`: the edges along which exceptions are propagated.

    1: s = x / y                          1: s = x / y
       try 3, next 2            ->           try 4, next 2
    3: t = merge 1: a, 2: b               4: goto 3
                                          3: t = merge 4: a, 2: b

Nothing else is changed (see `zygote_py.frontend.graphs.exceptions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from zygote_py.base import statements as st


def through_trampolines(
    blocks: Mapping[st.Label, st.TypedBlock],
) -> dict[st.Label, st.TypedBlock]:
    """Insert an edge from each block in a `try` to the handler, so that merges there can tell the blocks apart."""
    fresh = count(max(blocks) + 1)
    found = dict(blocks)
    sources: dict[st.Label, dict[st.Label, st.Label]] = {}
    for label, block in blocks.items():
        if isinstance(block.ending, st.Try):
            way = next(fresh)
            handler = block.ending.handler
            found[way] = st.TypedBlock((), st.Jump(handler, block.ending.loc), block.loc)
            ending = st.Try(way, block.ending.target, block.ending.loc)
            found[label] = st.TypedBlock(block.statements, ending, block.loc)
            sources.setdefault(handler, {})[label] = way
    for handler, ways in sources.items():
        found[handler] = st.map_merges(found[handler], ways)
    return found


def leads_out(blocks: Mapping[st.Label, st.TypedBlock], label: st.Label) -> bool:
    """Return whether no statement of the user is executed from a block on until the exception leaves the function."""
    seen = set()
    while label not in seen:
        seen.add(label)
        block = blocks[label]
        if not all(_is_bare(each) for each in block.statements):
            return False
        match block.ending:
            case st.Jump(target) | st.Try(_, target):
                label = target
            case st.Raise(_, args):
                return args == LEFT
            case _:
                return False
    return False


def _is_bare(statement: st.Statement) -> bool:
    return isinstance(statement, st.Assign) and isinstance(statement.value, st.Constant | st.Copy | st.Phi)


# What a function raises where an exception leaves a `try` with `finally`: which one it was is not known there.
LEFT: tuple[object, ...] = ("an exception left `try`",)
