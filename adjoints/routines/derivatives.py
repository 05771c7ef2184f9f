"""The derivatives of a function and of the routines that it calls, which are made once per case.

made = Derivatives(routines)
found = made.differentiate(primal, wrt, parts, written)     # with calls of forward functions in the primal
made.of(routine, case)                                      # see `zygote_py.adjoints.reverse.calls`
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import (
    Activity,
    Degree,
    Degrees,
    Summaries,
    can_have_adjoint,
    expose_results,
    find_active,
    find_left_out,
    has_shadow,
    through,
)
from zygote_py.adjoints.reverse.adjoint import Prepared, make_adjoint
from zygote_py.adjoints.reverse.calls import Call, Case, Derivation, Derivative, Source, name_apart
from zygote_py.adjoints.reverse.finished.first_contributions import assign_first_contributions
from zygote_py.adjoints.reverse.joint import join_halves
from zygote_py.adjoints.reverse.shadows import add_shadows
from zygote_py.adjoints.reverse.snapshots import keep_contents
from zygote_py.adjoints.reverse.split import Halves
from zygote_py.adjoints.routines.alias_checks import refuse_shared_arguments
from zygote_py.adjoints.routines.extremes import keep_index_of_extremes
from zygote_py.adjoints.routines.shared_cases import joined_cases
from zygote_py.ir import (
    Block,
    Builder,
    Const,
    Function,
    Instr,
    Memory,
    Operand,
    Param,
    Routine,
    Type,
    Value,
    at_exit,
    check_after,
    clone,
    components_of,
    cycles,
    define,
    find_effects,
    has_memory,
    inserting,
    item_reads,
    items_of,
    items_read,
    limit_depth,
    ops,
    packed_type,
    passes,
    remove,
    replace_uses,
)
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class Differentiated:
    """The active values of a primal, its adjoint and its shadows."""

    activity: Activity
    adjoint: Function
    shadows: dict[Value, Value]


class Derivatives:
    """The derivatives of the routines of a program, made on demand."""

    def __init__(self, routines: Collection[Routine]) -> None:
        """Collect routines whose functions are in canonical form."""
        self._cycles = cycles(routines)
        self._made: dict[tuple[Routine, Case], Derivative] = {}
        self._open: dict[Routine, Derivative] = {}  # those of recursive routines under construction
        self._summaries = Summaries()

    def differentiate(
        self,
        primal: Function,
        wrt: Collection[Param],
        parts: Mapping[Value, tuple[Instr, ...]],
        written: Collection[Param],
        *,
        derivative: Derivative | None = None,
        stacks: Mapping[Derivative, Value] = MappingProxyType({}),
        depth: Param | None = None,
    ) -> Differentiated:
        """Make the adjoint of a primal in canonical form; the contents of `written` are results too.

        If the primal is that of a routine, whose `derivative` is under construction, the shadows of its parameters are
        passed in, and its results are returned individually. The `stacks` will be its parameters, and `depth` is the
        depth of the recursion.
        """
        routine = derivative is not None
        keep_index_of_extremes(primal)
        expose_results(primal)
        results = written if derivative is None else _written(derivative.routine, primal)
        activity = find_active(primal, wrt, parts, results)
        degree = Degree.KEPT if derivative is None else derivative.case.left_out
        left_out = find_left_out(primal, activity, self._summaries, degree, results)
        calls = self._link(primal, activity, dict(stacks), left_out)
        kept = keep_contents(primal, activity)
        shadows = add_shadows(primal, activity, calls, given=routine)
        for call in calls.values():
            call.instr.args += call.stacks
            if call.derivative.recursive:
                call.instr.args += (_deeper(primal, call.instr, depth),)
        if derivative is not None:
            _return_shadows(primal, derivative, shadows)
        prepared = Prepared(primal, activity, shadows, parts, kept, tuple(written), calls, routine, left_out)
        adjoint = make_adjoint(prepared)
        assign_first_contributions(adjoint)
        if derivative is None:  # a routine still lacks some of its parameters
            check_after("differentiate", primal, adjoint)
        return Differentiated(activity, adjoint, shadows)

    def of(self, routine: Routine, case: Case) -> Derivative:
        """Return the derivative of a routine for a case, or for one that includes it."""
        if routine in self._open:
            assert self._open[routine].case | case == self._open[routine].case
            return self._open[routine]
        if (routine, case) not in self._made:
            if isinstance(routine.derivation, Derivation):
                also = routine.derivation.derive(made := _new(routine, case), self)
                self._made[routine, case] = made
                _tidy([made], acting=False, also=also)
            elif self._cycles[routine]:
                cases = self._cases(routine, case)
                self._make_group(cases)
                self._made[routine, case] = self._made[routine, cases[routine]]
            else:
                self._make(made := _new(routine, case))
                _tidy([made])
        return self._made[routine, case]

    def plain(self, routine: Routine, case: Case) -> Derivative:
        """Return the derivative of a routine from its function, whatever its derivation."""
        plain = Routine(routine.__name__)
        plain.function = routine.function
        plain.writes, plain.shares, plain.has_side_effects = routine.writes, routine.shares, routine.has_side_effects
        plain.may_alias_after = routine.may_alias_after
        self._cycles[plain] = ()
        return self.of(plain, case)

    def _make_group(self, cases: Mapping[Routine, Case]) -> None:
        """Make the derivatives of recursive routines, with residuals on stacks; they may call each other."""
        group = [_new(routine, case) for routine, case in cases.items()]
        for derivative in group:
            derivative.group = group
            derivative.recursive = True
            derivative.sources = tuple(Source("stack", number) for number in range(len(group)))
            derivative.shadowed_results = tuple(n for n, type in enumerate(derivative.results) if has_shadow(type))
            self._open[derivative.routine] = derivative
            _expect(derivative)
        for derivative in group:
            self._make(derivative)
        for derivative in group:
            _type_stacks(derivative)
            del self._open[derivative.routine]
        _tidy(group)
        limit_depth([derivative.forward.function for derivative in group], [d.reverse.function for d in group])

    def _cases(self, routine: Routine, case: Case) -> dict[Routine, Case]:
        """Return the cases of mutually recursive routines, from an outside call of one of them."""
        found = {routine: case}
        pending = [routine]
        while pending:
            caller = pending.pop()
            primal = primal_of(caller, found[caller], bool(self._cycles[caller]))
            wrt = [primal.params[number] for number in sorted(found[caller].active)]
            written = _written(caller, primal)
            activity = find_active(primal, wrt, results=written)
            left_out = find_left_out(primal, activity, self._summaries, found[caller].left_out, written)
            for instr, called in calls_with_cases(primal, activity, Memory(primal), left_out):
                assert isinstance(instr.op, Routine)
                if instr.op in self._cycles[routine]:
                    before = found.get(instr.op)
                    joined = called if before is None else before | called
                    if joined != before:
                        found[instr.op] = joined
                        pending.append(instr.op)
        return found

    def _link(
        self, primal: Function, activity: Activity, stacks: dict[Derivative, Value], left_out: Degrees
    ) -> dict[Instr, Call]:
        """Replace calls of routines with active arguments by calls of forward functions, and unpack their results.

        The values that represented results continue to do so. Stacks that the primal does not have are created at its
        start.
        """
        calls: dict[Instr, Call] = {}
        found = calls_with_cases(primal, activity, Memory(primal), left_out)
        known = [(routine, made.case) for (routine, _), made in self._made.items()]
        for instr, case in joined_cases(found, known, self._open):
            assert isinstance(instr.op, Routine)
            derivative = self.of(instr.op, case)
            for other in derivative.group:
                if other not in stacks:
                    assert other.record is not None
                    stacks[other] = made = Instr(ops.stack, (), _list_of(other.record), "records")
                    primal.entry.instrs.insert(0, made)
            call = _take_apart(primal, instr, derivative, tuple(stacks[other] for other in derivative.group))
            calls[call.instr] = call
        return calls

    def _make(self, derivative: Derivative) -> None:
        """Make the two functions of a derivative."""
        routine, case = derivative.routine, derivative.case
        primal = primal_of(routine, case, bool(self._cycles[routine]))
        name = "records" if len(derivative.group) == 1 else "{}_records"
        own: dict[Derivative, Value] = {
            other: Param(_ANY_LIST, name.format(other.routine.__name__)) for other in derivative.group
        }
        wrt = [primal.params[number] for number in sorted(case.active)]
        depth = Param(types.int64, "depth") if derivative.recursive else None
        found = self.differentiate(primal, wrt, {}, (), stacks=own, derivative=derivative, depth=depth)
        primal.params += [param for param in (*own.values(), depth) if isinstance(param, Param)]
        check_after("differentiate", primal, *(() if derivative.group else (found.adjoint,)))  # which had no stacks
        halves, value = join_halves(found.adjoint, found.shadows, derivative.adjoints)
        _finish(derivative, halves, items_of(value))
        self._made[routine, case] = derivative


def _finish(derivative: Derivative, halves: Halves, results: tuple[Operand, ...]) -> None:
    """Set the results and the parameters of the two halves."""
    forward, reverse, last = halves.forward, halves.reverse, Builder(halves.last)
    define(halves.crossing, forward.entry, numbers=False)
    places: dict[Value, Source] = {param: Source("argument", number) for number, param in enumerate(forward.params)}
    for number, value in enumerate(results):
        if isinstance(value, Value):
            places.setdefault(value, Source("result", number))
    seeds = reverse.params[len(halves.crossing) :]
    stand_ins = dict(zip(halves.crossing, reverse.params, strict=False))
    has_own_stack = not derivative.group and _count(v for v in halves.crossing if v not in places) > _MOST_RETURNED
    if has_own_stack:
        derivative.group, derivative.sources = [derivative], (Source("stack", 0),)
        forward.params.append(Param(_ANY_LIST, "records"))
    if derivative.group:
        start = len(forward.params) - len(derivative.group) - derivative.recursive
        stacks = forward.params[start : start + len(derivative.group)]
        own = stacks[derivative.group.index(derivative)]
        known = {value: places[value] for value in halves.crossing if value in places} if has_own_stack else {}
        kept = tuple(value for value in halves.crossing if value not in stacks and value not in known)
        record = last.pack_all(kept)
        derivative.record = record.type
        last.call(ops.push, own, record, type=types.none)
        derivative.stacks += stacks
        passed = [Param(stack.type, stack.hint) for stack in stacks]
        derivative.stacks += passed
        with inserting(reverse.entry) as b:
            whole = b.call(ops.pop, passed[stacks.index(own)], type=record.type, hint="record")
            items = b.unpack_all(whole, len(kept))
        replace_uses(reverse, {stand_ins[value]: item for value, item in zip(kept, items, strict=True)})
        replace_uses(reverse, {p: passed[stacks.index(v)] for v, p in stand_ins.items() if v in stacks})
        for value, item in zip(kept, items, strict=True):
            item.hint = value.hint
        reverse.params = [*passed, *(stand_ins[value] for value in known), *seeds]
        derivative.sources += tuple(known.values())
        if has_own_stack:
            _type_stacks(derivative)
            _expect(derivative)
    else:
        derivative.kept = tuple(value.type for value in halves.crossing if value not in places)
        for value in halves.crossing:
            if value not in places:
                places[value] = Source("result", len(results))
                results = (*results, value)
        derivative.sources = tuple(places[value] for value in halves.crossing)
    last.return_packed(results)
    b, end = at_exit(reverse)
    b.return_packed(end.args)
    for function in (forward, reverse):
        name_apart(function.params)
        remove(function, {instr for instr in function.instrs() if instr.op is ops.release})
    derivative.forward.function, derivative.reverse.function = forward, reverse


def _count(values: Iterable[Value]) -> int:
    """Return the number of values that are returned, in which a list of tuples is one for each item of these."""
    pending, count = [value.type for value in values], 0
    while pending:
        kind = pending.pop()
        if isinstance(kind, types.List | types.BaseTuple):
            pending += components_of(kind) if isinstance(kind, types.BaseTuple) else (kind.dtype,)
        else:
            count += 1
    return count


def _type_stacks(derivative: Derivative) -> None:
    """Set the types of the parameters that are stacks, once the records are known."""
    for number, other in enumerate(derivative.group):
        assert other.record is not None
        for stack in derivative.stacks[number :: len(derivative.group)]:
            stack.type = _list_of(other.record)


def primal_of(routine: Routine, case: Case, recursive: bool) -> Function:
    """Return a copy of a routine's function with releases of the memory that others may write to after it has ended.

    Non-recursive routines are certain not to share memory between arguments, where it matters: calls that do are
    inlined.
    """
    primal = clone(routine.function).function
    primal.is_limited = False  # the frames of its derivative are larger
    if recursive:
        refuse_shared_arguments(primal)
    expose_results(primal)
    b, end = at_exit(primal)
    released: list[Operand] = [
        param
        for number, param in enumerate(primal.params)
        if has_memory(param.type) and number in case.clobbered | routine.writes
    ]
    if case.clobbered_result:
        released += [item for item in items_of(end.args[0]) if has_memory(item.type)]
    for each in released:
        b.call(ops.release, each, type=types.none)
    return primal


def calls_with_cases(
    primal: Function, activity: Activity, memory: Memory, left_out: Degrees = MappingProxyType({})
) -> Iterator[tuple[Instr, Case]]:
    """Yield the calls of routines that have something to pull back, with their cases."""
    calls = primal.calls()
    items = item_reads(primal)
    for instr, routine in calls:
        active = frozenset(
            n for n in through(instr) if instr.args[n] in activity and can_have_adjoint(instr.args[n].type)
        )
        results = items.get(instr, []) if isinstance(instr.type, types.BaseTuple) else [instr]
        matters = any(result in activity for result in results)
        if active and (matters or active & routine.writes):
            clobbered = (
                number
                for number, arg in enumerate(instr.args)
                # A routine assumes the memory it writes to to be unstable anyway.
                if number not in routine.writes and memory.may_be_written_after(instr, (arg,))
            )
            of_results = any(memory.may_be_written_after(each, (each,)) for each in results)
            # A custom rule is called with any adjoint.
            degree = Degree.KEPT if routine.is_custom else left_out.get(instr, Degree.KEPT)
            yield instr, Case(active, frozenset(clobbered), of_results, degree)


def _take_apart(primal: Function, instr: Instr, derivative: Derivative, stacks: tuple[Value, ...]) -> Call:
    """Replace the call of a routine by the call of a forward function and the unpacking of its result."""
    block = next(block for block in primal.blocks if instr in block.instrs)
    place = block.instrs.index(instr)
    b = Builder(Block())
    forward = b.call(derivative.forward, *instr.args, type=packed_type(derivative.returned))
    forward.loc = instr.loc
    items = b.unpack_all(forward, len(derivative.returned))
    stand: dict[Instr, Instr] = {}  # for each new item, the old value that represents it
    if isinstance(instr.type, types.BaseTuple):
        stand = {items[number]: user for number, user in items_read(primal, instr).items()}
    elif derivative.results:
        stand[items[0]] = instr
    for new, old in stand.items():
        old.op, old.args = ops.getitem, new.args
    old_ones = {*stand.values(), instr}
    block.instrs[place:] = [
        *(stand.get(each, each) for each in b.block.instrs),
        *(each for each in block.instrs[place:] if each not in old_ones),
    ]
    return Call(derivative, forward, {n: stand.get(item, item) for n, item in enumerate(items)}, stacks)


def _written(routine: Routine, primal: Function) -> list[Param]:
    """Return the parameters of a copy of a routine's function whose final contents are results."""
    return [primal.params[number] for number in sorted(routine.writes)]


