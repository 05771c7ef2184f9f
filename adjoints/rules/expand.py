"""The instructions of an adjoint: an expression of a rule, with values in place of its names.

    sin(%x), "cos(x) * dy"      %t  = np.cos @x : f64
                                %dx = mul %t, %dy : f64

All arithmetic is in the float type of the result `y`: float32 stays float32, literals included. Other values are cast
where they enter, and the outcome is cast to the type of the argument it belongs to. A sub-expression that occurs twice
is emitted once.

Nothing is simplified but what is exact for every float, NaN and infinity included: `1 * a -> a`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
from numba import types

from zygote_py.adjoints.rules import special
from zygote_py.adjoints.rules.rule import Rule
from zygote_py.adjoints.rules.terms import COMPARISONS, LOGIC, PREDICATES, Call, Number, Term, parse
from zygote_py.ir import ops
from zygote_py.ir.core import Const, Instr, Operand, Type, Value

Op = Callable[..., object]
Emit = Callable[[Op, tuple[Operand, ...], Type], Value]


def expand(
    rule: Rule, index: int, instr: Instr, dy: Operand, emit: Emit, alpha: Callable[[Operand], Operand]
) -> Operand:
    """Emit the contribution of `instr` to the adjoint of its argument `index`, and return it.

    `emit(op, args, type)` makes one instruction; `alpha(operand)` is what stands for a primal operand in the adjoint.
    The argument must have an adjoint (`rule.adjoints[index]` is not None).
    """
    expression = rule.adjoints[index]
    assert expression is not None, (rule, index)
    values = dict(zip(rule.names, instr.args, strict=True))
    expansion = _Expansion(instr, values, dy, emit, alpha)
    return expansion.cast(expansion.number(parse(expression)), instr.args[index].type)


class _Expansion:
    """One use of an expression. `type` is the type that it computes in."""

    def __init__(
        self,
        instr: Instr,
        values: dict[str, Operand],
        dy: Operand,
        emit: Emit,
        alpha: Callable[[Operand], Operand],
    ) -> None:
        self.type: Type = instr.type
        self.instr = instr
        self.values = values
        self.dy = dy
        self.alpha = alpha
        self._emit = emit
        self._made: dict[object, Operand] = {}

    def emit(self, op: Op, args: tuple[Operand, ...], type: Type) -> Operand:
        key = (op, args, type)
        if key not in self._made:
            self._made[key] = self._emit(op, args, type)
        return self._made[key]

    def cast(self, operand: Operand, type: Type) -> Operand:
        if operand.type == type:
            return operand
        if isinstance(operand, Const):
            return constant(operand.value, type)
        # Compiled, `float` of a float32 is that float32, and there is none of a truth value.
        op = float if type == types.float64 and isinstance(operand.type, types.Integer) else CASTS[type]
        return self.emit(op, (operand,), type)

    def read(self, name: str) -> Operand:
        """The operand of a name, of its own type."""
        match name:
            case "dy":
                return self.dy
            case "y":
                return self.alpha(self.instr)
            case _:
                return self.alpha(self.values[name])

    def number(self, term: Term) -> Operand:
        """The operand of a term as a number of the working type."""
        match term:
            case str():
                return self.cast(self.read(term), self.type)
            case Number(value):
                return constant(value, self.type)
            case Call(op, (Number(1), factor)) | Call(op, (factor, Number(1))) if op is operator.mul:
                return self.number(factor)  # 1*x -> x
            case Call(op, (condition, then, orelse)) if op is ops.select:
                args = (self.truth(condition), self.number(then), self.number(orelse))
                return self.emit(op, args, self.type)
            case Call(op, (number, exponent)) if op is np.ldexp:
                return self.emit(op, (self.number(number), self.integer(exponent)), self.type)
            case Call(op, args) if op in special.HELPERS.values():
                return self.cast(self.emit(op, tuple(map(self.double, args)), types.float64), self.type)
            case Call(op, args) if op in COMPARISONS or op in LOGIC or op in PREDICATES:
                return self.cast(self.truth(term), self.type)
            case Call(op, args):
                return self.emit(op, tuple(map(self.number, args)), self.type)

    def truth(self, term: Term) -> Operand:
        """The operand of a term as a condition."""
        match term:
            case Call(op, args) if op in LOGIC:
                return self.emit(op, tuple(map(self.truth, args)), types.boolean)
            case Call(op, (str() as name, Number(int() as value))) if op in COMPARISONS and self.is_integer(name):
                operand = self.read(name)
                return self.emit(op, (operand, Const(value, operand.type)), types.boolean)
            case Call(op, args) if op in COMPARISONS or op in PREDICATES:
                return self.emit(op, tuple(map(self.number, args)), types.boolean)
            case _:
                return self.cast(self.own(term), types.boolean)

    def integer(self, term: Term) -> Operand:
        """The operand of a term as an integer."""
        operand = self.own(term)
        return operand if isinstance(operand.type, types.Integer) else self.emit(int, (operand,), types.int64)

    def double(self, term: Term) -> Operand:
        """The operand of a term as an argument of a helper: a float64, or an integer where the text has one."""
        if isinstance(term, Number):
            return constant(term.value, types.int64 if isinstance(term.value, int) else types.float64)
        return self.cast(self.own(term), types.float64)

    def own(self, term: Term) -> Operand:
        """The operand of a term, a name in its own type."""
        return self.read(term) if isinstance(term, str) else self.number(term)

    def is_integer(self, name: str) -> bool:
        return isinstance(self.read(name).type, types.Integer)


def constant(value: object, type: Type) -> Const:
    """A constant of a type. A float32 one is a Python float of a float32's value, so that it prints as a number."""
    match type:
        case types.float64:
            return Const(float(value), type)  # type: ignore[arg-type]
        case types.float32:
            return Const(float(np.float32(value)), type)  # type: ignore[arg-type]
        case types.boolean:
            return Const(bool(value), type)
        case _:
            return Const(int(value), type)  # type: ignore[call-overload]


CASTS: dict[Type, Op] = {
    types.float64: np.float64,
    types.float32: np.float32,
    types.boolean: bool,
    types.int64: np.int64,
    types.int32: np.int32,
}
