"""Properties of NumPy's functions, beyond their purity."""

from __future__ import annotations

import operator

import numpy as np
from numba import types

from zygote_py.ir.ops.table import Cost, Effect, Family, Op, Role, operation

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
