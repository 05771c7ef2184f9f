"""Independent loops of functions with `parallel=True`: chunks of neighbouring iterations, each in a thread.

    for i in range(n):                      count = threads_for(n, work, elements)
        for j in range(d):                  dw_parts = np.zeros((count, len(dw)))
            dw[j] += x[i, j] * y[i]    ->   in_threads(f_chunk, count, n, d, dw_parts, x, y)
                                            add_parts(dw, dw_parts)

                                            def f_chunk(number, count, n, d, dw_parts, x, y):
                                                dw = dw_parts[number]
                                                for i in range(n * number // count, n * (number + 1) // count): ...

What all iterations add to has a part for each chunk, and these are added up in the same order in each run. Sums of the
function itself keep their order: their terms are kept, and added up after the loop. As with `iterations_in_lanes`, the
text of a function shows none of this.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.dominators import reverse_postorder
from zygote_py.ir.analysis.loops import CountedLoop, Loop, LoopNest, counted, loop_nest
from zygote_py.ir.analysis.memory import Memory
from zygote_py.ir.analysis.routines import routines_of
from zygote_py.ir.building.builder import NONE, Builder
from zygote_py.ir.building.loop_nest import rounds_by_one
from zygote_py.ir.checks.debug import is_left_out
from zygote_py.ir.core import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    Jump,
    Loc,
    Operand,
    Param,
    Phi,
    Raise,
    Return,
    Routine,
    Type,
    Value,
    retarget,
    zero,
)
from zygote_py.ir.passes.cleanup.dead_code import remove_dead_code
from zygote_py.ir.passes.cleanup.fold_constants import fold_constants
from zygote_py.ir.passes.threads.apart import INDEX, Apart, Sum, Unfit
from zygote_py.ir.types import is_scalar
from zygote_py.ir.walks import replace_uses, uses

_array_of: Callable[[Type, int, Any], Type] = types.Array
_DIVISION, _FUNCTION, _WHOLE = 4, 20, 100  # times the cost of an addition
_ROUNDS = 8  # of a loop of which nothing is known
_LEAST = 3  # operations of an iteration
_OF_TERM = 16  # those for each term that is kept, to be added up in order


def run_in_threads(function: Function) -> list[Loc | None]:
    """Let independent loops run in threads, of a function with `parallel=True` and of such that it calls.

    Return where these are. Threads start none: what a chunk calls, or calls itself, runs in order.
    """
    if is_left_out("threads"):
        return []
    places = iterations_in_threads(function) if function.options.get("parallel") else []
    for routine in _callers_first(function):
        started = [each for each in routines_of(function) if each.in_threads]
        within = {*started, *(each for chunk in started for each in routines_of(chunk.function))}
        is_apart = routine not in within and routine not in routines_of(routine.function)
        if is_apart and routine.function.options.get("parallel"):
            places += iterations_in_threads(routine.function)
    return places


def _callers_first(function: Function) -> list[Routine]:
    """Return the routines that a function calls, directly or not, each after all that call it, but for recursion."""
    found: dict[Routine, None] = {}

    def visit(caller: Function) -> None:
        for instr in caller.instrs():
            if isinstance(instr.op, Routine) and instr.op not in seen:
                seen.add(instr.op)
                visit(instr.op.function)
                found[instr.op] = None

    seen: set[Routine] = set()
    visit(function)
    return list(reversed(found))


def iterations_in_threads(function: Function) -> list[Loc | None]:
    """Let the iterations of independent loops run in threads, in place. Return where these are."""
    tried: set[Block] = set()
    places: list[Loc | None] = []
    while (found := _next(function, tried)) is not None:
        places.append(found[0].loop.loc)
        chunk = _Divided(function, *found, f"{function.name}_chunk_{len(places)}").build()
        function.blocks = reverse_postorder(function)
        for each in (function, chunk):
            fold_constants(each)
            remove_dead_code(each)
    return places


def _next(function: Function, tried: set[Block]) -> tuple[Apart, LoopNest] | None:
    """Return the next loop that is to run in threads: an outer one before those in it."""
    nest, used = loop_nest(function), uses(function)
    memory: Memory | None = None
    for loop in nest.loops:
        if loop.header in tried:
            continue
        tried.add(loop.header)
        if not loop.children and _cost(loop.order) < _LEAST:
            continue
        memory = memory or Memory(function)
        try:
            found = Apart(function, nest, loop, memory, used)
        except Unfit:
            continue
        terms = sum(len(each.adds) for each in found.sums if each.in_order)
        if loop.children or _cost(loop.order) >= _OF_TERM * terms:
            return found, nest
    return None


def _cost(blocks: Iterable[Block]) -> int:
    return sum(_cost_of(instr) for block in blocks for instr in block.instrs)


def _cost_of(instr: Instr) -> int:
    record = ops.of(instr.op)
    if isinstance(instr.op, Routine) or not all(is_scalar(each.type) for each in (*instr.args[1:], instr)):
        return 0 if record.handle_only else _WHOLE
    if record.divides:
        return _DIVISION
    return _FUNCTION if record.cost is ops.Cost.FUNCTION else int(not isinstance(instr.type, types.Integer))


class _Divided:
    """A loop that is divided into chunks, and the function that runs one of them."""

    def __init__(self, function: Function, found: Apart, nest: LoopNest, name: str) -> None:
        self._function, self._found, self._nest = function, found, nest
        self._loop, self._count = found.loop, found.count
        self._routine = Routine(name)
        self._values: dict[Value, Operand] = {}  # what stands for the values of the function in that of a chunk
        self._blocks = {block: Block(block.loc) for block in found.blocks}
        self._taken: list[Operand] = []  # the arguments after the numbers of chunks and of seams
        self._params: list[Param] = []
        self._names: set[str] = set()
        self._written: set[int] = set()
        loc = self._loop.header.loc
        self._before, self._entry, self._end = Block(loc), Block(loc), Block(loc)

    def build(self) -> Function:
        """Replace the loop by a call that runs the chunks. Return the function that runs one."""
        header, loc = self._loop.header, self._loop.header.loc
        (entering,) = self._loop.entering
        b, inside = Builder(self._before, loc), Builder(self._entry, loc)
        trips = b.call(max, rounds_by_one(b, self._count), Const(0, INDEX), type=INDEX)
        work = self._work(b, self._loop, trips)
        elements: Operand = Const(0, INDEX)
        for array in self._found.added:
            elements = b.call(operator.add, elements, _size(b, array), type=INDEX)
        chunks = b.call(ops.threads_for, trips, work, elements, type=INDEX, hint="count")
        seams: Operand = Const(0, INDEX)
        if self._found.seam:
            several = b.call(operator.gt, chunks, Const(1, INDEX), type=types.boolean)
            seams = b.call(ops.select, several, chunks, seams, type=INDEX, hint="seams")
        self._number, self._seams = self._param(INDEX, "number"), self._param(INDEX, "seams")
        self._begin(inside, trips, chunks)
        results = self._make_results(b, inside, trips, chunks, seams)
        self._copy()
        self._finish_chunk()
        b.call(self._routine, chunks, seams, *self._taken, type=types.none)
        for array, parts in results:
            b.call(ops.add_parts, array, parts, type=types.none)
        replaced: dict[Value, Operand] = {}
        for phi in header.phis:
            if phi is self._count.phi:
                step = Const(self._count.step, INDEX)
                passed = b.call(operator.mul, trips, step, type=INDEX)
                replaced[phi] = b.call(operator.add, self._count.start, passed, type=INDEX, hint=phi.hint)
            else:
                replaced[phi] = b.call(
                    ops.add_terms, phi.incoming[entering], self._of_chunks[phi], type=phi.type, hint=phi.hint
                )
        self._connect(entering, replaced)
        return self._routine.function

    def _connect(self, entering: Block, replaced: dict[Value, Operand]) -> None:
        """Let the call take the place of the loop."""
        header = self._loop.header
        end = header.terminator
        assert isinstance(end, Branch)
        after = end.orelse if end.then in self._loop else end.then
        retarget(entering, header, self._before)
        self._before.terminator = Jump(after)
        for phi in after.phis:
            phi.incoming[self._before] = phi.incoming.pop(header)
        gone = set(self._loop.order)
        for block in self._found.raising:
            for phi in block.phis:
                phi.incoming = {pred: each for pred, each in phi.incoming.items() if pred not in gone}
        self._function.blocks = [block for block in self._function.blocks if block not in gone]
        self._function.blocks.append(self._before)
        replace_uses(self._function, replaced)
        kept = set(self._function.phis())
        self._function.independent = frozenset(each for each in self._function.independent if each in kept)

    # ------------------------------------------------------------------------------------------------ around the loop

    def _work(self, b: Builder, loop: Loop, rounds: Operand) -> Operand:
        """Append what all iterations of a loop cost, in additions."""
        own = [block for block in loop.order if self._nest.innermost(block) is loop]
        each: Operand = Const(1 + _cost(own), INDEX)
        for inner in loop.children:
            count = counted(inner, self._function)
            of_inner: Operand = Const(_ROUNDS, INDEX)
            if count is not None and not {count.start, count.bound} & self._loop.values and _is_index(count):
                of_inner = b.call(max, rounds_by_one(b, count), Const(0, INDEX), type=INDEX)
            each = b.call(operator.add, each, self._work(b, inner, of_inner), type=INDEX)
        return b.call(operator.mul, rounds, each, type=INDEX)

    def _begin(self, inside: Builder, trips: Instr, chunks: Instr) -> None:
        """Begin a chunk: with the number of its first iteration, and of the one after its last."""
        count, header = self._count, self._loop.header
        all_trips, all_chunks = self._passed(trips), self._passed(chunks)

        def call(op: ops.Op, *args: Operand, type: Type = INDEX) -> Instr:
            return inside.call(op, *args, type=type)

        chunk: Operand = self._number
        if self._found.seam:
            is_seam = call(operator.ge, self._number, all_chunks, type=types.boolean)
            behind = call(operator.sub, self._number, all_chunks)
            chunk = call(ops.select, is_seam, behind, self._number)
        self._chunk = chunk
        following = call(operator.add, chunk, Const(1, INDEX))
        begin, end = (
            call(operator.floordiv, call(operator.mul, all_trips, each), all_chunks) for each in (chunk, following)
        )
        if self._found.seam:
            last = call(max, begin, call(operator.sub, end, Const(self._found.seam, INDEX)))
            has_seams = call(operator.gt, self._seams, Const(0, INDEX), type=types.boolean)
            last = call(ops.select, has_seams, last, end)
            begin, end = call(ops.select, is_seam, last, begin), call(ops.select, is_seam, end, last)
        first, self._last = (
            call(operator.add, self._passed(count.start), call(operator.mul, each, Const(count.step, INDEX)))
            for each in (begin, end)
        )
        branch = header.terminator
        assert isinstance(branch, Branch)
        self._values[count.condition] = Const(branch.then in self._loop, types.boolean)
        made = self._blocks[header]
        for phi in header.phis:
            if phi is count.phi or not any(phi in each.members for each in self._found.sums if each.in_order):
                copy = Phi(phi.type, phi.hint, phi.loc)
                made.phis.append(copy)
                self._values[phi] = copy
                copy.incoming[self._entry] = first if phi is count.phi else zero(phi.type)
        ahead: ops.Op = operator.lt if count.step > 0 else operator.gt
        condition = Instr(ahead, (self._values[count.phi], self._last), types.boolean, loc=header.loc)
        made.instrs.append(condition)
        inner = branch.then if branch.then in self._loop else branch.orelse
        made.terminator = Branch(condition, self._blocks[inner], self._end)
        self._entry.terminator = Jump(made)

    def _make_results(
        self, b: Builder, inside: Builder, trips: Instr, chunks: Instr, seams: Operand
    ) -> list[tuple[Value, Instr]]:
        """Make the parts of what all iterations add to, and the arrays that a chunk has of its own."""
        found: list[tuple[Value, Instr]] = []
        for array in self._found.added:
            kind: Any = array.type
            lengths = [b.call(ops.dim, array, Const(axis, INDEX), type=INDEX) for axis in range(kind.ndim)]
            several = _array_of(kind.dtype, kind.ndim + 1, "C")
            parts = b.call(ops.zeros, chunks, *lengths, type=several, hint=f"{array.hint}_parts")
            self._values[array] = inside.call(
                ops.getitem, self._passed(parts, True), self._chunk, type=kind.copy(readonly=False), hint=array.hint
            )
            found.append((array, parts))
        for array in self._found.private:
            args = tuple(map(self._passed, array.args))
            self._values[array] = inside.add(array.copy(args))
        for array in self._found.shared:
            self._passed(array, True)
        self._terms: dict[Sum, Operand] = {}
        self._of_chunks: dict[Phi, Instr] = {}
        calls = b.call(operator.add, chunks, seams, type=INDEX) if self._found.seam else chunks
        for each in self._found.sums:
            sizes: Sequence[Operand] = (trips, Const(len(each.adds), INDEX)) if each.in_order else (calls,)
            made = b.call(
                ops.record, *sizes, type=_array_of(each.phi.type, len(sizes), "C"), hint=f"{each.phi.hint}_terms"
            )
            if each.may_skip:
                b.call(ops.setitem, made, Const(-0.0, each.phi.type), type=types.none)
            self._of_chunks[each.phi] = made
            self._terms[each] = self._passed(made, True)
        return found

    # --------------------------------------------------------------------------------------------------- in the chunk

    def _param(self, kind: Type, hint: str) -> Param:
        name = base = hint or "t"
        number = 1
        while name in self._names:
            number += 1
            name = f"{base}_{number}"
        self._names.add(name)
        made = Param(kind, name, self._loop.header.loc)
        self._params.append(made)
        return made

    def _passed(self, operand: Operand, is_written: bool = False) -> Operand:
        """Return what stands for a value in a chunk: a parameter, if it is from outside the loop."""
        if not isinstance(operand, Value):
            return operand
        if operand not in self._values:
            self._taken.append(operand)
            self._values[operand] = self._param(operand.type, operand.hint)
        if is_written:
            self._written.add(self._taken.index(operand) + 2)
        return self._values[operand]

    def _copy(self) -> None:
        """Copy the blocks of the loop, then set the operands of the copies."""
        sums = self._found.sums
        dropped = {member for each in sums if each.in_order for member in each.members}
        terms = {instr: each for each in sums if each.in_order for instr in each.adds}
        blocks = [block for block in self._found.blocks if block is not self._loop.header]
        for block in blocks:
            made = self._blocks[block]
            for phi in block.phis:
                if phi not in dropped:
                    self._values[phi] = copy = Phi(phi.type, phi.hint, phi.loc)
                    made.phis.append(copy)
            for instr in block.instrs:
                if instr in terms:
                    made.instrs += self._kept_term(instr, terms[instr])
                elif instr not in dropped:
                    self._values[instr] = copied = instr.copy()
                    made.instrs.append(copied)
        self._own = {*self._values.values(), *(instr for block in blocks for instr in self._blocks[block].instrs)}
        for block in blocks:
            made = self._blocks[block]
            for phi in block.phis:
                if phi not in dropped:
                    self._set_incoming(phi)
            for instr in made.instrs:
                instr.args = tuple(each if each in self._own else self._passed(each) for each in instr.args)
            match block.terminator:
                case Jump(target=target):
                    made.terminator = Jump(self._blocks[target])
                case Branch(condition=condition, then=then, orelse=orelse):
                    made.terminator = Branch(self._passed(condition), self._blocks[then], self._blocks[orelse])
                case Raise(exception=exception, args=args):
                    made.terminator = Raise(exception, tuple(map(self._passed, args)))
        for phi in self._loop.header.phis:
            if phi not in dropped:
                self._set_incoming(phi)

    def _set_incoming(self, phi: Phi) -> None:
        """Set the operands of the copy of a phi, those from inside the loop."""
        copy = self._values[phi]
        assert isinstance(copy, Phi)
        for pred, each in phi.incoming.items():
            if pred in self._blocks:
                copy.incoming[self._blocks[pred]] = self._passed(each)

    def _kept_term(self, instr: Instr, sum: Sum) -> list[Instr]:
        """Return the instructions that store what an iteration adds to a sum whose order is kept."""
        count, made = self._count, []

        def call(op: ops.Op, *args: Operand, type: Type) -> Instr:
            made.append(Instr(op, args, type, loc=instr.loc))
            return made[-1]

        (place,) = (place for place, each in enumerate(instr.args) if each in sum.members)
        term = instr.args[1 - place]
        if instr.op is operator.sub:
            term = call(operator.neg, term, type=term.type)
        ends = (count.phi, count.start) if count.step > 0 else (count.start, count.phi)
        number = Const(sum.adds.index(instr), INDEX)
        call(ops.setitem, self._terms[sum], term, call(operator.sub, *ends, type=INDEX), number, type=types.none)
        return made

    def _finish_chunk(self) -> None:
        """Make the function of the blocks, and the routine that runs it."""
        at_end = Builder(self._end, self._loop.header.loc)
        for each in self._found.sums:
            if not each.in_order:
                at_end.call(ops.setitem, self._terms[each], self._values[each.phi], self._number, type=types.none)
        self._end.terminator = Return((NONE,))
        options = {name: value for name, value in self._function.options.items() if name != "parallel"}
        blocks = [self._entry, *self._blocks.values(), self._end]
        made = Function(self._routine.__name__, self._params, blocks, loc=self._function.loc, options=options)
        made.blocks = reverse_postorder(made)
        copied = (self._values[each] for each in self._function.independent if each in self._values)
        made.independent = frozenset(each for each in copied if isinstance(each, Phi))
        self._routine.function = made
        self._routine.in_threads = self._routine.has_side_effects = True  # also if it does nothing but raise
        self._routine.writes = frozenset(self._written)


def _is_index(count: CountedLoop) -> bool:
    return abs(count.step) == 1 and count.phi.type == count.bound.type == count.start.type == INDEX


def _size(b: Builder, array: Value) -> Operand:
    """Append the number of elements of an array."""
    kind: Any = array.type
    size: Operand = b.call(ops.dim, array, Const(0, INDEX), type=INDEX)
    for axis in range(1, kind.ndim):
        size = b.call(operator.mul, size, b.call(ops.dim, array, Const(axis, INDEX), type=INDEX), type=INDEX)
    return size
