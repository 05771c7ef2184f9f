"""Passes over the IR, one per file, and the lists in which they run.

    run(function, CLEAN_UP)

Environment variables enable a check or a dump after each of them (see `zygote_py.ir.checks.debug`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zygote_py.ir.checks.debug import check_after
from zygote_py.ir.core import Function
from zygote_py.ir.passes.accumulation.invariant_elements import keep_invariant_elements
from zygote_py.ir.passes.accumulation.promote import promote_accumulations
from zygote_py.ir.passes.accumulation.recognise import recognise_accumulations
from zygote_py.ir.passes.canonical.binary_merges import make_merges_binary
from zygote_py.ir.passes.canonical.boolean_phis import replace_boolean_phis
from zygote_py.ir.passes.canonical.edges import join_loop_edges, split_critical_edges
from zygote_py.ir.passes.canonical.keep_counting import keep_counting
from zygote_py.ir.passes.canonical.sink_from_headers import bare_headers
from zygote_py.ir.passes.canonical.thread_jumps import forward_jumps
from zygote_py.ir.passes.canonical.unify_loop_exits import canonicalise_loops
from zygote_py.ir.passes.canonical.unify_returns import merge_returns
from zygote_py.ir.passes.canonical.unrotate_loops import unrotate_loops
from zygote_py.ir.passes.cleanup.common_subexpressions import merge_common_subexpressions
from zygote_py.ir.passes.cleanup.copy_propagation import propagate_copies
from zygote_py.ir.passes.cleanup.dead_code import remove_dead_code
from zygote_py.ir.passes.cleanup.dead_loops import remove_dead_loops
from zygote_py.ir.passes.cleanup.fold_constants import fold_constants
from zygote_py.ir.passes.cleanup.forward_stacks import forward_stacks
from zygote_py.ir.passes.cleanup.merge_blocks import merge_blocks
from zygote_py.ir.passes.cleanup.redundant_phis import remove_constant_phis, remove_redundant_phis
from zygote_py.ir.passes.cleanup.whole_tuples import store_whole_tuples
from zygote_py.ir.passes.loops.fusion import fuse_loops

Pass = Callable[[Function], object]

# These keep canonical form. A second round handles what the first one exposes: a folded branch, a phi that is a copy.
CLEAN_UP: tuple[Pass, ...] = (
    fold_constants,
    propagate_copies,
    merge_common_subexpressions,
    remove_dead_code,
    remove_dead_loops,
    merge_blocks,
    fold_constants,
    propagate_copies,
    merge_common_subexpressions,
    remove_dead_code,
    remove_dead_loops,
    merge_blocks,
)

CANONICAL: tuple[Pass, ...] = (
    propagate_copies,
    forward_jumps,
    merge_blocks,
    unrotate_loops,
    merge_returns,
    canonicalise_loops,
    keep_counting,
    remove_dead_code,
    forward_jumps,
    join_loop_edges,
    split_critical_edges,
    make_merges_binary,
    replace_boolean_phis,
    bare_headers,
    remove_dead_loops,
    propagate_copies,
    remove_dead_code,
    merge_blocks,
)

__all__ = [
    "CANONICAL",
    "CLEAN_UP",
    "Pass",
    "bare_headers",
    "canonicalise_loops",
    "fold_constants",
    "forward_jumps",
    "forward_stacks",
    "fuse_loops",
    "join_loop_edges",
    "keep_counting",
    "keep_invariant_elements",
    "make_merges_binary",
    "merge_blocks",
    "merge_common_subexpressions",
    "merge_returns",
    "promote_accumulations",
    "propagate_copies",
    "recognise_accumulations",
    "remove_constant_phis",
    "remove_dead_code",
    "remove_dead_loops",
    "remove_redundant_phis",
    "replace_boolean_phis",
    "run",
    "split_critical_edges",
    "store_whole_tuples",
    "unrotate_loops",
]


def run(function: Function, passes: Sequence[Pass]) -> None:
    """Run `passes` on `function`, in place: those of them that are not known to change nothing.

    A pass that has changed nothing is left out until another one has changed something.
    """
    state = _state(function)
    idle: set[Pass] = set()
    for step in passes:
        if step in idle:
            continue
        step(function)
        before, state = state, _state(function)
        check_after(step.__name__, function, is_changed=state != before)
        if state != before:
            idle.clear()
        else:
            idle.add(step)


def _state(function: Function) -> list[object]:
    """Return what passes change of a function: instructions by identity, and what they are now made of."""
    state: list[object] = [tuple(function.params)]
    for block in function.blocks:
        end = block.terminator
        state += (block, end, end.args, block.successors)
        for phi in block.phis:
            state += (phi, phi.type, tuple(phi.incoming.items()))
        for instr in block.instrs:
            state += (instr, instr.op, instr.args, instr.type)
    return state
