"""Which integers are never negative, so that an element at one of them is not looked for from the end of its axis.

    for j in range(d):
        for l in range(j + 1, d):           # j, j + 1 and l never are
            a[l] += f[at] * c[j]            # nor is `at`, which begins as d and is only counted up
            at += 1

For each index Numba asks whether it is negative, and adds the length of the axis if so. LLVM finds out by itself of the
counters of most loops that they are not, but not of sums, nor of what counts beside a loop or is read from a record.

An integer is *steady* if it is a constant, a length, an item of such a range, or a sum, quotient or the like of steady
ones. It *counts* if what it is assigned is steady, or counts, or is what counts plus constants; so is an element of an
array that the function makes, and writes only such numbers to. A sum or product of both is never negative either, but
may not be what such a variable becomes: added to itself again and again it would overflow, which a count cannot do in
any time. A product that overflows is beyond any array. Nothing computed from products is known but sums and products,
as hashes overflow on purpose: not their quotients, nor what they shift. Arguments are not known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numba import types

from zygote_py.numba_adapter.base import IRPass
from zygote_py.numba_adapter.base.internals import ir
from zygote_py.numba_adapter.base.ir_walks import used_by
from zygote_py.numba_adapter.emitted.lowering.lower import NEVER_NEGATIVE
from zygote_py.numba_adapter.emitted.lowering.selection import mostly, select

_OF_PLACES = (operator.add, operator.iadd, operator.mul, operator.imul)
_LARGEST = 2**16  # constant: counts that grow by less do not overflow in days


class NeverNegative(IRPass):
    """The pass, after which variables keep their names."""

    def change(self, state: Any) -> bool:
        """Put the names of these variables into the metadata of `state`."""
        state.metadata[NEVER_NEGATIVE] = never_negative(state.func_ir.blocks, state.typemap.__getitem__)
        return False


def never_negative(blocks: Mapping[int, Any], typeof: Callable[[str], Any]) -> set[str]:
    """Return the variables of a typed function that are words and never negative."""
    return _Integers(blocks, typeof).found()


class _Integers:
    """The integers of a function, and all that they are assigned."""

    def __init__(self, blocks: Mapping[int, Any], typeof: Callable[[str], Any]) -> None:
        self._typeof = typeof
        self._assigned: dict[str, list[Any]] = {}
        for block in blocks.values():
            for each in block.find_insts(ir.Assign):
                values = self._assigned.setdefault(each.target.name, [])
                if getattr(each.value, "op", None) != "null":  # where it is not assigned
                    values.append(each.value)
        self._written = dict(self._records(blocks))
        self._small: set[str] = set()
        self._steady: set[str] = set()

    def found(self) -> set[str]:
        """Return the variables that are never negative."""
        words = [name for name in self._assigned if self._is_word(name)]
        self._small = _grown(set(), words, lambda name, known: self._all(name, known, self._is_small))
        self._steady = _grown(set(), words, lambda name, known: self._all(name, known, self._is_steady))
        counting = set(words)
        while lost := {name for name in counting if not self._all(name, counting, self._counts)}:
            counting -= lost
        return _grown(self._steady | counting, words, lambda name, known: self._all(name, known, self._is_place))

    def _all(self, name: str, known: set[str], holds: Callable[[Any, set[str]], bool]) -> bool:
        return all(holds(value, known) for value in self._assigned[name])

    def _is_word(self, name: str) -> bool:
        return bool(types.unliteral(self._typeof(name)) == types.intp)

    def _value(self, name: str) -> Any:
        """Return what a variable is assigned, if that is one value; seen through copies."""
        values = self._assigned.get(name, ())
        if len(values) != 1:
            return None
        return self._value(values[0].name) if isinstance(values[0], ir.Var) else values[0]

    def _expression(self, name: str, op: str) -> Any:
        value = self._value(name)
        return value if isinstance(value, ir.Expr) and value.op == op else None

    def _constant(self, name: str) -> int | None:
        value = self._value(name)
        constant = value.value if isinstance(value, ir.Const | ir.Global | ir.FreeVar) else None
        return constant if type(constant) is int else None

    def _function(self, call: Any) -> Any:
        """Return the function that is called by place, with no more than its arguments."""
        function = self._typeof(call.func.name)
        is_plain = not (call.kws or call.vararg)
        return getattr(function, "typing_key", function) if is_plain else None

    # -------------------------------------------------------------------------------------------------- what they are

    def _is_small(self, value: Any, known: set[str]) -> bool:
        """Return whether a value is a constant, a variable that is known, or one or the other of two such."""
        if isinstance(value, ir.Var):
            return value.name in known
        if isinstance(value, ir.Expr):
            return value.op == "call" and self._is_selection(value) and {each.name for each in value.args[1:]} <= known
        constant = value.value if isinstance(value, ir.Const | ir.Global | ir.FreeVar) else None
        return type(constant) is int and 0 <= constant <= _LARGEST

    def _is_selection(self, call: Any) -> bool:
        function = self._value(call.func.name)
        return isinstance(function, ir.Global | ir.FreeVar) and function.value in (select, mostly)

    def _is_steady(self, value: Any, known: set[str]) -> bool:
        return self._is_small(value, known) or (isinstance(value, ir.Expr) and self._is_steady_expression(value, known))

    def _is_steady_expression(self, value: Any, known: set[str]) -> bool:
        match value.op:
            case "cast":
                return value.value.name in known
            case "getattr":
                return value.attr in ("size", "ndim") and isinstance(self._typeof(value.value.name), types.Array)
            case "static_getitem" | "getitem" | "exhaust_iter":
                return self._expression(value.value.name, "getattr") is not None and self._is_shape(value.value.name)
            case "pair_first":
                return self._is_of_range(value.value.name, known)
            case "binop":
                return self._is_steady_operation(value, known)
            case "call":
                return self._is_steady_call(value, known)
        return False

    def _is_shape(self, name: str) -> bool:
        of = self._expression(name, "getattr")
        return of is not None and of.attr == "shape" and isinstance(self._typeof(of.value.name), types.Array)

    def _is_steady_operation(self, value: Any, known: set[str]) -> bool:
        left, right = value.lhs.name, value.rhs.name
        if value.fn in (operator.add, operator.iadd):
            return left in known and right in known
        if value.fn in (operator.floordiv, operator.ifloordiv):
            return left in known and (self._constant(right) or 0) > 0
        return False

    def _is_steady_call(self, value: Any, known: set[str]) -> bool:
        function = self._function(value)
        names: list[str] = [each.name for each in value.args]
        if function is len:
            return True
        if function is max:
            return len(names) == 2 and not known.isdisjoint(names) and all(map(self._is_word, names))
        if function is min:
            return len(names) > 1 and known.issuperset(names)
        return False

    def _is_of_range(self, pair: str, known: set[str]) -> bool:
        """Return whether the first of a pair is an item of a range without negative ones."""
        step = self._expression(pair, "iternext")
        iterator = step and self._expression(step.value.name, "getiter")
        call = iterator and self._expression(iterator.value.name, "call")
        if not call or self._function(call) is not range:
            return False
        names = [each.name for each in call.args]
        if len(names) == 3 and self._constant(names[2]) == -1:
            return (stop := self._constant(names[1])) is not None and stop >= -1
        return len(names) == 1 or (names[0] in known and (len(names) == 2 or self._constant(names[2]) == 1))

    def _counts(self, value: Any, known: set[str]) -> bool:
        if self._is_steady(value, self._steady) or self._is_small(value, known):
            return True
        match getattr(value, "op", None):
            case "cast":
                return value.value.name in known
            case "binop" | "inplace_binop" if value.fn in (operator.add, operator.iadd):
                left, right = value.lhs.name, value.rhs.name
                return (left in known and right in self._small) or (right in known and left in self._small)
            case "getitem" | "static_getitem":
                return known.issuperset(self._written.get(value.value.name, ("",)))
        return False

    def _is_place(self, value: Any, known: set[str]) -> bool:
        if isinstance(value, ir.Var):
            return value.name in known
        is_known = getattr(value, "op", "") in ("binop", "inplace_binop") and value.fn in _OF_PLACES
        return is_known and value.lhs.name in known and value.rhs.name in known

    # -------------------------------------------------------------------------------------------------------- records

    def _records(self, blocks: Mapping[int, Any]) -> Iterator[tuple[str, list[str]]]:
        """Yield the arrays of words of which only elements are read and written, with all that is written to them."""
        written: dict[str, list[str]] = {
            name: [] for name in self._assigned if isinstance(self._typeof(name), types.Array) and self._is_made(name)
        }
        for block in blocks.values():
            for statement in block.body:
                for name in {each.name for each in used_by(statement)} & written.keys():
                    if (put := self._put(statement, name)) is None:
                        del written[name]
                    else:
                        written[name] += put
        yield from written.items()

    def _is_made(self, name: str) -> bool:
        call = self._assigned[name][0]
        is_call = len(self._assigned[name]) == 1 and isinstance(call, ir.Expr) and call.op == "call"
        return is_call and self._function(call) in (np.empty, np.zeros)

    def _put(self, statement: Any, name: str) -> list[str] | None:
        """Return what a statement writes to an array; None if it may do something else with it."""
        if isinstance(statement, ir.Del):
            return []
        if isinstance(statement, ir.SetItem | ir.StaticSetItem):
            is_element = statement.target.name == name and self._is_word(statement.value.name)
            return [statement.value.name] if is_element and statement.value.name != name else None
        value: Any = statement.value if isinstance(statement, ir.Assign) else None
        match getattr(value, "op", None):
            case "getitem" | "static_getitem" if value.value.name == name and self._is_word(statement.target.name):
                return []
            case "getattr" if value.attr in ("shape", "size"):
                return []
        return None


def _grown(known: set[str], names: list[str], holds: Callable[[str, set[str]], bool]) -> set[str]:
    """Return the least set with `known` in which are all names for which it `holds`, given the set."""
    while found := {name for name in names if name not in known and holds(name, known)}:
        known = known | found
    return known
