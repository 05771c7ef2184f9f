"""Fused reversal: loops that only accumulate, of which each iteration is reversed immediately, before the next one.

    for i in range(n):                      for i in range(n):
        t = math.exp(x[i] * w)                  t = math.exp(x[i] * w)
        s += t                       ->         dw += t * x[i]
    ...                                     (and no second loop)
    for i in range(n - 1, -1, -1):
        ...

Nothing needs to be recorded then: the reverse of an iteration uses the values of the iteration directly. That is valid
if the order of the iterations does not matter to the reverse sweep, which is the case if

* the adjoints that enter the reversed loop are known before the loop: constants, seeds, and values computed from
  them and from earlier values; here `ds`;
* the adjoints that its iterations pass on to each other are sums that each adds to; here `dw`;
* memory that the loop writes to is private to an iteration (`privatization.py`, or `covered.py` for that of the threads
  of a block), or each iteration has elements of its own whose shadows are given (`stepwise.py`), and to the shadows of
  other memory the reverse only adds; nothing is written to that memory later, so nothing consumes these shadows.

A function that the loop calls is reversed as soon as it has run, too: its records live for one round. Immediate loops
may be nested. `ImmediateLoops.find` selects the loops; `reverse_at_once` changes the graph of the two
sweeps.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping

from numba import types

from zygote_py.adjoints.analysis import Private, allocated_in, written_in
from zygote_py.adjoints.reverse.fused.covered import Covered
from zygote_py.adjoints.reverse.fused.stepwise import Stepwise
from zygote_py.ir import (
    Alpha,
    Block,
    Branch,
    Builder,
    CameFrom,
    Const,
    Function,
    Instr,
    Jump,
    Loop,
    LoopNest,
    Memory,
    Operand,
    Param,
    Phi,
    Routine,
    Terminator,
    Undef,
    Value,
    counted,
    definitions,
    effect,
    is_zero,
    ops,
    predecessors,
    reach,
    reads,
    rename_incoming,
    replace_uses,
    uses,
    zero,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Effect


@dataclass(frozen=True, slots=True)
class Given:
    """The arrays whose shadows are given: each shadow, by root, and the stores that cover arrays.

    The threads of a block that run such a store, each its own, set all elements of an array (see `covered.py`).
    """

    shadows: Mapping[Value, Value]
    covering: Mapping[Instr, Value]


@dataclass(frozen=True, eq=False)
class Immediate:
    """A loop to reverse immediately. Reverse blocks: `header`, `last` (of the latch), `first`, and the two outside."""

    loop: Loop
    header: Block
    last: Block
    first: Block
    before: Block
    behind: Block


class ImmediateLoops:
    """Finds the immediate loops of a forward and a reverse sweep.

    `mirrored` maps each reverse block to its forward block, `active` are the roots that have shadows, `values` maps the
    primal's values to those of the forward sweep, and `lifted` contains the reverse instructions that were moved there.
    `given` says what is known of shadows that the caller has given.
    """

    def __init__(
        self,
        forward: Function,
        reverse: Function,
        nest: LoopNest,
        mirrored: Mapping[Block, Block],
        active: set[Value],
        values: Mapping[Value, Value],
        lifted: Mapping[Value, Instr],
        memory: Memory,
        given: Given | None = None,
    ) -> None:
        self._forward = forward
        self._reverse = reverse
        self._nest = nest
        self._mirrored = mirrored
        self._active = active
        self._values = values
        self._lifted = lifted
        self._memory = memory
        self._private = Private(forward, nest, memory)
        self._given = given
        self._stepwise = Stepwise(forward, memory, () if given is None else given.shadows)
        self._covered = Covered(forward, nest, memory, {} if given is None else given.covering)
        self._preds = predecessors(reverse)
        self._home = definitions(reverse)
        self._forward_home = definitions(forward)
        self._uses = uses(reverse)

    def find(self) -> list[Immediate]:
        """Return the immediate loops, each after those around it."""
        found: dict[Loop, Immediate] = {}
        for loop in self._nest.loops:
            if loop.parent is None or loop.parent in found:
                candidate = self._shape(loop)
                if candidate is not None and self._only_adds(candidate) and self._memory_is_apart(loop, set(found)):
                    found[loop] = candidate
        return list(found.values())

    def _shape(self, loop: Loop) -> Immediate | None:
        """Return the reverse of a loop, if it has the usual form."""
        header = next(
            (
                block
                for block in self._reverse.blocks
                if self._mirrored.get(block) is loop.header and isinstance(block.terminator, Branch)
            ),
            None,
        )
        if header is None or not all(isinstance(instr, CameFrom) for instr in header.instrs):
            return None
        branch = header.terminator
        assert isinstance(branch, Branch)
        inside = [pred for pred in self._preds[header] if self._mirrored.get(pred) in loop.blocks]
        outside = [pred for pred in self._preds[header] if pred not in inside]
        if len(inside) != 1 or len(outside) != 1 or len(self._preds[branch.then]) != 1:
            return None
        if self._mirrored.get(branch.then) is not loop.latches[0] or self._mirrored.get(branch.orelse) in loop.blocks:
            return None
        if not all(isinstance(pred.terminator, Jump) for pred in (*inside, *outside)):
            return None
        return Immediate(loop, header, branch.then, inside[0], outside[0], branch.orelse)

    def _only_adds(self, it: Immediate) -> bool:
        """Return whether reversed iterations pass on only sums, and all inputs are known before the loop."""
        carried: set[Value] = set()
        for phi in it.header.phis:
            total = self._sum_from(phi, it)
            if total is None or total & carried:
                return False
            carried |= total
        return all(
            self._is_of(self._home[operand], it) or self._is_known(operand, it.loop)
            for block in self._blocks(it)
            for node in block.nodes
            for operand in node.args
            if isinstance(operand, Value) and operand in self._home and operand not in carried
        )

    def _blocks(self, it: Immediate) -> list[Block]:
        """Return the reverse blocks of an iteration."""
        return [block for block in self._reverse.blocks if block is not it.header and self._is_of(block, it)]

    def _is_of(self, block: Block, it: Immediate) -> bool:
        return block is not it.header and self._mirrored.get(block) in it.loop.blocks

    def _sum_from(self, phi: Phi, it: Immediate) -> set[Value] | None:
        """Return the values of an iteration to which `phi` contributes; None unless all are sums with `phi`."""
        found: set[Value] = set()
        start: list[Phi | Instr | Terminator] = [phi]
        for each in reach(start, lambda node: self._users_in(node, it)):
            if not isinstance(each, Phi) and not (isinstance(each, Instr) and each.op is operator.add):
                return None
            found.add(each)
        for value in found - {phi}:
            if isinstance(value, Phi):
                if not all(operand in found or isinstance(operand, Undef) for operand in value.incoming.values()):
                    return None
            elif isinstance(value, Instr) and sum(operand in found for operand in value.args) != 1:
                return None
        return found if phi.incoming[it.first] in found else None

    def _users_in(self, node: Value | Terminator, it: Immediate) -> list[Phi | Instr | Terminator]:
        """Return the users of a value in an iteration."""
        found = self._uses.get(node, ()) if isinstance(node, Value) else ()
        return [use.user for use in found if self._is_of(use.block, it)]

    def _is_known(self, operand: Operand, loop: Loop) -> bool:
        """Return whether an operand can be available before a loop of the forward sweep."""
        (preheader,) = loop.entering
        match operand:
            case Const() | Undef() | Param():
                return True
            case Alpha(value):
                return self._can_be_before(self._values[value], preheader)
            case Instr() if operand in self._lifted:
                return self._can_be_before(self._lifted[operand], preheader)
            case Instr() if operand in self._home:
                is_known = effect(operand) is Effect.PURE or self._is_seed(operand, preheader)
                return is_known and all(self._is_known(arg, loop) for arg in operand.args)
            case Phi() if operand in self._home:
                return self._seed_or_zero(operand, loop) is not None
            case _:
                return True

    def _is_seed(self, read: Instr, preheader: Block) -> bool:
        """Return whether an element of a given shadow is what it was before a loop: one that is stored once, later."""
        if self._given is None or read.op is not ops.getitem or not isinstance(read.origin, Instr):
            return False
        store, shadow = self._values[read.origin], read.args[0]
        if not isinstance(store, Instr) or store.op is not ops.setitem or not isinstance(shadow, Alpha):
            return False
        root = self._memory.root(store.args[0])
        if root is None or self._values[shadow.value] is not self._given.shadows.get(root):
            return False
        later = list(reach([preheader], lambda block: block.successors))
        return self._stepwise.is_stored_last(root, store, later)

    def _seed_or_zero(self, phi: Phi, loop: Loop) -> tuple[list[tuple[Operand, bool]], Instr] | None:
        """Return an element of a given shadow, and the conditions under which a phi is that, and else 0.

        They are those under which the element was stored, and must be known before the loop, too.
        """
        above = self._mirrored.get(self._home[phi])
        found = [(block, each) for block, each in phi.incoming.items() if not is_zero(each)]
        if self._given is None or above is None or not isinstance(above.terminator, Branch) or len(found) != 1:
            return None
        ((pred, operand),) = found
        stored, branch, tree = self._mirrored.get(pred), above.terminator, self._nest.tree
        (preheader,) = loop.entering
        if stored is None or any(each.header is above for each in self._nest.loops):
            return None
        is_then = tree.dominates(branch.then, stored)
        if not is_then and not tree.dominates(branch.orelse, stored):
            return None
        if not self._can_be_before(branch.condition, preheader) or not isinstance(operand, Instr | Phi):
            return None
        if operand not in self._home or operand in self._lifted:
            return None
        if isinstance(operand, Phi):
            inner = self._seed_or_zero(operand, loop)
        else:
            is_known = self._is_seed(operand, preheader) and all(self._is_known(arg, loop) for arg in operand.args)
            inner = ([], operand) if is_known else None
        return inner and ([(branch.condition, is_then), *inner[0]], inner[1])

    def _is_before(self, value: Operand, block: Block) -> bool:
        home = self._forward_home.get(value) if isinstance(value, Value) else None
        return home is None or self._nest.tree.dominates(home, block)

    def _can_be_before(self, value: Operand, block: Block) -> bool:
        """Return whether a forward value can be available at the end of a block, such as a length queried later."""
        return self._is_before(value, block) or (
            isinstance(value, Instr)
            and effect(value) is Effect.PURE
            and not ops.of(value.op).may_raise
            and all(self._can_be_before(arg, block) for arg in value.args)
        )

    def _memory_is_apart(self, loop: Loop, around: set[Loop]) -> bool:
        written = written_in(loop.order, self._memory) & self._active
        made = self._made_in(loop)
        after = self._blocks_after(loop, around)
        private = {
            root
            for root in written | made
            if self._private.is_private(root, loop)
            or self._stepwise.is_stepwise(root, loop, after)
            or self._covered.is_private(root, loop)
        }
        if (written | made) - private:
            return False
        later = written_in(after, self._memory)
        read = {
            root
            for block in loop.order
            for instr in block.instrs
            if instr.op is not ops.barrier
            for arg in reads(instr)
            if (root := self._memory.root(arg)) is not None
        }
        return not (read & self._active - private) & later

    def _made_in(self, loop: Loop) -> set[Value]:
        """Return the roots of the active memory that a loop allocates, or that calls in it return."""
        returned = (
            self._memory.root(instr) for block in loop.order for instr in block.instrs if isinstance(instr.op, Routine)
        )
        return (allocated_in(loop.order, self._memory) | {root for root in returned if root}) & self._active

    def independent(self, immediate: Iterable[Immediate]) -> frozenset[Phi]:
        """Return the counters of those loops of which all memory written to is private to an iteration, active or not.

        Their iterations affect each other by sums alone.
        """
        found: set[Phi] = set()
        for loop in (each.loop for each in immediate):
            written = written_in(loop.order, self._memory) | allocated_in(loop.order, self._memory)
            count = counted(loop, self._forward)
            if count is not None and all(self._private.is_private(root, loop) for root in written):
                found.add(count.phi)
        return frozenset(found)

    def _blocks_after(self, loop: Loop, around: set[Loop]) -> list[Block]:
        """Return the blocks that may run after a loop, in the same iteration of the immediate loops around it."""
        stop = [each.header for each in around if loop.header in each]
        return list(reach((after for _, after in loop.exits), lambda block: block.successors, stop))

    def reverse_at_once(self, it: Immediate) -> list[Phi]:
        """Append the reverse of an iteration to it; return the sums, which become phis of the loop."""
        loop = it.loop
        (preheader,), (latch,) = loop.entering, loop.latches
        self._make_known(it, preheader)
        totals: dict[Value, Phi] = {}
        for phi in it.header.phis:
            start = phi.incoming[it.before]
            known = isinstance(start, Const)
            moved = Phi(phi.type, phi.hint, phi.loc)
            moved.incoming = {preheader: start if known else zero(phi.type), it.first: phi.incoming[it.first]}
            loop.header.phis.append(moved)
            totals[phi] = moved
            if not known:
                total = Instr(operator.add, (start, moved), phi.type, phi.hint)
                it.before.instrs.append(total)
                self._replace_outside(phi, total, it)
        for phi in loop.header.phis:
            if latch in phi.incoming:
                phi.incoming[it.first] = phi.incoming.pop(latch)
        replace_uses(self._reverse, totals)
        replace_uses(self._forward, totals)
        waits = [instr for block in loop.order for instr in block.instrs if instr.op is ops.barrier]
        if waits:  # the next iteration may overwrite what other threads still read in the reverse of this one
            it.first.instrs.append(waits[-1].copy(with_origin=False))
        latch.terminator = Jump(it.last)
        rename_incoming(it.last, it.header, latch)
        it.first.terminator = Jump(loop.header)
        it.before.terminator = Jump(it.behind)
        rename_incoming(it.behind, it.header, it.before)
        self._reverse.blocks.remove(it.header)
        return list(totals.values())

    def _replace_outside(self, phi: Phi, total: Value, it: Immediate) -> None:
        """Replace the uses of a phi outside of the iteration by its sum with the initial value."""
        for block in (*self._reverse.blocks, *self._forward.blocks):
            if block is it.header or self._is_of(block, it):
                continue
            for each in block.phis:
                for pred, operand in each.incoming.items():
                    if operand is phi:
                        each.incoming[pred] = total
            for node in (*block.instrs, block.terminator):
                if node is not total:
                    node.args = tuple(total if arg is phi else arg for arg in node.args)

    def _make_known(self, it: Immediate, preheader: Block) -> None:
        """Compute the inputs of the reversed iterations before the loop."""
        copies: dict[Value, Operand] = {}
        blocks = self._blocks(it)

        def before(value: Operand) -> Operand:
            if self._is_before(value, preheader):
                return value
            assert isinstance(value, Instr)
            if value not in copies:
                copies[value] = copy = value.copy(tuple(map(before, value.args)), with_origin=False)
                preheader.instrs.append(copy)
            return copies[value]

        def known(operand: Operand) -> Operand:
            match operand:
                case Alpha(value):
                    return before(self._values[value])
                case Instr() if operand in self._lifted:
                    return before(self._lifted[operand])
                case Phi() if operand in self._home:
                    if operand not in copies:
                        copies[operand] = guarded(operand)
                    return copies[operand]
                case Instr() if operand in self._home:
                    if operand not in copies:
                        copies[operand] = copy = operand.copy(tuple(map(known, operand.args)))
                        preheader.instrs.append(copy)
                    return copies[operand]
                case _:
                    return operand

        def guarded(phi: Phi) -> Operand:
            """Return an element of a given shadow if it was stored, and else 0."""
            made = self._seed_or_zero(phi, it.loop)
            assert made is not None
            conditions, read = made
            whole: Operand | None = None
            for condition, holds in conditions:
                one = before(condition)
                b = Builder(preheader)
                one = one if holds else b.call(operator.not_, one, type=types.boolean)
                whole = one if whole is None else b.call(operator.and_, whole, one, type=types.boolean)
            assert whole is not None
            shadow, *index = map(known, read.args)
            return Builder(preheader).call(ops.element_if, shadow, whole, *index, type=read.type, hint=phi.hint)

        for block in blocks:
            for instr in block.instrs:
                instr.args = tuple(self._entering(arg, it, known) for arg in instr.args)
            for phi in block.phis:
                phi.incoming = {pred: self._entering(arg, it, known) for pred, arg in phi.incoming.items()}

    def _entering(self, operand: Operand, it: Immediate, known: Callable[[Operand], Operand]) -> Operand:
        if not isinstance(operand, Instr | Phi) or operand not in self._home or operand in self._lifted:
            return operand
        home = self._home[operand]
        return operand if home is it.header or self._is_of(home, it) else known(operand)


def without(nest: LoopNest, removed: set[Loop]) -> LoopNest:
    """Return the nest without some loops, whose blocks then belong to the surrounding loops."""

    def kept(loop: Loop | None) -> Loop | None:
        while loop is not None and loop in removed:
            loop = loop.parent
        return loop

    innermost = {block: found for block in nest.tree.order if (found := kept(nest.innermost(block))) is not None}
    remaining = tuple(loop for loop in nest.loops if loop not in removed)
    for loop in remaining:
        loop.parent = kept(loop.parent)
    return LoopNest(remaining, nest.tree, innermost)
