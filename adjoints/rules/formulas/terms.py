"""The expressions of the rules, parsed once from text into terms.

The text is Python: numbers, `1j`, names, `+ - * / **`, unary `-`, comparisons, `&`, `|`, `not`, `a if c else b`, and
calls of NumPy functions, of `complex` and of helpers by their bare name; `special.jv` is SciPy's function for doubles.

    parse("cos(x) * dy")   Call(operator.mul, (Call(numpy.cos, ("x",)), "dy"))
    transposed("...")      Call(operator.mul, (Call(numpy.cos, (Call(numpy.conjugate, ("x",)),)), "dy"))

A division `a / b` is `numpy.divide`, which follows IEEE and does not raise on zero, in plain Python as well as
compiled. The exponent of `**` is an integer, in integer arithmetic; other variants differ in when they raise, so that
`power` is written out.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Iterator

import numpy as np

from zygote_py.adjoints.rules.helpers import scipy_helpers, special
from zygote_py.ir import Special, ops, special as function_of_scipy
from zygote_py.ir.lazy_dataclass import dataclass

Op = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Call:
    """A callable applied to terms."""

    op: Op
    args: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A literal: an `int` where the text has no point, which counts as a float in float arithmetic."""

    value: int | float | complex


Term = Call | Number | str

_BINARY: dict[type[ast.operator], Op] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.divide,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_COMPARE: dict[type[ast.cmpop], Op] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
COMPARISONS: frozenset[Op] = frozenset(_COMPARE.values())
LOGIC: frozenset[Op] = frozenset({operator.and_, operator.or_, operator.not_})
PREDICATES: frozenset[Op] = frozenset({np.isnan, np.isfinite, np.isinf, np.signbit, np.less, np.greater})
HELPERS = special.HELPERS | scipy_helpers.HELPERS
# Functions of complex numbers whose value is real.
PARTS: frozenset[Op] = frozenset({np.real, np.imag, np.abs, np.angle, np.hypot})


@functools.cache
def parse(text: str) -> Term:
    """Return the term of an expression. Raises ValueError on anything that the module's docstring does not list."""
    return _term(ast.parse(text, mode="eval").body)


def _term(node: ast.expr) -> Term:
    match node:
        case ast.Name(name):
            return name
        case ast.Constant(int() | float() | complex() as value):
            return Number(value)
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
            return Number(-value)
        case ast.UnaryOp(ast.USub(), operand):
            return Call(operator.neg, (_term(operand),))
        case ast.UnaryOp(ast.Not(), operand):
            return Call(operator.not_, (_term(operand),))
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            return Call(_BINARY[type(op)], (_term(left), _term(right)))
        case ast.Compare(left, [op], [right]):
            return Call(_COMPARE[type(op)], (_term(left), _term(right)))
        case ast.IfExp(test, body, orelse):
            return Call(ops.select, (_term(test), _term(body), _term(orelse)))
        case ast.Call(ast.Name(name), args, []):
            return Call(_function(name), tuple(map(_term, args)))
        case ast.Call(ast.Attribute(ast.Name("special"), name), args, []):
            return Call(function_of_scipy(name, *("double",) * len(args)), tuple(map(_term, args)))
        case _:
            raise ValueError(f"not an expression of a rule: {ast.unparse(node)}")


def _function(name: str) -> Op:
    if name == "complex":
        return complex
    function: Op = HELPERS[name] if name in HELPERS else getattr(np, name)
    return function


@functools.cache
def vanishes(text: str) -> bool:
    """Return whether an adjoint is 0 where `dy` is 0 for any arguments, such as `dy if a > b else 0.0`.

    `cos(x) * dy` does not vanish: it is NaN for an infinite x.
    """
    return _vanishes(parse(text))


def _vanishes(term: Term) -> bool:
    match term:
        case "dy" | Number(value=0):
            return True
        case Call(operator.neg, (operand,)) | Call(operator.mul, (Number(), operand) | (operand, Number())):
            return _vanishes(operand)
        case Call(ops.select, (_, then, orelse)):
            return _vanishes(then) and _vanishes(orelse)
        case _:
            return False


