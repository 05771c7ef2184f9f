"""Elements of arrays that a loop accesses one by one: variables in each round, and no zeros to which it adds.

    %dx = zeros_like %x                         %dx = empty_like %x
    loop over all %i:                           loop over all %i:
        accumulate %dx, %d, %i          ->          setitem %dx, %d, %i

    loop over %i:                               loop over %i:
        %a = getitem %du, %i                        %a = getitem %du, %i
        setitem %du, 0.0, %i            ->
        accumulate %du, %b, %i
        %c = getitem %du, %i                        (%c is %b)
        setitem %du, 0.0, %i
    (nothing uses %du)

Each round of the loop accesses one element, which no other round does. If the array is one of zeros that nothing uses
before the loop, the first access finds zero; if the loop sets all of its elements, they need not be zero before. If
nothing uses it after the loop, nothing is stored, and what is neither read nor stored vanishes. Before the loop and in
it, nothing may give the array another name.

Adjoints that are a sum with such a zero, or a product, are not computed, and no zero is stored in an array that holds
nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

import numpy as np
from numba import types

from zygote_py.ir import (
    Block,
    Branch,
    Function,
    Instr,
    Jump,
    Loop,
    LoopNest,
    Operand,
    Phi,
    Return,
    Routine,
    Use,
    Value,
    counted_exit,
    definitions,
    drop_unreachable,
    has_memory,
    is_fresh,
    is_left_out,
    loop_nest,
    ops,
    predecessors,
    reach,
    replace,
    uses,
    zero,
)
from zygote_py.ir.arrays.measures.coverage import visit_of
from zygote_py.ir.arrays.shapes import Shapes
from zygote_py.ir.lazy_dataclass import dataclass

_EMPTY: dict[ops.Op, ops.Op] = {ops.zeros: ops.record, np.zeros_like: np.empty_like}


def keep_elements_in_variables(function: Function) -> bool:
    """Rewrite the loops of a function that is not differentiated any more, in place; return whether there are any."""
    if is_left_out("elements-in-variables"):
        return False
    instrs = list(function.instrs())
    accessed = {each.args[0] for each in instrs if each.op in (ops.setitem, ops.accumulate)}
    arrays = [each for each in instrs if each in accessed and is_fresh(each) and _has_numbers(each)]
    if not arrays or any(ops.is_of_threads(each.op) for each in instrs):
        return False
    are_moved = _add_unconditionally(function, arrays)
    elements = _Elements(function)
    changes = [are_moved, *(elements.rewrite(array) or elements.rewrite_private(array) for array in arrays)]
    if any(changes):
        elements.finish()
        _store_no_zeros(function, arrays)
    return any(changes)


@dataclass(frozen=True, slots=True, eq=False)
class _Accesses:
    """A loop whose rounds access one element of an array each, and the uses of the array.

    `use` is the first of those `inside` the loop; `before` are those of the `others` that may not follow the loop.
    """

    use: Use
    index: Sequence[Operand]
    loop: Loop
    is_whole: bool
    inside: Sequence[Use]
    others: Sequence[Use]
    before: Sequence[Use]

    @property
    def block(self) -> Block:
        """The block of the first use."""
        return self.use.block

    @property
    def is_one_block(self) -> bool:
        """Whether one block has all the uses in the loop."""
        return all(each.block is self.use.block for each in self.inside)


class _Elements:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._nest: LoopNest = loop_nest(function)
        self._home = definitions(function)
        self._used = uses(function)
        self._shapes = Shapes()
        self._replaced: dict[Value, Operand] = {}
        self._zeros: set[Value] = set()  # elements that were read, and are zero

    def rewrite(self, array: Instr) -> bool:
        """Rewrite the loops that access an array of the function; return whether there are any."""
        is_changed = False
        within = self._nest.innermost(self._home[array])
        for each in self._loops_of(array, self._accesses(array), within):
            if any(_is_passed_on(use, array) for use in each.before):
                continue
            is_zero = array.op in _EMPTY and not each.before
            is_set = False
            if each.is_one_block:
                is_used = self._is_used_after(each.others, each.loop, within)
                if is_zero or not is_used or len(each.inside) > 1:
                    is_set = self._keep_in_variable(array, each.index, each.block, is_zero, is_used)
                    is_changed = True
            elif is_zero:
                is_set = self._store_first(each.use, each.inside)
                is_changed = is_changed or is_set
            if is_set and is_zero and each.is_whole:
                array.op = _EMPTY[array.op]
        return is_changed

    def rewrite_private(self, array: Instr) -> bool:
        """Rewrite the first and the last loop of each round of a loop that leaves an array of zeros as it finds it.

        Each round of the outer loop finds zeros, sets all elements in its first loop over them, and resets all in its
        last one. Then they need not be zero before, nor be reset.
        """
        accesses = self._accesses(array)
        if array.op not in _EMPTY or not accesses or any(_is_passed_on(use, array) for use in accesses):
            return False
        around = [loop for loop in self._nest.around(accesses[0].at) if all(each.at in loop for each in accesses)]
        return any(self._rewrite_rounds(array, accesses, loop) for loop in around if self._home[array] not in loop)

    def _rewrite_rounds(self, array: Instr, accesses: Sequence[Use], around: Loop) -> bool:
        if any(inside is not around.header for inside, _ in around.exits):
            return False
        loops = list(self._loops_of(array, accesses, around))
        first = [each for each in loops if each.is_whole and not each.before and _sets(each.inside)]
        last = [
            each
            for each in loops
            if each.is_whole
            and each.is_one_block
            and not self._is_used_after(each.others, each.loop, around)
            and _resets(each.block, array)
            and all(self._has_run(each.loop, latch) for latch in around.latches)
        ]
        if not first or not last:
            return False
        if first[0].is_one_block:
            is_used = first[0].loop is not last[0].loop
            self._keep_in_variable(array, first[0].index, first[0].block, True, is_used)
        elif not self._store_first(first[0].use, first[0].inside):
            return False
        if first[0].loop is not last[0].loop:
            self._keep_in_variable(array, last[0].index, last[0].block, False, False)
        array.op = _EMPTY[array.op]
        return True

    def finish(self) -> None:
        """Replace the elements that were read by what they are, and what is made of zeros."""
        pending = True
        while pending:
            pending = False
            for instr in self._function.instrs():
                if instr.origin is None or not isinstance(instr.type, types.Number):
                    continue
                if instr in self._replaced or instr in self._zeros:
                    continue
                zeros = [self._is_zero(arg) for arg in instr.args]
                if not any(zeros):
                    continue
                match instr.op, instr.args:
                    case operator.add, (a, b) if instr.type == a.type == b.type:
                        self._replaced[instr] = b if zeros[0] else a
                    case operator.sub, (a, b) if zeros[1] and a.type == instr.type:
                        self._replaced[instr] = a
                    case ((operator.mul | operator.neg), _):
                        self._zeros.add(instr)
                    case ((operator.truediv | np.divide), _) if zeros[0]:
                        self._zeros.add(instr)
                    case _:
                        continue
                pending = True
        self._replaced |= {value: zero(value.type) for value in self._zeros}
        replace(self._function, {value: self._seen_through(value) for value in self._replaced})

    def _accesses(self, array: Instr) -> list[Use]:
        """Return the uses of an array, but for those of its lengths."""
        return [use for use in self._used[array] if not (isinstance(use.user, Instr) and use.user.op is ops.dim)]

    def _loops_of(self, array: Instr, accesses: Sequence[Use], within: Loop | None) -> Iterator[_Accesses]:
        """Yield the loops in a loop whose rounds access one element of an array each."""
        seen: set[Loop] = set()
        for use in accesses:
            index = _index_of(use, array)
            if index is None:
                continue
            visit = visit_of(self._nest, self._shapes, index, use.block, self._shapes.of(array), within)
            if visit is None or visit.loop.parent is not within or visit.loop in seen:
                continue
            seen.add(visit.loop)
            inside = [each for each in accesses if each.at in visit.loop]
            others = [each for each in accesses if each.at not in visit.loop]
            if all(_is_at(each, array, index) for each in inside):
                before = [each for each in others if not self._follows_loop(each, visit.loop)]
                yield _Accesses(use, index, visit.loop, visit.is_whole, inside, others, before)

    def _seen_through(self, operand: Operand) -> Operand:
        while isinstance(operand, Value) and operand in self._replaced:
            operand = self._replaced[operand]
        return operand

    def _is_zero(self, operand: Operand) -> bool:
        found = self._seen_through(operand)
        return isinstance(found, Value) and found in self._zeros

    def _follows_loop(self, use: Use, loop: Loop) -> bool:
        """Return whether an access comes after a loop has run."""
        return self._has_run(loop, use.at)

    def _has_run(self, loop: Loop, block: Block) -> bool:
        """Return whether a loop has run where a block begins."""
        tree = self._nest.tree
        is_behind = len(loop.exits) == 1 and tree.dominates(loop.exits[0][1], block)
        return is_behind and tree.dominates(loop.header, block)

    def _is_used_after(self, others: Sequence[Use], loop: Loop, within: Loop | None) -> bool:
        """Return whether an array is used after a loop, in the round of the loop around it that makes the array."""
        around = [] if within is None else [within.header]
        ends = (after for _, after in (*loop.exits, *loop.raising_exits))
        following = set(reach(ends, lambda each: each.successors, around))
        return any(each.at in following for each in others)

    def _store_first(self, use: Use, inside: Sequence[Use]) -> bool:
        """Let a contribution that comes before all other accesses be stored; return whether it does."""
        added = use.user
        if not isinstance(added, Instr) or added.op is not ops.accumulate or added.origin is None:
            return False
        if not all(self._follows(each, added, use.block) for each in inside):
            return False
        added.op = ops.setitem
        return True

    def _follows(self, use: Use, added: Instr, block: Block) -> bool:
        """Return whether an access comes after the first contribution to the element, or is it."""
        if use.block is not block:
            return self._nest.tree.dominates(block, use.block)
        assert isinstance(use.user, Instr)
        return block.instrs.index(added) <= block.instrs.index(use.user)

    def _keep_in_variable(
        self, array: Instr, index: Sequence[Operand], block: Block, is_zero: bool, is_used: bool
    ) -> bool:
        """Let the accesses of a block to the element of a round be ones to a variable, which is stored at last.

        Return whether it is stored.
        """
        assert isinstance(array.type, types.Array)
        kind = array.type.dtype
        element: Operand | None = None  # what it is, if that is known and not zero
        kept: list[Instr] = []
        stored: tuple[int, Instr] | None = None
        accesses = [at for at, each in enumerate(block.instrs) if each.args and each.args[0] is array]
        done = 0
        for at in accesses:
            instr = block.instrs[at]
            if instr.op is ops.dim:
                continue
            kept += block.instrs[done:at]
            done = at + 1
            if instr.op is ops.getitem:
                if is_zero and instr.origin is not None:
                    self._zeros.add(instr)
                elif is_zero:
                    self._replaced[instr] = zero(kind)
                elif element is not None:
                    self._replaced[instr] = element
                else:
                    kept.append(instr)
                    element = instr
                continue
            value = instr.args[1]
            if instr.op is ops.accumulate and not (is_zero and instr.origin is not None):
                if element is None and not is_zero:
                    element = Instr(ops.getitem, (array, *index), kind, array.hint, instr.loc, (), instr.origin)
                    kept.append(element)
                old = zero(kind) if element is None else element
                value = Instr(operator.add, (old, value), kind, array.hint, instr.loc, (), instr.origin)
                kept.append(value)
            is_zero = instr.op is ops.setitem and instr.origin is not None and value == zero(kind)
            element = value
            stored = len(kept), instr
        block.instrs = kept = [*kept, *block.instrs[done:]]
        if stored is None or not is_used:
            return False
        place, last = stored
        assert element is not None
        made = Instr(ops.setitem, (array, element, *index), types.none, "", last.loc, (), last.origin)
        kept.insert(place, made)
        return True


def _store_no_zeros(function: Function, arrays: Sequence[Instr]) -> None:
    """Remove the stores of zeros in arrays of zeros that hold nothing else until the function returns them."""
    used, unneeded = uses(function), set[Value]()
    for array in arrays:
        if array.op not in _EMPTY:
            continue
        assert isinstance(array.type, types.Array)
        stores: list[Instr] = []
        for use in used[array]:
            match use.user:
                case Instr(op=ops.dim | ops.getitem, type=types.Number() | types.Boolean()):
                    continue
                case Instr(op=ops.setitem | ops.accumulate, args=(target, value, *_)) as store if (
                    target is array and value == zero(array.type.dtype) and store.origin is not None
                ):
                    stores.append(store)
                case Instr(op=ops.pack) as made if all(isinstance(each.user, Return) for each in used[made]):
                    continue
                case Return():
                    continue
                case _:
                    break
        else:
            unneeded.update(stores)
    if unneeded:
        for block in function.blocks:
            block.instrs = [each for each in block.instrs if each not in unneeded]


def _add_unconditionally(function: Function, arrays: Sequence[Instr]) -> bool:
    """Let sums of loops that may have run no round, and are then zero, always be added; return whether there are any.

    b4: branch %c, b5, b3                       b4: accumulate %du, %s, %i
    b5: accumulate %du, %s, %i          ->          jump b3
        jump b3
    """
    nest, shapes, made = loop_nest(function), Shapes(), set(arrays)
    preds = predecessors(function)
    is_changed = False
    for block in function.blocks:
        match block.terminator, preds[block]:
            case Jump(target=behind), [Block(terminator=Branch()) as before] if behind in before.successors:
                pass
            case _:
                continue
        if block.phis or any(phi.incoming[block] != phi.incoming[before] for phi in behind.phis):
            continue
        if not block.instrs or not all(
            instr.op is ops.accumulate
            and instr.origin is not None
            and instr.args[0] in made
            and _is_sum_of_loop_before(instr.args[1], before, block, nest)
            and (visit := visit_of(nest, shapes, instr.args[2:], before, shapes.of(instr.args[0]))) is not None
            and visit.is_whole
            for instr in block.instrs
        ):
            continue
        before.instrs += block.instrs
        block.instrs = []
        before.terminator = Jump(behind)
        for phi in behind.phis:
            del phi.incoming[block]
        is_changed = True
    if is_changed:
        drop_unreachable(function)
    return is_changed


def _is_sum_of_loop_before(value: Operand, before: Block, added: Block, nest: LoopNest) -> bool:
    """Return whether a value is a sum, from zero on, of a loop that ends at a block, which tests whether it has run.

    `added` is where that goes on if it has.
    """
    test = before.terminator
    assert isinstance(test, Branch)
    for loop in nest.loops:
        if not isinstance(value, Phi) or value not in loop.header.phis or loop.exits != [(loop.header, before)]:
            continue
        how = counted_exit(loop)
        is_test = (
            how is not None
            and isinstance(test.condition, Instr)
            and test.condition.op is how.comparison.op
            and test.condition.args == (how.start, how.bound)
            and test.then is added
        )
        starts = [value.incoming[each] for each in loop.entering]
        return is_test and all(start == zero(value.type) for start in starts)
    return False


def _has_numbers(array: Instr) -> bool:
    kind = array.type
    return isinstance(kind, types.Array) and isinstance(kind.dtype, types.Number | types.Boolean)


def _sets(accesses: Sequence[Use]) -> bool:
    return any(isinstance(each.user, Instr) and each.user.op is not ops.getitem for each in accesses)


def _resets(block: Block, array: Instr) -> bool:
    """Return whether the last store of a block in an array is one of zero."""
    stores = [each for each in block.instrs if each.args[:1] == (array,) and each.op in (ops.setitem, ops.accumulate)]
    assert isinstance(array.type, types.Array)
    return bool(stores) and stores[-1].op is ops.setitem and stores[-1].args[1] == zero(array.type.dtype)


def _index_of(use: Use, array: Instr) -> Sequence[Operand] | None:
    """Return the index at which an instruction accesses an element of an array; None if it does anything else."""
    user, kind = use.user, array.type
    assert isinstance(kind, types.Array)
    if not isinstance(user, Instr) or user.args[0] is not array or array in user.args[1:]:
        return None
    if user.op is ops.getitem:
        return user.args[1:] if user.type == kind.dtype else None
    if user.op not in (ops.setitem, ops.accumulate) or user.args[1].type != kind.dtype:
        return None
    return user.args[2:]


def _is_at(use: Use, array: Instr, index: Sequence[Operand]) -> bool:
    """Return whether an instruction accesses the element of an array at an index, and does nothing else with it."""
    own = _index_of(use, array)
    return own is not None and len(own) == len(index) and all(a is b for a, b in zip(own, index, strict=True))


def _is_passed_on(use: Use, array: Instr) -> bool:
    """Return whether the memory of an array may be used by another name later."""
    user = use.user
    if not isinstance(user, Instr) or isinstance(user.op, Routine) or has_memory(user.type):
        return True
    return ops.of(user.op).role in ops.FILLS and array in user.args[1:]
