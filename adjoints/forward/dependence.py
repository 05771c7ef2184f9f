"""Dependence sets: every number of a primal gets the set of the elements of an argument that it depends on.

    %y = mul %x, %w : f64                       %y = mul %x, %w : f64
                                      ->        %i_y = joined %sets, %i_x, %i_w : i64
    setitem %a, %y, %i                          setitem %a, %y, %i
                                                setitem %i_a, %i_y, %i

The construction is that of a pushforward (`pushforward.py`), with identifiers of sets instead of tangents. A set is
identified by a number: 0 is the empty set, -k contains only element k, counted from 1, and k > 0 is the union of the
two sets whose numbers are in the list of all unions, at 2k - 2 and 2k - 1. So the cost of a union does not depend on
its size, and only the unions that a result needs are ever expanded (`zygote_py.runtime.colouring`).

The sets hold for the path that was taken, and may be too large, never too small: a choice between values (`select`,
`pick`) depends on all of them, and the result of an operation on whole arrays on all of its arguments, except for
products of matrices, whose elements depend on a row and a column. An argument in which the rules have no derivative
adds nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import (
    expose_leaves,
    expose_results,
    find_active,
    goes_the_same_way,
    has_shadow,
    is_array,
    is_list,
    is_number,
    rank_of,
    through,
)
from zygote_py.adjoints.errors import DifferentiationError, refuse
from zygote_py.adjoints.forward.companions import Companions, Domain, Walk, has_companion
from zygote_py.adjoints.reverse.calls import Case, name_apart
from zygote_py.ir import (
    NONE,
    Builder,
    Const,
    Function,
    Instr,
    InternalError,
    Operand,
    Param,
    Routine,
    Type,
    Value,
    check_after,
    helper,
    ops,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Effect

_INT = types.int64
_EMPTY = Const(0, _INT)
_SETS = types.List(_INT)
_ROW = types.Array(_INT, 1, "C")
_PARTS = (np.real, np.imag)
_PRODUCTS = (np.dot, operator.matmul, ops.matrix_product, ops.matrix_vector_product)


@dataclass(frozen=True, eq=False)
class Traced:
    """The function that computes the sets; `indices`, after the primal's parameters, has the argument's sets.

    The function returns None, the sets of the result, the array of all unions, and whether it takes the same path for
    all numbers.
    """

    function: Function
    indices: Param


class Dependences:
    """The functions that compute dependence sets, of a function and of the routines that it calls."""

    def __init__(self, function: Function, routines: Collection[Routine]) -> None:
        """Collect routines; all functions are in canonical form."""
        functions = (function, *(routine.function for routine in routines))
        self._companions = Companions(routines, IndexSets(functions), (Param(_SETS, "sets"),))

    def trace(self, primal: Function, wrt: Param) -> Traced:
        """Make the function for an array argument; the primal is changed. Raises DifferentiationError."""
        same = Const(goes_the_same_way(primal), types.boolean)
        parts = expose_leaves(primal, [wrt])
        expose_results(primal)
        sets = Instr(no_sets, (), _SETS, "sets")
        walk = self._companions.add_to(primal, [wrt], find_active(primal, [wrt], parts), parts, (sets,))
        primal.entry.instrs.insert(0, sets)
        for block, end in primal.returns():
            b = Builder(block)
            (found,) = walk.results(block, end.args[0])
            b.return_packed([NONE, found, b.call(as_array, sets, type=_ROW), same])
        indices = primal.params[-1]
        name_apart(primal.params)
        check_after("trace", primal)
        return Traced(primal, indices)


class IndexSets(Domain):
    """Sets of indices as companions. The first extra argument of all routines is the list of unions."""

    name = "trace"
    suffix = "dependence"

    def __init__(self, functions: Collection[Function]) -> None:
        # A real part that is written to is only half of a complex number.
        self._overwrites = not any(
            instr.op in _PARTS and isinstance(instr.type, types.Array) for each in functions for instr in each.instrs()
        )

    def type_of(self, kind: Any) -> Type:
        """Return the type of the set numbers of a number, of an array or of a list."""
        if isinstance(kind, types.Array):
            return types.Array(_INT, kind.ndim, kind.layout)
        return types.List(self.type_of(kind.dtype)) if isinstance(kind, types.List) else _INT

    def hint(self, name: str) -> str:
        """Return a name with a separator, as `is` and `in` are keywords."""
        return f"i_{name}" if name else "i"

    def zero(self, kind: Type) -> Operand:
        """Return the empty set."""
        return _EMPTY

    def zeros(self, b: Builder, array: Operand, hint: str = "") -> Operand:
        """Return empty sets for the elements of an array; refuse a list."""
        if not is_array(array.type):
            raise refuse(
                "dependence is not traced through a list that may be one of several lists",
                array.loc if isinstance(array, Value) else b.loc,
                hint="pass the pattern as `sparsity`, or use arrays instead of lists",
            )
        at = Builder(b.block)
        lengths = [at.call(ops.dim, array, Const(axis, _INT), type=_INT) for axis in range(rank_of(array.type))]
        return at.call(ops.zeros, *lengths, type=self.type_of(array.type))

    def missing(self, walk: Walk, operand: Operand) -> Operand:
        """Return empty sets for an array; refuse a list."""
        return self.zeros(walk.b, operand)

    def allocated(self, walk: Walk, instr: Instr) -> Operand:
        """Return empty sets."""
        return self.zeros(walk.b, instr)

    def returns(self, kind: Type) -> bool:
        """Return whether it is a number or an array of numbers."""
        return is_number(kind) or is_array(kind)

    def case(self, routine: Routine, case: Case) -> Case:
        """Return the case with the active parameters only."""
        return Case(case.active, frozenset(), False)

    def store(self, walk: Walk, instr: Instr, number: int) -> None:
        """Store the set of the stored value."""
        op, (whole, value, *index) = instr.op, instr.args
        ids, one = walk.of(whole, 0), walk.of(value, 0)
        if op is ops.push:
            walk.make(op, (ids, one), types.none)
            return
        if is_array(whole.type) and (not is_number(value.type) or len(index) != rank_of(whole.type)):
            raise InternalError("dependence: several elements are written at once")
        if op is ops.accumulate or not (self._overwrites or op is ops.initialize):
            if not is_number(value.type):
                raise _unknown(instr)
            one, op = self._join(walk, walk.make(ops.getitem, (ids, *index), _INT), one), ops.setitem
        walk.make(op, (ids, one, *index), types.none)

    def view(self, walk: Walk, instr: Instr, number: int) -> Operand:
        """Return the same view of the sets."""
        if instr.op is ops.view:
            raise _unknown(instr)
        if instr.op in _PARTS:
            return walk.of(instr.args[0], 0)
        op = ops.spread if instr.op is np.broadcast_to else instr.op
        args = [walk.of(arg, 0) if has_shadow(arg.type) else arg for arg in instr.args]
        return walk.emit(op, args, instr, instr.keywords)

    def scalar(self, walk: Walk, instr: Instr, number: int) -> Operand:
        """Return the union of the sets of the differentiable arguments."""
        found = self._joined(walk, _active(walk, instr))
        if isinstance(found, Instr) and not found.hint:
            found.hint = walk.hint(instr)
        return found

    def whole(self, walk: Walk, instr: Instr, items: Mapping[int, Instr]) -> None:
        """Make each result depend on all differentiable arguments, except in products of matrices."""
        active = _active(walk, instr)
        if instr.op in _PRODUCTS and len(instr.args) == 2 and all(is_array(a.type) for a in instr.args):
            walk.companions[instr] = (self._of_product(walk, instr, active),)
            return
        one = self._joined(walk, active)
        for number in sorted(instr.op.writes) if isinstance(instr.op, Routine) else ():
            if instr.args[number] in walk.activity:
                if not is_array(instr.args[number].type):
                    raise _unknown(instr)
                walk.make(widen, (*walk.more, walk.of(instr.args[number], 0), one), types.none)
        for item in items.values():
            if is_list(item.type):
                raise _unknown(item)
            if is_number(item.type):
                walk.companions[item] = (one,)
            elif is_array(item.type):
                walk.companions[item] = (ids := self.zeros(walk.b, item),)
                walk.make(widen, (*walk.more, ids, one), types.none)

    def _of_product(self, walk: Walk, product: Instr, active: Collection[Operand]) -> Operand:
        """Return the sets of a product: an element depends on a row of the first factor and a column of the second."""
        found: list[Operand] = []
        for factor, join in zip(product.args, (joined_rows, joined_columns), strict=True):
            rank = rank_of(factor.type)
            axis = 0 if join is joined_rows else rank_of(product.type) - 1
            if factor not in active:
                length = walk.make(ops.dim, (product, Const(axis, _INT)), _INT)
                found.append(walk.make(ops.zeros, (length,), _ROW) if rank == 2 else _EMPTY)
            elif rank == 2:
                found.append(walk.make(join, (*walk.more, walk.of(factor, 0)), _ROW))
            else:
                found.append(self._joined(walk, (factor,)))
        rows, columns = found
        if rank_of(product.type) == 2:
            return walk.emit(joined_outer, (*walk.more, rows, columns), product)
        ids, one = (rows, columns) if isinstance(rows.type, types.Array) else (columns, rows)
        walk.make(widen, (*walk.more, ids, one), types.none)
        return ids

    def _joined(self, walk: Walk, operands: Sequence[Operand]) -> Operand:
        """Return the union of the sets of some numbers and arrays."""
        found: Operand = _EMPTY
        for operand in operands:
            one = walk.of(operand, 0)
            if is_array(operand.type):
                one = walk.make(joined_all, (*walk.more, one), _INT)
            elif not is_number(operand.type):
                raise InternalError("dependence: an operation on a list")
            found = one if found is _EMPTY else self._join(walk, found, one)
        return found

    def _join(self, walk: Walk, first: Operand, second: Operand) -> Operand:
        if first == second or _EMPTY in (first, second):
            return first if second in (first, _EMPTY) else second
        return walk.make(joined, (*walk.more, first, second), _INT)


def _active(walk: Walk, instr: Instr) -> list[Operand]:
    """Return the active arguments in which the operation is differentiable."""
    chosen = ops.of(instr.op).role is ops.Role.CHOOSE
    passing = [instr.args[number] for number in (range(1, len(instr.args)) if chosen else through(instr))]
    return [arg for arg in passing if arg in walk.activity and has_companion(arg.type)]


def _unknown(instr: Instr) -> DifferentiationError:
    return refuse(
        f"dependence is not traced through {ops.name_of(instr.op)}, which handles {instr.type}",
        instr.loc,
        hint="pass the pattern as `sparsity`, or use arrays instead of lists",
    )


Sets = list[int]
Ids = Any  # arrays of set numbers
F = TypeVar("F", bound=Callable[..., object])


def _acting(function: F) -> F:
    return helper(function, Effect.WRITE)


def _allocating(function: F) -> F:
    return helper(function, Effect.ALLOCATE)


@_allocating
def no_sets() -> Sets:
    """An empty list of unions."""
    sets = [0]  # so that Numba knows of what it is a list
    sets.pop()
    return sets


@_acting
def joined(sets: Sets, first: int, second: int) -> int:
    """The union of two sets. One that is seen to be in the other makes no new one."""
    if first == second or second == 0:
        return first
    if first == 0:
        return second
    if first > 0 and (sets[2 * first - 2] == second or sets[2 * first - 1] == second):
        return first
    if second > 0 and (sets[2 * second - 2] == first or sets[2 * second - 1] == first):
        return second
    sets.append(first)
    sets.append(second)
    return len(sets) // 2


@_acting
def joined_all(sets: Sets, ids: Ids) -> int:
    """The union of all sets in an array."""
    found = 0
    for index in np.ndindex(ids.shape):
        found = joined(sets, found, ids[index])
    return found


@_acting
def joined_rows(sets: Sets, ids: Ids) -> Ids:
    """The union of each row."""
    found = np.zeros(ids.shape[0], np.int64)
    for i in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            found[i] = joined(sets, found[i], ids[i, j])
    return found


@_acting
def joined_columns(sets: Sets, ids: Ids) -> Ids:
    """The union of each column."""
    found = np.zeros(ids.shape[1], np.int64)
    for i in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            found[j] = joined(sets, found[j], ids[i, j])
    return found


@_acting
def joined_outer(sets: Sets, rows: Ids, columns: Ids) -> Ids:
    """The union of each of some sets with each of others."""
    found = np.empty((len(rows), len(columns)), np.int64)
    for i in range(len(rows)):
        for j in range(len(columns)):
            found[i, j] = joined(sets, rows[i], columns[j])
    return found


@_acting
def widen(sets: Sets, ids: Ids, more: int) -> None:
    """Add a set to each in an array."""
    for index in np.ndindex(ids.shape):
        ids[index] = joined(sets, ids[index], more)


@_allocating
def as_array(sets: Sets) -> Ids:
    """The list as an array."""
    found = np.empty(len(sets), np.int64)
    for k in range(len(sets)):
        found[k] = sets[k]
    return found