# The functions in derivatives that are infinite at finite points, besides those of SciPy.
_SINGULAR: tuple[Op, ...] = (
    *(np.divide, np.power, operator.pow, np.log, np.log2, np.log10, np.log1p, special.digamma, special.polygamma),
    *(scipy_helpers.digamma_gap, scipy_helpers.gamma_density, scipy_helpers.beta_density),
)


@functools.cache
def is_singular(text: str) -> bool:
    """Return whether an adjoint may be infinite for finite arguments: it divides, or calls a function with poles.

    That of an inverse multiplies by the square of the result.
    """
    return _is_singular(parse(text))


def _is_singular(term: Term) -> bool:
    match term:
        case Call(operator.mul) if sorted(_factors(term)) == ["dy", "y", "y"]:
            return True
        case Call(op, args):
            return op in _SINGULAR or isinstance(op, Special) or any(map(_is_singular, args))
        case _:
            return False


def _factors(term: Term) -> Iterator[str]:
    """Yield the names that a product multiplies; "" for anything else."""
    match term:
        case Call(operator.mul, args):
            for each in args:
                yield from _factors(each)
        case _:
            yield term if isinstance(term, str) else ""


@functools.cache
def leaves_out(text: str) -> bool:
    """Return whether an adjoint's expression is a selection that may give 0 for any `dy`: `dy if a > b else 0.0`."""
    return _leaves_out(parse(text))


def _leaves_out(term: Term) -> bool:
    match term:
        case Call(operator.neg, (operand,)) | Call(operator.mul, (Number(), operand) | (operand, Number())):
            return _leaves_out(operand)
        case Call(ops.select, (_, then, orelse)):
            return any(each == Number(0) or _leaves_out(each) for each in (then, orelse))
        case _:
            return False


def names_in(term: Term) -> frozenset[str]:
    """Return the names that a term reads."""
    match term:
        case str():
            return frozenset({term})
        case Call(_, args):
            return frozenset().union(*map(names_in, args))
        case _:
            return frozenset()


@functools.cache
def transposed(text: str) -> Term:
    """Return the conjugate of an expression in which `dy` is conjugated, pushed down to the names.

    If the expression is a derivative applied to `dy`, this is its conjugate transpose applied to `dy`. The functions of
    rules are real on the real axis, so that the conjugate of `cos(x)` is `cos` of the conjugate of `x`; signed zeros
    keep to their side of a branch cut.
    """
    return _conjugate(parse(text))


def _conjugate(term: Term) -> Term:
    match term:
        case "dy":
            return term
        case str():
            return Call(np.conjugate, (term,))
        case Number(complex() as value):
            return Number(value.conjugate())
        case Number():
            return term
        case Call(np.conjugate, (inner,)):
            return _conjugate_seed(inner)
        case Call(op, (a, b)) if op is complex:
            return Call(op, (_conjugate_seed(a), _negated(_conjugate_seed(b))))
        case Call(op) if op in PARTS:
            return _conjugate_seed(term)
        case Call(ops.select, (condition, then, orelse)):
            return Call(ops.select, (condition, _conjugate(then), _conjugate(orelse)))
        case Call(op, args):
            return Call(op, tuple(map(_conjugate, args)))


def _conjugate_seed(term: Term) -> Term:
    """Return the term with the conjugate of `dy` in place of `dy`."""
    match term:
        case "dy":
            return Call(np.conjugate, (term,))
        case Call(np.real, ("dy",)):
            return term
        case Call(np.imag, ("dy",)):
            return Call(operator.neg, (term,))
        case Call(np.conjugate, ("dy",)):
            return "dy"
        case Call(op, args):
            return Call(op, tuple(map(_conjugate_seed, args)))
        case _:
            return term


def _negated(term: Term) -> Term:
    match term:
        case Call(operator.neg, (inner,)):
            return inner
        case Number(value):
            return Number(-value)
        case _:
            return Call(operator.neg, (term,))
