"""The expressions of the rules, parsed once from text into terms.

The text is Python: numbers, names, `+ - * / **`, unary `-`, comparisons, `&`, `|`, `not`, `a if c else b`, and calls
of NumPy functions and of the helpers of `special` by their bare name.

    parse("cos(x) * dy")   Call(operator.mul, (Call(numpy.cos, ("x",)), "dy"))

A division `a / b` is `numpy.divide`, which follows IEEE and does not raise on zero, in plain Python as well as
compiled. `**` has no place here: its variants differ in when they raise, so `power` is written out.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from zygote_py.adjoints.rules import special
from zygote_py.ir import ops

Op = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Call:
    """A callable applied to terms."""

    op: Op
    args: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A literal: an `int` where the text has no point, which counts as a float in float arithmetic."""

    value: int | float


Term = Call | Number | str

_BINARY: dict[type[ast.operator], Op] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.divide,
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
PREDICATES: frozenset[Op] = frozenset({np.isnan, np.isfinite, np.isinf, np.signbit})


@functools.cache
def parse(text: str) -> Term:
    """The term of an expression. Raises ValueError on anything that the module's docstring does not list."""
    return _term(ast.parse(text, mode="eval").body)


def _term(node: ast.expr) -> Term:
    match node:
        case ast.Name(name):
            return name
        case ast.Constant(int() | float() as value):
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
        case _:
            raise ValueError(f"not an expression of a rule: {ast.unparse(node)}")


def _function(name: str) -> Op:
    function: Op = special.HELPERS[name] if name in special.HELPERS else getattr(np, name)
    return function


def names_in(term: Term) -> frozenset[str]:
    """The names that a term reads."""
    match term:
        case str():
            return frozenset({term})
        case Call(_, args):
            return frozenset().union(*map(names_in, args))
        case _:
            return frozenset()
