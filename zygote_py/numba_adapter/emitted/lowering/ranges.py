"""Loops over `range(...)` whose step is 1 or -1, lowered with one or two words on the stack.

Numba makes structures of the range, of its iterator and of each item, on the stack, and branches that depend on the
sign of the step. LLVM removes them again, in a time that grows with the square of the number of loops in a function.
What is computed is the same: how many items there are, then each item from the one before. Where a bound is a constant,
so that the number of items cannot overflow, each item is compared with the end instead. LLVM sees then that an index
which counts down to 0 is never negative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numba import types

from zygote_py.numba_adapter.base.internals import ir
from zygote_py.numba_adapter.base.ir_walks import used_by

_RANGE, _ITERATOR, _PAIR = "range", "getiter", "iternext"
_PARTS = {"pair_first": 0, "pair_second": 1}


class RangeLoops:
    """The variables that only such loops use: ranges, iterators, and pairs of an item and whether there is one.

    They have no values of their own. Each is known here by its parts.

    Parameters
    ----------
    blocks : dict[int, ir.Block]
        The function.
    kept : set[str]
        The variables that are assigned once, and lowered before their uses.
    typeof : Callable[[str], Any]
        Returns the type of a variable.
    """

    def __init__(self, blocks: Mapping[int, Any], kept: set[str], typeof: Callable[[str], Any]) -> None:
        self._typeof = typeof
        roles: dict[str, tuple[str, str]] = {}  # with the name of the range
        refused: set[str] = set()
        for block in blocks.values():
            for statement in block.body:
                if isinstance(statement, ir.Assign):
                    role = self._role(statement, roles) if statement.target.name in kept else None
                    if role is not None:
                        roles[statement.target.name] = role
                        continue
                    if _part_of(statement.value, roles) is not None:
                        continue
                if not isinstance(statement, ir.Del):
                    refused |= {roles[each.name][1] for each in used_by(statement) if each.name in roles}
        self._roles = {name: role for name, (role, of) in roles.items() if of not in refused}
        self._parts: dict[str, tuple[Any, ...]] = {}

    def lower(self, lowering: Any, statement: Any) -> Any:
        """Return the value of an assignment; None if it does not belong to such a loop."""
        name, value = statement.target.name, statement.value
        if name not in self._roles:
            place = _part_of(value, self._roles)
            return None if place is None else self._parts[value.value.name][place]
        if isinstance(value, ir.Var):
            self._parts[name] = self._parts[value.name]
        elif value.op == "call":
            self._parts[name] = self._range(lowering, value)
        elif value.op == _ITERATOR:
            self._parts[name] = _iterator(lowering.builder, *self._parts[value.value.name])
        else:
            self._parts[name] = _next(lowering.builder, *self._parts[value.value.name])
        return lowering.context.get_constant_undef(self._typeof(name))

    def _role(self, statement: Any, roles: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
        name, value = statement.target.name, statement.value
        if isinstance(value, ir.Var):
            return roles.get(value.name)
        if not isinstance(value, ir.Expr):
            return None
        if value.op == "call":
            return (_RANGE, name) if self._is_range(name, value) else None
        before, of = roles.get(value.value.name, ("", "")) if value.op in (_ITERATOR, _PAIR) else ("", "")
        return (value.op, of) if (before, value.op) in ((_RANGE, _ITERATOR), (_ITERATOR, _PAIR)) else None

    def _is_range(self, name: str, call: Any) -> bool:
        """Return whether a call is one of `range` with a step known to be 1 or -1."""
        function = self._typeof(call.func.name)
        if not (isinstance(function, types.Function) and function.typing_key is range):
            return False
        if call.kws or call.vararg or self._typeof(name) != types.range_state64_type:
            return False
        return len(call.args) < 3 or self._literal(call.args[2]) in (1, -1)

    def _range(self, lowering: Any, call: Any) -> tuple[Any, Any, int, bool]:
        """Return start, end and step, and whether items can be compared with the end."""
        context, builder = lowering.context, lowering.builder
        bounds = [
            context.cast(builder, lowering.loadvar(each.name), self._typeof(each.name), types.int64)
            for each in call.args[:2]
        ]
        start = bounds[0] if len(bounds) == 2 else context.get_constant(types.int64, 0)
        is_down = len(call.args) == 3 and self._literal(call.args[2]) == -1
        fixed = 0 if len(call.args) == 1 else self._literal(call.args[1 if is_down else 0])
        is_exact = isinstance(fixed, int) and (fixed < 0 if is_down else fixed >= 0)
        return start, bounds[-1], -1 if is_down else 1, is_exact

    def _literal(self, argument: Any) -> object:
        """Return the value of an argument, if it is a constant."""
        kind = self._typeof(argument.name)
        return kind.literal_value if isinstance(kind, types.IntegerLiteral) else None


def _part_of(value: Any, roles: Mapping[str, object]) -> int | None:
    """Return which part of a pair a value is, and None if it is not one."""
    is_part = isinstance(value, ir.Expr) and value.op in _PARTS and value.value.name in roles
    return _PARTS[value.op] if is_part else None


def _iterator(builder: Any, start: Any, stop: Any, step: int, is_exact: bool) -> tuple[Any, Any, Any, int]:
    """Return the addresses of the next item and of the number of items left, or None, and the end and the step."""
    with builder.goto_entry_block():
        item, left = builder.alloca(start.type), None if is_exact else builder.alloca(start.type)
    builder.store(start, item)
    if left is not None:
        zero = start.type(0)
        span = builder.sub(stop, start) if step == 1 else builder.sub(start, stop)
        builder.store(builder.select(builder.icmp_signed(">", span, zero), span, zero), left)
    return item, left, stop, step


def _next(builder: Any, item: Any, left: Any, stop: Any, step: int) -> tuple[Any, Any]:
    """Return the next item, and whether there is one. After the last there is none again, or no further call."""
    value = builder.load(item)
    if left is None:
        builder.store(builder.add(value, value.type(step), flags=["nsw"]), item)
        return value, builder.icmp_signed("<" if step == 1 else ">", value, stop)
    count = builder.load(left)
    builder.store(builder.sub(count, count.type(1), flags=["nsw"]), left)
    builder.store(builder.add(value, value.type(step), flags=["nsw"]), item)  # one after an item, or not used
    return value, builder.icmp_signed(">", count, count.type(0))
