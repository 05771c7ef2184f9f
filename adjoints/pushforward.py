"""The pushforward of a primal: beside every value its tangent, how it changes when the arguments change.

    %y = mul %x, %w : f64                       %y = mul %x, %w : f64
                                      ->        %ty = mul %tx, %w : f64
    setitem %a, %y, %i                          setitem %a, %y, %i
                                                setitem %ta, %ty, %i

The rows of rules are those of the reverse sweep: a row is linear in `dy`, which here is the tangent of the argument. An
array has a shadow, as in reverse mode, with the tangents of its elements: what is done to the array is done to the
shadow. Several directions are carried at once: each value has as many tangents as there are directions.

Nothing is recorded and nothing reversed: control flow is that of the primal.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numba import types

from zygote_py.adjoints.activity import Activity, find_active
from zygote_py.adjoints.calls import Case, name_apart, results_of
from zygote_py.adjoints.custom_pushforward import CustomPushforwards
from zygote_py.adjoints.derivatives import calls_with_cases, items_of, primal_of
from zygote_py.adjoints.flows import STORES
from zygote_py.adjoints.kinds import carries_adjoint, element_of, has_shadow, is_array, is_list, is_number
from zygote_py.adjoints.leaves import expose_leaves, expose_results
from zygote_py.adjoints.rules import push_forward, rule_for
from zygote_py.adjoints.rules.opaque import opaque_for
from zygote_py.adjoints.rules.terms import is_singular, vanishes
from zygote_py.adjoints.transposed import Transposed
from zygote_py.ir import ops
from zygote_py.ir.builder import Builder
from zygote_py.ir.core import (
    Block,
    Const,
    Function,
    Instr,
    Operand,
    Param,
    Phi,
    Routine,
    Type,
    Undef,
    Value,
    zero,
)
from zygote_py.ir.debug import check_after
from zygote_py.ir.dominators import dominator_tree
from zygote_py.ir.errors import InternalError
from zygote_py.ir.memory import Memory, is_view
from zygote_py.ir.routines import cycles, find_effects, routines_of
from zygote_py.ir.types import components_of, with_components
from zygote_py.ir.walks import remove

Tangents = tuple[Operand, ...]  # one for each direction


@dataclass(frozen=True, eq=False)
class Pushed:
    """A pushforward; `tangents` are its parameters behind those of the primal, for each of `wrt` as many as directions.

    The function returns the primal's result and then the tangents of the result, one for each direction.
    """

    function: Function
    tangents: tuple[Param, ...]


class Pushforwards:
    """The pushforwards of a function and of the routines that it calls, each made once a case."""

    def __init__(self, routines: Collection[Routine], width: int, transposed: Transposed) -> None:
        """The functions of the routines are in canonical form; `width` is the number of directions."""
        self.width = width
        self.transposed = transposed
        self._cycles = cycles(routines)
        self._made: dict[tuple[Routine, Case], Routine] = {}
        self._custom = CustomPushforwards()

    def push(self, primal: Function, wrt: Sequence[Param], written: Collection[Param] = ()) -> Pushed:
        """Make the pushforward of a function in canonical form, which is changed. Raises DifferentiationError."""
        parts = expose_leaves(primal, wrt)
        expose_results(primal)
        activity = find_active(primal, wrt, parts, written)
        builder = _Builder(self, primal, activity)
        tangents = tuple(
            Param(_shadow_type(param.type), self._hint(f"t{param.hint}", number), param.loc)
            for param in wrt
            for number in range(self.width)
        )
        given = {param: tangents[place * self.width :][: self.width] for place, param in enumerate(wrt)}
        primal.params += tangents
        builder.take_parameters(given, parts)
        builder.run()
        for block, end in primal.returns():
            (value,) = end.args
            found = [builder.result(block, value, number) for number in range(self.width)]
            Builder(block).return_packed([value, *found])
        name_apart(primal.params)
        check_after("push", primal)
        return Pushed(primal, tangents)

    def of(self, routine: Routine, case: Case) -> Routine:
        """The pushforward of a routine: it takes the tangents of the active parameters behind its own.

        It returns what the routine does, and then the tangents of all numbers and arrays of numbers among that. What is
        unstable matters to rules only, which may keep what is written to later.
        """
        if self._cycles.get(routine):
            case = Case(frozenset(self.passed(routine, ())), frozenset(range(len(routine.function.params))), True)
        if all(each.rule is None for each in (routine, *routines_of(routine.function))):
            case = Case(case.active, frozenset(), False)
        key = routine, case
        if key not in self._made:
            made = self._made[key] = Routine(f"{routine.__name__}_pushforward")
            made.acts = True
            self._expect(made, routine, case.active)
            if routine.rule is not None:
                made.function = self._custom.push(routine, case, self.width, made.__name__)
            else:
                self._fill(made, routine, case)
            find_effects([each for each in self._made.values() if each.function.blocks])
        return self._made[key]

    def passed(self, routine: Routine, active: Collection[int]) -> list[int]:
        """The parameters whose tangents the pushforward of a routine takes."""
        params = routine.function.params
        if self._cycles.get(routine):
            return [n for n, p in enumerate(params) if _has_tangent(p.type)]
        return sorted(active)

    def _expect(self, made: Routine, routine: Routine, active: frozenset[int]) -> None:
        """Say what a recursive pushforward will do, while it is being made."""
        count = len(routine.function.params)
        place = {number: count + at * self.width for at, number in enumerate(sorted(active))}

        def with_shadows(numbers: Collection[int]) -> frozenset[int]:
            more = (place[n] + k for n in numbers if n in place for k in range(self.width))
            return frozenset((*numbers, *more))

        made.writes, made.shares = with_shadows(routine.writes), with_shadows(routine.shares)

    def _fill(self, made: Routine, routine: Routine, case: Case) -> None:
        primal = primal_of(routine, case, recursive=False)  # shadows share what arguments share: that is no matter here
        primal.name = made.__name__
        wrt = [primal.params[number] for number in sorted(case.active)]
        written = [primal.params[number] for number in sorted(routine.writes)]
        activity = find_active(primal, wrt, results=written)
        builder = _Builder(self, primal, activity)
        given: dict[Param, Tangents] = {}
        for param in wrt:
            tangents = [
                Param(_shadow_type(param.type), self._hint(f"t{param.hint}", number), param.loc)
                for number in range(self.width)
            ]
            primal.params += tangents
            given[param] = tuple(tangents)
        builder.take_parameters(given, {})
        builder.run()
        for block, end in primal.returns():
            items = items_of(end.args[0])
            found = [
                builder.result(block, item, number)
                for item in items
                if _has_tangent(item.type)
                for number in range(self.width)
            ]
            Builder(block).return_packed([*items, *found])
        remove(primal, {instr for instr in primal.instrs() if instr.op is ops.release})
        name_apart(primal.params)
        check_after("push", primal)
        made.function = primal

    def _hint(self, name: str, number: int) -> str:
        return name if self.width == 1 else f"{name}_{number}"


class _Builder:
    """Adds the tangents to one function."""

    def __init__(self, made: Pushforwards, function: Function, activity: Activity) -> None:
        self._pushforwards = made
        self._width = made.width
        self._function = function
        self._activity = activity
        self._tangents: dict[Value, Tangents] = {}
        self._opaque: dict[Instr, dict[int, Instr]] = {}
        self._out: list[Instr] = []  # of the block at work
        self._items: dict[Value, list[Instr]] = {}  # of tuples, what takes them out
        self._cases = dict(calls_with_cases(function, activity, Memory(function)))
        for block in function.blocks:
            for instr in block.instrs:
                match instr:
                    case Instr(op=ops.getitem, args=(Instr() as whole, Const())):
                        self._items.setdefault(whole, []).append(instr)

    def take_parameters(self, given: Mapping[Param, Tangents], parts: Mapping[Value, tuple[Instr, ...]]) -> None:
        """Take the tangents of parameters, and of the parts of those that are tuples."""
        for param, tangents in given.items():
            self._tangents[param] = tangents
        made: list[Instr] = []

        def take(whole: Value, tangents: Tangents) -> None:
            for number, part in enumerate(parts.get(whole, ())):
                if carries_adjoint(part.type):
                    found = tuple(
                        Instr(ops.getitem, (each, Const(number, types.int64)), _shadow_type(part.type), _hint(part))
                        for each in tangents
                    )
                    made.extend(found)
                    self._tangents[part] = found
                    take(part, found)

        for param, tangents in given.items():
            take(param, tangents)
        for param in self._function.params:  # it does not change, but may be taken for memory that does
            if param in self._activity and has_shadow(param.type) and param not in self._tangents:
                kind = _shadow_type(param.type)
                zeros = [Instr(np.zeros_like, (param,), kind, _hint(param)) for _ in range(self._width)]
                made += zeros
                self._tangents[param] = tuple(zeros)
        self._function.entry.instrs[:0] = made

    def run(self) -> None:
        """Add the tangents of all active values, and do to the shadows what is done to arrays."""
        for block in self._function.blocks:
            for phi in tuple(block.phis):
                if phi in self._activity and _has_tangent(phi.type):
                    made = tuple(Phi(_shadow_type(phi.type), _hint(phi), phi.loc) for _ in range(self._width))
                    block.phis += made
                    self._tangents[phi] = made
        for block in dominator_tree(self._function).order:
            self._out = []
            for instr in block.instrs:
                if instr in self._cases:
                    self._push_call(instr)
                else:
                    self._out.append(instr)
                    self._push(instr)
            block.instrs = list(self._out)
        for block in self._function.blocks:
            for phi in tuple(block.phis):
                for number, tangent in enumerate(self._tangents.get(phi, ())):
                    assert isinstance(tangent, Phi)
                    tangent.incoming = {
                        pred: self._at_end(pred, operand, tangent.type, number)
                        for pred, operand in phi.incoming.items()
                    }

    def result(self, block: Block, value: Operand, number: int) -> Operand:
        """The tangent of what a function returns, made at the end of a block; zeros for what has none."""
        self._out = []
        found = self._of_result(value, number)
        block.instrs += self._out
        return found

    # ---------------------------------------------------------------------------------------------- instructions

    def _push(self, instr: Instr) -> None:
        """Add the tangents of what an instruction gives, or do to shadows what it does."""
        op, args = instr.op, instr.args
        if instr in self._tangents:  # a part of a parameter
            return
        if op in STORES or op is ops.push:
            if args[0] in self._activity:
                self._on_shadows(instr, 0, 1)
        elif op is ops.pop:
            if args[0] in self._activity:
                self._tangents[instr] = self._each(lambda n: self._emit(op, (self._shadow(args[0], n),), instr))
        elif isinstance(instr.type, types.BaseTuple):
            if opaque_for(instr) is not None and instr in self._activity:
                self._opaque[instr] = {}
        elif self._is_item_of_opaque(instr):
            self._take_opaque(instr)
        elif instr not in self._activity or not _has_tangent(instr.type):
            return
        elif op is ops.getitem and isinstance(args[0].type, types.BaseTuple):  # of an argument that does not change
            self._tangents[instr] = self._each(lambda n: self._emit(np.zeros_like, (instr,), instr))
        elif op in (ops.record, ops.zeros):
            self._tangents[instr] = self._each(lambda n: self._emit(ops.zeros, args, instr))
        elif op is np.zeros_like:
            self._tangents[instr] = self._each(lambda n: self._emit(op, args, instr))
        elif op is ops.stack:
            self._tangents[instr] = self._each(lambda n: self._emit(op, (), instr))
        elif is_view(instr):
            self._push_view(instr)
        elif op is ops.getitem and (is_array(args[0].type) or is_list(args[0].type)):
            self._tangents[instr] = self._each(lambda n: self._emit(op, (self._shadow(args[0], n), *args[1:]), instr))
        elif op in (ops.pick, ops.select):
            self._tangents[instr] = self._each(
                lambda n: self._emit(op, (args[0], *(self._of(arg, n) for arg in args[1:])), instr)
            )
        elif op is ops.guarded:
            self._tangents[instr] = self._push_guarded(instr)
        elif opaque_for(instr) is not None:
            self._opaque[instr] = {}
            self._take_opaque(instr)
        elif is_array(instr.type) and not any(arg in self._activity for arg in instr.args):  # np.eye, to be written to
            self._tangents[instr] = self._each(lambda n: self._emit(np.zeros_like, (instr,), instr))
        else:
            self._push_number(instr)

    def _push_number(self, instr: Instr) -> None:
        rule = rule_for(instr)
        if rule is None or not is_number(instr.type):
            raise InternalError(f"pushforward: {ops.name_of(instr.op)} has no rule")
        found: list[Operand] = []
        for number in range(self._width):
            total: Operand | None = None
            for index, argument in enumerate(instr.args):
                if argument in self._activity and rule.passes(index):
                    tangent = self._of(argument, number)
                    if isinstance(tangent, Const) and tangent.value == 0.0:
                        continue
                    term = push_forward(rule, index, instr, tangent, self._make)
                    term = self._guarded(term, tangent, rule.adjoints[index])
                    total = term if total is None else self._make(operator.add, (total, term), instr.type)
            if total is None:
                total = zero(instr.type)
            elif isinstance(total, Instr) and not total.hint:
                total.hint = _hint(instr)
            found.append(total)
        self._tangents[instr] = tuple(found)

    def _guarded(self, term: Operand, tangent: Operand, rule: str | None) -> Operand:
        """Nothing, where the argument does not change: the derivative may be infinite there."""
        assert rule is not None
        if isinstance(term, Const) or isinstance(tangent, Const) or vanishes(rule):
            return term
        if not is_singular(rule):
            return term
        return self._make(ops.guarded, (term, tangent), term.type)

    def _push_guarded(self, instr: Instr) -> Tangents:
        """The tangents of a product: nothing, where neither its factors nor their tangents are anything."""
        product, *factors = instr.args

        def push(number: int) -> Operand:
            tangent = self._of(product, number)
            changes = [each for each in (self._of(factor, number) for factor in factors) if isinstance(each, Value)]
            return tangent if isinstance(tangent, Const) else self._emit(instr.op, (tangent, *factors, *changes), instr)

        return self._each(push)

    def _push_view(self, instr: Instr) -> None:
        def view(number: int) -> Instr:
            args = tuple(self._shadow(arg, number) if has_shadow(arg.type) else arg for arg in instr.args)
            if instr.op is np.broadcast_to:  # what NumPy gives must not be written to
                return self._emit(ops.spread, args, instr)
            return self._emit(instr.op, args, instr, instr.keywords)

        self._tangents[instr] = self._each(view)

    def _on_shadows(self, instr: Instr, target: int, item: int) -> None:
        """Do to the shadows of an array or a list what is done to it, with the tangent of what is put into it."""
        for number in range(self._width):
            args = list(instr.args)
            whole, value = args[target], args[item]
            element = element_of(whole.type)
            args[target] = self._shadow(whole, number)
            args[item] = self._stored(value, element, number)
            self._make(instr.op, tuple(args), types.none)

    def _stored(self, value: Operand, element: Type, number: int) -> Operand:
        """The tangent of what is put into an array or a list."""
        if is_number(value.type) and value in self._activity:
            return self._of(value, number)
        if has_shadow(value.type):
            return self._shadow(value, number)
        return zero(element)

    # ------------------------------------------------------------------------------------------- whole operations

    def _is_item_of_opaque(self, instr: Instr) -> bool:
        whole = instr.args[0] if instr.op is ops.getitem else None
        return isinstance(whole, Instr) and isinstance(whole.type, types.BaseTuple) and whole in self._opaque

    def _take_opaque(self, item: Instr) -> None:
        """The tangents of the results of an operation on whole arrays, when its last result has been taken out."""
        whole = item.args[0] if self._is_item_of_opaque(item) else item
        assert isinstance(whole, Instr)
        items = self._opaque[whole]
        if whole is item:
            items[0] = item
        else:
            (_, index) = item.args
            assert isinstance(index, Const)
            items[int(index.value)] = item  # type: ignore[call-overload]
            if len(items) < len(components_of(whole.type)):
                return
        rule = opaque_for(whole)
        assert rule is not None
        active = [n for n in rule.adjoints if whole.args[n] in self._activity]
        made: dict[int, list[Operand]] = {place: [] for place in items}
        for number in range(self._width):
            b = Builder(Block(), whole.loc)
            changes = {n: self._of(whole.args[n], number) for n in active}
            found = self._pushforwards.transposed.tangents(b, whole, rule, items, changes)
            self._out += b.block.instrs
            for place, tangent in found.items():
                made[place].append(tangent)
        for place, tangents in made.items():
            if tangents:
                self._tangents[items[place]] = tuple(tangents)

    # ------------------------------------------------------------------------------------------------------ calls

    def _push_call(self, call: Instr) -> None:
        """Call the pushforward of a routine in its place."""
        routine = call.op
        assert isinstance(routine, Routine)
        made = self._pushforwards.of(routine, self._cases[call])
        passed = self._pushforwards.passed(routine, self._cases[call].active)
        tangents = [self._passed(call.args[n], n_th) for n in passed for n_th in range(self._width)]
        results = results_of(routine.function)
        with_tangents = [number for number, kind in enumerate(results) if _has_tangent(kind)]
        kinds = (*results, *(_shadow_type(results[n]) for n in with_tangents for _ in range(self._width)))
        b = Builder(Block(), call.loc)
        items = b.call_packed(made, [*call.args, *tangents], kinds)
        self._out += b.block.instrs
        old = self._items.get(call, []) if isinstance(call.type, types.BaseTuple) else [call]
        for each in old:
            number = 0
            if each is not call:
                index = each.args[1]
                assert isinstance(index, Const)
                number = int(index.value)  # type: ignore[call-overload]
            elif not results:
                continue
            if number in with_tangents:
                start = len(results) + with_tangents.index(number) * self._width
                self._tangents[each] = tuple(items[start : start + self._width])
            each.op, each.args = ops.getitem, items[number].args
            if each is call:
                self._out.append(each)

    def _passed(self, operand: Operand, number: int) -> Operand:
        """The tangent of an argument: zeros if it has none."""
        if is_number(operand.type):
            return self._of(operand, number)
        if isinstance(operand, Value) and operand in self._tangents:
            return self._tangents[operand][number]
        return self._make(np.zeros_like, (operand,), _shadow_type(operand.type))

    # ---------------------------------------------------------------------------------------------------- values

    def _of(self, operand: Operand, number: int) -> Operand:
        """The tangent of an operand in a direction."""
        if isinstance(operand, Value) and operand in self._tangents:
            return self._tangents[operand][number]
        if is_number(operand.type):
            return zero(operand.type)
        raise InternalError(f"pushforward: a value of type {operand.type} has no tangent")

    def _shadow(self, operand: Operand, number: int) -> Operand:
        if isinstance(operand, Value) and operand in self._tangents:
            return self._tangents[operand][number]
        if isinstance(operand, Undef):
            return operand
        raise InternalError("pushforward: an array without a shadow")

    def _at_end(self, block: Block, operand: Operand, kind: Type, number: int) -> Operand:
        """The tangent of what a phi gets from a block."""
        if isinstance(operand, Undef):
            return Undef(kind)
        if isinstance(operand, Value) and operand in self._tangents:
            return self._tangents[operand][number]
        if is_number(operand.type):
            return zero(operand.type)
        block.instrs.append(made := Instr(np.zeros_like, (operand,), kind, "shadow", block.loc))
        return made

    def _of_result(self, value: Operand, number: int) -> Operand:
        if isinstance(value, Value) and value in self._tangents:
            return self._tangents[value][number]
        if isinstance(value, Instr) and value.op is ops.pack:
            items = tuple(self._of_result(item, number) for item in value.args)
            kinds = tuple(item.type for item in items)
            return self._make(ops.pack, items, with_components(value.type, kinds))
        if is_number(value.type):
            return zero(value.type)
        if is_array(value.type):
            return self._make(np.zeros_like, (value,), _shadow_type(value.type))
        if isinstance(value.type, types.BaseTuple) and carries_adjoint(value.type):
            items = tuple(
                self._of_result(self._make(ops.getitem, (value, Const(place, types.int64)), kind), number)
                for place, kind in enumerate(components_of(value.type))
            )
            return self._make(ops.pack, items, with_components(value.type, tuple(item.type for item in items)))
        return Const(None, types.none)

    def _each(self, make: Callable[[int], Operand]) -> Tangents:
        return tuple(make(number) for number in range(self._width))

    def _make(self, op: ops.Op, args: tuple[Operand, ...], kind: Type) -> Instr:
        self._out.append(made := Instr(op, args, kind))
        return made

    def _emit(self, op: ops.Op, args: tuple[Operand, ...], of: Instr, keywords: tuple[str, ...] = ()) -> Instr:
        self._out.append(made := Instr(op, args, _shadow_type(of.type), _hint(of), of.loc, keywords))
        return made


def _has_tangent(kind: Type) -> bool:
    return is_number(kind) or has_shadow(kind)


def _shadow_type(kind: Type) -> Type:
    """The type of the tangent of a value: that of the value, but that it may be written to."""
    if isinstance(kind, types.Array):
        return types.Array(kind.dtype, kind.ndim, kind.layout)
    if isinstance(kind, types.BaseTuple):
        return with_components(
            kind, tuple(_shadow_type(each) if carries_adjoint(each) else types.none for each in components_of(kind))
        )
    return kind


def _hint(value: Value) -> str:
    return f"t{value.hint or ''}"
