"""Properties of NumPy's functions, of Python's operators and built-in functions, and of `math`."""

from __future__ import annotations

import builtins
import inspect
import math
import operator

import numpy as np
from numba import types

from zygote_py.ir.ops.table import COMPARISONS, Cost, Effect, Family, Op, Role, operation

_FRESH = """
    append arange argpartition argsort argwhere array bincount column_stack concatenate convolve copy correlate cross
    cumprod cumsum delete diff digitize dot dstack empty empty_like eye flatnonzero full full_like hstack identity
    interp intersect1d isin kron linspace ones ones_like outer partition prod repeat roll searchsorted setdiff1d sort
    stack sum take tri tril triu union1d unique vander vstack where zeros zeros_like
"""
# The ufuncs that compute the same as an operator, on arrays and with NumPy's treatment of errors.
_OF_OPERATORS: dict[Op, tuple[Family, Op]] = {
    np.add: (Family.ARITHMETIC, operator.add),
    np.subtract: (Family.ARITHMETIC, operator.sub),
    np.multiply: (Family.ARITHMETIC, operator.mul),
    np.negative: (Family.NEGATION, operator.neg),
    np.positive: (Family.IDENTITY, operator.pos),
    np.invert: (Family.INVERSION, operator.invert),
    np.bitwise_and: (Family.BITWISE, operator.and_),
    np.bitwise_or: (Family.BITWISE, operator.or_),
    np.bitwise_xor: (Family.BITWISE, operator.xor),
    np.left_shift: (Family.BITWISE, operator.lshift),
    np.right_shift: (Family.BITWISE, operator.rshift),
    np.logical_and: (Family.LOGICAL, operator.and_),
    np.logical_or: (Family.LOGICAL, operator.or_),
    np.logical_xor: (Family.LOGICAL, operator.xor),
    np.less: (Family.COMPARISON, operator.lt),
    np.less_equal: (Family.COMPARISON, operator.le),
    np.equal: (Family.COMPARISON, operator.eq),
    np.not_equal: (Family.COMPARISON, operator.ne),
    np.greater_equal: (Family.COMPARISON, operator.ge),
    np.greater: (Family.COMPARISON, operator.gt),
}
_FLOATS = (np.float32, np.float64, np.complex64, np.complex128)
_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)

for _name in _FRESH.split():
    operation(getattr(np, _name), fresh=True)
for _function, (_family, _scalar) in _OF_OPERATORS.items():
    operation(_function, family=_family, scalar=_scalar, duplicable=True)
for _type in (*_FLOATS, *_INTEGERS):
    operation(_type, effect=Effect.PURE, family=Family.CAST, cast_to=getattr(types, _type.__name__))
operation(np.bool_, effect=Effect.PURE, family=Family.CAST, cast_to=types.boolean)

operation(np.zeros_like, effect=Effect.ALLOCATE)
operation(np.copy, role=Role.COPY)
operation(np.zeros_like, np.zeros, contents="zero")
operation(np.empty, np.empty_like, contents="unset")
operation(
    *(np.transpose, np.reshape, np.expand_dims, np.broadcast_to, np.real, np.imag, np.diagonal, np.squeeze),
    view=True,
)
operation(np.divide, family=Family.TRUE_DIVISION, scalar=operator.truediv)
operation(np.round, np.around, np.angle, np.sinc, family=Family.PARAMETRIC, elements=1)
operation(np.array, np.asarray, takes_display=True)
operation(
    *(np.zeros, np.ones, np.empty, np.zeros_like, np.ones_like, np.empty_like, np.full, np.sum, np.mean, np.copy),
    safe_in_try=True,
)
operation(
    *(np.round, np.around),
    signature=inspect.signature(lambda a, decimals=0, out=None: None),
    converts_output=True,
)
operation(np.clip, signature=inspect.signature(lambda a, a_min=None, a_max=None, out=None: None), converts_output=True)
operation(np.where, signature=inspect.signature(lambda condition, x, y: None))
operation(np.angle, signature=inspect.signature(lambda z, deg: None))
operation(np.sinc, signature=inspect.signature(lambda x: None))
operation(np.sum, signature=inspect.signature(lambda a, axis: None))
operation(np.prod, signature=inspect.signature(lambda a: None))
operation(np.dot, signature=inspect.signature(lambda a, b, out=None: None))
operation(np.vdot, signature=inspect.signature(lambda a, b: None))
operation(np.add, np.subtract, np.negative, sums=True)
operation(np.multiply, np.divide, np.ldexp, scales=True)
operation(np.zeros_like, np.copy, np.dot, shapes_decide=True)
operation(np.dot, np.vdot, scalar_product=True)
operation(
    *(np.absolute, np.logical_not, np.maximum, np.minimum, np.square, np.where, np.clip, np.copy),
    duplicable=True,
)
operation(np.float32, np.int64, remade=True)
operation(np.sqrt, exact="f")
operation(np.conjugate, exact="c")
operation(np.real, np.imag, exact="p")
operation(np.divide, np.sqrt, np.floor_divide, np.mod, cost=Cost.DIVISION)
operation(
    *(np.add, np.subtract, np.multiply, np.negative, np.abs, np.fabs, np.maximum, np.minimum, np.sign, np.copysign),
    *(np.square, np.positive, np.fmax, np.fmin, np.isnan, np.isfinite, np.float32, np.float64, np.int64, np.int32),
    *(np.floor, np.ceil, np.trunc, np.rint),
    cost=Cost.CHEAP,
)


