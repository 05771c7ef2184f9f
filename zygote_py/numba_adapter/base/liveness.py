"""Numba's analysis of which variables are live at the start of each block, with an int for each set of variables.

    with quick_liveness():
        ...                         # passes of Numba

Numba's analysis joins sets of names, of all variables that reach a block; here a set is one int with a bit for each
variable. The result is the same, the least sets that fulfill the equations.

Numba lists the variables of a statement by looking at all that it holds. Most of that, as its place in the source, is
known from its class to hold none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import NoneType
from typing import Any

from zygote_py.numba_adapter.base.internals import analysis, ir

_WITHOUT = frozenset({ir.Loc, str, int, float, bool, NoneType})


@contextmanager
def quick_liveness() -> Iterator[None]:
    """Within this, Numba finds live variables so, and those of each statement."""
    instructions: Any = ir.Inst
    given, given_list = analysis.compute_live_map, instructions._rec_list_vars

    def list_variables(instruction: Any, part: Any) -> list[Any]:
        kind = part.__class__
        if kind is ir.Var:
            return [part]
        return [] if kind in _WITHOUT else given_list(instruction, part)

    analysis.compute_live_map = live_map
    instructions._rec_list_vars = list_variables
    try:
        yield
    finally:
        analysis.compute_live_map = given
        instructions._rec_list_vars = given_list


def live_map(
    cfg: Any, blocks: Mapping[int, Any], used: Mapping[int, set[str]], defined: Mapping[int, set[str]]
) -> dict[int, set[str]]:
    """Return the variables that are live at the start of each block, as `numba.core.analysis.compute_live_map`."""
    order = cfg.topo_order()
    bits: dict[str, int] = {}
    uses, definitions = ({label: _joined(each, bits) for label, each in given.items()} for given in (used, defined))
    reached = dict.fromkeys(order, 0)
    after = {label: [each for each, _ in cfg.successors(label)] for label in order}
    changing = True
    while changing:
        changing = False
        for label in order:
            now = reached[label] = reached[label] | definitions[label] | uses[label]
            for each in after[label]:
                if now & ~reached[each]:
                    reached[each] |= now
                    changing = True
    live = dict(uses)
    before = {label: [each for each, _ in cfg.predecessors(label)] for label in order}
    changing = True
    while changing:
        changing = False
        for label in reversed(order):
            for each in before[label]:
                found = live[label] & reached[each] & ~definitions[each]
                if found & ~live[each]:
                    live[each] |= found
                    changing = True
    names = list(bits)
    return {label: set(_names(live[label], names)) for label in blocks}


def _joined(names: set[str], bits: dict[str, int]) -> int:
    """Return the set of some names, whose bits are added if they are new."""
    joined = 0
    for name in names:
        joined |= 1 << bits.setdefault(name, len(bits))
    return joined


def _names(variables: int, names: list[str]) -> Iterator[str]:
    while variables:
        lowest = variables & -variables
        yield names[lowest.bit_length() - 1]
        variables ^= lowest
