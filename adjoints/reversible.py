"""Finds the loops whose reverse sweep can walk back, as their state goes through steps that have inverses.

    for i in range(n):                      x, i, count = f_loop(x, 0, 0, w, n)
        x = step(x, w[i])           ->
                                            body(x, i, count, w, n):    step(x, w[i]), i + 1, count + 1
                                            unbody(x, i, count, w, n):  i = i - 1
                                                                        unstep(x, w[i]), i, count - 1

The loop becomes a routine, whose derivative (`adjoints/walking_back.py`) keeps the state at the end, and what the loop
uses from outside. `unbody` solves the body backwards: known are what an iteration leaves, and what does not depend on
the state. A call of a step makes its state known where its results and its other arguments are; a counter is known from
the next; what is computed from known values is known. A value that is only added to need not be known: its old value
has no part in any derivative.

What is computed in branches and inner loops that the state decides is not known, and need not be where it is only
added up. Loops that cannot be solved so are left as they are: those where an iteration leaves other values to the next,
or writes to arrays that were there before it, draws or prints.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence

from numba import types

from zygote_py.adjoints.calls import name_apart
from zygote_py.adjoints.inverses import inverse_of
from zygote_py.adjoints.nothing import define
from zygote_py.adjoints.outlined import call_in_place, is_harmless, return_copies
from zygote_py.adjoints.walking_back import Reversible
from zygote_py.ir import ops
from zygote_py.ir.builder import Builder, items_of
from zygote_py.ir.clone import clone
from zygote_py.ir.core import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    Jump,
    Operand,
    Param,
    Phi,
    Return,
    Routine,
    Value,
)
from zygote_py.ir.dataflow import reach
from zygote_py.ir.debug import check_after
from zygote_py.ir.dominators import dominator_tree, postdominator_tree
from zygote_py.ir.edit import drop_unreachable
from zygote_py.ir.loops import Loop, add_counter, loop_nest
from zygote_py.ir.memory import Memory, bases, draws, effect, has_memory, is_fresh, reads, writes
from zygote_py.ir.ops import Effect
from zygote_py.ir.outline import inputs_of, outlined_body, outlined_loop
from zygote_py.ir.routines import find_effects, results_of, routines_of
from zygote_py.ir.walks import replace_uses, uses

INT = types.int64


def outline_reversible_loops(function: Function, unless_called: Collection[Routine] = ()) -> list[Routine]:
    """Make routines of the loops of a canonical function that can walk back, inner ones first; gives the routines.

    Loops in which one of the routines `unless_called` is called, by whatever ways, are left.
    """
    made: list[Routine] = []
    tried: set[Block] = set()
    while (loop := _next(function, tried)) is not None:
        tried.add(loop.header)
        made += _outlined(function, loop, unless_called)
    return made


def has_reversible_steps(function: Function) -> bool:
    """Whether steps that have inverses are called in a loop; the function need not be canonical."""
    return _next(function, ()) is not None


def _next(function: Function, tried: Collection[Block]) -> Loop | None:
    """An innermost loop that was not tried yet, in which there are steps that have inverses."""
    nest = loop_nest(function)
    for loop in reversed(nest.loops):
        if loop.header not in tried:
            blocks = [block for block in loop.order if nest.innermost(block) is loop]
            if any(inverse_of(instr) is not None for block in blocks for instr in block.instrs):
                return loop
    return None


def _outlined(function: Function, loop: Loop, unless_called: Collection[Routine]) -> list[Routine]:
    phis, inputs, loc = loop.header.phis, inputs_of(loop), loop.header.loc or function.loc
    if len(loop.exits) != 1 or loop.exits[0][0] is not loop.header or not _can_be_passed(function, loop, inputs):
        return []
    body = Routine(f"{function.name}_step")
    body.function = outlined_body(function, loop, body.__name__, inputs)
    if any(routine in unless_called for routine in routines_of(body.function)):
        return []
    if _solved(body.function, len(phis)) is None:
        return []
    add_counter(loop, "count", loc)
    loop.forget_values()
    for phi in phis:
        define([phi], loop.entering[0])
    inputs = inputs_of(loop)
    steps, unbody = Routine(f"{function.name}_loop"), Routine(f"{function.name}_step_back")
    steps.function = outlined_loop(function, loop, steps.__name__, inputs)
    body.function = outlined_body(function, loop, body.__name__, inputs)
    solved = _solved(body.function, len(phis))
    assert solved is not None
    unbody.function, unbody.function.name = solved, unbody.__name__
    return_copies(steps.function)
    name_apart(body.function.params)
    steps.derivation = Reversible(body, unbody, len(phis) - 1)
    made = [steps, body, unbody]
    check_after("outline_reversible_loops", *(routine.function for routine in made))
    find_effects(made)
    call_in_place(function, loop, steps, inputs)
    return made


def _can_be_passed(function: Function, loop: Loop, inputs: Sequence[Value]) -> bool:
    """Whether what a loop uses and carries can be passed to a routine, and copies returned, so that nobody can tell."""
    for value in (*inputs, *loop.header.phis):
        if has_memory(value.type) and not isinstance(value.type, types.Array):
            return False
        if isinstance(value, Instr) and value.op is ops.checkpointed:
            return False
    memory = Memory(function)
    return all(
        is_harmless(loop, writer, target)
        for phi in loop.header.phis
        for writer in memory.writers(phi)
        for target in writes(writer)
        if memory.may_share(target, phi)
    )


# ---------------------------------------------------------------------------------------------- solving backwards


def _solved(body: Function, count: int) -> Function | None:
    """The function that takes back what `body` does to its first `count` parameters; None if it cannot be found."""
    stale: set[int] = set()
    while True:
        made = clone(body).function
        solution = _Solution(made, count, stale)
        if not solution.find():
            return None
        if solution.left <= stale:
            return made
        # The next iteration back would take what is left as it is for what it was: nothing may be known from it.
        stale |= solution.left


class _Solution:
    """Makes a function that runs one iteration the one that takes it back."""

    def __init__(self, function: Function, count: int, stale: Collection[int]) -> None:
        self._function = function
        self._stale = stale  # the numbers of the parameters of which nothing is known after an iteration
        self.left: set[int] = set()  # the numbers of those of which it is not known what they were before it
        self._old, self._inputs = function.params[:count], function.params[count:]
        self._new = [Param(each.type, each.hint, each.loc) for each in self._old]
        self._end, end = function.exit()
        (self._whole,) = end.args
        self._following = list(items_of(self._whole))
        self._known: dict[Value, Operand] = {}
        self._undone = 0  # how many steps are
        self._lost: set[Value] = set()  # the roots of arrays whose contents are not to be had
        self._skipping: dict[Block, Block] = {}  # where the state decides, and where control comes together again

    def find(self) -> bool:
        """Make it; whether that was possible. The function is of no use otherwise."""
        end, function = self._end, self._function
        results = self._counted()
        if not self._only_computes():
            return False
        self._memory = Memory(function)
        spoilt = self._depending()
        if spoilt is None:
            return False
        self._spoilt = spoilt
        for number, (following, new) in enumerate(zip(self._following, self._new, strict=True)):
            if isinstance(following, Value) and following in self._spoilt and number not in self._stale:
                self._known.setdefault(following, new)
        tail = Block(end.loc)
        self._solve(tail)
        if not self._undone:
            return False
        for number, (old, new) in enumerate(zip(self._old, self._new, strict=True)):
            if results[number] is None:
                results[number] = self._known.get(old)
            if results[number] is None:
                if self._is_needed(old):
                    return False
                results[number] = new
                self.left.add(number)
        for block, joined in self._skipping.items():
            block.terminator = Jump(joined)
        for block in function.blocks:
            block.phis = [phi for phi in block.phis if phi not in self._spoilt]
            block.instrs = [instr for instr in block.instrs if instr not in self._spoilt]
        found = tuple(each for each in results if each is not None)
        end.instrs += _needed(tail, found)
        b = Builder(end, end.loc)
        kind = types.Tuple([each.type for each in found])
        end.terminator = Return((b.call(ops.pack, *found, type=kind) if len(found) > 1 else found[0],))
        drop_unreachable(function)
        function.params = [*self._new, *self._inputs]
        name_apart(function.params)
        return True

    def _counted(self) -> list[Operand | None]:
        """What the counters were, and what no iteration changes; None for all others."""
        replacement: dict[Value, Operand] = {}
        made: list[Instr] = []
        found: list[Operand | None] = []
        for old, following, new in zip(self._old, self._following, self._new, strict=True):
            value: Operand | None = None
            if following is old:
                value = new
            elif isinstance(following, Instr) and isinstance(old.type, types.Integer) and following.type == old.type:
                added = _added(following, old)
                if added is not None and (isinstance(added[1], Const) or added[1] in self._inputs):
                    value = Instr(added[0], (new, added[1]), old.type, old.hint, old.loc)
                    made.append(value)
            if value is not None:
                replacement[old] = value
            found.append(value)
        replace_uses(self._function, replacement)
        self._following = [replacement.get(each, each) if isinstance(each, Value) else each for each in self._following]
        self._function.entry.instrs[:0] = made
        return found

    def _depending(self) -> set[Value] | None:
        """The values that depend on what was carried into the iteration, but for the counters.

        So do those that are computed where the state decides whether they are, and arrays to which such values are
        written: these are `lost`, as nothing is written again.
        """
        after = postdominator_tree(self._function)
        found: set[Value] = set(self._old)
        before = -1
        while before != len(found) + len(self._lost):
            before = len(found) + len(self._lost)
            for block in self._function.blocks:
                for value in (*block.phis, *block.instrs):
                    uses = any(isinstance(arg, Value) and arg in found for arg in value.args)
                    if uses or self._memory.root(value) in self._lost:
                        found.add(value)
                    if value in found and isinstance(value, Instr):
                        roots = (self._memory.root(target) for target in writes(value))
                        self._lost.update(root for root in roots if root is not None)
                ending = block.terminator
                if isinstance(ending, Branch) and ending.condition in found and block not in self._skipping:
                    joined = after.idom.get(block)
                    if joined is None:  # it raises in any case
                        return None
                    self._skipping[block] = joined
                    found.update(joined.phis)
                    for other in _between(block, joined):
                        found.update((*other.phis, *other.instrs))
        return found

    def _only_computes(self) -> bool:
        """Whether an iteration does nothing but to compute, and to write to arrays of its own."""
        for block in self._function.blocks:
            for instr in block.instrs:
                if effect(instr) is not Effect.WRITE or inverse_of(instr) is not None:
                    continue
                targets = writes(instr)
                if not targets or draws(instr):
                    return False
                if not all(isinstance(base, Instr) and is_fresh(base) for each in targets for base in bases(each)):
                    return False
        return True

    def _solve(self, tail: Block) -> None:
        """Find what can be known at the end; what that takes is computed in the block `tail`."""
        spine = [instr for block in self._spine() for instr in block.instrs if instr in self._spoilt]
        items: dict[tuple[Value, int], list[Value]] = {}  # what is taken out of the results of calls
        for instr in spine:
            match instr:
                case Instr(op=ops.getitem, args=(Instr() as whole, Const(value=int(number)))):
                    items.setdefault((whole, number), []).append(instr)
        steps = [instr for instr in reversed(spine) if inverse_of(instr) is not None]
        found = True
        while found:
            found = False
            for instr in steps:
                found |= self._undo(instr, items, tail)
            for instr in spine:
                found |= self._compute(instr, tail)

    def _spine(self) -> list[Block]:
        """The blocks that run exactly once."""
        nest, tree = loop_nest(self._function), dominator_tree(self._function)
        return [block for block in tree.order if tree.dominates(block, self._end) and nest.innermost(block) is None]

    def _undo(self, call: Instr, items: Mapping[tuple[Value, int], Sequence[Value]], tail: Block) -> bool:
        """Know the state before a step, if the one after it is known, and the other arguments are."""
        inverse = inverse_of(call)
        assert inverse is not None
        state = call.args[: inverse.state]
        if all(self._operand(arg) is not None for arg in state):
            return False
        results: list[Sequence[Value]] = [[call]]
        if isinstance(call.type, types.BaseTuple):
            results = [items.get((call, number), ()) for number in range(inverse.state)]
        after = [next((self._known[each] for each in found if each in self._known), None) for found in results]
        rest = [self._operand(call.args[number]) for number in inverse.taken]
        args = [each for each in (*after, *rest) if each is not None]
        if len(args) < len(after) + len(rest) or self._may_have_changed(call, rest):
            return False
        kinds = results_of(inverse.routine.function)
        before = Builder(tail, call.loc).call_all(inverse.routine, args, kinds)
        for arg, value in zip(state, before, strict=True):
            if isinstance(arg, Value) and self._operand(arg) is None:
                value.hint = arg.hint
                self._known[arg] = value
        self._undone += 1
        return True

    def _compute(self, instr: Instr, tail: Block) -> bool:
        """Know a value that is computed from known ones."""
        if instr in self._known or effect(instr) is Effect.WRITE or self._memory.root(instr) in self._lost:
            return False
        args = [self._operand(arg) for arg in instr.args]
        known = tuple(each for each in args if each is not None)
        if len(known) < len(args) or self._may_have_changed(instr, reads(instr)):
            return False
        copy = instr.copy(known, with_origin=False)
        tail.instrs.append(copy)
        self._known[instr] = copy
        return True

    def _operand(self, operand: Operand) -> Operand | None:
        """What an operand is at the end; None if it is not known."""
        if isinstance(operand, Value) and operand in self._spoilt:
            return self._known.get(operand)
        return operand

    def _may_have_changed(self, instr: Instr, targets: Sequence[Operand | None]) -> bool:
        """Whether arrays that were read may hold something else at the end."""
        own = tuple(arg for arg in instr.args if has_memory(arg.type))
        return bool(targets) and self._memory.may_be_written_after(instr, own)

    def _is_needed(self, old: Param) -> bool:
        """Whether anything but a sum is made of a number, so that derivatives depend on it. Arrays always are."""
        if has_memory(old.type):
            return True
        used = uses(self._function)

        def users(value: Value) -> list[Value]:
            return [use.user for use in used[value] if isinstance(use.user, Value) and use.user is not self._whole]

        def is_sum(user: Value) -> bool:
            of_two = isinstance(user, Instr) and user.op in (operator.add, operator.sub)
            return (of_two or isinstance(user, Phi)) and isinstance(user.type, types.Number)

        made: list[Value] = [old]
        for value in reach(made, users):
            decides = any(not isinstance(use.user, Value) and use.block is not self._end for use in used[value])
            if decides or not all(map(is_sum, users(value))):
                return True
        return False


def _between(block: Block, end: Block) -> set[Block]:
    """The blocks on the ways from one block to another, which lies on all of them."""
    return set(reach(block.successors, lambda each: each.successors, [end]))


def _needed(block: Block, results: Collection[Operand]) -> list[Instr]:
    """The instructions of a block that results are made of."""
    needed = set(results)
    found: list[Instr] = []
    for instr in reversed(list(block.instrs)):
        if instr in needed:
            needed.update(instr.args)
            found.append(instr)
    return found[::-1]


def _added(following: Instr, old: Param) -> tuple[ops.Op, Operand] | None:
    """How to come back from the sum of a parameter and something else, and what that is."""
    match following:
        case Instr(op=operator.add, args=(base, other)) | Instr(op=operator.add, args=(other, base)) if base is old:
            return operator.sub, other
        case Instr(op=operator.sub, args=(base, other)) if base is old:
            return operator.add, other
    return None