def _deeper(primal: Function, call: Instr, depth: Param | None) -> Operand:
    """Return the recursion depth of a call."""
    if depth is None:
        return Const(0, types.int64)
    deeper = Instr(operator.add, (depth, Const(1, types.int64)), types.int64, "", call.loc)
    block = next(block for block in primal.blocks if call in block.instrs)
    block.instrs.insert(block.instrs.index(call), deeper)
    return deeper


def _return_shadows(primal: Function, derivative: Derivative, shadows: Mapping[Value, Value]) -> None:
    """Append the shadows of a routine's results to the results."""
    b, end = at_exit(primal)
    results = items_of(end.args[0])
    if not derivative.group:
        derivative.shadowed_results = tuple(n for n, each in enumerate(results) if each in shadows)
    found: list[Operand] = []
    for number in derivative.shadowed_results:
        result = results[number]
        known = shadows.get(result) if isinstance(result, Value) else None
        found.append(known or b.call(np.zeros_like, result, type=result.type, hint="shadow"))
    if found:
        end.args = (b.pack([*results, *found]),)


def _expect(derivative: Derivative) -> None:
    """Declare the effects of the two functions of a routine with a stack: of a recursive one, under construction."""
    routine, count = derivative.routine, len(derivative.routine.function.params)
    shadows = {number: count + place for place, number in enumerate(derivative.shadowed)}
    stacks = range(count + len(shadows), count + len(shadows) + len(derivative.group))
    derivative.forward.writes = routine.writes.union(stacks)
    derivative.forward.shares = routine.shares.union(shadows[n] for n in routine.shares if n in shadows)
    derivative.forward.may_alias_after = routine.may_alias_after.union(shadows.values(), stacks)
    derivative.reverse.writes = frozenset(range(len(derivative.group)))


def _tidy(made: Sequence[Derivative], acting: bool = True, also: Sequence[Routine] = ()) -> None:
    """Simplify the functions, and set the effects of their calls; calls must not move if they are `acting`."""
    routines = [*also, *(each for derivative in made for each in (derivative.forward, derivative.reverse))]
    find_effects(routines)
    check_after("derivative", *(routine.function for routine in routines))
    for routine in routines:
        routine.has_side_effects = routine.has_side_effects or acting
        passes.run(routine.function, (*passes.CLEAN_UP, passes.promote_accumulations, *passes.CLEAN_UP))


def _new(routine: Routine, case: Case) -> Derivative:
    name = routine.__name__
    forward, reverse = (routine.derivation if isinstance(routine.derivation, Derivation) else Derivation).suffixes
    made = Derivative(routine, case, Routine(f"{name}_{forward}"), Routine(f"{name}_{reverse}"))
    made.forward.has_side_effects = made.reverse.has_side_effects = True
    return made


_NONE = Const(None, types.none)
_list_of: Callable[[Type], Type] = types.List
_ANY_LIST = _list_of(types.float64)  # until the element type is known
_MOST_RETURNED = 12  # values for the reverse half; a function that has more keeps them itself, in a list
