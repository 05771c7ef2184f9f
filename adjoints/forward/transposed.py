"""The tangents of operations on whole arrays, from the rules of their adjoints.

The helper that computes an adjoint, `da = inv_a(y, dy)`, is linear in `dy`: it applies the conjugate transpose of the
derivative. Its own adjoint with respect to `dy`, at the tangent of `a`, applies the transpose of that: the derivative.

    %y = np.linalg.inv %a : f64[:, :]           %y = np.linalg.inv %a : f64[:, :]
                                                the reverse of inv_a in dy, with %ta as the adjoint of its result

So the rules are written once. The value of `dy` does not matter, except that it must not be zero or special: some
helpers refuse a missing derivative only where it matters, and return early for zeros.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Mapping

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import is_array, is_number
from zygote_py.adjoints.reverse.calls import Case, Derivative, name_apart
from zygote_py.adjoints.routines import Derivatives, routines_behind
from zygote_py.adjoints.rules.formulas.opaque import OpaqueRule
from zygote_py.adjoints.strategies.checkpoint import replay
from zygote_py.ir import (
    NONE,
    Block,
    Builder,
    Const,
    Function,
    Instr,
    Operand,
    Param,
    Return,
    Routine,
    Type,
    Value,
    find_effects,
    helper,
    inline_calls,
    ops,
    writable,
    zero,
)

Number = complex  # or float: of the type of the elements

Lower = Callable[[ops.Op, tuple[Type, ...]], Routine]
_ADD: ops.Op = operator.add


@helper
def any_adjoint(y: np.ndarray, factor: Number) -> np.ndarray:
    """An array like this one, of no particular values times a factor."""
    found = np.empty_like(y)
    k = 1
    for index in np.ndindex(y.shape):
        found[index] = np.cos(1.0 * k * k) * factor
        k += 1
    return found


class Transposed:
    """The tangents of operations with opaque rules; each derivative is made once."""

    def __init__(self, lower: Lower, simplify: Callable[[Function], None]) -> None:
        """`lower` makes a routine of a helper for argument types; `simplify` brings a function into canonical form."""
        self._lower = lower
        self._simplify = simplify
        self._made: dict[tuple[object, ...], Derivative] = {}

    def tangents(
        self,
        b: Builder,
        instr: Instr,
        rule: OpaqueRule,
        items: Mapping[int, Instr],
        changes: Mapping[int, Operand],
        wanted: Container[int],
    ) -> dict[int, Operand]:
        """Return the tangents of the `wanted` ones of the results (`items`, or the only one as 0), by index.

        `changes` are the tangents of the arguments, by index.
        Their computation is appended to a block. Results that are floats or arrays of floats have tangents.
        """
        found: dict[int, Operand] = {}
        several = isinstance(instr.type, types.BaseTuple)
        given = self._given(b, instr, rule, items, several)
        for place, item in items.items():
            if place not in wanted or not (is_number(item.type) or is_array(item.type)):
                continue
            own = f"dy{place}" if several else "dy"
            total: Operand = zero(item.type)
            if is_array(item.type):
                total = b.zeros_like(item, f"t{item.hint}")
            for number, change in changes.items():
                names = self._names(rule, number)
                if own not in names:
                    continue
                args = [given[name] for name in names]
                args[names.index(own)] = self._any(b, item)
                plain = self._derivative(rule, number, names, tuple(arg.type for arg in args), own)
                at = names.index(own)
                result = {0: change}
                if is_array(item.type):
                    replay(b, plain, args, {at: total}, result, result)
                else:
                    (term,) = replay(b, plain, args, {}, result, result).values()
                    total = b.call(_ADD, total, term, type=item.type)
            found[place] = total
        return found

    def _given(
        self, b: Builder, instr: Instr, rule: OpaqueRule, items: Mapping[int, Instr], several: bool
    ) -> dict[str, Operand]:
        """Return the possible inputs of the helpers, by name; no adjoint except the one under consideration matters."""
        given: dict[str, Operand] = dict(zip(rule.names, instr.args, strict=False))
        for place, item in items.items():
            name = f"y{place}" if several else "y"
            given[name] = item
            kind = item.type
            if is_array(kind):
                given[f"d{name}"] = b.zeros_like(item)
            else:
                given[f"d{name}"] = zero(kind) if is_number(kind) else NONE
        return given

    def _any(self, b: Builder, item: Instr) -> Operand:
        if is_array(item.type):
            kind: Type = item.type.dtype  # type: ignore[attr-defined]
            # Conditions on phases see a complex one also where all else is real.
            factor = Const(1.0, kind) if isinstance(kind, types.Float) else Const(1.0 + 0.7j, kind)
            return b.call(any_adjoint, item, factor, type=writable(item.type))
        return Const(1.0, item.type) if isinstance(item.type, types.Float) else Const(1.0 + 0.0j, item.type)

    def _names(self, rule: OpaqueRule, number: int) -> list[str]:
        """Return the names of the inputs of a contribution, with contributions to other arguments expanded."""
        found: dict[str, None] = {}
        pending = [number]
        while pending:
            for name in rule.adjoints[pending.pop()].needs:
                other = rule.other(name)
                if other is None:
                    found.setdefault(name)
                else:
                    pending.append(other)
        return list(found)

    def _derivative(
        self, rule: OpaqueRule, number: int, names: list[str], kinds: tuple[Type, ...], own: str
    ) -> Derivative:
        """Return the derivative of the contribution to an argument with respect to the adjoint of one result."""
        key = (tuple((n, each.function) for n, each in rule.adjoints.items()), number, kinds, own)
        if key not in self._made:
            params = [Param(kind, name) for name, kind in zip(names, kinds, strict=True)]
            b = Builder(Block())
            value = self._contribution(b, rule, number, dict(zip(names, params, strict=True)))
            b.block.terminator = Return((value,))
            routine = Routine(f"{rule.adjoints[number].function.__name__}_transposed")
            name_apart(params)
            routine.function = Function(routine.__name__, params, [b.block], "primal")
            inline_calls(routine.function, lambda call: True)
            self._simplify(routine.function)
            called = routines_behind(routine.function)
            find_effects((*called, routine))
            case = Case(frozenset({names.index(own)}), frozenset(), False)
            self._made[key] = Derivatives((*called, routine)).of(routine, case)
        return self._made[key]

    def _contribution(self, b: Builder, rule: OpaqueRule, number: int, given: Mapping[str, Value]) -> Instr:
        needs = [(name, rule.other(name)) for name in rule.adjoints[number].needs]
        args = [given[name] if other is None else self._contribution(b, rule, other, given) for name, other in needs]
        routine = self._lower(rule.adjoints[number].function, tuple(arg.type for arg in args))
        _, end = routine.function.exit()
        return b.call(routine, *args, type=end.args[0].type)
