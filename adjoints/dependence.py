"""What depends on what: beside every number of a primal the set of the elements of an argument that it depends on.

    %y = mul %x, %w : f64                       %y = mul %x, %w : f64
                                      ->        %i_y = joined %sets, %i_x, %i_w : i64
    setitem %a, %y, %i                          setitem %a, %y, %i
                                                setitem %i_a, %i_y, %i

It is made as a pushforward is (`pushforward.py`), with names of sets in the place of tangents. A set has a number: 0 is
the empty one, -k holds element k alone, counted from 1, and k > 0 is the union of the two sets whose numbers are in the
list of all unions, at 2k - 2 and 2k - 1. So a union costs the same however large it is, and only those that a result
needs are ever written out (`zygote_py.sparsity`).

What is found holds for the path that was taken, and may be too much, never too little: of a choice between values
(`select`, `pick`) all are taken, and what an operation on whole arrays gives depends on all that it was given, but for
products of matrices, whose elements depend on a row and a column. An argument through which no derivative flows by the
rules adds nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints.activity import Activity, find_active
from zygote_py.adjoints.calls import name_apart, results_of
from zygote_py.adjoints.errors import DifferentiationError, refuse
from zygote_py.adjoints.flows import STORES
from zygote_py.adjoints.kinds import has_shadow, is_array, is_list, is_number, rank_of
from zygote_py.adjoints.leaves import expose_leaves, expose_results
from zygote_py.adjoints.rules import rule_for
from zygote_py.adjoints.rules.opaque import opaque_for
from zygote_py.adjoints.same_way import goes_the_same_way
from zygote_py.adjoints.sets_of_indices import (
    as_array,
    joined,
    joined_all,
    joined_columns,
    joined_outer,
    joined_rows,
    no_sets,
    widen,
)
from zygote_py.ir import ops
from zygote_py.ir.builder import NONE, Builder
from zygote_py.ir.clone import clone
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Param, Phi, Routine, Type, Undef, Value
from zygote_py.ir.debug import check_after
from zygote_py.ir.dominators import dominator_tree
from zygote_py.ir.errors import InternalError
from zygote_py.ir.memory import is_view
from zygote_py.ir.routines import cycles, find_effects

_INT = types.int64
_EMPTY = Const(0, _INT)
_SETS = types.List(_INT)
_ROW = types.Array(_INT, 1, "C")
_PARTS = (np.real, np.imag)


@dataclass(frozen=True, eq=False)
class Traced:
    """What gives the sets: `indices` is its parameter behind those of the primal, with the sets of the argument.

    The function returns None, the sets of the result, the array of all unions, and whether it goes the same way for all
    numbers.
    """

    function: Function
    indices: Param


class Dependences:
    """The functions that find what depends on what, of a function and of the routines that it calls."""

    def __init__(self, function: Function, routines: Collection[Routine]) -> None:
        """The functions are in canonical form."""
        self._cycles = cycles(routines)
        self._made: dict[tuple[Routine, frozenset[int]], Routine] = {}
        # A real part that is written to is half of what stands there.
        self.overwrites = not any(
            instr.op in _PARTS and isinstance(instr.type, types.Array)
            for each in (function, *(routine.function for routine in routines))
            for block in each.blocks
            for instr in block.instrs
        )

    def trace(self, primal: Function, wrt: Param) -> Traced:
        """Make the function for an array among the arguments; the primal is changed. Raises DifferentiationError."""
        same = Const(goes_the_same_way(primal), types.boolean)
        parts = expose_leaves(primal, [wrt])
        expose_results(primal)
        activity = find_active(primal, [wrt], parts)
        sets = Instr(no_sets, (), _SETS, "sets")
        builder = _Builder(self, primal, activity, sets)
        indices = Param(ids_type(wrt.type), f"i_{wrt.hint}", wrt.loc)
        primal.params += (indices,)
        builder.run({wrt: indices})
        primal.entry.instrs.insert(0, sets)
        for block, end in primal.returns():
            (value,) = end.args
            found = builder.result(block, value)
            b = Builder(block)
            b.return_packed([NONE, found, b.call(as_array, sets, type=_ROW), same])
        name_apart(primal.params)
        check_after("trace", primal)
        return Traced(primal, indices)

    def of(self, routine: Routine, active: frozenset[int]) -> Routine:
        """That of a routine: it takes the sets of the `active` parameters, and the list of unions, behind its own.

        It returns what the routine does, and then the sets of all numbers and arrays of numbers among that.
        """
        key = routine, active
        if key not in self._made:
            made = self._made[key] = Routine(f"{routine.__name__}_dependence")
            made.acts = True
            count = len(routine.function.params)
            place = {number: count + at for at, number in enumerate(sorted(active))}

            def with_sets(numbers: Collection[int]) -> frozenset[int]:
                return frozenset((*numbers, *(place[n] for n in numbers if n in place)))

            # What a recursive one will do, while it is being made.
            made.writes = with_sets(routine.writes) | {count + len(active)}
            made.shares = with_sets(routine.shares)
            self._fill(made, routine, active)
            find_effects([each for each in self._made.values() if each.function.blocks])
        return self._made[key]

    def passed(self, routine: Routine, active: Collection[int]) -> frozenset[int]:
        """The parameters whose sets are passed to a routine."""
        if not self._cycles.get(routine):
            return frozenset(active)
        return frozenset(n for n, param in enumerate(routine.function.params) if _has_set(param.type))

    def _fill(self, made: Routine, routine: Routine, active: frozenset[int]) -> None:
        primal = clone(routine.function).function
        primal.name = made.__name__
        expose_results(primal)
        wrt = [primal.params[number] for number in sorted(active)]
        written = [primal.params[number] for number in sorted(routine.writes)]
        activity = find_active(primal, wrt, results=written)
        sets = Param(_SETS, "sets", primal.loc)
        builder = _Builder(self, primal, activity, sets)
        given = {param: Param(ids_type(param.type), f"i_{param.hint}", param.loc) for param in wrt}
        primal.params += (*given.values(), sets)
        builder.run(given)
        for block, end in primal.returns():
            (value,) = end.args
            items = value.args if isinstance(value, Instr) and value.op is ops.pack else (value,)
            if isinstance(value.type, types.NoneType):
                items = ()
            found = [builder.result(block, item) for item in items if is_number(item.type) or is_array(item.type)]
            Builder(block).return_packed([*items, *found])
        name_apart(primal.params)
        check_after("trace", primal)
        made.function = primal


class _Builder:
    """Adds the sets to one function."""

    def __init__(self, made: Dependences, function: Function, activity: Activity, sets: Value) -> None:
        self._made = made
        self._function = function
        self._activity = activity
        self._sets = sets
        self._ids: dict[Value, Operand] = {}
        self._out: list[Instr] = []  # of the block at work
        self._wholes: dict[Operand, Operand] = {}  # of tuples, on what all their items depend
        self._items: dict[Value, list[Instr]] = {}  # of tuples, what takes them out
        for block in function.blocks:
            for instr in block.instrs:
                match instr:
                    case Instr(op=ops.getitem, args=(Instr() as whole, Const())):
                        self._items.setdefault(whole, []).append(instr)

    def run(self, given: Mapping[Param, Param]) -> None:
        """Add the sets of all active values, and do to those of arrays what is done to the arrays."""
        self._ids |= dict(given.items())
        for block in self._function.blocks:
            for phi in tuple(block.phis):
                if phi in self._activity and _has_set(phi.type):
                    made = Phi(ids_type(phi.type), _hint(phi), phi.loc)
                    self._ids[phi] = made
                    block.phis.append(made)
        for block in dominator_tree(self._function).order:
            self._out = []
            for instr in block.instrs:
                if isinstance(instr.op, Routine) and instr.op.rule is None and self._is_traced(instr):
                    self._call(instr)
                else:
                    self._out.append(instr)
                    self._add(instr)
            block.instrs = list(self._out)
        for block in self._function.blocks:
            for phi in tuple(block.phis):
                if phi in self._ids:
                    ids = self._ids[phi]
                    assert isinstance(ids, Phi)
                    ids.incoming = {pred: self._at_end(pred, operand) for pred, operand in phi.incoming.items()}

    def result(self, block: Block, value: Operand) -> Operand:
        """The set of what a function returns, made at the end of a block."""
        self._out = []
        found = self._of(value)
        block.instrs += self._out
        return found

    # ---------------------------------------------------------------------------------------------- instructions

    def _add(self, instr: Instr) -> None:
        """Add the set of what an instruction gives, or do to sets what it does."""
        op, args = instr.op, instr.args
        if instr in self._ids:
            return
        if op in STORES or op is ops.push:
            if args[0] in self._activity:
                self._store(instr)
        elif op is ops.pop:
            if args[0] in self._activity:
                self._ids[instr] = self._emit(op, (self._of(args[0]),), instr)
        elif isinstance(op, Routine) and op.rule is not None:
            self._call_given(instr)
        elif isinstance(instr.type, types.BaseTuple):
            if instr in self._activity and opaque_for(instr) is not None:
                self._wholes[instr] = self._joined(self._active(instr))
        elif op is ops.getitem and args[0] in self._wholes:
            self._take_item(instr)
        elif instr not in self._activity or not _has_set(instr.type):
            return
        elif is_list(instr.type) and op in (ops.stack, ops.copied):
            self._ids[instr] = self._emit(op, tuple(map(self._of, args)), instr)
        elif op in (ops.record, ops.zeros, np.zeros_like):
            self._ids[instr] = self._empty(instr)
        elif is_view(instr):
            self._ids[instr] = self._view(instr)
        elif op is ops.getitem and (is_array(args[0].type) or is_list(args[0].type)):
            self._ids[instr] = self._emit(op, (self._of(args[0]), *args[1:]), instr)
        elif op in (ops.pick, ops.select) and not is_number(instr.type):
            chosen = (args[0], *(self._of(arg) for arg in args[1:]))
            self._ids[instr] = self._emit(op, chosen, instr)
        elif is_number(instr.type):
            found = self._joined(self._active(instr))
            if isinstance(found, Instr) and not found.hint:
                found.hint = _hint(instr)
            self._ids[instr] = found
        elif is_array(instr.type):
            self._ids[instr] = self._of_operation(instr)
        else:
            raise _unknown(instr)

    def _store(self, instr: Instr) -> None:
        """Store the set of what is stored."""
        op, (whole, value, *index) = instr.op, instr.args
        ids, one = self._of(whole), self._of(value)
        if op is ops.push:
            self._make(op, (ids, one), types.none)
            return
        if is_array(whole.type) and (not is_number(value.type) or len(index) != rank_of(whole.type)):
            raise InternalError("dependence: several elements are written at once")
        if op is ops.accumulate or not (self._made.overwrites or op is ops.initialize):
            if not is_number(value.type):
                raise _unknown(instr)
            old = self._make(ops.getitem, (ids, *index), _INT)
            one, op = self._join(old, one), ops.setitem
        self._make(op, (ids, one, *index), types.none)

    def _active(self, instr: Instr) -> list[Operand]:
        """The arguments that a derivative flows through."""
        rule, opaque = rule_for(instr), opaque_for(instr)
        found = []
        for number, arg in enumerate(instr.args):
            if isinstance(instr.op, Routine):
                passes = instr.op.passes is None or number in instr.op.passes
            elif opaque is not None:
                passes = number in opaque.adjoints
            elif instr.op in (ops.pick, ops.select):
                passes = number > 0
            else:
                passes = rule is None or rule.passes(number)
            if passes and arg in self._activity and _has_set(arg.type):
                found.append(arg)
        return found

    def _view(self, instr: Instr) -> Operand:
        """The same view of the sets."""
        if instr.op is ops.view:
            raise _unknown(instr)
        if instr.op in _PARTS:
            return self._of(instr.args[0])
        op = ops.spread if instr.op is np.broadcast_to else instr.op
        args = tuple(self._of(arg) if has_shadow(arg.type) else arg for arg in instr.args)
        return self._emit(op, args, instr, instr.keywords)

    def _of_operation(self, instr: Instr) -> Operand:
        """The sets of an array that an operation on whole arrays gives."""
        active = self._active(instr)
        if instr.op in (np.dot, operator.matmul) and len(instr.args) == 2 and all(is_array(a.type) for a in instr.args):
            return self._of_product(instr, active)
        return self._filled(instr, self._joined(active))

    def _of_product(self, product: Instr, active: Collection[Operand]) -> Operand:
        """An element of a product depends on a row of the first factor and on a column of the second."""
        found: list[Operand] = []
        for factor, join in zip(product.args, (joined_rows, joined_columns), strict=True):
            rank = rank_of(factor.type)
            axis = 0 if join is joined_rows else rank_of(product.type) - 1
            if factor not in active:
                length = self._make(ops.dim, (product, Const(axis, _INT)), _INT)
                found.append(self._make(ops.zeros, (length,), _ROW) if rank == 2 else _EMPTY)
            elif rank == 2:
                found.append(self._make(join, (self._sets, self._of(factor)), _ROW))
            else:
                found.append(self._joined((factor,)))
        rows, columns = found
        if rank_of(product.type) == 2:
            return self._emit(joined_outer, (self._sets, rows, columns), product)
        ids, one = (rows, columns) if isinstance(rows.type, types.Array) else (columns, rows)
        self._make(widen, (self._sets, ids, one), types.none)
        return ids

    def _take_item(self, item: Instr) -> None:
        """The set of an item of what an operation, or a call whose derivative is given, gives."""
        whole = item.args[0]
        assert isinstance(whole, Value)
        if is_list(item.type):
            raise _unknown(item)
        if _has_set(item.type):
            self._ids[item] = self._filled(item, self._wholes[whole])

    def _filled(self, of: Instr, one: Operand) -> Operand:
        """Sets for a number or an array, all the same."""
        if is_number(of.type):
            return one
        ids = self._empty(of)
        self._make(widen, (self._sets, ids, one), types.none)
        return ids

    # ------------------------------------------------------------------------------------------------------ calls

    def _active_of(self, call: Instr) -> list[int]:
        assert isinstance(call.op, Routine)
        passes = range(len(call.args)) if call.op.passes is None else call.op.passes
        return [n for n in sorted(passes) if call.args[n] in self._activity and _has_set(call.args[n].type)]

    def _is_traced(self, call: Instr) -> bool:
        """Whether a call passes dependence on."""
        routine = call.op
        assert isinstance(routine, Routine)
        active = self._active_of(call)
        results = [call] if not isinstance(call.type, types.BaseTuple) else self._items.get(call, [])
        return bool(active) and (any(each in self._activity for each in results) or bool(set(active) & routine.writes))

    def _call_given(self, call: Instr) -> None:
        """Of a call whose derivative is given, all depends on all that it passes a derivative on from."""
        routine = call.op
        assert isinstance(routine, Routine)
        if not self._is_traced(call):
            return
        one = self._joined([call.args[n] for n in self._active_of(call)])
        for number in sorted(routine.writes):
            if call.args[number] in self._activity:
                if not is_array(call.args[number].type):
                    raise _unknown(call)
                self._make(widen, (self._sets, self._of(call.args[number]), one), types.none)
        if isinstance(call.type, types.BaseTuple):
            self._wholes[call] = one
        elif _has_set(call.type):
            if is_list(call.type):
                raise _unknown(call)
            self._ids[call] = self._filled(call, one)

    def _call(self, call: Instr) -> None:
        """Call what finds the sets, in the place of a routine."""
        routine = call.op
        assert isinstance(routine, Routine)
        passed = self._made.passed(routine, self._active_of(call))
        made = self._made.of(routine, passed)
        given = [self._of(call.args[number]) for number in sorted(passed)]
        results = results_of(routine.function)
        with_sets = [number for number, kind in enumerate(results) if is_number(kind) or is_array(kind)]
        kinds = (*results, *(ids_type(results[number]) for number in with_sets))
        b = Builder(Block(), call.loc)
        items = b.call_packed(made, [*call.args, *given, self._sets], kinds)
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
            if number in with_sets:
                self._ids[each] = items[len(results) + with_sets.index(number)]
            elif _has_set(results[number]):
                raise _unknown(call)
            each.op, each.args = ops.getitem, items[number].args
            if each is call:
                self._out.append(each)

    # ---------------------------------------------------------------------------------------------------- values

    def _of(self, operand: Operand) -> Operand:
        """The set of an operand, the empty one for what depends on nothing; for an array an array of them."""
        if isinstance(operand, Value) and operand in self._ids:
            return self._ids[operand]
        if isinstance(operand, Undef):
            return Undef(ids_type(operand.type))
        if is_array(operand.type):
            return self._empty(operand)
        if is_number(operand.type) or not _has_set(operand.type):
            return _EMPTY
        raise refuse(
            "what depends on what is not found out through a list that another list may stand for",
            operand.loc if isinstance(operand, Value) else self._function.loc,
            hint="pass the pattern as `sparsity`, or use arrays in the place of lists",
        )

    def _at_end(self, block: Block, operand: Operand) -> Operand:
        """The set of what a phi gets from a block."""
        self._out = []
        found = self._of(operand)
        block.instrs += self._out
        return found

    def _joined(self, operands: Sequence[Operand]) -> Operand:
        """The union of the sets of some numbers and arrays."""
        found: Operand = _EMPTY
        for operand in operands:
            one = self._of(operand)
            if is_array(operand.type):
                one = self._make(joined_all, (self._sets, one), _INT)
            elif not is_number(operand.type):
                raise InternalError("dependence: an operation on a list")
            found = one if found is _EMPTY else self._join(found, one)
        return found

    def _join(self, first: Operand, second: Operand) -> Operand:
        if first == second or _EMPTY in (first, second):
            return first if second in (first, _EMPTY) else second
        return self._make(joined, (self._sets, first, second), _INT)

    def _empty(self, array: Operand) -> Instr:
        """Empty sets for the elements of an array."""
        lengths = [self._make(ops.dim, (array, Const(axis, _INT)), _INT) for axis in range(rank_of(array.type))]
        return self._make(ops.zeros, tuple(lengths), ids_type(array.type))

    def _make(self, op: ops.Op, args: tuple[Operand, ...], kind: Type) -> Instr:
        self._out.append(made := Instr(op, args, kind))
        return made

    def _emit(self, op: ops.Op, args: tuple[Operand, ...], of: Instr, keywords: tuple[str, ...] = ()) -> Instr:
        self._out.append(made := Instr(op, args, ids_type(of.type), _hint(of), of.loc, keywords))
        return made


def ids_type(kind: Any) -> Type:
    """The type of the numbers of sets of a number, of an array or of a list."""
    if isinstance(kind, types.Array):
        return types.Array(_INT, kind.ndim, kind.layout)
    return types.List(ids_type(kind.dtype)) if isinstance(kind, types.List) else _INT


def _has_set(kind: Type) -> bool:
    return is_number(kind) or has_shadow(kind)


def _hint(value: Value) -> str:
    """A name with something between, as `is` and `in` are none."""
    return f"i_{value.hint}" if value.hint else "i"


def _unknown(instr: Instr) -> DifferentiationError:
    return refuse(
        f"what depends on what is not found out through {ops.name_of(instr.op)}, which handles {instr.type}",
        instr.loc,
        hint="pass the pattern as `sparsity`, or use arrays in the place of lists",
    )
