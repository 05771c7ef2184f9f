"""Loops that hand the elements of an array on to each other become one, and the elements variables.

    loop over %i from 0 to %n:                      loop over %i from 0 to %n:
        %a = math.exp %t                                %a = math.exp %t
        setitem %y, %a, %i                              %b = mul %a, %a
    loop over %k from 0 to %n:              ->          %s2 = add %s, %b
        %y1 = getitem %y, %k
        %b = mul %y1, %y1
        %s2 = add %s, %b

The rounds of such loops hand on nothing but sums: the loop that is made can be reversed as it runs, which the first one
alone cannot be, since its adjoints are known after the second. Loops within these are fused, too, if elements have
several indices (`chains.py` finds such loops, `order.py` whether their rounds may run in turn).

All accesses to the array must be in such loops, each to the element of its round: then no array is needed. Loops are
fused only for that, and only if sums of theirs are what the function returns, or are added to that and multiplied: if
the adjoint of a sum is known after the loop alone, the one loop would run twice and seldom become vectors. Values, and
the order of sums, stay the same bit for bit. That an array could not be made, as its length is negative or memory does
not suffice, is not noticed then.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

from numba import config, types

from zygote_py.ir import ops
from zygote_py.ir.analysis.loops import loop_nest
from zygote_py.ir.analysis.memory import Memory
from zygote_py.ir.building.cfg import order_blocks, rename_incoming
from zygote_py.ir.building.ssa import SSABuilder
from zygote_py.ir.checks.debug import is_left_out
from zygote_py.ir.core import (
    Block,
    Function,
    Instr,
    Operand,
    Undef,
    Value,
    predecessors,
    retarget,
    zero,
)
from zygote_py.ir.passes.loops.chains import SETS, Array, Chain, Chains, arrays_of, inside
from zygote_py.ir.passes.loops.order import Rounds
from zygote_py.ir.walks import replace, resolved, uses


def fuse_loops(function: Function) -> bool:
    """Fuse the loops of a function in canonical form, in place; return whether there are any. Some code may be dead."""
    if is_left_out("fused-loops") or _checks_indices(function):
        return False
    changed = False
    while _fuse_some(function):
        changed = True
    return changed


def _checks_indices(function: Function) -> bool:
    """Return whether a loop that goes beyond the end of an array raises IndexError."""
    return bool(function.options.get("boundscheck")) or config.BOUNDSCHECK == 1  # type: ignore[attr-defined]


def _fuse_some(function: Function) -> bool:
    """Replace the elements of arrays whose loops are apart from each other by variables; return whether any."""
    used = uses(function)
    arrays = arrays_of(function, used)
    if not arrays:
        return False
    search = Chains(function, loop_nest(function), used)
    rounds: Rounds | None = None
    changed: set[Block] = set()
    found: list[tuple[Array, list[Chain]]] = []
    for array in arrays:
        chains = search.of(array)
        if chains is None or not changed.isdisjoint(each for chain in chains for each in chain.blocks()):
            continue
        rounds = rounds or Rounds(Memory(function))
        if all(rounds.may_run_in_turn(chain, array.made) for chain in chains):
            changed.update(each for chain in chains for each in chain.blocks())
            found.append((array, chains))
    if found:
        _Fusion(function).run(found)
    return bool(found)


class _Fusion:
    """Makes one loop of each chain, and variables of the arrays. No two arrays have a block in common."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._replaced: dict[Value, Operand] = {}
        self._gone: set[Block] = set()

    def run(self, found: Sequence[tuple[Array, Sequence[Chain]]]) -> None:
        function = self._function
        for _, chains in found:
            for chain in chains:
                self._join(chain)
        function.blocks = [block for block in function.blocks if block not in self._gone]
        replace(function, self._replaced)
        order_blocks(function)
        self._replaced.clear()
        preds = predecessors(function)
        ssa = SSABuilder(function)
        sealed: set[Block] = set()
        for array, chains in found:
            blocks = [each for each in chains[-1].rounds() if each not in self._gone]
            self._keep_in_variables(array, blocks, ssa, preds)
            sealed.update(blocks)
        for block in function.blocks:
            if block not in sealed:
                ssa.seal(block, preds[block])
        replace(function, self._replaced)
        ssa.finish()

    def _join(self, chain: Chain) -> None:
        """Make one loop of those of a chain; the code between them runs before it."""
        first, count, function = chain.loops[0], chain.counts[0], self._function
        (before,), (latch,) = first.entering, first.latches
        header = first.header
        for loop, own, between in zip(chain.loops[1:], chain.counts[1:], chain.between, strict=True):
            (entering,), (last,), ((_, behind),) = loop.entering, loop.latches, loop.exits
            for block in between:
                before.instrs += block.instrs
            (after,) = (each for each in header.successors if each is not inside(first))
            retarget(header, after, behind)
            rename_incoming(behind, loop.header, header)
            retarget(latch, header, inside(loop))
            retarget(last, loop.header, header)
            rename_incoming(header, latch, last)
            for phi in loop.header.phis:
                if phi is not own.phi:
                    phi.incoming = {before: phi.incoming[entering], last: phi.incoming[last]}
                    header.phis.append(phi)
            self._replaced |= {own.phi: count.phi, own.increment: count.increment}
            self._gone |= {*between, loop.header}
            latch = last
        counters = {each.phi for each in chain.counts}
        if not counters <= function.independent:
            function.independent -= counters
        function.independent -= counters - {count.phi}

    def _keep_in_variables(
        self, array: Array, blocks: Sequence[Block], ssa: SSABuilder, preds: Mapping[Block, Sequence[Block]]
    ) -> None:
        """Replace the accesses to an array, in the blocks of a loop, by a variable: the element of the round."""
        made, header = array.made, blocks[0]
        assert isinstance(made.type, types.Array)
        kind = made.type.dtype
        ssa.declare(made, kind, made.hint)
        ssa.seal(header, preds[header])
        ssa.write(made, header, zero(kind) if ops.of(made.op).contents == "zero" else Undef(kind))
        pending = {block: len(preds[block]) for block in blocks[1:]}
        self._replaced |= {query: made.args[axis] for query, axis in array.lengths.items()}
        for block in blocks:
            self._rewrite(block, array, ssa)
            for successor in block.successors:
                if successor in pending:
                    pending[successor] -= 1
                    if not pending[successor]:
                        ssa.seal(successor, preds[successor])

    def _rewrite(self, block: Block, array: Array, ssa: SSABuilder) -> None:
        made = array.made
        instrs: list[Instr] = []
        for instr in block.instrs:
            if instr not in array.accesses:
                instrs.append(instr)
            elif instr.op in SETS:
                ssa.write(made, block, resolved(instr.args[1], self._replaced))
            elif instr.op is ops.getitem:
                found = ssa.read(made, block)
                self._replaced[instr] = zero(instr.type) if isinstance(found, Undef) else found
            else:
                args = ssa.read(made, block), instr.args[1]
                instrs.append(Instr(operator.add, args, args[0].type, made.hint, instr.loc, (), instr.origin))
                ssa.write(made, block, instrs[-1])
        block.instrs = instrs