_SYNTAX: dict[Op, str] = {
    operator.add: "a + b",
    operator.sub: "a - b",
    operator.mul: "a * b",
    operator.truediv: "a / b",
    operator.floordiv: "a // b",
    operator.mod: "a % b",
    operator.pow: "a ** b",
    operator.matmul: "a @ b",
    operator.and_: "a & b",
    operator.or_: "a | b",
    operator.xor: "a ^ b",
    operator.lshift: "a << b",
    operator.rshift: "a >> b",
    operator.neg: "-a",
    operator.pos: "+a",
    operator.invert: "~a",
    operator.not_: "not a",
    operator.lt: "a < b",
    operator.le: "a <= b",
    operator.eq: "a == b",
    operator.ne: "a != b",
    operator.ge: "a >= b",
    operator.gt: "a > b",
    operator.is_: "a is b",
    operator.is_not: "a is not b",
}

for _function, _text in _SYNTAX.items():
    operation(_function, name=_function.__name__, effect=Effect.PURE, syntax=_text, fresh=True)
for _function in (abs, bool, complex, divmod, float, int, len, max, min, round, slice):
    operation(_function, name=_function.__name__, effect=Effect.PURE)
operation(builtins.pow, name="builtins.pow", effect=Effect.PURE)
operation(len, role=Role.LENGTH)

operation(operator.add, operator.sub, operator.mul, family=Family.ARITHMETIC, elements=2, remade=True, hoistable=True)
operation(operator.add, operator.mul, commutative=True)
operation(operator.add, operator.sub, operator.neg, sums=True)
operation(operator.mul, operator.truediv, operator.pow, scales=True)
operation(operator.neg, family=Family.NEGATION, elements=1, remade=True, hoistable=True)
operation(operator.pos, family=Family.IDENTITY, elements=1)
operation(operator.invert, family=Family.INVERSION, elements=1)
operation(builtins.abs, elements=1)
operation(operator.truediv, family=Family.TRUE_DIVISION, elements=2)
operation(operator.floordiv, operator.mod, family=Family.WHOLE_DIVISION, elements=2)
operation(operator.truediv, operator.floordiv, operator.mod, cost=Cost.DIVISION, divides=True)
operation(divmod, divides=True)
operation(operator.pow, family=Family.POWER, elements=2, cost=Cost.FUNCTION)
operation(
    *(operator.truediv, operator.floordiv, operator.mod, divmod, operator.pow, builtins.pow), raises_for_zero=True
)
operation(
    *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift), family=Family.BITWISE, elements=2
)
operation(operator.and_, operator.or_, operator.not_, remade=True)
operation(operator.and_, operator.not_, truth=True)
operation(operator.matmul, shapes_decide=True, scalar_product=True)
operation(min, max, slice, remade=True, hoistable=True)
operation(float, int, bool, remade=True)

operation(operator.is_, operator.is_not, family=Family.IDENTITY_TEST)
operation(operator.add, in_place=operator.iadd)
operation(operator.mul, in_place=operator.imul)

for _comparison in COMPARISONS.values():
    operation(_comparison.op, family=Family.COMPARISON, elements=2, comparison=_comparison, remade=True, truth=True)

operation(float, int, bool, complex, round, family=Family.CAST)
operation(float, cast_to=types.float64)
operation(int, cast_to=types.int64)
operation(bool, cast_to=types.boolean)
operation(complex, cast_to=types.complex128)

operation(operator.add, operator.sub, operator.neg, operator.pos, exact="fic")
operation(operator.mul, abs, exact="fi")
operation(operator.truediv, math.sqrt, exact="f")
operation(operator.floordiv, operator.mod, operator.lshift, operator.rshift, operator.invert, max, min, exact="i")
operation(operator.and_, operator.or_, operator.xor, exact="ib")
operation(complex, exact="p")

operation(
    *(operator.neg, operator.pos, operator.invert, builtins.abs, operator.add, operator.sub, operator.mul),
    *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
    *(operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt),
    duplicable=True,
)
operation(math.sqrt, cost=Cost.DIVISION)
operation(math.floor, math.ceil, math.trunc, math.fabs, math.copysign, cost=Cost.CHEAP)
operation(print, silent=True)
operation(
    *(abs, bool, complex, enumerate, float, int, len, max, min, print, range, round, slice, sum, zip, tuple),
    *(list.append, list.copy),
    safe_in_try=True,
)
