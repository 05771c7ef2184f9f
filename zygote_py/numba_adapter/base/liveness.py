"""Numba's analysis of the lifetimes of variables, with an int for each set of variables.

    with quick_liveness():
        ...                         # passes of Numba

Numba's analysis joins sets of names, of all variables that reach a block; here a set is one int with a bit for each
variable. The results are the same: the least sets that fulfill the equations. Where a set is large, all variables that
are live at the start of a block, it is made of names when it is looked at, which few passes do.

Numba lists the variables of a statement by looking at all that it holds. Most of that, as its place in the source, is
known from its class to hold none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import Any

from zygote_py.numba_adapter.base.internals import analysis, ir

_WITHOUT = frozenset({ir.Loc, str, int, float, bool, NoneType})


@contextmanager
def quick_liveness() -> Iterator[None]:
    """Within this, Numba finds the lifetimes of variables so, and the variables of each statement."""
    instructions: Any = ir.Inst
    given_list = instructions._rec_list_vars
    given: Any = analysis.compute_live_map, analysis.compute_dead_maps, analysis.compute_live_variables

    def list_variables(instruction: Any, part: Any) -> list[Any]:
        kind = part.__class__
        if kind is ir.Var:
            return [part]
        return [] if kind in _WITHOUT else given_list(instruction, part)

    def dead_maps_of(cfg: Any, blocks: Any, live: Any, defined: Any) -> Any:
        is_ours = isinstance(live, _LiveMap) and live.given is defined
        return dead_maps(cfg, blocks, live) if is_ours else given[1](cfg, blocks, live, defined)

    def live_variables_of(cfg: Any, blocks: Any, defined: Any, dead: Any) -> Any:
        is_ours = isinstance(dead, _DeadMap) and dead.found.given is defined
        return live_variables(cfg, blocks, dead) if is_ours else given[2](cfg, blocks, defined, dead)

    analysis.compute_live_map = live_map
    analysis.compute_dead_maps = dead_maps_of
    analysis.compute_live_variables = live_variables_of
    instructions._rec_list_vars = list_variables
    try:
        yield
    finally:
        analysis.compute_live_map, analysis.compute_dead_maps, analysis.compute_live_variables = given
        instructions._rec_list_vars = given_list


class _LiveMap(dict[int, set[str]]):
    """The names of the variables that are live at the start of each block, made when they are looked at; and as ints.

    `bits` numbers the variables, and `defined` has those that each block defines, as they were `given` by name.
    """

    def __init__(
        self, live: Mapping[int, int], bits: dict[str, int], defined: Mapping[int, int], given: Mapping[int, set[str]]
    ) -> None:
        super().__init__()
        self.live = live
        self.bits = bits
        self.defined = defined
        self.given = given

    def __missing__(self, label: int) -> set[str]:
        found = self[label] = set(_names(self.live[label], list(self.bits)))
        return found


class _DeadMap(dict[int, set[str]]):
    """The names of the variables that are deleted in each block, and the ints of a `_LiveMap`."""

    def __init__(self, dead: Mapping[int, int], found: _LiveMap) -> None:
        names = list(found.bits)
        super().__init__((label, set(_names(each, names))) for label, each in dead.items())
        self.dead = dead
        self.found = found


class _Available:
    """The names of the variables that are available at the start of a block."""

    def __init__(self, variables: int, bits: Mapping[str, int]) -> None:
        self._variables = variables
        self._bits = bits

    def __iter__(self) -> Iterator[str]:
        return _names(self._variables, list(self._bits))


def live_map(
    cfg: Any, blocks: Mapping[int, Any], used: Mapping[int, set[str]], defined: Mapping[int, set[str]]
) -> _LiveMap:
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
    return _LiveMap({label: live[label] for label in blocks}, bits, definitions, defined)


def dead_maps(cfg: Any, blocks: Mapping[int, Any], found: _LiveMap) -> Any:
    """Return the variables to delete in and after each block, as `numba.core.analysis.compute_dead_maps`."""
    inside: dict[int, int] = {}
    escaping = dict.fromkeys(blocks, 0)
    at_exit = 0
    for label, block in blocks.items():
        following = [each for each, _ in cfg.successors(label)]
        kept = at_end = _joined({variable.name for variable in block.terminator.list_vars()}, found.bits)
        for each in following:
            kept |= found.live[each]
        present = found.live[label] | found.defined[label]
        inside[label] = present & ~kept
        for each in following:
            escaping[each] |= present & kept & ~(found.live[each] | found.defined[each])
        if not following:
            at_exit |= at_end
    _check_all_end(cfg, found, (*inside.values(), *escaping.values(), at_exit))
    names = list(found.bits)
    of_successors = defaultdict(set, ((label, set(_names(each, names))) for label, each in escaping.items()))
    return analysis._dead_maps_result(
        internal={label: set(_names(each, names)) for label, each in inside.items()},
        escaping=of_successors,
        combined=_DeadMap({label: inside[label] | escaping[label] for label in blocks}, found),
    )


def deaths_on_edges(lifetime: Any, edges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, list[str]]]:
    """Yield edges between blocks, each with the variables that are used after the other ways of its branch only."""
    found = lifetime.livemap
    names = list(found.bits)
    for before, after in edges:
        kept = 0
        for each, _ in lifetime.cfg.successors(before):
            kept |= found.live[each]
        dying = kept & (found.live[before] | found.defined[before]) & ~(found.live[after] | found.defined[after])
        yield before, after, list(_names(dying, names))


def _check_all_end(cfg: Any, found: _LiveMap, ended: Sequence[int]) -> None:
    missing = 0
    for each in found.live.values():
        missing |= each
    for each in ended:
        missing &= ~each
    if missing and cfg.exit_points():
        raise RuntimeError(f"liveness info missing for vars: {set(_names(missing, list(found.bits)))}")


def live_variables(cfg: Any, blocks: Mapping[int, Any], dead: _DeadMap) -> Mapping[int, Any]:
    """Return the variables available at the start of each block, as `numba.core.analysis.compute_live_variables`."""
    order, bits = cfg.topo_order(), dead.found.bits
    available = dict.fromkeys(blocks, 0)
    changing = True
    while changing:
        changing = False
        for label in order:
            now = (available[label] | dead.found.defined[label]) & ~dead.dead[label]
            for each, _ in cfg.successors(label):
                if now & ~available[each]:
                    available[each] |= now
                    changing = True
    return {label: _Available(each, bits) for label, each in available.items()}


def _joined(names: set[str], bits: dict[str, int]) -> int:
    """Return the set of some names, whose bits are added if they are new."""
    joined = 0
    for name in names:
        joined |= 1 << bits.setdefault(name, len(bits))
    return joined


def _names(variables: int, names: Sequence[str]) -> Iterator[str]:
    """Yield the names of the variables of a set."""
    while variables:
        lowest = variables & -variables
        yield names[lowest.bit_length() - 1]
        variables ^= lowest
