"""The instructions of an adjoint: an expression of a rule, with values in place of its names.

    sin(%x), "cos(x) * dy"      %t  = np.cos @x : f64
                                %dx = mul %t, %dy : f64

All arithmetic is in the float type of the result `y`: float32 stays float32, literals included. Other values are cast
where they enter, and the outcome is cast to the type of the argument it belongs to. A sub-expression that occurs twice
is emitted once.

An expression with complex numbers in it is in the complex type of that float type where one of its operands is complex.
A row of an operation with a complex result is a statement about functions, `y' = cos(x) * dy`; the adjoint is its
conjugate transpose, `conj(row(conj(dy)))`, which `terms.transposed` writes down. Products and quotients with one real
operand are taken part by part, and so is what ends in a real part:

    mul(%a, %b), "dy * b"       %t  = np.conjugate @b : c128
                                %da = mul %dy, %t : c128

The only simplifications are those exact for every float, NaN and infinity included: `1 * a -> a`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
from numba import types

from zygote_py.adjoints.rules.formulas.rule import Rule
from zygote_py.adjoints.rules.formulas.terms import (
    COMPARISONS,
    HELPERS,
    LOGIC,
    PARTS,
    PREDICATES,
    Call,
    Number,
    Term,
    parse,
    transposed,
)
from zygote_py.ir import Const, Instr, Operand, Special, Type, Value, ops, scalar_type

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
    term = transposed(expression) if isinstance(instr.type, types.Complex) else parse(expression)
    argument = instr.args[index]
    if real_of(argument) is not None:  # the cast that made it complex takes the real part
        return expansion.cast(expansion.part(np.real, term), argument.type)
    return expansion.of_type(term, argument.type)


def push_forward(rule: Rule, index: int, instr: Instr, tangent: Operand, emit: Emit) -> Operand:
    """Emit how the result of `instr` changes when its argument `index` changes by `tangent`, and return it.

    The same row serves as for the adjoint: it is linear in `dy`. Of a real result of a complex argument it is the
    gradient `g` times `dy`, and the change is the real part of `conj(g) * tangent`.
    """
    expression = rule.adjoints[index]
    assert expression is not None, (rule, index)
    values = dict(zip(rule.names, instr.args, strict=True))
    term = parse(expression)
    if isinstance(tangent.type, types.Complex) and not isinstance(instr.type, types.Complex):
        gradient = _Expansion(instr, values, constant(1.0, instr.type), emit, lambda operand: operand)
        change = _Expansion(instr, {**values, "dx": tangent}, tangent, emit, lambda operand: operand)
        products = [
            change.emit(operator.mul, (gradient.part(part, term), change.part(part, "dx")), gradient.type)
            for part in (np.real, np.imag)
        ]
        return change.emit(operator.add, (products[0], products[1]), gradient.type)
    expansion = _Expansion(instr, values, tangent, emit, lambda operand: operand)
    return expansion.of_type(term, instr.type)


def evaluated(expression: str, names: tuple[str, ...], instr: Instr, emit: Emit) -> Operand:
    """Emit an expression of the arguments of `instr`, named in order, and return its value, of the type of `instr`."""
    values = dict(zip(names, instr.args, strict=True))
    expansion = _Expansion(instr, values, constant(1.0, instr.type), emit, lambda operand: operand)
    return expansion.of_type(parse(expression), instr.type)


class _Expansion:
    """One use of an expression. `type` is the type that it computes in, `complex` that of its complex numbers."""

    def __init__(
        self,
        instr: Instr,
        values: dict[str, Operand],
        dy: Operand,
        emit: Emit,
        alpha: Callable[[Operand], Operand],
    ) -> None:
        self.type: Type = _PARTS_OF.get(instr.type, instr.type)
        self.complex: Type = types.complex64 if self.type == types.float32 else types.complex128
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
        if scalar_type(operand.type) == type:
            return operand
        if isinstance(operand, Const):
            return constant(operand.value, type)
        # Compiled, `float` of a float32 is that float32, and does not exist for a boolean.
        op = float if type == types.float64 and isinstance(operand.type, types.Integer) else CASTS[type]
        return self.emit(op, (operand,), type)

    def read(self, name: str) -> Operand:
        """Return the operand of a name, in its own type; for a real number cast to complex, the real number."""
        match name:
            case "dy":
                return real_of(self.dy) or self.dy
            case "y":
                return self.alpha(self.instr)
            case _:
                return self.alpha(real_of(self.values[name]) or self.values[name])

    def of_type(self, term: Term, type: Type) -> Operand:
        """Return the operand of a term as a number of a type; of a complex one, for a real type, the real part."""
        if isinstance(type, types.Complex):
            return self.cast(self.number(term), type)
        return self.cast(self.part(np.real, term), type)

    def number(self, term: Term) -> Operand:
        """Return the operand of a term as a number of the working type, complex where the term is."""
        if self.is_complex(term):
            return self.complex_number(term)
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
            case Call(op, (number, exponent)) if op in (np.ldexp, operator.pow):
                return self.emit(op, (self.number(number), self.integer(exponent)), self.type)
            case Call(op, args) if isinstance(op, Special):
                taken = [self.cast(self.own(arg), kind) for arg, kind in zip(args, op.argument_types, strict=True)]
                return self.cast(self.emit(op, tuple(taken), op.result_type), self.type)
            case Call(op, args) if op in _HELPERS:
                return self.cast(self.emit(op, tuple(map(self.double, args)), types.float64), self.type)
            case Call(op, args) if op in COMPARISONS or op in LOGIC or op in PREDICATES:
                return self.cast(self.truth(term), self.type)
            case Call(np.conjugate, (inner,)):
                return self.number(inner)
            case Call((np.real | np.imag) as part, (inner,)):
                return self.part(part, inner)
            case Call(op, args):
                return self.emit(op, tuple(map(self.number, args)), self.type)

    def is_complex(self, term: Term) -> bool:
        """Return whether a term is a complex number."""
        match term:
            case str():
                return isinstance(self.read(term).type, types.Complex)
            case Number(value):
                return isinstance(value, complex)
            case Call(op, args):
                if op is ops.select:
                    args = args[1:]
                elif op is complex:
                    return True
                elif op in PARTS or op in COMPARISONS or op in LOGIC or op in PREDICATES:
                    return False
                return any(map(self.is_complex, args))

    def complex_number(self, term: Term) -> Operand:
        """Return the operand of a complex term."""
        match term:
            case str():
                return self.cast(self.read(term), self.complex)
            case Number(value):
                return constant(value, self.complex)
            case Call(op, (Number(1), factor)) | Call(op, (factor, Number(1))) if op is operator.mul:
                return self.number(factor)  # 1*x -> x
            case Call(op, (condition, then, orelse)) if op is ops.select:
                arms = (self.of_type(then, self.complex), self.of_type(orelse, self.complex))
                return self.emit(op, (self.truth(condition), *arms), self.complex)
            case Call(op, (Call(np.real, (z,)), Call(np.imag, (same,)))) if op is complex and z == same:
                return self.of_type(z, self.complex)
            case Call(op, (Call(np.real, (z,)), Call(operator.neg, (Call(np.imag, (same,)),)))) if (
                op is complex and z == same and self.is_complex(z)  # a real number gets the zero of the other side
            ):
                return self.number(Call(np.conjugate, (z,)))
            case Call(op) if op is complex or self.by_parts(term):
                return self.emit(complex, (self.part(np.real, term), self.part(np.imag, term)), self.complex)
            case Call(op, args):
                return self.emit(op, tuple(self.of_type(arg, self.complex) for arg in args), self.complex)

    def by_parts(self, term: Call) -> bool:
        """Return whether a term is a product with a real or imaginary number or a quotient by one.

        As complex numbers they would take more operations, and make `inf * 0` of the part that is not there.
        """
        match term:
            case Call(operator.mul, (a, b)):
                return not self.is_complex(a) or not self.is_complex(b) or is_imaginary(a)
            case Call(np.divide, (_, b)):
                return not self.is_complex(b)
            case _:
                return False

    def part(self, part: Op, term: Term) -> Operand:
        """Return the real or the imaginary part (np.real, np.imag) of a term, avoiding the other if possible."""
        if not self.is_complex(term):
            return self.number(term) if part is np.real else constant(0.0, self.type)
        match term:
            case Number(value):
                return constant(part(value), self.type)
            case Call(op, (a, b)) if op is complex:
                return self.number(a if part is np.real else b)
            case Call(np.conjugate, (inner,)):
                found = self.part(part, inner)
                return found if part is np.real else self.emit(operator.neg, (found,), self.type)
            case Call(operator.neg, (inner,)):
                return self.emit(operator.neg, (self.part(part, inner),), self.type)
            case Call((operator.add | operator.sub) as op, (a, b)) if self.is_complex(a) and self.is_complex(b):
                return self.emit(op, (self.part(part, a), self.part(part, b)), self.type)
            case Call(operator.mul, (Number(complex(imag=imag)) as a, b)) if is_imaginary(a):
                factor, other = (-imag, np.imag) if part is np.real else (imag, np.real)
                return self.scaled(factor, self.part(other, b))
            case Call(operator.mul, (a, b)) if not self.is_complex(a):
                return self.emit(operator.mul, (self.number(a), self.part(part, b)), self.type)
            case Call(operator.mul, (a, b)) if not self.is_complex(b):
                return self.emit(operator.mul, (self.part(part, a), self.number(b)), self.type)
            case Call(operator.mul, (a, b)):
                return self.part_of_product(part, a, b)
            case Call(np.divide, (a, b)) if not self.is_complex(b):
                return self.emit(np.divide, (self.part(part, a), self.number(b)), self.type)
            case Call(ops.select, (condition, then, orelse)):
                args = (self.truth(condition), self.part(part, then), self.part(part, orelse))
                return self.emit(ops.select, args, self.type)
            case _:
                number = self.own(term)
                if isinstance(number, Const):
                    return constant(part(number.value), self.type)
                if isinstance(number, Instr) and number.op is complex and len(number.args) == 2:
                    return self.cast(number.args[0 if part is np.real else 1], self.type)
                return self.cast(self.emit(part, (number,), _PARTS_OF[number.type]), self.type)

    def scaled(self, factor: float, operand: Operand) -> Operand:
        """Return a multiple of a real number."""
        if factor == 1.0:
            return operand
        if factor == -1.0:
            return self.emit(operator.neg, (operand,), self.type)
        return self.emit(operator.mul, (constant(factor, self.type), operand), self.type)

    def part_of_product(self, part: Op, a: Term, b: Term) -> Operand:
        """Return the real or the imaginary part of the product of two complex numbers."""
        pairs, sign = (
            (((np.real, np.real), (np.imag, np.imag)), operator.sub)
            if part is np.real
            else (((np.real, np.imag), (np.imag, np.real)), operator.add)
        )
        products = (
            self.emit(operator.mul, (self.part(left, a), self.part(right, b)), self.type) for left, right in pairs
        )
        return self.emit(sign, tuple(products), self.type)

    def truth(self, term: Term) -> Operand:
        """Return the operand of a term as a condition."""
        match term:
            case Call(op, args) if op in LOGIC:
                return self.emit(op, tuple(map(self.truth, args)), types.boolean)
            case Call(op, (str() as name, Number(int() as value))) if op in COMPARISONS and self.is_integer(name):
                operand = self.read(name)
                return self.emit(op, (operand, Const(value, operand.type)), types.boolean)
            case Call(op, args) if op in COMPARISONS or op in PREDICATES:
                if any(map(self.is_complex, args)):
                    return self.emit(op, tuple(self.of_type(arg, self.complex) for arg in args), types.boolean)
                return self.emit(op, tuple(map(self.number, args)), types.boolean)
            case _:
                return self.cast(self.own(term), types.boolean)

    def integer(self, term: Term) -> Operand:
        """Return the operand of a term as an integer."""
        match term:
            case Number(value):
                return Const(int(value), types.int64)  # type: ignore[arg-type]
            case Call(op, (condition, then, orelse)) if op is ops.select:
                return self.emit(op, (self.truth(condition), self.integer(then), self.integer(orelse)), types.int64)
            case Call((operator.add | operator.sub) as op, args):
                return self.emit(op, tuple(map(self.integer, args)), types.int64)
        operand = self.own(term)
        return operand if isinstance(operand.type, types.Integer) else self.emit(int, (operand,), types.int64)

    def double(self, term: Term) -> Operand:
        """Return the operand of a term as an argument of a helper: a float64, or an integer where the text has one."""
        if isinstance(term, Number):
            return constant(term.value, types.int64 if isinstance(term.value, int) else types.float64)
        return self.cast(self.own(term), types.float64)

    def own(self, term: Term) -> Operand:
        """Return the operand of a term, a name in its own type."""
        return self.read(term) if isinstance(term, str) else self.number(term)

    def is_integer(self, name: str) -> bool:
        return isinstance(self.read(name).type, types.Integer)


def constant(value: object, type: Type) -> Const:
    """Return a constant of a type; a float32 one is a Python float of the same value, so that it prints as a number."""
    match type:
        case types.float64:
            return Const(float(value), type)  # type: ignore[arg-type]
        case types.float32:
            return Const(float(np.float32(value)), type)  # type: ignore[arg-type]
        case types.complex128:
            return Const(complex(value), type)  # type: ignore[call-overload]
        case types.complex64:
            return Const(complex(np.complex64(complex(value))), type)  # type: ignore[call-overload]
        case types.boolean:
            return Const(bool(value), type)
        case _:
            return Const(int(value), type)  # type: ignore[call-overload]


def real_of(operand: Operand) -> Operand | None:
    """Return the real number that a complex operand was made of, if it was."""
    match operand:
        case Instr(op=op, args=(number,)) if op in (complex, np.complex64, np.complex128):
            return None if isinstance(number.type, types.Complex) else number
        case Instr(op=ops.const, args=(Const() as named,)):
            return real_of(named)
        case Const(complex() as value, type) if value.imag == 0.0 and math.copysign(1.0, value.imag) > 0.0:
            return Const(value.real, _PARTS_OF[type])
        case _:
            return None


def is_imaginary(term: Term) -> bool:
    """Return whether a term is a multiple of the imaginary unit, written as such."""
    return isinstance(term, Number) and isinstance(term.value, complex) and term.value.real == 0.0


_HELPERS = frozenset(HELPERS.values())
# The type of the real and the imaginary part.
_PARTS_OF: dict[Type, Type] = {types.complex128: types.float64, types.complex64: types.float32}
CASTS: dict[Type, Op] = {
    types.complex128: np.complex128,
    types.complex64: np.complex64,
    types.float64: np.float64,
    types.float32: np.float32,
    types.boolean: bool,
    types.int64: np.int64,
    types.int32: np.int32,
}
