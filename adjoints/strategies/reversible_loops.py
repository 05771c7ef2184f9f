"""Reversible loops, whose reverse sweep recomputes the state backwards through steps that have inverses.

    for i in range(n):                      x, i, count = f_loop(x, 0, 0, w, n)
        x = step(x, w[i])           ->
                                            body(x, i, count, w, n):    step(x, w[i]), i + 1, count + 1
                                            unbody(x, i, count, w, n):  i = i - 1
                                                                        unstep(x, w[i]), i, count - 1

The loop becomes a routine, whose derivative (`adjoints/strategies/reversible_sweep.py`) saves the final state and the
values the loop uses from outside. `unbody` solves the body backwards, starting from the results of an iteration and
values independent of the state. The state before a step is known if its results and its other arguments are; a counter
is known from its next value; results of computations on known values are known. A value that is only added to need not
be known: its old value does not enter any derivative.

Values computed in branches and inner loops that depend on the state are not known, and need not be where they are only
summed. Loops that cannot be solved in this way are unchanged: those where an iteration passes other values to the next,
writes to existing arrays, draws or prints.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence

from numba import types

from zygote_py.adjoints.reverse.calls import name_apart
from zygote_py.adjoints.routines import inverse_of
from zygote_py.adjoints.strategies.outlined_loops import call_in_place, is_harmless, return_copies
from zygote_py.adjoints.strategies.reversible_sweep import Reversible
from zygote_py.ir import (
    Block,
    Branch,
    Builder,
    Const,
    Function,
    Instr,
    Jump,
    Loop,
    Memory,
    Operand,
    Param,
    Phi,
    Return,
    Routine,
    Value,
    add_counter,
    bases,
    check_after,
    clone,
    define,
    dominator_tree,
    draws,
    drop_unreachable,
    effect,
    find_effects,
    has_memory,
    inputs_of,
    is_fresh,
    items_of,
    loop_nest,
    ops,
    outlined_body,
    outlined_loop,
    postdominator_tree,
    reach,
    reads,
    replace_uses,
    results_of,
    routines_of,
    uses,
    writes,
)
from zygote_py.ir.ops import Effect

INT = types.int64


def outline_reversible_loops(function: Function, unless_called: Collection[Routine] = ()) -> list[Routine]:
    """Outline the reversible loops of a canonical function, inner ones first; return the routines.

    Loops that call one of the routines `unless_called`, directly or indirectly, are unchanged.
    """
    made: list[Routine] = []
    tried: set[Block] = set()
    while (loop := _next(function, tried)) is not None:
        tried.add(loop.header)
        made += _outlined(function, loop, unless_called)
    return made


def has_reversible_steps(function: Function) -> bool:
    """Return whether a loop calls steps that have inverses; the function need not be canonical."""
    return _next(function, ()) is not None


def _next(function: Function, tried: Collection[Block]) -> Loop | None:
    """Return an innermost loop not in `tried` that calls steps with inverses, or None."""
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
    """Return whether a loop's inputs and state can be passed to a routine, and copies returned, unobservably."""
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
    """Return the function that undoes what `body` does to its first `count` parameters; None if there is none."""
    stale: set[int] = set()
    while True:
        made = clone(body).function
        solution = _Solution(made, count, stale)
        if not solution.find():
            return None
        if solution.left <= stale:
            return made
        # The next iteration back would mistake an unchanged unknown for its old value: nothing may be derived from it.
        stale |= solution.left


class _Solution:
    """Turns a function that runs one iteration into the one that undoes it."""

    def __init__(self, function: Function, count: int, stale: Collection[int]) -> None:
        self._function = function
        self._stale = stale  # indices of the parameters that are unknown after an iteration
        self.left: set[int] = set()  # indices of those whose value before it is unknown
        self._old, self._inputs = function.params[:count], function.params[count:]
        self._new = [Param(each.type, each.hint, each.loc) for each in self._old]
        self._end, end = function.exit()
        (self._whole,) = end.args
        self._following = list(items_of(self._whole))
        self._known: dict[Value, Operand] = {}
        self._undone = 0  # the number of inverted steps
        self._lost: set[Value] = set()  # the roots of arrays whose contents are unavailable
        self._skipping: dict[Block, Block] = {}  # the branches on the state, with the blocks where their paths merge

    def find(self) -> bool:
        """Build the function and return whether that was possible. The function is unusable otherwise."""
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
        """Return the previous values of the counters, and the values that no iteration changes; None for all others."""
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
        """Return the values that depend on the loop-carried state, except through counters.

        These include values computed in branches on the state, and arrays to which such values are written: these are
        `lost`, since no write is repeated.
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
        """Return whether an iteration only computes, and writes only to its own arrays."""
        for instr in self._function.instrs():
            if effect(instr) is not Effect.WRITE or inverse_of(instr) is not None:
                continue
            targets = writes(instr)
            if not targets or draws(instr):
                return False
            if not all(isinstance(base, Instr) and is_fresh(base) for each in targets for base in bases(each)):
                return False
        return True

    def _solve(self, tail: Block) -> None:
        """Find the values that can be known at the end; their computation is appended to the block `tail`."""
        spine = [instr for block in self._spine() for instr in block.instrs if instr in self._spoilt]
        items: dict[tuple[Value, int], list[Value]] = {}  # the items extracted from the results of calls
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
        """Return the blocks that run exactly once."""
        nest, tree = loop_nest(self._function), dominator_tree(self._function)
        return [block for block in tree.order if tree.dominates(block, self._end) and nest.innermost(block) is None]

    def _undo(self, call: Instr, items: Mapping[tuple[Value, int], Sequence[Value]], tail: Block) -> bool:
        """Compute the state before a step from the state after it and the other arguments, if they are known."""
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
        made = tuple(each for found in results for each in found if has_memory(each.type))
        if self._memory.may_be_written_after(call, made):  # it is not what the step has returned any more
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
        """Recompute a value from known operands."""
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
        """Return an operand as available at the end; None if it is not known."""
        return self._known.get(operand) if isinstance(operand, Value) and operand in self._spoilt else operand

    def _may_have_changed(self, instr: Instr, targets: Sequence[Operand | None]) -> bool:
        """Return whether arrays that were read may have different contents at the end."""
        own = tuple(arg for arg in instr.args if has_memory(arg.type))
        return bool(targets) and self._memory.may_be_written_after(instr, own)

    def _is_needed(self, old: Param) -> bool:
        """Return whether a value is used other than in sums, so that derivatives depend on it. Arrays always are."""
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
    """Return the blocks on the paths from one block to another, which postdominates it."""
    return set(reach(block.successors, lambda each: each.successors, [end]))


def _needed(block: Block, results: Collection[Operand]) -> list[Instr]:
    """Return the instructions of a block that results depend on."""
    needed = set(results)
    found: list[Instr] = []
    for instr in reversed(list(block.instrs)):
        if instr in needed:
            needed.update(instr.args)
            found.append(instr)
    return found[::-1]


def _added(following: Instr, old: Param) -> tuple[ops.Op, Operand] | None:
    """Return the operation that inverts an addition to a parameter, and the other operand, or None."""
    match following:
        case Instr(op=operator.add, args=(base, other)) | Instr(op=operator.add, args=(other, base)) if base is old:
            return operator.sub, other
        case Instr(op=operator.sub, args=(base, other)) if base is old:
            return operator.add, other
    return None
