"""Companions: every active value of a primal gets a second value, defined by a `Domain`; control flow is unchanged.

    %y = mul %x, %w : f64                       %y = mul %x, %w : f64
                                      ->        %ty = mul %tx, %w : f64            (its tangent, say)
    setitem %a, %y, %i                          setitem %a, %y, %i
                                                setitem %ta, %ty, %i

Numbers have companions, and so have arrays and lists of numbers: operations on an array are applied to its companion. A
routine with companions takes those of its active parameters after its own parameters, and returns those of its results
after the results. A value may have several companions, one for each of the domain's `width` directions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import Activity, carries_adjoint, find_active, has_shadow, is_array, is_list, is_number
from zygote_py.adjoints.reverse.calls import Case, name_apart
from zygote_py.adjoints.reverse.divisors import direct_contributions
from zygote_py.adjoints.routines import calls_with_cases, joined_cases, primal_of
from zygote_py.adjoints.rules.formulas.opaque import opaque_for
from zygote_py.ir import (
    NONE,
    Block,
    Builder,
    Const,
    Function,
    Instr,
    Loc,
    Memory,
    Operand,
    Param,
    Phi,
    Routine,
    Type,
    Undef,
    Value,
    check_after,
    components_of,
    cycles,
    dominator_tree,
    find_effects,
    inserting,
    is_view,
    item_reads,
    items_of,
    ops,
    remove,
    results_of,
    uses,
    with_components,
)

Companion = tuple[Operand, ...]  # one per direction


class Domain(ABC):
    """The definition of companions. Implementations may use all of `Walk`."""

    name: ClassVar[str]  # of the stage, in internal errors
    suffix: ClassVar[str]  # of the names of routines
    width = 1

    @abstractmethod
    def type_of(self, kind: Type) -> Type:
        """Return the type of the companion of a value of type `kind`."""

    @abstractmethod
    def hint(self, name: str) -> str:
        """Return the name of the companion of a named value, or of an unnamed one."""

    def hint_of_param(self, name: str, number: int) -> str:
        """Return the name of a parameter that is a companion in one direction."""
        return self.hint(name)

    @abstractmethod
    def zero(self, kind: Type) -> Operand:
        """Return the companion of a number that does not depend on the differentiated inputs."""

    @abstractmethod
    def zeros(self, b: Builder, array: Operand, hint: str = "") -> Operand:
        """Return the companion of an array that does not depend on the differentiated inputs."""

    @abstractmethod
    def missing(self, walk: Walk, operand: Operand) -> Operand:
        """Return the companion of an array, or a list, that has none but is used as if it had one. May raise."""

    @abstractmethod
    def allocated(self, walk: Walk, instr: Instr) -> Operand:
        """Return the companion of a newly allocated array."""

    @abstractmethod
    def scalar(self, walk: Walk, instr: Instr, number: int) -> Operand:
        """Return the companion, in one direction, of the number that an operation returns."""

    @abstractmethod
    def store(self, walk: Walk, instr: Instr, number: int) -> None:
        """Apply an operation on an array or a list to its companion."""

    @abstractmethod
    def view(self, walk: Walk, instr: Instr, number: int) -> Operand:
        """Return the same view of a companion."""

    @abstractmethod
    def whole(self, walk: Walk, instr: Instr, items: Mapping[int, Instr]) -> None:
        """Make the companions of the results of a whole-array operation: of itself as item 0, or of its items."""

    @abstractmethod
    def returns(self, kind: Type) -> bool:
        """Return whether a routine returns a companion for a result of type `kind`."""

    @abstractmethod
    def case(self, routine: Routine, case: Case) -> Case:
        """Return the case reduced to the properties that matter to the companions of a routine."""

    def custom(self, routine: Routine, case: Case, name: str) -> Function | None:
        """Return the function with companions of a routine with a custom rule; None if calls are treated as `whole`."""
        return None


class Companions:
    """The functions with companions of the routines that a function calls, one per case."""

    def __init__(self, routines: Collection[Routine], domain: Domain, more: tuple[Param, ...] = ()) -> None:
        """Collect routines whose functions are in canonical form. All results have the last parameters `more`."""
        self.domain = domain
        self._more = more
        self._cycles = cycles(routines)
        self._made: dict[tuple[Routine, Case], Routine | None] = {}

    def add_to(
        self,
        primal: Function,
        wrt: Sequence[Param],
        activity: Activity,
        parts: Mapping[Value, tuple[Instr, ...]],
        more: tuple[Operand, ...] = (),
        known: Mapping[Param, Sequence[Const | None]] = MappingProxyType({}),
    ) -> Walk:
        """Add the companions of all active values; those of `wrt` become the last parameters of the function.

        `known` are companions, one for each direction, that are constants and not parameters.
        """
        given: dict[Param, Companion] = {}
        for param in wrt:
            kind = self.domain.type_of(param.type)
            own: list[Operand] = []
            for number, constant in enumerate(known.get(param, [None] * self.domain.width)):
                name = self.domain.hint_of_param(param.hint, number)
                own.append(Param(kind, name, param.loc) if constant is None else constant)
            primal.params += [each for each in own if isinstance(each, Param)]
            given[param] = tuple(own)
        walk = Walk(self, primal, activity, more)
        walk.take_parameters(given, parts)
        walk.run()
        return walk

    def of(self, routine: Routine, case: Case) -> Routine | None:
        """Return the routine with companions: it takes those of the active parameters and returns those of its results.

        Return None for a routine whose calls the domain treats as operations on whole arrays.
        """
        if self._cycles.get(routine):
            case = Case(frozenset(self.passed(routine, ())), frozenset(range(len(routine.function.params))), True)
        case = self.domain.case(routine, case)
        key = routine, case
        if key not in self._made:
            made = self._made[key] = Routine(f"{routine.__name__}_{self.domain.suffix}")
            made.has_side_effects = True
            self._expect(made, routine, case.active)
            if not routine.is_custom:
                made.function = self._function(made.__name__, routine, case)
            elif (found := self.domain.custom(routine, case, made.__name__)) is not None:
                made.function = found
            else:
                self._made[key] = None
            together = self._made.values() if self._cycles.get(routine) else (made,)
            find_effects([each for each in together if each is not None and each.function.blocks])
        return self._made[key]

    @property
    def cases(self) -> Collection[tuple[Routine, Case]]:
        """Return the routines that have been made with companions, and the cases for which."""
        return self._made.keys()

    def passed(self, routine: Routine, active: Collection[int]) -> list[int]:
        """Return the parameters whose companions are passed to a routine."""
        if self._cycles.get(routine):
            return [n for n, param in enumerate(routine.function.params) if has_companion(param.type)]
        return sorted(active)

    def _expect(self, made: Routine, routine: Routine, active: frozenset[int]) -> None:
        """Declare the effects of a routine while it is under construction, and what may be aliases after a call."""
        count, width = len(routine.function.params), self.domain.width
        place = {number: count + at * width for at, number in enumerate(sorted(active))}
        last = count + width * len(active)

        def with_companions(numbers: Collection[int]) -> frozenset[int]:
            return frozenset((*numbers, *(place[n] + k for n in numbers if n in place for k in range(width))))

        made.writes = with_companions(routine.writes).union(range(last, last + len(self._more)))
        made.shares = with_companions(routine.shares)
        made.may_alias_after = with_companions(routine.may_alias_after)

    def _function(self, name: str, routine: Routine, case: Case) -> Function:
        primal = primal_of(routine, case, recursive=False)  # aliasing companions do not matter here
        primal.name = name
        wrt = [primal.params[number] for number in sorted(case.active)]
        written = [primal.params[number] for number in sorted(routine.writes)]
        activity = find_active(primal, wrt, results=written)
        more = tuple(Param(each.type, each.hint, primal.loc) for each in self._more)
        walk = self.add_to(primal, wrt, activity, {}, more)
        primal.params += more
        for block, end in primal.returns():
            items = items_of(end.args[0])
            found = [each for item in items if self.domain.returns(item.type) for each in walk.results(block, item)]
            Builder(block).return_packed([*items, *found])
        remove(primal, {instr for instr in primal.instrs() if instr.op is ops.release})
        name_apart(primal.params)
        check_after(self.domain.name, primal)
        return primal


class Walk:
    """Adds the companions to one function; `b` appends to the current block, `more` is passed to every routine."""

    def __init__(
        self, made: Companions, function: Function, activity: Activity, more: tuple[Operand, ...] = ()
    ) -> None:
        self.function = function
        self.activity = activity
        self.more = more
        self.companions: dict[Value, Companion] = {}
        self.b = Builder(Block())
        self._made = made
        self._domain = made.domain
        found = calls_with_cases(function, activity, Memory(function))
        own = [(call, made.domain.case(call.op, case)) for call, case in found if isinstance(call.op, Routine)]
        self._cases = dict(joined_cases(own, made.cases))
        self._taken: dict[Value, dict[int, Instr]] = {}  # items visited of tuple results, by index
        self.records = _element_records(function)
        self.used = uses(function).keys()  # by the function itself
        self.direct = direct_contributions(function, activity)
        # Of tuples, the instructions that read their items.
        self._items = {
            whole: [each for each in found if len(each.args) == 2 and isinstance(each.args[1], Const)]
            for whole, found in item_reads(function).items()
        }

    def take_parameters(self, given: Mapping[Param, Companion], parts: Mapping[Value, tuple[Instr, ...]]) -> None:
        """Set the companions of parameters, and of the parts of tuple parameters."""
        for param, companion in given.items():
            self.companions[param] = companion
        with inserting(self.function.entry) as self.b:
            for param, companion in given.items():
                self._take_parts(param, companion, parts)
            for param in self.function.params:  # it is constant, but may alias memory that changes
                if param in self.activity and is_array(param.type) and param not in self.companions:
                    made = [self._domain.zeros(self.b, param, self.hint(param)) for _ in range(self._domain.width)]
                    self.companions[param] = tuple(made)

    def _take_parts(self, whole: Value, companion: Companion, parts: Mapping[Value, tuple[Instr, ...]]) -> None:
        for number, part in enumerate(parts.get(whole, ())):
            if carries_adjoint(part.type):
                index, kind = Const(number, types.int64), self._domain.type_of(part.type)
                found = [self.b.call(ops.getitem, each, index, type=kind, hint=self.hint(part)) for each in companion]
                self.companions[part] = tuple(found)
                self._take_parts(part, tuple(found), parts)

    def run(self) -> None:
        """Add the companions of all active values, and apply operations on arrays to their companions."""
        merges: dict[Phi, list[Phi]] = {}
        for block in self.function.blocks:
            for phi in tuple(block.phis):
                if phi in self.activity and has_companion(phi.type):
                    kind = self._domain.type_of(phi.type)
                    merges[phi] = [Phi(kind, self.hint(phi), phi.loc) for _ in range(self._domain.width)]
                    block.phis += merges[phi]
                    self.companions[phi] = tuple(merges[phi])
        for block in dominator_tree(self.function).order:
            self.b = Builder(Block())
            for instr in block.instrs:
                if instr not in self._cases or not self._call(instr):
                    self.b.add(instr)
                    self._add(instr)
            block.instrs = self.b.block.instrs
        for phi, found in merges.items():
            for number, companion in enumerate(found):
                companion.incoming = {
                    pred: self._at_end(pred, operand, number) for pred, operand in phi.incoming.items()
                }

    def results(self, block: Block, value: Operand) -> Companion:
        """Return the companions of a function's results, computed at the end of a block."""
        self.b = Builder(block)
        return self._each(lambda number: self._of_result(value, number))

    def of(self, operand: Operand, number: int) -> Operand:
        """Return the companion of an operand in one direction."""
        if isinstance(operand, Value) and operand in self.companions:
            return self.companions[operand][number]
        if isinstance(operand, Undef):
            return Undef(self._domain.type_of(operand.type))
        return self._domain.missing(self, operand) if has_shadow(operand.type) else self._domain.zero(operand.type)

    def or_zeros(self, operand: Operand, number: int, hint: str = "", loc: Loc | None = None) -> Operand:
        """Return the companion of an operand, or zeros for an array, or a list, that depends on nothing."""
        if has_shadow(operand.type) and not isinstance(operand, Undef) and operand not in self.companions:
            return self._domain.zeros(Builder(self.b.block, loc), operand, hint)
        return self.of(operand, number)

    def make(self, op: ops.Op, args: tuple[Operand, ...], kind: Type) -> Instr:
        """Append an instruction without a name."""
        return self.b.call(op, *args, type=kind)

    def emit(self, op: ops.Op, args: Sequence[Operand], of: Instr, keywords: tuple[str, ...] = ()) -> Instr:
        """Append the computation of the companion of an instruction."""
        kind = self._domain.type_of(of.type)
        return self.b.add(Instr(op, tuple(args), kind, self.hint(of), of.loc, keywords))

    def hint(self, value: Value) -> str:
        """Return the name of a value's companion."""
        return self._domain.hint(value.hint or "")

    def _add(self, instr: Instr) -> None:
        """Add the companions of an instruction's results, or apply its effects to companions."""
        op, args, domain = instr.op, instr.args, self._domain
        if instr in self.companions:  # a part of a parameter
            return
        role = ops.of(op).role
        if role in ops.FILLS:
            for number in range(domain.width) if args[0] in self.activity else ():
                domain.store(self, instr, number)
        elif op is ops.pop:
            if args[0] in self.activity:
                self._same(instr)
        elif instr in self._cases or (instr in self.activity and opaque_for(instr) is not None):
            if isinstance(instr.type, types.BaseTuple):
                self._taken[instr] = {}
            else:
                domain.whole(self, instr, {0: instr})
        elif op is ops.getitem and args[0] in self._taken:
            self._take_item(instr)
        elif instr not in self.activity or not has_companion(instr.type):
            return
        elif op is ops.getitem and isinstance(args[0].type, types.BaseTuple):  # of an argument that does not change
            self.companions[instr] = self._each(lambda n: self.or_zeros(instr, n, self.hint(instr), instr.loc))
        elif role is ops.Role.ALLOCATE or op is np.zeros_like:
            self.companions[instr] = self._each(lambda _: domain.allocated(self, instr))
        elif op is ops.stack or (op is ops.copied and is_list(instr.type)):
            self._same(instr)
        elif is_view(instr):
            self.companions[instr] = self._each(lambda number: domain.view(self, instr, number))
        elif op is ops.getitem and has_shadow(args[0].type):
            self.companions[instr] = self._each(lambda n: self.emit(op, (self.of(args[0], n), *args[1:]), instr))
        elif role is ops.Role.CHOOSE and not is_number(instr.type):
            self.companions[instr] = self._each(
                lambda n: self.emit(op, (args[0], *(self.of(arg, n) for arg in args[1:])), instr)
            )
        elif is_array(instr.type) and not any(arg in self.activity for arg in args):  # np.eye, to be written to
            self.companions[instr] = self._each(lambda n: self.or_zeros(instr, n, self.hint(instr), instr.loc))
        elif is_number(instr.type):
            self.companions[instr] = self._each(lambda number: domain.scalar(self, instr, number))
        else:
            domain.whole(self, instr, {0: instr})

    def _take_item(self, item: Instr) -> None:
        """Process a tuple-valued operation once its last result has been extracted."""
        whole, index = item.args
        assert isinstance(whole, Instr)
        assert isinstance(index, Const)
        items = self._taken[whole]
        items[int(index.value)] = item  # type: ignore[call-overload]
        if len(items) == len(components_of(whole.type)):
            self._domain.whole(self, whole, items)

    def _call(self, call: Instr) -> bool:
        """Call the routine with companions instead of the original, if it exists; return whether it does."""
        routine, domain = call.op, self._domain
        assert isinstance(routine, Routine)
        made = self._made.of(routine, self._cases[call])
        if made is None:
            return False
        passed = self._made.passed(routine, self._cases[call].active)
        companions = [self.or_zeros(call.args[n], number) for n in passed for number in range(domain.width)]
        results = results_of(routine.function)
        own = [number for number, kind in enumerate(results) if domain.returns(kind)]
        kinds = [*results, *(domain.type_of(results[n]) for n in own for _ in range(domain.width))]
        items = Builder(self.b.block, call.loc).call_packed(made, [*call.args, *companions, *self.more], kinds)
        old = self._items.get(call, []) if isinstance(call.type, types.BaseTuple) else [call] if results else []
        for each in old:
            number = 0
            if each is not call:
                assert isinstance(each.args[1], Const)
                number = int(each.args[1].value)  # type: ignore[call-overload]
            if number in own:
                start = len(results) + own.index(number) * domain.width
                self.companions[each] = tuple(items[start : start + domain.width])
            elif has_companion(results[number]):
                domain.missing(self, each)
            each.op, each.args = ops.getitem, items[number].args
            if each is call:
                self.b.add(each)
        return True

    def _same(self, instr: Instr) -> None:
        """Apply an instruction unchanged to companions."""
        self.companions[instr] = self._each(
            lambda number: self.emit(instr.op, [self.of(arg, number) for arg in instr.args], instr)
        )

    def _at_end(self, block: Block, operand: Operand, number: int) -> Operand:
        """Return the companion of a phi operand, at the end of its block."""
        self.b = Builder(block)
        return self.or_zeros(operand, number, "shadow", block.loc)

    def _of_result(self, value: Operand, number: int) -> Operand:
        if value in self.companions or not isinstance(value.type, types.BaseTuple):
            return self.or_zeros(value, number)
        if not carries_adjoint(value.type) and not (isinstance(value, Instr) and value.op is ops.pack):
            return NONE
        parts = [self._of_result(each, number) for each in self.b.items(value)]
        return self.make(ops.pack, tuple(parts), with_components(value.type, tuple(each.type for each in parts)))

    def _each(self, make: Callable[[int], Operand]) -> Companion:
        return tuple(make(number) for number in range(self._domain.width))


def _element_records(function: Function) -> frozenset[Instr]:
    """Return the arrays of undefined elements of which single elements are stored and read, and no more.

    An element that is read has been stored before, and so has its companion.
    """
    records = [instr for instr in function.instrs() if instr.op is ops.record]
    used = uses(function) if records else {}
    return frozenset(record for record in records if all(_is_access(use.user, record) for use in used.get(record, ())))


def _is_access(user: object, array: Value) -> bool:
    return (
        isinstance(user, Instr)
        and user.op in (ops.getitem, ops.setitem, ops.initialize, ops.accumulate, ops.dim)
        and user.args[0] is array
        and array not in user.args[1:]
        and not isinstance(user.type, types.Array)
    )


def has_companion(kind: Type) -> bool:
    """Return whether values of a type have companions."""
    return is_number(kind) or has_shadow(kind)
